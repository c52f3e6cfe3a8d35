#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""The agent's series of waits (--wall), beside a program with known waits; what each backend stores of them; very many threads."""
import collections
import contextlib
import glob
import gzip
import json
import os
import subprocess
import time

import libe2e as e
from libservers import Agent, by_service
from libwall import need_visits, stolen_ns

import standin
import wire

NAME = f"waits-{os.getpid()}"  # others may run the same program
SERVICE = {**os.environ, "OTEL_SERVICE_NAME": NAME}
WALL = "wall:wall:nanoseconds:wall:nanoseconds"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
# functions of the program in which only this is waited for, by threads that are never parked
PLACES = {"poll": "poll_for", "lock": "take_lock", "child": "forks", "network": "reads", "pipe": "reads"}


def rows_of(path):
    """(names, CPU time, all time, labels) of the samples of a window's file."""
    with gzip.open(path) as f:
        p = wire.Pprof(f.read())
    assert [tuple(map(p.text, kind)) for kind in p.types] == [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds")]
    functions = {f[0]: p.text(f[1]) for f in p.functions}
    locations = {number: [functions[f] for f, _ in lines] for number, _, _, lines in p.locations}
    for places, values, labels in p.samples:
        names = [name for place in places for name in locations[place]]
        yield names, values[1], values[2], {p.text(key): p.text(text) for key, text, _ in labels}


def check_states(out, truths, stolen):
    """
    The program's own sums, by what it waited for. What was stolen from threads while they ran is in no account of theirs: it is booked
    for what they wait for next.
    """
    found = collections.Counter()
    for path in glob.glob(out + "/*.pb.gz"):
        for names, cpu, wall, labels in rows_of(path):
            assert (labels["state"] == "running") == (wall == cpu), (labels, wall, cpu)
            if labels["service_name"] == NAME and PLACES.get(labels["state"]) in names:
                found[labels["state"]] += wall / 1e9
    for state in PLACES:
        truth = sum(thread[state] for thread in truths) / 1e9
        print(f"{state}: {truth:.1f} s by itself, {found[state]:.1f} s in the series")
        assert abs(found[state] - truth) <= 0.2 * truth + 1.5 + stolen, (state, truth, found, stolen)


def in_all_stores(windows, stores):
    return windows if all(len(s.store.log) == len(windows) for s in stores.values()) else None


def check_stores(facts, stores):
    """Each backend has the time of the files, CPU time as well, and by service."""
    for window in facts:
        assert window["wall_ns"] == sum(service["wall_ns"] for service in window["services"]), window
        assert all(service["wall_ns"] >= service["cpu_ns"] for service in window["services"]), window
    wall, cpu = by_service(facts, "wall_ns"), by_service(facts, "cpu_ns")
    for kind, store in stores.items():
        suffix = ":delta" if kind == "parca" else ""
        totals = store.store.totals()
        assert totals[WALL + suffix] == wall, (kind, totals[WALL + suffix], wall)
        if kind != "otlp":  # which has ticks
            assert totals[CPU + suffix] == cpu, (kind, totals[CPU + suffix], cpu)
        leaves = {names[-1] for _, _, _, rows in store.store.find(WALL + suffix, f'{{service_name="{NAME}"}}') for names, _ in rows}
        assert {f"[waiting: {state}]" for state in PLACES} <= leaves, (kind, leaves)
        assert not store.store.doubled, kind


def check_metrics(agent):
    """The books balance, and what was handed to a sink is all that was not parked."""
    visits = {line: agent.metric("sysprof_visits_total", line=line)
              for line in ("due", "made", "late", "looks", "unchanged", "running", "walked", "moved", "gone", "no-room",
                           "too-many", "left")}
    assert 0 < visits["made"] <= visits["due"], visits
    assert visits["looks"] == sum(v for k, v in visits.items() if k not in ("due", "made", "late", "looks")), visits
    assert agent.metric("sysprof_visits_hz") == 20 and agent.metric("sysprof_threads_visited") > 5
    assert agent.metric("sysprof_parked_seconds_total") > 0


def test_waits_of_a_service():
    need_visits()
    kinds = {"pyroscope": "pyroscope", "parca": "parca", "otlp": "pyroscope"}
    with contextlib.ExitStack() as stack:
        stores = {kind: stack.enter_context(standin.StandIn(backend)) for kind, backend in kinds.items()}
        sinks = [word for kind, store in stores.items() for word in ("--sink", f"{kind}:{store.url}")]
        agent = stack.enter_context(Agent(*sinks, "--wall", "20", "--cpu", "0", "--memory", "0"))
        agent.wait_until_it_answers()
        before = stolen_ns()
        program = subprocess.run([e.fixture("waits"), "24"], env=SERVICE, check=True, capture_output=True, text=True)
        stolen = (stolen_ns() - before) / 1e9
        agent.wait_for_windows(len(agent.windows()) + 1)
        # the next window ends ten seconds after one that all stores have
        facts = e.wait_for(lambda: in_all_stores(agent.windows(), stores), what="all requests")
        check_stores(facts, stores)
        check_metrics(agent)
        assert agent.end() == 0, agent.said()
    check_states(agent.out, [json.loads(line) for line in program.stdout.splitlines() if line.startswith("{")], stolen)
    spans = "--old", "-10m", "--new", "-10m"
    compared = json.loads(e.sysprof("diff", "--service", NAME, *spans, agent.out, "--json").out)
    cpu = sum(s["cpu_ns"] for w in agent.windows() for s in w["services"] if s["labels"]["service_name"] == NAME)
    assert compared["old"]["cpu_ns"] == compared["new"]["cpu_ns"] == cpu, (compared["old"], cpu)


@e.long
def test_very_many_threads():
    """Of one user: the visitor's share of the budget holds, and so does the memory of what it sees."""
    need_visits()
    with e.Background(e.fixture("idlers"), "20000", "240") as target, \
            Agent("--wall", "20", "--cpu", "1%", "--memory", "0") as agent:
        e.wait_for(lambda: target.p.stdout.readline(), what="its threads")
        agent.wait_until_it_answers()
        began = time.monotonic()
        # those of a window that has ended
        made = e.wait_for(lambda: agent.metric("sysprof_visits_total", line="made"), what="visits")
        used = agent.metric("sysprof_agent_cpu_seconds_total", part="visitor")
        print(f"{made:.0f} visits took {used:.3f} s, of {agent.metric('sysprof_threads_visited'):.0f} threads in the last window")
        # 0.2 % of a CPU, one visit beyond it, and what it may be ahead by
        assert used < 0.002 * (time.monotonic() - began + 5) + 0.06 + 0.3, (used, made)
        assert agent.metric("sysprof_memory_bytes", part="process") < 150 << 20
        status = agent.end()
        assert status == 0, (status, agent.said())


if __name__ == "__main__":
    e.main(globals())
