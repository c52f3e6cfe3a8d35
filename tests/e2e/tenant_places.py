#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
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

from libe2e import (EVENT_FROM_COPY, EVENT_SAMPLE, SYSPROF, TOP, Background, Fixture, HostDelay, long, main, need_root,
                    new_scratch, read, recording_books, recording_events, run, schedstat, scratch, stack_ends,
                    started_sampling, stolen_ns, wait_for, write)

NOBODY, SOMEBODY = 65534, 65533
HZ, EVENT_META, EVENT_END = 999, 26, 28
VICTIMS = ("chain", "chain-no-fp")
LOST = "ring-full", "re-entry", "internal", "not-run"
LIFE = 300  # s, of processes that are ended before
TRIES = 3  # a host that takes the CPUs away for a while can spoil one
# It gets a CPU before others: the tests are about waiting within the recorder, not for other work of the host.
RECORD_FIRST = "nice", "-n", "-15", SYSPROF, "record"
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
            tenant.wait_facts("mapped")
        return started

    def __exit__(self, *why):
        return self.stack.__exit__(*why)


def wait_until_idle(pid):
    """
    Until the collector has gone through what there was: of the time in which it does not wait for a CPU, it sleeps for the
    most part.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end:
        begin, (ran, waited) = time.monotonic_ns(), schedstat(pid)
        time.sleep(0.3)
        ran, waited = (after - before for after, before in zip(schedstat(pid), (ran, waited)))
        if ran < 0.4 * (time.monotonic_ns() - begin - waited):
            return
    raise AssertionError("the collector has not rested for 60 s")


def has_run(process, seconds):
    """Whether a program that spins has had so much CPU time, after which it is ended."""
    if schedstat(process.pid)[0] < seconds * 1e9:
        return False
    process.signal(signal.SIGTERM)
    return True


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

    def __init__(self, name):
        need_root()
        self.path, self.host = new_scratch(name + ".sysprof"), HostDelay()
        self.victims = []
        stolen = stolen_ns()
        with Background(*RECORD_FIRST, "-p", os.getpid(), "-F", HZ, "-o", self.path) as recorder:
            started_sampling(recorder, self.path)
            wait_until_idle(recorder.pid)
            for program in VICTIMS:
                self.victims.append(Fixture(program, 100, wrap=as_user(SOMEBODY)))
            for victim in self.victims:
                wait_for(lambda: has_run(victim, 1.2), what="CPU time of the victims")
                victim.finish()
            stopped = time.monotonic()
            recorder.signal(signal.SIGINT)
            self.reported = self.host.finish(recorder, 120, check=0)
            self.stopping = time.monotonic() - stopped
        self.stolen = (stolen_ns() - stolen) * HZ / 1e9
        cost = re.search(r"sysprof itself: ([\d.]+) s CPU for ([\d.]+) s", self.reported.err)
        print(f"  {cost[2]} s recorded for {cost[1]} s of CPU, {self.stopping:.1f} s from Ctrl-C to the end, in "
              f"{self.host.ns() / 1e9:.1f} s of which the host had no CPU for it")

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
            assert len(later) >= 100, (count, self.reported)
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
        assert self.stopping - self.host.ns() / 1e9 <= 10, self.reported


def has_all_ticks(recording):
    """The host alone can be the reason for ticks that were not run: the time that it reports as stolen is not all."""
    books = recording_books(recording.path).values()
    due = sum(b.due for b in books)
    lost = {name: sum(b.count[name] for b in books) for name in LOST}
    print(f"  of {due:.0f} ticks {lost} were lost, {recording.stolen:.0f} were stolen")
    assert sum(lost.values()) - lost["not-run"] <= 0.01 * due, (lost, due, recording.reported)
    return lost["not-run"] <= 0.03 * due + recording.stolen


def has_whole_stacks(recording):
    """
    While the host has the CPU that the collector waits for, those who map on the others can fill its rings: where records of
    mappings were lost, another recording decides.
    """
    try:
        recording.check_all()
    except AssertionError:
        lost = re.search(r"(\d+) process and mapping records: ", recording.reported.err)
        if not lost:
            raise
        print(f"  {lost[1]} records of mappings were lost, {recording.stolen:.0f} ticks were stolen")
        return False
    return True


def with_all_ticks(record, *arguments, is_whole=lambda recording: True):
    """A recording that has lost none, and has what is due."""
    for _ in range(TRIES):
        recording = record(*arguments)
        if has_all_ticks(recording) and is_whole(recording):
            return recording
    raise AssertionError(recording.reported)


def test_places_are_shared():
    """
    More processes than there is room for: with nearly as many mappings as one may have, with so few that they fill
    what is left, and some with too many.
    """
    many = [4000] * 36 + [100] * 40 + [1] * 20 + [5000] * 4
    with Tenants(*[("-b", 1, "-s", 150, count, LIFE) for count in many]):
        recording = with_all_ticks(Recording, "places")
    recording.check_victims()
    assert "executable mappings: their stacks were copied" in recording.reported.err, recording.reported


def test_mappings_that_change():
    """As many mappings as a process may have, one of which changes each millisecond."""
    with Tenants(("-r", 1000, 60000, LIFE)):
        recording = with_all_ticks(Recording, "changes")
    recording.check_victims()
    recording.check_end()


def test_mappings_that_change_within_the_limit():
    """So many mappings that they can just be published, in several processes that all change them all the time."""
    with Tenants(*[("-r", 1000, "-b", 20, "-s", 60, 4000, LIFE)] * 2, ("-r", 1000, 400, LIFE)) as tenants:
        recording = with_all_ticks(Recording, "limit")
    recording.check_publications([tenant.pid for tenant in tenants])
    recording.check_victims()
    recording.check_end()


class TimedRecording:
    """Of a target, for some seconds."""

    def __init__(self, seconds, *target):
        need_root()
        self.seconds, self.path, self.host = seconds, scratch("timed.sysprof"), HostDelay()
        stolen = stolen_ns()
        with Background(SYSPROF, "record", *target, "-d", seconds, "-F", HZ, "-o", self.path) as recorder:
            self.reported = self.host.finish(recorder, 120, check=0)
        self.stolen = (stolen_ns() - stolen) * HZ / 1e9

    def check_end(self):
        """It samples no longer than it should, but for the time in which the host had no CPU for it."""
        events = list(recording_events(self.path))
        began, = (when for kind, _, when, body in events if kind == EVENT_META and body.startswith(b"sampling_start\0"))
        ended, = (when for kind, _, when, _ in events if kind == EVENT_END)
        ticking = max(b.due for b in recording_books(self.path).values()) / HZ
        took, delay = max((ended - began) / 1e9, ticking), self.host.ns(began, ended) / 1e9
        print(f"  {self.seconds} s were {took:.2f} s, in {delay:.2f} s of which the host had no CPU for it")
        assert took - delay <= self.seconds + 3, self.reported


def test_mappings_that_change_in_the_whole_system():
    """The same of two processes, in a recording of the whole system: each sample is of other mappings than the one before."""
    with Tenants(*[("-r", 1000, 60000, LIFE)] * 2):
        recording = with_all_ticks(TimedRecording, 3, "-a")
    recording.check_end()


def test_a_storm_ends_with_its_time():
    """Two processes that map as fast as they can: the recording ends when it should."""
    with Tenants(*[("-r", 0, 30000, LIFE)] * 2):
        recording = TimedRecording(2, "-p", os.getpid())
    recording.check_end()
    run(SYSPROF, "report", recording.path, check=0)


# ---- programs of root's that start meanwhile -----------------------------------------------------

LIBRARIES, STARTS = 60, 6
STARTING = 100  # samples of a program, one a ms of CPU time, until its mappings are known, and its 60 tables


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
        """The linker's option, and the bytes, which are not those of anything else in the file."""
        number = 0x7e57 << 144 | program << 32 | file << 16 | os.getpid() & 0xffff
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
            data = read(f"{self.place}/0/{name}", "rb")
            old, new = self.build_id(0, file)[1], self.build_id(number, file)[1]
            assert data.count(old) == 1, name
            write(f"{self.place}/{number}/{name}", data.replace(old, new))
        shutil.copymode(program, f"{self.place}/{number}/chained")
        return f"{self.place}/{number}/chained"


def attackers(users):
    """40 with more mappings than one may have; and 30 that have theirs looked at again and again: by mmap, execve and fork."""
    ways = product((("-r", 2000), ("-e", 100), ("-f", 100)), (1000, 4000) * 5)
    commands = [("-b", 1, "-s", 150, 5000, LIFE)] * 40 + [(*how, "-b", 5, "-s", 45, count, LIFE) for how, count in ways]
    return [(command, users[i % len(users)]) for i, command in enumerate(commands)]


class Crowd:
    """Processes of several users, which give way to others that want a CPU; all of them map before they are waited for."""

    def __init__(self, commands):
        self.stack, self.commands = contextlib.ExitStack(), commands

    def __enter__(self):
        started = [self.stack.enter_context(Fixture("manymaps", *command, wrap=("nice", "-n", "19", *as_user(uid))))
                   for command, uid in self.commands]
        for tenant in started:
            tenant.wait_facts("mapped")

    def __exit__(self, *why):
        return self.stack.__exit__(*why)


class Starts:
    """A recording of programs that run one after the other."""

    def __init__(self, programs):
        self.path, self.started = new_scratch("starts.sysprof"), []
        stolen = stolen_ns()
        with Background(*RECORD_FIRST, "-p", os.getpid(), "-F", HZ, "-o", self.path) as recorder:
            started_sampling(recorder, self.path)
            time.sleep(3)
            for program in programs:
                self.started.append(Fixture(program, 100))
                wait_for(lambda: has_run(self.started[-1], 0.8), what="CPU time of a program")
                self.started[-1].finish()
            recorder.signal(signal.SIGINT)
            self.reported = recorder.finish(timeout=120, check=0)
        self.stolen = (stolen_ns() - stolen) * HZ / 1e9

    def check(self, what, least, samples):
        """So large a share of these samples of each program has a whole stack."""
        ends = [[end for _, end, *_ in of_program] for of_program in samples]
        whole, count = sum(e.count(stack_ends()[0]) for e in ends), sum(map(len, ends))
        print(f"  {what}: {whole} of {count} stacks are whole ({100 * whole / max(1, count):.1f} %):",
              *({end: e.count(end) for end in set(e)} for e in ends))
        assert count >= 100 * len(ends) and whole >= least * count, self.reported

    def check_all(self):
        every = [list(samples_of(self.path, process.wait_number("pid"))) for process in self.started]
        self.check("from the first sample on", 0.9, every)
        begun = [process.wait_number("start") for process in self.started]
        self.check("later", 0.99, [[s for s in samples if s[0] > start][STARTING:] for start, samples in zip(begun, every)])


def check_starts(users):
    need_root()
    programs = Programs.all()
    with Crowd(attackers(users)):
        with_all_ticks(Starts, programs.programs, is_whole=has_whole_stacks)


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
