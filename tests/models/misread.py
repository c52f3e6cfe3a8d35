# SPDX-License-Identifier: BSD-2-Clause
"""
Small files of what other tools write that were once refused or misread, each with what is right. They name functions and
fields that no random file of profiles.py has, or are the smallest file of a kind.
"""
import json

from profiles import Expected, Strings, Tree, message, nodes_of, number

CALLS = {("foo",): [1, 2, 4], ("bar",): [3, 5]}  # of five samples, 1 ms each
EPOCH = 1777139239400418  # microseconds since 1970


class First:
    """Chooses the first of all: a generator that is none."""
    random, choice = staticmethod(lambda: 0), staticmethod(lambda values: values[0])


def expected(*rows, known=True, left_out=False):
    """Rows of (thread, path, events, CPU time, samples)."""
    e = Expected(known=known, left_out=left_out)
    for thread, path, events, cpu, samples in rows:
        e.add(thread, path, events, cpu, samples=samples)
    return e


def five(thread, count=5, left_out=False):
    """The first samples of CALLS. In a .cpuprofile, whose thread is "file", they count one each: their times are the same."""
    weight = 1 if thread == "file" else 10**6
    return expected(*((thread, path, weight, 10**6, 1) for path, places in CALLS.items() for place in places if place <= count), left_out=left_out)


def samples_of(tree):
    return [tree.node(next(path for path, places in CALLS.items() if place in places)) for place in range(1, 6)]


def cpuprofile(start):
    tree = Tree()
    ids = samples_of(tree)
    return {"nodes": nodes_of(First, tree), "startTime": start, "endTime": start + 5000, "samples": ids, "timeDeltas": [0, 1000, 1000, 1000, 1000]}


def event(name, data, time=1000, number="0x1"):
    return {"name": name, "ph": "P", "cat": "c", "pid": 1, "tid": 1, "id": number, "ts": time, "args": {"data": data}}


def trace(*more, start=1000, samples=None):
    profile = cpuprofile(start)
    chunk = {"cpuProfile": {"nodes": [{key: node[key] for key in ("id", "callFrame")} | ({"parent": 1} if node["id"] > 1 else {})
                                      for node in profile["nodes"]], "samples": samples or profile["samples"]},
             "timeDeltas": profile["timeDeltas"], "endTime": start + 5000}
    return [*more, event("Profile", {"startTime": start}, start), event("ProfileChunk", chunk, start + 5000)]


def instant(count):
    """Samples of one moment, in a trace without an end."""
    events = trace()
    data = events[-1]["args"]["data"]
    del data["endTime"]
    data["cpuProfile"]["samples"] = data["cpuProfile"]["samples"][:count]
    data["timeDeltas"] = [0] * count
    return events


def head():
    def node(name, number, hits, *children):
        return {"functionName": name, "url": "a.js" if number > 1 else "", "lineNumber": 3, "callUID": number, "id": number, "hitCount": hits, "children": list(children)}
    return {"typeId": "CPU", "head": node("(root)", 1, 0, node("foo", 2, 3), node("bar", 3, 2)), "startTime": 1, "endTime": 1.005,
            "samples": [2, 2, 3, 2, 3], "timestamps": [10**6 + 1000 * i for i in range(5)]}


def firefox(version, shared=(), **tables):
    texts = {"stringArray": ["fast", "slow", "main"], "sources": {"length": 0, "filename": []}}
    none, stack = [None] * 3, {"length": 3, "prefix": [None, 0, 0], "frame": [2, 0, 1]}
    thread = {"name": "Main", "pid": "1", "tid": 1, "isMainThread": True, "registerTime": 0, "unregisterTime": None, "processStartupTime": 0,
              "funcTable": {"length": 3, "name": [0, 1, 2], "isJS": [False] * 3, "resource": [-1] * 3, "fileName": none, "source": none,
                            "lineNumber": none, "columnNumber": none},
              "frameTable": {"length": 3, "address": [-1] * 3, "inlineDepth": [0] * 3, "category": [0] * 3, "subcategory": [0] * 3,
                             "func": [0, 1, 2], "nativeSymbol": none, "line": none, "column": none},
              "stackTable": stack, "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
              "samples": {"length": 2, "stack": [1, 2], "time": [1, 2], "weight": None, "weightType": "samples"}, "markers": {"length": 0}} | tables
    thread |= {key: texts[key] for key in texts if key not in shared}
    meta = {"version": 27, "preprocessedProfileVersion": version, "sampleUnits": {"threadCPUDelta": "µs"}, "interval": 1, "startTime": 0, "product": "x",
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}]}
    return {"meta": meta, "libs": [], "threads": [thread]} | ({"shared": {key: texts[key] for key in shared}} if shared else {})


def old_firefox():
    """Categories are bits of a list that is not in the file."""
    data = firefox(7)
    del data["meta"]["categories"]
    data["threads"][0]["frameTable"]["category"] = [16, None, 4096]
    return data


def pprof(types, rows, period=0, period_type=("cpu", "nanoseconds"), duration=0):
    """Rows of (path, values)."""
    strings, numbers, data = Strings(), {}, b""
    for name, unit in types:
        data += message(1, number(1, strings(name)) + number(2, strings(unit)))
    for path, values in rows:
        ids = [numbers.setdefault(name, len(numbers) + 1) for name in reversed(path)]
        data += message(2, b"".join(number(1, i) for i in ids) + b"".join(number(2, value) for value in values))
    for name, i in numbers.items():
        data += message(4, number(1, i) + message(4, number(1, i))) + message(5, number(1, i) + number(2, strings(name)))
    kind = message(11, number(1, strings(period_type[0])) + number(2, strings(period_type[1])))
    return data + strings.table() + kind + number(10, duration) + number(12, period)


def text(data):
    return json.dumps(data).encode()


def shares(big, small, known=True, counts=(1, 9)):
    return expected(("file", ("main", "big"), big, big, counts[0]), ("file", ("main", "small"), small, small, counts[1]), known=known)


COUNTS, CPU = ("samples", "count"), ("cpu", "nanoseconds")
BIG = [(("main", "big"), (1, 900000001)), (("main", "small"), (9, 100000000))]
FAST = expected(("Main", ("main", "fast"), 1, 10**6, 1), ("Main", ("main", "slow"), 1, 10**6, 1))


def period(a, b):
    """Of 7 and 3 samples of `perf record -c 10101010` as stackcollapse-perf.pl adds them up."""
    return f"x;main;f {a * 10101010}\nx;main;g {b * 10101010}\nx 0\n".encode()


def without(data, key):
    return {name: value for name, value in data.items() if name != key}


def untimed(*counts):
    """Counts of foo and bar, which have 5 ms."""
    return expected(*(("file", (name,), count, count * 10**6, count) for name, count in zip(("foo", "bar"), counts)))


def hit_counts():
    data = without(without(cpuprofile(1000), "timeDeltas"), "samples")
    for node in data["nodes"]:
        node["hitCount"] = {"foo": 3, "bar": 2}.get(node["callFrame"]["functionName"], 0)
    return data


HUGE = [(("main", "fast"), (182488640845,)), (("main", "slow"), (92488640847,))]
BILLIONS = expected(("file", ("main", "fast"), 182488640845, 0, 1), ("file", ("main", "slow"), 92488640847, 0, 1), known=False)


def scope(unit, *weights):
    """Samples of fast and slow in turn."""
    return text({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "fast"}, {"name": "slow"}]},
                 "profiles": [{"type": "sampled", "name": "Main", "unit": unit, "startValue": 0, "endValue": 1, "weights": weights,
                               "samples": [[i % 2] for i in range(len(weights))]}]})


def scoped(fast, slow, known=True, counts=(1, 1), left_out=False):
    return expected(*(("Main", (name,), weight, 0, count) for name, weight, count in zip(("fast", "slow"), (fast, slow), counts) if count),
                    known=known, left_out=left_out)


def weighed(*weights):
    data = firefox(27)
    data["threads"][0]["samples"]["weight"] = weights
    return text(data)


def rows(columns, **tables):
    """Three samples of fast, slow, fast, but for these columns."""
    return text(firefox(27, samples={"length": 3, "stack": [1, 2, 1], "time": [1, 2, 3], "weight": None, "weightType": "samples"} | columns, **tables))


def read_rows(fast, slow, left_out=True):
    return expected(*(("Main", ("main", name), count, count * 10**6, count) for name, count in (("fast", fast), ("slow", slow)) if count), left_out=left_out)


# What they are: the file, what is right
FILES = {
    "Bun: times since 1970": (text(cpuprofile(EPOCH)), five("file")),
    "a trace with times since 1970": (text(trace(start=EPOCH)), five("")),
    "pprof: CPU time that counts do not follow": (pprof([COUNTS, CPU], BIG, 10**7), shares(900000001, 100000000)),
    "pprof: CPU time without a period": (pprof([CPU], [(path, values[1:]) for path, values in BIG]), shares(900000001, 100000000, known=False)),
    ".NET: a period of 1 ns": (pprof([CPU], [(("main", "big"), (10**9,)), (("main", "small"), (10**9,))], 1), shares(10**9, 10**9, known=False)),
    "Pyroscope: a period of 10^9 ms": (pprof([COUNTS], [(("main", "big"), (234084,))], 10**9, ("", "milliseconds")),
                                       expected(("file", ("main", "big"), 234084, 0, 234084))),
    "Go: a duration, and little CPU time": (pprof([COUNTS, CPU], [(("main", "leaf"), (3, 3 * 10**7)), (("main",), (1, 10**7))], 10**7, duration=3 * 10**10),
                                            expected(("file", ("main", "leaf"), 3, 3 * 10**7, 3), ("file", ("main",), 1, 10**7, 1))),
    "pprof: samples that are time or cycles": (pprof([COUNTS], HUGE, 10**7), BILLIONS),
    "pprof: samples that are time, and time": (pprof([COUNTS, CPU], [(path, values * 2) for path, values in HUGE], 10**7),
                                               expected(*(("file", path, ns, ns, 1) for path, (ns,) in HUGE), known=False)),
    "pprof: samples that are no counts, and an event": (pprof([COUNTS, ("wall", "nanoseconds")], [(path, (*values, 5)) for path, values in HUGE], 10**7),
                                                        expected(*(("file", path, 5, 0, 1) for path, _ in HUGE), known=False)),
    "pprof: an unknown time beside samples": (pprof([COUNTS, ("delay", "nanoseconds")], [(("main", "f"), (2, 500)), (("main", "g"), (0, 1500))], 10**7),
                                              expected(("file", ("main", "f"), 500, 2 * 10**7, 2), ("file", ("main", "g"), 1500, 0, 0))),
    "pprof: rows of other types alone": (pprof([("alloc", "bytes"), COUNTS, CPU], [(("main", "f"), (0, 2, 2 * 10**7)), (("main", "g"), (4096, 0, 0)), (("main",), (0, 0, 0))]),
                                         expected(("file", ("main", "f"), 2, 2 * 10**7, 2), left_out=True)),
    "pprof: samples that are sums of periods": (pprof([COUNTS], [(("main", "f"), (7 * 10101010,)), (("main", "g"), (3 * 10101010,))], 10**7),
                                                expected(("file", ("main", "f"), 70707070, 7 * 10**7, 7), ("file", ("main", "g"), 30303030, 3 * 10**7, 3))),
    "pprof: two million samples of 10 ms": (pprof([COUNTS, CPU], [(("main",), (2 * 10**6, 2 * 10**13))]), expected(("file", ("main",), 2 * 10**6, 2 * 10**13, 2 * 10**6))),
    "pprof: just less than a million samples": (pprof([COUNTS], [(("main",), (999999,))]), expected(("file", ("main",), 999999, 0, 999999))),
    "Firefox: samples that are time or cycles": (weighed(182488640845, 92488640847),
                                                 expected(*(("Main", path, value, 0, 1) for path, (value,) in HUGE), known=False)),
    "Firefox: samples that are sums of periods": (weighed(7 * 10101010, 3 * 10101010),
                                                  expected(("Main", ("main", "fast"), 70707070, 7 * 10**6, 7), ("Main", ("main", "slow"), 30303030, 3 * 10**6, 3))),
    "speedscope: less than a nanosecond each": (scope("nanoseconds", *[0.4, 0.6] * 1000), scoped(400, 600, counts=(1000, 1000))),
    "speedscope: one sample below half a nanosecond": (scope("milliseconds", 4e-7, 0.4), scoped(0, 400000)),
    "speedscope: seconds as doubles": (scope("seconds", *[0.1 + 0.2, 1e-9 / 3] * 3), scoped(900000000, 1, counts=(3, 3))),
    "speedscope: microseconds with fractions": (scope("microseconds", *[100 / 3, 200 / 3] * 3000), scoped(10**8, 2 * 10**8, counts=(3000, 3000))),
    "speedscope: counts with fractions": (scope("none", 0.25, 1.5), scoped(25 * 10**7, 15 * 10**8, known=False)),
    "speedscope: large counts with fractions": (scope("none", 2e10 + 0.5, 1.5), scoped(200000000005 * 10**6, 15 * 10**6, known=False)),
    "speedscope: tiny counts": (scope("none", 3e-12, 1.5e-11), scoped(3, 15, known=False)),
    "speedscope: a count that is too small beside a large one": (scope("none", 1e-12, 1e9 + 0.5), scoped(0, (10**9 + 0.5) * 10**9, known=False, counts=(0, 1), left_out=True)),
    "Firefox: a row without a weight": (rows({"weight": [1, None, 1]}), read_rows(2, 0)),
    "Firefox: a row without a time": (rows({"time": [1, None, 3]}), read_rows(2, 0)),
    "Firefox: a row without a distance in time": (rows({"time": None, "timeDeltas": [1, None, 1]}), read_rows(2, 0)),
    "Firefox: a row without a stack is no sample": (rows({"stack": [1, None, 1]}), read_rows(2, 0, left_out=False)),
    "Firefox: a stack without a frame": (rows({}, stackTable={"length": 3, "prefix": [None, 0, 0], "frame": [2, 0, None]}), read_rows(2, 0)),
    "Firefox: a stack on one without a frame": (rows({"stack": [1, 3, 1]}, stackTable={"length": 4, "prefix": [None, 0, None, 2], "frame": [2, 0, None, 1]}), read_rows(2, 0)),
    "Firefox: CPU time of a row that is left out": (
        rows({"threadCPUDelta": [0, 5, 7], "weight": [1, None, 1]}), expected(("Main", ("main", "fast"), 1, 0, 1), ("Main", ("main", "fast"), 1, 12000, 1), left_out=True)),
    "a trace of one sample without an end": (text(instant(1)), expected(("", ("foo",), 1, 0, 1))),
    "a trace of samples without lengths": (text(instant(3)), expected(("", ("foo",), 2, 0, 2), ("", ("bar",), 1, 0, 1))),
    "a process_name without a name": (text(trace({"name": "process_name", "ph": "M", "pid": 1, "tid": 1})), five("", left_out=True)),
    "a .cpuprofile without timeDeltas": (text(without(cpuprofile(1000), "timeDeltas")), untimed(3, 2)),
    "a .cpuprofile with hitCount alone": (text(hit_counts()), untimed(3, 2)),
    "the answer to Profiler.stop": (text({"profile": cpuprofile(1000)}), five("file")),
    "the whole message with the answer": (text({"id": 7, "result": {"profile": cpuprofile(1000)}}), five("file")),
    "pprof: a sum of 2^62": (pprof([COUNTS], [(("main", "fast"), (2**62,)), (("main", "slow"), (2**62,))]),
                             expected(("file", ("main", "fast"), 2**62 - 1, 0, 1), ("file", ("main", "slow"), 0, 0, 1), known=False, left_out=True)),
    "pprof: 2^62 ns": (pprof([COUNTS, CPU], [(("main", "fast"), (3, 2**62)), (("main", "slow"), (9, 5))]),
                       expected(("file", ("main", "fast"), 2**61, 2**61, 3), ("file", ("main", "slow"), 5, 5, 9), left_out=True)),
    "Vernier: an unused table": (text(firefox(47, nativeSymbols={})), FAST),
    "Firefox 58: shared texts alone": (text(firefox(58, ("stringArray", "sources"))), FAST),
    "Firefox 48: categories without a list": (text(old_firefox()), FAST),
    "names of tasks without numbers": (text(trace({"name": "thread_name", "ph": "M", "pid": 1, "tid": "-1", "args": {"name": "x"}}, None)), five("", left_out=True)),
    "a chunk of an earlier recording": (text(trace(event("ProfileChunk", {"cpuProfile": {"nodes": [], "samples": [7, 8]}, "timeDeltas": [0, 1000]}, 500, "0x0"))),
                                        five("", left_out=True)),
    "a sample of a node that is missing": (text(trace(samples=[2, 2, 3, 2, 99])), five("", 4, left_out=True)),
    "Chrome 58: one event": (text([{"ph": "I", "name": "CpuProfile", "cat": "c", "pid": 1, "tid": 1, "ts": 1000, "args": {"data": {"cpuProfile": cpuprofile(1000)}}}]),
                             five("")),
    "v8-profiler: a tree": (text(head()), five("file")),
    "Julia: events": (pprof([("events", "count")], [(("main", "f"), (7,)), (("main",), (3,))]),
                      expected(("file", ("main", "f"), 7, 0, 7), ("file", ("main",), 3, 0, 3))),
    "Datadog: cpu-samples": (pprof([("cpu-samples", "count"), ("cpu-time", "nanoseconds")], [(("main", "f"), (2, 2 * 10**7)), (("main",), (1, 10**7))]),
                             expected(("file", ("main", "f"), 2, 2 * 10**7, 2), ("file", ("main",), 1, 10**7, 1))),
    "perf_data_converter: cycles": (pprof([("cycles_sample", "count"), ("cycles_event", "count")], [(("main", "f"), (2, 5000)), (("main",), (1, 70))]),
                                    expected(("file", ("main", "f"), 5000, 0, 2), ("file", ("main",), 70, 0, 1))),
    "async-profiler: the first function of a thread": (
        b"start_thread;thread_native_entry;JavaThread::run;java/lang/Thread.run;App.a 30\nstart_thread;thread_native_entry;GCTask 5\njava/lang/Thread.run;App.b 10\n",
        expected(("file", ("start_thread", "thread_native_entry", "JavaThread::run", "java/lang/Thread.run", "App.a"), 30, 0, 30),
                 ("file", ("start_thread", "thread_native_entry", "GCTask"), 5, 0, 5), ("file", ("java/lang/Thread.run", "App.b"), 10, 0, 10))),
    "DTrace: a library and a function": (b"libc.so.1`_lwp_start;app`work;app`inner 10\nlibc.so.1`_lwp_start;app`other 5\n",
                                         expected(("file", ("libc.so.1`_lwp_start", "app`work", "app`inner"), 10, 0, 10),
                                                  ("file", ("libc.so.1`_lwp_start", "app`other"), 5, 0, 5))),
    "a last number without an end": (b"t;a 12\nt;b 34", expected(("t", ("a",), 12, 0, 12), ("t", ("b",), 34, 0, 34), left_out=True)),
    "a single number without an end": (b"t;a 12", expected(("t", ("a",), 12, 0, 12))),
    "a last number with a space behind it": (b"t;a 12\nt;b 34 ", expected(("t", ("a",), 12, 0, 12), ("t", ("b",), 34, 0, 34))),
    "a last comment without an end": (b"t;a 12\nt;b 34\n# 5", expected(("t", ("a",), 12, 0, 12), ("t", ("b",), 34, 0, 34))),
    "a comment": (b"# created by x\na;b;c 3\na;b;d 4\na 1\n", expected(("file", ("a", "b", "c"), 3, 0, 3), ("file", ("a", "b", "d"), 4, 0, 4), ("file", ("a",), 1, 0, 1))),
    "a line without a count": (b"t;b;c 3\ngarbage\nt;b;d 4\nt;e 1\n",
                               expected(("t", ("b", "c"), 3, 0, 3), ("t", ("b", "d"), 4, 0, 4), ("t", ("e",), 1, 0, 1), left_out=True)),
    "seconds": (b"a;b;c 0.4\na;b;d 0.3\na 0.2\n", expected(("file", ("a", "b", "c"), 4, 0, 1), ("file", ("a", "b", "d"), 3, 0, 1), ("file", ("a",), 2, 0, 1), known=False)),
    "sums of periods": (period(7, 3), expected(("file", ("x", "main", "f"), 70707070, 0, 7), ("file", ("x", "main", "g"), 30303030, 0, 3))),
}
