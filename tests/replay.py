#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 900
# runs: alone
"""Every recording of RECORDINGS is read by the program of this build and written in each format.

With the sanitizers that is the test: what the program does with a recording is the same whoever made it, so those
that the tests of the other build have made are read again here instead of being made again. The program of the
other build says what is expected: the exit status, what is told, and every byte of what is written.
"""
import concurrent.futures
import glob
import gzip
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SYSPROF, SCRATCH, RECORDINGS = (os.environ[name] for name in ("SYSPROF", "SCRATCH", "RECORDINGS"))
REFERENCE = os.path.join(TOP, "build/sysprof")
FORMATS = ("json.gz", "json", "cpuprofile", "trace.json.gz", "pb.gz", "html", "folded", "txt")
REPLAYS = [["convert", "x.sysprof", "--no-symbol-cache", *(word for f in FORMATS for word in ("-o", "x." + f))],
           ["report", "x.sysprof", "--no-symbol-cache"]]
# The files of those of the goldens and of the hostile tests are read by all of these; of the others by a few, in turns, so
# that each of these reads a quarter of all recordings: a program start with the sanitizers costs more than the reading.
READINGS = [["convert", "x.json.gz", "--lines", "-o", "lines.folded", "-o", "lines.json"],
            ["convert", "x.cpuprofile", "-o", "again.pb.gz"],
            ["convert", "x.trace.json.gz", "-o", "again.folded"],
            *(["report", "x.json", "--by", by, "--top", "1000"] for by in ("function", "thread", "process", "dso", "line")),
            ["report", "x.json.gz", "--json"],
            ["report", "x.pb.gz", "--tree"],
            ["report", "x.pb.gz", "--tree", "--callers", "--by", "process", "--min", "0", "--json"]]
IN_TURNS = 3
LIMIT = 120  # s
WORST = 20


def open_recording(path, target):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as source, open(target, "wb") as out:
        shutil.copyfileobj(source, out)


def commands(number, path):
    """What is done with a recording, by its number."""
    if "/golden/" in path or os.path.basename(path).startswith("hostile"):
        return REPLAYS + READINGS
    return REPLAYS + [READINGS[(IN_TURNS * number + i) % len(READINGS)] for i in range(IN_TURNS)]


def answers(program, folder, wanted):
    """What the program does with the recording there: [(command, exit status, told)] and {name: bytes} of its files."""
    done = []
    for command in wanted:
        p = subprocess.run([program, *command], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, cwd=folder,
                           check=False)
        done.append((" ".join(command), p.returncode, p.stdout + p.stderr))
    files = {}
    for name in sorted(os.listdir(folder)):
        if name != "x.sysprof":
            with open(os.path.join(folder, name), "rb") as f:
                files[name] = f.read()
            os.unlink(os.path.join(folder, name))
    return done, files


def differences(number, path):
    """What the two programs do not agree about: a list of sentences."""
    folder = os.path.join(SCRATCH, "replay-" + os.path.relpath(path, RECORDINGS).replace("/", "-"))
    wanted = commands(number, path)
    os.mkdir(folder)
    try:
        open_recording(path, os.path.join(folder, "x.sysprof"))
        (expected, files), (seen, others) = answers(REFERENCE, folder, wanted), answers(SYSPROF, folder, wanted)
    except subprocess.TimeoutExpired as expired:
        return [str(expired)]
    finally:
        shutil.rmtree(folder)
    wrong = [f"{command}: exit status {status}, {other} expected: {reported.decode(errors='replace')[-2000:]}"
             for (command, other, _), (_, status, reported) in zip(expected, seen) if status != other]
    wrong += [f"{command}: {reported[-500:]!r}, expected is {other[-500:]!r}"
              for (command, status, other), (_, again, reported) in zip(expected, seen) if status == again and reported != other]
    wrong += [f"{name} differs" for name in sorted(set(files) | set(others)) if files.get(name) != others.get(name)]
    return wrong


def main():
    paths = sorted(glob.glob(RECORDINGS + "/**/*.sysprof", recursive=True) +
                   glob.glob(RECORDINGS + "/**/*.sysprof.gz", recursive=True) +
                   glob.glob(os.path.join(TOP, "tests/golden/recordings/*.sysprof")))
    made = [path for path in paths if path.startswith(RECORDINGS)]
    if not made or not os.path.exists(REFERENCE):
        print(f"no recording in {RECORDINGS}, or no {REFERENCE}: the e2e suite of that build makes them")
        sys.exit(1)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, wrong in zip(paths, pool.map(differences, range(len(paths)), paths)):
            failed += bool(wrong)
            if wrong and failed <= WORST:
                print(f"FAIL {os.path.relpath(path, TOP)}")
                print("\n".join("  " + text for text in wrong))
    print(f"{len(paths)} recordings, {len(made)} of them of the tests, {failed} of them read otherwise")
    sys.exit(1 if failed else 0)


main()
