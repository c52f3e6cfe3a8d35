#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""compare_firefox.py FILE NODE CLI: does the viewer that has loaded FILE see what is in it?

Helper of check_firefox.sh, which loads the file into a session of the viewer first.
"""

import json
import subprocess
import sys

import check_structure

MOST_TREES = 12  # a call costs the viewer a fifth of a second
MOST_MARKERS = 12


def send_request(node, cli, *arguments):
    out = subprocess.run([node, cli, *arguments, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)


def compare_markers(threads, written, call):
    """The markers of the threads that have most of them, by name."""
    errors = []
    most = sorted(zip(threads, written), key=lambda pair: -sum(pair[1]["markers"].values()))
    for seen, thread in most[:MOST_MARKERS]:
        if not thread["markers"]:
            continue
        listed = call("thread", "markers", "--thread", seen["threadHandle"])
        names = {kind["markerName"]: kind["count"] for kind in listed["byType"]}
        if names != thread["markers"]:
            errors.append("thread %s/%s: the markers %r are shown, %r were written" % (
                thread["pid"], thread["tid"], names, thread["markers"]))
    return errors


def compare_counters(written, listed):
    """All counters, with as many samples as the viewer can show, and the range of the memory's."""
    shown = sorted((c["name"], c["pid"], c["category"], c["label"], c["rangeSampleCount"]) for c in listed)
    wanted = sorted((c["name"], c["pid"], c["category"], c["label"], c["in_range"]) for c in written)
    return [] if shown == wanted else ["the counters %r are shown, %r were written" % (shown, wanted)]


def main():
    path, node, cli = sys.argv[1:]
    wanted = check_structure.check_file(path)
    errors = list(wanted["errors"])
    threads = send_request(node, cli, "thread", "list", "--sort", "index")["threads"]
    if len(threads) != len(wanted["threads"]):
        errors.append("%d threads are shown, %d were written" % (len(threads),
                                                                 len(wanted["threads"])))
    for seen, written in zip(threads, wanted["threads"]):
        what = "thread %s/%s" % (written["pid"], written["tid"])
        identity = (seen["pid"], str(seen["tid"]), seen["name"], seen["processName"])
        if identity != (written["pid"], written["tid"], written["name"], written["process"]):
            errors.append("%s is shown as %r" % (what, identity))
        # the viewer adds up doubles of milliseconds
        if abs(seen["cpuMs"] - written["cpu_ns"] / 1e6) > 0.001:
            errors.append("%s: %r ms of CPU are shown, %r were written" % (
                what, seen["cpuMs"], written["cpu_ns"] / 1e6))
    busiest = sorted(zip(threads, wanted["threads"]), key=lambda pair: -pair[1]["samples"])
    for seen, written in busiest[:MOST_TREES]:
        if not written["samples"] + written["waits"]:
            continue
        tree = send_request(node, cli, "thread", "samples-top-down", "--thread", seen["threadHandle"],
                   "--include-idle")["regularCallTree"]
        if tree["totalSamples"] != written["samples"] + written["waits"]:
            errors.append("thread %s/%s: its tree has %r samples, not %d and %d of waits" % (
                written["pid"], written["tid"], tree["totalSamples"], written["samples"], written["waits"]))
        if sum(child["totalSamples"] for child in tree["children"]) > tree["totalSamples"]:
            errors.append("thread %s/%s: the roots have more than all" % (written["pid"],
                                                                         written["tid"]))
    errors += compare_markers(threads, wanted["threads"],
                              lambda *arguments: send_request(node, cli, *arguments))
    errors += compare_counters(wanted["counters"], send_request(node, cli, "counter", "list")["counters"])
    for error in errors:
        print("%s: %s" % (path, error), file=sys.stderr)
    print("%s: %d threads, %d samples, %.6f s CPU, %d markers, %d counters as the viewer sees it" % (
        path, len(threads), wanted["samples"], sum(t["cpuMs"] for t in threads) / 1000,
        sum(sum(t["markers"].values()) for t in wanted["threads"]), len(wanted["counters"])))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
