# SPDX-License-Identifier: BSD-2-Clause
"""The structural checker of Chrome traces: a part of check_structure.py."""
import re

from structure import Checker, is_count

CHUNK_SAMPLES = 50000  # DevTools passes them as arguments of one call
PHASES = {"process_name": "M", "process_labels": "M", "process_sort_index": "M",
          "thread_name": "M", "thread_sort_index": "M", "Profile": "P", "ProfileChunk": "P"}
CATEGORIES = {"M": "__metadata", "P": "disabled-by-default-v8.cpu_profiler",
              "X": "devtools.timeline"}
ARGUMENTS = {"process_name": ("name", str), "thread_name": ("name", str),
             "process_labels": ("labels", str), "process_sort_index": ("sort_index", int),
             "thread_sort_index": ("sort_index", int)}


class Trace(Checker):
    """formats.md's rules, and those of the chunks of a CPU profile."""

    def run(self, document):
        self.next_id, self.profiles, self.spans, self.names, self.waits = 1, {}, {}, {}, {}
        if not self.check(set(document) == {"traceEvents", "metadata"}, "members of the file"):
            return
        self.check("dataOrigin" not in document["metadata"], "metadata.dataOrigin")
        own = document["metadata"].get("$sysprof", {})
        self.check(is_count(own.get("periodNs")) and "recording" in own, "metadata.$sysprof")
        self.check(document["traceEvents"], "no events")
        for i, event in enumerate(document["traceEvents"]):
            if not self.check_event("event %d" % i, event):
                return
        for key, profile in self.profiles.items():
            self.check_profile(key, profile, own)
        self.check(len(self.spans) == len(self.profiles) or not self.profiles,
                   "threads without a profile")

    def check_event(self, what, event):
        for key, kind in (("name", str), ("ph", str), ("cat", str), ("pid", int), ("tid", int),
                          ("ts", int), ("args", dict)):
            if not self.check(isinstance(event.get(key), kind), "%s: %s" % (what, key)):
                return False
        name, thread = event["name"], (event["pid"], event["tid"])
        self.check(event["ph"] == PHASES.get(name, "X"), "%s: phase" % what)
        if event["ph"] == "X" and event["cat"] == "sysprof.wait":
            self.check_wait(what, event, thread)
            return True
        self.check(event["cat"] == CATEGORIES.get(event["ph"]), "%s: category" % what)
        self.check(min(event["pid"], event["tid"], event["ts"]) >= 0, "%s: a negative number" % what)
        if event["ph"] == "M":
            self.check_metadata(what, event, thread)
        elif event["ph"] == "X":
            self.check(re.search(r" \(\d+\)$", name), what + ": %r may be an event of Chrome's" % name)
            self.check(thread not in self.spans, what + ": a second span of the thread")
            self.check(is_count(event.get("dur")) and event["dur"] > 0, what + ": dur")
            self.check(self.names.get(("process_name", event["pid"])) is not None,
                       what + ": its process has no name")
            self.spans[thread] = event
        elif name == "Profile":
            if not self.check(thread in self.spans, what + ": a profile before its thread's span"):
                return False
            key = event.get("id")
            self.check(isinstance(key, str) and re.fullmatch(r"0x[0-9a-f]+", key), what + ": id")
            self.check(key not in self.profiles, what + ": two profiles %s" % key)
            self.check(event["args"]["data"].get("startTime") == event["ts"], what + ": startTime")
            self.profiles[key] = {"head": event, "nodes": {}, "samples": [], "time": event["ts"]}
        else:
            return self.check_chunk(what, event)
        return True

    def check_wait(self, what, event, thread):
        """A state of a thread: inside its span, after the state before."""
        if not self.check(thread in self.spans and is_count(event.get("dur")) and event["dur"] > 0, what + ": dur"):
            return
        span, end = self.spans[thread], event["ts"] + event["dur"]
        self.check(self.waits.get(thread, span["ts"]) <= event["ts"] and end <= span["ts"] + span["dur"],
                   what + ": a wait before the one before, or outside of its thread")
        self.waits[thread] = end
        self.check(event["name"] == "[waiting: %s]" % event["args"].get("state"), what + ": its state")
        self.check(isinstance(event["args"].get("holder", ""), str) and is_count(event["args"].get("holderTid", 0)),
                   what + ": its holder")

    def check_metadata(self, what, event, thread):
        name = event["name"]
        key, kind = ARGUMENTS[name]
        self.check(event["ts"] == 0, what + ": a time")
        own = event["args"].get("$sysprof") if name == "process_name" else None
        self.check(list(event["args"]) == [key, "$sysprof"][:1 + (own is not None)] and isinstance(event["args"][key], kind),
                   what + ": args")
        self.check(own is None or ("process" in own and all(isinstance(text, str) for text in own.values())), what + ": $sysprof")
        whose = (name, event["pid"]) if name.startswith("process") else (name, *thread)
        self.check(whose not in self.names, "%s: a second %s" % (what, name))
        self.names[whose] = event["args"].get(key)

    def check_chunk(self, what, event):
        profile = self.profiles.get(event.get("id"))
        if not self.check(profile, what + ": a chunk of no profile"):
            return False
        head, data = profile["head"], event["args"]["data"]
        self.check((event["pid"], event["tid"]) == (head["pid"], head["tid"]), what + ": thread")
        self.check(event["ts"] >= profile["time"], what + ": a chunk before the one before")
        nodes, samples = data["cpuProfile"]["nodes"], data["cpuProfile"]["samples"]
        self.check(0 < len(samples) <= CHUNK_SAMPLES, what + ": %d samples" % len(samples))
        for column in ("timeDeltas", "lines"):
            self.check(len(data[column]) == len(samples), what + ": " + column)
            self.check(all(is_count(v) for v in data[column]), what + ": %s: a value" % column)
        for node in nodes:
            if not self.check_node(what, node, profile):
                return False
        for sample in samples:
            if not self.check(sample in profile["nodes"], "%s: a sample of node %r" % (what, sample)):
                return False
        profile["samples"] += zip(samples, data["timeDeltas"], data["lines"])
        profile["time"] += sum(data["timeDeltas"])
        return True

    def check_node(self, what, node, profile):
        """Ids go 1, 2, … through the whole file, parents come first, siblings differ."""
        number, nodes = node.get("id"), profile["nodes"]
        if not self.check(number == self.next_id, "%s: node %r, not %d" % (what, number, self.next_id)):
            return False
        self.next_id += 1
        parent = node.get("parent")
        if not self.check(parent in nodes if nodes else parent is None,
                          "node %d: parent %r" % (number, parent)):
            return False
        frame = self.call_frame("node %d" % number, node)
        if frame is None:
            return False
        key = parent, tuple(sorted(frame.items()))
        self.check(key not in profile.setdefault("siblings", set()),
                   "node %d could be merged with a sibling" % number)
        profile["siblings"].add(key)
        self.check(bool(nodes) != (frame["functionName"] == "(root)" and frame["scriptId"] == "0"),
                   "node %d: the root is first, and alone" % number)
        nodes[number] = frame
        return True

    def check_profile(self, key, profile, own):
        head = profile["head"]
        span, samples = self.spans[head["pid"], head["tid"]], profile["samples"]
        args = span["args"]
        if not self.check(all(is_count(args.get(k)) for k in ("pid", "tid", "samples", "cpuTimeNs")),
                          "profile %s: args of its span" % key):
            return
        self.check(("thread_name", head["pid"], head["tid"]) in self.names,
                   "profile %s: its thread has no name" % key)
        for number, whole in (("pid", head["pid"]), ("tid", head["tid"])):
            self.check(whole == args[number] or whole % 10000000 == args[number],
                       "profile %s: %s %d is none of %d" % (key, number, args[number], whole))
        self.check(span["ts"] <= head["ts"] and profile["time"] <= span["ts"] + span["dur"],
                   "profile %s: samples outside of its span" % key)
        real, idle_before = 0, False
        for node, _, line in samples:
            frame = profile["nodes"][node]
            idle = frame["functionName"] == "(idle)" and frame["scriptId"] == "0"
            real += not idle
            self.check(not (idle and idle_before), "profile %s: one gap is two samples" % key)
            self.check(not line or (not idle and frame["url"] + frame["functionName"]),
                       "profile %s: a line of a gap" % key)
            idle_before = idle
        self.check(real == args["samples"], "profile %s: %d samples, not %d"
                   % (key, real, args["samples"]))
        self.threads.append({
            "pid": str(args["pid"]), "tid": str(args["tid"]),
            "name": self.names.get(("thread_name", head["pid"], head["tid"])),
            "process": self.names.get(("process_name", head["pid"])),
            "is_main": None, "samples": real, "cpu_ns": args["cpuTimeNs"], "rows": len(samples),
        })
