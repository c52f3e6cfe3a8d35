#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Samples of events that are no clock: how many events they stand for, and the books, against the kernel's own counts."""
import gzip
import json

import libe2e as e

FUNCTIONS = ("touch_six", "touch_three", "touch_one")


class Touched:
    """
    A recording of page faults of `touch`, which knows them. Nothing preempts it: of a period in which another program has
    faults as well, all or nothing counts as its own.
    """

    def __init__(self, rounds, *options):
        self.path, self.folded, self.pprof = (e.scratch(f"touched.{suffix}") for suffix in ("sysprof", "folded", "pb.gz"))
        self.result = e.record("-e", "page-faults", *options, "-o", self.path, "-o", self.folded, "-o", self.pprof, "--",
                               "chrt", "-f", 1, e.fixture("touch"), rounds)
        lines = self.result.out.split("\n")
        self.truth = dict(zip(FUNCTIONS, map(int, lines[1].split())))
        self.faults = int(lines[2].split()[1])
        report = json.loads(e.sysprof("report", "--json", self.path).out)
        self.summary = report["summary"]
        self.rows = {row["function"]: row for row in report["rows"] if row.get("dso") == "touch"}

    def lost(self):
        return sum(self.summary["books"][line] for line in ("ring-full", "re-entry", "internal", "not-run"))

    def check_books(self):
        books = e.recording_books(self.path)
        assert self.summary["event"] == "page-faults" and self.summary["event_unit"] == "count", self.summary
        for book in books.values():
            assert book.final and book.counted == sum(book.count.values()), book
        assert sum(b.count["delivered"] for b in books.values()) == self.summary["events"], books
        assert self.summary["unexplained"] == 0, self.summary


def test_each_fault():
    """With a sample each, nothing is an estimate. Faults whose overflow did not run the program are in the books."""
    t = Touched(300, "-c", 1)
    t.check_books()
    assert abs(t.summary["events"] - t.faults) <= 0.01 * t.faults + t.lost(), (t.summary["events"], t.faults)
    for name, pages in t.truth.items():
        assert abs(t.rows[name]["self"] - pages) <= 0.01 * pages + t.lost(), (name, t.rows[name], pages)
    with open(t.folded, encoding="utf-8") as f:
        assert f.readline() == "# samples: each 1 count of page-faults\n"
        assert sum(int(line.rpartition(" ")[2]) for line in f) == t.summary["events"]
    with gzip.open(t.pprof) as f:
        assert b"page-faults" in f.read(), "a sample type of pprof"
    again = json.loads(e.sysprof("report", "--json", t.pprof).out)
    assert [again["summary"][key] for key in ("event", "events", "samples")] == ["page-faults", t.summary["events"], t.summary["samples"]]
    assert {row["function"]: row["self"] for row in again["rows"] if row["function"] in FUNCTIONS} == \
        {name: t.rows[name]["self"] for name in FUNCTIONS}


def check_shares(t):
    """Errors as the report has them: half of a 95 % interval is 1.96 of them."""
    t.check_books()
    pages = sum(t.truth.values())
    assert abs(t.summary["events"] - t.faults) <= 0.01 * t.faults + t.lost() + t.summary["events"] / t.summary["samples"] * 3, t.summary
    for name, own in t.truth.items():
        low, high = t.rows[name]["self_interval"]
        off = t.rows[name]["self_share"] * t.summary["events"] / t.faults - own / t.faults
        assert abs(off) <= 3 * (high - low) / 2 / 1.96 + 0.01, (name, off, own / pages, t.rows[name])


@e.long
def test_a_sample_each_so_many():
    check_shares(Touched(3000, "-c", 17))


@e.long
def test_at_a_rate():
    """The kernel chooses periods, from one event up: a count of samples would be off by much more."""
    t = Touched(3000, "-F", 999)
    check_shares(t)
    assert t.summary["events"] > 2 * t.summary["samples"], t.summary


@e.long
def test_switches():
    """Those of the two ends of a pipe, by the kernel's account of each process."""
    program = ("import os, resource\n"
               "a, b = os.pipe(), os.pipe()\n"
               "if not os.fork():\n"
               "    [os.write(b[1], os.read(a[0], 1)) for _ in range(2000)]\n"
               "    os._exit(0)\n"
               "for _ in range(2000):\n"
               "    os.write(a[1], b'x'), os.read(b[0], 1)\n"
               "os.wait()\n"
               "own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
               "print(sum(u.ru_nvcsw + u.ru_nivcsw for u in (own, child)))\n")
    path = e.scratch("switches.sysprof")
    out = e.record("-e", "cs", "-c", 1, "-o", path, "--", "/usr/bin/python3", "-c", program).out
    summary = json.loads(e.sysprof("report", "--json", path).out)["summary"]
    lost = sum(summary["books"][line] for line in ("ring-full", "re-entry", "internal", "not-run"))
    assert summary["event"] == "context-switches"
    assert abs(summary["events"] - int(out)) <= 0.02 * int(out) + lost, (summary["events"], out, lost)


def test_listed():
    events = {row["name"]: row for row in json.loads(e.sysprof("check", "--events", "--json").out)["events"]}
    for name in ("cpu-clock", "page-faults", "major-faults", "context-switches", "cpu-migrations"):
        assert events[name]["available"], events[name]
    assert all(row["available"] or row["detail"] for row in events.values()), events
    refused = e.sysprof("record", "-e", "page-fault", "-a", "-d", 1, check=2).err
    assert "check --events" in refused, refused
    assert "tracepoints are not supported" in e.sysprof("record", "-e", "sched:sched_switch", "-a", check=2).err
    assert "cycles" not in refused and "page-faults" in refused, refused


def test_event_in_all_formats():
    """A file of any format is of its event: comparable with its own recording, and not with one of CPU time."""
    t = Touched(100, "-c", 37)
    clock = e.scratch("clock.pb.gz")
    e.record("-o", clock, "--", e.fixture("touch"), 100)
    files = [t.pprof, t.folded] + [e.scratch("touched" + suffix) for suffix in (".json.gz", ".cpuprofile", ".trace.json")]
    e.sysprof("convert", t.path, *(word for path in files[2:] for word in ("-o", path)), check=0)
    for path in files:
        assert "page-faults" in e.sysprof("diff", path, t.path, check=0).out, path
        refused = e.sysprof("diff", clock, path, check=1).err
        assert f"{clock} is of the event cpu-clock, {path} of page-faults" in refused, refused


def test_no_event():
    """A share of no samples is not printed."""
    e.need_root()
    path = e.scratch("none.sysprof")
    summary = e.sysprof("record", "-e", "emulation-faults", "-o", path, "--", "true", check=0).err
    reported = e.sysprof("report", path, check=0).out
    assert "0 samples" in summary and "complete stacks" not in summary, summary
    assert "samples    0 from" in reported and "% complete" not in reported, reported


e.main(globals())
