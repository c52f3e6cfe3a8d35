#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Recordings that somebody made to hurt whoever reads them: what report and convert may cost, and write.

Each is of a kind that took minutes, or gigabytes, where the reader had an effort or an output that grew with a product
of what is in the file. The limits of time are more than ten times what is seen; those of bytes are what
docs/FORMATS.md says.
"""
import re
import json
import os
import resource
import struct
import subprocess

from libe2e import GOLDEN, SYSPROF, main, scratch

import recordings as r

MB = 1 << 20
SECONDS = 8  # of CPU, for a file of some megabytes
MEMORY = 3 << 30
CHUNK = MB
FORMATS = "json", "cpuprofile", "trace.json", "folded", "pb.gz", "html", "txt"
WORK = 0x10010
WHEN = r.START + r.SECOND


# ---- what files are made of ---------------------------------------------------------------------

def sample(when, cpu_time, frames=(WORK,), pid=100, tid=0):
    packed = [a | (2 if i else 1) << 56 for i, a in enumerate(frames)]
    return r.event(r.SAMPLE, when, struct.pack("<QQIIIHHBBHI", 0, cpu_time, pid, tid or pid, 0, 0, len(packed), 0, 1, 0, 0) +
                   struct.pack(f"<{len(packed)}Q", *packed))


def mapping(when, start, length, path="/opt/golden/program", pid=100, inode=11, flags=0):
    return r.event(r.MMAP, when, struct.pack("<IIQQQIIIIQQBB20s2x", pid, pid, start, length, 0, 5, 2, 8, 1, inode, 0, 0,
                                             2 if path.startswith("/") else 0, b"") + r.text(path), flags)


def fork(when, parent, child, tid=0):
    return r.event(r.FORK, when, struct.pack("<IIII", child, parent, tid or child, parent))


def jit_file(when, pid, number, kind=0, path="/tmp/perf-100.map"):
    return r.event(r.JIT_FILE, when, struct.pack("<IIQBB6x", pid, number, 0, kind, 1) + r.text(path))


def jit_bytes(when, number, data, after=None, before=None, flags=0):
    return r.event(r.JIT_BYTES, when, struct.pack("<QQIIII", when if after is None else after, before or when, number,
                                                  len(data), flags, 0) + data)


def symbol(when, address, *names):
    return r.event(r.SYMBOL, when, struct.pack("<QQII", address, address, len(names), 0) +
                   b"".join(r.Story.symbol_frame((name, 0x1000, 0x100)) for name in names))


def begin(period=r.PERIOD, hz=1000):
    s = r.begun("program")
    events = s.chunks[0]
    if period != r.PERIOD:
        events[:] = [e for e in events if b"period_ns" not in e]
        s.put(r.META, r.text("period_ns", str(period)))
    return events


def write(name, events, symbols=()):
    """The file, with its end; the symbols are those of the program."""
    last = struct.unpack_from("<Q", events[-1], 8)[0]
    events = [*events, r.event(r.END, last, b"")]
    if symbols:
        events += [r.event(r.SYMBOL_DSO, last, struct.pack("<II", 1, 0)), *symbols]
    events.append(r.event(r.SYMBOLS_END, last, b""))
    chunks, size = [[]], 0
    for e in events:
        if size + len(e) > CHUNK:
            chunks.append([])
            size = 0
        chunks[-1].append(e)
        size += len(e)
    path = scratch(f"{name}.sysprof")
    with open(path, "wb") as f:
        f.write(r.recording(chunks))
    return path


# ---- what may come of them ----------------------------------------------------------------------

def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS, 4 * SECONDS))


def cost_of(*args, seconds=SECONDS, status=0):
    """Run it; what it wrote to standard error and output, and that it was quick."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run([SYSPROF, *args], stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit_memory)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    error = p.stderr.decode("utf-8", "replace")
    assert p.returncode == status, (args, p.returncode, f"{cpu:.1f} s", error[-500:])
    assert cpu < seconds, f"{' '.join(args)}: {cpu:.1f} s of CPU"
    print(f"{cpu:6.2f} s  {' '.join(os.path.basename(a) for a in args)[:90]}")
    return error, p.stdout


def convert(path, formats=FORMATS, **options):
    """Into each of them: {format: bytes}, and what was said."""
    outputs = [f"{path[:-8]}.{f}" for f in formats]
    error, _ = cost_of("convert", path, *(w for o in outputs for w in ("-o", o)), **options)
    return {f: os.path.getsize(o) for f, o in zip(formats, outputs)}, error


def check_all(path, most, formats=FORMATS, **options):
    """Every format and the trees, none larger than `most` bytes."""
    sizes, error = convert(path, formats, **options)
    for shape in [], ["--tree", "--min", "0"], ["--tree", "--callers", "--json"]:
        said, out = cost_of("report", path, *shape, **options)
        sizes[" ".join(["report", *shape])] = len(out)
        error += said
    large = {f: size for f, size in sizes.items() if size > most}
    assert not large, (large, os.path.getsize(path))
    return error


# ---- time ---------------------------------------------------------------------------------------

def test_cpu_time_that_is_taken_back():
    """Readings that fall by 1 ns, each taken from one sample far back: each passed over all between."""
    count = 178000
    start = r.START + r.SECOND
    events = begin() + [sample(start, 10 * r.SECOND)]
    events += [sample(start + i, 10 * r.SECOND - i) for i in range(1, count)]
    check_all(write("taken-back", events), 64 * MB)


def test_changes_of_code_that_begin_earlier():
    """A perf map whose pieces say that they were written ever earlier: each took all before it along."""
    count = 250000
    events = begin() + [mapping(WHEN, 0x40000, 0x1000, "//anon"), jit_file(WHEN, 100, 1)]
    events += [jit_bytes(WHEN, 1, b"40000 100 f%d\n" % (i % 2), after=WHEN - i, before=WHEN) for i in range(count)]
    events += [sample(WHEN + 1 + i, 4 * r.SECOND + i, (0x40010,)) for i in range(100)]
    check_all(write("earlier", events), 64 * MB)


def test_books_of_descending_cpus():
    books = [r.event(r.BOOKS, r.START, struct.pack("<IIQQQQ8Q", cpu, 8, r.PERIOD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
             for cpu in range(65535, -1, -1)]
    check_all(write("books", begin() + books + [sample(WHEN, 4 * r.SECOND)]), 64 * MB)


def test_mappings_that_descend_and_forks_that_map():
    """Many mappings from the top down; then children that each map one more, and are sampled in code of their own."""
    count, children = 20000, 8000
    top = 0x7f0000000000
    events = begin() + [mapping(WHEN, top - i * 0x2000, 0x1000) for i in range(count)]
    events.append(mapping(WHEN, 0x40000, 0x1000, "//anon"))
    for child in range(1000, 1000 + children):
        events += [fork(WHEN, 100, child), mapping(WHEN, top + 0x2000, 0x1000, pid=child),
                   sample(WHEN + child, 1000, (0x40010,), pid=child)]
    check_all(write("mappings", events), 400 * MB)


def test_threads_that_are_dead():
    """Exits of threads that nobody knows, of a process with many dead ones; and losses beside many processes."""
    count = 60000
    events = begin() + [fork(WHEN, 100, 100, tid) for tid in range(1000, 1000 + count)]
    gone = [r.event(r.EXIT, WHEN, struct.pack("<IIII", 100, 0, tid, 0)) for tid in range(1000, 1000 + count)]
    events += gone + [r.event(r.EXIT, WHEN, struct.pack("<IIII", 100, 0, 100, 0))] + gone
    events += [fork(WHEN, 1, pid) for pid in range(100000, 100000 + count)]
    events += [r.event(r.LOST, WHEN, struct.pack("<IIQQ", r.LOST_SIDEBAND, 0, 1, 0)) for _ in range(count)]
    check_all(write("dead", events + [sample(WHEN + 1, 1000, pid=100000)]), 64 * MB)


def test_files_of_code():
    """Numbers of JIT files from the top down; a jitdump whose record never ends, in pieces of a byte."""
    events = begin() + [mapping(WHEN, 0x40000, 0x1000, "//anon")]
    events += [jit_file(WHEN, 100, number) for number in range(66000, 2, -1)]
    dump = struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, 1, 0, 0) + struct.pack("<IIQ", 0, 60 * MB, 0)
    events += [jit_file(WHEN, 100, 1, 1, "/tmp/jit-100.dump"), jit_bytes(WHEN, 1, dump)]
    events += [jit_bytes(WHEN, 1, bytes(60000)) for _ in range(100)] + [jit_bytes(WHEN, 1, b"\0")] * 60000
    check_all(write("files", events + [sample(WHEN + 1, 4 * r.SECOND, (0x40010,))]), 64 * MB)


def test_one_file_that_many_processes_have():
    """Each process asks for the history of its places, which takes the time of the whole file."""
    count, entries = 8000, 60000
    lines = [b"%x 10 f%d\n" % (0x40000 + 16 * (i % 256), i) for i in range(entries)]
    events = begin() + [mapping(WHEN, 0x40000, 0x1000, "//anon"), jit_file(WHEN, 100, 1)]
    events += [jit_bytes(WHEN, 1, b"".join(lines[i:i + 2000])) for i in range(0, entries, 2000)]
    for child in range(1000, 1000 + count):
        events += [fork(WHEN, 100, child), jit_file(WHEN, child, 1, path=""), sample(WHEN + child, 1000, (0x40010,), pid=child)]
    path = write("shared-map", events)
    check_all(path, 200 * MB)
    report = json.loads(cost_of("report", path, "--json")[1])
    assert "TOO_BIG" in {j["map"]["state"] for j in report["summary"]["jit"]}


def test_many_kinds_of_code_at_one_address():
    """Memory files with names of their own that are mapped to one address in turn: each is a place of its own."""
    count = 100000
    events = begin() + [jit_file(WHEN, 100, 1), jit_bytes(WHEN, 1, b"40000 1000 f\n")]
    for i in range(count):
        events += [mapping(WHEN + i, 0x40000, 0x1000, f"/memfd:{i} (deleted)", inode=0), sample(WHEN + i, 4 * r.SECOND + i, (0x40010,))]
    check_all(write("places", events), 256 * MB)


def test_functions_that_differ_in_their_size():
    """Symbols of one location whose functions have one name, one address and each another size."""
    symbols = [r.event(r.SYMBOL, WHEN, struct.pack("<QQII", 0x1010, 0x1010, 1, 0) + r.Story.symbol_frame(("f", 0x1000, size)))
               for size in range(100000)]
    check_all(write("sizes", begin() + [sample(WHEN, 4 * r.SECOND)], symbols), 64 * MB)


def test_names_of_one_thread():
    """A thread with another name at each sample of one stack."""
    count = 150000
    events = begin()
    for i in range(count):
        events += [r.event(r.COMM, WHEN + i, struct.pack("<II16s", 100, 100, b"name%d" % i)), sample(WHEN + i, 4 * r.SECOND + i)]
    check_all(write("names", events), 128 * MB)


def test_long_names_that_are_compared():
    """JIT code that may have been any of 64 functions with names of 32 KB, which are told apart at each sample."""
    events = begin() + [mapping(WHEN, 0x40000, 0x1000, "//anon"), jit_file(WHEN, 100, 1)]
    long_name = b"n" * 32000
    events += [jit_bytes(WHEN, 1, b"40000 100 %s%d\n" % (long_name, i), after=WHEN, before=WHEN + r.SECOND) for i in range(60)]
    events += [sample(WHEN + 1 + i, 4 * r.SECOND + i, (0x40010,) * 60) for i in range(4000)]
    check_all(write("compared", events), 64 * MB)


# ---- bytes --------------------------------------------------------------------------------------

def test_a_period_of_nothing():
    """Some hundred bytes, and years between two samples a period of 2 ns apart."""
    events = begin(period=2) + [sample(r.START + r.SECOND, 4 * r.SECOND), sample(1 << 59, 5 * r.SECOND)]
    path = write("period", events)
    assert "each stands for up to" in check_all(path, 32 * MB)
    with open(f"{path[:-8]}.cpuprofile", encoding="utf-8") as f:
        profile = json.load(f)
    idle = [n for n in profile["nodes"] if n["callFrame"]["functionName"] == "(idle)"][0]
    assert len(profile["samples"]) <= (1 << 20) + 4, len(profile["samples"])
    # hits are the periods, whatever the number of samples
    length = (1 << 59) - (r.START + r.SECOND)
    assert abs(idle["hitCount"] - length / 2) < length / 1000, idle
    assert profile["$sysprof"]["periodsPerIdleSample"] > 1


def test_a_sample_of_long_names():
    """One sample of 8 KB: a thousand times a chain of functions with names of 4 KB."""
    chain = [symbol(WHEN, 0x100f, *(f"{i}" + "n" * 4000 for i in range(15)))]
    events = begin() + [sample(WHEN, 4 * r.SECOND, (0x10010,) * 1000)]
    said = check_all(write("long", events, chain), 16 * MB)
    assert "names cut to" in said, said


def test_a_name_that_no_recorder_writes():
    """A name of 56 KB is no symbol: such an event is invalid."""
    events = begin() + [sample(WHEN, 4 * r.SECOND, (0x10010,) * 1000)]
    said = check_all(write("longer", events, [symbol(WHEN, 0x100f, "n" * 56000)]), 4 * MB)
    assert "1 events invalid" in said, said


def test_functions_inlined_everywhere():
    """Frames of eight bytes, each with a chain of 64 functions."""
    chain = [symbol(WHEN, 0x100f + 16 * k, *(f"f{k}.{i}" for i in range(64))) for k in range(64)]
    frames = [[WORK + 16 * ((i >> 6 * k) % 64) for k in range(3)] + [WORK] * 300 for i in range(400)]
    events = begin() + [sample(WHEN + i, 4 * r.SECOND + i, f[::-1]) for i, f in enumerate(frames)]
    path = write("inlined", events, chain)
    said = check_all(path, 128 * os.path.getsize(path) + 32 * MB)
    assert re.search(r"left out: \d+ inlined functions", said), said


def test_control_groups_of_children():
    """A path of 4 KB that all children have."""
    events = begin() + [r.event(r.CGROUP, WHEN, struct.pack("<II", 100, 0) + r.text("/" + "c" * 4000))]
    for child in range(1000, 17000):
        events += [fork(WHEN, 100, child), sample(WHEN + child, 1000, pid=child)]
    check_all(write("cgroups", events), 48 * MB)


def test_cpu_time_of_all_the_time():
    """Processes with one sample each, whose CPU time is said to be of hours: a counter has no more rows for that."""
    events = begin()
    for child in range(1000, 4000):
        events.append(fork(WHEN, 100, child))
    for child in range(1000, 4000):
        events.append(sample(WHEN + 3600 * r.SECOND, 3600 * r.SECOND, pid=child))
    check_all(write("counters", events), 48 * MB)


def test_what_is_real_is_whole():
    """The recordings that are checked in meet no limit: nothing is said, and their outputs are tested elsewhere."""
    for name in "containers", "jit-reuse", "processes-over-time":
        source = os.path.join(GOLDEN, f"{name}.sysprof")
        path = scratch(f"{name}.sysprof")
        with open(source, "rb") as f, open(path, "wb") as copy:
            copy.write(f.read())
        said = check_all(path, 4 * MB)
        assert not any(w in said for w in ("cut to", "left out", "stands for", "not listed")), said


main(globals())
