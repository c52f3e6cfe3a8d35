#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized
"""
Profiles of other tools, as they write them today, through convert and report: Node's --cpu-prof, Go's
runtime/pprof, folded stacks; our own formats into one another; and files that are no profiles.
"""
import collections
import gzip
import json
import os
import re

from libe2e import GOLDEN, main, quick, run, scratch, sysprof, write
from libgo import pprof
from libprofiles import go_profile, node_profile, report, self_of


class CpuProfile:
    """A .cpuprofile by call paths, which do not depend on the numbers of nodes."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.data = data = json.load(f)
        nodes = {node["id"]: node for node in data["nodes"]}
        parent = {child: node["id"] for node in data["nodes"] for child in node.get("children", [])}

        def function(node):
            frame = node["callFrame"]
            return frame["functionName"], frame["url"], frame["lineNumber"], frame["columnNumber"]

        def path_of(number):
            path = []
            while number is not None:
                path.append(function(nodes[number]))
                number = parent.get(number)
            return tuple(reversed(path))

        paths = {number: path_of(number) for number in nodes}
        self.paths = set(paths.values())
        self.ticks = collections.Counter()
        self.hits = collections.Counter()
        for node in data["nodes"]:
            self.hits[paths[node["id"]]] += node["hitCount"]
            for tick in node.get("positionTicks", []):
                self.ticks[paths[node["id"]], tick["line"]] += tick["ticks"]
        # a sample lasts until the next one; what is idle is no CPU time. V8 now and then writes one late, with a
        # delta below 0: it belongs where its time is
        times, now = [], data["startTime"]
        for delta in data["timeDeltas"]:
            now += delta
            times.append(now)
        order = sorted(range(len(times)), key=times.__getitem__)
        self.samples = [paths[data["samples"][i]] for i in order]
        self.times = sorted(times)
        times = [*self.times, data["endTime"]]
        self.cpu = collections.Counter()
        for i, sample in enumerate(self.samples):
            if sample[-1][0] != "(idle)":
                self.cpu[sample[-1]] += 1000 * (times[i + 1] - times[i])


# ---- Node ----------------------------------------------------------------------------------------

def test_node_round_trip():
    """The nodes, samples, deltas and lines that Node wrote are there again."""
    path, again = node_profile(), scratch("again.cpuprofile")
    sysprof("convert", path, "-o", again, check=0)
    before, after = CpuProfile(path), CpuProfile(again)
    assert before.paths == after.paths, before.paths ^ after.paths
    assert before.samples == after.samples
    assert before.times == after.times
    assert before.data["startTime"] == after.data["startTime"]
    assert before.data["endTime"] == after.data["endTime"]
    assert before.cpu == after.cpu
    # a node's hits are its samples; V8 now and then counts one at another node of the same function
    assert +after.hits == collections.Counter(after.samples)
    extra = before.ticks - after.ticks
    assert sum(extra.values()) <= 2, extra
    third = scratch("third.cpuprofile")
    sysprof("convert", again, "-o", third, check=0)
    with open(again, "rb") as a, open(third, "rb") as b:
        assert a.read() == b.read(), "what was read of our own file is not what it says"


def test_node_report():
    profile = CpuProfile(node_profile())
    reported = report(node_profile())
    samples = [s for s in profile.samples if s[-1][0] != "(idle)"]
    assert reported["summary"]["samples"] == len(samples)
    assert reported["summary"]["cpu_ns"] == sum(profile.cpu.values())
    expected = collections.Counter()
    for sample, ns in profile.cpu.items():
        expected[sample[0] or "(anonymous)"] += ns
    assert self_of(node_profile()) == +expected, "shares are not of the time until the next sample"


def test_node_everywhere():
    """The same totals in every format that has no other idea of a sample, and back from there."""
    expected = self_of(node_profile())
    for name in ("x.json", "x.json.gz", "x.folded", "x.cpuprofile"):
        sysprof("convert", node_profile(), "-o", scratch(name), check=0)
        assert self_of(scratch(name)) == expected, name


def pprof_raw(path):
    """go tool pprof -raw: values and the functions of each sample, leaf first."""
    out = pprof("-raw", path)
    head, _, rest = out.partition("Samples:\n")
    samples, _, rest = rest.partition("Locations\n")
    locations, _, _ = rest.partition("Mappings\n")
    functions, number = {}, None
    for line in locations.splitlines():
        # "  12: 0x0 M=1 name file:line:column s=start"; further lines of a location have no number
        match = re.match(r"\s*(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*)", line)
        if match:
            number = int(match[1])
            functions[number] = []
        text = match[2] if match else line.strip()
        functions[number].append(text)
    rows = []
    for line in samples.splitlines()[1:]:
        match = re.match(r"\s*(\d+)\s+(\d+): ([\d ]*)$", line)
        if match:
            rows.append((int(match[1]), int(match[2]), [functions[int(n)] for n in match[3].split()]))
    return head, rows


def test_node_to_pprof():
    """[X1] [X2] [X4] [X6]: what node --cpu-prof wrote, as pprof."""
    path, out = node_profile(), scratch("node.pb.gz")
    profile = CpuProfile(path)
    sysprof("convert", path, "-o", out, check=0)
    with open(out, "rb") as f:
        assert f.read(2) == b"\x1f\x8b"
    head, rows = pprof_raw(out)
    cpu = [s for s in profile.samples if s[-1][0] != "(idle)"]
    assert sum(row[0] for row in rows) == len(cpu)
    assert sum(row[1] for row in rows) == sum(profile.cpu.values())
    duration = profile.data["endTime"] - profile.data["startTime"]
    match = re.search(r"Duration: ([\d.]+)", head)  # the first four letters: of ms, or of s where it took longer than one
    assert match and abs(float(match[1]) / (duration / (1e3 if duration < 1e6 else 1e6)) - 1) < 1e-2, head
    for name in ("fibonacci", "hot", "(garbage collector)", "(program)"):
        expected = sum(ns for function, ns in profile.cpu.items() if function[0] == name)
        reported = sum(row[1] for row in rows if row[2][0][0].split(" ")[0] == name.split(" ")[0])
        assert reported == expected, (name, reported, expected)
    assert self_of(out) == self_of(path)


def test_x2_keys():
    """f1 at 2:3 and f at 12:3, and a function of the same name and place in another file, stay apart."""
    def node(number, name, url, line, column, children=()):
        return {"id": number, "hitCount": 0, "children": list(children),
                "callFrame": {"functionName": name, "scriptId": "0", "url": url, "lineNumber": line,
                              "columnNumber": column}}
    nodes = [node(1, "(root)", "", -1, -1, (2, 3, 4, 5)), node(2, "f1", "file:///a.js", 2, 3),
             node(3, "f", "file:///a.js", 12, 3), node(4, "f1", "file:///b.js", 2, 3),
             node(5, "wasm-function[7]", "wasm://wasm/0badcafe", 0, 71)]
    path = write(scratch("keys.cpuprofile"), json.dumps({
        "nodes": nodes, "startTime": 100, "endTime": 200, "samples": [2, 3, 4, 2, 5],
        "timeDeltas": [10, 10, 20, 30, 5]}))
    again = scratch("keys.again.cpuprofile")
    sysprof("convert", path, "-o", again, check=0)
    before, after = CpuProfile(path), CpuProfile(again)
    assert len(after.cpu) == 4 and before.cpu == after.cpu, after.cpu


# ---- Go ------------------------------------------------------------------------------------------

def test_go():
    """What go tool pprof shows of a file of Go's runtime, report shows too."""
    path = go_profile()
    expected = {}
    out = pprof("-top", "-sample_index=samples", "-nodecount=1000", "-nodefraction=0", path)
    for line in out.splitlines():
        match = re.match(r"\s+(\d+)\s+[\d.]+%\s+[\d.]+%\s+(\d+)\s+[\d.]+%\s+(.*)", line)
        if match:
            expected[re.sub(r" \((partial-)?inline\)$", "", match[3])] = (int(match[1]), int(match[2]))
    assert expected, out
    reported = {row["function"]: (row["self"], row["total"]) for row in report(path)["rows"]}
    assert reported == expected
    assert "main.(*T).Spin" in reported
    sysprof("convert", path, "-o", scratch("go.folded"), "-o", scratch("go.json.gz"), check=0)
    assert self_of(scratch("go.json.gz")) == self_of(path) == self_of(scratch("go.folded"))


def test_go_heap():
    result = sysprof("report", go_profile() + ".heap", check=1)
    assert "no CPU samples" in result.err and "inuse_space/bytes" in result.err, result


# ---- folded stacks -------------------------------------------------------------------------------

@quick
def test_folded():
    """As stackcollapse-perf.pl writes them, with its annotations; and the same bytes again."""
    text = ("node;_start;main;[libc.so.6] 3\n"
            "node;_start;main;schedule_[k] 4\n"
            "perl;main;Perl_pp_concat 12\n")
    path = write(scratch("perf.folded"), text)
    assert self_of(path) == {"[libc.so.6]": 3, "schedule": 4, "Perl_pp_concat": 12}
    again = scratch("perf.again.folded")
    sysprof("convert", path, "-o", again, check=0)
    with open(again, encoding="ascii") as f:
        assert f.read() == text


@quick
def test_what_processes_belong_to_is_read_back():
    """Services, users, units and containers: of pprof and Firefox files and traces those of all processes, of .cpuprofile files that of the one."""
    path, out = os.path.join(GOLDEN, "services.sysprof"), [scratch("named.pb.gz"), scratch("named.cpuprofile"), scratch("named.json.gz"), scratch("named.trace.json.gz")]
    sysprof("convert", path, *(word for name in out for word in ("-o", name)), check=0)
    for what in "service", "user", "unit", "container":
        wanted, *named = (sorted((row[what], row.get(f"{what}_id") or "", row["self"], row["processes"]) for row in report(name, "--by", what)["rows"]) for name in (path, out[0], *out[2:]))
        assert named == [wanted] * 3 and any(row[0] for row in wanted), (what, named, wanted)
    for what in "process", "thread":  # not the titles that Firefox files and traces show in their place
        wanted, *named = (sorted((row[what], row["self"]) for row in report(name, "--by", what)["rows"]) for name in (path, *out[2:]))
        assert named == [wanted] * 2, (what, named, wanted)
    (busiest,) = report(out[1], "--by", "service")["rows"]
    assert busiest["service"] == "shop/orders", busiest
    assert report(out[0], "--service", "shop/*")["summary"]["filter"]["kept"]["samples"] == busiest["self"]


@quick
def test_threads_without_a_file_are_counted():
    """A .cpuprofile has one thread, or with --merge-threads one process."""
    path = write(scratch("many.folded"), "".join(f"t{i};main {1 + 9 * (i < 3)}\n" for i in range(300)))
    for root, options, said in (("thread", (), "no files for 297 threads with less than 1 % of the samples: --thread TID"),
                                ("process", ("--merge-threads", "process"), "no files for 297 processes with less than 1 % of the samples: --process PID")):
        result = sysprof("convert", path, "--root", root, *options, "-o", scratch(f"many-{root}.cpuprofile"), check=0)
        assert said in result.err and "-o FILE.trace.json all" in result.err, result
    assert "no files" not in sysprof("convert", path, "--root", "thread", "--thread", "t7", "-o", scratch("one.cpuprofile"), check=0).err


# ---- speedscope ----------------------------------------------------------------------------------

def speedscope(name, unit, **profile):
    """A file of one profile with the functions main and f."""
    data = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}, {"name": "f"}]},
            "profiles": [{"name": "t", "unit": unit, "startValue": 0, "endValue": 9} | profile]}
    return write(scratch(name + ".json"), json.dumps(data))


@quick
def test_speedscope():
    """Bytes and time are different events; events without a number of samples cannot be compared."""
    sampled = {"type": "sampled", "samples": [[0], [0, 1]] * 50, "weights": [1, 3] * 50}
    memory, times = speedscope("memory", "bytes", **sampled), speedscope("times", "milliseconds", **sampled)
    events = speedscope("events", "seconds", type="evented", events=[{"type": kind, "frame": 0, "at": at} for kind, at in (("O", 1), ("C", 4))])
    assert self_of(memory) == {"main": 50, "f": 150} and self_of(times) == {"main": 50 * 10**6, "f": 150 * 10**6}
    assert self_of(events) == {"main": 3 * 10**9}
    assert "for 200 bytes of memory" in sysprof("report", memory, check=0).out
    assert "is of the event memory" in sysprof("diff", memory, times).err
    folded = write(scratch("unnamed.folded"), "main 50\nmain;f 50\n")
    for pair in (memory, folded), (folded, memory):
        assert f"{folded} does not name its event, {memory} is of the event memory" in sysprof("diff", *pair, check=1).err
    assert " time; " in sysprof("diff", times, times, check=0).out
    assert " memory bytes  " in sysprof("report", memory, check=0).out
    assert "100 samples for 200 bytes of memory" in sysprof("diff", memory, memory, check=0).out
    found = json.loads(sysprof("diff", "--json", "-o", scratch("memory.json.gz"), memory, memory, check=0).out)
    assert (found["event"], found["event_unit"]) == ("memory", "bytes"), found
    for counts in found["old"], found["new"], *found["files"]:
        assert (counts["samples"], counts["events"]) == (100, 200), counts
    assert "number unknown: the file has weights, in units of bytes" in sysprof("report", scratch("memory.json.gz"), check=0).out
    assert "how many samples" in sysprof("diff", events, events, check=4).err


@quick
def test_speedscope_weights():
    """Numbers without a unit are what the same numbers in folded stacks are: counts, events of a period, or weights."""
    stacks = [[0, 1]] * 3 + [[0]] * 7
    for name, weights, verdict in ("counts", [7] * 10, True), ("period", [1001001 * (1 + i % 5) for i in range(10)], True), ("weights", [1824886 + i for i in range(10)], False):
        path = speedscope(name, "none", type="sampled", samples=stacks, weights=weights)
        folded = write(scratch(name + ".folded"), "".join(f"{';'.join(['main', 'f'][:len(s)])} {w}\n" for s, w in zip(stacks, weights)))
        heads = [sysprof("report", file, check=0).out.splitlines()[:2] for file in (path, folded)]
        assert heads[0] == heads[1], heads
        assert sysprof("diff", path, folded, check=0 if verdict else 4).err.count("how many samples") == (not verdict)
    assert "30 from 1 thread, for 30030030 events, one each 1001001" in sysprof("report", scratch("period.json"), check=0).out


# ---- our own -------------------------------------------------------------------------------------

@quick
def test_own_formats():
    """A recording in each format, read again: the same functions with the same samples."""
    for recording in ("fork-exec", "jit-reuse"):
        path = os.path.join(GOLDEN, recording + ".sysprof")
        expected = self_of(path)
        for suffix in (".json.gz", ".folded", ".trace.json.gz", ".pb.gz"):
            out = scratch(recording + suffix)
            sysprof("convert", path, "-o", out, check=0)
            assert self_of(out) == expected, (recording, suffix, self_of(out), expected)
            # contents decide, not the name
            os.rename(out, scratch("noname"))
            assert self_of(scratch("noname")) == expected


def test_x5_by_way_of_cpuprofile():
    """[X5]: the same functions with the same samples, written at once and by way of .cpuprofile."""
    path = os.path.join(GOLDEN, "overlapping-mmaps.sysprof")
    direct, way, indirect = scratch("direct.pb.gz"), scratch("way.cpuprofile"), scratch("way.pb.gz")
    sysprof("convert", path, "-o", direct, "-o", way, check=0)
    sysprof("convert", way, "-o", indirect, check=0)
    assert len(report(path, "--by", "thread")["rows"]) == 1, "one thread is all that a .cpuprofile has"
    assert self_of(indirect) == self_of(direct), (self_of(indirect), self_of(direct))


# ---- addresses without names ---------------------------------------------------------------------

def symbol_address(program, name):
    return next(int(line.split()[0], 16) for line in run("nm", program, check=0).out.splitlines() if line.split()[-1] == name)


def firefox_address(program, build_id, address):
    """A sample at an address that is relative to the program's image, as samply and Firefox write it. Times are of another clock."""
    name, hour = os.path.basename(program), 3600000
    thread = {"name": name, "pid": 7, "tid": 7, "processStartupTime": hour, "registerTime": hour, "stringArray": [f"{address:#x}", name],
              "samples": {"stack": [0], "time": [hour + 5], "weight": None, "weightType": "samples"},
              "stackTable": {"frame": [0], "prefix": [None]}, "frameTable": {"func": [0], "address": [address], "category": [0]},
              "funcTable": {"name": [0], "resource": [0]}, "resourceTable": {"lib": [0], "name": [1]}}
    before = dict(thread, name="before", pid=6, tid=6, processStartupTime=0, registerTime=0, samples={"stack": [], "time": []})
    return json.dumps({"meta": {"preprocessedProfileVersion": 49, "interval": 1, "startTime": 1000, "categories": [{"name": "User"}]},
                       "libs": [{"name": name, "path": program, "codeId": build_id}], "threads": [before, thread]}).encode()


def pprof_address(program, build_id, offset):
    """The same in a file that has no function for it."""
    def varint(number):
        return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)

    def message(*fields):
        return b"".join(varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value
                        for number, value in fields)

    strings = ((6, text.encode()) for text in ("", "samples", "count", program, build_id))
    return message((1, message((1, 1), (2, 2))), (2, message((1, b"\1"), (2, b"\1"))), *strings,
                   (3, message((1, 1), (2, 0x10000), (3, 0x900000), (5, 3), (6, 4))), (4, message((1, 1), (2, 1), (3, 0x10000 + offset))))


@quick
def test_addresses_without_names():
    """Are named by files of this machine that have the build-id, also of a program that has a fixed address; by no others."""
    source = write(scratch("small.c"), "int main(void) { return 0; }\n")
    for option, base in ("-pie", 0), ("-no-pie", 0x400000):
        program = scratch("small" + option)
        run("cc", "-O1", "-fPIC", option, "-Wl,--build-id", source, "-o", program, check=0)
        build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", program, check=0).out)[1]
        address = symbol_address(program, "main") - base
        for write_address in firefox_address, pprof_address:
            path = write(scratch("addresses"), write_address(program, build_id, address))
            assert self_of(path) == {"main": 1}, (option, write_address, self_of(path))
            assert "1 with the recorded build-id; 100.0 % of all have a name" in sysprof("report", path).err
            write(path, write_address(program, build_id[::-1], address))
            assert self_of(path) == {f"[{os.path.basename(program)}]": 1}, (option, write_address, self_of(path))
            assert "0 with the recorded build-id; 0.0 % of all have a name" in sysprof("report", path).err
    path = write(scratch("addresses"), firefox_address(program, build_id, address))
    assert report(path)["summary"]["duration_ns"] < 1e9, "lives without samples are no part of the time"


# ---- what is no profile --------------------------------------------------------------------------

def test_refused():
    """Exit 1, what and where, and nothing is written. What else is refused: tests/unit/testdata/import.txt, test_import.c."""
    with open(node_profile(), "rb") as f:
        node = f.read()
    packed = gzip.compress(node)
    cases = [
        ("text", b"hello\n", "neither a recording nor a profile"),
        ("cut", node[:len(node) // 2], f"byte {len(node) // 2}: the JSON text is cut off"),
        ("cut.gz", packed[:len(packed) // 2], f"byte {len(packed) // 2}: its gzip data are cut off"),
        ("perf.data.gz", gzip.compress(b"PERFILE2" + bytes(100)), "a perf.data file packed by gzip; `zcat FILE | sysprof report -` reads it"),
        ("nothing", b'{"nodes":[],"samples":[2],"timeDeltas":[1]}', "no sample is whole: samples of call paths"),
    ]
    for name, data, part in cases:
        path = write(scratch(name), data)
        for args in (("report", path), ("convert", path, "-o", scratch("never.json.gz"))):
            result = sysprof(*args, check=1)
            assert part in result.err and name in result.err, result
            assert not result.out
        assert not os.path.exists(scratch("never.json.gz"))


def test_left_out():
    """What is not whole is left out: a warning, the header, and the facts of what is written."""
    with open(node_profile(), "rb") as f:
        path = write(scratch("id"), f.read().replace(b'"samples":[', b'"samples":[99999,'))
    part = "samples of call paths that the file does not have: 1; samples without a time: 1"
    result = sysprof("report", path)
    assert f"# not read   {part}" in result.out and f"{path}: not read: {part}" in result.err, result
    assert json.loads(sysprof("report", path, "--json").out)["summary"]["meta"]["not_read"] == part
    sysprof("convert", path, "-o", scratch("left.json"))
    with open(scratch("left.json"), encoding="utf-8") as f:
        assert part in f.read()


if __name__ == "__main__":
    main(globals())
