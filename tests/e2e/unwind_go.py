#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Stacks of Go programs: whole, through the runtime's other stacks and through C, and right. Oracles: a program
that keeps a stack of its own, and runtime/pprof of the same process at the same time."""
import collections
import os
import re

from libe2e import firefox_threads, folded, long, main, need_root, record, run, scratch, without_kernel
from libgo import SOURCES, go_build, pprof

COLD = 1000000000  # ns: until a busy machine has made the tables
ROOTS = {"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.mcall", "runtime.morestack", "_start", "clone3",
         "__clone3", "__clone", "clone"}


def warm_samples(path):
    """(thread, time, user frames) of all samples, but for those of the first second."""
    threads = firefox_threads(path)
    start = min(when for thread in threads for when, _ in thread.samples())
    for thread in threads:
        for when, located in thread.samples():
            if when - start > COLD:
                # some symbols of the runtime's assembly have a suffix
                yield thread, when, without_kernel([name.removesuffix(".abi0") for name, _ in located])


def check_roots(what, path, names=True):
    """How many there are, and their user frames. In a stripped program of C the entry has no name."""
    rows = [frames for _, _, frames in warm_samples(path) if frames]
    rooted = sum(frames[0] in ROOTS or (not names and not frames[0].startswith("runtime.")) for frames in rows)
    print(f"  {what}: {rooted / max(1, len(rows)):.4f} of {len(rows)} stacks reach the root")
    assert len(rows) >= 300, f"{what}: only {len(rows)} samples"
    assert rooted >= 0.99 * len(rows), (what, [f for f in rows if f[0] not in ROOTS][:5])
    return rows


# ---- a program that keeps a stack of its own ------------------------------------------------------

CALLS = {"small": "main.small", "large": "main.large", "reflecting": "main.reflecting;main.(*walker).call",
         "closing": "main.closing;main.each;main.closing.func1", "generic": r"main.generic[...]"}


def expected_chain(names):
    """What the names of the functions that it notes stand for, as a pattern of all frames."""
    chain = ["runtime\\.goexit;(?:main\\.main\\.(?:gowrap1|func2);)?main\\.main\\.func1;main\\.walk"]
    for name in names:
        if name == "deferring":
            chain.append(r"main\.deferring(?:;runtime\.\w+)*(?:;main\.deferring\.func1)?")
        elif name == "generic":
            chain.append(r"main\.generic\[[^;]*\]")
        else:
            chain.append(re.escape(CALLS[name]))
        chain.append(r"main\.\(\*walker\)\.goOn")
    chain.append(r"main\.\(\*walker\)\.spin")
    return re.compile(";".join(chain) + "(?:;|$)")


def intervals(text):
    """{tid: [(from, to, names)]}"""
    result = collections.defaultdict(list)
    for line in text.splitlines():
        if line.startswith("was "):
            _, tid, begin, end, chain = line.split(" ")
            result[int(tid)].append((int(begin), int(end), chain.split(";")))
    return result


def compare_with_shadow(program):
    path = scratch("shadow.json.gz")
    calls = intervals(record("-F", 2999, "-o", path, "--", program, "3").out)
    compared = right = cut = 0
    wrong, at = [], collections.Counter()
    for thread, when, frames in sorted(warm_samples(path), key=lambda row: row[1]):
        mine = calls[thread.tid]
        while at[thread.tid] < len(mine) and mine[at[thread.tid]][1] < when:
            at[thread.tid] += 1
        if at[thread.tid] == len(mine):
            continue
        begin, end, names = mine[at[thread.tid]]
        if when < begin + 5000 or when > end - 5000 or "main.(*walker).spin" not in frames:
            continue
        if not frames[0].startswith("runtime."):
            cut += 1  # counted as such in the profile: the host took the CPU away in the middle of the walk
            continue
        compared += 1
        if expected_chain(names).match(";".join(frames)):
            right += 1
        else:
            wrong.append((names, frames))
    print(f"  {os.path.basename(program)}: {right} of {compared} stacks are as the program kept them")
    assert compared >= 500, (compared, {tid: len(c) for tid, c in calls.items()})
    assert right == compared, wrong[:3]
    assert cut * 1000 <= compared, (cut, compared)
    check_roots(os.path.basename(program), path)


def test_shadow():
    """Each sample of a goroutine in its innermost call has its frames, all of them, in their order."""
    compare_with_shadow(go_build("shadow", "shadow"))


@long
def test_shadow_position_independent():
    compare_with_shadow(go_build("shadow", "shadow-pie", "-buildmode=pie", "-ldflags=-w"))


# ---- runtime/pprof ------------------------------------------------------------------------------

def without_clock(stack):
    """In the vDSO pprof begins with the caller of the clock."""
    return stack[:stack.index("time.Now") + 1] if "time.Now" in stack else stack


def is_wrapper(name, stack):
    """Of a go statement; up to Go 1.20 it looks like a function literal."""
    return re.search(r"\.gowrap\d+$", name) or (not stack and name == "main.work.func1")


def pprof_stacks(program, path):
    """{frames, root first: share}, and of how many samples."""
    result, frames, weight = collections.Counter(), [], 0.0
    units = {"ms": 1.0, "s": 1000.0, "us": 0.001}
    # a signal that asks for preemption comes in front of pprof's, if both are due
    def add(frames, weight):
        while frames and frames[0] == "runtime.asyncPreempt":
            frames = frames[1:]
        result[without_clock(tuple(frames[::-1]))] += weight

    for line in pprof("-traces", program, path).splitlines():
        if line.startswith("-----"):
            add(frames, weight)
            frames, weight = [], 0.0
            continue
        match = re.fullmatch(r"\s+(?:([\d.]+)(ms|us|s)\s+)?(\S.*?)(?: \(inline\))?", line)
        if match:
            frames.append(match[3])
            weight = weight or (float(match[1]) * units[match[2]] if match[1] else 0)
    add(frames, weight)
    del result[()]
    whole = sum(result.values())
    return {stack: value / whole for stack, value in result.items()}, round(whole / 2.5)


def our_stacks(path):
    """The same of a folded file, as pprof shows them: without the vDSO, goexit, and what Go wraps around calls."""
    result = collections.Counter()
    for frames, count in folded(path):
        stack = []
        for name in frames[1:]:
            if name.startswith("__vdso") or name.endswith("_[k]") or name == "[vdso]":
                break
            name = name.removesuffix(".abi0")
            if name not in ("runtime.goexit", "runtime.asyncPreempt") and not is_wrapper(name, stack):
                stack.append(name)
        if stack and not any(name in ("runtime.sigtramp", "runtime.sigtrampgo") for name in stack):
            result[without_clock(tuple(stack))] += count
    whole = sum(result.values())
    return {stack: value / whole for stack, value in result.items()}, whole


@long
def test_pprof():
    """What either of the two has seen in at least 1 % of its samples, the other one has seen as often."""
    need_root()
    program, path, profile = go_build("phases", "phases"), scratch("phases.folded"), scratch("phases.pprof")
    record("-F", 999, "-o", path, "--", program, "8", profile)
    ours, our_count = our_stacks(path)
    theirs, their_count = pprof_stacks(program, profile)
    frequent = {s for s in ours if ours[s] >= 0.01} | {s for s in theirs if theirs[s] >= 0.01}
    covered = sum(share for stack, share in ours.items() if stack in frequent)
    print(f"  {len(frequent)} stacks are {covered:.2f} of our {our_count} samples; pprof has {their_count}")
    assert our_count >= 1000 and their_count >= 300 and len(frequent) >= 6 and covered > 0.6
    for stack in frequent:
        p, q = ours.get(stack, 0.0), theirs.get(stack, 0.0)
        room = 0.25 * max(p, q) + 5 * (p / our_count + q / their_count + 1 / their_count ** 2) ** 0.5
        assert p and q and abs(p - q) <= room, (stack, p, q, room)


# ---- kinds of programs --------------------------------------------------------------------------

def recorded(name, *command):
    path = scratch(name + ".json.gz")
    record("-F", 3999, "-o", path, "--", *command)
    return path


@long
def test_stripped():
    """Without any symbols: rows and names come from Go's own table."""
    program = go_build("phases", "stripped", "-ldflags=-s -w")
    run("strip", program, check=0)
    check_roots("stripped", recorded("stripped", program, "2", scratch("stripped.pprof")), names=False)


@long
def test_cgo():
    """Go to C to Go to C, three deep, from a goroutine and from a thread that is C's."""
    rows = check_roots("cgo", recorded("mixed", go_build("mixed", "mixed", cgo=True), "2"))
    check_mixed(rows, "runtime.goexit", "main.goStart.func1")
    check_mixed(rows, ("clone3", "__clone3", "clone", "__clone"), "run")


@long
def test_library():
    """Go in a program of C, which loads it."""
    library = go_build("mixed", "libmixed.so", "-buildmode=c-shared", cgo=True)
    program = scratch("host")
    run("gcc", "-O2", "-o", program, os.path.join(SOURCES, "host.c"), library,
        "-Wl,-rpath," + os.path.dirname(library), check=0)
    rows = check_roots("c-shared", recorded("host", program, "2"))
    check_mixed(rows, ("clone3", "__clone3", "clone", "__clone"), "run")


# what the runtime and the compiler put between two functions of the program
BETWEEN = re.compile(r"(runtime|internal|sync|syscall)[./]|_cgo|main\._Cfunc_|crosscall2$|start_thread$|goCallback$")


def check_mixed(rows, root, first):
    """From this root on the program's own functions come in the order that its source has."""
    order = {"main.goMiddle": {"main.goSpin", "c_outer"}, "c_outer": {"c_middle"},
             "c_middle": {"c_spin", "main.goCallback"}, "main.goCallback": {"main.goSpin", "main.goMiddle"},
             "run": {"c_outer"}, "main.goStart.func1": {"main.goMiddle"}}
    count = deep = 0
    wrong = []
    for frames in rows:
        if frames[0] not in root or first not in frames:
            continue
        count += 1
        # the runtime has C of its own
        end = next((i for i, f in enumerate(frames) if f.startswith(("x_cgo", "_cgo_sys"))), len(frames))
        mine = [f for f in frames[:end] if not BETWEEN.match(f)]
        mine = mine[mine.index(first):]
        for caller, callee in zip(mine, mine[1:]):
            if caller not in order:  # it spins: clocks and memory are the runtime's and the C library's
                break
            if callee not in order[caller]:
                wrong.append((caller, callee, frames))
                break
        deep += mine.count("c_middle") >= 2 and "main.goSpin" in mine
    print(f"  {count} stacks of {first}, {deep} of them twice through C")
    assert count >= 100 and deep >= 20, (count, deep)
    # samples in the vDSO may come before its table, later on a busy host: its caller is then found by frame pointer, which skips one
    early = sum(callee.startswith("__vdso_") for _, callee, _ in wrong)
    assert (len(wrong) - early) * 1000 <= count and early * 100 <= count, wrong[:3]


@long
def test_first_thread_of_c():
    """Position-independent, with C, and without symbols."""
    program = go_build("mixed", "mixed-pie", "-buildmode=pie", "-ldflags=-s -w", cgo=True)
    check_roots("cgo, PIE, stripped", recorded("mixed-pie", program, "2"), names=False)


if __name__ == "__main__":
    main(globals())
