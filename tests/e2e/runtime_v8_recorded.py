#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Recordings of Node.js whose functions sysprof has from memory, against the perf map of the same process, which it is not shown.

node writes the map through a symbolic link, which sysprof does not follow. Each frame of each sample that lies in code of
JavaScript has to have the name, file, line and column of the map's entry at its address, of that time. Samples without the
words of the runtime (those of the first moments, and of threads that run nothing of V8) are counted, and left out.
"""
import bisect
import collections
import contextlib
import os
import re
import struct
import threading
import time

from libe2e import (EVENT_SAMPLE, SAMPLE_FRAMES, Background, load_json, long, main, need_root, record, recording_events,
                    scratch, write)
from librecorded import nodes
from libv8 import ENTRY, FLAGS, PROGRAM, PROGRAMS, PerfMap

RATE = 2999
SECONDS = 0.35  # of a recording; there are more where others have the CPUs
FIRST = 0.25  # s before that
RECORDINGS_MAX = 16
SAMPLES = int(os.environ.get("V8_SAMPLES", "500"))  # of each program: half of what one recording has on a quiet host
SHORT = ["closures", "inlining"]
SHOWN = int(os.environ.get("V8_SHOW", "0"))  # of each verdict but the wrong ones
WRONG_SHOWN = 5
UNSURE = "(or another function)"


def all_nodes():
    return os.environ["V8_NODES"].split() if "V8_NODES" in os.environ else nodes()


class Growing(threading.Thread):
    """How large a file was, and when."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.times, self.sizes, self.ended = path, [], [], threading.Event()

    def run(self):
        while not self.ended.wait(0.004):
            self.sizes.append(os.stat(self.path).st_size)
            self.times.append(time.monotonic_ns())

    def around(self, when):
        """Bytes that it had for sure by then, and bytes that it may have had."""
        at = bisect.bisect_left(self.times, when)
        return self.sizes[at - 1] if at else 0, self.sizes[min(at, len(self.sizes) - 1)]


class Hidden:
    """node, whose map is where sysprof does not look."""

    def __init__(self, binary, flags, program, name):
        self.map = scratch(f"map-{name}")
        self.program = Background("/bin/sh", "-c", 'ln -sf "$0" /tmp/perf-$$.map && exec "$@"', self.map, binary, *flags,
                                  program, name)
        self.link = f"/tmp/perf-{self.program.pid}.map"

    def __enter__(self):
        self.program.__enter__()
        return self

    def __exit__(self, *error):
        self.program.__exit__(*error)
        with contextlib.suppress(FileNotFoundError):  # others tidy up there too
            os.unlink(self.link)

    def kill(self):
        self.program.p.kill()

    def ready(self, count):
        for _ in range(count):
            assert self.program.p.stdout.readline() == "ready\n", "the program does not run"


def raw_samples(path):
    """{(thread, microsecond): when, packed frames, leaf first, how many of them are the kernel's, has it words of the runtime}"""
    found = {}
    for kind, _, when, body in recording_events(path):
        if kind == EVENT_SAMPLE:
            tid, kernel, user = struct.unpack_from("<I", body, 20)[0], *struct.unpack_from("<HH", body, 28)
            notes = struct.unpack_from("<H", body, 34)[0]
            found[tid, round(when / 1000)] = when, struct.unpack_from(f"<{kernel + user}Q", body, SAMPLE_FRAMES), kernel, notes > 0
    return found


class Shown:
    """Frames of a Firefox file as (name, file, line, column of the definition, executing line, is it unsure)."""

    def __init__(self, path):
        self.profile = load_json(path)
        self.shared, self.known = self.profile["shared"], {}

    def frame(self, index):
        shared = self.shared
        frames, functions = shared["frameTable"], shared["funcTable"]
        func, source = frames["func"][index], None
        if functions["source"][func] is not None:
            source = shared["stringArray"][shared["sources"]["filename"][functions["source"][func]]]
        category = self.profile["meta"]["categories"][frames["category"][index]]
        kind = category["subcategories"][frames["subcategory"][index] or 0]
        return (shared["stringArray"][functions["name"][func]], source or "", functions["lineNumber"][func] or 0,
                functions["columnNumber"][func] or 0, frames["line"][index] or 0, UNSURE in kind)

    def stack(self, stack):
        """Leaf first, each address with what is inlined there: [[innermost, …, its function], …]"""
        if stack not in self.known:
            table, inline, result, inlined = self.shared["stackTable"], self.shared["frameTable"]["inlineDepth"], [], []
            at = stack
            while True:
                frame = table["frame"][at]
                inlined.append(self.frame(frame))
                if not inline[frame]:
                    result.append(inlined)
                    inlined = []
                if not table["prefixOffset"][at]:
                    break
                at -= table["prefixOffset"][at]
            self.known[stack] = result
        return self.known[stack]

    def samples(self, pid):
        """(thread, microsecond, stack)"""
        start = self.profile["meta"]["startTimeAsClockMonotonicNanosecondsSinceBoot"]
        for thread in self.profile["threads"]:
            if int(thread["pid"].split(".")[0]) != pid:
                continue
            samples, now = thread["samples"], 0.0
            for i, stack in enumerate(samples["stack"]):
                now = samples["time"][i] if "time" in samples else now + samples["timeDeltas"][i]
                if stack is not None:
                    yield int(thread["tid"].split(".")[0]), (start + round(now * 1e6)) / 1000, self.stack(stack)


def joined(shown, raw, pid):
    """(when, raw frames, kernel frames, has it words, shown frames): of the samples that are in both, by time."""
    found = []
    for tid, when, stack in shown.samples(pid):
        sample = raw.get((tid, round(when))) or raw.get((tid, int(when))) or raw.get((tid, int(when) + 1))
        if sample:
            found.append((*sample, stack))
    return sorted(found, key=lambda x: x[0])


def texts(frame, with_column):
    name, file, line, column = frame[:4]
    name = "" if name == "(anonymous)" else name
    place = f"{line}:{column}" if with_column else f"{line}"
    return f"{name} {file}:{place}".strip(), f"{name} :{place}".strip()  # sourceURL, which not all of its entries have


def compare(counts, reported, frame, leaf, with_column):
    kind = "leaf" if leaf else "frame"
    entries = [ENTRY.match(name) if name else None for name in reported]
    if not any(entries):
        counts[f"{kind}: no JavaScript"] += 1
        return
    ours = texts(frame, with_column)
    if any(entry and entry[2].strip() in ours for entry in entries):
        counts[f"{kind}: equal"] += 1
        counts[f"tier {next(entry for entry in entries if entry)[1]}"] += 1
        return
    if entries[0] is None or entries[1] is None or entries[0][2] != entries[1][2]:
        verdict = "the map changed"
    elif leaf and entries[0][1] == "~":
        # a copy of what makes the frame of an interpreted function, which only a node with these flags has
        verdict = "entering the interpreter"
    elif frame[5]:
        verdict = "differs, flagged"
    elif frame[0].startswith("["):
        verdict = "not read"
    elif re.match(r"0x[0-9a-f]+$", frame[0]):
        verdict = "nameless"
    elif not frame[2]:
        verdict = "of a builtin"
    else:
        verdict = "differs"
    counts[f"{kind}: {verdict}"] += 1
    if counts[f"{kind}: {verdict}"] <= (WRONG_SHOWN if verdict == "differs" else SHOWN):
        print(f"    {kind} {verdict}: ours {ours[0]!r} theirs {entries[0] and entries[0][0]!r}")


def recorded(hidden, seconds):
    paths = scratch("recorded.sysprof"), scratch("recorded.json")
    growing = Growing(hidden.map)
    growing.start()
    record("--no-wall", "-p", hidden.program.pid, "-F", RATE, "-d", seconds, "-o", paths[0], "-o", paths[1])
    growing.ended.set()
    growing.join()
    return growing, joined(Shown(paths[1]), raw_samples(paths[0]), hidden.program.pid)


def frames_of(hidden, wanted, seconds, counts):
    """(address, names of ours, its number from the innermost frame of V8 on, whether that is the stack's, the map's names before and after)"""
    samples = []
    for _ in range(RECORDINGS_MAX):
        growing, more = recorded(hidden, seconds + FIRST)
        # what is read of a process that has just been met comes too late for its first samples
        more = [sample for sample in more if sample[0] > more[0][0] + FIRST * 1e9]
        samples += [(growing.around(sample[0]), *sample[1:]) for sample in more]
        if sum(sample[3] for sample in samples) >= wanted:
            break
    hidden.kill()  # its map stays
    before, after = PerfMap(hidden.map), PerfMap(hidden.map)
    for sizes, raw, kernel, has_words, stack in sorted(samples, key=lambda sample: sample[0]):
        counts["samples"] += 1
        if not has_words:  # of the first moments, when its stacks are copied, and those that ran nothing of V8
            counts["samples without words"] += 1
            continue
        if len(stack) == len(raw) + 1:  # a builtin without a frame, which compiled code has called
            counts["builtins without frame"] += 1
            stack = stack[:kernel] + stack[kernel + 1:]
        if len(stack) != len(raw):
            counts["samples of another depth"] += 1
            continue
        before.up_to(sizes[0])
        after.up_to(sizes[1])
        for i in range(kernel, len(raw)):
            address = (raw[i] & 0xffffffffffffff) - (i > kernel)
            yield raw[i], stack[i], i - kernel, not kernel, (before.name(address), after.name(address))


def check_program(binary, name, wanted, with_column):
    counts = collections.Counter()
    with Hidden(binary, FLAGS, PROGRAM, name) as hidden:
        hidden.ready(3 if name == "workers" else 1)
        for _, names, i, innermost, reported in frames_of(hidden, wanted, SECONDS, counts):
            compare(counts, reported, names[-1 if i else 0], not i and innermost, with_column)
    return counts


def version_of(binary):
    with os.popen(f"{binary} --version") as f:
        return f.read().strip()


def check_node(binary, programs, wanted):
    need_root()
    version, sums = version_of(binary), collections.Counter()
    for name in programs:
        counts = check_program(binary, name, wanted, not version.startswith("v18."))
        print(f"  {version} {name}: " + ", ".join(f"{n} {key}" for key, n in sorted(counts.items())), flush=True)
        sums += counts
    print(f"  {version}: " + ", ".join(f"{n} {key}" for key, n in sorted(sums.items())), flush=True)
    frames = sum(n for key, n in sums.items() if ": " in key and not key.endswith("no JavaScript"))
    equal = sums["frame: equal"] + sums["leaf: equal"]
    print(f"    {equal / max(1, frames):.4f} of {frames} frames equal")
    assert equal >= 0.99 * frames and frames > 20 * len(programs), sums
    assert sums["frame: differs"] + sums["leaf: differs"] == 0, sums
    return sums


FRESH = """
const kept = [];
function round(n) {
  let text = '';
  for (let i = 0; i < 90; i++)
    text += `function fresh${n}_${i}(end) { return fresh${n}_${i + 1}(end) + 1; }\\n`;
  return new Function(`${text}
  function fresh${n}_90(end) { let sum = 0; while (Date.now() < end) for (let i = 0; i < 1000; i++) sum += i; return sum; }
  return fresh${n}_0;`)();
}
console.log("ready");
for (;;) {
  kept.push(round(kept.length));
  kept[kept.length - 1](Date.now() + 100);
}
"""


def last_round(path, pid):
    """Of the samples of the last round of FRESH: how many have a function that is not named, and how many there are."""
    stacks = [{frame[0] for frames in stack for frame in frames} for _, _, stack in Shown(path).samples(pid)]
    numbers = [max((int(name[5:].split("_")[0]) for name in names if re.match(r"fresh\d+_", name)), default=-1)
               for names in stacks]
    last = max(numbers, default=-1)
    of_last = [names for names, number in zip(stacks, numbers) if number == last or "[V8]" in names]
    return sum("[V8]" in names for names in of_last), len(of_last) if last >= 0 else 0


def test_last_moment():
    """Functions that are new in the last tenth of a second have names; more than one request has room for."""
    need_root()
    source, path = scratch("fresh.cjs"), scratch("fresh.json")
    write(source, FRESH)
    for attempt in range(5):  # while others have the CPUs
        with Background(nodes()[0], source) as program:
            assert program.p.stdout.readline() == "ready\n"
            record("--no-wall", "-p", program.pid, "-F", RATE, "-d", 1 + attempt, "-o", path)
        unnamed, samples = last_round(path, program.pid)
        print(f"  {unnamed} of {samples} samples of the last round have a function without a name")
        if samples > 5 and not unnamed:
            return
    raise AssertionError((unnamed, samples))


def test_recorded():
    for binary in all_nodes():
        check_node(os.path.realpath(binary), SHORT, SAMPLES)


@long
def test_other_programs():
    programs = os.environ.get("V8_PROGRAMS", " ".join(name for name in PROGRAMS if name not in SHORT))
    for binary in all_nodes():
        check_node(os.path.realpath(binary), programs.split(), SAMPLES)


if __name__ == "__main__":
    main(globals())
