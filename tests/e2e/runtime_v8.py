#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Names read from V8's memory, against those of V8 itself in the same process.

Threads of node are stopped at random moments (v8_oracle.c), their frames walked by frame pointer and named from the words
that a walk would note. The first oracle is the perf map that node writes itself, which the reader is not shown: name, URL,
line and column of every frame but the innermost, whose words are at times its caller's. The second is the stack of an Error,
in processes without any flag: functions, inlined ones as well, and the lines that they run.
"""
import collections
import json
import os
import random
import subprocess
import time

from libe2e import BUILD, Background, long, main, need_root, read
from librecorded import nodes
from libv8 import ENTRY, FLAGS, PROGRAM, PROGRAMS, PerfMap

STEPPED = [("closures", []), ("classes", []), ("recursion", []), ("asynchronous", []), ("calls", []), ("calls", ["--no-opt"])]
STEP_ROUNDS = int(os.environ.get("V8_ROUNDS", "3"))
REQUESTED = ["recursion", "classes", "exceptions", "inlining", "churn", "asynchronous"]
STOPS = int(os.environ.get("V8_STOPS", "20"))  # of each program
ASKS = int(os.environ.get("V8_ASKS", "15"))


class Oracle:
    """v8_oracle of a process."""

    def __init__(self, pid, binary):
        self.p = subprocess.Popen([os.path.join(BUILD, "tests/e2e/v8_oracle"), str(pid), binary], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.layout = json.loads(self.p.stdout.readline())
        self.totals = None

    def stop(self, tid):
        self.p.stdin.write(f"stop {tid}\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends before its tracee is waited for, because a tracer gets the exit first."""
        if self.p.poll() is None:
            self.p.kill()
            self.p.communicate()

    def finish(self):
        out, _ = self.p.communicate(timeout=300)
        assert self.p.returncode == 0, f"v8_oracle ended with {self.p.returncode}"
        self.totals = json.loads(out)
        return self.totals


def busy_threads(pid):
    """Those that have used most of the CPU."""
    used = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            fields = read(f"/proc/{pid}/task/{tid}/stat").rsplit(")", 1)[1].split()
            used.append((int(fields[11]) + int(fields[12]), int(tid)))
        except OSError:
            pass
    return [tid for _, tid in sorted(used, reverse=True)[:3]]


def shown(frame, with_column):
    name = f"{frame['name']} {frame['file']}:{frame['line']}"
    return f"{name}:{frame['column']}" if with_column else name


def compare_map(counts, frame, perf_map, with_column):
    reported = perf_map.name(frame["pc"] - (0 if frame["leaf"] else 1))
    match = ENTRY.match(reported) if reported else None
    kind = "leaf" if frame["leaf"] else "frame"
    if not match:
        counts[f"{kind} not in the map" if not reported else f"{kind} of {reported.split(':')[0]}"] += 1
        return
    ours = shown(frame, with_column) if "name" in frame else "(not read)"
    theirs = match[2]
    by_comment = shown({**frame, "file": ""}, with_column) if "name" in frame else ours
    if theirs.strip() in (ours.strip(), by_comment.strip()):  # sourceURL, which not all of its entries have
        counts[f"{kind} equal"] += 1
        counts[f"tier {match[1]}"] += 1
        return
    flagged = "name" not in frame or frame["lost"] or frame.get("owner") == "other"
    counts[f"{kind} {'differs, flagged' if flagged else 'differs'}"] += 1
    if os.environ.get("V8_SHOW"):
        print(f"    {kind} ours {ours!r} theirs {theirs!r} {frame}")


def against_map(binary, name, stops, counts):
    with Background(binary, *FLAGS, PROGRAM, name) as program:
        for _ in range(3 if name == "workers" else 1):  # once most of it is compiled
            assert program.p.stdout.readline() == "ready\n", name
        tids = busy_threads(program.pid) if name == "workers" else [program.pid]
        reported = []
        with Oracle(program.pid, binary) as oracle:
            for _ in range(stops):
                time.sleep(random.uniform(0.001, 0.02))
                reported.append(oracle.stop(random.choice(tids)))
            totals = oracle.finish()
        perf_map = PerfMap(f"/tmp/perf-{program.pid}.map")
    os.unlink(perf_map.path)
    for stop in reported:
        perf_map.up_to(stop["map_size"])
        counts["stops in native code" if stop["native"] else "stops"] += 1
        for frame in stop["frames"]:
            compare_map(counts, frame, perf_map, oracle.layout["major"] > 10)
    return totals


def summary(counts):
    return ", ".join(f"{value} {key}" for key, value in sorted(counts.items()))


def add_up(sums, totals):
    for key, value in totals.items():
        if isinstance(value, int):
            sums[key] += value


def costs(sums):
    def each(ns, reads, count):
        n = max(1, sums[count])
        return f"{sums[reads] / n:.1f} reads, {sums[ns] / n / 1000:.1f} us" if reads else f"{sums[ns] / n / 1000:.1f} us"

    checks = sums["confirmed"] + sums["stale"]
    sums["checks"], sums["functions and not"] = checks, sums["functions"] + sums["failed"]
    sums["row sets"] = sums["rows"] + sums["without_rows"]
    return (f"a function: {each('ns', 'reads', 'functions and not')}; its rows: "
            f"{each('ns_of_rows', 'reads_of_rows', 'row sets')}; code: {each('ns_of_code', 'reads_of_code', 'codes')}; "
            f"a check: {each('ns_of_checks', None, 'checks')}; "
            f"{sums['functions']} functions, {sums['failed']} not read, {checks} checks: {sums['stale']} stale; "
            f"rows {sums['rows']}, none {sums['without_rows']}")


def version_of(binary):
    return subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def check_map(binary, programs, stops):
    counts, sums = collections.Counter(), collections.Counter()
    for name in programs:
        totals = against_map(binary, name, stops, counts)
        assert totals["trust"] != 2, f"{name}: refused: {totals}"
        add_up(sums, totals)
    print(f"  {version_of(binary)} map: {summary(counts)}\n    {costs(sums)}")
    compared = counts["frame equal"] + counts["frame differs"] + counts["frame differs, flagged"]
    assert compared >= stops * len(programs), f"too few frames were compared: {counts}"
    assert counts["frame equal"] >= 0.99 * compared, counts
    assert counts["frame differs"] == 0, counts
    return counts


# ---- against Error.stack

def logical(frames):
    """Inlined functions, and those that are somewhere in a file: as Error.stack has them, innermost first."""
    found = []
    for frame in frames:
        if frame.get("builtin") or "name" not in frame:
            continue
        tier = frame.get("kind", "compiled") if frame["anonymous"] else "other"
        if frame.get("chain") and frame["owner"] == "same":
            for i, inlined in enumerate(frame["chain"]):
                inlined["tier"] = tier + (" inlined" if i < len(frame["chain"]) - 1 else "")
                inlined["approximate"] = frame["approximate"]
                inlined["deoptimized"] = frame["deoptimized"]
                inlined["blind"] = frame["blind"]
                found.append(inlined)
        else:
            frame["tier"] = "interpreted" if tier == "other" else tier
            frame["sure"] = frame.get("owner", "same") == "same"
            found.append(frame)
    return found


def same_function(ours, theirs):
    if ours["file"] != theirs["file"]:
        return False
    return ours["line"] == theirs["defined"] if theirs["defined"] else ours["name"] == theirs["name"]


def compare_stack(counts, ours, theirs):
    """Both from the one that called probe(), to where native code was called from."""
    def behind(stack):
        last = max((i for i, entry in enumerate(stack) if entry.get("name") == "probe"), default=None)
        return None if last is None else stack[last + 1:]

    ours, theirs = behind(ours), behind([t for t in theirs if t["line"] and not t["async"]])
    if ours is None or theirs is None:
        counts["stops without probe"] += 1
        return
    counts["stops"] += 1
    for mine, its in zip(ours, theirs):
        tier, line = mine["tier"], mine.get("run_line", 0)
        flag = next((flag for flag in ("deoptimized", "blind", "approximate") if mine.get(flag)), "")
        if not same_function(mine, its):
            verdict = "other function"
        elif (line, mine.get("run_column", 0)) == (its["line"], its["column"]):
            verdict, flag = "exact", ""
        elif not line:
            verdict = "no line"
        else:
            verdict = "other column" if line == its["line"] else "other line"
        counts[f"{tier}: {verdict}{', ' + flag if flag else ''}"] += 1
        if verdict.startswith("other") and not flag and os.environ.get("V8_SHOW"):
            print(f"    ours {mine} theirs {its}")
        if verdict == "other function" or (flag in ("deoptimized", "blind") and tier != "maglev inlined"):
            break  # inlined functions may be missing: what follows can be one off


def against_stacks(binary, name, requests, counts):
    program = subprocess.Popen([binary, PROGRAM, name, "ask"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        with Oracle(program.pid, binary) as oracle:
            for _ in range(requests):
                theirs = json.loads(program.stdout.readline())
                for _ in range(20):  # until it spins
                    time.sleep(0.001)
                    stop = oracle.stop(program.pid)
                    if not stop["native"]:
                        break
                compare_stack(counts, logical(stop["frames"]), theirs)
                program.stdin.write("x")
                program.stdin.flush()
            return oracle.finish()
    finally:
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()


def check_stacks(binary, programs, requests):
    counts, sums = collections.Counter(), collections.Counter()
    for name in programs:
        totals = against_stacks(binary, name, requests, counts)
        add_up(sums, totals)
    print(f"  {version_of(binary)} stacks: {summary(counts)}\n    {costs(sums)}")
    reported = {verdict: sum(value for key, value in counts.items() if key.endswith(f": {verdict}"))
            for verdict in ("exact", "other function", "other line", "other column")}
    assert counts["stops"] >= 0.9 * requests * len(programs), counts
    baseline = sum(value for key, value in counts.items() if key.startswith("baseline: "))
    assert counts["baseline: exact"] >= 0.95 * baseline, counts
    assert counts["interpreted: exact"] and counts["turbofan: exact"] + counts["maglev: exact"], counts
    assert reported["other function"] == 0, counts  # but for what is flagged
    assert reported["other line"] + reported["other column"] <= 0.01 * reported["exact"], counts
    return counts


def all_nodes():
    return os.environ["V8_NODES"].split() if "V8_NODES" in os.environ else nodes()


def check_steps(binary, name, flags):
    """The caller that the walk finds, at each instruction of code that V8 makes."""
    program = subprocess.Popen([binary, *flags, PROGRAM, name], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n", name
        reported = subprocess.run([os.path.join(BUILD, "tests/e2e/v8_steps"), str(program.pid), "3000", str(STEP_ROUNDS)],
                              capture_output=True, text=True, check=True, timeout=100).stdout
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
    if os.environ.get("V8_SHOW"):
        print(reported)
    return {row[1]: int(row[2]) for row in (line.split() for line in reported.splitlines()) if row[0] == "total"}


@long
def test_steps():
    need_root()
    for binary in all_nodes():
        sums, jit = collections.Counter(), 0
        for _ in range(12):  # most steps may be of builtins, more so on a busy host, where less is compiled when a program is ready
            for name, flags in STEPPED:
                sums.update(check_steps(os.path.realpath(binary), name, flags))
            jit = sums["jit_right"] + sums["jit_skipped"] + sums["jit_wrong"] + sums["jit_cut"]
            if jit > 1000:
                break
        print(f"  {version_of(binary)} steps: {summary(sums)}")
        assert jit > 1000 and sums["jit_wrong"] == sums["jit_skipped"] == 0, sums
        assert sums["jit_cut"] <= 0.01 * jit, sums


def test_perf_map():
    need_root()
    for binary in all_nodes():
        check_map(os.path.realpath(binary), PROGRAMS, STOPS)


def test_error_stacks():
    need_root()
    for binary in all_nodes():
        check_stacks(os.path.realpath(binary), REQUESTED, ASKS)


main(globals())
