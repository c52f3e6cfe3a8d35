# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: running the program, reading what it wrote, saying what differs.

A test is a script with functions named test_*; `main(globals())` at its end runs them in order (or
those named on the command line), prints a line for each and exits 0, 1, or 77 if all were skipped.
Those marked @quick are what `make test` runs (CASES=quick): one of each command and of each kind of target, a few seconds each.
Those marked @long are for `make test-all`: CASES=short leaves them out, CASES=long runs no others.
Those marked @soak repeat others for longer: CASES=soak, as `make soak` sets it, runs them alone.
Those marked @alone run when nothing else does: CASES="short beside" leaves them out, CASES="short alone" runs no others.
Those marked @natively are not repeated with the sanitizers.
Those marked @needed fail instead of being skipped.
"""
import gzip
import hashlib
import http.server
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.abspath("build"))
GOLDEN = os.path.join(TOP, "tests/golden/recordings")
sys.path += [os.path.join(TOP, "tests", folder) for folder in ("e2e/consumers", "e2e/backends", "golden")]
SCRATCH = os.environ.get("SCRATCH") or os.getcwd()
SANITIZED = "asan" in os.path.basename(BUILD)


CASES = os.environ.get("CASES", "all").split()
KEPT = os.path.join(SCRATCH, "kept")
KEPT_MAX = 64 << 20  # bytes of one recording
PATIENCE = 300  # s, for what never ends or never comes: where others take the CPUs all takes long


def for_all_users(program):
    """A path by which each user can execute it: that of a copy if the checkout is in a directory for its owner alone, as a home is."""
    program = os.path.abspath(program)
    if all(os.stat(folder).st_mode & stat.S_IXOTH for folder in pathlib.Path(program).parents):
        return program
    copy = os.path.join(SCRATCH, "for-all-users", os.path.basename(program))
    if not os.path.exists(copy):
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(program, copy)
    return copy


SYSPROF = for_all_users(os.environ.get("SYSPROF", os.path.join(BUILD, "sysprof")))

class Skip(Exception):
    """This case cannot run here; its text says why."""


def quick(test):
    """A case that `make test` runs; with all others it is in `make test-all`."""
    test.is_quick = True
    return test


def long(test):
    """A case that only `make test-all` runs, since it takes long."""
    test.is_long = True
    return test


def soak(test):
    """A case that `make soak` runs: it has no assertion that a shorter one lacks, but sees more of what is rare."""
    test.is_soak = True
    return test


def alone(test):
    """A case of a test that runs beside others that itself does not: it measures time or shares of the CPUs."""
    test.is_alone = True
    return test


def needed(test):
    """A case that fails if what it needs is not there."""
    def case():
        try:
            test()
        except Skip as reason:
            raise AssertionError(f"it cannot run here: {reason}") from reason
    case.__name__, case.__doc__ = test.__name__, test.__doc__
    return case


def natively(test):
    """A case that the sanitizers do not repeat: what it takes of the program other cases take as well."""
    test.is_native = True
    return test


def children_of(pid):
    """Those of its first thread; none of one that has ended."""
    try:
        return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid):
    for child in children_of(pid):
        yield child
        yield from descendants(child)


def status_of(pid):
    """The lines of its status; {} of one that has ended."""
    try:
        return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def comm_of(pid):
    return read(f"/proc/{pid}/comm").strip()


def as_user(uid):
    """What a command line begins with that another user runs."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def place_of(uid):
    """A directory that a user may write to, which is seen from everywhere. To be removed."""
    path = f"/dev/shm/sysprof-test-{os.getpid()}-{uid}"
    os.makedirs(path, exist_ok=True)
    os.chown(path, uid, uid)
    return path


def fuse_device():
    """As everybody may open it on most machines."""
    path = scratch("fuse")
    if not os.path.exists(path):
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
        os.chmod(path, 0o666)
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def deepest(pid):
    """The last child of the last child … of a process."""
    while children := children_of(pid):
        pid = children[-1]
    return pid


def fixture(name):
    path = os.path.join(BUILD, "tests", "fixtures", name)
    assert os.path.exists(path), f"fixture {path} is not built"
    return for_all_users(path)


def scratch(name):
    return os.path.join(SCRATCH, name)


def read(path, mode="r", errors=None):
    """What the kernel says of a process has the bytes that the process chose; other text is UTF-8."""
    if not errors and "b" not in mode and str(path).startswith("/proc/"):
        errors = "surrogateescape"
    with open(path, mode, encoding=None if "b" in mode else "utf-8", errors=errors) as f:
        return f.read()


def write(path, data):
    """Text or bytes; its path."""
    with open(path, "wb") as f:
        f.write(data if isinstance(data, (bytes, bytearray, memoryview)) else data.encode("utf-8", "surrogateescape"))
    return path


def new_scratch(name):
    """Without the file of before: whether there is one tells what a program has written."""
    if os.path.exists(scratch(name)):
        os.unlink(scratch(name))
    return scratch(name)


def need_root():
    if os.geteuid() != 0:
        raise Skip(f"needs root: this is uid {os.geteuid()}")


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.1f} s\n{self.out}\n{self.err}"


def run(*args, timeout=PATIENCE, check=None, **options):
    """Run a program to its end. `check`: the exit status it must have."""
    begin = time.monotonic()
    p = subprocess.run([str(a) for a in args], stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=timeout, text=True, errors="replace", **options)
    result = Result(p.returncode, p.stdout, p.stderr, time.monotonic() - begin)
    keep_recordings(args)
    if check is not None:
        assert p.returncode == check, f"{' '.join(map(str, args))}: {result}"
    return result


def sysprof(*args, **options):
    return run(SYSPROF, *args, **options)


def record(*args, check=0, **options):
    """sysprof record to its end, which must be good unless `check` says otherwise."""
    need_root()
    return sysprof("record", *args, check=check, **options)


class Background:
    """A program that runs beside; terminated at the end of the with block if it is still there."""

    def __init__(self, *args, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        self.p = subprocess.Popen([str(a) for a in args], text=True, errors="replace", **options)
        self.pid = self.p.pid

    def __enter__(self):
        return self

    def finish(self, timeout=PATIENCE, check=None):
        out, err = self.p.communicate(timeout=timeout)
        result = Result(self.p.returncode, out or "", err or "", 0)
        keep_recordings(self.p.args)
        if check is not None:
            assert self.p.returncode == check, f"{self.p.args}: {result}"
        return result

    def signal(self, number):
        self.p.send_signal(number)

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGCONT)
            self.p.kill()
        self.p.communicate()


class Running(Background):
    """A program, once it has made a file, whose name is the last word of its command line."""

    def __init__(self, *command, more=0):
        self.ready, self.more = new_scratch("ready"), more
        super().__init__(*command, self.ready)

    def __enter__(self):
        wait_for(lambda: os.path.exists(self.ready), what=f"{self.p.args} to run")
        time.sleep(self.more)
        return self


class NoIdleCpus:
    """
    Within the with block no CPU is idle; whoever wants one gets it at once all the same. The kernel
    runs no program for some timers of idle CPUs, and the books can distinguish those ticks from ticks that were
    lost to a 10 ms only.
    """

    def __init__(self):
        self.spinning = []

    def __enter__(self):
        for cpu in os.sched_getaffinity(0):
            self.spinning.append(Background(fixture("loop"), "-c", cpu, 3600))
            os.sched_setscheduler(self.spinning[-1].pid, os.SCHED_IDLE, os.sched_param(0))
        return self

    def __exit__(self, *_):
        for spinning in self.spinning:
            spinning.__exit__()


class Facts:
    """The output of a fixture: lines `key value…`."""

    def __init__(self, text):
        self.rows = [line.split() for line in text.splitlines() if line.strip()]

    def all(self, key):
        """The values of each line with that key."""
        return [row[1:] for row in self.rows if row[0] == key]

    def number(self, key):
        """The one number of the one line with that key."""
        rows = self.all(key)
        assert len(rows) == 1, f"{len(rows)} lines of {key}: {self.rows}"
        return int(rows[0][0])


class Fixture(Background):
    """A program that runs beside and prints facts into a file, which is readable while it runs."""

    def __init__(self, program, *args, wrap=(), **options):
        path = program if os.sep in program else fixture(program)
        Fixture.count = getattr(Fixture, "count", 0) + 1
        self.log = scratch(f"facts.{Fixture.count}")
        with open(self.log, "w", encoding="utf-8") as out:
            super().__init__(*wrap, path, *args, stdout=out, **options)

    def facts(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return Facts("".join(line for line in f if line.endswith("\n")))

    def wait_facts(self, key, count=1, timeout=PATIENCE):
        """Until so many lines with that key are there; returns their values."""
        wait_for(lambda: len(self.facts().all(key)) >= count or self.p.poll() is not None, timeout,
                 f"{count} facts {key} of {self.p.args}")
        rows = self.facts().all(key)
        assert len(rows) >= count, f"{self.p.args} has ended: {super().finish()}"
        return rows

    def wait_number(self, key, timeout=PATIENCE):
        return int(self.wait_facts(key, 1, timeout)[0][0])

    def finish(self, timeout=PATIENCE, check=None):
        """Until it ends; its facts."""
        super().finish(timeout, check)
        return self.facts()


class Listening(http.server.ThreadingHTTPServer):
    """A server that serves within the with block."""
    daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def wait_for(condition, timeout=PATIENCE, what="a condition"):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {timeout} s for {what}")


def wait_for_sampling(path, has_ended=lambda: False):
    """`record -o PATH.sysprof` samples by now: it has written so. Much may come before, so each byte is read once."""
    word, read = b"\0sampling_start\0", 0

    def reported():
        nonlocal read
        if not os.path.exists(path):
            return False
        with open(path, "rb") as f:
            f.seek(max(0, read - len(word)))
            data = f.read()
            read = f.tell()
        return word in data

    wait_for(lambda: reported() or has_ended(), what=path)


def started_sampling(recorder, path):
    """As above; the recorder is still there."""
    wait_for_sampling(path, lambda: recorder.p.poll() is not None)
    assert recorder.p.poll() is None, recorder.finish()


def schedstat(pid):
    """How many ns the first thread of a process has run, and how many it has waited for a CPU."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
        return tuple(map(int, f.read().split()[:2]))


def use_cpu(pid, seconds):
    """Until a process, all of its threads, has used so much more CPU time, however long that takes."""
    def used():
        return sum(map(int, read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    begin = used()
    wait_for(lambda: used() - begin >= seconds, what=f"{seconds} s of CPU time of {pid}")


def record_cpu(pid, seconds, *args):
    """record until a process, all of its threads, has used so much CPU time: a busy host has as many samples as others."""
    need_root()
    recording = new_scratch("cpu.sysprof")
    with Background(SYSPROF, "record", *args, "-o", recording) as recorder:
        started_sampling(recorder, recording)
        use_cpu(pid, seconds)
        recorder.signal(signal.SIGINT)
        return recorder.finish(check=0)


def until_cpu(seconds, *command):
    """A command line for COMMAND that is killed (status 137) when it has used so much CPU time."""
    return ["prlimit", f"--cpu={seconds}", "--", *command]


class HostDelay:
    """How long the first thread of a program waited for a CPU, in pieces of 50 ms: no time that it took itself."""

    def __init__(self):
        self.waited = []

    def finish(self, program, timeout, **options):
        """Until the program ends, its Result. The time that it waits for a CPU is no part of the limit."""
        begin = time.monotonic()
        while True:
            self.waited.append((time.monotonic_ns(), schedstat(program.pid)[1] + stolen_ns()))
            try:
                return program.finish(timeout=0.05, **options)
            except subprocess.TimeoutExpired:
                if time.monotonic() > begin + timeout + self.ns() / 1e9:
                    raise

    def ns(self, begin=0, end=float("inf")):
        """Between two times of CLOCK_MONOTONIC, and what a hypervisor took of all CPUs."""
        until = next((waited for when, waited in self.waited if when >= end), self.waited[-1][1])
        return until - max((waited for when, waited in self.waited if when <= begin), default=self.waited[0][1])


# ---- reading ------------------------------------------------------------------------------------

# In calls that can be cancelled, between a function such as read() and the kernel: since glibc 2.41.
CANCELLATION = {"__syscall_cancel", "__internal_syscall_cancel", "__syscall_cancel_arch"}


def folded(path, cancellation=False):
    """[(frames, count)], root first; frames[0] is the comm. Without the C library's frames of cancellation."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if not rows and line.startswith(("# weights: ", "# samples: ")):
                continue
            match = re.fullmatch(r"(.*) (\d+)\n", line)
            assert match, f"not a folded line: {line!r}"
            frames = match[1].split(";")
            rows.append((frames if cancellation else [f for f in frames if f not in CANCELLATION], int(match[2])))
    return rows


def share(rows, predicate):
    """Share of the samples whose frames satisfy the predicate."""
    total = sum(count for _, count in rows)
    assert total, "no samples at all"
    return sum(count for frames, count in rows if predicate(frames)) / total


def user_part(frames):
    """The frames of a folded stack without comm and kernel."""
    return [f for f in frames[1:] if not f.endswith("_[k]")]


def without_kernel(frames):
    """Of a FirefoxThread's stack."""
    for i, name in enumerate(frames):
        if name.startswith(("entry_SYSCALL", "asm_")):
            return frames[:i]
    return frames


def common_functions(rows, part):
    """Those that are in more than that part of the samples."""
    counts = {}
    for frames, count in rows:
        for frame in set(frames):
            counts[frame] = counts.get(frame, 0) + count
    return {frame for frame, count in counts.items() if count > total(rows) * part}


def kernel_part(frames):
    return [f for f in frames[1:] if f.endswith("_[k]")]


def comms(rows):
    """{comm: samples}"""
    result = {}
    for frames, count in rows:
        result[frames[0]] = result.get(frames[0], 0) + count
    return result


def total(rows):
    return sum(count for _, count in rows)


def has_chain(frames, *chain):
    """Do these functions follow one another somewhere in the stack, caller first?"""
    return any(tuple(frames[i:i + len(chain)]) == chain for i in range(len(frames)))


def load_json(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def program_of(title):
    """Of "OrderService (java, shop/api-7f9)": java. A title may be the program alone."""
    found = re.fullmatch(r".* \(([^,()]+)(, [^()]*)?\)", title)
    return found[1] if found else title


class FirefoxThread:
    """One thread of a Firefox file, with the columns resolved to names."""

    def __init__(self, profile, thread):
        shared = profile["shared"]
        self.profile, self.thread = profile, thread
        self.pid, self.tid = int(thread["pid"].split(".")[0]), int(thread["tid"].split(".")[0])
        self.name, title = thread["name"], thread["processName"]
        self.process = program_of(title)
        if thread["isMainThread"] and self.name.startswith(title + " ("):  # "node (MainThread)"
            self.name = self.name[len(title) + 2:-1]
        elif thread["isMainThread"] and self.name == title:
            self.name = self.process
        samples = thread["samples"]
        self.stacks = samples["stack"]
        self.deltas = samples["threadCPUDelta"]
        if "time" in samples:
            self.times = samples["time"]
        else:
            self.times, now = [], 0.0
            for delta in samples["timeDeltas"]:
                now += delta
                self.times.append(now)
        self.count = sum(s is not None for s in self.stacks)
        self.cpu_ns = sum(self.deltas[1:])
        self.start_ns = profile["meta"]["startTimeAsClockMonotonicNanosecondsSinceBoot"]
        self._shared = shared

    def frames(self, stack):
        """Function names, root first."""
        return [name for name, _ in self.located_frames(stack)]

    def located_frames(self, stack):
        """(function name, path of its library or None), root first."""
        shared, frames = self._shared, []
        table, functions = shared["stackTable"], shared["funcTable"]
        while True:
            func = shared["frameTable"]["func"][table["frame"][stack]]
            resource, lib = functions["resource"][func], None
            if resource is not None and resource >= 0:
                lib = shared["resourceTable"]["lib"][resource]
            frames.append((shared["stringArray"][functions["name"][func]],
                           None if lib is None else self.profile["libs"][lib]["path"]))
            if not table["prefixOffset"][stack]:
                return frames[::-1]
            stack -= table["prefixOffset"][stack]

    def addresses(self, stack):
        """How many addresses were sampled: the frames without those that were inlined into one."""
        table, count = self._shared["stackTable"], 0
        while True:
            count += not self._shared["frameTable"]["inlineDepth"][table["frame"][stack]]
            if not table["prefixOffset"][stack]:
                return count
            stack -= table["prefixOffset"][stack]

    def samples(self):
        """(CLOCK_MONOTONIC in ns, located frames) of each sample that is not idle."""
        known = {}
        for stack, when in zip(self.stacks, self.times):
            if stack is not None:
                if stack not in known:
                    known[stack] = self.located_frames(stack)
                yield self.start_ns + round(when * 1e6), known[stack]

    def leaf_lines(self, function):
        """(source file, executing line) of each sample whose innermost frame is of this function."""
        shared, result = self._shared, []
        frames, functions = shared["frameTable"], shared["funcTable"]
        for stack in self.stacks:
            frame = None if stack is None else shared["stackTable"]["frame"][stack]
            if frame is None or shared["stringArray"][functions["name"][frames["func"][frame]]] != function:
                continue
            source = functions["source"][frames["func"][frame]]
            file = None if source is None else shared["stringArray"][shared["sources"]["filename"][source]]
            result.append((file, frames["line"][frame]))
        return result

    def functions(self):
        """{function: samples that have it somewhere in the stack}"""
        result = {}
        for _, frames in self.samples():
            for name in {name for name, _ in frames}:
                result[name] = result.get(name, 0) + 1
        return result


def firefox_threads(path):
    profile = load_json(path)
    return [FirefoxThread(profile, t) for t in profile["threads"]]


def firefox_extra(path):
    """meta.extra as {section: {label: value}}."""
    return {s["label"]: {e["label"]: e["value"] for e in s["entries"]}
            for s in load_json(path)["meta"]["extra"]}


# Numbers of include/sysprof/event.h.
EVENT_SAMPLE, EVENT_BOOKS = 1, 25
EVENT_FINAL, EVENT_FROM_COPY = 0x0010, 0x0400
SAMPLE_FRAMES, BOOKS_LINES = 48, 48  # where they begin in the bytes behind the header
BOOK_NAMES = ("delivered", "idle", "filtered", "ring-full", "re-entry", "internal", "not-run",
              "idle-not-run")


def stack_ends():
    """Names of the ends of stacks, by their numbers."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(f"{top}/include/sysprof/sample.h", encoding="utf-8") as f:
        text = f.read()
    table = text[text.index("#define STACK_ENDS"):text.index("enum stack_end {")]
    return re.findall(r'X\(\w+, "([\w-]+)"', table)


def recording_events(path):
    """(type, flags, time, bytes behind the header) of every event of a sound recording, which may be compressed."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        growing = GrowingRecording(path, f)
        yield from growing.new_events()
        assert growing.is_whole(), f"{path} is truncated"


class GrowingRecording:
    """Events of a recording that is being written, each once."""

    def __init__(self, path, file):
        self.path, self.file, self.rest = path, file, b""
        self.has_header = False

    def new_events(self):
        """Those of the chunks that have become whole: (type, flags, time, bytes behind the header)."""
        data, at = self.rest + self.file.read(), 0
        if not self.has_header and len(data) >= 20:
            assert data[:8] == b"SYSPROF\n", f"{self.path} is not a recording"
            at, self.has_header = struct.unpack_from("<I", data, 16)[0], True  # the header is written at once
        while self.has_header and at + 48 <= len(data):
            magic, _, _, payload = struct.unpack_from("<8sIIQ", data, at)
            assert magic == b"\x89CHUNK\r\n", f"{self.path}: no chunk at {at}"
            if at + 48 + payload + 8 > len(data):
                break
            yield from self.events_in(data, at + 48, at + 48 + payload)
            at += 48 + payload + 8
        self.rest = data[at:]

    def events_in(self, data, at, end):
        while at < end:
            size, kind, flags, when = struct.unpack_from("<IHHQ", data, at)
            assert 16 <= size <= end - at, f"{self.path}: an event of {size} bytes at {at}"
            yield kind, flags, when, data[at + 16:at + size]
            at += size

    def is_whole(self):
        return self.has_header and not self.rest


class CpuBooks:
    """The last books of one CPU, from the recording itself; `samples` are the events in it."""

    def __init__(self, flags, body):
        self.cpu, lines, self.period, _, self.running, self.received, self.counted = \
            struct.unpack_from("<IIQQQQQ", body)
        assert lines == len(BOOK_NAMES), f"{lines} lines in the books"
        self.count = dict(zip(BOOK_NAMES, struct.unpack_from(f"<{lines}Q", body, BOOKS_LINES)))
        self.final = bool(flags & EVENT_FINAL)
        self.due = self.running / self.period if self.period else self.counted
        self.samples = 0

    def __repr__(self):
        counts = " + ".join(f"{n} {name}" for name, n in self.count.items())
        return (f"CPU {self.cpu}: {self.due:.2f} due = {counts}; {self.received} received, "
                f"{self.samples} in the recording")


def recording_books(path):
    """{cpu: CpuBooks}"""
    books, samples = {}, {}
    for kind, flags, _, body in recording_events(path):
        if kind == EVENT_BOOKS:
            b = CpuBooks(flags, body)
            books[b.cpu] = b
        elif kind == EVENT_SAMPLE:
            cpu = struct.unpack_from("<I", body, 24)[0]
            samples[cpu] = samples.get(cpu, 0) + 1
    for cpu, count in samples.items():
        books[cpu].samples = count
    return books


def lost_ticks(path):
    """Ticks of all CPUs that a target may have got and the profile has not."""
    return sum(b.count[name] for b in recording_books(path).values()
               for name in ("ring-full", "re-entry", "internal", "not-run"))


def lost_in(path):
    """Ticks that came to nothing, by the books of a Firefox file, all CPUs together: a sample may be missing for each."""
    books = next(v for k, v in firefox_extra(path).items() if k.startswith("Books"))
    return sum(v for k, v in books.items() if k.split(" ")[0] in ("not-run", "ring-full", "re-entry", "internal"))


def assert_sample_count(samples, cpu_ns, missing, what, period_ns=1e9 / 999):
    due = cpu_ns / period_ns
    spread = 4 * due ** 0.5 + 2
    assert due - spread - missing <= samples <= due + spread, \
        f"{what}: {samples} samples, {due:.0f} ± {spread:.0f} are due, {missing} were lost"


def stolen_ns():
    """
    What a hypervisor has taken from all CPUs so far, to 10 ms. No task's CPU time grows by that, but a tick
    that falls due in it comes at its end, and finds whoever was on the CPU.
    """
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * (1000000000 // os.sysconf("SC_CLK_TCK"))


def key_values(text):
    """Lines `key value …` as [(key, rest)]."""
    return [tuple(line.split(None, 1)) for line in text.splitlines() if " " in line]


# ---- recordings that others read again ----------------------------------------------------------

class Keeper:
    """
    Copies of the recordings that were made, each once, for tests/replay.py. Compressed: most of a recording
    are the kernel's symbols.
    """

    def __init__(self):
        self.case, self.seen, self.lock = "", set(), threading.Lock()

    def keep(self, path):
        try:
            with open(path, "rb") as f:
                data = f.read(KEPT_MAX + 1)
        except OSError:
            return
        digest = hashlib.sha1(data).digest()
        with self.lock:  # a case may record several things at a time
            if len(data) > KEPT_MAX or digest in self.seen:
                return
            self.seen.add(digest)
            name = f"{self.case}-{len(self.seen)}.sysprof.gz"
        os.makedirs(KEPT, exist_ok=True)
        with gzip.open(os.path.join(KEPT, name), "wb", 1) as out:
            out.write(data)

    def keep_all(self):
        """What lies in SCRATCH, damaged ones that a test made included."""
        for folder, folders, files in os.walk(SCRATCH):
            folders[:] = [f for f in folders if os.path.join(folder, f) != KEPT]
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith(".sysprof") and os.path.isfile(path):
                    self.keep(path)


# only for tests/run.py: of no use if a test is run by hand
keeper = Keeper() if "RECORDINGS" in os.environ and not SANITIZED else None


def keep_recordings(args):
    """Those that a command line names: the next command may write to the same path."""
    if keeper and "record" in args:
        for word in map(str, args):
            shared = word.startswith(os.environ["RECORDINGS"])
            if word.endswith(".sysprof") and os.path.isfile(word) and not shared:
                keeper.keep(word)


# ---- running tests ------------------------------------------------------------------------------

def is_wanted(name, test):
    if sys.argv[1:]:
        return name in sys.argv[1:]
    if SANITIZED and getattr(test, "is_native", False):
        return False
    if getattr(test, "is_soak", False) != ("soak" in CASES):
        return False
    if "quick" in CASES and not getattr(test, "is_quick", False):
        return False
    if not {"all", "soak", "quick"} & set(CASES) and getattr(test, "is_long", False) != ("long" in CASES):
        return False
    return len(CASES) < 2 or getattr(test, "is_alone", False) == ("alone" in CASES)


def cpu_time():
    """Of this test and of the processes that it has waited for, in s."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def main(scope):
    tests = [(n, f) for n, f in scope.items() if n.startswith("test_") and callable(f) and is_wanted(n, f)]
    failed = skipped = passed = 0
    reason = ""
    for name, test in tests:
        begin, cpu = time.monotonic(), cpu_time()
        if keeper:
            keeper.case = name.removeprefix("test_")
        try:
            test()
        except Skip as skip:
            skipped, reason = skipped + 1, str(skip)
            print(f"skip {name}: {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
        else:
            passed += 1
            print(f"ok   {name} ({time.monotonic() - begin:.1f} s, CPU {cpu_time() - cpu:.1f} s)", flush=True)
        if keeper:
            keeper.keep_all()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if failed or not tests:
        sys.exit(1)
    if skipped:  # a skipped case is reported, never hidden among those that passed
        print(reason)
        sys.exit(77)
    sys.exit(0)
