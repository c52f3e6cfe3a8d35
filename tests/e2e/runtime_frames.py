#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long soak
"""Stacks of CPython in recordings, frame for frame, against two oracles that sysprof cannot see.

Programs that spin at the bottom of a stack that they have reported (tests/fixtures/cpython/spans.py): each sample from within such
a time must have those functions, files and lines. And programs that run with -X perf, whose map is taken away: at any
instant each Python function has a trampoline among the native frames, and there the frame that is named must be.

PYTHONS="NAME=COMMAND …" and SECONDS=N measure others, and more.
"""
import bisect
import os

from libe2e import Skip, long, main, need_root, record, soak, sysprof
from libframes import Spans, end, fresh, samples_of, start, wait_for_word, with_looks
from runtime_cpython import PROGRAMS, pythons

SECONDS = float(os.environ.get("SECONDS", 1.5))
AT_ANY_INSTANT = ["recursion", "generators", "callbacks", "threads", "coroutines", "made", "collecting"]
EQUAL = ("equal", "equal, truncated, and said so")
UNNAMED = "equal, some of them unnamed or marked"
EARLY = "before the process was looked at"


def groups(things):
    """Of three, which are recorded at a time."""
    return [things[i:i + 3] for i in range(0, len(things), 3)]


def recorded(running, seconds, name):
    """The samples of processes that run, and of their children. What is recorded first makes their tables known."""
    path, text, pids = fresh(name + ".sysprof"), fresh(name + ".json"), ",".join(str(p.pid) for p in running)
    record("-p", pids, "-d", 0.5, "-o", path)
    record("-p", pids, "-d", seconds, "-F", 2999, "-o", path, timeout=seconds + 60)
    sysprof("convert", path, "-o", text, check=0)
    return sorted(samples_of(text), key=lambda sample: sample.when)


class Result:
    def __init__(self):
        self.classes, self.examples = {}, []

    def add(self, known, kind, *example):
        if not known and kind not in EQUAL:
            kind = EARLY
        self.classes[kind] = self.classes.get(kind, 0) + 1
        if kind not in (*EQUAL, EARLY) and len([e for e in self.examples if e[0] == kind]) < 2:
            self.examples.append((kind, *example))

    def total(self):
        """The samples of processes that had been looked at."""
        return sum(self.classes.values()) - self.classes.get(EARLY, 0)

    def show(self, what):
        total = self.total()
        print(f"  {what}: {total} samples: " + ", ".join(f"{n} {kind}" for kind, n in sorted(self.classes.items(), key=lambda e: -e[1])))
        for example in self.examples:
            print(f"    {example}")
        return total

    def share(self, *kinds):
        return sum(self.classes.get(kind, 0) for kind in kinds) / max(1, self.total())


# ---- stacks that are reported ----------------------------------------------------------------------------------

def class_of(frames, reported):
    ours = [(f.name, f.file, f.line) for f in frames]
    reported = [tuple(frame) for frame in reported]
    if ours == reported:
        return "equal"
    if not ours:
        return "without frames of Python"
    if ours[0][0] == "[truncated]":
        ours = ours[1:]
        if reported[len(reported) - len(ours):] == ours:
            return EQUAL[1]
    if len(ours) == len(reported):
        if all(a == b or not f.named or f.ambiguous for a, b, f in zip(ours, reported, frames)):
            return UNNAMED
        if [a[:2] for a in ours] == [b[:2] for b in reported]:
            return "another line"
    return "wrong"


def class_in_subinterpreter(frames, reported):
    """It logs its own frames. In 3.11 a thread has one state in its key, that of the interpreter that it began with."""
    ours = [(f.name, f.file, f.line) for f in frames]
    reported = [tuple(frame) for frame in reported]
    if ours[-len(reported):] == reported:
        return "equal"
    if ours and not any(f.file == "<string>" for f in frames):
        return "the frames around it alone"
    return class_of(frames, reported)


def compare_reported(command, processes, seconds, classify=class_of, result=None):
    """`processes`: the programs of each."""
    result = result or Result()
    for group in groups(processes):
        logs, running = [fresh(f"spans-{programs[-1]}") for programs in group], []
        try:
            for programs, log in zip(group, logs):
                running.append(start(command, os.path.join(PROGRAMS, "spans.py"), log, 3600, *programs))
            for p in running:
                wait_for_word(p)
            samples = recorded(running, seconds * len(group) / len(processes), f"told-{group[0][-1]}")
        finally:
            for p in running:
                end(p)
        reported = [(programs, Spans(log + ".*")) for programs, log in zip(group, logs)]
        for sample, known in with_looks(samples):
            for programs, spans in reported:
                stack = spans.at(sample.tid, sample.when)
                if stack:
                    frames = sample.of_runtime()
                    result.add(known, classify(frames, stack), programs[-1], frames, stack[-len(frames) - 1:])
    return result


def check_reported(processes, seconds, least):
    need_root()
    for version, command in pythons().items():
        result = None
        for _ in range(4):  # where others have the CPU
            result = compare_reported(command.split(), processes, seconds, result=result)
            if result.total() > least:
                break
        total = result.show(f"{version}, {', '.join(sum(processes, []))}")
        assert total > least, total
        assert not result.classes.get("wrong") and not result.classes.get("another line"), version
        # on a busy host functions that live for a moment may be gone when they are read
        assert result.share(*EQUAL) >= (0.99 if least > 1000 else 0.8), version
        assert result.share(*EQUAL, UNNAMED) >= 0.99, version
    if "PYTHONS" not in os.environ and len(pythons()) < 2:
        raise Skip(f"only {list(pythons())}")


REPORTED = ["forks", "recursion", "closures", "coroutines", "generators", "exceptions", "through_c", "collecting", "threads"]


def test_reported():
    check_reported([REPORTED], SECONDS, 300)


@soak
def test_reported_for_long():
    check_reported([[program] for program in REPORTED], 8 * SECONDS, 2000)


@long
def test_long_chains():
    """What does not fit is said, where it is missing."""
    check_reported([["deep"]], SECONDS / 2, 50)


def test_subinterpreters():
    need_root()
    for version, command in pythons().items():
        result = None
        for _ in range(6):  # where others have the CPU
            result = compare_reported(command.split(), [["subinterpreters"]], SECONDS / 2, class_in_subinterpreter, result)
            if result.total() > 10:
                break
        total = result.show(f"{version}, subinterpreters")
        assert total > 10, total
        assert not result.classes.get("wrong") and not result.classes.get("another line"), version
        # each lives for a moment, and with it its code
        assert version == "3.11" or result.share("equal") >= 0.5, version


# ---- any instant -----------------------------------------------------------------------------------------------

# the map that sysprof would name the functions by
HIDE = """
import os, runpy, sys
path = f"/tmp/perf-{os.getpid()}.map"
fd = os.open(path, os.O_RDONLY)
os.unlink(path)
os.write(1, b"%d\\n" % fd)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Map:
    """Where the trampolines are."""

    def __init__(self, path):
        self.rows = []
        with open(path, encoding="utf-8") as f:
            for line in f:
                begin, size, name = line.rstrip("\n").split(" ", 2)
                self.rows.append((int(begin, 16), int(size, 16), name))
        self.rows.sort()

    def at(self, frame):
        """The name of the trampoline that a frame is in, or None."""
        if frame.runtime or not frame.name.startswith("0x"):
            return None
        address = int(frame.name, 16)
        i = bisect.bisect(self.rows, address, key=lambda row: row[0]) - 1
        return self.rows[i][2] if i >= 0 and address <= self.rows[i][0] + self.rows[i][1] else None


# at some instruction of a loop's beginning or end its frame is in the chain without the mark that the loop puts behind it
BESIDE = "the innermost frame stands at its caller's loop"


def class_at_any_instant(frames, trampolines):
    """
    Each function directly behind its trampoline. 3.13 runs an __init__ in the loop of its caller all the same.
    """
    theirs = [(i, name) for i, name in enumerate(map(trampolines.at, frames)) if name]
    ours = [(i, f"py::{f.name}:{f.file}") for i, f in enumerate(frames) if f.runtime]
    if not ours:
        return "without frames of Python" if theirs else "no function of Python"
    is_cut = ours[0][1].startswith("py::[truncated]")
    ours = ours[is_cut:]
    if not ours:
        return "no chain of frames, and said so"
    after = {i + 1: name for i, name in theirs}
    if any(not f.named for f in frames if f.runtime):
        named = [(i, name) for i, name in ours if frames[i].named]
        return "unnamed" if all(after.get(i, name) == name for i, name in named) else "wrong"
    if any(after.get(i, name) != name for i, name in ours):
        return "wrong"
    alone = [name for i, name in ours if i not in after and ".__init__:" not in name]
    if alone and after and min(after) < ours[0][0] + 1:
        return BESIDE if [name for i, name in ours] == [name for _, name in theirs] or alone[-1] == theirs[-1][1] else "wrong"
    at = {i for i, _ in ours}
    missing = [i for i in after if i not in at]
    if not missing:
        return "the native stack is cut" if alone else EQUAL[1] if is_cut else "equal"
    if missing == [max(after)] and missing[0] > max(at):
        return "the innermost function is being entered or left"
    if is_cut and max(missing) < min(at):
        return EQUAL[1]
    return "misplaced"


def compare_at_any_instant(command, programs, seconds, result):
    result = result or Result()
    for group in groups(programs):
        running, fds = [], []
        try:
            for program in group:
                running.append(start(command, "-X", "perf", "-c", HIDE, os.path.join(PROGRAMS, "running.py"), program, 1))
            for p in running:
                fds.append(int(wait_for_word(p)))
                wait_for_word(p)
            samples = recorded(running, seconds * len(group) / len(programs), f"instant-{group[0]}")
            trampolines = {p.pid: Map(f"/proc/{p.pid}/fd/{fd}") for p, fd in zip(running, fds)}
        finally:
            for p in running:
                end(p)
        program_of = {p.pid: program for p, program in zip(running, group)}
        for sample, known in with_looks(samples):
            frames, at = sample.frames, trampolines[sample.pid].at
            result.add(known, class_at_any_instant(frames, trampolines[sample.pid]), program_of[sample.pid],
                       [at(f) or (f if f.runtime else f.name) for f in frames[-8:]])
    return result


def check_at_any_instant(programs, seconds, least):
    need_root()
    able = {version: command for version, command in pythons().items() if version[:4] not in ("3.11",)}
    if not able:
        raise Skip("no Python has -X perf")
    for version, command in able.items():
        result = None
        for _ in range(4):  # where others have the CPU
            result = compare_at_any_instant(command.split(), programs, seconds, result)
            if result.total() > least:
                break
        total = result.show(f"{version}, {', '.join(programs)}")
        assert total > least, total
        assert not result.classes.get("wrong") and not result.classes.get("misplaced"), version
        assert result.share(*EQUAL, "the innermost function is being entered or left", "no function of Python", "unnamed") >= 0.97, version
        assert result.classes.get(BESIDE, 0) <= max(1, total // 300), version  # 0.05 to 0.11 % were seen


def test_at_any_instant():
    check_at_any_instant(AT_ANY_INSTANT[:3], SECONDS, 300)


@soak
def test_at_any_instant_for_long():
    check_at_any_instant(AT_ANY_INSTANT, 10 * SECONDS, 2000)


if __name__ == "__main__":
    main(globals())
