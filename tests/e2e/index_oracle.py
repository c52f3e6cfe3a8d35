#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""The index of a module has the answers of the module, in all fields, at random addresses of real programs.

The programs are those of dwarf_oracle.py (compilers, versions of DWARF, split, LTO, dwz, Rust), this program,
a Go program, and files without DWARF.
"""
import glob
import os
import shutil
import subprocess

from libe2e import SYSPROF, Skip, long, main, run, scratch

BUILD = os.environ.get("BUILD", "build")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(BUILD)), "build", "oracle")
ORACLE = os.path.join(BUILD, "tests/e2e/index_oracle")
COUNT = 20000
FEW = {"gcc-5", "clang-split-5", "gcc-lto", "libc"}  # of `make test`


def figures(*args):
    result = subprocess.run([ORACLE, *args], capture_output=True, text=True)
    assert not result.returncode, f"{args}: {result.stdout}{result.stderr}"
    words = result.stdout.split()
    print(os.path.basename(args[0]), result.stdout.strip(), flush=True)
    return dict(zip(words[::2], (float(w) for w in words[1::2])))


def compare(path, debug="", alternate="", whole=True):
    got = figures(path, debug, alternate, str(COUNT))
    assert got["different"] == 0 and got["checked"] > COUNT / 10
    if whole:
        assert got["missing"] == 0, f"{path}: {got['missing']} addresses are not covered"
    return got


def programs():
    with open(os.path.join(PROGRAMS, "programs"), encoding="utf-8") as f:
        for line in f:
            name, path, _, debug, alternate, _ = line.rstrip("\n").split("\t")[:6]
            yield name, path, debug, alternate


def compare_those(is_wanted):
    found = [program for program in programs() if is_wanted(program[0])]
    assert found, "nothing was compared"
    for name, path, debug, alternate in found:
        # of a large file the rest is not covered
        compare(path, debug, alternate, whole=name != "rust")


def test_few():
    compare_those(lambda name: name in FEW)


@long
def test_others():
    compare_those(lambda name: name not in FEW)


def test_this_program():
    got = compare(SYSPROF)
    if got["debug"]:
        assert got["bytes"] < 0.15 * got["debug"], got


def test_symbols_alone():
    for path in glob.glob("/lib/x86_64-linux-gnu/libc.so.6") + glob.glob("/lib/ld-musl-*.so.1") + [os.path.realpath("/bin/sh")]:
        compare(path)


def test_go():
    """Its own table; what lies in .text beside Go's code is not covered."""
    path = shutil.which("go")
    if not path:
        raise Skip("there is no Go program")
    got = compare(os.path.realpath(path), whole=False)
    assert got["missing"] < got["checked"] / 20, got


def test_more_than_fits():
    """180,000 functions whose names have nothing in common: the index is a slice with the first of them, and says so."""
    source, path = scratch("many.s"), scratch("many.so")
    with open(source, "w", encoding="ascii") as f:
        f.write(".text\n")
        for i in range(180000):
            name = f"{i:x}_".rjust(7, "f") + f"{(i + 1) * 0x9e3779b97f4a7c15 % (1 << 240):060x}"
            f.write(f".globl {name}\n.type {name}, @function\n{name}: .fill 16, 1, 0x90\n.size {name}, 16\n")
    run("cc", "-shared", "-nostdlib", "-o", path, source, check=0)
    got = compare(path, whole=False)
    assert 1.5 * (1 << 20) < got["bytes"] <= 2 << 20, got
    assert got["checked"] / 2 < got["missing"] < 0.8 * got["checked"], got


if __name__ == "__main__":
    main(globals())
