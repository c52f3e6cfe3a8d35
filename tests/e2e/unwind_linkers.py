#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long soak
"""Stacks of one known chain of calls without frame pointers, in files as different linkers lay them out and mapped in
different ways: all are whole, and have exactly the functions that were called.

What each layout is made for is checked first, in its program headers, so that a linker that does it otherwise fails
the test instead of passing it.
"""
import itertools
import os
import shutil
import zipfile

from libe2e import (TOP, Skip, firefox_threads, load_json, long, main, need_root, read, record, run, scratch, soak,
                    without_kernel)

SOURCES = os.path.join(TOP, "tests/fixtures/unwind")
PAGE = 4096
COLD = 300000000  # ns after the first sample, until tables and mappings are known
MAPPED = 1500000000  # the same for what is mapped while a program runs
CHAIN = ["outer", "middle", "inner", "leaf"]
SECONDS = 0.4  # of a program: twice the samples that are needed, once it is known
SEPARATE, SHARED = "-Wl,-z,separate-code", "-Wl,-z,noseparate-code"
LIBRARY = ["-DLIBRARY", "-fPIC", "-shared", "-nostdlib"]


def build(name, *flags, source="linked"):
    path = scratch(name)
    run("gcc", "-O2", "-g", "-fomit-frame-pointer", "-o", path, f"{SOURCES}/{source}.c", *flags, check=0)
    return path


class Load:
    """A PT_LOAD, from readelf."""

    def __init__(self, words):
        self.offset, self.address, self.size = int(words[0], 16), int(words[1], 16), int(words[3], 16)
        self.executable = "E" in "".join(words[5:-1])
        self.page = self.offset // PAGE * PAGE
        self.page_end = (self.offset + self.size + PAGE - 1) // PAGE * PAGE


def loads(path):
    lines = run("readelf", "-lW", path, check=0).out.splitlines()
    return [Load(line.split()[1:]) for line in lines if line.split()[:1] == ["LOAD"]]


def code_of(path):
    return [load for load in loads(path) if load.executable]


def shares_its_page(path):
    """Has the first page of the executable segment bytes of a segment before it?"""
    code = code_of(path)[0]
    return code.offset % PAGE and any(other.offset <= code.page < other.offset + other.size
                                      for other in loads(path) if not other.executable)


def is_whole(frames, before, chain):
    """Are they _start, the runtime's own frames, and then exactly the chain?"""
    at = len(frames) - len(chain)
    start = frames[:at]
    return frames[at:] == chain and start[:1] == ["_start"] and before(start[1:])


def c_start(frames):
    return 0 < len(frames) <= 2 and all("libc_start" in frame for frame in frames)


def stacks(path, cold):
    """The user frames of all samples, `cold` ns after the first."""
    for thread in firefox_threads(path):
        start = None
        for when, located in thread.samples():
            start = start or when
            if when - start >= cold:
                yield without_kernel([name for name, _ in located])


def check(name, *command, chain=None, before=c_start, cold=COLD):
    """
    Of samples in the innermost function: what comes before it, the linker's work, is none of the chain's. On a machine
    that is busy ticks are lost, or the collector is held up for longer than `cold`: then it is recorded again.
    """
    need_root()
    rows, wrong, chain = [], [], chain or ["main", *CHAIN]
    for _ in range(5):
        path = scratch("linked.json.gz")
        record("--no-wall", "-F", 4999, "-o", path, "--", *command)
        if len(rows) >= 300:
            rows = []
        rows += [frames for frames in stacks(path, cold) if chain[-1] in frames]
        wrong = [frames for frames in rows if not is_whole(frames, before, chain)]
        print(f"  {name}: {len(rows) - len(wrong)} of {len(rows)} stacks are whole")
        if len(rows) >= 300 and len(wrong) <= 0.01 * len(rows):
            return
    assert len(rows) >= 300, f"{name}: only {len(rows)} samples"
    raise AssertionError(f"{name}: {wrong[:3]}")


# ---- linkers ------------------------------------------------------------------------------------

def check_linker(linker, layouts, modes, part=lambda layout, mode: True):
    for (i, layout), (k, mode) in itertools.product(enumerate(layouts), enumerate(modes)):
        if not part(i, k):
            continue
        path = build("linked", f"-fuse-ld={linker}", *layout, *mode)
        kind = " ".join([*layout, *mode])
        if linker == "lld":
            assert bool(shares_its_page(path)) == (SHARED in layout or not layout), kind
        check(f"{linker} {kind}", path, SECONDS)


def in_half(layout, mode):
    """Half of the pairs of each layout and of each mode."""
    return (layout + mode) % 2 == 0


def in_other_half(layout, mode):
    return not in_half(layout, mode)


BFD = [[SEPARATE], [SHARED]]
GOLD = [[], ["-Wl,--rosegment"]]  # it has no -z separate-code
LLD = [[], [SHARED], [SEPARATE], ["-Wl,-z,separate-loadable-segments"]]  # the first two share pages
MODES = [["-no-pie"], ["-fPIE", "-pie"], ["-static"], ["-static-pie"]]


def test_linkers():
    """Each as most programs are linked, and the layout that once was cut."""
    check_linker("bfd", [[SEPARATE]], MODES[1:2])
    check_linker("gold", [[]], MODES[1:2])
    check_linker("lld", [[]], MODES[1:2])
    check_linker("lld", [[SHARED]], MODES[:1])


def check_linkers(part):
    check_linker("bfd", BFD, MODES, part)
    check_linker("gold", GOLD, MODES[:3], part)  # it links no position-independent static programs
    check_linker("lld", LLD, MODES, part)


@long
def test_layouts():
    check_linkers(in_half)


@soak
def test_other_pairs_of_layouts_and_modes():
    check_linkers(in_other_half)


@long
def test_rustc():
    if not shutil.which("rustc"):
        raise Skip("there is no rustc")
    source, program = scratch("rust_chain.rs"), scratch("rust_chain")
    with open(source, "w", encoding="ascii") as f:
        for caller, callee in zip(CHAIN, CHAIN[1:]):
            f.write(f"#[inline(never)] fn {caller}(n: u64) -> u64 {{ std::hint::black_box({callee}(n)) + 1 }}\n")
        f.write("#[inline(never)] fn leaf(n: u64) -> u64 {\n"
                "    let mut x = 1u64;\n"
                "    for _ in 0..n { x = std::hint::black_box(x.wrapping_mul(6364136223846793005)); }\n"
                "    x\n}\n"
                "fn main() { std::hint::black_box(outer(std::hint::black_box(1_000_000_000))); }\n")
    run("rustc", "-O", "-C", "force-frame-pointers=no", "-o", program, source, check=0)
    check("rustc", program, chain=["rust_chain::" + name for name in ("main", *CHAIN)],
          before=lambda frames: c_start(frames[:2]) and "main" in frames)


# ---- segments -----------------------------------------------------------------------------------

@long
def test_second_executable_segment():
    """A chain that goes from one to the other and back; lld lets both share a page of the file."""
    for linker in "bfd", "lld":
        path = build("second", "-DSECOND", "-no-pie", f"-fuse-ld={linker}", "-Wl,--section-start=second=0x10000a00")
        code = code_of(path)
        assert len(code) == 2, code
        if linker == "lld":
            assert code[0].page == code[1].page, (code[0].offset, code[1].offset)
        check(f"{linker}, two segments", path, SECONDS)


def test_one_segment_for_all():
    """-N: code and data are one segment, which begins in the middle of a page."""
    path = build("omagic", "-static", "-no-pie", "-fuse-ld=bfd", "-Wl,-N,--defsym=__ehdr_start=0x400000")
    segment, = loads(path)
    assert segment.executable and segment.offset % PAGE, segment.offset
    check("bfd -N", path, SECONDS)


BASES = {"bfd": "-Ttext-segment", "gold": "-Ttext-segment", "lld": "--image-base"}


def check_base(linker):
    """Addresses that were chosen when the file was linked, as prelink did."""
    option = BASES[linker]
    path = build("based", "-no-pie", f"-fuse-ld={linker}", f"-Wl,{option}=0x32100000")
    assert code_of(path)[0].address >> 20 == 0x321
    check(f"{linker}, a program at its base", path, SECONDS)
    library = build("libbased.so", *LIBRARY, f"-fuse-ld={linker}", f"-Wl,{option}=0x3ec5e00000")
    assert code_of(library)[0].address >> 20 == 0x3ec5e
    path = build("based", "-DPROGRAM", "-no-pie", library)
    check(f"{linker}, a library at its base", path, SECONDS)


@long
def test_base():
    check_base("lld")


@long
def test_bases():
    check_base("bfd")
    check_base("gold")


# ---- mappings -----------------------------------------------------------------------------------

def entry_of(library):
    """The file offset of outer()."""
    address, = (int(line.split()[0], 16) for line in run("nm", library, check=0).out.splitlines()
                if line.split()[-1] == "outer")
    code, = (load for load in code_of(library) if 0 <= address - load.address < load.size)
    return code.offset + address - code.address


def segment_of(library, base):
    """The arguments of `mapped` for the mapping that a loader would make of the code of a library that lies there."""
    code, = code_of(library)
    return [base + code.page, code.page_end - code.page, base + entry_of(library)]


def check_mapped(name, *arguments):
    check(name, build("mapped", source="mapped"), "1.7", *arguments, chain=["main", "call_for", "call", *CHAIN], cold=MAPPED)


@long
def test_part_of_a_segment():
    """A private mapping that begins at a page in the middle of the code."""
    for linker in "bfd", "lld":
        library = build("libpart.so", *LIBRARY, f"-fuse-ld={linker}")
        entry, code = entry_of(library), code_of(library)[0]
        page = entry // PAGE * PAGE
        assert page > code.page, (entry, code.page)
        check_mapped(f"{linker}, a part", library, page, code.page_end - page, entry)


def test_whole_file_in_one_mapping():
    """Two executable segments in one mapping, at a distance that is not that of their addresses."""
    library = build("libtwo.so", *LIBRARY, "-DALL_SECOND", "-fuse-ld=bfd", "-Wl,--section-start=second=0x9000a00")
    first, second = code_of(library)
    assert second.address - first.address != second.offset - first.offset
    entry, length = entry_of(library), second.page_end
    assert entry >= second.offset
    check_mapped("a whole file", library, 0, length, entry)


def store(archive, libraries):
    """A zip with these files, not compressed, each beginning with a page; where they do, by name."""
    places = {}
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("classes.dex", bytes(10000), zipfile.ZIP_DEFLATED)
        for name, path in libraries.items():
            info = zipfile.ZipInfo(name)
            at = z.fp.tell() + 30 + len(name)
            # as zipalign does: a field that is nothing but room
            room = -(at + 4) % PAGE
            info.extra = b"\x35\xd9" + room.to_bytes(2, "little") + bytes(room)
            z.writestr(info, read(path, "rb"))
            places[name] = at + 4 + room
    return places


@long
def test_libraries_in_a_zip():
    """Mapped from where they lie in it, as Android does: with a build-id, and without."""
    libraries = {}
    for linker, build_id in ("bfd", "sha1"), ("lld", "none"):
        libraries[f"lib/x86_64/lib{linker}.so"] = build(f"libzipped-{linker}.so", *LIBRARY, f"-fuse-ld={linker}",
                                                        f"-Wl,--build-id={build_id}")
    archive, arguments = scratch("app.apk"), []
    places = store(archive, libraries)
    for name, library in libraries.items():
        assert places[name] % PAGE == 0 and places[name] > 0
        with open(archive, "rb") as f:
            f.seek(places[name])
            assert f.read(4) == b"\x7fELF"
        arguments += [archive, *segment_of(library, places[name])]
    check_mapped("two libraries in a zip", *arguments)
    seen = {path for thread in firefox_threads(scratch("linked.json.gz"))
            for _, located in thread.samples() for name, path in located if name in CHAIN}
    assert seen == {f"{archive}!/{name}" for name in libraries}, seen
    # lines come from the debug information in there
    profile = load_json(scratch("linked.json.gz"))
    shared = profile["shared"]
    lines = {shared["stringArray"][shared["funcTable"]["name"][func]]
             for func, line in zip(shared["frameTable"]["func"], shared["frameTable"]["line"]) if line}
    assert lines >= set(CHAIN), lines


if __name__ == "__main__":
    main(globals())
