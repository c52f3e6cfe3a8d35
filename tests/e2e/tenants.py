#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: alone long
"""All that tenants do to us, at the same time, and others beside them: their stacks are whole, their names are their own,
no ticks are lost, and the recording ends when it should.

The attackers are unprivileged, and root of user namespaces of their own. They give way to who wants the CPU: what they
take of it is not the point. Beside them run programs of another user and of root.
"""
import contextlib
import gzip
import os
import re
import shutil
import struct
import subprocess
import threading

from libe2e import (EVENT_SAMPLE, SYSPROF, Background, FirefoxThread, Fixture, HostDelay, as_user, fixture, fuse_device,
                    load_json, long, main, natively, need_root, new_scratch, read, recording_events, run, scratch,
                    started_sampling, stolen_ns, write)
from tenant_files import TENANT, endless_notes, linked_modules, many_frames, need_x86
from tenant_jit import IN_NAMESPACE, MOUNT, SECRET, filler, secret_file
from tenant_places import EVENT_END, EVENT_META, RECORD_FIRST, TOP, has_all_ticks, stack_ends

HANGING, VICTIM = range(TENANT + 1, TENANT + 7), TENANT + 100
SECONDS, HZ, TRIES = 15, 499, 3
CHAIN = "main", "outer", "middle", "inner", "leaf"
PLACE = f"/dev/shm/sysprof-test-{os.getpid()}"
# maps a file that is served by nobody, again and again once it is told to
MAPPER = """
import mmap, os, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
for i in range(int(sys.argv[2])):
    fd = os.open(f"/tmp/perf-{i}.map", os.O_RDONLY)
    kept = mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    time.sleep(0.4)
time.sleep(100)
"""
ESCAPES = "esc\x1b[31m;\n"


def politely(uid):
    return ["nice", "-n", "19", *as_user(uid)]


def place_of(uid):
    path = f"{PLACE}/{uid}"
    os.makedirs(path, exist_ok=True)
    os.chown(path, uid, uid)
    return path


class Attack:
    """All of them: processes that run until the end of the with block."""

    def __init__(self):
        self.stack, self.go, self.started = contextlib.ExitStack(), f"{PLACE}/go", []
        self.place = place_of(TENANT)

    def __enter__(self):
        try:
            for begin in (self.silent_mappings, self.silent_maps, self.maps_of_others, self.one_map_for_many,
                          self.forged_files, self.another_with_this_build_id, self.mappings, self.new_files,
                          self.namespaces, self.names):
                begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *why):
        self.stack.close()
        for process in self.started:
            with contextlib.suppress(OSError):
                os.unlink(f"/tmp/perf-{process.pid}.map")
        shutil.rmtree(PLACE, ignore_errors=True)

    def start(self, program, *args, uid=TENANT, wrap=()):
        process = self.stack.enter_context(Fixture(program, *args, wrap=[*politely(uid), *wrap], stderr=subprocess.DEVNULL))
        self.started.append(process)
        return process

    def begin(self):
        """From now on: those that are to come while we sample."""
        with open(self.go, "w", encoding="ascii"):
            pass

    # ---- those that do not answer

    def silent_mappings(self):
        for uid in HANGING[:3]:
            place = place_of(uid)
            self.start("silentfs", "-w", "read", fuse_device(), place, "/usr/bin/python3", "-c", MAPPER, self.go, 25,
                       uid=uid).wait_facts("ready")

    def silent_maps(self):
        """Five users, each with another one that has no answer."""
        for i, uid in enumerate(HANGING[1:]):
            place = place_of(uid) + "/maps"
            os.mkdir(place)
            os.chown(place, uid, uid)
            self.start("silentfs", "-w", ("read", "open", "lookup")[i % 3], fuse_device(), place, fixture("jitreuse"), "-f",
                       place, "-p", 100, "-n", 1, 100, uid=uid).wait_facts("start")

    # ---- maps of JIT code

    def jit(self, *wrap):
        process = self.start("jitreuse", "-f", self.place, "-p", 100, "-n", 1, "-t", "evil", 100, wrap=wrap)
        process.wait_facts("start")
        return process, f"/tmp/perf-{process.pid}.map"

    def maps_of_others(self):
        secret = secret_file("/tmp/sysprof-test-secret")
        self.mounted = self.jit(*IN_NAMESPACE, "sh", "-c", MOUNT, "sh", secret)[0]
        self.linked, name = self.jit()
        os.link(secret, name)
        name = self.jit()[1]
        os.symlink("../../../../tmp/sysprof-test-secret", name)
        os.lchown(name, TENANT, TENANT)
        name = self.jit()[1]
        os.mkfifo(name)
        os.chown(name, TENANT, TENANT)
        name = self.jit()[1]
        with open(name, "wb") as f:
            f.write(b"0 ffffffffffffffff evil\x1b[31m;everywhere\n")
            f.truncate(1 << 40)
        os.chown(name, TENANT, TENANT)
        self.stack.callback(lambda: os.path.exists(secret) and os.unlink(secret))

    def one_map_for_many(self):
        shared = filler(f"/tmp/sysprof-test-shared-{os.getpid()}", TENANT, 64)
        for _ in range(12):
            os.link(shared, self.jit()[1])
        os.unlink(shared)

    # ---- files

    def forged_files(self):
        self.start("touchmap", endless_notes(f"{self.place}/notes"), 100)
        for size in 60, 150:
            self.later(fixture("mapexec"), many_frames(f"{self.place}/frames{size}", size << 20), 4096, 0.3, 100)
        for module in linked_modules(self.place, 8):
            self.later(fixture("mapexec"), module, 4096, 0.3, 100)

    def later(self, *command):
        """Begins when sampling has begun."""
        self.start("/bin/sh", "-c", 'until [ -e "$0" ]; do sleep 0.1; done; exec "$@"', self.go, *command)

    def another_with_this_build_id(self):
        """Copies of the victims' programs with other names, which are seen first."""
        for name in "chain-no-fp", "chain":
            program = read(fixture(name), "rb")
            for word in CHAIN[1:]:
                program = program.replace(word.encode() + b"\0", word.upper().encode() + b"\0")
            forged = os.path.join(self.place, name)
            write(forged, program)
            os.chmod(forged, 0o755)
            self.start(forged, 100)

    # ---- much of all

    def mappings(self):
        for _ in range(40):
            self.start("manymaps", "-b", 1, "-s", 150, 4000, 100)
        self.start("manymaps", "-b", 1, "-s", 150, 5000, 100)
        self.start("manymaps", "-r", 1000, 60000, 100)
        self.start("manymaps", "-r", 1000, "-b", 20, "-s", 60, 4000, 100)
        for process in self.started[-43:]:
            process.wait_facts("mapped")

    def new_files(self):
        self.start("newfiles", fixture("loop"), self.place, 2000, 100)

    def namespaces(self):
        self.start("namespaces", 1024, 100).wait_facts("namespaces")

    def names(self):
        program = f"{self.place}/{ESCAPES}"
        shutil.copy(fixture("loop"), program)
        self.start(program, 100)


    # ---- where we write

    def link_outputs(self, pid):
        """The name of a profile whose siblings' names are links to root's file, made by the tenant. Returns that name."""
        self.kept, place = scratch("kept-by-root"), f"{self.place}/outputs"
        write(self.kept, "kept")
        os.makedirs(place, exist_ok=True)
        os.chown(place, TENANT, TENANT)
        link = f"{place}/out.{pid}-{pid}.cpuprofile"
        os.symlink(self.kept, link)
        os.lchown(link, TENANT, TENANT)
        return f"{place}/out.cpuprofile"

    def check_outputs(self):
        with open(self.kept, encoding="utf-8", errors="replace") as f:
            assert f.read(100) == "kept", "root's file was overwritten"


# ---- those beside them --------------------------------------------------------------------------

class Victims:
    """Programs that run for long, one of which makes code; and some of root's that start while we sample."""

    def __init__(self, seconds):
        program = scratch("victim")
        if not os.path.exists(program):
            shutil.copy(fixture("jitreuse"), program)
        self.chain = Fixture("chain-no-fp", seconds, wrap=as_user(VICTIM))
        self.jit = Fixture(program, "-p", 100, "-n", 1, "-t", "name", seconds, wrap=["nice", "-n", "5", *as_user(VICTIM)])
        self.short, self.ending = [], threading.Event()
        self.thread = threading.Thread(target=self.run_short_ones)
        self.jit.wait_facts("start")
        self.map = f"/tmp/perf-{self.jit.pid}.map"

    def run_short_ones(self):
        for i in range(100):
            if self.ending.is_set():
                return
            program = Fixture(("chain", "chain-no-fp")[i % 2], 0.3)
            self.short.append(program)
            program.finish(check=0)
            self.ending.wait(0.4)

    def end(self):
        self.ending.set()
        self.thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.ending.set()
        if self.thread.ident:
            self.thread.join()
        for process in self.chain, self.jit, *self.short:
            process.__exit__()
        if os.path.exists(self.map):
            os.unlink(self.map)


# ---- what became of it --------------------------------------------------------------------------

SHORT = "chain", "chain-no-fp"
NOT_OURS = {word.upper() for word in CHAIN} | {"evil", "evil0", SECRET}
COMPLETE = "root", "no-memory"
STARTING = 5e7  # ns in which a program's mappings become known


def names_in(program):
    """Its symbols, and what its source has: functions may be inlined."""
    rows = (line.split() for line in run("nm", program, check=0).out.splitlines())
    names = {row[2] for row in rows if len(row) == 3}
    for source in os.path.basename(program).removesuffix("-no-fp") + ".c", "fixture.h":
        names |= set(re.findall(r"\w+", read(f"{TOP}/tests/fixtures/{source}")))
    return names


def samples_of(path):
    """{pid: [(time, how the user stack ended)]}, and when sampling began and ended."""
    ends, result, began, ended = stack_ends(), {}, 0, 0
    for kind, _, when, body in recording_events(path):
        if kind == EVENT_SAMPLE:
            pid = struct.unpack_from("<I", body, 16)[0]
            result.setdefault(pid, []).append((when, ends[struct.unpack_from("<B", body, 32)[0]]))
        elif kind == EVENT_META and body.startswith(b"sampling_start\0"):
            began = when
        elif kind == EVENT_END:
            ended = when
    return result, began, ended


class Recording:
    """All of it once, and what it left."""

    def __init__(self):
        self.path, self.profile, self.host = new_scratch("all.sysprof"), new_scratch("all.json.gz"), HostDelay()
        stolen = stolen_ns()
        with Attack() as attack, Victims(SECONDS + 60) as victims:
            outputs = self.path, self.profile, attack.link_outputs(victims.chain.pid)
            command = [*RECORD_FIRST, "-a", "-d", SECONDS, "-F", HZ, *(word for o in outputs for word in ("-o", o))]
            with Background(*command) as recorder:
                started_sampling(recorder, self.path)
                attack.begin()
                victims.thread.start()
                try:
                    self.reported = self.host.finish(recorder, SECONDS + 90, check=0)
                except subprocess.TimeoutExpired:
                    attack.stack.close()  # who waits for one of them ends only now
                    raise
                victims.end()
            attack.check_outputs()
            self.victims, self.attack = victims, attack
        self.stolen = (stolen_ns() - stolen) * HZ / 1e9
        self.samples, self.began, self.ended = samples_of(self.path)
        self.delay = self.host.ns(self.began, self.ended) / 1e9
        print(f"  {(self.ended - self.began) / 1e9:.1f} s recorded, in {self.delay:.1f} s of which the host had no CPU for it")

    def check_ends(self):
        assert (self.ended - self.began) / 1e9 - self.delay <= SECONDS + 5, (self.began, self.ended, self.delay)
        peaks = [int(n) for n in re.findall(r"(\d+) MB peak memory", self.reported.err)]
        print(f"  {peaks} MB of memory")
        assert peaks and max(peaks) < 600, self.reported

    def whole(self, process, begin):
        ends = [end for when, end in self.samples.get(process.pid, []) if when > begin]
        return sum(end in COMPLETE for end in ends), len(ends), {end: ends.count(end) for end in set(ends)}

    def stacks(self):
        """(whole ones, all, what else they are) of each kind of victim."""
        started = [p for p in self.victims.short if p.facts().all("end")]
        groups = {
            "without frame pointers": [(self.victims.chain, self.began + STARTING)],
            "with code of its own": [(self.victims.jit, self.began + STARTING)],
            "that start": [(p, p.facts().number("start") + STARTING) for p in started],
        }
        for name, group in groups.items():
            rows = [self.whole(*one) for one in group]
            whole, count = sum(row[0] for row in rows), sum(row[1] for row in rows)
            others = [row[2] for row in rows if row[0] != row[1]]
            print(f"  {name}: {whole} of {count} stacks are whole {others}")
            assert count >= 100, (name, rows, self.reported)
            yield whole, count, others

    def check_names(self):
        """Each frame is of a file that the victim has, and has a name that is in it."""
        profile = load_json(self.profile)
        mine = {self.victims.chain.pid, self.victims.jit.pid, *(p.pid for p in self.victims.short)}
        known, seen = {}, {name: 0 for name in (*CHAIN, "name0")}
        for thread in (FirefoxThread(profile, t) for t in profile["threads"]):
            if thread.pid not in mine or thread.process not in (*SHORT, "victim"):
                continue
            for frames in {tuple(frames) for _, frames in thread.samples()}:
                for name, lib in frames:
                    self.check_name(name, lib, known)
                    seen[name] = seen.get(name, 0) + 1
        assert all(seen[name] for name in (*CHAIN, "name0")), seen
        print(f"  {len(seen)} names of victims, of {sorted(lib for lib in known if lib)}")

    def check_name(self, name, lib, known):
        assert name not in NOT_OURS, (name, lib)
        assert not lib or not lib.startswith(PLACE), (name, lib)
        if lib and lib.startswith(("/usr/", "/lib")) or not lib or not lib.startswith("/"):
            known.setdefault(lib, None)  # root's, which have debug files elsewhere; the kernel's, and code
            return
        if lib not in known:
            known[lib] = names_in(lib)
        assert name in known[lib] or re.fullmatch(r"(0x[0-9a-f]+|\[.*\])", name), (name, lib)

    def check_secrets(self):
        for path in self.path, self.profile:
            with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
                assert SECRET.encode() not in f.read(), path

    def check_facts(self):
        """What was left of the attackers', and why, is said."""
        extra = str([section for section in load_json(self.profile)["meta"]["extra"]])
        for fact in ("it is a mount of its own", "it does not belong to the process's user",
                     "another process has the same file", "its user's files did not answer",
                     "its file system or process did not answer", "earlier ones of this user had no answer", "a symbolic link"):
            assert fact in extra, (fact, extra)
        # that a file has too much unwind information is said if its user's other files leave time to look at it; see
        # tenant_files.py
        for fact in "their stacks were copied", "its file system or process did not answer":
            assert fact in self.reported.err, (fact, self.reported)
        assert "\x1b" not in self.reported.err, self.reported

    def check_replay(self):
        """What passed on without an answer is the same for its reader."""
        again = scratch("again.json.gz")
        run(SYSPROF, "convert", self.path, "-o", again, check=0)
        with gzip.open(self.profile) as a, gzip.open(again) as b:
            assert a.read() == b.read(), "the replay differs"


@long
@natively
def test_all_together():
    need_root()
    need_x86()
    for turn in range(TRIES):
        recording = Recording()
        # a host, or others on it, that take the CPUs away do not always say so
        if has_all_ticks(recording) and all(whole >= 0.99 * count for whole, count, _ in recording.stacks()):
            break
        assert turn + 1 < TRIES, recording.reported
    recording.check_ends()
    recording.check_names()
    recording.check_secrets()
    recording.check_facts()
    recording.check_replay()


if __name__ == "__main__":
    main(globals())
