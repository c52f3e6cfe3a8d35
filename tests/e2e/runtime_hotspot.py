#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 900
# runs: beside long soak
"""Stacks of JVMs that were started without a flag, by what their memory says: whole, and the same as the JVM's own walk at the
same instruction (AsyncGetCallTrace), with names, files and lines. SECONDS=600 goes on for so long with classes that are unloaded."""
import collections
import contextlib
import functools
import os
import re
import shutil
import time

from libe2e import BUILD, Background, long, main, need_root, run, scratch, soak, wait_for
from libjava import MAJOR, SOURCES, compiled, cpu_ns, jdk, jdks

ORACLE = os.path.join(BUILD, "tests/e2e/hotspot_oracle")
EXCLUDED = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,Shapes.interpreted"]
TRACE_SIZE = 1 << 20
STOPS = 120
STUBS = 3  # HOTSPOT_STUBS
SECONDS = float(os.environ.get("SECONDS", 0))


def built():
    """The directory with the program and the agent, compiled once."""
    need_root()
    place = scratch("hotspot")
    if not os.path.exists(place):
        os.mkdir(place)
        # of the JDK that javac is of: others may come without
        include = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac") or "/"))), "include")
        run("javac", "-d", place, os.path.join(SOURCES, "Shapes.java"), check=0)
        run("cc", "-O2", "-fPIC", "-shared", "-I", include, "-I", os.path.join(include, "linux"),
            "-o", os.path.join(place, "agent.so"), os.path.join(SOURCES, "trace_agent.c"), check=0)
    return place


@contextlib.contextmanager
def shapes(name, *flags, trace=None):
    """A JVM that makes stacks of this shape, and has compiled what it runs."""
    place, log = built(), scratch(f"log.{name}")
    agent = [f"-agentpath:{place}/agent.so={trace}"] if trace else []
    with open(log, "w", encoding="utf-8") as out:
        command = [os.path.join(jdk(), "bin/java"), "-Xmx256m", *agent, *flags, "-cp", place, "Shapes", name]
        with Background(*command, stdout=out, stderr=out) as java:
            wait_for(lambda: "started" in open(log, encoding="utf-8").read() or java.p.poll() is not None, 30, log)
            assert java.p.poll() is None, open(log, encoding="utf-8").read()
            yield java.pid


def oracle(*args):
    result = run(ORACLE, *args, timeout=100, check=0)
    rows = [line.split() for line in result.out.splitlines()]
    total = {x[1]: int(x[2]) for x in rows if x and x[0] == "total" and x[2].lstrip("-").isdigit()}
    return total, result


def few_differ(total):
    """Of the answers without a mark: at a marked frame the callers are compared, and what is inlined in test_methods_between_places.
    equal_apart: AsyncGetCallTrace reports a place that is not run next."""
    differing, apart, answered = (total.get(name, 0) for name in ("differing", "equal_apart", "answered"))
    return differing <= 0.03 * answered and differing + apart <= 0.1 * answered


def check_stops(name, *flags, rows="fresh", thread="java", seconds=0.5):
    trace = scratch(f"trace.{name}.{rows}")
    with open(trace, "wb") as f:
        f.truncate(TRACE_SIZE)
    with shapes(name, *flags, trace=trace) as pid:
        run("sleep", seconds)
        for seed in 7, 8, 9:  # AsyncGetCallTrace gets some wrong itself: exceptions, leaves as they return; stubs have no rows
            total, result = oracle("stops", pid, STOPS, seed, thread, rows, trace)
            java, answered = total["in_java"], total.get("answered", 0)
            is_whole = total.get("whole", 0) >= (0.96 if rows == "fresh" else 0.9) * java
            if is_whole and few_differ(total):
                break
    print(f"  {name}, rows {rows}: {total}")
    assert java >= 0.5 * STOPS and answered >= 0.3 * java and is_whole, result
    if rows != "fresh":
        return
    assert few_differ(total) and not total.get("marked_callers"), result
    assert total["equal_names"] == total["names"] > 0 and total["equal_files"] == total["files"], result
    assert total["equal_lines"] == total["lines"] > 0, result
    assert total["equal_indices"] >= 0.97 * total["indices"], result


def check_notes(name, *flags, delays=((0, STOPS),)):
    """Names as a recording has them: from the words that are noted at the stop, read so many ms later, at so many stops. Never
    another one unmarked."""
    trace = scratch(f"noted.{name}")
    with open(trace, "wb") as f:
        f.truncate(TRACE_SIZE)
    with shapes(name, *flags, trace=trace) as pid:
        run("sleep", 1.5)
        judged = [oracle("stops", pid, stops, 7, "java", "fresh", trace, milliseconds) for milliseconds, stops in delays]
    for (milliseconds, stops), (total, result) in zip(delays, judged):
        print(f"  {name}, {milliseconds} ms later: {({k: v for k, v in total.items() if 'note' in k})}")
        assert total["noted"] > 4 * stops and total["noted_other"] == 0, result
        assert total["noted_lines_right"] == total["noted_lines"] > 0, result
        assert total["stubs_named"] == total["stubs_noted"] > 0 and total["notes_unanswered"] == 0, result
    return judged


def test_names_of_notes():
    ((total, result),) = check_notes("mixed", delays=[(5, STOPS)])
    assert total["noted_right"] >= 0.99 * total["noted"], result


def test_interpreted_names_of_notes():
    ((total, result),) = check_notes("interpreted", *EXCLUDED)
    assert total["noted_right"] >= 0.99 * total["noted"], result


@long
def test_names_of_classes_that_are_gone():
    """Each class gets the addresses of one that was unloaded: what is read too late is marked, or has no name."""
    until, sums = time.monotonic() + SECONDS, {}
    while not sums or time.monotonic() < until:
        judged = check_notes("passing", delays=[(0, 60), (20, 60), (120, 40)])
        assert judged[-1][0]["notes_stale"] > 0, judged[-1][1]
        for total, result in judged:
            assert total["noted_right"] > 0.2 * total["noted"], result
            for name, count in total.items():
                sums[name] = sums.get(name, 0) + count
    print(f"  in all: {({name: count for name, count in sums.items() if 'noted' in name})}")


def without_address(name):
    """Of a hidden class: W$$Lambda/0x00007f..."""
    return re.sub(r"/0x[0-9a-f]+", "", name)


@functools.cache
def published():
    """Of one JVM: {address: name} of ours and of its map, and what it publishes."""
    with shapes("mixed") as pid:
        run("sleep", 1)
        _, named = oracle("names", pid)
        layout = oracle("layout", pid)
        path = f"/tmp/perf-{pid}.map"
        try:
            run(os.path.join(jdk(), "bin/jcmd"), pid, "Compiler.perfmap", check=0)
            with open(path, encoding="utf-8") as f:
                rows = [line.rstrip("\n").split(" ", 2) for line in f]
        finally:
            if os.path.exists(path):
                os.unlink(path)
    ours = {int(row[1], 16): row[2] for row in (line.split(" ", 2) for line in named.out.splitlines()) if row[0] == "code"}
    return ours, {int(row[0], 16): without_address(row[2]) for row in rows}, layout


def test_perf_map():
    """Compiled methods have the names that the JVM writes into its perf map."""
    ours, written, _ = published()
    both = [address for address in ours if address in written]
    differing = [(ours[a], written[a]) for a in both if ours[a] != written[a]]
    print(f"  {len(both)} methods of {len(ours)} are in the map, {len(differing)} of them have other names: {differing[:3]}")
    # a method can be compiled anew in between
    assert len(both) > 0.8 * len(ours) > 80 and len(differing) <= 0.01 * len(both), differing[:10]


def test_recursion():
    check_stops("recursion")


def test_interpreted_method():
    """Interpreted and compiled frames in turn: the caller's stack pointer is not above the interpreter's frame."""
    check_stops("interpreted", *EXCLUDED)


def test_mixed():
    """Deep inlining, exceptions, garbage, lambdas, strings."""
    check_stops("mixed", seconds=1.5)


@long
def test_threads():
    check_stops("threads", thread="worker")


def test_without_rows():
    """By the frame size of each blob alone: innermost frames that have none, or no longer, are cut."""
    check_stops("mixed", rows="none", seconds=1.5)


def test_every_step():
    """From one instruction to the next the callers stay, but for one at the top."""
    sums, wrong = collections.Counter(), collections.Counter()
    while sums["steps_in_java"] <= 1200 and sums["jvms"] < 6:  # one that was stepped can die of SIGTRAP when it runs again
        with shapes("mixed") as pid:
            run("sleep", 1.5)
            total, result = oracle("steps", pid, 4000, 3 + sums["jvms"], "java", "fresh")
        sums.update(total, jvms=1)
        wrong.update({int(kind): int(n) for kind, n in re.findall(r"^wrong steps in kind (\d+): (\d+)$", result.out, re.M)})
    print(f"  {sums}, wrong by kind of blob: {wrong}")
    assert wrong.total() == sums["steps_broken"] + sums["steps_other"] and sums["steps_in_java"] > 1200, result
    # Stubs have no table, and after their `leave` no frame: how often a step is there depends on which of them is called.
    stubs = wrong.pop(STUBS, 0)
    assert wrong.total() <= 0.005 * sums["steps_in_java"] and stubs <= 0.03 * sums["steps_in_java"], result


def test_what_it_publishes():
    _, _, (total, result) = published()
    print(f"  {total}")
    for part in ("unwind", "name", "line", "count"):
        assert f"can {part} 1" in result.out, result
    assert total["knows_used"] and total["knows_signature"], result
    assert total["words"] == 0 and total["without_rows"] == 0, result
    assert total["nmethods"] > 100 and total["named"] == total["methods"], result
    # of the JVM's own count; wrappers of native methods are not in it, and methods that were replaced are
    assert total["compiles"] >= 0.5 * total["nmethods"], result
    assert total["layout_reads"] < 500, result


# Of tests/fixtures/java/Kinds.java, with the collector; and the share of the samples that may have another method without a mark.
KINDS = [("collections", "G1"), ("streams", "G1"), ("strings", "Parallel"), ("hashes", "Serial"), ("tree", "Serial"), ("numbers", "Serial"),
         ("shapes", "G1"), ("loops", "Serial"), ("loops", "Parallel"), ("collections", "Z")]
WRONG_MAX = 0.03


def check_inlined(kind, collector, major=MAJOR):
    # after it has inlined a call late, the compiler describes all that it still makes, spilled registers too, with that call
    flags = ["-Xmx300m", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints", f"-XX:+Use{collector}GC",
             "-XX:-IncrementalInline", "-XX:-EliminateAutoBox"]
    with Background(os.path.join(jdk(major), "bin/java"), *flags, "-cp", compiled("Kinds"), "Kinds", kind) as java:
        # it has compiled what it runs
        wait_for(lambda: java.p.poll() is not None or cpu_ns(java.pid) > 2.5e9, 100, "2.5 s of CPU time")
        total, result = oracle("inlined", java.pid, 2000)
    count = total["compared"]
    callers = total["wrong_callers"] / max(total["marked"], 1)
    wrong, marked, right = total["wrong"] / count, total["marked"] / count, total["marked_right"] / max(total["marked"], 1)
    print(f"  | {kind} | {major}, {collector} | {100 * wrong:.1f} % | {100 * marked:.0f} % | {100 * right:.0f} % | {100 * callers:.1f} % |", flush=True)
    assert count >= 1000, result
    assert wrong <= WRONG_MAX and callers <= WRONG_MAX, result
    return marked


@long
def test_methods_between_places():
    """Of code that nothing describes in a JVM that was started without a flag: the method's, or marked."""
    need_root()
    check_inlined("collections", "G1")
    check_inlined("streams", "G1")
    assert check_inlined("numbers", "Serial") < 0.5


@soak
def test_methods_between_places_of_all():
    """Of each JDK, in rows of a table."""
    need_root()
    print("  | program | JDK, collector | wrong, not marked | marked | of these the same methods | with a wrong caller |\n"
          "  |---|---|---|---|---|---|")
    for major in jdks():
        for kind, collector in KINDS:
            check_inlined(kind, collector, major)


main(globals())
