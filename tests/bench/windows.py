# SPDX-License-Identifier: BSD-2-Clause
"""What a day of an agent's windows costs as a page."""
import os
import random
import resource
import shutil
import subprocess
import sys
import time

from libbench import SYSPROF, Broken, budget, pick, scratch, table

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import libwindows  # noqa: E402, of the tests

PEAK = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n" \
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


def windows():
    count = pick(5760, 240)
    place, page = scratch("windows"), scratch("day.html")
    ticks = libwindows.make_day(place, time.time(), random.Random(1), count)
    size = sum(entry.stat().st_size for entry in os.scandir(place))
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", PEAK, SYSPROF, "convert", "--service", "shop", "--span", "-25h", place, "-o", page],
                          capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Broken(f"convert: {done.stderr}")
    cpu, peak = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(done.stdout.split()[-1]) / 1024
    page_size = os.path.getsize(page)
    shutil.rmtree(place)
    table("A day of windows of one service as a page", "convert --service shop --span -25h DIR -o day.html", ["", ""],
          [["files", f"{count}"], ["MB of files", f"{size / 1e6:.0f}"], ["samples", f"{ticks}"], ["MB of page", f"{page_size / 1e6:.1f}"],
           ["time, s", f"{wall:.1f}"], ["CPU time, s", f"{cpu:.1f}"], ["peak memory, MB", f"{peak:.0f}"]],
          [budget("seconds for a day of windows as a page", wall, 10, "s", 1), budget("MB for it", peak, 200, "MB", 0)])
