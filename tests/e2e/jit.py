#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 400
"""Code that is made as it runs has the name that it had when the sample was taken.

A fixture makes one function after the other at one address and knows when each ran: its log is the judge.
"""
import os
import signal
import time

from libe2e import (SANITIZED, FirefoxThread, Fixture, Skip, firefox_extra, folded, load_json, main, need_root,
                    record, run, scratch, share, sysprof, wait_for, Background, SYSPROF)

TIERS = 8  # include/sysprof/profile.h; behind them are the same tiers with a doubt


class Leaf:
    """The innermost frame of a sample."""

    def __init__(self, when, name, ambiguous, jit):
        self.when, self.name, self.ambiguous, self.jit = when, name, ambiguous, jit


def leaves(path, pid):
    profile = load_json(path)
    shared = profile["shared"]
    frames, table, functions = shared["frameTable"], shared["stackTable"], shared["funcTable"]
    jit = next(i for i, c in enumerate(profile["meta"]["categories"]) if c["name"] == "JIT")
    for thread in (FirefoxThread(profile, t) for t in profile["threads"]):
        if thread.pid != pid:
            continue
        for stack, when in zip(thread.stacks, thread.times):
            if stack is None:
                continue
            frame = table["frame"][stack]
            name = shared["stringArray"][functions["name"][frames["func"][frame]]]
            yield Leaf(thread.start_ns + round(when * 1e6), name, frames["subcategory"][frame] >= TIERS,
                       frames["category"][frame] == jit)


class Judged:
    def __init__(self, samples, spans):
        """Only samples from within a span: between two there is no code at the address."""
        self.right = self.wrong = self.unnamed = self.flagged = self.flagged_wrong = 0
        self.wrong_at = []
        at = 0
        for leaf in samples:
            while at < len(spans) and spans[at][2] < leaf.when:
                at += 1
            if not leaf.jit or at == len(spans) or leaf.when < spans[at][1]:
                continue
            name = spans[at][0]
            if leaf.ambiguous:
                self.flagged += 1
                self.flagged_wrong += leaf.name != name
            elif leaf.name == name:
                self.right += 1
            elif leaf.name.startswith(("[", "0x")):
                self.unnamed += 1
            else:
                self.wrong += 1
                self.wrong_at.append((leaf.when - spans[at][1], leaf.name, name))
        self.count = self.right + self.wrong + self.unnamed + self.flagged

    def __repr__(self):
        return (f"{self.count} samples: {self.right} right, {self.wrong} wrong, {self.unnamed} unnamed, {self.flagged} flagged "
                f"({self.flagged_wrong} of these wrong) {self.wrong_at[:5]}")


def spans_of(facts):
    return [(name, int(start), int(end)) for name, start, end in facts.all("span")]


def same_address(*options, seconds=2.5, hz=999, stop=None):
    """The fixture from before the recording to after it, or all of it if it tells late."""
    need_root()
    path = scratch("jitreuse.json")
    with Fixture("jitreuse", *options, seconds + 0.6) as f:
        f.wait_facts("start")
        with Background(SYSPROF, "record", "-p", f.pid, "-F", hz, "-o", path) as recorder:
            if stop:
                time.sleep(1)
                recorder.signal(signal.SIGSTOP)
                begin = time.monotonic_ns()
                time.sleep(stop)
                stopped = begin, time.monotonic_ns()
                recorder.signal(signal.SIGCONT)
            result = recorder.finish(check=0)
        facts = f.finish(check=0)
        judged = Judged(leaves(path, f.pid), spans_of(facts))
    print(f"  {' '.join(map(str, options))}: {judged}")
    print("  " + next(line for line in result.err.splitlines() if "JIT code" in line).strip())
    return (judged, path, facts, f.pid, stopped) if stop else judged


# ---- one address, one function after the other --------------------------------------------------

def test_two_functions_at_one_address():
    judged = same_address("-p", 500, "-n", 1000)
    assert judged.count > 1000 and judged.wrong == 0, judged
    assert judged.unnamed <= 0.01 * judged.count and judged.flagged <= 0.01 * judged.count, judged


def test_the_same_told_by_a_jitdump():
    """Its times are exact: 0 wrong and 0 flagged of at least 2000 samples, told when the process ends."""
    judged = same_address("-d", "-p", 100, "-f", scratch(""), seconds=3)
    assert judged.count >= 2000, judged
    assert judged.wrong == judged.unnamed == judged.flagged == 0, judged


def test_two_milliseconds_a_function():
    """Where the file is reopened for each line, too."""
    for options in (), ("-r",):
        judged = same_address("-p", 2, *options)
        assert judged.count > 1000 and judged.wrong == 0, judged
        assert judged.unnamed <= 0.01 * judged.count, judged
        assert 1 <= judged.flagged < 0.2 * judged.count, judged


def test_sysprof_is_stopped_for_a_second():
    """Nobody knows when in that second a line was written."""
    judged, path, facts, pid, (begin, end) = same_address("-p", 2, stop=1)
    assert judged.wrong == 0, judged
    spans = [s for s in spans_of(facts) if s[1] > begin + 10000000 and s[2] < end - 10000000]
    during = Judged(leaves(path, pid), spans)
    print(f"  in that second: {during}")
    assert during.count == during.flagged and during.count > 100, during


def test_snapshots():
    """Each line replaces the file: what it has holds back to the one before, and is in doubt there."""
    judged = same_address("-p", 200, "-s", "-n", 1000)
    assert judged.wrong == 0 and judged.count > 1000, judged


if __name__ == "__main__":
    main(globals())
