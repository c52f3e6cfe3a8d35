#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Stacks of JVMs that were started without a flag: walked whole to where each thread began, with the words of their functions."""
import collections
import contextlib
import os
import signal
import struct

from libe2e import EVENT_SAMPLE, SAMPLE_FRAMES, Background, Skip, long, main, need_root, record, recording_events, run, scratch, until_cpu, wait_for
from libjava import MAJOR, SOURCES, compiled, jdk, jdks

ENDS = ("root no-user disabled depth fault no-frame compat user-worker no-regs budget no-caller no-rule copy stale no-table java "
        "no-memory code-heap").split()
COMPLETE = {"root", "no-user", "disabled", "no-memory"}
NOTE_HOTSPOT, NOTE_COMPILED, FRAME_CODE_HEAP = 3, 5, 10
ADDRESS = (1 << 56) - 1
WARM = 1.5  # s: from then on a process's tables are there
LEAST = 400  # samples

Sample = collections.namedtuple("Sample", "time tid end frames notes")
Note = collections.namedtuple("Note", "frame kind place function check")


def samples(path):
    """{pid: its samples} as they were recorded; user frames, leaf first, as (kind, address)."""
    rows = collections.defaultdict(list)
    for kind, _, when, data in recording_events(path):
        if kind != EVENT_SAMPLE:
            continue
        _, _, tgid, tid, _, kernel, user, end, _, notes, _ = struct.unpack_from("<QQIIIHHBBHI", data)
        words = struct.unpack_from(f"<{user}Q", data, SAMPLE_FRAMES + 8 * kernel)
        at = SAMPLE_FRAMES + 8 * (kernel + user)
        rows[tgid].append(Sample(when, tid, ENDS[end], [(w >> 56, w & ADDRESS) for w in words],
                                 [Note(*(struct.unpack_from("<HBxIQQ", data, at + 24 * i))) for i in range(notes)]))
    return rows


def command(major, name, *flags):
    need_root()
    return [os.path.join(jdk(major), "bin/java"), "-Xmx256m", *flags, "-cp", compiled("Shapes"), "Shapes", name]


class Shapes(Background):
    """A JVM that makes stacks of this shape."""

    def __init__(self, major, name, *flags):
        self.log = scratch("log." + "".join([str(major), name, *flags]).replace("/", "-"))
        with open(self.log, "w", encoding="utf-8") as out:
            super().__init__(*command(major, name, *flags), stdout=out, stderr=out)

    def wait(self):
        wait_for(lambda: "started" in open(self.log, encoding="utf-8").read() or self.p.poll() is not None, 60, self.log)
        assert self.p.poll() is None, open(self.log, encoding="utf-8").read()


def of_java(rows):
    """Those that have code of Java's on them, and those that ended there."""
    return [s for s in rows if any(k == FRAME_CODE_HEAP for k, _ in s.frames) or s.end in ("java", "code-heap") or
            any(n.kind in (NOTE_HOTSPOT, NOTE_COMPILED) for n in s.notes)]


def check_roots(rows):
    """Each thread begins at one place."""
    for tid in {s.tid for s in rows}:
        begins = collections.Counter(tuple(a for _, a in s.frames[-2:]) for s in rows if s.tid == tid and s.end == "root")
        most = begins.most_common(1)[0][1] if begins else 0
        assert most >= 0.99 * sum(begins.values()), (tid, begins)


def check_notes(rows):
    """Words that belong to the frames that they are of."""
    for s in rows:
        frames = [n.frame for n in s.notes]
        assert frames == sorted(set(frames)), s
        for n in s.notes:
            assert n.kind in (NOTE_HOTSPOT, NOTE_COMPILED), s
            assert n.function and not n.function & 7 and n.place < 1 << 24, s
            if n.kind == NOTE_COMPILED:
                assert n.function + n.place == s.frames[n.frame][1] and (n.check >> 32 or not n.check), s
    # stubs have no check; what lies above methods of the JVM's own may be all that there is
    assert sum(any(n.check for n in s.notes) for s in rows) > 0.9 * len(rows)


INTERPRETED = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,Shapes.interpreted"]


def groups():
    """The JVMs that are recorded at a time, as (case, JDK, shape, flags…); those of the first have the short cases."""
    return [[("recursion", MAJOR, "recursion"), ("interpreter", MAJOR, "mixed", "-Xint"), ("mixed", MAJOR, "mixed"),
             ("exceptions", MAJOR, "exceptions"), ("threads", MAJOR, "threads"), ("newer", 25, "mixed")],
            [("inlining", MAJOR, "inlining"), ("interpreted method", MAJOR, "interpreted", *INTERPRETED),
             ("frame pointers", MAJOR, "mixed", "-XX:+PreserveFramePointer"),
             ("first compiler", MAJOR, "mixed", "-XX:TieredStopAtLevel=1"),
             ("second compiler", MAJOR, "mixed", "-XX:-TieredCompilation")],
            [("garbage", MAJOR, "churn"), ("upcalls", MAJOR, "upcalls", "-Dsun.reflect.inflationThreshold=2147483647"),
             ("newer, interpreted", 25, "mixed", "-Xint"),
             *(("virtual", major, "virtual") for major in jdks() if major >= 21)]]


recorded = {}  # {(case, JDK): samples, or the reason why there are none}


def record_group(group):
    """On a machine that is busy it takes more than one recording to have enough samples."""
    path, jvms = scratch("group.sysprof"), {}
    with contextlib.ExitStack() as running:
        for case, major, name, *flags in group:
            try:
                jvms[case, major] = running.enter_context(Shapes(major, name, *flags))
                recorded[case, major] = []
            except Skip as reason:
                recorded[case, major] = reason
        for jvm in jvms.values():  # which start all at a time: one that runs takes the CPUs from those that start
            jvm.wait()
        pids = {key: jvm.pid for key, jvm in jvms.items()}
        for seconds in (1.2, 3, 3, 3) if pids else ():
            record("-p", ",".join(map(str, pids.values())), "-F", 3999, "-d", seconds + WARM, "-o", path)
            for jvm in jvms.values():  # they would spin beside what reads their samples
                jvm.signal(signal.SIGSTOP)
            rows = samples(path)
            for key, pid in pids.items():
                more = of_java(rows[pid])
                first = min((s.time for s in more), default=0)
                recorded[key] += [s for s in more if s.time > first + WARM * 1e9]
            if all(len(recorded[key]) >= LEAST for key in pids):
                break
            for jvm in jvms.values():
                jvm.signal(signal.SIGCONT)


def check(case, major=MAJOR, kinds=(NOTE_COMPILED,)):
    if (case, major) not in recorded:
        record_group(next(group for group in groups() if any(row[:2] == (case, major) for row in group)))
    rows = recorded[case, major]
    if isinstance(rows, Skip):
        raise rows
    ends = collections.Counter(s.end for s in rows)
    whole = sum(count for end, count in ends.items() if end in COMPLETE)
    depth = sum(len(s.frames) for s in rows) / max(1, len(rows))
    print(f"  JDK {major} {case}: {whole} of {len(rows)} whole ({100 * whole / max(1, len(rows)):.2f} %), "
          f"{depth:.1f} frames each; {dict(ends)}")
    assert len(rows) >= LEAST, f"only {len(rows)} samples"
    assert whole >= 0.99 * len(rows), ends
    check_roots(rows)
    check_notes(rows)
    seen = {n.kind for s in rows for n in s.notes}
    assert seen >= set(kinds), (seen, kinds)
    return rows


def test_programs():
    for case, major in ("recursion", MAJOR), ("mixed", MAJOR), ("exceptions", MAJOR), ("newer", 25):
        check(case, major)


@long
def test_more_programs():
    """With its flag that keeps frame pointers stacks are whole as before; of upcalls a stack is of Java, native code and Java."""
    for case in "inlining", "first compiler", "second compiler", "garbage", "upcalls", "frame pointers":
        check(case)
    check("interpreted method", kinds=[NOTE_HOTSPOT, NOTE_COMPILED])  # and compiled frames in turn
    check("newer, interpreted", 25, [NOTE_HOTSPOT])


def test_interpreter():
    rows = check("interpreter", kinds=[NOTE_HOTSPOT])
    # its native methods have compiled wrappers
    assert all(n.place for s in rows for n in s.notes if n.kind == NOTE_HOTSPOT and n.frame and n.place)


def test_threads():
    assert len({s.tid for s in check("threads")}) >= 4


def test_from_the_start():
    """A program that is recorded from its first instruction on: the JVM is not there yet when it is first looked at."""
    path = scratch("start.sysprof")
    log = record("-o", path, "--", *until_cpu(4, *command(MAJOR, "mixed")), timeout=200, check=137)
    rows = sorted(sum(samples(path).values(), []), key=lambda s: s.time)
    warm = of_java(rows[len(rows) * 3 // 4:])
    whole = sum(s.end in COMPLETE for s in warm)
    print(f"  {whole} of {len(warm)} whole; {collections.Counter(s.end for s in warm)}")
    assert len(warm) >= 100 and whole >= 0.98 * len(warm), log


@long
def test_virtual_threads():
    """To where their carrier began."""
    able = [major for major in jdks() if major >= 21]
    if not able:
        raise Skip("no JDK has virtual threads")
    for major in able:
        check("virtual", major=major)


# ---- programs that say that they are JVMs ----

LIES = ("hops", "free", "huge", "narrow", "name", "code", "map", "everything", "interpreter")


def record_forged():
    """Programs that lie in these ways, recorded at a time; the recording goes on as with any other ones."""
    need_root()
    top, place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."), scratch("forged")
    program, path, pids = os.path.join(place, "libjvm.so"), scratch("forged.sysprof"), {}
    os.makedirs(place)
    run("cc", "-O2", "-rdynamic", "-D_GNU_SOURCE", *(f"-I{top}/{x}" for x in ("include", "userspace", "tests", "tests/unit")),
        "-o", program, os.path.join(SOURCES, "forged_jvm.c"), check=0)
    with contextlib.ExitStack() as running:
        for how, depth in [("honest", 30), ("honest", 20000), *((how, 30) for how in LIES)]:
            jvm = running.enter_context(Background(program, how, depth))
            assert jvm.p.stdout.readline() == "started\n"
            pids[how, depth] = jvm
        record("-p", ",".join(str(jvm.pid) for jvm in pids.values()), "-F", 3999, "-d", 0.6 + WARM, "-o", path)
        assert all(jvm.p.poll() is None for jvm in pids.values())
    rows = samples(path)
    return {key: rows[jvm.pid] for key, jvm in pids.items()}


def forged(how, depth):
    """The samples of a program that lies in this way."""
    if "forged" not in recorded:
        recorded["forged"] = record_forged()
    rows = recorded["forged"][how, depth]
    first = min(s.time for s in rows)
    rows = [s for s in rows if s.time > first + WARM * 1e9]
    print(f"  {how}: {len(rows)} samples, {collections.Counter(s.end for s in rows)}")
    assert len(rows) > 10
    return rows


def test_forged_but_honest():
    rows = forged("honest", 30)
    other = [s for s in rows if s.end != "root" or len(s.frames) < 30]
    assert not other, other[:3]
    assert all(sum(n.kind == NOTE_COMPILED and n.check >> 32 == 77 for n in s.notes) == 30 for s in rows), rows[0]
    check_notes(rows)


def test_forged_heaps():
    """Maps that lead nowhere, frames that cannot be, names and code that are not there: the stack ends."""
    for how in LIES:
        rows = forged(how, 30)
        assert all(s.end in ENDS and len(s.frames) <= 260 for s in rows), rows[0]
        wrong = [s for s in rows if how in ("hops", "free", "code", "map") and s.end not in ("java", "code-heap")]
        assert not wrong, wrong[0]


def test_forged_depth():
    """Frames and time are limited."""
    rows = forged("honest", 20000)
    assert all(s.end in ("depth", "budget") and len(s.frames) <= 256 for s in rows), rows[0]


main(globals())
