#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_structure.py [--json] FILE…: is a written profile what its format says?

Viewers accept much that is wrong without a word (indexes out of range, negative deltas, a colour
that is missing), so their word is not enough. This checks the Firefox (.json, .json.gz), Chrome
(.cpuprofile, .trace.json), pprof (.pb, .pb.gz) and folded files that sysprof writes, and adds up samples and CPU time by thread, so that
the files of one run can be compared: --json prints {"files": [{path, format, samples, cpu_ns,
totals: {"PID/TID": {samples, cpu_ns}}, threads: […], errors: […]}]}. Exits 1 if anything is wrong.
"""

import argparse
import gzip
import json
import re
import sys
from decimal import Decimal

from check_pprof import Pprof
from check_trace import Trace
from structure import Checker, is_count, is_index, is_int, is_number

COLORS = {
    "transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta",
    "red", "lightred", "darkgrey", "grey",
}


def nanoseconds(milliseconds):
    return Decimal(milliseconds) * 1000000


# ---- Firefox ------------------------------------------------------------------------------------

SHARED_TABLES = {
    "stackTable": ["frame", "prefixOffset"],
    "frameTable": [
        "address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
        "innerWindowID", "line", "column", "originalLocation",
    ],
    "funcTable": [
        "name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber",
        "originalLocation",
    ],
    "resourceTable": ["lib", "name", "host", "type"],
    "nativeSymbols": ["libIndex", "address", "name", "functionSize"],
    "sources": ["id", "filename", "startLine", "startColumn", "sourceMapURL", "content"],
    "sourceLocationTable": ["source", "line", "column"],
}
MARKER_COLUMNS = ["data", "name", "startTime", "endTime", "phase", "category"]
MARKER_DISPLAYS = {"marker-chart", "marker-table", "timeline-overview"}
MARKER_FORMATS = {"string", "integer", "bytes", "duration"}
DISPLAY_KEYS = ["graphType", "unit", "color", "markerSchemaLocation", "sortWeight", "label", "tooltipRows"]
# of a counter: what its graph is, and its unit
COUNTERS = {"CPU": ("line-rate", "percent"), "Memory": ("line-accumulated", "bytes")}


class Firefox(Checker):
    def run(self, profile):
        self.profile = profile
        for key in ("meta", "libs", "shared", "threads", "pages", "profilerOverhead", "counters"):
            if not self.check(key in profile, "no %s" % key):
                return
        self.meta = profile["meta"]
        self.shared = profile["shared"]
        if not self.check_lengths():
            return
        self.check_meta()
        self.check_extra()
        self.check_libs()
        self.check_strings_used = set()
        self.check_functions()
        self.check_frames()
        self.check_stacks()
        self.find_waits()
        self.check_threads()
        self.check_counters()
        self.check_totals_of_markers()
        self.check_nothing_unused()

    def check_lengths(self):
        """Every table has its columns, and every column the length of its table."""
        good = self.check(isinstance(self.shared.get("stringArray"), list), "no stringArray")
        for name, columns in SHARED_TABLES.items():
            table = self.shared.get(name)
            if not self.check(isinstance(table, dict), "no %s" % name):
                return False
            good &= self.check_columns(name, table, columns)
        return good

    def check_columns(self, name, table, columns):
        good = self.check(is_count(table.get("length")), "%s: length" % name)
        for column in columns:
            values = table.get(column)
            if not self.check(isinstance(values, list), "%s.%s is no array" % (name, column)):
                good = False
            elif good:
                good &= self.check(len(values) == table["length"], "%s.%s has %d elements, not %d"
                                   % (name, column, len(values), table["length"]))
        return good

    def check_meta(self):
        meta = self.meta
        self.check(meta.get("preprocessedProfileVersion") == 66, "format version")
        self.check(meta.get("version") == 24, "gecko version")
        self.check(is_number(meta.get("interval")) and meta["interval"] > 0, "interval")
        self.check(is_number(meta.get("startTime")) and meta["startTime"] >= 0, "startTime")
        self.check(is_count(meta.get("startTimeAsClockMonotonicNanosecondsSinceBoot")),
                   "monotonic start")
        self.check(isinstance(meta.get("product"), str) and meta["product"], "product")
        self.check_schema()
        self.check(meta.get("symbolicated") is True, "symbolicated")
        self.check(meta.get("sampleUnits") == {"time": "ms", "eventDelay": "ms",
                                               "threadCPUDelta": "ns"}, "sampleUnits")
        self.check(meta.get("profilingStartTime") == 0, "profilingStartTime")
        self.check(is_number(meta.get("profilingEndTime")) and meta["profilingEndTime"] >= 0,
                   "profilingEndTime")
        categories = meta.get("categories", [])
        self.check(any(c.get("color") == "grey" for c in categories), "no grey category")
        self.check(any(c.get("name") == "Idle" for c in categories), "no category Idle")
        for category in categories:
            self.check(isinstance(category.get("name"), str) and category.get("color") in COLORS,
                       "category %r" % category)
            self.check(category.get("subcategories", [None])[0] == "Other", "subcategories")
        for key in ("initialVisibleThreads", "initialSelectedThreads"):
            threads = meta.get(key, [])
            self.check(threads, "%s is empty" % key)
            for thread in threads:
                self.check(is_index(thread, len(self.profile["threads"])), "%s: %r" % (key, thread))

    def check_schema(self):
        self.schemas = {}
        if not self.check(isinstance(self.meta.get("markerSchema"), list), "no markerSchema"):
            return
        for schema in self.meta["markerSchema"]:
            name = schema.get("name")
            what = "markerSchema %r" % name
            self.check(isinstance(name, str) and name not in self.schemas, what + ": name")
            self.check(schema.get("display") and set(schema["display"]) <= MARKER_DISPLAYS, what + ": display")
            fields = schema.get("fields", [])
            for field in fields:
                self.check(isinstance(field.get("key"), str) and isinstance(field.get("label"), str)
                           and field.get("format") in MARKER_FORMATS, "%s: field %r" % (what, field))
            self.schemas[name] = {field.get("key"): field.get("format") for field in fields}
            for label in ("tooltipLabel", "tableLabel", "chartLabel"):
                for key in re.findall(r"\{marker\.data\.(\w+)\}", schema.get(label, "")):
                    self.check(key in self.schemas[name], "%s: %s names %s" % (what, label, key))

    def check_markers(self, what, thread):
        """Each has the fields of its schema; how many there are, and how many samples they count."""
        markers, counts, samples = thread["markers"], {}, {}
        if not self.check_columns(what + ".markers", markers, MARKER_COLUMNS):
            return counts, samples
        end, previous = self.meta.get("profilingEndTime", 0), None
        for i in range(markers["length"]):
            name = "%s.markers %d" % (what, i)
            data, start, stop = markers["data"][i], markers["startTime"][i], markers["endTime"][i]
            self.string(markers["name"][i], name)
            self.check(is_index(markers["category"][i], len(self.meta["categories"])), name + ": category")
            self.check(markers["phase"][i] in (0, 1), name + ": phase")
            self.check((markers["phase"][i] == 0) == (stop is None), name + ": phase and endTime disagree")
            if self.check(is_number(start) and 0 <= start <= end, name + ": startTime"):
                self.check(previous is None or start >= previous, name + ": out of order")
                self.check(stop is None or (is_number(stop) and start < stop <= end), name + ": endTime")
                previous = start
            if not self.check(isinstance(data, dict) and data.get("type") in self.schemas, name + ": type"):
                continue
            for key, value in data.items():
                if key == "type":
                    continue
                kind = self.schemas[data["type"]].get(key)
                self.check(isinstance(value, str) if kind == "string" else kind and is_count(value),
                           "%s: field %s is %r" % (name, key, value))
            if not is_index(markers["name"][i], len(self.shared["stringArray"])):
                continue
            text = self.shared["stringArray"][markers["name"][i]]
            counts[text] = counts.get(text, 0) + 1
            samples[data["type"]] = samples.get(data["type"], 0) + data.get("samples", data.get("ranges", 1))
        overview = any("timeline-overview" in schema.get("display", []) and schema["name"] ==
                       (data or {}).get("type") for schema in self.meta.get("markerSchema", []) for data in markers["data"])
        self.check(thread.get("showMarkersInTimeline") is overview, what + ": showMarkersInTimeline")
        return counts, samples

    def check_totals_of_markers(self):
        """Markers count the same as meta.extra."""
        extra = {}
        for section in self.meta.get("extra", []):
            for entry in section["entries"]:
                label = entry["label"].split(":")[0]
                if label in ("Cut", "Epochs", "Something was lost in"):
                    extra[label] = extra.get(label, 0) + (entry["value"] if is_int(entry["value"]) else 1)
        reported = {}
        for thread in self.threads:
            for kind, count in thread.pop("reported", {}).items():
                reported[kind] = reported.get(kind, 0) + count
        if not any(thread["samples"] for thread in self.threads):
            return
        self.check(reported.get("CutStacks", 0) == extra.get("Cut", 0), "%d cut stacks have markers, there are %d" % (
            reported.get("CutStacks", 0), extra.get("Cut", 0)))
        self.check(reported.get("Lost", 0) == extra.get("Something was lost in", 0), "lost ranges without markers")
        self.check(reported.get("ClockEpoch", 0) == max(extra.get("Epochs", 0) - 1, 0), "clock epochs without markers")

    def check_counters(self):
        first, cpu = {}, {}
        for i, thread in enumerate(self.profile["threads"]):
            first.setdefault(thread.get("pid"), i)
        for thread in self.threads:
            cpu[thread["pid"]] = cpu.get(thread["pid"], 0) + thread["cpu_ns"]
        seen = set()
        self.counters = []
        for i, counter in enumerate(self.profile["counters"]):
            what, samples = "counter %d" % i, counter.get("samples", {})
            pid, category = counter.get("pid"), counter.get("category")
            for key in ("name", "category", "description"):
                self.check(isinstance(counter.get(key), str) and counter[key], "%s: %s" % (what, key))
            self.check(isinstance(pid, str) and pid in first, what + ": pid")
            self.check(counter.get("mainThreadIndex") == first.get(pid), what + ": mainThreadIndex")
            self.check((pid, counter.get("name")) not in seen, what + " is there twice")
            seen.add((pid, counter.get("name")))
            display = counter.get("display", {})
            self.check(sorted(display) == sorted(DISPLAY_KEYS) and display["tooltipRows"], what + ": display")
            self.check((display.get("graphType"), display.get("unit")) == COUNTERS.get(category), what + ": graph")
            if not self.check_columns(what + ".samples", samples, ["time", "count"]):
                continue
            times, counts = samples["time"], samples["count"]
            self.check(times and all(is_number(t) and 0 <= t <= self.meta["profilingEndTime"] for t in times)
                       and all(a < b for a, b in zip(times, times[1:])), what + ": time")
            self.check(all(is_int(c) for c in counts), what + ": count")
            if category == "CPU":
                self.check(all(c >= 0 for c in counts), what + ": negative CPU time")
                self.check(sum(counts) == cpu.get(pid), "%s: %d ns, its threads have %r" % (
                    what, sum(counts), cpu.get(pid)))
            else:
                sums = [sum(counts[:k + 1]) for k in range(len(counts))]
                self.check(all(s > 0 for s in sums), what + ": no memory at all")
            self.counters.append({"name": counter.get("name"), "pid": pid, "category": category,
                                  "label": display.get("label"), "samples": len(times),
                                  "in_range": sum(t < self.meta["profilingEndTime"] for t in times),
                                  "sum": sum(counts)})
        for pid, used in cpu.items():
            self.check(not used or (pid, "processCPU") in seen, "process %s has no counter of its CPU" % pid)

    def check_extra(self):
        labels = []
        for section in self.meta.get("extra", []):
            labels.append(section.get("label", "").split(":")[0])
            for entry in section.get("entries", []):
                self.check(isinstance(entry.get("label"), str) and isinstance(
                    entry.get("format"), str) and "value" in entry, "extra entry %r" % entry)
        for wanted in ("Clock", "Books", "Stacks", "Losses"):
            self.check(wanted in labels, "meta.extra has no %s" % wanted)

    def check_libs(self):
        for i, lib in enumerate(self.profile["libs"]):
            for key in ("name", "path", "debugName", "debugPath"):
                self.check(isinstance(lib.get(key), str) and lib[key], "lib %d: %s" % (i, key))
            self.check(re.fullmatch(r"([0-9A-F]{32}0)?", lib.get("breakpadId", "?")),
                       "lib %d: breakpadId" % i)
            code_id = lib.get("codeId", "?")
            self.check(code_id is None or re.fullmatch(r"([0-9a-f]{2})+", code_id),
                       "lib %d: codeId" % i)
            self.check("arch" in lib, "lib %d: arch" % i)
            self.check((lib["breakpadId"] == "") == (code_id is None), "lib %d: ids disagree" % i)

    def string(self, value, what):
        if self.check(is_index(value, len(self.shared["stringArray"])), what + ": string"):
            self.check_strings_used.add(value)

    def check_functions(self):
        shared, libs = self.shared, len(self.profile["libs"])
        funcs, sources = shared["funcTable"], shared["sources"]["length"]
        for text in shared["stringArray"]:
            self.check(isinstance(text, str), "stringArray: %r" % (text,))
        for i in range(funcs["length"]):
            what = "func %d" % i
            self.string(funcs["name"][i], what)
            self.check(funcs["isJS"][i] is False and funcs["relevantForJS"][i] is False, what)
            resource = funcs["resource"][i]
            self.check(resource == -1 or is_index(resource, shared["resourceTable"]["length"]),
                       what + ": resource")
            source = funcs["source"][i]
            self.check(source is None or is_index(source, sources), what + ": source")
            for column in ("lineNumber", "columnNumber"):
                value = funcs[column][i]
                self.check(value is None or (is_int(value) and value >= 1), what + ": " + column)
        resources = shared["resourceTable"]
        for i in range(resources["length"]):
            self.check(is_index(resources["lib"][i], libs), "resource %d: lib" % i)
            self.string(resources["name"][i], "resource %d" % i)
            self.check(resources["type"][i] == 1, "resource %d: type" % i)
        natives = shared["nativeSymbols"]
        for i in range(natives["length"]):
            self.check(is_index(natives["libIndex"][i], libs), "native %d: lib" % i)
            self.check(is_index(natives["address"][i], 1 << 53), "native %d: address" % i)
            self.string(natives["name"][i], "native %d" % i)
            size = natives["functionSize"][i]
            self.check(size is None or (is_int(size) and size > 0), "native %d: size" % i)
        for i in range(sources):
            self.string(shared["sources"]["filename"][i], "source %d" % i)

    def check_frames(self):
        frames, shared = self.shared["frameTable"], self.shared
        categories = self.meta.get("categories", [])
        for i in range(frames["length"]):
            what = "frame %d" % i
            self.check(is_index(frames["func"][i], shared["funcTable"]["length"]), what + ": func")
            address = frames["address"][i]
            self.check(address == -1 or is_index(address, 1 << 53), what + ": address")
            native = frames["nativeSymbol"][i]
            self.check(native is None or is_index(native, shared["nativeSymbols"]["length"]),
                       what + ": nativeSymbol")
            category = frames["category"][i]
            if self.check(is_index(category, len(categories)), what + ": category"):
                self.check(is_index(frames["subcategory"][i],
                                    len(categories[category]["subcategories"])),
                           what + ": subcategory")
            self.check(frames["innerWindowID"][i] == 0, what + ": innerWindowID")
            self.check(is_count(frames["inlineDepth"][i]), what + ": inlineDepth")
            for column in ("line", "column"):
                value = frames[column][i]
                self.check(value is None or (is_int(value) and value >= 1), what + ": " + column)

    def check_stacks(self):
        stacks, frames = self.shared["stackTable"], self.shared["frameTable"]
        for i in range(stacks["length"]):
            what = "stack %d" % i
            frame, offset = stacks["frame"][i], stacks["prefixOffset"][i]
            if not self.check(is_index(frame, frames["length"]), what + ": frame"):
                continue
            if not self.check(is_count(offset) and offset <= i, what + ": prefixOffset"):
                continue
            depth = frames["inlineDepth"][frame]
            if depth == 0:
                continue
            # what is inlined stands right below what it is inlined into, at the same address
            if not self.check(offset > 0, what + ": inlined into nothing"):
                continue
            parent = stacks["frame"][i - offset]
            self.check(frames["inlineDepth"][parent] == depth - 1
                       and frames["address"][parent] == frames["address"][frame]
                       and frames["nativeSymbol"][parent] == frames["nativeSymbol"][frame],
                       what + ": its parent is not what it is inlined into")

    def find_waits(self):
        """Which stacks are those of waits (record --wall): their leaf has the category of a state."""
        shared, categories = self.shared, [c.get("name", "") for c in self.meta.get("categories", [])]
        self.waiting = []
        if any(name.startswith("Waiting: ") for name in categories) and not self.errors:
            self.waiting = [categories[shared["frameTable"]["category"][frame]].startswith("Waiting: ")
                            for frame in shared["stackTable"]["frame"]]
            for stack, frame in enumerate(shared["stackTable"]["frame"]):
                name = shared["stringArray"][shared["funcTable"]["name"][shared["frameTable"]["func"][frame]]]
                self.check(not self.waiting[stack] or re.fullmatch(r"\[waiting: [a-z]+\]", name),
                           "stack %d: the leaf of a wait is %s" % (stack, name))

    def check_threads(self):
        threads = self.profile["threads"]
        self.check(threads, "no threads: the viewer crashes")
        pids, tids, last_pid = {}, set(), None
        self.stacks_used = set()
        for i, thread in enumerate(threads):
            what = "thread %d" % i
            pid, tid = thread.get("pid"), thread.get("tid")
            for value in (pid, tid):
                self.check(isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value),
                           "%s: pid or tid %r" % (what, value))
            self.check(tid not in tids, "%s: tid %s is there twice" % (what, tid))
            tids.add(tid)
            self.check(pid == last_pid or pid not in pids, what + ": its process is split")
            is_main = thread.get("isMainThread")
            self.check(is_main in (True, False), what + ": isMainThread")
            self.check(not is_main or pid not in pids, what + ": the main thread is not the first")
            pids.setdefault(pid, thread.get("processName"))
            self.check(pids[pid] == thread.get("processName"), what + ": processName differs")
            last_pid = pid
            for key in ("name", "processName", "processType"):
                self.check(isinstance(thread.get(key), str), "%s: %s" % (what, key))
            for key in ("processStartupTime", "registerTime"):
                self.check(is_number(thread.get(key)), "%s: %s" % (what, key))
            for key in ("processShutdownTime", "unregisterTime"):
                self.check(thread.get(key, 0) is None or is_number(thread.get(key)),
                           "%s: %s" % (what, key))
            self.check(thread.get("pausedRanges") == [], what + ": pausedRanges")
            counts = reported = {}
            if self.check(isinstance(thread.get("markers"), dict), what + ": no markers"):
                counts, reported = self.check_markers(what, thread)
            known = len(self.threads)
            self.check_samples(what, thread)
            for seen in self.threads[known:]:
                seen.update(markers=counts, reported=reported)

    def check_samples(self, what, thread):
        samples = thread.get("samples")
        if not self.check(isinstance(samples, dict), what + ": no samples"):
            return
        if not self.check_columns(what + ".samples", samples, ["stack", "time", "threadCPUDelta"]):
            return
        weights = samples.get("weight", 0)
        if weights is not None and self.waiting and self.check(
                isinstance(weights, list) and len(weights) == samples["length"] and all(is_count(w) for w in weights),
                what + ": weight"):
            pass
        else:
            self.check(weights is None, what + ": weight")
            weights = None
        self.check(samples.get("weightType") == "samples", what + ": weightType")
        previous, real, waits, in_wait = None, 0, 0, False
        for i, time in enumerate(samples["time"]):
            stack, delta = samples["stack"][i], samples["threadCPUDelta"][i]
            if not self.check(is_number(time), "%s: time %d" % (what, i)):
                return
            ns = nanoseconds(time)
            self.check(ns == int(ns), "%s: time %d is finer than a nanosecond" % (what, i))
            self.check(previous is None or ns > previous, "%s: time %d is not after the one before"
                       % (what, i))
            previous = ns
            self.check(is_count(delta), "%s: threadCPUDelta %d is %r" % (what, i, delta))
            if weights:
                self.check(not in_wait or not delta, "%s: row %d has CPU time in a wait" % (what, i))
            in_wait = bool(weights) and is_index(stack, len(self.waiting)) and self.waiting[stack]
            if in_wait:
                waits += weights[i]
            elif weights and stack is not None:
                self.check(weights[i] == 1, "%s: sample %d has weight %r" % (what, i, weights[i]))
            if stack is None:
                continue
            real += not in_wait
            if self.check(is_index(stack, self.shared["stackTable"]["length"]),
                          "%s: stack %d" % (what, i)):
                self.stacks_used.add(stack)
            self.check(ns >= nanoseconds(thread["registerTime"]), "%s: sample %d is too early"
                       % (what, i))
            end = thread["unregisterTime"]
            self.check(end is None or ns <= nanoseconds(end), "%s: sample %d is too late"
                       % (what, i))
        self.threads.append({
            "pid": thread["pid"], "tid": thread["tid"], "name": thread["name"],
            "process": thread["processName"], "is_main": thread["isMainThread"], "samples": real, "waits": waits,
            "cpu_ns": sum(d for d in samples["threadCPUDelta"] if is_count(d)),
            "rows": samples["length"],
        })

    def check_nothing_unused(self):
        """All that is written is used by a sample; else files of big recordings would be bigger."""
        if self.errors:
            return
        shared = self.shared
        stacks, used = shared["stackTable"], set(self.stacks_used)
        for i in range(stacks["length"] - 1, -1, -1):
            if i in used and stacks["prefixOffset"][i]:
                used.add(i - stacks["prefixOffset"][i])
        self.check(len(used) == stacks["length"], "stacks without a sample")
        frames = set(stacks["frame"])
        self.check(len(frames) == shared["frameTable"]["length"], "frames without a stack")
        functions = set(shared["frameTable"]["func"])
        self.check(len(functions) == shared["funcTable"]["length"], "functions without a frame")
        libs = set(r for r in shared["funcTable"]["resource"] if r != -1)
        self.check(len(libs) == len(self.profile["libs"]), "libs without a function")
        self.check(len(self.check_strings_used) == len(shared["stringArray"]),
                   "strings that nothing uses")


# ---- Chrome -------------------------------------------------------------------------------------

META_NAMES = {"(root)", "(program)", "(idle)", "(garbage collector)"}


class CpuProfile(Checker):
    def run(self, profile):
        for key, kind in (("nodes", list), ("samples", list), ("timeDeltas", list),
                          ("startTime", int), ("endTime", int), ("$sysprof", dict)):
            if not self.check(isinstance(profile.get(key), kind), "no %s" % key):
                return
        self.profile = profile
        self.nodes = profile["nodes"]
        if not self.check(self.nodes, "no nodes"):
            return
        for i, node in enumerate(self.nodes):
            if not self.check_node(i, node):
                return
        self.check_tree()
        self.check_times()
        self.check_identity()

    def check_node(self, i, node):
        what = "node %d" % (i + 1)
        if not self.check(node.get("id") == i + 1, what + ": ids are not 1, 2, …"):
            return False
        if self.call_frame(what, node) is None:
            return False
        if not self.check(is_count(node.get("hitCount")), what + ": hitCount"):
            return False
        self.check_ticks(what, node)
        return True

    def check_ticks(self, what, node):
        if "positionTicks" not in node:
            return
        ticks, last = node["positionTicks"], 0
        self.check(ticks, what + ": empty positionTicks")
        self.check(node["callFrame"]["url"] or node["callFrame"]["lineNumber"] >= 0,
                   what + ": positionTicks without a file")
        for tick in ticks:
            good = is_int(tick.get("line")) and is_int(tick.get("ticks"))
            if not self.check(good and tick["line"] >= 1 and tick["ticks"] >= 1, what + ": tick"):
                return
            self.check(tick["line"] > last, what + ": positionTicks are not sorted")
            last = tick["line"]
        self.check(sum(t["ticks"] for t in ticks) <= node["hitCount"], what + ": too many ticks")

    def check_tree(self):
        """The root is first; every other node is the child of one node before it, in preorder."""
        nodes, parents = self.nodes, {}
        root = nodes[0]["callFrame"]
        self.check(root == {"functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1,
                            "columnNumber": -1}, "node 1 is not the root: %r" % root)
        for node in nodes:
            siblings = set()
            for child in node.get("children", []):
                what = "node %d: child %r" % (node["id"], child)
                if not self.check(is_int(child) and node["id"] < child <= len(nodes), what):
                    return
                self.check(child not in parents, what + " has two parents")
                parents[child] = node["id"]
                frame = tuple(sorted(nodes[child - 1]["callFrame"].items()))
                self.check(frame not in siblings, what + " could be merged with a sibling")
                siblings.add(frame)
        self.check(len(parents) == len(nodes) - 1, "nodes that are no node's children")
        preorder, todo = 0, [1]
        while todo and len(parents) == len(nodes) - 1:
            at = todo.pop()
            preorder += 1
            if not self.check(at == preorder, "node %d is not in preorder" % at):
                break
            todo.extend(reversed(nodes[at - 1].get("children", [])))
        for node in nodes[1:]:
            frame = node["callFrame"]
            if frame["functionName"] in META_NAMES and frame["scriptId"] == "0":
                self.check(parents.get(node["id"]) == 1 and frame["url"] == ""
                           and frame["lineNumber"] == -1, "a meta node below a function")

    def check_times(self):
        p = self.profile
        samples, deltas = p["samples"], p["timeDeltas"]
        self.check(samples, "no samples: DevTools divides by their number")
        self.check(len(samples) == len(deltas), "%d samples and %d timeDeltas"
                   % (len(samples), len(deltas)))
        self.check(all(is_count(d) for d in deltas), "timeDeltas that are no integers ≥ 0")
        self.check(is_count(p["startTime"]), "startTime")
        if self.errors:
            return
        self.check(p["endTime"] > p["startTime"] + sum(deltas) - 1, "endTime is before the last one")
        hits = [0] * (len(self.nodes) + 1)
        for sample in samples:
            if not self.check(is_int(sample) and 1 <= sample <= len(self.nodes),
                              "sample of node %r" % sample):
                return
            hits[sample] += 1
        for node in self.nodes:
            self.check(hits[node["id"]] == node["hitCount"], "node %d: hitCount" % node["id"])

    def check_identity(self):
        if self.errors:
            return
        p, own = self.profile, self.profile["$sysprof"]
        for key in ("pid", "tid", "samples", "cpuTimeNs", "periodNs", "startTimeRealtime"):
            if not self.check(is_count(own.get(key)), "$sysprof.%s" % key):
                return
        for key in ("comm", "process"):
            self.check(isinstance(own.get(key), str), "$sysprof.%s" % key)
        idle = {n["id"] for n in self.nodes if n["callFrame"]["functionName"] == "(idle)"
                and n["callFrame"]["scriptId"] == "0"}
        real = sum(1 for s in p["samples"] if s not in idle)
        self.check(real == own["samples"], "$sysprof.samples is %d, not %d" % (own["samples"], real))
        deltas = own.get("threadCPUDeltas")
        good = isinstance(deltas, list) and len(deltas) == len(p["samples"])
        if not self.check(good and all(is_count(d) for d in deltas), "$sysprof.threadCPUDeltas"):
            return
        self.check(sum(deltas) == own["cpuTimeNs"], "threadCPUDeltas add up to %d, not %d"
                   % (sum(deltas), own["cpuTimeNs"]))
        for i, sample in enumerate(p["samples"][:-1]):
            self.check(sample not in idle or deltas[i] == 0, "idle sample %d has CPU time" % i)
        self.threads.append({
            "pid": str(own["pid"]), "tid": str(own["tid"]), "name": own["comm"],
            "process": own["process"], "is_main": own.get("isMainThread"), "samples": real,
            "cpu_ns": own["cpuTimeNs"], "rows": len(p["samples"]),
        })


# ---- folded -------------------------------------------------------------------------------------


class Folded(Checker):
    def run(self, data):
        if data.startswith((b"# weights: ", b"# samples: ")):
            data = data.partition(b"\n")[2]
        text = data.decode("utf-8")
        self.check(not text or text.endswith("\n"), "the last line is cut off")
        lines = text.split("\n")[:-1]
        raw = data.split(b"\n")[:-1]
        self.check(raw == sorted(raw), "lines are not in byte order")
        stacks, samples = set(), 0
        for i, line in enumerate(lines):
            match = re.fullmatch(r"(.+) ([1-9][0-9]*)", line)
            if not self.check(match, "line %d: not “stack count”" % (i + 1)):
                continue
            stack = match.group(1)
            fields = stack.split(";")
            self.check(len(fields) >= 2 and all(fields), "line %d: an empty frame" % (i + 1))
            self.check(not any(f.endswith(" ") for f in fields), "line %d: a trailing space"
                       % (i + 1))
            self.check(not re.search(r"[\x00-\x1f\x7f-\x9f]", line), "line %d: control bytes"
                       % (i + 1))
            self.check(stack not in stacks, "line %d: the stack is there twice" % (i + 1))
            stacks.add(stack)
            samples += int(match.group(2))
        self.samples = samples


# ---- all ----------------------------------------------------------------------------------------


def no_doubles(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError("an object with a key twice: %r" % keys)
    return dict(pairs)


def no_constants(name):
    raise ValueError("%s is not JSON" % name)


def check_file(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if path.endswith(".folded"):
        checker = Folded(path)
        checker.run(data)
        result = checker.result("folded")
        result["samples"] = checker.samples
        return result
    if path.endswith((".pb", ".pb.gz")):
        checker = Pprof(path)
        checker.run(data)
        return checker.result("pprof")
    document = json.loads(data.decode("utf-8"), parse_float=Decimal, parse_constant=no_constants,
                          object_pairs_hook=no_doubles)
    if "nodes" in document:
        checker, file_format = CpuProfile(path), "cpuprofile"
    elif "traceEvents" in document:
        checker, file_format = Trace(path), "trace"
    else:
        checker, file_format = Firefox(path), "firefox"
    checker.run(document)
    return checker.result(file_format)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args()
    results = []
    for path in args.files:
        try:
            results.append(check_file(path))
        except Exception as error:  # a file so wrong that a rule tripped over it
            results.append({"path": path, "format": None, "samples": 0, "cpu_ns": 0, "totals": {},
                            "threads": [], "errors": ["%s: %s" % (type(error).__name__, error)]})
    if args.json:
        json.dump({"files": results}, sys.stdout, indent=1)
        print()
    for result in results:
        if not args.json:
            print("%s: %s, %d threads, %d samples, %.6f s CPU" % (
                result["path"], result["format"], len(result["threads"]), result["samples"],
                result["cpu_ns"] / 1e9))
            for thread in result["threads"]:
                print("  %s/%s %r: %d samples, %d ns" % (
                    thread["pid"], thread["tid"], thread["name"], thread["samples"],
                    thread["cpu_ns"]))
        for error in result["errors"]:
            print("%s: %s" % (result["path"], error), file=sys.stderr)
    return 1 if any(result["errors"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
