#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long soak
"""Instructions as objdump has them: boundaries all, texts nearly all, of functions of real programs.

Functions are those of .eh_frame, one behind the other in a file, so that one run of objdump has all of a program. Texts are
compared after what makes notations of the same equal, below. capstone 4 does not know all of AVX-512: what it does not know
has to be `.byte`, and is counted apart. `make soak` compares more functions of more programs.
"""
import functools
import glob
import os
import re
import shutil
import struct

from libe2e import Skip, long, main, run, scratch, soak, write

BUILD = os.environ.get("BUILD", "build")
TOOL = os.path.join(BUILD, "tests/e2e/disassemble")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
FEW = ["bash", "libc.so.6", "libcrypto.so.3"]
# some of C, some of C++, and some with assembly written by hand
SOME = FEW + ["git", "perl", "gdb", "node", "libstdc++.so.6", "libm.so.6", "libavcodec.so.59", "libx264.so.164", "libdav1d.so.6"]
MANY = SOME + ["ls", "python3.11", "gcc", "ld.bfd", "java", "ruby", "sqlite3", "clang", "nginx", "redis-server", "luajit", "ffmpeg", "openssl",
               "curl", "systemctl", "vim.basic", "perf", "libz.so.1", "libelf.so.1", "libSvtAv1Enc.so.1", "libxml2.so.2", "libsqlite3.so.0",
               "libpython3.11.so.1.0", "libglib-2.0.so.0", "libLLVM-14.so.1", "libgnutls.so.30"]
AVX512 = ["libopenblas.so.0"]
SIZES = {"byte": "b", "word": "w", "dword": "d", "qword": "q"}
ROW = re.compile(r"^ *([0-9a-f]+):\t(.*)", re.M)
WAITING = re.compile(r"f(init|stcw|stenv|save|clex|stsw)( .*|$)")
SMALL_NUMBER = re.compile(r"0x(?=\d(?![0-9a-f]))")
STRING_INSTRUCTION = re.compile(r"((?:repz? |repnz |repe |repne )?)(stos|movs|lods|scas|cmps|ins|outs)([bwdlq]?)( |$)")


# ---- functions of a file

def sections(image):
    offset, = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    rows = [struct.unpack_from("<IIQQQQ", image, offset + i * size) for i in range(count)]
    for name, kind, _, address, start, length in rows:
        at = rows[names][4] + name
        yield image[at:image.index(b"\0", at)].decode(), kind, address, start, length


def functions(image):
    found = list(sections(image))
    frames = [s for s in found if s[0] == ".eh_frame"]
    if not frames:
        return
    _, _, address, start, length = frames[0]
    at = start
    while at < start + length - 4:
        size, cie = struct.unpack_from("<Ii", image, at)
        if size and cie:
            distance, extent = struct.unpack_from("<iI", image, at + 8)
            function = address + at + 8 - start + distance
            for _, kind, begin, place, room in found:
                if kind == 1 and begin <= function and function + extent <= begin + room:
                    yield extent, place + function - begin
        at += 4 + size


def code_of(path, largest, others=0):
    """That many of the largest functions, and at most that many others, of all sizes."""
    with open(path, "rb") as f:
        image = f.read()
    if image[:5] != b"\x7fELF\x02":
        return b""
    found = sorted(set(functions(image)), reverse=True)
    chosen = found[:largest] + (found[largest::len(found) // others + 1] if others else [])
    # what lies between keeps a last instruction that is cut from reaching into the next function
    return b"".join(image[offset:offset + size] + 16 * b"\x90" for size, offset in chosen)


# ---- notations

def sign_removed(match):
    """-1 is 0xff, 0xffff and so on, by the size of the operand."""
    number = int(match[0], 0) % 2**64
    for bits in (32, 16, 8):
        if number >= 2**64 - 2**(bits - 1) or 2**(2 * bits) > number >= 2**(2 * bits) - 2**(bits - 1):
            number %= 2**bits
    return hex(number)


def common(text):
    text = re.sub(r"\s*#.*|\s*<.*?>", "", text)
    text = re.sub(r"\s+", " ", text.strip().lower())
    text = re.sub(r" ?([-+*,]) ", r"\1", text).replace(" {", "{")
    text = re.sub(r"\+(0xf[0-9a-f]{15})(?=\])", lambda m: f"-{2**64 - int(m[1], 16):#x}", text)
    text = re.sub(r"(?<![\w.])-?(?:0x[0-9a-f]+|\d+)\b", sign_removed, text)
    # prefixes without an effect
    text = re.sub(r"^(?:(?:addr32|data16|[cdes]s|rex\S*|repz(?= ret)|repne(?= jmp)) )+", "", text)
    text = text.replace("movabs", "mov")
    text = {"wait": "fwait", "pushfq": "pushf", "popfq": "popf"}.get(text, text)
    carryless = re.match(r"(v?pclmul)([lh])q([lh])qdq (.*)", text)
    if carryless:
        which = hex((carryless[2] == "h") + 16 * (carryless[3] == "h"))
        text = f"{carryless[1]}qdq {carryless[4]},{which}"
    return "nop" if re.match(r"nop|xchg %?ax,%?ax$", text) else text


@functools.lru_cache(2**16)
def intel(text):
    text = re.sub(r"\*0x1(?=[]+-])|[+-]0x0(?=\])", "", common(text)).replace("st(0x0)", "st").replace("fucompi", "fucomip")
    text = re.sub(r"\b([c-g]s):(0x[0-9a-f]+)", r"\1:[\2]", text).replace("ds:[", "[")
    text = text.replace("xword ptr", "tbyte ptr") if text.startswith("f") else text
    moved = STRING_INSTRUCTION.match(text)
    if moved and "xmm" not in text:
        return re.sub("rep[ze] ", "rep ", moved[1]) + moved[2] + (moved[3] or SIZES[re.search(r"(\w+) ptr", text)[1]])
    if text.startswith("f"):
        text = re.sub(r"\bst,|,st$", "", text)
    if text.startswith("v") or re.search(r"mm\d", text):  # the size of an operand in memory
        text = re.sub(r"(\w+ (ptr|bcst) )|\{1to\d+\}", "", text)
    text = re.sub(r"^((?:sha256rnds2|pblendvb|blendvp[sd]) .*),xmm0$", r"\1", text)
    if re.match("(xchg|test) ", text):
        text = text[:5] + ",".join(sorted(text[5:].split(",")))
    return text


def without_blanks(text):
    return SMALL_NUMBER.sub("", text.partition("#")[0]).replace(" ", "").lower()


def is_equal(theirs, ours):
    """Without blanks most are equal already: the rules, which take far longer, are applied to the others only."""
    return without_blanks(theirs) == without_blanks(ours) or intel(theirs) == intel(ours)


# ---- the comparison

def read_objdump(path):
    text = run("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", path, timeout=300, check=0).out
    return dict(part for address, row in ROW.findall(text) for part in parts(int(address, 16), row))


def parts(address, text):
    """objdump shows the wait of `fstcw` and its like as a part of them: it is an instruction of its own, where a sample can be."""
    waiting = WAITING.match(text)
    return [(address, "fwait"), (address + 1, "fn" + text[1:])] if waiting else [(address, text)]


def read_ours(path):
    rows = (line.split(" ", 2) for line in run(TOOL, "intel", path, timeout=300, check=0).out.splitlines())
    return {int(address, 16): text for address, _, text in rows}


class Figures:
    def __init__(self):
        self.instructions = self.unknown = self.differing = 0
        self.examples = []

    def add(self, name, code):
        path = scratch("code")
        write(path, code)
        theirs, ours = read_objdump(path), read_ours(path)
        assert theirs.keys() == ours.keys(), f"{name}: {[hex(a) for a in sorted(theirs.keys() ^ ours.keys())[:5]]}"
        wrong = [a for a in theirs if not is_equal(theirs[a], ours[a])]
        unknown = [a for a in wrong if ours[a].startswith(".byte")]
        self.instructions += len(theirs)
        self.unknown += len(unknown)
        self.differing += len(wrong) - len(unknown)
        self.examples += [f"{name}: {theirs[a]} | {ours[a]}" for a in wrong if a not in unknown][:3]
        print(f"{name}: {len(theirs)} instructions, {len(unknown)} unknown, {len(wrong) - len(unknown)} differ", flush=True)

    def equal(self):
        return 1 - (self.unknown + self.differing) / self.instructions


def find(name):
    at = f"{LIBRARIES}/{name}" if ".so" in name else shutil.which(name)
    return os.path.realpath(at) if at and os.path.exists(at) else None


def compare(names, *choice):
    figures, programs = Figures(), 0
    for name in names:
        path = find(name)
        code = code_of(path, *choice) if path else b""
        if code:
            figures.add(name, code)
            programs += 1
    if not programs:
        raise Skip("none of the programs is installed")
    print(f"{programs} programs, {figures.instructions} instructions: {100 * figures.equal():.4f} % equal, {figures.unknown} unknown, "
          f"{figures.differing} differ", *figures.examples[:20], sep="\n")
    assert figures.differing <= 1e-4 * figures.instructions
    return figures


def test_few_programs():
    assert compare(FEW, 40).equal() >= 0.999


@long
def test_some_programs():
    assert compare(SOME, 40, 400).equal() >= 0.999


@soak
def test_many_programs():
    assert compare(MANY, 500).equal() >= 0.999


def compare_avx512(*choice):
    """Its texts are right or none; capstone 5 knows all of them."""
    knows_all = bool(glob.glob(f"{LIBRARIES}/libcapstone.so.5"))
    assert compare(AVX512, *choice).equal() >= (0.999 if knows_all else 0.97)


@long
def test_some_avx512():
    compare_avx512(20, 200)


@soak
def test_avx512():
    compare_avx512(100)


if __name__ == "__main__":
    main(globals())
