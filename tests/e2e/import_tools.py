#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""
Files of Bun, Deno and async-profiler (folded stacks), as their current versions write them. Samples and times are what
the file says. Node and Go: import.py; perf: perf_script.py; others, which other importers judge: judges.py.
"""
import os
import shutil

from libe2e import Skip, load_json, long, main, read, run, scratch, write
from libprofiles import packages, report
from librecorded import RUNTIMES

SCRIPT = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function work(ms) { const end = Date.now() + ms; let s = 0; while (Date.now() < end) s += fibonacci(20); return s; }
"""
JAVA = """
public class Work {
    static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    static void work(long ms) { long end = System.currentTimeMillis() + ms; while (System.currentTimeMillis() < end) fibonacci(20); }
    public static void main(String[] arguments) { work(1500); }
}
"""


def fetched(*path):
    found = os.path.join(RUNTIMES, *path)
    if not os.path.exists(found):
        raise Skip(f"{path[0]} was not fetched")
    return found


def assert_fibonacci(rows, share=0.5):
    """It has most of the samples, and work() called it."""
    selfs = {}
    for row in rows:
        selfs[row["function"]] = selfs.get(row["function"], 0) + row["self"]
    assert max(selfs, key=selfs.get) == "fibonacci" and selfs["fibonacci"] > share * sum(selfs.values()), selfs
    assert any(row["function"] == "work" and row["total"] >= selfs["fibonacci"] for row in rows), rows


def assert_cpuprofile(path):
    """All samples but those of (idle), each until the next one."""
    data = load_json(path)
    names = {node["id"]: node["callFrame"]["functionName"] for node in data["nodes"]}
    times, now = [], data["startTime"]
    for delta in data["timeDeltas"]:
        now += delta
        times.append(now)
    order = sorted(range(len(times)), key=times.__getitem__)
    ends = [*(times[i] for i in order[1:]), data["endTime"]]
    busy = [(max(end - times[i], 0)) for i, end in zip(order, ends) if names[data["samples"][i]] != "(idle)"]
    result = report(path)
    assert result["summary"]["samples"] == len(busy), (result["summary"], len(busy))
    assert abs(result["summary"]["cpu_ns"] - 1000 * sum(busy)) <= 1000, (result["summary"], sum(busy))
    assert "not_read" not in result["summary"]["meta"], result["summary"]
    assert_fibonacci(result["rows"])


def test_bun():
    script = write(scratch("bun.js"), SCRIPT + "work(500)")
    run(fetched("bun", "bin/bun"), "--cpu-prof", "--cpu-prof-dir", scratch("."), "--cpu-prof-name", "bun.cpuprofile", script,
        check=0)
    assert_cpuprofile(scratch("bun.cpuprofile"))


def test_deno():
    script = write(scratch("deno.js"), SCRIPT + "work(500)")
    run(fetched("deno", "deno"), "run", "--no-config", "--cpu-prof", f"--cpu-prof-dir={scratch('.')}",
        "--cpu-prof-name=deno.cpuprofile", script, check=0, env=dict(os.environ, DENO_DIR=scratch("deno-dir")))
    assert_cpuprofile(scratch("deno.cpuprofile"))


@long
def test_async_profiler():
    """Stacks with and without threads."""
    if not shutil.which("java"):
        raise Skip("needs java")
    agent, source = os.path.join(packages(), "java/libasyncProfiler.so"), write(scratch("Work.java"), JAVA)
    for threads in ("", "threads,"):
        out = scratch("async.folded")
        run("java", f"-agentpath:{agent}=start,event=ctimer,interval=2ms,collapsed,{threads}file={out}", source, check=0)
        lines = [line.rsplit(" ", 1) for line in read(out).splitlines()]
        result = report(out)
        assert result["summary"]["samples"] == sum(int(count) for _, count in lines), result["summary"]
        assert max(result["rows"], key=lambda row: row["self"])["function"] == "Work.fibonacci", result["rows"][:3]
        found = report(out, "--by", "thread")["rows"]
        assert (len(found) > 1) == bool(threads), found


if __name__ == "__main__":
    main(globals())
