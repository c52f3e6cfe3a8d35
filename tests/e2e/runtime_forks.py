#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Children of fork live for some milliseconds: they have the names of their parents' functions from their first sample on."""
import sys

from libe2e import (Running, comms, firefox_threads, folded, long, main, need_root, record, scratch, sysprof, user_part,
                    write)
from librecorded import newer_python

# One child after the other, each of them for 20 to 50 ms; what they run their parent never does. Each makes a function of its own at the
# address at which its parent makes another one a moment later. "run" and "made" are only in children, "also" only in the parent.
PREFORKING = """
import os, sys, time
MADE = "def %s(until):\\n    n = 0\\n    while time.monotonic() < until:\\n        for i in range(200):\\n            n += i\\n"
kept = []
def make(name):
    names = {"time": time}
    exec(MADE % name, names)
    kept.append(names)
    return names[name]
def spin(until):
    x = 0
    while time.monotonic() < until:
        for i in range(200):
            x += i * i
def run(k):
    now = time.monotonic()
    spin(now + (20 + k * 7 % 31) / 1e3)
    if k % 4 == 3:
        make("made")(time.monotonic() + 0.01)
def grandchild(k):
    pid = os.fork()
    if not pid:
        run(k)
        os._exit(0)
    os.waitpid(pid, 0)
def serve():
    k = 0
    open(sys.argv[1], "w").close()
    while True:
        k += 1
        pid = os.fork()
        if not pid:
            (grandchild if k % 5 == 4 else run)(k)
            os._exit(0)
        if k % 4 == 3:
            make("also")(time.monotonic() + 0.01)
        os.waitpid(pid, 0)
serve()
"""

SHELLS = """
import os, subprocess, sys, time
def pause():
    time.sleep(0.002)
def start():
    subprocess.run(["/bin/sh", "-c", "i=0; while [ $i -lt 6000 ]; do i=$((i+1)); done"])
def serve():
    open(sys.argv[1], "w").close()
    while True:
        start()
        pause()
        if not os.fork():
            os.execv("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 6000 ]; do i=$((i+1)); done"])
        os.wait()
serve()
"""


def interpreted(frames):
    """The sample was taken while the interpreter ran, which is on the stack from its start on: not in exit, not in the first steps after
    the fork, where there is no stack or another one."""
    return any(f.startswith("Py_BytesMain") or f == "<module>" for f in frames) and not any("do_exit" in f for f in frames)


def plain(name):
    return name.removesuffix("_[?]")


def children_of_program(path, program):
    """[functions of each sample, outermost first] of each child."""
    result = []
    for thread in firefox_threads(path):
        if thread.pid != program.pid:
            samples = [[name for name, _ in frames] for _, frames in thread.samples()]
            result.append([frames for frames in samples if interpreted(frames)])
    return [samples for samples in result if samples]


def check_prefork(command):
    need_root()
    paths = [scratch(f"forks{suffix}") for suffix in (".json", ".folded", ".sysprof")]
    with Running(*command, write(scratch("forks.py"), PREFORKING[1:])) as program:
        # the tables of its files are built when they are first met
        record("-p", program.pid, "-d", 0.5, "-o", paths[1])
        for attempt in range(4):
            record("-p", program.pid, "-F", 1999, "-d", 1.5 + 2 * attempt, *[x for path in paths for x in ("-o", path)])
            children = children_of_program(paths[0], program)
            if len(children) >= 20 and sum(map(len, children)) >= 300:
                break
    samples = [frames for child in children for frames in child]
    assert len(children) >= 20 and len(samples) >= 300, "the host gave the program no CPU time"
    named = [frames for frames in samples if "run" in map(plain, frames) or "grandchild" in map(plain, frames)
             or "serve" in map(plain, frames)]
    first = [child[0] for child in children if child[0] in named]
    print(f"  {command[0]}: {len(children)} children, {len(samples)} samples, named {len(named) / len(samples):.3f}, "
          f"of the first ones {len(first) / len(children):.3f}")
    assert len(named) >= 0.95 * len(samples), next(frames for frames in samples if frames not in named)
    assert len(first) >= 0.9 * len(children)
    check_made(folded(paths[1]), samples)
    again = scratch("forks.again.folded")
    sysprof("convert", paths[2], "-o", again, check=0)
    assert sorted(folded(again)) == sorted(folded(paths[1])), "a replay has other names"


def check_made(rows, samples):
    """What the parent makes is not what its children make, at the same address: no name of it without a mark."""
    inner = [frames for frames, _ in rows if "run" in map(plain, frames)]
    wrong = [frames for frames in inner if "also" in frames]
    marked = [frames for frames in inner if "also_[?]" in frames]
    of_children = sum("made" in map(plain, frames) for frames in samples)
    print(f"  made by children: {of_children} samples; stacks with a mark {len(marked)}, wrong {len(wrong)}")
    assert not wrong, wrong[0]


def test_prefork():
    check_prefork([sys.executable])


@long
def test_newer_prefork():
    check_prefork([newer_python()])


def test_children_that_execute_another_program():
    """What a child has of its parent is not taken for the program that it executes."""
    need_root()
    path = scratch("shells.folded")
    with Running(sys.executable, write(scratch("shells.py"), SHELLS[1:])) as program:
        record("-p", program.pid, "-F", 1999, "-d", 2, "-o", path)
    rows = folded(path)
    print(f"  {comms(rows)}")
    shells = [frames for frames, _ in rows if frames[0] == "sh"]
    assert shells, "the host gave the program no CPU time"
    mixed = [frames for frames in shells if {"serve", "start", "pause", "<module>"} & set(map(plain, user_part(frames)))]
    assert not mixed, mixed[0]


main(globals())
