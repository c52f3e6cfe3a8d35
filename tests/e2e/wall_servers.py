#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Parked threads (docs/WALL.md) of real servers: idle they are all parked; what holds a client up is not."""
import glob
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import libe2e as e


def need(program):
    e.need_root()
    features = json.loads(e.sysprof("check", "--json").out)["features"]
    if not [f for f in features if f["name"] == "visits" and f["available"]]:
        raise e.Skip("this kernel has no visits")
    found = shutil.which(program)
    if not found:
        raise e.Skip(f"no {program}")
    return found


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def threads_of(pid, seconds=3):
    """Rows by thread: those that were visited for most of the time."""
    path = e.scratch(f"{pid}.sysprof")
    e.record("--wall", "--wall-cpu", "10%", "-d", seconds, "-p", pid, "-o", path)
    rows = json.loads(e.sysprof("report", path, "--wall", "--by", "thread", "--json", "--top", 10000).out)["rows"]
    return [row for row in rows if row["ns"] > seconds * 0.8e9]


def idle(command, port, least, **options):
    with e.Background(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options) as server:
        if port:
            e.wait_for(lambda: answers(port), what=command[0])
        time.sleep(1)
        rows = threads_of(server.pid)
        server.p.terminate()
    return rows, [row for row in rows if not row.get("parked")], least


def check_idle(rows, others, least):
    assert len(rows) >= least and not others, (len(rows), others)


def test_redis():
    redis, port = need("redis-server"), e.free_port()
    check_idle(*idle((redis, "--port", str(port), "--save", "", "--dir", e.SCRATCH), port, 4))


@e.long
def test_nginx():
    """The master waits for signals, the workers for connections."""
    nginx, port, conf = need("nginx"), e.free_port(), e.scratch("nginx.conf")
    temporary = "".join(f"{kind}_temp_path {e.scratch(kind)}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    e.write(conf, f"daemon off; user root; worker_processes 2; pid {e.scratch('nginx.pid')}; error_log {e.scratch('nginx.log')};\n"
            f"events {{}} http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; }} }}\n")
    rows, others, _ = idle((nginx, "-c", conf, "-p", e.SCRATCH), port, 3)
    # sigsuspend is no state of its own
    assert len(rows) >= 3 and len(others) <= 1, (rows, others)


@e.long
def test_node():
    """Its loop, and the threads of its pools."""
    node, port = need("node"), e.free_port()
    check_idle(*idle((node, "-e", f"require('http').createServer((q, r) => r.end('x')).listen({port}, '127.0.0.1')"), port, 4))


@e.long
def test_gunicorn():
    """The workers of sync look around once in a while, the arbiter as well."""
    gunicorn, port, app = need("gunicorn"), e.free_port(), e.scratch("app.py")
    e.write(app, "def app(environ, start):\n    start('200 OK', [])\n    return [b'x']\n")
    check_idle(*idle((gunicorn, "-w", "2", "-b", f"127.0.0.1:{port}", "--chdir", e.SCRATCH, "app:app"), port, 3))


JAVA = """
import java.util.concurrent.*;
public class Pool {
    public static void main(String[] a) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 4; i++) pool.submit(() -> { Thread.sleep(1); return 0; });
        Thread.sleep(60000);
    }
}
"""


@e.long
def test_java():
    """A pool without work, and all the threads of the JVM itself."""
    java, source = need("java"), e.scratch("Pool.java")
    e.write(source, JAVA)
    with e.Background(java, "-XX:TieredStopAtLevel=1", source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as jvm:
        time.sleep(8)
        rows = threads_of(jvm.pid)
        jvm.p.kill()
    pool = [row for row in rows if row["thread"].startswith("pool-1-thread")]
    assert len(pool) == 4 and all(row.get("parked") for row in pool), rows
    assert len([row for row in rows if not row.get("parked")]) <= 1, [row for row in rows if not row.get("parked")]


@e.long
def test_postgres():
    """Idle, its processes wait for connections or time. Sessions that write wait for clients, the log and each other."""
    bin_ = next((path for path in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True) if os.path.exists(path + "/pgbench")), None)
    if not bin_ or not shutil.which("runuser") or "postgres" not in [user.pw_name for user in pwd.getpwall()]:
        raise e.Skip("no postgres")
    need("runuser")
    port, base = e.free_port(), tempfile.mkdtemp(prefix="sysprof-pg")
    shutil.chown(base, "postgres")
    user = ("runuser", "-u", "postgres", "--")
    try:
        e.run(*user, bin_ + "/initdb", "-D", base + "/data", "-A", "trust", "-N", check=0)
        with e.Background(*user, "sh", "-c", 'echo $$; exec "$@"', "sh", bin_ + "/postgres", "-D", base + "/data", "-k", base, "-p", port,
                          stderr=subprocess.DEVNULL) as server:
            main = int(server.p.stdout.readline())
            e.wait_for(lambda: answers(port), what="postgres")
            time.sleep(1)
            rows = threads_of(main)
            assert len(rows) >= 4 and all(row.get("parked") for row in rows), rows
            at = ("-h", base, "-p", port, "postgres")
            e.run(*user, bin_ + "/pgbench", "-i", "-q", *at, check=0)
            with e.Background(*user, bin_ + "/pgbench", "-c", "4", "-T", "6", "-n", *at):
                time.sleep(1)
                rows = threads_of(main)
            os.kill(main, signal.SIGINT)
            server.p.wait(timeout=30)
        busy = [row for row in rows if not row.get("parked")]
        assert len(busy) >= 4, rows
    finally:
        shutil.rmtree(base, ignore_errors=True)


e.main(globals())
