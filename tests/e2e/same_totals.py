#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""All files of one run agree: by thread as many samples, and the same CPU time."""
import gzip
import json
import os
import re

import libe2e as e
from libconsumers import structure

import read_pprof

CPU_TOLERANCE = 1000  # ns
FORMATS = ("json.gz", "json", "trace.json", "trace.json.gz", "pb.gz", "cpuprofile", "folded", "html", "txt")
TOP = 20


def files_of(folder, suffix):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if name.endswith("." + suffix))


class Run:
    """One recording that was written in every format at once."""

    def __init__(self, name, *target, beside=()):
        e.need_root()
        self.folder = e.scratch(name)
        os.mkdir(self.folder)
        self.recording = os.path.join(self.folder, "x.sysprof")
        running = [e.Background(*command) for command in beside]
        try:
            self.reported = e.record("-o", self.recording, *self.outputs(self.folder), *target)
        finally:
            for process in running:
                process.__exit__()
        self.chrome_files = files_of(self.folder, "cpuprofile")
        checked = structure(*(path for suffix in ("cpuprofile", "folded", "json", "json.gz", "pb.gz") for path in files_of(self.folder, suffix)))
        self.summaries = {os.path.basename(path): found for path, found in checked.items()}

    @staticmethod
    def outputs(folder):
        return [word for suffix in FORMATS for word in ("-o", os.path.join(folder, "x." + suffix))]


def of_thread(rows):
    """{(pid, tid): [(samples, CPU time) of each life]} without an order of lives."""
    threads = {}
    for pid, tid, samples, cpu_ns in rows:
        threads.setdefault((pid, tid), []).append((samples, cpu_ns))
    return {key: sorted(lives) for key, lives in threads.items()}


def of_summary(summary):
    return of_thread((int(t["pid"].split(".")[0]), int(t["tid"].split(".")[0]), t["samples"],
                      t["cpu_ns"]) for t in summary["threads"] if not t["pid"].startswith("unsampled "))


def of_report(recording):
    rows = json.loads(e.sysprof("report", recording, "--by", "thread", "--top", 1000000, "--json",
                                check=0).out)["rows"]
    return of_thread((r["pid"], r["tid"], r["self"], r["cpu_ns"]) for r in rows)


def compare(a, b, what):
    """The same threads, as many lives of each, as many samples and as much CPU time."""
    assert set(a) == set(b), (what, set(a) ^ set(b))
    for key, lives in a.items():
        others = b[key]
        assert [s for s, _ in lives] == [s for s, _ in others], (what, key, lives, others)
        for (_, cpu), (_, other_cpu) in zip(lives, others):
            assert abs(cpu - other_cpu) <= CPU_TOLERANCE, (what, key, lives, others)


def sums_of(lives):
    return [(sum(samples for samples, _ in lives), sum(cpu for _, cpu in lives))]


def merged(stacks):
    """({function: samples on top}, {function: samples on stack}) of (names from the root on, samples)."""
    flat, cumulative = {}, {}
    for names, count in stacks:
        flat[names[-1]] = flat.get(names[-1], 0) + count
        for name in set(names):
            cumulative[name] = cumulative.get(name, 0) + count
    return flat, cumulative


def of_firefox(path):
    return [([name for name, _ in frames], 1) for thread in e.firefox_threads(path)
            for _, frames in thread.samples()]


def of_trace(path):
    rows, nodes = {}, {}
    for event in e.load_json(path)["traceEvents"]:
        if event["name"] != "ProfileChunk":
            continue
        profile = event["args"]["data"]["cpuProfile"]
        for node in profile["nodes"]:
            name = node["callFrame"]["functionName"] or "(anonymous)"  # which viewers show
            nodes[node["id"]] = nodes[node["parent"]] + [name] if "parent" in node else []
        for sample in profile["samples"]:
            rows[sample] = rows.get(sample, 0) + 1
    return [(nodes[node], count) for node, count in rows.items() if nodes[node] != ["(idle)"]]


def of_pprof(path):
    with gzip.open(path) as file:
        profile = read_pprof.read_pprof(file.read())
    strings = profile["string_table"]
    functions = [strings[f["name"]] for f in profile["function"]]
    files = [f"[{os.path.basename(strings[m['filename']])}]" for m in profile["mapping"]]
    names = [[functions[line["function_id"] - 1] for line in reversed(location["line"])]
             or [files[location["mapping_id"] - 1]] for location in profile["location"]]
    return [([name for number in reversed(sample["location_id"]) for name in names[number - 1]],
             sample["value"][0]) for sample in profile["sample"] if sample["value"][0]]


def of_folded(path):
    return [([re.sub(r"_\[[k?]\]$", "", frame) for frame in frames[1:]], count)
            for frames, count in e.folded(path)]


def check_functions(run):
    """The same functions with the same samples, on top and on the stack, in every format."""
    path = os.path.join(run.folder, "x.")
    wanted = merged(of_folded(path + "folded"))
    for name, stacks in (("json", of_firefox(path + "json")), ("trace.json", of_trace(path + "trace.json")),
                         ("pb.gz", of_pprof(path + "pb.gz"))):
        seen = merged(stacks)
        for a, b in zip(wanted, seen):
            # folded stacks have other characters for a few
            a, b = (sorted((-count, function) for function, count in counts.items()
                           if function.isascii() and function.isprintable() and ";" not in function)
                    for counts in (a, b))
            assert a[:TOP] == b[:TOP], (name, set(a[:TOP]) ^ set(b[:TOP]))
    assert len(wanted[0]) > 3, wanted


def check_threads(run):
    firefox = of_summary(run.summaries["x.json.gz"])
    compare(firefox, of_summary(run.summaries["x.json"]), "plain and compressed")
    report = of_report(run.recording)
    compare(firefox, report, "Firefox and report")
    for name in ("x.trace.json", "x.trace.json.gz"):
        compare(firefox, of_summary(run.summaries[name]), name)
    # pprof has the CPU time of threads without samples, too, and its labels have no lives
    pprof = of_summary(run.summaries["x.pb.gz"])
    sampled = {key: lives for key, lives in pprof.items() if sum(samples for samples, _ in lives)}
    compare({key: sums_of(lives) for key, lives in firefox.items()},
            {key: sums_of(lives) for key, lives in sampled.items()}, "x.pb.gz")
    return firefox


def check_chrome(run, firefox):
    """The busiest thread's file and its siblings, each against its thread; none forgotten."""
    total = sum(samples for lives in firefox.values() for samples, _ in lives)
    seen = []
    for path in run.chrome_files:
        name = os.path.basename(path)
        thread, = run.summaries[name]["threads"]
        pid, tid = int(thread["pid"]), int(thread["tid"])
        if name != "x.cpuprofile":
            match = re.fullmatch(r"x\.(\d+)-(\d+)(-\d+)?\.cpuprofile", name)
            assert match and (int(match[1]), int(match[2])) == (pid, tid), (name, thread)
        assert any(samples == thread["samples"] and abs(cpu - thread["cpu_ns"]) <= CPU_TOLERANCE
                   for samples, cpu in firefox.get((pid, tid), ())), (name, thread)
        seen.append((pid, tid, thread["samples"]))
    assert len(set(seen)) == len(seen), seen
    wanted = sorted((samples, pid, tid) for (pid, tid), lives in firefox.items()
                    for samples, _ in lives if samples * 100 >= total)
    assert sorted((s, p, t) for p, t, s in seen) == wanted, (seen, wanted)
    assert run.summaries["x.cpuprofile"]["samples"] == wanted[-1][0], wanted
    return len(seen)


def check_folded(run, firefox):
    """It has no threads: all samples together, and those of each name."""
    rows = e.folded(os.path.join(run.folder, "x.folded"))
    total = sum(samples for lives in firefox.values() for samples, _ in lives)
    assert e.total(rows) == run.summaries["x.folded"]["samples"] == total, total
    # threads that were never called otherwise, so that their samples can be found by name
    by_name = {}
    for thread in e.firefox_threads(os.path.join(run.folder, "x.json")):
        by_name[thread.name] = by_name.get(thread.name, 0) + thread.count
    return e.comms(rows), by_name


def check_text(run, firefox):
    total = sum(samples for lives in firefox.values() for samples, _ in lives)
    for text in (run.reported.err, open(os.path.join(run.folder, "x.txt"), encoding="utf-8").read()):
        assert re.search(rf"\b{total}\b", text), (total, text)


def check(run):
    firefox = check_threads(run)
    count = check_chrome(run, firefox)
    folded, by_name = check_folded(run, firefox)
    check_text(run, firefox)
    check_functions(run)
    print(f"  {len(firefox)} threads, {count} .cpuprofile files")
    return firefox, folded, by_name


@e.long
def test_whole_system():
    """Processes that come and go, threads, names that change, other people's programs."""
    run = Run("system", "-a", "-F", 999, "-d", 2, beside=(
        (e.fixture("duty"), 60, 40, 20, 5),
        (e.fixture("storm"), "-N", "same", "-j", 2, "exec", 100000, 2000, "/dev/null"),
        (e.fixture("chain"), "-t", 3, 60)))
    _, folded, by_name = check(run)
    # these never change their names once they run
    for name in ("chain",):
        assert folded[name] == by_name[name], (name, folded[name], by_name[name])


def test_threads_of_a_command():
    """Everything that was sampled has a file, since nothing is small here."""
    run = Run("command", "--", e.fixture("chain"), "-t", 4, 1)
    firefox, folded, by_name = check(run)
    assert folded["chain"] == by_name["chain"], (folded, by_name)
    big = [key for key, lives in firefox.items() for samples, _ in lives
           if samples * 100 >= e.total(e.folded(os.path.join(run.folder, "x.folded")))]
    assert len(big) >= 4 and len(run.chrome_files) == len(big), (firefox, run.chrome_files)


def test_lives_of_one_number():
    """An execve makes a new life of the same pid and tid: it is separate in every file."""
    run = Run("lives", "--", "sh", "-c",
              f"x=0; while [ $x -lt 100000 ]; do x=$((x+1)); done; exec {e.fixture('chain')} 0.5")
    firefox, _, _ = check(run)
    assert any(len(lives) > 1 for lives in firefox.values()), firefox
    assert any(re.search(r"-\d+-2\.cpuprofile$", path) or path.endswith("x.cpuprofile")
               for path in run.chrome_files), run.chrome_files


e.main(globals())
