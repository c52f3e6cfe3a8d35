#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 900
# runs: alone
"""Every recording of RECORDINGS is read by the program of this build and written in each format.

With the sanitizers that is the test: what the program does with a recording is the same whoever made it, so those
that the tests of the other build have made are read again here instead of being made again. The program of the
other build says what is expected: the exit status, what is told, and every byte of what is written.

A build with sanitizers reads the recordings that together have everything that any of them has: each kind of event
with each of its states, and all that are damaged. Other builds read all recordings.
"""
import concurrent.futures
import glob
import gzip
import os
import re
import shutil
import struct
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests/e2e"))
from libe2e import BOOKS_LINES, EVENT_BOOKS, EVENT_SAMPLE, SAMPLE_FRAMES, SANITIZED, recording_events  # noqa: E402 pylint: disable=wrong-import-position

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

# Of include/sysprof/event.h: the bytes behind the header that say which variant of its type an event is.
EVENT_META = 26
VARIANTS = {8: (65,),       # mapping: the state of its file
            12: (0,),       # lost: the source
            16: (16, 20),   # process: is it a target, is it the kernel's
            21: (4,),       # facts: state
            30: (4, 5),     # outside: thing and reason
            33: (4,),       # file of symbols: state
            40: (16, 17),   # JIT file: kind and state
            41: (24,),      # JIT bytes: flags
            48: (4, 5), 49: (4, 5), 50: (4, 5)}  # functions, chains, runtimes: kind and state
# Where their texts begin: of a mapping, a comm, a process, a control group, a fact, a JIT file.
TEXTS = {8: 88, 9: 8, 16: 24, 20: 8, EVENT_META: 0, 40: 24}


def open_recording(path, target):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as source, open(target, "wb") as out:
        shutil.copyfileobj(source, out)


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def peculiarities(text):
    """What a writer of a format may stumble over."""
    return [name for name, there in (("control", re.search(rb"[\x01-\x1f\x7f]", text)), ("quotes", re.search(rb"[\"\\;<&]", text)),
                                     ("not ASCII", not text.isascii()), ("not UTF-8", not is_utf8(text)),
                                     ("long", len(text) > 255), ("empty", not text)) if there]


def variants(kind, flags, body):
    """What an event has that others of its type may not have."""
    yield kind, flags
    if kind == EVENT_SAMPLE:
        kernel, user, end, from_user, notes = struct.unpack_from("<HHBBH", body, 28)
        frames, last = SAMPLE_FRAMES + 8 * kernel, SAMPLE_FRAMES + 8 * (kernel + user)
        yield from (("end", end, from_user), ("kernel", kernel > 0), ("notes", notes > 0))
        yield from (("frame", how) for how in set(body[frames + 7:last:8]))
        yield from (("note", *what) for what in set(zip(body[last + 2:last + 24 * notes:24], body[last + 3:last + 24 * notes:24])))
    elif kind == EVENT_BOOKS:
        lines = struct.unpack_from(f"<{(len(body) - BOOKS_LINES) // 8}Q", body, BOOKS_LINES)
        yield from (("books", line) for line, count in enumerate(lines) if count)
    elif kind == EVENT_META:
        yield "meta", body.partition(b"\0")[0]
    elif kind in VARIANTS:
        yield (kind, *(body[at] for at in VARIANTS[kind]))
    if kind in TEXTS:
        yield from ((kind, word) for word in peculiarities(body[TEXTS[kind]:].rstrip(b"\0")))


def contents(path):
    """Everything that a recording has; None: it is damaged."""
    found = set()
    try:
        for kind, flags, _, body in recording_events(path):
            found.update(variants(kind, flags, body))
    except (AssertionError, IndexError, struct.error, EOFError):
        return None
    return found


def enough(paths):
    """The goldens, the damaged ones, and of the others as few as have everything that all of them have."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        found = dict(zip(paths, pool.map(contents, paths)))
    chosen = [path for path in paths if found[path] is None or "/golden/" in path]
    left = set().union(*filter(None, found.values())).difference(*(found[path] or () for path in chosen))
    while left:
        most = max((path for path in paths if found[path]), key=lambda path: len(found[path] & left))
        chosen.append(most)
        left -= found[most]
    return sorted(chosen)


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
    every, made = len(paths), [path for path in paths if path.startswith(RECORDINGS)]
    if not made or not os.path.exists(REFERENCE):
        print(f"no recording in {RECORDINGS}, or no {REFERENCE}: the e2e suite of that build makes them")
        sys.exit(1)
    if SANITIZED:
        paths = enough(paths)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, wrong in zip(paths, pool.map(differences, range(len(paths)), paths)):
            failed += bool(wrong)
            if wrong and failed <= WORST:
                print(f"FAIL {os.path.relpath(path, TOP)}")
                print("\n".join("  " + text for text in wrong))
    print(f"{len(paths)} of {every} recordings, {failed} of them read otherwise")
    sys.exit(1 if failed else 0)


main()
