#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Viewers that live in a browser open our files: speedscope, and DevTools' own Performance panel."""
import os
import re

from libbrowser import Browser
from libe2e import GOLDEN, SYSPROF, main, run, scratch
from libviewers import devtools, devtools_tracks, shown_text, speedscope

THREADS = [("app", 13688), ("unshare", 13689), ("app", 13696), ("app", 13697)]


def converted(name, suffix):
    path = scratch(name + suffix)
    run(SYSPROF, "convert", os.path.join(GOLDEN, name + ".sysprof"), "-o", path, check=0)
    return path


def complaints(page):
    return [text for text in page.messages() if text.startswith(("threw: ", "error: "))]


def test_speedscope():
    """Traces with all threads, pprof, .cpuprofile, each recognized for what it is."""
    kinds = {".trace.json": ("Importing as Chrome Timeline", 4),
             ".trace.json.gz": ("Importing as Chrome Timeline", 4),
             ".pb.gz": ("Importing as protobuf encoded pprof file", 1),
             ".cpuprofile": ("Importing as Chrome CPU Profile", 1),
             ".folded": ("Importing as collapsed stack format", 1)}
    with Browser("--allow-file-access-from-files") as browser:
        for suffix, (said, count) in kinds.items():
            page = speedscope(browser, converted("containers", suffix), scratch(""))
            text = " ".join(page.messages())
            assert said in text and "import:" in text and not complaints(page), (suffix, text)
            shown = shown_text(page).replace("\n", "")
            assert count == 1 or f"(1/{count})" in shown, (suffix, shown)
            page.close()


def test_devtools():
    """The Performance panel has a track for each process, and in it one for each thread."""
    with Browser() as browser:
        for name, suffix in (("containers", ".trace.json"), ("containers", ".trace.json.gz"), ("pid-reuse", ".trace.json")):
            page = devtools(browser, converted(name, suffix))
            tracks = devtools_tracks(page)
            processes = [track for track, depth in tracks if not depth]
            threads = [track for track, depth in tracks if depth]
            if name == "containers":
                assert sorted(processes) == sorted(f"{process} ({pid})" for process, pid in THREADS), tracks
                assert sorted(threads) == sorted(processes), tracks
            else:  # three lives of one pid
                lives = sorted(int(re.search(r"\((\d+)\)", process)[1]) for process in processes)
                assert lives == [100, 200, 10000200, 20000200] and len(threads) == 5, tracks
            assert not complaints(page), complaints(page)
            page.close()


main(globals())
