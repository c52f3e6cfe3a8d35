#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long soak
"""Windows of a session add up to one recording of the same stream.

rotate.c records the whole system in windows, and the same stream into a file, which it then reads as one
window: each sample, the CPU time of each thread, the memory of each process and the books have to be the
same. Beside it children come
and go, and Node.js makes a function every 40 ms.
"""
import os
import shutil

import libe2e as e

ROTATE = os.path.join(e.BUILD, "tests", "e2e", "rotate")
CHURN = os.path.join(os.path.dirname(__file__), "..", "fixtures", "jit", "churn.js")
PROMPT = 0.7  # share of the windows that are due: the last ones may be late where the machine is very busy


def rotate(seconds, milliseconds, *more):
    """What it says, as numbers."""
    e.need_root()
    log = e.scratch("storm.log")
    beside = [(e.fixture("storm"), "-g", "2000", "exec", "100000", "300", log),
              (e.fixture("storm"), "fork", "100000", "500", "/dev/null")]
    if shutil.which("node"):
        beside.append(("node", "--perf-basic-prof", "--expose-gc", CHURN, seconds + 5,
                       e.scratch("churn.log")))
    running = [e.Background(*command) for command in beside]
    try:
        result = e.run(ROTATE, seconds, milliseconds, e.scratch("windows.sysprof"),
                       *more, timeout=seconds + 120)
    finally:
        for background in running:
            background.p.kill()
            background.p.wait()
    print(result.out, result.err)
    assert result.status == 0, result
    return {name: float(value) for name, value in
            (line.split() for line in result.out.splitlines() if line.count(" ") == 1)}


def check(reported, seconds, milliseconds):
    windows = seconds * 1000 // milliseconds
    assert reported["windows"] + reported["refused_rotations"] >= PROMPT * windows and reported["windows"] >= 2, reported
    # names that had not come when their window was named
    assert reported["other_jit_names"] <= reported["samples"] / 100, reported
    assert reported["samples"] > 100, reported
    # of this program and of what ran beside it, at the start, every second and at the end
    assert reported["memory_readings"] > 2 * seconds, reported


@e.alone
def test_windows_add_up():
    check(rotate(3, 125), 3, 125)


@e.alone
@e.soak
def test_many_windows_add_up():
    check(rotate(60, 500), 60, 500)


def test_rates_add_up():
    """Each window has another rate: the books are exact all the same, and the CPU time is what it was."""
    reported = rotate(4, 250, "499,97,47,19,7")
    assert reported["windows"] + reported["refused_rotations"] >= PROMPT * 16 and reported["windows"] >= 2, reported
    assert reported["samples"] > 10, reported
    changes, cpus = reported["windows"], os.cpu_count()
    # at each end of a stretch a tick may be cut, as at the ends of a recording
    assert abs(reported["unexplained_ticks"]) <= 2 * cpus * (changes + 1), reported
    assert 0.5 * cpus * 4 * 7 < reported["due"] < 2 * cpus * 4 * 499, reported


@e.long
def test_shedding_adds_up():
    """What a session leaves out for a while changes names and stacks, never samples, CPU time or books."""
    reported = rotate(4, 200, "199,97", "shed")
    assert reported["windows"] + reported["refused_rotations"] >= PROMPT * 20 and reported["windows"] >= 2, reported
    assert reported["samples"] > 10, reported
    assert abs(reported["unexplained_ticks"]) <= 2 * os.cpu_count() * (reported["windows"] + 1), reported


e.main(globals())
