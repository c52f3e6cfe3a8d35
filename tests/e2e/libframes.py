# SPDX-License-Identifier: BSD-2-Clause
"""Samples of a profile, frame by frame, against what the programs say that they did."""
import bisect
import glob
import json
import os
import select
import subprocess

from libe2e import FirefoxThread, load_json, scratch

TIERS = 8  # include/sysprof/profile.h; behind them are the same tiers with a doubt
RUNTIMES = ("[CPython]", "[V8]", "[HotSpot]")
MARGIN = 2000  # ns: times in a profile are decimals


class Frame:
    """One of a stack. `runtime`: it is of one, and has a name of its own if `named`."""

    def __init__(self, name, library, file, line, ambiguous):
        self.name, self.library, self.file, self.line, self.ambiguous = name, library, file, line, ambiguous
        # compiled code that nothing names has its address; what is interpreted is in its source file
        self.runtime = not name.startswith("0x") if library == "[jit]" else bool(file) and library == os.path.basename(file)
        # without a source they have no library
        self.runtime = self.runtime or (not library and name in ("[truncated]", *RUNTIMES))
        self.named = self.runtime and name not in RUNTIMES

    def __repr__(self):
        return f"{self.name}:{self.line}{'?' if self.ambiguous else ''}"


class Sample:
    def __init__(self, pid, tid, when, frames):
        self.pid, self.tid, self.when, self.frames = pid, tid, when, frames

    def of_runtime(self):
        return [frame for frame in self.frames if frame.runtime]


def frames_of(thread, stack):
    shared = thread._shared
    table, frames, functions = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    strings, found = shared["stringArray"], []
    while True:
        frame = table["frame"][stack]
        func = frames["func"][frame]
        resource, library = functions["resource"][func], None
        if resource is not None and resource >= 0:
            library = strings[shared["resourceTable"]["name"][resource]]
        source = functions["source"][func]
        found.append(Frame(strings[functions["name"][func]], library,
                           None if source is None else strings[shared["sources"]["filename"][source]],
                           frames["line"][frame], frames["subcategory"][frame] >= TIERS))
        if not table["prefixOffset"][stack]:
            return found[::-1]
        stack -= table["prefixOffset"][stack]


def samples_of(path, pids=None):
    """The samples in a file of .json, each with its frames, root first."""
    profile, known = load_json(path), {}
    for thread in (FirefoxThread(profile, t) for t in profile["threads"]):
        if pids and thread.pid not in pids:
            continue
        for stack, when in zip(thread.stacks, thread.times):
            if stack is None:
                continue
            if stack not in known:
                known[stack] = frames_of(thread, stack)
            yield Sample(thread.pid, thread.tid, thread.start_ns + round(when * 1e6), known[stack])


def with_looks(samples):
    """Each, and whether a function of its process was known by then."""
    known = set()
    for sample in samples:
        if sample.of_runtime():
            known.add(sample.pid)
        yield sample, sample.pid in known


class Spans:
    """The log of a program: at each time, the stack of each of its threads."""

    def __init__(self, pattern):
        self.of_thread = {}
        for path in glob.glob(pattern):
            with open(path, encoding="utf-8") as f:
                for tid, begin, end, stack in map(json.loads, f):
                    if begin:
                        self.of_thread.setdefault(tid, []).append((begin, end, stack))
        for spans in self.of_thread.values():
            spans.sort(key=lambda span: span[0])

    def at(self, tid, when):
        """The stack, or None: the thread was between two of them."""
        spans = self.of_thread.get(tid, [])
        i = bisect.bisect(spans, when - MARGIN, key=lambda span: span[0]) - 1
        return spans[i][2] if i >= 0 and when <= spans[i][1] - MARGIN else None


def wait_for_word(p, seconds=300):
    """The first line that a program writes."""
    assert select.select([p.stdout], [], [], seconds)[0], f"{p.args} says nothing"
    line = p.stdout.readline()
    assert line, f"{p.args} ended: {p.wait()}"
    return line


def start(command, *arguments, **options):
    # unbuffered: what has been read is not there for the next select()
    return subprocess.Popen([str(word) for word in (*command, *arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            bufsize=0, **options)


def end(p):
    p.kill()
    p.stdout.close()
    p.wait()


def fresh(name):
    """A path in the scratch directory, with nothing at it, nor at what begins with it."""
    for path in glob.glob(scratch(name) + "*"):
        os.unlink(path)
    return scratch(name)
