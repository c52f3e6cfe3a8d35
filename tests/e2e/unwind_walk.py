#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Our walk of user stacks against libdwfl's, frame by frame, at random ptrace stops of programs without frame
pointers: interpreters, a compiler, signals, exceptions, assembly.

Both have to reach the root in 99 % of the stops, but for three. The rest is code whose own description is wrong
for a few instructions (libgcc, as it goes to a landing pad): neither gets through there; and the calls that bind a
function at its first use, which ours has no rule for and is cut at.
"""
import os
import random
import shutil

from libe2e import BUILD, SANITIZED, TOP, Background, Skip, long, main, need_root, run, schedstat, scratch, wait_for
from librecorded import clang_command

STOPS = 100 if SANITIZED else 400
FIBONACCI = "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"


def compare(name, *command, longer=0.0):
    """`longer`: the share of stops from which ours may reach the root where libdwfl does not get beyond the first frame."""
    need_root()
    seed = random.getrandbits(31)
    with Background(*command) as program:
        # its functions are bound, and it does what it is there for
        wait_for(lambda: schedstat(program.pid)[0] > 300_000_000, what="300 ms of CPU time")
        result = run(os.path.join(BUILD, "tests/e2e/unwind_oracle"), program.pid, STOPS, seed)
    total = {x[1]: int(x[2]) for x in (line.split() for line in result.out.splitlines())
             if x[0] == "total"}
    print(f"  {name}, seed {seed}: " + ", ".join(f"{value} {key}" for key, value in total.items()))
    assert total["different"] == 0 and result.status == 0, f"{name}: {result}"
    assert total["stops"] >= 0.9 * STOPS, result
    short = total["stops"] - total["equal_root"] - total["prologue"] - min(total["longer"], longer * total["stops"])
    assert short <= max(3, 0.01 * total["stops"]), f"{name}: {result}"
    return total


def python():
    """Debian's, where it is there: others are built with frame pointers at times."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else shutil.which("python3")


def compiled(name, *flags):
    program = scratch(name)
    source = os.path.join(TOP, f"tests/fixtures/unwind/{name}.cc")
    run("g++", "-O2", "-g", "-fomit-frame-pointer", *flags, "-o", program, source, check=0)
    return program


def test_python():
    total = compare("python3", python(), "-c",
                    FIBONACCI + "while True: f(20); sorted(str(i) for i in range(1000))")
    assert total["by_table"] > 3 * total["stops"], total


def test_assembly():
    """libcrypto's SHA-512 and SHA-256, which are written by hand."""
    compare("hashlib", python(), "-c",
            "import hashlib\nwhile True: hashlib.pbkdf2_hmac('sha512', b'a', b'b', 3000); "
            "hashlib.sha256(bytes(100000)).digest()")


def test_clang():
    compare("clang", *clang_command())


@long
def test_node():
    if not shutil.which("node"):
        raise Skip("there is no node")
    total = compare("node", "node", "-e",
                    "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }"
                    "for (;;) { f(20); JSON.parse(JSON.stringify([...Array(1000).keys()])); }")
    assert total["by_frame_pointer"] > 0 and total["by_table"] > 0, total


def test_signals():
    total = compare("signals", compiled("signals"))
    assert total["after_signal"] > 0, total


@long
def test_lld():
    """Segments that share pages of the file; and its PLT has no CFI, so that libdwfl ends there."""
    total = compare("signals, linked by lld", compiled("signals", "-fuse-ld=lld"), longer=0.05)
    assert total["by_table"] > 3 * total["stops"], total


@long
def test_exceptions():
    compare("exceptions", compiled("exceptions"))


if __name__ == "__main__":
    main(globals())
