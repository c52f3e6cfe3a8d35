#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Perf maps and jitdumps of users who mean harm: what they have us read, how much of it, and for how long.

The attackers are unprivileged, in user namespaces of their own where that helps them. Beside them runs a victim of
another user, whose names must be right.
"""
import os
import shutil
import signal
import stat
import struct
import time

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, Fixture, GrowingRecording, HostDelay, as_user, deepest,
                    descendants, firefox_extra, firefox_threads, fixture, folded, long, main, need_root, new_scratch, place_of,
                    run, scratch, share, started_sampling, wait_for)

ATTACKER, VICTIM = 23456, 23457
EVENT_MMAP, EVENT_JIT_FILE, EVENT_JIT_BYTES, FOLLOWED = 8, 40, 41, 1
FOREVER = 600  # s, of recordings and programs that are ended before
LINKED_MAX = 16 << 20  # bytes that are read of a map with several names
SECRET = "SECRET-of-root-that-nobody-may-see"


IN_NAMESPACE = ["unshare", "-Urm"]
# what lies at the name of its perf map, then the program: exec keeps the number
MOUNT = """
: >/tmp/perf-$$.map && mount --bind "$1" /tmp/perf-$$.map || exit 3
shift && exec "$@"
"""


def remove_places():
    for uid in ATTACKER, ATTACKER + 10, ATTACKER + 11, VICTIM:
        shutil.rmtree(f"/dev/shm/sysprof-test-{os.getpid()}-{uid}", ignore_errors=True)


class Jit(Fixture):
    """A program that makes code; its own map lies elsewhere, so that the one in /tmp is ours to make."""

    def __init__(self, uid, *options, wrap=(), seconds=FOREVER):
        need_root()
        super().__init__("jitreuse", "-f", place_of(uid), "-p", 100, "-n", 1, *options, seconds,
                         wrap=[*as_user(uid), *wrap])
        self.wait_facts("start")
        self.map = f"/tmp/perf-{self.pid}.map"

    def code(self):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            return next(int(line.split("-")[0], 16) for line in f if " rwxp " in line)

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if os.path.lexists(self.map):
            os.unlink(self.map)


def jit_below(place):
    """With this file mounted over the name of its map. What once had its number may have left a map, which the next has not."""
    for _ in range(100):
        try:
            return Jit(ATTACKER, wrap=[*IN_NAMESPACE, "sh", "-c", MOUNT, "sh", place])
        except AssertionError as e:
            if "cannot create" not in str(e):
                raise
    raise AssertionError("all numbers have maps")


class Victim(Fixture):
    """One function, with a map in /tmp."""

    def __init__(self, seconds=FOREVER):
        need_root()
        program = scratch("victim")
        if not os.path.exists(program):
            shutil.copy(fixture("jitreuse"), program)
        super().__init__(program, "-p", 100, "-n", 1, "-t", "name", seconds, wrap=as_user(VICTIM))
        self.wait_facts("start")

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if os.path.exists(f"/tmp/perf-{self.pid}.map"):
            os.unlink(f"/tmp/perf-{self.pid}.map")


class JitFiles:
    """What a recording that is being written has of the files of some processes."""

    def __init__(self, path, file, pids):
        self.growing, self.bytes = GrowingRecording(path, file), 0
        self.samples, self.states = {pid: 0 for pid in pids}, {}

    def read(self):
        """Whether anything was new."""
        before = self.bytes, self.states.copy(), [count > 0 for count in self.samples.values()]
        for kind, _, _, body in self.growing.new_events():
            if kind == EVENT_JIT_BYTES:
                self.bytes += len(body)
            elif kind == EVENT_JIT_FILE:
                self.states[struct.unpack_from("<I", body)[0]] = body[17]
            elif kind == EVENT_SAMPLE:
                pid = struct.unpack_from("<I", body, 16)[0]
                self.samples[pid] = self.samples.get(pid, 0) + 1
        return before != (self.bytes, self.states, [count > 0 for count in self.samples.values()])

    def reported(self, pids):
        """How many of these processes were sampled and have a file, which may be unread."""
        return sum(self.samples[pid] > 0 and pid in self.states for pid in pids)

    def has_read_once(self, pids, victim):
        """Whether there is nothing left to read of the files of all these, of which a linked one was read."""
        done = all(self.states.get(pid, FOLLOWED) != FOLLOWED for pid in pids)
        return done and self.bytes >= LINKED_MAX and self.reported(pids) >= 3 and self.samples[victim] >= 200


def wait_for_files(path, pids, enough):
    """Until that is true of what was recorded; for as long as more of it comes, and a minute more."""
    with open(path, "rb") as file:
        files, end = JitFiles(path, file, pids), time.monotonic() + 60
        while not enough(files):
            assert time.monotonic() < end, (files.samples, files.states, files.bytes)
            time.sleep(0.1)
            if files.read():
                end = time.monotonic() + 60


def record_beside(seconds, *pids, enough=None, meanwhile=lambda: None):
    """
    Its summary, its rows and the recording; it must end in time, and so must all that has its output. It gets
    SIGINT when `enough` is true of its JitFiles; `meanwhile` is called just before.
    """
    path, binary, facts = (new_scratch(name) for name in ("x.folded", "x.sysprof", "x.json"))
    command = [SYSPROF, "record", "-p", ",".join(map(str, pids)), "-d", seconds, "-o", path, "-o", binary, "-o", facts]
    with Background(*command) as recorder:
        if enough:
            started_sampling(recorder, binary)
            wait_for_files(binary, pids, enough)
            meanwhile()
            recorder.signal(signal.SIGINT)
        # for a machine that has other things to do; what is tested here hung for ever
        result = HostDelay().finish(recorder, timeout=60 if enough else seconds + 60, check=0)
    return result, folded(path), binary


def reported_of(result, pid, default=None):
    """What the profile says of the files of a process that was sampled; the summary names ten processes only."""
    for section in firefox_extra(scratch("x.json")).values():
        for reported in section.values():
            if f"pid {pid}" in str(reported):
                return reported
    if default is not None:
        return default
    raise AssertionError(f"nothing is told of {pid}: {result}")


def assert_victim(rows, least=0.95):
    mine = [(frames, n) for frames, n in rows if frames[0] == "victim" and frames[-1].startswith(("name", "0x", "["))]
    named = share(mine, lambda frames: frames[-1].startswith("name0"))
    assert named >= least, (named, mine)


def assert_no_secret(binary):
    with open(binary, "rb") as f:
        assert SECRET.encode() not in f.read(), "root's file is in the recording"


def secret_file(path):
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"0 ffffffffffff {SECRET}\n")
    os.chmod(path, 0o600)
    return path


# ---- what is read -------------------------------------------------------------------------------

def test_what_is_not_ours_to_read():
    """
    Files that are mounted over the name, in namespaces of the attacker's own: root's, one of /proc, and the kernel's
    messages, which are gone once they are read. And a hard link to root's file: links to others' files can be allowed.
    """
    # in a pid namespace too, where a fresh procfs can be had; a number that nobody has a map of
    script = 'mount -t proc proc /proc && echo 23456 >/proc/sys/kernel/ns_last_pid; sh -c "$0" sh "$@" & wait'
    fresh = ["unshare", "-Urmpf", "--kill-child", "sh", "-c", script, MOUNT]
    secret = secret_file("/tmp/sysprof-test-secret")
    with jit_below(secret) as over, jit_below("/proc/self/status") as proc, \
            Jit(ATTACKER, wrap=[*fresh, "/proc/kmsg"]) as kmsg, Jit(ATTACKER) as link, Victim() as victim:
        os.link(secret, link.map)
        os.unlink(secret)
        reader = deepest(kmsg.pid)
        result, rows, binary = record_beside(1, over.pid, proc.pid, reader, link.pid, victim.pid)
        for pid in over.pid, proc.pid, reader:
            assert "not read: it is a mount of its own" in reported_of(result, pid), (pid, reported_of(result, pid))
        assert "not read: it does not belong to the process's user" in reported_of(result, link.pid), result
        assert_no_secret(binary)
        assert SECRET not in str(rows), rows
        assert_victim(rows)
        with open(f"/proc/{reader}/status", encoding="ascii") as status:
            number = next(line.split()[-1] for line in status if line.startswith("NSpid"))
        os.unlink(f"/tmp/perf-{number}.map")


def test_a_setuid_program():
    """Its effective user is root, but who started it may not read what root may."""
    program = scratch("setuid")
    shutil.copy(fixture("jitreuse"), program)
    os.chmod(program, stat.S_ISUID | 0o755)
    place = place_of(ATTACKER)
    with Fixture(program, "-f", place, "-p", 100, "-n", 1, 20, wrap=as_user(ATTACKER)) as f:
        f.wait_facts("start")
        with open(f"/proc/{f.pid}/status", encoding="utf-8") as status:
            assert f"Uid:\t{ATTACKER}\t0" in status.read(), "it is not setuid: nosuid?"
        name = f"/tmp/perf-{f.pid}.map"
        try:
            secret_file(name)
            result, rows, binary = record_beside(1, f.pid)
            assert "the process's user may not read it" in reported_of(result, f.pid), result
            assert_no_secret(binary)
            os.chmod(name, 0o644)  # as the program itself would make it
            result, rows, binary = record_beside(1, f.pid)
            assert "1 entry" in reported_of(result, f.pid), result
        finally:
            os.unlink(name)
    remove_places()


# ---- how much is read ---------------------------------------------------------------------------

def filler(path, uid, megabytes):
    """A map of so many MB, of lines that are all different."""
    with open(path, "wb") as f:
        for n in range(megabytes):
            f.write(b"".join(b"%x 10 f%057d\n" % (0x100000000 + (n << 20) + (i << 4), i) for i in range(13900)))
    os.chown(path, uid, uid)
    return path


def small_lines(path, uid, megabytes):
    """A map of so many MB with as many functions as that can be."""
    with open(path, "wb") as f:
        for n in range(megabytes):
            first = 0x10000000 + n * 52631
            f.write(b"".join(b"%x 1 %07x\n" % (first + i, first + i) for i in range(52631)))
    os.chown(path, uid, uid)
    return path


def peak_of(result):
    return int(result.err.split(" MB peak memory, ")[0].split()[-1])


class Crowd:
    """Many processes of the attacker's, with maps in /tmp. They take only the CPU that nobody else wants."""

    def __init__(self, count, opened="/dev/null"):
        wrap = ["chrt", "--idle", "0", "sh", "-c", 'exec 9<"$0" && exec "$@"', opened]
        self.processes = [Jit(ATTACKER, wrap=wrap) for _ in range(count)]

    def __enter__(self):
        return self.processes

    def __exit__(self, *exception):
        for process in self.processes:
            process.__exit__(*exception)


def read_once(shared, count, opened, least=0.95):
    """(bytes recorded of one map that so many processes have by hard links, peak memory in MB)"""
    with Crowd(count, opened) as crowd, Victim() as victim:
        for process in crowd:
            if os.path.exists(process.map):  # of an earlier process with its pid
                os.unlink(process.map)
            os.link(shared, process.map)
        os.utime(shared)  # newer than all of them
        os.unlink(shared)
        pids = [p.pid for p in crowd]
        result, rows, binary = record_beside(FOREVER, *pids, victim.pid,
                                             enough=lambda files: files.has_read_once(pids, victim.pid))
        reported = [line for line in (reported_of(result, pid, default="") for pid in pids) if line]
        assert len(reported) >= 3, result
        assert sum("another process has the same file" in line for line in reported) >= len(reported) - 1, reported
        assert_victim(rows, least)
    return os.path.getsize(binary), peak_of(result)


def test_one_file_many_names():
    """Eight processes, one map, which all of them have open: it is read once."""
    shared = filler("/tmp/sysprof-test-shared", ATTACKER, 24)
    recorded, _ = read_once(shared, 8, shared)
    assert recorded < 48 << 20, recorded


@long
def test_a_large_file_of_many_names():
    """
    Twelve processes with one map of 132 MB, by hard links: it is read once, and neither memory nor the recording has all of
    it.
    """
    recorded, memory = read_once(small_lines("/tmp/sysprof-test-shared", ATTACKER, 132), 12, "/dev/null", 0.99)
    print(f"  {recorded / 1e6:.1f} MB recorded, {memory} MB peak memory")
    assert LINKED_MAX <= recorded <= 64e6 and memory <= 200, (recorded, memory)


@long
def test_many_files():
    """Seven processes with maps of 50 MB each: as much as one user gets, and the others have theirs."""
    with Crowd(7) as crowd, Victim() as victim:
        first = filler(crowd[0].map, ATTACKER, 50)
        for other in crowd[1:]:
            shutil.copy(first, other.map)
            os.chown(other.map, ATTACKER, ATTACKER)
        pids = [p.pid for p in crowd]
        result, rows, binary = record_beside(FOREVER, *pids, victim.pid, enough=lambda files: files.reported(pids) == 7 and
                                             files.bytes > 257 << 20)
        reported = [reported_of(result, p.pid) for p in crowd]
        assert sum("its user's files reached their limit" in line for line in reported) >= 1, reported
        # 256 MB, what the last readings go beyond, and what it grows by in some seconds
        assert os.path.getsize(binary) < 320 << 20, os.path.getsize(binary)
        assert peak_of(result) < 800, result
        print(f"  {os.path.getsize(binary) >> 20} MB recorded, {peak_of(result)} MB peak memory")
        assert_victim(rows)


class MappedAgain(GrowingRecording):
    """Counts the records of mappings of one process."""

    def __init__(self, path, file, pid):
        super().__init__(path, file)
        self.pid, self.count = pid, 0

    def has(self, count):
        self.count += sum(kind == EVENT_MMAP and struct.unpack_from("<I", body)[0] == self.pid
                          for kind, _, _, body in self.new_events())
        return self.count >= count


@long
def test_a_dump_that_is_mapped_again_and_again():
    """Each of 25,000 mappings has a path of 3.5 KB: what is kept of them is the one request for it."""
    need_root()
    place = os.path.join(place_of(ATTACKER), *["d" * 250] * 14)
    os.makedirs(place)
    dump = os.path.join(place, "jit-1.dump")
    with open(dump, "wb") as file:
        file.write(bytes(4096))
    recording, rows = new_scratch("again.sysprof"), new_scratch("again.folded")
    with Fixture("churn", "maps", 1 << 31, dump, wrap=as_user(ATTACKER)) as attacker, Victim() as victim:
        attacker.wait_facts("begin")
        with Background(SYSPROF, "record", "-p", f"{attacker.pid},{victim.pid}", "-o", recording, "-o", rows) as recorder:
            started_sampling(recorder, recording)
            with open(recording, "rb") as file:
                mapped = MappedAgain(recording, file, attacker.pid)
                wait_for(lambda: mapped.has(25000), 120, "25,000 mappings")
            recorder.signal(signal.SIGINT)
            result = HostDelay().finish(recorder, timeout=60, check=0)
        print(f"  {mapped.count} mappings, {peak_of(result)} MB peak memory")
        assert peak_of(result) < 130, result
        assert_victim(folded(rows))


# ---- for how long -------------------------------------------------------------------------------

class Silent(Fixture):
    """A program whose /tmp never answers."""

    def __init__(self, *options, uid=ATTACKER):
        need_root()
        device = scratch("fuse")
        if not os.path.exists(device):
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(10, 229))
            os.chmod(device, 0o666)
        place = place_of(uid)
        self.uid = uid
        super().__init__("silentfs", *options, device, place, fixture("jitreuse"), "-f", place, "-p", 100, "-n", 1, FOREVER,
                         wrap=as_user(uid))
        self.wait_facts("start")

    def __exit__(self, *exception):
        # without its server a file system answers with errors, and whoever hangs there goes on
        super().__exit__(*exception)


def processes_of_ours(name):
    return [int(pid) for pid in run("pgrep", "-P", 1, "-x", name).out.split()]


def test_silent_files():
    """
    Three users, each with another request that has no answer: the recording ends in time, they are named, and the
    victim has its names.
    """
    with Silent("-w", "read") as reading, Silent("-w", "open", uid=ATTACKER + 10) as opening, \
            Silent("-w", "lookup", uid=ATTACKER + 11) as looking, Victim() as victim:
        silent = reading, opening, looking
        begin = time.monotonic()
        result, rows, _ = record_beside(5, *[f.pid for f in silent], victim.pid)
        print(f"  {time.monotonic() - begin:.1f} s for 5 s")
        for f in silent:
            print(f"  {reported_of(result, f.pid)}")
            assert f.facts().all("silent"), f.facts().rows
            assert "did not answer" in reported_of(result, f.pid), result
            assert any(f"left out: user {f.uid}: " in line and "perf maps" in line and "no answer" in line
                       for line in result.err.splitlines()), (f.uid, result)
        assert_victim(rows)
    wait_for(lambda: not processes_of_ours("sysprof-jit"), what="the end of the watchers that were left")


def test_silence_at_the_end():
    """It answers until the recording is nearly over: its file has been found, and only the last look has no answer."""
    silent = place_of(ATTACKER) + "/silent"
    with Silent("-w", "read", "-c", silent) as f, Victim() as victim:
        result, rows, _ = record_beside(
            FOREVER, f.pid, victim.pid, enough=lambda files: files.reported([f.pid]) and files.samples[victim.pid] >= 200,
            meanwhile=lambda: os.mknod(silent))
        print(f"  {reported_of(result, f.pid)}")
        assert f.facts().all("silent"), "nothing was read at the end"
        assert_victim(rows)


@long
def test_the_others_of_that_user_are_left_and_nobody_else():
    """A program of the attacker's with a good map keeps what was read of it, which may be nothing; the victim has all."""
    with Jit(ATTACKER) as before, Victim() as victim:
        with open(before.map, "w", encoding="utf-8") as out:
            out.write(f"{before.code():x} 1000 before\n")
        os.chown(before.map, ATTACKER, ATTACKER)
        with Silent() as f:
            result, rows, _ = record_beside(3, before.pid, f.pid, victim.pid)
            reported = reported_of(result, before.pid)
            print(f"  {reported}")
            assert "did not answer" in reported, reported
            assert_victim(rows)


@long
def test_excluded():
    """The process that reads the files is sysprof itself for who does not want to see it; other recordings are not."""
    with Fixture("jitreuse", "-p", 1, "-t", "name", 30) as f:
        f.wait_facts("start")
        path = scratch("excluded.json")
        with Background(SYSPROF, "record", "-a", "--exclude-self", "-F", 2999, "-d", 1, "-o", path) as recorder:
            own = {recorder.pid}
            while recorder.p.poll() is None:
                own |= set(descendants(recorder.pid))
                time.sleep(0.01)
            recorder.finish(check=0)
        assert len(own) > 2, own
        pids = {t.pid for t in firefox_threads(path)}
        assert f.pid in pids and not own & pids, (own, pids)
        os.unlink(f"/tmp/perf-{f.pid}.map")


def test_signals_end_it():
    """Ctrl-C while the watcher hangs. So does the program soon, whose file is there: it may have no samples."""
    with Silent() as f:
        path = scratch("signal.folded")
        with Background(SYSPROF, "record", "-p", f.pid, "-o", path) as recorder:
            f.wait_facts("silent")
            time.sleep(0.5)
            recorder.signal(signal.SIGINT)
            result = recorder.finish(timeout=60, check=0)
        assert "did not answer" in result.err and os.path.exists(path), result


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        remove_places()
