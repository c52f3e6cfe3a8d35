#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""CPython's stacks, names and lines, read from outside, against what the interpreter says itself.

Two oracles. A program that waits where it has just said its own stack: all names, files, lines must be equal, and each
Python frame must lie among the native ones where it runs. And faulthandler, in programs that are stopped at any
instant: the stopped thread writes its stack before its next instruction.

PYTHONS="NAME=COMMAND …" and STOPS=N measure others, and more.
"""
import json
import os
import random
import re
import select
import subprocess

from libe2e import BUILD, SANITIZED, TOP, Skip, long, main, need_root

PROGRAMS = os.path.join(TOP, "tests/fixtures/cpython")
ORACLE = os.path.join(BUILD, "tests/e2e/cpython_oracle")
NEWER = os.path.join(os.path.dirname(BUILD), "build/runtimes/python/run")
STOPS = int(os.environ.get("STOPS", 15 if SANITIZED else 30))
CRASHES_MAX = 5  # of faulthandler, in each program
RUNNING = ["recursion", "generators", "coroutines", "callbacks", "made", "threads", "forks", "collecting"]


def pythons():
    if "PYTHONS" in os.environ:
        return dict(entry.split("=", 1) for entry in os.environ["PYTHONS"].split())
    found = {}
    for command in ("/usr/bin/python3", NEWER):
        if os.path.exists(command):
            version = subprocess.run([command, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                     capture_output=True, text=True, check=True).stdout.strip()
            found.setdefault(version, command)
    found = {version: command for version, command in found.items()
             if (3, 11) <= tuple(map(int, version.split("."))) <= (3, 15)}
    return found


def need_all():
    """What was not there is said."""
    if "PYTHONS" not in os.environ and len(pythons()) < 2:
        raise Skip(f"of the system's Python and {NEWER} only {list(pythons())} is 3.11 to 3.15")


class Oracle:
    """The reader, beside a process that runs."""

    def __init__(self, pid):
        self.p = subprocess.Popen([ORACLE, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.found = json.loads(self.p.stdout.readline())

    def send_request(self, command):
        self.p.stdin.write(command.encode() + b"\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        assert line, f"the reader ended at {command}"
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.stdout.close()
        self.p.wait(timeout=300)


def start(command, *arguments, **options):
    p = subprocess.Popen(["/bin/sh", "-c", 'exec "$@"', "sh", *command.split(), *map(str, arguments)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROGRAMS, **options)
    return p


def stop(p):
    p.kill()
    p.stdin.close()
    p.stdout.close()
    p.wait()


def boundaries(answer):
    """For each frame: whether it is the last of its group, which has a loop of its own."""
    last = []
    for group in answer["groups"]:
        last += [False] * (group["count"] - 1) + [True] * (group["count"] > 0)
    return last


def merge_problem(answer):
    """Each group stands for one native frame, in order. Where libdwfl did not get to the root, those that it got to."""
    groups = answer["groups"]
    placed = [group["is_loop"] for group in groups]
    places = [group["native"] for group in groups if group["is_loop"]]
    if not all(group["anchor"] for group in groups) and answer["end"] != "cut":
        return "a group without an anchor"
    if answer["native_root"] and not all(placed) or sorted(placed, reverse=True) != placed:
        return "a group without its loop"
    if sorted(set(places)) != places:
        return "two groups in one loop"
    return ""


def symbol_problem(answer):
    """Where the loop has a symbol over all of it."""
    places = [group["native"] for group in answer["groups"] if group["is_loop"]]
    return "" if places == answer["loops"] else f"by symbols {answer['loops']}, by address {places}"


def has_symbol(version):
    """In some builds the loop is in a part of the function that the symbol does not cover."""
    return version in ("3.11", "3.12", "3.13")


def wait_for_read(pid, tid):
    """Until the thread is in the system call that it waits in."""
    for _ in range(10000):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
            if f.read().startswith("0 0x0 "):
                return
        select.select([], [], [], 0.0005)
    raise AssertionError("the program does not wait")


def compare_waiting(version, command, seed):
    """(stops, frames, stops where libdwfl ended early, reads, ns)"""
    frames = early = reads = ns = 0
    p = start(command, "reporting.py", seed)
    try:
        reported = json.loads(p.stdout.readline())
        with Oracle(p.pid) as oracle:
            assert oracle.found["verdict"] == "ok", oracle.found
            for _ in range(STOPS):
                wait_for_read(p.pid, reported["tid"])
                answer = oracle.send_request(f"stop {reported['tid']}")
                ours = [[f["name"], f["file"], f["line"]] for f in answer["frames"]]
                assert ours == reported["stack"], (version, [(a, b) for a, b in zip(ours, reported["stack"]) if a != b][:3],
                                               len(ours), len(reported["stack"]), answer["end"])
                assert answer["end"] == "root" and all(f["sure"] == "confirmed" for f in answer["frames"])
                last = boundaries(answer)
                for (name, _, _), is_last in zip(reported["stack"], last):
                    own = name.rpartition(".")[2]
                    assert own[:2] != "c_" or is_last, (version, name)
                    assert own[:2] != "d_" or not is_last or own == "d_run", (version, name)
                problem = merge_problem(answer) or (has_symbol(version) and symbol_problem(answer))
                assert not problem, (version, problem, answer["groups"])
                early += not answer["native_root"]
                frames, reads, ns = frames + len(ours), reads + answer["reads"], ns + answer["ns"]
                p.stdin.write(b"x")
                p.stdin.flush()
                reported = json.loads(p.stdout.readline())
    finally:
        stop(p)
    return STOPS, frames, early, reads, ns


def test_waiting():
    """All frames of all stops are equal, and each is where it runs."""
    need_root()
    for version, command in pythons().items():
        seed = random.getrandbits(31)
        stops, frames, early, reads, ns = compare_waiting(version, command, seed)
        print(f"  {version}: {stops} stops, {frames} frames equal, merged but in {early} stops; {reads / frames:.1f} reads, "
              f"{ns / frames / 1000:.1f} us a code object (seed {seed})")
        # where libffi does not describe its frames, ctypes is the end of what libdwfl sees
        assert early <= 0.05 * stops or not has_symbol(version), (version, early)
    need_all()


# ---- at any instant ------------------------------------------------------------------------------------------

def read_dump(fd):
    """What faulthandler wrote, innermost first: [file, line, name], and its text. No line is 0. It shows
    frames of no function as well: that before an __init__ of 3.13, and the loop's own of 3.12."""
    text = b""
    while select.select([fd], [], [], 0)[0]:
        text += os.read(fd, 1 << 20)
    text = text.decode(errors="backslashreplace")
    rows = re.findall(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$', text, re.M)
    rows = [[file, int(line) if line.isdigit() else 0, name] for file, line, name in rows]
    return [row for row in rows if row != ["__init__", 0, "__init__"] and row[0] != "<shim>"], text


def is_equal(ours, theirs):
    """An instruction without a line is shown at the line of the definition."""
    file, line, name = theirs
    return ours["file"] == file and ours["name"].rpartition(".")[2] == name and \
        (ours["line"] == line or not line and ours["line"] == ours["first"])


def class_of(answer, dump, text):
    ours = answer["frames"]
    if not answer["handled"]:
        return "the oracle crashed"
    if all(map(is_equal, ours, dump)):
        if len(ours) == len(dump):
            return "equal, cut, and said so" if answer["end"] == "cut" else "equal" if ours else "no frame"
        if len(ours) > len(dump) and "  ..." in text:
            return "equal as far as shown"
        # it ends at the first frame without a line, which may be one of no function
        if len(ours) > len(dump) and "  File " in text:
            return "equal as far as the oracle went"
    if not answer["state"]:
        return "no thread state"
    if answer["end"] == "torn" or answer["restarted"]:
        return "torn, and said so"
    return "different"


def threads_of(pid):
    try:
        return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]
    except FileNotFoundError:
        return []


def compare_running(command, program, stops, result):
    """Adds to result: {class: stops}, {merge class: stops}, those that differ. It ends early where the oracle crashed."""
    receive, send = os.pipe()
    os.set_blocking(receive, False)
    p = start(command, "running.py", program, send, pass_fds=(send,))
    os.close(send)
    try:
        assert p.stdout.readline() == b"ready\n"
        with Oracle(p.pid) as oracle:
            assert oracle.found["verdict"] == "ok", oracle.found
            for done in range(stops):
                select.select([], [], [], random.random() * 0.003)
                answer = oracle.send_request(f"dump {random.choice(threads_of(p.pid))}")
                if not answer["stopped"]:
                    continue
                dump, text = read_dump(receive)
                result.add(class_of(answer, dump, text), merge_class(answer), answer, text)
                if not answer["handled"]:
                    return done + 1
    finally:
        stop(p)
        os.close(receive)
    return stops


class Result:
    def __init__(self):
        self.classes, self.merges, self.examples = {}, {}, []

    def add(self, kind, merge, answer, text):
        self.classes[kind] = self.classes.get(kind, 0) + 1
        self.merges[merge] = self.merges.get(merge, 0) + 1
        if kind == "different" or merge.startswith(("a ", "two ")):
            self.examples.append((kind, merge, answer["end"], answer["groups"],
                                  [(f["name"], f["line"]) for f in answer["frames"][:6]], text[:400]))


def merge_class(answer):
    """A loop that has no group is the innermost one, at its begin or its end, where it has no anchor."""
    if answer["end"] == "cut":
        return "cut, and said so"
    return merge_problem(answer) or ("each in its loop" if answer["native_root"] else "libdwfl ended early")


def check_running(versions):
    need_root()
    for version, command in versions:
        result = Result()
        for program in RUNNING:
            left = STOPS
            for _ in range(CRASHES_MAX):
                left -= compare_running(command, program, left, result) if left else 0
        classes, merges = result.classes, result.merges
        print(f"  {version}: {classes}; {merges}", flush=True)
        for example in result.examples[:3]:
            print(f"    {example}")
        stops = sum(classes.values())
        assert stops > 0.9 * STOPS * len(RUNNING), (version, classes)
        assert sum(n for kind, n in classes.items() if kind.startswith(("equal", "no frame"))) >= 0.97 * stops, \
            (version, classes)
        assert classes.get("different", 0) <= 0.01 * stops, (version, classes)
        assert merges["each in its loop"] + merges.get("libdwfl ended early", 0) >= 0.98 * stops, (version, merges)
    need_all()


def test_running():
    """At any instant: no frame is wrong, and what differs is one of the named transitions."""
    check_running(list(pythons().items())[:1])


@long
def test_running_in_others():
    check_running(list(pythons().items())[1:])


def test_dropped():
    """Code that is gone, and whose memory is used again, is not taken for what it was. 3.11 has no version in its code."""
    need_root()
    for version, command in pythons().items():
        total = {"right": 0, "wrong": 0, "flagged": 0}
        with open(os.devnull, "w", encoding="ascii") as nowhere:
            p = start(command, "running.py", "dropping", nowhere.fileno(), pass_fds=(nowhere.fileno(),))
        try:
            assert p.stdout.readline() == b"ready\n"
            with Oracle(p.pid) as oracle:
                assert oracle.found["verdict"] == "ok", oracle.found
                for _ in range(2 * STOPS):
                    select.select([], [], [], random.random() * 0.003)
                    assert oracle.send_request(f"stop {p.pid}")["stopped"]
                    select.select([], [], [], random.choice([0, 0.002, 0.02]))
                    answer = oracle.send_request("again")
                    total = {key: n + answer[key] for key, n in total.items()}
        finally:
            stop(p)
        print(f"  {version}: {total}")
        assert total["right"] and total["flagged"], (version, total)
        assert total["wrong"] <= (0.03 * sum(total.values()) if version.startswith("3.11") else 0), (version, total)
    need_all()


# ---- the GIL, and ways of finding the interpreter ---------------------------------------------------------------

SPINNER = """
import os, threading
spins, pipe = [1], os.pipe()
def spin():
    while spins:
        pass
spinner = threading.Thread(target=spin)
spinner.start()
threading.Thread(target=os.read, args=(pipe[0], 1), daemon=True).start()
os.write(1, b"ready\\n")
os.read(0, 1)
spins.clear()
spinner.join()
os.write(1, b"stopped\\n")
os.read(0, 1)
"""


def test_gil():
    """Of three threads one spins and two wait for bytes: it holds the GIL, they do not. Without it no thread does."""
    need_root()
    for version, command in pythons().items():
        p = start(command, "-c", SPINNER)
        try:
            assert p.stdout.readline() == b"ready\n"
            select.select([], [], [], 0.2)
            with Oracle(p.pid) as oracle:
                assert oracle.found["verdict"] == "ok", oracle.found
                for _ in range(10):
                    answer = oracle.send_request("gil")
                    spinner = sorted(threads_of(p.pid))[1]
                    assert answer["holder"] == spinner, (version, answer)
                    assert [t["tid"] for t in answer["threads"] if t["holds"]] == [spinner], (version, answer)
                    waits = {t["waits"] for t in answer["threads"]}
                    assert waits == ({False} if version == "3.15" else {None}), (version, answer)
                p.stdin.write(b"x")
                p.stdin.flush()
                assert p.stdout.readline() == b"stopped\n"
                select.select([], [], [], 0.2)
                answer = oracle.send_request("gil")
                assert answer["holder"] is None and not any(t["holds"] for t in answer["threads"]), (version, answer)
        finally:
            stop(p)
    need_all()


if __name__ == "__main__":
    main(globals())
