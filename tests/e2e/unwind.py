#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Stacks without frame pointers, walked in the kernel by unwind tables: they reach the root, and against a program
that keeps a stack of its own they are right, frame by frame.

The first fraction of a second of a process comes before its tables are there, and has a test of its own.
"""
import glob
import os
import time

from libe2e import (TOP, Background, alone, firefox_threads, fixture, folded, kernel_part, long, main, need_root,
                    record, run, scratch, share, total, without_kernel)
from librecorded import recorded

SOURCES = os.path.join(TOP, "tests/fixtures/unwind")
COLD = 1500000000  # ns: on a slow machine the tables of a compiler take a while
ROOTS = {"_start", "clone3", "__clone3", "__clone", "clone"}


def compiled(name, *flags):
    program, source = scratch(name), glob.glob(os.path.join(SOURCES, name + ".c*"))[0]
    compiler = "g++" if source.endswith(".cc") else "gcc"
    run(compiler, "-O2", "-g", "-fomit-frame-pointer", *flags, "-o", program, source, check=0)
    return program


def warm_samples(path, pid=None):
    """(time, user frames) of all samples of user code, but for the first of each thread. `pid`: of one process."""
    for thread in firefox_threads(path):
        if pid and thread.pid != pid:
            continue
        start = None
        for when, located in thread.samples():
            start = start or when
            frames = [name for name, _ in located]
            if when - start > COLD:
                yield when, frames


def is_rooted(frames):
    """In a stripped program _start has no name."""
    return bool(frames) and (frames[0] in ROOTS
                             or len(frames) > 1 and frames[1].startswith("__libc_start_main"))


def rooted(path):
    rows = [without_kernel(frames) for _, frames in warm_samples(path)]
    return len(rows), sum(map(is_rooted, rows)) / max(1, len(rows))


def running(name, *command, seconds=1.9):
    """The Firefox file of a program that runs for ever."""
    need_root()
    path = scratch(name + ".json.gz")
    with Background(*command) as program:
        time.sleep(0.3)
        record("-p", program.pid, "-F", 2999, "-d", seconds, "-o", path)
    return path


def check_root(name, *command, least=0.99):
    """On a busy machine it takes more than one recording to have enough samples."""
    count = good = 0
    for _ in range(5):
        more, reached = rooted(running(name, *command))
        count, good = count + more, good + more * reached
        if count >= 500:
            break
    print(f"  {name}: {good / max(1, count):.4f} of {count} stacks reach the root")
    assert count >= 500, f"{name}: only {count} samples"
    assert good >= least * count, f"{name}: {good} of {count}"


def check_recorded(name, *keys):
    """Each of these processes of a recording that all tests share."""
    recording = recorded(name)
    path = recording.output(".json.gz")
    for key in keys:
        rows = [without_kernel(frames) for _, frames in warm_samples(path, recording.pid(key))]
        good = sum(map(is_rooted, rows))
        print(f"  {name}, {key}: {good} of {len(rows)} stacks reach the root")
        # several of them share two CPUs, and a host takes what it wants
        assert len(rows) >= 300, f"{name}: only {len(rows)} samples"
        assert good >= 0.99 * len(rows), f"{name}: {good} of {len(rows)}"


def test_root_of_python():
    check_recorded("python", "system", "own")


@alone
@long
def test_root_of_clang():
    check_recorded("clang", "clang")


@alone
@long
def test_root_of_node():
    check_recorded("node", "json")


def test_root_through_signals():
    check_root("signals", compiled("signals"))


def test_root_of_deep_c():
    check_root("deep C", fixture("deep-no-fp"), "100", "60")


@long
def test_root_of_system_calls():
    check_root("dd", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k")


def test_shadow_stack():
    """Each sample that falls into a call has its functions, all of them, in their order."""
    program, path = compiled("shadow", "-finstrument-functions"), scratch("shadow.json.gz")
    result = record("-F", 2999, "-o", path, "--", program, "2.6")
    calls = []
    for line in result.out.splitlines():
        if line.startswith("was "):
            _, begin, end, chain = line.split(" ")
            calls.append((int(begin), int(end), chain.split(";")))
    compared = right = 0
    wrong, at = [], 0
    for when, frames in sorted(warm_samples(path)):
        while at < len(calls) and calls[at][1] < when:
            at += 1
        if at == len(calls) or when < calls[at][0] + 5000 or when > calls[at][1] - 5000:
            continue
        mine = without_kernel(frames)
        if "spin" not in mine:
            continue
        compared += 1
        expected = ["main", *calls[at][2], "spin"]
        chain = mine[mine.index("main"):mine.index("spin") + 1] if "main" in mine else mine
        if [f for f in chain if f != "go_on"] == expected and mine[0] in ROOTS:
            right += 1
        else:
            wrong.append((when, expected, mine))
    depth = sum(len(chain) for _, _, chain in calls) / max(1, len(calls))
    print(f"  {right} of {compared} stacks are as the program kept them, {depth:.1f} calls deep on average")
    assert compared >= 100, (compared, len(calls))
    assert right == compared, wrong[:3]


@alone
def test_first_samples():
    """
    Those before the tables are there are walked from copies of their stacks: all as deep as the last. A copy
    has 16 KB: the stacks are smaller.
    """
    path, begin = scratch("first.json.gz"), time.monotonic_ns()
    record("-o", path, "--", compiled("shadow", "-finstrument-functions", "-DLARGE=200"), "1")
    # of an execve that took its time there may be a sample as well
    thread = max((t for t in firefox_threads(path) if t.name == "shadow"), key=lambda t: t.count)
    rows = [(when, without_kernel([name for name, _ in located])) for when, located in thread.samples()]
    assert begin < rows[0][0] < rows[-1][0]
    # of more than these no copies are taken in a second; the linker's at the start are not all named
    cold = [frames for _, frames in rows[:100] if "go_on" in frames or "spin" in frames]
    reached = sum(map(is_rooted, cold)) / max(1, len(cold))
    print(f"  {reached:.4f} of the first {len(cold)} stacks reach the root")
    assert len(cold) >= 60 and reached >= 0.99, [f for f in cold if not is_rooted(f)][:3]
    assert any("spin" in f and len(f) > 20 for f in cold), "none of them is deep"


def test_frame_pointers_alone():
    """-g fp does not get through the same program."""
    path = scratch("fp.folded")
    record("-g", "fp", "-o", path, "--", compiled("shadow", "-finstrument-functions"), "1")
    rows = [(f[1:], n) for f, n in folded(path) if not kernel_part(f)]
    assert total(rows) > 20 and share(rows, lambda f: f[0] in ROOTS) < 0.5, rows[:5]


@long
def test_libraries_that_take_turns():
    """Two libraries at one address, one after the other: what is not known yet is cut, and never wrong."""
    directory = scratch("turns")
    os.makedirs(directory)
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-g", "-fomit-frame-pointer", "-w"]
    fixtures = os.path.join(TOP, "tests/fixtures")
    for name, level in ("libdl_one", "-O2"), ("libdl_two", "-O0"):
        run("gcc", *flags, level, "-fPIC", "-shared", "-o", f"{directory}/{name}.so", f"{fixtures}/{name}.c",
            check=0)
    run("gcc", *flags, "-O2", "-o", f"{directory}/dl", f"{fixtures}/dl.c", "-ldl", check=0)
    whole = cut = 0
    for turn in "30", "200":
        path = scratch(f"turns-{turn}.json.gz")
        record("-F", 2999, "-o", path, "--", f"{directory}/dl", turn, "1.2")
        for thread in firefox_threads(path):
            for _, located in thread.samples():
                frames = without_kernel([name for name, _ in located])
                kinds = {kind for kind in ("one", "two") for f in frames
                         if f.startswith((f"libdl_{kind}", f"{kind}_inner"))}
                assert len(kinds) < 2, frames
                if not kinds:
                    continue
                (kind,) = kinds
                spin = f"libdl_{kind}_spin"
                if is_rooted(frames):
                    at = frames.index(spin)
                    assert frames[at - 2:at] == ["main", "take_turn"], frames
                    assert at + 1 == len(frames) or frames[at + 1] == f"{kind}_inner", frames
                    whole += 1
                else:
                    assert frames[0] in (spin, f"{kind}_inner", "work_until", "now_ns", "clock_ns"), frames
                    cut += 1
    print(f"  {whole} whole stacks, {cut} cut")
    assert whole > max(500, 0.3 * (whole + cut)), (whole, cut)


if __name__ == "__main__":
    main(globals())
