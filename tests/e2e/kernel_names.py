#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Names of kernel code that came after the recording had begun: BPF programs, one where another one had been."""
import re

import libe2e as e


def stacks_of(folded, comm):
    """Of this program: (stack, weight)."""
    found = []
    for line in open(folded, encoding="utf-8"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        if comm in stack.split(";")[0]:
            found.append((stack, int(weight)))
    return found


def share_of(stacks, pattern):
    total = sum(weight for _, weight in stacks)
    return sum(weight for stack, weight in stacks if re.search(pattern, stack)) / max(total, 1)


def assert_own_names(one, two):
    assert share_of(one, r"bpf_prog_[0-9a-f]{16}_first \[bpf\]") > 0.5, one
    assert share_of(two, r"bpf_prog_[0-9a-f]{16}_second \[bpf\]") > 0.5, two
    assert share_of(one, "_second") == share_of(two, "_first") == 0, (one, two)


def places_of(recording, name):
    """The ranges of the program's code in the events of a recording."""
    line = rb"([0-9a-f]{16}) t bpf_prog_[0-9a-f]{16}_%s\t\[bpf\]\n([0-9a-f]{16}) a end" % name.encode()
    with open(recording, "rb") as f:
        return {(int(start, 16), int(end, 16)) for start, end in re.findall(line, f.read())}


def test_programs_that_take_turns():
    """The kernel reuses addresses: some of the programs lie where the other one was, and another recording loads and removes more."""
    e.need_root()
    recording, folded = e.scratch("turns.sysprof"), e.scratch("turns.folded")
    program = e.fixture("bpfload")
    other = f"{e.SYSPROF} record -d 0.1 -o {e.scratch('beside.folded')} -- sleep 0.1; "
    turn = "./one first 0.2; sleep 0.2; ./two second 0.2; sleep 0.2; "
    e.run(e.SYSPROF, "record", "-F", 499, "-o", recording, "-o", folded, "--", "sh", "-c",
          f"ln -sf {program} ./one; ln -sf {program} ./two; " + turn + other + turn, check=0, cwd=e.SCRATCH)
    one, two = stacks_of(folded, "one"), stacks_of(folded, "two")
    shared = [(a, b) for a in places_of(recording, "first") for b in places_of(recording, "second") if a[0] < b[1] and b[0] < a[1]]
    print(len(shared), "times one lay where the other one was")
    assert_own_names(one, two)
    again = e.scratch("turns-again.folded")
    e.run(e.SYSPROF, "convert", recording, "-o", again)
    assert open(folded, encoding="utf-8").read() == open(again, encoding="utf-8").read()


def test_programs_that_are_loaded_later():
    e.need_root()
    folded, program = e.scratch("later.folded"), e.fixture("bpfload")
    # the same file under two names, so that the processes can be distinguished
    script = (f"ln -sf {program} ./one; ln -sf {program} ./two; "
              "sleep 0.2; ./one first 0.7; ./two second 0.7")
    e.run(e.SYSPROF, "record", "-F", 499, "-o", folded, "--", "sh", "-c", script, cwd=e.SCRATCH)
    one, two = stacks_of(folded, "one"), stacks_of(folded, "two")
    print("one:", share_of(one, "first"), share_of(one, "second"),
          "two:", share_of(two, "first"), share_of(two, "second"))
    assert one and two, open(folded, encoding="utf-8").read()
    assert_own_names(one, two)


def test_a_large_program_where_small_ones_were():
    """Those of another sysprof, which has ended: code has the name of the program that lies there now."""
    e.need_root()
    folded, program = e.scratch("large.folded"), e.fixture("bpfload")
    script = (f"{e.SYSPROF} record -d 0.2 -o {e.scratch('other.folded')} -- sleep 0.1; sleep 0.3; {program} large 0.7")
    e.run(e.SYSPROF, "record", "-F", 499, "-o", folded, "--", "sh", "-c", script, check=0)
    stacks = [(stack, weight) for stack, weight in stacks_of(folded, "bpfload") if "bpf_prog_test_run" in stack]
    print("large:", share_of(stacks, "_large "))
    assert stacks and share_of(stacks, r"bpf_prog_[0-9a-f]{16}_(?!large )") == 0, stacks


def test_replay_has_the_same_names():
    e.need_root()
    recording = e.scratch("later.sysprof")
    live, again = e.scratch("live.folded"), e.scratch("again.folded")
    e.run(e.SYSPROF, "record", "-o", recording, "-o", live, "--",
          e.fixture("bpfload"), "replayed", "0.5")
    e.run(e.SYSPROF, "convert", recording, "-o", again)
    text = open(live, encoding="utf-8").read()
    assert "_replayed [bpf]" in text, text
    assert text == open(again, encoding="utf-8").read()


e.main(globals())
