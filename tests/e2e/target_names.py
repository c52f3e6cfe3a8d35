#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Targets by name: those that run, and what starts while it is recorded, from their first tick on; and no others."""
import json
import os
import re
import shutil
import signal
import sys

from libe2e import (SYSPROF, Background, Fixture, as_user, assert_sample_count, comm_of, comms, firefox_extra, firefox_threads, fixture,
                    folded, fuse_device, has_chain, long, lost_in, main, need_root, new_scratch, place_of, quick, read, record, record_cpu,
                    recording_books, run, scratch, share, started_sampling, sysprof, total, wait_for)
from libservices import HOLD_UP, PUBLISH, Groups

CHAIN = ("outer", "middle", "inner", "leaf")
SECONDS = 0.6  # of CPU time
POLITELY = ("nice", "-n", "19")  # programs that spin as long as they run
# needs the CPU time in seconds as an argument
SPINS_FOR = "import sys, time\nend = time.thread_time() + float(sys.argv[1])\nwhile time.thread_time() < end: pass\n"
# setpriv has the user before it executes the program; within execve a process has its new file before its new name
EXECUTES = {"setpriv", "env", comm_of(os.getpid())}
SHELLS = ("sh", os.path.basename(os.path.realpath("/bin/sh")))


def program(name):
    """A fixture with that name, which only this test runs."""
    path = scratch(name)
    if not os.path.exists(path):
        shutil.copy(fixture("chain"), path)
        os.chmod(path, 0o755)
    return path


def check_books(recording):
    """Each delivered sample is in the recording; what was dropped is in the line of what was filtered."""
    for b in recording_books(recording).values():
        assert b.count["delivered"] == b.received == b.samples, b
        assert abs(b.due - sum(b.count.values())) <= 2, b


class Recorder:
    """A recording that has begun."""

    def __init__(self, *options):
        need_root()
        self.firefox, self.recording, self.folded = (new_scratch("named" + end) for end in (".json.gz", ".sysprof", ".folded"))
        self.p = Background(SYSPROF, "record", "--no-code", *options, "-o", self.firefox, "-o", self.recording, "-o", self.folded)

    def __enter__(self):
        started_sampling(self.p, self.recording)
        return self

    def finish(self):
        self.p.signal(signal.SIGINT)
        self.result = self.p.finish(check=0)
        check_books(self.recording)
        return self

    def __exit__(self, *_):
        self.p.__exit__()

    def processes(self):
        """By the names of their threads."""
        return set(comms(folded(self.folded)))

    def check_whole(self, name):
        """All of the program's CPU time, in one thread, from its first to its last function."""
        (thread,) = [t for t in firefox_threads(self.firefox) if t.functions().get("outer")]
        assert_sample_count(thread.functions()["outer"], SECONDS * 1e9, lost_in(self.firefox), name)
        rows = [row for row in folded(self.folded) if row[0][0] == name[:15] and "outer" in row[0]]
        assert share(rows, lambda f: has_chain(f, *CHAIN)) > 0.9, rows


def run_named(name, wrap=()):
    run(*wrap, program(name), SECONDS, check=0)


def busy_bystanders():
    """A program that runs in each 10 ms, and many that run for a moment: a third of a CPU, so that targets have theirs."""
    short = "sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; sleep 0.02"
    return Background("sh", "-c", f"{fixture('duty')} 60 25 & while :; do {short}; done", start_new_session=True)


class Bystanders:
    def __enter__(self):
        self.p = busy_bystanders()
        return self

    def __exit__(self, *_):
        os.killpg(self.p.pid, signal.SIGKILL)
        self.p.__exit__()


def assert_late(options, name, wrap=()):
    with Bystanders(), Recorder(*options) as recorder:
        run_named(name, wrap)
        recorder.finish()
    assert recorder.processes() - EXECUTES == {name}, recorder.processes()
    recorder.check_whole(name)
    assert sum(b.count["filtered"] for b in recording_books(recorder.recording).values()) > 50
    return recorder


@quick
def test_a_process_that_starts_later():
    recorder = assert_late(["--comm", "late-co*"], "late-comm")
    assert "no process matches --comm 'late-co*': waiting for one" in recorder.result.err, recorder.result
    assert "targets: --comm 'late-co*'" in recorder.result.err, recorder.result


def test_a_program_that_starts_later():
    """By its whole path, and by its name alone."""
    assert_late(["--exe", scratch("late-ex?")], "late-exe")
    assert_late(["--exe", "late-[ef]xe"], "late-exe")


def test_a_user_whose_processes_start_later():
    assert_late(["--user", "45678"], "late-user", as_user(45678))


def as_service(name, variable="OTEL_SERVICE_NAME"):
    """What a command line begins with of a service; it is one from its execve on."""
    return "env", f"{variable}={name}"


def service_of(recording):
    """The only one, but for some samples of what executed it."""
    rows = json.loads(sysprof("report", recording, "--by", "service", "--json", check=0).out)["rows"]
    assert sum(row["self"] for row in rows[1:]) <= 3, rows
    return rows[0]["service"]


def pids_of(recorder):
    return {t.pid for t in firefox_threads(recorder.firefox) if t.count}


@quick
def test_a_service_that_starts_later():
    recorder = assert_late(["--service", "^late-(shop|cart)$"], "late-service", as_service("late-shop"))
    assert "no process matches --service '^late-(shop|cart)$': waiting for one" in recorder.result.err, recorder.result
    assert service_of(recorder.recording) == "late-shop", service_of(recorder.recording)


def test_a_service_of_another_user():
    assert_late(["--service", "^late-s"], "late-service", [*as_user(45678), *as_service("late-shop", "DD_SERVICE")])


def test_a_service_that_is_a_unit_or_a_script():
    """Named by what it is, not by itself."""
    with Groups() as groups, Bystanders(), Recorder("--service", "^late-unit$") as recorder:
        run_named("late-in-unit", in_group(groups.make("late-unit.service")))
        recorder.finish()
    # the shell has moved before it executes the program
    assert recorder.processes() - set(SHELLS) == {"late-in-unit"}, recorder.processes()
    assert service_of(recorder.recording) == "late-unit", service_of(recorder.recording)
    recorder.check_whole("late-in-unit")
    recorder = assert_late(["--service", "^late-program$"], "late-program")
    script = scratch("late-script.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SPINS_FOR)
    with Recorder("--service", "late-script") as recorder:
        run(sys.executable, script, SECONDS, check=0)
        run(sys.executable, "-c", SPINS_FOR, SECONDS, check=0)
        recorder.finish()
    assert len(pids_of(recorder)) == 1 and service_of(recorder.recording) == "late-script.py", pids_of(recorder)
    assert sum(t.cpu_ns for t in firefox_threads(recorder.firefox)) > 0.95 * SECONDS * 1e9


def behind_owners(groups, name):
    """A unit or container in a group of the test, whose own group may be below that of a user or a container."""
    owners = re.findall(r"/(user@[^/]*\.service|[^/]*[0-9a-f]{64}[^/]*|lxc\.payload\.[^/]*|machine-[^/]*)(?=/|$)", groups.top)
    return "/".join([re.sub(r"([\\*?[])", r"\\\1", owner) for owner in owners] + [name])


def in_group(group):
    return "sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"


@quick
def test_a_unit_that_starts_later():
    """Its group is made while it is recorded; it ends at once, and its group is removed."""
    with Groups() as groups, Bystanders(), \
            Recorder("--unit", behind_owners(groups, "late-unit"), "--unit", "no such") as recorder:
        run_named("late-unit", in_group(groups.make("late-unit.service/below")))
        run_named("other-unit", in_group(groups.make("other-unit.service")))
        groups.__exit__()
        groups.made, groups.running = [], []
        recorder.finish()
    # what is between the move and the execve is the unit's as well
    assert recorder.processes() <= {"late-unit", *SHELLS} and "late-unit" in recorder.processes(), recorder.processes()
    recorder.check_whole("late-unit")


@quick
def test_a_control_group():
    """--cgroup is a target as well: what is in it or in a group below, from its first tick on, and nothing else."""
    with Groups() as groups, Bystanders(), Recorder("--cgroup", groups.make("inside.service"), "-F", 999) as recorder:
        run_named("in-the-group", in_group(groups.make("inside.service/below")))
        run_named("beside-it", in_group(groups.make("beside.service")))
        recorder.finish()
    assert recorder.processes() <= {"in-the-group", *SHELLS}, recorder.processes()
    recorder.check_whole("in-the-group")


def test_a_container_that_starts_later():
    """By its name, as LXC's have one in their group, and by the first digits of its id."""
    digits = "0123456789abcdef" * 4
    for option, group in (("late-contain*", "lxc.payload.late-container"), (digits[:12], f"docker-{digits}.scope")):
        with Groups() as groups, Bystanders(), Recorder("--container", behind_owners(groups, option)) as recorder:
            run_named("late-container", in_group(groups.make(group + "/init.scope")))
            run_named("other-container", in_group(groups.make("docker-" + digits[::-1] + ".scope")))
            recorder.finish()
        assert recorder.processes() <= {"late-container", *SHELLS}, recorder.processes()
        recorder.check_whole("late-container")


def test_what_runs_already():
    """Of each kind, one; and with -p all of them."""
    with Groups() as groups, Fixture(program("early-exe"), 60) as exe, Fixture(program("early-comm"), 60) as comm, \
            Fixture(program("early-user"), 60, wrap=as_user(45679)) as user, Fixture(program("early-pid"), 60) as pid, \
            Fixture(program("early-none"), 60, wrap=POLITELY) as none, \
            Fixture(program("early-unit"), 60, wrap=in_group(groups.make("early-unit.service"))) as unit:
        for each in exe, comm, user, pid, none, unit:
            each.wait_facts("start")
        path = scratch("early.folded")
        result = record("--exe", program("early-exe"), "--comm", "early-comm", "--user", "45679", "--unit",
                        behind_owners(groups, "early-unit"), "-p", pid.pid, "-d", 1.5, "-o", path)
        assert set(comms(folded(path))) == {"early-exe", "early-comm", "early-user", "early-pid", "early-unit"}, result
        assert share(folded(path), lambda f: has_chain(f, *CHAIN)) > 0.9, folded(path)
        assert "waiting" not in result.err, result


def test_services_that_run_already():
    """By its environment, by its memory, and its child; with another kind of targets all of them, and nothing is waited for."""
    with Fixture(program("early-env"), 60, wrap=as_service("early-shop")) as env, \
            Fixture(program("early-none"), 60, wrap=POLITELY) as none, \
            Fixture(program("early-comm"), 60) as comm, Background(sys.executable, "-c", published("early-shop")) as published_one:
        for each in env, none, comm:
            each.wait_facts("start")
        wait_for(lambda: comm_of(published_one.pid) == "published", what="its context")
        path = scratch("early-services.folded")
        result = record("--service", "^early-shop", "--comm", "early-comm", "--wait=no", "-d", 1.5, "-o", path)
        assert set(comms(folded(path))) == {"early-env", "early-comm", "published"}, result
        assert "no process" not in result.err, result


def test_what_is_excluded():
    with Groups() as groups, Fixture(program("out-exe"), 60, wrap=POLITELY) as exe, \
            Fixture(program("out-comm"), 60, wrap=POLITELY) as comm, \
            Fixture(program("out-user"), 60, wrap=as_user(45680)) as user, Fixture(program("in-all"), 60) as kept, \
            Fixture(program("out-unit"), 60, wrap=[*POLITELY, *in_group(groups.make("out-unit.service"))]) as unit:
        for each in exe, comm, user, kept, unit:
            each.wait_facts("start")
        excludes = ["--exclude-exe", "*/out-exe", "--exclude-comm", "out-comm", "--exclude-user", "45680",
                    "--exclude-unit", behind_owners(groups, "out-unit")]
        with Recorder("-a", *excludes) as recorder:
            wait_for(lambda: kept.p.poll() is None and os.path.getsize(recorder.recording) > 20000, what="some samples")
            run(program("out-comm"), 0.3, check=0)
            recorder.finish()
        assert "in-all" in recorder.processes() and not [n for n in recorder.processes() if n.startswith("out-")], recorder.processes()
        # of another target
        path = scratch("without.folded")
        record_cpu(kept.pid, 0.3, "-p", f"{exe.pid},{kept.pid}", "--exclude-exe", "*/out-exe", "-o", path)
        assert set(comms(folded(path))) == {"in-all"}, folded(path)
        record_cpu(user.pid, 0.3, "--comm", "*-all", "--comm", "out-*", "--exclude-comm", "out-comm", "--exclude-exe", "out-exe",
                   "--exclude-unit", behind_owners(groups, "out-unit"), "-o", path)
        assert set(comms(folded(path))) == {"in-all", "out-user"}, folded(path)


def test_a_program_that_becomes_another():
    """What a shell uses before it executes a target is not the target's, and what it uses after one is not, either."""
    script = f"""
        i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done
        exec {program("becomes")} {SECONDS}"""
    with Recorder("--exe", "*/becomes") as recorder:
        run("sh", "-c", script, check=0)
        recorder.finish()
    (thread,) = [t for t in firefox_threads(recorder.firefox) if t.count]
    recorder.check_whole("becomes")
    assert abs(thread.cpu_ns - SECONDS * 1e9) < 0.05 * SECONDS * 1e9 + 5e6, thread.cpu_ns


def test_a_program_that_becomes_a_target_before_its_end():
    """What it used before is in no weight, also if its only ticks are those that free its memory while it exits."""
    used = ("import os, time", "memory = b'x' * (400 << 20)", "while time.process_time() < 0.6: pass",
            "open('/proc/self/comm', 'w').write('late-name')", "os._exit(0)")
    with Recorder("-F", "1999", "--comm", "late-name") as recorder:
        run(sys.executable, "-c", "\n".join(used), check=0)
        summary = json.loads(sysprof("report", "--json", recorder.finish().recording, check=0).out)["summary"]
    assert summary["samples"] > 0 and summary["cpu_ns"] < 0.4e9, summary


def test_a_service_that_becomes_another():
    """Each execve may change it: only the program in the middle is of the service."""
    script = f"""
        export OTEL_SERVICE_NAME=before
        i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done
        exec env OTEL_SERVICE_NAME=becomes-it {program("becomes")} {SECONDS}"""
    with Recorder("--service", "^becomes-it$") as recorder:
        run("sh", "-c", script, check=0)
        recorder.finish()
    recorder.check_whole("becomes")
    assert recorder.processes() - EXECUTES == {"becomes"}, recorder.processes()
    again = "import os, sys, time\n" + SPINS_FOR + f"os.execve({program('becomes')!r}, ['becomes', '0.3'], {{'OTEL_SERVICE_NAME': 'no-more'}})"
    with Recorder("--service", "^becomes-it$") as recorder:
        run(*as_service("becomes-it"), sys.executable, "-c", again, SECONDS, check=0)
        recorder.finish()
    assert recorder.processes() == {os.path.basename(sys.executable)[:15]}, recorder.processes()


def published(service):
    """A program that publishes an OpenTelemetry process context after half a second of CPU time, and then has a new name."""
    return "import sys, time\nsys.argv = ['', '0.5']\n" + SPINS_FOR + PUBLISH.replace("ADDRESS", "").replace("checkout", service) + \
        'open("/proc/self/comm", "w").write("published")\nwhile True: pass\n'


def test_a_service_that_is_published_late():
    """By the process itself, while it runs: it is read again."""
    with Recorder("--service", "^late-context$") as recorder:
        with Background(sys.executable, "-c", published("late-context")) as process:
            wait_for(lambda: has_samples(recorder, 300), what="samples of it")
            process.signal(signal.SIGKILL)
        recorder.finish()
    counts = comms(folded(recorder.folded))
    assert set(counts) == {"published"}, counts
    assert service_of(recorder.recording) == "late-context", service_of(recorder.recording)


def has_samples(recorder, count):
    """By what is on disk so far."""
    result = sysprof("report", recorder.recording, "--json", check=None)
    return result.status == 0 and json.loads(result.out)["summary"]["samples"] >= count


def test_services_that_are_excluded():
    with Fixture(program("out-service"), 60, wrap=[*POLITELY, *as_service("out-shop")]) as out, \
            Fixture(program("in-service"), 60) as kept:
        for each in out, kept:
            each.wait_facts("start")
        with Recorder("-a", "--exclude-service", "^out-") as recorder:
            run(*as_service("out-late"), program("out-later"), SECONDS, check=0)
            run(*as_service("in-late"), program("in-later"), SECONDS, check=0)
            recorder.finish()
        processes = recorder.processes()
        assert {"in-service", "in-later"} <= processes and not processes & {"out-service", "out-later"}, processes
        path = scratch("without-service.folded")
        record_cpu(kept.pid, 0.3, "-p", f"{out.pid},{kept.pid}", "--exclude-service", "out-shop", "-o", path)
        assert set(comms(folded(path))) == {"in-service"}, folded(path)


def test_services_with_hostile_names():
    """They match as they are shown: without control characters, and at most 255 bytes of them. A name is no expression."""
    for name, expression in (("late\n\x1b[31m(.*", r"^late__\[31m\(\.\*$"), ("late-\xff\xfe%s" + 4000 * "x", "")):
        environment = {**os.environb, b"OTEL_SERVICE_NAME": name.encode("latin-1")}
        with Recorder("--service", expression or "^hostile-name$", "--service", "^a{0,1000}$") as recorder:
            with Background(program("hostile-name"), SECONDS, env=environment) as process:
                process.finish()
            recorder.finish()
        recorder.check_whole("hostile-name")
        shown = service_of(recorder.recording)
        assert re.search(expression or "^hostile-name$", shown), shown
        assert "\x1b" not in recorder.result.err + shown, recorder.result


FORKS = """
import os, sys
for _ in range(8):
    if not os.fork():
        break
while True:  # half of them execute a program
    pid = os.fork()
    if not pid:
        for _ in range(20000):
            pass
        if os.getpid() % 2:
            os.execve("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done"], {"OTEL_SERVICE_NAME": "x" * 3000})
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_services_beside_a_user_who_forks():
    """Thousands of new processes, each of which has to be read: those of others are found from their first tick on, and counted."""
    with Background("nice", "-n", 19, *as_user(45681), sys.executable, "-c", FORKS, start_new_session=True) as storm:
        try:
            with Recorder("--service", "^beside-storm$") as recorder:
                run(*as_service("beside-storm"), program("beside-storm"), SECONDS, check=0)
                recorder.finish()
        finally:
            os.killpg(storm.pid, signal.SIGKILL)
    assert recorder.processes() - EXECUTES == {"beside-storm"}, recorder.processes()
    assert sum(b.count["filtered"] for b in recording_books(recorder.recording).values()) > 50
    recorder.check_whole("beside-storm")


def test_services_beside_memory_that_does_not_answer():
    """Of a user who blocks those that read it: the others are read in time."""
    need_root()
    place = place_of(45682)
    server = [fixture("silentfs"), "-w", "read", fuse_device(), place, "/usr/bin/python3", "-c", HOLD_UP]
    try:
        with Background(*as_user(45682), *server) as silent:
            wait_for(lambda: comm_of(silent.pid) == "mapped", what="the mapping")
            recorder = assert_late(["--service", "^late-shop$"], "late-service", as_service("late-shop"))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert service_of(recorder.recording) == "late-shop", service_of(recorder.recording)


NAMED = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
for name in bytes.fromhex(sys.argv[1]).split(b"\\n"):
    libc.prctl(15, name, 0, 0, 0)
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass
"""


def test_names_with_any_bytes():
    """Given literally with a backslash before what is special, and by patterns; a process that is renamed is a target in between."""
    for name, pattern in ((b"\xff\xfe;[*] %s", b"\xff\xfe;\\[\\*] %s"), (b"\x1b[31m\xc3(", b"?[[]31m[\xc0-\xcf](")):
        with Recorder("--comm", os.fsdecode(pattern)) as recorder:
            run("python3", "-c", NAMED, b"\n".join([b"before", name, b"after"]).hex(), check=0)
            recorder.finish()
        (thread,) = [t for t in firefox_threads(recorder.firefox) if t.count]
        assert_sample_count(thread.count, 0.3e9, lost_in(recorder.firefox), pattern)
        assert 0.25e9 < thread.cpu_ns < 0.35e9, thread.cpu_ns
        assert "targets: --comm" in recorder.result.err, recorder.result


@long
def test_programs_that_live_for_a_moment():
    """Hundreds of them, half of which are targets: none of the others is in the profile, all of the targets' ticks are."""
    wanted, others = program("brief-in"), program("brief-out")
    script = f"i=0; while [ $i -lt 150 ]; do {wanted} 0.01; {others} 0.01; i=$((i+1)); done"
    for options in ["--exe", "*/brief-in"], ["--comm", "brief-in"]:
        with Recorder(*options) as recorder:
            run("sh", "-c", script, check=0)
            recorder.finish()
        rows = [row for row in folded(recorder.folded) if "outer" in row[0]]
        # within execve a process has its new file before its new name
        counts = comms(folded(recorder.folded))
        late = sum(counts.get(name, 0) for name in SHELLS) if "--exe" in options else 6
        assert set(counts) - (set(SHELLS) if late <= 5 else set()) == {"brief-in"}, counts
        assert_sample_count(total(rows), 150 * 0.01e9, lost_in(recorder.firefox), options)


def test_no_match():
    need_root()
    path = new_scratch("none.folded")
    result = record("--comm", "no such", "--wait=no", "-d", 5, "-o", path, check=1)
    assert "no process matches --comm 'no such'" in result.err and "try: --wait" in result.err, result
    assert not os.path.exists(path), result
    result = record("--service", "^no such$", "--wait=no", "-d", 5, "-o", path, check=1)
    assert "no process matches --service '^no such$'" in result.err and "try: --wait" in result.err, result
    result = record("--comm", "no such", "-q", "-d", 0.2, "-o", path)
    assert result.err == "" and folded(path) == [], result
    for options, message in ((["-t", os.getpid(), "--comm", "x"], "-t and targets by name are mutually exclusive"),
                             (["--comm", "x", "--", "true"], "COMMAND and targets by name are mutually exclusive"),
                             (["-a", "--comm", "x"], "leave it out, or exclude some"), (["--exclude-comm", "x"], "no target"),
                             (["--comm", ""], "the name is empty"), (["--comm", "a" * 16], "at most 15|more than 15 bytes"),
                             (["--user", "no such"], "there is no user of this name"), (["--wait=maybe", "-a"], "yes or no"),
                             (["--wait=no", "-a"], "--wait is for targets by name"), (["-a", "--exclude-comm", "x", "--wait"], "--wait is for"),
                             (["--service", "a("], r"--service a\(: invalid regular expression: byte 2: missing \)"),
                             (["-a", "--exclude-service", r"\pL"], r"--exclude-service \\pL: .*not supported"), (["--service", ""], "empty")):
        result = sysprof("record", *options, "-d", 1, check=2)
        assert re.search(message, result.err), result


def test_no_match_beside_a_process():
    """The process is a target, with whose end the recording ends if nothing is waited for."""
    path = new_scratch("beside.folded")
    with Fixture("chain", 3) as target:
        target.wait_facts("start")
        result = record("-p", target.pid, "--comm", "no such", "--wait=no", "-o", path)
    assert "no process matches --comm 'no such'\n" in result.err and "waiting" not in result.err, result
    assert share(folded(path), lambda f: has_chain(f, *CHAIN)) > 0.9, folded(path)


def test_groups_that_are_not_there():
    """Nothing would be excluded, without a word."""
    need_root()
    for option in "--exclude-unit", "--exclude-container", "--unit":
        result = run("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh", SYSPROF, "record",
                     *(["-a"] if "exclude" in option else []), option, "x", "-d", 0.2, "-o", new_scratch("groups.folded"), check=1)
        assert "need control groups of version 2" in result.err and "try: mount -t cgroup2" in result.err, result


def test_a_process_whose_main_thread_has_ended():
    """Its other threads are recorded with their waits, by its file; if it runs already, it is found."""
    leaderless = scratch("leaderless")
    shutil.copy(fixture("exits_leader"), leaderless)
    with Background(leaderless, 30) as target:
        wait_for(lambda: read(f"/proc/{target.pid}/stat").rsplit(")", 1)[1].split()[0] == "Z", what="the end of the main thread")
        for option in ["--exe", leaderless], ["--comm", "leaderless"], ["--service", "^leaderless$"]:
            path = new_scratch("leaderless.folded")
            result = record_cpu(target.pid, 0.3, *option, "--wait=no", "-o", path)
            assert set(comms(folded(path))) == {"leaderless"} and "no process matches" not in result.err, (folded(path), result)


def test_waits_of_a_process_whose_main_thread_has_ended():
    """Its threads have no ticks, so visits alone find them."""
    need_root()
    program, recording = scratch("only-waits"), new_scratch("only-waits.sysprof")
    shutil.copy(fixture("exits_leader"), program)
    with Background(program, "-w", 30) as target:
        wait_for(lambda: read(f"/proc/{target.pid}/stat").rsplit(")", 1)[1].split()[0] == "Z", what="the end of the main thread")
        record("--exe", program, "--wall-cpu", "20%", "-d", 1.5, "-o", recording)
    rows = json.loads(sysprof("report", recording, "--wall", "--parked", "--by", "thread", "--json", check=0).out)["rows"]
    assert [row["thread"] for row in rows] == ["only-waits"] * 2 and all(row["states"].get("sleep") for row in rows), rows


def test_a_directory_that_is_renamed():
    """What is in it has another path, and is judged again."""
    before, after = scratch("before"), scratch("after")
    for path in before, after:
        shutil.rmtree(path, ignore_errors=True)
    os.makedirs(os.path.join(before, "below"))
    shutil.copy(program("renamed"), os.path.join(before, "below", "renamed"))
    with Recorder("--exe", "*/after/below/renamed") as recorder:
        run(os.path.join(before, "below", "renamed"), 0.3, check=0)
        os.rename(before, after)
        run(os.path.join(after, "below", "renamed"), SECONDS, check=0)
        recorder.finish()
    recorder.check_whole("renamed")


def test_long_paths():
    """Longer than the kernel side reads, of which the beginning decides."""
    for name, begin in ("long-in", "wanted"), ("long-out", "other"):
        path = os.path.join(scratch(begin), *["d" * 200] * 6)
        os.makedirs(path, exist_ok=True)
        shutil.copy(program(name), os.path.join(path, name))
    with Recorder("--exe", scratch("wanted") + "/*") as recorder:
        for begin, name in ("wanted", "long-in"), ("other", "long-out"):
            run(os.path.join(scratch(begin), *["d" * 200] * 6, name), SECONDS, check=0)
        recorder.finish()
    assert recorder.processes() == {"long-in"}, recorder.processes()
    recorder.check_whole("long-in")


def test_waits_of_targets():
    """Visits are of targets alone, of those that come later as well, and of a program that has not had a tick."""
    waits = scratch("late-waits")
    shutil.copy(fixture("waits"), waits)
    with Recorder("--exe", "late-waits", "--wall-cpu", "20%") as recorder:
        with Background(waits, 2) as target, Background(fixture("waits"), 2):
            target.finish()
        recorder.finish()
    report = sysprof("report", recorder.recording, "--wall", "--by", "thread", check=0).out
    assert "late-waits" in report and not re.search(r"(?<!late-)waits \(", report), report


if __name__ == "__main__":
    main(globals())
