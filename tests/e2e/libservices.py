# SPDX-License-Identifier: BSD-2-Clause
"""Services of running processes, window by window (agent_services.c prints them), and control groups to run them in."""
import json
import os
import signal
import time

import libe2e as e

TOOL = os.path.join(e.BUILD, "tests", "e2e", "agent_services")
SECRET = f"secret-{os.getpid()}-not-to-be-seen"  # no text of a script: recordings of a host have those

# a tenth of a CPU
SPIN = """
import time
while True:
    end = time.monotonic() + 0.01
    while time.monotonic() < end:
        pass
    time.sleep(0.09)
"""

NOW_AND_THEN = "while (1) { select(undef, undef, undef, 0.02); for (1 .. 100000) {} }"  # Perl; some ms of 20


# publishes an OpenTelemetry process context, whose message is at ADDRESS
PUBLISH = """
import ctypes, mmap, os, struct
def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data
def attribute(key, value):
    return field(1, field(1, key.encode()) + field(2, field(1, value.encode())))
message = attribute("service.name", "checkout") + attribute("service.version", "7.1")
fd = os.memfd_create("OTEL_CTX")
os.ftruncate(fd, 4096)
m = mmap.mmap(fd, 4096)
m[64:64 + len(message)] = message
address = ctypes.addressof(ctypes.c_char.from_buffer(m)) + 64
ADDRESS
m[0:32] = b"OTEL_CTX" + struct.pack("<IIQQ", 2, len(message), 1, address)
"""
CONTEXT = PUBLISH.replace("ADDRESS", "") + SPIN

# the message is in a file that is not served
HOLD_UP = PUBLISH.replace("ADDRESS", """
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
address = libc.mmap(None, 4096, 1, 2, os.open("/tmp/perf-0.map", os.O_RDONLY), 0)  # PROT_READ, MAP_PRIVATE
assert address
""") + 'open("/proc/self/comm", "w").write("mapped")\n' + SPIN


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    e.write(path, text)
    return path


def unified_hierarchy():
    for line in e.read("/proc/self/mounts").splitlines():
        words = line.split()
        if words[2] == "cgroup2":
            return words[1]
    raise e.Skip("no cgroup2 is mounted")


class Groups:
    """Control groups that are there within the with block, below those of this test."""

    def __init__(self):
        own = [line.rstrip("\n").split(":", 2)[2] for line in e.read("/proc/self/cgroup").splitlines() if line.startswith("0::")]
        self.top = unified_hierarchy() + (own[0].rstrip("/") if own else "")
        self.made, self.running = [], []

    def __enter__(self):
        return self

    def make(self, path):
        """Its directory."""
        at = os.path.join(self.top, f"sysprof-test-{os.getpid()}.slice")
        for part in ("", *path.split("/")):
            at = os.path.join(at, part) if part else at
            if at not in self.made:
                try:
                    os.mkdir(at)
                except OSError as err:
                    raise e.Skip(f"control groups cannot be made here: {err}") from err
                self.made.append(at)
        return at

    def start(self, path, *args, **environment):
        """A program in that group, until the end of the with block at most."""
        group = self.make(path)
        self.running.append(start("/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec nice -n 19 "$@"', "sh", *args, **environment))
        return self.running[-1]

    def __exit__(self, *_):
        for program in self.running:
            program.__exit__()
        for path in reversed(self.made):
            e.wait_for(lambda: remove(path), what=f"the end of {path}")


def remove(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def start(*args, **environment):
    environment.setdefault("PATH", os.environ["PATH"])
    return e.Background(*args, env=environment, stdout=-3, stderr=-3)


class Windows:
    """What the tool has printed so far."""

    def __init__(self, out):
        self.lines = [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]
        self.windows = [line for line in self.lines if "window" in line and not line["replay"]]
        self.replays = [line for line in self.lines if line.get("replay")]
        self.stats = ([line for line in self.lines if "stats" in line] or [None])[0]

    @staticmethod
    def of(window, pid):
        """The services of a process in a window, by its lives in order: labels."""
        return [window["services"][p["service"]]["labels"] for p in window["processes"] if p["pid"] == pid]

    def last(self, pid):
        """The labels that a process had when it was last seen."""
        seen = [labels for window in self.windows for labels in self.of(window, pid)]
        assert seen, f"{pid} was never sampled"
        return seen[-1]

    def is_read(self, pid):
        """Was it sampled after its facts had been read?"""
        return any(p["pid"] == pid and p["state"] == 2 for window in self.windows for p in window["processes"])

    def count(self, pid):
        """In how many windows it was sampled."""
        return sum(any(p["pid"] == pid for p in window["processes"]) for window in self.windows)

    def check(self):
        """What holds of every window."""
        for window in self.windows + self.replays:
            assert sum(s["samples"] for s in window["services"]) == window["samples"], window
            for service in window["services"]:
                labels = service["labels"]
                assert labels["service_name"] and labels["service_source"], labels
                assert all(v == v.strip() and v.isprintable() for v in labels.values()), labels


def run_tool(*args, until, meanwhile=lambda tool: None, **options):
    """
    Until what it has printed is enough: that takes long where the host has no CPU time left for it. `tool.windows`: so far. Before
    there is one it may not have begun to sample.
    """
    e.need_root()
    path = e.scratch("windows")
    with open(path, "w", encoding="utf-8") as out, e.Background(TOOL, *args, 90, 1000, stdout=out, **options) as tool:
        end, next_look, tool.windows = time.monotonic(), 0, Windows("")
        while tool.p.poll() is None and time.monotonic() < end + 80:
            meanwhile(tool)
            time.sleep(0.005)
            if time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + 0.3
            tool.windows = Windows(e.read(path))
            if until(tool.windows):
                break
        tool.signal(signal.SIGTERM)
        result = tool.finish(timeout=90, check=0)
    result.out = e.read(path)
    windows = Windows(result.out)
    windows.check()
    print(f"  {len(windows.windows)} windows; {windows.stats}")
    print("  named after ms:", [w["late_ms"] for w in windows.windows], "CPU us:", [w["name_us"] for w in windows.windows])
    return windows, result
