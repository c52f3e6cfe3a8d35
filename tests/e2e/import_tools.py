#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""
Files of Bun, Deno and tools that write folded stacks, as their current versions write them. Samples and times are what
the file says. Node and Go: import.py; perf: perf_script.py; others, which other importers judge: judges.py. A tool that
cannot be had fails the test.
"""
import collections
import itertools
import os
import re

from libe2e import TOP, Skip, load_json, long, main, needed, read, run, scratch, sysprof, write
from libprofiles import excimer_folded, firefox_profile, gperftools_profile, packages, report, self_of, stackprof_dump
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


def time_by_function(data, samples):
    """{function: (its own time, that of samples that have it anywhere in their stack)}, ns, of samples: (node, us)."""
    names = {node["id"]: node["callFrame"]["functionName"] for node in data["nodes"]}
    parents = {child: node["id"] for node in data["nodes"] for child in node.get("children", ())}
    found = {}
    for node, us in samples:
        stack = [node]
        while stack[-1] in parents:
            stack.append(parents[stack[-1]])
        for name in {names[id] for id in stack}:
            own, all_of_them = found.get(name, (0, 0))
            found[name] = own + (name == names[node]) * us * 1000, all_of_them + us * 1000
    return found


def assert_cpuprofile(path):
    """All samples but those of (idle), each until the next one, which is what shares are of. Most are fibonacci's; its callers are those of the file."""
    data = load_json(path)
    names = {node["id"]: node["callFrame"]["functionName"] for node in data["nodes"]}
    times, now = [], data["startTime"]
    for delta in data["timeDeltas"]:
        now += delta
        times.append(now)
    order = sorted(range(len(times)), key=times.__getitem__)
    ends = [*(times[i] for i in order[1:]), data["endTime"]]
    busy = [(data["samples"][i], max(end - times[i], 0)) for i, end in zip(order, ends) if names[data["samples"][i]] != "(idle)"]
    spent = sum(us for _, us in busy)
    result = report(path)
    assert result["summary"]["samples"] == len(busy), (result["summary"], len(busy))
    assert abs(result["summary"]["cpu_ns"] - 1000 * spent) <= 1000, (result["summary"], spent)
    assert "not_read" not in result["summary"]["meta"], result["summary"]
    wanted = time_by_function(data, busy)
    for name in "fibonacci", "work":
        row, = (row for row in result["rows"] if row["function"] == name)
        for got, ns in zip((row["self"], row["total"]), wanted[name]):
            assert abs(got - ns) <= 1000, (row, wanted)  # an end may have a fraction
    # the engine misses a caller now and then
    assert wanted["fibonacci"][0] > spent * 1000 / 2 and wanted["work"][1] > 0.9 * wanted["fibonacci"][0], wanted


@needed
def test_bun():
    script = write(scratch("bun.js"), SCRIPT + "work(500)")
    run(fetched("bun", "bin/bun"), "--cpu-prof", "--cpu-prof-dir", scratch("."), "--cpu-prof-name", "bun.cpuprofile", script,
        check=0)
    assert_cpuprofile(scratch("bun.cpuprofile"))


@needed
def test_deno():
    script = write(scratch("deno.js"), SCRIPT + "work(500)")
    run(fetched("deno", "deno"), "run", "--no-config", "--cpu-prof", f"--cpu-prof-dir={scratch('.')}",
        "--cpu-prof-name=deno.cpuprofile", script, check=0, env=dict(os.environ, DENO_DIR=scratch("deno-dir")))
    assert_cpuprofile(scratch("deno.cpuprofile"))


def folded_self(text):
    """Samples of each function as innermost."""
    found = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        found[stack.split(";")[-1]] += int(count)
    return found


def assert_folded(text, path=None):
    """Counts are samples; names are as in the file but for what the format marks: lines, kernel code."""
    path = path or write(scratch("tool.folded"), text)
    expected = folded_self(text)
    result = report(path)
    assert result["summary"]["samples"] == sum(expected.values()), (result["summary"], expected)
    assert "not_read" not in result["summary"]["meta"], result["summary"]
    found = self_of(path)
    assert found == expected, (expected - found, found - expected)


@long
@needed
def test_folded_stacks():
    """Of Excimer, and of stackprof, whose own format is refused with the command that makes them."""
    assert_folded(read(excimer_folded()))
    refusal = sysprof("report", stackprof_dump(), check=1).err
    command = re.search("`(.*?)`", refusal)[1].split()
    assert_folded(run(*command, stackprof_dump(), check=0).out)


def gecko_threads(process):
    yield from ((process["meta"], thread) for thread in process["threads"])
    for child in process["processes"]:
        yield from gecko_threads(child)


def ran(rows):
    """
    Stacks of the samples that used CPU time since the one before, and all of it, ns. Of rows (ms, ns of CPU time or None, stack):
    those without a stack and the first have none of their own.
    """
    found, cpu, used, before = [], 0, 0, 0
    for number, (time, delta, stack) in enumerate(rows):
        if number:
            used += (time - before) * 1e6 if delta is None else delta  # unknown: it ran
        before = time
        if stack is not None:
            found += [stack] * (used > 0 or not number)
            cpu, used = cpu + used, 0
    return found, cpu + used


def gecko_samples(meta, thread):
    """How many of a thread ran, and their CPU time. Idle ones are as those without a stack."""
    table, frames, stacks = thread["samples"], thread["frameTable"], thread["stackTable"]
    columns, idle = table["schema"], [category["name"] for category in meta["categories"]].index("Idle")

    def is_idle(stack):
        frame = frames["data"][stacks["data"][stack][stacks["schema"]["frame"]]]
        return dict(zip(frames["schema"], frame)).get("category") == idle

    rows = (dict(zip(columns, row + [None] * len(columns))) for row in table["data"])
    found, cpu = ran((row["time"], row["threadCPUDelta"], None if row["stack"] is None or is_idle(row["stack"]) else row["stack"])
                     for row in rows)
    return len(found), cpu


@long
def test_firefox():
    """Gecko's own format, of Firefox with all its processes."""
    path = firefox_profile()
    threads = list(gecko_threads(load_json(path)))
    assert {meta["sampleUnits"]["threadCPUDelta"] for meta, _ in threads} == {"ns"}, "the unit of CPU time is another one"
    samples, cpu = map(sum, zip(*(gecko_samples(*thread) for thread in threads)))
    summary = report(path)["summary"]
    assert samples == summary["samples"] > 100 and abs(cpu - summary["cpu_ns"]) <= len(threads), (samples, cpu, summary)
    assert len(report(path, "--by", "process")["rows"]) > 2


@long
def test_gperftools_is_refused_with_the_command_that_helps():
    """judges.py has what that makes."""
    assert "`pprof -proto PROGRAM FILE`" in sysprof("report", gperftools_profile(), check=1).err


@long
def test_async_profiler():
    """Stacks with and without threads."""
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


def test_samply():
    """A file of samply on macOS (KentBeck/BPlusTreeMap4, MIT): each library has its samples. built_tools.py: a new one."""
    path = os.path.join(TOP, "tests/e2e/producers/samply.json.gz")
    profile = load_json(path)
    thread, = profile["threads"]
    samples, resources = thread["samples"], thread["resourceTable"]["lib"]
    stacks, cpu = ran(zip(itertools.accumulate(samples["timeDeltas"]), (1000 * delta for delta in samples["threadCPUDelta"]), samples["stack"]))
    functions = (thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]] for stack in stacks)
    libraries = collections.Counter(profile["libs"][resources[thread["funcTable"]["resource"][f]]]["name"] for f in functions)
    result = report(path)
    summary = result["summary"]
    assert summary["samples"] == len(stacks) > 100 and abs(summary["cpu_ns"] - cpu) <= 1, (summary, cpu)
    assert "not_read" not in summary["meta"], summary
    assert {row["dso"]: row["self"] for row in result["rows"] if row["self"]} == libraries, libraries


if __name__ == "__main__":
    main(globals())
