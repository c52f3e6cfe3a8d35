#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""
Other importers read what sysprof reads of files that other tools made: `go tool pprof`, speedscope and the Firefox
Profiler. A profiler or an importer that cannot be had fails the test.
"""
import collections
import gzip
import json
import os
import re
import time

from libbrowser import Browser
from libconsumers import CACHE, CONSUMERS, node
from libe2e import SYSPROF, TOP, Background, long, main, needed, read, record, run, scratch, sysprof, wait_for, write
from libprofiles import chrome_profiles, compare, gecko_profile, go_profile, node_profile, perf_script, pprof_files, pprof_top, python_profiles, report, reported, self_of
from libviewers import speedscope

import read_pprof

NS = {"none": 1, "bytes": 1, "nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
TAKE = """
    window.taken = null;
    URL.createObjectURL = blob => { blob.text().then(text => { window.taken = text; }); return '#'; };
"""


def plain(name):
    """speedscope has the place of a function without a name in its name."""
    return re.sub(r"^\(anonymous .*\)$", "(anonymous)", name)


def weights(path, what=None):
    """What each function has as innermost, ns, bytes or samples, by way of pprof; of inlined functions the outermost."""
    out, found = scratch("read.pb.gz"), collections.Counter()
    sysprof("convert", path, "-o", out, check=0)
    with gzip.open(out) as file:
        profile = read_pprof.read_pprof(file.read())
    strings = profile["string_table"]
    types = [strings[t["type"]] for t in profile["sample_type"]]
    known = [types.index(name) for name in ("cpu", "samples")
             if name in types and any(sample["value"][types.index(name)] for sample in profile["sample"])]
    value, = [types.index(what)] if what else [i for i, name in enumerate(types) if name not in ("samples", "cpu")] or known[:1]
    for sample in profile["sample"]:
        line = profile["location"][sample["location_id"][0] - 1]["line"][-1]
        found[plain(strings[profile["function"][line["function_id"] - 1]["name"]])] += sample["value"][value]
    return +found


# ---- go tool pprof -------------------------------------------------------------------------------

@long
@needed
def test_pprof_has_the_same_shares():
    """31 files of five profilers; 0.1 point, because pprof prints two decimals of each line of a function."""
    for path in pprof_files():
        compare(path, pprof_top(path), reported(path), 0.1)


# ---- speedscope ----------------------------------------------------------------------------------

def speedscope_export(browser, path):
    """What speedscope has read of a file, as it exports it: evented profiles."""
    page = speedscope(browser, path, scratch(""))
    page.evaluate(TAKE)
    page.key("s", modifiers=2)
    page.wait("window.taken !== null")
    text = page.evaluate("window.taken")
    page.close()
    return text


def speedscope_self(text):
    """Weight of each function as innermost, and how many profiles there are."""
    data, found = json.loads(text), collections.Counter()
    for profile in data["profiles"]:
        stack, last = [], profile["startValue"]
        for event in profile["events"]:
            if stack:
                found[plain(data["shared"]["frames"][stack[-1]]["name"])] += (event["at"] - last) * NS[profile["unit"]]
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
    return +found, len(data["profiles"])


def backwards(path):
    """
    How much time is another sample's, ns: some of V8's are written late, and speedscope does not sort them. Such a sample has
    the time until the next one in the file, not in time.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    deltas = [int(delta) for column in re.findall(r'"timeDeltas":\s*\[([^]]*)\]', text) for delta in column.split(",") if delta]
    return 1000 * sum(after - delta for delta, after in zip(deltas, deltas[1:] + [0]) if delta < 0)


@long
@needed
def test_speedscope_reads_the_same():
    """
    The self time of every function, in files of five formats; and in speedscope's export of each. Not in the text of perf
    script, where it counts the time since the sample before, and sysprof the period.
    """
    with Browser("--allow-file-access-from-files") as browser:
        for path in (node_profile(), *chrome_profiles(browser), go_profile(), *python_profiles()):
            text = speedscope_export(browser, path)
            (expected, threads), found = speedscope_self(text), weights(path)
            from_v8 = path.endswith((".cpuprofile", ".trace.json"))
            tolerance = 100 + 1e-9 * sum(expected.values())  # ns: it adds up doubles
            if from_v8:
                tolerance += 1e-3 * sum(expected.values()) + backwards(path)
            # it gives the last sample of a thread no time
            last = [name for name in found if found[name] > expected[name] + tolerance]
            if from_v8 and len(last) <= threads:
                found = {**found, **{name: expected[name] for name in last}}
            compare(path, expected, found, tolerance)
            if from_v8:
                compare(path + ", shares", weights(path), self_of(path), 0)
            compare(path + ", exported", expected, weights(write(scratch("export.json"), text)), 100)


# ---- DevTools --------------------------------------------------------------------------------------

@long
@needed
def test_devtools_reads_the_same():
    """The time of every function of V8's own files, as it draws it: a sample lasts until the next one."""
    with Browser("--allow-file-access-from-files") as browser:
        paths = node_profile(), *chrome_profiles(browser)
    shown = run(node(), os.path.join(CONSUMERS, "self_times.mjs"), CACHE, *paths, check=0).out
    for path, line in zip(paths, shown.splitlines()):
        shown, found = json.loads(line), self_of(path)
        expected = collections.Counter()
        for name, ms in shown["times"].items():
            expected[name or "(anonymous)"] += ms * 1e6
        del expected["(idle)"]
        tolerance = 1000 + 1e-9 * sum(expected.values()) + backwards(path)
        last = [name for name in found if found[name] > expected[name] + tolerance]
        assert len(last) <= shown["profiles"], (path, last)
        compare(path, expected, {**found, **{name: expected[name] for name in last}}, tolerance)


# ---- the Firefox Profiler ------------------------------------------------------------------------

class FirefoxProfiler:
    """Its command line, with a session of its own."""

    def __init__(self):
        self.command = [node(), os.path.join(CACHE, "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")]
        self.environment = dict(os.environ, PROFILER_CLI_SESSION_DIR=scratch("profiler-cli"))
        os.makedirs(scratch("profiler-cli"), exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("stop", "--all")

    def call(self, *arguments):
        return run(*self.command, *arguments, env=self.environment, check=0).out

    def load(self, path):
        # its daemon has half a second to start; on a busy machine it is there later, or not at all
        for _ in range(5):
            loaded = run(*self.command, "load", path, env=self.environment)
            until = time.monotonic() + 120
            while loaded.status and time.monotonic() < until:
                assert "still starting" in loaded.out + loaded.err, loaded
                time.sleep(0.5)
                if not run(*self.command, "thread", "list", env=self.environment).status:
                    return
            if not loaded.status:
                return
            self.call("stop", "--all")
        raise AssertionError(loaded)

    def samples(self, path):
        """Samples of each function as innermost, of all threads."""
        self.load(path)
        found = collections.Counter()
        for thread in json.loads(self.call("thread", "list", "--json"))["threads"]:
            functions = json.loads(self.call("thread", "functions", "--json", "--limit", "0", "--include-idle", "--thread",
                                             thread["threadHandle"]))["functions"]
            for function in functions:
                found[function["name"]] += function["selfSamples"]
        self.call("stop", "--all")
        return +found


def self_samples(path):
    """Samples of each function as innermost; code without a symbol has the name of its file here."""
    if path.endswith(".cpuprofile"):  # whose report is of time
        return weights(path, "samples")
    found = collections.Counter()
    for row in report(path)["rows"]:
        found[re.sub(r"^\[.*\]$", "[unknown]", row["function"])] += row["self"]
    return +found


def thinned(path):
    """A .cpuprofile with the samples that the viewer keeps: those half a millisecond after the last one that it kept."""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    samples, deltas, since = [], [], 0
    for sample, delta in zip(profile["samples"], profile["timeDeltas"]):
        since += delta
        if not samples or since >= 500:
            samples.append(sample)
            deltas.append(since)
            since = 0
    profile.update(samples=samples, timeDeltas=deltas)
    return write(scratch("thinned-" + os.path.basename(path)), json.dumps(profile))


@long
@needed
def test_firefox_profiler_reads_the_same():
    """
    As many samples of every function, in files of four formats. Not in traces: of these it shows a part of the samples.
    """
    with Browser() as browser, FirefoxProfiler() as firefox:
        for path in (thinned(node_profile()), thinned(chrome_profiles(browser)[1]), gecko_profile(), perf_script(),
                     python_profiles()[2]):
            expected = firefox.samples(path)
            # the viewer counts idle samples, and lines of folded stacks without a stack
            expected.pop("(idle)" if path.endswith(".cpuprofile") else "", 0)
            compare(path, expected, self_samples(path), 0)


@long
@needed
def test_firefox_profiler_shows_our_instructions():
    """Its assembly view, by our /asm/v1: the instructions that objdump shows, and the samples of the report."""
    program, recording, log = scratch("orders"), scratch("orders.sysprof"), scratch("open.log")
    run("cc", "-O1", "-g", "-o", program, os.path.join(TOP, "docs/examples/orders.c"), check=0)
    record("-o", recording, "--", program)
    expected = next(row["self"] for row in report(recording)["rows"] if row["function"] == "sum_order")
    with open(log, "w", encoding="utf-8") as err, Background(SYSPROF, "open", "--no-browser", recording, stderr=err), \
            FirefoxProfiler() as firefox:
        wait_for(lambda: "all formats:" in read(log), what="the server")
        firefox.load(re.search(r"Firefox Profiler: +(\S+)", read(log))[1])
        functions = json.loads(firefox.call("thread", "functions", "--json", "--limit", "0"))["functions"]
        handle = next(f["functionHandle"] for f in functions if f["name"] == "sum_order")
        shown = firefox.call("function", "annotate", handle, "--mode", "asm")
    rows = re.findall(r"^ *(0x[0-9a-f]+)(?: +(\d+))?(?: +(\d+))?  +(\S.*)$", shown, re.M)
    text = run("objdump", "-d", "--no-show-raw-insn", "--disassemble=sum_order", program, check=0).out
    assert [int(row[0], 16) for row in rows] == [int(a, 16) for a in re.findall(r"^ *([0-9a-f]+):\t", text, re.M)], shown
    assert sum(int(row[1]) for row in rows if row[2]) == expected, shown


main(globals())
