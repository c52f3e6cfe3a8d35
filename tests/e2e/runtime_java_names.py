#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Java that was started without any flag: its methods have names, files and lines, compiled, inlined and interpreted, in the
live profile and in a replay, and the same names as by the JVM's perf map."""
import base64
import collections
import contextlib
import gzip
import os
import re

from libe2e import (Background, Running, firefox_threads, folded, has_chain, long, main, need_root, read, record, run,
                    scratch, share, sysprof, until_cpu, wait_for, write)
from libjava import MAJOR, cpu_ns, jdk, jdks

SOURCE = """
import java.nio.file.*;
import java.util.function.IntUnaryOperator;

public class Names {
    static volatile int sink;

    static int inner(int n) {
        return n * 31 + (n >>> 7) + sink;
    }

    static int looping(int n) {
        int sum = n;
        for (int i = 0; i < 2000; i++)
            sum += inner(i + sum); // looping
        return sum;
    }

    static int recurse(int depth) {
        return depth == 0 ? looping(sink) : recurse(depth - 1) + 1;
    }

    static int apply(IntUnaryOperator each) {
        int sum = 0;
        for (int i = 0; i < 20; i++)
            sum += each.applyAsInt(i);
        return sum;
    }

    static int cold(int n) {
        int sum = 0;
        for (int i = 0; i < 3000; i++)
            sum += i ^ n;
        return sum;
    }

    static void run() {
        sink += recurse(10);
        sink += apply(n -> looping(n) + 1);
        sink += cold(sink);
    }

    public static void main(String[] args) throws Exception {
        Files.createFile(Path.of(args[0]));
        for (;;)
            run();
    }
}
"""
HZ = 2999
MAIN, RUN = "Names.main", "Names.run"
RECURSE, LOOPING = "Names.recurse", "Names.looping"
INNER, COLD = "Names.inner", "Names.cold"
APPLY, LAMBDA = "Names.apply", "Names.lambda$run$0"
# never compiled, so that its frames are the interpreter's
EXCLUDED = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,Names.cold"]


def java():
    return os.path.join(jdk(), "bin/java")


def classes():
    place = scratch("java-names")
    if not os.path.exists(place):
        os.mkdir(place)
        source = os.path.join(place, "Names.java")
        write(source, SOURCE[1:])
        run("javac", "-d", place, source, check=0)
    return place


@contextlib.contextmanager
def running(binary, *flags):
    """The program, when it has compiled what is hot."""
    with Running(binary, *flags, "-cp", classes(), "Names") as program:
        before = cpu_ns(program.pid)
        wait_for(lambda: cpu_ns(program.pid) > before + 2e9, what="what is hot to be compiled")
        yield program


def stacks_of(pid, *options):
    """(the stacks of the thread that runs main, a Firefox profile)"""
    paths = [scratch(f"java{suffix}") for suffix in (".folded", ".sysprof", ".json")]
    # the tables of its files are built when they are first met
    record("-p", pid, "-d", 0.5, *options, "-o", paths[0])
    for seconds in 0.7, 2, 4, 8, 16, 16:
        record("-p", pid, "-F", HZ, "-d", seconds, *options, *[x for path in paths for x in ("-o", path)])
        rows = [(frames, count) for frames, count in folded(paths[0]) if any("JavaMain" in f for f in frames)]
        if sum(count for _, count in rows) > 500:
            break
    assert sum(count for _, count in rows) > 500, "the host gave the program no CPU time"
    again = scratch("again.folded")
    sysprof("convert", paths[1], "-o", again, check=0)
    assert sorted(folded(again)) == sorted(folded(paths[0])), "a replay has other names"
    return [(without_marks(frames), count) for frames, count in rows], paths[2]


def without_marks(frames):
    """Innermost, between two places that the compiler has written down, those inlined at the next one may run, or not."""
    return [frame.removesuffix("_[?]") for frame in frames]


def named(rows, name):
    return share(rows, lambda frames: name in frames)


def line_of(text):
    return 1 + next(i for i, line in enumerate(SOURCE[1:].splitlines()) if text in line)


def check_lines(path, pid, function, lines):
    """Innermost frames of the function are at these lines, mostly."""
    seen = []
    for thread in firefox_threads(path):
        if thread.pid == pid:
            seen += thread.leaf_lines(function)
    near = [n for _, n in seen if n in lines]
    print(f"  {function}: {len(seen)} innermost frames, {len(near)} of them in lines {lines.start} to {lines.stop - 1}")
    assert seen and {os.path.basename(file) for file, _ in seen} == {"Names.java"}, seen[:10]
    assert len(near) > 0.9 * len(seen), seen[:20]


def check_names(binary, *flags):
    need_root()
    with running(binary, *flags) as program:
        rows, firefox = stacks_of(program.pid)
    shares = {name: round(named(rows, name), 3) for name in (MAIN, RUN, RECURSE, LOOPING, INNER, APPLY, LAMBDA, COLD)}
    print(f"  {binary}: {shares}, without a name {named(rows, '[HotSpot]'):.3f}")
    assert shares[MAIN] > 0.95 and shares[RUN] > 0.95, shares
    assert shares[RECURSE] > 0.01 and shares[LOOPING] > 0.3 and shares[APPLY] > 0.1 and shares[LAMBDA] > 0.1, shares
    assert named(rows, "[HotSpot]") < 0.02, shares
    wrong = [f for f, _ in rows if RECURSE in f and not has_chain(f, MAIN, RUN, RECURSE)]
    wrong += [f for f, _ in rows if LAMBDA in f and not has_chain(f, RUN, APPLY)]
    wrong += [f for f, _ in rows if INNER in f and not has_chain(f, LOOPING, INNER)]
    # where it is, innermost, lies between two places that the compiler has written down, and one of them has one more inlined
    wrong += [f for f, _ in rows if f.count(RECURSE) not in range(13)]
    assert share(rows, lambda f: f.count(RECURSE) == 12) < 0.02, shares
    assert not wrong, wrong[0]
    first = line_of("static int looping")
    check_lines(firefox, program.pid, LOOPING, range(first, first + 6))
    return rows, firefox, program.pid


def test_compiled_and_inlined():
    check_names(java())


COUNTED = """
public class Counted {
    static volatile long sink;

    static int straight(int n) {
        n ^= n >>> 16; n *= 0x85ebca6b; n ^= n >>> 13; n *= 0xc2b2ae35;
        return n ^ n >>> 16;
    }

    static int counted(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum += i * i ^ sum >> 3;
        return sum;
    }

    static int caller(int n) { return counted(n) + 1; }

    static int mixing(byte[] all) {
        int sum = 0;
        for (byte each : all)
            sum = straight(sum + each);
        return sum;
    }

    public static void main(String[] args) {
        byte[] all = new byte[20000];
        for (;;)
            sink += caller(20000) + mixing(all) + new byte[1000].length;
    }
}
"""
WITHOUT_WORK = {"Counted.caller", "Counted.main"}


def counted_leaves(*flags):
    """{innermost frame: samples} of the compiled program, and the summary."""
    place = scratch("java-counted")
    os.makedirs(place, exist_ok=True)
    source = os.path.join(place, "Counted.java")
    write(source, COUNTED[1:])
    run("javac", "-d", place, source, check=0)
    with Background(java(), *flags, "-cp", place, "Counted") as program:
        wait_for(lambda: cpu_ns(program.pid) > 2e9, what="what is hot to be compiled")
        for seconds in 0.6, 2, 4, 8, 16:
            leaves = collections.Counter()
            result = record("--no-wall", "-p", program.pid, "-F", HZ, "-d", seconds, "-o", scratch("counted.folded"))
            for frames, count in folded(scratch("counted.folded")):
                leaf = [f for f in frames if not f.endswith("_[k]")][-1]
                leaves[leaf] += count if leaf.startswith("Counted.") else 0
            if leaves.total() > 300:
                break
    print(f"  {' '.join(flags)}: {dict(leaves)}")
    assert leaves.total() > 100, "the host gave the program no CPU time"
    return leaves, result.err


@long
def test_inlined_and_not_described():
    """A loop without a poll, and straight code in a loop, both inlined: no place of the compiler's is in them."""
    need_root()
    # counted loops have no poll with the first two, and are divided by polls with the third
    for collector in "-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC":
        leaves, summary = counted_leaves(collector)
        wrong = sum(n for leaf, n in leaves.items() if leaf in WITHOUT_WORK)
        assert wrong <= 0.05 * leaves.total(), leaves
        marked = sum(n for leaf, n in leaves.items() if leaf.endswith("_[?]") and not leaf.startswith("Counted.mixing"))
        assert leaves["Counted.counted"] > marked, leaves  # the only loop there
        assert not leaves["Counted.mixing"] or leaves["Counted.mixing"] <= 0.05 * leaves.total(), leaves
        assert "-XX:+DebugNonSafepoints" in summary, summary
    leaves, summary = counted_leaves("-XX:+UseSerialGC", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints")
    certain = sum(n for leaf, n in leaves.items() if not leaf.endswith("_[?]") and leaf not in WITHOUT_WORK)
    assert certain >= 0.95 * leaves.total() and leaves["Counted.counted"] and leaves["Counted.straight"], leaves
    assert "DebugNonSafepoints" not in summary, summary


def test_signatures():
    """Types of parameters and result are in the recording, and shown on request; pprof files and the page have both names."""
    need_root()
    signed = {MAIN: "void Names.main(java.lang.String[])", LOOPING: "int Names.looping(int)",
              APPLY: "int Names.apply(java.util.function.IntUnaryOperator)"}
    with running(java()) as program:
        rows, _ = stacks_of(program.pid)
    recording, paths = scratch("java.sysprof"), [scratch(f"signed{suffix}") for suffix in (".folded", ".pb.gz", ".html")]
    assert not {f for frames, _ in rows for f in frames} & set(signed.values()), rows[0]
    sysprof("convert", recording, "--java-signatures", "-o", paths[0], check=0)
    full = {f.removesuffix("_[?]") for frames, _ in folded(paths[0]) for f in frames}
    assert set(signed.values()) <= full and not full & set(signed), full
    report = sysprof("report", recording, "--java-signatures", "--top", 1000, check=0).out
    assert all(name in report for name in signed.values()), report
    sysprof("convert", recording, "-o", paths[1], "-o", paths[2], check=0)
    with gzip.open(paths[1]) as f:
        pprof = f.read()
    page = gzip.decompress(base64.b64decode(re.search(r'id="profile">([^<]*)<', read(paths[2]))[1]))
    for name, full_name in signed.items():
        for text in name, full_name:
            assert text.encode() in pprof and text.encode() in page, text
    assert b'"full_names":[' in page


def check_stubs(binary):
    """From its first instruction on: before the JVM is found, its stacks have no notes. -Xint, so that nothing is compiled."""
    path = scratch("stubs.folded")
    ready = scratch("stubs.ready")
    if os.path.exists(ready):
        os.unlink(ready)
    sysprof("record", "-o", path, "--", *until_cpu(4, binary, "-Xint", "-cp", classes(), "Names", ready), timeout=200, check=137)
    rows = [(frames, count) for frames, count in folded(path) if frames[0] == "java"]
    bare = [f for frames, _ in rows for f in frames if f.startswith("0x")]
    without_notes = sum("[Interpreter]" in frames for frames, _ in rows)
    print(f"  {binary}: {len(bare)} addresses, {without_notes} stacks with interpreted frames that have no notes")
    assert not bare, bare
    # Java is what the call stub calls, and nothing else is
    wrong = [frames for frames, _ in rows if MAIN in frames and not has_chain(frames, "[call stub]", MAIN)]
    assert named(rows, MAIN) > 0.3 and not wrong, wrong[:1]


def test_stubs():
    need_root()
    check_stubs(java())


@long
def test_stubs_in_others():
    need_root()
    for major, home in jdks().items():
        if major != MAJOR:
            check_stubs(os.path.join(home, "bin/java"))


@long
def test_compiled_and_inlined_in_others():
    for major, home in jdks().items():
        if major != MAJOR:
            check_names(os.path.join(home, "bin/java"))


@long
def test_interpreted():
    """Interpreted frames have the lines of their bytecodes, and callers that are compiled."""
    rows, firefox, pid = check_names(java(), *EXCLUDED)
    assert named(rows, COLD) > 0.05, rows[:3]
    first = line_of("static int cold")
    check_lines(firefox, pid, COLD, range(first, first + 6))


def test_beside_an_old_map():
    """A map is a snapshot, and has no method that is interpreted: those are named although there is one."""
    need_root()
    with running(java(), *EXCLUDED) as program:
        path = f"/tmp/perf-{program.pid}.map"
        try:
            run(os.path.join(jdk(), "bin/jcmd"), program.pid, "Compiler.perfmap", check=0)
            rows, _ = stacks_of(program.pid)
        finally:
            if os.path.exists(path):
                os.unlink(path)
    shares = {name: round(named(rows, name), 3) for name in (MAIN, RUN, COLD, "[Interpreter]")}
    bare = share(rows, lambda frames: any(f.startswith("0x") for f in frames))
    print(f"  {shares}, {bare:.3f} with an address")
    assert shares[MAIN] > 0.95 and shares[RUN] > 0.95 and shares[COLD] > 0.05 and bare < 0.01, shares


@long
def test_same_names_as_by_its_map():
    """The map has one name for all that was inlined, and none of what is interpreted; what it names is called the same."""
    need_root()
    with running(java()) as program:
        rows, _ = stacks_of(program.pid)
    with running(java(), "-XX:+PreserveFramePointer") as program:
        by_map, _ = stacks_of(program.pid, "--jvm-perfmap")
    ours = {f for frames, _ in rows for f in frames if "Names." in f}
    theirs = {f for frames, _ in by_map for f in frames if "Names." in f and not f.startswith("[")}
    print(f"  {len(theirs)} names by the map, {len(ours)} without it")
    # the number of a hidden class is that of its run
    assert theirs and {f for f in theirs if "$$Lambda" not in f} <= ours, (theirs, ours)


main(globals())
