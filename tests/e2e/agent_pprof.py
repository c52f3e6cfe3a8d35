#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""/debug/pprof/profile as others ask for it: `go tool pprof`, and a server that scrapes like Parca's."""
import base64
import gzip
import json
import os
import re
import subprocess
import time
import urllib.request

import libe2e as e
import libservers as servers
from libgo import pprof

import standin
import wire

SPIN = "import time\nwhile True: sum(range(200000)), time.sleep(0.04)"  # a tenth of a CPU


def spin(service):
    return subprocess.Popen(["python3", "-c", SPIN], env={**os.environ, "OTEL_SERVICE_NAME": service})


def go_lookups(agent, *arguments, **requested):
    """What Go's pprof says of the profile that it has fetched."""
    query = "&".join(f"{name}={value}" for name, value in {"seconds": 2, **requested}.items())
    url = f"{agent.url}/debug/pprof/profile?{query}"
    return pprof("-sample_index=samples", "-timeout=200", *arguments, url)


def services(text):
    """{service: ticks} of `pprof -tags`."""
    found, key = {}, None
    for line in text.splitlines():
        head = re.match(r" *(\w+): Total ", line)
        row = re.match(r" *(\d+) +\(.*%\): (.*)$", line)
        key = head[1] if head else key
        if row and key == "service_name":
            found[row[2]] = int(row[1])
    return found


def go_looks_up_all(agent, programs):
    everything = services(go_lookups(agent, "-tags"))
    assert {"asked", "other"} <= set(everything), everything
    one = services(go_lookups(agent, "-tags", service="asked"))
    assert set(one) == {"asked"} and one["asked"] > 0, one
    # and one that is of no service but by its number
    text = go_lookups(agent, "-traces", pid=programs[1].pid)
    assert set(re.findall(r"service_name: +(.*)", text)) == {"other"}, text[:2000]
    text = go_lookups(agent, "-top", service="asked")
    assert "Type: samples" in text and re.search(r"Duration: \d", text), text[:500]
    assert re.search(r"_PyEval_EvalFrameDefault|long_|range", text), text[:2000]


def scrape(agent, interval):
    """As Parca does: a second more or less than the interval is no matter, three are too late unless the request is for more."""
    url = f"{agent.url}/debug/pprof/profile?seconds={interval}"
    request = urllib.request.Request(url, headers={"User-Agent": "conprof/0.24", "Accept-Encoding": "gzip"})
    begin = time.monotonic()
    with urllib.request.urlopen(request, timeout=interval + 60) as answer:
        body = answer.read()
        assert answer.status == 200 and "Content-Encoding" not in answer.headers, answer.headers
    return body, time.monotonic() - begin


def scraped_by_parca(agent):
    """It writes what it got under labels of its own; its store checks it, and has the same CPU time."""
    with standin.StandIn("parca") as store:
        totals = 0
        for _ in range(2):
            body, seconds = scrape(agent, 3)
            profile = wire.Pprof(gzip.decompress(body))
            totals += sum(values[1] for _, values, _ in profile.samples)
            print(f"  3 s asked for: {len(body)} bytes after {seconds:.1f} s, {profile.duration / 1e9:.2f} s long")
            assert seconds >= 3 and 2.9e9 < profile.duration < seconds * 1e9, (seconds, profile.duration)
            assert [tuple(map(profile.text, kind)) for kind in profile.types] == [("samples", "count"), ("cpu", "nanoseconds")]
            labels = [{"name": "__name__", "value": "process_cpu"}, {"name": "job", "value": "sysprof"},
                      {"name": "instance", "value": "127.0.0.1:4041"}]
            write = {"series": [{"labels": {"labels": labels},
                                 "samples": [{"rawProfile": base64.b64encode(body).decode()}]}], "normalized": True}
            status, _, said = servers.post(f"http://127.0.0.1:{store.port}/api/profiles/writeraw", json.dumps(write).encode())
            assert (status, said) == (200, b"{}"), (status, said, store.store.log)
        found = {kind: sum(values.values()) for kind, values in store.store.totals().items()}
        assert found["process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"] == totals, (found, totals)


def test_nobodys_mistake_is_a_profile():
    e.need_root()
    with servers.Agent("--cpu", "0", "--memory", "0") as agent:
        agent.wait_until_it_answers()
        for query, words in (("seconds=0", b"seconds"), ("seconds=99999", b"seconds"), ("pid=1&service=x", b"not both"),
                             ("pid=x", b"pid")):
            status, _, said = servers.get(f"{agent.url}/debug/pprof/profile?{query}")
            assert status == 400 and words in said, (query, status, said)
        status, _, said = servers.get(f"{agent.url}/debug/pprof/profile?seconds=1&service=nobody-has-this", timeout=120)
        assert status == 404 and b"no such process or service" in said, (status, said)
        assert agent.end() == 0, agent.said()


@e.long
def test_profiles_for_others():
    e.need_root()
    programs = [spin("asked"), spin("other")]
    try:
        with servers.Agent("--cpu", "0", "--memory", "0") as agent:
            agent.wait_until_it_answers()
            go_looks_up_all(agent, programs)
            scraped_by_parca(agent)
            # the windows of the sinks are whole, whatever was requested
            agent.wait_for_windows(len(agent.windows()) + 1)
            assert agent.end() == 0, agent.said()
            windows = agent.windows()
            for before, after in zip(windows, windows[1:]):
                assert abs(after["start_ns"] - before["end_ns"]) < 5e6, (before["end_ns"], after["start_ns"])
    finally:
        for program in programs:
            program.kill()
            program.wait()


if __name__ == "__main__":
    e.main(globals())
