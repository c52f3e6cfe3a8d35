# SPDX-License-Identifier: BSD-2-Clause
"""A host that is full: 10,000 processes in 2,000 control groups with names and environments of every kind, and 1,000
programs a second that are gone at once."""
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import time

import services
from libbench import Broken, CPUS, Program, read, scratch

PROGRAMS = 50
LOAD = 0.05  # of all CPUs: each runs now and then
BURST_US = 1000
HEX = "0123456789abcdef"
PR_SET_PDEATHSIG = 1

# Names that are no text, look like others or are as long as can be. Nothing but / and a line's end is forbidden.
HOSTILE_NAMES = [
    b"\xff\xfe\x80%d.service", b"\x1b[31m\r\t\x7f%d.service", b" %d.service", b".%d.service", b"@%d.service", b"a" * 240 + b"%d",
    b"docker-" + b"f" * 60 + b"%04d.scope", b"cri-containerd-" + b"0" * 59 + b"%04dg.scope", b"pod" + b"-" * 36 + b"%d",
    b"lxc.payload. %d", b"machine-\\x00\\x0a%d.scope", b"%%s%%n%%x%d.service", b"{\"a\":\"b\",%d}.service", b"x=y,z~w%d.service",
    b"_other%d.service", b"..\xc3%d", b"\xe2\x80\xae%d.service", b"user@%d.service", b"app-\\x2d\\x2d-%d.scope",
    b"kubepods-pod" + b"_" * 32 + b"%d.slice",
]
ENVIRONMENTS = [
    {b"DD_SERVICE": b"\n\n", b"OTEL_SERVICE_NAME": b"a\nb: c\r\n# TYPE"},
    {b"DD_SERVICE": b"\xff\xfe\xc3(", b"OTEL_RESOURCE_ATTRIBUTES": b"service.name=%ff%00%0a"},
    {b"FILLER%d" % i: b"x" * 100_000 for i in range(10)} | {b"DD_SERVICE": b"y" * 100_000},  # a megabyte
    {b"OTEL_RESOURCE_ATTRIBUTES": b"service.name" + b"=,%" * 20_000},
    {b"OTEL_RESOURCE_ATTRIBUTES": b"service.name=a%0Ab,service.version=%E2%80%AE1\r\n" + b"v" * 5000},
    {b"DD_SERVICE": b"_other", b"DD_VERSION": b"\x00"[:0] + b"\x1b[2J" * 100},
]


def identifier(some, length=64):
    return "".join(some.choices(HEX, k=length))


def path_of(i, some):
    """Of a group, from the top: as systemd's, kubelet's, docker's, a desktop's, and unexpected ones."""
    kind = i % 10
    if kind < 5:
        return [f"system.slice/shop-{i}.service"]
    if kind == 5:
        return [f"system.slice/system-worker.slice/worker@{i}.service"]
    if kind == 6:
        pod = identifier(some, 32)
        return [f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod[:8]}_{pod[8:12]}_{pod[12:16]}_"
                f"{pod[16:20]}_{pod[20:]}.slice/cri-containerd-{identifier(some)}.scope"]
    if kind == 7:
        return [f"docker/{identifier(some)}"]
    if kind == 8:
        return [f"user.slice/user-1000.slice/user@1000.service/app.slice/app-{i}.scope"]
    return None


def hostile_path(i, some):
    """Every third is bytes at random."""
    if i % 3 == 0:
        name = bytes(b for b in some.randbytes(some.randrange(20, 250)) if b not in b"/\n\0")
        return b"system.slice/x" + name
    return b"odd/" + HOSTILE_NAMES[i % len(HOSTILE_NAMES)] % i


class Group:
    """Control groups below one of this benchmark; all are gone after close(), whatever runs in them."""

    def __init__(self, name):
        top = services.unified_hierarchy()
        if not top:
            raise Broken("no control groups can be made here")
        self.top = os.fsencode(os.path.join(top, name))
        self.made = []
        self.known = set()
        self.make(b"")

    def make(self, path):
        """Its directory, with those above it."""
        at = self.top
        for part in [b"", *path.split(b"/")] if path else [b""]:
            at = os.path.join(at, part) if part else at
            if at not in self.known:
                os.mkdir(at)
                self.known.add(at)
                self.made.append(at)
        return at

    def kill(self):
        """Whatever is in them."""
        for at in reversed(self.made):
            try:
                pids = read(os.path.join(at, b"cgroup.procs")).split()
            except OSError:
                continue
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass

    def close(self):
        for _ in range(100):
            self.kill()
            left = [at for at in reversed(self.made) if not gone(at)]
            self.made = left[::-1]
            if not left:
                return
            time.sleep(0.1)
        raise Broken(f"{len(self.made)} control groups could not be removed: {self.made[:3]}")


def gone(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


class Crowd:
    """So many control groups with so many processes together; `ready` are there in the end."""

    def __init__(self, groups, processes, load=LOAD):
        self.group = Group(f"sysprof-bench-{os.getpid()}-crowd.slice")
        self.running = []
        some = random.Random(14)
        names = [services.build(i) for i in range(PROGRAMS)]
        each = max(1, processes // groups - 1)  # and one that started them
        pause_ms = int(groups * each * BURST_US / 1000 / (load * len(CPUS)))
        try:
            out, says = os.pipe()
            for i in range(groups):
                path = path_of(i, some)
                hostile = path is None
                at = self.group.make(hostile_path(i, some) if hostile else os.fsencode(path[0]))
                environment = ENVIRONMENTS[i // 10 % len(ENVIRONMENTS)] if hostile else {}
                self.running.append(start(at, environment, says, names[i % PROGRAMS], each, pause_ms, BURST_US))
            os.close(says)
            with os.fdopen(out, encoding="ascii") as reported:
                self.ready = groups + sum(int(reported.readline() or 0) for _ in range(groups))
            self.groups = len(self.group.made)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def close(self):
        self.group.kill()
        for pid in self.running:
            os.waitpid(pid, 0)
        self.running = []
        self.group.close()

    def __exit__(self, *_):
        self.close()


libc = ctypes.CDLL(None, use_errno=True)


def start(group, environment, out, *command):
    """A program in that group, which ends with this one; its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        with open(os.path.join(group, b"cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
        os.dup2(out, 1)
        os.nice(19)
        os.execve(command[0], [str(word) for word in command], environment | {b"PATH": b"/usr/bin:/bin"})
    finally:
        os._exit(1)


class Execs:
    """So many a second, as far as the host goes, by two for each CPU; in control groups of their own if there is one to
    make them in."""

    def __init__(self, rate, group=None):
        program = scratch("execs")
        if not os.path.exists(program):
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/execs.c")
            subprocess.run([shutil.which("cc") or "gcc", "-O2", "-o", program, source], check=True)
        self.logs = [scratch(f"execs-{i}.log") for i in range(2 * len(CPUS))]
        self.running = []
        for i, log in enumerate(self.logs):
            with open(log, "w", encoding="ascii"):
                pass
            join = f"echo $$ > {os.fsdecode(group.make(b'system.slice/cron-%d.service' % i))}/cgroup.procs && " if group else ""
            self.running.append(Program("/bin/sh", "-c", f'{join}exec nice -n 5 "$@" > {log}', "sh", program, 2**40, "/bin/true", -(-rate // len(self.logs))))

    def count(self):
        """So far."""
        return sum(int((re.findall(r"\d+", read(log)) or ["0"])[-1]) for log in self.logs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.running:
            program.close()
