# SPDX-License-Identifier: BSD-2-Clause
"""
Python, Node.js, clang and Java, each recorded once, for all tests that look at what comes out of a recording.

The first test that asks for one makes it; it stays in RECORDINGS/NAME.sysprof, and each test converts it with the
program that it tests. Several processes run at a time, so that one recording has what the tests want to see:

    python  `system`, without anything; `own`, which runs this test; `perf`, of 3.12 or newer with -X perf
    node    `node0` and `node1`, the system's and a newer one with --perf-basic-prof; the same with names of
            interpreted functions, `node0-interpreted` and `node1-interpreted`; and `json`, which has no map
    clang   `clang`, at a large file
    java    `java`, with frame pointers, and a request for its map; and `launcher`, which compiles what it runs first
"""
import json
import os
import re
import shutil
import sys
import time

from libe2e import (BUILD, SYSPROF, TOP, Background, Skip, children_of, load_json, need_root, run, scratch, wait_for,
                    write)

FIXTURES = os.path.join(TOP, "tests/fixtures/jit")
RUNTIMES = os.path.join(os.path.dirname(BUILD), "build/runtimes")
RECORDINGS = os.environ.get("RECORDINGS") or os.path.join(os.path.dirname(BUILD), "build/tests/recordings")
HZ = 2999
SECONDS = 2.5  # what is judged of stacks begins 1.5 s after the first sample
ENOUGH = 0.3   # of the samples that the CPUs could give
FOREVER = 60  # s: until they are killed

PYTHON = """
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
while True: f(20); sorted(str(i) for i in range(1000))
"""
JSON = """
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
for (;;) { f(20); JSON.parse(JSON.stringify([...Array(1000).keys()])); }
"""
FIB = """public class Fib {
  static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) {
    long end = System.nanoTime() + (long)(Double.parseDouble(a[0]) * 1e9), sum = 0;
    while (System.nanoTime() < end) sum += fib(25);
    System.out.println(sum);
  }
}
"""
LAUNCHED = """
public class Work {
  public static void main(String[] args) {
    java.util.HashMap<Long, Long> map = new java.util.HashMap<>();
    for (long x = 0; ; x++) map.put(x % 1000, x);
  }
}
"""
FUNCTION = """
struct sNUMBER { struct sNUMBER *next; unsigned key, count; char name[NUMBER % 60 + 4]; };
static unsigned hNUMBER(const char *p, unsigned n) { unsigned h = NUMBER; while (n--) h = h * 31 + p[n] % 7; return h; }
int fNUMBER(struct sNUMBER *s, unsigned *counts, int n)
{
	for (; s; s = s->next) {
		switch (hNUMBER(s->name, sizeof(s->name)) % 5) {
		case 0: for (int i = 0; i < n; i++) counts[i] += s->key / (i + 1); break;
		case 1: s->count = counts[s->key % 64] ^ NUMBER; break;
		case 3: n += s->count > 7 ? fNUMBER(s->next, counts, n / 2) : 1; break;
		default: s->key = hNUMBER((char *)counts, n & 255);
		}
	}
	return n;
}
"""


def nodes():
    """The system's, and a newer one."""
    found = [path for path in (shutil.which("node"), os.path.join(RUNTIMES, "node/bin/node"))
             if path and os.path.exists(path)]
    if not found:
        raise Skip("there is no node")
    return found


def newer_python():
    path = os.path.join(RUNTIMES, "python/run")
    if not os.path.exists(path):
        raise Skip("there is no Python of 3.12 or newer")
    return path


def java_command(*flags):
    """Fib, with a number of seconds to follow."""
    if not shutil.which("javac"):
        raise Skip("there is no Java")
    place = os.path.join(os.path.dirname(BUILD), "build/java-fixtures")
    os.makedirs(place, exist_ok=True)
    source = os.path.join(place, "Fib.java")
    if not os.path.exists(os.path.join(place, "Fib.class")):
        write(source, FIB)
        run("javac", "-d", place, source, check=0)
    return ["java", "-XX:+PreserveFramePointer", *flags, "-cp", place, "Fib"]


def python_commands():
    system = "/usr/bin/python3"
    commands = {"own": [os.path.realpath(sys.executable), "-c", PYTHON]}
    if os.path.exists(system):
        commands["system"] = [system, "-c", PYTHON]
    if os.path.exists(os.path.join(RUNTIMES, "python/run")):
        commands["perf"] = [newer_python(), "-X", "perf", os.path.join(FIXTURES, "fib.py"), FOREVER]
    return commands


def node_commands():
    program, commands = os.path.join(FIXTURES, "fibonacci.js"), {"json": [nodes()[0], "-e", JSON]}
    for i, node in enumerate(nodes()):
        commands[f"node{i}"] = [node, "--perf-basic-prof", program, FOREVER]
        commands[f"node{i}-interpreted"] = [node, "--perf-basic-prof", "--interpreted-frames-native-stack", program, FOREVER]
    return commands


def clang_command():
    """A compiler that has more to do than any test lasts."""
    if not shutil.which("clang"):
        raise Skip("there is no clang")
    source = scratch("large.c")
    write(source, "".join((FUNCTION.replace("NUMBER", str(n)) for n in range(3000))))
    return ["clang", "-O2", "-w", "-c", source, "-o", scratch("large.o")]


def java_commands():
    work = scratch("Work.java")
    write(work, LAUNCHED)
    return {"java": [*java_command(), FOREVER], "launcher": ["java", work]}


# what runs, how long before it is recorded, and the options
KINDS = {"python": (python_commands, 1, []), "node": (node_commands, 1.5, []), "clang": (lambda: {"clang": clang_command()}, 0.3, []),
         # Java's compilers work hardest while it starts
         "java": (java_commands, 0.2, ["--jvm-perfmap"])}


def working(pid):
    """clang makes a process for the compiler proper; the others are what they were."""
    children = children_of(pid)
    return children[0] if children else pid


def ours(path):
    """As sysprof does: the caller of sudo owns the files."""
    if "SUDO_UID" in os.environ:
        os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1)))


def record_once(name, path, seconds):
    """Begins its programs and records them. (whether the recording has enough samples; pids; the summary)"""
    commands, before, options = KINDS[name]
    running = {}
    try:
        for key, command in commands().items():
            running[key] = Background(*command, cwd=scratch(""))
        time.sleep(before)
        pids = {key: working(program.pid) for key, program in running.items()}
        # pages that were in no memory: a program that had to wait for the disk has hardly begun
        wait_for(lambda: all(program.p.poll() is None for program in running.values()), what="programs that run")
        reported = run(SYSPROF, "record", "-p", ",".join(map(str, pids.values())), "-F", HZ, "-d", seconds, *options, "-o", path,
                       check=0, timeout=120)
    finally:
        for program in running.values():
            program.__exit__()
    for pid in pids.values():
        if os.path.exists(f"/tmp/perf-{pid}.map"):
            os.unlink(f"/tmp/perf-{pid}.map")
    due = ENOUGH * HZ * SECONDS * min(len(pids), len(os.sched_getaffinity(0)))
    return int(re.search(r"sysprof: (\d+) samples", reported.err)[1]) >= due, pids, reported.err


def make(name):
    """Where others take the CPUs it has to last longer, from the beginning of the programs on: what they do first is part of it."""
    need_root()
    if not os.path.isdir(RECORDINGS):
        os.makedirs(RECORDINGS)
        ours(RECORDINGS)
    path, half = os.path.join(RECORDINGS, name + ".sysprof"), os.path.join(RECORDINGS, f".{name}.sysprof")
    for seconds in SECONDS, 2 * SECONDS, 4 * SECONDS:
        enough, pids, reported = record_once(name, half, seconds)
        if enough:
            break
    write(path + ".facts", json.dumps({"pids": pids, "reported": reported}))
    os.rename(half, path)
    ours(path + ".facts")


class Recorded:
    """One of them, and what this build makes of it."""

    def __init__(self, name):
        self.name, self.path = name, os.path.join(RECORDINGS, name + ".sysprof")
        if not os.path.exists(self.path):
            make(name)
        facts = load_json(self.path + ".facts")
        self.pids, self.reported, self.made = facts["pids"], facts["reported"], {}

    def pid(self, key):
        if key not in self.pids:
            raise Skip(f"{key} is not in the recording of {self.name}: it is not installed")
        return self.pids[key]

    def output(self, suffix, *options):
        """The path of the recording in that format."""
        wanted = suffix, *options
        if wanted not in self.made:
            path = scratch(f"{self.name}-{len(self.made)}{suffix}")
            run(SYSPROF, "convert", self.path, "-o", path, *options, check=0)
            self.made[wanted] = path
        return self.made[wanted]

    def jit_line(self, key):
        """The line of the summary about the JIT code of this process."""
        lines = [line.strip() for line in self.reported.splitlines() if f"(pid {self.pid(key)}, " in line and "JIT code:" in line]
        assert len(lines) == 1, (key, self.pids, self.reported)
        print("  " + lines[0])
        return lines[0]


known = {}


def recorded(name):
    if name not in known:
        known[name] = Recorded(name)
    return known[name]
