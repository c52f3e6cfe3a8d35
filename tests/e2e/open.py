#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized
"""sysprof open: what is served, to which clients, and how all others are refused; record --open."""
import gzip
import http.client
import http.server
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import urllib.parse

from libbrowser import Browser, PageError
from libe2e import (GOLDEN, SYSPROF, Background, children_of, fixture, main, need_root, quick, read, record, run,
                    scratch, status_of, sysprof, wait_for, write)

RECORDING = os.path.join(GOLDEN, "containers.sysprof")
NOBODY = 65534
QUIET = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": "", "SUDO_UID": "",
         "SUDO_GID": "", "BROWSER": "", "PROFILER_URL": ""}


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if k not in QUIET}
    env.update(changes)
    return env


class Server(Background):
    """A running server: `page` and `profiler` are the addresses that it printed."""
    count = 0

    def __init__(self, *args, changes=None, what="all formats:", stdin=subprocess.DEVNULL):
        Server.count += 1
        self.log = scratch(f"open.{Server.count}")
        with open(self.log, "w", encoding="utf-8") as err:
            super().__init__(SYSPROF, *(args or ("open", RECORDING)), stderr=err,
                             stdin=stdin, stdout=subprocess.DEVNULL, env=environment(**(changes or {})))
        try:
            wait_for(lambda: what in self.said() or self.p.poll() is not None, what="the server")
            assert self.p.poll() is None, self.said()
        except BaseException:
            self.__exit__()
            raise
        self.page = re.search(r"(http://127\.0\.0\.1:\d+/\w+/)\n", self.said())[1]
        self.profiler = re.search(r"Firefox Profiler: +(\S+)", self.said())
        parts = urllib.parse.urlsplit(self.page)
        self.port, self.token = parts.port, parts.path.strip("/")

    def said(self):
        return read(self.log)

    def request(self, method, name, body=None, headers=None, connection=None):
        """Below the token: status, headers, body."""
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, f"/{self.token}/{name}", body, headers or {})
        answer = c.getresponse()
        data = answer.read()
        if not connection:
            c.close()
        return answer.status, dict(answer.getheaders()), data

    def get(self, name):
        status, headers, body = self.request("GET", name)
        assert status == 200, (name, status, headers)
        return headers, body

    def raw(self, data):
        """The bytes that come back to these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            try:
                s.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer = b""
            while True:
                try:
                    piece = s.recv(65536)
                except ConnectionResetError:
                    break
                if not piece:
                    break
                answer += piece
        return answer

    def answers(self):
        headers, body = self.get("formats")
        assert b"Firefox Profiler" in body
        return headers

    def send_request(self, name, **request):
        status, headers, body = self.request("POST", name, json.dumps(request))
        assert status == 200 and headers["Content-Type"] == "application/json"
        assert headers["Access-Control-Allow-Origin"] == "*"
        return json.loads(body)

    def end(self, number=signal.SIGINT):
        self.signal(number)
        assert self.p.wait(20) == 0, self.said()


@quick
def test_files():
    """The page, the profile and every format, as convert writes them, with the headers they need."""
    with Server() as server:
        headers, page = server.get("")
        assert headers["Content-Type"].startswith("text/html")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        headers, profile = server.get("profile.json")
        assert headers["Content-Type"] == "application/json"
        assert headers["Content-Encoding"] == "gzip"
        run(SYSPROF, "convert", RECORDING, "-o", scratch("x.json"), check=0)
        assert gzip.decompress(profile) == read(scratch("x.json"), "rb")
        headers, formats = server.get("formats")
        for name in ("Access-Control-Allow-Origin", "*"), ("Cache-Control", "no-store"), \
                ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"):
            assert headers[name[0]] == name[1], headers
        names = re.findall(r'<a href="(profile\.[\w.]+)" download>', formats.decode())
        assert {"profile.json.gz", "profile.cpuprofile", "profile.folded", "profile.txt"} <= \
            set(names), names
        for name in names:
            headers, body = server.get(name)
            assert headers["Content-Disposition"] == f'attachment; filename="{name}"'
            assert "Content-Encoding" not in headers
            # one thread a file: a pipe gets the busiest alone
            made = subprocess.run([SYSPROF, "convert", RECORDING, "-o", scratch(name)],
                                  check=True, capture_output=True)
            assert body == read(scratch(name), "rb"), (name, made)
        # HEAD, and several requests of one connection
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for _ in range(3):
            status, headers, body = server.request("HEAD", "profile.json", connection=connection)
            assert status == 200 and not body and int(headers["Content-Length"]) == len(profile)
            assert server.request("GET", "profile.txt", connection=connection)[0] == 200
        connection.close()
        assert server.request("GET", "")[2] == page
        # the address for the Firefox Profiler is what its own loader takes apart
        url = urllib.parse.urlsplit(server.profiler[1])
        assert url.netloc == "profiler.firefox.com"
        assert urllib.parse.unquote(url.path) == f"/from-url/{server.page}profile.json/"
        assert urllib.parse.parse_qs(url.query) == {"symbolServer": [server.page[:-1]]}
        server.end()


@quick
def test_weights():
    """Weights are not called samples, and no time is made up."""
    with open(scratch("weights.folded"), "w", encoding="utf-8") as file:
        file.write("# weights: 5000 ns of CPU time\na;b 4\na;c 3\n")
    with Server("open", scratch("weights.folded")) as server:
        formats = server.get("formats")[1].decode()
        assert "<p>weights, whose number of samples is unknown</p>" in formats, formats
        server.end()


def test_preflight():
    requested = {"Origin": "https://profiler.firefox.com", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "content-type,x-a",
             "Access-Control-Request-Private-Network": "true"}
    with Server() as server:
        for name in "profile.json", "source/v1", "nothing":
            status, headers, body = server.request("OPTIONS", name, headers=requested)
            assert status == 204 and not body
            assert headers["Access-Control-Allow-Origin"] == "*"
            assert headers["Access-Control-Allow-Headers"] == "content-type,x-a"
            assert headers["Access-Control-Allow-Private-Network"] == "true"
            assert "POST" in headers["Access-Control-Allow-Methods"]
            assert headers["Access-Control-Max-Age"] == "86400"
        requested["Access-Control-Request-Headers"] = "a<script>"
        assert "Access-Control-Allow-Headers" not in server.request("OPTIONS", "",
                                                                    headers=requested)[1]
        # a client with the token gets the reason, and can read it
        for method, name, wanted in (("PUT", "profile.json", 405), ("DELETE", "", 405),
                                     ("POST", "", 405), ("GET", "source/v1", 405),
                                     ("GET", "nothing", 404), ("GET", "../formats", 404),
                                     ("GET", "/formats", 404), ("GET", "formats/", 404)):
            status, headers, _ = server.request(method, name)
            assert status == wanted, (method, name, status)
            assert headers["Access-Control-Allow-Origin"] == "*"
        server.end(signal.SIGTERM)


def test_strangers():
    """Without the token, or under another name: one answer to everything."""
    with Server() as server:
        host, token = f"127.0.0.1:{server.port}", server.token
        other = ("0" if token[0] != "0" else "1") + token[1:]
        requested = [("GET", "/", host), ("GET", "/favicon.ico", host), ("POST", "/", host),
                 ("PUT", "/x", host), ("OPTIONS", "/", host), ("OPTIONS", "*", host),
                 ("DELETE", "/profile.json", host), ("BREW", "/", host),
                 ("GET", f"/{other}/", host), ("GET", f"/{other}/profile.json", host),
                 ("GET", f"/{token[:-1]}/", host), ("GET", f"/{token}0/", host),
                 ("GET", f"/{token.upper()}x/", host), ("GET", f"//{token}/", host),
                 ("GET", f"/x/../{token}/", host), ("GET", f"/%2e/{token}/", host),
                 ("GET", f"/?/{token}/", host), ("GET", f"/../../{token}/", host),
                 ("GET", f"/%{ord(token[0]):02x}{token[1:]}/", host),
                 ("GET", "/" + "a" * 4000, host), ("GET", f"/{token}%00/", host)]
        for name in ("evil.example", f"evil.example:{server.port}", "127.0.0.1",
                     f"127.0.0.1:{server.port + 1}", "localhost",
                     f"{host}.evil.example", ""):
            requested.append(("GET", f"/{token}/profile.json", name))
            requested.append(("OPTIONS", f"/{token}/profile.json", name))
        requests = [f"{m} {path} HTTP/1.1\r\nHost: {name}\r\nOrigin: http://a.example\r\n\r\n"
                    for m, path, name in requested]
        requests.append(f"GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n")
        requests.append(f"GET /{token}/ HTTP/1.0\r\n\r\n")
        seen = set()
        for request in requests:
            answer = server.raw(request.encode())
            answer = re.sub(rb"Date: [^\r]*\r\n", b"", answer)
            assert b"Access-Control" not in answer and token.encode() not in answer, request
            seen.add(answer)
        assert len(seen) == 1, seen
        assert seen.pop().startswith(b"HTTP/1.1 404 ")
        # under all of its own names it is there
        for name in host, f"localhost:{server.port}", f"LOCALHOST:{server.port}", \
                f"[::1]:{server.port}":
            answer = server.raw(f"GET /{token}/ HTTP/1.1\r\nHost: {name}\r\n"
                                "Connection: close\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 200 "), answer
        server.end()


def test_too_much():
    """Requests without an end, and more connections than there may be: others are answered all the same."""
    with Server() as server:
        start = f"GET /{server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
        post = f"POST /{server.token}/source/v1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        huge = [b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n",
                start + b"X: " + b"a" * (1 << 20) + b"\r\n\r\n",
                start + b"X: a\r\n" * 100000 + b"\r\n",
                b"\0" * (1 << 20), b"\xff" * (1 << 20),
                post.encode() + b"Content-Length: 99999999999\r\n\r\n" + b"x" * (1 << 20),
                post.encode() + b"Transfer-Encoding: chunked\r\n\r\n"
                + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 256]
        for request in huge:
            answer = server.raw(request + b"\r\n\r\n")
            assert not answer.startswith(b"HTTP/1.1 2"), answer[:200]
            server.answers()
        too_long = server.raw(post.encode() + b"Content-Length: 65537\r\n\r\n")
        assert too_long.startswith(b"HTTP/1.1 413 "), too_long
        idle = []
        try:
            for i in range(400):
                s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                s.sendall(start[:i % 40])  # nothing, or the beginning of a request
                idle.append(s)
                if i % 100 == 99:
                    server.answers()
            assert "Max open files" in read(f"/proc/{server.pid}/limits")
            assert len(os.listdir(f"/proc/{server.pid}/fd")) < 200
            server.answers()
            server.end()
        finally:
            for s in idle:
                s.close()


def listening(pid):
    """The local addresses that the process listens on, as /proc/net/tcp writes them."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
        if found:
            inodes.add(found[1])
    addresses = []
    for name in "tcp", "tcp6", "udp", "udp6":
        if not os.path.exists(f"/proc/net/{name}"):
            continue
        for row in read(f"/proc/net/{name}").splitlines()[1:]:
            fields = row.split()
            if fields[9] in inodes and (fields[3] == "0A" or name.startswith("udp")):
                addresses.append(fields[1].split(":")[0])
    return addresses


def test_loopback_alone():
    with Server() as server:
        addresses = listening(server.pid)
        assert "0100007F" in addresses
        assert set(addresses) <= {"0100007F", "00000000000000000000000001000000"}, addresses
        result = sysprof("open", RECORDING, "--port", server.port)
        assert result.status == 1, result
        assert f"127.0.0.1:{server.port}" in result.err and "in use" in result.err
        assert "--port" in result.err
        port = server.port
        server.end()
    # what has just been closed can be had again
    with Server("open", RECORDING, "--port", port) as server:
        assert server.port == port
        server.answers()
        server.end()


def test_usage():
    for args, wanted in ((["open"], "no input"),
                         (["open", "a", "--port", "0"], "--port 0"),
                         (["open", "a", "--port", "65536"], "--port 65536"),
                         (["open", "a", "--port"], "requires a value"), (["open", "-Z"], "-Z")):
        result = sysprof(*args)
        assert result.status == 2 and wanted in result.err, (args, result)
    result = sysprof("open", "/nowhere/x.sysprof")
    assert result.status == 1 and "/nowhere/x.sysprof" in result.err, result


def browser_script(directory):
    """A browser that logs the user that starts it, and the address."""
    path = os.path.join(directory, "browser")
    write(path, "#!/bin/sh\n"
                 f"echo \"$(id -u) $(id -G) $HOME $*\" >{directory}/new\n"
                 f"mv {directory}/new {directory}/started\n")
    os.chmod(path, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    return path


def test_browser_and_user():
    """Under sudo the server and the browser are the user's, and the command line has no secret."""
    need_root()
    directory = scratch("for-all")
    os.mkdir(directory)
    os.chmod(directory, 0o1777)
    changes = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY), "DISPLAY": ":77",
               "BROWSER": f"/nowhere/browser:{browser_script(directory)} --new %s"}
    started = os.path.join(directory, "started")
    with Server(changes=changes) as server:
        wait_for(lambda: os.path.exists(started), what="the browser")
        uid, *_, option, url = read(started).split()
        assert int(uid) == NOBODY and option == "--new"
        assert server.token not in url and url.startswith(f"http://127.0.0.1:{server.port}/")
        entry = urllib.parse.urlsplit(url).path
        request = f"GET {entry} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n" \
            "Connection: close\r\n\r\n"
        assert f"Location: /{server.token}/\r\n".encode() in server.raw(request.encode())
        # it leads there once
        assert server.raw(request.encode()).startswith(b"HTTP/1.1 404 ")
        status = status_of(server.pid)
        assert status["Uid"].split() == [str(NOBODY)] * 4, status["Uid"]
        assert status["Gid"].split() == [str(NOBODY)] * 4, status["Gid"]
        assert "0" not in status["Groups"].split()
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        server.answers()
        server.end()
    os.unlink(started)
    for more in ({"DISPLAY": ""}, None):  # no display; --no-browser
        args = ("open", RECORDING) if more else ("open", RECORDING, "--no-browser")
        with Server(*args, changes={**changes, **(more or {})}) as server:
            server.answers()
            server.end()
    assert not os.path.exists(started)
    result = sysprof("open", RECORDING, env=environment(SUDO_UID="x", SUDO_GID="0"))
    assert result.status == 1 and "SUDO_UID" in result.err, result


@quick
def test_a_part_is_what_convert_makes_of_it():
    with Server("open", RECORDING, "--thread=app") as server:
        run(SYSPROF, "convert", RECORDING, "--thread=app", "-o", scratch("part.folded"), check=0)
        assert server.get("profile.folded")[1] == read(scratch("part.folded"), "rb")
        assert b"# filter: --thread=app: dropped" in server.get("profile.folded")[1]
        server.end()


@quick
def test_a_recording_that_comes_through_a_pipe():
    """`ssh host sudo sysprof record … -o sysprof:- | sysprof open -`, with sh in place of ssh."""
    need_root()
    recorded = ["sh", "-c", '"$0" record -q -d 1 -o sysprof:- -- "$1" 3', SYSPROF, fixture("loop")]
    with subprocess.Popen(recorded, stdout=subprocess.PIPE) as there, Server("open", "-", stdin=there.stdout) as server:
        there.stdout.close()
        assert server.get("profile.folded")[1].startswith(b"loop;")
        server.end()
    assert there.returncode == 0


def test_ssh():
    changes = {"SSH_CONNECTION": "192.0.2.7 51234 192.0.2.1 2222", "USER": "joe"}
    with Server(changes=changes, what="ssh -N") as server:
        assert f"ssh -N -L {server.port}:127.0.0.1:{server.port} -p 2222 joe@192.0.2.1\n" in \
            server.said()
        server.end()
    changes = {"SSH_CONNECTION": "192.0.2.7 1 `id` 22", "PROFILER_URL": "http://localhost:4242/"}
    with Server(changes=changes) as server:
        assert "ssh" not in server.said()
        assert server.profiler[1].startswith("http://localhost:4242/from-url/http%3A%2F%2F127.")
        server.end()


def test_record_open():
    """The files are written, COMMAND's status is kept, and the server is not root under sudo."""
    need_root()
    path = scratch("opened.sysprof")
    script = f"{fixture('chain')} 0.3; exit 7"
    changes = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    with Server("record", "--open", "-o", path, "--", "sh", "-c", script,
                changes=changes) as server:
        assert os.path.getsize(path) > 1000
        # what read files for the recording may take a moment to end
        wait_for(lambda: len(children_of(server.pid)) == 1, what="one child")
        (child,) = children_of(server.pid)
        assert set(listening(child)) and not listening(server.pid)
        status = status_of(child)
        assert status["Uid"].split() == [str(NOBODY)] * 4, status["Uid"]
        assert int(status["CapEff"], 16) == 0
        for fd in os.listdir(f"/proc/{child}/fd"):
            assert "bpf" not in os.readlink(f"/proc/{child}/fd/{fd}")
        assert b"chain" in gzip.decompress(server.get("profile.json")[1])
        server.signal(signal.SIGINT)
        assert server.p.wait(20) == 7, server.said()
        assert not os.path.exists(f"/proc/{child}")
    with Server("record", "-q", "--open", "-d", "0.2", "-o", path, "--", "sleep", "2",
                what="http://") as server:
        assert server.said() == server.page + "\n", server.said()
        server.end(signal.SIGTERM)


def test_sources():
    """The source view of the Firefox Profiler: files of the profile, and no others."""
    need_root()
    path = scratch("sources.sysprof")
    record("-o", path, "--", fixture("chain"), "0.3")
    with Server("open", path) as server:
        profile = json.loads(gzip.decompress(server.get("profile.json")[1]))
        shared = profile["shared"]
        names = {shared["stringArray"][i] for i in shared["sources"]["filename"]}
        (name,) = [n for n in names if n.endswith("/tests/fixtures/chain.c")]
        answer = server.send_request("source/v1", file=name, debugName="chain", debugId="0" * 33,
                            moduleOffset="0x1000")
        assert answer["source"] == read(name) and answer["file"] == name
        for other in "/etc/passwd", "/etc/shadow", name + "/../chain.c", "chain.c", "":
            answer = server.send_request("source/v1", file=other)
            assert "source" not in answer and "does not refer" in answer["error"], answer
        assert "error" in server.send_request("symbolicate/v5", jobs=[])
        assert "error" in server.send_request("asm/v1")
        assert_instructions(server, profile)
        server.end()


def assert_instructions(server, profile):
    """The assembly view: each function of the program that the recording has the code of, as objdump has it."""
    shared = profile["shared"]
    natives, names = shared["nativeSymbols"], shared["stringArray"]
    program = next(i for i, lib in enumerate(profile["libs"]) if lib["name"] == "chain")
    lib = profile["libs"][program]
    seen = 0
    for index, address in enumerate(natives["address"]):
        if natives["libIndex"][index] != program:
            continue
        size = natives["functionSize"][index]
        request = {"debugName": lib["debugName"], "debugId": lib["breakpadId"], "codeId": lib["codeId"],
                   "startAddress": hex(address), "size": hex(size or 1), "continueUntilFunctionEnd": not size}
        answer = server.send_request("asm/v1", **request)
        if "error" in answer:
            continue
        text = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={names[natives['name'][index]]}", fixture("chain"), check=0).out
        expected = [int(a, 16) for a in re.findall(r"^ *([0-9a-f]+):\t", text, re.M)]
        assert [int(answer["startAddress"], 16) + i[0] for i in answer["instructions"]] == expected, (answer, text)
        seen += 1
    assert seen, natives


def test_instructions_of_a_jit_compiler():
    """Versions of one function at one address: each is a native symbol with its own bytes, in which its frames are."""
    need_root()
    path = scratch("jit.sysprof")
    record("-o", path, "--", fixture("jitreuse"), "-d", "-n", 1, "-p", 200, "-f", scratch(""), 3)
    with Server("open", path) as server:
        profile = json.loads(gzip.decompress(server.get("profile.json")[1]))
        natives, frames = profile["shared"]["nativeSymbols"], profile["shared"]["frameTable"]
        jit = next(i for i, lib in enumerate(profile["libs"]) if lib["name"] == "[jit]")
        lib, numbers = profile["libs"][jit], []
        for index in range(natives["length"]):
            if natives["libIndex"][index] != jit:
                continue
            start, size = natives["address"][index], natives["functionSize"][index]
            answer = server.send_request("asm/v1", debugName=lib["debugName"], debugId=lib["breakpadId"], codeId=lib["codeId"],
                                         startAddress=hex(start), size=hex(size))
            assert int(answer["startAddress"], 16) == start and answer["instructions"][3][1] == "rdtsc", answer
            numbers.append(int(answer["instructions"][2][1].rsplit(" ", 1)[1], 0))
            places = [a - start for a, native in zip(frames["address"], frames["nativeSymbol"]) if native == index]
            assert places and all(0 <= place < size for place in places), places
        assert len(numbers) > 1 and len(set(numbers)) == len(numbers), numbers
        server.end()


class OtherSite(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href='data:,'><p>elsewhere")

    def log_message(self, *_):
        pass


def test_in_browser():
    """The page is quiet; a page of another origin can read what is under the token, and nothing else."""
    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherSite)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    with Server() as server, Browser() as browser:
        for name in "", "formats":
            page = browser.page(server.page + name)
            page.wait("document.body.innerText.length > 20")
            assert page.messages() == [], page.messages()
            assert all(url.startswith((server.page, "data:", "blob:"))
                       for url in page.requests()), page.requests()
        assert page.evaluate("document.querySelector('#profiler').href") == server.profiler[1]
        page = browser.page(f"http://127.0.0.1:{elsewhere.server_address[1]}/")
        version = page.evaluate(f"fetch('{server.page}profile.json').then(r => r.json())"
                                ".then(p => p.meta.preprocessedProfileVersion)")
        assert version == 66
        source = page.evaluate(f"fetch('{server.page}source/v1', {{method: 'POST', headers: "
                               "{'Content-Type': 'application/json'}, body: '{}'})"
                               ".then(r => r.json()).then(a => a.error)")
        assert "file" in source
        base = f"http://127.0.0.1:{server.port}/"
        for url in base, base + "0" * 40 + "/profile.json", base + server.token[:-1]:
            try:
                page.evaluate(f"fetch('{url}')")
                raise AssertionError(f"{url} could be read")
            except PageError as error:
                assert "Failed to fetch" in str(error)
        assert page.evaluate(f"fetch('{base}', {{mode: 'no-cors'}}).then(r => r.type)") == "opaque"
        server.end()
    elsewhere.shutdown()
    elsewhere.server_close()


main(globals())
