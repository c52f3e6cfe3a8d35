#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 200
# runs: beside
"""The processes that build unwind tables: what they may do, as /proc sees it, and that somebody who kills them again
and again holds up the tables while he does, and nothing else.
"""
import os
import re
import signal
import struct
import time

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, Fixture, children_of, main, need_root,
                    recording_events, scratch, stack_ends, sysprof, wait_for)

ROOT, NO_MEMORY, NO_USER = "root", "no-memory", "no-user"
BIG_FILES = 8
RETRY = 3.0  # s: until a table is asked for again whose builder was killed
MAPPER = """
import mmap, os, sys
maps = [mmap.mmap(os.open(path, os.O_RDONLY), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        for path in sys.argv[1:]]
while True:
    pass
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


def status_of(pid):
    """{} of one that has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def keeper_of(recorder):
    return next((pid for pid in children_of(recorder.pid) if status_of(pid).get("Name") == "sysprof-builder"), None)


def descriptors_of(pid):
    """{} of one that has ended."""
    try:
        return {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return {}


def maps_of(pid):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            return {line.split(None, 5)[5].strip() for line in f if len(line.split(None, 5)) > 5}
    except OSError:
        return set()


def limits_of(pid):
    try:
        with open(f"/proc/{pid}/limits", encoding="utf-8") as f:
            return {line[:26].strip(): line[26:].split()[0] for line in f}
    except OSError:
        return {}


class Seen:
    """A builder at work: what /proc said of it while it was there from the first to the last question."""

    def __init__(self, pid):
        self.status, self.fds, self.maps = status_of(pid), descriptors_of(pid), maps_of(pid)
        self.limits = limits_of(pid)
        try:
            self.root = os.listdir(f"/proc/{pid}/root/")
        except OSError:
            self.root = None
        # it is the same one, and has its file
        self.whole = (self.status.get("Seccomp") == "2" == status_of(pid).get("Seccomp") and
                      len(self.fds) == 6 and bool(self.maps) and bool(self.limits))


def builder_at_work(keeper, done):
    while not done():
        for pid in children_of(keeper):
            if status_of(pid).get("Seccomp") == "2":
                seen = Seen(pid)
                if seen.whole:
                    return seen
    return None


def see_builder(target):
    """What the collector may do, a builder that it had at work, and what it printed."""
    with Background(SYSPROF, "record", "-p", target, "-d", "60", "--no-symbol-cache", "-o", scratch("builder.sysprof")) as recorder:
        keeper = wait_for(lambda: keeper_of(recorder), 20, "the keeper")
        collector, end = status_of(recorder.pid), time.monotonic() + 10
        seen = builder_at_work(keeper, lambda: time.monotonic() > end)
        recorder.signal(signal.SIGINT)
        return collector, seen, recorder.finish(check=0)


def test_what_a_builder_may_do():
    """No capabilities, a user of its own, an empty root, no descriptors but its own, a filter, limits."""
    need_root()
    seen, tries = None, 0
    with Background("python3", "-c", MAPPER, *big_files()) as target:
        time.sleep(0.5)
        while not seen and tries < 5:
            collector, seen, result = see_builder(target.pid)
            tries += 1
    assert seen, "no builder was seen at work"
    uid = int(seen.status["Uid"].split()[0])
    print(f"  user {uid:#x}, {seen.status['VmRSS'].strip()}, files {sorted(seen.fds.values())}")
    assert int(collector["CapEff"], 16), "the collector has capabilities that could be inherited"
    for kind in "Inh", "Prm", "Eff", "Bnd", "Amb":
        assert int(seen.status[f"Cap{kind}"], 16) == 0, (kind, seen.status)
    assert seen.status["NoNewPrivs"] == "1" and seen.status["Threads"] == "1"
    assert len(set(seen.status["Uid"].split() + seen.status["Gid"].split())) == 1 and uid not in (0, os.getuid()), seen.status
    assert not seen.status["Groups"].split(), seen.status
    assert seen.fds[0] == seen.fds[1] == seen.fds[2] == "/dev/null" and seen.fds[3].startswith("socket:"), seen.fds
    assert seen.fds[5] == "/memfd:table (deleted)", seen.fds
    # numbers of descriptors, and nothing that could be opened
    assert seen.root is None or all(name.isdigit() for name in seen.root), seen.root
    assert not [name for name in seen.maps if name.startswith("anon_inode")], seen.maps
    assert int(seen.limits["Max cpu time"]) <= 10 and int(seen.limits["Max core file size"]) == 0, seen.limits
    assert int(seen.limits["Max address space"]) <= 4 << 30, seen.limits
    assert "the process that built it" not in result.err, result


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
