# SPDX-License-Identifier: BSD-2-Clause
"""How often `diff` finds what is not there, in recordings of real programs, and what large files cost it."""
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

from libbench import BUILD, SYSPROF, Broken, at_least, bench, budget, pick, scratch, table

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import libbrowser  # noqa: E402, of the tests
import libe2e  # noqa: E402

PYTHON = """
import json
def parse(n): return [json.loads('{"a": [1, 2, 3], "b": "text"}') for _ in range(n)]
def render(n): return ",".join(str(i) for i in range(n))
for i in range(400): parse(120); render(900)
"""
NODE = """
function hash(n) { let h = 0; for (let i = 0; i < n; i++) h = (h * 31 + i) | 0; return h; }
function render(n) { let s = ''; for (let i = 0; i < n; i++) s += i; return s.length; }
let sum = 0; for (let i = 0; i < 500; i++) sum += hash(300000) + render(9000);
"""
C = """
static volatile unsigned sink;
#define WORK(name) __attribute__((noinline)) void name(unsigned n) { for (unsigned i = 0; i < n; i++) sink = sink * 33 + i; }
WORK(parse) WORK(hash) WORK(pack)
int main(void) { for (int i = 0; i < 15000; i++) { parse(1500); hash(6000); pack(9000); } return 0; }
"""


def programs():
    with open(scratch("same.c"), "w", encoding="utf-8") as file:
        file.write(C)
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", scratch("same"), scratch("same.c")], check=True)
    result = {"C": [scratch("same")]}
    for name, text in ("python3", PYTHON), ("node", NODE):
        if shutil.which(name):
            result[name] = [name, "-c" if name == "python3" else "-e", text]
    if shutil.which("go"):
        with open(scratch("main.go"), "w", encoding="utf-8") as file:
            file.write("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"same\") }\n")
        result["go build"] = ["sh", "-c", f"rm -f out; go build -o out {scratch('main.go')}"]
    return result


def compare(old, new, *options):
    """(any claim that something is slower or faster, the relative change of the whole)"""
    done = subprocess.run([SYSPROF, "diff", "--json", *options, *old, "--", *new], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Broken(f"diff: {done.stderr}")
    found = json.loads(done.stdout)
    claims = [row for row in found["rows"] if row["verdict"] != "moved"]
    return bool(claims) or found["total"]["q"] <= found["level"], found["total"]["relative"]


def record(path, command, place):
    subprocess.run([SYSPROF, "record", "-q", "-o", path, "--", *command], stdout=subprocess.DEVNULL, check=True, cwd=place)


def same_program(name, command):
    """Pairs of recordings in alternation, as compare makes them: OLD NEW NEW OLD …; each is in one pair alone."""
    pairs, place = pick(200, 8), scratch(f"{name} files")
    os.makedirs(place, exist_ok=True)
    paths = [scratch(f"{name}-{i}.sysprof") for i in range(2 * pairs)]
    for path in paths:
        record(path, command, place)
    row = [name, str(pairs)]
    for view in "run", "share":
        for size in 1, 4:
            alarms, changes, count = 0, [], pairs // size
            for i in range(count):
                chosen = paths[2 * size * i:2 * size * (i + 1)]
                sides = [[p for k, p in enumerate(chosen) if (k % 4 in (1, 2)) == new] for new in (False, True)]
                alarm, change = compare(*sides, "--view", view)
                alarms += alarm
                changes.append(abs(change))
            row.append(f"{alarms} of {count}")
            if view == "run" and size == 1:
                row.append(f"{100 * statistics.median(changes):.1f} %")
    for path in paths:
        os.unlink(path)
    return row


def same_programs():
    rows = [same_program(name, command) for name, command in programs().items()]
    table("Alarms of diff where nothing differs: recordings of one program", "sysprof diff A… -- A…",
          ["", "pairs", "run, 1 file", "median change", "run, 4 files", "share, 1 file", "share, 4 files"], rows,
          ["Every recording is in one pair, and in one comparison of four files a side; recorded in the order A B B A.",
           "What is called moved is no alarm: V8 does not always have the script of an anonymous function.",
           "Those of simulated programs are above."])


def simulated():
    """Programs with a known truth and fixed seeds: what the unit test prints."""
    test = os.path.join(BUILD, "tests", "unit", "test_compare")
    out = subprocess.run([test], capture_output=True, text=True, check=True)
    lines = [line for line in (out.stdout + out.stderr).splitlines() if line and not line.startswith("[")]

    def figure(pattern):
        found = re.search(pattern, "\n".join(lines))
        if not found:
            raise Broken(f"test_compare does not print {pattern}")
        return 100 * float(found[1]) / float(found[2] if found.re.groups > 1 else 1000)

    planted = r"%s, %s of \d+ samples: found in (\d+) of 1000"
    right = [int(n) / 10 for n in re.findall(r"interval right in (\d+)", "\n".join(lines))]
    moved = max(int(n) for n in re.findall(r"not moved in (\d+) of 100", "\n".join(lines)))
    table("diff of simulated programs", test, ["what it prints"], [[line] for line in lines],
          [budget("diff, alarms where nothing differs, by shares", figure(r"(\d+) of (\d+) counted"), 5, "%", 1),
           budget("diff, the same per unit of work", figure(r"(\d+) of (\d+) per unit of work"), 5, "%", 1),
           at_least("diff, +10 % of a function of 5 % in 60 s, per unit of work", figure(planted % (r"\+10 %", "per unit of work")), 90, "%", 1),
           at_least("diff, +2 % of 1.05 M samples, per unit of work (a single test: 91 %)", figure(planted % (r"\+2 %", "per unit of work")), 90, "%", 1),
           at_least("diff, intervals that are right, the fewest", min(right), 93, "%", 1),
           budget("diff, intervals that are right, the most", max(right), 97, "%", 1),
           at_least("diff, moved or same", 100 - moved, 98, "%", 0),
           budget("diff, verdicts by a neighbour's load on one side", figure(r"load on one side: verdicts in (\d+) and \d+ of (100)"), 5, "%", 1)])


def first_picture(paths, sizes):
    """Of the page of both."""
    page_path, found = scratch("large.html"), []
    begin = time.monotonic()
    subprocess.run([SYSPROF, "diff", "-o", page_path, *paths], check=True, stdout=subprocess.DEVNULL)
    written = time.monotonic() - begin
    try:
        for _ in range(pick(5, 2)):
            with libbrowser.Browser() as browser:
                page = browser.page("file://" + page_path)
                page.wait("document.documentElement.dataset.ready === 'yes'")
                found.append(page.evaluate("performance.getEntriesByName('first-picture')[0].startTime") / 1000)
    except libe2e.Skip as skip:
        raise Broken(str(skip)) from skip
    table(f"The page of a diff of two files of {sizes}", "sysprof diff -o d.html A B", ["", "figure"],
          [["written in, s", f"{written:.2f}"], ["MB", f"{os.path.getsize(page_path) / 1e6:.1f}"],
           ["first picture, s", f"{min(found):.2f}"]],
          [budget("diff, first picture of the page", min(found), 2, "s")])


def large_files():
    samples, stacks = pick((1000000, 100000), (100000, 10000))
    paths = [scratch(f"large{i}.json") for i in range(2)]
    for path in paths:
        subprocess.run([bench("big_profile"), str(samples), "8", str(stacks), "firefox", path], check=True,
                       stdout=subprocess.DEVNULL)
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["/usr/bin/env", "python3", "-c", "import resource, subprocess, sys\n"
                           "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n"
                           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", SYSPROF, "diff", *paths],
                          capture_output=True, text=True, check=True)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = int(done.stdout) / 1024
    table(f"diff of two Firefox files of {samples:,} samples and {stacks:,} stacks each", "sysprof diff A B",
          ["", "CPU s", "wall s", "peak MB"], [["diff", f"{cpu:.2f}", f"{wall:.2f}", f"{memory:.0f}"]],
          [budget("diff of two files of 1 M samples", cpu, 1, "s of CPU"),
           budget("diff of two files of 1 M samples", memory, 300, "MB", 0)] if samples == 1000000 else [])
    first_picture(paths, f"{samples:,} samples and {stacks:,} stacks")


def diffing():
    simulated()
    large_files()
    same_programs()
