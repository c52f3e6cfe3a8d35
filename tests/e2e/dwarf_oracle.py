#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 900
# runs: beside long
"""Inline chains against llvm-symbolizer: every level of random addresses of real programs.

Depth, file, line and linkage name of every level are equal, whatever compiler, version of DWARF
and way of linking. GNU addr2line is a second judge where it can be one. The programs are built by tests/e2e/oracle/build.sh; ORACLE_ADDRESSES=N changes
how many addresses are requested of each.
"""
import collections
import functools
import json
import os
import random
import re
import struct
import subprocess

from libe2e import long, main, read

BUILD = os.environ.get("BUILD", "build")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(BUILD)), "build", "oracle")
RESOLVE = os.path.join(BUILD, "tests/e2e/resolve")
COUNT = int(os.environ.get("ORACLE_ADDRESSES", 8000))
LEAST = 5000
FEW = {"gcc-5", "clang-split-5", "dwz"}  # of `make test`; `make test-all` compares the others
# What addr2line reads whole. It loses levels on clang's output, reads no .dwo, and takes wrong files out of what
# dwz has rearranged (libc's).
SECOND_JUDGE = {"gcc-4", "gcc-5", "gcc-lto", "lz4-gcc", "rust"}
CUT_NAME = 4000  # readable names are cut somewhere behind this
SHARE_OF_EXCEPTIONS = 0.001
SUFFIX = re.compile(r"\.(cold|part|isra|constprop|lto_priv|llvm|localalias)(\.\d+)*$")

# A line of the list that build.sh leaves. deep: two levels on average, or nothing was tested; debug, alternate:
# the separate debug file and its dwz file; same: a file of the same code whose DWARF the judge can read.
Program = collections.namedtuple("Program", "name path deep debug alternate same")

# (program, first address, last address, class, reason): what may differ. Addresses are those of the program as the
# versions of compilers built it that are named in the reason; "*" is any program.
EXCEPTIONS = []


class Elf:
    """Executable sections, symbols and build-id of an ELF64 file, read by nothing of ours."""

    def __init__(self, path):
        self.path = path
        self.data = read(path, "rb")
        offset, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3a)
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size)
                        for i in range(count)]
        self.names = self.headers[names][4]

    def name(self, header):
        start = self.names + header[0]
        return self.data[start:self.data.index(b"\0", start)].decode()

    def text(self):
        """(address, size) of executable sections that are in the file, without linker's stubs."""
        return [(h[3], h[5]) for h in self.headers
                if h[1] == 1 and h[2] & 4 and not self.name(h).startswith(".plt")]

    def symbols(self):
        """Address -> names of functions, as sorted (start, end, name)."""
        found = []
        for h in self.headers:
            if h[1] not in (2, 11):
                continue
            strings = self.headers[h[6]][4]
            for at in range(h[4], h[4] + h[5], 24):
                name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
                if info & 15 in (2, 10) and section:
                    end = self.data.index(b"\0", strings + name)
                    text = self.data[strings + name:end].decode(errors="replace")
                    found.append((value, value + size, text.split("@")[0]))
        return sorted(found)


def random_addresses(elf, count):
    rng = random.Random(os.path.basename(elf.path))
    sections = elf.text()
    total = sum(size for _, size in sections)
    picked = set()
    for place in rng.sample(range(total), min(count, total)):
        for address, size in sections:
            if place < size:
                picked.add(address + place)
                break
            place -= size
    return sorted(picked)


def path_of(file):
    return os.path.normpath(file) if file and not file.startswith("??") and file != "?" else "?"


def name_of(name):
    """The linkage name without what compilers add to clones."""
    while SUFFIX.search(name):
        name = SUFFIX.sub("", name)
    return name


def readable_part(name):
    """Without which of its forms a constructor is: they read the same."""
    return re.sub(r"([CD])[0-5](?=[EI])", r"\1", name)


def judge(path, addresses):
    """llvm-symbolizer's chains: lists of (name, file, line), innermost first."""
    result = subprocess.run(
        ["llvm-symbolizer", "--inlines", "--no-demangle", "--output-style=JSON", "--obj=" + path],
        input="".join(f"0x{a:x}\n" for a in addresses), capture_output=True, text=True, check=True)
    chains = []
    for line in result.stdout.splitlines():
        chains.append([(f["FunctionName"] or "?", path_of(f["FileName"]), f["Line"])
                       for f in json.loads(line)["Symbol"]])
    assert len(chains) == len(addresses), f"{path}: {len(chains)} answers"
    return chains


def second_judge(path, addresses):
    """addr2line's chains, as judge()'s."""
    result = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", path],
                            input="".join(f"{a:x}\n" for a in addresses), capture_output=True,
                            text=True, check=True, errors="replace")
    chains, lines = [], iter(result.stdout.splitlines())
    for name in lines:
        if name.startswith("0x"):
            chains.append([])
            continue
        file, line = re.sub(r" \(discriminator \d+\)$", "", next(lines)).rsplit(":", 1)
        chains[-1].append((name, path_of(file), int(line) if line.isdigit() else 0))
    assert len(chains) == len(addresses), f"{path}: {len(chains)} answers"
    return chains


def ours(program, addresses):
    """resolve's chains: (by DWARF, by the module's merge, last lines)."""
    command = [RESOLVE, program.path, program.debug, program.alternate]
    result = subprocess.run(command, input="".join(f"{a:x}\n" for a in addresses),
                            capture_output=True, text=True, check=True, errors="replace")
    dwarf, module, rest = [], [], {}
    for line in result.stdout.splitlines():
        kind, *fields = line.split("\t")
        if kind == "A":
            dwarf.append([])
            module.append([])
        elif kind == "D":
            dwarf[-1].append((fields[0], path_of(fields[1]), int(fields[2])))
        elif kind == "M":
            module[-1].append((fields[0], path_of(fields[1]), int(fields[2])))
        else:
            rest[kind] = [int(f) for f in fields]
    assert len(dwarf) == len(addresses), f"{program.path}: {len(dwarf)} answers\n{result.stderr}"
    return dwarf, module, rest


def covering(symbols, address):
    """Names of all symbols that cover an address."""
    return {name for start, end, name in symbols if start <= address < end}


class Covering:
    """The same, for many addresses."""

    def __init__(self, symbols):
        self.symbols = symbols
        self.known = {}

    def names(self, address):
        # symbols nest and overlap; few enough reach over any one address
        block = address >> 12
        if block not in self.known:
            self.known[block] = [s for s in self.symbols
                                 if s[0] >> 12 <= block <= max(s[1] - 1, s[0]) >> 12]
        return covering(self.known[block], address)


def difference(address, mine, theirs, symbols):
    """Why two chains differ, or None."""
    if len(mine) != len(theirs):
        return "depth"
    for level, (a, b) in enumerate(zip(mine, theirs)):
        outermost = level + 1 == len(mine)
        # for code without a line the judge takes a file from the symbol table
        if a[1] != b[1] and (a[2] or b[2]):
            return "file"
        if a[2] != b[2]:
            return "line"
        if name_of(a[0]) == name_of(b[0]):
            continue
        names = {name_of(n) for n in symbols.names(address)}
        # the judge takes the outermost name from the symbol table; without DWARF's it is not ours
        if not outermost or not names or name_of(b[0]) not in names | {"??", ""}:
            return "name"
        if a[0] != "?" and not is_name_of(a[0], names):
            return "name"
    return None


def is_name_of(name, symbols):
    """The linkage name of one of these; DWARF has but the bare name of what is not external."""
    plain = name.lstrip("~").split("<")[0]
    bare = "cl" if plain == "operator()" else f"{len(plain)}{plain}"
    return any(bare in s or readable_part(name) == readable_part(s) for s in symbols)


def has_dwarf(chain):
    """The judge takes a file's name from the symbol table as well, but no line."""
    return len(chain) > 1 or any(line for _, _, line in chain)


def check_symbol(program, address, shown, names):
    """Without DWARF a symbol that covers the address names it."""
    assert not names or shown and shown[0][0] in demangled(names).values(), \
        f"{program.name}: {address:#x} is {shown}, not one of {names}"


def excused(program, address, kind):
    for name, first, last, excused_kind, reason in EXCEPTIONS:
        if name in (program, "*") and first <= address <= last and kind == excused_kind:
            return reason
    return None


def demangled(names):
    names = sorted(names)
    result = subprocess.run(["c++filt", "--no-verbose"], input="\n".join(names) + "\n",
                            capture_output=True, text=True, check=True)
    return dict(zip(names, result.stdout.splitlines()))


def check_module(program, addresses, dwarf, module):
    """What the program shows is what the DWARF says, with readable names."""
    readable = demangled({f[0] for chain in dwarf for f in chain})
    wrong = []
    for address, by_dwarf, shown in zip(addresses, dwarf, module):
        if not by_dwarf:
            continue
        if [f[1:] for f in by_dwarf] != [f[1:] for f in shown]:
            if by_dwarf[0][0] != "?" or shown:
                wrong.append((address, by_dwarf, shown))
            continue
        for a, b in zip(by_dwarf[:-1], shown[:-1]):
            if readable[a[0]] != b[0] and not (len(b[0]) > CUT_NAME and readable[a[0]].startswith(b[0])):
                wrong.append((address, a, b))
    assert not wrong, f"{program.name}: {len(wrong)} of the module's differ: {wrong[:3]}"


@functools.cache
def lines_of(path):
    return read(path, "rb").count(b"\n")


def impossible(theirs):
    """It names a line that its file has not: the wrong file of DWARF 5's two ways to count them."""
    return any(os.path.exists(file) and line > lines_of(file) for _, file, line in theirs)


def second_difference(address, mine, theirs, symbols):
    """
    Why they differ, or None. addr2line takes the innermost name from the symbol table, and for padding
    between functions, of which there is a line but no name, the name of the function before.
    """
    if len(mine) != len(theirs):
        return "depth"
    if [f[1:] for f in mine] != [f[1:] for f in theirs]:
        return None if impossible(theirs) else "place"
    if len(mine) == 1 and mine[0][0] == "?":
        return "name" if symbols.names(address) else None
    for level, (a, b) in enumerate(zip(mine, theirs)):
        outer = 0 < level < len(mine) - 1
        if name_of(a[0]) != name_of(b[0]) and (outer or b[0] not in symbols.names(address)):
            return "name"
    return None


def compare_again(program, addresses, mine, symbols):
    levels = compared = 0
    differing = []
    for address, a, b in zip(addresses, mine, second_judge(program.path, addresses)):
        if not a:
            continue
        compared += 1
        levels += len(b)
        kind = second_difference(address, a, b, symbols)
        if kind:
            differing.append((kind, address, a, b))
    print(f"{program.name:18} {compared:6} with DWARF, {levels:6} levels by addr2line, "
          f"{len(differing)} different", flush=True)
    for kind, address, a, b in differing[:int(os.environ.get("SHOW", 6))]:
        print(f"  {address:#x} {kind}\n    ours      {a}\n    addr2line {b}")
    assert compared >= min(LEAST, COUNT), f"{program.name}: only {compared} compared"
    return differing


def compare(program):
    elf = Elf(program.path)
    symbols = Covering(sorted(elf.symbols() +
                              (Elf(program.debug).symbols() if program.debug else [])))
    addresses = random_addresses(elf, COUNT)
    theirs = judge(program.same or program.path, addresses)
    mine, module, _ = ours(program, addresses)
    levels = with_dwarf = without = exceptions = 0
    differing = []
    for address, a, b, shown in zip(addresses, mine, theirs, module):
        if not a and not has_dwarf(b):
            without += 1
            check_symbol(program, address, shown, symbols.names(address))
            continue
        with_dwarf += 1
        levels += len(b)
        kind = difference(address, a, b, symbols)
        if kind and excused(program.name, address, kind):
            exceptions += 1
        elif kind:
            differing.append((kind, address, a, b))
    average = levels / max(with_dwarf, 1)
    print(f"{program.name:18} {len(addresses):6} addresses, {with_dwarf:6} with DWARF, "
          f"{levels:6} levels ({average:.2f} each), {without} without, {exceptions} exceptions, "
          f"{len(differing)} different", flush=True)
    for kind, address, a, b in differing[:int(os.environ.get("SHOW", 6))]:
        print(f"  {address:#x} {kind}\n    ours   {a}\n    judge  {b}")
    check_module(program, addresses, mine, module)
    assert exceptions <= SHARE_OF_EXCEPTIONS * len(addresses), f"{program.name}: too many exceptions"
    assert with_dwarf >= min(LEAST, COUNT), f"{program.name}: only {with_dwarf} compared"
    assert average >= 2 or not program.deep, f"{program.name}: {average:.2f} levels an address"
    if program.name in SECOND_JUDGE:
        differing += compare_again(program, addresses, mine, symbols)
    return len(addresses), levels, differing


def report_missing():
    """What build.sh could not make. Where everything is due, that is a failure."""
    missing = read(os.path.join(PROGRAMS, "missing")).strip()
    if missing:
        print("left out:\n  " + missing.replace("\n", "\n  "))
    assert not missing or os.environ.get("CI") != "true", "programs are missing"


def compare_those(is_wanted):
    report_missing()
    with open(os.path.join(PROGRAMS, "programs"), encoding="utf-8") as f:
        programs = [Program(*(line.rstrip("\n").split("\t") + [""] * 6)[:6]) for line in f]
    assert SECOND_JUDGE & {program.name for program in programs}, "nothing for addr2line to judge"
    total = total_levels = 0
    failed = []
    for program in programs:
        if not is_wanted(program.name):
            continue
        count, levels, differing = compare(program)
        total += count
        total_levels += levels
        if differing:
            failed.append(program.name)
    print(f"{total} addresses, {total_levels} levels compared")
    assert total, "nothing was compared"
    assert not failed, f"different: {', '.join(failed)}"


def test_few():
    """Of both compilers, with .dwo files, and what dwz has rearranged."""
    compare_those(lambda name: name in FEW)


@long
def test_others():
    compare_those(lambda name: name not in FEW)


if __name__ == "__main__":
    main(globals())
