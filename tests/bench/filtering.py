# SPDX-License-Identifier: BSD-2-Clause
"""What a tick costs whose process is no target, by what says so; and what a filter of a large profile costs."""
import json
import re
import resource
import subprocess

from libbench import (CPUS, SYSPROF, BpfMaps, BpfStats, Broken, Program, Runs, Sysprof, bench, budget, fixture, pick, rounds_of, scratch,
                      spread, table)
from runtimes import CPU, HZ, First, Ticks, median

NAMES = {"--comm": "no*such", "--user": "4294967294", "--exe": "/no/such", "--unit": "nosuch", "--container": "nosuch",
         "--service": "^no such$"}
TARGETS = {**{kind: (kind, name) for kind, name in NAMES.items()},
           "all of these": tuple(word for pair in NAMES.items() for word in pair)}
EMPTY = "a program that does nothing"
OTHER = "-p of another process"
WHOLE = "no filter"
SIZE = 1_000_000, 40, 100_000  # samples, threads, stacks
KINDS = "focus", "ignore", "hide", "show-from", "collapse"


def empty_ns():
    done = subprocess.run([bench("helper_cost"), str(CPU), "0.05", "9", str(HZ), "empty"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"helper_cost: {done.stderr}")
    return median([float(ns) for ns in done.stdout.split()[1:]])


def filtered_ns(target, stats, maps):
    with Sysprof(*target, "-F", HZ, "-C", CPU, cpus=CPUS[:-1] or CPUS) as s:
        ns = Ticks(stats, maps, s).filtered_ns(pick(16, 8))
        s.stop()
        return ns


def filtered_ticks():
    rounds, ns = pick(5, 2), Runs()
    with First(fixture("loop"), 60 * rounds), Program("sleep", 600) as other, BpfStats() as stats, BpfMaps() as maps:
        targets = {OTHER: ("-p", other.pid), **TARGETS}
        for _, name in rounds_of(rounds, [EMPTY, *targets]):
            ns[name].append(empty_ns() if name == EMPTY else filtered_ns(targets[name], stats, maps))
    worst = max(TARGETS, key=lambda name: median(ns.minus(name, EMPTY)))
    table(f"A tick of a process that is no target, ns ({rounds} rounds)",
          [f"sysprof record -C {CPU} -F {HZ} KIND=NAME, beside a loop on that CPU",
           "run_time_ns / run_cnt of its tick program, where all ticks of 50 ms were filtered: medians",
           f"helper_cost {CPU} 0.05 9 {HZ} empty"],
          ["target", "ns a run", "less the empty program"],
          [[name, spread(ns[name]), spread(ns.minus(name, EMPTY)) if name != EMPTY else ""] for name in [EMPTY, *targets]],
          [budget(f"a filtered tick, {worst}, without the kernel's own counting", median(ns.minus(worst, EMPTY)), 300, "ns", 0)])


def report(*words):
    """CPU time of a report of the large profile, and the report."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([SYSPROF, "report", "--json", *words, scratch("large.json")], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, json.loads(done.stdout)


def filters_of_commands():
    subprocess.run([bench("big_profile"), *map(str, SIZE), "firefox", scratch("large.json")], check=True, capture_output=True)
    rows = report()[1]["rows"]
    half = max(row["total"] for row in rows) / 2
    function = max((row for row in rows if row["total"] < half), key=lambda row: row["total"])["function"]
    clauses = {WHOLE: (), "--thread": ("--thread=*1*",), **{f"--{kind}": (f"--{kind}=^{re.escape(function)}$",) for kind in KINDS}}
    runs, rounds = Runs(), pick(5, 2)
    for _, name in rounds_of(rounds, list(clauses)):
        runs[name].append(report(*clauses[name])[0])
    worst = max(clauses, key=lambda name: median(runs.minus(name, WHOLE)))
    table(f"A filter of {SIZE[0]:,} samples on the command line, s of CPU time ({rounds} rounds)",
          [f"big_profile {' '.join(map(str, SIZE))} firefox large.json", f"sysprof report --json --focus=^{function}$ large.json"],
          ["", "s", "more than without it"],
          [[name, spread(runs[name], 2), spread(runs.minus(name, WHOLE), 2) if clauses[name] else ""] for name in clauses],
          [budget(f"a filter of 1 M samples, {worst}", median(runs.minus(worst, WHOLE)), 0.5, "s of CPU time")])


def filtering():
    filtered_ticks()
    filters_of_commands()
