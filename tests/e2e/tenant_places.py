#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 240
"""Users whose processes have tens of thousands of executable mappings: others' stacks are whole all the same, no ticks
are lost, and the recording ends when it should.
"""
import contextlib
import os
import re
import signal
import struct
import time

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, Fixture, main, need_root, recording_books, recording_events,
                    run, scratch, stolen_ns, wait_for)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOBODY, SOMEBODY = 65534, 65533
HZ, EVENT_META, EVENT_END = 999, 26, 28
VICTIMS = ("chain", "chain-no-fp")
LOST = "ring-full", "re-entry", "internal", "not-run"
NO_MEMORY, NO_USER = "no-memory", "no-user"


def stack_ends():
    with open(f"{TOP}/include/sysprof/event.h", encoding="utf-8") as f:
        text = f.read()
    table = text[text.index("#define STACK_ENDS"):text.index("enum stack_end {")]
    return re.findall(r'X\(\w+, "([\w-]+)"', table)


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
    """(time, how the user stack ended, tag of its mappings) of each sample of a process."""
    ends = stack_ends()
    for kind, _, when, body in recording_events(path):
        if kind != EVENT_SAMPLE or struct.unpack_from("<I", body, 16)[0] != pid:
            continue
        end, tag = struct.unpack_from("<B", body, 32)[0], struct.unpack_from("<I", body, 36)[0]
        if ends[end] not in (NO_MEMORY, NO_USER):
            yield when, ends[end], tag


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
            ends = [end for _, end, _ in samples]
            count, whole = len(ends), ends.count(stack_ends()[0])
            later = [end for when, end, _ in samples if when > begin + 5e8]
            tags = [tag for when, _, tag in samples if when > begin + 5e8]
            walked = sum(tag != 0 for tag in tags)
            print(f"  {os.path.basename(victim.p.args[-2])}: {whole} of {count} stacks are whole, {walked} of {len(tags)} "
                  f"walked in the kernel; { {end: ends.count(end) for end in set(ends)} }")
            assert len(tags) >= 5, (count, self.reported)
            assert later.count(stack_ends()[0]) >= 0.99 * len(later) - 1, self.reported
            # the first ones are copies, which may be too many at a time
            assert whole >= 0.9 * count - 3, self.reported
            assert walked >= 0.9 * len(tags), self.reported

    def check_ticks(self):
        books = recording_books(self.path).values()
        due = sum(b.due for b in books)
        lost = {name: sum(b.count[name] for b in books) for name in LOST}
        print(f"  of {due:.0f} ticks {lost} were lost, {self.stolen:.0f} were stolen")
        assert sum(lost.values()) <= 0.01 * due + self.stolen, (lost, due, self.reported)


    def check_publications(self, pids):
        """Ten a second of a process at most, and some more while it is young; each has a tag of its own."""
        for pid in pids:
            samples = list(samples_of(self.path, pid))
            tags = {tag for _, _, tag in samples if tag}
            seconds = (samples[-1][0] - samples[0][0]) / 1e9 if samples else 0
            print(f"  {len(samples)} samples of a tenant by {len(tags)} publications in {seconds:.1f} s")
            assert len(samples) >= 5 and len(tags) <= 20 + 11 * seconds, (len(samples), len(tags), seconds)

    def check_end(self):
        assert self.stopping <= 10, self.reported


def test_places_are_shared():
    """
    More processes than there is room for: with nearly as many mappings as one may have, with so few that they fill
    what is left, and some with too many.
    """
    many = [4000] * 36 + [100] * 40 + [1] * 20 + [5000] * 4
    with Tenants(*[("-b", 1, "-s", 150, count, 60) for count in many]):
        recording = Recording("places")
    recording.check_victims()
    recording.check_ticks()
    assert "executable mappings: their stacks were copied" in recording.reported.err, recording.reported


def test_mappings_that_change():
    """As many mappings as a process may have, one of which changes each millisecond."""
    with Tenants(("-r", 1000, 60000, 60)):
        recording = Recording("changes")
    recording.check_victims()
    recording.check_ticks()
    recording.check_end()


def test_mappings_that_change_within_the_limit():
    """So many mappings that they can just be published, in several processes that all change them all the time."""
    with Tenants(*[("-r", 1000, "-b", 20, "-s", 60, 4000, 60)] * 2, ("-r", 1000, 400, 60)) as tenants:
        recording = Recording("limit")
    recording.check_publications([tenant.pid for tenant in tenants])
    recording.check_victims()
    recording.check_ticks()
    recording.check_end()


def test_mappings_that_change_in_the_whole_system():
    """The same of two processes, for who samples everybody: each sample is of other mappings than the one before."""
    need_root()
    path, seconds = scratch("whole.sysprof"), 3
    stolen = stolen_ns()
    with Tenants(*[("-r", 1000, 60000, 60)] * 2):
        reported = run(SYSPROF, "record", "-a", "-d", seconds, "-F", HZ, "-o", path, timeout=120, check=0)
    books = recording_books(path).values()
    due, lost = sum(b.due for b in books), sum(b.count[name] for b in books for name in LOST)
    longest = max(b.due for b in books) / HZ
    print(f"  {seconds} s were {longest:.2f} s; of {due:.0f} ticks {lost} were lost")
    assert longest <= seconds + 3, reported
    assert lost <= 0.01 * due + (stolen_ns() - stolen) * HZ / 1e9, reported


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


if __name__ == "__main__":
    main(globals())
