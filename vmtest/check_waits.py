#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
#
# check_waits.py CONSOLE: what the guest recorded of the program with known waits (tests/fixtures/waits.c) against what its threads
# measured themselves, the same while the machine is suspended, and of a program whose quota is a tenth of a CPU. An emulated CPU is slow, and the host is busy: shares have
# more room than on a machine, sums have none.
import json
import math
import sys

from console import Console

STATES = ("sleep", "poll", "lock", "pipe", "network", "child")
MS = 1000000
STACKS = {"alternates": "alternates;", "burns": "burns;", "holds": "holds;", "wants": "wants;take_lock;", "idles": "idles;sleep_for;"}

console = Console(sys.argv[1], "wall")
section, report, check = console.section, console.report, console.check


def check_account(truth, row):
    name = truth["name"]
    for key in "running", "runnable":
        slack = 100 * MS + truth[key] / 10 + row["unvisited_ns"]
        check(abs(row[key + "_ns"] - truth[key]) <= slack, name, key, row[key + "_ns"], "is", truth[key])
    check(abs(row["ns"] - truth["lived"]) <= 0.1 * truth["lived"], name, row["ns"], "lived", truth["lived"])


def check_sums(row):
    parts = sum(row[key + "_ns"] for key in ("running", "runnable", "blocked", "unvisited"))
    check(parts == row["ns"], "the account does not add up:", row)
    check(sum(row["states"].values()) == row["runnable_ns"] + row["blocked_ns"], "states do not add up:", row)


def check_shares(truth, row):
    """Of the waits that it has measured: what else it waits for, as for memory in fork(), is little."""
    waited, found = (sum(of.get(state, 0) for state in STATES) for of in (truth, row["states"]))
    late = truth["runnable"] / truth["lived"]  # then visits are, too
    check(found >= 0.7 * row["blocked_ns"], truth["name"], "waits for something else:", row)
    for state in STATES:
        p, share = truth[state] / waited, row["states"].get(state, 0) / found
        error = math.sqrt(max(p * (1 - p), 0.001) / max(row["waits"], 1))
        check(abs(share - p) <= 4 * error + 0.1 + late, truth["name"], state, share, "is", p, "by", row["waits"], "waits")


def check_threads(name):
    truths = [json.loads(line) for line in section(name).splitlines() if line.startswith("{")]
    rows = {row["tid"]: row for row in report(name + " threads")["rows"]}
    check(len(truths) >= 8, "only", len(truths), "threads")
    for row in rows.values():
        check_sums(row)
    for truth in truths:
        check(truth["tid"] in rows, truth["name"], "was not visited")
        check_account(truth, rows[truth["tid"]])
    return [(truth, rows[truth["tid"]]) for truth in truths]


def check_holder(threads):
    holders = {row["tid"]: row["ns"] for row in report("wall holders")["rows"] if "holder" in row}
    right, waited = holders.get(threads["holds"]["tid"], 0), threads["wants"]["states"].get("lock", 0)
    others = sum(ns for tid, ns in holders.items() if tid not in (threads["holds"]["tid"], threads["wants"]["tid"]))
    check(others <= 0.05 * waited, "threads that have at most a lock of the kernel:", holders)
    # other threads may wait for it for some ms, too
    check(0.85 * waited <= right <= 1.01 * waited, "the holder is named for", right, "of", waited)
    return right / waited


def check_stacks():
    """From the thread's start to its own function: as often as samples are whole, which are cut until the first tables are built."""
    whole, total = dict.fromkeys(STACKS, 0), 0
    for line in section("wall stacks").splitlines():
        stack, _, count = line.rpartition(" ")
        thread = stack.partition(";")[0]
        if "[waiting: " in stack and "[between visits]" not in stack and thread in STACKS:
            total += int(count)
            whole[thread] += int(count) * (";run;" + STACKS[thread] in stack)
    share, wanted = sum(whole.values()) / max(total, 1), report("wall threads")["summary"]["complete_share"]
    check(share >= min(wanted - 0.1, 0.8) and sum(map(bool, whole.values())) >= 3, "whole stacks:", whole, "of", total, "samples:", wanted)
    return share


def check_throttled():
    states = {row["state"]: row["share"] for row in report("throttled states")["rows"]}
    check(states.get("throttled", 0) >= 0.75 and 0.03 <= states.get("running", 0) <= 0.2, "throttled:", states)
    return states["throttled"]


def check_completions():
    """Threads that wait for a read are in "disk", those that wait for events alone are parked."""
    rows = {row["thread"]: row for row in report("completions threads")["rows"]}
    waits = {name: "parked" if row.get("parked") else max(row["states"], key=row["states"].get) for name, row in rows.items()}
    for name in "ring events", "two rings", "aio events", "worker reads", "events, reads":
        check(waits.get(name) == ("disk" if "reads" in name else "parked"), "completions:", name, rows.get(name))


check_completions()
check_threads("suspended")  # frozen threads are stopped, so shares are others than their own
known = {}
for own, found in check_threads("wall"):
    check_shares(own, found)
    known[own["name"]] = found
print(f"wall: {len(known)} threads have their account; the holder is named for {100 * check_holder(known):.0f} %, "
      f"{100 * check_stacks():.0f} % of the stacks are whole, throttled for {100 * check_throttled():.0f} %")
