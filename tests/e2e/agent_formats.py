#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""The requests to backends, byte for byte: stand-ins for them store it and answer with the totals of `report`.

And Go's pprof reads the profiles inside. The stand-ins (backends/) refuse and lose what the real ones do.
"""
import base64
import glob
import gzip
import http.client
import json
import os
import re
import time

from libe2e import BUILD, GOLDEN, fixture, main, need_root, read, record, run, scratch, sysprof, write
from libgo import pprof

import standin
import wire

TOOL = os.path.join(BUILD, "tests/e2e/agent_formats")
RECORDINGS = sorted(path for path in glob.glob(os.path.join(GOLDEN, "*.sysprof"))
                    if "hardware-events" not in path)  # the agent's samples are of a clock
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
ALL = "nobody=x"  # a map that has one service, _rest, for all


class Request:
    def __init__(self, line):
        facts = json.loads(line)
        self.path, self.type, self.encoding = facts["path"], facts["type"], facts["encoding"]
        self.samples, self.cpu, self.series = facts["samples"], facts["cpu_ns"], facts["series"]
        self.body = read(facts["file"], "rb")

    @property
    def plain(self):
        return gzip.decompress(self.body) if self.encoding == "gzip" else self.body

    def profiles(self):
        """The pprof messages inside."""
        if self.type == "application/proto":
            return [series.messages(2)[0].bytes(1) for series in wire.Message(self.plain).messages(1)]
        return [gzip.decompress(base64.b64decode(x["samples"][0]["rawProfile"])) for x in json.loads(self.body)["series"]]


def encode(form, name, recording, *services, **environment):
    """The requests of a recording, as if it were of now."""
    environment.setdefault("START", str(time.time_ns() - 15 * 10**9))
    out = run(TOOL, form, scratch(name), recording, *services, check=0, env=dict(os.environ, **environment)).out
    return [Request(line) for line in out.splitlines()]


def send(server, request, **headers):
    """(status, Content-Type, body)"""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers.setdefault("Content-Type", request.type)
    if request.encoding:
        headers["Content-Encoding"] = request.encoding
    try:
        connection.request("POST", request.path, request.body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()
    finally:
        connection.close()


def send_request(server, method, **requested):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/querier.v1.QuerierService/" + method, json.dumps(requested), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def self_times(flame):
    """{function: own value} of a flame graph, and its total"""
    own = {}
    for level in flame["levels"]:
        values = level["values"]
        for i in range(0, len(values), 4):
            name = flame["names"][int(values[i + 3])]
            own[name] = own.get(name, 0) + int(values[i + 2])
    return {name: value for name, value in own.items() if value}, int(flame["total"])


def report(recording, by="function"):
    return json.loads(sysprof("report", recording, "--json", "--top", 1000000, "--by", by, check=0).out)


def wanted_by_process(recording, name):
    """{process: (ticks, ns)}, as the exporter has it, which was compared with others."""
    path = scratch(name + ".pb.gz")
    sysprof("convert", recording, "-o", path, check=0)
    with gzip.open(path) as f:
        p = wire.Pprof(f.read())
    found = {}
    for _, (ticks, cpu, *_), labels in p.samples:  # and waiting time, where there is any
        process = "".join(p.text(text) for key, text, _ in labels if p.text(key) == "process") or "unknown"
        had = found.get(process, (0, 0))
        found[process] = had[0] + ticks, had[1] + cpu
    return found


def reported_name(name):
    """A frame without a name has that of its file in a report."""
    return re.sub(r"^(.+)\+0x[0-9a-f]+$", r"[\1]", name)


def by_reported_name(values):
    found = {}
    for name, value in values.items():
        found[reported_name(name)] = found.get(reported_name(name), 0) + value
    return found


def check_functions(server, recording):
    """The flame graph's own values are the report's, function by function."""
    wanted = {}
    for row in report(recording)["rows"]:
        if row["self"]:
            wanted[row["function"]] = wanted.get(row["function"], 0) + row["self"]
    flame = send_request(server, "SelectMergeStacktraces", profileTypeID=SAMPLES, labelSelector='{service_name="_rest"}')["flamegraph"]
    own, total = self_times(flame)
    assert by_reported_name(own) == wanted, (own, wanted)
    assert total == sum(wanted.values())


def test_pyroscope():
    """All golden recordings: accepted, and a query by service has the report's ticks and nanoseconds."""
    assert len(RECORDINGS) >= 9
    for recording in RECORDINGS:
        wanted = wanted_by_process(recording, "wanted")
        with standin.StandIn("pyroscope") as server:
            requests = encode("pyroscope", "push", recording)
            for request in requests:
                assert send(server, request)[0] == 200, server.store.log
            totals = server.store.totals()
            assert sum(r.samples for r in requests) == sum(ticks for ticks, _ in wanted.values())
            assert sum(r.cpu for r in requests) == sum(cpu for _, cpu in wanted.values())
            for i, kind in enumerate((SAMPLES, CPU)):
                found = {name: value for name, value in totals.get(kind, {}).items() if value}
                assert found == {name: values[i] for name, values in wanted.items() if values[i]}, (recording, found, wanted)
            names = send_request(server, "LabelValues", name="service_name")["names"]
            assert names == sorted(name for name, values in wanted.items() if any(values)), names


def test_functions():
    """By function as in the report, with all processes as one service."""
    for recording in RECORDINGS:
        with standin.StandIn("pyroscope1") as server:
            for request in encode("pyroscope", "functions", recording, ALL):
                assert send(server, request)[0] == 200, server.store.log
            if report(recording)["summary"]["samples"]:
                check_functions(server, recording)


def test_a_recording_of_now():
    """The same of what this machine runs, the kernel and files without symbols included; and Go's pprof agrees."""
    need_root()
    recording = scratch("now.sysprof")
    record("-o", recording, "-F", 499, "--", fixture("chain"), "-t", 3, 1)
    with standin.StandIn("pyroscope") as server:
        (request,) = encode("pyroscope", "now", recording, ALL)
        assert send(server, request)[0] == 200, server.store.log
        check_functions(server, recording)
        summary = report(recording)["summary"]
        assert request.samples == summary["samples"] and request.cpu == summary["cpu_ns"], (request.cpu, summary)
        assert server.store.totals() == {SAMPLES: {"_rest": request.samples}, CPU: {"_rest": request.cpu}}
    (profile,) = request.profiles()
    path = scratch("now.pb")
    write(path, profile)
    rows = {}
    text = pprof("-top", "-sample_index=samples", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", "-trim=false", path)
    assert f"Total samples = {request.samples}" in text, text
    for line in text.split("cum%\n")[1].splitlines():
        words = line.split(None, 5)
        rows[words[5].removesuffix(" (inline)").removesuffix(" (partial-inline)")] = int(words[0])
    wanted = {}
    for row in report(recording)["rows"]:
        wanted[row["function"]] = wanted.get(row["function"], 0) + row["self"]
    assert {n: v for n, v in by_reported_name(rows).items() if v} == {n: v for n, v in wanted.items() if v}, (rows, wanted)
    raw = pprof("-raw", path)
    assert re.search(r"^PeriodType: cpu nanoseconds\n", raw) and "Duration: " in raw, raw
    assert re.search(r"^\d+: 0x\w+/0x\w+/0x\w+ .*/chain [0-9a-f]{40} \[FN\]", raw, re.M), raw


def test_go_reads_them():
    """Every profile to Pyroscope and Parca passes CheckValid, named and unnamed."""
    count = 0
    for i, recording in enumerate(RECORDINGS):
        form, types = (("pyroscope", "samples/count cpu/nanoseconds"), ("parca", "cpu/nanoseconds"))[i % 2]
        path = scratch("inside.pb")
        for request in encode(form, "go", recording, ALL, NAME_ALL=str(i % 2)):
            for profile in request.profiles():
                write(path, profile)
                raw = pprof("-raw", path)
                assert f"Samples:\n{types}" in raw, raw
                count += 1
    assert count >= len(RECORDINGS) - 2, count


def test_parca():
    """One type, in nanoseconds, whose totals are exact; every frame; the list of agents."""
    for recording in RECORDINGS:
        wanted = {name: cpu for name, (_, cpu) in wanted_by_process(recording, "parca-wanted").items() if cpu}
        with standin.StandIn("parca") as server:
            for request in encode("parca", "parca", recording):
                status, kind, body = send(server, request)
                assert (status, kind, body) == (200, "application/json", b"{}"), (status, body)
                assert len(request.body) <= 1000000
            totals = server.store.totals()
            assert set(totals) <= {CPU + ":delta"} and totals.get(CPU + ":delta", {}) == wanted, (totals, wanted)
            assert {row[0]["node"] for row in server.store.rows} <= {"test-node"}


def test_otlp():
    """Ticks, which Pyroscope takes for CPU time: times the period."""
    for recording in RECORDINGS:
        period = report(recording)["summary"]["period_ns"]
        wanted = {name: ticks * period for name, (ticks, _) in wanted_by_process(recording, "otlp-wanted").items() if ticks}
        with standin.StandIn("pyroscope") as server:
            for request in encode("otlp", "otlp", recording):
                status, _, body = send(server, request)
                assert (status, body) == (200, b""), (status, body)
                for profile in wire.otlp(request.plain):
                    assert profile.scope == "sysprof" and profile.attributes["host.name"] == "test-node"
            found = {}
            for labels, kind, _, samples in server.store.rows:
                assert kind == CPU, kind
                name = labels["service_name"]
                found[name] = found.get(name, 0) + sum(value for _, value in samples)
            assert found == wanted, (found, wanted)


def test_dir():
    """Go's pprof opens the files and separates services by their labels; the line beside describes a file."""
    recording = os.path.join(GOLDEN, "processes-over-time.sysprof")
    wanted = wanted_by_process(recording, "dir-wanted")
    profile, facts = encode("dir", "dir", recording, START="1700000000123456789")
    assert profile.path == "20231114T221320.123456789Z.pb.gz" and facts.path == "20231114T221320.123456789Z.json"
    path = scratch(profile.path)
    write(path, profile.body)
    for name, (ticks, _) in wanted.items():
        if ticks:
            shown = pprof("-top", "-sample_index=samples", f"-tagfocus=service_name=^{re.escape(name)}$", path)
            assert re.search(rf"Showing nodes accounting for {ticks}, .* of {profile.samples} total", shown), shown
    reported = json.loads(facts.body)
    assert reported["file"] == profile.path and reported["samples"] == profile.samples
    services = {s["labels"]["service_name"]: (s["samples"], s["cpu_ns"]) for s in reported["services"]}
    assert services == {name: values for name, values in wanted.items() if any(values)}, services


def test_a_large_window():
    """More samples and bytes than a profile and a request may have: nothing is refused, and nothing is lost."""
    ticks = 70000
    out = run(TOOL, "made-up", 3000, 60, ticks, scratch("large"), check=0,
              env=dict(os.environ, START=str(time.time_ns() - 15 * 10**9))).out
    requests = [Request(line) for line in out.splitlines()]
    for kind, path in (("pyroscope", standin.PUSH), ("parca", "/api/profiles/writeraw")):
        with standin.StandIn(kind) as server:
            sent = [r for r in requests if r.path == path]
            for request in sent:
                while send(server, request)[0] == 429:  # 4 MiB a second; it was seen to be taken the next time
                    assert kind != "parca"
                    time.sleep(0.3)
            assert server.store.log[-1]["status"] == 200, server.store.log
            if kind == "pyroscope":
                assert len(sent) > 1
                server.store.compact()  # a half of a request that was refused was stored, and was sent again
            totals = server.store.totals()
            name = CPU if kind != "parca" else CPU + ":delta"
            assert sum(totals[name].values()) == sum(r.cpu for r in sent), totals
            assert sum(r.samples for r in sent) == ticks
            if kind != "parca":
                assert sum(totals[SAMPLES].values()) == ticks, totals


def test_sent_twice():
    """The same bytes again: Pyroscope counts them once, its release 2 after a while, Parca for ever twice."""
    recording = os.path.join(GOLDEN, "fork-exec.sysprof")
    for kind, form, at_once, later in (("pyroscope1", "pyroscope", 1, 1), ("pyroscope", "pyroscope", 2, 1),
                                       ("parca", "parca", 2, 2)):
        (request,) = encode(form, "twice", recording, ALL)
        name = CPU + (":delta" if kind == "parca" else "")
        with standin.StandIn(kind) as server:
            for _ in range(2):
                assert send(server, request)[0] == 200
            assert server.store.totals()[name]["_rest"] == at_once * request.cpu
            if kind != "parca":  # that has no such thing
                server.store.compact()
            assert server.store.totals()[name]["_rest"] == later * request.cpu


def test_standins():
    """They refuse what the real ones refuse, in their words."""
    recording = os.path.join(GOLDEN, "fork-exec.sysprof")
    (request,) = encode("pyroscope", "refused", recording, ALL)
    with standin.StandIn("pyroscope") as server:
        assert send(server, request, Content_Type="application/x-protobuf") == (415, "", b"")
        assert send(server, request, Content_Type="application/proto; charset=utf-8")[0] == 415
        (old,) = encode("pyroscope", "old", recording, ALL, START=str(time.time_ns() - 3700 * 10**9))
        status, _, body = send(server, old)
        assert status == 400 and b"outside of ingestion window" in body, body
        server.set_mode("stopping", 1)
        status, _, body = send(server, request)
        assert status == 500 and b"Unavailable" in body, body
        assert send(server, request)[0] == 200  # it was for once
        request.body = gzip.compress(request.plain.replace(b"service_name", b"service-name"))
        assert send(server, request)[0] == 200  # release 2 takes any name, and then the service is unknown
        assert "unknown_service" in server.store.totals()[CPU]
    with standin.StandIn("pyroscope1") as server:
        assert send(server, request)[0] == 400
    (request,) = encode("parca", "refused", recording, ALL)
    with standin.StandIn("parca") as server:
        body = request.body
        request.body = body.replace(b"__name__", b"name")
        status, _, said = send(server, request)
        assert status == 400 and b"missing __name__ label" in said, said
        request.body = gzip.compress(body)
        assert send(server, request)[0] == 400
        request.path = "/api/profiles/write"
        assert send(server, request)[:2] == (200, "text/html; charset=utf-8")
        assert not server.store.rows


if __name__ == "__main__":
    main(globals())
