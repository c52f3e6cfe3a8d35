#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""The structural checker passes the golden files, and notices each of many ways to break them.

A checker that accepts everything is worth nothing, so every rule of it is broken here once, on
a copy of a golden file, and must be reported.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/e2e/consumers"))
import read_pprof  # noqa: E402

CHECKER = os.path.join(TOP, "tests/e2e/consumers/check_structure.py")
EXPECTED = os.path.join(TOP, "tests/golden/expected")


def shared(p, table):
    return p["shared"][table]


def samples(p, thread=0):
    return p["threads"][thread]["samples"]


def schema(p):
    return p["meta"]["markerSchema"][0]


def markers(p, thread=0):
    return p["threads"][thread]["markers"]


def put(container, key, value):
    container[key] = value


# (golden file, how to break it, a part of the complaint)
FIREFOX = [
    ("recursion", lambda p: p["meta"].pop("markerSchema"), "markerSchema"),
    ("recursion", lambda p: put(p["meta"], "preprocessedProfileVersion", 67), "format version"),
    ("recursion", lambda p: put(p["meta"], "interval", 0), "interval"),
    ("recursion", lambda p: put(p["meta"]["categories"][0], "color", "red"), "no grey"),
    ("recursion", lambda p: put(p["meta"]["categories"][5], "name", "Sleep"), "no category Idle"),
    ("recursion", lambda p: put(p["meta"], "initialVisibleThreads", [1]), "initialVisible"),
    ("recursion", lambda p: put(p["meta"], "initialSelectedThreads", [-1]), "initialSelected"),
    ("recursion", lambda p: put(p["meta"]["sampleUnits"], "threadCPUDelta", "us"), "sampleUnits"),
    ("recursion", lambda p: p["meta"]["extra"].pop(2), "Books"),
    ("recursion", lambda p: p.pop("counters"), "no counters"),
    ("recursion", lambda p: p["shared"].pop("nativeSymbols"), "no nativeSymbols"),
    ("recursion", lambda p: shared(p, "frameTable").pop("innerWindowID"), "innerWindowID"),
    ("recursion", lambda p: shared(p, "funcTable")["name"].append(0), "funcTable.name"),
    ("recursion", lambda p: put(shared(p, "stackTable"), "length", 5), "stackTable.frame"),
    ("recursion", lambda p: put(shared(p, "stackTable")["prefixOffset"], 2, -1), "prefixOffset"),
    ("recursion", lambda p: put(shared(p, "stackTable")["prefixOffset"], 2, 3), "prefixOffset"),
    ("recursion", lambda p: put(shared(p, "stackTable")["frame"], 2, 99), "stack 2: frame"),
    ("recursion", lambda p: put(shared(p, "frameTable")["func"], 1, 99), "frame 1: func"),
    ("recursion", lambda p: put(shared(p, "frameTable")["category"], 1, 6), "frame 1: category"),
    ("recursion", lambda p: put(shared(p, "frameTable")["subcategory"], 1, 1), "subcategory"),
    ("recursion", lambda p: put(shared(p, "frameTable")["line"], 1, 0), "frame 1: line"),
    ("recursion", lambda p: put(shared(p, "frameTable")["address"], 1, 1 << 60), "address"),
    ("recursion", lambda p: put(shared(p, "frameTable")["nativeSymbol"], 1, 4), "nativeSymbol"),
    ("recursion", lambda p: put(shared(p, "frameTable")["inlineDepth"], 6, 2), "inlined into"),
    ("recursion", lambda p: put(shared(p, "frameTable")["address"], 6, 1), "inlined into"),
    ("recursion", lambda p: put(shared(p, "funcTable")["name"], 1, 1000), "func 1: string"),
    ("recursion", lambda p: put(shared(p, "funcTable")["resource"], 1, 3), "func 1: resource"),
    ("recursion", lambda p: put(shared(p, "funcTable")["source"], 1, 2), "func 1: source"),
    ("recursion", lambda p: put(shared(p, "funcTable")["lineNumber"], 1, 0), "lineNumber"),
    ("recursion", lambda p: put(shared(p, "resourceTable")["lib"], 0, 3), "resource 0: lib"),
    ("recursion", lambda p: put(shared(p, "nativeSymbols")["libIndex"], 0, 3), "native 0: lib"),
    ("recursion", lambda p: put(p["libs"][1], "breakpadId", "13"), "breakpadId"),
    ("recursion", lambda p: put(p["libs"][1], "codeId", None), "ids disagree"),
    ("recursion", lambda p: p["shared"]["stringArray"].append("x"), "strings that nothing uses"),
    ("recursion", lambda p: put(samples(p)["stack"], 1, 99), "stack 1"),
    ("recursion", lambda p: put(samples(p)["stack"], 9, None), "without a"),
    ("recursion", lambda p: put(samples(p)["time"], 3, 2), "not after"),
    ("recursion", lambda p: put(samples(p)["time"], 3, Decimal("3.0000001")), "finer"),
    ("recursion", lambda p: put(samples(p)["time"], 9, 20), "too late"),
    ("recursion", lambda p: put(samples(p)["threadCPUDelta"], 3, -1), "threadCPUDelta 3"),
    ("recursion", lambda p: put(samples(p)["threadCPUDelta"], 3, None), "threadCPUDelta 3"),
    ("recursion", lambda p: put(samples(p)["threadCPUDelta"], 3, Decimal("0.5")), "CPUDelta 3"),
    ("recursion", lambda p: samples(p)["threadCPUDelta"].pop(), "threadCPUDelta has"),
    ("recursion", lambda p: put(samples(p), "weightType", "bytes"), "weightType"),
    ("recursion", lambda p: put(p["threads"][0], "pid", 42), "pid or tid"),
    ("recursion", lambda p: put(p["threads"][0], "tid", 42), "pid or tid"),
    ("recursion", lambda p: p["threads"][0].pop("markers"), "no markers"),
    ("recursion", lambda p: p["threads"][0]["markers"].pop("phase"), "phase"),
    ("recursion", lambda p: put(p, "threads", []), "no threads"),
    ("events", lambda p: put(schema(p), "name", 7), "markerSchema 7"),
    ("events", lambda p: put(schema(p), "display", ["stack-chart"]), "display"),
    ("events", lambda p: put(schema(p)["fields"][0], "format", "number"), "field"),
    ("events", lambda p: put(schema(p), "tableLabel", "{marker.data.nobody}"), "names nobody"),
    ("events", lambda p: markers(p)["data"].pop(), "markers.data has"),
    ("events", lambda p: put(markers(p)["name"], 0, 1000), "markers 0: string"),
    ("events", lambda p: put(markers(p)["category"], 0, 6), "markers 0: category"),
    ("events", lambda p: put(markers(p)["phase"], 0, 2), "markers 0: phase"),
    ("events", lambda p: put(markers(p)["endTime"], 0, None), "phase and endTime"),
    ("events", lambda p: put(markers(p)["startTime"], 0, -1), "markers 0: startTime"),
    ("events", lambda p: put(markers(p)["startTime"], 0, 7), "out of order"),
    ("events", lambda p: put(markers(p)["endTime"], 0, 101), "markers 0: endTime"),
    ("events", lambda p: put(markers(p)["data"][0], "type", "Other"), "markers 0: type"),
    ("events", lambda p: put(markers(p)["data"][0], "more", 1), "field more"),
    ("events", lambda p: put(markers(p)["data"][0], "reason", 1), "field reason"),
    ("events", lambda p: put(markers(p)["data"][0], "samples", 4), "cut stacks have markers"),
    ("events", lambda p: put(p["threads"][0], "showMarkersInTimeline", False), "showMarkers"),
    ("events", lambda p: [put(d, "ranges", 2) for d in markers(p)["data"] if d["type"] == "Lost"],
     "lost ranges"),
    ("events", lambda p: put(p["meta"]["extra"][1]["entries"][-1], "value", 5), "clock epochs"),
    ("events", lambda p: put(p["counters"][0], "name", ""), "counter 0: name"),
    ("events", lambda p: put(p["counters"][0], "pid", 500), "counter 0: pid"),
    ("events", lambda p: put(p["counters"][0], "mainThreadIndex", 1), "mainThreadIndex"),
    ("events", lambda p: put(p["counters"], 1, p["counters"][0]), "counter 1 is there twice"),
    ("events", lambda p: p["counters"][0]["display"].pop("tooltipRows"), "counter 0: display"),
    ("events", lambda p: put(p["counters"][0]["display"], "tooltipRows", []), "counter 0: display"),
    ("events", lambda p: put(p["counters"][0]["display"], "unit", "bytes"), "counter 0: graph"),
    ("events", lambda p: p["counters"][0]["samples"]["time"].pop(), "samples.time has"),
    ("events", lambda p: put(p["counters"][0]["samples"]["time"], 1, 0), "counter 0: time"),
    ("events", lambda p: put(p["counters"][0]["samples"]["count"], 1, 7), "counter 0: "),
    ("events", lambda p: put(p["counters"][3]["samples"]["count"], 1, -1 << 30), "no memory"),
    ("events", lambda p: p["counters"].pop(0), "no counter of its CPU"),
    ("processes", lambda p: put(p["threads"][2], "tid", "300"), "there twice"),
    ("processes", lambda p: p["threads"].insert(2, p["threads"].pop(3)), "not the first"),
    ("processes", lambda p: p["threads"].insert(1, p["threads"].pop(3)), "split"),
    ("processes", lambda p: put(p["threads"][3], "processName", "x"), "processName differs"),
    ("waits", lambda p: put(samples(p)["weight"], 1, 2), "sample 1 has weight 2"),
    ("waits", lambda p: put(samples(p)["weight"], 2, -1), "weight"),
    ("waits", lambda p: samples(p)["weight"].pop(), "weight"),
    ("waits", lambda p: put(samples(p)["threadCPUDelta"], 3, 5), "CPU time in a wait"),
    ("waits", lambda p: put(shared(p, "frameTable")["category"], 0, 10), "the leaf of a wait"),
    ("recursion", lambda p: put(samples(p), "weight", [1] * samples(p)["length"]), "weight"),
]


def node(p, i):
    return p["nodes"][i - 1]


def swap_nodes(p):
    p["nodes"][4], p["nodes"][5] = p["nodes"][5], p["nodes"][4]


CPUPROFILE = [
    ("recursion", lambda p: p.pop("samples"), "no samples"),
    ("recursion", lambda p: p.pop("endTime"), "no endTime"),
    ("recursion", swap_nodes, "ids are not"),
    ("recursion", lambda p: node(p, 3)["callFrame"].pop("url"), "url"),
    ("recursion", lambda p: put(node(p, 3)["callFrame"], "scriptId", 2), "scriptId"),
    ("recursion", lambda p: put(node(p, 3)["callFrame"], "lineNumber", -2), "lineNumber"),
    ("recursion", lambda p: put(node(p, 3)["callFrame"], "url", "file:///a b"), "url"),
    ("recursion", lambda p: put(node(p, 1)["callFrame"], "functionName", "root"), "not the root"),
    ("recursion", lambda p: node(p, 1).pop("hitCount"), "hitCount"),
    ("recursion", lambda p: put(node(p, 5), "hitCount", 3), "node 5: hitCount"),
    ("recursion", lambda p: node(p, 4)["children"].append(99), "child 99"),
    ("recursion", lambda p: node(p, 4)["children"].append(2), "child 2"),
    ("recursion", lambda p: node(p, 4)["children"].append(6), "two parents"),
    ("recursion", lambda p: node(p, 4)["children"].pop(), "no node's children"),
    ("recursion", lambda p: node(p, 4)["children"].reverse(), "preorder"),
    ("recursion", lambda p: put(node(p, 10), "callFrame", node(p, 5)["callFrame"]), "merged"),
    ("recursion", lambda p: put(node(p, 4), "positionTicks", []), "empty positionTicks"),
    ("recursion", lambda p: put(node(p, 5)["positionTicks"][0], "ticks", 3), "too many ticks"),
    ("recursion", lambda p: put(node(p, 5)["positionTicks"][0], "line", 0), "tick"),
    ("recursion", lambda p: put(node(p, 5), "positionTicks", [
        {"line": 2, "ticks": 1}, {"line": 1, "ticks": 1}]), "not sorted"),
    ("recursion", lambda p: put(p["samples"], 0, 99), "node 99"),
    ("recursion", lambda p: put(p["samples"], 0, 5), "hitCount"),
    ("recursion", lambda p: p["timeDeltas"].pop(), "timeDeltas"),
    ("recursion", lambda p: put(p["timeDeltas"], 2, -1), "timeDeltas"),
    ("recursion", lambda p: put(p["timeDeltas"], 2, Decimal("0.5")), "timeDeltas"),
    ("recursion", lambda p: put(p, "endTime", p["startTime"]), "endTime"),
    ("recursion", lambda p: put(p["$sysprof"], "samples", 8), "$sysprof.samples"),
    ("recursion", lambda p: put(p["$sysprof"], "cpuTimeNs", 8), "add up"),
    ("gaps", lambda p: (put(p["$sysprof"]["threadCPUDeltas"], 0, 5),
                        put(p["$sysprof"]["threadCPUDeltas"], 99, 699995)), "has CPU time"),
]

FOLDED = [
    ("recursion", lambda text: text[:-1], "cut off"),
    ("recursion", lambda text: "x;y 1\n" + text, "byte order"),
    ("recursion", lambda text: text + "x;;y 1\n", "empty frame"),
    ("recursion", lambda text: text + "x;y 0\n", "stack count"),
    ("recursion", lambda text: text + "x;y\n", "stack count"),
    ("recursion", lambda text: text + "x;y  1\n", "trailing space"),
    ("recursion", lambda text: text + "x;\x1by 1\n", "control"),
    ("recursion", lambda text: text + "x;y 1\nx;y 2\n", "twice"),
]


def events(p, name):
    return [e for e in p["traceEvents"] if e["name"] == name]


def chunk(p, i=0):
    return events(p, "ProfileChunk")[i]["args"]["data"]


def span(p, i=0):
    return [e for e in p["traceEvents"] if e["ph"] == "X"][i]


def chunk_nodes(p, i=0):
    return chunk(p, i)["cpuProfile"]["nodes"]


def wait_of(p, i=0):
    return [e for e in p["traceEvents"] if e["cat"] == "sysprof.wait"][i]


TRACE = [
    ("waits", lambda p: put(wait_of(p), "dur", 25000), "before the one before"),
    ("waits", lambda p: put(wait_of(p), "ts", 999000), "outside of its thread"),
    ("waits", lambda p: put(wait_of(p), "dur", 0), "dur"),
    ("waits", lambda p: put(wait_of(p)["args"], "state", "disk"), "its state"),
    ("waits", lambda p: put(wait_of(p)["args"], "holder", 5), "its holder"),
    ("recursion", lambda p: put(p["metadata"], "dataOrigin", "CPUProfile"), "dataOrigin"),
    ("recursion", lambda p: p.pop("metadata"), "members"),
    ("recursion", lambda p: p["traceEvents"].remove(span(p)), "before its thread's span"),
    ("recursion", lambda p: put(span(p), "name", "RunTask"), "an event of Chrome's"),
    ("recursion", lambda p: span(p).pop("dur"), "dur"),
    ("recursion", lambda p: put(span(p), "dur", 5000), "outside of its span"),
    ("recursion", lambda p: put(span(p)["args"], "samples", 8), "9 samples, not 8"),
    ("recursion", lambda p: put(span(p), "pid", "42"), "pid"),
    ("recursion", lambda p: put(events(p, "Profile")[0], "ph", "X"), "phase"),
    ("recursion", lambda p: put(events(p, "Profile")[0], "cat", "x"), "category"),
    ("recursion", lambda p: put(events(p, "Profile")[0]["args"]["data"], "startTime", 1), "startTime"),
    ("processes", lambda p: put(events(p, "Profile")[1], "id", "0x1"), "two profiles"),
    ("processes", lambda p: put(events(p, "ProfileChunk")[1], "tid", 1), "thread"),
    ("processes", lambda p: put(chunk_nodes(p, 1)[0], "id", 1), "not"),
    ("recursion", lambda p: put(chunk_nodes(p)[3], "id", 99), "node 99, not 4"),
    ("recursion", lambda p: put(chunk_nodes(p)[3], "parent", 9), "parent 9"),
    ("recursion", lambda p: chunk_nodes(p)[3].pop("parent"), "parent None"),
    ("recursion", lambda p: put(chunk_nodes(p)[0], "parent", 1), "parent 1"),
    ("recursion", lambda p: chunk_nodes(p)[3]["callFrame"].pop("url"), "url"),
    ("recursion", lambda p: put(chunk_nodes(p)[3]["callFrame"], "columnNumber", 1 << 31), "columnNumber"),
    ("recursion", lambda p: put(chunk_nodes(p)[0]["callFrame"], "functionName", "main"), "the root"),
    ("recursion", lambda p: chunk(p)["timeDeltas"].pop(), "timeDeltas"),
    ("recursion", lambda p: chunk(p)["lines"].pop(), "lines"),
    ("recursion", lambda p: put(chunk(p)["timeDeltas"], 1, -1), "timeDeltas: a value"),
    ("recursion", lambda p: put(chunk(p)["cpuProfile"]["samples"], 1, 99), "node 99"),
    ("recursion", lambda p: chunk(p)["cpuProfile"]["samples"].extend([4] * 50000), "samples"),
    ("recursion", lambda p: events(p, "process_name")[0]["args"].pop("name"), "args"),
    ("recursion", lambda p: p["traceEvents"].append(events(p, "process_name")[0]), "a second"),
    ("recursion", lambda p: p["traceEvents"].remove(events(p, "thread_name")[0]), "no name"),
    ("gaps", lambda p: put(chunk(p)["cpuProfile"]["samples"], 1, chunk(p)["cpuProfile"]["samples"][0]),
     "samples, not"),
]

PPROF = [
    ("waits", lambda p: put(p["sample"][0]["value"], 2, 1), "wall time"),
    ("waits", lambda p: p["sample"][0]["label"].pop(), ""),
    ("waits", lambda p: p["sample_type"].pop(), "values"),
    ("recursion", lambda p: put(p["string_table"], 0, "x"), "string_table[0]"),
    ("recursion", lambda p: put(p["string_table"], 2, p["string_table"][1]), "a string twice"),
    ("recursion", lambda p: put(p["string_table"], 2, "\x1b[31m"), "control bytes"),
    ("recursion", lambda p: p["sample_type"].pop(), "sample types"),
    ("recursion", lambda p: put(p, "default_sample_type", 1), "default sample type"),
    ("recursion", lambda p: put(p, "period_type", None), "period type"),
    ("recursion", lambda p: put(p, "comment", []), "no comment"),
    ("recursion", lambda p: put(p["function"][1], "id", 9), "ids of function"),
    ("recursion", lambda p: put(p["location"][1], "id", 9), "ids of location"),
    ("recursion", lambda p: put(p["mapping"][1], "id", 9), "ids of mapping"),
    ("recursion", lambda p: put(p["function"][0], "name", 0), "no name"),
    ("recursion", lambda p: put(p["function"][0], "name", 999), "string 999"),
    ("recursion", lambda p: put(p["function"][0], "system_name", p["function"][0]["name"]), "demangle"),
    ("recursion", lambda p: put(p["location"][0], "mapping_id", 9), "mapping"),
    ("recursion", lambda p: put(p["location"][0]["line"][0], "function_id", 99), "function"),
    ("recursion", lambda p: put(p["location"][0], "line", []), "locations without a line"),
    ("recursion", lambda p: put(p["location"][0], "address", 1), "is outside"),
    ("recursion", lambda p: put(p["mapping"][0], "has_functions", False), "in spite of its flags"),
    ("recursion", lambda p: put(p["mapping"][0], "has_inline_frames", False), "has_inline_frames"),
    ("recursion", lambda p: put(p["mapping"][0], "has_line_numbers", False), "has_line_numbers"),
    ("recursion", lambda p: put(p["mapping"][0], "has_filenames", False), "has_filenames"),
    ("recursion", lambda p: put(p["mapping"][0], "filename", 0), "no file"),
    ("recursion", lambda p: put(p["mapping"][0], "memory_limit", 0), "range"),
    ("recursion", lambda p: put(p["sample"][0], "location_id", []), "no stack"),
    ("recursion", lambda p: put(p["sample"][0], "location_id", [99]), "location"),
    ("recursion", lambda p: p["sample"][0]["value"].pop(), "values"),
    ("recursion", lambda p: put(p["sample"][0]["value"], 0, -1), "values"),
    ("recursion", lambda p: put(p["sample"][0]["label"][0], "num_unit", 0), "unit"),
    ("recursion", lambda p: put(p["sample"][0]["label"][0], "str", 1), "is both"),
    ("recursion", lambda p: p["sample"][0]["label"].pop(0), "labels"),
    ("recursion", lambda p: p["sample"][0]["label"].append(p["sample"][0]["label"][0]), "label"),
]


def encode_varint(value):
    out, value = b"", value & (1 << 64) - 1
    while value > 127:
        out, value = out + bytes((value & 127 | 128,)), value >> 7
    return out + bytes((value,))


def encode(message, fields):
    """The other way round of read_pprof."""
    out = b""
    for number, (name, kind) in read_pprof.MESSAGES[message].items():
        values = fields[name] if isinstance(kind, list) else [fields[name]]
        kind = kind[0] if isinstance(kind, list) else kind
        for value in values:
            if value is None or (not isinstance(fields[name], list) and not value):
                continue
            if kind in ("int", "uint", "bool"):
                out += encode_varint(number << 3) + encode_varint(int(value))
                continue
            part = value.encode() if kind == "str" else encode(kind, value)
            out += encode_varint(number << 3 | 2) + encode_varint(len(part)) + part
    return out


def break_pprof(data, damage):
    profile = read_pprof.read_pprof(data)
    assert read_pprof.read_pprof(encode("profile", profile)) == profile, "the encoder of this test"
    damage(profile)
    return encode("profile", profile)


class Decimals(json.JSONEncoder):
    def default(self, o):
        return float(o) if isinstance(o, Decimal) else super().default(o)


def run_checker(paths):
    out = subprocess.run([sys.executable, "-B", CHECKER, "--json", *paths], check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return out.returncode, json.loads(out.stdout)["files"]


def main():
    golden = [os.path.join(EXPECTED, name) for name in sorted(os.listdir(EXPECTED))
              if not name.endswith(".txt")]
    assert len(golden) >= 30, golden
    status, results = run_checker(golden)
    assert status == 0, [r["errors"] for r in results if r["errors"]]

    # one profile is the same in all of its files
    totals = {os.path.basename(r["path"]): r for r in results}
    for suffix in "cpuprofile", "trace.json", "pb":
        assert totals["recursion.json"]["totals"] == totals["recursion." + suffix]["totals"], suffix
    assert totals["recursion.json"]["samples"] == totals["recursion.folded"]["samples"] == 9
    assert totals["processes.json"]["totals"]["300/301"] == {"samples": 8, "cpu_ns": 7920777}

    broken = []
    with tempfile.TemporaryDirectory() as scratch:
        for suffix, cases in ((".json", FIREFOX), (".cpuprofile", CPUPROFILE),
                              (".trace.json", TRACE), (".pb", PPROF), (".folded", FOLDED)):
            for i, (name, damage, complaint) in enumerate(cases):
                with open(os.path.join(EXPECTED, name + suffix), "rb") as file:
                    data = file.read()
                if suffix == ".folded":
                    data = damage(data.decode()).encode()
                elif suffix == ".pb":
                    data = break_pprof(data, damage)
                else:
                    document = copy.deepcopy(json.loads(data, parse_float=Decimal))
                    damage(document)
                    data = json.dumps(document, cls=Decimals).encode()
                path = os.path.join(scratch, "%d-%s%s" % (i, name, suffix))
                with open(path, "wb") as file:
                    file.write(data)
                broken.append((path, complaint))
        # not JSON at all, and JSON that is no profile
        for i, text in enumerate(("", "{", "[]", '{"nodes": NaN}', '{"nodes":[],"nodes":[]}')):
            path = os.path.join(scratch, "bad%d.cpuprofile" % i)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            broken.append((path, ""))
        for i, data in enumerate((b"\x0a", b"\x0a\x7f", b"\x08\x01", b"\x80" * 11)):
            path = os.path.join(scratch, "bad%d.pb" % i)
            with open(path, "wb") as file:
                file.write(data)
            broken.append((path, ""))
        status, results = run_checker([path for path, _ in broken])
        assert status == 1
    failed = 0
    for (path, complaint), result in zip(broken, results):
        if not any(complaint in error for error in result["errors"]):
            failed += 1
            print("%s: no word of “%s” in %r" % (os.path.basename(path), complaint,
                                               result["errors"]))
    print("%d golden files pass, %d of %d broken ones are noticed" % (
        len(golden), len(broken) - failed, len(broken)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
