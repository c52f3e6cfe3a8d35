#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Unwinding while mappings and tables change all the time: unknown frames are cut, and counted;
a frame that was not there is never shown."""
import os
import re
import shutil
import signal

from libe2e import (SYSPROF, Background, Skip, firefox_extra, firefox_threads, fixture, long, main, need_root, read, record, run,
                    scratch, without_kernel, write)
from librecorded import clang_command
from unwind import SOURCES, compiled, is_rooted

CHAIN = ["main", "outer", "middle", "inner", "leaf"]


def all_stacks(path):
    for thread in firefox_threads(path):
        for when, located in thread.samples():
            yield thread, when, without_kernel([name for name, _ in located])


def assert_in_order(frames, chain):
    """Each function of the chain has the one before it as its caller, or is where the stack was cut."""
    for i, name in enumerate(frames):
        if name in chain[1:] and i:
            assert frames[i - 1] == chain[chain.index(name) - 1], frames


def library(name, words):
    path = scratch(f"{name}.so")
    run("gcc", "-O2", "-g", "-fPIC", "-shared", "-nostdlib", "-fomit-frame-pointer", "-Wl,-z,noseparate-code",
        f"-DNAME={name}", f"-DROOM={words}", "-o", path, os.path.join(SOURCES, "overlib.c"), check=0)
    for line in run("nm", path, check=0).out.splitlines():
        address, _, symbol = line.split()
        if symbol == f"{name}_outer":
            return path, "0x" + address
    raise AssertionError(f"{path} has no {name}_outer")


def test_mmap_over_mmap():
    program = compiled("over")
    one, two = library("one", 20), library("two", 300)
    whole = cut = 0
    for turn in 5, 200:
        path = scratch(f"over-{turn}.json.gz")
        record("-F", 4999, "-o", path, "--", program, *one, *two, turn, "1")
        for _, _, frames in all_stacks(path):
            names = {f[:3] for f in frames if f.endswith(("_inner", "_outer"))}
            assert len(names) <= 1, frames
            if not names:
                continue
            (name,) = names
            assert_in_order(frames, ["main", "take_turn", f"{name}_outer", f"{name}_inner"])
            whole += is_rooted(frames)
            cut += not is_rooted(frames)
    print(f"  {whole} whole stacks, {cut} cut")
    assert whole > max(500, 0.3 * (whole + cut)), (whole, cut)


@long
def test_short_processes_and_little_room():
    """
    300 processes a second beside programs whose tables together do not fit: tables that are not used make room,
    which is counted, and come back.
    """
    need_root()
    if not shutil.which("node"):
        raise Skip("there is no node")
    clang = " ".join(clang_command())
    path, short = scratch("storm.json.gz"), fixture("chain-no-fp")
    write(scratch("storm.sh"), f"while :; do {short} 0.001 > /dev/null; done\n")
    write(scratch("turns.sh"), f"timeout 1.5 {clang}\n"
            "timeout 4 node -e 'for (;;) JSON.parse(JSON.stringify([...Array(1000).keys()]))'\n"
            f"timeout 3 {clang}\n"
            "echo over\nexec sleep 600\n")
    # and of nothing else: other programs of this machine need tables as well
    with Background("sh", scratch("storm.sh")) as storm, Background("sh", scratch("turns.sh")) as turns:
        with Background(SYSPROF, "record", "-p", f"{storm.pid},{turns.pid}", "-F", "999", "--unwind-mem", "4", "-o", path) as recorder:
            assert "over\n" in iter(turns.p.stdout.readline, ""), "the programs did not end"
            recorder.signal(signal.SIGINT)
            reported = recorder.finish(check=0).err
    found = re.search(r"evicted (\d+) unwind tables, refused (\d+)", reported)
    processes, rooted, node = set(), 0, []
    for thread, when, frames in all_stacks(path):
        if thread.process == "chain-no-fp":
            processes.add(thread.pid)
            assert_in_order(frames, CHAIN)
            rooted += is_rooted(frames)
        if thread.process == "node":
            node.append((when, is_rooted(frames)))
    late = [good for when, good in node if when > node[-1][0] - 1500000000]
    print(f"  {len(processes)} short processes were sampled, {rooted} of their stacks reach the root; "
          f"{found.group(1) if found else 0} tables evicted, {found.group(2) if found else 0} refused; "
          f"node's last: {sum(late)} of {len(late)} reach the root")
    assert found and int(found.group(1)) >= 1, reported
    assert len(processes) > 200 and rooted > 100, (len(processes), rooted)
    assert len(late) > 50 and sum(late) >= 0.95 * len(late), (sum(late), len(late))
    missing = next((v for k, v in firefox_extra(path)["Stacks"].items() if "was not in memory" in k), 0)
    assert missing > 0, "clang's two libraries cannot both have been there"


@long
def test_nothing_waits_for_programs():
    """
    What is retired waits for programs by looking at each CPU's: a call that waits for RCU is left to a CPU that stands
    still in one. Where membarrier refuses, as on machines with CPUs that are free of ticks, writing to a map of maps waits.
    """
    need_root()
    if not shutil.which("strace") or not shutil.which("node"):
        raise Skip("there is no strace, or no node")
    log, path = scratch("strace"), scratch("refused.json.gz")
    write(scratch("two.sh"), "timeout 1 node -e 'for (;;) JSON.parse(JSON.stringify([...Array(1000).keys()]))'\n"
            "i=0; while [ $i -lt 300 ]; do /bin/sleep 0.01; i=$((i + 1)); done; sleep 0.3\n")
    # the collector's own thread alone; and LeakSanitizer does not work beside it
    run("strace", "-qq", "-o", log, "-e", "trace=membarrier,bpf", "-e", "inject=membarrier:error=EINVAL",
        "-E", f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0", os.environ["SYSPROF"], "record", "-F", "4999", "-o", path, "--", "sh", scratch("two.sh"), check=0, timeout=120)
    lines = read(log).splitlines()
    refused = [i for i, line in enumerate(lines) if "membarrier(" in line]
    # three when all waited so
    assert len(refused) <= 1, refused
    for i in refused:
        assert "INJECTED" in lines[i], lines[i]
        assert "BPF_MAP_UPDATE_ELEM" in lines[i + 1] and lines[i + 1].endswith("= 0"), lines[i:i + 3]
    rooted = [is_rooted(frames) for thread, _, frames in all_stacks(path) if thread.process == "node"]
    assert len(rooted) > 100 and sum(rooted) > 0.6 * len(rooted), (sum(rooted), len(rooted))


def test_exec_in_a_loop():
    """What is known of a process's mappings is of no use after it has called execve."""
    path = scratch("exec.json.gz")
    script = 'n=$1; [ "$n" -gt 0 ] || exit 0; i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; ' \
             'exec "$3" "$2" $((n - 1)) "$2" "$3"'
    write(scratch("again.sh"), script)
    record("-o", path, "--", "sh", scratch("again.sh"), "100", scratch("again.sh"), "/bin/sh")
    for _, _, frames in all_stacks(path):
        roots = [i for i, name in enumerate(frames) if name == "_start" or name.startswith("__libc_start_main")]
        assert roots in ([], [0], [1], [0, 1]), frames


if __name__ == "__main__":
    main(globals())
