#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized
"""Sinks against servers that answer slowly, never, with garbage, or are not there; and after crashes.

push_windows.c puts windows into a sink, whose bytes follow from their numbers. What has arrived here is compared with
them: each request once, but for those that the sink itself counts as ambiguous.
"""
import collections
import email.utils
import http.server
import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import libe2e as e

TOOL = os.path.join(e.BUILD, "tests", "e2e", "push_windows")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}


def body_of(path, size):
    number, request = map(int, path.strip("/").split("-"))
    first = number * 131 + request * 31
    page = bytes(at * 7 & 0xff for at in range(256))
    shifts = [bytes((value + shift) & 0xff for value in page) for shift in range(256)]
    return b"".join(shifts[(first + at) & 0xff] for at in range((size + 255) // 256))[:size]


# ---- servers -------------------------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    """Keeps connections open. What it does is in server.plan: a function for each arrival, then `usual`."""
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.server.open.add(self.request)
        super().setup()

    def finish(self):
        self.server.open.discard(self.request)
        super().finish()

    def do_POST(self):  # pylint: disable=invalid-name
        server = self.server
        size = int(self.headers["Content-Length"])
        if server.early:
            server.early.pop(0)(self)
            while size > 0 and (piece := self.rfile.read1(min(size, 65536))):
                size -= len(piece)
            return
        body = self.rfile.read(size)
        with server.guard:
            server.connections.add(self.client_address)
            server.arrived.append((self.path, body, dict(self.headers), time.monotonic()))
            answer = server.plan.pop(0) if server.plan else server.usual
        answer(self)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def give(self, status, body=b"", kind="application/json", **headers):
        if status == 200 and not body:
            with self.server.guard:
                self.server.accepted[self.path] += 1
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def raw(self, data, hold=0):
        """These bytes, and the end of the connection."""
        self.close_connection = True
        self.wfile.write(data)
        self.wfile.flush()
        time.sleep(hold)


def good(handler):
    handler.give(200)


def status(code, text="", **headers):
    return lambda handler: handler.give(code, text.encode(), **headers)


def raw(data, hold=0):
    return lambda handler: handler.raw(data, hold)


class Server(e.Listening):
    request_queue_size = 64

    def __init__(self, plan=(), usual=good, port=0, context=None):
        self.plan, self.usual = list(plan), usual
        self.early = []  # what it does before it has read the request
        self.arrived, self.connections, self.open = [], set(), set()
        self.accepted = collections.Counter()
        self.guard = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https" if context else "http"
        self.port = self.server_address[1]
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"

    def __exit__(self, *_):
        super().__exit__()
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, *_):  # pylint: disable=arguments-differ
        pass

    def paths(self):
        with self.guard:
            return [path for path, *_ in self.arrived]

    def check_bodies(self, size):
        with self.guard:
            for path, body, *_ in self.arrived:
                assert body == body_of(path, size), path


# ---- the tool ------------------------------------------------------------------------------------

class Sink:
    """push_windows, which takes commands line by line."""
    count = 0

    def __init__(self, url, *options, wrap=(), spool=None, **environment):
        Sink.count += 1
        self.spool = spool or e.scratch(f"spool.{Sink.count}")
        self.log = e.scratch(f"log.{Sink.count}")
        with open(self.log, "w", encoding="utf-8") as log:
            self.p = subprocess.Popen(  # pylint: disable=consider-using-with
                [*wrap, TOOL, f"url={url}", f"spool={self.spool}", *options], text=True, stderr=log,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**ENVIRONMENT, **environment})
        self.reported = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.communicate()

    def send_request(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline()
        self.reported += answer
        assert answer, (line, self.errors())
        return json.loads(answer)

    def put(self, count, requests=1, size=500):
        self.send_request(f"put {count} {requests} {size}")

    def stats(self):
        return self.send_request("stats")

    def errors(self):
        return e.read(self.log, errors="replace")

    def wait(self, timeout=e.PATIENCE, **values):
        """Until the stats have at least these values, and as little in the spool; then exactly these."""
        end = time.monotonic() + timeout
        while True:
            stats = self.stats()
            if all(stats[name] <= value if name == "spool_windows" else stats[name] >= value
                   for name, value in values.items()):
                break
            assert time.monotonic() < end, (values, stats, self.errors())
            time.sleep(0.01)
        assert all(stats[name] == value for name, value in values.items()), (values, stats)
        return stats

    def end(self, milliseconds):
        return self.send_request(f"free {milliseconds}")["seconds"]


# ---- answers -------------------------------------------------------------------------------------

def test_answers_of_every_kind():
    """One request after the other, each with another trouble; what is good in the end has arrived."""
    soon = email.utils.formatdate(time.time() + 3, usegmt=True)
    plan = [
        lambda h: (time.sleep(0.3), h.give(200)),                       # 0-0 slow
        raw(b""), good,                                                 # 0-1 closed: ambiguous
        raw(b"\x00\xffgarbage\r\n\r\n" * 20), good,                      # 0-2 garbage: ambiguous
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), good,  # 0-3 cut in mid-body: ambiguous
        raw(b"HTTP/1.1 200 OK\r\nContent-Le"), good,                    # 1-0 cut in the headers: ambiguous
        status(503), status(503), good,                                 # 1-1
        status(429, Retry_After="1"), good,                             # 1-2
        status(429, Retry_After=soon), good,                            # 1-3
        status(400, '{"code":"invalid_argument"}'),                     # 2-0 refused, alone
        good, good, good,
        status(400, "too old"), good, good, good,                       # 3
        status(413), good, good, good,                                  # 4
        status(500, "proto: bad"), status(500, "proto: bad"), status(500, "proto: bad"), good, good, good,  # 5
        *[status(500, "code = Unavailable")] * 5, good, good, good, good,  # 6
        raw(b"HTTP/1.1 400 no\r\nContent-Length: 50\r\n\r\ncut"), good, good, good,  # 7 refused, cut in mid-body
        status(504), good,                                              # 8-0 ambiguous
        raw(b""), status(503), status(503), good,                       # 8-1 ambiguous, but once: 503 is a word
        good, good,
    ]
    with Server(plan) as server, Sink(server.url) as sink:
        sink.put(9, 4)
        sink.wait(spool_windows=0, windows_put=9, windows_sent=4, dropped=5)
        stats = sink.wait(windows_sent=4, rejected=3, too_old=1, too_big=1, dropped=5, ambiguous=6,
                          windows_no_room=0)
        assert not server.plan, server.plan
        assert stats["samples_sent"] == 10 * (36 - 5) == 10 * sum(server.accepted.values()), stats
        assert stats["requests"] == len(server.arrived), stats
        server.check_bodies(500)
        # in order, and nothing but what was to be sent again came again
        paths = server.paths()
        assert list(dict.fromkeys(paths)) == [f"/{n}-{r}" for n in range(9) for r in range(4)], paths
        times = collections.defaultdict(list)
        for path, _, _, when in server.arrived:
            times[path].append(when)
        assert times["/1-2"][1] - times["/1-2"][0] >= 1
        assert times["/1-3"][1] - times["/1-3"][0] >= 1  # dates have whole seconds
        assert {path: n for path, n in server.accepted.items() if n > 1} == {}
        assert len(times["/5-0"]) == 3 and len(times["/6-0"]) == 6, times


def test_answers_without_end():
    """None at all; a body and headers that never end; a body of which each byte takes long."""
    def trickle(handler):
        handler.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            handler.wfile.write(b"x")
            time.sleep(0.1)

    def endless(begin, piece):
        def answer(handler):
            handler.close_connection = True
            handler.wfile.write(begin)
            for _ in range(2000):
                handler.wfile.write(piece)
                received.append(len(piece))
        return answer

    received, over = [], threading.Event()

    plan = [lambda h: over.wait(60), good, trickle, good,
            endless(b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 1000 + b"\r\n"), good,
            # a refusal whose reason has 100 MB is a refusal
            endless(b"HTTP/1.1 400 No\r\n\r\n", b"no! " * 12500)]
    with Server(plan) as server, Sink(server.url, "timeout=500") as sink:
        sink.put(4)
        stats = sink.wait(windows_sent=3, rejected=1)
        # more if this host was slow
        assert stats["ambiguous"] >= 3 and stats["failures"] == stats["ambiguous"] + 1, stats
        assert not server.plan and "no! no!" in sink.errors(), stats
        assert "the headers of its answer do not end" in sink.errors()
        assert sum(received) < 50 << 20, "all was read"
        over.set()


def test_answers_before_the_end():
    """A server that has heard enough: it says so while a large request is being sent."""
    with Server() as server, Sink(server.url) as sink:
        server.early = [status(413), status(503), status(429, Retry_After="0")]
        sink.put(2, 1, 8 << 20)
        sink.wait(windows_sent=1, too_big=1, ambiguous=0, requests=4)
        assert server.paths() == ["/1-0"], server.paths()
        server.check_bodies(8 << 20)


def test_what_is_no_backend():
    """Redirects are not followed; a page, a 401: slowly, without loss, and mended by hand."""
    token = e.scratch("token")
    with Server() as elsewhere:
        moved = status(307, Location=f"{elsewhere.url}/x?token=hunter2")
        plan = [moved, moved, lambda h: h.give(200, b"<html>", "text/html"), status(404), status(401)]
        e.write(token, "old-token\n")

        def by_token(handler):
            handler.give(200 if handler.headers["Authorization"] == "Bearer new-token" else 401)

        with Server(plan, by_token) as server, Sink(server.url, f"bearer={token}", "tenant=team-1") as sink:
            sink.put(1)
            sink.wait(requests=1)
            said = e.wait_for(lambda: sink.stats()["error"])
            assert f"redirects to {elsewhere.url}," in said and "hunter2" not in said, said
            e.wait_for(lambda: len(server.arrived) > 6)
            times = [when for *_, when in server.arrived]
            assert all(after - before >= 0.25 for before, after in zip(times, times[1:])), times
            os.unlink(token)  # between the old one and the new one
            e.wait_for(lambda: "cannot open" in sink.stats()["error"])
            e.write(token, "new-token\n")
            stats = sink.wait(windows_sent=1)
            assert stats["dropped"] == stats["windows_no_room"] == stats["ambiguous"] == 0, stats
            for _, _, headers, _ in server.arrived:
                assert headers["X-Scope-OrgID"] == "team-1" and "Expect" not in headers, headers
                assert headers["User-Agent"].startswith("sysprof/"), headers
        assert not elsewhere.arrived


def test_other_credentials():
    """They are used at once, however long the refused sink would have waited, and nothing is lost or sent twice."""
    tokens = [e.scratch("token.old"), e.scratch("token.new")]
    for token in tokens:
        e.write(token, os.path.basename(token))

    def by_token(handler):
        handler.give(200 if handler.headers["Authorization"] == "Bearer token.new" else 401)

    for spool in (None, e.scratch("spool")):
        with Server((), by_token) as server, \
                Sink(server.url, f"bearer={tokens[0]}", "slow=36000000", spool=spool) as sink:
            sink.put(2)
            sink.wait(requests=1, failures=1)
            sink.send_request(f"bearer {tokens[0]}")
            sink.wait(requests=2, failures=2)
            sink.send_request(f"bearer {tokens[1]}")
            sink.wait(windows_sent=2, requests=4, failures=2, ambiguous=0, dropped=0)
            assert server.paths() == ["/0-0"] * 3 + ["/1-0"], server.paths()


# ---- connections ---------------------------------------------------------------------------------

def test_connections():
    """One for all; one that the server closes before it answers is not answered by a silent second try."""
    with Server() as server, Sink(server.url) as sink:
        sink.put(20, 2)
        sink.wait(windows_sent=20, ambiguous=0, failures=0)
        assert len(server.connections) == 1, server.connections

    def close(handler):
        """It took the request, and its answer was lost."""
        handler.server.accepted[handler.path] += 1
        handler.raw(b"")

    with Server([good, close, good, close]) as server, Sink(server.url) as sink:
        sink.put(4)
        stats = sink.wait(windows_sent=4, ambiguous=2, requests=6)
        assert len(server.arrived) == 6, server.paths()
        doubled = sum(server.accepted.values()) - len(server.accepted)
        assert doubled == stats["ambiguous"], (doubled, stats)


def test_pace():
    with Server() as server, Sink(server.url, f"rate={2 << 20}") as sink:
        begin = time.monotonic()
        sink.put(10, 1, 200 << 10)
        sink.wait(windows_sent=10)
        seconds = server.arrived[-1][3] - begin
        assert seconds > 0.35, seconds  # 1.8 MB at 2 MiB/s, half a second of it at once, until the last may begin
        server.check_bodies(200 << 10)


def test_a_proxy_of_the_environment():
    with Server() as proxy, Sink("http://collector.example:4040", http_proxy=proxy.url) as sink:
        sink.put(1)
        sink.wait(windows_sent=1)
        assert proxy.paths() == ["http://collector.example:4040/0-0"], proxy.paths()


def make_certificates(directory):
    """A CA, a certificate for 127.0.0.1 by it, one for another name by it, and a self-signed one."""
    script = """
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 \
            -subj /CN=test-ca 2>&1
        for name in IP:127.0.0.1 DNS:elsewhere.example; do
            file=${name%%:*}
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $file.key -out $file.csr \
                -subj /CN=server 2>&1
            echo subjectAltName=$name >$file.ext
            openssl x509 -req -in $file.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile $file.ext \
                -out $file.pem 2>&1
        done
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout self.key -out self.pem -days 2 \
            -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>&1
    """
    os.makedirs(directory)
    e.run("bash", "-ec", script, cwd=directory, check=0)


def test_certificates():
    directory = e.scratch("tls")
    make_certificates(directory)

    def serve(name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/{name}.pem", f"{directory}/{name}.key")
        return Server(context=context)

    ca = f"ca={directory}/ca.pem"
    for name, options in (("IP", ()), ("self", (ca,)), ("self", ()), ("DNS", (ca,))):
        with serve(name) as server, Sink(server.url, *options) as sink:
            sink.put(1)
            said = e.wait_for(lambda: sink.stats()["error"])  # pylint: disable=cell-var-from-loop
            assert re.search("SSL|certificate|CERT", said), said
            e.wait_for(lambda: sink.stats()["requests"] > 2)  # pylint: disable=cell-var-from-loop
            stats = sink.stats()
            assert stats["ambiguous"] == stats["dropped"] == stats["windows_sent"] == 0, stats
            assert not server.arrived
    with serve("IP") as server, Sink(server.url, ca) as sink:
        sink.put(3)
        sink.wait(windows_sent=3, failures=0)
        assert len(server.connections) == 1


def test_names():
    """A name server that says no, and one that says nothing: the end does not wait for it."""
    e.need_root()
    requested = []
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.253", 53))

    def answer():
        while True:
            question, client = names.recvfrom(512)
            requested.append(question)
            if b"nowhere" in question:  # NXDOMAIN
                names.sendto(question[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question[12:], client)

    threading.Thread(target=answer, daemon=True).start()
    for name, text in (("resolv.conf", "nameserver 127.0.0.253\noptions timeout:10 attempts:2\n"),
                       ("nsswitch.conf", "hosts: dns\n")):
        e.write(e.scratch(name), text)
    script = (f"mount --bind {e.scratch('resolv.conf')} /etc/resolv.conf; "
              f"mount --bind {e.scratch('nsswitch.conf')} /etc/nsswitch.conf; exec \"$@\"")
    wrap = ("unshare", "-m", "sh", "-ec", script, "sh")
    with Sink("http://nowhere.example:4040", wrap=wrap) as sink:
        sink.put(1)
        e.wait_for(lambda: "resolve host" in sink.stats()["error"])
        assert sink.end(100) < 4
    with Sink("http://silent.example:4040", wrap=wrap) as sink:
        sink.put(2)
        e.wait_for(lambda: any(b"silent" in question for question in requested))
        seconds = sink.end(100)
        print(f"a name server that hangs: ended after {seconds} s")
        assert seconds < 4, seconds
        spool = sink.spool
    assert len([f for f in os.listdir(spool) if f.endswith(".win")]) == 2
    with Server() as server, Sink(server.url, spool=spool) as sink:
        sink.wait(windows_sent=2, ambiguous=0)


# ---- outages and ends ----------------------------------------------------------------------------

def test_an_outage():
    """270 windows while no backend listens: none lost, none twice, and no memory. Then there is one."""
    with Server() as server, Sink(server.url, "most=100") as sink:
        sink.put(30, 1, 60000)
        sink.wait(windows_sent=30)
        server.check_bodies(60000)
        port = server.port
        before = sink.send_request("memory")["bytes"]
        server.__exit__()
        sink.put(270, 1, 60000)
        stats = sink.stats()
        assert stats["spool_windows"] == 270 and stats["windows_sent"] == 30, stats
        assert not stats["spool_failed"], stats
        e.wait_for(lambda: sink.stats()["failures"] > 3)
        during = sink.send_request("memory")["bytes"]
        with Server(port=port) as back:
            end = time.monotonic() + e.PATIENCE
            after = 0
            while sink.stats()["windows_sent"] < 300:
                after = max(after, sink.send_request("memory")["bytes"])
                assert time.monotonic() < end, sink.stats()
                time.sleep(0.02)
            sink.wait(windows_sent=300, dropped=0, windows_no_room=0, windows_too_old=0, spool_windows=0)
            expected = collections.Counter(f"/{n}-0" for n in range(30, 300))
            doubled = sum((collections.Counter(back.paths()) - expected).values())
            assert not expected - collections.Counter(back.paths()), "lost"
            assert doubled <= sink.stats()["ambiguous"], (doubled, sink.stats())
            for path, body, *_ in back.arrived[::50]:
                assert body == body_of(path, 60000)
        grown = max(during, after) - before
        print(f"memory: {before >> 10} kB before, {(during - before) >> 10} kB more during an outage of 270 windows, "
              f"{(after - before) >> 10} kB more when it is over; "
              f"{doubled} doubled, {sink.stats()['ambiguous']} ambiguous")
        if not e.SANITIZED:  # which keeps what was freed
            assert grown <= 2 << 20, grown


def test_the_end_during_a_push():
    """A server that does not answer: it ends in time, all windows stay, and the next one sends them."""
    def silent(handler):
        handler.raw(b"", 5)

    with Server(usual=silent) as server, Sink(server.url) as sink:
        sink.put(3, 2)
        e.wait_for(lambda: server.arrived)
        seconds = sink.end(100)
        print(f"a server that does not answer: ended after {seconds} s")
        assert seconds < 4 and "left behind" not in sink.errors(), seconds
        spool = sink.spool
    with Server() as server, Sink(server.url, spool=spool) as sink:
        sink.wait(windows_sent=3, ambiguous=1, windows_put=0)
        assert server.paths() == [f"/{n}-{r}" for n in range(3) for r in range(2)], server.paths()
        server.check_bodies(500)

    # one that answers within our patience: what is under way is finished, and nothing else begun
    with Server(usual=lambda h: (time.sleep(1.5), h.give(200))) as server, Sink(server.url) as sink:
        sink.put(3)
        e.wait_for(lambda: server.arrived)
        sink.end(20000)
        assert list(server.accepted) == ["/0-0"] == server.paths(), server.paths()
        spool = sink.spool
    with Server() as server, Sink(server.url, spool=spool) as sink:
        sink.wait(windows_sent=2, ambiguous=0)


def test_killed():
    """At random moments: what was accepted is not sent again, what is doubled was ambiguous."""
    accepted = collections.Counter()
    ambiguous = 0
    spool = e.scratch("killed")
    with Server(usual=lambda h: (time.sleep(0.002), h.give(200))) as server:
        for turn in range(6):
            with Sink(server.url, f"first={turn * 10}", spool=spool) as sink:
                sink.put(10, 3, 2000)
                count = len(server.arrived)
                # what is ambiguous is the first, and it is counted when there is a second
                e.wait_for(lambda: len(server.arrived) > count + 3 * turn + 1)  # pylint: disable=cell-var-from-loop
                ambiguous += sink.stats()["ambiguous"]
                sink.p.send_signal(signal.SIGKILL)
                sink.p.wait()
        time.sleep(0.1)
        with Sink(server.url, spool=spool) as sink:
            e.wait_for(lambda: sink.stats()["spool_windows"] == 0)
            stats = sink.stats()
            ambiguous += stats["ambiguous"]
            assert stats["torn_files"] == 0, stats
        accepted = collections.Counter(server.paths())
        server.check_bodies(2000)
    assert set(accepted) == {f"/{n}-{r}" for n in range(60) for r in range(3)}, accepted
    doubled = sum(accepted.values()) - len(accepted)
    print(f"killed 6 times: {len(accepted)} requests, {doubled} doubled, {ambiguous} ambiguous")
    assert doubled <= ambiguous <= 6, (doubled, ambiguous)


# ---- secrets -------------------------------------------------------------------------------------

def dumped_memory(pid):
    """What a core dump of a process would have."""
    found = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as smaps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in smaps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) .*", line)
            if match:
                begin, end, mode = int(match[1], 16), int(match[2], 16), match[3]
            if line.startswith("VmFlags:") and "w" in mode and " dd" not in line and end - begin < 1 << 30:
                memory.seek(begin)
                try:
                    found.append(memory.read(end - begin))
                except OSError:
                    pass  # the kernel's own pages
    return b"".join(found)


def test_secrets():
    """A server that repeats what it got, in every way; then all that is left is searched."""
    e.need_root()
    token, password = "tok-5aKs92hhQz81", "corr3ct-horse-b4ttery"
    files = {}
    for name, text in (("bearer", token), ("basic", f"user:{password}"), ("header", f"X-Key: {token}\n")):
        files[name] = e.scratch(f"secret.{name}")
        e.write(files[name], text)
    hold = threading.Event()

    def repeat(code):
        def answer(handler):
            echo = str(handler.headers)
            handler.give(code, echo.encode(), Location=f"http://{token}:{password}@h/{token}", X_Echo=token)
        return answer

    plan = [repeat(code) for code in (500, 503, 401, 307, 429)] + [
        raw(f"HTTP/1.1 {token}\r\n\r\n".encode()),
        lambda h: (hold.wait(60), h.give(400, f"denied: {password} {token} {h.headers}".encode()))]
    left = b""
    for option in ("bearer", "basic", "header"):
        hold.clear()
        with Server(plan) as server, Sink(server.url, f"{option}={files[option]}", "slow=20") as sink:
            sink.put(1)
            e.wait_for(lambda: len(server.arrived) >= len(plan))  # pylint: disable=cell-var-from-loop
            sent = server.arrived[-1][2]
            assert token in str(sent) or "dXNlcjpjb3JyM2N0" in str(sent), "it is sent"
            left += dumped_memory(sink.p.pid)
            hold.set()
            stats = sink.wait(rejected=1)
            assert "repeats the credentials" in stats["error"], stats
            left += dumped_memory(sink.p.pid) + sink.reported.encode() + sink.errors().encode()
            sink.end(100)
            left += dumped_memory(sink.p.pid)
            for name in os.listdir(sink.spool):
                left += e.read(os.path.join(sink.spool, name), "rb")
    assert len(left) > 1 << 20 and b"redirects" in left and b"HTTP 503" in left, len(left)
    for secret in (token, password, "dXNlcjpjb3JyM2N0LWhvcnNl"):
        for part in (secret, secret[:10], secret[-10:]):
            at = left.find(part.encode())
            assert at < 0, (part, left[at - 50:at + 50])


# ---- the rest ------------------------------------------------------------------------------------

def test_directories():
    """A directory gets whole files, and waits where it takes none."""
    target = e.scratch("windows")
    with Sink(target, "kind=directory") as sink:
        sink.put(5, 2, 3000)
        sink.wait(windows_sent=5, ambiguous=0)
        names = sorted(os.listdir(target))
        assert names == sorted(f"{n}-{r}" for n in range(5) for r in range(2)), names
        for name in names:
            assert e.read(os.path.join(target, name), "rb") == body_of(name, 3000)
        os.rename(target, target + ".away")
        sink.put(2)
        e.wait_for(lambda: "No such file" in sink.stats()["error"])
        os.rename(target + ".away", target)
        sink.wait(windows_sent=7, dropped=0)


def test_memory_alone():
    """Without a spool: the last windows are kept, and sent at the end as long as patience lasts."""
    with Server(usual=lambda h: (time.sleep(0.05), h.give(200))) as server:
        with Sink(server.url, "spool=/proc/no/such/place") as sink:
            sink.put(2)
            sink.wait(windows_sent=2, spool_failed=1)
            sink.put(3)
            sink.end(5000)
        assert sorted(server.accepted) == [f"/{n}-0" for n in range(5)], server.accepted


def probe(url, *options):
    p = subprocess.run([TOOL, f"url={url}", "probe=1", *options], capture_output=True, text=True, timeout=60,
                       env=ENVIRONMENT, check=False)
    return p.returncode, p.stdout


def test_without_libcurl():
    """It is loaded if there is a sink; if it is missing, the error names the package."""
    e.need_root()
    linked = e.run("ldd", e.SYSPROF, check=0).out
    assert "libmicrohttpd" in linked and "curl" not in linked, linked
    paths = {os.path.realpath(line.split()[-1]) for line in e.run("ldconfig", "-p", check=0).out.splitlines()
             if line.split()[0] == "libcurl.so.4"}
    assert paths
    hide = "; ".join(f"mount --bind /dev/null {path}" for path in paths)
    p = e.run("unshare", "-m", "sh", "-ec", f'{hide}; exec "$@"', "sh", TOOL, "url=http://127.0.0.1:1", check=1)
    assert "libcurl.so.4 cannot be loaded" in p.out and "libcurl4" in p.out, p


def test_probe():
    with Server([status(400, "no profiles"), good, status(401), lambda h: h.give(200, b"<html>", "text/html"),
                 status(503)]) as server:
        assert probe(server.url) == (0, ""), "a refusal is an answer"
        assert probe(server.url) == (0, "")
        for word in ("refuses us", "does not answer as", "takes nothing now"):
            code, said = probe(server.url)
            assert code == 1 and word in said and server.url in said, said
    code, said = probe(f"http://127.0.0.1:{e.free_port()}")
    assert code == 1 and "does not answer" in said and "onnect" in said, said
    code, said = probe("http://user:hunter2@host")
    assert code == 1 and "hunter2" not in said, said
    code, said = probe("/nowhere/at/all", "kind=directory")
    assert code == 1 and "/nowhere/at/all" in said, said
    assert probe(e.SCRATCH, "kind=directory") == (0, "")
    assert "probe" not in os.listdir(e.SCRATCH)


if __name__ == "__main__":
    e.main(globals())
