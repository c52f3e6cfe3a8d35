# SPDX-License-Identifier: BSD-2-Clause
"""The agent and its backends as programs that run beside: what they cost, and what they say."""
import json
import os
import shlex
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

from libbench import BpfStats, Broken, Program, SYSPROF, scratch, wait_until

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAND_IN = os.path.join(TOP, "tests/e2e/backends/standin.py")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def send_request(port, path, data=None):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=60) as answer:
        return answer.read()


class StandIn(Program):
    """A backend's stand-in (tests/e2e/backends), a process of its own."""

    def __init__(self, kind):
        self.port = free_port()
        super().__init__("nice", "-n", "19", sys.executable, STAND_IN, kind, self.port)
        wait_until(self.answers, 20, f"the stand-in of {kind}")

    def answers(self):
        try:
            return self.log() == []
        except (urllib.error.URLError, ConnectionError):
            return False

    def log(self):
        return json.loads(send_request(self.port, "/standin/log"))

    def labels(self):
        return json.loads(send_request(self.port, "/standin/labels"))

    def totals(self):
        """Of Pyroscope 2 after it has dropped what came twice."""
        send_request(self.port, "/standin/compact", b"")
        return json.loads(send_request(self.port, "/standin/totals"))


class Costs:
    """A control group for one program: CPU time and memory of it and all that descends from it, also of what has ended."""
    serial = 0

    def __init__(self):
        Costs.serial += 1
        self.made = []
        name = f"sysprof-bench-{os.getpid()}-{Costs.serial}"
        mounts = [line.split() for line in open("/proc/self/mounts", encoding="utf-8")]
        own = {}
        for line in open("/proc/self/cgroup", encoding="utf-8"):
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                own[controller] = path.rstrip("/")
        two = next((m[1] + own.get("", "") for m in mounts if m[2] == "cgroup2"), None)
        if two and {"cpu", "memory"} <= set(self.read(two, "cgroup.subtree_control").split()):
            self.cpu = self.memory = self.make(os.path.join(two, name))
        else:
            where = {c: m[1] + own[c] for m in mounts if m[2] == "cgroup" for c in ("cpuacct", "memory")
                     if c in m[3].split(",") and c in own}
            if len(where) < 2:
                raise Broken("no control group for CPU time and memory can be made here")
            self.cpu, self.memory = (self.make(os.path.join(where[c], name)) for c in ("cpuacct", "memory"))
        self.second = self.cpu == self.memory

    def make(self, path):
        try:
            os.mkdir(path)
        except OSError as err:
            raise Broken(f"no control group: {err}") from err
        self.made.append(path)
        return path

    @staticmethod
    def read(path, name):
        try:
            with open(os.path.join(path, name), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def joining(self):
        """Words of a shell that come before the program."""
        return "".join(f"echo $$ > {path}/cgroup.procs && " for path in self.made)

    def cpu_ns(self):
        if self.second:
            return int(dict(line.split() for line in self.read(self.cpu, "cpu.stat").splitlines())["usage_usec"]) * 1000
        return int(self.read(self.cpu, "cpuacct.usage"))

    def memory_mib(self, what):
        """"now" or "peak", pages of files that it has read included."""
        name = {"now": "memory.current", "peak": "memory.peak"}[what] if self.second else \
            {"now": "memory.usage_in_bytes", "peak": "memory.max_usage_in_bytes"}[what]
        return int(self.read(self.memory, name)) / 2**20

    def own_mib(self):
        """Without pages of files: those can be dropped at any time. BPF maps and rings are in it."""
        stat = dict(line.split() for line in self.read(self.memory, "memory.stat").splitlines())
        if self.second:
            return (int(stat["anon"]) + int(stat.get("kernel", 0))) / 2**20
        return (int(stat["total_rss"]) + int(self.read(self.memory, "memory.kmem.usage_in_bytes") or 0)) / 2**20

    def close(self):
        for path in self.made:
            for _ in range(100):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.05)


class Measured(Program):
    """A program in a control group of its own."""

    def __init__(self, *command):
        self.costs = Costs()
        super().__init__("/bin/sh", "-c", self.costs.joining() + 'exec "$@"', "sh", *command)

    def programs(self):
        """Numbers of its programs in the kernel."""
        found = set()
        for fd in os.listdir(f"/proc/{self.pid}/fdinfo"):
            text = Costs.read(f"/proc/{self.pid}/fdinfo", fd)
            found |= {int(line.split()[1]) for line in text.splitlines() if line.startswith("prog_id:")}
        return sorted(found)

    def close(self):
        super().close()
        self.costs.close()


def peer(hz):
    """The profiler that OTEL_PROFILER is the command line of, with {hz} in it; None: there is none."""
    command = os.environ.get("OTEL_PROFILER")
    return command and Measured(*shlex.split(command.replace("{hz}", str(hz))))


class Agent(Measured):
    """`sysprof agent` with these sinks, without limits unless they are given."""
    serial = 0

    def __init__(self, *args, sinks=(), window=15):
        Agent.serial += 1
        self.port, spool = free_port(), scratch(f"spool-{Agent.serial}")
        os.makedirs(spool, exist_ok=True)
        if not any(str(a) == "--cpu" for a in args):
            args += ("--cpu", "0", "--memory", "0")
        to = [word for kind, server in sinks for word in ("--sink", f"{kind}:http://127.0.0.1:{server.port}")]
        super().__init__(SYSPROF, "agent", *to, "--spool", spool, "--listen", f"127.0.0.1:{self.port}",
                         "--window", window, *args)
        wait_until(self.answers, 60, "the agent's metrics")
        if self.metrics()["sysprof_safe_mode"]:
            raise Broken("the agent is in its safe mode")

    def answers(self):
        if not self.running():
            raise self.broken()
        try:
            return bool(self.metrics())
        except (urllib.error.URLError, ConnectionError):
            return False

    def metrics(self):
        """{name or name{labels}: value}"""
        lines = send_request(self.port, "/metrics").decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line and line[0] != "#"}

    def sum(self, name, *labels):
        """Over all series of a name that have these labels, as in 'state="sent"'."""
        return sum(value for key, value in self.metrics().items()
                   if key.partition("{")[0] == name and all(label in key for label in labels))

    def close(self):
        """By SIGTERM: after three ends by another signal it starts in its safe mode."""
        if self.running():
            self.p.send_signal(signal.SIGTERM)
            self.wait(20)
        super().close()

    def wait_for_windows(self, count, seconds):
        """Until so many windows were sent to all sinks."""
        wait_until(lambda: self.sent() >= count, seconds, f"{count} windows")

    def sent(self):
        metrics = self.metrics()
        sent = [value for key, value in metrics.items()
                if key.startswith("sysprof_windows_total{") and 'result="sent"' in key]
        time.sleep(0.2)
        return min(sent) if sent else 0


class CpuShare:
    """Of one CPU, in %, within the with block: of a group, and of programs in the kernel."""

    def __init__(self, measured, stats, programs=()):
        self.measured, self.stats, self.programs = measured, stats, programs

    def bpf_ns(self):
        # one by one: a name may be that of several
        return sum(ns for program in self.programs for _, ns in self.stats.of([program]).values())

    def __enter__(self):
        self.begin = time.monotonic_ns(), self.measured.costs.cpu_ns(), self.bpf_ns()
        return self

    def __exit__(self, *_):
        wall = time.monotonic_ns() - self.begin[0]
        self.processes = 100 * (self.measured.costs.cpu_ns() - self.begin[1]) / wall
        self.bpf = 100 * (self.bpf_ns() - self.begin[2]) / wall
        self.all = self.processes + self.bpf


class Watch(threading.Thread):
    """Looks at a figure five times a second; {"first", "most", "halves": the most of each half}."""

    def __init__(self, figure):
        super().__init__(daemon=True)
        self.figure, self.seen, self.over = figure, [], threading.Event()

    def run(self):
        while not self.over.wait(0.2):
            self.seen.append(self.figure())

    def __enter__(self):
        self.seen.append(self.figure())
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def halves(self):
        middle = max(1, len(self.seen) // 2)
        return max(self.seen[:middle]), max(self.seen[middle:] or self.seen)
