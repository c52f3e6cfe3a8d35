#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Somebody who kills the processes that build unwind tables again and again holds up the tables while he does, and nothing else.

What these processes may do is in helper_classes.json.
"""
import os
import re
import signal
import struct
import time

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, Fixture, GrowingRecording, children_of, main, need_root, read, scratch,
                    stack_ends, started_sampling, status_of, sysprof, use_cpu, wait_for)

ROOT, NO_MEMORY, NO_USER = "root", "no-memory", "no-user"
BIG_FILES = 8
FEW = 50  # stacks
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


class Stacks:
    """How the stacks of a process end, in a recording that is being written."""

    def __init__(self, path, file, tgid):
        self.recording, self.tgid, self.names, self.ends = GrowingRecording(path, file), tgid, stack_ends(), []

    def read_on(self):
        """[(time in ns, end)], without those of which the summary counts that the stack was not copied."""
        for kind, _, when, body in self.recording.new_events():
            if kind == EVENT_SAMPLE and struct.unpack_from("<I", body, 16)[0] == self.tgid:
                end = self.names[struct.unpack_from("<IIIHHB", body, 16)[5]]
                if end not in (NO_MEMORY, NO_USER):
                    self.ends.append((when, end))
        return self.ends

    def after(self, since):
        """How many there are after that time (CLOCK_MONOTONIC s), and the share of whole ones."""
        ends = [end for when, end in self.read_on() if when >= since * 1e9]
        return len(ends), ends.count(ROOT) / max(1, len(ends))

    def are_whole(self):
        last = [end for _, end in self.read_on()[-FEW:]]
        return last.count(ROOT) == FEW


def test_killed_again_and_again():
    """The collector goes on, the files say why they have no table, and in the end they have one."""
    need_root()
    path, files = scratch("killed.sysprof"), big_files()
    with Background("python3", "-c", MAPPER, *files) as mapper, Fixture("deep-no-fp", "60", "600") as victim:
        wait_for(lambda: all(file in read(f"/proc/{mapper.pid}/maps") for file in files), what="the mappings")
        with Background(SYSPROF, "record", "-p", f"{mapper.pid},{victim.pid}", "-F", "499", "--no-symbol-cache",
                        "-o", path) as recorder:
            killer = Killer(wait_for(lambda: keeper_of(recorder), what="the keeper"))
            killer.run(3, 60)
            started_sampling(recorder, path)
            with open(path, "rb") as f:
                stacks, killed = Stacks(path, f, victim.pid), time.clock_gettime(time.CLOCK_MONOTONIC)
                # a table whose builder was killed is requested again after 3 s, and those of large files take time
                wait_for(stacks.are_whole, 120, "whole stacks")
                calm = time.clock_gettime(time.CLOCK_MONOTONIC)
                use_cpu(victim.pid, 1)
                recorder.signal(signal.SIGINT)
                result = recorder.finish(check=0)
                count, whole = stacks.after(calm)
    print(f"  killed {killer.working} builders at work and {killer.waiting} that waited; whole stacks {calm - killed:.1f} s later")
    assert killer.working >= 10 and killer.waiting >= 3, (killer.working, killer.waiting, result)
    died = re.search(r"files without an unwind table: (\d+): the process that built it ended", result.err)
    assert died and int(died[1]) >= 1, result
    print(f"  {died[1]} tables were not built; afterwards {whole:.4f} of {count} stacks of the victim are whole")
    assert count >= 300 and whole >= 0.97, result
    assert sysprof("report", path, check=0).out


if __name__ == "__main__":
    main(globals())
