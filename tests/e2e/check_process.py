#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""`sysprof check -p PID`: what of a process can be unwound and named, and what helps, without recording it."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from libe2e import (Background, Fixture, as_user, comm_of, fixture, fuse_device, main, need_root, place_of, quick, read,
                    run, scratch, sysprof, wait_for, write)
from librecorded import java_command, newer_python, nodes

ATTACKER = 23457
SLEEPER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.05)"


def check(pid, status=0):
    """(what it says as JSON, what it says in words)"""
    reported = sysprof("check", "--json", "-p", pid)
    assert reported.status == status, reported
    # in this order: what has begun has begun
    text = sysprof("check", "-p", pid)
    assert text.status == status, text
    return json.loads(reported.out)["process"], text.out


def runtime(reported, name):
    rows = [row for row in reported["runtimes"] if row["name"] == name]
    assert len(rows) == 1, reported["runtimes"]
    print(f"  {rows[0]}")
    return rows[0]


def checked(*command, until):
    """The output for a command as soon as `until` holds for it."""
    with Background(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        for _ in range(200):
            reported, text = check(program.pid)
            if until(reported):
                return reported, text
            time.sleep(0.1)
    raise AssertionError((command, reported))


def is_named(reported):
    return any(row["state"] == "named" for row in reported["runtimes"])


def test_python():
    need_root()
    for python in sys.executable, newer_python():
        reported, text = checked(python, "-c", SLEEPER, until=is_named)
        version = run(python, "-V").out.split()[1]
        assert runtime(reported, "Python")["version"] == version and not runtime(reported, "Python")["remedy"]
        assert version in text and "try:" not in text, text
        assert reported["can_record"] and not reported["maps"], reported
        libc = [row for row in reported["files"] if os.path.basename(row["path"]).startswith("libc.so")]
        assert len(libc) == 1 and libc[0]["unwind"] == "CFI", reported["files"]


def test_node():
    need_root()
    reported, _ = checked(nodes()[-1], "-e", "setInterval(() => {}, 50)", until=is_named)
    assert runtime(reported, "Node.js")["version"].startswith("V8 ") and reported["can_record"]


def test_node_with_a_map():
    """Reports as followed what a recording would follow; the map of another user is refused, with the reason."""
    need_root()
    with Background(nodes()[0], "--perf-basic-prof", "-e", "setInterval(() => {}, 50)") as program:
        path = f"/tmp/perf-{program.pid}.map"
        try:
            wait_for(lambda: os.path.exists(path), what="a map")
            reported, _ = check(program.pid)
            assert [(row["kind"], row["path"], row["followed"]) for row in reported["maps"]] == [("perf map", path, True)], reported
            assert "perf map" in runtime(reported, "Node.js")["detail"]
            os.chown(path, ATTACKER, ATTACKER)
            reported, text = check(program.pid)
            assert not reported["maps"][0]["followed"] and "belong" in reported["maps"][0]["detail"], reported
            assert "belong" in text and "memory" in runtime(reported, "Node.js")["detail"], text
        finally:
            if os.path.exists(path):
                os.unlink(path)


def test_java():
    need_root()
    plain = [word for word in java_command() if "PreserveFramePointer" not in word]
    # its code heaps come with its first thread
    reported, text = checked(*plain, "60", until=lambda reported: reported["runtimes"] and reported["runtimes"][0]["state"] == "named")
    row = runtime(reported, "Java")
    assert row["version"] and "from its memory" in row["detail"] and "DebugNonSafepoints" in row["remedy"], row
    assert row["detail"] in text


OTHERS = {"ruby": ("Ruby", ["-e", "loop { sleep 0.1 }"], "--yjit-perf"), "php": ("PHP", ["-r", "sleep(60);"], "jit_debug=16"),
          "erl": ("Erlang", ["-noshell", "-eval", "timer:sleep(60000)."], "+JPperf true"),
          "luajit": ("LuaJIT", ["-e", "while true do end"], "PERFTOOLS"), "pypy3": ("PyPy", ["-c", SLEEPER], "--jit off")}


def test_others():
    """Whatever of them is installed: at least one is."""
    need_root()
    seen = 0
    for program, (name, arguments, remedy) in OTHERS.items():
        if not shutil.which(program):
            continue
        seen += 1
        reported, text = checked(program, *arguments, until=lambda reported: reported["runtimes"])
        assert remedy in runtime(reported, name)["remedy"] and remedy in text, reported
    assert seen, "none of them is installed"


def test_deno():
    """A V8 without its constants is refused by name, with what helps."""
    need_root()
    deno = os.path.join(os.path.dirname(nodes()[-1]), "../../deno/deno")
    if not os.path.exists(deno):
        return
    reported, _ = checked(deno, "eval", "setInterval(() => {}, 50)", until=lambda reported: reported["runtimes"])
    assert "constants" in runtime(reported, "Deno")["detail"] and "--v8-flags" in runtime(reported, "Deno")["remedy"]


def test_other_names():
    """A runtime is found by the contents of a program, whatever its name."""
    need_root()
    program = scratch("myapp")
    shutil.copy(nodes()[0], program)
    reported, _ = checked(program, "-e", "setInterval(() => {}, 50)", until=is_named)
    assert runtime(reported, "Node.js")
    os.unlink(program)
    if os.path.exists("/usr/bin/python3"):
        shutil.copy(os.path.realpath("/usr/bin/python3"), program)
        reported, _ = checked(program, "-c", SLEEPER, until=is_named)
        assert runtime(reported, "Python")


@quick
def test_what_cannot_be_recorded():
    need_root()
    reported, text = check(2, status=1)
    assert not reported["can_record"] and "kernel thread" in reported["detail"] and "kernel thread" in text, reported
    with Background("true") as gone:
        gone.p.wait()
    reported, text = check(gone.pid, status=1)
    assert not reported["can_record"] and "no such process" in text, reported
    with Fixture("zombie", 30) as parent:
        zombies = wait_for(lambda: [pid for pid in children(parent.pid) if state_of(pid) == "Z"], what="a zombie")
        reported, _ = check(zombies[0], status=1)
        assert "zombie" in reported["detail"], reported
    assert sysprof("check", "-p", "x").status == 2 and sysprof("check", "-p", "0").status == 2


def children(pid):
    return [int(word) for word in read(f"/proc/{pid}/task/{pid}/children").split()]


def state_of(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]


def test_stopped():
    """It does not run, and all of it is reported."""
    need_root()
    with Fixture("chain", 60) as program:
        os.kill(program.pid, signal.SIGSTOP)
        try:
            wait_for(lambda: state_of(program.pid) == "T", what="a stopped process")
            reported, _ = check(program.pid)
        finally:
            os.kill(program.pid, signal.SIGCONT)
    assert "stopped" in reported["detail"] and reported["can_record"], reported
    chain = [row for row in reported["files"] if row["path"] == fixture("chain")]
    assert chain and chain[0]["unwind"] == "CFI" and chain[0]["symbols"] == "symbols", reported["files"]


def test_stripped_and_without_unwind_information():
    need_root()
    program = scratch("bare")
    write(program + ".c", "void _start(void) { for (;;) __asm__ volatile(\"pause\"); }")
    run("cc", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-nostdlib", "-static", "-s", "-o", program,
        program + ".c", check=0)
    with Background(program) as process:
        wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe") == program, what="the program")
        reported, _ = check(process.pid)
    assert [(row["path"], row["symbols"]) for row in reported["files"]] == [(program, "no symbols")], reported["files"]
    assert reported["files"][0]["unwind"].startswith("no unwind information") and not reported["runtimes"], reported


def test_debug_information_that_is_compressed():
    """By zstd it is said, because older libraries cannot read it. Not every objcopy has zstd: its number is enough."""
    need_root()
    program = scratch("packed")
    shutil.copy(fixture("chain"), program)
    run("objcopy", "--compress-debug-sections=zlib", program, check=0)
    for method, said in (1, "debug information"), (2, "debug information compressed with zstd"):
        with open(program, "r+b") as f:
            f.seek(section_offset(program, ".debug_info"))
            f.write(method.to_bytes(4, "little"))
        with Background(program, "60") as process:
            wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe") == program, what="the program")
            reported, text = check(process.pid)
        row = next(row for row in reported["files"] if row["path"] == program)
        assert (row["debug"] == said or row["debug"].startswith(said + " (")) and row["debug"] in text, row


def section_offset(path, name):
    return next(int(words[4], 16) for words in map(str.split, run("readelf", "-SW", path, check=0).out.replace("[ ", "[").splitlines())
                if words[1:2] == [name])


def test_another_mount_and_pid_namespace():
    """Its pid there is another one, and its files lie in a root of its own."""
    need_root()
    script = f"mount -t tmpfs none /mnt && cp '{fixture('chain')}' /mnt/inside && exec /mnt/inside 60"
    with Background("unshare", "-p", "-f", "-m", "--kill-child", "--mount-proc", "sh", "-c", script) as outer:
        inner = wait_for(lambda: [pid for pid in children(outer.pid) if comm_of(pid) == "inside"], what="the program")[0]
        reported, _ = check(inner)
    rows = [row for row in reported["files"] if row["path"] == "/mnt/inside"]
    assert rows and not rows[0]["error"] and rows[0]["symbols"] == "symbols", reported


MAPPER = """
import mmap, os, time
maps = []
for i in range(6):
    fd = os.open(f"/tmp/perf-{i}.map", os.O_RDONLY)
    maps.append(mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
open("/proc/self/comm", "w").write("mapped")
while True:
    time.sleep(0.1)
"""


def check_beside_silence(*options):
    """A process that has mapped files of a file system without a server: this is reported within seconds, and so is the rest."""
    need_root()
    place = place_of(ATTACKER)
    try:
        with Background(*as_user(ATTACKER), fixture("silentfs"), *options, "-w", "read", fuse_device(), place, "/usr/bin/python3", "-c", MAPPER) as attacker:
            wait_for(lambda: comm_of(attacker.pid) == "mapped", what="the mappings")
            begin = time.monotonic()
            reported, text = check(attacker.pid)
            took = time.monotonic() - begin
    finally:
        shutil.rmtree(place, ignore_errors=True)
    silent = [row for row in reported["files"] if "not answer" in row["error"]]
    print(f"  {reported['maps']}")
    print(f"  {len(silent)} files that do not answer, two checks took {took:.1f} s")
    assert [row["path"] for row in silent] == ["/tmp/perf-5.map"] and "not answer" in text, reported["files"]
    # what can be read is read
    assert any(row["path"] == os.path.realpath("/usr/bin/python3") and row["unwind"] == "CFI" for row in reported["files"]), reported["files"]
    # its perf map is one of these files
    assert runtime(reported, "Python")["state"] == "partly"
    assert took < 150, took


def test_files_that_do_not_answer():
    check_beside_silence()


def test_files_that_were_written_to_just_now():
    """A perf map is read some time after it was written to: until then it is unknown that it does not answer."""
    check_beside_silence("-n")


main(globals())
