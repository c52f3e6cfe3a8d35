#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
How many functions and helpers a tick calls for a frame more, and a filtered one at all: where returns are slow that is most of
what it costs.

The programs of build/counted/sysprof count what they call (tests/bench/counted_calls.bpf.h). No host changes the counts; two
depths of one program differ by frames that are all alike.
"""
import os
import re
import shutil
import subprocess
import sys

from libe2e import BUILD, Background, Skip, fixture, main, need_root, new_scratch, schedstat, started_sampling, wait_for

CPU = max(os.sched_getaffinity(0))
SHALLOW, DEEP = 12, 76
SAMPLES = 600  # of a reading
NODE = ("function deep(n, f) { return n ? deep(n - 1, f) + 1 : f(); }"
        "function work() { let x = 0; for (let i = 0; i < 1e6; i++) x += i % 7; return x; }"
        "for (;;) deep(DEPTH, work);")
PYTHON = """
def deep(n):
    return deep(n - 1) + 1 if n else sum(i % 7 for i in range(100000))
while True:
    deep(DEPTH)
"""


class Counts:
    """The counts of a running recording: functions called, helpers called, samples; helpers of ticks without one, and these."""

    def __init__(self, pid):
        self.query = subprocess.Popen([os.path.join(BUILD, "tests/bench/bpf_maps")], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, bufsize=1)
        self.line()
        numbers = set()
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            try:
                with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as f:
                    numbers.update(re.findall(r"^map_id:\s+(\d+)", f.read(), re.M))
            except OSError:
                continue
        self.map = next(n for n in numbers if self.line("name", n) == "=.data.counted")

    def line(self, *words):
        if words:
            self.query.stdin.write(" ".join(words) + "\n")
        return self.query.stdout.readline().strip()

    def read(self):
        words = [int(w) for w in self.line("words", self.map, "0").split()]
        return words[:3], words[6:8]

    def close(self):
        self.query.communicate()


class Reading:
    """What a sample has called, over and over, until it does so no less: then the tables of the target are there."""

    def __init__(self, counts):
        self.counts, self.before, self.seen = counts, counts.read()[0], []

    def is_steady(self):
        """Three times one after the other, of so many samples each, it is the same."""
        now = self.counts.read()[0]
        calls, helpers, samples = (b - a for a, b in zip(self.before, now))
        if samples < SAMPLES:
            return False
        self.before = now
        self.seen.append((calls / samples, helpers / samples))
        last = self.seen[-3:]
        return len(last) == 3 and all(max(each) - min(each) <= 0.5 + 0.03 * min(each) for each in zip(*last))


def counts_of(*command):
    """Of a sample: functions called, helpers called."""
    path = new_scratch("counted.sysprof")
    with Background(*command, preexec_fn=lambda: os.sched_setaffinity(0, {CPU})) as target:
        # of JavaScript, until it is compiled
        wait_for(lambda: schedstat(target.pid)[0] > (6e8 if command[0] == "node" else 2e8), what="a target that runs")
        with Background(os.path.join(BUILD, "counted/sysprof"), "record", "-q", "-p", target.pid, "-F", "2999", "-C", CPU,
                        "-o", path) as recorder:
            started_sampling(recorder, path)
            counts = Counts(recorder.pid)
            reading = Reading(counts)
            try:
                wait_for(reading.is_steady, what="counts that stay")
            finally:
                print(f"  calls and helpers in a sample: {', '.join('%.1f %.1f' % seen for seen in reading.seen)}")
            counts.close()
    return reading.seen[-1]


def assert_few(calls, helpers, command, whole=None):
    """`command`, by depth: at most so many for a frame more; `whole`: helpers of a whole sample of the shallow one."""
    need_root()
    shallow, deep = counts_of(*command(SHALLOW)), counts_of(*command(DEEP))
    more = [(b - a) / (DEEP - SHALLOW) for a, b in zip(shallow, deep)]
    print(f"  {shallow[0]:.1f} calls and {shallow[1]:.1f} helpers in a sample; for a frame more {more[0]:.2f} and {more[1]:.2f}")
    assert more[0] <= calls and more[1] <= helpers, (shallow, deep)
    assert whole is None or shallow[1] <= whole, shallow
    # and they are counted at all
    assert shallow[0] >= 4 and shallow[1] >= 3 and deep[0] - shallow[0] >= 5, (shallow, deep)


def test_tables():
    """0.26 calls: a run of four frames is one. A whole sample has 7 helpers."""
    assert_few(0.5, 0.2, lambda depth: (fixture("deep-no-fp"), depth, "60"), whole=8)


def test_frame_pointers_and_notes_of_v8():
    """0.25 calls."""
    if not shutil.which("node"):
        raise Skip("needs node")
    assert_few(0.6, 0.3, lambda depth: ("node", "-e", NODE.replace("DEPTH", str(depth))))


def test_notes_of_python():
    """0.25 calls, and 0.14 helpers: its frames are read a kilobyte at a time."""
    assert_few(0.6, 0.3, lambda depth: (sys.executable, "-c", PYTHON.replace("DEPTH", str(depth))))


def test_filtered_ticks():
    """Of a process that is no target by any kind of name: the clock and the task."""
    need_root()
    path = new_scratch("filtered.sysprof")
    names = [f"--{kind}=65533" for kind in ("comm", "exe", "user", "unit", "service")]
    with Background(fixture("loop"), "60", preexec_fn=lambda: os.sched_setaffinity(0, {CPU})), \
            Background(os.path.join(BUILD, "counted/sysprof"), "record", "-q", *names, "-F", "2999", "-C", CPU, "-o", path) as recorder:
        started_sampling(recorder, path)
        counts = Counts(recorder.pid)
        seen, before = [], counts.read()[1]

        def is_least():
            """Without one of others that run on that CPU for a moment, and are decided about."""
            nonlocal before
            now = counts.read()[1]
            helpers, ticks = (b - a for a, b in zip(before, now))
            if ticks >= 20:
                seen.append(helpers / ticks)
                before = now
            return seen and seen[-1] <= 2.05

        wait_for(is_least, what="ticks with few calls")
        counts.close()
    print(f"  helpers in a filtered tick: {', '.join('%.2f' % each for each in seen)}")
    # and they are counted at all
    assert seen[-1] >= 2, seen


if __name__ == "__main__":
    main(globals())
