# SPDX-License-Identifier: BSD-2-Clause
"""Profiles that other tools write here, and what report reads of them."""
import collections
import glob
import json
import os
import re
import shutil

from libconsumers import CACHE, node
from libe2e import BUILD, SYSPROF, Skip, fixture, need_root, run, scratch, sysprof, write
from libgo import go_build, pprof

NODE = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
setTimeout(() => { for (let i = 0; i < 6; i++) fibonacci(25);
  require('vm').runInThisContext('function hot(){let s=0;for(let i=0;i<5e6;i++)s+=i;return s};hot()');
}, 20);
"""
GO = """package main

import (
	"os"
	"runtime/pprof"
)

func leaf(n int) (s int) {
	for i := 0; i < n; i++ {
		s += i * i
	}
	return
}

type T struct{}

//go:noinline
func (t *T) Spin() int { return leaf(400000000) }

func main() {
	f, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(f)
	(&T{}).Spin()
	pprof.StopCPUProfile()
	f.Close()
	h, _ := os.Create(os.Args[1] + ".heap")
	pprof.WriteHeapProfile(h)
	h.Close()
}
"""


def report(path, *options):
    return json.loads(sysprof("report", path, "--json", "--top", 100000, *options, check=0).out)


def self_of(path):
    """Ticks of each function, as innermost; those of one name in several files together."""
    sums = collections.Counter()
    for row in report(path)["rows"]:
        sums[row["function"]] += row["self"]
    return +sums


def reported(path):
    """Percent of each function as innermost."""
    found = collections.Counter()
    for row in report(path)["rows"]:
        found[row["function"]] += 100 * row["self_share"]
    return found


def pprof_top(path):
    found = collections.Counter()
    for line in pprof("-top", "-symbolize=none", "-nodecount=1000000", "-nodefraction=0", path).splitlines():
        # "  1.13s 63.48% 63.48%  1.13s 63.48%  name (inline)"
        match = re.match(r"\s+\S+\s+([-\d.e]+)%?\s+[-\d.e]+%\s+\S+\s+[-\d.e]+%\s+(.*)", line)
        if match:
            found[re.sub(r" \((partial-)?inline\)$", "", match[2])] += float(match[1])
    return found


def compare(what, expected, found, tolerance):
    different = {name: (expected.get(name, 0), found.get(name, 0)) for name in set(expected) | set(found)
                 if abs(expected.get(name, 0) - found.get(name, 0)) > tolerance}
    assert expected and not different, (what, different)


_made = {}


def node_profile():
    if "node" not in _made:
        if not shutil.which("node"):
            raise Skip("needs node")
        directory = scratch("node")
        os.makedirs(directory)
        script = write(scratch("node/fib.js"), NODE)
        run("node", "--cpu-prof", script, cwd=directory, check=0)
        _made["node"], = glob.glob(os.path.join(directory, "*.cpuprofile"))
    return _made["node"]


def go_profile():
    if "go" not in _made:
        os.makedirs(scratch("go"))
        write(scratch("go/go.mod"), "module spins\n")
        program = go_build(os.path.dirname(write(scratch("go/main.go"), GO)), "go/prog")
        _made["go"] = scratch("go/cpu.pb.gz")
        run(program, _made["go"], check=0)
    return _made["go"]


# ---- profilers of packages -----------------------------------------------------------------------

PRODUCERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "producers")
PACKAGES = os.path.join(os.path.dirname(BUILD), "build/producers")
PYTHON = "/usr/bin/python3"
CONVERTED = ["--dot", "--lines", "--norm", "--simple", "--threads", "--total"]


def packages():
    """Where the profilers of PyPI and Maven are."""
    run(os.path.join(PRODUCERS, "install.sh"), PACKAGES, timeout=250, check=0)
    return PACKAGES


def python_environment():
    # zprofile's messages were made for a protobuf of 2019
    return dict(os.environ, PYTHONPATH=os.path.join(packages(), "python"), PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


def pprof_files():
    """31 pprof files: 12 of Go's runtime, 6 each of @datadog/pprof, async-profiler and zprofile, one of gperftools."""
    if "pprof" in _made:
        return _made["pprof"]
    place = scratch("pprof")
    os.makedirs(place)
    os.makedirs(scratch("pprof-go"))
    write(scratch("pprof-go/go.mod"), "module profiles\n\ngo 1.18\n")
    shutil.copy(os.path.join(PRODUCERS, "profiles.go"), scratch("pprof-go/main.go"))
    run(go_build(scratch("pprof-go"), "pprof-go/profiles"), place, check=0)
    node()
    run("node", os.path.join(PRODUCERS, "profiles.cjs"), place, os.path.join(CACHE, "node_modules"), check=0)
    run(PYTHON, os.path.join(PRODUCERS, "profiles.py"), place, env=python_environment(), check=0)
    java = os.path.join(packages(), "java")
    classes, recorded = scratch("pprof-java"), scratch("x.jfr")
    run("javac", "-d", classes, os.path.join(PRODUCERS, "Profiled.java"), check=0)
    run("java", f"-agentpath:{java}/libasyncProfiler.so=start,event=cpu,interval=1ms,file={recorded}", "-cp", classes,
        "Profiled", check=0)
    for option in CONVERTED:
        run("java", "-jar", os.path.join(java, "jfr-converter.jar"), "-o", "pprof", "--cpu", option, recorded,
            os.path.join(place, f"java{option}.pb.gz"), check=0)
    pprof("-proto", "-output=" + os.path.join(place, "gperftools.pb.gz"), fixture("chain"), gperftools_profile())
    _made["pprof"] = sorted(glob.glob(os.path.join(place, "*.pb.gz")))
    assert len(_made["pprof"]) == 31, _made["pprof"]
    return _made["pprof"]


BUSY = """
import threading, time
def hot(n):
    s = 0
    for i in range(n): s += i * i
    return s
def waits(): time.sleep(0.005)
def main():
    while time.thread_time() < 0.4: hot(100000); waits()
thread = threading.Thread(target=main, name="worker")
thread.start(); main(); thread.join()
"""


def python_profiles():
    """A speedscope file of pyinstrument, one of py-spy, and folded stacks of py-spy."""
    if "python" not in _made:
        tools, script = os.path.join(packages(), "python"), write(scratch("busy.py"), BUSY)
        paths = [scratch(name) for name in ("pyinstrument.json", "py-spy.json", "py-spy.folded")]
        run(PYTHON, "-m", "pyinstrument", "-r", "speedscope", "-o", paths[0], script, env=python_environment(), check=0)
        for kind, path in ("speedscope", paths[1]), ("raw", paths[2]):
            run(os.path.join(tools, "bin/py-spy"), "record", "-r", "200", "-f", kind, "-o", path, "--", PYTHON, script, check=0)
        _made["python"] = paths
    return _made["python"]


RUBY = """
require "stackprof"
def fibonacci(n) = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)
def work
  finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.5
  fibonacci(18) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
end
StackProf.run(mode: :cpu, interval: 1000, raw: true, out: ARGV[0]) { work }
"""
PHP = """<?php
function fibonacci($n) { return $n < 2 ? $n : fibonacci($n - 1) + fibonacci($n - 2); }
function work() { $end = microtime(true) + 0.5; while (microtime(true) < $end) fibonacci(15); }
$profiler = new ExcimerProfiler;
$profiler->setPeriod(0.001);
$profiler->start();
work();
$profiler->stop();
file_put_contents($argv[1], $profiler->getLog()->formatCollapsed());
pcntl_exec("/bin/true"); // else PHP may abort: a late tick finds the mutex of Excimer destroyed
"""


def once(name, *command, **options):
    """The path of a file that a command writes, whose arguments have {} for it."""
    if name not in _made:
        path = scratch(name)
        run(*(argument.replace("{}", path) for argument in command), check=0, **options)
        _made[name] = path
    return _made[name]


def stackprof_dump():
    return once("stackprof.dump", "ruby", write(scratch("stackprof.rb"), RUBY), "{}")


def excimer_folded():
    return once("excimer.folded", "php", write(scratch("excimer.php"), PHP), "{}")


def gperftools_profile():
    return once("gperftools.prof", "sh", "-c", f"LD_PRELOAD=libprofiler.so.0 CPUPROFILE={{}} CPUPROFILE_FREQUENCY=500 {fixture('chain')} 0.5")


def firefox_profile():
    """Gecko's own format, of Firefox."""
    page = write(scratch("work.html"), f"<title>work</title><script>{WORK}</script>")
    home = scratch("firefox")
    os.makedirs(home, exist_ok=True)
    return once("firefox.json", "firefox-esr", "--headless", "--no-remote", "--profile", home, "--screenshot", scratch("work.png"),
                "file://" + page, timeout=120, env=dict(os.environ, HOME=home, MOZ_PROFILER_STARTUP="1",
                                                         MOZ_PROFILER_STARTUP_FEATURES="js,cpu", MOZ_PROFILER_SHUTDOWN=scratch("firefox.json")))


WORK = """
(() => { function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
  const end = performance.now() + 200; let s = 0;
  while (performance.now() < end) s += fibonacci(18) + JSON.stringify(Array(300).fill({a: s})).length;
  return s; })()
"""
TRACED = ["disabled-by-default-v8.cpu_profiler", "devtools.timeline", "v8"]


def chrome_trace(browser, page):
    browser.call("Tracing.start", transferMode="ReturnAsStream", traceConfig={"includedCategories": TRACED})
    page.evaluate(WORK)
    stream, pieces = browser.trace(), []
    while True:
        piece = browser.call("IO.read", handle=stream)
        pieces.append(piece["data"])
        if piece["eof"]:
            return "".join(pieces)


def chrome_profiles(browser):
    """A trace of Chrome's, and a .cpuprofile of its profiler."""
    page = browser.page("about:blank")
    page.call("Profiler.enable")
    page.call("Profiler.start")
    page.evaluate(WORK)
    profile = write(scratch("chrome.cpuprofile"), json.dumps(page.call("Profiler.stop")["profile"]))
    # on a busy machine V8 may begin too late
    trace = next(text for text in (chrome_trace(browser, page) for _ in range(5)) if "fibonacci" in text)
    page.close()
    return write(scratch("chrome.trace.json"), trace), profile


class Crashed(Exception):
    """perf has been killed by a signal of its own."""


def perf(command, *args):
    """
    What perf prints; a system without perf fails the test. Not with --buildid-mmap: the kernel then gives all perf of the
    host records with build-ids, and perf 6.1 aborts over those that it has not requested.
    """
    result = run("perf", command, *(("-q", "-B") if command == "record" else ()), *args)
    if result.status < 0:
        raise Crashed(result)
    assert result.status == 0, result
    return result.out


def perf_script():
    """The text of perf script, by the clock of CPUs, with stacks."""
    if "perf" not in _made:
        need_root()
        data = scratch("perf.data")
        packed = f"gzip -c {SYSPROF} >{scratch('packed')}"
        perf("record", "-F", "499", "-g", "-e", "cpu-clock", "-o", data, "--", "sh", "-c", packed)
        _made["perf"] = write(scratch("perf.txt"), perf("script", "-i", data))
    return _made["perf"]


FRAMES = ("location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category", "subcategory")
SAMPLES = ("stack", "time", "eventDelay", "threadCPUDelta")
MARKERS = ("name", "startTime", "endTime", "phase", "category", "data")
LIBRARY = {"name": "prog", "path": "/bin/prog", "debugName": "prog", "debugPath": "/bin/prog", "breakpadId": "0",
           "codeId": "abcd", "arch": "x86_64", "start": 4096, "end": 65536, "offset": 0}


def gecko_table(columns, rows):
    return {"schema": {name: i for i, name in enumerate(columns)}, "data": rows}


def gecko_profile():
    """Raw Gecko JSON with the calls of node's .cpuprofile: as JavaScript, and in a child process as symbols of a library."""
    with open(node_profile(), encoding="utf-8") as file:
        profile = json.load(file)
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}

    def process(start, pid, location):
        order = [node["id"] for node in profile["nodes"] if node["callFrame"]["functionName"] != "(root)"]
        numbers = {number: i for i, number in enumerate(order)}
        frames = {node["id"]: node["callFrame"] for node in profile["nodes"]}
        rows, time = [], 0
        for number, delta in zip(profile["samples"], profile["timeDeltas"]):
            time = max(time + delta, 0)
            rows.append([numbers.get(number), time / 1000, 0, max(delta, 1)])
        thread = {
            "name": "GeckoMain", "processType": "default", "processName": f"p{pid}", "pid": pid, "tid": pid,
            "registerTime": 0, "unregisterTime": None, "markers": gecko_table(MARKERS, []),
            "stringTable": [location(frames[number]) for number in order],
            "frameTable": gecko_table(FRAMES, [[i, True, 0, None, None, None, 1, 0] for i in range(len(order))]),
            "stackTable": gecko_table(("prefix", "frame"), [[numbers.get(parents.get(number)), numbers[number]] for number in order]),
            "samples": gecko_table(SAMPLES, rows)}
        meta = {
            "version": 28, "startTime": start, "interval": 1, "stackwalk": 1, "processType": 0, "product": "x", "markerSchema": [],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "\u00b5s"},
            "categories": [{"name": name, "color": "grey", "subcategories": ["Other"]} for name in ("Idle", "Other")]}
        return {"meta": meta, "libs": [LIBRARY], "pages": [], "pausedRanges": [], "threads": [thread], "processes": []}

    whole = process(1e12, 7, lambda frame: f"{frame['functionName'] or 'none'} (file:///a.js:{frame['lineNumber'] + 1}:2)")
    whole["processes"].append(process(1e12 + 5, 8, lambda frame: f"{frame['functionName'] or 'none'} (in prog)"))
    return write(scratch("gecko.json"), json.dumps(whole))
