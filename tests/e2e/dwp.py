#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Programs whose DWARF is in .dwo files, and those in one .dwp file beside the program.

libdw reads such packages from version 0.191 on. Where the system's is older, what it does is held
against the truth (names, and a word about the lines), and a newer libdw, fetched beside the tests
(libdw/fetch.sh), has to find all lines.
"""
import os
import re
import shutil

from libe2e import BUILD, SANITIZED, SYSPROF, TOP, Skip, folded, kernel_part, main, need_root, run, scratch, share

SOURCE = os.path.join(TOP, "tests/fixtures/inlined.c")
NEWER = os.path.join(os.path.dirname(BUILD), "build/libdw/lib")
LOADER = os.path.join(NEWER, "ld-linux-x86-64.so.2")
# Debian 12's gold cannot pack DWARF 5, its LLVM hangs over gcc's
KINDS = (("gcc", 4, "dwp"), ("clang", 4, "llvm-dwp"), ("clang", 5, "llvm-dwp"))
CHAIN = [r"own_spin:\d+", r"many_steps:\d+", r"both_steps:\d+", r"step_(hot|warm):\d+"]


def system_reads_packages():
    return run("pkg-config", "--exists", "libdw >= 0.191").status == 0


def newest_libdw():
    """What to put before sysprof so that it runs on a libdw that reads packages."""
    if system_reads_packages():
        return []
    if not os.path.exists(LOADER):
        raise Skip("libdw is older than 0.191, and libdw/fetch.sh got no newer one")
    if SANITIZED:
        raise Skip("AddressSanitizer's library does not run on another C library than its own")
    return [LOADER, "--library-path", NEWER]


def packed_program(root, compiler, version, packer, *flags):
    """The fixture in root/bin with all its DWARF in a .dwp file: its path there."""
    for tool in (compiler, packer):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}")
    directory = os.path.join(root, "bin")
    os.makedirs(directory)
    built = run(compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", f"-gdwarf-{version}",
                "-gsplit-dwarf", "-w", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                *flags, "-c", SOURCE, "-o", "inlined.o", cwd=directory)
    assert built.status == 0, built
    built = run(compiler, *flags, "-Wl,--build-id=sha1", "-o", "inlined", "inlined.o", "-ldl",
                cwd=directory)
    if built.status and flags:
        raise Skip("no static C library to build a container's program with")
    assert built.status == 0, built
    run(packer, "inlined.dwo", "-o", "inlined.dwp", cwd=directory, check=0)
    os.unlink(os.path.join(directory, "inlined.dwo"))
    return os.path.join(directory, "inlined")


def profile(before, *command):
    """(stacks of the work, what was said)"""
    need_root()
    out = scratch("packed.folded")
    result = run(*before, SYSPROF, "record", "--lines", "--no-symbol-cache", "-o", out, "--", *command,
                 "1", check=0)
    rows = [(frames[1:], n) for frames, n in folded(out) if not kernel_part(frames)]
    rows = [(frames, n) for frames, n in rows if any("spin" in f for f in frames)]
    assert rows, result
    return rows, result.err


def has_chain(frames):
    return len(frames) >= 4 and all(map(re.fullmatch, CHAIN, frames[-4:]))


def test_lines():
    before = newest_libdw()
    for compiler, version, packer in KINDS:
        program = packed_program(scratch(f"{compiler}-{version}"), compiler, version, packer)
        rows, said = profile(before, program)
        print(f"  {compiler}, DWARF {version}: {share(rows, has_chain):.3f} have the chain")
        assert share(rows, has_chain) >= 0.9, (compiler, version, rows, said)
        assert "lines are missing: inlined" not in said, said


def test_lines_inside_a_container():
    """The package is beside the program in its root, and nowhere else."""
    before = newest_libdw()
    root = scratch("root")
    packed_program(root, *KINDS[0], "-static")
    rows, said = profile(before, "chroot", root, "/bin/inlined")
    assert share(rows, has_chain) >= 0.9, (rows, said)


def test_package_of_another_program():
    """Its units are not those that are wanted."""
    before = newest_libdw()
    program = packed_program(scratch("own"), *KINDS[0])
    other = packed_program(scratch("other"), *KINDS[0], "-DOTHER", "-O1")
    os.replace(other + ".dwp", program + ".dwp")
    rows, said = profile(before, program)
    assert not any(has_chain(frames) for frames, _ in rows), rows
    assert re.search(r"lines are missing: .*inlined: a part .* missing", said), said


def test_damaged_package():
    before = newest_libdw()
    program = packed_program(scratch("damaged"), *KINDS[0])
    with open(program + ".dwp", "r+b") as f:
        f.seek(os.path.getsize(program + ".dwp") // 3)
        f.write(os.urandom(2000))
    rows, _ = profile(before, program)
    assert share(rows, lambda f: f[-1].startswith("own_spin") or has_chain(f)) >= 0.9, rows


def test_older_libdw():
    """Names from the symbol table, and why there is no more."""
    if system_reads_packages():
        raise Skip("libdw reads packages here")
    rows, said = profile([], packed_program(scratch("older"), *KINDS[0]))
    named = share(rows, lambda f: f[-1].startswith("own_spin"))
    assert named >= 0.9, (rows, said)
    assert re.search(r"lines are missing: .*inlined: its debug information is in a .dwp", said), said


if __name__ == "__main__":
    main(globals())
