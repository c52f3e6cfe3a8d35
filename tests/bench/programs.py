# SPDX-License-Identifier: BSD-2-Clause
"""How much of the stacks of real programs is whole, and named, beside perf with copies of 64 KB.

A program that this machine has not is left out, and listed below the table.
"""
import glob
import os
import shutil
import signal
import subprocess
import time

import stack_ends
from jobs import DUE, EXECS, PROGRAMS, Missing, directory
from libbench import CACHE, PERF, SYSPROF, Broken, Program, at_least, pick, scratch, table

HZ = 499
ATTACHED = pick(2, 1)      # seconds of what is attached to
LONGEST = pick(6, 3)       # of what runs to its end
PERF_SCRIPT = pick(10, 5)  # of perf script
SYMBOLS = 30               # of reading names, which a Ctrl-C would end


def stop(profiler):
    """Ctrl-C, and then an end of everything it started."""
    try:
        if profiler.poll() is None:
            profiler.send_signal(signal.SIGINT)
        profiler.wait(60)
    except subprocess.TimeoutExpired:
        raise Broken(f"{profiler.args[0]} does not end") from None
    finally:
        try:
            os.killpg(profiler.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        profiler.wait()


def run(job, command, seconds, beside=None):
    """The output of the profiler, which is stopped after that time, or at the end of the other program."""
    with open(scratch("profiler.log"), "w+b") as log:
        profiler = subprocess.Popen([str(a) for a in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env=job.env, cwd=scratch(""), start_new_session=True)
        end = time.monotonic() + seconds
        while profiler.poll() is None and time.monotonic() < end and (beside is None or beside.running()):
            time.sleep(0.02)
        stop(profiler)
        log.seek(0)
        return f"{command[0]}: status {profiler.returncode}\n" + log.read().decode(errors="replace")


def recorded(job, *profiler, longest):
    if not job.attach:
        return run(job, [*profiler, "--", *job.command], longest)
    with Program(*job.command) as target:
        time.sleep(0.5)
        if not target.running():
            raise target.broken()
        if not job.beside:
            return run(job, [*profiler, "-p", target.pid], ATTACHED)
        with job.beside() as beside:
            return run(job, [*profiler, "-p", target.pid], 60, beside)


def by_sysprof(job, cache):
    """(Ends, share of named frames). What it keeps on disk is in that directory; of an attached program it
    keeps nothing, since that is in another mount namespace then."""
    folded, recording = scratch("programs.folded"), scratch("programs.sysprof")
    own_cache = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {CACHE} && exec "$@"', cache]
    record = [SYSPROF, "record", "--no-symbol-cache"] if job.attach else [*own_cache, SYSPROF, "record", "-d", LONGEST]
    try:
        said = recorded(job, *record, "-q", "-F", HZ, "-o", folded, "-o", recording, longest=LONGEST + SYMBOLS)
        if not os.path.exists(recording):
            raise Broken(said)
        return stack_ends.of_recording(recording), stack_ends.named_share(folded)
    finally:
        remove(folded, recording)


def by_perf(job):
    """The share of whole stacks as a cell of the table, or why there is none.

    With build-ids in its mmap records perf script opens fewer files; over a vDSO that it reads itself
    perf 6.1 may crash.
    """
    data, text = scratch("programs.perf"), scratch("programs.script")
    try:
        recorded(job, PERF, "record", "-q", "-B", "--buildid-mmap", "-m", "16M", "-F", HZ, "-e", "cpu-clock",
                 "--call-graph", "dwarf,65528", "-o", data, longest=LONGEST)
        with open(text, "wb") as out:
            try:
                status = subprocess.run([PERF, "script", "--no-inline", "--max-stack", "1024", "-F",
                                         "comm,pid,tid,ip,sym,dso", "-i", data], stdin=subprocess.DEVNULL, stdout=out,
                                        stderr=subprocess.DEVNULL, check=False, timeout=PERF_SCRIPT).returncode
            except subprocess.TimeoutExpired:
                return "timed out"
        if status:
            return f"failed ({status})"
        with open(text, encoding="utf-8", errors="replace") as f:
            samples, whole = stack_ends.of_perf_script(f)
        return f"{100 * whole / samples:.2f}" if samples else "no samples"
    finally:
        remove(data, text)


def remove(*paths):
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)


def maps_of_code():
    """Files of runtimes for profilers, by the number of their process. They are left behind."""
    return {path: int(pid) for path in glob.glob("/tmp/perf-*.map") + glob.glob("/tmp/jit-*.dump")
            if (pid := path.split("-")[-1].split(".")[0]).isdigit()}


def once(make, measure):
    """What it says of one run of the program, of which nothing stays behind."""
    before, job = maps_of_code(), make()
    try:
        return measure(job)
    finally:
        job.finish()
        remove(*(path for path, pid in maps_of_code().items()
                 if path not in before and not os.path.exists(f"/proc/{pid}")))


def rows_of(name, make):
    """(rows of the table, verdicts). Where a goal is due the program is recorded again, with what the first
    run has left in the cache."""
    rows, notes, cache = [], [], directory("cache")
    for what in [name] + [f"{name}, again"] * (name in DUE):
        ends, named = once(make, lambda job: by_sysprof(job, cache))
        rows.append([what, f"{ends.samples():,}", f"{ends.whole():.2f}", f"{ends.whole_late():.2f}", f"{named:.1f}", "",
                     ends.reasons()])
        if name in DUE:
            notes += [at_least(f"whole stacks of {what}", ends.whole(), DUE[name][0], "%"),
                      at_least(f"whole stacks of {what}, after 50 ms", ends.whole_late(), DUE[name][1], "%")]
    rows[0][5] = once(make, by_perf) if PERF else "no perf"
    shutil.rmtree(cache)
    return rows, notes


def programs():
    os.chmod(scratch(""), 0o711)  # one of them runs as another user
    os.makedirs(CACHE, 0o700, exist_ok=True)
    rows, notes, missing, failed = [], [], [], []
    for name, make in PROGRAMS.items():
        try:
            more, reported = rows_of(name, make)
        except Missing as e:
            missing.append(f"left out: {name}: {e}")
            continue
        except (Broken, OSError, subprocess.SubprocessError) as e:
            failed.append(f"{name}: {e}")
            continue
        rows += more
        notes += reported
    notes += [
        "The cache of unwind tables and symbols is empty. Again: with what the run before has left in it.",
        "Whole: the stack ended at its root, as the recording says of each sample; its sums are those of",
        "report --json. After 50 ms: of the samples that are at least so much later than the fork or the",
        "execve of their process. Named: of the user frames in folded stacks, those with a function's name.",
        "The rest: the other ends, % of all samples; include/sysprof/sample.h explains their names.",
        "perf: stacks whose outermost frame is _start, clone or the C library's caller of main or of a",
        f"thread's function. A run is cut after {LONGEST} s, perf script after {PERF_SCRIPT} s.",
        f"C: 40 calls, one with a frame of 20 KB. Attached: {ATTACHED} s of its run, or as long as {EXECS:,} execs",
        "of /bin/true take. Sources: tests/bench/programs.",
    ]
    table("Whole stacks of real programs",
          [f"sysprof record -F {HZ} -o FILE.folded -o FILE.sysprof (-- COMMAND | -p PID)",
           f"perf record --buildid-mmap -F {HZ} -e cpu-clock --call-graph dwarf,65528 (-- COMMAND | -p PID);",
           "perf script --no-inline --max-stack 1024"],
          ["program", "samples", "whole %", "after 50 ms %", "named %", "perf whole %", "the rest"], rows, notes + missing)
    if failed:
        raise Broken("\n".join(failed))
