#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Functions that are made and dropped all the time, and whose memory is used again, in runtimes without a flag.

The program says when each one ran. A sample within that time has its name, or says that it does not know: another name
that is not marked is wrong. SECONDS=7200 goes on for so long, LIFE=ns is what a function lives. NODES=path:path are other
Node.js than those of the tests, and CALLS=1 has their functions call one that V8 inlines.
"""
import os
import signal
import time

from libe2e import long, main, need_root, record, scratch, sysprof, write
from libframes import Spans, end, fresh, samples_of, start, wait_for_word, with_looks
from librecorded import FIXTURES, newer_python, nodes
from runtime_cpython import PROGRAMS

SECONDS = float(os.environ.get("SECONDS", 2.5))
WINDOW = 30  # s of one recording
LEAST = 200  # samples; where others have the CPU it goes on for longer


class Judged:
    def __init__(self):
        self.right = self.flagged = self.flagged_wrong = self.unnamed = self.wrong = self.none = self.early = 0
        self.examples = []

    def count(self):
        return self.right + self.flagged + self.unnamed + self.wrong + self.none

    def add(self, sample, name, is_made):
        """The one frame of a function that is made for each time."""
        frames = [f for f in sample.frames if f.runtime and (not f.named or is_made(f.name))]
        made = [f for f in frames if f.named]
        if not made:
            self.unnamed += bool(frames)
            self.none += not frames
        elif len(made) > 1 or made[0].name != name:
            doubtful = any(f.ambiguous for f in made)
            self.flagged += doubtful
            self.flagged_wrong += doubtful
            self.wrong += not doubtful
            if not doubtful and len(self.examples) < 5:
                self.examples.append((name, sample.frames[-6:]))
        else:
            self.flagged += made[0].ambiguous
            self.right += not made[0].ambiguous

    def __repr__(self):
        return (f"{self.count()} samples: {self.right} right, {self.wrong} wrong, {self.flagged} marked "
                f"({self.flagged_wrong} of these wrong), {self.unnamed} without a name, {self.none} without such a "
                f"frame, {self.early} before it was looked at {self.examples}")


def churn(command, pattern, is_made, seconds):
    """One recording after the other of a program that goes on."""
    need_root()
    judged, p = Judged(), start(command)
    path, text = fresh("churn.sysprof"), fresh("churn.json")
    try:
        wait_for_word(p)
        record("-p", p.pid, "-d", 0.5, "-o", path)
        until = time.monotonic() + seconds + 60
        while seconds > 0 or judged.count() < LEAST and time.monotonic() < until:
            record("-p", p.pid, "-F", 1999, "-d", min(max(seconds, 2.5), WINDOW), "-o", path, timeout=10 * WINDOW)
            p.send_signal(signal.SIGSTOP)  # else it would spin beside what reads its samples
            sysprof("convert", path, "-o", text, check=0)
            spans = Spans(pattern)
            samples = sorted(samples_of(text, {p.pid}), key=lambda sample: sample.when)
            for sample, known in with_looks(samples):
                stack = spans.at(sample.tid, sample.when)
                if stack and known:
                    judged.add(sample, stack[-1][0], is_made)
                judged.early += bool(stack) and not known
            p.send_signal(signal.SIGCONT)
            seconds -= WINDOW
            if seconds > 0:
                print(f"  {seconds:.0f} s left: {judged}", flush=True)
    finally:
        end(p)
    return judged


def python(command, seconds, life=None):
    """`life`: ns of a function."""
    log = fresh("dropping")
    command = ["env", f"LIFE={life}", *command] if life else command
    judged = churn([*command, os.path.join(PROGRAMS, "spans.py"), log, 10 * seconds + 600, "dropping"], log + ".*",
                   lambda name: name.startswith("made_"), seconds)
    print(f"  {' '.join(command)}: {judged}")
    return judged


def node(command, seconds, *flags):
    log = fresh("churn-spans")
    judged = churn([command, "--expose-gc", *flags, os.path.join(FIXTURES, "made.js"), log], log + ".*",
                   lambda name: name.startswith("made_"), seconds)
    print(f"  {command} {' '.join(flags)}: {judged}")
    return judged


UNNAMED = 0.3  # of functions that live for 40 ms, on a host that others use as well


def check(judged, unnamed=UNNAMED, marked=0.01):
    """`unnamed`, `marked`: such a share may be. On a host that is busy a function can be gone before it is read."""
    assert judged.count() >= LEAST, judged
    assert not judged.wrong, judged
    assert judged.flagged <= marked * judged.count() + 2, judged
    assert judged.unnamed + judged.none <= (0.01 if SECONDS > 60 else unnamed) * judged.count(), judged


def test_python():
    check(python(["/usr/bin/python3"], SECONDS))


@long
def test_newer_python():
    check(python([newer_python()], SECONDS))


# Python frees a function with its last use. What names it is copied when it is first sampled: whoever reads it comes too late.
MOMENT = 1_500_000  # ns
GONE = 0.03  # of the samples of such functions may have no name: a copy finds no room, or a sample no time


def test_functions_of_a_moment():
    check(python(["/usr/bin/python3"], min(SECONDS, 5), MOMENT), unnamed=GONE)


@long
def test_functions_of_a_moment_in_newer_python():
    check(python([newer_python()], min(SECONDS, 5), MOMENT), unnamed=GONE)


MODULE = """
class Body:
    squares = sum(i * i for i in range(25000))
    words = [str(i) for i in range(8000)]
def made():
    return sum(i * i for i in range(25000))
VALUE = made()
del Body, made
"""
IMPORTER = """
import importlib, json, sys, threading, time
spans = []
until = time.monotonic() + 1  # by then it has been looked at
while time.monotonic() < until:
    pass
for i in range(PARTS):
    begin = time.monotonic_ns()
    importlib.import_module(f"part{i}")
    spans.append([threading.get_native_id(), begin, time.monotonic_ns(), f"part{i}.py"])
    del sys.modules[f"part{i}"]
with open(sys.argv[1], "w") as log:
    log.write("".join(json.dumps(span) + "\\n" for span in spans))
"""
PARTS = 150


def imported(command):
    """Bodies of modules, which run once for some milliseconds. Samples within their time: of how many has a frame no name, and of how many."""
    directory, log, text = os.path.join(scratch("."), "importer"), fresh("imports"), fresh("imports.json")
    os.makedirs(directory, exist_ok=True)
    for i in range(PARTS):
        write(os.path.join(directory, f"part{i}.py"), MODULE)
    write(os.path.join(directory, "main.py"), IMPORTER.replace("PARTS", str(PARTS)))
    record("-F", 999, "-o", text, "--", *command, "-B", os.path.join(directory, "main.py"), log)
    spans, unnamed, count, files = Spans(log), 0, 0, set()
    for sample in samples_of(text):
        frames, part = sample.of_runtime(), spans.at(sample.tid, sample.when)
        if not frames or not part:
            continue
        count += 1
        unnamed += not all(frame.named for frame in frames)
        seen = {os.path.basename(frame.file) for frame in frames if frame.file and not frame.ambiguous}
        assert {file for file in seen if file.startswith("part")} <= {part}, (part, frames)
        files |= seen & {part}
    return unnamed, count, files


def test_imports():
    need_root()
    for command in ["/usr/bin/python3"], [newer_python()]:
        unnamed, count, files = imported(command)
        print(f"  {command[0]}: {unnamed} of {count} samples have a frame without a name; {len(files)} modules were seen")
        assert count >= 100, "the host gave the program no CPU time"
        assert unnamed <= GONE * count and len(files) >= count / 20, (unnamed, count, len(files))


NODE_MARKED = 0.03  # where another function's code is at the address by then, which is worse there, too
NODES = [path for path in os.environ.get("NODES", "").split(":") if path]
# With these, what is left of the heap moves at each collection.
COMPACT = ("--compact-on-every-full-gc",)


def check_node(command, *flags):
    # a hundred functions, so that what befalls two of them is no share
    check(node(command, max(SECONDS, 4), *flags), unnamed=1 if flags else UNNAMED,
          marked=1 if os.environ.get("CALLS") else NODE_MARKED)


def test_node():
    for command in NODES or nodes()[:1]:
        check_node(command)


@long
def test_newer_node():
    check_node(nodes()[-1])


@long
def test_node_that_compacts():
    for command in NODES or nodes():
        check_node(command, *COMPACT)


main(globals())
