#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Runtimes and C libraries whose code describes no frames: frames that can be found are followed, the rest has its reason."""
import os
import shutil
import struct
import sys

from libe2e import (Background, Skip, alone, firefox_extra, firefox_threads, folded, has_chain, long, main, need_root,
                    record, run, scratch, share, wait_for, without_kernel, write)
from librecorded import recorded
from unwind import SOURCES, is_rooted, warm_samples


def check_java(key):
    recording = recorded("java")
    rows = [without_kernel(frames) for _, frames in warm_samples(recording.output(".json.gz"), recording.pid(key))]
    rooted = sum(map(is_rooted, rows))
    print(f"  {rooted} of {len(rows)} stacks reach the root")
    assert len(rows) > 300 and rooted >= 0.99 * len(rows), (rooted, len(rows))


@alone
@long
def test_java_with_frame_pointers():
    check_java("java")


def test_java_without():
    """Without its flag the frame pointer is used for something else; the code heap says how large each frame is."""
    check_java("launcher")


def forge_32_bit_program():
    """An ELF file of 32 bits whose only instruction jumps to itself."""
    base, code = 0x08048000, b"\xeb\xfe"
    size = 84 + len(code)
    header = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    path = scratch("spin32")
    write(path, header + segment + code)
    os.chmod(path, 0o755)
    return path


def ends_of(pid, text):
    """(samples that ended so, all of them, the folded stacks)"""
    path, stacks = scratch("ends.json.gz"), scratch("ends.folded")
    record("-p", pid, "-d", "1", "-o", path, "-o", stacks)
    ends = firefox_extra(path)["Stacks"]
    return (next((v for k, v in ends.items() if text in k), 0),
            sum(t.count for t in firefox_threads(path)), folded(stacks))


def test_32_bit_task():
    need_root()
    with Background(forge_32_bit_program()) as program:
        cut, samples, stacks = ends_of(program.pid, "a 32-bit task")
    assert samples > 20 and cut >= 0.99 * samples, (cut, samples)
    assert share(stacks, lambda f: f[1].startswith("[spin32")) >= 0.9, stacks


def test_io_uring_worker():
    """A thread of the kernel's that polls for a process; it has no user stack of its own."""
    need_root()
    with Background(sys.executable, os.path.join(SOURCES, "io_uring_poll.py"), "20") as program:
        wait_for(lambda: len(os.listdir(f"/proc/{program.pid}/task")) > 1, what="its thread")
        cut, samples, stacks = ends_of(program.pid, "a kernel worker")
    assert samples > 20 and cut >= 0.9 * samples, (cut, samples)
    assert share(stacks, lambda f: f[0].startswith("iou-sqp") and "io_sq_thread_[k]" in f) >= 0.9, stacks


def test_musl():
    """No call frame information at all in the C library, so not in what a handler returns to either."""
    if not shutil.which("musl-gcc"):
        raise Skip("there is no musl-gcc")
    for name, flags in ("static", ["-static"]), ("dynamic", []):
        program, path = scratch(f"alarms-{name}"), scratch(f"alarms-{name}.folded")
        run("musl-gcc", "-O2", "-g", "-fomit-frame-pointer", *flags, "-o", program,
            os.path.join(SOURCES, "alarms.c"), check=0)
        record("-o", path, "--", program, "2")
        rows = [(f, n) for f, n in folded(path) if "answer" in f]
        # the first alarm comes in setitimer(), which starts the timer
        good = share(rows, lambda f: has_chain(f, "on_alarm", "answer") and (has_chain(f, "main", "wait_for_alarms", "spin") or
                     has_chain(f, "main", "setitimer") or "clock_gettime" in " ".join(f)))
        print(f"  {name}: {good:.4f} of the stacks go through the signal")
        assert good >= 0.99, rows


if __name__ == "__main__":
    main(globals())
