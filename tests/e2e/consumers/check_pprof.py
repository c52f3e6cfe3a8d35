# SPDX-License-Identifier: BSD-2-Clause
"""The structural checker of pprof files: a part of check_structure.py. [X6] is in it."""
import re

from read_pprof import read_pprof
from structure import Checker, is_index


class Pprof(Checker):
    """CheckValid of google/pprof, ids as Parca wants them, and mappings that are honest."""

    def run(self, data):
        self.p = p = read_pprof(data)
        self.check(p["string_table"][:1] == [""], "string_table[0] is not empty")
        self.check(len(set(p["string_table"])) == len(p["string_table"]), "a string twice")
        for text in p["string_table"]:
            self.check(not re.search(r"[\x00-\x1f\x7f-\x9f]", text), "control bytes in %r" % text)
        types = [(self.text(t["type"]), self.text(t["unit"])) for t in p["sample_type"]]
        self.waits = types[2:] == [("wall", "nanoseconds")]
        self.check(types[:2 if self.waits else None] == [("samples", "count"), ("cpu", "nanoseconds")],
                   "sample types %r" % types)
        period = p["period_type"] or {"type": 0, "unit": 0}
        self.check((self.text(period["type"]), self.text(period["unit"])) == ("cpu", "nanoseconds"), "period type")
        cpu = any(sample["value"][1:2] != [0] for sample in p["sample"])
        self.check(self.text(p["default_sample_type"]) == ("cpu" if cpu else "samples"), "default sample type")
        self.check(min(p["time_nanos"], p["duration_nanos"], p["period"]) >= 0, "a negative time")
        comments = [self.text(c) for c in p["comment"]]
        for wanted in ("start on CLOCK_MONOTONIC: ", "ticks: ", "lost: "):
            self.check(any(c.startswith(wanted) for c in comments), "no comment %r" % wanted)
        for table in ("mapping", "location", "function"):
            ids = [row["id"] for row in p[table]]
            self.check(ids == list(range(1, len(ids) + 1)), "ids of %s are not 1, 2, …" % table)
        if not self.errors:
            self.check_functions()
            self.check_locations()
            self.check_samples()

    def text(self, index):
        if self.check(is_index(index, len(self.p["string_table"])), "string %r" % index):
            return self.p["string_table"][index]
        return ""

    def check_functions(self):
        self.keys = []
        for f in self.p["function"]:
            what = "function %d" % f["id"]
            key = tuple(self.text(f[k]) for k in ("name", "system_name", "filename"))
            self.check(key[0], what + ": no name")
            self.check(key[1] != key[0], what + ": pprof would demangle its name")
            self.check(f["start_line"] >= 0 and (not f["start_line"] or key[2]), what + ": start_line")
            self.keys.append(key)

    def check_locations(self):
        p = self.p
        seen = {m["id"]: [] for m in p["mapping"]}
        for l in p["location"]:
            what = "location %d" % l["id"]
            if not self.check(l["mapping_id"] <= len(p["mapping"]), what + ": mapping"):
                return
            for line in l["line"]:
                if not self.check(1 <= line["function_id"] <= len(p["function"]), what + ": function"):
                    return
                self.check(line["line"] >= 0 and line["column"] >= 0, what + ": line")
            if l["mapping_id"]:
                seen[l["mapping_id"]].append(l)
            else:
                self.check(l["line"], what + ": neither a mapping nor a name")
        for m in p["mapping"]:
            self.check_mapping("mapping %d" % m["id"], m, seen[m["id"]])

    def check_mapping(self, what, m, locations):
        """Symbolized as a whole, or not at all and with a build id."""
        self.check(self.text(m["filename"]), what + ": no file")
        build_id = self.text(m["build_id"])
        self.check(re.fullmatch(r"([0-9a-f]{2})*", build_id), what + ": build id")
        self.check(m["memory_start"] < m["memory_limit"], what + ": range")
        with_lines = sum(1 for l in locations if l["line"])
        if m["has_functions"]:
            self.check(with_lines == len(locations), what + ": locations without a line")
        else:
            self.check(not with_lines, what + ": lines in spite of its flags")
            self.check(build_id, what + ": the owner of these symbols is unknown")
        lines = [line for l in locations for line in l["line"]]
        files = [self.p["function"][line["function_id"] - 1]["filename"] for line in lines]
        self.check(m["has_filenames"] == any(files), what + ": has_filenames")
        self.check(m["has_line_numbers"] == any(line["line"] for line in lines),
                   what + ": has_line_numbers")
        self.check(m["has_inline_frames"] == any(len(l["line"]) > 1 for l in locations),
                   what + ": has_inline_frames")
        for l in locations:
            self.check(m["memory_start"] <= l["address"] < m["memory_limit"],
                       what + ": location %d is outside" % l["id"])

    def is_unsampled(self, sample):
        leaf = self.p["location"][sample["location_id"][0] - 1]
        return [self.keys[line["function_id"] - 1][0] for line in leaf["line"]] == ["[not sampled]"]

    def check_samples(self):
        p, threads = self.p, {}
        for i, sample in enumerate(p["sample"]):
            what = "sample %d" % i
            if not self.check(len(sample["value"]) == 2 + self.waits and min(sample["value"]) >= 0,
                              what + ": values"):
                return
            self.check(sample["location_id"], what + ": no stack")
            for number in sample["location_id"]:
                if not self.check(1 <= number <= len(p["location"]), what + ": location"):
                    return
            labels = {}
            for label in sample["label"]:
                key = self.text(label["key"])
                self.check(key and key not in labels, what + ": label %r" % key)
                self.check(not (label["str"] and label["num"]), what + ": label %r is both" % key)
                unit = self.text(label["num_unit"])
                self.check(unit == (key if key in ("pid", "tid") else ""), what + ": unit %r" % unit)
                labels[key] = self.text(label["str"]) if label["str"] else label["num"]
            self.check({"pid", "tid"} <= set(labels), what + ": labels")
            # a life without a sample has its time here alone, and another life of its number may have samples
            unsampled = "" if sample["value"][0] or not self.is_unsampled(sample) else "unsampled "
            thread = threads.setdefault((unsampled, labels.get("pid"), labels.get("tid")), {
                "pid": unsampled + str(labels.get("pid")), "tid": str(labels.get("tid")),
                "name": labels.get("thread", ""), "process": labels.get("process", ""),
                "is_main": None, "samples": 0, "cpu_ns": 0, "rows": 0})
            if self.waits:
                running = labels.get("state") == "running"
                self.check(running == (sample["value"][1] > 0 or sample["value"][0] > 0), what + ": state")
                self.check(not running or sample["value"][2] == sample["value"][1], what + ": wall time")
            thread["samples"] += sample["value"][0]
            thread["cpu_ns"] += sample["value"][1]
            thread["rows"] += 1
        self.threads = list(threads.values())
