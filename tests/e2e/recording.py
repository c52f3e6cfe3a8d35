#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 600
# runs: beside sanitized
"""The recording file: killed, damaged, cut, converted elsewhere, replaced, given away."""
import glob
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time
import zlib

import libe2e as e
from libe2e import (SYSPROF, Background, fixture, folded, has_chain, main, natively, need_root, run,
                    scratch, share, sysprof, wait_for)

LIMIT = 60
PERIOD = 1e9 / 999
FORMATS = ("json", "json.gz", "cpuprofile", "folded", "txt")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
made = {}


def directory(name):
    path = scratch(name)
    os.makedirs(path)
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def recorded():
    """A recording with its live outputs, made once: the whole system beside a fork storm."""
    need_root()
    if "path" not in made:
        path = directory("recorded")
        # a program of its own place, which tests can hide
        program = os.path.join(directory("programs"), "chain")
        shutil.copy(fixture("chain"), program)
        outputs = [w for f in FORMATS for w in ("-o", f"{path}/x.{f}")]
        with Background(program, "-t", "2", "60"), \
                Background("sh", "-c", "while :; do sleep 0.01; done"):
            result = sysprof("record", "-a", "-F", "499", "-d", "1.5", "-o", f"{path}/x.sysprof",
                             *outputs, check=0, timeout=LIMIT)
        made.update(path=path, program=program, summary=result.err)
    return os.path.join(made["path"], "x.sysprof")


def chunks(data):
    """(offset, size of the events) of each chunk."""
    at, found = struct.unpack_from("<I", data, 16)[0], []
    while at + 48 <= len(data):
        payload = struct.unpack_from("<Q", data, at + 16)[0]
        found.append((at, payload))
        at += 48 + payload + 8
    assert at == len(data), "the recording does not end with a chunk"
    return found


def convert(path, out, **options):
    options.setdefault("timeout", LIMIT)
    return sysprof("convert", path, "-o", out, **options)


def total(path):
    return sum(count for _, count in folded(path))


# ---- killed -------------------------------------------------------------------------------------

def cpu_ns(pid):
    return time.clock_gettime_ns(~pid << 3 | 2)


@e.alone
@natively
def test_kill_9():
    """Killed in the middle, it holds every sample that is older than a second, and their names."""
    need_root()
    path = directory("killed")
    file, json, text = (os.path.join(path, n) for n in ("x.sysprof", "x.json.gz", "x.folded"))
    with Background(fixture("chain"), "60") as target:
        with Background(SYSPROF, "record", "-p", target.pid, "-o", file, "-o",
                        os.path.join(path, "live.json.gz")) as recorder:
            wait_for(lambda: os.path.exists(file), LIMIT, file)
            time.sleep(0.5)
            cpu, begin = cpu_ns(target.pid), time.monotonic_ns()
            time.sleep(3)
            cpu, end = cpu_ns(target.pid) - cpu, time.monotonic_ns()
            time.sleep(1)
            recorder.signal(signal.SIGKILL)
            recorder.finish(timeout=LIMIT)
        assert os.listdir(path) == ["x.sysprof"], os.listdir(path)
        result = convert(file, json, check=0)
        convert(file, text, check=0)
    assert "the recording has no end" in result.err, result
    named = re.search(r"no symbols\D*([\d.]+) %", result.err)
    assert named and float(named[1]) > 50, result
    threads = [t for t in e.firefox_threads(json) if t.pid == target.pid]
    kept = sum(begin <= when < end for t in threads for when, _ in t.samples())
    due, lost = cpu / PERIOD, books_lost(file)
    assert kept <= due * 1.02 + 3, (kept, due)
    assert kept + lost >= due * 0.98 - 3, f"{kept} samples of {due:.0f} are there, {lost} were lost"
    assert share(folded(text), lambda f: has_chain(f, "outer", "middle", "inner", "leaf")) > 0.9


def books_lost(path):
    """As of the last whole chunk."""
    data = read(path)
    try:
        chunks(data)
    except AssertionError:
        whole = data.rindex(b"CEND") + 4
        path = write(path + ".whole", data[:whole])
    return e.lost_ticks(path)


def test_kill_9_on_another_machine():
    """Without the files there are no names from them, which is said; the samples are there."""
    need_root()
    path = directory("killed-elsewhere")
    programs = directory("killed-programs")
    shutil.copy(fixture("chain"), programs)
    file = os.path.join(path, "x.sysprof")
    with Background(os.path.join(programs, "chain"), "60") as target:
        with Background(SYSPROF, "record", "-p", target.pid, "-o", file) as recorder:
            wait_for(lambda: os.path.exists(file), LIMIT, file)
            time.sleep(1)
            recorder.signal(signal.SIGKILL)
            recorder.finish(timeout=LIMIT)
    here = convert(file, os.path.join(path, "here.folded"), check=0)
    there = run(*elsewhere(programs), SYSPROF, "convert", file, "-o",
                os.path.join(path, "there.folded"), check=0, timeout=LIMIT)
    pattern = r"no symbols\D*([\d.]+) %"
    share_here, share_there = (float(re.search(pattern, r.err)[1]) for r in (here, there))
    assert share_there < share_here, (here, there)
    # what the files were taken for the recording's by
    pattern = r"(\d+) by the build-id, (\d+) by device and inode alone; (\d+) not found"
    found_here, found_there = (list(map(int, re.search(pattern, r.err).groups())) for r in (here, there))
    assert found_here[0] > 0 and not found_here[2], here
    assert found_there[2] > 0 and sum(found_there) == sum(found_here), (here, there)
    rows = folded(os.path.join(path, "there.folded"))
    assert not any("leaf" in frames for frames, _ in rows), rows
    assert sum(n for _, n in rows) == total(os.path.join(path, "here.folded"))


def test_convert_while_recording():
    need_root()
    path = directory("growing")
    file = os.path.join(path, "x.sysprof")
    with Background(SYSPROF, "record", "-a", "-o", file) as recorder:
        wait_for(lambda: os.path.exists(file), LIMIT, file)
        for i in range(6):
            time.sleep(0.15)
            result = convert(file, os.path.join(path, f"{i}.json"), check=0)
            assert "no end" in result.err, result
            # files of other programs on this machine may be
            assert "damaged" not in result.err.replace("debug information is damaged", ""), result
        recorder.signal(signal.SIGINT)
        recorder.finish(timeout=LIMIT, check=0)
    assert "no end" not in convert(file, os.path.join(path, "end.json"), check=0).err


# ---- damaged ------------------------------------------------------------------------------------

@natively
def test_damaged_chunk():
    """A byte that flipped costs its chunk, wherever it is, and that is said."""
    good = recorded()
    data, path = read(good), directory("damaged")
    file, out = os.path.join(path, "x.sysprof"), os.path.join(path, "x.folded")
    found = chunks(data)
    assert len(found) >= 6, found
    before = total(os.path.join(made["path"], "x.folded"))
    pieces = 0
    for index in sorted({0, 1, len(found) // 2, len(found) - 2, len(found) - 1}):
        at, payload = found[index]
        for offset in (48 + payload // 2, 5, 20, 48 + payload + 1):  # events, header, trailer
            broken = bytearray(data)
            broken[at + offset] ^= 0x40
            result = convert(write(file, broken), out, check=0)
            assert f"1 of {len(found)} chunks damaged" in result.err, \
                (index, offset, result)
            after = total(out)
            assert after <= before, (index, offset, after, before)
            pieces += before - after
            report = sysprof("report", file, check=0, timeout=LIMIT)
            assert "damaged" in report.err, report
    assert pieces > 0, "no chunk held any sample"


def test_truncated():
    """Cut anywhere: what is whole before the cut is there."""
    good = recorded()
    data, path = read(good), directory("truncated")
    file, out = os.path.join(path, "x.sysprof"), os.path.join(path, "x.folded")
    found = chunks(data)
    last, middle = found[-1][0], found[len(found) // 2][0]
    counts = []
    for size, part in ((len(data) - 1, "the last chunk is truncated"), (last + 48, "truncated"),
                       (last + 1, "truncated"), (last, "no symbols"), (middle + 100, "no end"),
                       (middle, "no end"), (found[1][0], "no end")):
        result = convert(write(file, data[:size]), out, check=0)
        assert part in result.err, (size, result)
        counts.append(total(out))
    assert counts == sorted(counts, reverse=True), counts
    for size in (0, 1, 7, 8, 63, 64, 64 + 47, found[1][0] - 1):
        os.path.exists(out) and os.unlink(out)
        result = convert(write(file, data[:size]), out, check=1)
        assert file in result.err or "recording" in result.err, (size, result)
        assert os.listdir(path) == ["x.sysprof"], os.listdir(path)


def header(data, **fields):
    """The file with another header, whose checksum is right."""
    layout = {"magic": (0, "8s"), "byte_order": (8, "I"), "version": (12, "I"), "size": (16, "I")}
    head = bytearray(data[:60])
    for name, value in fields.items():
        struct.pack_into("<" + layout[name][1], head, layout[name][0], value)
    return bytes(head) + struct.pack("<I", zlib.crc32(head)) + data[64:]


def test_headers():
    good = recorded()
    data, path = read(good), directory("headers")
    assert header(data) == data, "the checksum is not what FORMATS.md says"
    flipped = bytearray(data)
    flipped[30] ^= 1
    for status, part, content in (
            (1, "newer sysprof: version 3", header(data, version=3)),
            (1, "newer sysprof: version 4294967295", header(data, version=0xffffffff)),
            (1, "byte order", header(data, byte_order=0x04030201)),
            (1, "neither a recording nor", header(data, magic=b"SYSPROG\n")),
            (1, "the file is empty", b""),
            (1, "neither a recording nor", b"SYSPROF"),
            (1, "neither a recording nor", b"\0" * 100000),
            (1, "within its header", data[:20]),
            (1, "no readable chunk", data[:64]),
            (1, "no readable chunk", header(data, size=0xfffffff8)),
            (0, "damaged file header", bytes(flipped))):
        file = write(os.path.join(path, "x.sysprof"), content)
        for command in (["convert", file, "-o", os.path.join(path, "x.json")], ["report", file]):
            result = sysprof(*command, timeout=LIMIT)
            assert result.status == status and part in result.err, (part, command, result)
        assert status == 0 or os.listdir(path) == ["x.sysprof"], os.listdir(path)


def test_random_damage():
    """Any damage: an answer in time, and nothing half-written. The seed is fixed."""
    good = recorded()
    data, path = read(good), directory("random")
    file, out = os.path.join(path, "x.sysprof"), os.path.join(path, "x.json")
    chance = random.Random(3)
    statuses = []
    for _ in range(25):
        broken = bytearray(data)
        for _ in range(chance.choice((1, 3, 20, 200))):
            kind, at = chance.randrange(4), chance.randrange(len(broken))
            if kind == 0:
                broken[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                broken[at:at + 8] = chance.randbytes(8)
            elif kind == 2:
                del broken[at:at + chance.randrange(1, 5000)]
            else:
                other = chance.randrange(len(broken))
                broken[at:at] = broken[other:other + chance.randrange(1, 5000)]
        result = convert(write(file, broken), out)
        statuses.append(result.status)
        assert result.status in (0, 1), result
        if result.status == 0:
            e.load_json(out)
            os.unlink(out)
        assert os.listdir(path) == ["x.sysprof"], (os.listdir(path), result)
    assert statuses.count(0) > 10, statuses


def sealed(data, change):
    """The file with its events changed and every checksum right: what a liar would write."""
    out = bytearray(data[:64])
    for at, payload in chunks(data):
        head, events = bytearray(data[at:at + 44]), bytearray(data[at + 48:at + 48 + payload])
        change(events)
        struct.pack_into("<Q", head, 16, len(events))
        out += head + struct.pack("<I", zlib.crc32(head)) + events
        out += struct.pack("<I", zlib.crc32(events)) + b"CEND"
    return bytes(out)


def test_lies_with_good_checksums():
    """Sound chunks whose events make no sense: events are checked, too."""
    good = recorded()
    data, path = read(good), directory("lies")
    assert sealed(data, lambda events: None) == data
    file, out = os.path.join(path, "x.sysprof"), os.path.join(path, "x.json")
    chance = random.Random(4)
    statuses = []
    for _ in range(12):
        rate = chance.choice((1e-4, 1e-3, 1e-2))

        def lie(events):
            for _ in range(int(len(events) * rate) + 1):
                at = chance.randrange(0, len(events) & ~7, 8)
                if chance.randrange(2):
                    events[at:at + 8] = chance.choice(
                        (b"\0" * 8, b"\xff" * 8, b"\0\0\0\0\0\0\0\x80", chance.randbytes(8)))
                else:
                    events[chance.randrange(len(events))] ^= 1 << chance.randrange(8)
        result = convert(write(file, sealed(data, lie)), out)
        statuses.append(result.status)
        assert result.status in (0, 1), result
        if result.status == 0:
            e.load_json(out)
            os.unlink(out)
        assert os.listdir(path) == ["x.sysprof"], (os.listdir(path), result)
    assert 0 in statuses, statuses


# ---- converted ----------------------------------------------------------------------------------

def elsewhere(*hidden):
    """As on another machine: these directories are empty, /proc has nothing, and the user is not root."""
    script = "; ".join(f"mount -t tmpfs none {d}" for d in hidden)
    return ("unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh")


def same_files(live, converted):
    names = sorted(os.path.basename(f) for f in glob.glob(f"{live}/x*") if ".sysprof" not in f)
    assert len(names) > len(FORMATS), f"there should be siblings of x.cpuprofile: {names}"
    assert sorted(os.listdir(converted)) == names, (os.listdir(converted), names)
    for name in names:
        a, b = read(os.path.join(live, name)), read(os.path.join(converted, name))
        assert a == b, f"{name} differs from the live one: {len(a)} bytes, {len(b)} now"


def outputs(path):
    return [w for f in FORMATS for w in ("-o", f"{path}/x.{f}")]


@e.quick
def test_same_bytes():
    good = recorded()
    out = directory("same")
    result = sysprof("convert", good, *outputs(out), check=0, timeout=LIMIT)
    # what was left out of the others on this system is in both
    missing = [line.split(f"{good}: ", 1)[-1] for line in result.err.splitlines()]
    assert all(line in made["summary"] for line in missing) and not result.out, (result, made["summary"])
    same_files(made["path"], out)


def test_same_bytes_elsewhere():
    """Without root, without the programs, from a copy."""
    good = recorded()
    out, there = directory("same-elsewhere"), directory("moved")
    os.chmod(out, 0o777)
    copy = shutil.copy(good, os.path.join(there, "y.sysprof"))
    os.chmod(copy, 0o644)
    program = shutil.copy(SYSPROF, os.path.join(there, "sysprof"))
    os.chmod(program, 0o755)
    hidden = (os.path.dirname(made["program"]), "/sys")
    run(*elsewhere(*hidden), *NOBODY, program, "convert", copy, *outputs(out), check=0,
        timeout=LIMIT)
    same_files(made["path"], out)


def test_same_bytes_of_options():
    """--thread and --lines give what the live export gives."""
    need_root()
    path, out = directory("options"), directory("options-converted")
    with Background(fixture("chain"), "-t", "2", "60") as target:
        tids = [target.p.stdout.readline().split() for _ in range(4)]
        tid = [t[1] for t in tids if t[0] == "tid"][0]
        options = ("--lines", "--thread", tid)
        sysprof("record", "-p", target.pid, "-d", "0.7", *options, "-o", f"{path}/x.sysprof",
                *outputs(path), check=0, timeout=LIMIT)
    sysprof("convert", f"{path}/x.sysprof", *options, *outputs(out), check=0, timeout=LIMIT)
    assert sorted(os.listdir(out)) == sorted(f"x.{f}" for f in FORMATS), os.listdir(out)
    for name in os.listdir(out):
        assert read(os.path.join(path, name)) == read(os.path.join(out, name)), name
    assert e.load_json(f"{out}/x.cpuprofile")["$sysprof"]["tid"] == int(tid)


def test_report_is_the_text_output():
    good = recorded()
    result = sysprof("report", good, check=0, timeout=LIMIT)
    assert result.out.encode() == read(os.path.join(made["path"], "x.txt"))
    for by in ("function", "thread", "process", "dso", "line"):
        text = sysprof("report", good, "--by", by, "--top", "5", check=0, timeout=LIMIT)
        assert text.out, by


# ---- names, owners, pipes -----------------------------------------------------------------------

def test_older_file_stays_until_there_is_better():
    need_root()
    path = directory("older")
    file = write(os.path.join(path, "x.sysprof"), b"old")
    small = os.path.join(path, "small")
    failing = [
        (1, ("record", "-p", "4194303", "-o", file)),
        (1, ("record", "-a", "--cgroup", "/no/such", "-o", file)),
        (2, ("record", "-a", "-o", file, "-o", "x.nonsense")),
        (1, ("record", "-a", "-o", file, "-o", "/no/such/directory/x.json")),
        (127, ("record", "-o", file, "--", "/no/such/program")),
    ]
    for status, args in failing:
        result = sysprof(*args, timeout=LIMIT, check=status)
        assert read(file) == b"old", result
        assert os.listdir(path) == ["x.sysprof"], os.listdir(path)
    result = run(*NOBODY, SYSPROF, "record", "-a", "-o", file, timeout=LIMIT)
    assert result.status not in (0, -11) and read(file) == b"old", result
    # a disk that has no room for even one chunk
    os.mkdir(small)
    script = (f"mount -t tmpfs -o size=64k none {small}; echo old >{small}/x.sysprof; "
              f"{SYSPROF} record -a -d 0.5 -o {small}/x.sysprof; echo status $?; ls -A {small}; "
              f"cat {small}/x.sysprof")
    result = run("unshare", "-m", "sh", "-c", script, check=0, timeout=LIMIT)
    assert result.out == "status 1\nx.sysprof\nold\n", result
    sysprof("record", "-a", "-d", "0.5", "-o", file, check=0, timeout=LIMIT)
    sysprof("report", file, check=0, timeout=LIMIT)


def test_owners_and_modes():
    need_root()
    for umask, environment, owner in ((0o000, {}, (0, 0)), (0o777, {}, (0, 0)),
                                      (0o022, {"SUDO_UID": "1234", "SUDO_GID": "4321"},
                                       (1234, 4321))):
        path = directory(f"modes-{umask}")
        before = os.umask(umask)
        try:
            sysprof("record", "-d", "20", "-o", f"{path}/x.sysprof", *outputs(path), "--",
                    fixture("chain"), "-t", "2", "1", check=0, timeout=LIMIT,
                    env={**os.environ, **environment})
        finally:
            os.umask(before)
        names = os.listdir(path)
        assert len(names) > 1 + len(FORMATS), names
        for name in names:
            st = os.stat(os.path.join(path, name))
            assert st.st_mode & 0o7777 == 0o600, (name, oct(st.st_mode))
            assert (st.st_uid, st.st_gid) == owner, (name, st)


def test_recording_through_a_pipe():
    need_root()
    path = directory("pipe")
    file, out = os.path.join(path, "x.sysprof"), os.path.join(path, "x.folded")
    with Background(fixture("chain"), "60") as target:
        script = f"{SYSPROF} record -q -p {target.pid} -d 1 -o sysprof:- | cat >{file}"
        run("bash", "-o", "pipefail", "-c", script, check=0, timeout=LIMIT)
    result = convert(file, out, check=0)
    assert not result.err, result
    assert share(folded(out), lambda f: has_chain(f, "outer", "middle", "inner", "leaf")) > 0.9
    result = run("sh", "-c", f"{SYSPROF} report /dev/stdin <{file}", check=0, timeout=LIMIT)
    assert "leaf" in result.out, result
    # a pipe cannot be searched, and that is said
    result = run("sh", "-c", f"cat {file} | {SYSPROF} report /dev/stdin", timeout=LIMIT)
    assert result.status == 1 and "save it to a file first" in result.err, result


def test_special_files():
    """What exists and is no regular file is written to as it is."""
    need_root()
    path = directory("special")
    fifo = os.path.join(path, "fifo")
    os.mkfifo(fifo)
    os.symlink("target.json", os.path.join(path, "link.json"))
    with open(os.path.join(path, "copy"), "wb") as copy:
        with subprocess.Popen(["cat", fifo], stdout=copy) as cat:
            sysprof("record", "-d", "20", "-o", f"folded:{fifo}", "-o", "text:/dev/null", "-o",
                    f"{path}/link.json", "--", fixture("chain"), "0.3", check=0, timeout=LIMIT)
            assert cat.wait(timeout=LIMIT) == 0
    assert total(os.path.join(path, "copy")) > 0
    assert sorted(os.listdir(path)) == ["copy", "fifo", "link.json", "target.json"]
    assert os.path.islink(os.path.join(path, "link.json"))
    e.load_json(os.path.join(path, "target.json"))
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null")


if __name__ == "__main__":
    main(globals())
