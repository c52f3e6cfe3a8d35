#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Programs with uprobes, as tracing agents put them on a whole host: a uretprobe replaces return addresses on the stack.

Each program puts its probes on itself, with the kernel's own perf_event_open(); so it needs no tracer.
"""
import os
import shutil
import struct

import libwall
from libe2e import (EVENT_FROM_COPY, EVENT_SAMPLE, Skip, fixture, folded, has_chain, long, main, need_root, new_scratch, record,
                    recording_events, share, stack_ends, total)

PMU = "/sys/bus/event_source/devices/uprobe"


def need_uprobes():
    need_root()
    if not os.path.exists(PMU):
        raise Skip("this kernel has no uprobes")


def rows_of(how, depth=1, seconds="1.5", wall=False):
    """Folded rows with the innermost function."""
    need_uprobes()
    path = new_scratch("probed.folded")
    record(*(["--wall"] if wall else []), "-o", path, "--", fixture("probed"), seconds, how, depth)
    return [row for row in folded(path) if "leaf" in row[0]]


def assert_whole(rows, *chain):
    """Nearly all are the whole chain from the root on. The first samples may be before the C library's table."""
    whole = share(rows, lambda frames: frames[1] in ("_start", "__libc_start_main_impl")
                  and has_chain(frames, "main", "outer", "middle", *chain, "leaf"))
    print(f"  {whole:.3f} of {total(rows)} stacks are whole")
    assert total(rows) >= 5 and whole >= 0.98, rows


def test_nested():
    """Three functions one in another, of which each has lost its return address."""
    rows = rows_of("work")
    assert_whole(rows, "again")
    assert not [frames for frames, _ in rows if any("uprobes" in frame for frame in frames)]


@long
def test_recursion():
    """As deep as the kernel replaces return addresses, and deeper: the outer 64 of them are replaced."""
    for depth in (3, 60, 100):
        assert_whole(rows_of("work", depth), *["again"] * depth)


@long
def test_jump():
    """The kernel's list has return addresses of frames that are gone; other functions use that part of the stack."""
    rows = rows_of("jump", 3)
    assert_whole([row for row in rows if "unprobed" in row[0]], *["unprobed"] * 3)
    assert_whole([row for row in rows if "again" in row[0]], *["again"] * 3)


@long
def test_entries():
    assert_whole(rows_of("entry"), "again")


@long
def test_copied_instructions():
    """The kernel executes the probed instruction as a copy in a page of its own."""
    assert_whole(rows_of("copy"), "again")


@long
def test_call_instead_of_nop():
    """From Linux 6.18 on a probed nop becomes a call of a page that the kernel has mapped near it."""
    rows = rows_of("nop")
    assert_whole(rows, "again")
    inside = [frames for frames, _ in rows if "[uprobes-trampoline]" in frames]
    if "arch_uprobe_optimize" in open("/proc/kallsyms", encoding="ascii").read():
        assert inside and all(has_chain(frames, "leaf", "has_nop", "[uprobes-trampoline]") for frames in inside), rows


@long
def test_waits():
    libwall.need_visits()
    rows = [row for row in rows_of("wait", wall=True) if any("nanosleep" in frame for frame in row[0])]
    assert_whole(rows, "again")


def copied_ends(path):
    """How the user stacks ended that were copied and walked later."""
    names = stack_ends()
    for kind, flags, _, body in recording_events(path):
        if kind == EVENT_SAMPLE and flags & EVENT_FROM_COPY:
            frames, end = struct.unpack_from("<HB", body, 30)
            if frames > 1:  # not of a system call of its last moments
                yield names[end]


@long
def test_copied_stacks():
    """Of programs that are new: their stacks are copied, and walked when the table is there."""
    need_uprobes()
    ends = []
    for turn in range(60):
        program, path = new_scratch("probed"), new_scratch("copied.sysprof")
        shutil.copy(fixture("probed"), program)
        with open(program, "ab") as f:
            f.write(f"{turn}".encode())  # another file, without a table in the cache
        record("-F", 999, "-o", path, "--", "sh", "-c", f"{program} 0.1 work 40; :")
        ends += copied_ends(path)
        if len(ends) >= 15:
            break
    whole = ends.count("root") / max(1, len(ends))
    print(f"  {whole:.3f} of {len(ends)} copied stacks are whole: {set(ends)}")
    # the kernel may be about to replace an address, 42 of which are on the stack
    assert len(ends) >= 15 and whole >= 0.7, ends


if __name__ == "__main__":
    main(globals())
