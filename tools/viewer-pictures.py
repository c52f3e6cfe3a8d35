#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""viewer-pictures.py [BUILD]: makes docs/pictures/devtools.png and speedscope.png, as root, with python3, node and
chromium: other people's viewers with a recording of ours. `make test` installs the viewers.
"""
import os
import shutil
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIRECTORY = os.path.join(TOP, "docs", "pictures")
os.environ.setdefault("BUILD", os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build")))
os.environ.setdefault("SCRATCH", tempfile.mkdtemp(prefix="pictures-"))
sys.dont_write_bytecode = True
sys.path.append(os.path.join(TOP, "tests", "e2e"))

from libbrowser import Browser  # noqa: E402, by its path
from libe2e import Background, fixture, record, scratch  # noqa: E402
from libviewers import devtools, devtools_tracks, show_tracks, speedscope, tidy, zoom_in  # noqa: E402

PYTHON = "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nwhile True: f(20); sorted(str(i) for i in range(9999))"
NODE = """function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const sort = () => Array.from({length: 20000}, (_, i) => (i * 7919) % 20011).sort((a, b) => a - b);
setInterval(() => { fib(24); sort(); }, 20);"""


def recording():
    path = scratch("demo.trace.json")
    commands = [("python3", "-c", PYTHON), (fixture("duty"), "60", "100", "40", "20")]
    if shutil.which("node"):
        commands.append(("node", "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", NODE))
    running = [Background(*command) for command in commands]
    try:
        time.sleep(1)
        pids = ",".join(str(program.pid) for program in running)
        record("-p", pids, "-F", "999", "-d", "1", "-o", path, "-o", scratch("demo.pb.gz"))
    finally:
        for program in running:
            program.__exit__()
    return path, scratch("demo.pb.gz")


def take(page, path):
    """A picture of what is drawn, which on a busy machine may be nothing yet."""
    for _ in range(20):
        page.screenshot(path)
        if os.path.getsize(path) > 20000:
            return
        time.sleep(1)


def make_pictures():
    trace, pprof = recording()
    with Browser("--allow-file-access-from-files", width=1280, height=800) as browser:
        page = devtools(browser, trace)
        tracks = devtools_tracks(page)
        # the processes, and the main threads of two of them
        show_tracks(page, [i for i, (name, depth) in enumerate(tracks)
                           if not depth or (name in {n for n, d in tracks if not d} and
                                            name.split(" ")[0] in ("node", "python3"))])
        tidy(page)
        zoom_in(page, 635, 160, 9)
        take(page, os.path.join(DIRECTORY, "devtools.png"))
        page.close()
        page = speedscope(browser, pprof, scratch(""))
        page.key("2", code="Digit2")  # left heavy
        time.sleep(1)
        take(page, os.path.join(DIRECTORY, "speedscope.png"))


try:
    make_pictures()
finally:
    shutil.rmtree(scratch(""))
