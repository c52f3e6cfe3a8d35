#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long soak
"""Viewers of other projects load the files of real recordings, and show their contents."""
import concurrent.futures
import glob
import json
import os
import signal
import shutil
import subprocess
import time

from libbrowser import Browser
from libconsumers import CACHE, CONSUMERS, node, structure
from libe2e import (SANITIZED, SCRATCH, SYSPROF, Background, Fixture, alone, comms, firefox_threads, fixture,
                    folded, has_chain, kernel_part, long, main, record, run, scratch, share, soak, total)
from libgo import pprof
from librecorded import clang_command, java_commands, node_commands, python_commands, recorded
from libviewers import devtools, devtools_tracks, speedscope

# Processes and threads of all kinds: with gaps, with kernel stacks, with libraries that come and
# go, with malformed names, many short ones, and one that goes on afterwards.
RICH = """
{duty} 2.5 100 40 5 1 & {kstack} getdents 2 & {dl} 100 2 & {rename} 0.2 &
{storm} -n -j 2 exec 60 4000 {log} & {storm} thread 40 4000 {log2} &
{exits_leader} 1.5 & {chain} -t 3 1 & wait
"""


def judge(base):
    """All files of one recording, by all judges. A thread's totals are the same in all of them."""
    firefox, profiles = base + ".json.gz", sorted(glob.glob(base + "*.cpuprofile"))
    trace, pprof = base + ".trace.json.gz", base + ".pb.gz"
    files = structure(firefox, trace, pprof, base + ".folded", *profiles)
    assert base + ".cpuprofile" in profiles
    totals = files[firefox]["totals"]
    assert files[firefox]["samples"] == files[base + ".folded"]["samples"] > 0
    assert files[trace]["totals"] == totals
    # pprof has the CPU time of lives that were never sampled, too
    sampled = {key: seen for key, seen in files[pprof]["totals"].items() if seen["samples"]}
    assert sampled == totals, [(key, sampled.get(key), totals.get(key)) for key in sampled.keys() | totals.keys()
                               if sampled.get(key) != totals.get(key)]
    of_profiles = {}
    for path in profiles:
        for key, seen in files[path]["totals"].items():
            so_far = of_profiles.setdefault(key, {"samples": 0, "cpu_ns": 0})
            so_far["samples"] += seen["samples"]
            so_far["cpu_ns"] += seen["cpu_ns"]
    for key, seen in of_profiles.items():
        lives = [t for t in files[firefox]["threads"]
                 if f"{t['pid'].split('.')[0]}/{t['tid'].split('.')[0]}" == key]
        if len(lives) == 1:  # of several, the short ones have no file
            assert seen["samples"] == totals[key]["samples"], (key, seen, totals[key])
            assert abs(seen["cpu_ns"] - totals[key]["cpu_ns"]) <= 1000, (key, seen, totals[key])

    program = node()
    run(os.path.join(CONSUMERS, "check_firefox.sh"), CACHE, firefox, check=0)
    seen = run(program, os.path.join(CONSUMERS, "check_cpuprofile.mjs"), CACHE, *profiles, check=0)
    assert len(seen.out.splitlines()) == len(profiles), seen
    run(program, os.path.join(CONSUMERS, "check_trace.mjs"), CACHE, trace, check=0)
    sums = json.loads(run(program, os.path.join(CONSUMERS, "check_pprof.mjs"), CACHE, pprof, check=0).out)
    assert (sums["samples"], sums["cpu_ns"]) == (files[pprof]["samples"], files[pprof]["cpu_ns"]), sums
    return files


def outputs(base):
    return [word for suffix in (".json.gz", ".cpuprofile", ".trace.json.gz", ".pb.gz", ".folded", ".sysprof")
            for word in ("-o", base + suffix)]


@alone
@long
def test_rich_command():
    base = scratch("rich")
    names = "duty", "kstack", "dl", "rename", "storm", "exits_leader", "chain"
    script = RICH.format(log=scratch("log"), log2=scratch("log2"),
                         **{name: fixture(name) for name in names})
    record(*outputs(base), "--", "/bin/sh", "-c", script)
    files = judge(base)
    rows = folded(base + ".folded")
    assert {"duty-100", "duty-40", "kstack", "dl", "name-one", "storm-7", "chain"} <= \
        set(comms(rows)), comms(rows)
    assert total([row for row in rows if kernel_part(row[0])]) > 50
    whole = share([row for row in rows if row[0][0] == "chain" and not kernel_part(row[0])],
                  lambda f: has_chain(f, "outer", "middle", "inner", "leaf"))
    # with sanitizers, beside six busy programs, its table takes a good part of the second to make
    assert whole > (0.1 if SANITIZED else 0.9), whole
    (slow,) = [t for t in firefox_threads(base + ".json.gz") if t.name == "duty-5"]
    assert slow.stacks.count(None) > 50, "the gaps of a thread that sleeps are shown"
    # from the recording the same comes once more
    for suffix in ".json.gz", ".folded":
        run(SYSPROF, "convert", base + ".sysprof", "-o", scratch("again" + suffix), check=0)
    assert structure(scratch("again.json.gz"))[scratch("again.json.gz")]["totals"] == \
        files[base + ".json.gz"]["totals"]
    assert folded(scratch("again.folded")) == rows


@alone
@soak
def test_runtimes():
    """Code that is made while it runs, inlined functions and lines, thousands of functions."""
    recordings = {name: recorded(name) for name in ("python", "node", "clang", "java")}

    def convert_and_judge(name):
        base = scratch(name)
        run(SYSPROF, "convert", recordings[name].path, "--lines", *outputs(base)[:-2], check=0)
        judge(base)

    # nothing is recorded any more: the judges may run side by side
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(convert_and_judge, recordings))


def in_browsers(base):
    """The page without a word on the console, speedscope, and DevTools' own panel with all processes."""
    with Browser("--allow-file-access-from-files") as browser:
        page = browser.page("file://" + base + ".html")
        page.wait("document.body.innerText.includes('samples')")
        assert page.messages() == [], page.messages()
        assert page.requests() == ["file://" + base + ".html"], page.requests()
        for suffix in ".trace.json.gz", ".pb.gz", ".cpuprofile", ".folded":
            speedscope(browser, base + suffix, SCRATCH)
        names = [name for name, _ in devtools_tracks(devtools(browser, base + ".trace.json.gz"))]
    for process in "node", "python3", "clang", "java":
        assert any(process in name for name in names), (process, names)


@long
def test_all_at_once():
    """Node.js, Python, clang and Java in one recording, with lines: every format, in each viewer that can be had."""
    base = scratch("all")
    commands = [node_commands()["node0"], python_commands()["own"], clang_command(),
                java_commands()["java"]]
    running = [Background(*command) for command in commands]
    try:
        time.sleep(1)
        pids = ",".join(str(program.pid) for program in running)
        record("-p", pids, "-F", "499", "-d", "3", "--lines", *outputs(base), "-o", base + ".html", "--jvm-perfmap")
    finally:
        for program in running:
            program.p.kill()
    judge(base)
    in_browsers(base)
    for options in ["-raw"], ["-top"], ["-tags"], ["-top", "-tagfocus=process=java"]:
        if shutil.which("go"):
            assert pprof(*options, base + ".pb.gz").strip()


@long
def test_whole_system():
    base = scratch("system")
    storm = f"while :; do {fixture('storm')} -j 2 fork 100 2000 {scratch('log')} >/dev/null; done"
    with Background("sh", "-c", storm, start_new_session=True, stdout=subprocess.DEVNULL) as tasks:
        try:
            record("-a", "-F", "599", "-d", "1", *outputs(base))
        finally:
            os.killpg(tasks.pid, signal.SIGKILL)
    judge(base)


def test_next_to_nothing():
    """A target that sleeps, and one that has a single thread with a single stack."""
    base = scratch("little")
    with Fixture("zombie", "3") as sleeper:
        sleeper.wait_facts("zombie")
        record("-p", sleeper.pid, "-d", "0.3", "-o", base + ".json.gz", "-o", base + ".folded",
               "-o", base + ".cpuprofile")
    assert folded(base + ".folded") == []
    structure(base + ".json.gz", base + ".cpuprofile", base + ".folded")
    run(node(), os.path.join(CONSUMERS, "check_cpuprofile.mjs"), CACHE, base + ".cpuprofile",
        check=0)
    run(os.path.join(CONSUMERS, "check_firefox.sh"), CACHE, base + ".json.gz", check=0)
    base = scratch("leaf")
    record("--no-kernel", "-g", "none", *outputs(base), "--", fixture("chain"), "0.3")
    judge(base)


main(globals())
