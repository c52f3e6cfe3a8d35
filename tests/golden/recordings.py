#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The recordings of tests/golden/recordings, which golden_recordings.c reads: small ones, each of one thing that is
easy to get wrong.

    recordings.py write [NAME…]       those that are told event by event, below: what no kernel does on demand
    recordings.py record [NAME…]      as root: the others, recorded here and trimmed
    recordings.py trim IN OUT [FROM=TO…]     any recording: few kernel symbols, nothing of this machine; FROM becomes
                                      TO in names of files

They are checked in, so that they stay what they are when the program changes: docs/FORMATS.md says that old recordings
can be read. `write` gives the very bytes that are checked in; `record` gives others each time. After either,
`make golden-update` renews what is expected of them, and the difference is to be looked at.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PLACE = os.path.join(HERE, "recordings")

# include/sysprof/event.h
SAMPLE, THREAD_CPU, VISIT, MMAP, COMM, FORK, EXIT, LOST = 1, 2, 6, 8, 9, 10, 11, 12
PROCESS, THREAD, MAPS_READ, MEMORY, CGROUP, PROCESS_FACTS = 16, 17, 18, 19, 20, 21
ANCHOR, BOOKS, META, KALLSYMS, END, OUTSIDE, VISIT_BOOKS = 24, 25, 26, 27, 28, 30, 31
SYMBOL, SYMBOL_DSO, SYMBOLS_END, JIT_FILE, JIT_BYTES = 32, 33, 34, 40, 41
CODE_TEXT, CODE_LINES, SOURCE = 36, 37, 38
ADDED, REMOVED = 0x200, 0x1000  # of kallsyms
FROM_PROC, EXEC, HAS_BUILD_ID, EXITED, FINAL, NEW_EPOCH, RECORDER, LEFT = 1, 2, 4, 8, 0x10, 0x20, 0x80, 0x100
FRAME_IP, FRAME_POINTER, FRAME_TABLE = 1, 2, 3
UNKNOWN = (1 << 64) - 1
RIGHT, RESOLVED = 2, 1  # enum file_state, enum symbol_state
READ_EXECUTE, PRIVATE = 5, 2
RUNNABLE, THROTTLED, RUNNING, ACCOUNT, NO_CALL = 1, 2, 0x10, 0x20, -1
LOST_SAMPLES, LOST_SIDEBAND, LOST_LATE = 0, 1, 2

MS, SECOND = 1000000, 1000000000
START, REALTIME, TSC_KHZ = 5000 * SECOND, 1700000000 * SECOND, 2000000
PERIOD = MS


def padded(data):
    return data + bytes(-len(data) % 8)


def event(kind, when, body, flags=0):
    body = padded(body)
    return struct.pack("<IHHQ", 16 + len(body), kind, flags, when) + body


def text(*strings):
    return b"".join(s.encode("utf-8", "surrogateescape") + b"\0" for s in strings)


def tsc_at(when, origin=START):
    return 10 ** 12 + (when - origin) * TSC_KHZ // MS


# ---- the file -----------------------------------------------------------------------------------

def file_header(identity, version):
    head = struct.pack("<8sIIIIQQI", b"SYSPROF\n", 0x01020304, version, 64, 0, REALTIME, START, identity) + bytes(16)
    return head + struct.pack("<I", zlib.crc32(head))


def chunk(sequence, identity, events):
    payload = b"".join(events)
    first, last = (struct.unpack_from("<Q", e, 8)[0] for e in (events[0], events[-1]))
    head = struct.pack("<8sIIQQQI", b"\x89CHUNK\r\n", sequence, len(events), len(payload), first, last, identity)
    return head + struct.pack("<I", zlib.crc32(head)) + payload + struct.pack("<I", zlib.crc32(payload)) + b"CEND"


def chunks_of(data):
    """The events of each chunk of a sound recording."""
    at = struct.unpack_from("<I", data, 16)[0]
    while at < len(data):
        payload = struct.unpack_from("<Q", data, at + 16)[0]
        at, events = at + 48, []
        end = at + payload
        while at < end:
            size = struct.unpack_from("<I", data, at)[0]
            events.append(data[at:at + size])
            at += size
        yield events
        at = end + 8


def recording(chunks, identity=0x5eed, version=1):
    return file_header(identity, version) + b"".join(chunk(i, identity, c) for i, c in enumerate(chunks) if c)


# ---- stories ------------------------------------------------------------------------------------

class Story:
    """
    A recording that is told event by event. `now` is the time of the next one, in ms from its start. Of an `event` that is no
    clock it is of version 2, which has the period of each sample.
    """

    def __init__(self, target="-a", event=None):
        self.chunks, self.now, self.cpu_time, self.counts = [[]], 0, {}, {}
        self.event, self.periods = event, {}
        self.epoch = 0
        self.anchor()
        for key, value in (("product", "sysprof 0.1.0"), ("hostname", "golden"), ("kernel", "6.1.0-golden"),
                           ("architecture", "x86_64"), ("cpu", "A CPU"), ("cpus", "2"), ("target", target),
                           ("clock", "tsc"), ("hz", "1000"),
                           *([("event", event), ("event_unit", "count")] if event else [("period_ns", str(PERIOD))]),
                           ("sampling_start", str(START))):
            self.put(META, text(key, value))
        self.kallsyms()

    def time(self):
        return START + round(self.now * MS)

    def put(self, kind, body, flags=0):
        self.chunks[-1].append(event(kind, self.time(), body, flags))

    def anchor(self, flags=0, realtime_step=0, origin=START):
        when = self.time()
        self.put(ANCHOR, struct.pack("<QQQQIIq", tsc_at(when, origin), when, REALTIME + when - START + realtime_step, TSC_KHZ,
                                     100, self.epoch, 0), flags)

    def new_chunk(self):
        self.chunks.append([])
        self.anchor()

    def kallsyms(self):
        lines = b"".join(b"ffffffff81%06x T %s\n" % (i * 0x1000, name) for i, name in
                         enumerate((b"_stext", b"do_work", b"entry_SYSCALL_64", b"asm_sysvec_apic_timer_interrupt", b"_etext")))
        self.put(KALLSYMS, struct.pack("<II", len(lines), 0) + lines)

    def kernel_code(self, start, end, name, flags=ADDED):
        lines = b"%x t %s\t[bpf]\n%x a end\t[bpf]\n" % (start, name, end)
        self.put(KALLSYMS, struct.pack("<II", len(lines), 1) + lines, flags)

    def process(self, pid, name, ppid=1, started=-1000, target=1):
        self.put(PROCESS, struct.pack("<IIQII", pid, ppid, START + started * MS, target, 0) + text(name), FROM_PROC)

    def thread(self, pid, tid, comm, cpu_time=0, started=-1000):
        self.cpu_time[pid, tid] = cpu_time
        self.put(THREAD, struct.pack("<IIQQ16s", pid, tid, START + started * MS, cpu_time, comm.encode()), FROM_PROC)

    def maps_read(self, pid):
        self.put(MAPS_READ, struct.pack("<II", pid, 0), FROM_PROC)

    def memory(self, pid, resident, flags=0):
        self.put(MEMORY, struct.pack("<IIQ", pid, 0, resident), FROM_PROC | flags)

    def cgroup(self, pid, path):
        self.put(CGROUP, struct.pack("<II", pid, 0) + text(path), FROM_PROC)

    def facts(self, pid, state, **facts):
        """State 1: the first ones; 2: all. In keys "__" is a colon and "_" at the end nothing."""
        strings = text(*(s for k, v in facts.items() for s in (k.replace("__", ":"), v)))
        self.put(PROCESS_FACTS, struct.pack("<IB3xQII", pid, state, self.time(), len(facts), len(strings)) + strings, FROM_PROC)

    def map(self, pid, start, length, path, offset=0, inode=0, flags=0, build_id=b"", major=8, minor=1):
        state = RIGHT if path.startswith("/") else 0
        self.put(MMAP, struct.pack("<IIQQQIIIIQQBB20s2x", pid, pid, start, length, offset, READ_EXECUTE, PRIVATE,
                                   major if inode else 0, minor if inode else 0, inode, 0, len(build_id), state, build_id) +
                 text(path), flags | (HAS_BUILD_ID if build_id else 0))

    def comm(self, pid, tid, comm, flags=0):
        self.put(COMM, struct.pack("<II16s", pid, tid, comm.encode()), flags)

    def fork(self, ppid, pid, ptid=None, tid=None):
        tid = tid or pid
        self.cpu_time[pid, tid] = 0
        self.put(FORK, struct.pack("<IIII", pid, ppid, tid, ptid or ppid))

    def exit(self, pid, tid=None):
        tid = tid or pid
        self.put(THREAD_CPU, struct.pack("<IIQ", pid, tid, self.cpu_time.pop((pid, tid))), EXITED)
        self.put(EXIT, struct.pack("<IIII", pid, 0, tid, 0))

    def sample(self, pid, *user, tid=None, kernel=(), cpu=0, ran=1.0, end=0, origin=START, period=0):
        """Its user frames, leaf first, for how many ms it ran since its last sample, and the events that it stands for."""
        tid = tid or pid
        self.cpu_time[pid, tid] += round(ran * MS)
        self.counts[cpu] = self.counts.get(cpu, 0) + 1
        frames = [*kernel, *(a | (FRAME_TABLE if i else FRAME_IP) << 56 for i, a in enumerate(user))]
        self.periods[cpu] = self.periods.get(cpu, 0) + period
        self.put(SAMPLE, struct.pack("<QQIIIHHBBHI", tsc_at(self.time(), origin), self.cpu_time[pid, tid], pid, tid, cpu,
                                     len(kernel), len(user), end, not kernel, 0, 0) +
                 (struct.pack("<Q", period) if self.event else b"") + struct.pack(f"<{len(frames)}Q", *frames))
        self.now += 1

    def visit(self, pid, *user, tid=None, kernel=(), call=NO_CALL, found=0, since=0, unchanged=0, ran=0.0, delay=0.0, switches=0, holder=0):
        """Its user frames, and for how many ms it has run since its last event; the other times are since the start."""
        tid = tid or pid
        self.cpu_time[pid, tid] += round(ran * MS)
        at = lambda ms: START + round(ms * MS) if ms else 0
        frames = [*kernel, *(a | (FRAME_TABLE if i else FRAME_IP) << 56 for i, a in enumerate(user))]
        stack = event(SAMPLE, self.time(), struct.pack("<QQIIIHHBBHI", 0, self.cpu_time[pid, tid], pid, tid, 0, len(kernel), len(user), 0,
                                                       not kernel, 0, 0) + struct.pack(f"<{len(frames)}Q", *frames))
        self.put(VISIT, struct.pack("<QQQQQQIIiI", self.time(), at(unchanged), START - SECOND, round(delay * MS), at(since), switches, holder, 0,
                                    call, found) + stack)

    def visit_books(self, due, made, looks, unchanged, running, walked):
        self.put(VISIT_BOOKS, struct.pack("<IIQQ12Q", 12, 200, MS, self.time(), due, made, 0, looks, unchanged, running, walked, 0, 0, 0, 0, 0))

    def outside(self, user, thing, reason, count, since):
        self.put(OUTSIDE, struct.pack("<IBB2xQQ", user, thing, reason, count, since))

    def lost(self, source, count, cpu=0, since=0):
        self.put(LOST, struct.pack("<IIQQ", source, cpu, count, START + since * MS if since else 0))

    def books(self, cpu, delivered, ring_full=0, not_run=0, flags=FINAL):
        """What is due and in none of these lines was idle."""
        due = int(self.now)
        if self.event:  # in events
            periods = self.periods[cpu]
            self.put(BOOKS, struct.pack("<IIQQQQQ8Q", cpu, 8, 0, due * PERIOD, due * PERIOD, delivered, periods, periods, 0, 0, 0, 0, 0, 0, 0),
                     flags)
            return
        self.put(BOOKS, struct.pack("<IIQQQQ8Q", cpu, 8, PERIOD, due * PERIOD, due * PERIOD, delivered, delivered,
                                    due - delivered - ring_full - not_run, 0, ring_full, 0, 0, not_run, 0), flags)

    def end(self, losses=None, symbols=(), code=()):
        """
        Books, the end, and symbols: (dso, [(address of the location, function, its address, size, file, line)]). `code`: the
        types and contents of events of machine code and sources.
        """
        for cpu, count in sorted(self.counts.items()):
            self.books(cpu, count, **(losses or {}))
        self.anchor()
        self.put(END, b"")
        for dso, functions in symbols:
            self.put(SYMBOL_DSO, struct.pack("<II", dso, 0))
            for address, *chain in functions:
                self.put(SYMBOL, struct.pack("<QQII", address, address, len(chain), 0) +
                         b"".join(map(self.symbol_frame, chain)))
            self.put(SYMBOL_DSO, struct.pack("<II", dso, RESOLVED))
        for kind, body in code:
            self.put(kind, body)
        self.put(SYMBOLS_END, b"")

    @staticmethod
    def symbol_frame(frame):
        name, start, size, file, line = (*frame, "", 0)[:5]
        strings = [text(s) if s else b"" for s in (name, file, file)]
        head = struct.pack("<QQIIIIHHHH", start, size, line, 0, max(0, line - 1), 0, *map(len, strings), 0)
        return padded(head + b"".join(strings))

    def data(self):
        return recording(self.chunks, version=2 if self.event else 1)


def begun(name, pid=100, **options):
    """A story of one process that runs already, with a program at 0x10000 whose text begins at 0x1000 of the file."""
    s = Story(**options)
    s.process(pid, name)
    s.thread(pid, pid, name, 3 * SECOND)
    s.map(pid, 0x10000, 0x4000, f"/opt/golden/{name}", 0x1000, 11, FROM_PROC, b"\x11" * 20)
    s.maps_read(pid)
    return s


# a return address, which the profile shows by the call before it
MAIN = 0x10100


def story_pid_reuse():
    """
    A number is given again: to a process, with other mappings at the same addresses and a CPU clock that
    begins anew; then to a thread. Three lives, of which none has anything of another.
    """
    s = begun("parent")
    for _ in range(3):
        s.sample(100, 0x10010, MAIN)
    s.fork(100, 200)
    s.comm(200, 200, "first", EXEC)
    s.map(200, 0x10000, 0x2000, "/opt/golden/first", 0x1000, 12, 0, b"\x12" * 20)
    for _ in range(3):
        s.sample(200, 0x10010, MAIN, cpu=1)
    s.exit(200)
    s.now += 2
    # nobody tells of the second one's execve: it has its parent's mappings until its own are told
    s.fork(100, 200)
    s.sample(200, 0x10010, MAIN, cpu=1, ran=0.5)
    s.comm(200, 200, "second", EXEC)
    s.map(200, 0x10000, 0x2000, "/opt/golden/second", 0x1000, 13, 0, b"\x13" * 20)
    for _ in range(3):
        s.sample(200, 0x10010, MAIN, cpu=1)
    s.exit(200)
    s.now += 1
    s.fork(100, 100, tid=200)
    s.comm(100, 200, "third")
    for _ in range(2):
        s.sample(100, 0x10020, MAIN, tid=200)
    s.exit(100, 200)
    s.sample(100, 0x10010, MAIN)
    functions = [(0x1010, ("work", 0x1000, 0x18)), (0x1020, ("work_of_the_thread", 0x1018, 0x40)), (0x10ff, ("main", 0x1080, 0x100))]
    s.end(symbols=[(1, functions), (2, [(0x1010, ("first_work", 0x1000, 0x40)), (0x10ff, ("main", 0x1080, 0x100))]),
                   (3, [(0x1010, ("second_work", 0x1000, 0x40)), (0x10ff, ("main", 0x1080, 0x100))])])
    return s.data()


def story_overlapping_mmaps():
    """
    A mapping takes the beginning, the middle and the end of others, which go on on both sides of it with their own
    offsets; then one covers all of them, and what was sampled before keeps its names.
    """
    s = begun("program")
    s.map(100, 0x40000, 0x10000, "/opt/golden/libone.so", 0x2000, 21, 0, b"\x21" * 20)
    for address in 0x40010, 0x44010, 0x4f010:
        s.sample(100, address, MAIN)
    # the middle: 0x44000 to 0x46000
    s.map(100, 0x44000, 0x2000, "/opt/golden/libtwo.so", 0, 22, 0, b"\x22" * 20)
    for address in 0x40010, 0x44010, 0x45ff0, 0x46010, 0x4f010:
        s.sample(100, address, MAIN)
    # over the end of libtwo, and over the beginning of the rest of libone
    s.map(100, 0x45000, 0x2000, "//anon")
    for address in 0x44010, 0x45010, 0x46010, 0x47010:
        s.sample(100, address, MAIN)
    # the first page, from a file that was deleted
    s.map(100, 0x40000, 0x1000, "/opt/golden/libthree.so (deleted)", 0x3000, 23)
    for address in 0x40010, 0x41010:
        s.sample(100, address, MAIN)
    # everything, and then more than everything
    s.map(100, 0x40000, 0x10000, "/opt/golden/libtwo.so", 0, 22, 0, b"\x22" * 20)
    for address in 0x40010, 0x44010, 0x4f010:
        s.sample(100, address, MAIN)
    s.map(100, 0x3f000, 0x12000, "/opt/golden/libone.so", 0x1000, 21, 0, b"\x21" * 20)
    for address in 0x3f010, 0x40010, 0x50ff0, 0x51010:
        s.sample(100, address, MAIN)

    def named(library, *addresses):
        return [(a, (f"{library}_{a:x}", a & ~0xf, 0x20)) for a in addresses]

    s.end(symbols=[(1, [(0x10ff, ("main", 0x1080, 0x100))]),
                   (2, named("one", 0x1010, 0x2010, 0x3010, 0x6010, 0x8010, 0x9010, 0x11010, 0x12ff0)),
                   (3, named("two", 0x10, 0x1ff0, 0x4010, 0xf010)), (5, named("three", 0x3010))])
    return s.data()


def story_epoch_change():
    """
    The machine was suspended: the TSC begins anew, CLOCK_REALTIME has stepped on. Times of samples after it follow
    the new anchors; nothing is interpolated across.
    """
    s = begun("program")
    for _ in range(5):
        s.sample(100, 0x10010, MAIN)
    s.anchor()
    s.now += 3000
    s.epoch, woken = 1, s.time()
    s.anchor(NEW_EPOCH, realtime_step=3600 * SECOND, origin=woken)
    for _ in range(5):
        s.sample(100, 0x10010, MAIN, origin=woken)
    s.now += 4
    s.sample(100, 0x10010, kernel=(0xffffffff81001010, 0xffffffff81002020), origin=woken, ran=0.25)
    s.end(symbols=[(1, [(0x1010, ("work", 0x1000, 0x40, "/src/work.c", 7)), (0x10ff, ("main", 0x1080, 0x100, "/src/main.c", 20))]),
                   (2, [(0xffffffff81001010, ("do_work", 0xffffffff81001000, 0x1000)),
                        (0xffffffff8100201f, ("entry_SYSCALL_64", 0xffffffff81002000, 0x1000))])])
    return s.data()


def story_kernel_code():
    """
    BPF programs at one address, one after the other: each has its own samples, before the first and after the last one nobody
    has any. A larger one covers the place of two; it calls the kernel, so it is not the innermost frame.
    """
    place, run, helper = 0xffffffffc0001000, 0xffffffff81001010, 0xffffffff81001020
    s = begun("loader")

    def samples(*kernel):
        for _ in range(3):
            s.now += 1
            s.sample(100, MAIN, kernel=(*kernel, run))

    samples(place + 0x10)
    s.kernel_code(place, place + 0x100, b"bpf_prog_0000000000000001_one")
    s.kernel_code(place + 0x100, place + 0x200, b"bpf_prog_0000000000000002_two")
    samples(place + 0x10)
    samples(place + 0x110)
    s.kernel_code(place, place + 0x100, b"bpf_prog_0000000000000001_one", ADDED | REMOVED)
    samples(place + 0x10)
    s.kernel_code(place, place + 0x200, b"bpf_prog_0000000000000003_large")
    samples(place + 0x10)
    samples(helper, place + 0x110)
    s.kernel_code(place, place + 0x200, b"bpf_prog_0000000000000003_large", ADDED | REMOVED)
    samples(helper, place + 0x110)
    s.end(symbols=[(1, [(0x1100, ("main", 0x1000, 0x200, "loader.c", 10))]),
                   (2, [(address, ("do_work", 0xffffffff81001000, 0x1000)) for address in (run - 1, helper)])])
    return s.data()


def story_cut_short():
    """
    The recorder was killed: no end, no symbols, and half of the last chunk. Kernel functions have their names from the
    symbols at the start; the program's file is not there, so it is named by that.
    """
    s = begun("no-such-program")
    s.fork(100, 101)
    for i in range(6):
        s.sample(100, 0x10010 + 0x10 * i, MAIN, kernel=(0xffffffff81001010, 0xffffffff81002020) if i % 2 else ())
    s.books(0, 6, flags=0)
    s.new_chunk()
    for _ in range(4):
        s.sample(101, 0x10010, MAIN, cpu=1)
    whole = len(s.data())
    s.new_chunk()
    for _ in range(4):
        s.sample(100, 0x10010, MAIN)
    s.exit(101)
    return s.data()[:whole + 300]


def story_lost_records():
    """
    Samples, side-band records and late events were lost, one chunk of the file is damaged and another one is missing:
    each is counted by its source, those with a time are ranges of it. A process whose fork was lost is there from its first sample on.
    """
    s = begun("program")
    for _ in range(4):
        s.sample(100, 0x10010, MAIN)
    s.now += 8
    s.lost(LOST_SAMPLES, 8, since=4)
    s.sample(100, 0x10010, MAIN, ran=9)
    s.lost(LOST_SIDEBAND, 3, cpu=1, since=12)
    # neither its fork nor its execve nor its mappings were told
    s.cpu_time[300, 300] = 5 * MS
    s.sample(300, 0x10010, MAIN, cpu=1)
    s.sample(300, 0x10010, MAIN, cpu=1)
    s.lost(LOST_LATE, 2, cpu=0xffffffff)
    s.new_chunk()
    for _ in range(5):
        s.sample(100, 0x10020, MAIN)
    s.new_chunk()
    s.sample(100, 0x10010, MAIN)
    s.new_chunk()
    for _ in range(5):
        s.sample(100, 0x10020, MAIN)
    s.new_chunk()
    s.sample(100, 0x10010, MAIN)
    s.end({"ring_full": 8, "not_run": 1},
          [(1, [(0x1010, ("work", 0x1000, 0x18)), (0x1020, ("lost", 0x1018, 0x40)), (0x10ff, ("main", 0x1080, 0x100))])])
    data = bytearray(s.data())
    first, second, third, fourth = (len(recording(s.chunks[:i])) for i in (1, 2, 3, 4))
    assert first < second < third < fourth
    data[first + 100] ^= 0x10
    del data[third:fourth]
    return bytes(data)


def story_processes_over_time():
    """
    Memory of the recorder and of processes that come and go, one of which is moved to another control group; a child of it
    is where it was moved to. A thread is renamed, one stack is cut. Who does not know these events sees the samples all the same.
    """
    s = begun("program")
    s.cgroup(100, "/system.slice/program.service")
    s.memory(9, 20 << 20, RECORDER)
    s.memory(100, 4 << 20)
    s.sample(100, 0x10010, MAIN)
    s.fork(100, 200)
    s.sample(200, 0x10010, MAIN, cpu=1)
    s.cgroup(200, "/jobs/\udcff \"one\"")
    s.comm(200, 200, "tool", EXEC)
    s.map(200, 0x10000, 0x2000, "/opt/golden/tool", 0x1000, 12, 0, b"\x12" * 20)
    s.fork(200, 201)
    for _ in range(3):
        s.sample(200, 0x10010, MAIN, cpu=1, end=5)
    s.sample(201, 0x10010, MAIN, ran=0.5)
    s.fork(100, 100, tid=101)
    s.comm(100, 101, "worker")
    s.sample(100, 0x10020, tid=101)
    s.comm(100, 101, "worker-idle")
    s.exit(201)
    s.now = 1000
    s.memory(9, 24 << 20, RECORDER)
    s.memory(100, 6 << 20)
    s.memory(200, 1 << 20)
    s.sample(100, 0x10010, MAIN, ran=2)
    s.exit(200)
    s.now = 2000
    s.memory(9, 22 << 20, RECORDER)
    s.memory(100, 5 << 20)
    s.memory(200, 3 << 20)
    s.end(symbols=[(1, [(0x1010, ("work", 0x1000, 0x18)), (0x1020, ("idle", 0x1018, 0x40)), (0x10ff, ("main", 0x1080, 0x100))]),
                   (2, [(0x1010, ("tool_work", 0x1000, 0x40)), (0x10ff, ("main", 0x1080, 0x100))])])
    return s.data()


def story_left_out():
    """
    The books of the outside: rows of two users, of those who have no row of their own, and of a user who is not known; one is told twice,
    one among the symbols, and one is of a newer recorder, which nobody knows. A file was one too many: its code has addresses alone.
    """
    s = begun("program")
    since = START + 2 * MS
    s.sample(100, 0x10010, MAIN)
    s.map(100, 0x30000, 0x1000, "/opt/golden/left.so", 0, 12, LEFT)
    s.sample(100, 0x30010, MAIN)
    s.outside(1001, 0, 0, 3, since)
    s.outside(1000, 8, 6, 4, since)
    s.outside(1000, 7, 0, 1, START + MS)
    s.now += 1
    s.sample(100, 0x10010, MAIN)
    s.outside(1001, 0, 0, 2, START + 4 * MS)
    s.outside(1001, 200, 0, 9, since)
    s.outside(0xfffffffe, 10, 2, 7, since)
    s.outside(0xffffffff, 5, 4, 1, since)
    s.end({}, [(1, [(0x1010, ("work", 0x1000, 0x18)), (0x10ff, ("main", 0x1080, 0x100))])])
    return s.data()


def story_waits():
    """
    record --wall: a thread that waits for a mutex, whose holder sleeps and waits for a CPU; one that polls all the time; one that
    ends between visits; a system call that no table has, and accounts that cannot be.
    """
    s = begun("server")
    for tid in (101, 102, 103):
        s.thread(100, tid, "worker")
    lock, entry = (202, 0x10020, MAIN), (0xffffffff81002010,)
    s.now = 5
    s.visit(100, *lock[1:], kernel=entry, call=lock[0], since=2, switches=1, holder=101)
    s.visit(100, 0x10010, MAIN, tid=101, kernel=entry, call=230, since=1, switches=1)
    s.visit(100, 0x10030, MAIN, tid=102, kernel=entry, call=232, switches=1)
    s.visit(100, 0x10010, MAIN, tid=103, call=0, since=4, switches=1)
    s.visit_books(1, 1, 4, 0, 0, 4)
    s.now = 20
    s.sample(100, 0x10010, MAIN, tid=101)
    s.visit(100, 0x10010, MAIN, tid=101, found=RUNNABLE, since=21, unchanged=15, ran=0.5, delay=0.5, switches=2)
    s.exit(100, 103)
    s.now = 30
    # a clock that is ahead, a holder of another process, a call without a name
    s.visit(100, *lock[1:], kernel=entry, call=lock[0], since=90, unchanged=25, ran=3, switches=2, holder=4711)
    s.visit(100, 0x10010, MAIN, tid=101, found=RUNNABLE | THROTTLED, since=24, ran=2, delay=2, switches=2)
    s.visit_books(6, 3, 11, 3, 1, 7)
    s.now = 50
    s.visit(100, MAIN, call=9999, since=45, unchanged=44, ran=1, delay=900, switches=3)
    for tid in (101, 102):
        s.visit(100, tid=tid, found=ACCOUNT, unchanged=48, ran=0, delay=2, switches=2 if tid == 101 else 1)
    s.visit_books(10, 4, 15, 5, 1, 9)
    s.end({}, [(1, [(0x1010, ("work", 0x1000, 0x18)), (0x1020, ("take_lock", 0x1018, 0x10)), (0x1030, ("loop", 0x1028, 0x10)),
                    (0x10ff, ("main", 0x1080, 0x100))])])
    return s.data()


def story_services():
    """
    What processes belong to: a pod, of which one process was gone before it was read; a container of Docker; two instances of a
    unit; a script in a user's session; one whose name is made up by a tenant; one that was started by it and never read.
    """
    s = begun("java", target="-a")
    pod = "/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789abc.slice/cri-containerd-" + "c0de" * 16 + ".scope"
    docker = "/system.slice/docker-" + "d0c4" * 16 + ".scope"
    names = {"container__pod": "api-7f9", "container__namespace": "shop", "container__container": "orders"}
    programs = (
        (100, "java", pod, 2, {"exe": "/opt/java/bin/java", "script": "com.shop.Orders", "user": "1001",
                               "otel__service.name": "OrderService", "otel__service.version": "2.1", **names}),
        (110, "sh", pod, 0, {}),
        (120, "python3", docker, 2, {"exe": "/usr/bin/python3", "script": "app/main.py", "user": "root", "container__name": "web",
                                     "container__image": "registry/web:1.4"}),
        (130, "postgres", "/system.slice/system-postgresql.slice/postgresql@14-main.service", 2,
         {"exe": "/usr/lib/postgresql/14/bin/postgres", "user": "postgres"}),
        (140, "postgres", "/system.slice/system-postgresql.slice/postgresql@15-main.service", 1,
         {"exe": "/usr/lib/postgresql/15/bin/postgres", "user": "postgres"}),
        (150, "bash", "/user.slice/user-1000.slice/session-3.scope", 2, {"exe": "/bin/bash", "script": "backup.sh", "user": "ann"}),
        (160, "evil", "/user.slice/user-1001.slice/session-4.scope", 2,
         {"exe": "/tmp/evil", "env__DD_SERVICE": "a\n\x1b[31m\"<b>\udcff" + 400 * "x", "user": "1001"}),
    )
    for pid, name, group, state, facts in programs:
        if pid > 100:
            s.process(pid, name, target=0)
            s.thread(pid, pid, name)
            s.map(pid, 0x10000, 0x4000, f"/opt/golden/{name}", 0x1000, pid, FROM_PROC, bytes([pid]) * 20)
            s.maps_read(pid)
        s.cgroup(pid, group)
        for _ in range(1 + pid % 3):
            s.sample(pid, 0x10010, MAIN)
        if state:
            s.facts(pid, state, **facts)
    s.fork(160, 170)
    s.sample(170, 0x10010, MAIN)
    s.comm(170, 170, "gone", EXEC)
    s.sample(170, 0x10010, MAIN)
    s.end(symbols=[(1, [(0x1010, ("work", 0x1000, 0x40)), (0x10ff, ("main", 0x1080, 0x100))])])
    return s.data()


def story_hardware_events():
    """
    Cycles, whose period the kernel adapts to the rate: ten times as many in the second half. Two functions have as many samples
    each, of which one has ten elevenths of the cycles; a third one is in the kernel.
    """
    s = begun("program", event="cycles")
    for period in (100000, 1000000):
        for i in range(6):
            s.sample(100, 0x10010 if period == 100000 else 0x10020, MAIN, period=period + i)
    s.sample(100, 0x10010, MAIN, kernel=(0xffffffff81001010, 0xffffffff81002020), ran=0.25, period=40000)
    s.end(symbols=[(1, [(0x1010, ("few", 0x1000, 0x18, "/src/program.c", 7)), (0x1020, ("many", 0x1018, 0x40, "/src/program.c", 12)),
                        (0x10ff, ("main", 0x1080, 0x100, "/src/program.c", 20))]),
                   (2, [(0xffffffff81001010, ("do_work", 0xffffffff81001000, 0x1000)),
                        (0xffffffff8100201f, ("entry_SYSCALL_64", 0xffffffff81002000, 0x1000))])])
    return s.data()


def code_text(dso, address, size, offset, data, machine=1):
    return CODE_TEXT, struct.pack("<IIQIIIIB7x", dso, 0, address, 0, size, offset, len(data), machine) + data


def code_lines(dso, address, rows, places):
    """Rows are (offset, line, column, number of the place, depth), places are frames of a symbol."""
    symbol = struct.pack("<QQII", address, UNKNOWN, len(places), 0) + b"".join(map(Story.symbol_frame, places))
    return CODE_LINES, struct.pack("<QII", address, dso, len(rows)) + \
        b"".join(struct.pack("<IIHHHH", *row, 0) for row in rows) + event(SYMBOL, START, symbol)


def source(path, data, size=None, offset=0, state=0):
    name = text(path)
    return SOURCE, struct.pack("<IIIHBB", len(data) if size is None else size, offset, len(data), len(name), state, 0) + name + data


def story_code():
    """
    Machine code of two functions with their lines, and sources. One function comes in two pieces; of another
    a piece is missing, one is of no file, one overlaps, and a source is not complete: these are left out.
    """
    s = begun("program")
    for _ in range(4):
        s.sample(100, 0x10010, MAIN)
    hot, start = ("hot", 0x1000, 0x18, "/src/hot.h", 4), ("start", 0x1080, 0x100, "/src/program.c", 9)
    line = b"int hot(int x) { return x; }\n"
    s.end(symbols=[(1, [(0x1010, hot), (0x10ff, start)])],
          code=[code_text(1, 0x1000, 24, 0, bytes(range(16))), code_text(1, 0x1000, 24, 16, bytes(range(16, 24))),
                code_lines(1, 0x1000, [(0, 4, 0, 0, 0), (8, 5, 3, 1, 1)], [hot, ("inlined", 0x1000, 4, "/src/inlined.h", 0)]),
                code_lines(1, 0x1000, [(16, 6, 0, 0, 0)], [hot]),
                code_text(1, 0x1080, 8, 0, b"\x90" * 8), code_lines(1, 0x1080, [(0, 9, 0, 0, 0)], [start]),
                code_text(1, 0x1100, 32, 0, b"\xc3" * 8), code_text(77, 0x1000, 4, 0, bytes(4)),
                code_text(1, 0x1008, 4, 0, bytes(4)),
                source("/src/hot.h", line), source("/src/program.c", line[:9], len(line), 0, 2),
                source("/src/program.c", line[9:], len(line), 9, 2), source("/src/inlined.h", line, 99)])
    return s.data()


STORIES = {name.removeprefix("story_").replace("_", "-"): function for name, function in globals().items()
           if name.startswith("story_")}


# ---- recorded, and trimmed ----------------------------------------------------------------------

FACTS = {"hostname": "golden", "cpu": "A CPU", "command": "sysprof record", "kernel": "6.1.0-golden",
         "kernel_build_id": "00" * 20}


def strings_at(data, count):
    parts = data.split(b"\0", count)
    return parts[:count]


def replaced(data, renamed):
    for old, new in renamed:
        data = data.replace(old, new)
    return data


def trim_meta(e, renamed):
    key, value = (part.decode("utf-8", "surrogateescape") for part in strings_at(e[16:], 2))
    return text(key, FACTS.get(key, replaced(value.encode("utf-8", "surrogateescape"), renamed).decode("utf-8", "surrogateescape")))


def trim_mmap(e, renamed):
    fixed = 16 + 88
    path, = strings_at(e[fixed:], 1)
    return e[16:fixed] + replaced(path, renamed) + b"\0"


def trim_jit_file(e, renamed):
    fixed = 16 + 24
    path, = strings_at(e[fixed:], 1)
    return e[16:fixed] + replaced(path, renamed) + b"\0"


def trim_symbol(e, renamed):
    body, at = e[16:40], 40
    for _ in range(struct.unpack_from("<I", e, 32)[0]):
        head = e[at:at + 40]
        sizes = struct.unpack_from("<HHH", head, 32)
        strings, place = [], at + 40
        for size in sizes:
            strings.append(replaced(e[place:place + size], renamed))
            place += size
        at += len(padded(e[at:place]))
        body += padded(head[:32] + struct.pack("<HHHH", *map(len, strings), 0) + b"".join(strings))
    return body


def trim_kallsyms(e, wanted):
    size, piece = struct.unpack_from("<II", e, 16)
    lines = [line for line in e[24:24 + size].splitlines(True)
             if line.split()[2] in (b"_stext", b"_etext") or int(line.split()[0], 16) in wanted]
    kept = b"".join(lines)
    return struct.pack("<II", len(kept), piece) + kept


def kernel_functions(chunks):
    """Where the kernel functions begin that were sampled."""
    found = set()
    for e in (e for c in chunks for e in c if struct.unpack_from("<H", e, 4)[0] == SYMBOL and len(e) > 40):
        start, = struct.unpack_from("<Q", e, 40)
        if start >> 56 == 0xff:
            found.add(start)
    return found


def trim(data, renamed):
    """Without what is this machine's own, and with as few of the kernel's symbols as it needs."""
    chunks = list(chunks_of(data))
    wanted, result = kernel_functions(chunks), []
    rules = {META: trim_meta, MMAP: trim_mmap, SYMBOL: trim_symbol, JIT_FILE: trim_jit_file}
    for events in chunks:
        kept = []
        for e in events:
            kind, flags, when = struct.unpack_from("<HHQ", e, 4)
            if kind in rules:
                e = event(kind, when, rules[kind](e, renamed), flags)
            elif kind == KALLSYMS:
                body = trim_kallsyms(e, wanted)
                e = event(kind, when, body, flags) if len(body) > 8 else b""
            kept += [e] if e else []
        result.append(kept)
    return recording(result)


def run(*command, **options):
    print(" ".join(command))
    subprocess.run(command, check=True, **options)


def recorded(*command, setup=None, hz="199"):
    """A recording of that command, with the fixtures in /opt/golden of a mount namespace of its own."""
    sysprof = os.path.join(TOP, "build/sysprof")
    with tempfile.TemporaryDirectory() as place:
        for fixture in "storm", "chain", "loop", "jitreuse":
            run("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                "-I", os.path.join(TOP, "include"), f"-ffile-prefix-map={TOP}=/src", "-o", os.path.join(place, fixture),
                os.path.join(TOP, "tests/fixtures", fixture + ".c"), "-lpthread", "-ldl")
        if setup:
            setup(place)
        script = (f"mkdir -p /opt/golden && mount --bind {place} /opt/golden && mount -t tmpfs tmpfs /tmp && "
                  'cd /opt/golden && exec "$@"')
        run("unshare", "-m", "sh", "-c", script, "sh", sysprof, "record", "-F", hz, "-o", "x.sysprof", "--", *command)
        with open(os.path.join(place, "x.sysprof"), "rb") as f:
            return trim(f.read(), [(TOP.encode(), b"/src")])


def record_fork_exec():
    """Children that fork and run on in their parent's program, children that execute another one, and threads."""
    script = "./storm -N forked fork 6 15000 /dev/null & ./storm -N executed exec 6 15000 /dev/null & ./storm thread 4 15000 /dev/null; wait"
    return recorded("/bin/sh", "-c", script, hz="499")


def record_jit_reuse():
    """One function after the other at one address, told in a perf map and in a jitdump."""
    script = "./jitreuse -p 40 -n 4 0.4; ./jitreuse -d -f /opt/golden -p 40 -n 4 -t d 0.4"
    return recorded("/bin/sh", "-c", script, hz="499")


def make_root(place):
    """A root directory for a container, in which /opt/golden/app is chain; outside it is loop."""
    root = os.path.join(place, "root")
    for folder in "proc", "opt/golden", "bin", "dev":
        os.makedirs(os.path.join(root, folder))
    with open(os.path.join(root, "dev/null"), "wb"):
        pass
    shutil.copy(os.path.join(place, "loop"), os.path.join(place, "app"))
    for source, target in ("/bin/sh", "bin/sh"), (os.path.join(place, "chain"), "opt/golden/app"):
        shutil.copy(source, os.path.join(root, target))
        libraries = subprocess.run(["ldd", source], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", libraries):
            os.makedirs(os.path.dirname(root + library), exist_ok=True)
            shutil.copy(library, root + library)


def record_containers():
    """Two programs of one path, one of them in a container: pid and mount namespaces and a root of its own."""
    script = ("./app 0.3 & unshare -p -f -m --kill-child --mount-proc=root/proc chroot root "
              "/bin/sh -c '/opt/golden/app 0.3 & /opt/golden/app 0.2; wait'; wait")
    return recorded("/bin/sh", "-c", script, setup=make_root)


RECORDED = {name.removeprefix("record_").replace("_", "-"): function for name, function in globals().items()
            if name.startswith("record_")}


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["trim"] and len(arguments) >= 3:
        with open(arguments[1], "rb") as f:
            data = trim(f.read(), [tuple(part.encode() for part in pair.split("=")) for pair in arguments[3:]])
        with open(arguments[2], "wb") as f:
            f.write(data)
    elif arguments[:1] in (["write"], ["record"]):
        known = STORIES if arguments[0] == "write" else RECORDED
        for name in arguments[1:] or known:
            with open(os.path.join(PLACE, name + ".sysprof"), "wb") as f:
                f.write(known[name]())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
