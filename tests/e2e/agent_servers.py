#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: servers
# time-limit: 1800
"""The agent and running servers: Grafana Pyroscope and an OpenTelemetry Collector, whose own API lists what has arrived.

It is compared with the directory into which the same agent puts the same windows, and with `report` on recordings. Then the
servers end, begin, refuse and lose answers. Last: what senders believe of these servers, and is otherwise.
"""
import gzip
import hashlib
import http.server
import json
import os
import re
import subprocess
import threading
import time

import agent_formats as formats
import libbrowser
import libe2e as e
import libservers as servers
import wire
from libservers import CPU, SAMPLES

BUSY = """
import hashlib, json, time
def spin(n):
    return sum(range(n))
end = time.time() + {seconds}
while time.time() < end:
    spin(2000); json.dumps(list(range(200))); hashlib.sha256(bytes(50000)).digest()
"""


class Busy:
    """Programs that use the CPU, each a service of its own."""

    def __init__(self, *names, seconds=600):
        self.running = [subprocess.Popen(["nice", "-n", "19", "python3", "-c", BUSY.format(seconds=seconds)],
                                         env={**os.environ, "OTEL_SERVICE_NAME": name}) for name in names]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.running:
            p.kill()
            p.wait()


# ---- recordings ----------------------------------------------------------------------------------

def made_recording():
    e.need_root()
    path = e.scratch("now.sysprof")
    if not os.path.exists(path):
        with Busy("shop"), e.Background(e.fixture("chain"), "-t", 3, 60):
            e.record("-a", "-d", 3, "-F", 499, "-o", path)
    return path


def test_a_recording_in_pyroscope():
    """Function by function what `report` says of it."""
    recording = made_recording()
    with servers.Pyroscope() as server:
        for one in formats.encode("pyroscope", "push", recording, formats.ALL):
            assert server.push(one.body, Content_Encoding=one.encoding)[0] == 200
        check_functions(server, recording)


def check_functions(server, recording):
    wanted = {}
    for row in formats.report(recording)["rows"]:
        if row["self"]:
            wanted[row["function"]] = wanted.get(row["function"], 0) + row["self"]
    own, total = server.flame(SAMPLES, "_rest")
    own = formats.by_reported_name(own)
    summary = formats.report(recording)["summary"]
    assert total == summary["samples"] and server.total(CPU, "_rest") == summary["cpu_ns"], (total, summary)
    show_top("report", wanted)
    show_top("Pyroscope", own)
    assert own == wanted, {name: (own.get(name), wanted.get(name)) for name in set(own) ^ set(wanted)}


def show_top(title, values, most=20):
    print(f"  {title}: {len(values)} functions, {sum(values.values())} in all")
    for name in top(values, most)[:5]:
        print(f"    {values[name]:>12} {name}")


def top(values, most=20):
    return sorted(values, key=lambda name: (-values[name], name))[:most]


def test_recordings_by_service():
    """Each process a service: its ticks and nanoseconds, in all recordings that there are."""
    with servers.Pyroscope() as server:
        begin = time.time_ns() - 50 * 60 * 10**9
        for i, recording in enumerate([made_recording(), *formats.RECORDINGS]):
            start = begin + i * 60 * 10**9  # each has a minute of its own
            for request in formats.encode("pyroscope", "push", recording, START=str(start)):
                assert server.push(request.body, Content_Encoding=request.encoding)[0] == 200
            when = {"start": start // 10**6 - 1000, "end": start // 10**6 + 30000}
            wanted = formats.wanted_by_process(recording, f"wanted.{i}")
            found = {name: (server.total(SAMPLES, name, **when), server.total(CPU, name, **when))
                     for name in server.services(**when)}
            found = {name: values for name, values in found.items() if any(values)}
            assert found == {name: values for name, values in wanted.items() if any(values)}, (recording, found, wanted)


def test_recordings_by_the_collector():
    """What its debug exporter prints, by service; and what it passes on is what it got."""
    recordings = [made_recording(), *formats.RECORDINGS]
    with servers.Backend() as backend, servers.Collector(backend.url) as collector:
        wanted = {}
        for recording in recordings:
            for request in formats.encode("otlp", "otlp", recording):
                answer = servers.post(collector.url + request.path, request.body, Content_Type=request.type,
                                      Content_Encoding=request.encoding or "identity")
                # a partial success that says nothing of anything rejected: it is none
                assert answer[0] == 200 and answer[2] == b"\x0a\x00", answer
            for name, (ticks, _) in formats.wanted_by_process(recording, "otlp").items():
                wanted[name] = wanted.get(name, 0) + ticks
        wanted = {name: ticks for name, ticks in wanted.items() if ticks}
        collector.wait_until(lambda: sum(sum(found.values()) for found in collector.printed().values()) >=
                             sum(wanted.values()), "what it prints")
        printed = {}
        for found in collector.printed().values():
            for name, ticks in found.items():
                printed[name] = printed.get(name, 0) + ticks
        assert printed == wanted, (printed, wanted)
        passed = [sum(sample.numbers(4)) for _, _, body in backend.got for resource in wire.Message(body).messages(1)
                  for scope in resource.messages(2) for profile in scope.messages(2) for sample in profile.messages(2)]
        assert sum(passed) == sum(wanted.values()), (sum(passed), wanted)
        print(f"  {len(passed)} samples of {len(printed)} services, {sum(passed)} ticks")


# ---- the agent -----------------------------------------------------------------------------------

def whole(windows):
    """Those that are surely over and sent: but for the last, which ends with the agent."""
    assert len(windows) >= 2, windows
    return windows[:-1], {"start": windows[0]["start_ns"] // 10**6 - 1, "end": windows[-1]["start_ns"] // 10**6 - 1}


def compare(server, windows):
    """Services, ticks and nanoseconds of all whole windows, as they are in the directory."""
    sent, when = whole(windows)
    services = server.services(**when)
    for field, kind in (("samples", SAMPLES), ("cpu_ns", CPU)):
        wanted = servers.by_service(sent, field)
        found = {name: server.total(kind, name, **when) for name in services}
        found = {name: value for name, value in found.items() if value}
        assert found == wanted, {name: (found.get(name), wanted.get(name)) for name in set(found) | set(wanted)
                                 if found.get(name) != wanted.get(name)}
        assert server.total(kind, **when) == sum(wanted.values()), kind
    print(f"  {len(sent)} windows, {len(services)} services, {sum(wanted.values())} ns: the same in Pyroscope")


def functions_of(agent, windows, service):
    """{function: ticks} of a service, as `report` says of the files."""
    own = {}
    for window in windows:
        pprof = wire.Pprof(gzip.decompress(e.read(os.path.join(agent.out, window["file"]), "rb")))
        part = e.scratch("part.pb.gz")
        with gzip.open(part, "wb") as f:
            f.write(only(pprof, window, agent, service))
        for row in formats.report(part)["rows"]:
            own[row["function"]] = own.get(row["function"], 0) + row["self"]
    return {name: ticks for name, ticks in own.items() if ticks}


def only(pprof, window, agent, service):
    """The bytes of a profile with the samples of one service alone."""
    data = gzip.decompress(e.read(os.path.join(agent.out, window["file"]), "rb"))
    key, name = pprof.strings.index(b"service_name"), pprof.strings.index(service.encode())
    out = bytearray()
    samples = iter(pprof.samples)
    for number, raw in wire.raw_fields(data):
        if number != 2 or any(label[:2] == (key, name) for label in next(samples)[2]):
            out += raw
    return bytes(out)


def test_the_agent():
    """To Pyroscope, a collector and a directory at once: the same everywhere, also function by function."""
    e.need_root()
    with servers.Pyroscope() as server, servers.Backend() as backend, servers.Collector(backend.url) as collector, \
            Busy("shop", "billing"), \
            servers.Agent("--sink", f"pyroscope:{server.url}", "--sink", f"otlp:{collector.url}") as agent:
        agent.wait_for_windows(3)
        assert agent.end() == 0, agent.said()
        windows = agent.windows()
        compare(server, windows)
        sent, when = whole(windows)
        for service in ("shop", "billing"):
            own, total = server.flame(SAMPLES, service, **when)
            own, wanted = map(formats.by_reported_name, (own, functions_of(agent, sent, service)))
            show_top(f"{service} by report", wanted)
            show_top(f"{service} by Pyroscope", own)
            assert top(own) == top(wanted) and own == wanted and total == sum(wanted.values()), (own, wanted)
        printed = collector.printed()
        for window in sent:
            assert printed.get(window["start_ns"]) == servers.by_service([window], "samples"), (printed.keys(), window)
        print(f"  the collector has printed {len(printed)} windows: the same")


def test_an_outage():
    """Pyroscope ends, is away, starts slowly, and then takes less than what waits: nothing is lost or doubled."""
    e.need_root()
    server = servers.Pyroscope()
    with server.start().server, Busy("shop"), servers.Agent("--sink", f"pyroscope:{server.url}") as agent:
        sink = f"pyroscope:{server.url}"
        agent.wait_until(lambda: agent.metric("sysprof_windows_total", sink=sink, result="sent"), "the first window", 60)
        server.stop()
        count = len(agent.windows())
        agent.wait_for_windows(count + 3)
        agent.wait_until(lambda: (agent.metric("sysprof_spool_windows", sink=sink) or 0) >= 3, "windows that wait")
        waiting = agent.metric("sysprof_spool_windows", sink=sink)
        size = agent.metric("sysprof_spool_bytes", sink=sink)
        print(f"  {waiting:.0f} windows wait, {size / 1024:.0f} kB")
        # it comes back with an empty ring, and takes as much as one window at once
        server.start_only("-distributor.ingestion-rate-limit-mb=0.2", "-distributor.ingestion-burst-size-mb=2")
        with server.server:
            agent.wait_until(lambda: agent.metric("sysprof_spool_windows", sink=sink) == 0, "an empty spool", 120)
            failures = agent.metric("sysprof_push_failures_total", sink=sink)
            assert agent.end() == 0, agent.said()
            assert failures > 0
            compare(server, agent.windows())
            lost = [line for line in agent.said().splitlines() if "dropped" in line]
            assert not lost, lost


class Lossy(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and loses the first answer to each."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {k: v for k, v in self.headers.items() if k.lower() in ("content-type", "content-encoding")}
        status, kind, answer = servers.post(self.server.to + self.path, body, **headers)
        digest = hashlib.sha256(body).digest()
        self.server.got.append((digest, status))
        if [d for d, _ in self.server.got].count(digest) == 1:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def test_answers_that_are_lost():
    """Each request is taken, its answer is not heard, and it is sent again: counted as ambiguous, there only once."""
    e.need_root()
    with servers.Pyroscope() as server, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lossy) as proxy:
        proxy.to, proxy.got = server.url, []
        threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True).start()
        sink = f"pyroscope:http://127.0.0.1:{proxy.server_address[1]}"
        with Busy("shop"), servers.Agent("--sink", sink) as agent:
            agent.wait_until(lambda: (agent.metric("sysprof_windows_total", sink=sink, result="sent") or 0) >= 2,
                             "two windows", 90)
            ambiguous = agent.metric("sysprof_push_ambiguous_total", sink=sink)
            agent.wait_for_windows(3)
            assert agent.end() == 0, agent.said()
            proxy.shutdown()
            seen = [digest for digest, _ in proxy.got]
            assert all(status == 200 for _, status in proxy.got), proxy.got
            assert len(set(seen)) < len(seen) and ambiguous >= 2, (len(set(seen)), len(seen), ambiguous)
            compare(server, agent.windows())


def is_refused(values):
    return any(len(value.encode()) > 59 for value in values.values())


def test_refused_series():
    """One service of many has a label that this server does not take: the others are there, each window once."""
    e.need_root()
    long_name = "s" * 60
    with servers.Pyroscope("-auth.multitenancy-enabled=true", "-validation.max-length-label-value=59",
                           tenant="team-1") as server, \
            Busy("shop", long_name), servers.Agent("--sink", f"pyroscope:{server.url}", "--tenant", "team-1",
                                                   "--node", "n1") as agent:
        sink = f"pyroscope:{server.url}"
        agent.wait_until(lambda: (agent.metric("sysprof_windows_total", sink=sink, result="rejected") or 0) >= 2,
                         "refused windows", 90)
        requests = agent.metric("sysprof_push_requests_total", sink=sink)
        done = agent.metric("sysprof_windows_taken_total", sink=sink) - agent.metric("sysprof_spool_windows", sink=sink)
        assert requests <= done + 1, "a request that was refused in part is not sent again"
        assert agent.end() == 0, agent.said()
        sent, when = whole(agent.windows())
        taken = [{"services": [service for service in window["services"] if not is_refused(service["labels"])]} for window in sent]
        wanted = servers.by_service(taken, "cpu_ns")
        assert "shop" in wanted and long_name in servers.by_service(sent, "cpu_ns") and long_name not in wanted
        found = {name: server.total(CPU, name, **when) for name in server.services(**when)}
        found = {name: value for name, value in found.items() if value}
        assert found == wanted, (found, wanted)
        # no other tenant's; a sender without a tenant gets an error
        assert server.send_request("LabelValues", tenant="team-2", name="service_name").get("names", []) == []
        server.tenant = None
        assert server.push(b"")[0] == 401


# ---- what a person sees --------------------------------------------------------------------------

def test_pyroscopes_page():
    """A browser that opens it sees a flame graph, of the service that was profiled, with its functions by name."""
    e.need_root()
    with servers.Pyroscope() as server, Busy("a-shop"), \
            servers.Agent("--sink", f"pyroscope:{server.url}", "--include", "service=a-shop") as agent:
        agent.wait_until(lambda: server.total(CPU, "a-shop"), "a window", 60)
        # of all names its table shows the first ones: which those are is another thing in each Python
        busiest = top(server.flame(CPU, "a-shop")[0], 1)[0]
        with libbrowser.Browser(width=1400, height=1000) as browser:
            page = browser.page(server.url + "/")
            page.wait("!!document.querySelector('canvas[data-testid=flameGraph]')", 120)
            page.wait(f"document.body.innerText.includes({json.dumps(busiest)})", 120)
            text = page.evaluate("document.body.innerText")
            page.screenshot(e.scratch("pyroscope.png"))
            # how many colours its middle has: a graph, and no empty canvas
            colours = page.evaluate("""(() => {
                const c = document.querySelector('canvas[data-testid=flameGraph]');
                const d = c.getContext('2d').getImageData(0, 0, c.width, Math.min(c.height, 200)).data;
                const seen = new Set();
                for (let i = 0; i < d.length; i += 4)
                    if (d[i + 3]) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
                return seen.size;
            })()""")
        assert "a-shop" in text and "Failed" not in text, text[:2000]
        assert colours > 5, colours
        assert agent.end() == 0


SCHEMA = """
import type {{Dashboard}} from "@grafana/schema";
import type {{dataquery as Pyroscope}} from "@grafana/grafana-foundation-sdk/grafanapyroscope";
import type {{Dataquery as Prometheus}} from "@grafana/grafana-foundation-sdk/prometheus";
import type {{Options as TimeseriesOptions, FieldConfig as TimeseriesConfig}}
    from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
import type {{Options as StatOptions}} from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
// a text is as good as a member of an enumeration
type Lit<T> = T extends string ? `${{T}}` : T extends (infer U)[] ? Lit<U>[] : T extends object ? {{[K in keyof T]: Lit<T[K]>}} : T;
const board: Lit<Dashboard> = {board};
const prometheus: Lit<Omit<Prometheus, "_implementsDataqueryVariant">>[] = {prometheus};
const pyroscope: Lit<Omit<Pyroscope, "_implementsDataqueryVariant">>[] = {pyroscope};
const timeseries: Lit<TimeseriesOptions>[] = {timeseries};
const configs: Lit<TimeseriesConfig>[] = {configs};
const stats: Lit<StatOptions>[] = {stats};
"""


def typed(board):
    """A program that is right if the dashboard is."""
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    targets = [target for panel in panels for target in panel["targets"]]

    def of(kind):
        return [panel for panel in panels if panel["type"] == kind]
    parts = {
        "board": board, "timeseries": [panel["options"] for panel in of("timeseries")],
        "configs": [panel["fieldConfig"]["defaults"]["custom"] for panel in of("timeseries")],
        "stats": [panel["options"] for panel in of("stat")],
        "prometheus": [t for t in targets if t["datasource"]["type"] == "prometheus"],
        "pyroscope": [t for t in targets if t["datasource"]["type"] != "prometheus"],
    }
    return SCHEMA.format(**{name: json.dumps(part) for name, part in parts.items()})


FAULTS = (('"labelSelector"', '"labelSelektor"'), ('"drawStyle": "line"', '"drawStyle": "lines"'),
          ('"schemaVersion": 41,', ""), ('"lineWidth": 1', '"lineWidth": "1"'))


def test_dashboards_by_their_schema():
    """Grafana's own types accept the dashboards, and reject a broken one."""
    directory = os.path.join(servers.SERVERS, "schema")
    os.symlink(os.path.join(directory, "node_modules"), e.scratch("node_modules"))
    boards = {}
    for name in "sysprof-agent", "sysprof-services":
        boards[name] = e.read(os.path.join(e.TOP, "packaging/grafana", name + ".json"))
    for i, (right, wrong) in enumerate(FAULTS):
        assert right in boards["sysprof-services"], right
        boards[f"fault-{i}"] = boards["sysprof-services"].replace(right, wrong)
    for name, text in boards.items():
        e.write(e.scratch(name + ".ts"), typed(json.loads(text)))
    result = e.run("node", os.path.join(directory, "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--skipLibCheck",
                   "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler",
                   *(e.scratch(name + ".ts") for name in boards), timeout=600)
    wrong = set(re.findall(r"([\w-]+)\.ts\(\d+,\d+\): error", result.out))
    assert wrong == {name for name in boards if name.startswith("fault")}, result.out[:3000]


# ---- what is believed ----------------------------------------------------------------------------

def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class MadeUp:
    """A small profile, and what may be wrong with it."""

    def __init__(self, samples=((1, 1000),), when=None, ids=(1, 1), location=1, mapping=1, function=1, named=True):
        strings = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"hot", b"/bin/it", b"caller"]
        out = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
        for ticks, cpu in samples:
            out += field(2, field(1, location) + field(1, 2) + field(2, ticks) + field(2, cpu))
        out += field(3, field(1, 1) + field(5, 6) + (field(7, 1) if named else b""))
        line = field(4, field(1, function) + field(2, 1)) if named else b""
        out += field(4, field(1, ids[0]) + field(2, mapping) + field(3, 4096) + line)
        out += field(4, field(1, 2) + field(2, 1) + field(3, 8192) + field(4, field(1, 2) + field(2, 1)))
        out += field(5, field(1, ids[1]) + field(2, 5)) + field(5, field(1, 2) + field(2, 7))
        out += b"".join(field(6, s) for s in strings)
        out += field(9, when or time.time_ns()) + field(10, 10**10) + field(11, field(1, 3) + field(2, 4)) + field(12, 1000)
        self.bytes = out

    def series(self, service="it", **more):
        return labels({"__name__": "process_cpu", "service_name": service, **more}) + \
            field(2, field(1, gzip.compress(self.bytes)))


def labels(values):
    return b"".join(field(1, field(1, k.encode()) + field(2, v.encode())) for k, v in values.items())


def request(*series):
    return b"".join(field(1, one) for one in series)


def message(answer):
    return json.loads(answer[2])["message"]


def test_one_message_for_many_refusals():
    """It does not say which of the series it refused; those that are good are stored."""
    with servers.Pyroscope() as server:
        bad = MadeUp().series("dashed", **{"a-b": "x"}), MadeUp(ids=(0, 1)).series("zero"), MadeUp(samples=()).series("none")
        answer = server.push(request(MadeUp().series("good"), *bad, MadeUp().series("also-good")))
        print("  ", answer)
        assert answer[0] == 400 and "index" not in message(answer) and "\n" not in message(answer), answer
        assert server.total(CPU, "good") == server.total(CPU, "also-good") == 1000
        assert server.services() == ["also-good", "good"], server.services()


def test_the_same_again():
    """The same bytes are there once; other bytes of the same time are dropped without a word, a millisecond later not."""
    with servers.Pyroscope() as server:
        now = time.time_ns() // 10**6 * 10**6
        first = request(MadeUp(when=now).series("it"))
        for _ in range(3):
            assert server.push(first)[0] == 200
        assert server.total(CPU, "it") == 1000
        assert server.push(request(MadeUp([(5, 5000)], when=now + 1000).series("it")))[0] == 200
        assert server.total(CPU, "it") in (1000, 5000)
        assert server.push(request(MadeUp([(7, 7000)], when=now + 10**6).series("it")))[0] == 200
        assert server.total(CPU, "it") in (8000, 12000)


def test_what_is_gone_without_a_word():
    """Zero is refused as the id of a location or function; of a mapping, and if it leads nowhere, the sample is gone."""
    with servers.Pyroscope() as server:
        for name, made in (("location", MadeUp(ids=(0, 1))), ("function", MadeUp(ids=(1, 0)))):
            assert server.push(request(made.series(name)))[0] == 400, name
        for name, made in (("no-mapping", MadeUp(mapping=0)), ("no-such-mapping", MadeUp(mapping=9)),
                           ("location-zero", MadeUp(location=0)), ("no-such-location", MadeUp(location=9)),
                           ("function-zero", MadeUp(function=0)), ("no-such-function", MadeUp(function=9))):
            assert server.push(request(made.series(name)))[0] == 200, name
            print(f"   {name}: {server.total(CPU, name)} of 1000")
            assert (server.total(CPU, name) == 0) == (name != "no-mapping"), name


def test_frames_without_a_name():
    """They are not shown as addresses: their time is their caller's. We name them all."""
    with servers.Pyroscope() as server:
        assert server.push(request(MadeUp(named=False).series("unnamed")))[0] == 200
        own, total = server.flame(CPU, "unnamed")
        print("  ", own, total)
        assert "hot" not in own and own == {"caller": 1000} and total == 1000, (own, total)


def test_types_of_content():
    with servers.Pyroscope() as server:
        body = request(MadeUp().series())
        for kind in ("application/x-protobuf", "application/proto; charset=utf-8", "application/octet-stream"):
            assert server.push(body, kind)[0] == 415, kind
        assert server.push(body) == (200, "application/proto", b"")


def test_while_it_starts():
    """500 is not the end of it: with an empty ring it means later; with a profile that it cannot read, never."""
    server = servers.Pyroscope()
    server.start_only()
    seen = []
    with server.server:
        body = request(MadeUp().series())

        def taken():
            status, _, answer = server.push(body)
            if status and (status, answer) not in seen:
                seen.append((status, answer))
            return status == 200
        server.server.wait_until(taken, "a push")
        print("  ", seen)
        assert all(status in (200, 404, 500, 503) for status, _ in seen), seen
        answer = server.push(request(labels({"__name__": "process_cpu", "service_name": "it"}) + field(2, field(1, b"no"))))
        print("  ", answer)
        assert answer[0] == 500 and b"empty ring" not in answer[2] and b"Unavailable" not in answer[2], answer


def test_limits():
    """A window too large for one profile and one request: in parts that are taken, and all of it is there."""
    ticks = 70000
    out = e.run(formats.TOOL, "made-up", 3000, 60, ticks, e.scratch("large"), check=0,
                env=dict(os.environ, START=str(time.time_ns() - 15 * 10**9))).out
    sent = [r for r in map(formats.Request, out.splitlines()) if r.path == servers.PUSH]
    assert len(sent) > 1
    with servers.Pyroscope() as server:
        later = 0
        for one in sent:
            while (answer := server.push(one.body, Content_Encoding=one.encoding))[0] == 429:
                assert "push rate limit" in message(answer), answer
                later += 1
                time.sleep(0.3)
            assert answer[0] == 200, answer
        print(f"  {len(sent)} requests, {later} times too fast")
        assert server.total(SAMPLES) == ticks and server.total(CPU) == sum(r.cpu for r in sent)
        # one more than it takes in one profile; and more than it takes at once, which is so for ever
        many = MadeUp([(1, 1)] * 16001)
        answer = server.push(request(many.series()))
        assert answer[0] == 400 and "16001" in message(answer), answer
        large = MadeUp()
        large.bytes += b"".join(field(6, b"%d" % i * 30000) for i in range(10, 50))
        for _ in range(2):
            answer = server.push(request(large.series()))
            assert answer[0] == 429 and "push rate limit" in message(answer), answer
            time.sleep(1)


def test_the_size_of_a_request_to_the_collector():
    """20 MiB, not 64; it rejects a larger one without reading all of it."""
    with servers.Backend() as backend, servers.Collector(backend.url) as collector:
        answer = servers.post(collector.url + "/v1development/profiles", bytes(21 << 20), Content_Type="application/x-protobuf")
        print("  ", answer)
        assert answer[0] in (0, 400), answer
        assert answer[0] == 0 or b"http: request body too large" in answer[2], answer
        assert not backend.got


def test_pyroscope_behind_a_collector():
    """It does not read the names that a collector has put into a table: all services are one. Without it they are there."""
    recording = formats.RECORDINGS[0]
    with servers.Pyroscope() as direct, servers.Pyroscope() as behind, servers.Collector(behind.url) as collector:
        wanted = {name for name, (ticks, _) in formats.wanted_by_process(recording, "behind").items() if ticks}
        for one in formats.encode("otlp", "behind", recording):
            for server in direct, collector:
                answer = servers.post(server.url + one.path, one.body, Content_Type=one.type,
                                      Content_Encoding=one.encoding or "identity")
                print("  ", answer)
                assert answer[0] == 200, answer
        period = formats.report(recording)["summary"]["period_ns"]
        ticks = formats.wanted_by_process(recording, "behind")
        for name in wanted:
            assert direct.total(CPU, name) == ticks[name][0] * period
        print(f"   sent {sorted(wanted)}, direct {direct.services()}, behind a collector {behind.services()}")
        assert not wanted & set(behind.services()), behind.services()


if __name__ == "__main__":
    e.main(globals())
