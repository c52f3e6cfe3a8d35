#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-static.py: the portable program where there is nothing but the kernel. `make check-static` builds and runs it.

In a root directory without a C library it records, and pushes to a server whose name is only in DNS, over TLS, with the
certificates where one distribution or another has them. The network is a namespace of its own. As root.
"""
import ctypes
import fcntl
import gzip
import http.server
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2e"))
import libe2e as e  # pylint: disable=wrong-import-position

CHAIN = ("outer", "middle", "inner", "leaf")
NAME = "profiles.example"
CLONE_NEWNET, SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8913, 0x8914, 1
ENTER = """
for place in proc sys dev; do mkdir -p "$1/$place"; mount --rbind "/$place" "$1/$place"; done
exec chroot "$@"
"""


def root_directory(name):
    """With the program and a place for what it writes."""
    root = e.scratch(name)
    for directory in "bin", "tmp", "etc":
        os.makedirs(f"{root}/{directory}", exist_ok=True)
    shutil.copy(e.SYSPROF, root + "/bin/sysprof")
    return root


def inside(root, *command):
    return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", ENTER, "sh", root, "/bin/sysprof", *command]


def own_network():
    """For this process and its children from now on: a loopback interface alone."""
    assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16xh14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[0]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


class Names(threading.Thread):
    """Has one name: its answer to A is 127.0.0.1, to anything else nothing."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.requested = []

    def run(self):
        while True:
            query, address = self.socket.recvfrom(4096)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            question, kind = query[12:at + 5], query[at + 2]
            self.requested.append(".".join(labels))
            known = self.requested[-1] == NAME
            answer = struct.pack("!HHHIH4s", 0xc00c, 1, 1, 60, 4, bytes([127, 0, 0, 1])) if known and kind == 1 else b""
            head = query[:2] + struct.pack("!HHHHH", 0x8180 | (0 if known else 3), 1, bool(answer), 0, 0)
            self.socket.sendto(head + question + answer, address)


class Server(http.server.ThreadingHTTPServer):
    """Takes what is pushed."""
    daemon_threads = True

    def __init__(self, place):
        self.pushed = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.server.pushed.append((self.path, self.headers.get("Content-Encoding"), body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_GET = do_POST  # pylint: disable=invalid-name

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.certificate = place + "/certificate.pem"
        e.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + NAME,
              "-addext", "subjectAltName=DNS:" + NAME, "-keyout", place + "/key.pem", "-out", self.certificate, check=0)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, place + "/key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):  # a client that does not trust us
        pass

    def url(self):
        return f"parca:https://{NAME}:{self.server_address[1]}"


def put(root, path, text):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    with open(root + path, "w", encoding="utf-8") as f:
        f.write(text)


# ---- the cases ----------------------------------------------------------------------------------

def test_it_is_static():
    headers = e.run("readelf", "-lW", e.SYSPROF, check=0).out
    assert "INTERP" not in headers, headers
    assert "NEEDED" not in e.run("readelf", "-dW", e.SYSPROF, check=0).out
    said = e.sysprof("--version", check=0).out
    print(said, f"{os.path.getsize(e.SYSPROF) >> 20} MB")
    assert "static: without debuginfod" in said, said


def test_no_name_is_defined_twice():
    """Of two definitions in archives the linker takes the first, and says nothing."""
    def names(path):
        out = e.run("nm", "-g", "--defined-only", path).out
        return {fields[2] for fields in map(str.split, out.splitlines()) if len(fields) == 3}

    build = os.path.dirname(e.SYSPROF)
    ours = names(build + "/libsysprof-read.a") | names(build + "/libsysprof-record.a")
    assert len(ours) > 500, len(ours)
    archives = [f"{build}/libs/lib/lib{n}.a" for n in ("bpf", "cjson", "microhttpd", "curl")]
    for name in "dw", "elf", "seccomp", "cap", "bz2", "lzma", "inih", "iberty", "ssl", "crypto", "z", "c", "m":
        archives.append(e.run("cc", f"-print-file-name=lib{name}.a", check=0).out.strip())
    for archive in archives:
        both = names(archive) & ours
        assert not both, (archive, both)


def test_recording_without_a_c_library():
    """Its own stacks and those of a program outside, whose files are found through its root."""
    e.need_root()
    root = root_directory("bare")
    with e.Fixture("chain-no-fp", "-t", "1", "60") as program:
        program.wait_facts("start")
        result = e.run(*inside(root, "record", "-p", program.pid, "-d", "2", "-o", "/tmp/chain.folded",
                               "-o", "/tmp/chain.sysprof", "-o", "/tmp/chain.pb.gz"), check=0)
    print(result.err)
    rows = [r for r in e.folded(root + "/tmp/chain.folded") if not e.kernel_part(r[0])]
    assert e.total(rows) >= 20 and e.share(rows, lambda f: e.has_chain(f, *CHAIN)) >= 0.9, rows
    e.run(*inside(root, "convert", "/tmp/chain.sysprof", "-o", "/tmp/again.folded"), check=0)
    with open(root + "/tmp/chain.folded", "rb") as a, open(root + "/tmp/again.folded", "rb") as b:
        assert a.read() == b.read()
    check = e.run(*inside(root, "check")).out
    assert "map-files" in check and not re.search(r"no .*map-files", check), check


def test_pushes_by_name_over_tls():
    e.need_root()
    own_network()
    names, root = Names(), root_directory("pushing")
    names.start()
    server = Server(e.SCRATCH)
    put(root, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
    # modules of another C library: whoever loads one has lost
    put(root, "/etc/nsswitch.conf", "hosts: mymachines resolve [!UNAVAIL=return] myhostname dns\npasswd: systemd\n")
    for module in "mymachines", "resolve", "myhostname", "dns", "files", "systemd":
        put(root, f"/lib/x86_64-linux-gnu/libnss_{module}.so.2", "no library")
    for variable in [v for v in os.environ if v.lower().endswith("_proxy") or v == "SSL_CERT_FILE"]:
        del os.environ[variable]
    check = e.run(*inside(root, "agent", "--check", "--sink", server.url()))
    print(check)
    assert "certificate" in check.out and check.status == 1, check
    assert NAME in names.requested, names.requested
    for place in ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                  "/etc/ssl/cert.pem"):
        put(root, place, open(server.certificate, encoding="utf-8").read())
        check = e.run(*inside(root, "agent", "--check", "--sink", server.url()))
        assert check.status == 0, (place, check)
        os.unlink(root + place)
    put(root, "/etc/ssl/cert.pem", open(server.certificate, encoding="utf-8").read())
    before = len(server.pushed)
    log = open(e.scratch("agent.log"), "w+", encoding="utf-8")
    p = subprocess.Popen(inside(root, "agent", "--sink", server.url(), "--window", "10", "--listen", "none"),
                         stdout=log, stderr=log)
    try:
        e.wait_for(lambda: len(server.pushed) > before or p.poll() is not None, 60, "a window")
        p.send_signal(signal.SIGTERM)
        assert p.wait(timeout=30) == 0
    finally:
        p.kill()
        log.seek(0)
        print(log.read())
    path, encoding, body = server.pushed[before]
    print(path, encoding, len(body))
    assert len(gzip.decompress(body) if encoding == "gzip" else body) > 1000, (path, encoding, len(body))


e.main(globals())
