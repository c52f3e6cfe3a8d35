#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 200
# runs: beside
"""Somebody who kills the processes that build unwind tables again and again holds up the tables while he does, and nothing else.

What these processes may do is in helper_classes.json.
"""
import os
import re
import signal
import struct
import time

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, Fixture, children_of, main, need_root, recording_events, scratch,
                    stack_ends, status_of, sysprof, wait_for)

ROOT, NO_MEMORY, NO_USER = "root", "no-memory", "no-user"
BIG_FILES = 8
RETRY = 3.0  # s: until a table is asked for again whose builder was killed
MAPPER = """
import mmap, os, sys, time
maps = [mmap.mmap(os.open(path, os.O_RDONLY), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        for path in sys.argv[1:]]
while True:
    sum(range(50000)), time.sleep(0.01)
"""


def big_files():
    """Libraries whose tables take some time to build."""
    found = {}
    for directory, _, names in os.walk("/usr/lib"):
        for name in names:
            path = os.path.join(directory, name)
            if ".so" in name and os.path.isfile(path) and not os.path.islink(path):
                found[path] = os.path.getsize(path)
    return sorted(found, key=found.get)[-BIG_FILES:]


def keeper_of(recorder):
    return next((pid for pid in children_of(recorder.pid) if status_of(pid).get("Name") == "sysprof-builder"), None)


class Killer:
    """Ends every builder that is at work, and now and then one that waits for its file."""

    def __init__(self, keeper):
        self.keeper, self.working, self.waiting, self.last = keeper, 0, 0, 0.0

    def run(self, seconds, at_most):
        """For some seconds, and on a busy machine until it has met some of both."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds or ((self.working < 10 or self.waiting < 3) and
                                                     time.monotonic() < begin + at_most):
            for pid in children_of(self.keeper):
                self.look_at(pid)

    def look_at(self, pid):
        works = status_of(pid).get("Seccomp") == "2"
        if not works and time.monotonic() < self.last + 0.1:
            return
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        if works:
            self.working += 1
        else:
            self.waiting += 1
            self.last = time.monotonic()


def whole_after(path, tgid, since):
    """How many stacks of a process there are after that time (CLOCK_MONOTONIC s), and the share of whole ones."""
    ends, whole, count = stack_ends(), 0, 0
    for kind, _, when, body in recording_events(path):
        if kind != EVENT_SAMPLE or when < since * 1e9 or struct.unpack_from("<I", body, 16)[0] != tgid:
            continue
        end = ends[struct.unpack_from("<IIIHHB", body, 16)[5]]
        if end not in (NO_MEMORY, NO_USER):
            count += 1
            whole += end == ROOT
    return count, whole / max(1, count)


def test_killed_again_and_again():
    """The collector goes on, the files say why they have no table, and in the end they have one."""
    need_root()
    path = scratch("killed.sysprof")
    with Background("python3", "-c", MAPPER, *big_files()) as mapper, Fixture("deep-no-fp", "60", "60") as victim:
        time.sleep(0.5)
        with Background(SYSPROF, "record", "-p", f"{mapper.pid},{victim.pid}", "-d", "60", "-F", "499", "--no-symbol-cache",
                        "-o", path) as recorder:
            killer = Killer(wait_for(lambda: keeper_of(recorder), 20, "the keeper"))
            killer.run(3, 30)
            time.sleep(RETRY + 1)
            calm = time.clock_gettime(time.CLOCK_MONOTONIC)
            time.sleep(1.5)
            recorder.signal(signal.SIGINT)
            result = recorder.finish(check=0)
    print(f"  killed {killer.working} builders at work and {killer.waiting} that waited")
    assert killer.working >= 10 and killer.waiting >= 3, (killer.working, killer.waiting, result)
    died = re.search(r"files without an unwind table: (\d+): the process that built it ended", result.err)
    assert died and int(died[1]) >= 1, result
    count, whole = whole_after(path, victim.pid, calm)
    print(f"  {died[1]} tables were not built; afterwards {whole:.4f} of {count} stacks of the victim are whole")
    assert count >= 50 and whole >= 0.97, result
    assert sysprof("report", path, check=0).out


if __name__ == "__main__":
    main(globals())
