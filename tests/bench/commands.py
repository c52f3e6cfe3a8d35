# SPDX-License-Identifier: BSD-2-Clause
"""COMMAND's first samples: how soon they are walked by table. Until then a sample carries a copy of its stack."""
import contextlib
import statistics
import subprocess

from libbench import CPUS, SYSPROF, Broken, Program, budget, fixture, pick, scratch, spread, table
from stack_ends import first_by_table

PROGRAMS = {
    "60 deep": (fixture("deep-no-fp"), "60", "0.3"),
    "python3": ("python3", "-c", "import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end: sum(range(100))"),
}
SOON, WORST = 10, 20  # ms


def record(command):
    path = scratch("command.sysprof")
    done = subprocess.run([SYSPROF, "record", "-q", "-F", "999", "-o", path, "--", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"record: {done.stderr}")
    found = first_by_table(path)
    if not found:
        raise Broken(f"{command[0]}: no sample was walked by table")
    return found


def commands():
    rows, verdict = [], []
    for busy in False, True:
        for name, command in PROGRAMS.items():
            with contextlib.ExitStack() as beside:
                for cpu in CPUS if busy else ():
                    beside.enter_context(Program(fixture("loop"), 600, cpus=[cpu]))
                found = [record(command) for _ in range(pick(20, 6))]
            waits, before, cut = (list(column) for column in zip(*found))
            where = "busy" if busy else "idle"
            rows.append([f"{name}, {where} host", spread(waits, 1), spread(before), spread(cut)])
            verdict.append(budget(f"{name}, {where} host: execve → first sample by table, median", statistics.median(waits), SOON, "ms", 1))
            verdict.append(budget(f"{name}, {where} host: the same, worst of {len(waits)}", max(waits), WORST, "ms", 1))
    table("COMMAND's first samples", "sysprof record -F 999 -- COMMAND",
          ["", "execve → by table, ms", "samples before", "without a whole stack"], rows, verdict)
