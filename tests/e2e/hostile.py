#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""Names, files and numbers that a profiled program chose to hurt us with.

Each time: status 0 and whole files, samples not lost, names shown escaped, and where a file is good
for nothing, the profile says so.
"""
import hashlib
import os
import platform
import random
import re
import signal
import struct
import threading
import time

import libe2e as e
from libe2e import (SANITIZED, SYSPROF, Background, Facts, Skip, fixture, folded, has_chain, load_json, main, need_root,
                    read, run, scratch, share, sysprof, wait_for, write)

LIMIT = 120 if SANITIZED else 60
FORMATS = ("json.gz", "cpuprofile", "folded", "txt", "sysprof")
PAGE = 4096
# an endless loop; what follows it in the page is the same
LOOPS = {"x86_64": b"\xeb\xfe\x90\x90", "aarch64": b"\x00\x00\x00\x14"}
POLITELY = ("nice", "-n", "19")  # programs that spin as long as they run: what reads their files is not held up
count = 0


def directory():
    global count
    count += 1
    path = scratch(f"dir{count}")
    os.mkdir(path)
    return path


def outputs(path):
    return [w for f in FORMATS for w in ("-o", f"{path}/x.{f}")]


def assert_clean(path):
    """Every output of a run is there, UTF-8, without control bytes, and loads."""
    for suffix in FORMATS:
        name = f"{path}/x.{suffix}"
        assert os.path.exists(name), (suffix, os.listdir(path))
        if suffix in ("json.gz", "cpuprofile"):
            load_json(name)
        elif suffix != "sysprof":
            text = read(name, "rb").decode("utf-8")
            bad = re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
            assert not bad, f"{name}: {text[max(0, bad.start() - 40):bad.end() + 40]!r}"
    assert not [n for n in os.listdir(path) if n.startswith(".")], os.listdir(path)
    converted = os.path.join(path, "converted")
    os.mkdir(converted)
    result = sysprof("convert", f"{path}/x.sysprof", *outputs(converted)[:-2], check=0,
                     timeout=LIMIT)
    # damage of their debug information is reported, what was over a limit, threads without a file of their own, and nothing else
    reported = [line for line in result.err.splitlines()
                if not any(word in line for word in ("lines are missing", "left out: ", "no files for "))]
    assert not reported, result
    for suffix in FORMATS[:-1]:
        with open(f"{path}/x.{suffix}", "rb") as a, open(f"{converted}/x.{suffix}", "rb") as b:
            assert a.read() == b.read(), f"x.{suffix} differs after convert"


def record(path, *target, status=0, prefix=()):
    result = run(*prefix, SYSPROF, "record", *outputs(path), *target, timeout=LIMIT)
    assert result.status == status, result
    assert_clean(path)
    return result


def record_until_used(path, seconds, *targets, prefix=()):
    """Until each of them, which run already, has used so much CPU time."""
    with Background(*prefix, SYSPROF, "record", *outputs(path), "-p", ",".join(str(t.pid) for t in targets)) as recorder:
        e.started_sampling(recorder, f"{path}/x.sysprof")
        for target in targets:
            e.use_cpu(target.pid, seconds)
        recorder.signal(signal.SIGINT)
        recorder.finish(timeout=LIMIT, check=0)
    assert_clean(path)


def assert_samples(path, cpu_ns, hz=999, least=0.9):
    """As many as the CPU time makes, but for those that the books call lost."""
    kept = e.total(folded(f"{path}/x.folded"))
    due = cpu_ns * hz / 1e9
    assert kept + e.lost_ticks(f"{path}/x.sysprof") >= least * due - 5, (kept, due)


def files_in(path):
    """{path of a library: samples that have it in their stack}"""
    found = {}
    for thread in e.firefox_threads(f"{path}/x.json.gz"):
        for _, frames in thread.samples():
            for lib in {lib for _, lib in frames if lib}:
                found[lib] = found.get(lib, 0) + 1
    return found


def assert_seen_in(file, path, least):
    """However many samples the host let the target have."""
    samples = sum(len(thread.times) for thread in e.firefox_threads(f"{path}/x.json.gz"))
    assert files_in(path).get(file, 0) > max(least * samples, 1), (samples, files_in(path))


# ---- names --------------------------------------------------------------------------------------

def test_comm():
    """A thread whose names hold newlines, quotes, escapes and half characters."""
    need_root()
    path = directory()
    result = record(path, "--", fixture("rename"), "0.15")
    phases = Facts(result.out).all("phase")
    assert_samples(path, sum(int(p[4]) for p in phases))
    rows = folded(f"{path}/x.folded")
    for function in ("f_one", "f_two"):
        assert share(rows, lambda f: function in f) > 0.4, rows
    names = set(e.comms(rows))
    assert len(names) >= 10 and "caf\u00e9" in names and 'quo"te' in names, names
    assert not any("\n" in n or "\x1b" in n or ";" in n for n in names), names
    for by in ("thread", "process", "function"):
        for options in ((), ("--json",)):
            text = sysprof("report", f"{path}/x.sysprof", "--by", by, *options, check=0).out
            assert "\x1b" not in text, text


WEIRD = (b"new\nline", b"quo\"te's", b"esc\x1b[31mred", b"bad\xff\xfe\x80utf", b"semi;co:lon",
         b"tab\tback\\slash", b"  spaces  ", b"%s%n{}$(id)`", b"caf\xc3\xa9", b"<b>&amp;",
         b" (deleted)")
# where each one is a recording of its own; replay.py reads those of the others
WEIRD_HERE = (WEIRD[0], WEIRD[2], WEIRD[3], WEIRD[10]) if SANITIZED else WEIRD


def test_paths():
    """Programs in directories with such names, called by such names, one after the other."""
    need_root()
    path, programs = directory(), []
    for i, weird in enumerate(WEIRD):
        place = os.path.join(scratch(f"place{i}").encode(), weird)
        os.makedirs(place)
        programs.append(os.path.join(place, weird))
        write(programs[-1], with_build_id(fixture("chain"), f"place{i}"))  # else all of them would be one file
        os.chmod(programs[-1], 0o755)
    result = record(path, "--", "sh", "-c", 'for program in "$@"; do "$program" 0.2; done', "sh", *map(os.fsdecode, programs))
    assert "\x1b" not in result.err, result
    rows = [row for row in folded(f"{path}/x.folded") if row[0][0] != "sh"]
    assert share(rows, lambda f: has_chain(f, "outer", "middle", "inner", "leaf")) > 0.8, rows
    found = files_in(path)
    for i, (weird, program) in enumerate(zip(WEIRD, programs)):
        mine = [lib for lib in found if f"/place{i}/" in lib]
        assert len(mine) == 1 and found[mine[0]] >= 20, (weird, found)
        try:
            # as it is where that can be shown; the kernel writes " (deleted)" behind names itself
            if weird.decode().isprintable() and weird != b" (deleted)":
                assert mine[0] == os.fsdecode(program), (mine, program)
        except UnicodeDecodeError:
            pass
    for by in ("dso", "process"):
        sysprof("report", f"{path}/x.sysprof", "--by", by, "--json", check=0)


def test_output_paths():
    """Our own files under such names; and messages that name them."""
    need_root()
    for weird in WEIRD_HERE:
        path = directory().encode()
        name = os.path.join(path, weird + b".json")
        result = run(SYSPROF, "record", "-d", "20", "-o", os.fsdecode(name), "--",
                     fixture("chain"), "0.1", timeout=LIMIT)
        assert result.status == 0 and "\x1b" not in result.err, result
        assert os.listdir(path) == [weird + b".json"], os.listdir(path)
        load_json(os.fsdecode(name))
        missing = os.fsdecode(os.path.join(path, weird, b"x.json"))
        for args in (("record", "-a", "-d", "9", "-o", missing), ("report", missing),
                     ("convert", missing, "-o", "x.json")):
            result = run(SYSPROF, *args, timeout=LIMIT, cwd=os.fsdecode(path))
            assert result.status == 1 and "No such file" in result.err, result
            assert "\x1b" not in result.err and len(result.err.splitlines()) <= 2, result


def test_arguments():
    """The command line of COMMAND is in the profile, whatever it holds, however long it is."""
    need_root()
    path = directory()
    words = [os.fsdecode(w) for w in WEIRD] + ["", "x" * 100000, "\u2028"]
    record(path, "--", "sh", "-c", f"exec {fixture('chain')} 0.2", *words)
    assert folded(f"{path}/x.folded")


# ---- files --------------------------------------------------------------------------------------

def loop_page():
    if platform.machine() not in LOOPS:
        raise Skip(f"no endless loop is known for {platform.machine()}")
    return LOOPS[platform.machine()] * (PAGE // 4)


def build_id(name):
    return hashlib.sha1(name.encode()).digest()


def with_build_id(file, name):
    """Its contents, with a build-id of this name."""
    data = bytearray(read(file, "rb"))
    note = data.find(b"\3\0\0\0GNU\0")
    assert note > 0, f"{file} has no build-id"
    data[note + 8:note + 28] = build_id(name)
    return data


def elf_with_loop(name="same"):
    """A real file of symbols, in whose second page there is the loop; its build-id is its own."""
    data = with_build_id(fixture("libdl_one.so"), name)
    data += b"\0" * max(0, 2 * PAGE - len(data))
    data[PAGE:2 * PAGE] = loop_page()
    return bytes(data)


def with_fields(data, **fields):
    """Other values in the ELF header."""
    layout = {"shoff": (40, "Q"), "phnum": (56, "H"), "shnum": (60, "H"), "shstrndx": (62, "H")}
    changed = bytearray(data)
    for name, value in fields.items():
        struct.pack_into("<" + layout[name][1], changed, layout[name][0], value)
    return bytes(changed)


def files():
    """(name, contents) with the loop in the second page."""
    loop, elf = loop_page(), elf_with_loop()
    return {
        "text": b"hello, world\n".ljust(PAGE, b".") + loop,
        "magic only": b"\x7fELF".ljust(PAGE, b"\0") + loop,
        "32 bit": b"\x7fELF\x01" + elf[5:],
        "truncated": elf[:2 * PAGE],
        "good": elf,
        "sectionless": with_fields(elf, shoff=0, shnum=0, shstrndx=0),
        "sections far beyond": with_fields(elf, shoff=(1 << 64) - 64),
        "65535 program headers": with_fields(elf, phnum=0xffff),
    }


def test_bad_files():
    """
    Executed files that are no ELF files, or bad ones: samples in them, and a word about it. How else they may be bad:
    tests/unit/test_elf_*.c, test_symbolize_hostile.c.
    """
    need_root()
    path, place = directory(), directory()
    cases = files()
    for name, data in cases.items():
        # else all of them would be one file, by their build-id
        data = data.replace(build_id("same"), build_id(name))
        write(os.path.join(place, name), data)
    script = f'cd {place}; for f in *; do {fixture("mapexec")} "$f" {PAGE} 0.3 0.001; done'
    result = record(path, "--", "sh", "-c", script)
    assert result.out.count("left") == len(cases), result
    found = files_in(path)
    missing = [n for n in cases if found.get(os.path.join(place, n), 0) < 5]
    assert len(missing) < len(cases) / 4, (missing, found)  # a busy machine may lose some
    assert "not an ELF file" in result.err and "damaged or truncated ELF" in result.err, result


def test_good_file_has_its_names():
    """The test of the bad files above would not notice if good ones were taken for bad."""
    need_root()
    path, place = directory(), directory()
    data = bytearray(elf_with_loop())
    file = write(os.path.join(place, "good"), data)
    symbols = [s.split() for s in run("nm", "-n", file, check=0).out.splitlines()]
    inside = [s for s in symbols if len(s) == 3 and s[1] in "tT" and
              PAGE <= int(s[0], 16) < 2 * PAGE]
    assert inside, symbols
    offset = int(inside[-1][0], 16)
    record(path, "--", fixture("mapexec"), file, offset, "0.3", "0.001")
    rows = folded(f"{path}/x.folded")
    assert share(rows, lambda f: inside[-1][2] in f) > 0.5, (inside, rows)


def swaps():
    """What may lie where a mapped file was."""
    return {
        "nothing": os.unlink,
        "fifo": lambda p: (os.unlink(p), os.mkfifo(p)),
        "device": lambda p: (os.unlink(p), os.symlink("/dev/zero", p)),
        "directory": lambda p: (os.unlink(p), os.mkdir(p)),
        "loop": lambda p: (os.unlink(p), os.symlink(p, p)),
        "socket": lambda p: (os.unlink(p), os.mknod(p, 0o140600)),
        "endless": lambda p: (os.unlink(p), write(p, b""), os.truncate(p, 1 << 40)),
        "empty": lambda p: (os.unlink(p), write(p, b"")),
        "emptied": lambda p: os.truncate(p, 0),
        "shortened": lambda p: os.truncate(p, PAGE + 100),
    }


@e.long
def test_swapped_files():
    """Deleted, emptied, or replaced by what must not be opened: before recording and while."""
    need_root()
    unprivileged = ("setpriv", "--bounding-set=-checkpoint_restore,-sys_admin",
                    "--inh-caps=-checkpoint_restore,-sys_admin")
    for before, prefix in ((True, ()), (True, unprivileged), (False, ())):
        path, place = directory(), directory()
        targets = []
        for name, swap in swaps().items():
            file = write(os.path.join(place, name), elf_with_loop(name))
            targets.append((file, swap, Background(*POLITELY, fixture("mapexec"), file, PAGE, "0.25", "600")))
        try:
            for _, _, target in targets:
                wait_for(lambda t=target: t.p.stdout.readline().startswith("left"), LIMIT, "left")
            pids = ",".join(str(t.pid) for _, _, t in targets)
            if before:
                for file, swap, _ in targets:
                    swap(file)
                record_until_used(path, 0.1, *(t for _, _, t in targets), prefix=prefix)
            else:
                with Background(SYSPROF, "record", "-p", pids, "-d", "1.2",
                                *outputs(path)) as recorder:
                    wait_for(lambda: os.path.exists(f"{path}/x.sysprof"), LIMIT, "samples")
                    for file, swap, _ in targets:
                        swap(file)
                    recorder.finish(timeout=LIMIT, check=0)
                assert_clean(path)
            assert all(t.p.poll() is None for _, _, t in targets), "a target died"
        finally:
            for _, _, target in targets:
                target.__exit__()
        assert share(folded(f"{path}/x.folded"), lambda f: "afterwards" in f) > 0.5


def test_swapped_under_samples():
    """The same with samples in the very file: they keep their place, if not their names."""
    need_root()
    names = [n for n in swaps() if n not in ("emptied", "shortened")]  # those end by SIGBUS
    path, place = directory(), directory()
    targets = [Background(*POLITELY, fixture("mapexec"), write(os.path.join(place, n), elf_with_loop(n)), PAGE,
                          "600", "1") for n in names]
    try:
        for name, target in zip(names, targets):
            wait_for(lambda t=target: t.p.stdout.readline().startswith("mapped"), LIMIT, "mapped")
            swaps()[name](os.path.join(place, name))
        record_until_used(path, 0.1, *targets)
    finally:
        for target in targets:
            target.__exit__()
    found = files_in(path)
    for name in names:
        mine = [n for lib, n in found.items() if os.path.join(place, name) in lib]
        assert sum(mine) >= 10, (name, found)


@e.long
def test_truncated_while_read():
    """A big library that shrinks and grows while its symbols are read."""
    need_root()
    place = directory()
    data = bytearray(read(SYSPROF, "rb"))
    data[PAGE:2 * PAGE] = loop_page()
    size, keep = len(data), 2 * PAGE
    stop = threading.Event()

    def shake(file):
        chance = random.Random(6)
        with open(file, "r+b") as f:
            while not stop.is_set():
                f.truncate(chance.choice((keep, keep + 64, size // 2, size - 4000)))
                time.sleep(0.0002)
                f.seek(keep)
                f.write(data[keep:])
                f.flush()
                time.sleep(0.0005)

    for i in range(3):
        path = directory()
        file = write(os.path.join(place, f"lib{i}"), data)
        with Background(fixture("mapexec"), file, PAGE, "600", "1") as target:
            wait_for(lambda t=target: t.p.stdout.readline().startswith("mapped"), LIMIT, "mapped")
            stop.clear()
            thread = threading.Thread(target=shake, args=(file,))
            thread.start()
            try:
                record_until_used(path, 0.3, target)
            finally:
                stop.set()
                thread.join()
        assert_seen_in(file, path, 0.05)


# ---- numbers ------------------------------------------------------------------------------------

def test_many_mappings():
    """20,000 executable mappings, there before or made while we look."""
    need_root()
    limit = int(read("/proc/sys/vm/max_map_count", "rb"))
    if limit < 21000:
        raise Skip(f"vm.max_map_count is {limit}")
    place = directory()
    file = write(os.path.join(place, "small"), elf_with_loop())
    path = directory()
    with Background(fixture("mapexec"), "-c", "20000", file, PAGE, "600", "1") as target:
        wait_for(lambda: target.p.stdout.readline().startswith("mapped"), LIMIT, "mapped")
        record_until_used(path, 0.5, target)
    assert_seen_in(file, path, 0.05)
    # so many at once may be more than the kernel can tell; /proc is read again then, a bit later
    path = directory()
    result = record(path, "--", fixture("mapexec"), "-c", "20000", file, PAGE, "3", "0.001")
    assert_seen_in(file, path, 0.02)
    if "outside every known mapping" in result.err:
        assert "process and mapping records" in result.err, result


def test_many_threads():
    """2,000 threads, there before or started while we look."""
    need_root()
    path = directory()
    result = record(path, "--", fixture("crowd"), "2000", "1.5")
    assert_samples(path, Facts(result.out).number("cpu_ns"), least=0.8)
    rows = folded(f"{path}/x.folded")
    assert share(rows, lambda f: "elbow" in f) > 0.5, rows
    assert len(e.firefox_threads(f"{path}/x.json.gz")) > 200
    path = directory()
    with Background(fixture("crowd"), "2000", "600") as target:
        wait_for(lambda: target.p.stdout.readline().startswith("started"), LIMIT, "started")
        record_until_used(path, 0.8, target)
    assert share(folded(f"{path}/x.folded"), lambda f: "elbow" in f) > 0.9


if __name__ == "__main__":
    main(globals())
