# SPDX-License-Identifier: BSD-2-Clause
"""The agent beside node, python3, java, clang in a loop and 100 execs a second, minute by minute: what it costs at full and at
least rate, and what it makes of its default budget."""
import os
import time

import workloads
from crowd import Execs
from libagent import Agent, CpuShare, StandIn, peer
from libbench import BpfStats, at_least, budget, empty_cache, pick, private_mounts, table

WORKLOADS = "node", "python", "java", "clang"
EXECS = 100  # a second
START = 20  # s


def unnamed(agent):
    """% of the frames."""
    return 100 * agent.sum("sysprof_frames_total", 'state="unnamed"') / max(1, agent.sum("sysprof_frames_total"))


class Minutes:
    """Of one profiler, from its start on: CPU shares of each minute, the rate at its end, and the peak of memory."""

    def __init__(self, profiler, stats, count, length):
        programs = profiler.programs()
        self.shares, self.hz, self.first = [], [], None
        for _ in range(count):
            with CpuShare(profiler, stats, programs) as share:
                self.wait(profiler, length)
            programs = programs or profiler.programs()
            self.shares.append(share)
            self.hz.append(profiler.metrics()["sysprof_sampling_hz"] if isinstance(profiler, Agent) else 20)
        if not profiler.running():
            raise profiler.broken()
        self.unnamed = unnamed(profiler) if isinstance(profiler, Agent) else 0
        self.peak = profiler.costs.memory_mib("peak")

    def wait(self, profiler, length):
        """The start is all that the profiler has used since its process began."""
        if self.first is None:
            time.sleep(min(START, length))
            self.first = profiler.costs.cpu_ns() / 1e9
            length -= min(START, length)
        time.sleep(length)

    def most(self, kind="all"):
        """Of the minutes after the first one, in which everything is new."""
        return max(getattr(share, kind) for share in self.shares[1:])

    def row(self, name):
        last = self.shares[-1]
        return [name, f"{self.first:.2f}", *(f"{getattr(last, kind):.2f}" for kind in ("processes", "bpf", "all")),
                f"{self.most():.2f}", " ".join(f"{hz:.0f}" for hz in self.hz), f"{self.unnamed:.2f}", f"{self.peak:.0f}"]


def runs(server):
    """{name: what starts it}"""
    def agent(*options):
        return lambda: Agent(*options, sinks=[("pyroscope", server)], window=10)

    made = {"97 Hz": agent("-F", 97), "19 Hz": agent("-F", 19),
            "default budget": agent("--cpu", "0.5%", "--memory", "100M")}
    return made | ({"OpenTelemetry, 20 Hz": lambda: peer(20)} if "OTEL_PROFILER" in os.environ else {})


def loaded_host():
    count, length = pick((int(os.environ.get("AGENT_MINUTES", 6)), 60), (3, 20))
    minutes = {}
    private_mounts()
    with workloads.Busy(*WORKLOADS) as busy, Execs(EXECS) as execs, StandIn("pyroscope") as server, BpfStats() as stats:
        begin, before = time.monotonic(), execs.count()
        for name, start in runs(server).items():
            with empty_cache("loaded"), start() as profiler:
                minutes[name] = Minutes(profiler, stats, count, length)
        rate = (execs.count() - before) / (time.monotonic() - begin)
    governed = minutes["default budget"]
    table(f"A loaded host, % of one CPU, {count} times {length} s, beside {busy.names()} and {rate:.0f} execs a second",
          ["sysprof agent --sink pyroscope:URL --window 10 -F HZ --cpu 0 --memory 0; and with --cpu 0.5% --memory 100M",
           "its control group's CPU time, and run_time_ns of its programs"],
          ["", f"s of CPU in the first {START} s", "last: processes", "BPF", "both", "most of both after the first", "Hz",
           "% without a name", "peak, MiB"],
          [one.row(name) for name, one in minutes.items()],
          [budget("loaded host, 97 Hz, the last minute", minutes["97 Hz"].shares[-1].all, 1.2, "% of one CPU"),
           budget("loaded host, 19 Hz, the last minute", minutes["19 Hz"].shares[-1].all, 0.4, "% of one CPU"),
           budget("loaded host, default budget, any minute after the first", governed.most(), 0.5, "% of one CPU"),
           at_least("loaded host, default budget, the last minute", governed.hz[-1], 47, "Hz", 0),
           budget("loaded host, default budget, memory.peak", governed.peak, 100, "MiB", 0)])
