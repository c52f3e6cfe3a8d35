#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized
"""The sealed processes that read symbols: accidents in some of them, each in another module of one
profile. What they may do: tests/unit/test_sealed*.c."""
import os
import re
import resource
import signal
import struct
import time

from libe2e import SANITIZED, SYSPROF, TOP, Fixture, load_json, main, need_root, read, run, scratch
from libtrace import Traced

FIXTURES = os.path.join(TOP, "tests/fixtures")
SYS_PREAD, SYS_SOCKET, SYS_PRCTL, SYS_PRLIMIT, SYS_SECCOMP = 17, 41, 157, 302, 317
PR_SET_SECCOMP = 22
ELF_PLACE = 4  # of a sealed child's descriptors
SEALS = 2      # filters: the one that asks for files, and the one that refuses
MODULES = ("killed", "violating", "hungry", "cut", "sound")


def library(name):
    path = scratch(f"lib{name}.so")
    run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1",
        f"-Wl,--defsym=of_{name}={os.getpid()}", "-fPIC", "-shared", "-o", path,
        os.path.join(FIXTURES, "libinlined.c"), check=0)
    return path


def is_sealed(child, registers):
    """Counts the filters; true from the first system call after the last one."""
    # SECCOMP_SET_MODE_FILTER; libseccomp asks for what there is without one. The keeper's filter is entered by prctl().
    by_prctl = registers.orig_rax == SYS_PRCTL and registers.rdi == PR_SET_SECCOMP
    if by_prctl or (registers.orig_rax == SYS_SECCOMP and registers.rdi == 1 and registers.rdx):
        child.state["filters"] = child.state.get("filters", 0) + 1
        return False
    return child.state.get("filters", 0) >= SEALS


def module_of(child):
    match = re.search(r"lib(\w+)\.so$", child.link(ELF_PLACE))
    return match[1] if match else None


def frames(path):
    """{module: {(function, line)}} of a Firefox file."""
    profile = load_json(path)
    shared, result = profile["shared"], {}
    table, functions = shared["frameTable"], shared["funcTable"]
    for func, line in zip(table["func"], table["line"]):
        resource_id = functions["resource"][func]
        if resource_id is None or resource_id < 0:
            continue
        lib = profile["libs"][shared["resourceTable"]["lib"][resource_id]]["name"]
        name = shared["stringArray"][functions["name"][func]]
        result.setdefault(lib, set()).add((name, line))
    return result


def lines_of(frames_by_module, module):
    return {name for name, line in frames_by_module.get(module, ()) if line}


class Accidents:
    """One for each module, in the middle of reading it, in the first process that reads it."""

    def __init__(self):
        self.happened, self.reads = {}, {}

    def look(self, child, registers):
        if not is_sealed(child, registers):
            return False
        name = module_of(child)
        if name not in MODULES or name == "sound" or name in self.happened:
            return False
        if registers.orig_rax == SYS_PREAD:
            self.reads[name] = self.reads.get(name, 0) + 1
        limits = registers.orig_rax == SYS_PRLIMIT and registers.rdx
        if not limits if name == "hungry" else self.reads.get(name, 0) < 3:
            return False
        self.happened[name] = child.pid
        getattr(self, name)(child, registers)
        return False

    @staticmethod
    def killed(child, _):
        os.kill(child.pid, signal.SIGKILL)

    @staticmethod
    def violating(child, registers):
        registers.orig_rax = SYS_SOCKET
        child.set_registers(registers)

    @staticmethod
    def hungry(child, registers):
        """The limit that it is about to set for itself becomes a tiny one."""
        assert registers.rdi == 0 and registers.rsi == resource.RLIMIT_AS and registers.rdx
        with open(f"/proc/{child.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(registers.rdx)
            memory.write(struct.pack("<QQ", 1 << 20, 1 << 20))

    @staticmethod
    def cut(child, _):
        os.truncate(child.link(ELF_PLACE), 5000)


def traced_record(look, *libraries):
    """A recording of the libraries at work, under the eyes of `look`: (status, words, profile)."""
    need_root()
    out, log = scratch("traced.json"), scratch("traced.err")
    with Fixture("inlined", "100", *libraries) as target:
        traced = Traced(look, SYSPROF, "record", "--no-symbol-cache", "-p", target.pid, "-d", "2", "-o", out, log=log)
        status = traced.finish()
    return status, read(log, errors="replace"), out, traced


def test_accidents_cost_their_module():
    accidents = Accidents()
    status, words, out, _ = traced_record(accidents.look, *(library(m) for m in MODULES))
    assert status == 0, words
    assert set(accidents.happened) == set(MODULES) - {"sound"}, accidents.happened
    modules = frames(out)
    for name in ("libsound.so", "inlined"):
        assert lines_of(modules, name), f"{name} has no lines: {modules}"
    assert {"step_hot", "step_warm", "inlined_spin"} <= lines_of(modules, "libsound.so"), modules
    said = re.search(r"lines are missing: (.*)", words)
    assert said, words
    for name in ("killed", "violating", "hungry"):
        # a sample may be in code of the library that has no symbol
        assert modules[f"lib{name}.so"] - {(f"[lib{name}.so]", None)} == {("inlined_spin", None)}, modules
        assert f"lib{name}.so: " in said[1], words
    assert not lines_of(modules, "libcut.so") and "libcut.so: " in said[1], (modules, words)
    assert "libsound.so" not in said[1], words
    assert re.search(r"libkilled.so: the process .* died", said[1]), words
    assert re.search(r"libviolating.so: the process .* died", said[1]), words
    if not SANITIZED:  # its runtime ends the process where memory runs out
        assert re.search(r"libhungry.so: .* larger than there is memory for", said[1]), words


def test_interrupt_keeps_what_is_known():
    """A module that is never done: Ctrl-C writes the profile without it, and says so."""
    traced_by = {}

    def look(child, registers):
        if not is_sealed(child, registers) or module_of(child) != "stuck":
            return False
        if not traced_by:
            traced_by["stuck"] = child.pid
            time.sleep(1)  # the others are through by then
            os.kill(int(parent_of(child.pid)), signal.SIGINT)
        return True

    status, words, out, _ = traced_record(look, library("stuck"), library("sound"))
    assert status == 0 and traced_by, words
    assert "libstuck.so: cancelled" in words, words
    modules = frames(out)
    assert not lines_of(modules, "libstuck.so"), modules
    assert "libstuck.so" in modules, modules


def parent_of(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1]



def test_nothing_is_left_behind():
    """No process outlives sysprof, even if that is killed while they work."""
    need_root()
    children = []

    def look(child, registers):
        if not is_sealed(child, registers):
            return False
        children.append(child.pid)
        os.kill(int(parent_of(child.pid)), signal.SIGKILL)
        return False

    status, _, _, _ = traced_record(look, library("sound"))
    assert status == -signal.SIGKILL and children
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in children):
        assert time.monotonic() < deadline, "a sealed process outlives its parent"
        time.sleep(0.05)


def alive(pid):
    try:
        return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    main(globals())
