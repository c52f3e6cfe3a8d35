#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stand-ins for Grafana Pyroscope and Parca, where the real ones cannot be had.

They are not Pyroscope and not Parca: they enforce the rules that the real ones were seen to enforce (rules.py: limits,
codes, words), lose without a word what those lose, and answer a few of their queries. README.md says what was seen of
which release, and what is not here.

    standin.py pyroscope|pyroscope1|parca [PORT]      prints the port, and serves until it is killed

pyroscope is release 2.2, pyroscope1 is 1.21. Paths of the stand-in's own, below /standin/:
    POST control   {"mode": …, "times": N}: what becomes of the next N pushes (all, without N):
                   ok, starting, stopping, unavailable (503, Retry-After: 1), rate (429, Retry-After: 1), rate-silent
                   (429), gateway (504, and it is stored), lost (it is stored, and the connection closed), cut (closed
                   in the middle of the request), silent (no answer), page (200 with HTML), login (401), garbage,
                   redirect
    POST compact   Pyroscope 2 drops what came twice only then
    GET totals     {type: {service_name: value}} of what a query finds
    GET labels     each set of labels that there is
    GET log        a line a request: status, bytes, series, samples
"""
import base64
import gzip
import json
import os
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rules  # noqa: E402
import wire  # noqa: E402

BURST, RATE = 2 * rules.MIB, 4 * rules.MIB
PUSH = "/push.v1.PusherService/Push"
OTLP = "/v1development/profiles"
QUERIER = "/querier.v1.QuerierService/"
PARCA_MAX = 64 * rules.MIB
STARTING = {1: "empty ring", 2: "rpc error: code = Unavailable desc = service is unavailable"}


def selects(selector, labels):
    """{a="b", c=~"d"}"""
    for name, how, value in re.findall(r'"?([^\s{},"=!]+)"?\s*(=~|!=|=)\s*"([^"]*)"', selector):
        had = labels.get(name, "")
        if how == "=" and had != value or how == "!=" and had == value or how == "=~" and not re.fullmatch(value, had):
            return False
    return True


class Store:
    """Profiles by series and time, as a backend finds them at a query."""

    def __init__(self):
        self.lock = threading.Lock()
        self.rows = []  # (labels, type, time in ns, samples)
        self.keys = set()
        self.log = []
        self.doubled = 0

    def add(self, labels, kind, when, samples, dedup):
        """dedup: what has the same labels, type and millisecond is dropped, whatever is in it."""
        key = tuple(sorted(labels.items())), kind, when // 1000000
        with self.lock:
            if key in self.keys:
                self.doubled += 1
                if dedup:
                    return
            self.keys.add(key)
            self.rows.append((labels, kind, when, samples))

    def compact(self):
        with self.lock:
            kept = {}
            for labels, kind, when, samples in self.rows:
                kept.setdefault((tuple(sorted(labels.items())), kind, when // 1000000), (labels, kind, when, samples))
            self.rows = list(kept.values())

    def find(self, kind, selector, start=0, end=2**63):
        with self.lock:
            return [row for row in self.rows if row[1] == kind and selects(selector, row[0]) and start <= row[2] < end]

    def types(self):
        with self.lock:
            return sorted({row[1] for row in self.rows})

    def labels(self):
        with self.lock:
            return [dict(labels) for labels in {tuple(sorted(row[0].items())) for row in self.rows}]

    def totals(self):
        found = {}
        with self.lock:
            for labels, kind, _, samples in self.rows:
                services = found.setdefault(kind, {})
                name = labels.get("service_name", "")
                services[name] = services.get(name, 0) + sum(value for names, value in samples if any(names))
        return found


def flame_graph(rows):
    """Names, levels and totals as Pyroscope has them: each bar is offset, total, self, name. Numbers are texts."""
    tree, most = {}, 0
    for _, _, _, samples in rows:
        for names, value in samples:
            at = tree
            for name in [n for n in names if n]:  # one without a name vanishes
                node = at.setdefault(name, [0, 0, {}])
                node[0] += value
                at, last = node[2], node
            if any(names):
                last[1] += value
    total = sum(node[0] for node in tree.values())
    names, levels, level = ["total"], [["0", str(total), "0", "0"]], [(0, tree)]
    while level:
        bars, below, end = [], [], 0
        for left, children in level:
            for name, (value, own, callees) in sorted(children.items()):
                if name not in names:
                    names.append(name)
                bars += [str(left - end), str(value), str(own), str(names.index(name))]
                below.append((left, callees))
                end = left = left + value
                most = max(most, own)
        if bars:
            levels.append(bars)
        level = below
    return {"names": names, "levels": [{"values": x} for x in levels], "total": str(total), "maxSelf": str(most)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def store(self):
        return self.server.store

    def answer(self, status, body=b"", kind="application/json", headers=()):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def own(self, path, body):
        if path == "control":
            wanted = json.loads(body)
            self.server.mode, self.server.left = wanted["mode"], wanted.get("times")
        elif path == "compact":
            self.store.compact()
        elif path not in ("totals", "log", "labels"):
            return self.answer(404)
        reported = {"totals": self.store.totals, "labels": self.store.labels, "log": lambda: self.store.log}
        return self.answer(200, reported.get(path, dict)())

    def mode(self):
        """Of this push."""
        server = self.server
        with self.store.lock:
            mode = server.mode
            if server.left is not None and mode != "ok":
                server.left -= 1
                if server.left <= 0:
                    server.mode, server.left = "ok", None
        return mode

    def misbehave(self, mode):
        """What does not depend on what is pushed. True: that was it."""
        if mode == "silent":
            time.sleep(60)
        elif mode == "cut":
            self.rfile.read(10)
        elif mode == "unavailable":
            self.answer(503, b"come again", "text/plain", [("Retry-After", "1")])
        elif mode in ("rate", "rate-silent"):
            self.answer(429, {"code": "resource_exhausted", "message": "push rate limit (4.0 MiB) exceeded while adding "
                              "512 KiB"}, headers=[("Retry-After", "1")] if mode == "rate" else [])
        elif mode == "page":
            self.answer(200, b"<!doctype html><title>hello</title>", "text/html; charset=utf-8")
        elif mode == "login":
            self.answer(401, {"code": "unauthenticated", "message": "no org id"})
        elif mode == "redirect":
            self.answer(302, b"", "text/html", [("Location", "http://127.0.0.1:1/elsewhere")])
        elif mode == "garbage":
            self.wfile.write(b"\x00\xff not HTTP at all\r\n\r\n")
        else:
            return False
        self.close_connection = mode not in ("unavailable", "rate", "rate-silent", "page", "login", "redirect")
        return True

    def note(self, status, body, series=0, samples=0):
        with self.store.lock:
            self.store.log.append({"path": self.path, "status": status, "bytes": len(body), "series": series,
                                   "samples": samples, "time": time.time()})

    def push(self, take):
        """take(body): stores what is in it, (series, samples); answer() is called if that is good."""
        mode = self.mode()
        if mode in ("cut", "silent") or mode == "garbage":
            self.note(0, b"")
            return self.misbehave(mode)
        body = self.body()
        if self.misbehave(mode):
            return self.note(0, body)
        series = samples = 0
        refused = None
        if mode in ("starting", "stopping"):
            refused = rules.Refused(500, "unknown", STARTING[self.server.release])
        else:
            try:
                series, samples = take(body)
            except rules.Refused as e:
                refused = e
        self.note(refused.status if refused else 200, body, series, samples)
        if mode == "lost":
            self.close_connection = True
            return None
        if mode == "gateway":
            return self.answer(504, {"code": "deadline_exceeded", "message": "context deadline exceeded"})
        return self.refuse(refused) if refused else self.accept()

    def accept(self):
        raise NotImplementedError

    def refuse(self, refused):
        self.answer(refused.status, {"code": refused.code, "message": refused.message})

    def dispatch(self, path, query):
        raise NotImplementedError

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path.startswith("/standin/"):
            return self.own(url.path[len("/standin/"):], b"")
        return self.dispatch(url.path, urllib.parse.parse_qs(url.query))

    def do_POST(self):
        if self.path.startswith("/standin/"):
            return self.own(self.path[len("/standin/"):], self.body())
        return self.dispatch(self.path, {})


class Pyroscope(Handler):
    def dispatch(self, path, query):
        if path == "/ready":
            return self.answer(200 if self.server.mode != "starting" else 503, b"ready", "text/plain")
        if path == PUSH:
            return self.receive()
        if path == OTLP:
            return self.receive_otlp()
        if path.startswith(QUERIER) and self.command == "POST":
            return self.query(path[len(QUERIER):], json.loads(self.body()))
        return self.answer(404, b"404 page not found\n", "text/plain; charset=utf-8")

    def bad_tenant(self):
        tenant = self.headers.get("X-Scope-OrgID", "")
        if not self.server.tenants:
            return False
        if not tenant or "|" in tenant or len(tenant) > 150:
            message = "multiple org IDs present" if "|" in tenant else "no org id" if not tenant else "too long: max 150"
            self.body()
            self.answer(401, {"code": "unauthenticated", "message": message})
            return True
        return False

    def receive(self):
        kind = self.headers.get("Content-Type", "")
        coding = self.headers.get("Content-Encoding", "identity")
        if self.command != "POST":
            return self.answer(405, b"", None)
        if kind != "application/proto" and kind.split(";")[0] != "application/json":
            self.body()
            return self.answer(415, b"", None)
        if coding not in ("gzip", "identity"):
            self.body()
            return self.answer(501, {"code": "unimplemented", "message": f"unknown compression \"{coding}\""})
        if self.bad_tenant():
            return None
        self.server.now = time.time_ns()
        return self.push(lambda body: self.take(gzip.decompress(body) if coding == "gzip" else body, kind))

    def accept(self):
        kind = self.headers.get("Content-Type", "")
        if self.path == OTLP:
            return self.answer(200, b"", "application/x-protobuf")
        if kind != "application/proto":
            return self.answer(200, {})
        zipped = self.headers.get("Content-Encoding") == "gzip"
        return self.answer(200, gzip.compress(b"") if zipped else b"", kind,
                           [("Content-Encoding", "gzip")] if zipped else [])

    def series_of(self, body, kind):
        """[(labels, [raw profile])] of a PushRequest"""
        if kind != "application/proto":
            return [([(x["name"], x["value"]) for x in series["labels"]],
                     [base64.b64decode(x["rawProfile"]) for x in series["samples"]])
                    for series in json.loads(body).get("series", [])]
        try:
            return [([(x.text(1), x.text(2)) for x in series.messages(1)], [x.bytes(1) for x in series.messages(2)])
                    for series in wire.Message(body).messages(1)]
        except (wire.Bad, UnicodeDecodeError) as e:
            raise rules.invalid(f"unmarshal message: {e}") from e

    def take(self, body, kind):
        """All series are tried; one failure is reported, without saying of which."""
        found, failed, stored, samples = self.series_of(body, kind), None, 0, 0
        if not any(raws for _, raws in found):
            raise rules.invalid("no profiles received")
        for labels, raws in found:
            for raw in raws:
                try:
                    samples += self.take_one(labels, raw)
                    stored += 1
                except rules.Refused as e:
                    failed = failed or e
        if failed:
            raise failed
        return stored, samples

    def take_one(self, labels, raw):
        labels = rules.pyroscope_labels(labels, self.server.release)
        data = rules.unpack(raw, 4 * rules.MIB)
        self.spend(len(data) + sum(len(n) + len(v) for n, v in labels.items()))
        p = rules.pyroscope_profile(data, self.server.now)
        kept = list(rules.pyroscope_samples(p))
        name = labels.pop("__name__")
        for i, kind in enumerate(rules.pyroscope_types(p, name)):
            self.store.add(labels, kind, p.time or self.server.now,
                           [(names, values[i]) for names, values in kept if values[i]], self.server.release == 1)
        return len(p.samples)

    def spend(self, size):
        """A bucket of 2 MiB that fills by 4 MiB a second. What is more than it holds never goes through."""
        server, now = self.server, time.monotonic()
        with self.store.lock:
            server.tokens = min(BURST, server.tokens + (now - server.filled) * RATE)
            server.filled = now
            if size > server.tokens:
                raise rules.Refused(429, "resource_exhausted", f"push rate limit ({rules.human(RATE)}) exceeded while "
                                    f"adding {rules.human(size)}")
            server.tokens -= size

    def receive_otlp(self):
        kind = self.headers.get("Content-Type", "")
        if kind not in ("application/x-protobuf", "application/protobuf"):  # JSON is not here
            self.body()
            return self.answer(415, b"unsupported media type", "text/plain")
        if self.bad_tenant():
            return None
        zipped = self.headers.get("Content-Encoding") == "gzip"
        return self.push(lambda body: self.take_otlp(gzip.decompress(body) if zipped else body))

    def take_otlp(self, body):
        now = time.time_ns()
        try:
            profiles = wire.otlp(body)
        except KeyError as e:
            raise rules.Refused(500, "text", e.args[0]) from e
        except IndexError as e:
            raise rules.Refused(500, "text", "index out of range") from e
        except (wire.Bad, UnicodeDecodeError) as e:
            raise rules.Refused(400, "text", "Failed to parse protobuf request") from e
        for p in profiles:
            if not now - 3600e9 <= p.time <= now + 600e9:
                raise rules.invalid("profile is outside of ingestion window")
            if len(p.samples) > 16000:
                raise rules.invalid(f"too many samples, actual: {len(p.samples)}, limit: 16000")
            self.take_otlp_profile(p)
        return len(profiles), sum(len(p.samples) for p in profiles)

    def take_otlp_profile(self, p):
        labels = {name.replace(".", "_") if self.server.release == 1 or name == "service.name" else name: value
                  for name, value in p.attributes.items()}
        labels.setdefault("service_name", "unknown_service")
        if p.type == p.period_type == ("wall", "nanoseconds") and p.period:
            return self.store.add(labels, "wall:wall:nanoseconds:wall:nanoseconds", p.time,
                                  [(names, values[0]) for names, values in p.samples if names and values[0] > 0],
                                  self.server.release == 1)
        if p.period_type != ("cpu", "nanoseconds") or not p.period:
            raise rules.invalid("invalid metric name")
        # of samples/count it makes CPU time, and files CPU time under another name than everybody's
        name, factor = ("process_cpu", p.period) if p.type == ("samples", "count") else ("cpu", 1)
        return self.store.add(labels, f"{name}:cpu:nanoseconds:cpu:nanoseconds", p.time,
                       [(names, values[0] * factor) for names, values in p.samples if names and values[0] > 0],
                       self.server.release == 1)

    def refuse(self, refused):
        if refused.code == "text":
            return self.answer(refused.status, refused.message.encode(), "text/plain; charset=utf-8")
        return super().refuse(refused)

    def query(self, method, requested):
        start, end = int(requested.get("start", 0)) * 10**6, int(requested.get("end", 2**43)) * 10**6
        if method == "SelectMergeStacktraces":
            rows = self.store.find(requested["profileTypeID"], requested.get("labelSelector", "{}"), start, end)
            return self.answer(200, {"flamegraph": flame_graph(rows)})
        if method == "ProfileTypes":
            return self.answer(200, {"profileTypes": [{"ID": kind} for kind in self.store.types()]})
        if method == "LabelValues":
            with self.store.lock:
                values = {row[0][requested["name"]] for row in self.store.rows if requested["name"] in row[0]}
            return self.answer(200, {"names": sorted(values)})
        return self.answer(404)


class Parca(Handler):
    def dispatch(self, path, query):
        if path == "/api/profiles/writeraw" and self.command == "POST":
            return self.push(self.take)
        if path == "/metrics":
            return self.answer(200, b"# nothing\n", "text/plain; version=0.0.4")
        if path == "/api/profiles/types":
            if self.server.broken:
                return self.answer(500, {"code": 13, "message": "arrow/array: index out of range", "details": []})
            return self.answer(200, {"types": self.store.types()})
        if path.startswith("/api/profiles/labels/"):
            name = path.split("/")[4]
            with self.store.lock:
                values = {row[0][name] for row in self.store.rows if name in row[0]}
            return self.answer(200, {"labelValues": sorted(values)})
        if self.command == "POST":
            self.body()
        # whatever it does not know is its page
        return self.answer(200, b"<!doctype html><title>Parca</title>", "text/html; charset=utf-8")

    def accept(self):
        self.answer(200, b"{}")

    def refuse(self, refused):
        self.answer(refused.status, {"code": refused.code, "message": refused.message, "details": []})

    def take(self, body):
        """One bad series, and nothing is stored."""
        if len(body) > PARCA_MAX:
            raise rules.Refused(429, 8, f"grpc: received message larger than max ({len(body)} vs. {PARCA_MAX})")
        try:
            request = json.loads(body)
        except ValueError as e:
            raise rules.Refused(400, 3, f"invalid character {body[:1]!r} looking for beginning of value") from e
        rows, samples, broken = [], 0, False
        for series in request.get("series", []):
            labels = rules.parca_labels([(x["name"], x["value"]) for x in series["labels"]["labels"]])
            for sample in series["samples"]:
                p = rules.parca_profile(base64.b64decode(sample["rawProfile"]))
                if p is None:
                    continue
                kinds = rules.parca_types(p, labels["__name__"])
                broken |= p.period_type is None
                samples += len(p.samples)
                stacks = [(names, values) for names, values in p.stacks() if names]
                for i, kind in enumerate(kinds):
                    rows.append((kind, p.time, [(names, values[i]) for names, values in stacks if values[i]], labels))
        for kind, when, stacks, labels in rows:
            if stacks:
                self.store.add({n: v for n, v in labels.items() if n != "__name__"}, kind, when, stacks, False)
        self.server.broken |= broken
        return len(rows), samples


KINDS = {"pyroscope": (Pyroscope, 2), "pyroscope1": (Pyroscope, 1), "parca": (Parca, 0)}


class StandIn(ThreadingHTTPServer):
    """A server on a port of 127.0.0.1; `with` serves."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, kind, port=0, tenants=False):
        handler, self.release = KINDS[kind]
        super().__init__(("127.0.0.1", port), handler)
        self.store, self.mode, self.left, self.tenants = Store(), "ok", None, tenants
        self.tokens, self.filled, self.broken, self.now = BURST, time.monotonic(), False, 0
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client may go away
            super().handle_error(request, client_address)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def set_mode(self, mode, times=None):
        self.mode, self.left = mode, times


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    server = StandIn(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
