#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""What goes wrong before, while and after recording: one row each.

A row says the exit status, a part of the message, and a time limit. All of them leave nothing
behind: no file that was not there before, temporary ones included, and no process.
"""
import ctypes
import difflib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from libe2e import (SANITIZED, SYSPROF, Background, Skip, children_of, fixture, folded, has_chain, load_json,
                    long, main, natively, need_root, quick, read, run, schedstat, scratch, share, started_sampling,
                    sysprof, wait_for, write)

LIMIT = 120  # s, for what hangs
libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
MS_REC_PRIVATE = 0x4000 | 1 << 18
PR_SET_CHILD_SUBREAPER = 36


def private_mounts():
    """Whatever is mounted from here on is for this script alone, and goes with it."""
    need_root()
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None):
        raise Skip(f"needs CAP_SYS_ADMIN for mounts: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, data=None):
    args = ["mount"] + (["-t", kind] if kind else ["--bind"])
    run(*args, *(["-o", data] if data else []), source, target, check=0)


def tree(path):
    """Every file below, with the times that show whether it was touched."""
    found = {}
    for directory, subdirectories, files in os.walk(path):
        for name in subdirectories + files:
            full = os.path.join(directory, name)
            st = os.lstat(full)
            found[os.path.relpath(full, path)] = (st.st_mode, st.st_size, st.st_ino)
    return found


def no_children():
    """We are the reaper of every descendant, so what sysprof leaves running shows here."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            time.sleep(0.01)
    raise AssertionError("a process was left behind: " + run("ps", "-ef", "--forest").out)


class Place:
    """An empty directory that anybody may write to."""
    count = 0

    def __init__(self):
        Place.count += 1
        self.path = scratch(f"row{Place.count}")
        os.mkdir(self.path)
        os.chmod(self.path, 0o1777)

    def file(self, name):
        return os.path.join(self.path, name)

    def is_untouched(self, before):
        after = tree(self.path)
        assert after == before, f"left behind: {set(after) ^ set(before)} ({after})"


def check_row(status, part, args, prefix=(), place=None, limit=LIMIT):
    place = place or Place()
    before = tree(place.path)
    result = run(*prefix, SYSPROF, *args, timeout=limit, cwd=place.path)
    assert result.status == status, f"status {status} was expected: {result}"
    assert part in result.err, f"{part!r} was expected: {result}"
    assert not result.out, f"nothing belongs on standard output: {result}"
    if status:
        assert all(line.startswith("sysprof: ") for line in result.err.splitlines()), result
    place.is_untouched(before)
    no_children()


def check_table(rows, **options):
    problems = []
    for status, part, line in rows:
        args = line.split() if isinstance(line, str) else line
        try:
            check_row(status, part, args, **options)
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            problems.append(f"sysprof {' '.join(map(str, args))}: {problem}")
    assert not problems, "\n".join(problems)


# ---- usage --------------------------------------------------------------------------------------

# What a message names is compared (options, values, alternatives), not its sentence.
TARGETS = "-p, -t, -a, a name (as --comm NAME) or -- COMMAND"
ONE = "-p, -t, -a and COMMAND"
SUFFIX = ".cpuprofile, .trace.json, .trace.json.gz, .pb.gz, .folded, .html, .txt"

USAGE = [
    (2, "'frobnicate'", "frobnicate"),
    (2, "'rec'", "rec -a"),
    (2, "'frobnicate'", "help frobnicate"),
    (2, TARGETS, "record"),
    (2, TARGETS, "record -d 1"),
    (2, TARGETS, "record --"),
    (2, ONE, "record -a -p 1"),
    (2, ONE, "record -t 1 -p 1"),
    (2, ONE, "record -p 1 -- true"),
    (2, ONE, "record -a true"),
    (2, "'--nonsense'", "record --nonsense -a"),
    (2, "'-Z'", "record -Z -a"),
    (2, "unknown option '-Z'", "record --lines -qZ"),
    (2, "-o requires a value", "record -qo"),
    (2, "--quiet=1: this option takes no value", "record --quiet=1"),
    (2, "--json=3: this option takes no value", "report --json=3 x"),
    (2, "--output requires a value", "perf-map tidy x --output"),
    (2, "record: -p ", "record -p"),
    (2, "record: --pid ", "record --pid"),
    (2, "record: -o ", "record -a -o"),
    (2, "record: --cgroup ", "record -a --cgroup"),
    (2, "-p abc: ", "record -p abc"),
    (2, "-p 0: ", "record -p 0"),
    (2, "-p -1: ", "record -p -1"),
    (2, "-p 1,,2: ", "record -p 1,,2"),
    (2, "-p 1,2,: ", "record -p 1,2,"),
    (2, "-p : ", ["record", "-p", ""]),
    (2, "-p 1 : ", ["record", "-p", "1 "]),
    (2, "-p 99999999999999999999: ", "record -p 99999999999999999999"),
    (2, "-t 0x10: ", "record -t 0x10"),
    (2, "record: -p ", "record -p 1 -p 2"),
    (2, "-F 0: ", "record -a -F 0"),
    (2, "-F 99999999: ", "record -a -F 99999999"),
    (2, "-F -1: ", "record -a -F -1"),
    (2, "-F 1.5: ", "record -a -F 1.5"),
    (2, "-d 0: ", "record -a -d 0"),
    (2, "-d -1: ", "record -a -d -1"),
    (2, "-d x: ", "record -a -d x"),
    (2, "-d 1s: ", "record -a -d 1s"),
    (2, "-d nan: ", "record -a -d nan"),
    (2, "-d inf: ", "record -a -d inf"),
    (2, "-d 1e30: ", "record -a -d 1e30"),
    (2, "auto, fp or none", "record -a -g dwarf"),
    (2, "auto, tsc or monotonic", "record -a --clock x"),
    (2, "--max-depth 0", "record -a --max-depth 0"),
    (2, "--max-depth 99999", "record -a --max-depth 99999"),
    (2, "--thread x", "record -a --thread x"),
    (2, "--thread 0", "record -a --thread 0"),
    (2, "-C x", "record -a -C x"),
    (2, "-C 0-", "record -a -C 0-"),
    (2, "separated by commas", "record -p 1 2"),
    (2, "-C 1-0", "record -a -C 1-0"),
    (2, '"nonsense"', "record -a -e nonsense"),
    (2, 'cpu-clock', "record -a -e nonsense"),
    (2, SUFFIX, "record -a -o x"),
    (2, SUFFIX, "record -a -o x.foo"),
    (2, SUFFIX, "record -a -o nonsense:x"),
    (2, "-o x.json given twice", "record -a -o x.json -o x.json"),
    (2, "-o folded:- given twice", "record -a -o text:- -o folded:-"),
    (2, "-o b.sysprof: ", "record -a -o a.sysprof -o b.sysprof"),
    (2, "-o -: ", "record -a -o -"),
    (2, "-o folded:: ", "record -a -o folded:"),
    (2, "no input", "convert"),
    (2, "no input", "convert -o x.json"),
    (2, "-o FILE", "convert x.sysprof"),
    (2, "convert: -o ", "convert x.sysprof -o"),
    (2, "'--nonsense'", "convert --nonsense"),
    (2, ".sysprof; ", "convert x.sysprof -o y.sysprof"),
    (2, SUFFIX, "convert x.sysprof -o y"),
    (2, "-o y.json given twice", "convert x.sysprof -o y.json -o y.json"),
    (2, "no input", "report"),
    (2, "'-Z'", "report -Z"),
    (2, "function, thread, process, dso, line, service, container, unit or user", "report x.sysprof --by x"),
    (2, "report: --by ", "report x.sysprof --by"),
    (2, "--top 0", "report x.sysprof --top 0"),
    (2, "--top x", "report x.sysprof --top x"),
    (2, "--min 5", "report x.sysprof --tree --min 5"),
    (2, "--min -1%", "report x.sysprof --min -1%"),
    (2, "--callers needs --tree", "report x.sysprof --callers"),
    (2, "'x'", "check x"),
    (2, "'--nonsense'", "check --nonsense"),
]


# The commonest lines of perf and samply, and what is to be written here.
HABITS = [
    (2, "-d 10", "record -a -- sleep 10"),
    (2, "-d 10", "record -p 1 sleep 10"),
    (2, "-a -d SECONDS", "record -a -- make"),
    (2, "-a -d 60\n", "record -a -- sleep 1m"),
    (2, "-a and no -d:", "record -a -- sleep infinity"),
    (2, "-p PID -d 3\n", "record -p 1 -- /bin/sleep 3"),
    (2, "-p PID -d SECONDS records it beside make", "record -p 1 -- make"),
    (2, "-e given twice", "record -e page-faults -e cs -a"),
    (2, "--no-kernel", "record -e cpu-clock:u -a"),
    (2, "--max-depth", "record --max-stack 64 -a"),
    (2, "leave it out", "record --per-thread -p 1"),
    (2, "--by process", "report --comms make"),
    (2, "--by dso", "report --dsos libc.so.6"),
    (2, "--thread TID", "report --tid 1"),
    (2, "--by line", "report -M intel"),
    (2, "--top 1", "report --header-only"),
    (2, "sysprof record -a -d 10", "top"),
    (2, "check --events", "list"),
    (2, "sysprof convert IN -o OUT --thread TID", "record --main-thread-only ./program"),
    (2, "leave -g out", "record -F 99 -g -p 1"),
    (2, "leave -g out", "record -F 99 -ag -- sleep 10"),
    (2, "leave -g out", "record -g ./program"),
    (2, "-g requires a value: stacks are the default, so leave -g out", "record -p 1 -g"),
    (2, "--call-graph requires a value: stacks are the default", "record -a --call-graph"),
    (2, "leave it out", "record --call-graph dwarf -p 1"),
    (2, "leave it out", "record --call-graph=dwarf,16384 -p 1"),
    (2, "leave it out", "record --call-graph lbr -p 1"),
    (2, "-F 20000", "record -F max -a"),
    (2, "pgrep -d, node", "record -p node"),
    (2, "--comm node", "record -p node"),
    (2, "--no-inherit", "record -i -p 1"),
    (2, "--cgroup PATH", "record -G system.slice"),
    (2, "--user NAME", "record -u www-data"),
    (2, "--ring-mem", "record -m 256 -a"),
    (2, "--no-kernel", "record --all-user -a"),
    (2, "--wall", "record --off-cpu -p 1"),
    (2, "--exclude-self", "record --exclude-perf -a"),
    (2, "--clock", "record -k mono -a"),
    (2, "leave it out", "record -T -p 1"),
    (2, "'sysprof report IN'", "report -i perf.data"),
    (2, "--tree", "report --stdio"),
    (2, "--by function", "report --sort=dso"),
    (2, "--min", "report --percent-limit 1"),
    (2, "folded:-", "script"),
    (2, "sysprof check", "list"),
    (2, "--by line", "annotate"),
    (2, "record -- COMMAND", "./program"),
    (2, "-F HZ", "record --rate 4000 ./program"),
    (2, "leave it out", "record --save-only ./program"),
    (2, "leave it out", "record --no-open ./program"),
    (2, "sysprof open IN", "load profile.json"),
    (2, "sysprof open IN", "import perf.data"),
    (2, "sysprof check", "setup"),
    (2, "compare", "record --iteration-count 3 ./program"),
    (2, "-F HZ", "record -r 4000 ./program"),
    (2, "--arguments", "record --include-args ./program"),
    (2, "leave it out", "record --unstable-presymbolicate ./program"),
    (2, "report IN --cpu N", "record --per-cpu-threads ./program"),
    (2, "--focus FUNCTION", "report -S main"),
    (2, "record --wall", "sched record"),
    (2, "not here", "trace -p 1"),
]


@quick
def test_usage():
    check_table(USAGE)
    check_table(HABITS)
    overview = sysprof(check=2)
    assert "Commands:" in overview.err and not overview.out, overview
    assert "Commands:" in sysprof("help", check=0).out


def test_usage_names_the_help():
    for line in ("record -Z", "convert", "report", "check x"):
        command = line.split()[0]
        result = sysprof(*line.split(), check=2)
        assert f"sysprof help {command}" in result.err, result
        text = sysprof("help", command, check=0).out
        assert text.startswith(f"usage: sysprof {command} "), text


# ---- what is not there --------------------------------------------------------------------------

def test_inputs():
    """What convert and report are given is neither a recording nor a profile."""
    place = Place()
    os.mkdir(place.file("dir"))
    os.mkdir(place.file("app.trace"))
    os.mkfifo(place.file("fifo"))
    write(place.file("text.sysprof"), "hello\n")
    with open(place.file("empty.sysprof"), "w", encoding="ascii"):
        pass
    rows = []
    for command in ("report {}", "convert {} -o x.json.gz"):
        rows += [(1, part, command.format(name)) for name, part in (
            ("missing.sysprof", "cannot open missing.sysprof: No such file"),
            ("dir", "it is a directory"),
            ("dir", "--service NAME --span"),
            ("app.trace/", "inferno-collapse-xctrace"),
            ("fifo", "fifo is not a"),
            ("/dev/zero", "/dev/zero is not a"),
            ("text.sysprof", "text.sysprof: byte 0: it is neither a recording nor a profile"),
            ("empty.sysprof", "empty.sysprof: byte 0: the file is empty"),
        )]
    check_table(rows, place=place)


def test_targets():
    need_root()
    with subprocess.Popen(["true"]) as p:
        p.wait()
    ended = p.pid
    rows = [
        (1, f"process: {ended}", f"record -p {ended} -d 1"),
        (1, f"process: {ended}", f"record -p {os.getpid()},{ended} -d 1"),
        (1, "thread: 4194304", "record -t 4194304 -d 1"),
        (1, "process 2 is a kernel thread", "record -p 2 -d 1"),
        (1, "thread 2 is a kernel thread", "record -t 2 -d 1"),
        (1, "cannot open the cgroup /no/such/group", "record -a --cgroup /no/such/group -d 1"),
        (1, "is not online", "record -a -C 4095 -d 1"),
        (1, "cannot open the cgroup", ["record", "-d", "1", "--cgroup", "/no such group", "--", "sleep", "9"]),
    ]
    check_table(rows)


def test_zombie():
    need_root()
    with Background(fixture("zombie"), "60") as zombie:
        facts = dict(zombie.p.stdout.readline().split() for _ in range(2))
        result = run(SYSPROF, "record", "-p", facts["zombie"], "-d", "1", timeout=LIMIT,
                     cwd=Place().path)
        assert result.status == 1, result
        assert "is a zombie" in result.err, result


def test_thread_is_no_process():
    """-p with a thread's number names the process, and what works."""
    need_root()
    with Background(fixture("chain"), "-t", "1", "60") as chain:
        facts = {}
        wait_for(lambda: facts.update([chain.p.stdout.readline().split()]) or "tid" in facts)
        result = run(SYSPROF, "record", "-p", facts["tid"], "-d", "1", timeout=LIMIT,
                     cwd=Place().path)
        assert result.status == 1, result
        assert f"is a thread of process {facts['pid']}" in result.err, result
        assert f"-t {facts['tid']}" in result.err, result


@natively
@long
def test_target_ends_during_attach():
    """Killed at any moment of the start: a clean error or a complete file, reaped or a zombie."""
    need_root()
    statuses = set()
    for i in range(16):
        place = Place()
        reap = i % 2
        args = [SYSPROF, "record", "-p"]
        with subprocess.Popen([fixture("chain"), "60"], stdout=subprocess.DEVNULL) as victim:
            try:
                with Background(*args, str(victim.pid), "-d", "2", "-o", "x.json", "-o",
                                "x.sysprof", cwd=place.path) as recorder:
                    time.sleep(i * (0.06 if SANITIZED else 0.025))
                    victim.kill()
                    if reap:
                        victim.wait()
                    result = recorder.finish(timeout=LIMIT)
            finally:
                victim.kill()
                victim.wait()
        statuses.add(result.status)
        if result.status == 0:
            load_json(place.file("x.json"))
            sysprof("report", place.file("x.sysprof"), check=0)
        else:
            assert result.status == 1, result
            assert str(victim.pid) in result.err, result
            assert not tree(place.path), (tree(place.path), result)
    assert 0 in statuses, statuses
    no_children()


def test_children_end_during_attach():
    """A shell that starts short children all the time, attached to at any moment."""
    need_root()
    for _ in range(4):
        place = Place()
        with Background("sh", "-c", "while :; do sleep 0.003; done") as shell:
            result = run(SYSPROF, "record", "-p", shell.pid, "-d", "0.3", "-o", "x.folded",
                         timeout=LIMIT, cwd=place.path)
        assert result.status == 0, result
        assert folded(place.file("x.folded")), result


# ---- privileges and kernels ---------------------------------------------------------------------

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")


def without(*capabilities):
    words = ",".join("-" + c for c in capabilities)
    return ("setpriv", f"--bounding-set={words}", f"--inh-caps={words}")


def public_sysprof():
    """A copy that users may run, wherever the build directory is."""
    path = scratch("sysprof")
    if not os.path.exists(path):
        shutil.copy(SYSPROF, path)
        os.chmod(path, 0o755)
    return path


def check_refusal(prefix, parts, absent=(), args=("record", "-a", "-d", "0.2")):
    place = Place()
    before = tree(place.path)
    result = run(*prefix, public_sysprof(), *args, timeout=LIMIT, cwd=place.path)
    assert result.status == 1, result
    for part in parts:
        assert part in result.err, f"{part!r} was expected: {result}"
    for part in absent:
        assert part not in result.err, f"{part!r} was not expected: {result}"
    assert "try: " in result.err, result
    place.is_untouched(before)
    no_children()


@quick
def test_no_privileges():
    need_root()
    check_refusal(NOBODY, ["missing CAP_BPF and CAP_PERFMON", "sudo", "setcap"])
    check_refusal(NOBODY, ["missing CAP_BPF and CAP_PERFMON"],
                  args=("record", "--", "sh", "-c", "echo it ran; sleep 60"))
    check_refusal(without("bpf", "sys_admin"), ["missing CAP_BPF"], ["CAP_PERFMON:"])
    check_refusal(without("perfmon", "sys_admin"), ["missing CAP_PERFMON"], ["CAP_BPF "])


@natively
def test_enough_privileges():
    """CAP_SYS_ADMIN is not needed where the two that were split off from it are there."""
    need_root()
    for missing in (("sys_admin",), ("bpf",), ("perfmon",)):
        place = Place()
        result = run(*without(*missing), SYSPROF, "record", "-d", "5", "-o", "x.folded", "--",
                     fixture("chain"), "0.2", timeout=LIMIT, cwd=place.path)
        assert result.status == 0, (missing, result)
        rows = folded(place.file("x.folded"))
        assert share(rows, lambda f: has_chain(f, "outer", "middle", "inner", "leaf")) > 0.8, rows


def test_missing_capabilities_in_check():
    need_root()
    result = run(*without("perfmon", "sys_admin"), SYSPROF, "check", timeout=LIMIT)
    assert result.status == 1, result
    assert "MISSING  cap_perfmon" in result.out, result
    assert "ok       cap_bpf" in result.out, result
    result = sysprof("check", timeout=LIMIT, check=0)
    assert "MISSING" not in result.out, result


def test_user_namespace():
    need_root()
    if run("unshare", "-Ur", "true").status:
        raise Skip("there are no user namespaces here")
    check_refusal(("unshare", "-Ur"), ["only inside this user namespace"])


def test_no_btf():
    need_root()
    hide = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh")
    check_refusal(hide, ["/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF"])


# A seccomp filter stands for what refuses a system call: sysprof has to find out on whose behalf.
REFUSE = """
import ctypes, os, struct, sys
numbers = [int(n) for n in sys.argv[1].split(",")]
load, equal, ret = 0x20, 0x15, 0x06
program = struct.pack("=HBBI", load, 0, 0, 0)
for i, number in enumerate(numbers):
    program += struct.pack("=HBBI", equal, len(numbers) - i, 0, number)
program += struct.pack("=HBBI", ret, 0, 0, 0x7fff0000)
program += struct.pack("=HBBI", ret, 0, 0, 0x00050000 | int(sys.argv[2]))
buffer = ctypes.create_string_buffer(program)
fprog = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
assert not ctypes.CDLL(None).prctl(22, 2, ctypes.create_string_buffer(fprog), 0, 0)
os.execvp(sys.argv[3], sys.argv[3:])
"""
SYSCALLS = {"x86_64": (321, 298), "aarch64": (280, 241)}  # bpf, perf_event_open


def refusing(error, *which):
    machine = os.uname().machine
    if machine not in SYSCALLS:
        raise Skip(f"the numbers of system calls are not known for {machine}")
    numbers = ",".join(str(SYSCALLS[machine][w]) for w in which)
    return (sys.executable, "-c", REFUSE, numbers, str(error))


def faking(path, text):
    """Run under it: there, this file says something else."""
    fake = scratch("fake-" + path.replace("/", "-"))
    write(fake, text)
    hide = (f"set -e; [ -e {path} ] || mount -t tmpfs none {os.path.dirname(path)}; "
            f"[ -e {path} ] || touch {path}; mount --bind {fake} {path}; exec \"$@\"")
    return ("unshare", "-m", "sh", "-c", hide, "sh")


def test_refused_by_the_kernel():
    need_root()
    check_refusal(refusing(1, 0), ["seccomp filter", "docker run --privileged"])
    check_refusal(refusing(1, 1), ["seccomp filter", "docker run --privileged"])
    check_refusal(refusing(38, 1), ["CONFIG_PERF_EVENTS"])
    check_refusal(refusing(12, 0), ["RLIMIT_MEMLOCK", "ulimit -l"])


def test_lockdown():
    need_root()
    lockdown = faking("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n")
    check_refusal(lockdown + refusing(1, 0), ["kernel lockdown", "lockdown=integrity"])
    result = run(*lockdown, SYSPROF, "check", timeout=LIMIT)
    assert result.status == 1 and "MISSING  no-lockdown" in result.out, result


def test_perf_event_paranoid():
    need_root()
    paranoid = faking("/proc/sys/kernel/perf_event_paranoid", "4\n")
    check_refusal(paranoid + NOBODY, ["missing CAP_BPF and CAP_PERFMON"])
    result = run(*paranoid, SYSPROF, "check", timeout=LIMIT)
    assert any(line.split()[1:] == ["perf_event_paranoid", "4"]
               for line in result.out.splitlines()), result


def test_no_pmu():
    need_root()
    if os.path.exists("/sys/bus/event_source/devices/cpu"):
        raise Skip("this machine has a PMU")
    check_table([(1, 'the event "cycles"', "record -a -e cycles -d 1"),
                 (1, "-e cpu-clock", "record -a -e instructions -d 1")])


# ---- disks and directories ----------------------------------------------------------------------

def fill(path):
    """Use up the rest of a file system."""
    with open(os.path.join(path, "filler"), "ab", buffering=0) as f:
        try:
            while True:
                f.write(b"\0" * 4096)
        except OSError:
            pass


def small_disk(size):
    place = Place()
    path = place.file("disk")
    os.mkdir(path)
    mount("none", path, "tmpfs", f"size={size}")
    return path


# every format, and what is free for it: nothing at all, or less than it needs
FULL = [(suffix, 0) for suffix in ("json", "json.gz", "cpuprofile", "folded", "html", "txt", "sysprof")]
FULL += [("json", 1), ("json.gz", 1), ("cpuprofile", 1), ("sysprof", 15)]


def check_full_disk(pids, suffix, pages):
    """What went wrong, if anything, with so many pages free."""
    path = small_disk("64k")
    fill(path)
    os.truncate(os.path.join(path, "filler"), 65536 - pages * 4096)
    before = tree(path)
    result = run(SYSPROF, "record", "-p", pids, "-F", "4999", "-d", "0.4", "-o", f"{path}/x.{suffix}",
                 timeout=LIMIT, cwd=path)
    after = tree(path)
    run("umount", path)
    if result.status != 1 or "No space left" not in result.err or path not in result.err:
        yield f".{suffix}, {pages} pages: {result}"
    if after != before:
        yield f".{suffix}, {pages} pages: left behind {set(after) ^ set(before)}"


def test_full_disk():
    need_root()
    problems = []
    # a profile of few samples would fit into a page
    politely = "nice", "-n", "19"
    with Background(*politely, fixture("chain"), "-t", "4", "100") as chain, \
            Background(*politely, fixture("kstack"), "getdents", "100") as kstack:
        for suffix, pages in FULL[::2] if SANITIZED else FULL:
            problems += check_full_disk(f"{chain.pid},{kstack.pid}", suffix, pages)
    assert not problems, "\n".join(problems)


def test_full_disk_takes_all_files():
    """One of several files fails, so none of them stays."""
    need_root()
    path = small_disk("64k")
    fill(path)
    place = Place()
    result = run(SYSPROF, "record", "-d", "3", "-o", "a.json", "-o", f"{path}/b.folded", "-o",
                 "c.txt", "--", fixture("chain"), "0.2", timeout=LIMIT, cwd=place.path)
    assert result.status == 1 and "b.folded: No space left" in result.err, result
    assert not tree(place.path), tree(place.path)
    assert set(tree(path)) == {"filler"}
    run("umount", path, check=0)


def test_full_disk_keeps_the_recording():
    """What a .sysprof held before the disk was full is there and readable; the target runs on."""
    need_root()
    path = small_disk("64m")
    file = os.path.join(path, "x.sysprof")
    with Background(fixture("chain"), "60") as chain:
        with Background(SYSPROF, "record", "-p", chain.pid, "-o", file, "-o", f"{path}/x.json",
                        cwd=path) as recorder:
            started_sampling(recorder, file)
            sampled = schedstat(chain.pid)[0] + 1.5e9
            wait_for(lambda: schedstat(chain.pid)[0] >= sampled, what="1.5 s of CPU time")
            fill(path)
            result = recorder.finish(timeout=LIMIT)
        assert chain.p.poll() is None, "the target has ended"
    assert result.status == 1, result
    assert "No space left" in result.err and file in result.err, result
    assert set(tree(path)) == {"filler", "x.sysprof"}, tree(path)
    out = Place().file("x.folded")
    result = sysprof("convert", file, "-o", out, check=0)
    assert "no end" in result.err and "damaged" not in result.err, result
    # about half the time, the machine being busy, is ours at the very least
    assert sum(count for _, count in folded(out)) > 300, result
    run("umount", path, check=0)


def test_no_directory_at_start():
    """Reported before a second of sampling was wasted."""
    need_root()
    place = Place()
    os.mkdir(place.file("dir"))
    with open(place.file("file"), "w", encoding="ascii"):
        pass
    for output in ("no/x.json", "no/x.sysprof", "file/x.json", "/proc/x.json", "folded:dir",
                   "sysprof:dir", "folded:dir/"):
        begin = time.monotonic()
        check_row(1, "cannot create", ["record", "-a", "-d", "50", "-o", output], place=place)
        assert time.monotonic() - begin < 40, f"{output}: noticed only at the end"


def vanish(outputs, change):
    """The directory of the outputs changes while recording. What is left then."""
    place = Place()
    directory = place.file("dir")
    os.mkdir(directory)
    args = [word for o in outputs for word in ("-o", os.path.join(directory, o))]
    # files, not pipes: COMMAND lives on with them
    out, err = scratch("vanish.out"), scratch("vanish.err")
    with open(out, "w", encoding="ascii") as o, open(err, "w", encoding="ascii") as e:
        with Background(SYSPROF, "record", "-d", "4", *args, "--", fixture("chain"), "60",
                        cwd=place.path, stdout=o, stderr=e) as recorder:
            wait_for(lambda: os.path.getsize(out), LIMIT, "the command")
            time.sleep(0.6)
            change(directory)
            status = recorder.p.wait(timeout=LIMIT)
    kill_children()
    text = read(err)
    assert status == 1, text
    assert os.path.join(directory, "x.") in text, text
    return tree(place.path)


def kill_children():
    """Ends what COMMANDs were left to run on, which is theirs to do."""
    for line in run("ps", "-o", "pid=", "--ppid", os.getpid()).out.split():
        try:
            os.kill(int(line), signal.SIGKILL)
        except ProcessLookupError:
            pass
    no_children()


@natively
@long
def test_vanished_directory():
    need_root()
    for outputs in (["x.json.gz"], ["x.cpuprofile", "x.folded"], ["x.sysprof"]):
        assert not vanish(outputs, shutil.rmtree), outputs


@natively
def test_moved_directory():
    """A file that is not where it was to be is none: nothing of it in the place moved to."""
    need_root()
    for outputs in (["x.json.gz"], ["x.folded", "x.txt"]):
        left = vanish(outputs, lambda path: os.rename(path, path + "2"))
        assert set(left) == {"dir2"}, left


def test_unwritable_standard_output():
    need_root()
    with open("/dev/full", "w", encoding="ascii") as full:
        for command in (["record", "-d", "3", "-o", "text:-", "--", "true"],
                        ["record", "-d", "3", "-o", "sysprof:-", "--", "true"],
                        ["check"]):
            p = subprocess.run([SYSPROF, *command], stdout=full, stderr=subprocess.PIPE,
                               cwd=Place().path, timeout=LIMIT, text=True, check=False)
            assert p.returncode == 1, (command, p)
            assert "No space left" in p.stderr, (command, p)


def test_reader_that_has_seen_enough():
    """`report | head`: silent, and dead by the signal as every tool; refused if the signal is ignored."""
    path, other = scratch("long.folded"), scratch("beside.json")
    with open(path, "w", encoding="ascii") as f:
        f.writelines(f"main;f{i} 1\n" for i in range(20000))
    for command in "report --tree --min 0", f"convert -o folded:- -o {other}":
        for ending in "", "trap '' PIPE; ":
            p = subprocess.run(["bash", "-c", f"{ending}\"$0\" {command} \"$1\" | head -n 1; echo ${{PIPESTATUS[0]}}", SYSPROF, path],
                               capture_output=True, timeout=LIMIT, text=True, check=False)
            assert p.stderr == "" and p.stdout.split()[-1] == ("1" if ending else "141"), (command, p)
    assert not os.path.exists(other)


# ---- COMMAND ------------------------------------------------------------------------------------

def record_command(*command, options=("-d", "20"), place=None, **more):
    place = place or Place()
    return run(SYSPROF, "record", "-q", "-o", place.file("x.folded"), *options, "--", *command,
               timeout=LIMIT, **more)


@quick
@natively
def test_exit_codes_of_command():
    need_root()
    place = Place()
    write(place.file("not-executable"), "#!/bin/sh\n")
    write(place.file("no-interpreter"), "#!/no/such/interpreter\n")
    os.chmod(place.file("no-interpreter"), 0o755)
    write(place.file("no-shebang"), "exit 5\n")
    os.chmod(place.file("no-shebang"), 0o755)
    written = {
        0: ["true"],
        1: ["false"],
        2: ["sh", "-c", "exit 2"],
        77: ["sh", "-c", "exit 77"],
        255: ["sh", "-c", "exit 255"],
        128 + 9: ["sh", "-c", "kill -9 $$"],
        128 + 11: ["sh", "-c", "kill -SEGV $$"],
        128 + 15: ["sh", "-c", "kill $$"],
        128 + 2: ["sh", "-c", "kill -INT $$"],
        5: [place.file("no-shebang")],  # as env does: for sh
    }
    for status, command in written.items():
        there = Place()
        result = record_command(*command, place=there)
        assert result.status == status and not result.err, (command, result)
        folded(there.file("x.folded"))
        no_children()
    refused = [
        (127, "no-such-program-at-all", "No such file"),
        (127, "/no/such/program", "No such file"),
        (127, place.file("no-interpreter"), "No such file"),
        (126, place.path, "Permission denied"),
        (126, place.file("not-executable"), "Permission denied"),
    ]
    for status, command, part in refused:
        there = Place()
        result = record_command(command, place=there)
        assert result.status == status, (command, result)
        assert command in result.err and part in result.err, (command, result)
        assert not tree(there.path), tree(there.path)
        no_children()


def test_our_failure_outranks_command():
    need_root()
    path = small_disk("64k")
    fill(path)
    for command in (["true"], ["sh", "-c", "exit 7"], ["sh", "-c", "kill -9 $$"]):
        result = run(SYSPROF, "record", "-d", "20", "-o", f"{path}/x.json", "--", *command,
                     timeout=LIMIT)
        assert result.status == 1 and "No space left" in result.err, (command, result)
    run("umount", path, check=0)


@natively
def test_command_outlives_duration():
    """-d ends the recording; COMMAND is not touched, and neither is what it prints."""
    need_root()
    for options in (("-d", "0.3"), ("-d", "0.3", "-v")):
        place = Place()
        begin = time.monotonic()
        p = subprocess.run([SYSPROF, "record", *options, "-o", place.file("x.folded"), "--", "sh",
                            "-c", "echo first; sleep 2; echo last; exit 3"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, text=True,
                           stdin=subprocess.DEVNULL, check=False)
        # the pipe is open until COMMAND has ended, sysprof was gone before
        assert time.monotonic() - begin > 2, "COMMAND was ended early"
        assert p.returncode == 0, p
        assert p.stdout == "first\nlast\n", p
        folded(place.file("x.folded"))
        no_children()


def test_streams_of_command():
    need_root()
    data = bytes(range(256)) * 1000
    place = Place()
    args = [SYSPROF, "record", "-d", "20", "-q", "-o", place.file("x.folded"), "--"]
    p = subprocess.run([*args, "sh", "-c", "cat; echo complaint >&2"], input=data,
                       capture_output=True, timeout=LIMIT, check=False)
    assert p.returncode == 0 and p.stdout == data and p.stderr == b"complaint\n", p.stderr
    # and nothing of ours is left open in it
    listing = ["ls", "-l", "/proc/self/fd"]
    plain = subprocess.run(listing, capture_output=True, stdin=subprocess.DEVNULL, text=True,
                           check=True).stdout
    p = subprocess.run([*args, *listing], capture_output=True, stdin=subprocess.DEVNULL, text=True,
                       timeout=LIMIT, check=True)
    numbers = [[line.split()[-3] for line in text.splitlines()[1:]] for text in (plain, p.stdout)]
    assert numbers[0] == numbers[1], (plain, p.stdout)


# not Python, which changes signals by itself
ATTRIBUTES = """
grep -E '^(Sig[BIC]|Cap|Uid|Gid|Groups|Umask|Cpus_allowed|NoNewPrivs|Seccomp)' /proc/self/status
cat /proc/self/limits /proc/self/oom_score_adj /proc/self/cgroup
awk '{print $5, $6, $7, $8}' /proc/self/stat
pwd; env | sort | cksum
"""


@natively
def test_attributes_of_command():
    """Signal mask, ignored signals, limits and so on are those of the caller."""
    need_root()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def plain():
        pass

    def blocked():
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGINT, signal.SIGUSR1})

    def ignored():
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def default_pipe():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))

    for prepare in (plain, blocked, ignored, default_pipe, limited):
        options = {"preexec_fn": prepare, "restore_signals": False, "capture_output": True,
                   "text": True, "timeout": LIMIT, "check": False, "cwd": Place().path,
                   "stdin": subprocess.DEVNULL}
        command = ["sh", "-c", ATTRIBUTES]
        wanted = subprocess.run(command, **options)
        got = subprocess.run([SYSPROF, "record", "-q", "-d", "20", "-o", "x.folded", "--",
                              *command], **options)
        assert wanted.returncode == 0 and got.returncode == 0, (wanted, got)
        assert got.stdout == wanted.stdout, "\n".join(difflib.ndiff(
            wanted.stdout.splitlines(), got.stdout.splitlines()))


def test_command_killed_while_held():
    """COMMAND dies by another hand at any moment of the start: an answer, and nothing left."""
    need_root()
    for i in range(6):
        place = Place()
        marker = f"{1000000 + os.getpid()}.{i}"
        with Background(SYSPROF, "record", "-d", "20", "-o", "x.folded", "--", "sleep", marker,
                        cwd=place.path) as recorder:
            pid = wait_for(lambda of=recorder.pid: children_of(of), LIMIT, "a child")[0]
            time.sleep(i * 0.08)
            os.kill(pid, signal.SIGKILL)
            result = recorder.finish(timeout=LIMIT)
        assert result.status in (1, 128 + 9), result
        if result.status == 1:
            assert "sleep" in result.err, result
            assert not tree(place.path), tree(place.path)
        no_children()


if __name__ == "__main__":
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.geteuid() == 0:
        private_mounts()
    main(globals())
