# SPDX-License-Identifier: BSD-2-Clause
"""What the words of runtimes cost: beside the frames of each sample, and to read what they mean."""
import contextlib
import os
import shutil
import statistics
import subprocess
import time

import workloads
from libbench import (CPUS, BpfMaps, BpfStats, Broken, Program, Runs, Sysprof, bench, budget, fixture, pick, read,
                      scratch, spread, table)

CPU = CPUS[-1]
OTHERS = CPUS[:-1] or CPUS
HZ = 999
DEPTHS = (10, 30, 100)
DELIVERED, IDLE, FILTERED = range(3)   # of enum book_line
SWITCH = "runtime_slots"               # which processes have one: without them the tick looks for none
PAUSE = 0.05                           # s, for what was under way when the switch was turned

# V8 does not inline what has so many bytecodes
FILLER = "if (globalThis.never) {" + "globalThis.never = (globalThis.never + 1) * 3;" * 100 + "}"

# what runs and calls it are frames as well: the callback of setImmediate(), and processImmediate()
NODE = """
const depth = Number(process.argv[2]) - 2;
function leaf() { FILLER let x = 0; for (let i = 0; i < 1e6; i++) x += i % 7; return x; }
let next = leaf;
for (let i = 1; i < depth; i++)
  next = new Function("next", "return function f" + i + "() { FILLER return next() + 1; }")(next);
setImmediate(() => { for (;;) next(); });
""".replace("FILLER", FILLER)

def node_script(depth):
    """The same, but all functions are of one script, as those of a file are."""
    functions = [f"function f{i}() {{ {FILLER} return f{i - 1}() + 1; }}" for i in range(1, depth - 2)]
    return "\n".join(["function f0() { FILLER let x = 0; for (let i = 0; i < 1e6; i++) x += i % 7; return x; }",
                      *functions, f"setImmediate(() => {{ for (;;) f{depth - 3}(); }});"]).replace("FILLER", FILLER)


NODE_RECURSIVE = """
const depth = Number(process.argv[2]) - 3;
function leaf() { FILLER let x = 0; for (let i = 0; i < 1e6; i++) x += i % 7; return x; }
function deep(n) { FILLER return n > 1 ? deep(n - 1) + 1 : leaf(); }
setImmediate(() => { for (;;) deep(depth); });
""".replace("FILLER", FILLER)

PYTHON = """
import sys
depth = int(sys.argv[1]) - 1
def f0():
    x = 0
    for i in range(100000):
        x += i % 7
for i in range(1, depth):
    exec(f"def f{i}():\\n    f{i - 1}()")
outermost = globals()[f"f{depth - 1}"]
while True:
    outermost()
"""

def java_source(depth):
    """Methods that call one another; main() is one of the frames."""
    methods = [f"static int f{i}(int n) {{ return f{i - 1}(n) + 1; }}" for i in range(1, depth - 1)]
    return "\n".join(["public class Chain {",
                      "static int f0(int n) { int x = 0; for (int i = 0; i < 20000; i++) x += i % (n | 1); return x; }", *methods,
                      f"static int sum; public static void main(String[] a) {{ for (int n = 1;; n++) sum += f{depth - 2}(n); }} }}"])


def java(depth, *flags):
    """With frame pointers, by which its stacks are walked where nothing is known of the JVM."""
    place = scratch(f"chain{depth}")
    if not os.path.isdir(place):
        os.mkdir(place)
        source = os.path.join(place, "Chain.java")
        with open(source, "w", encoding="utf-8") as f:
            f.write(java_source(depth))
        subprocess.run(["javac", "-d", place, source], check=True)
    return ("java", "-XX:+PreserveFramePointer", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::*", *flags, "-cp",
            place, "Chain")


def median(values):
    return statistics.median(values) if values else float("nan")


class First(Program):
    """On CPU, where nothing else gets much, if that can be helped."""

    def __init__(self, *args):
        super().__init__("nice", "-n", "-20", *args, cpus={CPU})
        try:
            with open(f"/proc/{self.pid}/autogroup", "w", encoding="utf-8") as f:
                f.write("-20")
        except OSError:
            pass  # there are no groups by session


# name: (command, frames of the runtime, budget in ns)
def shapes():
    found = {}
    if shutil.which("node"):
        chain, recursive = workloads.write("chain.js", NODE), workloads.write("recursive.js", NODE_RECURSIVE)
        for depth in DEPTHS:
            found[f"node, {depth} functions"] = (("node", chain, depth), depth, 400 if depth == 30 else None)
        script = workloads.write("script.js", node_script(30))
        found["node, 30 functions of a script"] = (("node", script), 30, 400)
        found["node, recursion 30 deep"] = (("node", recursive, 30), 30, None)
    chain = workloads.write("chain.py", PYTHON)
    for depth in DEPTHS:
        found[f"python3, {depth} functions"] = (("python3", chain, depth), depth, 500 + 200 * depth)
    if shutil.which("javac"):
        for depth in DEPTHS:
            found[f"java, {depth} functions"] = (java(depth), depth, 600 if depth == 30 else None)
        found["java, 30 functions, interpreted"] = (java(30, "-Xint"), 30, 600)
    return found


class Ticks:
    """Counts of the tick program on CPU since this was made: only samples of the targets have a cost."""
    other = 0  # ns of a tick that is none

    def __init__(self, stats, maps, s):
        self.stats, self.maps, self.programs = stats, maps, s.programs()
        self.books = maps.named(s.maps())["books"]
        self.begin()

    def now(self):
        return self.stats.of(self.programs)["tick"], self.maps.words(self.books, CPU)

    def begin(self):
        self.before = self.now()

    def filtered_ns(self, pieces):
        """Of as many moments in which all ticks were: the median, because others have the CPU as well."""
        found = []
        for _ in range(20 * pieces):
            self.begin()
            time.sleep(PAUSE)
            (runs, ns), books = self.before
            (runs_now, ns_now), books_now = self.now()
            lines = [b - a for a, b in zip(books, books_now)]
            if runs_now > runs and lines[FILTERED] and not lines[DELIVERED] + lines[IDLE]:
                found.append((ns_now - ns) / (runs_now - runs))
            if len(found) == pieces:
                return median(found)
        raise Broken(f"CPU {CPU} had nothing but filtered ticks in {len(found)} of {20 * pieces} moments")

    def sample_ns(self):
        (_, ns), books = self.before
        (_, ns_now), books_now = self.now()
        lines = [b - a for a, b in zip(books, books_now)]
        if lines[DELIVERED] < 20:
            raise Broken(f"{lines[DELIVERED]} samples: something else has CPU {CPU}")
        return (ns_now - ns - (lines[IDLE] + lines[FILTERED]) * Ticks.other) / lines[DELIVERED]


def cost_of_filtered(stats, maps):
    with First(fixture("loop"), 60), Program("sleep", 60) as bystander:
        with Sysprof("-p", bystander.pid, "-F", HZ, "-C", CPU, cpus=OTHERS) as s:
            Ticks.other = Ticks(stats, maps, s).filtered_ns(pick(12, 6))
            s.stop()


def deepest(path, prefix):
    """Of the stacks: how many frames of that name."""
    with open(path, encoding="utf-8") as f:
        return max((sum(frame.startswith(prefix) for frame in line.rsplit(" ", 1)[0].split(";")) for line in f), default=0)


def reading_ns():
    """bpf_probe_read_user() of what is in the cache; nothing does without."""
    with First(fixture("loop"), 60):
        reported = [subprocess.run([bench("helper_cost"), str(CPU), str(pick(0.5, 0.2)), "3", str(HZ), name], capture_output=True,
                               text=True, check=True).stdout.split()[1:] for name in ("read-user", "empty")]
    read_user, empty = (median([float(ns) for ns in figures]) for figures in reported)
    return read_user - empty


def with_and_without(command, stats, maps, turns, seconds):
    """([ns a sample with notes], [… without], the deepest stack's frames with a name of the program's)"""
    costs = [], []
    with First(*command) as work:
        time.sleep(1)
        with Sysprof("-p", work.pid, "-F", HZ, "-C", CPU, "FOLDED", cpus=OTHERS) as s:
            time.sleep(1.5)  # the tables are there then
            switch = maps.named(s.maps())[SWITCH]
            ticks = Ticks(stats, maps, s)
            for turn in range(2 * turns):
                off = (turn + turn // 2) % 2  # with, without, without, with, …
                if off and not maps.aside(switch):
                    raise Broken(f"{command}: nothing is known of its runtime")
                time.sleep(PAUSE)
                ticks.begin()
                time.sleep(seconds)
                costs[off].append(ticks.sample_ns())
                if off:
                    maps.back(switch)
            s.stop()
            return *costs, deepest(s.folded, ("f", "deep", "Chain.f"))


def notes_in_ticks(stats, maps):
    turns, seconds = pick((8, 0.5), (3, 0.3))
    rows, notes, extras = [], [f"one reading of user memory takes {reading_ns():.0f} ns here and now"], {}
    found = shapes()
    for name, (command, depth, limit) in found.items():
        on, off, named = with_and_without(command, stats, maps, turns, seconds)
        extra = [a - b for a, b in zip(on, off)]
        extras[name] = median(extra)
        rows.append([name, spread(off), spread(on), spread(extra), f"{median(extra) / depth:.0f}",
                     f"{median(on) / median(off):.2f}", named])
        if limit:
            notes.append(budget(f"words of {name}", median(extra), limit, "ns", 0))
    for kind in {name.split(",")[0]: None for name in found}:
        least, most = (extras[f"{kind}, {d} functions"] for d in (DEPTHS[0], DEPTHS[-1]))
        notes.append(f"{kind}: {(most - least) / (DEPTHS[-1] - DEPTHS[0]):.0f} ns a frame, "
                     f"{least - (most - least) / (DEPTHS[-1] - DEPTHS[0]) * DEPTHS[0]:.0f} ns a sample")
    table(f"Words of runtimes in a sample, {HZ} Hz ({turns} pairs of {seconds} s, in turn within one recording)",
          [f"sysprof record -C {CPU} -F {HZ} -p PID; run_time_ns of the programs, samples of PID alone",
           f"a tick that is filtered takes {Ticks.other:.0f} ns, and is taken off",
           "without: what the kernel has of the process's runtime is set aside"],
          ["program, frames of the runtime", "ns without", "ns with", "more", "a frame", "ratio", "named"], rows, notes)


def has_runtimes(maps, s):
    switch = maps.named(s.maps())[SWITCH]
    known = maps.aside(switch)
    maps.back(switch)
    return known > 0


def side_by_side(stats, maps, targets, turns, seconds, ns):
    """Two recordings of one program at the same time: whatever else this machine does, it does to both."""
    with contextlib.ExitStack() as stack:
        recordings = {name: stack.enter_context(Sysprof("-p", pids, "-F", HZ, "-C", CPU, cpus=OTHERS))
                      for name, pids in targets}
        time.sleep(1.5)
        if [name for name, s in recordings.items() if has_runtimes(maps, s)] != ["beside"]:
            raise Broken("a runtime is known where there is none, or the other way round")
        ticks = {name: Ticks(stats, maps, s) for name, s in recordings.items()}
        for _ in range(turns):
            for t in ticks.values():
                t.begin()
            time.sleep(seconds)
            for name, t in ticks.items():
                ns[name].append(t.sample_ns())
        for s in recordings.values():
            s.stop()


def others_pay(stats, maps):
    rounds, turns, seconds = pick((6, 5, 0.5), (2, 3, 0.4))
    ns = Runs()
    with First(fixture("deep-no-fp"), 24, 600) as work, Program("python3", "-c", "import time; time.sleep(600)") as python:
        time.sleep(0.5)
        targets = [("alone", work.pid), ("beside", f"{work.pid},{python.pid}")]
        for i in range(rounds):
            side_by_side(stats, maps, targets if i % 2 else targets[::-1], turns, seconds, ns)
    table(f"A C program, 27 deep, {HZ} Hz ({rounds} rounds of {turns} × {seconds} s, two recordings at the same time)",
          [f"sysprof record -C {CPU} -F {HZ} -p C", f"sysprof record -C {CPU} -F {HZ} -p C,PYTHON3"],
          ["", "ns a sample"], [["alone", spread(ns["alone"])], ["python3 is a target as well", spread(ns["beside"])]],
          [budget("a program without a runtime, more than alone", median(ns.percent_above("beside", "alone")), 1, "%")])


# ---- reading what they mean ---------------------------------------------------------------------

IMPORTS = """
import importlib, pkgutil, sys, time
for name in sorted(sys.stdlib_module_names):
    if name.startswith("_") or name in ("this", "antigravity", "idlelib", "turtledemo", "lib2to3"):
        continue
    try:
        module = importlib.import_module(name)
        for m in pkgutil.iter_modules(getattr(module, "__path__", [])):
            if not m.name.startswith("_") and m.name not in ("tests", "test"):
                importlib.import_module(f"{name}.{m.name}")
    except Exception:
        pass
"""


def readers_of(pid):
    """Its processes that read what others could hold up, by number."""
    children, readers = {}, []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = read(f"/proc/{name}/stat")
        except OSError:
            continue
        comm, rest = stat[stat.index("(") + 1:].rsplit(")", 1)
        children.setdefault(int(rest.split()[1]), []).append((int(name), comm))
    left = [pid]
    while left:
        for child, comm in children.get(left.pop(), []):
            left.append(child)
            if comm == "sysprof-reader":
                readers.append(child)
    return readers


def readers_cpu(pid):
    total = 0
    for reader in readers_of(pid):
        try:
            total += int(read(f"/proc/{reader}/schedstat").split()[0])
        except OSError:
            pass
    return total


def startups():
    found = {}
    npm = shutil.which("npm")
    if shutil.which("node"):
        if npm:
            found["npm ls, again and again"] = ("sh", "-c", f"cd {scratch('')}; while :; do {npm} ls >/dev/null 2>&1; done")
            found["npm ls -g, once"] = ("sh", "-c", f"{npm} ls -g >/dev/null 2>&1; sleep 10")
    imports = workloads.write("imports.py", IMPORTS)
    found["python3, the standard library, once"] = ("sh", "-c", f"python3 {imports} >/dev/null 2>&1; sleep 10")
    found["python3, the standard library, again and again"] = (
        "sh", "-c", f"while :; do python3 {imports} >/dev/null 2>&1; done")
    return found


def reading_names():
    seconds, rounds = pick((5, 3), (5, 1))
    share = Runs()
    found = startups()
    found["a C program"] = (fixture("deep-no-fp"), 24, 600)
    for _ in range(rounds):
        for name, command in found.items():
            held = scratch("go")
            if os.path.exists(held):
                os.unlink(held)
            with Program("sh", "-c", f"while [ ! -e {held} ]; do sleep 0.02; done; exec \"$@\"", "sh", *command) as work:
                with Sysprof("-p", work.pid, "-F", HZ) as s:
                    time.sleep(0.3)
                    before, at = readers_cpu(s.pid), time.monotonic()
                    open(held, "w", encoding="utf-8").close()
                    time.sleep(seconds)
                    share[name].append(100 * (readers_cpu(s.pid) - before) / 1e9 / (time.monotonic() - at))
                    s.stop()
    worst = max(median(share[name]) for name in startups())
    table(f"Readers of names in the first {seconds} s of a start-up, % of one CPU ({rounds} rounds)",
          [f"sysprof record -F {HZ} -p PID; CPU time of its processes sysprof-reader, which search for files as well"],
          ["program", "% of a CPU"], [[name, spread(share[name], 2)] for name in found],
          [budget("reading names in the busiest start-up", worst, 1, "% of a CPU")])


def runtimes():
    with BpfStats() as stats, BpfMaps() as maps:
        cost_of_filtered(stats, maps)
        notes_in_ticks(stats, maps)
        others_pay(stats, maps)
    reading_names()
