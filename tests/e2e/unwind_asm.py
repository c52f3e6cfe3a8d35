#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Code that no FDE covers: callers are inferred from its instructions, and none of them is wrong.

The oracle is the program itself: single steps keep a stack of their own (unwind_steps.c), and what a
function of somebody else's program returns to is its caller.
"""
import os
import random
import re
import shutil
import subprocess

from libe2e import (BUILD, SANITIZED, TOP, Background, alone, firefox_extra, folded, long, main, need_root, read,
                    record, run, scratch, share, total, user_part, write)

SOURCES = os.path.join(TOP, "tests/fixtures/unwind")
FLAGS = ["-O2", "-g", "-fomit-frame-pointer"]
STOPS = 25 if SANITIZED else 70
WAYS = ("deeper", "by_pointer", "by_frame_pointer", "who_jumps")


def built(name, *flags, sources=("asm.c", "asm.S")):
    program = scratch(name)
    run("gcc", *FLAGS, *flags, "-o", program, *(os.path.join(SOURCES, s) if s.startswith("asm.") else s for s in sources),
        check=0)
    return program


def described():
    return built("asm-described", "-DCFI")


def undescribed():
    return built("asm-undescribed")


def through_plt():
    library = scratch("libasm.so")
    run("gcc", "-shared", "-fPIC", "-o", library, os.path.join(SOURCES, "asm.S"), check=0)
    return built("asm-plt", "-fno-pie", "-no-pie", f"-Wl,-z,lazy,-rpath,{os.path.dirname(library)}",
                 sources=("asm.c", library))


def steps(*args):
    result = run(os.path.join(BUILD, "tests/e2e/unwind_steps"), *args)
    count = {x[1]: int(x[2]) for x in (line.split() for line in result.out.splitlines()) if x[0] == "total"}
    print("  " + ", ".join(f"{value} {key}" for key, value in count.items()))
    assert count and result.status == 0, result
    assert not any(key.startswith("wrong") for key in count), result
    return count, result


def test_the_oracle():
    """With CFI every step is right by table: the stack that single steps keep is the truth."""
    count, _ = steps("every-step", described(), "steps")
    assert count["stops"] > 8000 and count["right_table"] == count["stops"] and not count["undescribed"], count


def check_every_step(program):
    count, result = steps("every-step", program, "steps")
    assert count["undescribed"] > 2500, count
    assert count["right_inferred"] >= count["undescribed"], result
    assert count["right_inferred"] + count["right_table"] == count["stops"], result


def test_every_step():
    check_every_step(undescribed())


@long
def test_every_step_through_the_plt():
    check_every_step(through_plt())


def test_what_cannot_be_reported():
    """A stack or frame pointer that is kept elsewhere, room above which nothing is known: cut."""
    count, _ = steps("every-step", undescribed(), "lost")
    assert count["undescribed"] > 300 and count["cut"] + count["cut_later"] > 100, count


NATIVE = """
volatile long sink;
__attribute__((noinline)) long leaf(long x) { for (int i = 0; i < 200; i++) sink += x * i; return sink; }
__attribute__((noinline)) long middle(long x) { long y = leaf(x + 1); return y + leaf(y); }
__attribute__((noinline)) long outer(long x) { long y = middle(x + 1); return y ^ middle(y); }
"""
START = """
#include <stdlib.h>
#include <time.h>
long outer(long);
int main(int c, char **v)
{
    struct timespec t = {};
    while (t.tv_sec < atol(v[1])) { for (int i = 0; i < 100; i++) outer(i); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); }
}
"""


def native(name, change=lambda asm: asm, before=""):
    """Code as GraalVM makes it: no CFI, no frame pointers. `before` is assembly in front of it."""
    base = scratch(name)
    for suffix, text in ((".c", NATIVE), ("-start.c", START), ("-before.s", f".text\n{before}\n.section .note.GNU-stack,\"\"\n")):
        write(base + suffix, text)
    run("gcc", "-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fcf-protection=none",
        "-S", base + ".c", "-o", base + ".s", check=0)
    asm = change(read(base + ".s"))
    write(base + ".s", asm)
    run("gcc", "-O2", "-o", base, base + "-start.c", base + "-before.s", base + ".s", check=0)
    return base


def whole_chains(program):
    path = scratch("native.folded")
    err = record("-F", "999", "-o", path, "--", program, "1").err
    rows = [user_part(frames) for frames, count in folded(path) for _ in range(count)]
    rows = [frames for frames in rows if frames and frames[-1] == "leaf"]
    # ticks before the table is there, and those that are late where another guest has the CPU
    early, lost = (int((re.search(said, err) or [0, 0])[1]) for said in (
        r"(\d+) incomplete: the unwind table of a file was not in memory", r"lost: (\d+)"))
    assert len(rows) + lost > 300 and early < len(rows) / 2, err
    # those without callers; one with wrong callers is none of them
    wanted = ["main", "outer", "middle", "leaf"]
    cut = min(early, sum(len(frames) < 4 and frames == wanted[-len(frames):] for frames in rows))
    return sum(frames[-4:] == wanted for frames in rows) / (len(rows) - cut), err


@long
def test_native_images():
    """A nop behind each call, and code far behind the start of what has no CFI."""
    filler = "filler:\n.rept 400000\n sub $24,%rsp\n add $24,%rsp\n ret\n.endr"
    nops = lambda asm: re.sub(r"^(\tcall.*)$", "\\1\n\tnop", asm, flags=re.M)
    for name, change, before in (("near", str, ""), ("nops", nops, ""), ("far", str, filler)):
        share_of, err = whole_chains(native(name, change, before))
        print(f"  {name}: {share_of:.3f}")
        assert share_of > 0.95 and "code without CFI, whose" not in err, (name, share_of, err)


@long
def test_a_limit_is_counted():
    """Code whose rules take too many passes has none, and the summary says so."""
    path = scratch("left.folded")
    err = record("-F", "999", "-o", path, "--", native("left", str, "endless:\n ret\n.byte 0xeb,0xfd\n.rept 3000\n.byte 0xeb,0xfc\n.endr"), "1").err
    found = re.search(r"left out: .*: [0-9]+ bytes left \(code without CFI.*", err)
    print(f"  {found and found.group(0)}")
    assert found, err


def chains(program):
    """{(frames from main on): samples} of what was sampled in the hand-written functions, and the whole share."""
    path = scratch(os.path.basename(program) + ".folded")
    record("-F", "1999", "-o", path, "--", program, "spin", "3")
    rows = [(user_part(frames), count) for frames, count in folded(path)]
    rows = [(frames, count) for frames, count in rows if frames and frames[-1].startswith(("asm_", "inner", "called_back"))]
    whole = share(rows, lambda frames: "main" in frames)
    found = {}
    for frames, count in rows:
        if "main" in frames:
            chain = tuple(frames[frames.index("main"):])
            found[chain] = found.get(chain, 0) + count
    return found, whole, total(rows)


def is_a_chain(chain):
    """main, in_all_ways, deeper or not, one of the ways, and what was called."""
    rest = [f for f in chain[1:] if f != "deeper"]
    if rest[:1] != ["in_all_ways"]:
        return False
    rest = rest[1:]
    if rest and (rest[0] in WAYS or rest[0].startswith("by_name_asm_")):
        way, rest = rest[0], rest[1:]
    else:
        return False
    name = way[len("by_name_"):] if way.startswith("by_name_") else rest[0] if rest else ""
    bodies = {"asm_tail": (["asm_tail"], ["asm_push2"]), "asm_calls": (["asm_calls"], ["asm_calls", "inner"]),
              "asm_aligned_calls": (["asm_aligned_calls"], ["asm_aligned_calls", "inner"]),
              "asm_calls_back": (["asm_calls_back"], ["asm_calls_back", "called_back"])}
    return rest in bodies.get(name, ([name],)) or (not way.startswith("by_name_") and rest[:1] == ["asm_tail"])


@alone
def test_recorded():
    """The same stacks as with CFI, and as many of them whole."""
    with_cfi, whole_cfi, count_cfi = chains(described())
    without, whole, count = chains(undescribed())
    print(f"  whole: {whole_cfi:.4f} of {count_cfi} with CFI, {whole:.4f} of {count} without")
    assert count > 1500 and count_cfi > 1500, (count, count_cfi)
    assert whole >= 0.99 and whole_cfi >= 0.99
    for chain in with_cfi | without:
        assert is_a_chain(chain), chain
    common = sum(n for chain, n in without.items() if chain in with_cfi)
    print(f"  {len(with_cfi)} and {len(without)} different ones; {common / sum(without.values()):.4f} are in both")
    assert common >= 0.97 * sum(without.values())


def test_counted():
    """Such frames are a kind of their own."""
    path = scratch("counted.json.gz")
    record("-o", path, "--", undescribed(), "spin", "2")
    labels = {label: value for section in firefox_extra(path).values() for label, value in section.items()}
    found = [value for label, value in labels.items() if "inferred" in label]
    print(f"  {found}")
    assert len(found) == 1 and found[0] > 100, labels


def until_return(least_inferred, *command):
    need_root()
    with Background(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        count, result = steps("until-return", program.pid, STOPS, random.getrandbits(31))
    judged = count["stops"]
    assert judged >= 0.8 * STOPS, result
    right = sum(value for key, value in count.items() if key.startswith("right"))
    assert right >= least_inferred * judged, result


def test_gmp():
    """Multiplication of GNU MP; factor(1) comes with every system."""
    until_return(0.95, "factor", "1522605027922533360535618378132637429718068114961380688657908494580122963258952897654000350692006139")


@long
def test_x264():
    assert shutil.which("ffmpeg"), "there is no ffmpeg: tools/install-deps.sh test"
    until_return(0.95, "ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=640x360:rate=30", "-t", "600",
                 "-c:v", "libx264", "-f", "null", "-")


if __name__ == "__main__":
    main(globals())
