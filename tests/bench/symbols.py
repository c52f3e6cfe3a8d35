# SPDX-License-Identifier: BSD-2-Clause
"""Symbolizing big binaries, beside llvm-symbolizer and GNU addr2line.

The packages are fetched by name and unpacked into the build directory; nothing is installed.
"""
import glob
import os
import random
import shutil
import subprocess
import time

from libbench import (BUILD, Broken, Runs, bench, budget, pick, rounds_of, spread, table)

ADDRESSES = 5000
# name: (packages, the binary in them)
PROGRAMS = {
    "ceph-osd": (("ceph-osd", "ceph-osd-dbg"), "usr/bin/ceph-osd"),
    "libjvm": (("openjdk-17-jre-headless", "openjdk-17-dbg"),
               "usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so"),
}
GIVEN_UP = 300  # seconds


def run(*args, cwd=None, **kwargs):
    return subprocess.run([str(a) for a in args], cwd=cwd, check=True, capture_output=True,
                          **kwargs)


def unpack(name):
    """The directory with both packages in it, as they would be installed."""
    root = os.path.join(BUILD, "bench", name)
    if os.path.exists(os.path.join(root, "complete")):
        return root
    packages = os.path.join(BUILD, "bench", "packages")
    os.makedirs(packages, exist_ok=True)
    for package in PROGRAMS[name][0]:
        if not glob.glob(os.path.join(packages, package + "_*.deb")):
            run("apt-get", "download", package, cwd=packages)
        run("dpkg-deb", "-x", glob.glob(os.path.join(packages, package + "_*.deb"))[0], root)
    open(os.path.join(root, "complete"), "w", encoding="utf-8").close()
    return root


class Binary:
    def __init__(self, name):
        self.root = unpack(name)
        found = glob.glob(os.path.join(self.root, PROGRAMS[name][1]))
        if not found:
            raise Broken(f"{name} is not in its package")
        self.path = found[0]
        sections = run("readelf", "-SnW", self.path, text=True).stdout
        build_id = sections.split("Build ID: ")[1].split()[0]
        self.debug = os.path.join(self.root, "usr/lib/debug/.build-id", build_id[:2],
                                  build_id[2:] + ".debug")
        if not os.path.exists(self.debug):
            raise Broken(f"{self.debug} is not in its package")
        text = next(l.split("]", 1)[1].split() for l in sections.splitlines() if " .text " in l)
        start, size = int(text[2], 16), int(text[4], 16)
        picked = random.Random(name).sample(range(start, start + size), ADDRESSES)
        self.addresses = "".join(f"{a:x}\n" for a in sorted(picked))

    def inflated(self):
        """The same with its debug sections as they are in memory."""
        root = self.root + "-inflated"
        debug = os.path.join(root, os.path.relpath(self.debug, self.root))
        if not os.path.exists(debug):
            os.makedirs(os.path.dirname(debug), exist_ok=True)
            run("objcopy", "--decompress-debug-sections", self.debug, debug + ".new")
            os.rename(debug + ".new", debug)
        common = "usr/lib/debug/.dwz"
        if os.path.isdir(os.path.join(self.root, common)):
            shutil.copytree(os.path.join(self.root, common), os.path.join(root, common),
                            dirs_exist_ok=True)
        return root


def ours(binary, root, *options):
    """(seconds, peak MB, levels with a line, was it cached?)"""
    reported = run(bench("symbolize"), *options, binary.path, root, input=binary.addresses, text=True)
    if reported.stderr:
        raise Broken(reported.stderr)
    words = reported.stdout.split()
    figures = dict(zip(words[::2], words[1::2]))
    return (float(figures["wall"]) / 1000, int(figures["peak"]) / 1024, int(figures["lines"]),
            figures["cached"] == "1")


def other(binary, *command):
    """(seconds, peak MB) of another symbolizer; None: it was given up."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as p:
        killer = subprocess.Popen(["sh", "-c", f"sleep {GIVEN_UP}; kill -9 {p.pid}"],
                                  start_new_session=True)
        p.stdin.write("".join(f"0x{line}\n" for line in
                              binary.addresses.splitlines()).encode())
        p.stdin.close()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        os.killpg(killer.pid, 9)
        killer.wait()
    return (time.monotonic() - begin, usage.ru_maxrss / 1024) if not status else None


def rows_of(name):
    binary = Binary(name)
    seconds, memory, lines = Runs(), Runs(), 0
    llvm = ("llvm-symbolizer", "--inlines", "--obj=" + binary.debug)
    for _, what in rounds_of(pick(3, 1), ["sysprof", "llvm-symbolizer"]):
        if what == "sysprof":
            time_taken, peak, lines, _ = ours(binary, binary.root)
        else:
            time_taken, peak = other(binary, *llvm) or (float("nan"), float("nan"))
        seconds[what].append(time_taken)
        memory[what].append(peak)
    for what, root, options in (("sysprof, not compressed", binary.inflated(), ()),
                                ("sysprof, from its cache", binary.root, ("-c",))):
        ours(binary, root, *options)
        for _ in range(pick(3, 1)):
            time_taken, peak, _, cached = ours(binary, root, *options)
            if options and not cached:
                raise Broken("the cache has not kept it")
            seconds[what].append(time_taken)
            memory[what].append(peak)
    addr2line = other(binary, "addr2line", "-i", "-f", "-e", binary.debug)
    if addr2line:
        seconds["addr2line"].append(addr2line[0])
        memory["addr2line"].append(addr2line[1])

    rows = [[what, spread(seconds[what], 3), spread(memory[what]),
             spread([100 + x for x in seconds.percent_above(what, "llvm-symbolizer")])
             if what in ("sysprof", "llvm-symbolizer") else ""] for what in seconds]
    if not addr2line:
        rows.append(["addr2line", f"given up after {GIVEN_UP} s", "", ""])
    times = [a / b for a, b in zip(seconds["sysprof"], seconds["llvm-symbolizer"])]
    peaks = [a / b for a, b in zip(memory["sysprof"], memory["llvm-symbolizer"])]
    notes = [
        f"{ADDRESSES} random addresses of .text, {lines} levels with a line. Ours includes the "
        "sealed process; peak is of that and its parent.",
        budget(f"{name}, cold, of llvm-symbolizer's time", sorted(times)[len(times) // 2], 1, "×"),
        budget(f"{name}, of llvm-symbolizer's peak memory", sorted(peaks)[len(peaks) // 2], 0.5, "×"),
        budget(f"{name}, not compressed", min(seconds["sysprof, not compressed"]), 4, "s"),
        budget(f"{name}, from the cache", 1000 * min(seconds["sysprof, from its cache"]), 20, "ms"),
    ]
    table(f"Symbolizing {name}: {os.path.getsize(binary.debug) / 1e6:.0f} MB of debug file",
          [f"tests/bench/symbolize {os.path.basename(binary.path)} ROOT <ADDRESSES",
           "llvm-symbolizer --inlines --obj=DEBUG-FILE <ADDRESSES",
           "addr2line -i -f -e DEBUG-FILE <ADDRESSES"],
          ["", "s", "peak MB", "% of llvm's time"], rows, notes)


def debug_file_of(path):
    notes = run("readelf", "-n", path, text=True).stdout
    build_id = notes.split("Build ID: ")[1].split()[0] if "Build ID: " in notes else "  "
    debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    return debug if os.path.exists(debug) else ""


def indexes():
    """What indexes of modules take, and whether a look-up is as quick as it has to be."""
    oracle = os.path.join(BUILD, "tests", "e2e", "index_oracle")
    paths = glob.glob("/lib/x86_64-linux-gnu/libc.so.6") + [os.path.join(BUILD, "sysprof")]
    paths += [os.path.realpath(p) for p in (shutil.which("go"),) if p]
    rows, notes = [], []
    for path in paths:
        name = os.path.basename(path)
        got = []
        for _ in range(pick(5, 2)):
            words = run(oracle, path, debug_file_of(path), text=True).stdout.split()
            got.append(dict(zip(words[::2], map(float, words[1::2]))))
        first = got[0]
        share = 100 * first["bytes"] / first["debug"] if first["debug"] else 0
        rows.append([name, f"{first['rows']:,.0f}", f"{first['bytes'] / 1e6:,.2f}", f"{share:.1f}" if share else "–",
                     *(spread([g[what] for g in got]) for what in ("build", "open", "lookup", "resolve"))])
        notes.append(budget(f"{name}, an address", min(g["lookup"] for g in got) / 1000, 2, "µs"))
        if share:
            notes.append(budget(f"{name}, of its DWARF", share, 15, "%", 1))
            notes.append(budget(f"{name}, to build", min(g["build"] for g in got) / 1000, 0.2, "µs a row"))
    table("Indexes of modules", "tests/e2e/index_oracle FILE DEBUG-FILE (CPU time)",
          ["", "rows", "MB", "% of DWARF", "build, ns a row", "check, ns a row", "look-up, ns", "module, ns an address"],
          rows, notes)


def symbolizing():
    indexes()
    if not shutil.which("apt-get") or not shutil.which("llvm-symbolizer"):
        print("\n== Symbolizing: left out, it needs apt-get and llvm-symbolizer")
        return
    for name in pick(list(PROGRAMS), ["libjvm"]):
        rows_of(name)
