#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Text that a program has moved into anonymous memory (huge pages): names and stacks as before, and none of other code there."""
import os

from libe2e import BUILD, Background, folded, long, main, need_root, record, record_cpu, scratch, sysprof, user_part

PROGRAM = os.path.join(BUILD, "tests/fixtures/moved_text")
LIBRARY = os.path.join(BUILD, "tests/fixtures/libmoved.so")


def stacks(path):
    rows = [user_part(frames) for frames, count in folded(path) for _ in range(count)]
    return [frames for frames in rows if frames]


def from_start(mode, *args):
    path = scratch(f"{mode}-start.folded")
    recording = scratch(f"{mode}.sysprof")
    record("-F", "499", "-o", path, "-o", recording, "--", PROGRAM, mode, "2", *args)
    again = scratch(f"{mode}-again.folded")
    sysprof("convert", recording, "-o", again, check=0)
    with open(path) as one, open(again) as other:
        assert one.read() == other.read(), f"{mode}: a replay differs"
    return stacks(path)


def attached(mode, *args):
    """Recorded when all was moved."""
    path = scratch(f"{mode}-attached.folded")
    with Background(PROGRAM, mode, "20", *args) as program:
        assert program.p.stdout.readline() == "ready\n"
        record_cpu(program.pid, 0.5, "-F", 1999, "-o", path, "-p", program.pid)
    return stacks(path)


def check_chains(rows, what, wanted, leaf="moved_leaf"):
    """Of whole stacks. The first ones come before the tables: many where what builds these has no CPU time."""
    chain = "main", "moved_middle", leaf
    whole = [frames for frames in rows if "_start" in frames]
    found = sum(tuple(frames[-3:]) == chain for frames in whole) / max(len(whole), 1)
    print(f"  {what}: {len(whole)} of {len(rows)} are whole, {found:.3f} of these as they have to be")
    assert len(whole) > max(20, len(rows) / 3) and found > wanted, (what, len(whole), len(rows), found)


def check_moved(mode, *args, leaf="moved_leaf"):
    for way in (from_start, attached):
        check_chains(way(mode, *args), f"{mode}, {way.__name__}", 0.9, leaf)


def test_written_back():
    check_moved("fixed")


@long
def test_moved_over():
    check_moved("remap")


@long
def test_a_library():
    check_moved("library", LIBRARY, leaf="library_leaf")


@long
def test_written_later():
    """Executable before it has the text: it is looked at again."""
    need_root()
    check_chains(from_start("slow"), "slow", 0.5)


@long
def test_other_code():
    """Code that a program writes to where a file was has no names of that file."""
    for mode, args in (("foreign", ()), ("gone", (LIBRARY,))):
        for way in (from_start, attached):
            rows = way(mode, *args)
            wrong = [frames for frames in rows if any("moved_" in f or "library_" in f for f in frames)]
            leaves = sum(frames[-1].startswith(("[", "0x")) for frames in rows)
            print(f"  {mode}, {way.__name__}: {len(rows)} stacks, {leaves} end without a name, {len(wrong)} with a wrong one")
            assert len(rows) > 20 and leaves > 0.8 * len(rows) and not wrong, (mode, wrong[:3])


if __name__ == "__main__":
    main(globals())
