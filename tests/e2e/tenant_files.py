#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Files that a tenant forges to cost us CPU time and memory: each is mapped by an unprivileged user.

What is asserted is ten times what is normal, and far below what such files used to cost.
"""
import ctypes
import os
import platform
import re
import shutil
import struct
import subprocess
import threading
import time

from libe2e import (SYSPROF, Background, Skip, fixture, folded, main, natively, need_root, read, run, scratch, share,
                    wait_for, write)

PAGE = 4096
MB = 1 << 20
TENANT = 12345
PATIENCE = 120
AS_TENANT = ("setpriv", f"--reuid={TENANT}", f"--regid={TENANT}", "--clear-groups")
LOOP = b"\xeb\xfe\x90\x90" * (PAGE // 4)
count = 0


def need_x86():
    need_root()
    if platform.machine() != "x86_64":
        raise Skip("these files are for x86-64")


def place():
    """A directory of the tenant's."""
    global count
    count += 1
    path = scratch(f"tenant{count}")
    os.mkdir(path)
    os.chown(path, TENANT, TENANT)
    return path


def own(path):
    os.chown(path, TENANT, TENANT)
    return path


class Watch(threading.Thread):
    """How many bytes a process has read, by its system calls: what it was when it was last seen."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path, self.bytes = f"/proc/{pid}/io", 0
        self.start()

    def run(self):
        try:
            while True:
                with open(self.path, encoding="utf-8") as f:
                    self.bytes = int(f.readline().split()[1])
                time.sleep(0.02)
        except (OSError, IndexError):
            pass


def record(*args):
    """sysprof record to its end: seconds, CPU seconds, MB, MB that it has read, and what it said."""
    begin = time.monotonic()
    with open(scratch("err"), "w+b") as err:
        p = subprocess.Popen([SYSPROF, "record", "-vv", *map(str, args)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=err)
        watch = Watch(p.pid)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read().decode(errors="replace")
    assert p.returncode == 0, said[-4000:]
    seconds = time.monotonic() - begin
    cost = (seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, watch.bytes / MB)
    print("    {:.1f} s, {:.1f} s of CPU, {:.0f} MB; {:.0f} MB read".format(*cost))
    return (*cost, said)


def elf(segments=(), sections=(), section_count=None, shstrndx=0, phoff=64, shoff=0):
    """Header, segments: (type, flags, offset, address, size), sections are elsewhere."""
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, phoff, shoff, 0, 64, 56, len(segments), 64,
                          len(sections) if section_count is None else section_count, shstrndx)
    for kind, flags, offset, address, size in segments:
        header += struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, PAGE)
    return header


def section(name=0, kind=1, flags=2, address=0, offset=0, size=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, 0, 0, 8, 0)


# ---- a build-id that is not there ---------------------------------------------------------------

def endless_notes(path):
    """16 ranges of notes, 1 MB each and all the same one, in small notes; 2^18 sections. Sparse."""
    notes, sections = 1 * MB, 4 * MB
    segments = [(4, 4, notes, 0, MB)] * 16 + [(1, 5, 0, 0, PAGE)]
    with open(path, "wb") as f:
        f.write(elf(segments, shoff=sections, section_count=0))
        f.seek(sections)
        f.write(section(size=1 << 18))
        f.truncate(sections + 64 * (1 << 18))
    return own(path)


@natively
def test_endless_notes():
    """Such a file, another one each time it is mapped: what it costs to see that it has no build-id."""
    need_x86()
    directory = place()
    file = endless_notes(f"{directory}/notes")
    with Background(*AS_TENANT, fixture("touchmap"), file, "30") as tenant:
        maps = f"/proc/{tenant.pid}/comm"
        wait_for(lambda: read(maps) == "touchmap\n", what="the tenant")
        seconds, cpu, _, bytes_read, said = record("-p", tenant.pid, "-d", "2", "-o",
                                                   scratch("x.folded"))
    # it was looked at some hundred times; each time used to take 32 MB
    assert bytes_read < 300 and seconds < 120 and cpu < 20, (bytes_read, seconds, cpu, said[-2000:])


# ---- unwind information -------------------------------------------------------------------------

def many_frames(path, size):
    """A program with `size` bytes of .eh_frame: functions of 24 bytes with three rows each."""
    frames, names = 2 * PAGE, b"\0.eh_frame\0.shstrtab\0"
    # a CIE of 24 bytes, its functions' addresses relative to themselves; so all functions look alike
    chunk = struct.pack("<IIB", 20, 0, 1) + b"zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"
    chunk += bytes(24 - len(chunk))
    for i in range(1, 4096):
        chunk += struct.pack("<IIiIB", 20, 24 * i + 4, 0x10000000, 24, 0)
        chunk += b"\x41\x0e\x10\x41\x0e\x18\0"
    size -= size % len(chunk)
    with open(path, "wb") as f:
        sections = frames + size
        f.write(elf([(1, 5, 0, 0, sections)], [0, 0, 0], shstrndx=2, shoff=sections + PAGE))
        f.seek(PAGE)
        f.write(LOOP)
        f.seek(frames)
        for _ in range(size // len(chunk)):
            f.write(chunk)
        f.write(names.ljust(PAGE, b"\0"))
        f.write(section(kind=0, flags=0))
        f.write(section(name=1, address=frames, offset=frames, size=size))
        f.write(section(name=11, kind=3, flags=0, offset=sections, size=len(names)))
    return own(path)


def map_file(file, seconds="1"):
    return (*AS_TENANT, fixture("mapexec"), file, PAGE, seconds, "0.001")


@natively
def test_many_frames():
    """150 MB of unwind information are not read, and that is said; 60 MB take a bounded part of memory."""
    need_x86()
    directory = place()
    for size, most, reason in ((150, 300, "too many bytes of unwind information"),
                               (60, 450, "unwind table")):
        file = many_frames(f"{directory}/frames{size}", size * MB)
        seconds, cpu, memory, _, said = record("-o", scratch("x.folded"), "--", *map_file(file))
        reported = [line for line in said.splitlines() if f"frames{size}" in line]
        os.unlink(file)
        assert memory < most and seconds < 120 and cpu < 20, (size, seconds, cpu, memory)
        assert any(reason in line for line in reported), (size, reported)
        if size == 150:
            assert f"files without an unwind table: 1: {reason}" in said, said[-2000:]


# ---- a JVM that is none -------------------------------------------------------------------------

JVM = """
import ctypes, mmap, os, signal, sys
for _ in range(int(sys.argv[2])):
    if not os.fork():
        os.utime(sys.argv[1])
        file = os.open(sys.argv[1], os.O_RDONLY)
        library = mmap.mmap(file, 8192, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex("ebfe"))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    os.wait()
"""


def many_symbols(path):
    """A file with 2^24 symbols, and a gigabyte of names for them. Sparse."""
    symbols, names = 24 << 24, 1 << 30
    tables = [(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 11, 2, 0, 2 * PAGE, symbols, 2, 1, 8, 24),
              (0, 3, 2, 0, 2 * PAGE + symbols, names, 0, 0, 1, 0)]
    with open(path, "wb") as f:
        f.write(elf([(1, 5, 0, 0, 2 * PAGE)], tables, shoff=PAGE))
        f.seek(PAGE)
        f.write(b"".join(struct.pack("<IIQQQQIIQQ", *table) for table in tables))
        f.truncate(2 * PAGE + symbols + names)
    return own(path)


@natively
def test_symbols_of_a_jvm():
    """Process after process says that it is a JVM, with a file that nobody has seen before."""
    need_x86()
    file = many_symbols(f"{place()}/libjvm.so")
    seconds, cpu, memory, bytes_read, said = record("-o", scratch("x.folded"), "--", *AS_TENANT, "/usr/bin/python3", "-c",
                                                    JVM, file, 8)
    assert memory < 300 and bytes_read < 300 and cpu < 20 and seconds < 120, (seconds, cpu, memory, bytes_read, said[-2000:])
    assert share(folded(scratch("x.folded")), lambda frames: True)


# ---- debug links --------------------------------------------------------------------------------

def linked_modules(directory, number):
    """Libraries without build-id, each with a debug link to a sparse file of 4 GB of its own."""
    bare = f"{directory}/bare"
    run("objcopy", "--strip-debug", "--remove-section=.note.gnu.build-id", fixture("libdl_one.so"),
        bare, check=0)
    for i in range(number):
        module, link = f"{directory}/module{i}.so", f"{directory}/link{i}.debug"
        shutil.copy(bare, link)
        run("objcopy", f"--add-gnu-debuglink={link}", bare, module, check=0)
        with open(module, "r+b") as f:
            data = bytearray(f.read())
            data += bytes(max(0, 2 * PAGE - len(data)))
            data[PAGE:2 * PAGE] = LOOP
            f.seek(0)
            f.write(data)
        os.truncate(link, 4 << 30)
        yield own(module)


@natively
def test_sparse_links():
    """Reading 8 debug files of 4 GB to see that they are the wrong ones: there is nothing in them."""
    need_x86()
    directory = place()
    modules = list(linked_modules(directory, 8))
    script = " && ".join(f"{fixture('mapexec')} {m} {PAGE} 0.2 0.001" for m in modules)
    seconds, cpu, _, _, said = record("-o", scratch("x.folded"), "--", *AS_TENANT, "sh", "-c", script)
    refused = [line for line in said.splitlines() if "its CRC differs" in line]
    assert len(refused) >= 7, said[-4000:]
    assert seconds < 120 and cpu < 15, (seconds, cpu)


# ---- a file system that does not answer ---------------------------------------------------------

class SilentFiles:
    """A FUSE mount that everybody may enter, and whose server reads every question and answers none."""

    INIT = 26
    HEADER = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding

    def __init__(self, path):
        self.path, self.requested = path, 0
        os.mkdir(path)
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"silent", path.encode(), b"fuse", 6, options):
            number = ctypes.get_errno()
            os.close(self.fd)
            raise Skip(f"cannot mount FUSE: {os.strerror(number)}")
        threading.Thread(target=self.serve, daemon=True).start()
        # who waits for an answer cannot be killed: the test would not end either
        self.timer = threading.Timer(PATIENCE, abort, (path,))
        self.timer.start()

    def serve(self):
        while True:
            try:
                question = os.read(self.fd, 1 << 20)
            except OSError:
                return
            _, opcode, unique, *_ = self.HEADER.unpack_from(question)
            if opcode == self.INIT:
                answer = struct.pack("<IIIIHHI", 7, 31, 1 << 16, 0, 16, 12, 1 << 16)
                answer += bytes(64 - len(answer))
                os.write(self.fd, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
            else:
                self.requested += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        abort(self.path)
        os.close(self.fd)
        run("umount", "-l", self.path)


def abort(path):
    rows = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    devices = [row[2] for row in rows if row[4] == path]
    run("mount", "-t", "fusectl", "fusectl", "/sys/fs/fuse/connections")
    for device in devices:
        connection = f"/sys/fs/fuse/connections/{device.split(':')[1]}/abort"
        if os.path.exists(connection):
            write(connection, "1")


def linked_to(directory, link):
    """A library without build-id whose debug file is said to be at this path."""
    bare, module = f"{directory}/bare", f"{directory}/linked.so"
    section_file = f"{directory}/section"
    data = link.encode() + b"\0"
    write(section_file, data + bytes(-len(data) % 4) + bytes(4))
    run("objcopy", "--strip-debug", "--remove-section=.note.gnu.build-id", fixture("libdl_one.so"),
        bare, check=0)
    run("objcopy", f"--add-section=.gnu_debuglink={section_file}", bare, module, check=0)
    with open(module, "r+b") as f:
        f.seek(PAGE)
        f.write(LOOP)
    return own(module)


@natively
def test_silent_file_system():
    """A debug file where nobody answers: it costs some seconds, and is said; other names are there."""
    need_x86()
    directory = place()
    with SilentFiles(f"{directory}/silent") as files:
        modules = []
        for i in range(4):
            os.mkdir(f"{directory}/{i}")
            modules.append(linked_to(f"{directory}/{i}", f"{directory}/silent/{i}.debug"))
        begin = time.monotonic()
        script = " && ".join(f"{fixture('mapexec')} {m} {PAGE} 0.2 0.1" for m in modules)
        folded_file = scratch("x.folded")
        result = run(SYSPROF, "record", "-o", folded_file, "--", *AS_TENANT, "sh", "-c", script,
                     check=0)
        assert files.requested >= 1 and time.monotonic() - begin < PATIENCE, result
    assert re.search("processes abandoned, .*: 1$", result.err, re.M), result
    assert result.err.count("does not answer") > 1, result  # why names are missing
    assert share(folded(folded_file), lambda frames: "main" in frames) > 0.2, result


if __name__ == "__main__":
    main(globals())
