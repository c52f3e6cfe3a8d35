#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""pprof files as Go's pprof and npm's pprof-format read them: names, values, labels, mappings; and Go's compiler."""
import glob
import json
import os
import re
import shutil

from libconsumers import CACHE, CONSUMERS, node, structure
from libe2e import TOP, Skip, fixture, folded, long, main, need_root, record, run, scratch, total, write
from libgo import RUNTIMES, environment, pprof

EXPECTED = os.path.join(TOP, "tests/golden/expected")


def top(path, *options):
    """{function: (flat, cumulative)}, with all functions."""
    text = pprof("-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", "-trim=false", *options, path)
    rows = {}
    for line in text.split("cum%\n")[1].splitlines():
        words = line.split(None, 5)
        name = words[5].removesuffix(" (inline)").removesuffix(" (partial-inline)")
        rows[name] = float(words[0].rstrip("smnu")), float(words[3].rstrip("smnu"))
    return rows


def test_goldens():
    """[X6] CheckValid passes, in Go's reader and in npm's, and a round trip through the latter changes nothing."""
    paths = sorted(glob.glob(os.path.join(EXPECTED, "*.pb")))
    assert len(paths) >= 6, paths
    files = structure(*paths)
    for path in paths:
        pprof("-raw", path)
    seen = run(node(), os.path.join(CONSUMERS, "check_pprof.mjs"), CACHE, *paths, check=0)
    for line in seen.out.splitlines():
        sums = json.loads(line)
        assert sums["samples"] == files[sums["file"]]["samples"], sums
        assert sums["cpu_ns"] == files[sums["file"]]["cpu_ns"], sums


def test_a_recording():
    """Labels, totals by function, and a compressed file."""
    base = scratch("recording")
    record("-o", base + ".pb.gz", "-o", base + ".folded", "--", fixture("chain"), "-t", 3, 1)
    path, rows = base + ".pb.gz", folded(base + ".folded")
    structure(path)
    run(node(), os.path.join(CONSUMERS, "check_pprof.mjs"), CACHE, path, check=0)
    shown = top(path, "-sample_index=samples")
    leaves, on_stack = {}, {}
    for frames, count in rows:
        names = [re.sub(r"_\[[k?]\]$", "", frame) for frame in frames[1:]]
        leaves[names[-1]] = leaves.get(names[-1], 0) + count
        for name in set(names):
            on_stack[name] = on_stack.get(name, 0) + count
    wanted = {name: (leaves.get(name, 0), count) for name, count in on_stack.items()}
    assert shown == wanted, (set(shown.items()) ^ set(wanted.items()))
    tags = pprof("-tags", "-sample_index=samples", path)
    for key in ("pid", "tid", "process", "thread", "cgroup"):
        assert re.search(rf"^ *{key}: Total {total(rows)}\b", tags, re.M), tags
    (name,) = {frames[0] for frames, _ in rows if frames[0].startswith("chain")} or {None}
    focused = pprof("-top", "-sample_index=samples", f"-tagfocus=thread={name}", path)
    assert f"Total samples = {total(rows)}" in focused, focused
    assert "leaf" in pprof("-traces", path)
    assert "leaf" in pprof("-top", "-tagroot=process,thread", path)
    raw = pprof("-raw", path)
    for said in ("start on CLOCK_MONOTONIC", "lost: ", "ticks: "):
        assert f"Comment: {said}" in raw, raw
    assert re.search(r"^1: 0x\w+/0x\w+/0x\w+ .*/chain [0-9a-f]{40} \[FN\]", raw, re.M), raw


def test_mappings_without_symbols():
    """What has no symbols may get them elsewhere, by build id and file offset; and never those of another file."""
    need_root()
    if not shutil.which("strip"):
        raise Skip("there is no strip")
    program = scratch("stripped")
    shutil.copy(fixture("chain"), program)
    run("strip", "--strip-all", program, check=0)
    path = scratch("stripped.pb.gz")
    record("-o", path, "--", program, "0.7")
    structure(path)
    raw = pprof("-raw", path)
    assert re.search(rf"^\d+: 0x0/0x\w+/0x0 {program} [0-9a-f]{{40}} $", raw + " ", re.M), raw
    assert "[stripped]" in top(path, "-sample_index=samples"), raw
    # another program at that path: its build id is another
    shutil.copy(fixture("loop"), program)
    shown = top(path, "-sample_index=samples")
    assert "[stripped]" in shown and "spin" not in shown, shown
    # the same program, with its symbols
    shutil.copy(fixture("chain"), program)
    shown = top(path, "-sample_index=samples")
    assert shown.get("leaf", (0, 0))[0] > 50 and shown.get("[stripped]", (0, 0))[0] == 0, shown
    for name in ("outer", "middle", "inner"):
        assert shown[name][1] >= shown["leaf"][0] * 0.9, shown


def imported(compiler, folder):
    """What the program imports, built: `go build -pgo` would compile all of Go again for each profile."""
    config = scratch("importcfg")
    write(config, run(compiler, "list", "-export", "-deps", "-f", "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}", ".",
                cwd=folder, check=0, timeout=300, env=environment()).out)
    return config


def inlined(compiler, folder, config, *profile):
    """The calls that this profile makes the compiler inline."""
    reported = run(compiler, "tool", "compile", "-m", "-p", "main", "-lang=go1.21", *profile, "-importcfg", config,
                   "-o", scratch("main.a"), "./main.go", cwd=folder, check=0, env=environment())
    return sorted(line for line in reported.out.splitlines() if re.search(r"main\.go:\S+ (inlining call to|can inline)", line))


@long
def test_go_profile_guided_optimization():
    """Compiled with our profile a Go program has the calls inlined that it has with its own."""
    need_root()
    compiler = next((path for path in (os.path.join(RUNTIMES, "go/bin/go"), shutil.which("go"))
                     if path and os.path.exists(path)), None)
    version = compiler and re.search(r"go1\.(\d+)", run(compiler, "version", check=0).out)
    if not version or int(version[1]) < 21:
        raise Skip("no Go of 1.21 or newer")
    folder = scratch("pgo")
    os.mkdir(folder)
    shutil.copy(os.path.join(TOP, "tests/fixtures/go/pgo.go"), os.path.join(folder, "main.go"))
    write(os.path.join(folder, "go.mod"), "module pgo\ngo 1.21\n")
    program, own, ours, config = scratch("unoptimized"), scratch("own.pprof"), scratch("ours.pb.gz"), imported(compiler, folder)
    run(compiler, "build", "-pgo=off", "-o", program, ".", cwd=folder, check=0, timeout=300, env=environment())
    without = inlined(compiler, folder, config)
    run(program, "3s", own, check=0)
    record("-o", ours, "--", program, "2s")
    structure(ours)
    with_own, with_ours = (inlined(compiler, folder, config, f"-pgoprofile={profile}") for profile in (own, ours))
    assert with_ours == with_own, (set(with_ours) ^ set(with_own))
    more = set(with_ours) - set(without)
    assert any("inlining call to (*table).hot" in line for line in more), more
    assert not any("(*table).cold" in line for line in with_ours), with_ours
    print(f"  {compiler}: {len(with_ours)} lines, {len(more)} of them for the profile's sake")


main(globals())
