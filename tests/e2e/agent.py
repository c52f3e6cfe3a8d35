#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""The agent as its user runs it: windows into a directory, signals, metrics, a profile on request, its configuration.

The CPU time that the busy program prints is compared with the sum of its service's windows.
"""
import glob
import json
import os
import signal
import subprocess
import time

import libe2e as e
import libservers as servers

WINDOW = 10
BUSY = "import os, time\nend = time.time() + {0}\nwhile time.time() < end: sum(range(400000)), time.sleep(0.04)\nprint(time.process_time())"


def busy(seconds, service):
    return subprocess.Popen(["python3", "-c", BUSY.format(seconds)], stdout=subprocess.PIPE,
                            text=True, env={**os.environ, "OTEL_SERVICE_NAME": service})


def test_windows_signals_and_questions():
    e.need_root()
    with servers.Agent() as agent:
        agent.wait_until_it_answers()
        programs = [busy(14, f"shop-{i}") for i in range(2)]
        # a profile of one service, over five seconds, in the middle of a window
        profile = servers.get(agent.url + "/debug/pprof/profile?seconds=5&service=shop-1", 90)[2]
        path = e.scratch("asked.pb.gz")
        e.write(path, profile)
        top = json.loads(e.run(e.SYSPROF, "report", path, "--json", check=0).out)
        used = [float(p.communicate()[0]) for p in programs]
        time.sleep(WINDOW)
        metrics = agent.metrics()
        assert servers.get(agent.url + "/healthz")[::2] == (200, b"ok\n")
        took, waited = agent.end_watched()
    print(agent.said(), f"ended in {took:.2f} s, of which its threads waited {waited:.2f} s for a CPU")
    assert took - waited < 5, (took, waited)  # two seconds, and what its helpers take
    windows = agent.windows()
    assert len(windows) >= 3, windows
    # its part of five seconds, or what others leave of it
    assert 0.1 < top["summary"]["cpu_ns"] / 1e9 < 5, top["summary"]
    # nothing is between two windows
    for before, after in zip(windows, windows[1:]):
        assert abs(after["start_ns"] - before["end_ns"]) < 5e6, (before, after)
    sampled = servers.by_service(windows, "cpu_ns")
    for i, seconds in enumerate(used):
        found = sampled[f"shop-{i}"] / 1e9
        print(f"shop-{i}: {seconds:.3f} s by itself, {found:.3f} s in the windows")
        # the windows have the interpreter's beginning and end as well
        assert seconds - 0.02 <= found <= seconds + 0.5, (seconds, found)
    assert all(s["labels"]["service_name"] for w in windows for s in w["services"])
    reported = sum(float(line.rpartition(" ")[2]) for line in metrics.splitlines() if line.startswith("sysprof_ticks_total{"))
    # a CPU that is idle reports its ticks when it wakes
    due, unexplained = (servers.metric_of(metrics, f"sysprof_ticks_{name}") for name in ("due_total", "unexplained"))
    assert due == reported + unexplained, metrics


@e.long
def test_configuration():
    """SIGHUP: a file with a mistake or a sink that cannot start changes nothing, a good one does."""
    e.need_root()
    path = e.scratch("agent.conf")
    out = e.scratch("configured")

    def write(text):
        e.write(path, text)

    good = f"[agent]\nwindow = {WINDOW}\nlisten = none\nlabel = where = exe ~ (python)\n[sink a]\nto = dir:{out}\n"
    write(good)
    os.makedirs(out, exist_ok=True)
    with open(e.scratch("configuration.log"), "w+") as log:
        p = subprocess.Popen([e.SYSPROF, "agent", "--config", path, "-v"], stderr=log)
        program = busy(30, "shop")

        def said():
            log.seek(0)
            return log.read()

        try:
            e.wait_for(lambda: glob.glob(out + "/*.json"), what="a window")
            write(good + "[agent]\nwindw = 4\n")
            p.send_signal(signal.SIGHUP)
            e.wait_for(lambda: "line 8: unknown key 'windw'" in said(),
                       what="the mistake")
            write(good.replace("where", "place").replace(f"dir:{out}", f"dir:{out}-2") +
                  "[sink b]\nto = pyroscope:https://127.0.0.1:1\nca-file = /nonexistent.pem\n")
            p.send_signal(signal.SIGHUP)
            e.wait_for(lambda: said().count("the configuration is unchanged") == 2,
                       what="the certificates")
            count = len(glob.glob(out + "/*.json"))
            e.wait_for(lambda: len(glob.glob(out + "/*.json")) > count,
                       what="a window by the old file")
            count = len(glob.glob(out + "/*.json"))
            write(good.replace("where", "place") + "[agent]\nlabel = job = env:JOB_ID\n")
            p.send_signal(signal.SIGHUP)
            e.wait_for(lambda: "was reloaded" in said(), what="the new file")
            assert "another environment variable takes a restart" in said(), said()
            e.wait_for(lambda: len(glob.glob(out + "/*.json")) > count,
                       what="one more window")
            p.send_signal(signal.SIGTERM)
            assert p.wait(timeout=30) == 0, said()
        finally:
            p.kill()
            program.kill()
        print(said())
    names = [json.load(open(name)) for name in sorted(glob.glob(out + "/*.json"))]
    labels = [{k for s in w["services"] for k in s["labels"]} for w in names]
    assert not glob.glob(out + "-2/*")
    assert "where" in labels[0] and "place" not in labels[0], labels
    assert "place" in labels[-1] and "where" not in labels[-1], labels


@e.quick
def test_dry_run_and_check():
    e.need_root()
    result = e.run(e.SYSPROF, "agent", "--dry-run", "--window", WINDOW, "--exclude", "service=sysprof")
    print(result.out, result.err)
    assert result.status == 0, result
    # it has sampled itself
    assert "left out by --include and --exclude\n" in result.out and '"sysprof"' not in result.out, result.out
    assert 'service_name="' in result.out and "pyroscope: 1 requests" in result.out, result.out
    result = e.run(e.SYSPROF, "agent", "--check", "--sink", "pyroscope:http://127.0.0.1:1",
                   "--spool", "/nonexistent/spool", timeout=60)
    print(result.out)
    assert result.status == 1, result
    assert "does not answer" in result.out and "/nonexistent/spool" in result.out, result.out


def test_mistakes():
    for arguments, words in ((["--window", "5"], "10 to 60"), (["--bogus"], "unknown option"),
                             (["--sink", "ftp:x"], "pyroscope:URL"), (["--tenant", "x"], "sink"),
                             (["x"], "unexpected argument"), (["--window"], "requires a value")):
        result = e.run(e.SYSPROF, "agent", *arguments)
        assert result.status == 2 and words in result.err, (arguments, result)
    result = e.run(e.SYSPROF, "agent")
    assert result.status == 1 and "no sink" in result.err, result


e.main(globals())
