#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 120
# runs: alone
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


def test_programs_that_are_loaded_later():
    e.need_root()
    folded, program = e.scratch("later.folded"), e.fixture("bpfload")
    # the same file under two names, so that the processes can be distinguished
    script = (f"ln -sf {program} ./one; ln -sf {program} ./two; "
              "sleep 0.2; ./one first 0.7; ./two second 0.7")
    e.run(e.SYSPROF, "record", "-F", 499, "-o", folded, "--", "sh", "-c", script)
    one, two = stacks_of(folded, "one"), stacks_of(folded, "two")
    print("one:", share_of(one, "first"), share_of(one, "second"),
          "two:", share_of(two, "first"), share_of(two, "second"))
    assert one and two, open(folded, encoding="utf-8").read()
    # at the address of the first one the second may lie: then one window has one name for it
    assert share_of(one, r"bpf_prog_[0-9a-f]{16}_(first|second) \[bpf\]") > 0.5, one
    assert share_of(two, r"bpf_prog_[0-9a-f]{16}_second \[bpf\]") > 0.5, two
    assert share_of(two, "first") == 0, two


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
