#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""A thread that was asked for and calls execve: it gets its process's number, and the recording goes on."""
import os
import signal
import time

from libe2e import (SYSPROF, Background, Fixture, comms, firefox_threads, fixture, folded, main, need_root, run, scratch,
                    share, started_sampling, total)

LIMIT = 120
IN_PID_NAMESPACE = ["unshare", "-p", "-f", "--kill-child", "--mount-proc"]


def recorded(*options):
    """The second of two threads, which calls execve when it has been recorded for a while: samples of the thread, and of
    what the process is by then; and the numbers of both."""
    path, firefox, recording = scratch("exec.folded"), scratch("exec.json.gz"), scratch("exec.sysprof")
    if os.path.exists(recording):
        os.unlink(recording)
    with Fixture("thread_exec", *options, fixture("loop"), "1") as program:
        tid = int(program.wait_facts("tid", 2)[1][0])
        with Background(SYSPROF, "record", "-t", tid, "-d", "30", "-o", path, "-o", firefox, "-o",
                        recording) as recorder:
            started_sampling(recorder, recording)
            time.sleep(0.5)
            program.signal(signal.SIGUSR1)
            result = recorder.finish(timeout=LIMIT, check=0)
        program.finish(timeout=LIMIT)
    numbers = {t.tid for t in firefox_threads(firefox) if t.count}
    return folded(path), numbers, (tid, program.pid), result


def test_thread_that_calls_execve():
    need_root()
    rows, numbers, (tid, pid), result = recorded()
    assert set(comms(rows)) == {"thread_exec", "loop"}, (comms(rows), result)
    for comm, function in ("thread_exec", "before_exec"), ("loop", "main"):
        own = [row for row in rows if row[0][0] == comm]
        assert total(own) >= 20 and share(own, lambda f, word=function: word in f) > 0.5, rows
    assert numbers == {tid, pid}, (numbers, tid, pid)


def test_thread_that_has_slept_before():
    """Not one sample has said by then which thread it is."""
    need_root()
    rows, numbers, (_, pid), result = recorded("-s")
    assert total([row for row in rows if row[0][0] == "loop"]) >= 50, (rows, result)
    assert pid in numbers, numbers


def test_another_thread_calls_execve():
    """The thread that was asked for ends, and so does the recording."""
    need_root()
    rows, numbers, (tid, _), result = recorded("-a")
    assert set(comms(rows)) == {"thread_exec"} and numbers == {tid}, (comms(rows), result)


def test_in_a_pid_namespace():
    """Where no number that sysprof knows is the kernel's own."""
    need_root()
    for options in "", "-s":
        path, facts, recording = (scratch("inside" + options + end) for end in (".folded", ".facts", ".sysprof"))
        script = f"""
            : >{facts}
            "$2" {options} "$3" 1 >{facts} & program=$!
            while [ "$(grep -c ^tid {facts})" -lt 2 ]; do sleep 0.05; done
            tid=$(sed -n 's/^tid //p' {facts} | tail -n 1)
            "$1" record -t $tid -d 30 -o {path} -o {recording} & recorder=$!
            until grep -q sampling_start {recording}; do sleep 0.05; done 2>/dev/null
            sleep 0.5
            kill -USR1 $program && wait $recorder"""
        result = run(*IN_PID_NAMESPACE, "/bin/sh", "-c", script, "sh", SYSPROF,
                     fixture("thread_exec"), fixture("loop"), check=0, timeout=LIMIT)
        rows = folded(path)
        assert total([row for row in rows if row[0][0] == "loop"]) >= 50, (options, rows, result)
        assert options or "thread_exec" in comms(rows), rows


if __name__ == "__main__":
    main(globals())
