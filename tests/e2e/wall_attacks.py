#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""record --wall and programs that make it hard: very many threads, brief ones, stopped ones, memory that does not come."""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

import libe2e as e
from libgo import pprof
from libwall import need_visits, report

NS = 1000000000


def check_books(path):
    """All looks have a result, and the time of all threads is divided."""
    states, threads = report(path, "state"), report(path, "thread")["rows"]
    v = states["visits"]
    rest = ("unchanged", "running", "walked", "moved", "gone", "no-room", "too-many", "left")
    assert v["looks"] == sum(v[line] for line in rest), v
    assert sum(row["ns"] for row in states["rows"]) + states["unvisited_ns"] == states["lived_ns"]
    for row in threads:
        assert sum(row[key + "_ns"] for key in ("running", "runnable", "blocked", "unvisited")) == row["ns"], row
        assert sum(row["states"].values()) == row["runnable_ns"] + row["blocked_ns"], row
    return v, threads


def recorded(*args, timeout=e.PATIENCE):
    path = e.scratch("attack.sysprof")
    result = e.record("--wall", "-o", path, *args, timeout=timeout)
    return path, result


def room_for_threads():
    """As many as leave a quarter of the machine's numbers to others."""
    with open("/proc/sys/kernel/pid_max", encoding="utf-8") as f, open("/proc/sys/kernel/threads-max", encoding="utf-8") as g, \
            open("/proc/loadavg", encoding="utf-8") as h:
        return min(int(f.read()), int(g.read())) * 3 // 4 - int(h.read().split()[3].split("/")[1])


def test_fifty_thousand_threads():
    """Or as many as there may be. The budget holds: visits become fewer, and all threads are in the account."""
    need_visits()
    with e.Background(e.fixture("idlers"), min(50000, room_for_threads()), 300) as target:
        started = int(target.p.stdout.readline().split()[1])
        if started < 5000:
            raise e.Skip(f"no more than {started} threads here")
        path, result = recorded("-d", 8, "-p", target.pid)
        target.p.kill()
    v, rows = check_books(path)
    assert 0 < v["made"] < v["due"] / 2, v
    # half a percent, and what may be ahead: 60 ms and the last visit
    assert v["cpu_ns"] <= 8 * 0.005 * NS + 0.3 * NS + started * 20000, (v, started)
    assert len(rows) >= 0.95 * min(started, 16384), (len(rows), started)
    assert result.seconds < 200, result


def test_threads_that_come_and_go():
    """A thousand a second: the books add up, and the process's own CPU time is in the account of its samples."""
    need_visits()
    path, _ = recorded("--wall-cpu", "10%", "--", e.fixture("storm"), "-g", "1000", "thread", "3000", "200", e.scratch("log"))
    check_books(path)
    with open(e.scratch("log"), encoding="utf-8") as f:
        assert len([line for line in f if line.startswith("task ")]) == 3000


def test_pages_of_a_userfaultfd():
    """Reading such a page fails at once: nothing hangs, the thread is in the account, its stack is cut."""
    need_visits()
    with e.Background(e.fixture("foreignstack"), "-u") as target:
        time.sleep(0.3)
        if target.p.poll() is not None:
            raise e.Skip("no userfaultfd")
        e.wait_for(lambda: e.comm_of(target.pid) == "foreign", what="the target")
        path, result = recorded("--wall-cpu", "10%", "-d", 2, "-p", target.pid)
    v, rows = check_books(path)
    assert not v["left"], (result, v)
    (row,) = rows  # since the first visit
    assert row["blocked_ns"] > 0.9 * row["ns"] > 0.5 * NS, row


@contextlib.contextmanager
def quota_group(microseconds, period=100000):
    """A control group whose programs may use so many microseconds of CPU time in each period; yields its directory."""
    name = f"sysprof-wall-{os.getpid()}"
    for top, files in (("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(microseconds)}),
                       ("/sys/fs/cgroup", {"cpu.max": f"{microseconds} {period}"})):
        path = os.path.join(top, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            if not all(os.path.exists(os.path.join(path, file)) for file in files):
                continue
            for file, text in files.items():
                e.write(os.path.join(path, file), text)
            yield path
            return
        finally:
            e.wait_for(lambda path=path: removed(path), what="the end of " + path)
    raise e.Skip("no control group with a CPU quota can be made here")


def removed(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


def stat_of(group):
    """Throttled time, ns."""
    with open(os.path.join(group, "cpu.stat"), encoding="utf-8") as f:
        stat = dict(line.split() for line in f)
    return int(stat["throttled_time"]) if "throttled_time" in stat else int(stat["throttled_usec"]) * 1000


def test_a_throttled_group():
    """A tenth of a CPU: the rest of the time the program is throttled, as its group says."""
    need_visits()
    with quota_group(10000) as group:
        command = f'echo $$ > {group}/cgroup.procs && exec {e.fixture("chain")} 20'
        with e.Background("/bin/sh", "-c", command) as target:
            e.wait_for(lambda: e.comm_of(target.pid) == "chain", what="the target")
            time.sleep(0.5)
            before, began = stat_of(group), time.monotonic_ns()
            path, _ = recorded("--wall-cpu", "10%", "-d", 4, "-p", target.pid)
            throttled, took = stat_of(group) - before, time.monotonic_ns() - began
            target.p.kill()
            target.p.wait()
        _, rows = check_books(path)
        (row,) = [row for row in rows if row["thread"] == "chain"]
        waited = row["states"].get("throttled", 0) + row["states"].get("runnable", 0)
        assert 0.2 * NS < row["running_ns"] < 1.2 * NS, row
        assert waited > 0.7 * row["ns"], row
        # the recording is a part of the time between the two looks at the group
        assert row["states"].get("throttled", 0) <= throttled * 1.05, (row, throttled)
        # the group's counter has the time from the first thread that is held up
        assert row["states"].get("throttled", 0) > 0.75 * throttled * row["ns"] / took, (row, throttled, took)
        assert row["states"]["throttled"] <= row["runnable_ns"], "the kernel's run delay has it"


def test_throttled_for_seconds():
    """A millisecond of each second, and what it took beyond it is waited for as well: one wait, that nothing ends early."""
    need_visits()
    with quota_group(1000, 1000000) as group:
        with e.Background("/bin/sh", "-c", f'exec {e.fixture("chain")} 60') as target:
            e.wait_for(lambda: e.comm_of(target.pid) == "chain", what="the target")
            e.write(os.path.join(group, "cgroup.procs"), str(target.pid))
            e.wait_for(lambda: stat_of(group) > 0, what="the first throttled time")
            path, result = recorded("--wall-cpu", "10%", "-d", 4, "-p", target.pid)
            target.p.kill()
            e.write(os.path.join(os.path.dirname(group), "cgroup.procs"), str(target.pid))  # else it ends when it may run again
            target.p.wait()
    v, (row,) = check_books(path)
    assert row["ns"] > 2.5 * NS and row["states"].get("throttled", 0) > 0.8 * row["ns"], row
    assert v["unchanged"] > v["walked"] and result.seconds < 120, (v, result)


def test_a_control_group():
    """--cgroup: threads of its processes and of groups below, those that join, and none that leave or are elsewhere."""
    need_visits()
    unified = [top for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if os.path.exists(os.path.join(top, "cgroup.procs"))]
    if not unified:
        raise e.Skip("no control groups of version 2")
    group, other = (os.path.join(unified[0], f"sysprof-{name}-{os.getpid()}") for name in ("in", "out"))
    below = os.path.join(group, "below")
    for path in group, below, other:
        os.mkdir(path)

    def move(pid, path):
        e.write(os.path.join(path, "cgroup.procs"), str(pid))

    try:
        with contextlib.ExitStack() as programs:
            inside, outside, joins, leaves = (programs.enter_context(e.Background(e.fixture("waits"), 30)) for _ in range(4))
            for program in inside, outside, joins, leaves:
                e.wait_for(lambda pid=program.pid: len(os.listdir(f"/proc/{pid}/task")) >= 9, what="the threads")
            move(inside.pid, below)
            move(outside.pid, other)
            move(leaves.pid, group)
            file = e.scratch("group.sysprof")
            with e.Background(e.SYSPROF, "record", "--wall", "--wall-cpu", "20%", "-d", 4, "--cgroup", group, "-o", file,
                              stderr=subprocess.DEVNULL) as recorder:
                e.started_sampling(recorder, file)
                time.sleep(1.5)
                move(joins.pid, group)
                move(leaves.pid, other)
                recorder.finish(timeout=60)
            for program in inside, outside, joins, leaves:
                program.p.kill()
                program.p.wait()
    finally:
        for path in below, group, other:
            e.wait_for(lambda path=path: removed(path), what="the end of " + path)
    _, rows = check_books(file)
    idle = {row["pid"]: row for row in rows if row["thread"] == "idles"}
    assert set(idle) == {inside.pid, joins.pid, leaves.pid}, idle
    whole = idle[inside.pid]["ns"]
    assert whole > 2.5 * NS, idle
    assert 0.5 * NS < idle[joins.pid]["ns"] < whole - 0.5 * NS, idle
    assert idle[leaves.pid]["ns"] < whole - 0.5 * NS, idle
    assert len([row for row in rows if row["pid"] == inside.pid]) >= 9, rows


def test_stopped_by_a_signal():
    """It is neither woken nor continued."""
    need_visits()
    with e.Background(e.fixture("waits"), 20) as target:
        e.wait_for(lambda: len(os.listdir(f"/proc/{target.pid}/task")) >= 9, what="the threads")
        target.p.send_signal(signal.SIGSTOP)
        path, _ = recorded("--wall-cpu", "10%", "--no-inherit", "-d", 3, "-p", target.pid)
        assert e.read(f"/proc/{target.pid}/stat").rsplit(") ", 1)[1][0] == "T"
    _, rows = check_books(path)
    stopped = [row for row in rows if row["process"] == "waits" and row["states"].get("stopped", 0) > 1.5 * NS]
    assert len(stopped) >= 8, rows


PTRACE_ATTACH, PTRACE_DETACH = 16, 17


def test_stopped_by_a_debugger():
    need_visits()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    with e.Background(e.fixture("chain"), 20) as target:
        assert libc.ptrace(PTRACE_ATTACH, target.pid, 0, 0) == 0, os.strerror(ctypes.get_errno())
        os.waitpid(target.pid, 0)
        path, _ = recorded("--wall-cpu", "10%", "-d", 3, "-p", target.pid)
        libc.ptrace(PTRACE_DETACH, target.pid, 0, 0)
    _, rows = check_books(path)
    assert [row for row in rows if row["states"].get("stopped", 0) > 1.5 * NS], rows


SPAWNS = """
import os, sys, time
end = time.monotonic() + 1.5
while time.monotonic() < end:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
"""


def test_vfork_and_execve():
    """Parents that lent their memory, processes that become others in the middle of a visit."""
    need_visits()
    path, _ = recorded("--wall=1000", "--wall-cpu", "20%", "--", sys.executable, "-c", SPAWNS)
    _, rows = check_books(path)
    assert [row for row in rows if row["thread"].startswith("python") and row["ns"] > NS], rows
    assert "wall" in pprof("-raw", pprof_of(path))


def pprof_of(path):
    out = e.scratch("attack.pb.gz")
    e.sysprof("convert", path, "-o", out)
    return out


def test_a_thread_of_a_tid_that_executes():
    """-t: its time before and after, under the number that it gets."""
    need_visits()
    with e.Background(e.fixture("thread_exec"), "-s", e.fixture("loop"), "2") as target:
        tids = [int(target.p.stdout.readline().split()[1]) for _ in range(3)]  # of the process, of both threads
        path = e.scratch("exec.sysprof")
        with e.Background(e.SYSPROF, "record", "--wall", "--wall-cpu", "10%", "-d", 3, "-t", tids[2], "-o", path, stderr=subprocess.DEVNULL) as recorder:
            e.started_sampling(recorder, path)
            time.sleep(1)
            target.p.send_signal(signal.SIGUSR1)
            recorder.finish(timeout=60, check=0)
    _, rows = check_books(path)
    assert [row for row in rows if row["process"] == "thread_exec" and row["blocked_ns"] > 0.4 * NS], rows
    assert [row for row in rows if row["process"] == "loop" and row["running_ns"] > 0 and row["running_ns"] + row["runnable_ns"] > 0.3 * NS], rows


def write(path, text):
    e.write(path, str(text))


@contextlib.contextmanager
def frozen_group(*pids):
    """A control group of version 2 that is frozen, with these processes in it."""
    top = next((top for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                if os.path.exists(os.path.join(top, "cgroup.procs"))), None)
    if not top:
        raise e.Skip("there are no control groups of version 2")
    group = os.path.join(top, f"sysprof-frozen-{os.getpid()}")
    os.mkdir(group)
    try:
        for pid in pids:
            write(os.path.join(group, "cgroup.procs"), pid)
        write(os.path.join(group, "cgroup.freeze"), 1)
        with open(os.path.join(group, "cgroup.events"), encoding="utf-8") as events:
            e.wait_for(lambda: events.seek(0) == 0 and "frozen 1" in events.read(), what="a frozen group")
        yield
    finally:
        write(os.path.join(group, "cgroup.freeze"), 0)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        e.wait_for(lambda: removed(group), what="the end of " + group)


def test_a_frozen_group():
    """What is frozen is stopped, wherever it was: in its own code, or in a system call that waits."""
    need_visits()
    with e.Background("sleep", "100") as sleeper, e.Background(e.fixture("loop"), "100") as spinner:
        with frozen_group(sleeper.pid, spinner.pid):
            path, _ = recorded("--wall-cpu", "10%", "-d", 1, "-p", f"{sleeper.pid},{spinner.pid}")
    _, rows = check_books(path)
    assert len(rows) == 2, rows
    for row in rows:
        assert row["states"].get("stopped", 0) >= 0.99 * row["blocked_ns"] > 0, row


VFORKS = """
import ctypes, time
libc = ctypes.CDLL(None)
CLONE_VM, CLONE_VFORK, SIGCHLD = 0x100, 0x4000, 17
stack = ctypes.create_string_buffer(1 << 16)
child = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
sleep = ctypes.cast(libc.sleep, ctypes.c_void_p)
libc.clone(sleep, ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16) - 64), CLONE_VM | CLONE_VFORK | SIGCHLD, ctypes.c_void_p(2))
time.sleep(1)  # until it was visited after that, on a busy host too
"""


def test_a_parent_that_waits_for_its_vfork():
    """By clone(), as posix_spawn() does it. The kernel's function for it is a part of its caller."""
    need_visits()
    path, _ = recorded("--wall-cpu", "10%", "--no-inherit", "--", sys.executable, "-c", VFORKS)
    _, rows = check_books(path)
    states = max((row["states"] for row in rows), key=lambda states: states.get("child", 0))
    assert states.get("child", 0) >= 1.5 * NS, rows


e.main(globals())
