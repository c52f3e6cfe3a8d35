#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""The holder of a lock: of programs that write down themselves which thread had it when, the one that had it, and never another."""
import concurrent.futures
import os
import shutil
import struct

import libe2e as e
from librecorded import RUNTIMES
from libwall import need_visits, report

SECONDS = 4
TURNS = os.path.join(e.TOP, "tests/fixtures/cpython/turns.py")
VISIT, FUTEX, KERNEL_LOCK = 6, 202, 0x40


def visits_of(path):
    """Threads that wait for a lock: (thread, begin and end of the visit, holder)."""
    for kind, _, end, body in e.recording_events(path):
        if kind == VISIT:
            begin, *_, holder, _, call, found = struct.unpack_from("<QQQQQQIIiI", body)
            pid, tid = struct.unpack_from("<II", body, 96)
            if tid != pid and (call == FUTEX or found & KERNEL_LOCK):
                yield tid, begin, end, holder


def recorded(name, *command):
    """Such visits at which one thread certainly had the lock, with that thread."""
    need_visits()
    path = e.scratch(f"{name}.sysprof")
    out = e.record("--wall", "--wall-cpu", "10%", "-o", path, "--", *command).out
    had = [tuple(map(int, line.split()[1:])) for line in out.splitlines() if line.startswith("had ")]
    # a thread can lose the GIL between its reading of the clock and the function that keeps it
    had = [(tid, since, until) for tid, since, until in had
           if not any(other != tid and begin < until and end > since for other, begin, end in had)]
    assert len({tid for tid, *_ in had}) >= 2, had
    visits = []
    for tid, begin, end, holder in visits_of(path):
        had_it = [taker for taker, since, until in had if since <= begin and end <= until and taker != tid]
        if had_it:
            visits.append((tid, holder, had_it[0]))
    assert len(visits) > 100, visits
    return path, visits


def check(name, *command):
    path, visits = recorded(name, *command)
    right = sum(holder == truth for _, holder, truth in visits)
    wrong = [visit for visit in visits if visit[1] not in (0, visit[2])]
    print(f"  {name}: {len(visits)} visits, {right} with the holder, {len(wrong)} with another thread")
    assert not wrong, wrong
    assert right >= 0.95 * len(visits)
    held = {row["tid"]: row["ns"] for row in report(path, "holder")["rows"] if "holder" in row}
    takers = {truth for *_, truth in visits}
    assert sum(held[tid] for tid in takers) >= 0.95 * sum(held.values()) >= SECONDS * 1000000000, held


def check_all(programs):
    """By name, all at a time: they mostly wait."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: check(name, *programs[name]), programs))


def turns(kind, seconds=SECONDS):
    return e.fixture("turns"), seconds, kind


def test_mutexes_of_glibc():
    check_all({kind: turns(kind) for kind in ("mutex", "pi", "recursive")})


def test_mutexes_of_musl():
    """Those that have an owner: not the normal kind."""
    if not shutil.which("musl-gcc"):
        raise e.Skip("there is no musl-gcc")
    program = e.scratch("turns-musl")
    e.run("musl-gcc", "-O1", "-g", "-static", "-D_GNU_SOURCE", "-o", program, os.path.join(e.TOP, "tests/fixtures/turns.c"), check=0)
    check_all({"musl-" + kind: (program, SECONDS, kind) for kind in ("recursive", "pi")})
    _, visits = recorded("musl-mutex", program, SECONDS, "mutex")
    assert not [visit for visit in visits if visit[1]], visits


def need_blocker():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise e.Skip("the kernel has no BTF")
    with open("/sys/kernel/btf/vmlinux", "rb") as f:
        if b"\0blocker\0" not in f.read():
            raise e.Skip("this kernel does not have what a task waits for (6.16, CONFIG_DETECT_HUNG_TASK_BLOCKER)")
    if e.run(*turns("pipe", 0)).status:
        raise e.Skip("no userfaultfd for pages that the kernel reads")


def test_locks_of_the_kernel():
    need_blocker()
    check_all({kind: turns(kind) for kind in ("pipe", "file")})


def test_the_gil():
    programs = {}
    for command in filter(os.path.exists, ("/usr/bin/python3", os.path.join(RUNTIMES, "python/run"))):
        version = e.run(command, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", check=0).out.strip()
        if (3, 11) <= tuple(map(int, version.split("."))) <= (3, 15):
            programs["python" + version] = command, TURNS, SECONDS
    check_all(programs)
    if not programs:
        raise e.Skip("there is no Python of 3.11 to 3.15")


e.main(globals())
