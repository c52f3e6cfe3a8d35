#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: tools
"""
Files of profilers that take minutes to build (producers/build.sh), against the numbers and names of these tools themselves.
"""
import collections
import json
import os
import re
import urllib.parse
import urllib.request

from import_tools import assert_folded, ran
from libe2e import BUILD, TOP, Background, fixture, free_port, load_json, main, needed, read, run, scratch, sysprof, write
from libprofiles import RUBY, compare, perf, pprof_top, report, reported, self_of

TOOLS = os.path.join(os.path.dirname(BUILD), "build/profilers")


def tool(name):
    return os.path.join(TOOLS, name)


# ---- samply --------------------------------------------------------------------------------------

def samply_record(path, *command):
    """
    Without hardware events samply reads the limit for users and ends, also as root: so it reads 1, which nothing else sees. It
    crashes over a mapping that the kernel marks as one with a build-id, because another profiler that records has these.
    """
    limit = write(scratch("paranoid"), "1")
    for left in range(4, -1, -1):
        result = run("unshare", "-m", "sh", "-c", f'mount --bind {limit} /proc/sys/kernel/perf_event_paranoid && exec "$@"', "-",
                     tool("samply"), "record", "--save-only", "--rate", 997, "-o", path, "--", *command)
        if "build_id_len <= 20" not in result.err or not left:
            assert result.status == 0, result
            return


def samply_names(path, profile, files):
    """{(build-id, address): function} of code in these files, as samply's server answers its viewer."""
    libs = [lib for lib in profile["libs"] if lib["name"] in files]
    places = sorted({(lib["codeId"], address) for lib, address in addresses_of(profile) if lib in libs})
    order = [lib["codeId"] for lib in libs]
    request = {"memoryMap": [[lib["debugName"], lib["breakpadId"]] for lib in libs],
               "stacks": [[[order.index(code), address]] for code, address in places]}
    with Background(tool("samply"), "load", "--no-open", "--port", free_port(), path) as server:
        address = urllib.parse.unquote(re.search(r"symbolServer=(\S+)", next(line for line in server.p.stdout if "symbolServer" in line))[1])
        with urllib.request.urlopen(f"{address}/symbolicate/v5", json.dumps(request).encode()) as answer:
            stacks = json.load(answer)["results"][0]["stacks"]
    return {place: (frame.get("inlines") or [frame])[0]["function"] for place, (frame,) in zip(places, stacks) if "function" in frame}


def addresses_of(profile):
    """(library, address) of each frame of native code."""
    for thread in profile["threads"]:
        for frame in range(thread["frameTable"]["length"]):
            place = place_of(profile, thread, frame)
            if place:
                yield place


def place_of(profile, thread, frame):
    resource = thread["funcTable"]["resource"][thread["frameTable"]["func"][frame]]
    if resource is None or resource < 0:
        return None
    return profile["libs"][thread["resourceTable"]["lib"][resource]], thread["frameTable"]["address"][frame]


def samply_samples(profile, names):
    """Samples by thread; by function as innermost, or by file where it is none of `names`; and CPU time, ns."""
    threads, functions, cpu = collections.Counter(), collections.Counter(), 0
    for thread in profile["threads"]:
        samples = thread["samples"]
        stacks, used = ran(zip(samples["time"], (1000 * delta for delta in samples["threadCPUDelta"]), samples["stack"]))
        threads[int(str(thread["tid"]).split(".", maxsplit=1)[0])] += len(stacks)
        cpu += used
        for stack in stacks:
            lib, address = place_of(profile, thread, thread["stackTable"]["frame"][stack])
            functions[names.get((lib["codeId"], address), lib["name"])] += 1
    return +threads, functions, cpu


def inlined_programs():
    """A command that runs inlined functions in a program, in one that has a fixed address, and in a library; and a stripped program."""
    fixed, inlined = scratch("fixed"), fixture("inlined")
    run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-no-pie", "-I", os.path.join(TOP, "include"), "-o", fixed,
        os.path.join(TOP, "tests/fixtures/inlined.c"), check=0)
    return "sh", "-c", f"{inlined} 1; {fixed} 1; {inlined} 1 {fixture('libinlined.so')}; gzip -c {inlined} >packed"


def check_samply(path):
    """Samples, CPU time and threads are those of the file; names, which it does not have, those of samply itself."""
    profile = load_json(path)
    ours = {"inlined", "fixed", "libinlined.so"}  # others may have several names at an address
    threads, functions, cpu = samply_samples(profile, samply_names(path, profile, ours))
    result = report(path)
    summary = result["summary"]
    assert summary["samples"] == sum(threads.values()) > 100 and abs(summary["cpu_ns"] - cpu) <= len(threads), (summary, cpu)
    assert "not_read" not in summary["meta"] and summary["duration_ns"] < 60e9, summary
    for found, rows, expected in (
            (collections.Counter(), ((row["tid"], row) for row in report(path, "--by", "thread")["rows"]), threads),
            (collections.Counter(), ((row["function" if row["dso"] in ours else "dso"], row) for row in result["rows"]), functions)):
        for key, row in rows:  # a number may be of several lives
            found[key] += row["self"]
        assert +found == expected, (found - expected, expected - found)
    assert {"step_hot", "step_warm"} <= set(functions), functions
    assert re.search(r"(\d+) with the recorded build-id", sysprof("report", path, check=0).err), "nothing is said about names"


@needed
def test_samply_record():
    path = scratch("recorded.json.gz")
    samply_record(path, *inlined_programs())
    check_samply(path)


@needed
def test_samply_import():
    """Of a file of perf."""
    data, path = scratch("perf.data"), scratch("imported.json.gz")
    perf("record", "-F", 997, "-g", "-e", "cpu-clock:u", "-o", data, "--", *inlined_programs())
    run(tool("samply"), "import", "--save-only", "-o", path, data, check=0)
    check_samply(path)


# ---- pprof-rs ------------------------------------------------------------------------------------

@needed
def test_pprof_rs():
    """Samples of each function and thread are those that it has counted; shares those of go tool pprof."""
    path = scratch("pprof-rs.pb")
    lines = [line.split(" ", 2) for line in run(tool("pprof-rs"), path, check=0).out.splitlines()]
    functions, threads = collections.Counter(), collections.Counter()
    for thread, count, function in lines:
        functions[function] += int(count)
        threads[thread] += int(count)
    assert self_of(path) == functions
    assert collections.Counter({row["thread"]: row["self"] for row in report(path, "--by", "thread")["rows"]}) == threads
    assert len(threads) == 2 and sum(threads.values()) > 150, threads
    compare(path, pprof_top(path), reported(path), 0.1)


# ---- rbspy ---------------------------------------------------------------------------------------

def rbspy_report(kind, raw):
    path = scratch("rbspy." + kind)
    run(tool("rbspy"), "report", "--format", kind, "--input", raw, "--output", path, check=0)
    return path


def speedscope_self(profile):
    """Nanoseconds of each function as innermost."""
    found, frames = collections.Counter(), profile["shared"]["frames"]
    for thread in profile["profiles"]:
        for stack, seconds in zip(thread["samples"], thread["weights"]):
            found[frames[stack[-1]]["name"]] += 1e9 * seconds
    return +found


@needed
def test_rbspy():
    """One recording as folded stacks, speedscope's and pprof: times and shares are those of the files, of its summary and of pprof."""
    raw, summary, script = scratch("rbspy.raw.gz"), scratch("rbspy.summary"), write(scratch("work.rb"), RUBY)
    run(tool("rbspy"), "record", "--silent", "--no-drop-root", "--rate", 200, "--format", "summary", "--raw-file", raw, "--file", summary,
        "--", "ruby", script, scratch("stackprof.dump"), check=0)
    folded = rbspy_report("collapsed", raw)
    assert_folded(re.sub(r":\d+(?=;| \d+$)", "", read(folded), flags=re.M), folded)  # the lines that ran
    shares = {row["function"]: 100 * row["total_share"] for row in report(folded)["rows"]}
    for name in f"fibonacci - {script}", f"work - {script}":
        _, total = re.search(rf"([\d.]+) +([\d.]+)  {re.escape(name)}:", read(summary)).groups()
        assert abs(float(total) - shares[name]) < 0.01 and float(total) > 50, (name, total, shares[name])
    speedscope, pprof = rbspy_report("speedscope", raw), rbspy_report("pprof", raw)
    compare(speedscope, speedscope_self(load_json(speedscope)), self_of(speedscope), 1000)
    compare(pprof, pprof_top(pprof), reported(pprof), 0.1)


if __name__ == "__main__":
    main(globals())
