#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Counters and markers of real recordings are what the programs did, and the first view is a good one.

The viewer's own code reads such files in consumers.py [F5]; the checklist's other items are in
tests/unit/test_export_firefox.c [F1–F4, F6] and structure_checker.py [F1].
"""
import contextlib
import os
import re
import sys
import signal

from libconsumers import structure
from libe2e import (SYSPROF, Background, Fixture, Skip, fixture, load_json, main, read, record, run, scratch,
                    started_sampling)

def checked(path):
    structure(path)
    return load_json(path)


def markers(profile):
    """(name, data, start in ms, thread) of all."""
    strings = profile["shared"]["stringArray"]
    for thread in profile["threads"]:
        columns = thread["markers"]
        for name, data, start in zip(columns["name"], columns["data"], columns["startTime"]):
            yield strings[name], data, start, thread


def memory(profile, name="memory"):
    """{pid: [(ms, bytes)]}"""
    result = {}
    for counter in profile["counters"]:
        if counter["name"] == name:
            level, readings = 0, []
            for when, change in zip(counter["samples"]["time"], counter["samples"]["count"]):
                level += change
                readings.append((when, level))
            result[counter["pid"]] = readings
    return result


GROWS = """
import os, time
print(os.getpid(), flush=True)
kept, end = [], time.monotonic() + 2.6
while time.monotonic() < end:
    if len(kept) < 64:
        kept.append(bytearray(b"x" * (1 << 20)))
    sum(range(10000))
"""


def test_memory_of_a_target_and_of_sysprof():
    base = scratch("memory")
    result = record("-o", base + ".json", "-o", base + ".sysprof", "--", sys.executable, "-c", GROWS)
    profile = checked(base + ".json")
    pid = result.out.split()[0]
    # it may have been started by a script of the same number
    readings = next(r for p, r in memory(profile).items() if p.split(".")[0] == pid and len(r) > 1)
    # the last one may be of a process that gives its memory back, at its end
    assert max(level for _, level in readings) > 60 << 20, readings
    assert len(readings) <= 4 and readings[-1][0] > 1000, readings
    (own,) = memory(profile, "memory of sysprof").values()
    assert all(1 << 20 < level < 1 << 30 for _, level in own), own
    # the same from the recording
    run(SYSPROF, "convert", base + ".sysprof", "-o", base + "-again.json", check=0)
    with open(base + ".json", "rb") as live, open(base + "-again.json", "rb") as again:
        assert live.read() == again.read()


def test_processes_and_names():
    """Each sampled child has a begin and an end, also one that was killed; names by their times."""
    path, log = scratch("lives.json"), scratch("storm.log")
    script = f"{fixture('storm')} -n exec 6 30000 {log}; {fixture('rename')} 0.2 & " \
             f"{fixture('duty')} 9 100 & sleep 0.3; kill -9 $!; wait"
    record("-F", "999", "-o", path, "--", "/bin/sh", "-c", script)
    profile = checked(path)
    seen = {}
    for name, data, start, thread in markers(profile):
        seen.setdefault((name, data.get("name")), []).append((start, thread["pid"]))
    tasks = [line.split() for line in open(log, encoding="utf-8") if line.startswith("task")]
    assert len(tasks) == 6
    def lives(what, pid):  # a process is called as its program
        return [at for at in seen[f"Process {what}", "storm"] if at[1].split(".")[0] == pid]

    for task in tasks:
        (began,) = lives("exec", task[1])
        (ended,) = [at for at in lives("exit", task[1]) if at[1] == began[1]]
        monotonic = profile["meta"]["startTimeAsClockMonotonicNanosecondsSinceBoot"]
        assert began[1] == ended[1] and began[1].split(".")[0] == task[1], (began, ended, task)
        assert began[0] * 1e6 + monotonic < int(task[5]) < ended[0] * 1e6 + monotonic + 1e6, task
    assert ("Process exit", "duty") in seen or ("Process exit", "duty-100") in seen, seen
    names = [key for key in seen if key[0] == "Thread name" and key[1].startswith("name-")]
    assert len(names) >= 2, seen


def own_group(controller="cpu"):
    """The directory of this process's control group, in which another one can be made."""
    paths = {row.split(":", 2)[1]: row.rstrip("\n").split(":", 2)[2] for row in read("/proc/self/cgroup").splitlines()}
    mounts = [row.split() for row in read("/proc/self/mounts").splitlines()]
    for _, place, kind, options, *_ in mounts:
        mine = [p for c, p in paths.items() if controller in c.split(",")] if kind == "cgroup" else [paths.get("")]
        if kind == "cgroup2" or (kind == "cgroup" and controller in options.split(",")):
            if mine and mine[0]:
                yield place + mine[0]


@contextlib.contextmanager
def new_group():
    name = f"sysprof-test-{os.getpid()}"
    for place in own_group():
        path = os.path.join(place, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            yield name, path
        finally:
            os.rmdir(path)
        return
    raise Skip("no control group can be made here")


def test_control_groups():
    """A child is where its parent is, and where it was moved to."""
    path = scratch("groups.json")
    with new_group() as (name, place):
        script = f"{fixture('duty')} 2.2 30 & sh -c 'echo $$ >{place}/cgroup.procs && exec {fixture('chain')} 2.2' & wait"
        result = record("-o", path, "--", "/bin/sh", "-c", script)
        if "denied" in result.err or "cannot create" in result.err:
            raise Skip("processes cannot be moved into a control group here")
    groups = {}
    for _, data, _, _ in markers(checked(path)):
        if "cgroup" in data:
            groups.setdefault(re.sub("-.*", "", data["name"]), set()).add(os.path.basename(data["cgroup"]))
    assert groups["chain"] == {name}, groups
    assert name not in groups["duty"] and len(groups["duty"]) == 1, groups


def test_first_view_of_500_threads():
    """[F6] A few threads are shown, the busiest is selected."""
    path = scratch("crowd.json")
    record("-F", "999", "-o", path, "--", fixture("crowd"), "500", "1")
    profile = checked(path)
    samples = [sum(s is not None for s in t["samples"]["stack"]) for t in profile["threads"]]
    assert len(samples) > 50, samples
    visible, selected = profile["meta"]["initialVisibleThreads"], profile["meta"]["initialSelectedThreads"]
    assert 1 <= len(visible) <= 16, visible
    assert len(selected) == 1 and samples[selected[0]] == max(samples) and selected[0] in visible


def test_a_killed_recorder():
    base = scratch("killed")
    with Fixture("duty", "20", "100") as target, \
            Background(SYSPROF, "record", "-p", target.pid, "-o", base + ".sysprof") as recorder:
        started_sampling(recorder, base + ".sysprof")
        run("sleep", "1.6")
        recorder.signal(signal.SIGKILL)
        recorder.finish()
        pid = str(target.pid)
    run(SYSPROF, "convert", base + ".sysprof", "-o", base + ".json", check=0)
    profile = checked(base + ".json")
    assert memory(profile)[pid], profile["counters"]
    assert memory(profile, "memory of sysprof")[pid]
    assert not any(name == "Process exit" for name, *_ in markers(profile))


main(globals())
