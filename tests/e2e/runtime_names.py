#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Runtimes that were started without any flag: their functions have names, files and lines, in the live profile and in a replay."""
import json
import sys

from libe2e import (Running, firefox_threads, folded, has_chain, long, main, need_root, record, scratch, share, sysprof,
                    user_part, write)
from librecorded import newer_python, nodes

PYTHON = """
import time, os
def leaf(n):
    t = 0
    for i in range(n):
        t += i * i
    return t
class A:
    def method(self, n):
        return leaf(n)
def key(x):
    return A().method(300)
def sorting():
    sorted(range(50), key=key)
def généré():
    for i in range(3):
        leaf(300)
        yield i
def main():
    open(sys.argv[1], "w").close()
    while True:
        sorting()
        list(généré())
import sys
main()
"""
LEAF_LINE = 1 + PYTHON[1:].splitlines().index("        t += i * i")

NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
class Shape {
  area(k) {
    let s = 0;
    for (let i = 0; i < k; i++)
      s += Math.sqrt(i) + JSON.stringify(i).length;
    return s;
  }
}
const callback = (x) => new Shape().area(x * 10) + fib(12);
function main() {
  require("fs").writeFileSync(process.argv[2], "");
  for (;;)
    [10, 20, 30].map(callback);
}
main();
"""


def stacks_of(pid):
    """(the stacks, a recording of them, a Firefox profile)"""
    paths = [scratch(f"names{suffix}") for suffix in (".folded", ".sysprof", ".json")]
    # the tables of its files are built when they are first met, and what is copied until then has no words of a runtime
    record("-p", pid, "-d", 0.5, "-o", paths[0])
    for seconds in 0.7, 2, 4, 8:
        record("-p", pid, "-F", 2999, "-d", seconds, *[x for path in paths for x in ("-o", path)])
        rows = folded(paths[0])
        if sum(count for _, count in rows) > 100:
            break
    assert sum(count for _, count in rows) > 100, "the host gave the program no CPU time"
    again = scratch("again.folded")
    sysprof("convert", paths[1], "-o", again, check=0)
    assert sorted(folded(again)) == sorted(rows), "a replay has other names"
    return rows, paths[2]


def check_counts(runtime, rows):
    """The profile's own count of the frames of its only runtime."""
    reported = json.loads(sysprof("report", scratch("names.sysprof"), "--json").out)["summary"]["runtimes"]
    print(f"  {reported}")
    assert [row["name"] for row in reported] == [runtime], reported
    unnamed = sum(count * frames.count(f"[{runtime}]") for frames, count in rows)
    assert reported[0]["stale"] + reported[0]["unknown"] == unnamed, unnamed
    assert reported[0]["frames"] > sum(count for _, count in rows) / 2


def named(rows, name):
    return share(rows, lambda frames: name in frames)


def check_python(command):
    need_root()
    with Running(*command, write(scratch("names.py"), PYTHON[1:])) as program:
        rows, firefox = stacks_of(program.pid)
    shares = {name: round(named(rows, name), 3) for name in ("<module>", "main", "sorting", "key", "A.method", "généré", "leaf")}
    print(f"  {command[0]}: {shares}, without a name {named(rows, '[CPython]'):.3f}")
    # what was on the stack before the process was looked at, and while its tables were built, has none
    assert shares["<module>"] > 0.85 and shares["main"] > 0.85, shares
    assert shares["key"] > 0.1 and shares["généré"] > 0.01, shares
    wrong = [frames for frames, _ in rows if "main" in frames and not has_chain(frames, "<module>", "main")]
    wrong += [frames for frames, _ in rows if "key" in frames and "main" in frames and not has_chain(frames, "main", "sorting")]
    wrong += [frames for frames, _ in rows if "A.method" in frames and "key" in frames and not has_chain(frames, "key", "A.method")]
    # the callback's frames are behind those of the function that calls it back
    wrong += [frames for frames, _ in rows if "key" in frames and has_chain(frames, "sorting", "key")]
    assert not wrong, wrong[0]
    # no loop of the interpreter is left where Python's frames are known
    left = [frames for frames, _ in rows if "main" in frames and any("_PyEval_EvalFrameDefault" in f for f in frames)]
    assert len(left) < 0.1 * len(rows), left[0]
    assert named(rows, "[CPython]") < 0.05, rows
    check_counts("CPython", rows)
    check_lines(firefox, program.pid, "leaf", scratch("names.py"), LEAF_LINE, 3)


def check_lines(path, pid, function, file, line, around):
    """Innermost frames of the function are at that line, mostly."""
    lines = []
    for thread in firefox_threads(path):
        if thread.pid == pid:
            lines += thread.leaf_lines(function)
    files = {f for f, _ in lines}
    near = [n for _, n in lines if n and abs(n - line) <= around]
    print(f"  {function}: {len(lines)} innermost frames, {len(near)} of them near line {line} of {files}")
    assert lines and files == {file} and len(near) > 0.9 * len(lines), (files, lines[:20])


def test_python():
    check_python([sys.executable])


@long
def test_newer_python():
    check_python([newer_python()])


def check_node(node):
    need_root()
    with Running(node, write(scratch("names.js"), NODE[1:])) as program:
        rows, _ = stacks_of(program.pid)
    check_counts("V8", rows)
    rows = [(frames, count) for frames, count in rows if any(f.startswith("node::LoadEnvironment") for f in frames)]
    shares = {name: round(named(rows, name), 3) for name in ("main", "callback", "fib", "area")}
    print(f"  {node}: {shares}, without a name {named(rows, '[V8]'):.3f}")
    assert shares["main"] > 0.8, shares
    assert shares["fib"] > 0.05 and shares["area"] > 0.1, shares
    wrong = [frames for frames, _ in rows if "fib" in frames and "main" in frames and "callback" not in frames]
    assert len(wrong) < 0.02 * len(rows), wrong[0]
    assert named(rows, "[V8]") < 0.05


def test_node():
    check_node(nodes()[0])


@long
def test_newer_node():
    check_node(nodes()[-1])


FORKING = """
import os, sys, time
def work(n):
    end = time.time() + n
    while time.time() < end:
        sum(i * i for i in range(1000))
def child():
    parent = os.getppid()
    while os.getppid() == parent:
        work(0.1)
open(sys.argv[1], "w").close()
while True:
    pid = os.fork()
    if not pid:
        child()
        os._exit(0)
    time.sleep(0.7)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
"""


def test_children_that_were_forked():
    """A child has its parent's interpreter, and is another process."""
    need_root()
    with Running(sys.executable, write(scratch("forking.py"), FORKING[1:])) as program:
        rows, _ = stacks_of(program.pid)
    print(f"  work {named(rows, 'work'):.3f}, child {named(rows, 'child'):.3f}")
    assert named(rows, "work") > 0.7 and named(rows, "child") > 0.7, rows[:3]


CHANGING = """
import mmap, sys
def work():
    sum(i * i for i in range(2000))
def main():
    open(sys.argv[1], "w").close()
    while True:
        m = mmap.mmap(-1, 1 << 16, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        work()
        m.close()
main()
"""


@long
def test_mappings_that_change():
    """Stacks that were walked with mappings of a moment before are cut where they differ, and the recording goes on."""
    need_root()
    with Running(sys.executable, write(scratch("changing.py"), CHANGING[1:])) as program:
        rows, _ = stacks_of(program.pid)
    print(f"  main {named(rows, 'main'):.3f}, work {named(rows, 'work'):.3f}")
    assert named(rows, "main") > 0.3 and named(rows, "work") > 0.3, rows[:3]


def test_another_program():
    """What was noted of a process is not taken for the program that it executes."""
    need_root()
    text = PYTHON.replace("    while True:\n", "    end = time.time() + 1.5\n    while time.time() < end:\n") + \
        "os.execv('/bin/sh', ['sh', '-c', 'while :; do :; done'])\n"
    with Running(sys.executable, write(scratch("execs.py"), text[1:])) as program:
        path = scratch("execs.folded")
        record("-p", program.pid, "-d", 3, "-o", path)
    rows = folded(path)
    mixed = [frames for frames, _ in rows if "main" in user_part(frames) and frames[0] == "sh"]
    assert any(frames[0] == "sh" for frames, _ in rows) and not mixed, mixed[:1]


main(globals())
