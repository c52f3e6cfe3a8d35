#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""sysprof diff --service: spans of time out of the files of an agent; real ones, made-up ones, and hostile ones."""
import glob
import gzip
import json
import os
import random
import subprocess
import time

from libe2e import SYSPROF, long, main, need_root, read, scratch, sysprof, wait_for, write
from libwindows import WINDOW, make, name_of, window_bytes


def compare(*words, check=0):
    return json.loads(sysprof("diff", "--json", *words, check=check).out)


def test_a_service_that_became_slower():
    """Yesterday and now; the other service did not change. The time without windows counts as no time."""
    place, rng, now = scratch("windows"), random.Random(1), time.time()
    make(place, now - 86400 + 5, now - 86400 + 1800, rng)
    make(place, now - 1800 + 5, now, rng, 1.4)
    write(os.path.join(place, "20261122T161404.123456789Z.json"), "{}")
    spans = "--old", "1 day ago+1h", "--new", "-1h"
    found = compare("--run-noise", "0", "--service", "shop", *spans, place)
    assert found["view"] == "second" and len(found["files"]) == 2, found["files"]
    assert all(abs(f["duration_ns"] / 1e9 - 1800) < 2 * WINDOW for f in found["files"]), found["files"]
    rows = {row["function"]: row for row in found["rows"]}
    assert rows["parse"]["verdict"] == "slower" and abs(rows["parse"]["relative"] - 0.4) < 0.1, rows.keys()
    assert any(t["old"]["freedom"] for t in found["tests"]), "the variance is not that of blocks of time"
    other = compare("--service", "other", *spans, place)
    assert other["rows"] == [], other["sentence"]
    page = scratch("service.html")
    sysprof("diff", "-o", page, "--service", "shop", *spans, place, check=0)
    assert os.path.getsize(page) > 50000


def test_several_spans_are_several_files():
    place, rng, now = scratch("days"), random.Random(2), time.time()
    for day in 3, 2, 1:
        make(place, now - day * 86400 + 1, now - day * 86400 + 300, rng)
    make(place, now - 1000, now, rng, 1.5)
    old = [w for day in (3, 2, 1) for w in ("--old", f"{day} days ago+10m")]
    new = [w for at in (15, 10, 5) for w in ("--new", f"{at} minutes ago+4m")]
    found = compare("--service", "shop", *old, *new, place)
    assert found["runs_measured"] and found["old"]["files"] == found["new"]["files"] == 3
    assert [row["function"] for row in found["rows"]][0] == "parse", found["sentence"]


def test_filters():
    """They keep and drop of a span what they do in a report of it: kept + dropped = all."""
    place, rng, now = scratch("filtered"), random.Random(5), time.time()
    make(place, now - 86400 + 5, now - 86400 + 600, rng)
    make(place, now - 600 + 5, now, rng, 1.5)
    spans = {"old": "1 day ago+1h", "new": "-1h"}
    shop, both = ("--service", "shop"), [word for side, span in spans.items() for word in (f"--{side}", span)]
    whole = compare(*shop, *both, place)
    for clauses in ["--focus", "parse"], ["--ignore", "^(parse|idle)$"], ["--hide", "^serve$", "--process", "shop"], ["--show-from", "^serve$"]:
        found = compare(*shop, *both, *clauses, place)
        assert found["view"] == "second" and len(found["files"]) == 2
        for file, all_of, span in zip(found["files"], whole["files"], spans.values()):
            report = json.loads(sysprof("report", "--json", *shop, "--span", span, *clauses, place, check=0).out)
            assert file["samples"] == report["summary"]["samples"] > 0 and file["cpu_ns"] == report["summary"]["cpu_ns"], (clauses, file)
            assert file["samples"] + file["dropped_samples"] == all_of["samples"], (clauses, file)
            assert file["cpu_ns"] + file["dropped_cpu_ns"] == all_of["cpu_ns"], (clauses, file)
            assert file["filter"] == report["summary"]["filter"]["text"], (clauses, file)
    assert compare(*shop, *both, "--ignore", "parse", "--view", "share", place)["rows"] == []
    assert "filter of NEW: " in sysprof("diff", *shop, *both, "--focus", "parse", place, check=0).out
    for clauses, message in (("--focus", "no such"), "no sample that the filter keeps"), (("--cpu", "0"), "cannot take a part of shop"), \
            (("--process", "other"), "no sample that the filter keeps"):
        done = sysprof("diff", *shop, *both, *clauses, place)
        assert done.status == 1 and not done.out and message in done.err, done


def test_what_is_refused():
    place, now = scratch("few"), time.time()
    make(place, now - 60, now, random.Random(3))
    os.mkdir(scratch("empty"))

    def error(*words, status=1):
        done = sysprof("diff", *words)
        assert done.status == status and not done.out, done
        return done.err

    shop = "--service", "shop", "--old", "-1h", "--new", "-1h"
    assert "no windows of an agent" in error(*shop, scratch("empty"))
    assert "cannot open the directory" in error(*shop, scratch("missing"))
    assert "there is no window of shop" in error("--service", "shop", "--old", "1 day ago+1h", "--new", "-1h", place)
    assert "no sample of the service shopping" in error("--service", "shopping", "--old", "-1h", "--new", "-1h", place)
    for words in ["--old", "-1h", "a", "b"], [*shop, "a", "b"], [*shop, "a", "--", "b"], \
            ["--service", "shop", "--old", "-1h", place], ["--service", "shop", "--old", "soon", "--new", "-1h", place]:
        error(*words, status=2)


def test_hostile_files():
    """One that is damaged is named; names that are no times, links to nowhere and directories are not windows."""
    place, now = scratch("hostile"), time.time()
    make(place, now - 60, now, random.Random(4))
    for name in "x.pb.gz", "20261322T161404.123456789Z.pb.gz", "20261122T161404.12345678.Z.pb.gz", "-rf":
        write(os.path.join(place, name), b"\xff" * 100)
    shop = "--service", "shop", "--old", "-1h", "--new", "-1h", place
    compare(*shop)
    for bad in b"", b"\xff" * 100, gzip.compress(b"\xff" * 1000), gzip.compress(b"\x0a\x00" * 100000), \
            window_bytes(now, {"shop": {("a",) * 3: 5}})[:-20]:
        path = os.path.join(place, name_of(now - 30.5))
        write(path, bad)
        done = sysprof("diff", *shop)
        assert done.status == 1 and os.path.basename(path) in done.err, done
    os.unlink(path)
    os.symlink("/nowhere", path)
    assert sysprof("diff", *shop).status == 1
    os.unlink(path)
    os.mkdir(path)
    assert "it is a directory" in sysprof("diff", *shop).err


@long
def test_a_real_agent():
    """Windows as an agent writes them, with waits, and the same ones in the spools of backends that do not answer: their CPU time."""
    need_root()
    place, spool = scratch("real"), scratch("spool")
    os.mkdir(place)
    spin = subprocess.Popen(["python3", "-c", "import time\nwhile True: sum(range(400000)), time.sleep(0.03)"], env={**os.environ, "OTEL_SERVICE_NAME": "spin"})
    sinks = [w for kind in ("pyroscope", "parca", "otlp") for w in ("--sink", f"{kind}:http://127.0.0.1:1")]
    agent = subprocess.Popen([SYSPROF, "agent", "--sink", f"dir:{place}", *sinks, "--spool", spool, "--listen", "none",
                              "--window", "10", "--wall", "10"], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: sum('"spin"' in read(path) for path in glob.glob(f"{place}/*.json")) >= 2, 200, "two windows of spin")
    finally:
        spin.kill()
        spin.wait()
        agent.terminate()
        agent.wait(60)
    spans = "--old", "-10m", "--new", "-10m"
    found = compare("--service", "spin", *spans, place)
    assert found["old"]["samples"] == found["new"]["samples"] > 0 and found["rows"] == []
    assert_spools(spool, found, spans)


# OTLP has counts alone and Parca CPU time alone: the other value is a count of periods, which are not equally long on a busy host.
SENT = {"otlp": ("samples", "duration_ns"), "parca": ("cpu_ns", "duration_ns"), "pyroscope": ("samples", "cpu_ns", "duration_ns")}


def assert_spools(spool, wanted, spans):
    """What waits in each spool has the CPU time of the files; of two spools one is to be named; damage is said or passed over."""
    places = [os.path.join(spool, name) for name in sorted(os.listdir(spool))]
    assert [os.path.basename(p).split("-")[0] for p in places] == ["otlp", "parca", "pyroscope"], places
    for path in places:
        found = compare("--service", "spin", *spans, path)
        assert found["view"] == "second" and found["rows"] == [], found["sentence"]
        for key in SENT[os.path.basename(path).split("-")[0]]:
            assert found["old"][key] == wanted["old"][key], (path, key, found["old"], wanted["old"])
        alone = json.loads(sysprof("report", "--json", "--service", "spin", "--span", "-10m", path, check=0).out)["summary"]
        assert all(alone[key] == found["old"][key] for key in ("samples", "cpu_ns")), (path, alone, found["old"])
        names = {t["function"] for t in found["tests"]}
        assert {t["function"] for t in wanted["tests"] if t["old_samples"] > 100} <= names, (path, names)
    several = sysprof("diff", "--service", "spin", *spans, spool)
    assert several.status == 1 and "the spools of several sinks" in several.err, several
    missing = sysprof("diff", "--service", "nothing", *spans, places[2])
    assert missing.status == 1 and "no sample of the service nothing" in missing.err, missing
    files = sorted(os.path.join(places[2], name) for name in os.listdir(places[2]) if name.endswith(".win"))
    with open(files[0], "r+b") as file:  # a body: its hash shows it
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    damaged = sysprof("diff", "--service", "spin", *spans, places[2])
    assert damaged.status == 1 and "is damaged" in damaged.err, damaged
    with open(files[0], "r+b") as file:  # torn, as after a power cut: it is no window
        file.truncate(40)
    compare("--service", "spin", *spans, places[2])
    os.chown(files[0], 12345, -1)
    foreign = sysprof("diff", "--service", "spin", *spans, places[2])
    assert foreign.status == 1 and "another user" in foreign.err, foreign


if __name__ == "__main__":
    main(globals())
