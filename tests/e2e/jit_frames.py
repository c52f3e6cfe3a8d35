#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Engines that keep no frame pointers, or report their code only on request: whole stacks, and what the summary advises."""
import math
import os
import shutil

from jit_runtimes import forget_map, jit_line
from libe2e import Background, Skip, folded, has_chain, load_json, long, main, record, run, scratch, share, user_part
from librecorded import FIXTURES, RUNTIMES
from unwind import is_rooted, warm_samples

SECONDS = 2.5


def command(name, package):
    path = shutil.which(name)
    if not path:
        raise Skip(f"there is no {name} (package {package})")
    return path


def fetched(name):
    path = os.path.join(RUNTIMES, name)
    if not os.path.exists(path):
        raise Skip(f"there is no {path}")
    return path


def stacks_of(*arguments, **options):
    """(Firefox profile, folded stacks, summary) of a command."""
    path, stacks = scratch("frames.json"), scratch("frames.folded")
    result = record("-F", 1499, "-o", path, "-o", stacks, "--", *arguments, timeout=120, cwd=scratch(""), **options)
    return path, [(user_part(f), n) for f, n in folded(stacks)], result


def in_made_code(frames):
    return any(f.startswith("0x") for f in frames)


def check_whole(path, least):
    rows = [(frames, 1) for _, frames in warm_samples(path)]
    whole = share(rows, is_rooted)
    print(f"  {whole:.4f} of {len(rows)} stacks reach the root")
    # few stacks may be cut by chance: three standard errors
    error = 3 * math.sqrt(least * (1 - least) / len(rows))
    assert len(rows) > 100 and whole >= least - error, (whole, len(rows))


# ---- frames that are read from the process -------------------------------------------------------

def callers_of_lua(rows):
    """The frames below the last lua_pcall: how the program came to the interpreter, which has .eh_frame."""
    found = set()
    for frames, _ in rows:
        if "lua_pcall" in frames:
            found.add(tuple(frames[:len(frames) - frames[::-1].index("lua_pcall")]))
    return found


def test_luajit():
    """In traces as in the interpreter: both lie in the same frame of C."""
    luajit, program = command("luajit", "luajit"), os.path.join(FIXTURES, "traces.lua")
    path, interpreted, _ = stacks_of(luajit, "-joff", program, 1)
    expected = callers_of_lua(interpreted)
    path, rows, result = stacks_of(luajit, program, SECONDS)
    made = [(f, n) for f, n in rows if in_made_code(f)]
    assert sum(n for _, n in made) > 50, "not much ran in traces"  # a busy host lets it warm up slowly
    check_whole(path, 0.9)
    right = share(made, lambda f: tuple(f[:[x.startswith("0x") for x in f].index(True)]) in expected)
    through = share(rows, lambda f: in_made_code(f) and not f[-1].startswith("0x"))
    print(f"  {right:.4f} of those in traces come from where the interpreter does; {through:.4f} go on to C")
    assert right >= 0.9 and through > 0.005, (right, through)
    assert "LUAJIT_USE_PERFTOOLS" in jit_line(result), result


@long
def test_luajit_from_outside():
    """A program that runs already: its traces are known from the first samples on. (They take a look at its memory, for
    which a busy host may have no time just then.)"""
    luajit, program = command("luajit", "luajit"), os.path.join(FIXTURES, "traces.lua")
    path = scratch("attached.json")
    for _ in range(3):
        with Background(luajit, program, 8) as background:
            record("-p", background.pid, "-d", 2.2, "-F", 1499, "-o", path)
        rows = [(frames, 1) for _, frames in warm_samples(path)]
        whole = share(rows, is_rooted)
        print(f"  {whole:.4f} of {len(rows)}")
        if len(rows) > 100 and whole >= 0.9:
            return
    raise AssertionError((len(rows), whole))


def test_pypy():
    """The garbage collector, which traces reach through helpers, is a part of it."""
    path, rows, result = stacks_of(command("pypy3", "pypy3"), os.path.join(FIXTURES, "objects.py"), SECONDS)
    made = [(f, n) for f, n in rows if in_made_code(f)]
    assert sum(n for _, n in made) > 50, "not much ran in traces"  # a busy host lets it warm up slowly
    check_whole(path, 0.97)
    through = share(made, lambda f: not f[-1].startswith("0x"))
    print(f"  {through:.4f} of those in traces go on to the runtime")
    assert through > 0.1, through
    assert "PyPy" in jit_line(result), result


# ---- frame pointers, where they are requested ----------------------------------------------------

def erlang(*flags):
    erl, erlc = command("erl", "erlang-base"), command("erlc", "erlang-base")
    if not os.path.exists(scratch("deep.beam")):
        run(erlc, "-o", scratch(""), os.path.join(FIXTURES, "deep.erl"), check=0)
    return stacks_of(erl, *flags, "-noshell", "-pa", scratch(""), "-s", "deep", "main", 3)


def test_erlang():
    path, rows, result = erlang("+JPperf", "true")
    line = jit_line(result)
    assert "without a name" not in line and "bad" not in line, line
    deep = [(f, n) for f, n in rows if any("deep:" in x for x in f)]
    good = share(deep, lambda f: has_chain(f, "deep:main/1", "deep:loop/2", "deep:c/1"))
    print(f"  {good:.4f} of {sum(n for _, n in deep)} stacks in the program are whole")
    # in some runs the stacks of up to 0.1 s of 2 end in its code: "the unwind table of a file was not in memory"
    assert sum(n for _, n in deep) > 100 and good >= 0.9, good
    profile = load_json(path)["shared"]
    lines = {line for func, line in zip(profile["frameTable"]["func"], profile["frameTable"]["line"])
             if profile["stringArray"][profile["funcTable"]["name"][func]] == "deep:fib/1"}
    with open(os.path.join(FIXTURES, "deep.erl"), encoding="utf-8") as f:
        wanted = {i for i, text in enumerate(f, 1) if text.startswith("fib(")}
    assert lines - {None} and lines - {None} <= wanted, (lines, wanted)


@long
def test_erlang_without():
    """Its own stack is where rsp points to, and nothing else describes it: the summary has the flag."""
    _, _, result = erlang()
    line = jit_line(result)
    assert "+JPperf true" in line and "stacks" in line, line


# ---- JavaScript ----------------------------------------------------------------------------------

def check_fib(path):
    """Once the tables of so large a program are in memory."""
    deep = [(frames, 1) for _, frames in warm_samples(path) if "fib" in frames]
    good = share(deep, lambda f: has_chain(f, "fib", "fib") and "__libc_start_call_main" in f)
    print(f"  {good:.4f} of {sum(n for _, n in deep)} stacks with fib")
    assert sum(n for _, n in deep) > 50 and good >= 0.95, good


@long
def test_bun():
    bun = fetched("bun/bin/bun")
    program = os.path.join(FIXTURES, "deep.js")
    environment = dict(os.environ, BUN_JSC_useJITDump="1", BUN_JSC_jitDumpDirectory=scratch(""))
    path, _, result = stacks_of(bun, program, SECONDS, env=environment)
    line = jit_line(result)
    assert "jitdump" in line and "without a name" not in line, line
    check_whole(path, 0.97)
    check_fib(path)
    _, _, result = stacks_of(bun, program, 1)
    line = jit_line(result)
    assert "BUN_JSC_useJITDump=1" in line and "BUN_JSC_jitDumpDirectory" in line, line


@long
def test_deno():
    deno = fetched("deno/deno")
    program = os.path.join(FIXTURES, "deep.js")
    path, _, result = stacks_of(deno, "run", "--v8-flags=--perf-basic-prof", program, SECONDS)
    line = jit_line(result)
    assert "map /tmp/perf-" in line and "without a name" not in line, line
    forget_map(int(line.split("(pid ")[1].split(",")[0]))
    check_whole(path, 0.97)
    check_fib(path)
    _, _, result = stacks_of(deno, "run", program, 1)
    assert "--v8-flags=--perf-basic-prof" in jit_line(result), result


if __name__ == "__main__":
    main(globals())
