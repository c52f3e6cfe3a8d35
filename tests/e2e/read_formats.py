#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""
What is read of random files of other tools is what a model of the formats says (tests/models/profiles.py): totals, whether
the number of samples is known, call paths and threads.
"""
import collections
import fractions
import json
import os
import random
import struct
import subprocess
import sys

from libe2e import BUILD, SANITIZED, TOP, long, main, quick, scratch, sysprof, write
from libreport import invalid

sys.path.append(os.path.join(TOP, "tests/models"))
import misread  # noqa: E402
import profiles  # noqa: E402

FORMATS_WRITTEN = "folded", "pprof", "cpuprofile", "trace", "firefox"
KEPT, ALL, ADDRESSES = 100, 101, 102  # numbers of read_profiles
SHOWN = 5  # files that differ


def read(tool):
    """The answer to a file, as the model has it: a refusal, or known, samples, left out, paths and threads."""
    lines = []
    while (line := tool.stdout.readline()) not in (b"\n", b""):
        lines.append(line.decode(errors="surrogateescape").removesuffix("\n"))
    if not lines or lines[0].startswith("refused"):
        return lines or "it ended"
    _, known, samples, _, _, left_out = lines[0].split(" ")
    paths, threads = collections.defaultdict(lambda: [0, 0]), {}
    for line in lines[1:]:
        kind, events, cpu, name = line.split(" ", 3)
        if kind == "thread":
            sums = threads.setdefault(name, [0, 0])
        else:
            sums = paths[name]
        sums[0] += int(events)
        sums[1] += int(cpu)
    return known == "1", int(samples), left_out == "1", dict(paths), threads


def wanted(e):
    return e.known, e.samples, e.left_out, dict(e.paths), {name: sums for name, sums in e.threads.items()}


def as_wanted(got, want):
    """The number of samples counts if it is known."""
    return got if len(got) != len(want) or want[0] else got[:1] + want[1:2] + got[2:]


def difference(got, want):
    if len(got) != len(want):
        return got
    names = ["known", "samples", "left out", "paths", "threads"]
    return [f"{name}: {g}, expected {w}" for name, g, w in zip(names, got, want) if g != w]


def start():
    return subprocess.Popen([os.path.join(BUILD, "tests/e2e/read_profiles")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(tool, data, through=0):
    tool.stdin.write(struct.pack("=QQ", len(data), through) + data)
    tool.stdin.flush()
    return read(tool)


def in_proportion(a, b):
    return a.keys() == b.keys() and len({fractions.Fraction(a[name], b[name]) for name in a}) == 1


def kept(read_first, read_again, through):
    """What both have in common if the format keeps all that it has a place for: folded stacks have no CPU time, and of events
    their numbers alone. Formats differ in whose CPU time is what a thread used
    after its last sample, or until the next one, so the sum counts."""
    known, samples, _, paths, threads = read_first
    again_known, again_samples, _, again_paths, again_threads = read_again
    def events(p):
        return {name: sums[0] for name, sums in p.items() if sums[0]}
    def cpu(p):
        return sum(sums[1] for sums in p.values() if sums[0])  # threads without a sample are in no Firefox file
    # pprof files have counts of samples where CPU time is in proportion to them, with the same shares
    if through != "pprof" or not in_proportion(events(paths), events(again_paths)):
        yield "events", events(paths), events(again_paths)
    if through != "folded":
        yield "known", known, again_known
        yield "samples", known and samples, again_known and again_samples
    if through in ("pprof", "firefox", "trace"):
        yield "CPU time of all", cpu(threads), cpu(again_threads)


def check_again(first, count):
    """Each format in all formats."""
    differing, tool = [], start()
    for seed in range(first, first + count):
        name = list(profiles.FORMATS)[seed % len(profiles.FORMATS)]
        data, _ = profiles.FORMATS[name](random.Random(seed))
        read_first = ask(tool, data)
        if not read_first[1]:
            continue  # a thread that was idle all the time
        for number, through in enumerate(FORMATS_WRITTEN, 1):
            read_again = ask(tool, data, number)
            assert read_again != "it ended", f"seed {seed} ({name}) through {through}: the reader ended"
            if through == "cpuprofile" and (len(read_first[4]) > 1 or name == "perf.data"):
                continue  # it has one thread; perf.data has several of one name
            if len(read_again) != 5:
                differing.append(f"seed {seed} ({name}) through {through}: {read_again}")
                continue
            differing += [f"seed {seed} ({name}) through {through}: {what}: {a}, then {b}"[:1500]
                          for what, a, b in kept(read_first, read_again, through) if a != b]
    tool.stdin.close()
    assert tool.wait() == 0
    assert not differing, f"{len(differing)} differ\n" + "\n".join(differing[:SHOWN])


def check(first, count):
    differing, tool = [], start()
    for seed in range(first, first + count):
        name = list(profiles.FORMATS)[seed % len(profiles.FORMATS)]
        data, expected = profiles.FORMATS[name](random.Random(seed))
        got = ask(tool, data, ADDRESSES if name == "perf.data" else 0)
        if got == "it ended":
            raise AssertionError(f"seed {seed} ({name}): the reader ended")
        want = wanted(expected)
        got = as_wanted(got, want)
        if wrong := difference(got, want) if got != want else None:
            differing.append(f"seed {seed} ({name}): {str(wrong)[:1500]}")
    tool.stdin.close()
    assert tool.wait() == 0
    assert not differing, f"{len(differing)} of {count} differ\n" + "\n".join(differing[:SHOWN])


def joined(answers):
    """Call paths and threads of several files: those of one name add up."""
    paths, threads = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(lambda: [0, 0])
    for answer in answers:
        for sums, of_file in (paths, answer[3]), (threads, answer[4]):
            for name, (events, cpu) in of_file.items():
                sums[name][0] += events
                sums[name][1] += cpu
    return answers[0][0], sum(a[1] for a in answers), dict(paths), dict(threads)


def check_joined(first, count):
    """Two to five files as one, of any formats: as many as have one unit."""
    differing, several, refused, tool = [], 0, 0, start()
    for seed in range(first, first + count):
        rng, kept = random.Random(seed), []
        names = [rng.choice(list(profiles.FORMATS)) for _ in range(rng.randrange(2, 6))]
        for name in names:
            answer = ask(tool, profiles.FORMATS[name](rng)[0], KEPT)
            if len(answer) == 5:
                kept.append(answer)
                continue
            refused += 1
            assert kept and "cannot be one profile" in answer[0], (seed, names, answer)
        got = ask(tool, b"", ALL)
        assert len(got) == 5, (seed, names, got)
        several += len(kept) > 1
        got = got[0], got[1], dict(got[3]), got[4]
        if got != joined(kept):
            differing.append(f"seed {seed} ({names}): {got}, expected {joined(kept)}"[:1500])
    tool.stdin.close()
    assert tool.wait() == 0
    assert not differing, f"{len(differing)} of {count} differ\n" + "\n".join(differing[:SHOWN])
    assert several > count / 4 and refused > count / 4, (several, refused)


@quick
def test_reports_say_that_weights_are_no_samples():
    write(scratch("seconds.folded"), "main;a 0.5\nmain;b 1.25\n")
    write(scratch("cpu.folded"), "# weights: 7 ns of CPU time\nmain;a 5\nmain;b 1\n")
    reports = [json.loads(sysprof("report", scratch(f"{name}.folded"), "--json", *options, check=0).out)
               for name in ("seconds", "cpu") for options in ([], ["--tree"], ["--by", "thread"])]
    assert not invalid(*reports), invalid(*reports)
    for report in reports:
        assert report["summary"]["samples_known"] is False, report["summary"]
        assert all(row.get("self_interval", row.get("total_interval")) is None for row in report["rows"]), report["rows"]
    assert [r["self_share"] for r in reports[0]["rows"]][:2] == [0.714286, 0.285714], reports[0]["rows"]
    assert reports[3]["summary"]["tick_cpu_ns"] == 7 and reports[3]["summary"]["cpu_ns"] == 42, reports[3]["summary"]
    for options in ([], ["--tree"]):
        text = sysprof("report", scratch("cpu.folded"), *options, check=0).out
        assert "number unknown: the file has weights of CPU time, 0.000007 ms each" in text, text
    sysprof("convert", scratch("cpu.folded"), "-o", scratch("cpu.trace.json"), check=0)
    with open(scratch("cpu.trace.json"), encoding="utf-8") as file:
        spans = [event["args"] for event in json.load(file)["traceEvents"] if "cpuTimeNs" in event.get("args", {})]
    assert [(span.get("samples"), span["weight"], span["cpuTimeNs"]) for span in spans] == [(None, 6, 42)], spans


@quick
def test_files_that_were_misread_or_refused():
    tool, differing = start(), []
    for what, (data, expected) in misread.FILES.items():
        want = wanted(expected)
        got = as_wanted(ask(tool, data), want)
        if got != want:
            differing.append(f"{what}: {difference(got, want)}")
    assert not differing, "\n".join(differing)


@quick
def test_200_files_are_read_as_the_model_says():
    check(0, 200)


@quick
def test_100_files_are_read_back_from_every_format():
    check_again(0, 100)


@quick
def test_files_of_200_groups_add_up():
    check_joined(0, 200)


MUCH = 10 if SANITIZED else 1  # natively all files, with the sanitizers a tenth


@long
def test_files_of_3000_groups_add_up():
    check_joined(1000, 3000 // MUCH)


@long
def test_2000_files_are_read_back_from_every_format():
    check_again(20000, 2000 // MUCH)


@long
def test_10000_files_are_read_as_the_model_says():
    check(1000, 10000 // MUCH)


main(globals())
