#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 300
# runs: long
"""Users whose processes have tens of thousands of executable mappings: others' stacks are whole all the same, no ticks
are lost, and the recording ends when it should.
"""
import contextlib
import os
import re
import shutil
import signal
import struct
import time
from itertools import product

from libe2e import (EVENT_FROM_COPY, EVENT_SAMPLE, SYSPROF, Background, Fixture, long, main, need_root, recording_books,
                    recording_events, run, scratch, stack_ends, stolen_ns, wait_for)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOBODY, SOMEBODY = 65534, 65533
HZ, EVENT_META, EVENT_END = 999, 26, 28
VICTIMS = ("chain", "chain-no-fp")
LOST = "ring-full", "re-entry", "internal", "not-run"
TRIES = 3  # a host that takes the CPUs away for a while can spoil one
NO_MEMORY, NO_USER = "no-memory", "no-user"


def as_user(uid):
    """The words that run a program as somebody who may do nothing."""
    return ("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs")


class Tenants:
    """Processes of one user that run for as long as the with block does."""

    def __init__(self, *commands, uid=NOBODY):
        self.commands, self.uid, self.stack = commands, uid, contextlib.ExitStack()

    def __enter__(self):
        started = [self.stack.enter_context(Fixture("manymaps", *c, wrap=as_user(self.uid))) for c in self.commands]
        for tenant in started:
            tenant.wait_facts("mapped", timeout=60)
        return started

    def __exit__(self, *why):
        return self.stack.__exit__(*why)


def wait_for_samples(recorder, path):
    """Until it has written that it samples. Thousands of mappings come before that, so each byte is read once."""
    def reported():
        if os.path.exists(path):
            with open(path, "rb") as f:
                f.seek(max(0, reported.read - 64))
                data = f.read()
                reported.read += len(data) - min(64, reported.read)
            return b"\0sampling_start\0" in data
        return False

    reported.read = 0
    wait_for(lambda: reported() or recorder.p.poll() is not None, 60, path)
    assert recorder.p.poll() is None, recorder.finish()


def wait_until_idle(pid, timeout=30):
    """Until the collector has gone through what there was: it neither runs nor waits for a CPU most of the time."""
    def busy():
        with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
            running, waiting = map(int, f.read().split()[:2])
        return (running + waiting) / 1e9

    end = time.monotonic() + timeout
    while time.monotonic() < end:
        begin, before = time.monotonic(), busy()
        time.sleep(0.3)
        if busy() - before < 0.4 * (time.monotonic() - begin):
            return
    raise AssertionError(f"the collector has not rested for {timeout} s")


def samples_of(path, pid):
    """(time, how the user stack ended, tag of its mappings, was it walked from a copy) of each sample of a process."""
    ends = stack_ends()
    for kind, flags, when, body in recording_events(path):
        if kind != EVENT_SAMPLE or struct.unpack_from("<I", body, 16)[0] != pid:
            continue
        end, tag = struct.unpack_from("<B", body, 32)[0], struct.unpack_from("<I", body, 36)[0]
        if ends[end] not in (NO_MEMORY, NO_USER):
            yield when, ends[end], tag, bool(flags & EVENT_FROM_COPY)


class Recording:
    """
    Of the tenants and of victims that begin in its middle, all of them children of this process; what became of it.
    What else happens on this machine is no part of it.
    """

    def __init__(self, name, seconds=1.5):
        need_root()
        self.path = scratch(name + ".sysprof")
        self.victims = []
        stolen = stolen_ns()
        with Background(SYSPROF, "record", "-p", os.getpid(), "-F", HZ, "-o", self.path) as recorder:
            wait_for_samples(recorder, self.path)
            wait_until_idle(recorder.pid)
            for program in VICTIMS:
                self.victims.append(Fixture(program, seconds, wrap=as_user(SOMEBODY)))
            for victim in self.victims:
                victim.finish(check=0)
            stopped = time.monotonic()
            recorder.signal(signal.SIGINT)
            self.reported = recorder.finish(timeout=120, check=0)
            self.stopping = time.monotonic() - stopped
        self.stolen = (stolen_ns() - stolen) * HZ / 1e9
        cost = re.search(r"sysprof itself: ([\d.]+) s CPU for ([\d.]+) s", self.reported.err)
        print(f"  {cost[2]} s recorded for {cost[1]} s of CPU, {self.stopping:.1f} s from Ctrl-C to the end")

    def check_victims(self):
        """
        Whole stacks, but for those of the program's first moments; and once these are over walked in the kernel, for
        there is not much room for copies.
        """
        for victim in self.victims:
            pid, begin = victim.wait_number("pid"), victim.wait_number("start")
            samples = list(samples_of(self.path, pid))
            ends = [end for _, end, _, _ in samples]
            count, whole = len(ends), ends.count(stack_ends()[0])
            later = [sample for sample in samples if sample[0] > begin + 5e8]
            walked = sum(tag != 0 and not copied for _, _, tag, copied in later)
            print(f"  {os.path.basename(victim.p.args[-2])}: {whole} of {count} stacks are whole, {walked} of {len(later)} "
                  f"walked in the kernel; { {end: ends.count(end) for end in set(ends)} }")
            assert len(later) >= 5, (count, self.reported)
            assert sum(end == stack_ends()[0] for _, end, _, _ in later) >= 0.99 * len(later) - 1, self.reported
            # the first ones are copies, which may be too many at a time
            assert whole >= 0.9 * count - 3, self.reported
            assert walked >= 0.9 * len(later), self.reported

    def check_publications(self, pids):
        """Ten a second of a process at most, and some more while it is young; each has a tag of its own."""
        for pid in pids:
            samples = list(samples_of(self.path, pid))
            tags = {tag for _, _, tag, _ in samples if tag}
            seconds = (samples[-1][0] - samples[0][0]) / 1e9 if samples else 0
            print(f"  {len(samples)} samples of a tenant by {len(tags)} publications in {seconds:.1f} s")
            assert len(samples) >= 5 and len(tags) <= 20 + 11 * seconds, (len(samples), len(tags), seconds)

    def check_end(self):
        assert self.stopping <= 10, self.reported


def has_all_ticks(recording):
    """The host alone can be the reason for ticks that were not run: the time that it reports as stolen is not all."""
    books = recording_books(recording.path).values()
    due = sum(b.due for b in books)
    lost = {name: sum(b.count[name] for b in books) for name in LOST}
    print(f"  of {due:.0f} ticks {lost} were lost, {recording.stolen:.0f} were stolen")
    assert sum(lost.values()) - lost["not-run"] <= 0.01 * due, (lost, due, recording.reported)
    return sum(lost.values()) <= 0.01 * due + recording.stolen


def with_all_ticks(record, *arguments):
    """A recording that has lost none."""
    for _ in range(TRIES):
        recording = record(*arguments)
        if has_all_ticks(recording):
            return recording
    raise AssertionError(recording.reported)


def test_places_are_shared():
    """
    More processes than there is room for: with nearly as many mappings as one may have, with so few that they fill
    what is left, and some with too many.
    """
    many = [4000] * 36 + [100] * 40 + [1] * 20 + [5000] * 4
    with Tenants(*[("-b", 1, "-s", 150, count, 60) for count in many]):
        recording = with_all_ticks(Recording, "places")
    recording.check_victims()
    assert "executable mappings: their stacks were copied" in recording.reported.err, recording.reported


def test_mappings_that_change():
    """As many mappings as a process may have, one of which changes each millisecond."""
    with Tenants(("-r", 1000, 60000, 60)):
        recording = with_all_ticks(Recording, "changes")
    recording.check_victims()
    recording.check_end()


def test_mappings_that_change_within_the_limit():
    """So many mappings that they can just be published, in several processes that all change them all the time."""
    with Tenants(*[("-r", 1000, "-b", 20, "-s", 60, 4000, 60)] * 2, ("-r", 1000, 400, 60)) as tenants:
        recording = with_all_ticks(Recording, "limit")
    recording.check_publications([tenant.pid for tenant in tenants])
    recording.check_victims()
    recording.check_end()


class SystemRecording:
    """Of everybody, for some seconds."""

    def __init__(self, seconds):
        need_root()
        self.path = scratch("whole.sysprof")
        stolen = stolen_ns()
        self.reported = run(SYSPROF, "record", "-a", "-d", seconds, "-F", HZ, "-o", self.path, timeout=120, check=0)
        self.stolen = (stolen_ns() - stolen) * HZ / 1e9


def test_mappings_that_change_in_the_whole_system():
    """The same of two processes, in a recording of the whole system: each sample is of other mappings than the one before."""
    seconds = 3
    with Tenants(*[("-r", 1000, 60000, 60)] * 2):
        recording = with_all_ticks(SystemRecording, seconds)
    longest = max(b.due for b in recording_books(recording.path).values()) / HZ
    print(f"  {seconds} s were {longest:.2f} s")
    assert longest <= seconds + 3, recording.reported


def test_a_storm_ends_with_its_time():
    """Two processes that map as fast as they can: the recording ends when it should."""
    need_root()
    path = scratch("storm.sysprof")
    with Tenants(*[("-r", 0, 30000, 60)] * 2):
        run(SYSPROF, "record", "-p", os.getpid(), "-d", 2, "-F", HZ, "-o", path, timeout=60, check=0)
    events = [(kind, when, body) for kind, _, when, body in recording_events(path) if kind in (EVENT_END, EVENT_META)]
    began = [when for kind, when, body in events if kind == EVENT_META and body.startswith(b"sampling_start\0")]
    ended = [when for kind, when, _ in events if kind == EVENT_END]
    assert len(began) == len(ended) == 1
    print(f"  2 s were {(ended[0] - began[0]) / 1e9:.2f} s")
    assert ended[0] - began[0] <= 5e9
    run(SYSPROF, "report", path, check=0)


# ---- programs of root's that start meanwhile -----------------------------------------------------

LIBRARIES, STARTS = 60, 12
STARTING = 1e8  # ns in which a program's mappings become known, and its 60 tables


class Programs:
    """Programs with so many libraries each, all of them files of their own."""

    SOURCE = f"{TOP}/tests/fixtures/unwind/chained.c"

    def __init__(self, count):
        self.place = scratch("chained")
        shutil.rmtree(self.place, ignore_errors=True)
        first = self.build()
        self.programs = [first] + [self.copy(first, i) for i in range(1, count)]

    @classmethod
    def all(cls):
        """For all cases."""
        if not hasattr(cls, "made"):
            cls.made = cls(STARTS)
        return cls.made

    @staticmethod
    def build_id(program, file):
        """The linker's option, and the bytes."""
        number = program << 32 | file << 16 | os.getpid() & 0xffff
        return f"-Wl,--build-id=0x{number:040x}", number.to_bytes(20, "big")

    def compile(self, name, file, *flags):
        run("gcc", "-D_GNU_SOURCE", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", self.build_id(0, file)[0],
            "-o", f"{self.place}/0/{name}", self.SOURCE, *flags, check=0)
        return name

    def build(self):
        os.makedirs(f"{self.place}/0")
        names = []
        for i in range(LIBRARIES):
            goes_on = [f"-DNEXT={i + 1}"] if i + 1 < LIBRARIES else []
            names.append(self.compile(f"liblink{i}.so", i, f"-DLIBRARY={i}", *goes_on, "-fPIC", "-shared"))
        self.compile("chained", LIBRARIES, f"-L{self.place}/0", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN",
                     *(f"-l:{name}" for name in names))
        return f"{self.place}/0/chained"

    def copy(self, program, number):
        """With build-ids of its own: without them root's files would be the same files."""
        os.mkdir(f"{self.place}/{number}")
        for file, name in enumerate([*(f"liblink{i}.so" for i in range(LIBRARIES)), "chained"]):
            with open(f"{self.place}/0/{name}", "rb") as f:
                data = f.read()
            old, new = self.build_id(0, file)[1], self.build_id(number, file)[1]
            assert data.count(old) == 1, name
            with open(f"{self.place}/{number}/{name}", "wb") as f:
                f.write(data.replace(old, new))
        shutil.copymode(program, f"{self.place}/{number}/chained")
        return f"{self.place}/{number}/chained"


def attackers(users):
    """40 with more mappings than one may have; and 30 that have theirs looked at again and again: by mmap, execve and fork."""
    ways = product((("-r", 2000), ("-e", 100), ("-f", 100)), (1000, 4000) * 5)
    commands = [("-b", 1, "-s", 150, 5000, 100)] * 40 + [(*how, "-b", 5, "-s", 45, count, 100) for how, count in ways]
    return [(command, users[i % len(users)]) for i, command in enumerate(commands)]


class Crowd:
    """Processes of several users, which give way to others that want a CPU; all of them map before they are waited for."""

    def __init__(self, commands):
        self.stack, self.commands = contextlib.ExitStack(), commands

    def __enter__(self):
        started = [self.stack.enter_context(Fixture("manymaps", *command, wrap=("nice", "-n", "19", *as_user(uid))))
                   for command, uid in self.commands]
        for tenant in started:
            tenant.wait_facts("mapped", timeout=60)

    def __exit__(self, *why):
        return self.stack.__exit__(*why)


def record_starts(programs):
    """How the stacks of the programs ended, which run one after the other; and what was reported."""
    path, started = scratch("starts.sysprof"), []
    with Background(SYSPROF, "record", "-p", os.getpid(), "-F", HZ, "-o", path) as recorder:
        wait_for_samples(recorder, path)
        time.sleep(3)
        for program in programs:
            started.append(Fixture(program, 0.8))
            started[-1].finish(check=0)
        recorder.signal(signal.SIGINT)
        reported = recorder.finish(timeout=120, check=0)
    begun = {process.wait_number("pid"): process.wait_number("start") + STARTING for process in started}
    return [[end for when, end, _, _ in samples_of(path, pid) if when > begin] for pid, begin in begun.items()], reported


def check_starts(users):
    need_root()
    programs = Programs.all()
    for turn in range(TRIES):
        with Crowd(attackers(users)):
            ends, reported = record_starts(programs.programs)
        whole, count = sum(e.count(stack_ends()[0]) for e in ends), sum(map(len, ends))
        print(f"  {whole} of {count} stacks are whole ({100 * whole / max(1, count):.1f} %):",
              *({end: e.count(end) for end in set(e)} for e in ends))
        if whole >= 0.99 * count and count >= 20 * STARTS:
            return
        assert turn + 1 < TRIES, reported


@long
def test_root_starts_beside_a_crowd():
    """
    40 processes with 5,000 mappings each, and 30 that ask again and again: the stacks of root's programs that start
    meanwhile, with 60 libraries each, are whole.
    """
    check_starts([NOBODY])


@long
def test_root_starts_beside_many_users():
    """The same of 14 users, each of whom has a share."""
    check_starts(range(SOMEBODY - 14, SOMEBODY))


if __name__ == "__main__":
    main(globals())
