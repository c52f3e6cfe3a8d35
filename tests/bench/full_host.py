# SPDX-License-Identifier: BSD-2-Clause
"""The agent on a full host (crowd.py): what it loses, what it needs, and what it says of all the names there."""
import json
import os
import signal
import subprocess
import threading
import time

from crowd import Crowd, Execs
from libagent import Agent, StandIn
from libbench import Broken, SYSPROF, at_least, budget, pick, read, table

MIB = 1 << 20
CPU_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
TICKS_TYPE = "process_cpu:samples:count:cpu:nanoseconds"
LABEL_BYTES = 255


class Seen(threading.Thread):
    """Every two seconds: memory in MiB, descriptors, children, load."""

    def __init__(self, agent):
        super().__init__(daemon=True)
        self.agent, self.rows, self.over = agent, [], threading.Event()

    def look(self):
        status = dict(line.split(":", 1) for line in read(f"/proc/{self.agent.pid}/status").splitlines())
        children = read(f"/proc/{self.agent.pid}/task/{self.agent.pid}/children").split()
        return {"own": self.agent.costs.own_mib(), "rss": int(status["VmRSS"].split()[0]) / 1024,
                "descriptors": len(os.listdir(f"/proc/{self.agent.pid}/fd")), "children": len(children),
                "load": os.getloadavg()[0]}

    def run(self):
        while not self.over.wait(2):
            self.rows.append(self.look())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def halves(self, name):
        """The most of each half."""
        values = [row[name] for row in self.rows]
        return max(values[:len(values) // 2]), max(values[len(values) // 2:])


def is_good(name, value):
    return name.replace("_", "a").isalnum() and name.isascii() and value and value == value.strip() and \
        value.isprintable() and len(value.encode()) <= LABEL_BYTES


def settled(agent, server):
    """Totals and metrics that are of the same windows: metrics are a second old."""
    before = agent.metrics(), server.totals()
    for _ in range(10):
        time.sleep(2.5)
        after = agent.metrics(), server.totals()
        if after[1] == before[1] and sent(after[0]) == sent(before[0]):
            break
        before = after
    return after


def sent(metrics):
    return sum(v for k, v in metrics.items() if k.startswith("sysprof_samples_sent_total"))


def having(metrics, name, *labels):
    return sum(v for k, v in metrics.items() if k.partition("{")[0] == name and all(label in k for label in labels))


def one_run(what, options, seconds):
    """One agent beside what runs already."""
    with StandIn("pyroscope") as server, Agent(*options, sinks=[("pyroscope", server)], window=10) as agent:
        with Seen(agent) as seen:
            time.sleep(seconds)
        metrics, totals = settled(agent, server)
        peak, labels, log = agent.costs.memory_mib("peak"), server.labels(), server.log()
        said = [line for line in agent.lines if line]
    due, counted = metrics["sysprof_ticks_due_total"], having(metrics, "sysprof_ticks_total")
    finished = metrics['sysprof_session_windows_total{result="finished"}']
    went = having(metrics, "sysprof_windows_total", 'result="sent"')
    bad = [one for one in labels if not all(is_good(*item) for item in one.items())]
    lost = {reason: int(having(metrics, "sysprof_ticks_total", f'reason="{reason}"'))
            for reason in ("ring-full", "re-entry", "internal", "not-run")}
    unknown = max(metrics["sysprof_unknown_service_samples_total"],
                  sum(v for name, v in totals[TICKS_TYPE].items() if name in ("", "unknown", "unknown_service")))
    other = totals[TICKS_TYPE].get("_other", 0)
    rows = [["ticks due", f"{due:,.0f}"], ["less those in the books", f"{due - counted:,.0f}"],
            ["lost by reason", ", ".join(f"{k} {v}" for k, v in lost.items() if v) or "none"],
            ["lost records of mappings and processes", f"{metrics['sysprof_sideband_lost_total']:,.0f}"],
            ["windows finished, sent, put off", f"{finished:.0f}, {went:.0f}, "
             f"{having(metrics, 'sysprof_session_windows_total', 'put_off'):.0f}"],
            ["requests, kB of the largest, series in it", f"{len(log)}, {max(r['bytes'] for r in log) / 1000:.0f}, "
             f"{max(r['series'] for r in log)}"],
            ["sets of labels", f"{len(labels):,}"],
            ["services of the last window, over its limit", f"{metrics['sysprof_services']:.0f}, "
             f"{metrics['sysprof_services_over_limit']:.0f}"],
            ["samples of _other", f"{other:,}"],
            ["RSS of the agent, MiB, most of each half", "{:.0f}, {:.0f}".format(*seen.halves("rss"))],
            ["its own and the kernel's for it, children included", "{:.0f}, {:.0f}".format(*seen.halves("own"))],
            ["peak of its group, pages of files included", f"{peak:.0f}"],
            ["what it says of its memory", f"{metrics['sysprof_memory_used_bytes'] / MIB:.0f}"],
            ["descriptors", "{:,}, {:,}".format(*seen.halves("descriptors"))],
            ["children", "{:,}, {:,}".format(*seen.halves("children"))],
            ["Hz, step of the budget", f"{metrics['sysprof_sampling_hz']:.0f}, {metrics['sysprof_budget_level']:.0f}"],
            ["share of a CPU, %", f"{100 * metrics['sysprof_agent_cpu_ratio']:.2f}"],
            ["load average", "{:.0f}, {:.0f}".format(*seen.halves("load"))]]
    notes = [f"said: {line}" for line in said[:12]] + [f"bad labels: {one}" for one in bad[:5]]
    notes += [budget(f"{what}: samples without a service", unknown, 0, "samples", 0),
              budget(f"{what}: labels that are no text", len(bad), 0, "sets", 0),
              budget(f"{what}: windows finished and not sent", finished - went, 1, "windows", 0),
              budget(f"{what}: ticks answered less those sent", abs(sum(totals[TICKS_TYPE].values()) - sent(metrics)), 0,
                     "ticks", 0),
              budget(f"{what}: ns answered less those sent", abs(sum(totals[CPU_TYPE].values()) - round(
                  1e9 * having(metrics, "sysprof_cpu_sent_seconds_total"))), 0, "ns", 0)]
    table(f"A full host: {what}, {seconds} s", [f"sysprof agent --sink pyroscope:URL --window 10 {' '.join(options)}"],
          ["", "figure"], rows, notes)
    keep = os.environ.get("AGENT_KEEP")
    if keep:
        with open(os.path.join(keep, what.replace(" ", "-") + ".json"), "w", encoding="utf-8") as f:
            json.dump({"metrics": metrics, "totals": totals, "labels": labels, "log": log, "said": said, "seen": seen.rows},
                      f)


def by_itself(option):
    """What --check and --dry-run say there."""
    begin = time.monotonic()
    done = subprocess.run([SYSPROF, "agent", "--config", "/dev/null", option, "--listen", "none", "--window", "10", "--sink",
                           "pyroscope:http://127.0.0.1:9"], capture_output=True, timeout=300, check=False)
    lines = done.stdout.decode().splitlines()  # fails if it is no text
    odd = [line for line in lines if not line.isprintable()]
    keep = os.environ.get("AGENT_KEEP")
    if keep:
        with open(os.path.join(keep, option.strip("-") + ".txt"), "wb") as f:
            f.write(done.stdout + b"---\n" + done.stderr)
    return [option, done.returncode, len(lines), f"{len(done.stdout):,}", max(map(len, lines), default=0), len(odd),
            f"{time.monotonic() - begin:.1f}"]


RUNS = (("no limits", ("--cpu", "0", "--memory", "0"), 200),
        ("default budget", ("--cpu", "0.5%", "--memory", "100M"), 200),
        ("few series", ("--cpu", "0", "--memory", "0", "--series", "100"), 45))


def end_orderly(*_):
    raise SystemExit(1)


def full_host():
    signal.signal(signal.SIGTERM, end_orderly)  # groups are removed
    groups, processes, seconds = pick((2000, 10000, 200), (400, 2000, 45))
    with Crowd(groups, processes) as crowd, Execs(1000, crowd.group) as execs:
        begin, before = time.monotonic(), execs.count()
        for what, options, length in RUNS:
            if what in os.environ.get("AGENT_RUNS", what):
                one_run(what, options, min(length, seconds))
        rows = [by_itself("--check"), by_itself("--dry-run")]
        rate = (execs.count() - before) / (time.monotonic() - begin)
        if crowd.ready < processes * 0.95:
            raise Broken(f"{crowd.ready} processes of {processes}")
    table(f"The full host had {crowd.ready:,} processes in {crowd.groups:,} control groups", ["sysprof agent --check, --dry-run"],
          ["", "status", "lines", "bytes", "longest", "not printable", "seconds"], rows,
          [at_least("programs a second beside it", rate, pick(1000, 500), "programs", 0)])
