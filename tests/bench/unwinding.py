# SPDX-License-Identifier: BSD-2-Clause
"""What a stack costs, of programs as people run them, beside bpf_get_stack(), perf's copies of stacks, and the OpenTelemetry
eBPF profiler where OTEL_PROFILER is its command line, with {hz} for the rate."""
import contextlib
import glob
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import workloads
from libagent import peer
from libbench import (CPUS, PERF, BareTimer, BpfMaps, BpfStats, Broken, Counted, CountedNode, CountedSysprof, Nothing,
                      Perf, Program, Runs, Sysprof, bench, budget, fixture, pick, rounds_of, spread, table)

CPU = CPUS[-1]
OTHERS = CPUS[:-1] or CPUS

# (name, Hz, command, budget in ns: half, two thirds and half of the 4.3, 7.6 and 6.2 us that the best peer needs)
SHAPES = [
    ("C, 27 deep, no frame pointers", 999, lambda: (fixture("deep-no-fp"), 24, 120), 2150),
    ("python3", 99, lambda: ("python3", "-c", workloads.PYTHON), 5067),
    ("node", 999, lambda: ("node", "-e", workloads.NODE_DEEP), 3100),
    ("clang", 99, lambda: ("sh", "-c", workloads.compiling()), None),
]


def median(values):
    return statistics.median(values) if values else float("nan")


def helper_ns(hz, seconds):
    """bpf_get_stack() of the user stack alone, beside what runs on CPU."""
    done = subprocess.run([bench("helper_cost"), str(CPU), str(seconds), "1", str(hz), "user-stack"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"helper_cost: {done.stderr}")
    return float(done.stdout.split()[1])


def sample_cost(hz, seconds, stats, *target):
    """(ns a run of the whole program, frames a stack, share of complete stacks)"""
    with Sysprof(*target, "-F", hz, "FOLDED", cpus=OTHERS) as s:
        time.sleep(1)  # the tables are there then
        before = stats.of(s.programs())["tick"]
        time.sleep(seconds)
        after = stats.of(s.programs())["tick"]
        s.stop()
        complete = float(s.reported(r"complete stacks: ([0-9.]+)")[1])
        return (after[1] - before[1]) / max(1, after[0] - before[0]), s.mean_depth(), complete


OF_PEER = 0.6
PEER_SETTLES = 12  # s


def peer_cost(hz, seconds, stats):
    """ns a run of the program of the peer's that runs most: it samples."""
    def runs(profiler):
        return {number: counts for number in profiler.programs() for counts in stats.of([number]).values()}

    with peer(hz) as profiler:
        time.sleep(PEER_SETTLES)
        before = runs(profiler)
        time.sleep(seconds)
        after = runs(profiler)
        if not before or not profiler.running():
            raise profiler.broken()
    count, ns = max((after[number][0] - before[number][0], after[number][1] - before[number][1]) for number in before)
    return ns / max(1, count)


def beside_peer(shapes, seconds, stats):
    """The peer has no targets, so both sample the whole system, and the same work runs on each CPU."""
    rounds = pick(3, 1)
    rows, notes = [], []
    for name, hz, command, _ in shapes:
        ours, its = [], []
        with contextlib.ExitStack() as work:
            for cpu in CPUS:
                work.enter_context(Program(*command(), cpus={cpu}))
            for _ in range(rounds):
                ours.append(sample_cost(hz, seconds, stats, "-a")[0])
                its.append(peer_cost(hz, seconds, stats))
        ratio = median(ours) / median(its)
        rows.append([f"{name}, {hz} Hz", spread(ours), spread(its), f"{ratio:.2f}"])
        if not name.startswith("clang"):
            notes.append(budget(f"a sample of {name}, of what the peer needs", ratio, OF_PEER, ""))
    table(f"A sample of real programs on all CPUs, beside the OpenTelemetry profiler ({rounds} rounds of {seconds} s in turn)",
          ["sysprof record -F HZ -a; OTEL_PROFILER; run_time_ns / run_cnt"], ["program", "ns a sample", "its", "ours of its"], rows, notes)


def real_programs():
    seconds, rounds = pick((2, 3), (1, 1))
    ns, frames, complete, helper = Runs(), Runs(), Runs(), Runs()
    shapes = [s for s in SHAPES if s[0].startswith("C") or shutil.which(s[0])]
    with BpfStats() as stats:
        for _ in range(rounds):
            for name, hz, command, _ in shapes:
                with Program(*command(), cpus={CPU}) as work:
                    time.sleep(1)
                    cost, depth, share = sample_cost(hz, seconds, stats, "-p", work.pid, "-C", CPU)
                    ns[name].append(cost)
                    frames[name].append(depth)
                    complete[name].append(share)
                    helper[name].append(helper_ns(hz, seconds / 2))
        if "{hz}" in os.environ.get("OTEL_PROFILER", ""):
            beside_peer(shapes, seconds, stats)
    rows = [[f"{name}, {hz} Hz", spread(ns[name]), f"{median(frames[name]):.1f}",
             f"{median(ns[name]) / max(1, median(frames[name])):.0f}", f"{median(complete[name]):.1f}",
             spread(helper[name])] for name, hz, _, _ in shapes]
    table(f"A sample of real programs ({rounds} rounds of {seconds} s, one CPU)",
          [f"sysprof record -C {CPU} -F HZ -p PID; run_time_ns / run_cnt of the whole program",
           f"helper_cost {CPU} {seconds / 2:g} 1 HZ user-stack: bpf_get_stack() alone, for comparison"],
          ["program", "ns a sample", "frames", "ns a frame", "% complete", "bpf_get_stack() alone"], rows,
          ["bpf_get_stack() follows frame pointers: without them it finds two frames, or wrong ones.",
           "Clock, CPU time, kernel stack and emit are in the first figure: see the tick program's parts."]
          + [budget(f"a sample of {name}, {hz} Hz", median(ns[name]), limit, "ns", 0)
             for name, hz, _, limit in shapes if limit])


# (name, Hz, command by depth, depths): frames that differ between the two depths are all alike
DEPTHS = [
    ("C, no frame pointers", 999, lambda depth: (fixture("deep-no-fp"), depth, 120), (24, 88)),
    ("node", 999, lambda depth: ("node", "-e", workloads.NODE_DEEP.replace("12", str(depth))), (12, 76)),
    ("python3", 999, lambda depth: ("python3", "-c", workloads.PYTHON_DEEP.replace("12", str(depth))), (12, 76)),
]


def counts_of(hz, maps, command):
    """Of a sample: (BPF functions called, with tail calls; helpers called; frames)."""
    with Program(*command, cpus={CPU}) as work:
        time.sleep(0.5)
        with CountedSysprof("-p", work.pid, "-F", hz, "-C", CPU, "FOLDED", cpus=OTHERS) as s:
            counted = maps.named(s.maps())[".data.counted"]
            time.sleep(1)  # the tables are there then
            before = maps.words(counted, 0)
            time.sleep(pick(2, 1))
            calls, helpers, samples = (b - a for a, b in zip(before[:3], maps.words(counted, 0)))
            s.stop()
            if not samples:
                raise Broken(f"no samples of {command[0]}")
            return calls / samples, helpers / samples, s.mean_depth()


def calls():
    rows, notes = [], []
    with BpfMaps() as maps:
        for name, hz, command, depths in DEPTHS:
            if name == "node" and not shutil.which("node"):
                continue
            shallow, deep = (counts_of(hz, maps, command(depth)) for depth in depths)
            more = [(b - a) / (deep[2] - shallow[2]) for a, b in zip(shallow, deep)]
            rows += [[f"{name}, {counts[2]:.1f} frames", f"{counts[0]:.1f}", f"{counts[1]:.1f}",
                      f"{more[0]:.2f}" if counts is deep else "", f"{more[1]:.2f}" if counts is deep else ""]
                     for counts in (shallow, deep)]
            notes += [budget(f"calls for a frame more of {name}", more[0], 1, "calls"),
                      budget(f"helpers for a frame more of {name}", more[1], 0.3, "calls")]
    table("Calls in a tick, which cost more where returns are slow; the same on every host",
          [f"counted/sysprof record -C {CPU} -F HZ -p PID; counts of its programs"],
          ["program", "calls of functions", "of helpers", "… for a frame more", "of helpers"], rows,
          ["Helpers that Linux 6.10 and later inline are not counted: look-ups in arrays, the number of the CPU."] + notes)


def slowdown_of(what, make_work):
    """Percent above the bare timer, by profiler, of work whose progress can be counted."""
    seconds, rounds = pick((0.8, 9), (0.4, 3))
    makers = {
        "nothing": lambda _: Nothing(),
        "bare timer": lambda _: BareTimer(999),
        "sysprof": lambda pid: Sysprof("-p", pid, "-F", 999),
    }
    if PERF:
        makers["perf -g"] = lambda pid: Perf("-F", 999, "-p", pid)
        makers["perf --call-graph dwarf"] = lambda pid: Perf("-F", 999, "-p", pid, graph="dwarf")
    wall, size = Runs(), Runs()
    with make_work() as work:
        time.sleep(1)
        for _, name in rounds_of(rounds, list(makers)):
            with makers[name](work.pid) as profiler:
                time.sleep(0.3)
                wall[name].append(work.ns_each(seconds)[0])
                profiler.stop()
                if isinstance(profiler, Perf) and os.path.exists(profiler.data):
                    size[name].append(os.path.getsize(profiler.data) / (seconds + 0.3) / 1e6)
    rows = [[name, spread(wall[name]),
             spread(wall.percent_above(name, "nothing"), 2) if name != "nothing" else "",
             spread(wall.percent_above(name, "bare timer"), 2) if name not in ("nothing", "bare timer") else "",
             spread(size[name], 1) if size[name] else ""] for name in makers]
    ours = median(wall.percent_above("sysprof", "bare timer"))
    notes = [budget(f"slowdown of {what} above the bare timer, 999 Hz", ours, 0.5, "points")]
    if PERF and what == "node":
        theirs = median(wall.percent_above("perf -g", "bare timer"))
        notes.append(budget(f"slowdown of {what}, no more than perf -g's", ours, theirs, "points"))
    table(f"Slowdown of {what} at 999 Hz ({rounds} rounds of {seconds} s each, in turn)",
          ["sysprof record -p PID -F 999", "perf record -B --call-graph fp|dwarf -F 999 -e cpu-clock -p PID"],
          ["beside", "ns a piece of work", "% above nothing", "% above the bare timer", "MB written a second"],
          rows, notes)


def deferred_work():
    """Does it pay to walk a stack when its thread returns to user space, where pages can be waited for?"""
    seconds = pick(4, 2)
    with Counted("spin", CPU):
        done = subprocess.run([bench("task_work"), str(CPU), str(seconds)], capture_output=True, text=True,
                              check=False)
    if done.returncode == 3:
        print(f"\n== Work at the return to user space: this kernel has none ({done.stderr.strip()})")
        return
    if done.returncode:
        raise Broken(f"task_work: {done.stderr}")
    words = done.stdout.split()
    reported = {k: int(v) for k, v in zip(words[::2], words[1::2])}
    table("Work at the return to user space (bpf_task_work), one slot a CPU", f"task_work {CPU} {seconds}",
          ["", ""],
          [["ticks that scheduled it", f"{reported['scheduled']:,}"],
           ["ticks that were refused", f"{reported['refused']:,}"],
           ["ns to schedule it", f"{reported['schedule_ns']:,}"],
           ["ns until it runs", f"{reported['wait_ns']:,}"],
           ["ns to copy 256 bytes there, bpf_copy_from_user()", f"{reported['read_ns']:,}"]],
          ["The walk would be the same; only stacks that end at a page that is not there would go on."])


def big_files():
    """(name, path) of what has much code here."""
    found = [("libLLVM", p) for p in sorted(glob.glob("/usr/lib/*/libLLVM*.so*"))[:1]]
    found += [("libclang-cpp", p) for p in sorted(glob.glob("/usr/lib/*/libclang-cpp.so*"))[:1]]
    found += [("libjvm", p) for p in sorted(glob.glob("/usr/lib/jvm/*/lib/server/libjvm.so"))[:1]]
    found += [("libc", p) for p in sorted(glob.glob("/usr/lib/*/libc.so.6"))[:1]]
    found += [("rustc_driver", p)
              for p in sorted(glob.glob(os.path.expanduser("~/.rustup/toolchains/*/lib/librustc_driver*.so")))[:1]]
    return found + [(name, os.path.realpath(path)) for name in ("node", "python3", "clang", "bash", "ls")
                    if (path := shutil.which(name)) and open(path, "rb").read(4) == b"\x7fELF"]


def tables():
    files = big_files()
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([bench("tables"), cache, *(path for _, path in files)], capture_output=True, text=True,
                              check=False)
    if done.returncode:
        raise Broken(f"tables: {done.stderr}")
    rows, notes, slowest, ratios = [], [], 0, []
    for (name, _), line in zip(files, done.stdout.splitlines()):
        count, size, ns, write, read = line.split()[1::2]
        each = int(ns) / int(count) / 1000
        slowest = max(slowest, each if int(count) > 10000 else 0)
        rows.append([name, f"{int(count):,}", f"{int(size) / 1e6:.2f}", f"{int(size) / int(count):.2f}",
                     f"{int(ns) / 1e6:.2f}", f"{each:.3f}",
                     *((f"{int(write) / 1e6:.2f}", f"{int(read) / 1e6:.2f}", f"{int(ns) / int(read):.0f}")
                       if int(read) else ("not kept", "", ""))])
        if int(read):
            ratios.append(int(read) / int(ns))
        if name == "libLLVM":
            notes.append(budget("table of libLLVM", int(size) / 1e6, 4, "MB"))
    notes.append(budget("building a table of more than 10,000 rows", slowest, 0.2, "us a row", 3))
    if ratios:
        notes.append(budget("reading a kept table, of the time to build it", max(ratios), 0.33, "", 3))
    table("Unwind tables", "tables CACHE FILE…: warm page cache, the fastest of three",
          ["file", "rows", "MB", "bytes a row", "ms to build", "us a row", "to write", "to read", "times faster"], rows,
          notes)


def unwinding():
    tables()
    real_programs()
    calls()
    deferred_work()
    slowdown_of("a spinning C program", lambda: Counted("spin", CPU))
    if shutil.which("node"):
        slowdown_of("node", CountedNode)
