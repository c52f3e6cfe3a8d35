#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""The books: every tick that was due is in the profile, or there is a reason why not.

What was due is the kernel's own account of the timer (time_running of each CPU's event), what became of
it is counted by the program line by line; both are read from the recording. They must agree on every
CPU, in peace and in trouble. The last test proves that this would notice: it takes away the counting
of one line after the other from the program, and the same check must then fail.
"""
import os
import re
import shutil
import signal
import subprocess

import libe2e as e

# The ends of a recording cut one tick each.
TOLERANCE = 2
LAST_CPU = max(os.sched_getaffinity(0))


def imbalance(path, cpus=None):
    """Errors in the books of a recording: a list of sentences."""
    wrong = []
    books = e.recording_books(path)
    cpus = os.sched_getaffinity(0) if cpus is None else cpus
    if set(books) != set(cpus):
        wrong.append(f"books of CPUs {sorted(books)}, recorded were {sorted(cpus)}")
    for b in books.values():
        explained = sum(b.count.values())
        if abs(b.due - explained) > TOLERANCE:
            wrong.append(f"{b.due - explained:+.2f} ticks are unexplained: {b}")
        if not b.count["delivered"] == b.received == b.samples:
            wrong.append(f"what was delivered did not arrive: {b}")
        if not b.final:
            wrong.append(f"the books were not closed: {b}")
    return wrong


def check_profile(path):
    """The files made from a recording hold as many samples as were delivered, and its books."""
    books = e.recording_books(path)
    delivered = sum(b.count["delivered"] for b in books.values())
    json_path, folded_path = path + ".json", path + ".folded"
    e.sysprof("convert", path, "-o", json_path, check=0)
    e.sysprof("convert", path, "-o", folded_path, check=0)
    in_firefox = sum(t.count for t in e.firefox_threads(json_path))
    in_folded = sum(count for _, count in e.folded(folded_path))
    assert delivered == in_firefox == in_folded, (delivered, in_firefox, in_folded)

    reported = next(section for label, section in e.firefox_extra(json_path).items()
                if label.startswith("Books"))
    for b in books.values():
        match = re.match(r"(\d+) = (.*); unexplained (-?\d+)(;|$)", reported[f"CPU {b.cpu}"])
        counts = {name: int(n) for n, name in (x.split(" ") for x in match[2].split(" + "))}
        assert int(match[1]) == int(b.due) and counts == b.count, (reported, b)
    for file in (json_path, folded_path):
        os.unlink(file)


def check(path, cpus=None):
    wrong = imbalance(path, cpus)
    assert not wrong, "\n".join(wrong)
    check_profile(path)
    return e.recording_books(path)


def total(books, line):
    return sum(b.count[line] for b in books.values())


# ---- situations: each records into a file with the program given, and returns its output ----------

def quiet(program, path, seconds=3):
    return e.run(program, "record", "-a", "-d", seconds, "-o", path, check=0)


def beside_a_storm(program, path, *target):
    """`target`: the options of the target, with the storm's pid for PID."""
    storm = e.Background(e.fixture("storm"), "fork", 100000, 500, e.scratch("storm.log"))
    with storm:
        pids = [str(storm.pid) if word == "PID" else word for word in target]
        return e.run(program, "record", *pids, "-d", 1, "-o", path, check=0)


def busy(program, path):
    """A machine with nothing to do has few ticks to deliver."""
    with e.Background(e.fixture("deep"), "-c", LAST_CPU, 1, 60):
        return e.run(program, "record", "-a", "-d", 1, "-o", path, check=0)


def beside_bystanders(program, path):
    """The target sleeps, and something else runs on every CPU."""
    with e.Background("sleep", 60) as target:
        spinning = [e.Background(e.fixture("deep"), "-c", cpu, 1, 60)
                    for cpu in os.sched_getaffinity(0)]
        try:
            return e.run(program, "record", "-p", target.pid, "-d", 1, "-o", path, check=0)
        finally:
            for s in spinning:
                s.__exit__()


def beside_bpf_calls(program, path):
    with e.Background(e.fixture("bpfcalls"), "-c", LAST_CPU, 600) as calls, \
            e.Background(program, "record", "-a", "-F", 999, "-o", path) as recorder:
        e.started_sampling(recorder, path)
        e.use_cpu(calls.pid, 1.5)
        recorder.signal(signal.SIGINT)
        return recorder.finish(check=0)


def stopped(program, path, seconds):
    """The deepest stacks, and many, fill a ring that is not read for a second of their CPU time."""
    deep = [e.Background(e.fixture("deep"), "-c", cpu, 1100, 600)
            for cpu in os.sched_getaffinity(0)]
    try:
        with e.Background(program, "record", "-a", "-F", 5999, "--max-depth", 1024,
                          "-o", path) as recorder:
            e.started_sampling(recorder, path)
            recorder.signal(signal.SIGSTOP)
            for each in deep:
                e.use_cpu(each.pid, seconds / len(deep))
            size = os.path.getsize(path)
            recorder.signal(signal.SIGCONT)
            e.wait_for(lambda: os.path.getsize(path) > size, what="the rings to be read again")
            recorder.signal(signal.SIGINT)
            return recorder.finish(check=0)
    finally:
        for d in deep:
            d.__exit__()


# ---- tests --------------------------------------------------------------------------------------

@e.quick
def test_quiet():
    path = e.scratch("quiet.sysprof")
    quiet(e.SYSPROF, path)
    books = check(path)
    assert total(books, "filtered") == 0, books


@e.long
def test_every_target():
    """Threads, processes, a command, some CPUs: each leaves out other ticks."""
    e.need_root()
    path = e.scratch("mode.sysprof")
    with e.Background(e.fixture("deep"), 10, 60) as target:
        for options in (["-t", target.pid], ["-p", target.pid], ["-p", target.pid, "--no-inherit"],
                        ["-p", target.pid, "-F", 4999], ["-a", "--exclude-self"]):
            e.sysprof("record", *options, "-d", 0.5, "-o", path, check=0)
            check(path)
        e.sysprof("record", "-a", "-C", LAST_CPU, "-F", 999, "-d", 0.5, "-o", path, check=0)
        check(path, {LAST_CPU})
    e.sysprof("record", "-o", path, "--", e.fixture("deep"), 10, 0.5, check=0)
    assert total(check(path), "delivered") > 0


def test_fork_storm():
    e.need_root()
    path = e.scratch("storm.sysprof")
    beside_a_storm(e.SYSPROF, path, "-a", "-F", "999")
    check(path)
    beside_a_storm(e.SYSPROF, path, "-p", "PID")
    books = check(path)
    assert total(books, "delivered") > 0 and total(books, "filtered") > 0, books


@e.long
def test_stopped_collector():
    e.need_root()
    path = e.scratch("stopped.sysprof")
    result = stopped(e.SYSPROF, path, 1.2)
    books = check(path)
    lost = total(books, "ring-full")
    assert lost > 0, books
    # reported, and to the tick
    assert re.search(rf"^    {lost} ring-full ", result.err, re.M), (lost, result)
    everything = sum(total(books, line) for line in ("ring-full", "re-entry", "internal", "not-run"))
    assert re.search(rf"^  lost: {everything}$", result.err, re.M), (everything, result)


@e.alone
def test_bpf_calls():
    e.need_root()
    path = e.scratch("bpfcalls.sysprof")
    beside_bpf_calls(e.SYSPROF, path)
    books = check(path)
    missed = books[LAST_CPU].count["not-run"]
    assert missed > 10 * TOLERANCE, books


# ---- is the check worth anything? ----------------------------------------------------------------

# (line, file, what counts it, the same without counting, a situation with that line in it)
MUTANTS = (
    ("delivered", "bpf/emit.bpf.h", "return BOOK_DELIVERED;", "return BOOK_COUNT;", busy),
    ("filtered", "bpf/sampler.bpf.c", "return BOOK_FILTERED;\n\t}\n\tif (choice == CHOICE_LOST)",
     "return BOOK_COUNT;\n\t}\n\tif (choice == CHOICE_LOST)", beside_bystanders),
    ("ring-full", "bpf/emit.bpf.h", "? BOOK_RING_FULL :", "? BOOK_COUNT :",
     lambda program, path: stopped(program, path, 1.2)),
    ("not-run", "bpf/clock.bpf.h",
     "\tbooks->count[BOOK_NOT_RUN] += point - books->grid_point - 1;\n", "", beside_bpf_calls),
)


def before_the_close(path, line):
    """The largest count of a line before the books are closed, which adds what fell due since the last tick that ran."""
    return max(e.CpuBooks(flags, body).count[line] for kind, flags, _, body in e.recording_events(path)
               if kind == e.EVENT_BOOKS and not flags & e.EVENT_FINAL)


# The object with the program. Others include its skeleton for the types, which no mutant changes.
LOADS = "userspace/live/capture/bpf_session.o"


class Mutants:
    """A copy of the tree and of its objects, in which only what changes is built anew."""

    def __init__(self):
        self.tree = e.scratch("mutant")
        self.build = os.path.join(self.tree, "mutant-build")
        os.mkdir(self.tree)
        for name in ("Makefile", "bpf", "include", "userspace", "tools", "proto", "web"):
            self.copy(os.path.join(e.TOP, name), os.path.join(self.tree, name))
        os.mkdir(self.build)
        for name in ("bpf", "gen", "userspace", ".deps"):
            self.copy(os.path.join(e.BUILD, name), os.path.join(self.build, name))

    @staticmethod
    def copy(source, target):
        # with their times, by which make goes
        (shutil.copytree if os.path.isdir(source) else shutil.copy2)(source, target)

    def run_make(self):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BUILD")}
        e.run("make", "-j", os.cpu_count(), "-C", self.tree, f"BUILD={self.build}",
              os.path.join(self.build, "sysprof"), timeout=300, check=0, env=environment)

    def make(self, name, file, old, new):
        """The path of the program with that one change."""
        path = os.path.join(self.tree, file)
        text = e.read(path)
        assert text.count(old) == 1, f"{file} has {text.count(old)} times {old!r}, not once"
        e.write(path, text.replace(old, new))
        program = os.path.join(self.build, "sysprof")
        for product in "bpf/sampler.bpf.o", "gen/sampler.skel.h", LOADS:
            os.unlink(os.path.join(self.build, product))
        self.run_make()
        e.write(path, text)
        return shutil.copy2(program, os.path.join(self.tree, "sysprof-without-" + name))


@e.long
def test_uncounted_lines_are_noticed():
    e.need_root()
    if subprocess.run(["make", "--version"], capture_output=True, check=False).returncode:
        raise e.Skip("no make to build the mutants with")
    mutants = Mutants()
    for line, file, old, new, situation in MUTANTS:
        path = e.scratch(f"without-{line}.sysprof")
        situation(mutants.make(line, file, old, new), path)
        books = e.recording_books(path)
        # nothing but the line is gone
        assert not (before_the_close(path, line) if line == "not-run" else total(books, line)), books
        wrong = [text for text in imbalance(path) if "unexplained" in text]
        assert wrong, f"nothing counts {line}, and the books balance: {books}"
        print(f"without {line}: {wrong[0]}")


e.main(globals())
