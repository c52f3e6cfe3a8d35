#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""What an agent is made of, beside everything that comes and goes: nothing of it grows.

soak.c records the whole system in windows of two seconds and measures itself every ten, within a budget if it is given
one. Beside it programs start, processes fork, and Node.js makes a function every 40 ms. `make soak` does that for
SECONDS (600), and keeps the log of memory, descriptors and CPU time.
"""
import http.client
import os
import shutil
import signal
import socket
import subprocess
import time

import libe2e as e

SOAK = os.path.join(e.BUILD, "tests", "e2e", "soak")
BOUNDED_SECONDS = 53  # a step takes about 20: the third comes after 50
CHURN = os.path.join(os.path.dirname(__file__), "..", "fixtures", "jit", "churn.js")


def storms(gap_us):
    """Programs that start and processes that fork, without end."""
    return [("sh", "-c", 'while "$@"; do :; done', "sh", e.fixture("storm"), "-g", gap_us, how, "90000", "200", "/dev/null")
            for how in ("exec", "fork")]


def functions(seconds):
    """Node.js makes some, if it is there."""
    return [("node", "--perf-basic-prof", "--expose-gc", CHURN, seconds + 30, e.scratch("churn.log"))] if shutil.which("node") else []


def start(commands):
    started = []
    for i, command in enumerate(commands):
        with open(e.scratch(f"beside.{i}"), "wb") as said:  # a pipe would not be read
            started.append(e.Background(*command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True))
    return started


def end(running):
    ended = []
    for i, background in enumerate(running):
        status = background.p.poll()
        if status is not None:
            ended.append((background.p.args, status, e.read(e.scratch(f"beside.{i}"), errors="replace")[-1000:]))
            continue
        os.killpg(background.p.pid, signal.SIGKILL)
        background.p.wait()
    assert not ended, f"ended before the soak did: {ended}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(path, url):
    """Status and text; 0 if no server listens yet."""
    connection = UnixConnection(path)
    try:
        connection.request("GET", url)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (FileNotFoundError, ConnectionRefusedError):
        return 0, ""
    finally:
        connection.close()


def reported(out):
    return {name: float(value) for name, value in
            (line.split() for line in out.splitlines() if line.count(" ") == 1)}


def soak(seconds, log, cpu="0", memory="0", window=2000):
    """What it says, as numbers."""
    result = e.run(SOAK, seconds, window, log, cpu, memory, timeout=seconds + 120)
    with open(log, encoding="utf-8") as f:
        print("".join(f.readlines()[-80:]))
    print(result.out, result.err)
    assert result.status == 0, result
    return reported(result.out)


def check(t, seconds):
    assert t["failed"] == 0 and t["windows"] >= 2, t
    assert t["measurements"] >= seconds // 10 - 1, t
    # every tick is explained; each change of the rate may cut one on each CPU
    assert abs(t["unexplained"]) <= 2 * os.cpu_count() * (1 + t["measurements"]), t
    # a window that could not end, on a machine that is too busy, has more in it
    longer = t["put_off"]
    for what, more in (("process_memory", (24 << 20) + longer * (1 << 20)),
                       ("descriptors", 200 + 100 * longer), ("processes_known", 2000),
                       ("threads_known", 2000), ("images_known", 256 + 500 * longer),
                       ("queue", 4 << 20)):
        early, late = t[what + "_early"], t[what + "_late"]
        assert late <= 1.1 * early + more, f"{what}: at most {early} in the second quarter, {late} in the last"


def beside(commands, seconds, log, **options):
    e.need_root()
    running = start(commands)
    try:
        return soak(seconds, log, **options)
    finally:
        end(running)


@e.alone
@e.long
def test_nothing_grows():
    seconds = int(os.environ.get("SOAK_SECONDS", "24"))
    check(beside(storms(2000) + functions(seconds), seconds, os.environ.get("SOAK_LOG") or e.scratch("soak.log")), seconds)


@e.long
def test_over_the_budget():
    """
    With one that nothing fits in it sheds step by step, and the books are exact all the same. Rates that change are rotate's.
    Other tests may run beside it, so there is less of what comes and goes.
    """
    t = beside(storms(20000), BOUNDED_SECONDS, e.scratch("bounded.log"), cpu="0.0001%", window=1000)
    assert t["level"] >= 3, t
    assert abs(t["unexplained"]) <= 2 * os.cpu_count() * (1 + t["measurements"]), t
    assert t["failed"] == 0 and t["delivered"] > 0, t


def test_what_it_reports():
    """A scrape beside it: what promtool says nothing about, with the figures of the kernel's side."""
    e.need_root()
    path = e.scratch("agent.sock")
    with e.Background(SOAK, 25, 1000, e.scratch("soak.log"), "0", "0", "unix:" + path) as soaking:
        text = ""
        until = time.monotonic() + 60
        while "windows" not in text or 'ticks_total{state="sent"} 0\n' in text:
            assert time.monotonic() < until and soaking.p.poll() is None, text
            time.sleep(1)
            text = get(path, "/metrics")[1]
        judged = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                capture_output=True, check=False)
        assert judged.returncode == 0 and not judged.stderr, judged
        health = get(path, "/healthz")
        assert health == (200, "ok\n"), health
        assert get(path, "/debug/pprof/profile?seconds=x")[0] == 400
        out, err = soaking.p.communicate(timeout=120)
    t = reported(out)
    print(out, err)
    # counted for one second of ten, and not by any other way
    assert t["bpf_us"] > 0, t
    assert t["cpu_ms"] > 0, t


e.main(globals())
