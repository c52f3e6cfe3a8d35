#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""CPUs that come and go while we record, and what the rings of many take. Here the list of CPUs is a file of ours that
lies over the kernel's; in vmtest/ they really go."""
import os
import re
import signal
import struct

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, Fixture, Skip, comms, fixture, folded, has_chain, load_json,
                    main, need_root, read, record, recording_books, recording_events, run, scratch, share,
                    started_sampling, sysprof, total, wait_for, write)

ONLINE = "/sys/devices/system/cpu/online"
LIMIT = 120


def two_cpus():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU only")
    return cpus[:2]


def samples_of(path, cpu):
    """So far: the books come once a second only."""
    return sum(kind == EVENT_SAMPLE and struct.unpack_from("<I", body, 24)[0] == cpu
               for kind, _, _, body in recording_events(path))


class OnlineCpus:
    """The list, as sysprof sees it."""

    def __init__(self, *cpus):
        self.path = scratch("online")
        self.set(*cpus)

    def set(self, *cpus):
        write(self.path, ",".join(map(str, cpus)) + "\n")

    def record(self, *args):
        return Background("unshare", "-m", "sh", "-c", f"mount --bind {self.path} {ONLINE} && exec \"$@\"", "sh",
                          SYSPROF, "record", *args)


def test_cpu_comes_goes_and_comes_back():
    need_root()
    first, second = two_cpus()
    online, path, stacks, firefox = (OnlineCpus(first), scratch("cpus.sysprof"), scratch("cpus.folded"),
                                     scratch("cpus.json.gz"))

    def reported(word, count):
        return len(re.findall(rb"CPU %d %s at" % (second, word), read(path, "rb").rpartition(b"cpu_changes")[2])) >= count

    with Fixture("loop", "-c", second, "60") as loop:
        loop.wait_facts("pid")
        with online.record("-p", loop.pid, "-d", "30", "-o", path, "-o", stacks, "-o", firefox) as recorder:
            started_sampling(recorder, path)
            online.set(first, second)
            wait_for(lambda: reported(b"online", 1), LIMIT, "the CPU that came")
            online.set(first)
            wait_for(lambda: reported(b"offline", 1), LIMIT, "the CPU that went")
            online.set(first, second)
            wait_for(lambda: reported(b"online", 2), LIMIT, "the CPU that came back")
            wait_for(lambda: samples_of(path, second) > 100, LIMIT, "samples of it")
            recorder.signal(signal.SIGINT)
            result = recorder.finish(timeout=LIMIT, check=0)
    books = recording_books(path)
    assert set(books) == {first, second}, books
    mine = books[second]
    assert mine.final and mine.samples == mine.received == mine.count["delivered"], mine
    # due is counted anew with each event: a tick at most is cut off each time
    assert abs(mine.due - sum(mine.count.values())) < 6 + mine.due / 100, mine
    assert total(folded(stacks)) == mine.samples > 100, mine
    changes = rf"CPU {second} online at [\d.]+ s; CPU {second} offline at [\d.]+ s; CPU {second} online at"
    assert re.search(changes, result.err), result
    assert re.search(changes, sysprof("report", path, check=0).out)
    assert re.search(changes, str(load_json(firefox)["meta"]["extra"]))
    again = scratch("cpus-again.folded")
    run(SYSPROF, "convert", path, "-o", again, check=0)
    assert folded(again) == folded(stacks)


def test_what_nobody_saw_is_read_again():
    """While its CPU was away to us, the process has become another program."""
    need_root()
    first, second = two_cpus()
    online, path, stacks = OnlineCpus(first), scratch("seen.sysprof"), scratch("seen.folded")
    with Fixture("thread_exec", fixture("chain"), "60", wrap=("taskset", "-c", str(second))) as program:
        program.wait_facts("tid", 2)
        with online.record("-p", program.pid, "-d", "30", "-o", path, "-o", stacks) as recorder:
            started_sampling(recorder, path)
            program.signal(signal.SIGUSR1)
            program.wait_facts("start")
            online.set(first, second)
            wait_for(lambda: samples_of(path, second) > 100, LIMIT, "samples of it")
            recorder.signal(signal.SIGINT)
            recorder.finish(timeout=LIMIT, check=0)
    rows = folded(stacks)
    assert set(comms(rows)) == {"chain"}, comms(rows)
    assert share(rows, lambda f: has_chain(f, "main", "outer", "middle", "inner", "leaf")) > 0.5, rows


def test_memory_of_rings():
    """What a user says, and what is got."""
    need_root()
    sizes = []
    for options in (), ("--ring-mem", "1"):
        result = record("-v", *options, "-o", scratch("rings.folded"), "--", SYSPROF, "--version")
        numbers = re.search(r"rings per CPU: samples (\d+) bytes.*side-band (\d+) bytes", result.err)
        assert numbers, result
        sizes.append(int(numbers[1]) + int(numbers[2]))
        online = len(os.sched_getaffinity(0))
        assert sizes[-1] * online <= (64 << 20 if not options else 1 << 20) or online > 16, (sizes, online)
    assert sizes[1] < sizes[0], sizes
    for value in "0", "x", "65537":
        assert sysprof("record", "--ring-mem", value, "-a").status == 2


if __name__ == "__main__":
    main(globals())
