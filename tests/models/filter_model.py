# SPDX-License-Identifier: BSD-2-Clause
"""
A model of filters (docs/FILTERS.md): random profiles with processes, threads, inlined functions and files, random clauses, and
what is left. Written as a pprof file and, with times and CPUs, as the text of `perf script`. Equal seeds, equal cases.
"""
import collections
import dataclasses
import fnmatch
import gzip
import json
import re

from profiles import Strings, message, number

NAMES = ["main", "run", "parse", "parse_line", "a::b<int>", "std::sort", "std::less", "work", "λ", "poll", "do_it", "x.y"]
SOURCES = ["/src/main.c", "/src/parse.c", "/usr/include/c++/sort.h", "", "lib.rs"]
FILES = ["/usr/bin/app", "/usr/lib/libc.so.6", "/opt/libparse.so", "/usr/lib/libx.so"]
PROCESSES = [(10, "app"), (11, "app"), (20, "java"), (30, "sh [x]")]
SERVICES = {10: ("shop", "ann"), 11: ("shop", "root"), 20: ("OrderService", "ann"), 30: ("", "")}  # and users
THREADS = ["main", "worker 1", "worker 2", "io"]
GROUPS = ["", "/system.slice/nginx.service", "/system.slice/docker-" + "0123456789abcdef" * 4 + ".scope", "/user.slice/user-1000.slice/app-x.scope"]
# of the same meaning for Python and RE2
PATTERNS = ["parse", "^main$", "std::", "^std::.*s$", "lib(c|x)\\.", "\\.so", "sort\\.h", "a::b<int>", "(?i)WORK", "[px]", "λ|poll", "o{1,2}|run", "\\bline\\b", "nothing",
            "^(parse|run)", ".", "_", "/src/(main|parse)\\.c$", "app$", "x?y"]


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    source: str


@dataclasses.dataclass(frozen=True)
class Location:
    file: str  # "": in none
    lines: tuple  # outermost first


@dataclasses.dataclass(frozen=True)
class Sample:
    pid: int
    process: str
    tid: int
    thread: str
    group: str
    time: int  # ns
    cpu: int
    stack: tuple  # of locations, outermost first
    count: int
    weight: int
    service: str = ""
    user: str = ""


def location(random, inlines=True):
    count = random.choice([1, 1, 1, 2, 3]) if inlines else 1
    return Location(random.choice(FILES), tuple(Line(random.choice(NAMES), random.choice(SOURCES)) for _ in range(count)))


def profile(random, inlines=True):
    locations = [location(random, inlines) for _ in range(random.choice([3, 8, 20]))]
    samples, time, named = [], 10**12, random.random() < 0.4
    for _ in range(random.choice([1, 5, 40])):
        pid, process = random.choice(PROCESSES)
        thread = random.randrange(len(THREADS))
        time += random.randrange(10**5, 10**7)
        stack = tuple(random.choice(locations) for _ in range(random.choice([1, 2, 4, 9])))
        samples.append(Sample(pid, process, pid * 100 + thread, THREADS[thread], GROUPS[PROCESSES.index((pid, process))], time, random.randrange(4), stack,
                              random.choice([1, 2, 7]), random.randrange(1, 10**9), *(SERVICES[pid] if named else ())))
    return samples


# ---- clauses ---------------------------------------------------------------------------------------------------------

ORDER = ["process", "thread", "service", "container", "unit", "user", "@", "cpu", "state", "focus", "ignore", "hide", "show-from", "collapse"]
OF_THREADS = {"process", "thread", "service", "user", "container", "unit"}
TOGETHER = OF_THREADS | {"cpu", "state", "hide"}


def timed_clauses(random, samples):
    """Those of the text of `perf script`, a slice and CPUs among them."""
    begin = start(samples)
    times = [sample.time - begin for sample in samples] + [random.randrange(10**9), 10**12]
    first, last = sorted(random.choice(times) + random.choice([0, 0, -1, 1]) for _ in range(2))
    values = {
        "@": [(first, last + 1), (first, None), (0, last + 1)],
        "cpu": [[0], [1, 2], [0, 1, 2, 3], [7], [3, 9]],
        "state": ["running", "lock,running"],
        "process": ["10", "20", "2*", "12"],
        "thread": ["main", "worker*", "2001", "[mi]*", "nobody"],
        "focus": PATTERNS, "ignore": PATTERNS, "hide": PATTERNS, "show-from": PATTERNS, "collapse": PATTERNS,
    }
    kinds = random.choices(sorted(values), k=random.choice([1, 2, 4])) + random.choice([["@"], ["cpu"], ["@", "cpu"]])
    given = [(kind, random.choice(values[kind])) for kind in kinds]
    slices = [clause for clause in given if clause[0] == "@"]
    return [clause for clause in given if clause[0] != "@"] + slices[:1]  # a file has one


def frame_clauses(random, most=3):
    """Those that pprof has, each at most once."""
    kinds = random.sample(["focus", "ignore", "hide", "show-from"], random.choice(range(1, most + 1)))
    return [(kind, random.choice(PATTERNS)) for kind in kinds]


def clauses(random):
    values = {
        "process": ["app", "java", "a*", "10", "sh [[]x]", "sh [x]", "?*", "12"],
        "thread": ["main", "worker*", "2001", "[mi]*", "nobody"],
        "unit": ["nginx.service", "nginx", "*.scope", "app-?", "system"],
        "service": ["shop", "sh*", "Order?ervice", "nothing"],
        "user": ["ann", "r*", "0"],
        "container": ["0123456789ab", "0123456789abcdef*", "0123", "nginx"],
        "focus": PATTERNS, "ignore": PATTERNS, "hide": PATTERNS, "show-from": PATTERNS, "collapse": PATTERNS,
    }
    kinds = random.choices(sorted(values), k=random.choice([1, 2, 3, 5]))
    return [(kind, random.choice(["", "", "!"] if kind in OF_THREADS else [""]) + random.choice(values[kind])) for kind in kinds]


def groups(given):
    """Clauses in their order, as lists that are one line of the books."""
    found = []
    for kind in ORDER:
        values = [value for other, value in given if other == kind]
        values = [value for i, value in enumerate(values) if value not in values[:i]]
        if kind not in ("@", "cpu", "show-from", "collapse"):
            values.sort(key=str.encode)
        found += [(kind, values)] if values and kind in TOGETHER else [(kind, [value]) for value in values]
    return found


def is_name(pattern, text):
    return bool(text) and (pattern == text or fnmatch.fnmatchcase(text, pattern))


def is_number(pattern, value):
    return pattern.isascii() and pattern.isdigit() and int(pattern) == value


def parts(group):
    return [part for part in group.split("/") if part]


def is_unit(pattern, part):
    match = re.fullmatch(r"(.+)\.(service|scope|slice|socket)", part)
    return bool(match) and (is_name(pattern, part) or is_name(pattern, match[1]))


def is_container(pattern, part):
    match = re.fullmatch(r"(?:.*-)?([0-9a-f]{64})(?:\..*)?", part)
    return bool(match) and (is_name(pattern, match[1]) or (len(pattern) >= 12 and match[1].startswith(pattern)))


def owns(kind, pattern, sample):
    if kind == "process":
        return is_number(pattern, sample.pid) or is_name(pattern, sample.process)
    if kind == "thread":
        return is_number(pattern, sample.tid) or is_name(pattern, sample.thread)
    if kind in ("service", "user"):
        return is_name(pattern, getattr(sample, kind))
    if kind == "unit":
        return any(is_unit(pattern, part) for part in parts(sample.group))
    return any(is_container(pattern, part) for part in parts(sample.group))


def found(pattern, text):
    return re.search(pattern, text) is not None


def line_matches(pattern, line):
    return found(pattern, line.name) or found(pattern, line.source)


def matches(pattern, place):
    return found(pattern, place.file) or any(line_matches(pattern, line) for line in place.lines)


def hidden(patterns, place):
    if any(found(pattern, place.file) for pattern in patterns):
        return Location(place.file, ())
    return Location(place.file, tuple(line for line in place.lines if not any(line_matches(pattern, line) for pattern in patterns)))


def trimmed(pattern, place):
    """A location without the lines outside of the outermost match, and whether there is one."""
    if found(pattern, place.file):
        return place, True
    for i, line in enumerate(place.lines):
        if line_matches(pattern, line):
            return Location(place.file, place.lines[i:]), True
    return place, False


def shown_from(pattern, stack):
    places = [trimmed(pattern, place) for place in stack]
    first = next((i for i, (_, match) in enumerate(places) if match), None)
    return () if first is None else tuple(place for place, _ in places[first:])


def collapsed(pattern, stack):
    inside, left = False, []
    for place in stack:
        lines = []
        for line in place.lines:
            match = line_matches(pattern, line) or found(pattern, place.file)
            if not (match and inside):
                lines.append(line)
            inside = match
        if lines:
            left.append(Location(place.file, tuple(lines)))
    return tuple(left)


def stack_after(kind, values, stack):
    """None: the sample is dropped."""
    if kind == "focus":
        return stack if any(matches(values[0], place) for place in stack) else None
    if kind == "ignore":
        return None if any(matches(values[0], place) for place in stack) else stack
    if kind == "hide":
        return tuple(place for place in (hidden(values, place) for place in stack) if place.lines) or None
    if kind == "show-from":
        return shown_from(values[0], stack) or None
    return collapsed(values[0], stack)


def apply(given, samples):
    """The samples that are left, and what each line of the books dropped: its clauses, samples and weights."""
    books, left, profile_start = [], list(samples), start(samples)
    for kind, values in groups(given):
        after, dropped = [], [0, 0]
        for sample in left:
            if kind == "@":
                begin, end = values[0]
                reaches_end = end is None or end >= samples[-1].time - profile_start
                kept = begin <= sample.time - profile_start and (reaches_end or sample.time - profile_start < end)
            elif kind == "cpu":
                kept = any(sample.cpu in cpus for cpus in values)
            elif kind == "state":
                kept = True  # all of them are CPU samples
            elif kind in OF_THREADS:
                wanted, others = [value for value in values if value[0] != "!"], [value[1:] for value in values if value[0] == "!"]
                kept = (not wanted or any(owns(kind, value, sample) for value in wanted)) and not any(owns(kind, value, sample) for value in others)
            else:
                stack = stack_after(kind, values, sample.stack)
                kept = stack is not None
                sample = dataclasses.replace(sample, stack=stack) if kept else sample
            if kept:
                after.append(sample)
            else:
                dropped[0] += sample.count
                dropped[1] += sample.weight
        left = after
        books.append(dropped)
    return left, books


def start(samples):
    """Of the profile: a sample of a clock stands for the time before it."""
    return min(sample.time - sample.weight for sample in samples)


def totals(samples):
    """Samples and weights of each thread's call paths."""
    sums = collections.defaultdict(lambda: [0, 0])
    for sample in samples:
        path = tuple(line.name for place in sample.stack for line in place.lines)
        sums[sample.pid, sample.tid, path][0] += sample.count
        sums[sample.pid, sample.tid, path][1] += sample.weight
    return dict(sums)


# ---- files -----------------------------------------------------------------------------------------------------------

def pprof(samples):
    strings = Strings()
    functions, locations, mappings = {}, {}, {}
    parts_ = [message(1, number(1, strings(t)) + number(2, strings(u))) for t, u in (("samples", "count"), ("cpu", "nanoseconds"))]
    for s in samples:
        ids = []
        for place in reversed(s.stack):
            mappings.setdefault(place.file, len(mappings) + 1)
            for line in place.lines:
                functions.setdefault(line, len(functions) + 1)
            ids.append(locations.setdefault(place, len(locations) + 1))
        data = b"".join(number(1, i) for i in ids) + number(2, s.count) + number(2, s.weight)
        for key, value in (("pid", s.pid), ("tid", s.tid)):
            data += message(3, number(1, strings(key)) + number(3, value))
        for key, text in (("process", s.process), ("thread", s.thread), ("cgroup", s.group), ("service_name", s.service), ("user", s.user)):
            if text:
                data += message(3, number(1, strings(key)) + number(2, strings(text)))
        parts_.append(message(2, data))
    parts_ += [message(3, number(1, i) + number(2, i << 20) + number(3, (i + 1) << 20) + number(5, strings(file)) + number(7, 1)) for file, i in mappings.items()]
    for place, i in locations.items():
        lines = b"".join(message(4, number(1, functions[line]) + number(2, 3)) for line in reversed(place.lines))
        parts_.append(message(4, number(1, i) + number(2, mappings[place.file]) + number(3, (mappings[place.file] << 20) + 16 * i) + lines))
    parts_ += [message(5, number(1, i) + number(2, strings(line.name)) + number(4, strings(line.source))) for line, i in functions.items()]
    parts_.append(number(12, 10**7))
    if any(s.service or s.user for s in samples):  # in files of other programs such labels may be of requests
        parts_.append(number(13, strings("sysprof 1.0")))
    return gzip.compress(b"".join(parts_) + strings.table(), 1)


def as_printed(samples):
    """What the text of perf script has of them."""
    return [dataclasses.replace(s, count=1, process="", service="", user="", stack=tuple(Location(p.file, (Line(p.lines[0].name, ""),)) for p in s.stack)) for s in samples]


def perf_script(samples):
    text = []
    for s in samples:
        text.append(f"{s.thread} {s.pid}/{s.tid} [{s.cpu:03}] {s.time // 10**9}.{s.time % 10**9:09}: {s.weight} cpu-clock:")
        for place in reversed(s.stack):
            text.append(f"\t{FILES.index(place.file) * 65536 + NAMES.index(place.lines[0].name) * 256 + 4096:x} {place.lines[0].name}+0x4 ({place.file})")
        text.append("")
    return ("\n".join(text) + "\n").encode()


# ---- markers ---------------------------------------------------------------------------------------------------------

MARKERS = ["GC", "GC minor", "Reflow", "load: /a?b=c@d", "λ", "10s"]


@dataclasses.dataclass(frozen=True)
class Marker:
    name: str
    tid: int
    start: int  # ns
    end: int  # an instant: its start


def markers(random, samples):
    """Of the threads of the samples, with times before, at and behind those of samples."""
    first, last = samples[0].time, samples[-1].time
    found = []
    for _ in range(random.choice([1, 3, 10])):
        start = random.choice([random.randrange(first - 10**6, last + 10**6), random.choice(samples).time])
        length = random.choice([0, 1, random.randrange(1, 10**7), random.randrange(1, last - first + 2 * 10**6)])
        found.append(Marker(random.choice(MARKERS), random.choice(samples).tid, start, start + length))
    return found


def in_markers(name, found, samples):
    """The samples in one of the markers, or why there are none. The end itself is in a marker that reaches it."""
    first, last = samples[0].time - 1, samples[-1].time
    shown = [m for m in found if (first <= m.start <= last if m.start == m.end else m.start < last and m.end > first)]
    if not shown:
        return "no markers"
    shown = [m for m in shown if is_name(name, m.name)]
    if shown and all(m.start == m.end for m in shown):
        return "instants"
    return [s for s in samples if any(m.start <= s.time and (s.time < m.end or m.end >= last) for m in shown if m.start < m.end)]


def firefox_phases(random, found):
    """The rows of a thread's table: an interval may be written as its start and its end."""
    rows = []
    for m in found:
        if m.start == m.end:
            rows.append((m.start, m.name, m.start, None, 0))
        elif random.random() < 0.5:
            rows.append((m.start, m.name, m.start, m.end, 1))
        else:
            rows += [(m.start, m.name, m.start, None, 2), (m.end, m.name, None, m.end, 3)]
    return sorted(rows, key=lambda row: (row[0], row[4] == 2))


def firefox(random, samples, found):
    """The processed format; weights are samples of 1 ms each."""
    base, strings, threads = samples[0].time - 1, [], []

    def string(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    def ms(ns):
        return None if ns is None else (ns - base) / 10**6

    names, nodes = [], {}
    for s in samples:
        path = [line.name for place in s.stack for line in place.lines]
        for depth in range(1, len(path) + 1):
            nodes.setdefault(tuple(path[:depth]), len(nodes))
            names += [path[depth - 1]] * (path[depth - 1] not in names)
    none = [None] * len(names)
    shared = {
        "funcTable": {"length": len(names), "name": [string(name) for name in names], "isJS": [False] * len(names), "resource": [-1] * len(names),
                      "source": none, "lineNumber": none, "columnNumber": none},
        "frameTable": {"length": len(names), "address": [-1] * len(names), "inlineDepth": [0] * len(names), "category": [0] * len(names),
                       "subcategory": [0] * len(names), "func": list(range(len(names))), "nativeSymbol": none, "line": none, "column": none},
        "stackTable": {"length": len(nodes), "prefix": [nodes.get(path[:-1]) for path in nodes], "frame": [names.index(path[-1]) for path in nodes]},
        "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
    }
    for tid in sorted({s.tid for s in samples}):
        own = [s for s in samples if s.tid == tid]
        rows = firefox_phases(random, [m for m in found if m.tid == tid])
        threads.append({
            "name": own[0].thread, "pid": str(own[0].pid), "tid": tid, "isMainThread": False, "processName": own[0].process, "registerTime": 0,
            "unregisterTime": None, "processStartupTime": 0, "processShutdownTime": None,
            "samples": {"length": len(own), "weightType": "samples", "weight": [s.count for s in own], "time": [ms(s.time) for s in own],
                        "stack": [nodes[tuple(line.name for place in s.stack for line in place.lines)] for s in own]},
            "markers": {"length": len(rows), "name": [string(row[1]) for row in rows], "startTime": [ms(row[2]) for row in rows],
                        "endTime": [ms(row[3]) for row in rows], "phase": [row[4] for row in rows], "category": [0] * len(rows),
                        "data": [random.choice([None, {"type": "Text", "name": "x"}]) for _ in rows]}})
    meta = {"preprocessedProfileVersion": 58, "interval": 1, "startTime": 1700000000000, "version": 24, "product": "tool",
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}]}
    shared["stringArray"] = strings
    return json.dumps({"meta": meta, "libs": [], "shared": shared, "threads": threads}).encode()
