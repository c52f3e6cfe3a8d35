# SPDX-License-Identifier: BSD-2-Clause
"""What the measurements share: programs that run beside, what they cost, medians and tables.

A profiler is never judged by one figure: runs of everything that is compared take turns, in a new
order each round, and what is reported is the median of the rounds with the least and the greatest.
"""
import collections
import contextlib
import ctypes
import gzip
import json
import mmap
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import threading
import time

BUILD = os.environ["BUILD"]
SCRATCH = os.environ["SCRATCH"]
QUICK = bool(os.environ.get("QUICK"))
SYSPROF = os.path.join(BUILD, "sysprof")
PERF = shutil.which("perf")
CPUS = sorted(os.sched_getaffinity(0))
CACHE = "/var/cache/sysprof"
CLONE_NEWNS = 0x20000


class Broken(Exception):
    """Something could not be measured: not a bad figure, no figure."""


def pick(full, quick):
    return quick if QUICK else full


def scratch(name):
    return os.path.join(SCRATCH, name)


def bench(name):
    return os.path.join(BUILD, "tests", "bench", name)


def fixture(name):
    return os.path.join(BUILD, "tests", "fixtures", name)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Broken(f"waited {seconds} s for {what}")
        time.sleep(0.005)


# ---- figures ------------------------------------------------------------------------------------

def spread(values, digits=0):
    """median (least–greatest)"""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    return (f"{statistics.median(values):,.{digits}f} "
            f"({min(values):,.{digits}f}–{max(values):,.{digits}f})")


def rounds_of(count, names):
    """(round, name) of each run: every name once a round, in a turning order."""
    for i in range(count):
        at = i % len(names)
        for name in names[at:] + names[:at]:
            yield i, name


class Runs(collections.defaultdict):
    """Figures by name, one a round; differences and ratios are taken within a round."""

    def __init__(self):
        super().__init__(list)

    def minus(self, a, b):
        return [x - y for x, y in zip(self[a], self[b])]

    def percent_above(self, a, b):
        return [100 * (x / y - 1) for x, y in zip(self[a], self[b]) if y]


def table(title, commands, header, rows, notes=()):
    widths = [max(len(str(r[i])) for r in [header] + rows) for i in range(len(header))]
    print(f"\n== {title}")
    for command in [commands] if isinstance(commands, str) else commands:
        print(f"   $ {command}")
    for row in [header] + rows:
        cells = [str(row[0]).ljust(widths[0])]
        cells += [str(c).rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("   " + "  ".join(cells).rstrip())
        if row is header:
            print("   " + "  ".join("-" * w for w in widths))
    for note in notes:
        print(f"   {note}")
    print(end="", flush=True)


verdicts = []


def budget(what, figure, limit, unit, digits=2):
    """The line that says whether a budget is met, for here and for the end."""
    met = "met" if figure <= limit else "NOT met"
    line = f"{what}: {figure:,.{digits}f} {unit}, budget {limit} {unit}: {met}"
    verdicts.append(line)
    return "-> " + line


def at_least(what, figure, limit, unit, digits=2):
    """The same of a figure that is to be large."""
    met = "met" if figure >= limit else "NOT met"
    line = f"{what}: {figure:,.{digits}f} {unit}, goal {limit} {unit}: {met}"
    verdicts.append(line)
    return "-> " + line


# ---- what is kept on disk ------------------------------------------------------------------------

def private_mounts():
    """From here on, so that a cache can be replaced. What runs already is in another namespace then, like a container."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise Broken(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@contextlib.contextmanager
def empty_cache(name):
    """Within the with block root's sysprof has this one."""
    place = scratch(name)
    for path in CACHE, place:
        os.makedirs(path, 0o700, exist_ok=True)
    subprocess.run(["mount", "--bind", place, CACHE], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", CACHE], check=True)
        shutil.rmtree(place)


# ---- programs that run beside -------------------------------------------------------------------

class Program:
    """Runs until the end of the with block. `cpus`: where it may run."""

    def __init__(self, *args, cpus=None, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL):
        self.args = [str(a) for a in args]
        self.name = os.path.basename(self.args[0])
        self.lines, self.ended_with, self.usage = [], None, None
        self.p = subprocess.Popen(
            self.args, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, cwd=SCRATCH,
            start_new_session=True,
            preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None)
        self.pid = self.p.pid
        self.reader = threading.Thread(target=self._read_errors, daemon=True)
        self.reader.start()

    def _read_errors(self):
        for line in self.p.stderr:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))

    def __enter__(self):
        return self

    def running(self):
        if self.ended_with is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self._ended(status, usage)
        return self.ended_with is None

    def _ended(self, status, usage):
        self.ended_with = os.waitstatus_to_exitcode(status)
        self.p.returncode = self.ended_with
        self.usage = usage
        self.reader.join(5)

    def wait(self, seconds):
        timer = threading.Timer(seconds, self.p.kill)
        timer.start()
        if self.ended_with is None:
            _, status, usage = os.wait4(self.pid, 0)
            self._ended(status, usage)
        timer.cancel()

    def broken(self):
        return Broken(f"{' '.join(self.args)}: status {self.ended_with}\n" + "\n".join(self.lines))

    def cpu_ns(self):
        """CPU time of its threads so far, exact."""
        return sum(int(read(f"/proc/{self.pid}/task/{t}/schedstat").split()[0])
                   for t in os.listdir(f"/proc/{self.pid}/task"))

    def mapped_kernel_mb(self):
        """What RSS has of rings and BPF maps, which are the kernel's memory."""
        total, ours = 0, False
        for line in read(f"/proc/{self.pid}/smaps").splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                ours = "[perf_event]" in line or "bpf-map" in line
            elif ours and line.startswith("Rss:"):
                total += int(line.split()[1])
        return total / 1024

    def memory_mb(self):
        """(resident, proportional share of it)"""
        rollup = read(f"/proc/{self.pid}/smaps_rollup")
        return tuple(int(re.search(rf"^{k}:\s+(\d+)", rollup, re.M)[1]) / 1024
                     for k in ("Rss", "Pss"))

    def close(self):
        """It ends, with what it started."""
        if self.running():
            os.killpg(self.pid, signal.SIGKILL)
            self.wait(10)

    def __exit__(self, *_):
        self.close()


class Profiler(Program):
    """Ended by Ctrl-C. `seconds_to_stop` and `cpu_to_stop` are from there to its end."""

    def stop(self, prepare=None):
        if not self.running():
            raise self.broken()
        cpu = self.cpu_ns()
        if prepare:
            prepare()
        begin = time.monotonic()
        self.p.send_signal(signal.SIGINT)
        self.wait(180)
        self.seconds_to_stop = time.monotonic() - begin
        self.cpu_to_stop = self.usage.ru_utime + self.usage.ru_stime - cpu / 1e9
        self._check()

    def _check(self):
        if self.ended_with:
            raise self.broken()

    def __exit__(self, *_):
        self.close()
        self.cleanup()

    def cleanup(self):
        for file in self.files:
            if os.path.exists(file):
                os.unlink(file)


books = []  # (what, cpu, line of the books, unexplained) of every run of sysprof


class Sysprof(Profiler):
    """sysprof record … -o FILE.json.gz, attached when this returns."""
    serial = 0
    program = SYSPROF

    def __init__(self, *args, cpus=None, what=""):
        Sysprof.serial += 1
        self.profile = scratch(f"sysprof-{Sysprof.serial}.json.gz")
        self.folded = scratch(f"sysprof-{Sysprof.serial}.folded") if "FOLDED" in args else None
        outputs = ["-o", self.profile] + (["-o", self.folded] if self.folded else [])
        args = [a for a in args if a != "FOLDED"]
        self.files = [f for f in (self.profile, self.folded) if f]
        self.what = what or " ".join(map(str, args))
        super().__init__(self.program, "record", "-v", *outputs, *args, cpus=cpus)
        wait_until(lambda: self._sees("rings per CPU:") or not self.running(), 20, "sysprof to attach")
        if not self.running():
            raise self.broken()

    def _sees(self, text):
        return any(text in line for line in list(self.lines))

    def verified(self):
        return dict(re.findall(r"program (\w+): (\d+) verified", "\n".join(self.lines)))

    def programs(self):
        """Numbers of its BPF programs, from its own file descriptors."""
        return self._numbers("prog_id")

    def maps(self):
        return self._numbers("map_id")

    def _numbers(self, what):
        found = set()
        for fd in os.listdir(f"/proc/{self.pid}/fdinfo"):
            try:
                match = re.search(rf"^{what}:\s+(\d+)", read(f"/proc/{self.pid}/fdinfo/{fd}"), re.M)
            except OSError:
                continue
            if match:
                found.add(int(match[1]))
        return sorted(found)

    def stop(self, prepare=None):
        super().stop(prepare)
        with gzip.open(self.profile, "rt", encoding="utf-8") as f:
            extra = json.load(f)["meta"]["extra"]
        entries = {e["label"]: e["value"] for s in extra for e in s["entries"]}
        for label, line in entries.items():
            if re.fullmatch(r"CPU \d+", label):
                missing = int(re.search(r"unexplained (-?\d+)", line)[1])
                books.append((self.what, label, line, missing))
        if not books:
            raise Broken(f"no books in {self.profile}")

    def reported(self, pattern):
        for line in self.lines:
            match = re.search(pattern, line)
            if match:
                return match
        raise Broken(f"sysprof did not print {pattern}:\n" + "\n".join(self.lines))

    def mean_depth(self):
        """Frames of the stacks, kernel's and user's."""
        total = frames = 0
        with open(self.folded, encoding="utf-8") as f:
            for line in f:
                stack, count = line.rsplit(" ", 1)
                total += int(count)
                frames += stack.count(";") * int(count)
        return frames / total if total else 0


crashes = []  # how runs of perf went wrong at their end


class CountedSysprof(Sysprof):
    """Its programs count what they call: see counted_calls.bpf.h."""
    program = os.path.join(BUILD, "counted", "sysprof")


class Perf(Profiler):
    """perf record -g (or with that call graph) of cpu-clock, attached when this returns.

    -B leaves out the search for build-ids when it ends: a perf may crash over a process that maps a
    strange ELF file, and it is quicker without.
    """
    serial = 0

    def __init__(self, *args, cpus=None, graph="fp"):
        Perf.serial += 1
        self.data = scratch(f"perf-{Perf.serial}.data")
        self.files = [self.data]
        super().__init__(PERF, "record", "-q", "-B", "-e", "cpu-clock", "--call-graph", graph, "-o", self.data,
                         *args, cpus=cpus)
        wait_until(lambda: not self.running() or self._attached(), 20, "perf to attach")
        time.sleep(0.1)
        if not self.running():
            raise self.broken()

    def _attached(self):
        try:
            return os.path.exists(self.data) and any(
                "perf_event" in os.readlink(f"/proc/{self.pid}/fd/{fd}")
                for fd in os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return False

    def _check(self):
        """Errors of perf at its end are reported, and the figures from before are kept."""
        self.crashed = self.ended_with not in (0, -signal.SIGINT, 128 + signal.SIGINT)
        if self.crashed:
            crashes.append(f"status {self.ended_with}: {self.lines[-1] if self.lines else ''}")


class Counted(Program):
    """Work whose progress can be read at any time."""
    serial = 0

    def __init__(self, *args):
        Counted.serial += 1
        path = scratch(f"count-{Counted.serial}")
        super().__init__(*self.command(args, path))
        wait_until(lambda: not self.running() or
                   (os.path.exists(path) and os.path.getsize(path) >= 4096), 10, "work to begin")
        if not self.running():
            raise self.broken()
        with open(path, "rb") as f:
            self.map = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ)
        os.unlink(path)

    def command(self, args, path):
        return (bench("counted"), *args, path)

    def count(self):
        return struct.unpack_from("<Q", self.map)[0]

    def waited_ns(self):
        """How long it has been runnable and some other task had the CPU."""
        return int(read(f"/proc/{self.pid}/schedstat").split()[1])

    def ns_each(self, seconds):
        """Wall time that a piece of the work takes, over so many seconds from now; and the same
        less the time it waited for a CPU."""
        begin, waited, at = self.count(), self.waited_ns(), time.monotonic_ns()
        time.sleep(seconds)
        done, waited_now, now = self.count(), self.waited_ns(), time.monotonic_ns()
        if done == begin:
            raise Broken(f"{' '.join(self.args)} does nothing")
        wall = now - at
        return wall / (done - begin), (wall - (waited_now - waited)) / (done - begin)


class CountedNode(Counted):
    """JavaScript that does the same, in pieces of a fraction of a millisecond."""
    SCRIPT = ("const fs = require('fs'), file = fs.openSync(process.argv[1], 'w'), out = Buffer.alloc(8);"
              "fs.ftruncateSync(file, 4096);"
              "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }"
              "for (let done = 1; ; done++) { f(17); JSON.parse(JSON.stringify([...Array(200).keys()]));"
              " out.writeUInt32LE(done, 0); fs.writeSync(file, out, 0, 8, 0); }")

    def command(self, args, path):
        return ("node", "-e", self.SCRIPT, path)


class BpfStats(Program):
    """The kernel counts runs and time of BPF programs while this runs."""

    def __init__(self):
        super().__init__(bench("bpf_stats"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.p.stdout.readline() != b"ready\n":
            self.wait(5)
            raise self.broken()

    def of(self, programs):
        """{name: (runs, ns)}"""
        figures = {}
        for number in programs:
            self.p.stdin.write(f"{number}\n".encode())
            self.p.stdin.flush()
            line = self.p.stdout.readline().decode().split()
            if len(line) == 4:
                figures[line[3]] = (int(line[0]), int(line[1]))
        return figures


class BpfMaps(Program):
    """Looks into maps of a program, and sets their contents aside."""

    def __init__(self):
        super().__init__(bench("bpf_maps"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.query_line()

    def query_line(self, *words, may_be_gone=False):
        if words:
            self.p.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self.p.stdin.flush()
        line = self.p.stdout.readline().decode().strip()
        if not line or (line == "gone" and not may_be_gone):
            raise Broken(f"bpf_maps: {words}: {line} {self.lines}")
        return line

    def named(self, numbers):
        """{name: number}"""
        names = {n: self.query_line("name", n, may_be_gone=True)[1:] for n in numbers}
        return {name: n for n, name in names.items()}

    def words(self, number, key):
        return [int(w) for w in self.query_line("words", number, key).split()]

    def aside(self, number):
        return int(self.query_line("aside", number))

    def back(self, number):
        return int(self.query_line("back", number))


class BareTimer(Program):
    files = ()

    def __init__(self, hz):
        super().__init__(bench("bare_timer"), hz, stdout=subprocess.PIPE)
        if not self.p.stdout.readline().startswith(b"ready"):
            self.wait(5)
            raise self.broken()

    def stop(self):
        self.close()


class Nothing:
    """Takes a profiler's place."""

    def __enter__(self):
        return self

    def stop(self):
        pass

    def __exit__(self, *_):
        pass
