#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
The text of perf script, as the perf of this system prints it, against what perf itself says of each sample: its
interface for Python (perf script -s), which has the fields as numbers and the frames as objects.
"""
import collections
import contextlib
import json
import os
import re

from libe2e import SYSPROF, firefox_threads, folded, main, quick, read, scratch, sysprof, write
from libperf import without_kernel_code
from libprofiles import Crashed, perf, report

# A line of JSON for each sample: what perf has, not what it prints
MODEL = """
import json

def process_event(e):
    s = e["sample"]
    frames = [[f["ip"], f.get("sym", {}).get("name"), f.get("dso")] for f in e["callchain"]]
    alone = [[s["ip"], e.get("symbol"), e.get("dso")]]
    print(json.dumps([e["ev_name"], e["comm"], s["pid"], s["tid"], s["time"], s["period"], frames, alone]))
"""
# Threads and programs with names that have blanks, colons and brackets
PROGRAM = """
import ctypes, subprocess, threading

def work(n):
    ctypes.CDLL(None).prctl(15, f"a:b (1) [{n}] 2".encode(), 0, 0, 0)
    s = 0
    for i in range(2000000):
        s += i * i
    return s

threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
for t in threads: t.start()
for t in threads: t.join()
subprocess.run(["gzip", "-c", "/proc/self/exe"], stdout=subprocess.DEVNULL)
"""

Sample = collections.namedtuple("Sample", "event comm pid tid time period frames alone")

_made = {}


def recording(name, *options):
    """A perf.data of that program."""
    if name not in _made:
        path = scratch(name + ".data")
        perf("record", *options, "-o", path, "--", "python3", "-c", PROGRAM)
        _made[name] = path
    return _made[name]


def perf_print(data, *options):
    """With the kernel's symbols of one moment: BPF programs of other tests come and go."""
    if "kallsyms" not in _made:
        _made["kallsyms"] = write(scratch("kallsyms"), read("/proc/kallsyms"))
    return perf("script", "-i", data, "--kallsyms", _made["kallsyms"], *options)


def samples_of(data):
    script = write(scratch("model.py"), MODEL)
    out = perf_print(data, "--no-inline", "-s", script)
    samples = [Sample(*json.loads(line)) for line in out.splitlines() if line.startswith("[")]
    if not any(s.frames for s in samples):  # without callchains
        samples = [s._replace(frames=s.alone) for s in samples]
    assert len(samples) > 100, f"{len(samples)} samples are too few to be compared"
    return samples


def text_of(data, *options, inline=("--no-inline",)):
    """The text in a file."""
    path = scratch(f"{os.path.basename(data)}{'_'.join(options).replace('/', '')}.txt")
    return write(path, perf_print(data, *inline, *options))


def threads_of(path):
    """{tid: [(time in ns, names of frames, root first)]}"""
    out = path + ".json"
    sysprof("convert", path, "-o", out, check=0)
    threads = collections.defaultdict(list)
    for thread in firefox_threads(out):
        threads[thread.tid] += [(when, [name for name, _ in frames]) for when, frames in thread.samples()]
    return threads


def name_of(frame):
    """As sysprof calls it: after its file where there is no symbol."""
    address, symbol, dso = frame
    if symbol:
        return symbol
    if address >> 63:  # a frame pointer that leads nowhere, unless it is an address
        return "[kernel]" if address >> 48 == 0xffff and address != 2 ** 64 - 1 else "[unknown]"
    if re.search(r"/perf-\d+\.map$", dso or ""):  # code of a JIT compiler has no file
        return f"{address:#x}"
    if not dso or dso.startswith("["):
        return dso or "[unknown]"
    return f"[{os.path.basename(dso.removesuffix(' (deleted)'))}]"


def assert_same(path, samples, digits):
    """Every sample, with its time as printed, its stack and its thread. Those of one time may be 1 ns apart."""
    expected = collections.defaultdict(list)
    for s in samples:
        names = [name_of(f) for f in s.frames][::-1] or ["[unknown]"]
        tid = 0 if s.tid == 2 ** 32 - 1 else s.tid  # perf does not know whose it is
        expected[tid].append((s.time // 10 ** (9 - digits) * 10 ** (9 - digits), names))
    threads = threads_of(path)
    assert set(threads) == set(expected), (set(threads), set(expected))
    for tid, rows in expected.items():
        rows.sort(key=lambda row: row[0])
        assert len(threads[tid]) == len(rows), (tid, len(threads[tid]), len(rows))
        for (when, frames), (at, wanted) in zip(threads[tid], rows):
            assert abs(when - at) < 1000 and frames == wanted, (tid, when, at, frames, wanted)


def of_clock(samples):
    """Without the idle task, whose time is no CPU time."""
    return [s for s in samples if s.event.split(":")[0] in ("cpu-clock", "task-clock") and s.tid]


@quick
def test_clock():
    """Samples, times, stacks, CPU time and names of threads are those of perf, in each layout of fields."""
    data = recording("clock", "-e", "cpu-clock", "-F", "999", "-g")
    samples = samples_of(data)
    layouts = [([], 6), (["--ns"], 9), (["--header"], 6), (["-I"], 6), (["-F", "+pid,-period"], 6),
               (["-F", "comm,tid,time,event,ip,sym,dso"], 6), (["-F", "comm,pid,tid,time,period,event,ip,sym,symoff,dso"], 6),
               (["--show-task-events", "--show-mmap-events"], 6)]
    for options, digits in layouts:
        path = text_of(data, *options)
        summary = report(path)["summary"]
        assert summary["samples"] == len(samples), (options, summary)
        printed = "-F" not in options or "period" in options[1].split(",")
        assert summary["cpu_ns"] == (sum(s.period for s in samples) if printed else 0), (options, summary)
        assert "not_read" not in summary["meta"], (options, summary)
        assert_same(path, samples, digits)
    # comms are in the first column of folded stacks
    out = scratch("clock.folded")
    sysprof("convert", text_of(data), "-o", out, check=0)
    counts = collections.Counter()
    for frames, count in folded(out, cancellation=True):
        counts[frames[0]] += count
    assert counts == collections.Counter(s.comm for s in samples)
    assert any(comm.startswith("a:b (1) [") for comm in counts), counts


def test_facts_and_processes():
    """--header has the machine; pids are those of the file, or of its records."""
    data = recording("clock", "-e", "cpu-clock", "-F", "999", "-g")
    samples = samples_of(data)
    meta = report(text_of(data, "--header"))["summary"]["meta"]
    assert meta["hostname"] == os.uname().nodename and meta["kernel"] == os.uname().release, meta
    assert meta["product"].startswith("perf ") and "perf record" in meta["command"], meta
    expected = collections.Counter(s.pid for s in samples)
    for options in (["-F", "+pid"], ["--show-task-events", "--show-mmap-events"]):
        rows = report(text_of(data, *options), "--by", "process")["rows"]
        assert collections.Counter({row["pid"]: row["self"] for row in rows}) == expected, (options, rows)
    rows = report(text_of(data), "--by", "process")["rows"]
    assert [row["self"] for row in rows] == [len(samples)], "without pids there is one process"


def test_lives():
    """Each program of a process has its samples, as in perf.data; with records of names and without."""
    data, loop = scratch("lives.data"), "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"
    perf("record", "-e", "cpu-clock", "-F", "4999", "-o", data, "--", "sh", "-c", f"{loop}; exec bash -c '{loop}; exec gzip -c {SYSPROF} >/dev/null'")

    def lives(path):
        return {(row["pid"], row["process"]): row["self"] for row in report(path, "--by", "process")["rows"]}

    expected = lives(data)
    assert {"sh", "bash", "gzip"} <= {name for _, name in expected}, expected
    for options in (["-F", "+pid"], ["-F", "+pid", "--show-task-events"]):
        assert lives(text_of(data, *options)) == expected, (options, lives(text_of(data, *options)), expected)


def test_counted_event():
    """Of an event that is no clock the periods are its counts."""
    data = recording("faults", "-e", "page-faults", "-c", "3", "-g")
    samples, path = samples_of(data), text_of(data)
    summary = report(path)["summary"]
    assert summary["samples"] == len(samples) and summary["cpu_ns"] == 0, summary
    assert summary["event"] == "page-faults" and summary["events"] == sum(s.period for s in samples), summary
    assert_same(path, samples, 6)


def test_unequal_clock():
    """In a group a clock has what it counted since the last sample: shares are of CPU time, as text and of perf.data."""
    for name, events, period in (("group", "{page-faults,task-clock}:S", "10"), ("led", "{cpu-clock,page-faults}:S", "1000000")):
        data = recording(name, "-e", events, "-c", period, "-g")
        all_samples = samples_of(data)
        samples = of_clock(all_samples)
        cpu = sum(s.period for s in samples)
        assert len({s.period for s in samples}) > 10, name
        others = f"samples of page-faults: {sum(s.event == 'page-faults' for s in all_samples)}"
        assert name == "led" or others in report(data)["summary"]["meta"]["not_read"], others
        for path in (text_of(data), data):
            summary = report(path)["summary"]
            assert (summary["samples"], summary["cpu_ns"], summary["events"]) == (len(samples), cpu, cpu), (path, summary)
            assert (summary["event"], summary["event_unit"]) == ("cpu", "nanoseconds"), (path, summary)


def test_lines_without_a_task_or_event():
    """Without call chains such lines are refused with a command that prints what is read."""
    data = recording("flat", "-e", "task-clock", "-c", "1000000")
    for fields in ("comm,ip,sym", "ip,sym", "ip,sym,dso", "comm,tid,ip,sym", "time,ip,sym", "comm,event,ip,sym", "comm,period,ip,sym"):
        said = sysprof("report", text_of(data, "-F", fields), check=1)
        command = re.search(r"`perf script (-F [^`]*)`", said.err)
        assert command, (fields, said)
    assert report(text_of(data, *command[1].split()))["summary"]["samples"] == len(samples_of(data))


def test_written_and_read_again():
    """Samples, CPU time and counts are the same behind each format; in a trace a sample lasts until the next one."""
    for data, options in (("clock", ("-e", "cpu-clock", "-F", "999", "-g")), ("faults", ("-e", "page-faults", "-c", "3", "-g"))):
        path = text_of(recording(data, *options))
        before = report(path)["summary"]
        for suffix, error in ((".json.gz", 0), (".pb.gz", 0), (".trace.json.gz", 0.2)):
            out = scratch("again" + suffix)
            sysprof("convert", path, "-o", out, check=0)
            after = report(out)["summary"]
            assert all(after.get(key) == before.get(key) for key in ("samples", "threads", "event", "events")), (before, after)
            assert abs(after["cpu_ns"] - before["cpu_ns"]) <= error * before["cpu_ns"], (suffix, before, after)


def test_whole_system():
    """All CPUs and several events: the clock is the profile's; idle CPUs and other events are counted."""
    data = without_kernel_code(recording("system", "-a", "-e", "cpu-clock,page-faults,context-switches", "-c", "1000003", "-g"),
                               scratch("read.data"))
    # perf reads files that other processes may remove meanwhile, as their perf maps, and crashes now and then: compare what is the
    # same before and after
    for _ in range(10):
        with contextlib.suppress(Crashed):
            samples, path = samples_of(data), text_of(data)
            if samples_of(data) == samples:
                break
    clock = of_clock(samples)
    summary = report(path)["summary"]
    assert summary["samples"] == len(clock) and summary["cpu_ns"] == sum(s.period for s in clock), summary
    idle = sum(s.event.split(":")[0] == "cpu-clock" and not s.tid for s in samples)
    others = len(samples) - len(clock) - idle
    left_out = summary["meta"].get("not_read", "")
    assert (f"samples of idle CPUs: {idle}" in left_out) == (idle > 0), (idle, left_out)
    assert others == 0 or f"): {others}" in left_out, (others, left_out)
    assert_same(path, clock, 6)


def test_without_callchains():
    data = recording("flat", "-e", "task-clock", "-c", "1000000")
    samples, path = samples_of(data), text_of(data)
    summary = report(path)["summary"]
    assert summary["samples"] == len(samples) and summary["cpu_ns"] == sum(s.period for s in samples), summary
    assert_same(path, samples, 6)


def test_inlined():
    """Lines of one address are one place: as many functions as without, and those that are inlined beside them."""
    data = recording("dwarf", "-e", "task-clock:u", "-c", "1000000", "--call-graph", "dwarf,4096")
    samples = samples_of(data)
    path = text_of(data, inline=("--inline",))
    assert report(path)["summary"]["samples"] == len(samples)
    with open(path, encoding="utf-8") as f:
        printed = sum(line.startswith("\t") for line in f)
    assert sum(len(frames) for rows in threads_of(path).values() for _, frames in rows) == printed


def test_cut():
    """A file that ends anywhere has whole stacks only, and says what is missing."""
    path = text_of(recording("clock", "-e", "cpu-clock", "-F", "999", "-g"))
    with open(path, "rb") as f:
        data = f.read()
    whole = collections.Counter(frames for rows in threads_of(path).values() for _, names in rows
                                for frames in [tuple(names)])
    for size in range(len(data) // 2, len(data) // 2 + 400, 41):
        cut = write(scratch(f"cut-{size}.txt"), data[:size])
        stacks = collections.Counter(tuple(names) for rows in threads_of(cut).values() for _, names in rows)
        assert stacks and not stacks - whole, (size, stacks - whole)
        begun = sum(line[:1] not in (b"", b"\t") for line in data[:size].split(b"\n"))
        assert ("not_read" in report(cut)["summary"]["meta"]) == (sum(stacks.values()) < begun), (size, sum(stacks.values()), begun)


if __name__ == "__main__":
    main(globals())
