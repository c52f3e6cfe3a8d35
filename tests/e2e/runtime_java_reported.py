#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long soak
"""Stacks of Java in recordings, frame for frame, against the program's own log, which sysprof cannot see.

Programs that spin at the bottom of a stack that they have reported, by Throwable.getStackTrace (tests/fixtures/java/Spans.java): each
sample from within such a time must have those methods, files and lines, compiled, inlined and interpreted. The JVM has one flag, which
makes the stacks that it reports complete: -XX:+ShowHiddenFrames.

JDKS=DIR has more of them; SECONDS=N makes the recordings longer; SHOW=N prints N examples of differences.
"""
import collections
import os
import re
import time

from libe2e import long, main, need_root, record, soak, sysprof
from libframes import Spans, end, fresh, samples_of, start, wait_for_word
from libjava import MAJOR, SOURCES, compiled, jdk, jdks

SECONDS = float(os.environ.get("SECONDS", 1.5))
SHOW = int(os.environ.get("SHOW", 3))
PROGRAMS = ["recursion", "inlining", "lambdas", "interfaces", "exceptions", "through", "garbage", "threads"]
FLAGS = ["-Xmx256m", "-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"]
WARM = 1.5  # s: from then on a process's tables are there


def spins_at():
    with open(os.path.join(SOURCES, "Spans.java"), encoding="utf-8") as f:
        return 1 + next(i for i, line in enumerate(f) if line.endswith("// SPINS_AT\n"))


def without_address(name):
    """Of a hidden class: Spans$$Lambda$14/0x0000000800c03000, or with a plus sign."""
    return re.sub(r"[/+]0x[0-9a-f]+", "", name)


def of_java(frames):
    """(class.method, file, line, marked): what is not a method, such as a stub of the JVM, has its name in brackets."""
    found = []
    for frame in frames:
        if not frame.runtime or (frame.name.startswith("[") and frame.name not in ("[HotSpot]", "[truncated]")):
            continue
        found.append((frame.name, os.path.basename(frame.file or ""), frame.line or 0,
                      frame.ambiguous))
    return found


def is_same(ours, theirs):
    return ours[0] == theirs[0] and (ours[1:3] == theirs[1:] or not theirs[2])


def class_of(ours, reported):
    if not ours:
        return "without frames of Java"
    if ours[-1][:2] == reported[-1][:2] and ours[-1][2] == reported[-1][2] + 1:
        # between two places that the compiler has written down: the next one is the call behind the loop
        ours = ours[:-1] + [(*reported[-1], ours[-1][3])]
    if len(ours) == len(reported) and all(map(is_same, ours, reported)):
        return "equal"
    if any(frame[0] == "[HotSpot]" for frame in ours):
        return "without a name"
    if len(ours) < len(reported) and all(map(is_same, ours[::-1], reported[::-1])):
        return "cut"
    if any(frame[3] for frame in ours):
        return "marked"
    if [frame[0] for frame in ours] == [frame[0] for frame in reported]:
        return "another line"
    return "wrong"


def compare(home, processes, seconds, classes, examples):
    """`processes`: the programs of each. All of them are in one recording."""
    path, text = fresh("told.sysprof"), fresh("told.json")
    logs, running = {}, []
    try:
        for programs in processes:
            log = fresh(f"spans-{programs[-1]}")
            running.append(start([os.path.join(home, "bin/java"), *FLAGS, "-cp", compiled("Spans"), "Spans", log + ".log"], *programs))
            logs[log] = programs
        for p in running:
            wait_for_word(p)
        time.sleep(0.5)
        record("-p", ",".join(str(p.pid) for p in running), "-d", seconds + WARM, "-F", 2999, "-o", path, timeout=seconds + 60)
    finally:
        for p in running:
            end(p)
    sysprof("convert", path, "-o", text, check=0)
    samples, line = sorted(samples_of(text), key=lambda sample: sample.when), spins_at()
    for log, programs in logs.items():
        spans, first = Spans(log + ".*"), None
        for sample in samples:
            reported = spans.at(sample.tid, sample.when)
            if not reported:
                continue
            first = first or sample.when
            if sample.when < first + WARM * 1e9:
                continue
            reported = [(without_address(name), file, at) for name, file, at in reported]
            reported[-1] = *reported[-1][:2], line
            ours = of_java(sample.frames)
            kind = class_of(ours, reported)
            classes[programs[-1]][kind] += 1
            if kind != "equal" and len(examples) < SHOW:
                examples.append((kind, programs, ours, reported, sample.frames))


def check(major, home, processes, seconds, least):
    need_root()
    by_process, examples = collections.defaultdict(collections.Counter), []
    for _ in range(4):  # where others have the CPUs
        compare(home, processes, seconds, by_process, examples)
        if all(by_process[programs[-1]].total() >= least / len(processes) for programs in processes):
            break
    classes = sum(by_process.values(), collections.Counter())
    total = classes.total()
    print(f"  JDK {major}: {total} samples: " + ", ".join(f"{n} {kind}" for kind, n in classes.most_common()), flush=True)
    for example in examples:
        print(f"    {example}")
    assert total >= least, total
    assert not classes["wrong"] and not classes["another line"], classes
    assert classes["equal"] >= 0.99 * total, classes


def check_all(majors):
    for major in majors:
        check(major, jdk(major), [PROGRAMS], SECONDS, 200)


def test_reported():
    check_all([MAJOR])


@long
def test_reported_by_others():
    check_all([major for major in jdks() if major != MAJOR])


@soak
def test_reported_for_long():
    for major, home in jdks().items():
        check(major, home, [[program] for program in PROGRAMS], max(SECONDS, 4), 2000)


if __name__ == "__main__":
    main(globals())
