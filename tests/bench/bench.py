# SPDX-License-Identifier: BSD-2-Clause
"""What recording costs, beside perf: bench.py [SECTION…], through run.sh.

Figures are medians of rounds with (least–greatest); what is compared took turns. A budget that is
not met is said and changes nothing: the exit status is 1 only where something could not be
measured.
"""
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import traceback

import agent
import commands
import diffing
import exporting
import files
import filtering
import jit
import pages
import programs
import reading
import runtimes
import symbols
import unwinding
import waiting
import windows
import workloads
from libbench import (BUILD, CPUS, PERF, BareTimer, BpfStats, Broken, Counted, Nothing, Perf,
                      Program, Runs, Sysprof, bench, books, budget, crashes, empty_cache, fixture, pick,
                      private_mounts, read, rounds_of, scratch, spread, table, verdicts)

CPU = CPUS[-1]  # where the profiled programs run, if they are pinned
OTHERS = CPUS[:-1] or CPUS


def median(values):
    return statistics.median(values) if values else float("nan")


# ---- the program in the kernel ------------------------------------------------------------------

# name: (command that is profiled, depth of its user stack as it is written)
SHAPES = {
    "idle": None,
    "filtered": None,
    "shallow": (fixture("loop"), 60),
    "27 deep": (fixture("deep-no-fp"), 24, 60),
    "110 deep": (fixture("deep-no-fp"), 107, 60),
    "27 deep, fp": (fixture("deep"), 24, 60),
    "110 deep, fp": (fixture("deep"), 107, 60),
    "read()": (fixture("kstack"), "read", 60),
    "getdents()": (fixture("kstack"), "getdents", 60),
}
PLAIN = ("-g", "none", "--no-kernel")
COSTS = [  # (shape, what is switched off, name of the row)
    ("idle", (), "idle CPU"),
    ("filtered", (), "a process that is no target"),
    ("shallow", PLAIN + ("--clock", "monotonic"), "shallow, -g none --no-kernel --clock monotonic"),
    ("shallow", PLAIN, "shallow, -g none --no-kernel"),
    ("shallow", (), "shallow"),
    ("27 deep", ("-g", "none"), "C, 27 deep, -g none"),
    ("27 deep", (), "C, 27 deep"),
    ("110 deep", (), "C, 110 deep"),
    ("27 deep, fp", ("-g", "fp"), "C with frame pointers, 27 deep, -g fp"),
    ("110 deep, fp", ("-g", "fp"), "C with frame pointers, 110 deep, -g fp"),
    ("read()", PLAIN, "in read(), -g none --no-kernel"),
    ("read()", ("--no-kernel",), "in read(), --no-kernel"),
    ("read()", (), "in read()"),
    ("getdents()", ("--no-kernel",), "in getdents(), --no-kernel"),
    ("getdents()", (), "in getdents()"),
]


def cost_of_ticks(shape, options, stats, seconds):
    """(ns a run, frames a stack) of the tick program on one CPU where just that shape runs."""
    command = SHAPES["shallow" if shape == "filtered" else shape]
    work = Program(*command, cpus={CPU}) if command else Nothing()
    bystander = Program("sleep", 60) if shape == "filtered" else Nothing()
    with work, bystander:
        target = ("-a",) if shape == "idle" else ("-p", bystander.pid if shape == "filtered" else work.pid)
        with Sysprof(*target, "-F", 999, "-C", CPU, *options, "FOLDED", cpus=OTHERS) as s:
            time.sleep(0.1)
            before = stats.of(s.programs())["tick"]
            time.sleep(seconds)
            after = stats.of(s.programs())["tick"]
            s.stop()
            depth = s.mean_depth() if os.path.exists(s.folded) else 0
            verified = s.verified()
    runs = after[0] - before[0]
    if not runs:
        raise Broken("the tick program did not run")
    return (after[1] - before[1]) / runs, depth, verified


def helper_costs():
    seconds, rounds = pick((0.2, 5), (0.15, 3))
    with Counted("spin", CPU):
        done = subprocess.run([bench("helper_cost"), str(CPU), str(seconds), str(rounds)],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"helper_cost: {done.stderr}")
    costs = Runs()
    for line in done.stdout.splitlines():
        name, *figures = line.split()
        costs[name] = [float(f) for f in figures]
    rows = [[name, spread(costs[name]),
             spread(costs.minus(name, "empty")) if name != "empty" else ""] for name in costs]
    table("Parts of a tick alone: one helper a program, 999 Hz, beside a spinning process",
          f"helper_cost {CPU} {seconds} {rounds}",
          ["part", "ns a run", "less the empty program"], rows,
          ["The kernel's own counting is in every figure of this table and the next one: it is",
           "the empty program. Rings have no wake-ups, and are emptied ten times a round."])
    return costs


def program_cost():
    helpers = helper_costs()
    seconds, rounds = pick((0.6, 3), (0.3, 1))
    ns, depths, verified = Runs(), Runs(), {}
    by_name = {name: (shape, options) for shape, options, name in COSTS}
    with BpfStats() as stats:
        for _, name in rounds_of(rounds, list(by_name)):
            shape, options = by_name[name]
            cost, depth, insns = cost_of_ticks(shape, options, stats, seconds)
            ns[name].append(cost)
            depths[name].append(depth)
            verified.update(insns)
    table(f"The tick program, ns a run at 999 Hz on one CPU ({rounds} rounds of {seconds} s)",
          [f"sysprof record -C {CPU} -F 999 -p PID [OPTIONS]",
           "run_time_ns / run_cnt of the program, with BPF_ENABLE_STATS"],
          ["workload", "ns a run", "frames a stack"],
          [[n, spread(ns[n]), f"{median(depths[n]):.1f}" if any(depths[n]) else ""]
           for n in by_name])
    deep, deeper, flat = "C, 110 deep", "C, 27 deep", "C, 27 deep, -g none"
    plain = "shallow, -g none --no-kernel"
    frames = max(median(depths[deep]) - median(depths[deeper]), 1)
    frame_ns = [d / frames for d in ns.minus(deep, deeper)]
    parts = [
        ["bookkeeping and event clock of a tick", ns["idle CPU"]],
        ["filter, hot program", ns.minus("a process that is no target", "idle CPU")],
        ["ids, CPU time, emit of one frame", ns.minus(plain + " --clock monotonic",
                                                      "a process that is no target")],
        ["TSC instead of the monotonic clock", ns.minus(plain, plain + " --clock monotonic")],
        ["user frames, 27", ns.minus(deeper, flat)],
        ["a user frame (110 deep less 27 deep)", frame_ns],
        ["kernel stack in read()", ns.minus("in read()", "in read(), --no-kernel")],
        ["kernel stack in getdents()", ns.minus("in getdents()", "in getdents(), --no-kernel")],
        ["emit of 64 bytes, from the table before", helpers.minus("perf-ring-64", "empty")],
        ["emit of 2112 bytes, the same", helpers.minus("perf-ring-2112", "empty")],
    ]
    insns = int(verified.get("tick", 0))
    table("… and its parts, differences of those within each round", "(the table above)",
          ["part", "ns"], [[n, spread(v)] for n, v in parts],
          ["verified instructions: " + ", ".join(f"{n} {c}" for n, c in sorted(verified.items())),
           budget("unwinding, copy to the ring included", median(frame_ns), 60,
                  "ns a frame", 0),
           budget("verifier, tick program", insns, 20000, "instructions", 0)])


# ---- the whole system ---------------------------------------------------------------------------

def context_switches():
    return int(re.search(r"^ctxt (\d+)", read("/proc/stat"), re.M)[1])


def whole_system():
    seconds, rounds = pick((3, 3), (1.5, 1))
    names = ["sysprof", "perf"] if PERF else ["sysprof"]
    cpu, bpf, switches = Runs(), Runs(), Runs()
    settings = {"quiet": Nothing, "switching": lambda: Counted("paced", CPU, 30)}
    with BpfStats() as stats:
        for setting, work in settings.items():
            for _, name in rounds_of(rounds, names):
                profiler = Perf if name == "perf" else Sysprof
                with work(), profiler("-a", "-F", 99) as p:
                    time.sleep(0.3)
                    begin, at, ctxt = p.cpu_ns(), time.monotonic_ns(), context_switches()
                    ran = stats.of(p.programs()) if name == "sysprof" else {}
                    time.sleep(seconds)
                    wall = time.monotonic_ns() - at
                    cpu[setting, name].append(100 * (p.cpu_ns() - begin) / wall)
                    now = stats.of(p.programs()) if name == "sysprof" else {}
                    bpf[setting, name].append(
                        100 * sum(now[n][1] - ran[n][1] for n in now) / wall)
                    switches[setting].append((context_switches() - ctxt) * 1e9 / wall)
                    p.stop()
    rows, notes = [], []
    for setting in settings:
        for name in names:
            both = [a + b for a, b in zip(cpu[setting, name], bpf[setting, name])]
            rows.append([f"{setting}, {name}", f"{median(switches[setting]):,.0f}",
                         spread(cpu[setting, name], 3),
                         spread(bpf[setting, name], 3) if name == "sysprof" else "not told",
                         spread(both, 3)])
            if name == "sysprof":
                notes.append(budget(f"whole system at 99 Hz, {setting}", median(both), 0.3,
                                    "% of one CPU", 3))
    table(f"The whole system at 99 Hz, % of one CPU ({rounds} rounds of {seconds} s)",
          ["sysprof record -a -F 99; its threads by schedstat, all its programs by run_time_ns",
           "perf record -a -B -g -F 99 -e cpu-clock"],
          ["setting", "switches a second", "collector", "BPF", "both"], rows, notes)


# ---- the target ---------------------------------------------------------------------------------

def slowdown():
    seconds, rounds = pick((0.8, 11), (0.4, 5))
    makers = {
        "nothing": lambda _: Nothing(),
        "bare timer": lambda _: BareTimer(999),
        "sysprof": lambda pid: Sysprof("-p", pid, "-F", 999),
    }
    if PERF:
        makers["perf"] = lambda pid: Perf("-F", 999, "-p", pid)
    wall, held = Runs(), Runs()
    with Counted("spin", CPU) as work:
        for _, name in rounds_of(rounds, list(makers)):
            with makers[name](work.pid) as profiler:
                time.sleep(0.05)
                for runs, figure in zip((wall, held), work.ns_each(seconds)):
                    runs[name].append(figure)
                profiler.stop()
    rows = []
    for what, runs in {"wall": wall, "on its CPU": held}.items():
        rows += [[f"{name}, {what}", spread(runs[name], 1),
                  spread(runs.percent_above(name, "nothing"), 2) if name != "nothing" else "",
                  spread(runs.percent_above(name, "bare timer"), 2)
                  if name not in ("nothing", "bare timer") else ""] for name in makers]
    table(f"Slowdown of a spinning target at 999 Hz ({rounds} rounds of {seconds} s each, in turn)",
          [f"counted spin {CPU}; bare_timer 999 (the same events without a program)",
           "sysprof record -p PID -F 999", "perf record -B -g -F 999 -e cpu-clock -p PID"],
          ["beside", "ns a piece of work", "% above nothing", "% above the bare timer"], rows,
          ["On its CPU: wall time less the time that the target waited for its CPU, for the",
           "collector or for whatever else runs here. Interrupts and programs are in it.",
           budget("slowdown above the bare timer, 999 Hz, wall",
                  median(wall.percent_above("sysprof", "bare timer")), 0.5, "points"),
           budget("slowdown above the bare timer, 999 Hz, on its CPU",
                  median(held.percent_above("sysprof", "bare timer")), 0.5, "points")])


# ---- the collector ------------------------------------------------------------------------------

def collector():
    seconds, rounds = pick((3, 3), (1.5, 2))
    names = ["sysprof", "perf"] if PERF else ["sysprof"]
    cpu = Runs()
    workers = [Counted("spin", c) for c in CPUS[:2]]
    pids = ",".join(str(w.pid) for w in workers)
    try:
        for _, name in rounds_of(rounds, names):
            with (Perf if name == "perf" else Sysprof)("-F", 999, "-p", pids) as p:
                time.sleep(0.5)
                begin, at = p.cpu_ns(), time.monotonic()
                time.sleep(seconds)
                cpu[name].append((p.cpu_ns() - begin) / 1e6 / (time.monotonic() - at))
                p.stop()
    finally:
        for w in workers:
            w.close()
    table(f"The collector while recording {len(workers)} × 999 Hz ({rounds} rounds of {seconds} s)",
          ["sysprof record -F 999 -p A,B (two spinning processes); its threads by schedstat",
           "perf record -B -g -F 999 -e cpu-clock -p A,B"],
          ["collector", "ms CPU a second"], [[n, spread(cpu[n], 2)] for n in names],
          [budget("collector, 2 × 999 Hz", median(cpu["sysprof"]), 2, "ms a second")])


def memory():
    seconds = pick(4, 2)
    rows, notes = [], []
    with workloads.Busy("clang", "node", "java") as busy:
        for hz in (99, 999):
            for profiler in (Sysprof, Perf) if PERF else (Sysprof,):
                with profiler("-a", "-F", hz) as p:
                    time.sleep(seconds)
                    resident, share = p.memory_mb()
                    twice = p.mapped_kernel_mb()
                    p.stop()
                row = [f"{p.name}, {hz} Hz", f"{resident:.0f}", f"{share:.0f}", f"{twice:.0f}", "",
                       f"{p.usage.ru_maxrss / 1024:.0f}"]
                if profiler is Sysprof:
                    row[4] = int(p.reported(r"(\d+) MB of rings and maps")[1])
                    notes.append(budget(f"memory at {hz} Hz, with rings and maps",
                                        resident - twice + row[4], 100, "MB", 0))
                rows.append(row)
    table(f"Memory, MB, after {seconds} s of the whole system beside {busy.names()}",
          ["sysprof record -a -F HZ; smaps_rollup, and what its summary says of the kernel's",
           "perf record -a -B -g -F HZ -e cpu-clock"],
          ["", "RSS", "PSS", "of it rings and maps", "rings and maps", "peak RSS, symbols included"], rows,
          notes + ["RSS has the pages of rings and maps that were touched: the sum is RSS without them, and",
                   "rings and maps whole."])


def drop_caches():
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("3")
        return True
    except OSError:
        return False


def perf_row(p):
    """What perf makes of its data, as a row of the table below."""
    size, text = os.path.getsize(p.data), scratch("perf.txt")
    begin = time.monotonic()
    with open(text, "wb") as out:
        status = subprocess.run([PERF, "script", "-i", p.data], stdout=out, check=False,
                                stderr=subprocess.DEVNULL, timeout=300).returncode
    script, text_size = time.monotonic() - begin, os.path.getsize(text)
    with open(text, "rb") as f:
        samples = sum(1 for line in f if line[:1] not in (b"\t", b" ", b"\n"))
    os.unlink(text)
    if status:
        crashes.append(f"perf script: status {status}, its row is that of a part of the file")
    return ["perf", f"{samples:,}", f"{p.seconds_to_stop:.2f}", f"{script:.2f}",
            f"{p.seconds_to_stop + script:.2f}", f"{p.cpu_to_stop:.2f}",
            f"{size:,} + {text_size:,}"]


# (what sysprof finds, what is done before the stop, s)
STOPS = [("no index", None, 1), ("page cache dropped", drop_caches, 2), ("indexes of runs before", None, 0.3)]


def stop_to_file():
    seconds = pick(60, 10)
    rows, verdict = [], []
    private_mounts()
    with workloads.Busy("clang", "node", "chain") as busy, empty_cache("stop"):
        for what, prepare, limit in STOPS:
            with Sysprof("-a", "-F", 999) as s:
                time.sleep(seconds)
                os.sync()
                s.stop(prepare)
                size = os.path.getsize(s.profile)
                samples = int(s.reported(r"sysprof: (\d+) samples")[1])
                rows.append([f"sysprof, {what}", f"{samples:,}", f"{s.seconds_to_stop:.2f}", "",
                             f"{s.seconds_to_stop:.2f}", f"{s.cpu_to_stop:.2f}", f"{size:,}"])
                verdict.append(budget(f"stop to file, {seconds} s, {what}", s.seconds_to_stop, limit, "s"))
        if PERF:
            with Perf("-a", "-F", 999) as p:
                time.sleep(seconds)
                os.sync()
                p.stop(drop_caches)
                rows.append(["perf", "", "crashed", "", "", "", ""] if p.crashed else perf_row(p))
    table(f"From the stop to a file with names, s: {seconds} s whole system at 999 Hz beside {busy.names()}",
          ["sysprof record -a -F 999 -o FILE.json.gz, with a cache of its own; SIGINT, once right after echo 3 >drop_caches",
           "perf record -a -B -g -F 999 -e cpu-clock; SIGINT right after echo 3 >drop_caches; perf script >FILE"],
          ["", "samples", "stop", "perf script", "both", "its CPU", "bytes"], rows,
          [f"The {len(CPUS)} CPUs went on with that work meanwhile." +
           ("" if drop_caches() else " drop_caches is not permitted here.")] + verdict)


# ---- bystanders ---------------------------------------------------------------------------------

def ping_pong():
    seconds, rounds = pick((0.5, 3), (0.3, 1))
    makers = {
        "nothing": lambda _, other: Nothing(),
        "bare timer 999 Hz": lambda _, other: BareTimer(999),
        "sysprof -a, 99 Hz": lambda _, other: Sysprof("-a", "-F", 99),
        "sysprof -p another process, 999 Hz": lambda _, other: Sysprof("-p", other, "-F", 999),
        "sysprof -p itself, 999 Hz": lambda pid, _: Sysprof("-p", pid, "-F", 999),
    }
    if PERF:
        makers["perf -p another process, 999 Hz"] = lambda _, other: Perf("-F", 999, "-p", other)
        makers["perf -p itself, 999 Hz"] = lambda pid, _: Perf("-F", 999, "-p", pid)
    places = {"one CPU": (CPU, CPU)}
    if len(CPUS) > 1:
        places["two CPUs"] = (CPUS[-2], CPU)
    rows = {name: [name] for name in makers}
    for place in places.values():
        ns = Runs()
        with Program("sleep", 600) as other, Counted("pingpong", *place) as work:
            for _, name in rounds_of(rounds, list(makers)):
                with makers[name](work.pid, other.pid) as profiler:
                    ns[name].append(work.ns_each(seconds)[0])
                    profiler.stop()
        for name, row in rows.items():
            row += [spread(ns[name]), f"{median(ns.percent_above(name, 'nothing')):+.1f} %"]
    table(f"A pipe ping-pong of two processes, ns a round trip ({rounds} rounds of {seconds} s)",
          "counted pingpong CPU CPU; sysprof record, perf record -B -g -e cpu-clock, bare_timer HZ",
          ["beside"] + [h for p in places for h in (p, "")], list(rows.values()))


def interrupts():
    """Local timer interrupts of all CPUs."""
    match = re.search(r"^\s*(?:LOC|arch_timer):((?:\s+\d+)+)", read("/proc/interrupts"), re.M)
    return sum(map(int, match[1].split())) if match else 0


def idle_share():
    fields = list(map(int, read("/proc/stat").split("\n", 1)[0].split()[1:]))
    return fields[3] + fields[4], sum(fields)


def idle_cpus():
    seconds, rounds = pick((1, 3), (0.6, 1))
    makers = {
        "nothing": Nothing,
        "bare timer, 99 Hz": lambda: BareTimer(99),
        "sysprof -a, 99 Hz": lambda: Sysprof("-a", "-F", 99),
        "bare timer, 999 Hz": lambda: BareTimer(999),
        "sysprof -a, 999 Hz": lambda: Sysprof("-a", "-F", 999),
        "sysprof -p a sleeping process, 999 Hz": None,
    }
    if PERF:
        makers["perf -a, 999 Hz"] = lambda: Perf("-a", "-F", 999)
    timers, idle, p50, p99 = Runs(), Runs(), Runs(), Runs()
    with Program("sleep", 600) as sleeper:
        makers["sysprof -p a sleeping process, 999 Hz"] = \
            lambda: Sysprof("-p", sleeper.pid, "-F", 999)
        for _, name in rounds_of(rounds, list(makers)):
            with makers[name]() as profiler:
                time.sleep(0.1)
                count, spare, at = interrupts(), idle_share(), time.monotonic()
                time.sleep(seconds)
                now = idle_share()
                timers[name].append((interrupts() - count) / (time.monotonic() - at) / len(CPUS))
                idle[name].append(100 * (now[0] - spare[0]) / (now[1] - spare[1]))
                reported = dict(line.split() for line in subprocess.run(
                    [bench("wakeups"), str(seconds)], capture_output=True, text=True,
                    check=True).stdout.splitlines())
                p50[name].append(int(reported["p50_ns"]) / 1000)
                p99[name].append(int(reported["p99_ns"]) / 1000)
                profiler.stop()
    table(f"Idle CPUs: what the timer does there ({rounds} rounds of 2 × {seconds} s)",
          ["sysprof record, perf record -B -g -e cpu-clock, bare_timer HZ",
           "/proc/interrupts and /proc/stat before and after an idle stretch",
           f"wakeups {seconds} (a thread on each CPU sleeps for 1 ms again and again)"],
          ["beside", "timer interrupts a CPU second", "% idle", "wake-up late, p50 us", "p99 us"],
          [[n, spread(timers[n]), spread(idle[n], 1), spread(p50[n], 1), spread(p99[n], 1)]
           for n in makers])


# ---- the books ----------------------------------------------------------------------------------

def all_books():
    if not books:
        return
    worst = max(books, key=lambda b: abs(b[3]))
    bad = [b for b in books if abs(b[3]) > 2]
    lost = sum(sum(int(n) for n, name in re.findall(r"(\d+) ([a-z-]+)", b[2])
                   if name in ("ring-full", "re-entry", "internal")) for b in books)
    not_run = sum(int(re.search(r"(\d+) not-run", b[2])[1]) for b in books)
    due = sum(int(b[2].split()[0]) for b in books)
    table("The books of all these runs", "(every sysprof record above)",
          ["", "figure"],
          [["CPUs × runs", f"{len(books):,}"], ["ticks due", f"{due:,}"],
           ["ticks lost by us (ring full, re-entry, internal)", f"{lost:,}"],
           ["ticks for which the kernel did not run the program", f"{not_run:,}"],
           ["worst unexplained on a CPU", f"{worst[3]:+d} ({worst[0]}, {worst[1]})"]],
          [f"unexplained: {b[0]}, {b[1]}: {b[2]}" for b in bad] +
          [budget("unexplained ticks on a CPU (2 may lie on the edges)", abs(worst[3]), 2,
                  "ticks", 0)])


SECTIONS = {
    "program": program_cost,
    "filters": filtering.filtering,
    "unwinding": unwinding.unwinding,
    "system": whole_system,
    "slowdown": slowdown,
    "collector": collector,
    "memory": memory,
    "stop": stop_to_file,
    "pingpong": ping_pong,
    "idle": idle_cpus,
    "command": commands.commands,
    "jit": jit.follow_maps,
    "symbolize": symbols.symbolizing,
    "readers": reading.reading,
    "files": files.files,
    "runtimes": runtimes.runtimes,
    "programs": programs.programs,
    "export": exporting.exporting,
    "html": pages.pages,
    "diff": diffing.diffing,
    "windows": windows.windows,
    "agent": agent.agents,
    "wall": waiting.waiting,
}


def main():
    wanted = sys.argv[1:] or list(SECTIONS)
    for name in wanted:
        if name not in SECTIONS:
            sys.exit(f"no section {name}: {', '.join(SECTIONS)}")
    begin, failed = time.monotonic(), []
    load = os.getloadavg()[0]
    print(f"sysprof bench: Linux {platform.release()}, {len(CPUS)} CPUs, load {load:.2f}, "
          f"{BUILD}/sysprof" + (", quick" if pick(0, 1) else ""))
    print("Figures are medians with (least–greatest); what is compared took turns.")
    if load > 0.5:
        print("WARNING: this machine is busy with something else; expect wide error bars.")
    if not PERF:
        print("perf is not here (Debian: linux-perf): its rows are left out.")
    for name in wanted:
        try:
            SECTIONS[name]()
        except (Broken, OSError, subprocess.SubprocessError, KeyError, ValueError):
            failed.append(name)
            print(f"\n== {name}: COULD NOT BE MEASURED")
            traceback.print_exc(file=sys.stdout)
    all_books()
    for crash in sorted(set(crashes)):
        print(f"\nperf itself failed at the end of {crashes.count(crash)} runs, {crash}")
    print("\n== Budgets")
    for line in verdicts:
        print(f"   {line}")
    print(f"\ntook {time.monotonic() - begin:.0f} s" +
          (f"; could not be measured: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed else 0)


if shutil.which(bench("counted")) is None:
    sys.exit("the helpers are not built: make bench")
main()
