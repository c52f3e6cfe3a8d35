# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to have a process of its own read what others could hold up."""
import subprocess

from libbench import Broken, bench, pick, table

NAMES = {"nothing": "nothing", "mappings": "the mappings of a small process", "file": "the search for a mapped file"}


def reading():
    rounds = pick(2000, 500)
    done = subprocess.run([bench("readers"), str(rounds)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"readers: {done.stderr}")
    rows = []
    for line in done.stdout.splitlines():
        name, one, queued, here = line.split()
        rows.append([NAMES[name], *(f"{int(ns) / 1000:.1f}" for ns in (one, queued, here))])
    table("Reader processes, µs a request", f"tests/bench/readers {rounds}",
          ["", "round trip", "many at a time", "in place"], rows,
          ["Known facts cost no request: a file is read once in each root, mappings once per process that existed before."])
