# SPDX-License-Identifier: BSD-2-Clause
"""What record --wall costs: its visits, those that it visits, and everything else on the host."""
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import time

from libbench import (CPUS, BpfStats, Broken, Counted, Program, Runs, Sysprof, at_least, budget, fixture, pick, read, scratch, spread,
                      table)

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import libe2e as e  # noqa: E402, by its path

CPU = CPUS[-1]
EVENT_VISIT, VISIT_ACCOUNT = 6, 1 << 5
DEEP = 30


def slow_returns():
    """Does this CPU return through a thunk? Walks and kernel stacks are half as fast there."""
    try:
        text = read("/sys/devices/system/cpu/vulnerabilities/retbleed") + read("/sys/devices/system/cpu/vulnerabilities/spec_rstack_overflow")
    except OSError:
        return False
    return "untrained" in text or "afe RET" in text


def idlers(count, *more):
    work = Program(fixture("idlers"), count, 600, *more, stdout=subprocess.PIPE)
    started = work.p.stdout.readline().split()
    if len(started) != 2:
        raise work.broken()
    return work, int(started[1])


def helper_of(pid, name):
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in read(f"/proc/{pid}/task/{task}/children").split():
            if read(f"/proc/{child}/comm").strip() == name:
                return int(child)
    raise Broken(f"{pid} has no {name}")


def cpu_of(pid):
    return sum(int(read(f"/proc/{pid}/task/{task}/schedstat").split()[0]) for task in os.listdir(f"/proc/{pid}/task"))


class Visiting(Sysprof):
    """A recording with visits. The first ones, which walk all threads, are over after some seconds."""

    def __init__(self, *args, settle=0.5):
        self.recording = scratch(f"visits-{Sysprof.serial}.sysprof")
        super().__init__("-o", self.recording, *args)
        self.files.append(self.recording)
        self.visitor = helper_of(self.pid, "sysprof-visitor")
        time.sleep(settle)

    def visits(self):
        return [struct.unpack_from("<6QIIiI", body) + (when,) for kind, _, when, body in e.recording_events(self.recording)
                if kind == EVENT_VISIT]

    def account(self):
        done = subprocess.run([self.program, "report", "--wall", "--json", self.recording], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Broken(f"report --wall: {done.stderr}")
        return e.json.loads(done.stdout)["visits"]


def share_of(pids, *args, settle, seconds):
    """(% of a CPU of the visitor, of the collector, visits a second) of these processes."""
    with Visiting(*args, "-p", ",".join(map(str, pids)), settle=settle) as s:
        begin, at = (cpu_of(s.visitor), s.cpu_ns()), time.monotonic_ns()
        time.sleep(seconds)
        now, took = (cpu_of(s.visitor), s.cpu_ns()), time.monotonic_ns() - at
        s.stop()
        account = s.account()
    return (*(100 * (b - a) / took for a, b in zip(begin, now)), account["hz"] * account["made"] / max(account["due"], 1))


def crowds():
    """2,000 threads without and with 70 that run twenty times a second, and 10,000."""
    seconds, rounds = pick((6, 3), (3, 1))
    rows, goal = [], 1 if slow_returns() else 0.5
    verdicts = []
    at_20_hz = ("--wall=20", "--wall-cpu", "10%")
    for wanted, busy, options, settle, what in ((2000, 0, at_20_hz, 3, "20 Hz"), (1930, 70, at_20_hz, 3, "20 Hz"),
                                                (10000, 0, ("--wall",), pick(20, 10), "200 Hz, as far as the budget goes")):
        work, started = idlers(wanted)
        with work:
            some, count = idlers(busy, 10, 50) if busy else (None, 0)
            pids = [work.pid] + ([some.pid] if some else [])
            figures = [share_of(pids, *options, settle=settle, seconds=seconds) for _ in range(rounds)]
            if some:
                some.close()
        visitor, collector, rate = (list(column) for column in zip(*figures))
        rows.append([f"{started + count:,}" + (f", {count} of them run" if count else ""), what, spread(visitor, 2), spread(collector, 2), spread(rate, 1)])
        if options == at_20_hz:
            verdicts.append(budget(f"{rows[-1][0]} at 20 Hz, visitor and collector",
                                   statistics.median(a + b for a, b in zip(visitor, collector)), goal, "% of a CPU"))
        else:
            verdicts.append(budget(f"{started:,} threads, visitor within its budget", statistics.median(visitor), 0.5, "% of a CPU"))
    table(f"Visits of many threads, % of one CPU ({rounds} rounds of {seconds} s)",
          ["idlers N; sysprof record --wall=20 -p PID, --wall -p PID; CPU time of its processes by schedstat"],
          ["threads", "wanted", "visitor", "collector", "visits a second"], rows, verdicts)


def bystanders():
    """A context switch of anybody, in turns of a moment each: with visits, and with the process that makes them stopped."""
    seconds, pairs = 0.15, pick(80, 30)
    ns, above = Runs(), []
    with Counted("pingpong", CPU, CPU) as work, Visiting("-a", "-F", 49, "--wall=20") as s:
        for i in range(pairs):
            pair = {}
            for turn in (signal.SIGCONT, signal.SIGSTOP) if i % 2 else (signal.SIGSTOP, signal.SIGCONT):
                os.kill(s.visitor, turn)
                pair[turn] = work.ns_each(seconds)[1] / 2
            above.append(100 * (pair[signal.SIGCONT] / pair[signal.SIGSTOP] - 1))
            for turn, figure in pair.items():
                ns[turn].append(figure)
        os.kill(s.visitor, signal.SIGCONT)
        s.stop()
    middle, error = statistics.median(above), 1.25 * statistics.stdev(above) / pairs ** 0.5
    table(f"A context switch of a process beside it: ping-pong over pipes, {pairs} pairs of {seconds} s",
          [f"counted pingpong {CPU} {CPU}; sysprof record -a -F 49 --wall=20, its visitor stopped and continued",
           "Time that the ping-pong waited for its CPU is not in the figures."],
          ["", "ns a switch"], [["without visits", spread(ns[signal.SIGSTOP])], ["with visits", spread(ns[signal.SIGCONT])],
                                ["% more, median of the pairs", f"{middle:+.2f} ± {error:.2f}"]],
          [f"{1e3 / statistics.median(ns[signal.SIGSTOP]):.2f} million switches a second",
           budget("context switches with visits, beyond twice the error of the median", middle - 2 * error, 0, "%")])


def state_of(pid):
    """CPU time and switches of all its threads."""
    tasks = f"/proc/{pid}/task"
    switches = sum(sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", read(f"{tasks}/{task}/status")))) for task in os.listdir(tasks))
    return cpu_of(pid), switches


def the_visited():
    """An idle thread is neither woken nor charged."""
    seconds = pick(5, 2)
    work, started = idlers(500)
    with work:
        time.sleep(0.3)
        before = state_of(work.pid)
        with Visiting("--wall=200", "--wall-cpu", "20%", "-p", work.pid) as s:
            time.sleep(seconds)
            s.stop()
            made = s.account()["made"]
        after = state_of(work.pid)
    cpu, switches = after[0] - before[0], after[1] - before[1]
    table(f"{started} idle threads that were visited {made} times", [f"idlers 500; sysprof record --wall=200 --wall-cpu 20% -d {seconds} -p PID"],
          ["", "more"], [["their CPU time, ns", cpu], ["their context switches", switches]],
          [budget("CPU time of idle threads that are visited", cpu, 0, "ns", 0), budget("their wake-ups", switches, 0, "switches", 0)])


def times_of(walked):
    """
    From the begin of each walk to its end, at most. A thread that was woken with the visitor has the moment that was drawn, which may lie
    before walks of others: its own began behind them.
    """
    before, times = 0, []
    for visit in walked:
        times.append(visit[10] - max(visit[0], before))
        before = visit[10]
    return times


def walks():
    """Threads that have run since the last visit: account, kernel stack, 30 frames and those of the C library."""
    seconds, rounds = pick((3, 3), (1.5, 2))
    ns, program, held = [], [], []
    work, _ = idlers(100, DEEP, 10)
    with work:
        for _ in range(rounds):
            with Visiting("--wall=100", "--wall-cpu", "50%", "-p", work.pid) as s:
                time.sleep(seconds)
                s.stop()
                account = s.account()
                walked = [visit for visit in s.visits() if not visit[9] & VISIT_ACCOUNT]
            ns.append(account["cpu_ns"] / account["walked"])
            held += times_of(walked)
        with BpfStats() as stats, Visiting("--wall=100", "--wall-cpu", "50%", "-p", work.pid, "FOLDED", "--parked") as s:
            before = stats.of(s.programs())
            time.sleep(seconds)
            after = stats.of(s.programs())
            s.stop()
            runs = after["visit"][0] - before.get("visit", (0, 0))[0]
            program.append((after["visit"][1] - before.get("visit", (0, 0))[1]) / max(runs, 1))
            depth = s.mean_depth() - 1  # the state is the last one
    held.sort()
    goal = 9 if slow_returns() else 5
    late = held[len(held) * 999 // 1000] / 1000
    table(f"A thread that has run: account, and {depth:.0f} frames, {DEEP} of them recursion ({rounds} rounds of {seconds} s, {len(held):,} walks)",
          [f"idlers 100 600 {DEEP} 10; sysprof record --wall=100 --wall-cpu 50% -p PID",
           "CPU time of the visitor ÷ threads walked, so scans are in it; run_time_ns ÷ run_cnt of `visit`; times in its events"],
          ["", "µs"],
          [["CPU time of the visitor a thread", spread([n / 1000 for n in ns], 2)], ["of it the program `visit`", spread([n / 1000 for n in program], 2)],
           ["a walk from its begin to its end, median", f"{held[len(held) // 2] / 1000:.1f}"], ["… 99.9th percentile", f"{late:.1f}"]],
          [budget("a thread that has run", statistics.median(ns) / 1000, goal, "µs"),
           budget("99.9 % of walks, in which memory of the thread is locked for a part", late, 50, "µs", 0)])


def known_waits():
    """Where the time of a program with known waits was, as far as it knows: states of all threads, and the locks."""
    seconds, rounds = pick((6, 3), (4, 1))
    off, right = [], []
    for _ in range(rounds):
        path = scratch("known.sysprof")
        done = subprocess.run([Sysprof.program, "record", "--wall", "--wall-cpu", "5%", "-o", path, "--", fixture("waits"), str(seconds)],
                              capture_output=True, text=True, check=False)
        truth = {row["tid"]: row for row in map(e.json.loads, (line for line in done.stdout.splitlines() if line.startswith("{")))}
        rows = e.json.loads(subprocess.run([Sysprof.program, "report", "--wall", "--parked", "--by", "thread", "--json", path],
                                           capture_output=True, text=True, check=True).stdout)["rows"]
        for row in rows:
            known = truth.get(row["tid"])
            if not known:
                continue
            for state in ("sleep", "poll", "lock", "pipe", "network", "child"):
                off.append(100 * abs(row["states"].get(state, 0) - known[state]) / known["lived"])
            right.append(100 * abs(row["running_ns"] - known["running"]) / known["lived"])
    table(f"A program with known waits: what is off, % of a thread's life ({rounds} runs of {seconds} s)", ["sysprof record --wall -- waits SECONDS"],
          ["", "median", "worst"], [["a state of a thread", f"{statistics.median(off):.2f}", f"{max(off):.1f}"],
                                    ["its running time", f"{statistics.median(right):.3f}", f"{max(right):.2f}"]],
          [at_least("threads compared", len(right), 8 * rounds, "threads", 0)])


PARTS = {"crowds": crowds, "bystanders": bystanders, "visited": the_visited, "walks": walks, "known": known_waits}


def waiting():
    for name in os.environ.get("WALL_PARTS", " ".join(PARTS)).split():
        PARTS[name]()
