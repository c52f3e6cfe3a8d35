#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Runtimes in programs of any name, in subinterpreters, and what their threads have to do with the GIL."""
import gzip
import json
import os
import re
import shutil
import sys

from libe2e import (Background, Skip, folded, has_chain, load_json, long, main, need_root, run, scratch, share, sysprof,
                    total, write)
from librecorded import newer_python, nodes

from read_pprof import read_pprof

PYTHON = """
import sys
def leaf(n):
    return sum(i * i for i in range(n))
def working():
    while True:
        leaf(300)
print("up", flush=True)
working()
"""
NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function working() { for (;;) fib(15); }
console.log("up");
working();
"""
THREADS = """
import hashlib, threading
big = bytes(64 << 20)
def computing():
    while True:
        sum(i * i for i in range(1000))
def hashing():
    while True:
        hashlib.sha256(big)
threading.Thread(target=hashing, daemon=True).start()
print("up", flush=True)
computing()
"""
# a library of Python's makes code: that of a loop
LIBRARY = """
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex("b900001000" "ffc9" "75fc" "c3"))  # mov ecx, 1 << 20; dec ecx; jnz; ret
loop = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
def leaf():
    return sum(i * i for i in range(20000))
def working():
    while True:
        leaf()
        loop()
print("up", flush=True)
working()
"""
# _xxsubinterpreters of 3.11 is _interpreters from 3.13 on
SUBINTERPRETER = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
inner = '''
def innermost(n):
    return sum(i * i for i in range(n))
def inside():
    while True:
        innermost(300)
inside()
'''
def outer():
    run = getattr(interpreters, "run_string", None) or interpreters.exec
    run(interpreters.create(), inner)
print("up", flush=True)
threading.Thread(target=outer).start()
"""
EMBEDDING = """
#include <Python.h>
int main(int argc, char **argv)
{
	Py_Initialize();
	return PyRun_SimpleString(argv[1]);
}
"""


# what _PyRuntime of a free-threaded 3.14 begins with: nothing further of it is looked at
FREE_THREADED = """
#include <stdint.h>
#include <unistd.h>
__attribute__((section(".PyRuntime"))) volatile uint64_t runtime[128] = {0x7970677562656478, 0x030e02f0, 1};
int main(void)
{
	write(1, "up\\n", 3);
	for (;;)
		runtime[127]++;
}
"""


def recorded(command, name, least=100, chain=()):
    """
    (folded stacks of a command that says when it runs, its pid, the summary, the JSON report's summary). Again and longer
    where the host gives it little time, or `chain` is not in most of them: while the tables of its files are built there are no names.
    """
    need_root()
    paths = [scratch(name + suffix) for suffix in (".folded", ".sysprof")]
    with Background(*command) as program:
        assert program.p.stdout.readline() == "up\n", program.p.stderr.read()
        # its tables are built when they are first needed
        sysprof("record", "-p", program.pid, "-d", 0.5, "-o", paths[0], check=0)
        for seconds in 0.7, 2, 4, 8:
            outputs = [word for path in paths for word in ("-o", path)]
            reported = sysprof("record", "-p", program.pid, "-F", 2999, "-d", seconds, *outputs, check=0).err
            rows = folded(paths[0])
            if total(rows) >= least and share(rows, lambda frames: has_chain(frames, *chain)) > 0.8:
                break
    assert total(rows) >= least, "the host gave the program no CPU time"
    again = scratch("again.folded")
    sysprof("convert", paths[1], "-o", again, check=0)
    assert sorted(folded(again)) == sorted(rows), "a replay has other names"
    report = json.loads(sysprof("report", paths[1], "--json", check=0).out)["summary"]
    return rows, program.pid, reported, report


def check_names(rows, *chain):
    found = share(rows, lambda frames: has_chain(frames, *chain))
    print(f"  {'/'.join(chain)} in {found:.3f} of {total(rows)} samples")
    assert found > 0.8, rows[:3]


def copied(program, name):
    path = scratch(name)
    shutil.copy(os.path.realpath(program), path)
    return path


def test_python_of_another_name():
    """The interpreter is linked into the program."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or "libpython" in run("ldd", python).out:
        raise Skip("the system has no Python that is one file")
    rows = recorded([copied(python, "myapp"), "-c", PYTHON], "program", chain=("<module>", "working"))[0]
    check_names(rows, "<module>", "working")


@long
def test_node_of_another_name():
    rows = recorded([copied(nodes()[0], "single-app"), "-e", NODE], "single", chain=("working", "fib"))[0]
    check_names(rows, "working", "fib")


def test_python_in_a_library():
    """A program of its own that embeds the interpreter."""
    flags = run(sys.executable, "-c", "import sysconfig as s; g = s.get_config_var; "
                "print('-I' + s.get_paths()['include'], '-L' + g('LIBDIR'), '-Wl,-rpath,' + g('LIBDIR'), "
                "'-lpython' + g('LDVERSION'), g('Py_ENABLE_SHARED'))").out.split()
    if flags.pop() != "1":
        raise Skip("the Python that runs the tests has no shared library")
    source, program = scratch("embedding.c"), scratch("embedding")
    write(source, EMBEDDING)
    run("cc", "-O1", "-o", program, source, *flags, check=0)
    rows = recorded([program, PYTHON], "embedded", chain=("<module>", "working"))[0]
    check_names(rows, "<module>", "working")


def test_many_programs_without_a_runtime():
    """A program without one is searched once, and costs nothing further."""
    need_root()
    path = scratch("shells.folded")
    script = "for i in 1 2 3 4 5 6 7 8; do sh -c 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done'; done"
    reported = sysprof("record", "-vv", "-o", path, "--", "sh", "-c", script, check=0).err
    looked = re.findall(r"process (\d+): runtimes 0", reported)
    print(f"  {len(looked)} of 9 shells were looked at")
    assert 1 <= len(looked) <= 4, reported


@long
def test_subinterpreter():
    for python in sys.executable, newer_python():
        rows, pid, _, report = recorded([python, "-c", SUBINTERPRETER], "sub", chain=("inside", "innermost"))
        check_names(rows, "inside", "innermost")
        # what is not known of a GIL is not reported
        rows = [row for row in report.get("gil", []) if row["pid"] == pid]
        assert not rows or rows[0]["held"] <= rows[0]["samples"], rows


def check_gil(python):
    rows, pid, reported, report = recorded([python, "-c", THREADS], "gil", least=200)
    processes = [row for row in report["gil"] if row["pid"] == pid]
    assert len(processes) == 1, report["gil"]
    threads = {row["tid"]: row for row in processes[0]["threads"]}
    print(f"  {python}: {processes[0]}")
    main_thread = threads.pop(pid)
    (hashing,) = threads.values()
    # each runs with it, or without
    assert main_thread["held"] > 0.95 * main_thread["samples"] and main_thread["samples"] > 30, main_thread
    assert hashing["held"] < 0.1 * hashing["samples"] and hashing["samples"] > 30, hashing
    assert 0 < processes[0]["held_time_share"] <= 1
    assert main_thread["held_ns"] > 0
    line = [line for line in reported.splitlines() if line.strip().startswith("GIL: ")]
    assert len(line) == 1 and f"(pid {pid}): held in " in line[0] and f"(tid {pid})" in line[0], reported
    print(line[0])
    check_gil_of_samples(scratch("gil.sysprof"), processes[0])


def pprof_labels(path):
    """[(samples, labels)] of a pprof file."""
    with gzip.open(path) as f:
        profile = read_pprof(f.read())
    strings = profile["string_table"]
    rows = []
    for sample in profile["sample"]:
        labels = {strings[label["key"]]: strings[label["str"]] if label["str"] else label["num"] for label in sample["label"]}
        rows.append((sample["value"][0], labels))
    return rows


def check_gil_of_samples(recording, reported):
    """The state is with each sample: a label of pprof's, markers of Firefox's with a category of their own."""
    paths = [scratch("gil.pb.gz"), scratch("gil.json")]
    sysprof("convert", recording, "-o", paths[0], "-o", paths[1], check=0)
    rows = pprof_labels(paths[0])
    for thread in reported["threads"]:
        counts = {}
        for count, labels in rows:
            if labels["tid"] == thread["tid"]:
                state = labels.get("gil", "")
                counts[state] = counts.get(state, 0) + count
        print(f"  tid {thread['tid']}: {counts}")
        assert counts.get("held", 0) == thread["held"] and counts.get("waiting", 0) == thread["waiting"], (counts, thread)
        assert sum(counts.values()) - counts.get("", 0) == thread["samples"], (counts, thread)
    again = scratch("gil.again.pb.gz")
    sysprof("convert", paths[0], "-o", again, check=0)
    assert sorted(count for count, labels in pprof_labels(again) if labels.get("gil") == "held") == \
        sorted(count for count, labels in rows if labels.get("gil") == "held"), "lost on the way through pprof"
    profile = load_json(paths[1])
    category = [c["name"] for c in profile["meta"]["categories"]].index("GIL")
    for thread in reported["threads"]:
        (track,) = [t for t in profile["threads"] if t["tid"] == str(thread["tid"])]
        markers = track["markers"]
        held = sum(data["samples"] for data, name, of in zip(markers["data"], markers["name"], markers["category"])
                   if profile["shared"]["stringArray"][name] == "GIL held" and of == category)
        assert held == thread["held"], (held, thread)


def test_gil():
    check_gil(sys.executable)


@long
def test_gil_of_newer_python():
    check_gil(newer_python())


@long
def test_summary_of_node():
    """Its functions are read from its memory: no advice to write a map."""
    reported = recorded([nodes()[-1], "-e", NODE], "advice")[2]
    lines = [line for line in reported.splitlines() if "JIT code:" in line]
    print(lines)
    assert all("no perf map" not in line and "--perf-basic-prof" not in line for line in lines), reported


def test_free_threaded_build():
    """It is refused by name, with what helps; the same in a replay and by check."""
    source, program = scratch("free.c"), scratch("python3.14t")
    write(source, FREE_THREADED)
    run("cc", "-O1", "-o", program, source, check=0)
    _, pid, reported, report = recorded([program], "free")
    lines = [line for line in reported.splitlines() if f"(pid {pid}, Python)" in line]
    print(lines)
    assert len(lines) == 1 and "free-threaded" in lines[0] and "-X perf" in lines[0], reported
    rows = [row for row in report["jit"] if row["pid"] == pid]
    assert len(rows) == 1 and "free-threaded" in rows[0]["refusal"] and "-X perf" in rows[0]["remedy"], report["jit"]
    with Background(program) as free:
        assert free.p.stdout.readline() == "up\n"
        checked = json.loads(sysprof("check", "--json", "-p", free.pid, check=0).out)["process"]
    assert [row["name"] for row in checked["runtimes"]] == ["Python"], checked
    assert "free-threaded" in checked["runtimes"][0]["detail"] and "-X perf" in checked["runtimes"][0]["remedy"], checked


def test_code_of_a_library_of_python():
    """Python's functions are read from memory: no advice would name the code that a library of it makes."""
    if os.uname().machine != "x86_64":
        raise Skip("the code is of x86-64")
    _, pid, reported, report = recorded([sys.executable, "-c", LIBRARY], "library")
    lines = [line for line in reported.splitlines() if f"(pid {pid}, Python)" in line]
    print(lines)
    assert len(lines) == 1 and "without a name" in lines[0] and "read from its memory" in lines[0], reported
    assert "-X perf" not in lines[0], lines
    rows = [row for row in report["jit"] if row["pid"] == pid]
    assert len(rows) == 1 and not rows[0]["remedy"], report["jit"]


main(globals())
