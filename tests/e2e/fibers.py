#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Stacks that are not the thread's: those that begin with a starter are complete, and those that CFI leads to are followed."""
import os
import re

from libe2e import (TOP, Background, fixture, folded, has_chain, long, main, need_root, new_scratch, read, record_cpu, run,
                    schedstat, scratch, share, total, wait_for)



def recorded(program, *arguments):
    """Rows with the innermost function, and the percentage of complete stacks. Of a program that runs already, because a copy
    of a stack, as its first milliseconds would have, ends where another stack begins.
    """
    need_root()
    path = new_scratch("fibers.folded")
    with Background(program, "60", *arguments) as running:
        wait_for(lambda: schedstat(running.pid)[0] > 1e6 or len(os.listdir(f"/proc/{running.pid}/task")) > 1, what="its thread")
        result = record_cpu(running.pid, 1, "-p", running.pid, "-o", path)
    complete = float(re.search(r"complete stacks: ([\d.]+)", result.err)[1])
    return [row for row in folded(path) if "leaf" in row[0]], complete


def check(rows, complete, *chain):
    right = share(rows, lambda frames: has_chain(frames, *chain))
    print(f"  {right:.3f} of {total(rows)} stacks are right, {complete} % are complete")
    assert total(rows) >= 20 and right >= 0.98, rows
    assert complete >= 95, complete


def test_context():
    rows, complete = recorded(fixture("fibers"), "context")
    check(rows, complete, "first", "second", "leaf")


@long
def test_context_of_a_static_program():
    """Its code takes the starter's address by another instruction."""
    program = scratch("static")
    run("gcc", "-O2", "-g", "-D_GNU_SOURCE", "-static", "-no-pie", "-o", program, f"{TOP}/tests/fixtures/fibers.c", check=0)
    rows, complete = recorded(program, "context")
    check(rows, complete, "__start_context", "first", "second", "leaf")


@long
def test_planted():
    """Nothing is above the starter: the thread's own functions are not its callers."""
    rows, complete = recorded(fixture("fibers"), "planted")
    check(rows, complete, "begin_planted", "first", "second", "leaf")
    assert not [frames for frames, _ in rows if "start_thread" in frames]


def test_noted():
    """To a stack of its own, and back; in both directions."""
    for where in "low", "high":
        rows, complete = recorded(fixture("fibers"), "noted", where)
        check(rows, complete, "start_thread", "run", "call_noted", "first", "second", "call_back", "leaf")


def test_noted_in_a_parent():
    """As an effect handler of OCaml: the new stack leads to a structure in memory, and that to the old stack."""
    for where in "low", "high":
        rows, complete = recorded(fixture("fibers"), "parent", where)
        check(rows, complete, "start_thread", "run", "call_by_parent", "first", "second", "leaf")


@long
def test_kept_in_rbx():
    """As OCaml does around calls of C that does not allocate."""
    for where in "low", "high":
        rows, complete = recorded(fixture("fibers"), "rbx", where)
        check(rows, complete, "start_thread", "run", "call_in_rbx", "first", "second", "leaf")


@long
def test_kept():
    for where in "low", "high":
        rows, complete = recorded(fixture("fibers"), "kept", where)
        check(rows, complete, "start_thread", "run", "call_kept", "first", "second", "leaf")


GREENLETS = """
import functools, sys, time
from greenlet import greenlet

end = time.monotonic() + float(sys.argv[1])

def leaf():
    return sum(range(20000))

def second():
    while time.monotonic() < end:
        leaf()
        one.switch()

def begin(_):
    two.switch()

def deep(depth):
    return deep(depth - 1) if depth else list(map(begin, [0]))

def go_on(depth):
    return functools.reduce(lambda a, b: go_on(depth - 1), [0, 0]) if depth else two.switch()

def first():
    list(map(deep, [3]))
    while time.monotonic() < end:
        go_on(6)

one, two = greenlet(first), greenlet(second)
one.switch()
"""


@long
def test_greenlets():
    """Greenlets share one C stack. A greenlet that began deep in another one, which has done something else since, ends with its
    own first function.
    """
    need_root()
    path = new_scratch("greenlets.folded")
    with Background("/usr/bin/python3", "-c", GREENLETS, "60") as running:
        wait_for(lambda: schedstat(running.pid)[0] > 1e8, what="its greenlets")
        result = record_cpu(running.pid, 1.5, "-p", running.pid, "-o", path)
    rows = [row for row in folded(path) if "leaf" in row[0]]
    right = share(rows, lambda frames: has_chain(frames, "second", "leaf") and not {"_start", "first", "deep", "go_on"} & set(frames))
    print(f"  {right:.3f} of {total(rows)} stacks are right")
    assert total(rows) >= 20 and right >= 0.97, rows
    assert float(re.search(r"complete stacks: ([\d.]+)", result.err)[1]) >= 95, result.err


def forked_by(pid):
    """A child of any of its threads."""
    children = [child for tid in os.listdir(f"/proc/{pid}/task") for child in read(f"/proc/{pid}/task/{tid}/children").split()]
    return children and int(children[0])


OTHER_STACK = "incomplete: on a stack of its own"


@long
def test_no_start():
    """The summary says that these cut stacks are on a stack of their own where that is sure: of a program's first thread, but
    not where it is on its stack, in other threads, or in a child that one of those has forked.
    """
    need_root()
    for how, sure in ("bare", True), ("thread", False), ("forked", False):
        with Background(fixture("fibers"), "60", how) as running:
            wait_for(lambda: schedstat(running.pid)[0] > 1e6 or len(os.listdir(f"/proc/{running.pid}/task")) > 1, what="its thread")
            spins = running.pid if how != "forked" else wait_for(lambda: forked_by(running.pid), what="its child")
            result = record_cpu(spins, 0.7, "-p", running.pid, "-o", new_scratch("start.folded"))
        rows = [row for row in folded(scratch("start.folded")) if "leaf" in row[0]]
        assert total(rows) >= 20 and share(rows, lambda frames: has_chain(frames, "first", "second", "leaf")) >= 0.98, rows
        assert (OTHER_STACK in result.err) == sure and "complete stacks: 0.0 %" in result.err, (how, result.err)
    with Background(fixture("chain-no-fp"), "60") as running:
        result = record_cpu(running.pid, 0.7, "-p", running.pid, "--call-graph", "fp", "-o", new_scratch("start.folded"))
    assert "incomplete: " in result.err and OTHER_STACK not in result.err, result.err


if __name__ == "__main__":
    main(globals())
