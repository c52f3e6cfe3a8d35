# SPDX-License-Identifier: BSD-2-Clause
"""What the agent costs and sends, beside 10,000 processes, busy programs, churn, an outage and a new binary.

Backends are the stand-ins of tests/e2e/backends. The OpenTelemetry eBPF profiler is measured beside it, at 20 Hz, where
OTEL_PROFILER is its command line.
"""
import collections
import glob
import http.server
import json
import os
import shutil
import statistics
import subprocess
import threading
import time

import workloads
from crowd import Execs
from full_host import full_host
from libagent import Agent, CpuShare, StandIn, Watch, peer
from libbench import (BUILD, Broken, BpfStats, CPUS, Counted, Nothing, Program, Runs, at_least, budget, pick, rounds_of, scratch,
                      spread, table, wait_until)
from loaded_host import loaded_host
from services import Services

SERVICES = 50
CPU_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
TICKS_TYPE = "process_cpu:samples:count:cpu:nanoseconds"
KB = 1000
MIB = 1 << 20


# ---- requests ------------------------------------------------------------------------------------

def kind_of(path):
    return {"/push.v1.PusherService/Push": "pyroscope", "/v1development/profiles": "otlp"}.get(path, "parca")


def check_sums(agent, server):
    """What the backend answers, and what the agent says it has sent: ((ticks, ns), (ticks, ns))."""
    def both():
        ticks = agent.metrics()["sysprof_samples_sent_total{sink=\"pyroscope:http://127.0.0.1:%d\"}" % server.port]
        totals = server.totals()
        return ticks, totals
    # not in the middle of a request
    before, totals = both()
    for _ in range(20):
        after, again = both()
        if before == after and totals == again:
            break
        before, totals = after, again
    sent = agent.sum("sysprof_cpu_sent_seconds_total", f":{server.port}\"")
    return (sum(totals[TICKS_TYPE].values()), sum(totals[CPU_TYPE].values())), (int(before), round(sent * 1e9)), totals


def requests():
    processes, windows, length = pick((10000, 6, 15), (1000, 3, 10))
    with Services(SERVICES, processes) as running, StandIn("pyroscope") as push, StandIn("parca") as parca, \
            StandIn("pyroscope") as otlp:
        sinks = (("pyroscope", push), ("parca", parca), ("otlp", otlp))
        with Agent(sinks=sinks, window=length) as agent:
            agent.wait_for_windows(windows + 1, 60 + 40 * windows)
            answered, said, totals = check_sums(agent, push)
            metrics = agent.metrics()
            logs = {name: server.log() for name, server in sinks}
    rows, notes = [], []
    for name, log in logs.items():
        good = [r for r in log if r["status"] == 200][1:]  # the first window has the start in it
        if len(good) < windows - 1 or len(good) != len(log) - 1:
            raise Broken(f"{name}: {[r['status'] for r in log]}")
        sizes = [r["bytes"] / KB for r in good]
        sent = metrics["sysprof_windows_total{sink=\"%s:http://127.0.0.1:%d\",result=\"sent\"}" %
                       (name, dict(sinks)[name].port)]
        each = len(log) / sent
        rows.append([name, f"{each:.2f}", spread(sizes, 1), spread([r["series"] for r in good]),
                     spread([r["samples"] for r in good])])
        notes.append(budget(f"{name}: requests a window", each, 1, "requests"))
        notes.append(budget(f"{name}: bytes a window, {SERVICES} services", statistics.median(sizes), 60, "kB", 1))
    ticks = said[0] / max(metrics["sysprof_session_windows_total{result=\"finished\"}"], 1)
    unknown = max(metrics["sysprof_unknown_service_samples_total"],
                  sum(v for name, v in totals[TICKS_TYPE].items() if name in ("", "unknown", "unknown_service")))
    notes += [budget("samples without a service", unknown, 0, "samples", 0),
              budget("ticks that the backend answers less those of the agent's books", abs(answered[0] - said[0]), 0, "ticks", 0),
              budget("CPU time that it answers less that of the books", abs(answered[1] - said[1]), 0, "ns", 0)]
    table(f"Requests of {len(rows)} sinks, {running.ready:,} processes of {SERVICES} services",
          [f"sysprof agent --sink pyroscope:URL --sink parca:URL --sink otlp:URL --window {length} --cpu 0 --memory 0"],
          ["sink", "requests a window", "kB a request", "series", "stacks"], rows,
          [f"{ticks:,.0f} ticks a window. Each process runs for 2 ms and sleeps, so hardly two ticks have the same stack.",
           f"The backend (a stand-in) answers {answered[0]:,} ticks and {answered[1] / 1e9:,.3f} s; the agent says "
           f"{said[0]:,} and {said[1] / 1e9:,.3f}."] +
          ([] if running.top else ["No control groups can be made here: services are distinguished by their programs."]) + notes)


# ---- an outage -----------------------------------------------------------------------------------

class Backend(http.server.BaseHTTPRequestHandler):
    """Takes everything, and counts how often."""

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen[self.path] += 1
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def outage():
    windows, before, size = 270, 30, 60000
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    port, server.seen = server.server_port, collections.Counter()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    spool = scratch("outage")
    os.makedirs(spool, exist_ok=True)
    tool = Program(os.path.join(BUILD, "tests/e2e/push_windows"), f"url=http://127.0.0.1:{port}", f"spool={spool}",
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def report(line):
        tool.p.stdin.write(f"{line}\n".encode())
        tool.p.stdin.flush()
        return json.loads(tool.p.stdout.readline() or b"{}")

    with tool:
        report(f"put {before} 1 {size}")
        wait_until(lambda: report("stats")["windows_sent"] == before, 60, "the first windows")
        at_first = report("memory")["bytes"]
        server.shutdown()
        server.server_close()
        report(f"put {windows} 1 {size}")
        waiting, during = report("stats"), report("memory")["bytes"]
        again = http.server.ThreadingHTTPServer(("127.0.0.1", port), Backend)
        again.seen = server.seen
        threading.Thread(target=again.serve_forever, daemon=True).start()
        begin = time.monotonic()
        wait_until(lambda: report("stats")["windows_sent"] >= before + windows, 120, "all windows")
        took, stats, at_last = time.monotonic() - begin, report("stats"), report("memory")["bytes"]
        report("free 1000")
    again.shutdown()
    again.server_close()
    lost = before + windows - len(server.seen)
    doubled = sum(count - 1 for count in server.seen.values())
    table(f"An outage of {windows} windows of {size // KB} kB, with a spool",
          ["push_windows url=URL spool=DIR (the agent's sink alone): put 30, the server ends, put 270, the server is back"],
          ["", "figure"],
          [["windows that waited", waiting["spool_windows"]], ["seconds until all were sent", f"{took:.1f}"],
           ["windows lost", lost], ["arrived twice", doubled], ["of them counted as ambiguous", stats["ambiguous"]],
           ["memory before, kB", f"{at_first // 1024:,}"], ["memory during the outage", f"{during // 1024:,}"],
           ["memory after it", f"{at_last // 1024:,}"]],
          [budget("outage: windows lost", lost, 0, "windows", 0),
           budget("outage: doubled, but not counted as ambiguous", max(doubled - stats["ambiguous"], 0), 0, "windows", 0),
           budget("outage: more memory", (max(during, at_last) - at_first) / MIB, 2, "MiB")])


# ---- a busy host ---------------------------------------------------------------------------------

def busy_host():
    settle, seconds, rounds = pick((25, 30, 3), (12, 12, 1))
    makers = {"nothing": Nothing, "sysprof agent, 97 Hz": Agent}
    otel = os.environ.get("OTEL_PROFILER")
    if otel:
        makers["OpenTelemetry, 20 Hz"] = lambda: peer(20)
    shares = {kind: Runs() for kind in ("processes", "bpf", "all")}
    pace = Runs()
    with workloads.Busy("clang", "node", "java", "chain") as busy, Counted("spin", CPUS[-1]) as work, \
            StandIn("pyroscope") as server, BpfStats() as stats:
        makers["sysprof agent, 97 Hz"] = lambda: Agent(sinks=[("pyroscope", server)], window=10)
        for _, name in rounds_of(rounds, list(makers)):
            with makers[name]() as profiler:
                if name == "nothing":
                    pace[name].append(work.ns_each(seconds)[1])
                    continue
                time.sleep(settle)
                with CpuShare(profiler, stats, profiler.programs()) as share:
                    pace[name].append(work.ns_each(seconds)[1])
                for kind, runs in shares.items():
                    runs[name].append(getattr(share, kind))
                if not profiler.running():
                    raise profiler.broken()
    agent = "sysprof agent, 97 Hz"
    rows = [[name, *(spread(shares[kind][name], 3) for kind in shares), spread(pace.percent_above(name, "nothing"), 2)]
            for name in makers if name != "nothing"]
    notes = [budget("agent on a busy host, BPF and children included", statistics.median(shares["all"][agent]), 0.5,
                    "% of one CPU", 3)]
    if otel:
        half = statistics.median(shares["all"]["OpenTelemetry, 20 Hz"]) / 2
        notes.append(budget("the same beside half of OpenTelemetry's at 20 Hz", statistics.median(shares["all"][agent]), half,
                            "% of one CPU", 3))
    else:
        notes.append("The OpenTelemetry profiler is not here: OTEL_PROFILER='COMMAND -samples-per-second={hz} …' measures it.")
    table(f"A busy host, % of one CPU over {seconds} s after {settle} s ({rounds} rounds), beside {busy.names()}",
          ["sysprof agent --sink pyroscope:URL --window 10 --cpu 0 --memory 0 (nothing is shed)",
           "its control group's CPU time, and run_time_ns of its programs"],
          ["", "processes", "BPF", "both", "a spinning process, % slower"], rows, notes)


# ---- memory --------------------------------------------------------------------------------------

def memory():
    seconds = pick(240, 40)
    with workloads.Busy("clang", "node", "java") as busy, StandIn("pyroscope") as server, \
            Execs(1000) as execs, \
            Agent("--cpu", "0.5%", "--memory", "100M", sinks=[("pyroscope", server)], window=10) as agent:
        begin, before = time.monotonic(), execs.count()
        with Watch(agent.costs.own_mib) as own:
            time.sleep(seconds)
        rate = (execs.count() - before) / (time.monotonic() - begin)
        peak, metrics = agent.costs.memory_mib("peak"), agent.metrics()
    first, second = own.halves()
    level = metrics["sysprof_budget_level"]
    unknown = metrics["sysprof_unknown_service_samples_total"]
    table(f"Memory, MiB, over {seconds} s beside {busy.names()} and {rate:,.0f} execs a second",
          ["sysprof agent --sink pyroscope:URL --window 10 --cpu 0.5% --memory 100M, in a control group of its own"],
          ["", "figure"],
          [["peak of the group, pages of files that it has read included", f"{peak:.0f}"],
           ["its own and the kernel's for it, most in the first half", f"{first:.0f}"],
           ["the same in the second half", f"{second:.0f}"],
           ["most that it says itself", f"{metrics['sysprof_memory_used_bytes'] / MIB:.0f}"],
           ["steps of the budget that are taken", f"{level:.0f} of {metrics['sysprof_budget_levels']:.0f}"]],
          [budget("memory.peak beside clang, node, java and 1,000 execs a second", peak, 100, "MiB", 0),
           budget("second half more than the first", second - first, 0, "MiB", 1),
           budget("samples without a service beside that", unknown, 0, "samples", 0),
           at_least("programs a second beside it", rate, 1000, "programs", 0)])


# ---- a new binary --------------------------------------------------------------------------------

def big_program():
    """A program of 100 MB or as near as there is one, that runs JavaScript."""
    found = [path for path in glob.glob("build/runtimes/*/bin/*") + glob.glob(os.path.join(BUILD, "runtimes/*/bin/*")) +
             [shutil.which("node") or ""] if os.path.basename(path) in ("node", "bun") and os.path.exists(path)]
    if not found:
        raise Broken("there is no large program: make build/runtimes/stamp")
    return min(found, key=lambda path: abs(os.path.getsize(path) - 100 * 10**6))


def renamed(path, serial):
    """A copy with another build-id, which is in no cache."""
    copy = scratch(f"new-binary-{serial}")
    shutil.copyfile(path, copy)
    os.chmod(copy, 0o755)
    with open(copy, "r+b") as f:
        head = f.read(1 << 20)
        at = head.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
        if at < 0:
            raise Broken(f"{path} has no build-id where one is looked for")
        f.seek(at + 16)
        f.write(os.urandom(20))
    return copy


def for_files(agent):
    return sum(agent.sum("sysprof_agent_cpu_seconds_total", f'part="{part}"')
               for part in ("table_builder", "symbolizer", "readers"))


def one_new_binary(path, serial):
    """CPU seconds more, those of them for files, MiB more, % of a CPU before.

    One copy runs already when another one begins.
    """
    copies = [renamed(path, 2 * serial), renamed(path, 2 * serial + 1)]
    with StandIn("pyroscope") as server, Agent(sinks=[("pyroscope", server)], window=10) as agent, \
            Program(copies[0], "-e", workloads.NODE, cpus={CPUS[-1]}):
        def measure(windows):
            """CPU seconds, those of them for files as the agent has them, and the time, until so many more windows were sent."""
            cpu, files, at = agent.costs.cpu_ns(), for_files(agent), time.monotonic()
            agent.wait_for_windows(agent.sent() + windows, 120)
            return (agent.costs.cpu_ns() - cpu) / 1e9, for_files(agent) - files, time.monotonic() - at

        measure(2)  # the first copy has been read
        cpu, files, took = measure(2)
        rate, file_rate, base = cpu / took, files / took, agent.costs.own_mib()
        with Watch(agent.costs.own_mib) as own, Program(copies[1], "-e", workloads.NODE, cpus={CPUS[0]}):
            cpu, files, took = measure(pick(4, 3))
        name = os.path.basename(copies[1])
        if not server.totals()[TICKS_TYPE].get(name):
            raise Broken(f"{name} is not in what was sent")
    for copy in copies:
        os.unlink(copy)
    return cpu - rate * took, files - file_rate * took, max(own.seen) - base, 100 * rate


def new_binary():
    rounds, path = pick(3, 1), big_program()
    figures = [one_new_binary(path, i) for i in range(rounds)]
    cpu, files, memory_more, steady = ([f[k] for f in figures] for k in range(4))
    size = os.path.getsize(path) / 1e6
    table(f"A new binary of {size:.0f} MB ({os.path.basename(path)}) that starts to run ({rounds} rounds)",
          ["a copy with another build-id, for some windows; less what the agent used before in the same time"],
          ["", "figure"],
          [["CPU s more", spread(cpu, 2)], ["of it for tables, symbols and opening files", spread(files, 3)],
           ["MiB more at most", spread(memory_more, 1)],
           ["% of a CPU before it", spread(steady, 2)]],
          [budget("a new binary of 100 MB, the greater of the two", max(statistics.median(cpu), statistics.median(files)), 1,
                  "s of CPU"),
           budget("a new binary of 100 MB, memory", statistics.median(memory_more), 32, "MiB", 1)])


PARTS = {"requests": requests, "outage": outage, "busy": busy_host, "loaded": loaded_host, "memory": memory,
         "binary": new_binary, "full": full_host}


def agents():
    """All of them but the full host, which takes the whole machine for ten minutes; or those that AGENT_PARTS names."""
    wanted = os.environ.get("AGENT_PARTS", "").split() or [name for name in PARTS if name != "full"]
    failed = []
    for name in wanted:
        try:
            PARTS[name]()
        except (Broken, OSError, subprocess.SubprocessError, KeyError, ValueError) as err:
            failed.append(f"{name}: {err!r}")
            print(f"\n== agent, {name}: COULD NOT BE MEASURED: {err!r}", flush=True)
    if failed:
        raise Broken("; ".join(failed))
