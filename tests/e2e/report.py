#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""sysprof report: its JSON against the schema in docs/, its trees against its tables, its text on a terminal."""
import copy
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading

from libe2e import GOLDEN, SYSPROF, main, quick, sysprof
from libreport import invalid

NAMES = "containers", "jit-reuse", "fork-exec", "pid-reuse", "cut-short", "lost-records", "services"
BY = "function", "thread", "process", "dso", "line", "service", "container", "unit", "user"


def recording(name):
    return os.path.join(GOLDEN, name + ".sysprof")


def report(name, *options):
    return json.loads(sysprof("report", recording(name), "--json", *options, check=0).out)


def shapes():
    for by in BY:
        for shape in [], ["--tree"], ["--tree", "--callers"]:
            yield ["--by", by, *shape]


def test_schema():
    """Every shape of several recordings keeps it; what has been tampered with does not."""
    good = [report(name, *options, "--min", "1%") for name in NAMES for options in shapes()]
    assert {d["by"] for d in good} == set(BY)
    assert not invalid(*good), invalid(*good)

    def tampered(document, change):
        document = copy.deepcopy(document)
        change(document)
        return document

    def row_of(document):
        return document["rows"][0]

    table = next(d for d in good if d["shape"] == "table" and d["by"] == "function" and d["rows"])
    tree = next(d for d in good if d["shape"] == "tree" and d["by"] == "thread" and d["rows"])
    bad = [
        tampered(table, lambda d: d.update(schema=2)),
        tampered(table, lambda d: d.pop("row_count")),
        tampered(table, lambda d: d.update(more=1)),
        tampered(table, lambda d: d["summary"].pop("samples")),
        tampered(table, lambda d: d["summary"].update(cut_short=0)),
        tampered(table, lambda d: row_of(d).update(self=-1)),
        tampered(table, lambda d: row_of(d).update(self_share=1.5)),
        tampered(table, lambda d: row_of(d)["self_interval"].append(1)),
        tampered(table, lambda d: row_of(d).pop("total_interval")),
        tampered(table, lambda d: row_of(d).pop("dso")),
        tampered(table, lambda d: row_of(d).update(depth=0)),
        tampered(tree, lambda d: row_of(d).pop("parent")),
        tampered(tree, lambda d: row_of(d).pop("self")),
        tampered(tree, lambda d: row_of(d).update(function="f")),
        tampered(tree, lambda d: d.update(shape="callers")),
    ]
    assert set(invalid(*bad)) == set(range(len(bad))), invalid(*bad)


@quick
def test_trees_and_tables():
    """The same figures in trees and tables."""
    for name in NAMES:
        table = report(name, "--top", 1000000)
        tree = report(name, "--tree", "--min", "0")
        callers = report(name, "--tree", "--callers", "--min", "0")
        samples = table["summary"]["samples"]
        for document in tree, callers:
            assert sum(r["total"] for r in document["rows"] if not r["depth"]) == samples
            for i, row in enumerate(document["rows"]):
                assert row["parent"] is None or row["parent"] < i
                assert row["cut"] == 0
        key = ("function", "dso")
        selfs = {tuple(r[k] for k in key): r["self"] for r in table["rows"] if r["self"]}
        roots = {tuple(r[k] for k in key): r["total"] for r in callers["rows"] if not r["depth"]}
        assert roots == selfs
        sums = {}
        for row in tree["rows"]:
            if row["self"]:
                at = tuple(row[k] for k in key)
                sums[at] = sums.get(at, 0) + row["self"]
        assert sums == selfs
        # a share leaves out what is below, and says how much
        cut = report(name, "--tree", "--min", "10%")
        assert all(row["total_share"] >= 0.1 for row in cut["rows"])
        assert cut["min_share"] == 0.1
        assert all(row["self_share"] >= 0.1 for row in report(name, "--min", "0.1")["rows"])


def test_deterministic():
    for options in shapes():
        one, two = (sysprof("report", recording("jit-reuse"), "--json", *options, check=0).out
                    for _ in range(2))
        assert one == two


def on_terminal(width, *options, **environment):
    """What report writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="")
    env.update(environment)
    with subprocess.Popen([SYSPROF, "report", recording("containers"), *options], stdout=theirs,
                          stdin=subprocess.DEVNULL, env=env) as program:
        # A hang-up can overtake the last output: the terminal stays open, and this mark is behind all of it.
        end = b"<the end of the output>"
        waiter = threading.Thread(target=lambda: (program.wait(), os.write(theirs, end)))
        waiter.start()
        text = b""
        while not text.endswith(end):
            text += os.read(ours, 65536)
        waiter.join()
    os.close(theirs)
    os.close(ours)
    assert program.returncode == 0
    return text[:-len(end)].decode().replace("\r\n", "\n")


def test_terminal():
    wide, narrow = (on_terminal(width, "--tree", NO_COLOR="1") for width in (200, 60))
    assert "\033" not in wide and "├─ " in wide
    body = narrow.split("\n\n", 1)[1].splitlines()
    assert len(body) > 5 and max(map(len, body)) <= 60, body
    assert "\033[33m" in on_terminal(80), "kernel functions have a colour"
    assert "\033" not in on_terminal(80, TERM="dumb")
    ascii_only = on_terminal(80, "--tree", NO_COLOR="1", LC_ALL="C").split("\n\n", 1)[1]
    assert ascii_only.isascii() and "|- " in ascii_only
    # to a file: no colours, and nothing is cut
    plain = sysprof("report", recording("containers"), "--tree", check=0,
                    env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")).out
    assert "\033" not in plain and "├─ " in plain


main(globals())
