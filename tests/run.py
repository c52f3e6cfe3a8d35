#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [DIR:]SUITE[/TEST]…      DIR is the build that is tested (build); with a TEST, that test of the suite alone

  unit       the built C programs of tests/unit          fuzz     each fuzz target, FUZZ_SECONDS (1)
  golden     the built C programs of tests/golden        layers   tests/check-layers.sh
  house      tests/check-house.sh                        format   tests/check-format.sh
  runner     tests/check-runner.py
  quick      the cases of e2e that are marked @quick
  e2e        .sh and .py of tests/e2e, but "lib*"
  long       the long cases of those that have some (test-all)
  distros    unit and golden, built in a bare system of the stable Debian (tests/distros.sh)
  soak       cases that repeat others for longer (make soak)
  sanitized  those of e2e that are repeated with the sanitizers, long cases included, but for those marked @natively
  servers    those of e2e that need running backends (test-servers); no other suite has them
  tools      those that need profilers which are built first (test-tools); the same
  replay     what e2e and long recorded, read by this build; see tests/replay.py

Prints a line for every test and, alone on the last line, "N passed, N failed, N skipped". Exits 1 if a test failed.

A test is a program. It runs at the top of the tree, those of e2e in SCRATCH, because the programs that they run may leave
files where they are. It passes by exit 0. Exit 77 skips it, with the reason as its last line; a reason that says "needs
root" or "needs CAP_…" fails the run where CI=true, because there the root-only tests are the point. Its source has these
settings, each in a line of its own:
  time-limit: SECONDS   otherwise 300, and 600 for e2e
  runs: WORD…           beside     it measures neither shares of the CPUs nor time: it may run in parallel with others, but
                                   for its cases marked @alone (libe2e.py), which run alone
                        alone      nothing else may run at the same time
                        sanitized  part of that suite: memory errors can occur in what it tests
                        long       it has cases that only test-all runs (@long in libe2e.py)
                        soak       it has cases that only `make soak` runs (@soak)
                        servers, tools    part of that suite, and of no other
                        whole      one of its cases needs the others: if one fails, all of them run again
e2e tests run alone unless they say `beside`; all others, and e2e tests with the sanitizers, run in parallel unless they say
`alone`. The parallel ones come first: as many as there are CPUs, and another one each time that the CPUs were idle for a
while, or used by programs of nice 19 alone, because many tests mostly wait. TEST_JOBS=N: N at a time, always.

A unit test, an end-to-end test or distros that failed is run again at the end, alone, twice at most, of a test in Python
the cases that failed: a host that takes the CPUs away for a moment can fail one. Its first log stays (NAME.first.log). If
it passes then, it is unsteady: passed, and with CI=true failed ("unsteady, passed when it ran again: failed"), unless
UNSTEADY_PASSES is set. More than SECOND_TRIES (8) failures are none of the host's: then nothing is run again. A report
of a sanitizer, a crash or a limit that was exceeded gets no second try. What failed is printed once more at the end,
with its reasons, then the ten slowest tests and the CPU time of each suite: that of its tests and of all the processes
that were waited for; and what was skipped.

A test finds
  BUILD       the build directory, absolute     SYSPROF   the program
  SCRATCH     an empty directory of its own, also TMPDIR, removed afterwards
  CASES       which cases of an e2e test are wanted: short, long, quick, soak or all, and then perhaps beside or alone
  RECORDINGS  DIR/tests/recordings of the build without sanitizers
  GOCACHE     what is compiled of Go's library, once for all tests
and its output goes to DIR/tests/log/NAME.log, which is shown when it fails. The recordings that an e2e test leaves in
SCRATCH/kept are moved to RECORDINGS/made.

End-to-end tests need root, and so do some cases of unit tests. As a user they run through sudo, one by one, while logs and
everything else in the build directory stay the user's. A report of a sanitizer fails a test that otherwise passed,
whichever of its processes wrote it.
"""
import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDINGS = f"{TOP}/build/tests/recordings"
CI = os.environ.get("CI", "")
UNSTEADY_FAILS = CI == "true" and not os.environ.get("UNSTEADY_PASSES")
BUILT_FIRST = ("servers", "tools")  # what they need is built by a target of its own
END_TO_END = ("quick", "e2e", "long", "soak", "sanitized", *BUILT_FIRST)
CHECKS = {"layers": "tests/check-layers.sh", "house": "tests/check-house.sh", "format": "tests/check-format.sh",
          "runner": "tests/check-runner.py",
          "replay": "tests/replay.py", "distros": "tests/distros.sh"}
SOURCES = {"unit": "tests/unit/test_*.c", "golden": "tests/golden/*.c", "fuzz": "tests/fuzz/fuzz_*.c", **CHECKS}


# ---- root ---------------------------------------------------------------------------------------

@functools.cache
def root():
    """(what a command of root's begins with, why there is none): found once, and only if a test needs it."""
    user = f"needs root: this is uid {os.getuid()}, and"
    if os.getuid() == 0:
        return [], None
    if not shutil.which("sudo"):
        return [], f"{user} there is no sudo"
    print("some tests need root: running them with sudo", flush=True)
    if subprocess.call(["sudo", "-v"]):
        return [], f"{user} sudo refused"

    def stay_root():  # a long test must not find the password forgotten at its end
        while not subprocess.call(["sudo", "-n", "-v"], stderr=subprocess.DEVNULL):
            time.sleep(50)

    threading.Thread(target=stay_root, daemon=True).start()
    return ["sudo"], None


class Test:
    """One line of the output. `lines`: what is printed of it, the first is its result."""

    def __init__(self, suite, name, source, build, place, cases):
        self.suite, self.name, self.source, self.build, self.place, self.cases = suite, name, source, build, place, cases
        self.lines, self.process, self.scratch, self.seconds, self.cpu = [], None, None, 0, 0.0
        self.named = []  # cases; none: those of `cases`
        self.log = f"{build}/tests/log/{suite}-{os.path.basename(name)}.log"
        self.first_log = self.log.removesuffix(".log") + ".first.log"
        limit = re.search(r"time-limit: *(\d+)", read(source))
        self.limit = int(limit[1]) if limit else 600 if suite in (*END_TO_END, "distros") else 300
        self.as_root, self.refusal = root() if suite in ("unit", "distros", *END_TO_END) else ([], None)
        if suite == "unit":
            self.refusal = None  # its cases that need root say so
        if os.path.exists(self.first_log):
            os.unlink(self.first_log)

    def command(self):
        stem = os.path.splitext(self.source)[0]
        return {"unit": [f"{self.build}/{stem}"], "golden": [f"{self.build}/{stem}"],
                "fuzz": [f"{TOP}/tests/fuzz/run.sh", os.path.basename(stem)],
                "distros": [f"{TOP}/{self.source}", "trixie:unit:1"]}.get(self.suite, [f"{TOP}/{self.source}"])

    def result(self, word, remark="", took=""):
        self.lines.append(f"{word:<5} {self.name}{took and f' ({took})'}{remark and f': {remark}'}")

    def has(self, word):
        return any(line.startswith(word + " ") for line in self.lines)

    def run(self):
        self.lines = []
        if self.refusal:
            return self.result("skip", self.refusal)
        if not os.access(self.command()[0], os.X_OK):
            return self.result("FAIL", f"{self.command()[0]} is not there, or not executable")
        self.scratch = tempfile.mkdtemp(prefix="sysprof-test.")
        os.chmod(self.scratch, 0o755)  # tests that drop privileges come back here
        os.mkdir(f"{self.scratch}/work")
        os.mkdir(f"{self.scratch}/reports")
        os.chmod(f"{self.scratch}/reports", 0o1777)
        try:
            self.judge(*self.execute())
            self.keep_recordings()
        finally:
            subprocess.call([*self.as_root, "rm", "-rf", self.scratch])
        return None

    def execute(self):
        """Its exit status, and how long it took."""
        work, reports = f"{self.scratch}/work", f"{self.scratch}/reports"
        variables = {
            "BUILD": self.build, "SYSPROF": f"{self.build}/sysprof", "SCRATCH": work, "TMPDIR": work, "CI": CI,
            "CASES": self.cases, "RECORDINGS": RECORDINGS, "PYTHONDONTWRITEBYTECODE": 1, "LSAN_OPTIONS": "exitcode=99",
            "GOCACHE": os.environ.get("GOCACHE", f"{TOP}/build/go-cache"),
            "ASAN_OPTIONS": f"exitcode=99:detect_leaks=1:log_path={reports}/asan",
            "UBSAN_OPTIONS": f"exitcode=99:print_stacktrace=1:log_path={reports}/ubsan"}
        folder = work if self.source.startswith("tests/e2e/") else TOP
        command = [*self.as_root, "env", "-C", folder, *(f"{name}={value}" for name, value in variables.items()),
                   "timeout", "-k", "10", str(self.limit), *self.command(), *self.named]
        os.makedirs(os.path.dirname(self.log), exist_ok=True)
        begin = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            _, status, usage = os.wait4(self.process.pid, 0)
        except SystemExit:  # the run itself is ended
            self.end()
            raise
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, cpu = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
        self.cpu += cpu
        return self.process.returncode, f"{self.seconds:.1f} s, CPU {cpu:.1f} s"

    def judge(self, status, took):
        reports = subprocess.run([*self.as_root, "find", f"{self.scratch}/reports", "-type", "f", "-size", "+0", "-exec", "cat",
                                  "{}", "+"], stdout=subprocess.PIPE, check=False).stdout
        if reports:
            with open(self.log, "ab") as log:
                log.write(b"--- sanitizer reports\n" + reports)
        lines = read(self.log).splitlines()
        if status == 77 and not reports:
            return self.result("skip", ([line for line in lines if line.strip()] or [""])[-1])
        if status == 0 and not reports:
            self.result("ok", "", took)
            return self.report_skipped_cases(lines)
        if status in (124, 137, -9):
            self.result("FAIL", f"exceeded its limit of {self.limit} s", took)
        else:
            self.result("FAIL", "a sanitizer reported an error" if reports else f"exit status {status}", took)
        self.lines += [f"  ---- the end of {self.log}", *(f"  | {line}" for line in lines[-40:])]
        return None

    def report_skipped_cases(self, lines):
        """cmocka counts a skipped case as a pass of its program; here it has a line of its own."""
        reason = "no reason given"
        for line in lines:
            if "listed below" in line:
                break
            if line.startswith("[  SKIPPED ] "):
                self.result("skip", f"{reason} ({line.removeprefix('[  SKIPPED ] ')})")
            reason = "no reason given" if line.startswith("[ RUN") else line

    def keep_recordings(self):
        """What e2e tests kept of their recordings, for tests that read them again."""
        kept, made = f"{self.scratch}/work/kept", f"{RECORDINGS}/made"
        if not os.path.isdir(kept):
            return
        if self.as_root:
            subprocess.call([*self.as_root, "chown", "-R", f"{os.getuid()}:{os.getgid()}", kept])
        os.makedirs(made, exist_ok=True)
        for name in os.listdir(kept):
            shutil.move(f"{kept}/{name}", f"{made}/{os.path.basename(self.name)}-{name}")

    def end(self):
        if self.process and self.process.returncode is None:
            subprocess.call([*self.as_root, "kill", "--", f"-{self.process.pid}"])


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def says(source, word):
    """Whether its settings have the word."""
    found = re.search(r"^\W*runs:(.*)$", "\n".join(read(source).splitlines()[:40]), re.M)
    return bool(found) and word in found[1].split()


def cases_of(source):
    """The marks of each case of an e2e test in Python."""
    marks, found = set(), []
    for line in read(source).splitlines():
        mark = re.match(r"@(?:e\.)?(\w+)", line)
        if line.startswith("def test_"):
            found.append(marks)
        marks = marks | {mark[1]} if mark else set()
    return found


def is_wanted(marks, suite, wanted):
    """Whether this suite runs a case. wanted: quick, long, soak, short (none of these), or all but soak."""
    if suite == "sanitized" and "natively" in marks:
        return False
    kind = "soak" if "soak" in marks else "long" if "long" in marks else "short"
    return {"quick": "quick" in marks, "all": kind != "soak"}.get(wanted, kind == wanted)


def sources_of(suite):
    if suite in SOURCES:
        return sorted(glob.glob(SOURCES[suite]))
    files = [path for pattern in ("*.sh", "*.py") for path in glob.glob("tests/e2e/" + pattern)
             if not os.path.basename(path).startswith("lib")]
    files = sorted(path for path in files if all(says(path, word) == (suite == word) for word in BUILT_FIRST))
    if suite == "quick":
        return [path for path in files if any("quick" in marks for marks in cases_of(path))]
    return files if suite in ("e2e", *BUILT_FIRST) else [path for path in files if says(path, suite)]


def plan(word):
    """The tests of [DIR:]SUITE[/TEST]."""
    folder, suite, only = re.fullmatch(r"(?:(.*?):)?([^/]*)(?:/(.*))?", word).groups()
    folder, build = folder or "build", os.path.realpath(folder or "build")
    if suite not in SOURCES and suite not in END_TO_END:
        sys.exit(__doc__)
    sources = [path for path in sources_of(suite) if only in (None, os.path.splitext(os.path.basename(path))[0])]
    if not sources:
        sys.exit(f"run.py: no test is {word}")
    if (folder, suite, only) == ("build", "e2e", None):
        subprocess.call([*root()[0], "rm", "-rf", RECORDINGS])
    wanted = suite if suite in ("quick", "long", "soak") else "all" if suite in ("sanitized", *BUILT_FIRST) else "short"
    tests = []
    for source in sources:
        name = os.path.splitext(os.path.basename(source))[0]
        name = name if suite in CHECKS else f"{suite}/{name}"
        if folder != "build":  # a second build of the same tests
            name = f"{os.path.basename(folder)}/{name}"
        # with the sanitizers it is memory that is looked at
        is_alone = says(source, "alone") or suite in END_TO_END and suite != "sanitized" and not says(source, "beside")
        place, marked = "alone" if is_alone else "beside", cases_of(source) if source.endswith(".py") else []
        chosen = ["alone" if "alone" in marks else "beside" for marks in marked if is_wanted(marks, suite, wanted)]
        if marked and not chosen:
            continue
        if place == "alone" or "alone" not in chosen or suite in BUILT_FIRST:
            tests.append(Test(suite, name, source, build, place, wanted))
            continue
        if "beside" in chosen:
            tests.append(Test(suite, name, source, build, place, wanted + " beside"))
        tests.append(Test(suite, name + ".alone", source, build, "alone", wanted + " alone"))
    return tests


class Idle:
    """Whether the CPUs had time to spare since the last look. What programs of nice 19 take, another test gets at once."""
    LONG, SHARE = 1, 0.15  # s; of all CPUs

    def __init__(self):
        self.since, self.idle = time.monotonic(), self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            times = f.readline().split()
        return sum(int(times[column]) for column in (2, 4, 5)) / os.sysconf("SC_CLK_TCK")  # nice, idle, iowait

    def is_there(self):
        took = time.monotonic() - self.since
        if took < self.LONG:
            return False
        share = (self.read() - self.idle) / took / os.cpu_count()
        self.__init__()
        return share >= self.SHARE


def show(test, counts):
    if not test.lines:
        test.result("FAIL", "it was not run to its end")
    print("\n".join(test.lines), flush=True)
    for word in counts:
        counts[word] += sum(line.startswith(word + " ") for line in test.lines)


def run_beside(tests, counts):
    """Results are shown in the order of the plan."""
    jobs, cpus = int(os.environ.get("TEST_JOBS") or 0), len(os.sched_getaffinity(0))
    least, most = jobs or cpus, jobs or 5 * cpus
    waiting, running, shown, idle = list(tests), {}, 0, Idle()
    while shown < len(tests):
        running = {test: thread for test, thread in running.items() if thread.is_alive()}
        while waiting and (len(running) < least or len(running) < most and idle.is_there()):
            test = waiting.pop(0)
            running[test] = threading.Thread(target=test.run)  # which is waited for at the end
            running[test].start()
        while shown < len(tests) and tests[shown] not in waiting and tests[shown] not in running:
            show(tests[shown], counts)
            shown += 1
        time.sleep(0.05)


def failed_cases(test, log):
    """Of an e2e test in Python; none if all of them have to run again."""
    return [] if says(test.source, "whole") else re.findall(r"^FAIL (test_\w+)$", read(log), re.M)


def run_again(tests, counts):
    """
    What failed may be the host's doing: status 1 of a program that compares what it saw, and not many of them. Returns those that
    then passed. CI is to find what is unsteady: there they have failed.
    """
    failed, unsteady = [test for test in tests if test.has("FAIL")], []
    if not failed or len(failed) > int(os.environ.get("SECOND_TRIES", 8)) or \
            any(test.suite not in ("unit", "distros", *END_TO_END) or not test.lines[0].endswith(": exit status 1") for test in failed):
        return []
    print("again, alone: what failed", flush=True)
    # tests share them: one may be why several failed
    subprocess.call([*root()[0], "rm", "-f", *glob.glob(f"{RECORDINGS}/*.sysprof*")])
    for test in failed:
        os.rename(test.log, test.first_log)
        for log in test.first_log, test.log:
            test.named = failed_cases(test, log) or test.named
            test.run()
            if not test.has("FAIL"):
                break
        counts["FAIL"] -= 1
        if not test.has("FAIL"):
            unsteady.append(test.name)
            if UNSTEADY_FAILS:
                test.lines = []
                test.result("FAIL", f"unsteady, passed when it ran again: failed ({test.first_log}, {test.log})")
        show(test, counts)
    return unsteady


def report_failures(tests):
    """The end is what is read of a long run, so what failed at each try comes last."""
    for test in sorted(tests, key=lambda test: test.has("FAIL")):
        log = test.first_log if os.path.exists(test.first_log) else test.log
        if test.has("FAIL") or log == test.first_log:
            lines = read(log).splitlines() if os.path.exists(log) else test.lines
            at = next((i for i, line in enumerate(lines) if line.startswith("FAIL ")), -20)
            print(f"---- {test.name}", *(line[:300] for line in lines[at:][:40]), sep="\n")
    print("the ten slowest:")  # one that ran beside others has taken more than it would alone
    for test in sorted(tests, key=lambda test: -test.seconds)[:10]:
        print(f"  {test.lines[0]}")
    print("CPU s:", *(f"{build}:{suite} {sum(t.cpu for t in tests if (os.path.basename(t.build), t.suite) == (build, suite)):.0f}"
                      for build, suite in dict.fromkeys((os.path.basename(t.build), t.suite) for t in tests)))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.chdir(TOP)
    tests = [test for word in sys.argv[1:] for test in plan(word)]
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    begin = time.monotonic()
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, lambda *_: sys.exit(130))
    try:
        run_beside([test for test in tests if test.place == "beside"], counts)
        beside_took = time.monotonic() - begin
        for test in tests:
            if test.place == "alone":
                test.run()
                show(test, counts)
        unsteady = run_again(tests, counts)
    finally:
        for test in tests:
            test.end()
    report_failures(tests)
    print(f"{beside_took:.0f} s for the tests that ran in parallel, {time.monotonic() - begin - beside_took:.0f} s for those that ran alone")
    failed = counts["FAIL"] > 0 or not counts["ok"] + counts["skip"]
    refused = sum(bool(re.match(r"skip .*(needs root|needs CAP_|only root)", line)) for test in tests for line in test.lines)
    if CI == "true" and refused:
        print(f"CI=true, and {refused} tests that need root were skipped: that is a failure")
        failed = True
    if counts["skip"]:
        print(*(line for test in tests for line in test.lines if line.startswith("skip ")), sep="\n")
    if unsteady:
        print(f"unsteady, passed when they ran again{': failed' if UNSTEADY_FAILS else ''}:", *unsteady)
    if counts["FAIL"]:
        print("failed:", *(test.name for test in tests if test.has("FAIL")))
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    sys.exit(failed)


if __name__ == "__main__":
    main()
