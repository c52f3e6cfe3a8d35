#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized
"""The input of convert, report, open and diff: several files as one profile, standard input, a service out of an agent's windows."""
import collections
import gzip
import json
import os
import pty
import random
import re
import shlex
import subprocess
import time

from libe2e import (GOLDEN, SANITIZED, SYSPROF, Background, fixture, folded, long, main, need_root, quick, read, record, run, scratch, sysprof,
                    wait_for, write)
from libwindows import WINDOW, make, make_day

RECORDING = os.path.join(GOLDEN, "containers.sysprof")
CUT = os.path.join(GOLDEN, "cut-short.sysprof")
OTHER = os.path.join(GOLDEN, "waits.sysprof")


def shell(line, check=0, **options):
    """A line of sh, in which sysprof is the program and FILES are names."""
    return run("sh", "-c", f'sysprof() {{ {shlex.quote(SYSPROF)} "$@"; }}\n{line}', check=check, **options)


def report(*words, check=0):
    return json.loads(sysprof("report", "--json", "--top", 100000, *words, check=check).out)


def functions(found):
    """Not by file, after which code without a name is called: made-up recordings have one build-id for several files."""
    sums = collections.Counter()
    for row in found["rows"]:
        sums[re.sub(r"^\[.*", "[]", row["function"])] += row["self"]
    return +sums


def stacks(*files):
    sums = collections.Counter()
    for line in sysprof("convert", *files, "-o", "folded:-", check=0).out.splitlines():
        if not line.startswith("#"):
            path, count = line.rsplit(" ", 1)
            sums[re.sub(r"\[[^;]*\]", "[]", path)] += int(count)
    return +sums


# ---- standard input ----------------------------------------------------------------------------------------------------

@quick
def test_a_pipe_is_read_as_the_file():
    """A recording, perf.data's neighbours, folded stacks and gzip; in every command, from a pipe, from a file and in pieces."""
    sysprof("convert", RECORDING, "-o", scratch("x.folded"), "-o", scratch("x.pb.gz"), "-o", scratch("x.json.gz"), check=0)
    for path in RECORDING, scratch("x.folded"), scratch("x.pb.gz"), scratch("x.json.gz"):
        wanted = sysprof("report", path, check=0).out
        for line in f"cat {path} | sysprof report -", f"sysprof report - < {path}", \
                f"(head -c 1000 {path}; sleep 0.2; tail -c +1001 {path}) | sysprof report -":
            assert shell(line).out == wanted, (path, line)
    assert shell(f"cat {RECORDING} | sysprof convert - -o folded:-").out == read(scratch("x.folded"))
    same = shell(f"cat {RECORDING} | sysprof diff --json - {RECORDING}", check=None)
    assert same.status in (0, 4) and json.loads(same.out)["rows"] == [], same


@quick
def test_a_cut_pipe_is_read_up_to_its_last_chunk():
    """As when ssh dies: what came is a profile, and what is missing is said."""
    size = os.path.getsize(RECORDING)
    done = shell(f"head -c {size // 3} {RECORDING} | sysprof report --json -")
    assert "standard input: the last chunk is truncated" in done.err and "has no end" in done.err, done.err
    assert json.loads(done.out)["summary"]["cut_short"] is True
    for line, said in (("sysprof report - < /dev/null", "is not a regular file|the file is empty"),
                       (": | sysprof report -", "the file is empty"),
                       (f"head -c 30 {RECORDING} | sysprof report -", "ends within its header"),
                       (f"head -c 80 {RECORDING} | sysprof report -", "no readable chunk"),
                       (f"gzip -c {GOLDEN}/containers.folded | head -c 60 | sysprof report -", "cut off"),
                       ("sysprof report - < /", "Is a directory"),
                       ("sysprof report - <&-", "Bad file descriptor")):
        done = shell(line, check=1)
        assert re.search(said, done.err) and "standard input" in done.err and not done.out, (line, done)


def test_standard_input_is_read_once_and_is_no_terminal():
    for words in ("-", "-"), ("-", RECORDING, "-"):
        assert "twice" in sysprof("report", *words, check=2).err
    assert "twice" in sysprof("diff", "-", "-", check=2).err
    ours, theirs = pty.openpty()
    try:
        for command in ("report", "-"), ("convert", "-", "-o", scratch("no.folded")), ("open", "-"), ("diff", "-", RECORDING):
            p = subprocess.run([SYSPROF, *command], stdin=theirs, capture_output=True, text=True, timeout=120, check=False)
            assert p.returncode == 2 and "is a terminal" in p.stderr, (command, p)
    finally:
        os.close(ours)
        os.close(theirs)


@quick
def test_a_slice_of_a_pipe_is_that_of_the_file():
    """-@… is no option: wherever it is among them, the order of the words is kept."""
    wanted = sysprof("report", "--json", f"{OTHER}@0.02s-", check=0).out
    for words in "report --json -@0.02s-", "report -@0.02s- --json", "report --json -- -@0.02s-":
        assert shell(f"cat {OTHER} | sysprof {words}").out == wanted, words
    sides = shell(f"cat {OTHER} | sysprof diff -@0.02s- --json {OTHER}", check=None)
    paths = [(file["side"], os.path.basename(file["path"])) for file in json.loads(sides.out)["files"]]
    assert paths == [("old", "-@0.02s-"), ("new", "waits.sysprof")], paths
    for word, said in ("-@soon", "no markers, and soon is no time"), ("-q@5s-", "unknown option"), ("-@", "the value is empty"):
        done = shell(f"cat {OTHER} | sysprof report {word}", check=None)
        assert done.status and re.search(said, done.err) and not done.out, (word, done)
    assert "twice" in shell("sysprof report - -@5s-", check=2).err


@quick
def test_slices_that_are_empty_reversed_or_beyond_the_end():
    for words, said in ((f"{OTHER}@0.01s-0.01s", "is empty"), (f"{OTHER}@0.01s+0s", "is empty"), (f"{OTHER}@-0s", "is empty"),
                        (f"{OTHER}@0.02s-0.01s", "ends before it begins")):
        for command in ("report",), ("convert", "-o", scratch("never.json")), ("diff", OTHER):
            done = sysprof(*command, words, check=1)
            assert said in done.err and not done.out, (words, done)
    assert not os.path.exists(scratch("never.json"))
    beyond = f"{OTHER}@1000s-2000s"
    for suffix in "json", "json.gz", "cpuprofile", "trace.json", "pb.gz", "folded", "html", "txt":
        done = sysprof("convert", beyond, "-o", scratch(f"beyond.{suffix}"), check=0)
        assert "keeps none of its" in done.err and "by @1000s-2000s" in done.err, done
    assert not report(beyond)["rows"]
    assert not report(scratch("beyond.pb.gz"))["rows"]


@quick
def test_a_part_that_cannot_be_is_refused_with_the_reason():
    os.symlink(OTHER, scratch("again.sysprof"))
    for words in (f"{OTHER}@0s-0.01s", f"{OTHER}@0.02s-"), (OTHER, scratch("again.sysprof")):
        done = sysprof("report", *words, check=1)
        assert "same file" in done.err and "sysprof diff" in done.err and not done.out, done
    done = sysprof("report", scratch("backup@2024-12"), check=1)
    assert "cannot open" in done.err and "backup@2024-12: " in done.err, done
    write(scratch("plain.folded"), "main;f 3\n")
    for words, said in (("--cpu", "0"), "its samples have no CPU"), (("--state", "lock"), "it has no waits"):
        assert said in sysprof("report", scratch("plain.folded"), *words, check=1).err, words
    waits = sysprof("report", OTHER, "--state", "sleep,lock,poll,disk,runnable,other", check=0)
    assert "keeps only waits" in waits.err and "--wall" in waits.err, waits.err


@quick
def test_what_a_file_does_not_say_is_unknown():
    """That no loss and no cut stack is in a file of another format does not mean that there was none."""
    write(scratch("plain.folded"), "main;f 3\n")
    sysprof("convert", RECORDING, "-o", scratch("ours.pb.gz"), check=0)
    for path, known in (RECORDING, True), (scratch("plain.folded"), False), (scratch("ours.pb.gz"), False):
        header = sysprof("report", path, check=0).out
        summary = json.loads(sysprof("report", path, "--json", check=0).out)["summary"]
        unknown = re.findall(r"^# (lost|stacks)  .*unknown", header, re.M)
        assert unknown == ([] if known else ["lost", "stacks"]), header
        assert [summary.get("losses_known", True), summary["complete_share"] is not None,
                summary["clock"] is not None] == 3 * [known], summary
        assert [summary[f"{name}_ns"] is not None for name in ("start_monotonic", "duration")] == 2 * [known], summary
        assert ("format" in summary["meta"]) != known, summary
    times = '{"$schema":"x","shared":{"frames":[{"name":"f"}]},"profiles":[{"type":"evented","unit":"seconds","events":[' \
            '{"type":"O","frame":0,"at":5},{"type":"C","frame":0,"at":7}]}]}'
    write(scratch("times.speedscope.json"), times)
    summary = json.loads(sysprof("report", scratch("times.speedscope.json"), "--json", check=0).out)["summary"]
    assert [summary[f"{name}_ns"] for name in ("start_monotonic", "start_realtime", "period")] == 3 * [None] and summary["duration_ns"] // 10**9 == 2, summary


def test_the_copy_of_a_pipe_has_no_name_and_goes_to_tmpdir():
    place = scratch("tmp")
    os.makedirs(place, exist_ok=True)
    environment = {**os.environ, "TMPDIR": place}
    shell(f"cat {RECORDING} | sysprof report -", env=environment)
    assert os.listdir(place) == []
    wanted = sysprof("report", RECORDING, check=0).out
    for nowhere in "/nonexistent", "/proc":  # then it is in memory
        assert shell(f"cat {RECORDING} | sysprof report -", env={**environment, "TMPDIR": nowhere}).out == wanted


@quick
def test_a_recording_goes_through_a_pipe_while_it_is_made():
    """`ssh host sysprof record … -o sysprof:- | sysprof report -`, with sh in place of ssh."""
    need_root()
    spin = fixture("loop")
    done = shell(f"sh -c '{shlex.quote(SYSPROF)} record -q -d 1 -o sysprof:- -- {spin} 3' | sysprof report --json -", timeout=90)
    found = json.loads(done.out)
    assert found["summary"]["samples"] > 20 and not found["summary"]["cut_short"], found["summary"]


# ---- several files -----------------------------------------------------------------------------------------------------

def test_functions_of_several_files_add_up_in_every_format():
    """Golden recordings, each with the next one that it can be one profile with: report a b = both added, in any order; and so
    are their folded stacks."""
    names = sorted(n for n in os.listdir(GOLDEN) if n.endswith(".sysprof"))
    pairs = 0
    for i, name in enumerate(names):
        for other in names[i + 1:] + names[:i]:
            files = [os.path.join(GOLDEN, n) for n in (name, other)]
            both = sysprof("report", "--json", "--top", 100000, *files)
            if not both.status:
                break
            assert "cannot be one profile" in both.err, (files, both.err)
        else:
            continue  # it has an event or a period of its own
        apart, both = [report(file) for file in files], json.loads(both.out)
        assert functions(both) == functions(apart[0]) + functions(apart[1]), files
        for key in "samples", "cpu_ns":
            assert both["summary"][key] == sum(found["summary"][key] for found in apart), (files, key)
        for key, lost in both["summary"]["books"].items():
            assert lost == sum(found["summary"]["books"][key] for found in apart), (files, key)
        assert functions(report(*reversed(files))) == functions(both), files
        assert stacks(*files) == stacks(files[0]) + stacks(files[1]), files
        pairs += 1
    assert pairs > len(names) / 3, pairs


@quick
def test_how_times_are_related_is_said():
    header = sysprof("report", CUT, OTHER, check=0).out
    assert re.search(r"^# inputs +2 files (one after the other|on one time axis.*): cut-short\.sysprof, waits\.sysprof$", header, re.M), header[:500]
    refused = sysprof("report", RECORDING, CUT, check=1)
    assert "cannot be one profile: a sample stands for 5.025 ms in" in refused.err and "at one rate" in refused.err, refused
    write(scratch("a.folded"), "main;f 3\n")
    write(scratch("b.folded"), "main;f 4\nmain;g 1\n")
    found = sysprof("report", scratch("a.folded"), scratch("b.folded"), check=0).out
    assert "2 files as one, without times" in found, found[:300]
    assert sysprof("convert", scratch("a.folded"), scratch("b.folded"), "-o", "folded:-", check=0).out == "main;f 7\nmain;g 1\n"
    write(scratch("c.folded"), "main;f 0.5\n")
    refused = sysprof("report", scratch("a.folded"), scratch("c.folded"), check=1)
    assert "cannot be one profile" in refused.err and "c.folded" in refused.err and not refused.out, refused
    missing = sysprof("report", scratch("a.folded"), scratch("missing.folded"), check=1)
    assert "missing.folded" in missing.err and not missing.out, missing


def test_two_recordings_of_one_process_are_one_process():
    """One clock: one axis, with the time between them; the process and its threads are one each."""
    need_root()
    with Background(fixture("loop"), "60") as target:
        paths = [scratch(f"part-{i}.sysprof") for i in range(2)]
        for path in paths:
            record("-p", target.p.pid, "-d", "1", "-q", "-o", path)
    found = [report(path, "--by", "thread") for path in paths]
    both = report(*paths, "--by", "thread")
    assert both["summary"]["threads"] == 1, both["summary"]
    assert both["summary"]["samples"] == sum(f["summary"]["samples"] for f in found)
    first, last = (f["summary"] for f in found)
    assert both["summary"]["start_monotonic_ns"] == first["start_monotonic_ns"]
    assert both["summary"]["duration_ns"] == last["start_monotonic_ns"] + last["duration_ns"] - first["start_monotonic_ns"]
    assert "2 files on one time axis (" in sysprof("report", *reversed(paths), check=0).out
    sysprof("convert", *paths, "-o", scratch("both.json.gz"), "-o", scratch("both.html"), "-o", scratch("both.trace.json"), check=0)
    with gzip.open(scratch("both.json.gz")) as file:
        profile = json.load(file)
    assert len([t for t in profile["threads"] if t["samples"]["length"]]) == 1
    write(scratch("copy.sysprof"), read(paths[0], "rb"))
    refused = sysprof("report", *paths, scratch("copy.sysprof"), check=1)
    assert "same recording" in refused.err and "give a file once" in refused.err and not refused.out, refused
    sysprof("report", f"{paths[0]}@-0.5s", f"{paths[1]}@0.5s-", check=0)


# ---- windows of a service ----------------------------------------------------------------------------------------------

@quick
def test_windows_of_a_service_are_one_profile():
    place, now = scratch("windows"), time.time()
    make(place, now - 600, now, random.Random(5))
    span = "--service", "shop", "--span", "-1h"
    found = report(*span, place)
    windows = len([n for n in os.listdir(place) if n.endswith(".pb.gz")])
    assert {row["function"] for row in found["rows"]} <= {"main", "serve", "parse", "render", "send", "idle"}, found["rows"]
    assert abs(found["summary"]["duration_ns"] / 1e9 - windows * WINDOW) < 1, found["summary"]
    assert abs(found["summary"]["start_realtime_ns"] / 1e9 - (now - 600)) < 1, found["summary"]
    assert found["summary"]["cpu_ns"] == found["summary"]["samples"] * 10_000_000, found["summary"]
    text = sysprof("report", *span, place, check=0).out
    assert f"{windows} windows, times are exact to 15 s" in text, text[:400]
    parts = [report("--service", "shop", "--span", f"{m} minutes ago+{n}m", place) for m, n in ((11, 6), (5, 5))]
    assert functions(found) == functions(parts[0]) + functions(parts[1])
    sysprof("convert", *span, place, "-o", scratch("shop.html"), "-o", scratch("shop.folded"), check=0)
    assert sum(count for _, count in folded(scratch("shop.folded"))) == found["summary"]["samples"]


def test_spans_and_directories_that_are_refused():
    place, now = scratch("few"), time.time()
    make(place, now - 60, now, random.Random(6))
    for words, said, status in (
            (("--service", "shop", "--span", "1 day ago+1h", place), "there is no window of shop", 1),
            (("--service", "nothing", "--span", "-1h", place), "no sample of the service nothing", 1),
            (("--service", "shop", "--span", "-1h", scratch("missing")), "cannot open the directory", 1),
            (("--service", "shop", "--span", "soon", place), "expected a span of time", 2),
            (("--span", "-1h", place), "need each other", 2),
            (("--service", "shop", "--span", "-1h", place, place), "one directory", 2),
            (("--service", "shop", "--service", "other", "--span", "-1h", place), "one --service", 2),
            (("--service", "sh*", "--span", "-1h", place), "patterns are a filter of files", 2),
            (("--service", "shop", "--wall", "--span", "-1h", scratch("missing")), "does not read the windows", 1),
            ((place,), "--service NAME --span", 1)):
        done = sysprof("report", *words, check=status)
        assert said in done.err and not done.out, (words, done)


@long
def test_a_day_of_windows_as_a_page():
    """With the sanitizers three hours: more windows of the same kind read no other memory."""
    place = scratch("day")
    ticks = make_day(place, time.time(), random.Random(7), windows=720 if SANITIZED else 5760)
    sysprof("convert", "--service", "shop", "--span", "-25h", place, "-o", scratch("day.html"), "-o", scratch("day.folded"), check=0, timeout=200)
    assert sum(count for _, count in folded(scratch("day.folded"))) == ticks
    assert os.path.getsize(scratch("day.html")) > 1 << (18 if SANITIZED else 20)


main(globals())
