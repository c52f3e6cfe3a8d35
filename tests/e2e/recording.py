#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized
"""The recording file: killed, damaged, cut, converted elsewhere, replaced, given away."""
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import zlib

import libe2e as e
from libe2e import (SYSPROF, Background, fixture, folded, has_chain, main, natively, need_root, read, run, scratch,
                    share, sysprof, wait_for, write)

LIMIT = 180
PERIOD = 1e9 / 999
FORMATS = ("json", "json.gz", "cpuprofile", "trace.json", "trace.json.gz", "pb.gz", "html", "folded", "txt")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
made = {}


def directory(name):
    path = scratch(name)
    os.makedirs(path)
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


@natively
def test_kill_9():
    """Killed in the middle, it holds every sample that is older than a second, and their names."""
    need_root()
    path = directory("killed")
    file, json, text = (os.path.join(path, n) for n in ("x.sysprof", "x.json.gz", "x.folded"))
    with Background(fixture("chain"), "60") as target:
        with Background(SYSPROF, "record", "-p", target.pid, "-o", file, "-o",
                        os.path.join(path, "live.json.gz")) as recorder:
            e.started_sampling(recorder, file)
            cpu, begin = cpu_ns(target.pid), time.monotonic_ns()
            time.sleep(3)
            cpu, end = cpu_ns(target.pid) - cpu, time.monotonic_ns()
            time.sleep(2)
            recorder.signal(signal.SIGKILL)
            recorder.finish(timeout=LIMIT)
        assert os.listdir(path) == ["x.sysprof"], os.listdir(path)
        ran = cpu_ns(target.pid)
        wait_for(lambda: cpu_ns(target.pid) > ran, what="the target to run on")
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
    data = read(path, "rb")
    try:
        chunks(data)
    except AssertionError:
        whole = data.rindex(b"CEND") + 4
        path = write(path + ".whole", data[:whole])
    return e.lost_ticks(path)


@natively
def test_kill_9_on_another_machine():
    """Without the files there are no names from them, which is said; the samples are there."""
    need_root()
    path = directory("killed-elsewhere")
    programs = directory("killed-programs")
    shutil.copy(fixture("chain"), programs)
    file = os.path.join(path, "x.sysprof")
    with Background(os.path.join(programs, "chain"), "60") as target:
        with Background(SYSPROF, "record", "-p", target.pid, "-o", file) as recorder:
            e.started_sampling(recorder, file)
            e.use_cpu(target.pid, 0.5)
            time.sleep(2)  # what is older than a second is in the file
            recorder.signal(signal.SIGKILL)
            recorder.finish(timeout=LIMIT)
    here = convert(file, os.path.join(path, "here.folded"), check=0)
    there = run(*elsewhere(programs), SYSPROF, "convert", file, "-o",
                os.path.join(path, "there.folded"), check=0, timeout=LIMIT)
    pattern = r"no symbols\D*([\d.]+) %"
    share_here, share_there = (float(re.search(pattern, r.err)[1]) for r in (here, there))
    assert share_there < share_here, (here, there)
    # what the files were taken for the recording's by
    pattern = r"(\d+) by the build-id, (\d+) by the inode number alone; (\d+) not found"
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
        for i in range(3 if e.SANITIZED else 6):
            time.sleep(0.15)
            result = convert(file, os.path.join(path, f"{i}.json"), check=0)
            assert "no end" in result.err, result
            # files of other programs on this machine may be
            assert "damaged" not in result.err.replace("debug information is damaged", ""), result
        recorder.signal(signal.SIGINT)
        recorder.finish(timeout=LIMIT, check=0)
    assert "no end" not in convert(file, os.path.join(path, "end.json"), check=0).err


# ---- damaged ------------------------------------------------------------------------------------

def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:]


def header(data, **fields):
    """The file with another header, whose checksum is right."""
    layout = {"magic": (0, "8s"), "byte_order": (8, "I"), "version": (12, "I"), "size": (16, "I")}
    head = bytearray(data[:60])
    for name, value in fields.items():
        struct.pack_into("<" + layout[name][1], head, layout[name][0], value)
    return bytes(head) + struct.pack("<I", zlib.crc32(head)) + data[64:]


def test_damaged_files():
    """What is said of a damaged file, and that there is no output without a chunk. What damage costs: tests/unit/test_recording_file.c."""
    data, path = read(recorded(), "rb"), directory("damaged")
    found = chunks(data)
    middle, payload = found[len(found) // 2]
    assert header(data) == data, "the checksum is not what FORMATS.md says"
    for status, part, content in (
            (0, f"1 of {len(found)} chunks damaged", flipped(data, middle + 48 + payload // 2)),
            (0, "the last chunk is truncated", data[:-1]),
            (0, "no symbols", data[:found[-1][0]]),
            (0, "no end", data[:middle]),
            (0, "damaged file header", flipped(data, 30)),
            (1, "newer sysprof: version 3", header(data, version=3)),
            (1, "newer sysprof: version 4294967295", header(data, version=0xffffffff)),
            (1, "byte order", header(data, byte_order=0x04030201)),
            (1, "neither a recording nor", header(data, magic=b"SYSPROG\n")),
            (1, "the file is empty", b""),
            (1, "neither a recording nor", b"SYSPROF"),
            (1, "neither a recording nor", b"\0" * 100000),
            (1, "within its header", data[:20]),
            (1, "no readable chunk", data[:64]),
            (1, "no readable chunk", data[:found[1][0] - 1]),
            (1, "no readable chunk", header(data, size=0xfffffff8))):
        file, out = write(os.path.join(path, "x.sysprof"), content), os.path.join(path, "x.folded")
        for command in (["report", file], ["convert", file, "-o", out]):
            result = sysprof(*command, timeout=LIMIT)
            assert result.status == status and part in result.err, (part, command, result)
        assert sorted(os.listdir(path)) == ["x.folded", "x.sysprof"][status:], (part, os.listdir(path))
        if not status:
            assert total(out) <= total(os.path.join(made["path"], "x.folded")), part
            os.unlink(out)


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
        a, b = read(os.path.join(live, name), "rb"), read(os.path.join(converted, name), "rb")
        assert a == b, f"{name} differs from the live one: {len(a)} bytes, {len(b)} now"


def outputs(path):
    return [w for f in FORMATS for w in ("-o", f"{path}/x.{f}")]


@e.quick
def test_same_bytes():
    good = recorded()
    out = directory("same")
    result = sysprof("convert", good, *outputs(out), check=0, timeout=LIMIT)
    # what was left out of the others on this system is in both
    prefix = re.compile(rf"(sysprof: )?({re.escape(good)}: )?(left out: )?")
    missing = [prefix.sub("", line, count=1) for line in result.err.splitlines()]
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
    """--lines gives what the live export gives. --thread is a filter of convert's, of all formats: one thread's stacks are the same."""
    need_root()
    path, out = directory("options"), directory("options-converted")
    with Background(fixture("chain"), "-t", "2", "60") as target:
        tids = [target.p.stdout.readline().split() for _ in range(4)]
        tid = [t[1] for t in tids if t[0] == "tid"][0]
        options = ("--lines", "--thread", tid)
        sysprof("record", "-p", target.pid, "-d", "0.7", *options, "-o", f"{path}/x.sysprof",
                *outputs(path), check=0, timeout=LIMIT)
    sysprof("convert", f"{path}/x.sysprof", "--lines", *outputs(out), check=0, timeout=LIMIT)
    assert {f"x.{f}" for f in FORMATS} <= set(os.listdir(out)), os.listdir(out)
    for name in (f"x.{f}" for f in FORMATS if f != "cpuprofile"):
        assert read(os.path.join(path, name), "rb") == read(os.path.join(out, name), "rb"), name
    sysprof("convert", f"{path}/x.sysprof", *options, "-o", f"{out}/x.cpuprofile", check=0, timeout=LIMIT)
    live, converted = (e.load_json(f"{folder}/x.cpuprofile") for folder in (path, out))
    assert live["$sysprof"]["tid"] == converted["$sysprof"]["tid"] == int(tid)
    for key in "nodes", "samples", "timeDeltas":
        assert live[key] == converted[key], key


def test_report_is_the_text_output():
    good = recorded()
    result = sysprof("report", good, check=0, timeout=LIMIT)
    assert result.out.encode() == read(os.path.join(made["path"], "x.txt"), "rb")
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
        assert read(file, "rb") == b"old", result
        assert os.listdir(path) == ["x.sysprof"], os.listdir(path)
    result = run(*NOBODY, SYSPROF, "record", "-a", "-o", file, timeout=LIMIT)
    assert result.status not in (0, -11) and read(file, "rb") == b"old", result
    # a disk that has no room for even one chunk
    os.mkdir(small)
    script = (f"mount -t tmpfs -o size=64k none {small}; echo old >{small}/x.sysprof; "
              f"{SYSPROF} record -a -d 0.5 -o {small}/x.sysprof; echo status $?; ls -A {small}; "
              f"cat {small}/x.sysprof")
    result = run("unshare", "-m", "sh", "-c", script, check=0, timeout=LIMIT)
    assert result.out == "status 1\nx.sysprof\nold\n", result
    sysprof("record", "-a", "-d", "0.5", "-o", file, check=0, timeout=LIMIT)
    sysprof("report", file, check=0, timeout=LIMIT)


@natively
def test_owners_and_modes():
    need_root()
    for umask, environment, owner in ((0o000, {}, (0, 0)), (0o777, {}, (0, 0)),
                                      (0o022, {"SUDO_UID": "1234", "SUDO_GID": "4321"},
                                       (1234, 4321))):
        path = directory(f"modes-{umask}")
        before = os.umask(umask)
        try:
            sysprof("record", "-d", "20", "-o", f"{path}/x.sysprof", *outputs(path), "--",
                    fixture("chain"), "-t", "2", "0.3", check=0, timeout=LIMIT,
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
