#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Names, lines and inlined calls of Go programs in every form they come in: whole, without DWARF,
stripped, position-independent, without section headers, with C, as a library of a C program."""
import os
import struct

from libe2e import folded, long, main, read, record, run, scratch, share, user_part, write
from libgo import SOURCES, go_build

LINES = os.path.join(SOURCES, "lines/main.go")
CGO = os.path.join(SOURCES, "lines_cgo/main.go")
C = os.path.join(SOURCES, "lines_cgo/spin.c")


def marked(file, mark):
    """The lines (1-based) that end with this comment."""
    with open(file, encoding="utf-8") as f:
        lines = [n for n, line in enumerate(f, 1) if line.rstrip().endswith(f"/* {mark} */")]
    assert lines, f"no line of {file} is marked {mark}"
    return lines


def drop_section_headers(source, output):
    data = bytearray(read(source, "rb"))
    struct.pack_into("<Q", data, 40, 0)     # e_shoff
    struct.pack_into("<HH", data, 60, 0, 0)  # e_shnum, e_shstrndx
    write(scratch(output), data)
    os.chmod(scratch(output), 0o755)
    return scratch(output)


def rows_of(*command):
    """The user part of each sample's stack, as (["function:line", …], count)."""
    path = scratch("go.folded")
    record("--lines", "--no-symbol-cache", "-F", "997", "-o", path, "--", *command, "1.0")
    return [(user_part(frames), count) for frames, count in folded(path) if user_part(frames)]


def assert_lines(program):
    """Nearly all samples are on the known lines, and come there by the known inlined calls."""
    rows = rows_of(program)
    hot = {f"main.step:{n}" for n in marked(LINES, "hot")}
    chain = [f"main.twice:{marked(LINES, 'call of step')[0]}",
             f"main.(*worker[…]).spin:{marked(LINES, 'call of twice')[0]}"]

    def is_whole(frames):
        frames = [without_arguments(f) for f in frames]
        return frames[-1] in hot and frames[-2:-4:-1] == chain

    on_lines = share(rows, lambda f: f[-1] in hot)
    assert on_lines >= 0.9, f"{on_lines:.3f} on the known lines: {rows}"
    hot_rows = [r for r in rows if r[0][-1] in hot]
    whole = share(hot_rows, is_whole)
    assert whole >= 0.95, f"{whole:.3f} by the inlined calls: {rows}"
    call = marked(LINES, "call of spin")[0]
    callers = share(hot_rows, lambda f: f"main.main.func1:{call}" in f)
    assert callers >= 0.5, f"{callers:.3f} called from the closure: {rows}"


def without_arguments(frame):
    """(*worker[go.shape.uint64]) and, in older versions of Go, (*worker[...])."""
    start, end = frame.find("["), frame.rfind("]")
    return frame[:start] + "[…]" + frame[end + 1:] if 0 <= start < end else frame


def test_whole():
    assert_lines(go_build("lines", "whole"))


@long
def test_without_dwarf():
    assert_lines(go_build("lines", "no-dwarf", "-ldflags=-w"))


def test_stripped():
    assert_lines(go_build("lines", "stripped", "-ldflags=-s -w"))


@long
def test_pie():
    assert_lines(go_build("lines", "pie", "-buildmode=pie", "-ldflags=-s -w", cgo=True))


@long
def test_without_section_headers():
    stripped = go_build("lines", "bare-stripped", "-ldflags=-s -w")
    assert_lines(drop_section_headers(stripped, "bare"))
    pie = go_build("lines", "bare-pie-stripped", "-buildmode=pie", "-ldflags=-s -w", cgo=True)
    assert_lines(drop_section_headers(pie, "bare-pie"))


# ---- with C -------------------------------------------------------------------------------------

def assert_mixed(*command, c_lines):
    """Both halves are on their lines; the C half has none in a program without DWARF."""
    rows = rows_of(*command)
    hot = {f"main.step:{n}" for n in marked(CGO, "hot")}
    in_c = {f"spin_in_c:{n}" for n in marked(C, "hot in C")}
    call = f"main.spin:{marked(CGO, 'call of step')[0]}"
    go = share(rows, lambda f: f[-1] in hot and f[-2:-1] == [call])
    assert 0.25 <= go <= 0.75, f"{go:.3f} on the known lines of Go: {rows}"
    c = share(rows, lambda f: f[-1] in in_c)
    if c_lines:
        assert 0.25 <= c <= 0.75, f"{c:.3f} on the known lines of C: {rows}"
        assert go + c >= 0.9, f"{go:.3f} and {c:.3f}: {rows}"
    else:
        assert c == 0, f"lines of C, which nothing says: {rows}"


def test_cgo():
    assert_mixed(go_build("lines_cgo", "cgo", cgo=True), c_lines=True)


@long
def test_cgo_stripped():
    assert_mixed(go_build("lines_cgo", "cgo-stripped", "-ldflags=-s -w", cgo=True), c_lines=False)
    assert_mixed(go_build("lines_cgo", "cgo-pie", "-buildmode=pie", "-ldflags=-s -w", cgo=True),
                 c_lines=False)


def library(name, *options):
    path = go_build("lines_cgo", name, "-buildmode=c-shared", *options, cgo=True)
    host = scratch(name + "-host")
    run("cc", "-O2", "-o", host, os.path.join(SOURCES, "lines_host.c"), path, check=0)
    return host


@long
def test_library():
    assert_mixed(library("libwhole.so"), c_lines=True)
    assert_mixed(library("libstripped.so", "-ldflags=-s -w"), c_lines=False)


if __name__ == "__main__":
    main(globals())
