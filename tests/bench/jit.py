# SPDX-License-Identifier: BSD-2-Clause
"""What following a large perf map costs, and what following one that grows."""
import os
import subprocess
import time

from libbench import BUILD, PERF, Broken, Program, bench, budget, fixture, pick, scratch, spread, table

ENTRIES = 2000000


def micro(rounds):
    figures = {}
    for _ in range(rounds):
        done = subprocess.run([bench("jit_map"), str(ENTRIES), "20000"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Broken(f"jit_map: {done.stderr}")
        for line in done.stdout.splitlines():
            key, value = line.split()
            figures.setdefault(key, []).append(float(value))
    return figures


def write_map(path, pid_code):
    with open(path, "w", encoding="utf-8") as f:
        for i in range(ENTRIES):
            f.write(f"{0x600000000000 + i * 64:x} 40 JS:*function_{i} /opt/app/file_{i % 5000}.js:{i % 900}:{i % 80}\n")
        f.write(f"{pid_code:x} 1000 the_function\n")


def code_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return next(int(line.split("-")[0], 16) for line in f if " rwxp " in line)


def cost(*command):
    """(CPU s, peak MB, wall s) of a command and its children."""
    begin = time.monotonic()
    with open(scratch("cost.log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Broken(f"{command}: {open(scratch('cost.log'), encoding='utf-8').read()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, time.monotonic() - begin


def live(rounds):
    """The whole of it: a process with a map of that size, recorded for two seconds."""
    rows, commands = [], []
    with Program(fixture("jitreuse"), "-f", scratch(""), "-p", "100000", "600") as program:
        time.sleep(0.5)
        path = f"/tmp/perf-{program.pid}.map"
        ours = [f"{BUILD}/sysprof", "record", "-q", "-p", str(program.pid), "-d", "2", "-o", scratch("jit.folded")]
        without = [cost(*ours) for _ in range(rounds)]
        try:
            write_map(path, code_of(program.pid))
            size = os.path.getsize(path) / 1e6
            with_map = [cost(*ours) for _ in range(rounds)]
            named = "the_function" in open(scratch("jit.folded"), encoding="utf-8").read()
            rows.append(["sysprof record, no map", *columns(without)])
            rows.append([f"sysprof record, {size:.0f} MB of map", *columns(with_map)])
            if PERF:
                data = scratch("jit.data")
                subprocess.run([PERF, "record", "-q", "-F", "999", "-p", str(program.pid), "-o", data, "--", "sleep", "2"],
                               check=False, capture_output=True)
                scripts = [cost(PERF, "script", "-i", data) for _ in range(rounds)]
                rows.append(["perf script, of 2 s", *columns(scripts)])
                commands = [f"perf record -F 999 -p {program.pid} -- sleep 2; perf script"]
        finally:
            os.unlink(path)
    if not named:
        raise Broken("the function was not named")
    more = [a[0] - b[0] for a, b in zip(with_map, without)]
    table(f"A perf map of {ENTRIES:,} entries, followed", [" ".join(ours), *commands], ["", "CPU s", "peak MB", "wall s"], rows,
          [budget("CPU for a map of 2 M entries, from the file to the names", sorted(more)[len(more) // 2], 2, "s")])


def columns(runs):
    return [spread([run[i] for run in runs], digits) for i, digits in ((0, 2), (1, 0), (2, 2))]


def follow_maps():
    rounds = pick(5, 2)
    figures = micro(rounds)
    both = [a + b for a, b in zip(figures["feed"], figures["ask"])]
    table(f"{ENTRIES:,} entries at random addresses, in memory", f"tests/bench/jit_map {ENTRIES} 20000",
          ["", "figure"],
          [["reading them, s CPU", spread(figures["feed"], 2)],
           ["what lay at 20,000 addresses, s CPU", spread(figures["ask"], 2)],
           ["bytes an entry", spread(figures["entry"], 1)],
           ["bytes of a name of its own", spread(figures["name"], 1)]],
          [budget("2 M entries, read and looked up", sorted(both)[len(both) // 2], 2, "s"),
           budget("memory of an entry, without its name", figures["entry"][0], 32, "bytes", 1)])
    live(pick(5, 2))
