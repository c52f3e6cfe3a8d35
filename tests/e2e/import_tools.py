#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
Files of other profilers, as their current versions write them: Bun, Deno, Chrome (a profile and a trace), py-spy,
pprof-nodejs, async-profiler. Each profiles fibonacci(); samples and times are what the file says. Node and Go: import.py; perf: perf_script.py.
"""
import json
import os
import shutil
import sys

from libbrowser import Browser
from libe2e import Skip, load_json, main, read, run, scratch, sysprof, write
from libgo import pprof
from librecorded import RUNTIMES

SCRIPT = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function work(ms) { const end = Date.now() + ms; let s = 0; while (Date.now() < end) s += fibonacci(20); return s; }
"""
PPROF = """
const pprof = require(process.argv[3]);
pprof.time.start({intervalMicros: 1000, durationMillis: 60000});
setTimeout(async () => {
  work(500);
  require('fs').writeFileSync(process.argv[2], await pprof.encode(pprof.time.stop()));
}, 10);
"""
PYTHON = """
import time

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fibonacci(12)

work(1.5)
"""
JAVA = """
public class Work {
    static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    static void work(long ms) { long end = System.currentTimeMillis() + ms; while (System.currentTimeMillis() < end) fibonacci(20); }
    public static void main(String[] arguments) { work(1500); }
}
"""
TRACE = ["disabled-by-default-v8.cpu_profiler", "v8", "devtools.timeline"]


def fetched(*path):
    found = os.path.join(RUNTIMES, *path)
    if not os.path.exists(found):
        raise Skip(f"{path[0]} was not fetched")
    return found


def report(path):
    return json.loads(sysprof("report", path, "--json", "--top", 100000, check=0).out)


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


def test_chrome_profile():
    """What DevTools gets of a page: Profiler.stop."""
    with Browser() as browser:
        page = browser.page("about:blank")
        page.evaluate(SCRIPT)
        page.call("Profiler.enable")
        page.call("Profiler.setSamplingInterval", interval=1000)
        page.call("Profiler.start")
        page.evaluate("work(500)")
        profile = page.call("Profiler.stop")["profile"]
    assert_cpuprofile(write(scratch("chrome.cpuprofile"), json.dumps(profile)))


def test_chrome_trace():
    """The Performance panel's: profiles in chunks, among the events of all threads."""
    with Browser() as browser:
        page = browser.page("about:blank")
        page.evaluate(SCRIPT)
        browser.call("Tracing.start", categories=",".join(TRACE))
        page.evaluate("work(500)")
        browser.call("Tracing.end")
        while not any(e["method"] == "Tracing.tracingComplete" for e in browser.events):
            browser.call("Browser.getVersion")
        events = [value for e in browser.events if e["method"] == "Tracing.dataCollected" for value in e["params"]["value"]]
    path = write(scratch("chrome.trace.json"), json.dumps({"traceEvents": events}))
    samples = sum(len(event["args"]["data"].get("cpuProfile", {}).get("samples", []))
                  for event in events if event["name"] == "ProfileChunk")
    result = report(path)
    assert 0 < result["summary"]["samples"] <= samples, (result["summary"], samples)
    assert_fibonacci(result["rows"])


def py_spy(form):
    out = scratch("py-spy." + form)
    run(fetched("py-spy", "bin/py-spy"), "record", "-f", form, "-r", "200", "-o", out, "--",
        os.path.realpath(sys.executable), "-S", write(scratch("work.py"), PYTHON), check=0)
    return out


def test_py_spy_folded():
    out = py_spy("raw")
    lines = [line.rsplit(" ", 1) for line in read(out).splitlines()]
    counted = [int(count) for stack, count in lines if stack]  # those of a thread without Python frames have no stack
    result = report(out)
    assert result["summary"]["samples"] == sum(counted), (result["summary"], sum(counted))
    assert max(result["rows"], key=lambda row: row["self"])["function"].startswith("fibonacci ("), result["rows"][:3]


def test_py_spy_speedscope():
    out = py_spy("speedscope")
    weights = [weight for profile in load_json(out)["profiles"]
               for stack, weight in zip(profile["samples"], profile["weights"]) if stack]
    result = report(out)
    assert abs(result["summary"]["events"] - 1e9 * sum(weights)) < 1000, (result["summary"], sum(weights))
    assert_fibonacci(result["rows"])


def test_pprof_nodejs():
    """The shares of go tool pprof."""
    if not shutil.which("node"):
        raise Skip("needs node")
    module, out = fetched("pprof-nodejs", "node_modules/@datadog/pprof"), scratch("node.pb.gz")
    run("node", write(scratch("pprof.js"), SCRIPT + PPROF), out, module, check=0)
    result = report(out)
    assert_fibonacci(result["rows"])
    top = pprof("-top", "-sample_index=sample", "-nodefraction=0", out)
    line = next(line for line in top.splitlines() if line.split()[-1:] == ["fibonacci"])
    shown = sum(row["self"] for row in result["rows"] if row["function"] == "fibonacci") / result["summary"]["samples"]
    assert abs(float(line.split()[1].rstrip("%")) - 100 * shown) < 0.1, (line, shown)


def test_async_profiler():
    """Stacks with and without threads."""
    if not shutil.which("java"):
        raise Skip("needs java")
    agent, source = fetched("async-profiler", "linux-x64/libasyncProfiler.so"), write(scratch("Work.java"), JAVA)
    for threads in ("", "threads,"):
        out = scratch("async.folded")
        run("java", f"-agentpath:{agent}=start,event=ctimer,interval=2ms,collapsed,{threads}file={out}", source, check=0)
        lines = [line.rsplit(" ", 1) for line in read(out).splitlines()]
        result = report(out)
        assert result["summary"]["samples"] == sum(int(count) for _, count in lines), result["summary"]
        assert max(result["rows"], key=lambda row: row["self"])["function"] == "Work.fibonacci", result["rows"][:3]
        found = json.loads(sysprof("report", out, "--by", "thread", "--json", check=0).out)["rows"]
        assert (len(found) > 1) == bool(threads), found


if __name__ == "__main__":
    main(globals())
