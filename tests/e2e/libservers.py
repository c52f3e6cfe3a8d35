# SPDX-License-Identifier: BSD-2-Clause
"""Real backends, on ports of their own on the loopback address, and their own APIs.

Pyroscope and the collector are those of backends/fetch.sh, in build/servers; `make test-servers` puts them there.
"""
import calendar
import contextlib
import glob
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import libe2e as e

SERVERS = os.path.join(os.path.dirname(e.BUILD), "build/servers")
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
PUSH = "/push.v1.PusherService/Push"


def free_ports(count):
    """Free ports."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def program(name):
    path = os.path.join(SERVERS, name)
    assert os.access(path, os.X_OK), f"{path} is not there: make test-servers builds it"
    return path


def post(url, body, timeout=60, **headers):
    """(status, Content-Type, body); 0 if no server listens."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=timeout) as answer:
            return answer.status, answer.headers.get("Content-Type", ""), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Content-Type", ""), error.read()
    except OSError as error:  # refused, reset
        return 0, "", str(error).encode()


def get(url, timeout=60):
    return post(url, None, timeout)


class Program:
    """A server; its output is in a file. It ends with the with block."""

    count = 0

    def __init__(self, name, *command, **options):
        Program.count += 1
        self.log = e.scratch(f"{name}.{Program.count}.log")
        with open(self.log, "ab") as log:
            self.p = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()

    def said(self):
        return e.read(self.log, errors="replace")

    def wait_until(self, condition, what, timeout=60):
        def holds():
            assert self.p.poll() is None, f"it has ended: {self.said()[-3000:]}"
            return condition()
        return e.wait_for(holds, timeout, what)

    def end(self, number=signal.SIGTERM, timeout=60):
        self.p.send_signal(number)
        return self.p.wait(timeout)


# ---- Pyroscope -----------------------------------------------------------------------------------

RINGS = ("ingester.lifecycler.addr", "distributor.ring.instance-addr", "compactor.ring.instance-addr",
         "store-gateway.sharding-ring.instance-addr", "overrides-exporter.ring.instance-addr",
         "query-frontend.instance-addr", "query-scheduler.ring.instance-addr")


def own_values(flame):
    """{name: value of its own} of a flame graph."""
    own = {}
    for level in flame.get("levels", []):
        values = level["values"]
        for i in range(0, len(values), 4):
            name, value = flame["names"][int(values[i + 3])], int(values[i + 2])
            if value:
                own[name] = own.get(name, 0) + value
    return own


class Pyroscope:
    """All of Grafana Pyroscope in one process. It can be stopped and started again, on the same port and data."""

    def __init__(self, *flags, tenant=None):
        self.flags, self.tenant, self.server = flags, tenant, None
        self.port, self.grpc, self.members = free_ports(3)
        self.data = e.scratch(f"pyroscope.{self.port}")
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self, *flags):
        """Until it takes profiles."""
        self.start_only(*flags)
        self.server.wait_until(lambda: get(self.url + "/ready")[0] == 200, "Pyroscope")
        self.server.wait_until(self.takes_profiles, "Pyroscope's ring")
        return self

    def start_only(self, *flags):
        os.makedirs(self.data, exist_ok=True)
        listening = [f"-server.http-listen-port={self.port}", f"-server.grpc-listen-port={self.grpc}",
                     f"-memberlist.bind-port={self.members}", "-server.http-listen-address=127.0.0.1",
                     "-server.grpc-listen-address=127.0.0.1", "-memberlist.bind-addr=127.0.0.1",
                     "-memberlist.advertise-addr=127.0.0.1", *(f"-{ring}=127.0.0.1" for ring in RINGS)]
        self.server = Program("pyroscope", program("pyroscope"), *listening, f"-pyroscopedb.data-path={self.data}",
                              "-usage-stats.enabled=false", "-self-profiling.disable-push=true",
                              "-ingester.min-ready-duration=0s", *self.flags, *flags, cwd=self.data)

    def takes_profiles(self):
        """It looks at a request, and does not find its ring empty."""
        return b"no profiles received" in self.push(b"")[2]

    def stop(self, number=signal.SIGTERM):
        self.server.end(number)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.server.__exit__()

    def push(self, body, content_type="application/proto", tenant=None, **headers):
        if tenant or self.tenant:
            headers["X-Scope-OrgID"] = tenant or self.tenant
        return post(self.url + PUSH, body, Content_Type=content_type, **headers)

    def send_request(self, method, tenant=None, **requested):
        """The answer to one question, from two hours ago to in ten minutes unless it says when."""
        now = int(time.time() * 1000)
        requested = {"start": now - 7200 * 1000, "end": now + 600 * 1000, **requested}
        headers = {"X-Scope-OrgID": tenant or self.tenant} if tenant or self.tenant else {}
        status, _, body = post(f"{self.url}/querier.v1.QuerierService/{method}", json.dumps(requested).encode(),
                               Content_Type="application/json", **headers)
        assert status == 200, (method, requested, status, body)
        return json.loads(body)

    def services(self, **when):
        return self.send_request("LabelValues", name="service_name", **when).get("names", [])

    def flame(self, kind=CPU, service=None, **when):
        """{function: own value} and their sum, of a service or of all."""
        selector = "{service_name=%s}" % json.dumps(service) if service else "{}"
        flame = self.send_request("SelectMergeStacktraces", profileTypeID=kind, labelSelector=selector, maxNodes=1 << 20,
                         **when).get("flamegraph", {})
        return own_values(flame), int(flame.get("total", 0))

    def total(self, kind=CPU, service=None, **when):
        return self.flame(kind, service, **when)[1]


# ---- the collector -------------------------------------------------------------------------------

class Requests(http.server.BaseHTTPRequestHandler):
    """Stores posted requests."""

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Backend(e.Listening):
    """The backend of a collector: it gets the requests that the collector makes."""

    def __init__(self):
        self.got = []
        super().__init__(("127.0.0.1", 0), Requests)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


def nanoseconds(text):
    """Since the epoch, of a time as Go prints it: 2026-11-22 20:45:36.743992054 +0000 UTC."""
    day, clock = text.split()[:2]
    seconds, _, fraction = clock.partition(".")
    whole = calendar.timegm(time.strptime(f"{day} {seconds}", "%Y-%m-%d %H:%M:%S"))
    return whole * 10**9 + int(fraction.ljust(9, "0"))


class Collector(Program):
    """An OpenTelemetry Collector with profiles switched on: it prints them, and passes them on."""

    def __init__(self, to):
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        config = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self.port}"}}}},
            "exporters": {"debug": {"verbosity": "detailed", "sampling_initial": 100000},
                          "otlp_http": {"endpoint": to, "compression": "none", "retry_on_failure": {"enabled": False},
                                        "sending_queue": {"enabled": False}}},
            "service": {"telemetry": {"metrics": {"level": "none"}},
                        "pipelines": {"profiles": {"receivers": ["otlp"], "exporters": ["debug", "otlp_http"]}}},
        }
        path = e.scratch("collector.yaml")
        e.write(path, json.dumps(config))  # which is YAML
        super().__init__("collector", program("otelcol-prof"), "--feature-gates=+service.profilesSupport",
                         "--config", path)
        self.wait_until(lambda: get(self.url + "/")[0] == 404, "the collector")

    def printed(self):
        """{start of the profile, ns: {service: sum of the values}}, as the debug exporter has it."""
        found, service, start = {}, None, None
        for line in self.said().splitlines():
            named = re.match(r"\s*-> service\.name: Str\((.*)\)$", line)
            begin = re.match(r"\s*Start time\s*: (.*)$", line)
            values = re.match(r"\s*Values: \[([-0-9 ]*)\]$", line)
            if line.startswith("ResourceProfiles #"):
                service = start = None
            elif named:
                service = named[1]
            elif begin:
                start = nanoseconds(begin[1])
            elif values:
                assert service is not None and start is not None, "values without a service or a time"
                sums = found.setdefault(start, {})
                sums[service] = sums.get(service, 0) + sum(map(int, values[1].split()))
        return found


# ---- Prometheus ----------------------------------------------------------------------------------

class Prometheus(Program):
    """Scrapes one target every second; `rules` is a file of alerts."""

    def __init__(self, target, rules):
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        path = e.scratch("prometheus.yaml")
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [rules],
                  "scrape_configs": [{"job_name": "sysprof", "static_configs": [{"targets": [target]}]}]}
        e.write(path, json.dumps(config))  # which is YAML
        e.run("promtool", "check", "config", path, check=0)
        super().__init__("prometheus", "prometheus", f"--config.file={path}", "--log.level=warn",
                         f"--storage.tsdb.path={e.scratch('prometheus.data')}", f"--web.listen-address=127.0.0.1:{self.port}")
        self.wait_until(lambda: get(self.url + "/-/ready")[0] == 200, "Prometheus")

    def send_request(self, path, **parameters):
        status, _, body = get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(body)
        assert status == 200 and answer["status"] == "success", (path, parameters, status, body)
        return answer["data"]

    def query(self, expression, **more):
        """[(labels, value)] of now."""
        data = self.send_request("query", query=expression, **more)
        assert data["resultType"] == "vector", data
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def value(self, expression, **more):
        """The one value; None if there is none."""
        rows = self.query(expression, **more)
        assert len(rows) < 2, (expression, rows)
        return rows[0][1] if rows else None


# ---- the agent -----------------------------------------------------------------------------------

def metric_of(text, name, **labels):
    """The value of one series; None if there is no such one yet."""
    for line in text.splitlines():
        head, _, value = line.rpartition(" ")
        got = re.match(r"(\w+)(?:\{(.*)\})?$", head)
        if got and got[1] == name and {f'{k}="{v}"' for k, v in labels.items()} <= set((got[2] or "").split(",")):
            return float(value)
    return None


class Agent(Program):
    """`sysprof agent` that sends to these sinks, and the same windows into a directory."""
    count = 0

    def __init__(self, *arguments, window=10, spool=None):
        Agent.count += 1
        (self.port,) = free_ports(1)
        self.out, self.spool = e.scratch(f"windows.{Agent.count}"), spool or e.scratch(f"spool.{Agent.count}")
        os.makedirs(self.out, exist_ok=True)
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__("agent", e.SYSPROF, "agent", "--spool", self.spool, "--listen",
                         f"127.0.0.1:{self.port}", "--window", str(window), *arguments, "--sink", f"dir:{self.out}")

    def metrics(self):
        status, _, body = get(self.url + "/metrics")
        return body.decode() if status == 200 else ""

    def wait_until_it_answers(self):
        return self.wait_until(self.metrics, "metrics")

    def metric(self, name, **labels):
        return metric_of(self.metrics(), name, **labels)

    def windows(self):
        """What the directory's lines say of each window, in order."""
        found = []
        for name in sorted(os.listdir(self.out)):
            if name.endswith(".json"):
                found.append(e.load_json(os.path.join(self.out, name)))
        return found

    def end_watched(self):
        """How long it takes to end, and how long all its threads and those of its helpers waited for a CPU meanwhile, in s."""
        begin, first, last = time.monotonic(), waits_below(self.p.pid), {}
        self.p.send_signal(signal.SIGTERM)
        while self.p.poll() is None:
            assert time.monotonic() < begin + 60, self.said()
            last.update(waits_below(self.p.pid))
            time.sleep(0.02)
        assert self.p.returncode == 0, self.said()
        return time.monotonic() - begin, sum(ns - first.get(tid, 0) for tid, ns in last.items()) / 1e9

    def wait_for_windows(self, count, timeout=90):
        self.wait_until(lambda: len(self.windows()) >= count, f"{count} windows", timeout)


def waits_below(pid):
    """{tid: ns for which it has waited for a CPU} of a program and of its children."""
    found = {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError, IndexError):
            found[task] = int(e.read(task + "/schedstat").split()[1])
            for child in e.read(task + "/children").split():
                found.update(waits_below(child))
    return found


def by_service(windows, field):
    """{service: sum} of windows."""
    sums = {}
    for window in windows:
        for service in window["services"]:
            name = service["labels"]["service_name"]
            sums[name] = sums.get(name, 0) + service[field]
    return {name: value for name, value in sums.items() if value}
