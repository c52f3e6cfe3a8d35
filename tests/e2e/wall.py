#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""record --wall: what threads wait for, against what they measured themselves; books, and files without it."""
import concurrent.futures
import contextlib
import gzip
import json
import math
import os
import re
import resource
import signal
import struct
import subprocess
import time

import libe2e as e
from libbrowser import Browser
from libconsumers import CACHE, CONSUMERS, node, structure
from libgo import pprof
from libreport import invalid
from libwall import need_visits, report, stolen_ns

MS = 1000000
STATES = ("sleep", "poll", "lock", "pipe", "network", "child")
HZ = 200


class Recorded:
    """The program with known waits, recorded once."""

    def __init__(self):
        need_visits()
        self.path, self.pprof = e.scratch("waits.sysprof"), e.scratch("waits.pb.gz")
        out = e.record(f"--wall={HZ}", "--wall-cpu", "10%", "-o", self.path, "-o", self.pprof, "--",
                       e.fixture("waits"), 6).out
        self.truth = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        self.threads = {row["tid"]: row for row in report(self.path, "thread")["rows"]}

    def pairs(self):
        for truth in self.truth:
            yield truth, self.threads[truth["tid"]]


recorded = None


def recording():
    global recorded  # pylint: disable=global-statement
    if not recorded:
        recorded = Recorded()
    return recorded


def test_a_threads_time_is_its_account():
    """Visits that are not made, or late, may have missed where a wait ended and one for a CPU began."""
    visits = report(recording().path, "state")["visits"]
    unseen = (visits["due"] - visits["made"] + visits["late"]) / visits["due"]
    for truth, row in recording().pairs():
        # before its function and after it, where it may wait for a CPU
        name, outside = truth["name"], row["ns"] - truth["lived"]
        assert -20 * MS <= outside <= 200 * MS + truth["runnable"], (name, row["ns"], truth["lived"])
        for key in "running", "runnable":
            mine = row[key + "_ns"]
            slack = 2 * MS + truth[key] * (0.02 + unseen) + row["unvisited_ns"] + max(outside, 0)
            assert abs(mine - truth[key]) <= slack, (name, key, mine, truth[key])
        parts = sum(row[key + "_ns"] for key in ("running", "runnable", "blocked", "unvisited"))
        assert parts == row["ns"], (name, parts, row["ns"])
        assert sum(row["states"].values()) == row["runnable_ns"] + row["blocked_ns"], name


def test_a_command_is_not_excluded():
    """It is a child of the collector, as its helpers are."""
    need_visits()
    path = e.scratch("command.sysprof")
    e.record("--wall", "--exclude-self", "-o", path, "--", "sleep", 1)
    row, = report(path, "thread")["rows"]
    assert row["process"] == "sleep" and row["states"].get("sleep", 0) > row["ns"] / 2, row


def test_a_thread_that_spins():
    """It runs or waits for a CPU, and nothing else, but for what was stolen from it while it ran."""
    need_visits()
    path, before = e.scratch("spins.sysprof"), stolen_ns()
    e.record("--wall", "-o", path, "--", "timeout", 2, "sh", "-c", "while :; do :; done", check=124)
    stolen = stolen_ns() - before
    row = max(report(path, "thread")["rows"], key=lambda row: row["running_ns"])
    assert row["process"] == "sh" and row["ns"] > 1000 * MS, row
    assert row["blocked_ns"] <= stolen + 20 * MS + row["ns"] / 1000, (row, stolen)


def test_waits_are_divided_as_they_were():
    """Each share of the waiting time: within four standard errors of as many looks as there were waits."""
    for truth, row in recording().pairs():
        all_of_it = sum(truth[state] for state in STATES)
        blocked = row["blocked_ns"]
        for state in STATES:
            p = truth[state] / all_of_it
            share = row["states"].get(state, 0) / blocked
            error = math.sqrt(max(p * (1 - p), 0.001) / max(row["waits"], 1))
            assert abs(share - p) <= 4 * error + 0.03, (truth["name"], state, share, p, row["waits"])


SERIES = int(os.environ.get("WALL_RUNS", "30"))
SERIES_SECONDS = int(os.environ.get("WALL_SECONDS", "60"))
AT_ONCE = 6  # they mostly wait
SHARES = {"alternates": "sleep", "wants": "lock", "reads": "pipe"}  # of threads that wait in two ways


def looks_of(path):
    """
    By thread: as many looks of equal weight have the error that those at it have. Each has the time since the one before it.
    """
    seen = {}
    for kind, _, _, body in e.recording_events(path):
        if kind == 6:  # EVENT_VISIT: 64 bytes, an event's header, two words, tgid, tid
            seen.setdefault(struct.unpack_from("<I", body, 100)[0], []).extend(struct.unpack_from("<Q", body))
    weights = {tid: [b - a for a, b in zip(times, times[1:])] for tid, times in seen.items()}
    return {tid: sum(w) ** 2 / sum(x * x for x in w) for tid, w in weights.items() if w}


def deviation_of(truth, row, state, looks):
    """How far a share of the blocked time is from the program's own, in standard errors of as many looks."""
    p = truth[state] / sum(truth[kind] for kind in STATES)
    return (row["states"].get(state, 0) / row["blocked_ns"] - p) / math.sqrt(p * (1 - p) / looks)


def one_of_the_series(i):
    path = e.scratch(f"series-{i}.sysprof")
    out = e.record(f"--wall={HZ}", "--wall-cpu", "10%", "-o", path, "--", e.fixture("waits"), SERIES_SECONDS, timeout=SERIES_SECONDS + 60).out
    return path, [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def check_times(truth, row, worst):
    """A thread is there before its function begins, and may wait for a CPU behind its end."""
    for key, mine, slack in ("running", row["running_ns"], 2), ("runnable", row["runnable_ns"], 20), ("lived", row["ns"], 50):
        off = max(abs(mine - truth[key]) - slack * MS - row["unvisited_ns"], 0) / max(truth[key], 1)
        worst[key] = max(worst.get(key, 0), off)
        assert off <= (0.001 if key == "lived" else 0.01), (truth["name"], key, mine, truth[key])


@e.soak
def test_a_series_of_runs():
    """
    Shares of threads that wait in two ways: within three standard errors, one of 30 within five because the host may be overloaded, and
    not on one side; times of each thread as the kernel has them.
    """
    need_visits()
    deviations, worst = {name: [] for name in SHARES}, {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for path, truths in pool.map(one_of_the_series, range(SERIES)):
            rows, looks = {row["tid"]: row for row in report(path, "thread")["rows"]}, looks_of(path)
            for truth in truths:
                row = rows[truth["tid"]]
                if truth["name"] != "idles":  # it runs once, at its end
                    check_times(truth, row, worst)
                if truth["name"] in SHARES:
                    deviations[truth["name"]].append(deviation_of(truth, row, SHARES[truth["name"]], looks[truth["tid"]]))
            check_long_waits(path, [truth for truth in truths if truth["name"] == "burns"])
            os.unlink(path)
            print(f"    run {len(deviations['reads'])}:", *(f"{name} {z[-1]:+.2f}" for name, z in deviations.items()), flush=True)
    for name, z in deviations.items():
        mean = sum(z) / SERIES
        spread = math.sqrt(sum((d - mean) ** 2 for d in z) / max(SERIES - 1, 1))
        print(f"    {name}: mean {mean:+.2f}, standard deviation {spread:.2f}, largest {max(map(abs, z)):.2f} standard errors, "
              f"chi squared {sum(d * d for d in z):.1f} of {SERIES}", flush=True)
        assert max(map(abs, z)) <= 5 and sum(abs(d) > 3 for d in z) <= SERIES / 30 and abs(mean) <= 2, (name, z)
    print(f"    times off: {worst}", flush=True)


@e.quick
def test_states_add_up_to_all_time():
    r = report(recording().path, "state")
    assert sum(row["ns"] for row in r["rows"]) + r["unvisited_ns"] == r["lived_ns"]
    assert {"running", "runnable", *STATES} <= {row["state"] for row in r["rows"]}


def test_its_json_is_as_described():
    assert not invalid(*(report(recording().path, by, *options) for by in ("state", "function", "thread", "holder")
                         for options in ((), ("--min", "0"))))


def test_the_books_of_visits():
    v = report(recording().path, "state")["visits"]
    assert v["hz"] == HZ and v["cpu_ns"] > 0, v
    assert 0 < v["made"] <= v["due"], v
    rest = ("unchanged", "running", "walked", "moved", "gone", "no-room", "too-many", "left")
    assert v["looks"] == sum(v[line] for line in rest), v
    assert v["unchanged"] and v["walked"], v


def test_the_function_that_waits():
    """By user stacks, walked by tables: the program's own, not libc's."""
    rows = report(recording().path, "function")["rows"]
    for function, state in ("sleep_for", "sleep"), ("poll_for", "poll"), ("take_lock", "lock"), ("reads", "network"):
        assert any((row["function"], row["state"]) == (function, state) for row in rows), (function, rows[:9])
    with gzip.open(recording().pprof) as f:
        raw = f.read()
    for name in (b"sleep_for", b"poll_for", b"take_lock", b"alternates", b"holds"):
        assert name in raw, name


def test_who_has_the_lock():
    """Of a mutex of glibc: for nearly all of the time, and no other thread."""
    r = recording()
    truth = {row["name"]: row for row in r.truth}
    holders = [row for row in report(r.path, "holder")["rows"] if "holder" in row]
    assert {row["tid"] for row in holders} <= {truth["holds"]["tid"], truth["wants"]["tid"]}, holders
    held = sum(row["ns"] for row in holders if row["tid"] == truth["holds"]["tid"])
    waited = r.threads[truth["wants"]["tid"]]["states"]["lock"]
    assert 0.95 * waited <= held <= waited, (held, waited, holders)
    assert f"holds/{truth['holds']['tid']}" in pprof("-tags", "-sample_index=wall", r.pprof)


def test_pprof_has_wall_time_by_state():
    out = pprof("-tags", "-sample_index=wall", recording().pprof)
    states = out.partition("state: Total")[2]
    for state in ("running", "sleep", "poll", "lock"):
        assert state in states, out
    assert "running" in pprof("-tags", "-sample_index=cpu", recording().pprof)


def test_convert_gives_the_same():
    again = e.scratch("again.pb.gz")
    e.sysprof("convert", recording().path, "-o", again)
    with gzip.open(again) as one, gzip.open(recording().pprof) as other:
        assert one.read() == other.read()


def test_other_formats_keep_cpu_time():
    path = e.scratch("waits.folded")
    e.sysprof("convert", recording().path, "-o", path)
    rows = e.folded(path)
    assert e.total(rows) == json.loads(e.sysprof("report", recording().path, "--json").out)["summary"]["samples"]


def test_parked_threads_are_set_apart():
    """Those that wait at one place for a time. Not those that wait for each other; nothing is lost in the sums."""
    path = recording().path
    rows = {row["tid"]: row for row in report(path, "thread", "--min", "0")["rows"]}
    threads = {truth["name"]: rows[truth["tid"]] for truth in recording().truth}
    assert {name for name, row in threads.items() if row.get("parked")} >= {"idles", "writes"}, threads
    for name in "wants", "reads", "alternates", "forks":
        assert not threads[name].get("parked"), threads[name]
    apart, whole = report(path, "state", "--min", "0"), report(path, "state")
    parked = {row["state"]: row["ns"] for row in apart["rows"]}["parked"]
    assert parked == apart["parked_ns"] > 0 and "parked_ns" not in whole
    assert sum(row["ns"] for row in apart["rows"]) == sum(row["ns"] for row in whole["rows"])
    shown = sum(row["ns"] for row in report(path, "function", "--min", "0")["rows"])
    assert shown == sum(row["ns"] for row in report(path, "function")["rows"]) - parked
    assert "--parked" in e.sysprof("report", path, "--wall").out
    e.sysprof("report", path, "--parked", check=2)


def blocked_and_runnable(path):
    return {row["state"]: row["ns"] for row in report(path, "state")["rows"] if row["state"] != "running"}


def period_of(path):
    return json.loads(e.sysprof("report", path, "--json").out)["summary"]["period_ns"]


def test_folded_stacks_with_waits():
    """A wait has its state as a leaf; what samples have does not change, and periods add up to the time."""
    path, plain, waiting = recording().path, e.scratch("cpu.folded"), e.scratch("wall.folded")
    e.sysprof("convert", path, "-o", plain)
    e.sysprof("convert", path, "--wall", "--parked", "-o", waiting)
    rows = e.folded(waiting)
    of_state = {}
    for frames, count in rows:
        if frames[-1].startswith("[waiting: "):
            state = frames[-1][len("[waiting: "):-1]
            of_state[state] = of_state.get(state, 0) + count
    assert [row for row in rows if not row[0][-1].startswith("[waiting: ")] == e.folded(plain)
    wanted, period = blocked_and_runnable(path), period_of(path)
    assert abs(sum(of_state.values()) - sum(wanted.values()) / period) <= 1, (of_state, wanted)
    for state, ns in wanted.items():
        assert abs(of_state.get(state, 0) - ns / period) <= 2 + 0.01 * ns / period, (state, ns, of_state)
    assert any(frames[0] == "wants" and "take_lock" in frames and frames[-1] == "[waiting: lock]" for frames, _ in rows)


def test_folded_stacks_of_a_recording():
    """With --wall on the command line of record, too."""
    need_visits()
    path = e.scratch("at-once.folded")
    e.record("--wall", "-o", path, "--", "sleep", "0.5")
    assert not any(frames[-1].startswith("[waiting: sleep") for frames, _ in e.folded(path)), "it is parked"
    e.record("--wall", "--parked", "-o", path, "--", "sleep", "0.5")
    assert any(frames[-1] == "[waiting: sleep]" for frames, _ in e.folded(path)), e.folded(path)


def events_of(path):
    return [event for event in e.load_json(path)["traceEvents"] if event["cat"] == "sysprof.wait"]


def check_long_waits(path, truths):
    """
    Waits of many periods that are apart from others: each is one slice, from its begin to its end, within a millisecond. It ends when
    its time is over; that the thread then waits for a CPU is not in it. Of most: the thread may be held up between its own reading of
    the clock and its wait, and a visit while an interrupt keeps the CPU of a thread takes that time for its CPU time; without the
    visits that were not made an end may not be seen. None is missed, unless no visit was made within it, and visits that are not
    made are in the books.
    """
    visits = report(path, "state")["visits"]
    out = e.scratch("long.trace.json")
    e.sysprof("convert", path, "--wall", "-o", out)
    found, off = 0, []
    for truth in truths:
        slices = [(event["ts"] * 1000, (event["ts"] + event["dur"]) * 1000) for event in events_of(out)
                  if event["tid"] == truth["tid"] and event["args"]["state"] == "sleep"]
        for begin, end in truth["waits"]:
            over = min(begin + 130 * MS, end)
            near = [(b, c) for b, c in slices if b < over and c > begin]
            assert len(near) <= 1, (begin, end, near)
            found += len(near)
            if not near or not (abs(near[0][0] - begin) <= MS and over - MS <= near[0][1] <= end + MS):
                off.append([(b - begin, c - over, end - over) for b, c in near])
    waits = sum(len(truth["waits"]) for truth in truths)
    periods = 120 * MS * HZ // (1000 * MS)  # all of those within a wait
    assert waits >= 5 * len(truths) and len(off) <= waits * (1.4 - visits["made"] / visits["due"]), (waits, off, visits)
    assert (waits - found) * periods <= visits["due"] - visits["made"], (waits, found, visits)


def test_long_waits_have_begin_and_end():
    check_long_waits(recording().path, [truth for truth in recording().truth if truth["name"] == "burns"])


def test_trace_has_states_of_threads():
    """Each wait from its begin to when it was last seen: by the program's own clock less a period each."""
    path = e.scratch("waits.trace.json")
    e.sysprof("convert", recording().path, "--wall", "-o", path)
    structure(path)
    e.run(node(), os.path.join(CONSUMERS, "check_trace.mjs"), CACHE, path, check=0)
    truth = {row["name"]: row for row in recording().truth}
    holder = truth["holds"]["tid"]
    locks = [event for event in events_of(path) if event["tid"] == truth["wants"]["tid"] and event["args"]["state"] == "lock"]
    shown = sum(event["dur"] * 1000 for event in locks)
    waited = truth["wants"]["lock"]
    least = waited - len(locks) * 1000 * MS / HZ
    assert least > waited / 2 and least <= shown <= 1.02 * waited + 20 * MS, (shown, len(locks), truth["wants"])
    assert [event for event in locks if event["args"].get("holderTid") == holder]
    assert not [event for event in locks if event["args"].get("holderTid", holder) != holder]


def test_firefox_has_waits_as_samples():
    """Their time in periods, their state as a category, no CPU time; the viewer's own code sees as much."""
    path = e.scratch("waits.json")
    e.sysprof("convert", recording().path, "--wall", "-o", path)
    seen = structure(path)[path]
    summary = json.loads(e.sysprof("report", recording().path, "--json").out)["summary"]
    assert (seen["samples"], seen["cpu_ns"]) == (summary["samples"], summary["cpu_ns"] - summary["silent_cpu_ns"]) or \
        (seen["samples"], seen["cpu_ns"]) == (summary["samples"], summary["cpu_ns"]), (seen["cpu_ns"], summary)
    waits, period = sum(blocked_and_runnable(recording().path).values()), period_of(recording().path)
    assert abs(sum(t["waits"] for t in seen["threads"]) - waits / period) <= len(seen["threads"]), (seen["threads"], waits)
    e.run(os.path.join(CONSUMERS, "check_firefox.sh"), CACHE, path, check=0)
    document = e.load_json(path)
    markers = [(thread["tid"], data) for thread in document["threads"] for data in thread["markers"]["data"] if data["type"] == "Wait"]
    truth = {row["name"]: row for row in recording().truth}
    held = [data for tid, data in markers if tid == str(truth["wants"]["tid"]) and data["state"] == "lock"]
    assert held and {data.get("holder") for data in held} <= {f"holds ({truth['holds']['tid']})", None}, held
    # read again it has the samples of CPUs alone
    again = json.loads(e.sysprof("report", path, "--json").out)["summary"]
    assert (again["samples"], again["cpu_ns"]) == (seen["samples"], seen["cpu_ns"]), again


def test_the_page_has_all_modes():
    """In a browser: waiting time is the report's, by state and by holder, and a lock's stack is beside its holder's."""
    r, path = recording(), e.scratch("waits.html")
    e.sysprof("convert", r.path, "-o", path)
    with Browser() as browser:
        page = browser.page("file://" + path + "#mode=waiting&measure=cpu&group=state&parked=1")
        page.wait("document.documentElement.dataset.ready === 'yes'")
        seen = page.evaluate("""(() => { const { tree, sums, options } = page.pictures().flame, sum = {};
          for (let i = 1; i < tree.count; i++) if (!tree.parent[i]) sum[options.textOf(tree.fn[i])] = sums.cpu.total[i];
          return sum; })()""")
        assert seen == blocked_and_runnable(r.path), seen
        page.evaluate("page.change({mode: 'wall'})")
        cpu = json.loads(e.sysprof("report", r.path, "--json").out)["summary"]["cpu_ns"]
        assert 0 <= cpu + sum(seen.values()) - page.evaluate("page.whole().cpu") <= 0.05 * cpu
        assert page.evaluate("page.profile.terms.confidence(1, 2)") == "", "weights of waits are not counts"
        page.evaluate("page.change({view: 'locks'})")
        text = page.evaluate("document.querySelector('.locks tr.chosen').textContent")
        stacks = page.evaluate("[...document.querySelectorAll('.lock-stack')].map((s) => s.textContent)")
        truth = {row["name"]: row["tid"] for row in r.truth}
        assert "take_lock" in text and f"holds (tid {truth['holds']})" in text, text
        assert "take_lock" in stacks[0] and "sleep_for" in stacks[1], stacks
        assert page.messages() == [], page.messages()


def test_pprof_is_valid():
    structure(recording().pprof)


def test_without_it_there_is_nothing_of_it():
    path, firefox = e.scratch("plain.sysprof"), e.scratch("plain.json")
    e.record("--no-wall", "-o", path, "-o", firefox, "--", "sleep", "0.3")
    assert "no waits" in e.sysprof("report", path, "--wall", check=1).err
    assert "no waits" in e.sysprof("convert", path, "--wall", "-o", e.scratch("no.folded"), check=1).err
    assert not os.path.exists(e.scratch("no.folded"))
    assert not re.search("waiting", e.read(firefox), re.I)
    assert not [kind for kind, *_ in e.recording_events(path) if kind in (6, 31)]


def thread_count(path):
    return len(e.load_json(path)["threads"])


def test_it_is_the_default_of_targets():
    """Files with room for CPU time alone stay what they are without; with -a there is nothing."""
    need_visits()
    targets = [("-p", os.getpid(), "-d", 4), ("-t", os.getpid(), "-d", 4), ("--", "sleep", "4")]
    outputs = [[e.scratch(f"default-{i}{suffix}") for suffix in (".sysprof", ".json", ".trace.json", ".folded")] for i in range(len(targets))]

    def recorded_by_default(outputs, options):
        return e.record(*(word for path in outputs for word in ("-o", path)), *options)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        ended = list(pool.map(recorded_by_default, outputs, targets))
    for (path, firefox, trace, stacks), out in zip(outputs, ended):
        assert "visits of threads that wait" in out.err, out.err
        rows = report(path, "state")["rows"]
        assert sum(row["ns"] for row in rows if row["state"] not in ("running", "runnable")) > 500 * MS, rows
        for file in firefox, trace, stacks:
            assert "[waiting: " not in e.read(file), file
    path = e.scratch("all.sysprof")
    e.record("-o", path, "-a", "-d", 1)
    assert "no waits" in e.sysprof("report", path, "--wall", check=1).err


def test_idle_threads_are_in_no_file_of_cpu_time():
    need_visits()
    firefox, of_all = e.scratch("idlers.json"), e.scratch("all-idlers.json")
    e.record("-o", firefox, "--", e.fixture("idlers"), 500, 2)
    assert 1 <= thread_count(firefox) < 250, thread_count(firefox)
    e.record("--wall", "-o", of_all, "--", e.fixture("idlers"), 500, 1)
    assert thread_count(of_all) >= 500, thread_count(of_all)


# The kernel's types are those of a file.
OTHER_TYPES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *path_for(const char *path)
{
    return strcmp(path, "/sys/kernel/btf/vmlinux") ? path : getenv("OTHER_TYPES");
}
int open(const char *path, int flags, int mode)
{
    int (*next)(const char *, int, int) = dlsym(RTLD_NEXT, "open");
    return next(path_for(path), flags, mode);
}
int open64(const char *path, int flags, int mode) { return open(path, flags, mode); }
FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
    return next(path_for(path), mode);
}
FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }
"""


def test_a_kernel_without_visits():
    """By default a line says it; if they were requested, it is an error."""
    need_visits()
    if subprocess.run(["ldd", e.SYSPROF], capture_output=True, check=False).returncode:
        raise e.Skip("nothing can be loaded into a static program")
    shim, types = e.scratch("other-types.so"), e.scratch("types")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", shim, "-"], input=OTHER_TYPES, text=True, check=True)
    with open("/sys/kernel/btf/vmlinux", "rb") as f, open(types, "wb") as copy:
        copy.write(f.read().replace(b"\0bpf_iter_task_new\0", b"\0bpf_iter_task_old\0")
                   .replace(b"\0bpf_user_ringbuf_drain\0", b"\0bpf_user_ringbuf_train\0"))
    options = {"env": {**os.environ, "LD_PRELOAD": shim, "OTHER_TYPES": types}}
    path = e.scratch("refused.sysprof")
    out = e.record("-o", path, "--", e.fixture("duty"), "0.5", "50", **options)
    assert "not recorded: what threads wait for (" in out.err and out.status == 0, out
    assert json.loads(e.sysprof("report", path, "--json").out)["summary"]["samples"] > 20
    out = e.record("--wall", "-o", path, "--", "true", check=1, **options)
    assert "--wall" in out.err, out


PYTHON = """
import threading, time
event, lock = threading.Event(), threading.Lock()
def sleeper():
    while True:
        time.sleep(0.03)
def waiter():
    while True:
        event.wait()
        event.clear()
def setter():
    for i in range(100):
        time.sleep(0.05)
        event.set()
for function in sleeper, waiter:
    threading.Thread(target=function, daemon=True).start()
setter()
"""


def test_functions_of_python():
    """They are read while the thread waits, as samples have them."""
    need_visits()
    path, script = e.scratch("python.sysprof"), e.scratch("waits.py")
    e.write(script, PYTHON)
    e.record("--wall", "--wall-cpu", "10%", "-o", path, "--", "python3", script)
    ns = {}
    for row in report(path, "function")["rows"]:
        if row["state"] in ("sleep", "lock"):
            ns[row["function"]] = ns.get(row["function"], 0) + row["ns"]
    known = sum(ns.get(name, 0) for name in ("sleeper", "setter", "Condition.wait"))
    # it takes a while until it is known that it is Python
    assert known >= 0.7 * sum(ns.values()) > 5000 * MS, ns


def test_threads_that_were_there():
    """-p: the account begins with the first visit, and the visitor ends with the recording."""
    need_visits()
    with e.Background(e.fixture("waits"), 30) as target:
        e.wait_for(lambda: len(os.listdir(f"/proc/{target.pid}/task")) >= 9, what="the threads")
        path = e.scratch("attached.sysprof")
        e.record("--wall", "--wall-cpu", "10%", "-d", 3, "-p", target.pid, "-o", path)
        rows = report(path, "thread")["rows"]
        assert len([row for row in rows if row["ns"] > 1200 * MS]) >= 8, rows
        # waits that began before are in no file before its begin
        for suffix in ".json", ".trace.json":
            e.sysprof("convert", path, "--wall", "-o", e.scratch("attached" + suffix))
            structure(e.scratch("attached" + suffix))
        assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and is_left_visitor(pid)]


def silent_files(*program):
    """The program, where /tmp/perf-1 is a file of FUSE that is never read."""
    place = e.scratch("place")
    os.makedirs(place, exist_ok=True)
    return e.Background(e.fixture("silentfs"), "-w", "read", e.fuse_device(), place, *program)


@contextlib.contextmanager
def silent_stack():
    """A thread whose stack is a file of FUSE that is never read, and a program whose waits are known; yields both."""
    with silent_files(e.fixture("foreignstack"), "/tmp/perf-1.map") as target, e.Background(e.fixture("waits"), 60) as other:
        e.wait_for(lambda: target.p.poll() is None and e.comm_of(target.pid) == "foreign", what="the target")
        yield target, other


def test_waits_for_completions():
    """Of io_uring and libaio: one that waits for a read waits for a disk, and is not parked as one that waits for events."""
    need_visits()
    path = e.scratch("completions.sysprof")
    with silent_files(e.fixture("completions"), "/tmp/perf-1") as target:
        lines = iter(target.p.stdout.readline, "")
        assert "ready\n" in lines, target.finish()
        e.record("--wall", "-d", 2, "-p", target.pid, "-o", path)
        for child in e.children_of(target.pid):
            os.kill(child, signal.SIGKILL)  # or the reads, and thus the target, would not end
    rows = {row["thread"]: row for row in report(path, "thread", "--min", 0)["rows"]}
    waits = {name: "parked" if row.get("parked") else max(row["states"], key=row["states"].get) for name, row in rows.items()}
    expected = {"aio reads": "disk", "aio events": "parked"}
    if "ring reads" in waits:  # the kernel has rings
        expected |= {"ring reads": "disk", "worker reads": "disk", "events, reads": "disk", "ring events": "parked", "two rings": "parked"}
    assert waits.items() >= expected.items(), rows


def test_memory_that_does_not_answer():
    """
    The visitor that waits for the page is left behind, and another one visits the rest. (The server runs as root: requests of
    the kernel for others cannot pass into a user namespace.)
    """
    need_visits()
    path = e.scratch("silent.sysprof")
    with silent_stack() as (target, other):
        result = e.record("--wall=100", "--wall-cpu", "10%", "-d", 6, "-p", f"{target.pid},{other.pid}", "-o", path)
        assert "did not answer" in result.err, result
        rows = report(path, "thread")["rows"]
        visits = report(path, "state")["visits"]
    assert visits["left"] >= 1 and visits["made"] > 50, visits
    assert len([row for row in rows if row["process"] == "waits" and row["ns"] > 1500 * MS]) >= 8, rows


def test_no_other_visitor():
    """There can be none, for want of descriptors: the recording goes on without visits."""
    need_visits()
    path = e.scratch("alone.sysprof")
    with silent_stack() as (target, other), \
            e.Background(e.SYSPROF, "record", "-vv", "--wall=100", "--wall-cpu", "10%", "-d", 5, "-p", f"{target.pid},{other.pid}",
                         "-o", path) as recording:
        e.wait_for(lambda: hangs(visitor_of(recording.pid)), what="a visitor that hangs")  # which is found after a second
        limits = resource.prlimit(recording.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(recording.pid, resource.RLIMIT_NOFILE, (limit_that_leaves(recording.pid, 6), limits[1]))
        time.sleep(3)
        resource.prlimit(recording.pid, resource.RLIMIT_NOFILE, limits)
        result = recording.finish(check=0)
    assert "no visits: " in result.err, result
    visits = report(path, "state")["visits"]
    assert visits["left"] >= 1 and visits["made"] < visits["due"], visits


def limit_that_leaves(pid, count):
    """Of numbers of descriptors, so that `count` more can be opened."""
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    return [number for number in range(len(used) + count + 1) if number not in used][count]


def visitor_of(pid):
    return next((child for child in e.children_of(pid) if e.comm_of(child) == "sysprof-visitor"), None)


def hangs(pid):
    """In a page of a file system that does not answer."""
    if not pid:
        return False
    return e.read(f"/proc/{pid}/wchan") == "request_wait_answer"


def is_left_visitor(pid):
    """Of a recording that has ended."""
    try:
        parent = e.read(f"/proc/{pid}/stat").rsplit(") ", 1)[1].split()[1]
        return e.comm_of(pid) == "sysprof-visitor" and parent == "1"
    except OSError:
        return False


def test_options_are_checked():
    for options in (("--wall=0",), ("--wall=1001",), ("--wall", "--wall-cpu", "0")):
        e.sysprof("record", *options, "-a", "-d", 1, check=2)


e.main(globals())
