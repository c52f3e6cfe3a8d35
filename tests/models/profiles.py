# SPDX-License-Identifier: BSD-2-Clause
"""
A model of what is read of profiles of other tools: random profiles, written in every format with the oddities that files in
the wild have, and what docs/FORMATS.md says is read of them. Equal seeds, equal files.

Each format is a function of a random generator; it returns the bytes of a file and an Expected. Names are of a kind that no
reader takes for anything else: what it makes of special ones is in tests/unit/testdata.
"""
import collections
import dataclasses
import gzip
import json
import re
import struct

NAMES = ["main", "run", "parse", "a::b<int>", "Ünïcode", "work item", "λ", "x" * 40, "operator()", "f.g.h", "do_it", "'quoted\"", "tail\\", "100%"]
THREADS = ["worker", "main loop", "io 3", "φ-thread"]


@dataclasses.dataclass
class Expected:
    known: bool = True  # how many samples there were
    samples: int = 0
    left_out: bool = False
    paths: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(lambda: [0, 0]))  # events, CPU time
    threads: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(lambda: [0, 0]))

    added: list = dataclasses.field(default_factory=list)  # thread, path, samples

    def add(self, thread, path, events, cpu, samples=None):
        self.added.append((thread, path, samples))
        self.samples += events if samples is None else samples
        for sums in (self.paths["".join("\x1f" + name for name in path)], self.threads[thread]):
            sums[0] += events
            sums[1] += cpu

    def take_back(self, thread, path, events, cpu):
        self.add(thread, path, -events, -cpu)
        key = "".join("\x1f" + name for name in path)
        if not self.paths[key][0]:
            del self.paths[key]

    def count_if_no_length(self):
        """Where no sample has a length, each counts alike."""
        if not any(events for events, _ in self.paths.values()):
            for thread, path, samples in list(self.added):
                self.add(thread, path, samples, 0, samples=0)

    def cpu_after(self, thread, cpu):  # of no sample
        self.threads[thread][1] += cpu


def paths(random, count):
    """Distinct call paths, of which some share their beginnings."""
    found = {(random.choice(NAMES),)}
    while len(found) < count:
        begin = random.choice(sorted(found))
        found.add((begin if len(begin) < 12 else begin[:3]) + (random.choice(NAMES),))
    return sorted(found)


def packed(random, data):
    return gzip.compress(data, 1) if random.random() < 0.1 else data


# ---- folded stacks ---------------------------------------------------------------------------------------------------

def folded_numbers(random, count):
    """Numbers of lines, as text and as they are read; whether the number of samples is known, and the samples of each."""
    kind = random.choice(["counts", "counts", "weights", "period", "fractions", "own cpu", "own unit"])
    if kind == "counts":
        values = [random.choice([1, 2, 3, 99]) for _ in range(count)]
        values[0] = random.choice([1, 50000]) if count < 16 else values[0]
        return kind, [str(v) for v in values], values, values
    if kind == "weights":  # two that no period divides
        values = [random.randrange(10**6, 10**9) for _ in range(count)]
        values[0] = 1000003 * random.randrange(1, 90)
        if count > 1:
            values[1] = values[0] + 1
        return kind, [str(v) for v in values], values, None
    if kind == "period" and count > 1:
        period = random.choice([10101010, 1001001, 250001])
        counts = [random.choice([1, 2, 7, 30]) for _ in range(count)]
        counts[0] = 1  # or the period is a multiple
        return kind, [str(period * c) for c in counts], [period * c for c in counts], counts
    if kind == "fractions":
        digits = random.choice([1, 2, 6])
        values = [random.randrange(1, 5 * 10**digits) for _ in range(count)]
        values[-1] = values[-1] // 10 * 10 + 1
        return kind, [f"{v // 10**digits}.{v % 10**digits:0{digits}}" + random.choice(["", "0"]) for v in values], values, None
    values = [random.randrange(1, 1000) for _ in range(count)]
    return kind if kind.startswith("own") else "own unit", [str(v) for v in values], values, None


def folded(random):
    rows = [(random.choice(THREADS), path) for path in paths(random, random.choice([1, 2, 5, 30]))]
    shape = random.choice(["thread", "frame", "async"])
    kind, texts, values, counts = folded_numbers(random, len(rows))
    expected = Expected(known=counts is not None)
    lines = []
    if shape == "frame":  # a line of one field says that the first fields are frames
        rows[0] = (rows[0][0], (random.choice(NAMES),))
    unit = 7 if kind == "own cpu" else 1
    for number, ((thread, path), text, value) in enumerate(zip(rows, texts, values)):
        first = {"thread": [thread], "frame": [], "async": [f"[{thread} tid={THREADS.index(thread) + 7}]"]}[shape]
        if random.random() < 0.1:  # a frame without a name
            place = random.randrange(len(path) + 1) if shape != "frame" else len(path)
            lines.append(";".join(first + list(path[:place]) + [""] + list(path[place:])) + " " + text)
            path = path[:place] + ("[unknown]",) + path[place:]
        else:
            lines.append(";".join(first + list(path)) + " " + text)
        expected.add("file" if shape == "frame" else thread, path, value * unit, value * unit if unit > 1 else 0,
                     samples=counts[number] if counts else value)
        if random.random() < 0.05:
            lines.append(random.choice(["", "# a comment 3", "x;y 0", "   "]))
    if len(lines) > 3 and random.random() < 0.2:
        lines.insert(random.randrange(3, len(lines) + 1), "no count here")
        expected.left_out = True
    if kind.startswith("own"):
        lines.insert(0, "# weights: " + ("7 ns of CPU time" if unit > 1 else "bytes"))
    text = random.choice(["\n", "\n", "\r\n"]).join(lines) + random.choice(["\n", ""])
    if text[-1].isdigit() and lines[-1][0] != "#" and sum(bool(line.strip()) and line[0] != "#" for line in lines) > 1:
        expected.left_out = True  # kept, but perhaps cut off
    return packed(random, text.encode(random.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))), expected


# ---- pprof -----------------------------------------------------------------------------------------------------------

def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def repeated(random, field, values):
    if random.random() < 0.5:
        return b"".join(number(field, v) for v in values)
    return message(field, b"".join(varint(v) for v in values))


class Strings:
    def __init__(self):
        self.numbers = {"": 0}

    def __call__(self, text):
        return self.numbers.setdefault(text, len(self.numbers))

    def table(self):
        return b"".join(message(6, text.encode()) for text in self.numbers)


def pprof_values(random, count):
    """Types, rows of values, period, and of each row events, CPU time and samples; whether these are known."""
    kind = random.choice(["proportion", "periods", "cpu alone", "cpu of periods", "counts alone", "uneven", "default", "ours", "cycles", "weights", "zeros", "others", "other default", "wall", "delay", "wall alone"])
    counts = [random.choice([1, 2, 5, 40]) for _ in range(count)]
    cpu = [random.randrange(10**5, 10**9) * 2 + 1 for _ in range(count)]
    period = random.choice([0, 1, 10**7, 10**15])
    plausible = period == 10**7
    both = [("samples", "count"), ("cpu", "nanoseconds")]
    if random.random() < 0.2:
        both = [("cpu-samples", "count"), ("cpu-time", "nanoseconds")]
    extra = {"kind": kind}
    if kind in ("uneven", "default", "ours") and len(set(cpu)) == 1:
        kind = "proportion"
    if kind == "proportion":
        each = random.choice([10**7, 999 * 10**3])
        cpu = [c * each for c in counts]
        return both, list(zip(counts, cpu)), period, [(c, n, c) for c, n in zip(counts, cpu)], True, extra
    if kind in ("periods", "cpu of periods"):
        periods = [random.choice([1, 3, 20]) for _ in range(count)]
        cpu = [n * 10**7 for n in periods]
        rows = [(n, c, n) for n, c in zip(periods, cpu)]
        if kind == "cpu of periods":
            return both[1:], [(c,) for c in cpu], 10**7, rows, True, extra
        counts = [1 + i for i in range(count)]
        if all(n * counts[0] == c * periods[0] for n, c in zip(periods, counts)):
            rows = [(c, n * 10**7, c) for c, n in zip(counts, periods)]
        return both, list(zip(counts, cpu)), 10**7, rows, True, extra
    if kind == "cpu alone":
        return both[1:], [(c,) for c in cpu], period, [(c, c, c) for c in cpu], False, extra
    if kind == "counts alone":
        return both[:1], [(c,) for c in counts], period, [(c, c * 10**7 if plausible else 0, c) for c in counts], True, extra
    if kind == "cycles":
        cycles = [random.randrange(1, 10**9) for _ in range(count)]
        return [both[0], ("cycles", "count"), both[1]], list(zip(counts, cycles, cpu)), period, list(zip(cycles, cpu, counts)), True, extra
    if kind in ("wall", "delay"):
        return [both[0], (kind, "nanoseconds")], list(zip(counts, cpu)), period, [(n, c * 10**7 if plausible else 0, c) for c, n in zip(counts, cpu)], True, extra
    if kind == "wall alone":
        return [("wall", "nanoseconds")], [(c,) for c in cpu], period, [(c, 0, c) for c in cpu], False, extra
    if kind == "weights":
        return [("weight", "bytes")], [(c,) for c in cpu], period, [(c, 0, c) for c in cpu], False, extra
    if kind == "zeros" and count > 1:  # samples without CPU time, and CPU time without samples
        for i in range(random.choice([1, count - 1])):
            (counts if random.random() < 0.5 else cpu)[i] = 0
        return both, list(zip(counts, cpu)), period, list(zip(cpu, cpu, counts)), True, extra
    if kind in ("others", "other default"):  # rows of CPU time, of allocations or locks, and of both
        other = random.choice([("alloc-samples", "count"), ("wall", "nanoseconds"), ("alloc-space", "bytes")])
        others = [random.choice([0, 5, 10**13]) for _ in range(count)]
        others[0] = others[0] or 7
        counts = [c if i == 0 or random.random() < 0.7 else 0 for i, c in enumerate(counts)]
        values = [(c, c * 10**7, o) for c, o in zip(counts, others)]
        if kind == "others":
            return both + [other], values, period, [(c, n, c) for c, n, _ in values], True, extra
        extra["default"] = other[0]
        return both + [other], values, period, [(o, n, c) for c, n, o in values], True, extra
    even = all(n * counts[0] == c * cpu[0] for n, c in zip(cpu, counts))
    if kind in ("default", "ours") or even:
        extra["default" if kind == "default" else "ours"] = both[0][0]
        return both, list(zip(counts, cpu)), period, [(c, n, c) for c, n in zip(counts, cpu)], True, extra
    return both, list(zip(counts, cpu)), period, list(zip(cpu, cpu, counts)), True, extra


# Of the same meaning for every program that has regular expressions.
PATTERNS = ["parse|run", "x+", "(?:do|work).*", "[a-z]+", "main|f\\.g\\.h", "(run|(parse|io)*)", ".*[^a-zA-Z_ ]+", "λ", "\\w+ \\w+", "a::b<int>?"]


def pruned(path, groups, drop, keep):
    """A path without what `drop` matches and what that calls. Inlined functions (groups of names, outermost first) are one
    location: one of them that is dropped goes with all that it calls; a location is never the first one to go."""
    left, user = [], False
    for group in groups:
        matched = [i for i, name in enumerate(group) if re.fullmatch(drop, name.replace("operator()", "operator\0").split("(")[0].replace("\0", "()"))
                   and not (keep and re.fullmatch(keep, name))]
        if not matched:
            left, user = left + group, True
        elif not matched[0] and not user:
            left += group
        elif not matched[0]:
            return tuple(left)
        else:
            left += group[:matched[0]]
            if user:
                return tuple(left)
    return tuple(left)


def pprof(random):
    strings = Strings()
    drop = random.choice(PATTERNS) if random.random() < 0.3 else None
    keep = random.choice(PATTERNS) if drop and random.random() < 0.3 else None
    stacks = paths(random, random.choice([1, 2, 7]))
    types, values, period, rows, known, extra = pprof_values(random, len(stacks))
    expected = Expected(known=known)
    functions, locations, samples = {}, {}, []
    inlined = random.random() < 0.3

    def function(name):
        functions.setdefault(name, len(functions) + 1)
        return functions[name]

    def location(names):  # innermost first
        return locations.setdefault(tuple(names), len(locations) + 1)

    labelled = random.random() < 0.5
    for path, numbers, (events, cpu, count) in zip(stacks, values, rows):
        frames = [[name] for name in reversed(path)]
        if inlined and len(frames) > 1:
            frames = [frames[0] + frames[1]] + frames[2:]
        thread = random.choice(THREADS) if labelled else "file"
        data = repeated(random, 1, [location(names) for names in frames]) + repeated(random, 2, numbers)
        if labelled:
            data += message(3, number(1, strings("thread")) + number(2, strings(thread)))
            data += message(3, number(1, strings("tid")) + number(3, THREADS.index(thread) + 1))
        if drop:
            path = pruned(path, [group[::-1] for group in reversed(frames)], drop, keep)
        samples.append(message(2, data + (number(77, 5) if random.random() < 0.1 else b"")))
        if events or cpu or count:
            expected.add(thread, path, events, cpu, samples=count)
        else:
            # waits are no events
            expected.left_out |= any(n for n, (name, _) in zip(numbers, types) if name != "wall")
    if "ours" in extra:
        strings("sysprof 1.0")
    parts = [message(1, number(1, strings(t)) + number(2, strings(u))) for t, u in types]
    parts += samples
    parts += [message(4, number(1, i) + b"".join(message(4, number(1, function(n)) + number(2, 3)) for n in names)) for names, i in locations.items()]
    parts += [message(5, number(1, i) + number(2, strings(name)) + number(4, strings("/src/file.c"))) for name, i in functions.items()]
    tail = [message(11, number(1, strings("cpu")) + number(2, strings("nanoseconds"))), number(12, period)]
    if "ours" in extra:
        tail.append(number(13, strings("sysprof 1.0")))
    if "default" in extra:
        tail.append(number(14, strings(extra["default"])))
    if drop:
        tail.append(number(7, strings(drop)))
    if keep:
        tail.append(number(8, strings(keep)))
    if random.random() < 0.5:
        tail += [number(9, 1700000000 * 10**9), number(10, 30 * 10**9)]
    parts += tail
    table = strings.table()
    # types keep their order; tables come anywhere
    data = [p for p in parts if p[0] >> 3 == 1]
    rest = [p for p in parts if p[0] >> 3 != 1]
    keep = [p for p in rest if p[0] >> 3 in (4, 5)]
    rest = [p for p in rest if p[0] >> 3 not in (4, 5)]
    random.shuffle(keep)
    data += keep + rest if random.random() < 0.3 else rest + keep
    data = b"".join(data + [table]) if random.random() < 0.7 else table + b"".join(data)
    return gzip.compress(data, 1) if random.random() < 0.5 else data, expected


# ---- Chrome's formats ------------------------------------------------------------------------------------------------

class Tree:
    """Nodes of call paths; number 1 is (root)."""
    def __init__(self, first=1, step=1):
        self.ids, self.parents, self.first, self.step = {(): first}, {first: None}, first, step
        self.names = {first: "(root)"}

    def node(self, path):
        if path not in self.ids:
            parent = self.node(path[:-1])
            self.ids[path] = self.first + len(self.ids) * self.step
            self.parents[self.ids[path]] = parent
            self.names[self.ids[path]] = path[-1]
        return self.ids[path]


def call_frame(name):
    if name in ("(root)", "(idle)"):
        return {"functionName": name, "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1}
    return {"functionName": name, "scriptId": "1", "url": "file:///a.js", "lineNumber": 1, "columnNumber": 2}


def chrome_samples(random, tree, expected, thread, start, always_timed=True):
    """
    Node ids with times in us, and the end, 0 if it is not in the file; what is expected of them. Some are idle, some of nodes that
    there are not, some are late, and some have the same time.
    """
    stacks = paths(random, random.choice([1, 2, 6])) + [("(idle)",)] * random.choice([0, 1]) + [("(program)",), ("(garbage collector)",)] * random.choice([0, 1])
    expected.threads[thread]
    when = start
    samples = []
    for _ in range(random.choice([1, 2, 20])):
        missing = random.random() < 0.03
        path = random.choice(stacks)
        samples.append([tree.node(path), when, None if missing else path])
        if missing:
            samples[-1][0] = 10**9
        when += random.choice([0, 1, 100, 1000, 5000, 10**6])
    end = when
    if all(path is None for _, _, path in samples):
        samples[0][0], samples[0][2] = tree.node(stacks[0]), stacks[0]
    expected.left_out |= any(path is None for _, _, path in samples)
    if random.random() < 0.2:  # written late
        random.shuffle(samples)
    in_order = sorted(samples, key=lambda sample: sample[1])
    if random.random() < 0.1:
        lengths = sorted(b[1] - a[1] for a, b in zip(in_order, in_order[1:]))
        when, end = in_order[-1][1] + (lengths[len(lengths) // 2] if lengths else 0), 0
    busy = [(path, after - at) for (_, at, path), after in zip(in_order, [at for _, at, _ in in_order[1:]] + [when])
            if path and path != ("(idle)",)]
    timed = always_timed or len({us for _, us in busy}) > 1
    for path, us in busy:
        expected.add(thread, path, us * 1000 if timed else 1, us * 1000, samples=1)
    return samples, end


def no_cpu_sample(expected):
    return not expected.samples


def nodes_of(random, tree):
    if random.random() < 0.5:
        nodes = [{"id": i, "callFrame": call_frame(tree.names[i]), "hitCount": 0,
                  "children": [c for c, p in tree.parents.items() if p == i]} for i in tree.names]
        return nodes
    nodes = []
    for i, parent in tree.parents.items():
        nodes.append({"id": i, "callFrame": call_frame(tree.names[i])} | ({"parent": parent} if parent else {}))
    return nodes


def head_of(tree, i=None):
    i = i or tree.first
    return call_frame(tree.names[i]) | {"id": i, "callUID": i, "hitCount": 0, "children": [head_of(tree, c) for c, p in tree.parents.items() if p == i]}


def start_of(random):
    return random.choice([0, 12345, 10**12, 1700000000 * 10**6])  # the last one since 1970, in us


def cpuprofile(random):
    expected, tree, start = Expected(), Tree(step=random.choice([1, 7])), start_of(random)
    samples, end = chrome_samples(random, tree, expected, "file", start, always_timed=False)
    if end and samples == sorted(samples, key=lambda sample: sample[1]) and random.random() < 0.2:  # v8-profiler: a tree, and seconds of which only the length counts
        length = end - start
        data = {"typeId": "CPU", "head": head_of(tree), "startTime": 5, "endTime": 5 + length / 1e6, "samples": [s[0] for s in samples],
                "timestamps": [s[1] for s in samples]}
        return packed(random, json.dumps(data).encode()), expected
    at = [s[1] for s in samples]
    deltas = [b - a for a, b in zip([start] + at, at)]
    data = {"nodes": nodes_of(random, tree), "startTime": start, "endTime": end, "samples": [s[0] for s in samples], "timeDeltas": deltas}
    if random.random() < 0.3:
        data["unknown"] = {"nested": [1, {"a": None}]}
    keys = list(data)
    random.shuffle(keys)
    return packed(random, json.dumps({k: data[k] for k in keys}, ensure_ascii=random.random() < 0.5).encode()), expected


def trace(random):
    expected, events, first = Expected(), [], 1
    start = start_of(random)
    ends = []
    for tid in range(1, 1 + random.choice([1, 1, 3])):
        thread = f"{random.choice(THREADS)} {tid}"
        tree = Tree(first=first)
        samples, end = chrome_samples(random, tree, expected, thread, start)
        first += len(tree.ids) + 5
        base = {"pid": 7, "tid": tid, "cat": "disabled-by-default-v8.cpu_profiler"}
        events.append({"name": "thread_name", "ph": "M", "pid": 7, "tid": tid, "args": {"name": thread}})
        if random.random() < 0.2:  # Chrome 58 to 66
            at = [s[1] for s in samples]
            data = {"nodes": nodes_of(random, tree), "startTime": start, "endTime": end, "samples": [s[0] for s in samples],
                    "timeDeltas": [b - a for a, b in zip([start] + at, at)]}
            events.append(base | {"name": "CpuProfile", "ph": "I", "ts": end, "args": {"data": {"cpuProfile": data}}})
            continue
        events.append(base | {"name": "Profile", "ph": "P", "id": f"0x{tid}", "ts": start, "args": {"data": {"startTime": start}}})
        cut = random.randrange(1, len(samples) + 1)
        now = start
        nodes = [{k: v for k, v in n.items() if k != "children"} | ({"parent": tree.parents[n["id"]]} if tree.parents[n["id"]] else {}) for n in nodes_of(random, tree)]
        for number, part in enumerate([samples[:cut], samples[cut:]]):
            if not part and number:
                continue
            profile = {"samples": [s[0] for s in part]} | ({"nodes": nodes} if not number else {})
            data = {"cpuProfile": profile, "timeDeltas": [b - a for a, b in zip([now] + [s[1] for s in part], [s[1] for s in part])]}
            now = part[-1][1]
            if number or cut == len(samples):
                data["cpuProfile"]["endTime"] = end
            events.append(base | {"name": "ProfileChunk", "ph": "P", "id": f"0x{tid}", "tid": 99, "ts": end + number, "args": {"data": data}})
        ends.append(end)
    expected.count_if_no_length()
    for _ in range(random.choice([0, 3])):
        events.insert(random.randrange(len(events) + 1), {"name": "RunTask", "ph": "X", "ts": start, "dur": 3, "pid": 7, "tid": 1, "cat": "x", "args": {}})
    if random.random() < 0.1:  # of an earlier recording
        events.append({"name": "ProfileChunk", "ph": "P", "id": "0xdead", "pid": 7, "tid": 3, "ts": start, "cat": "disabled-by-default-v8.cpu_profiler",
                       "args": {"data": {"cpuProfile": {"samples": [5, 5]}, "timeDeltas": [1, 1]}}})
        expected.left_out = True
    text = json.dumps(events if random.random() < 0.3 else {"traceEvents": events, "metadata": {"a": 1}})
    if text[0] == "[" and random.random() < 0.5:
        text = text[:-1] + random.choice(["", ",", "\n"])  # written as it goes
    return packed(random, text.encode()), expected


# ---- Firefox ---------------------------------------------------------------------------------------------------------

SHARED_TEXTS = "stringArray", "sources"
SHARED_TABLES = *SHARED_TEXTS, "funcTable", "frameTable", "stackTable", "resourceTable", "nativeSymbols"

def firefox_tables(random, stacks):
    strings, functions, frames, table = [], [], [], {}

    def string(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    prefixes, frame_of = [], []
    for path in stacks:
        for depth in range(1, len(path) + 1):
            if path[:depth] in table:
                continue
            functions.append(string(path[depth - 1]))
            frames.append(len(functions) - 1)
            table[path[:depth]] = len(prefixes)
            prefixes.append(table.get(path[:depth - 1]))
            frame_of.append(len(frames) - 1)
    none = [None] * len(functions)
    tables = {
        "stringArray": strings,
        "funcTable": {"length": len(functions), "name": functions, "isJS": [False] * len(functions), "resource": [-1] * len(functions),
                      "fileName": none, "source": none, "lineNumber": none, "columnNumber": none},
        "frameTable": {"length": len(frames), "address": [-1] * len(frames), "inlineDepth": [0] * len(frames), "category": [0] * len(frames),
                       "subcategory": [0] * len(frames), "func": frames, "nativeSymbol": none, "line": none, "column": none},
        "stackTable": {"length": len(prefixes), "prefix": prefixes, "frame": frame_of},
        "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
        "sources": {"length": 0, "filename": []},
    }
    if random.random() < 0.5:
        tables["nativeSymbols"] = random.choice([{}, {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []}])
    return tables, table


def firefox_rows(random, expected, thread, table, stacks, kind, short=False):
    """The samples of a thread. All of a file are of one kind: samples, weights, ms, ns or us of CPU time."""
    count, when, interval = random.choice([1, 2, 20]), 0, 2 * 10**6
    columns = {"stack": [], "time": [], "weight": [], "threadCPUDelta": []}
    taken, pending = [], 0
    for row in range(count):
        path = random.choice(stacks) if random.random() < 0.9 else None
        when += random.choice([1, 1500, 2000])  # us
        columns["stack"].append(None if path is None else table[path])
        columns["time"].append(when / 1000)
        weight = random.choice([1, 2, 7])
        columns["weight"].append(weight if kind != "ms" else weight / 4)
        delta = random.choice([0, 3, 1500000])
        columns["threadCPUDelta"].append(delta)
        taken.append(None)
        if kind in ("ns", "us"):
            pending += 0 if not row else delta * (1000 if kind == "us" else 1)
            if path is None:
                continue
            if pending or not row:
                expected.add(thread, path, 1, pending)
            pending = 0
        elif path is not None and kind == "ms":
            taken[-1] = thread, path, weight * 250000, weight * 250000
        elif path is not None:
            taken[-1] = thread, path, weight if kind == "weights" else 1, (weight if kind == "weights" else 1) * interval
        if taken[-1]:
            expected.add(*taken[-1])
    if kind in ("ns", "us"):
        expected.cpu_after(thread, pending)
    if kind not in ("weights", "ms"):
        columns["weight"] = None
    if kind not in ("ns", "us"):
        del columns["threadCPUDelta"]
    if short and kind in ("samples", "weights", "ms") and count > 3 and random.random() < 0.1:  # a column that ends early: no time, no sample
        expected.left_out = True
        columns["time"].pop()
        if last := taken[-1]:
            expected.take_back(*last)
    samples = {"length": count, "weightType": "tracing-ms" if kind == "ms" else random.choice(["samples", None])} | columns
    if random.random() < 0.3:
        times = [round(t * 1000) for t in samples.pop("time")]
        samples["timeDeltas"] = [(b - a) / 1000 for a, b in zip([0] + times, times)]
    return samples


def firefox(random):
    expected = Expected()
    kind = random.choice(["samples", "weights", "ms", "ns", "us"])
    shared = random.choice([(), SHARED_TEXTS, SHARED_TABLES])  # formats to 56, 57 to 59, from 60 on
    stacks = paths(random, random.choice([1, 3, 6]))
    threads = []
    tables, table = firefox_tables(random, stacks)
    for tid in range(1, 1 + random.choice([1, 2])):
        name = f"{random.choice(THREADS)} {tid}"
        if not shared:
            tables, table = firefox_tables(random, stacks)
        thread = {"name": name, "pid": random.choice([5, "5"]), "tid": tid, "isMainThread": False, "processName": "program", "registerTime": 0,
                  "unregisterTime": None, "processStartupTime": 0, "processShutdownTime": None,
                  "samples": firefox_rows(random, expected, name, table, stacks, kind, short=True), "markers": {"length": 0}}
        expected.threads[name]
        threads.append(thread | {key: value for key, value in tables.items() if key not in shared})
    expected.known = kind != "ms"
    meta = {"preprocessedProfileVersion": random.choice([27, 58, 66]), "interval": 2, "startTime": 1700000000000, "version": 24,
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}], "product": "tool",
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" if kind == "ns" else "µs"}}
    data = {"meta": meta, "libs": [], "threads": threads}
    if not shared and random.random() < 0.2:  # as in 2016
        del meta["preprocessedProfileVersion"]
    if shared:
        data["shared"] = {key: tables[key] for key in shared if key in tables}
    return packed(random, json.dumps(data, ensure_ascii=random.random() < 0.5).encode()), expected


# ---- Gecko's own format ----------------------------------------------------------------------------------------------

def gecko_table(random, columns, rows):
    """Columns are where the schema says; a row ends before nulls at its end."""
    order = random.sample(range(len(columns)), len(columns))
    data = [[row[c] for c in order] for row in rows]
    for row in data:
        while row and row[-1] is None and random.random() < 0.5:
            row.pop()
    return {"schema": {columns[c]: place for place, c in enumerate(order)}, "data": data}


def gecko_thread(random, expected, name, pid, tid, kind):
    stacks = paths(random, random.choice([1, 3, 6]))
    tables, table = firefox_tables(random, stacks)
    columns = firefox_rows(random, expected, name, table, stacks, kind)
    expected.threads[name]
    times, now = columns.get("time"), 0
    if times is None:
        times = []
        for delta in columns["timeDeltas"]:
            now = round(now + delta, 3)
            times.append(now)
    rows = [list(row) for row in zip(columns["stack"], times, columns.get("threadCPUDelta", [None] * len(times)))]
    if random.random() < 0.1:
        rows.insert(random.randrange(1, len(rows) + 1), [None, None, None])  # no time
        expected.left_out = True
    if kind == "samples" and random.random() < 0.1:
        rows.append([10**6, times[-1] + 1, None])
        expected.left_out = True
    shape = random.choice(["{}", "{} (in /lib/lib.so)", "{} (file:///a.js:3:7)"])
    functions = tables["funcTable"]["name"]
    locations = [shape.format(tables["stringArray"][functions[f]]) for f in tables["frameTable"]["func"]]
    stack_rows = list(zip(tables["stackTable"]["prefix"], tables["stackTable"]["frame"]))
    samples = ("stack", "time", "threadCPUDelta") if kind != "samples" else ("stack", "time")
    return {"name": name, "processName": "program", "pid": pid, "tid": tid, "registerTime": 0, "unregisterTime": None,
            "frameTable": gecko_table(random, ("location", "line", "category"), [[i, None, 0] for i in range(len(locations))]),
            "stackTable": gecko_table(random, ("prefix", "frame"), stack_rows), "stringTable": locations,
            "samples": gecko_table(random, samples, [row[:len(samples)] for row in rows])}


def gecko_process(random, expected, pid, kind):
    threads = [gecko_thread(random, expected, f"{random.choice(THREADS)} {pid}.{tid}", pid, tid, kind) for tid in range(1, 1 + random.choice([1, 2]))]
    if random.random() < 0.05:
        threads.append({"name": "no tables"})
        expected.left_out = True
    meta = {"version": random.choice([8, 24, 31]), "interval": 2, "startTime": 1700000000000 + pid, "product": "tool",
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" if kind == "ns" else "µs"}}
    return {"meta": meta, "libs": [], "threads": threads, "processes": []}


def gecko(random):
    expected, kind = Expected(), random.choice(["samples", "ns", "us"])
    data = gecko_process(random, expected, 5, kind)
    for pid in range(6, 6 + random.choice([0, 0, 2])):
        data["processes"].append(gecko_process(random, expected, pid, kind))
    return packed(random, json.dumps(data, ensure_ascii=random.random() < 0.5).encode()), expected


# ---- speedscope ------------------------------------------------------------------------------------------------------

TIMES = {"nanoseconds": 0, "microseconds": 3, "milliseconds": 6, "seconds": 9}


def scope_number(value, scale):
    """A whole number in units of 10^-scale, as it is written."""
    return value // 10**scale if value % 10**scale == 0 else value / 10**scale


def scope_sampled(random, expected, name, stacks, unit, kind):
    rows = [(random.choice(stacks), random.choice([1, 7, 1000, 10**6])) for _ in range(random.choice([1, 3, 20]))]
    if kind == "counts":
        rows = [(path, weight if not number and len(rows) > 3 else min(weight, 99)) for number, (path, weight) in enumerate(rows)]
    if kind == "weights":  # that no period divides
        rows = [(path, 1824886 + number) for number, (path, _) in enumerate(rows)]
    scale = TIMES.get(unit, 0)
    if kind == "fractions":
        scale = 3
        rows[0] = (rows[0][0], 1501)
    samples, weights = [], []
    for path, weight in rows:
        odd = random.random()
        samples.append([10**6] if odd < 0.03 else [] if odd < 0.06 else [NAMES.index(frame) for frame in path])
        weights.append(-1 if 0.06 < odd < 0.09 and kind not in ("fractions", "weights") else scope_number(weight, scale))
        if odd < 0.03 or weights[-1] == -1:
            expected.left_out = True
        elif odd >= 0.06:
            expected.add(name, path, weight * 10**6 if kind == "fractions" else weight, 0, samples=weight if kind == "counts" else 1)
    if kind != "weights" and random.random() < 0.1:
        weights.append(3)  # of no sample
        expected.left_out = True
    return {"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": sum(w for w in weights), "samples": samples, "weights": weights}


def scope_evented(random, expected, name, unit):
    scale = TIMES.get(unit, 0)
    now = start = random.choice([0, 0, 10**9, 1700000000 * 10**6]) if scale != 9 else 0
    events, stack, rest = [], [], random.choice([2, 10, 40])
    while rest or stack:
        after = now + random.choice([0, 1, 50, 10**6])
        if stack and after > now:
            expected.add(name, tuple(stack), after - now, 0)
        now = after
        if random.random() < 0.02:
            events.append({"type": "C", "frame": 10**6, "at": scope_number(now, scale)})
            expected.left_out = True
        closes = stack and (random.random() < 0.5 or not rest)
        frame = stack[-1] if closes else random.choice(NAMES)
        events.append({"type": "C" if closes else "O", "frame": NAMES.index(frame), "at": scope_number(now, scale)})
        stack = stack[:-1] if closes else stack + [frame]
        rest -= bool(rest)
        if not rest and random.random() < 0.2:
            break  # open until the end
    end = now + random.choice([0, 77])
    if stack and end > now:
        expected.add(name, tuple(stack), end - now, 0)
    return {"type": "evented", "name": name, "unit": unit, "startValue": scope_number(start, scale), "endValue": scope_number(end, scale), "events": events}


def speedscope(random):
    kind = random.choice(["counts", "weights", "fractions", "time", "bytes", "events", "mixed"])
    expected, profiles = Expected(known=kind in ("counts", "time", "bytes")), []
    stacks = paths(random, random.choice([1, 3, 8]))
    for number in range(random.choice([1, 1, 3])):
        name = f"{random.choice(THREADS)} {number}"
        unit = random.choice(list(TIMES)) if kind in ("time", "mixed", "events") else "bytes" if kind == "bytes" else "none"
        expected.threads[name]
        evented = kind == "events" or (kind == "mixed" and (not number or random.random() < 0.5))
        profiles.append(scope_evented(random, expected, name, unit) if evented else scope_sampled(random, expected, name, stacks, unit, kind))
    data = {"$schema": "https://www.speedscope.app/file-format-schema.json", "activeProfileIndex": random.choice([None, 0]), "profiles": profiles,
            "shared": {"frames": [{"name": name} | random.choice([{}, {"file": "/a.py", "line": 3, "col": None}]) for name in NAMES]}}
    if random.random() < 0.1:
        other = {"type": "sampled", "name": "other", "unit": "bytes" if kind != "bytes" else "none", "samples": [[0]], "weights": [1]}
        data |= {"profiles": [other] + profiles, "activeProfileIndex": 1}
        expected.left_out = True
    if random.random() < 0.3:
        del data["$schema"]
    keys = random.sample(list(data), len(data))
    return packed(random, json.dumps({key: data[key] for key in keys}, ensure_ascii=random.random() < 0.5).encode()), expected


# ---- the text of perf script -----------------------------------------------------------------------------------------

FILES = ["/usr/bin/prog", "/usr/lib/libc.so.6", "/opt/with a blank (1)/lib.so", "[kernel.kallsyms]"]
# Of two events of a file the one further on is read.
EVENTS = [["page-faults", "context-switches:u", "sched:sched_switch"], ["instructions:u", "cache-misses"], ["cycles:ppp", "cycles"], ["cpu-clock", "task-clock:u", "cpu-clock:ppp"]]
HEADER = """# ========
# captured on    : Mon Nov 30 06:47:54 2026
# hostname : host
# os release : 6.1.0
# cmdline : /usr/bin/perf record -g -- prog
# ========
#
"""


def perf_frames(random, path, indent):
    """Innermost first; what is inlined has the address of its caller, which is in the next line."""
    lines, address = [], None
    for depth, name in enumerate(reversed(path), 1):
        file = random.choice(FILES)
        address = address or (0xffffffff81000000 if file.startswith("[") else 0x401000) + 64 * NAMES.index(name)
        if depth < len(path) and random.random() < 0.1:
            lines.append(f"{indent}{address:16x} {name} (inlined)")
            continue
        lines.append(f"{indent}{address:16x} {name}{random.choice(['', '+0x1f'])} ({file})")
        address = None
    return lines


def perf_head(layout, thread, tid, cpu, when, period, event):
    """The first line of a sample."""
    number = f"7/{tid}" if "pid" in layout else f"{tid:>5}"
    line = f"{thread:>16} {number} " + (f"[{cpu:03}] " if "cpu" in layout else "")
    if when is not None:
        line += f"{when // 10**9:>5}.{when % 10**9 // (1 if 'ns' in layout else 1000):0{9 if 'ns' in layout else 6}}: "
    return line + (f"{period:>10} " if period is not None else "") + f"{event}: "


def add_weights(expected, rows, is_clock):
    """Samples of a clock weigh their CPU time if that differs."""
    weighs = not is_clock or len({period for _, _, period in rows}) > 1
    for thread, path, period in rows:
        expected.add(thread, path, period or 1 if weighs else 1, period if is_clock else 0, samples=1)
    return weighs


def perf_script(random):
    expected, rank = Expected(), random.randrange(len(EVENTS))
    event, clock = random.choice(EVENTS[rank]), rank == len(EVENTS) - 1
    layout = {field for field in ("pid", "cpu", "ns", "time", "time", "period", "period") if random.random() < 0.7}
    stacks, indent = paths(random, random.choice([1, 3, 8])), random.choice(["\t", "    "])
    threads = random.sample(range(len(THREADS)), random.choice([1, 2]))
    count, when, blocks, rows = random.choice([2, 5, 30]), 394 * 10**9, [], []
    periods = random.choice([[250000], [250000, 1001001]]) if clock else [1, 99, 10**7]
    for number in range(count):
        when += random.choice([0, 1000, 4321000])
        thread, path, odd = random.choice(threads), random.choice(stacks), random.random() if number else 1
        period = random.choice(periods)
        text = [perf_head(layout, THREADS[thread], 10 + thread, 3, when if "time" in layout else None, period if "period" in layout else None, event)]
        text += perf_frames(random, path, indent)
        if odd < 0.05 and "period" in layout:  # without what the others have
            text[0] = perf_head(layout, THREADS[thread], 10 + thread, 3, when if "time" in layout else None, 0, event)
            expected.left_out = True
        elif odd < 0.1 and rank:  # another event
            text[0] = perf_head(layout, THREADS[thread], 10 + thread, 3, when if "time" in layout else None, 5 if "period" in layout else None,
                                random.choice(EVENTS[random.randrange(rank)]))
            expected.left_out = True
        elif odd < 0.15 and clock:  # an idle CPU
            text[0] = perf_head(layout, "swapper", 0, 3, when if "time" in layout else None, period if "period" in layout else None, event)
            expected.left_out = True
        else:
            rows.append((THREADS[thread], path, period if "period" in layout else 0))
        blocks.append("\n".join(text) + "\n")
        if random.random() < 0.05 and "time" in layout:
            blocks.append(f"{THREADS[thread]:>16} {10 + thread:>5} {when // 10**9}.{when % 10**9:09}: PERF_RECORD_COMM: {THREADS[thread]}:7/{10 + thread}\n")
    if "time" in layout and len(blocks) > 1:  # their order is that of their times, of which few fall in a file
        for _ in range(random.randrange(4)):
            blocks.insert(random.randrange(len(blocks)), blocks.pop())
    expected.left_out |= "period" not in layout and not clock and not event.startswith("sched:")  # counted as one event
    add_weights(expected, rows, clock)
    text = (HEADER if random.random() < 0.3 else "") + "\n".join(blocks) + "\n"
    text = text.replace("\n", random.choice(["\n", "\n", "\r\n"]))
    return packed(random, text.encode(random.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))), expected


# ---- perf.data -------------------------------------------------------------------------------------------------------

CODE = ["/nowhere/prog", "/nowhere/lib.so", "/nowhere/with a blank.so"]  # no files of this machine: addresses have no names
KERNEL_CODE = 0xffffffff81000000
# (name, type, configuration), ranked as EVENTS
PERF_EVENTS = [[("page-faults", 1, 2), ("context-switches", 1, 3)], [("instructions", 0, 1), ("cache-misses", 0, 3)], [("cycles", 0, 0)],
               [("cpu-clock", 1, 0), ("task-clock", 1, 1)]]
IP, TID, TIME, READ, CALLCHAIN, CPU, PERIOD, IDENTIFIER = 1, 2, 4, 16, 32, 128, 256, 65536
MMAP, LOST, COMM, EXIT, THROTTLE, FORK, SAMPLE, MMAP2, HEADER_ATTR, FINISHED_ROUND = 1, 2, 3, 4, 5, 7, 9, 10, 64, 68
OF_KERNEL, OF_USER, EXECVE = 1, 2, 1 << 13
IN_KERNEL, IN_USER = -128, -512  # contexts of a chain
SAMPLE_ID_ALL = 1 << 18


def perf_record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def perf_string(text):
    return text.encode() + bytes(8 - len(text.encode()) % 8)


class Life:
    """Of a process, from its fork or execve to its end or the next execve: names and weights of threads, mappings."""
    def __init__(self, pid, names, mappings):
        self.pid, self.names, self.mappings, self.weights = pid, dict(names), list(mappings), collections.defaultdict(list)

    def map(self, start, size, offset, file):
        """What it covers is gone."""
        kept = []
        for s, n, o, f in self.mappings:
            if s < start:
                kept.append((s, min(n, start - s), o, f))
            if s + n > start + size:
                kept.append((max(s, start + size), s + n - max(s, start + size), o + max(s, start + size) - s, f))
        self.mappings = [m for m in kept if m[1] > 0] + [(start, size, offset, file)]

    def frame(self, random, is_caller):
        """An address and how it is shown; of a caller that of the call."""
        start, size, offset, file = random.choice(self.mappings)
        address = start + random.randrange(1, size // 16) * 16
        return address, f"{file.rsplit('/', 1)[1]}+{address - start + offset - is_caller:x}"


class PerfData:
    """A machine that is recorded: records with their times, and what is read of them."""
    def __init__(self, random):
        self.random, self.expected, self.records, self.rows, self.now, self.ended = random, Expected(), [], [], 10**9, []
        rank = random.randrange(len(PERF_EVENTS))
        self.is_clock = rank == len(PERF_EVENTS) - 1
        others = [event for events in PERF_EVENTS[:rank] for event in events]
        self.events = [random.choice(PERF_EVENTS[rank])] + random.sample(others, min(len(others), random.choice([0, 0, 1, 2])))
        self.common = TID | (0 if random.random() < 0.1 else TIME) | random.choice([0, CPU]) | random.choice([PERIOD, PERIOD, 0]) | IP
        self.types = [self.common | random.choice([CALLCHAIN, CALLCHAIN, 0]) for _ in self.events]
        self.ids = len(self.events) > 1 or random.random() < 0.5
        if self.ids:
            self.types = [kind | IDENTIFIER for kind in self.types]
        self.counters = collections.defaultdict(lambda: [0, 0])  # now, and at the last sample that is whole
        self.counts = self.ids and random.random() < 0.2  # with a sample comes what its counter has counted
        self.format, self.inherits = random.choice([4, 7, 12, 15]), random.choice([0, 2])  # with its id, times, of a group
        # of a group that another event leads: its samples carry the counter of the profile's
        self.leader = 1 if self.counts and self.format & 12 == 12 and len(self.events) > 1 and random.random() < 0.5 else 0
        if self.counts:
            self.types = [kind | READ for kind in self.types]
        self.timed = self.common & TIME
        self.periods = random.choice([[1000], [1, 99, 250000]])
        self.lives = {pid: Life(pid, {pid: random.choice(THREADS)}, []) for pid in random.sample([7, 50, 4000], random.choice([1, 2]))}
        self.next = 5000  # number of a task
        for life in self.lives.values():
            self.comm(life, life.pid, 0, 0)
            for _ in range(random.choice([1, 2, 3])):
                self.mmap(life, 0)

    def time(self):
        self.now += self.random.choice([1, 1000, 10**7])
        return self.now

    def add(self, kind, misc, body, time, pid, tid):
        """What ends every record but samples: task, time, CPU, id."""
        end = struct.pack("<II", pid, tid) + (struct.pack("<Q", time) if self.timed else b"")
        end += (struct.pack("<II", 2, 0) if self.common & CPU else b"") + (struct.pack("<Q", self.id(0)) if self.ids else b"")
        self.records.append((time, perf_record(kind, misc, body + end)))

    def id(self, event):
        return 100 + event

    def comm(self, life, tid, misc, time):
        self.add(COMM, misc, struct.pack("<II", life.pid, tid) + perf_string(life.names[tid]), time, life.pid, tid)

    def mmap(self, life, time):
        start, size = 0x400000 + self.random.randrange(64) * 0x4000, self.random.choice([1, 4, 9]) * 0x1000
        offset, file = self.random.randrange(16) * 0x1000, self.random.choice(CODE)
        body, more = struct.pack("<IIQQQ", life.pid, life.pid, start, size, offset), b""
        is_new = self.random.random() < 0.7
        if is_new:
            more = struct.pack("<IIQQII", 8, 1, 2**40 + CODE.index(file), 0, 5, 2)  # device, inode, generation, protection, flags
        life.map(start, size, offset, file)
        self.add(MMAP2 if is_new else MMAP, OF_USER, body + more + perf_string(file), time, life.pid, life.pid)

    def task(self, kind, pid, tid, parent, of):
        time = self.time()
        self.add(kind, 0, struct.pack("<IIIIQ", pid, parent, tid, of, time), time, pid, tid)

    def fork(self, life):
        self.next += 1
        self.task(FORK, self.next, self.next, life.pid, life.pid)
        self.lives[self.next] = Life(self.next, {self.next: life.names[life.pid]}, life.mappings)

    def thread(self, life):
        self.next += 1
        self.task(FORK, life.pid, self.next, life.pid, life.pid)
        life.names[self.next] = life.names[life.pid]

    def exec(self, life):
        self.ended.append(life)
        self.lives[life.pid] = new = Life(life.pid, {life.pid: self.random.choice(THREADS)}, [])
        self.comm(new, life.pid, EXECVE, self.time())
        self.mmap(new, self.time())

    def rename(self, life):
        tid = self.random.choice(list(life.names))
        life.names[tid] = self.random.choice(THREADS)
        self.comm(life, tid, 0, self.time())

    def exit(self, life):
        if len(self.lives) > 1:
            self.task(EXIT, life.pid, life.pid, life.pid, life.pid)
            self.ended.append(self.lives.pop(life.pid))

    def lost(self, life):
        self.add(LOST, 0, struct.pack("<QQ", self.id(0), 3), self.time(), life.pid, life.pid)
        self.expected.left_out = True

    def throttle(self, life):
        self.add(THROTTLE, 0, struct.pack("<QQQ", self.now, self.id(0), 0), self.time(), life.pid, life.pid)
        self.expected.left_out = True

    def stack(self, life, has_chain):
        """The chain, innermost first, and how it is shown."""
        kernel = [KERNEL_CODE + 64 * self.random.randrange(1, 99) for _ in range(self.random.choice([0, 0, 1, 3]))]
        shown = [f"[kernel]+{address - (number > 0):x}" for number, address in enumerate(kernel)]
        chain = [IN_KERNEL] + kernel if kernel else []
        users = self.random.choice([1, 2, 9]) if has_chain or not kernel else 0
        if users:
            chain.append(IN_USER)
        for number in range(users):
            address, text = life.frame(self.random, number > 0)
            chain.append(address)
            shown.append(text)
        return chain, shown if has_chain else shown[:1], OF_KERNEL if kernel else OF_USER

    def since_last(self, event, tid):
        counter = self.counters[event, tid if self.inherits else 0]
        before, counter[1] = counter[1], counter[0]
        return counter[0] - before

    def counted(self, event, tid, count):
        """Of a group another counter is beside it."""
        counter = self.counters[event, tid if self.inherits else 0]
        counter[0] += count
        times, own = b"t" * 8 * bin(self.format & 3).count("1"), struct.pack("<Q", counter[0])
        if self.format & 8 and self.leader and not event:
            return struct.pack("<Q", 2) + times + struct.pack("<QQ", 5, self.id(self.leader)) + own + struct.pack("<Q", self.id(event))
        if self.format & 8:
            return struct.pack("<Q", 2) + times + own + struct.pack("<QQQ", self.id(event), 5, self.id(9))
        return own + times + struct.pack("<Q", self.id(event))

    def sample(self, life, event=0, is_idle=False):
        of = event or self.leader
        kind, period, time = self.types[of], self.random.choice(self.periods), self.time()
        tid = 0 if is_idle else self.random.choice(list(life.names))
        chain, shown, misc = self.stack(life, kind & CALLCHAIN)
        body = struct.pack("<Q", self.id(of)) if self.ids else b""
        self.expected.left_out |= of > 0
        body += struct.pack("<QII", chain[1] & 2**64 - 1, 0 if is_idle else life.pid, tid) + (struct.pack("<Q", time) if self.timed else b"")
        body += (struct.pack("<II", 1, 0) if kind & CPU else b"") + (struct.pack("<Q", period) if kind & PERIOD else b"")
        if self.counts:
            body += self.counted(event, tid, self.random.choice([1, 7, 10**6]))
        if kind & CALLCHAIN:
            body += struct.pack(f"<Q{len(chain)}q", len(chain), *(word - 2**64 if word >= 2**63 else word for word in chain))
        if self.random.random() < 0.02 and not event:  # of a chain that does not end there
            body = body[:-8] if kind & CALLCHAIN else body[:8]
            self.expected.left_out = True
        elif event or is_idle:
            self.expected.left_out = True
            self.since_last(event, tid)  # which is not the next one's
        else:
            weight = self.since_last(event, tid) if self.counts else period if kind & PERIOD else 1000
            self.rows.append((None, shown[::-1], weight))
            life.weights[tid].append(weight)
        self.records.append((time, perf_record(SAMPLE, misc, body)))

    def run(self, count):
        changes = [self.fork, self.thread, self.exec, self.rename, self.exit, self.lost, self.throttle, lambda life: self.mmap(life, self.time())]
        self.sample(self.random.choice(list(self.lives.values())))
        for _ in range(count):
            life, odd = self.random.choice(list(self.lives.values())), self.random.random()
            if odd < 0.2 and self.timed:
                self.random.choice(changes)(life)
            elif odd < 0.3 and len(self.events) > 1:
                self.sample(life, self.random.randrange(1, len(self.events)))
            elif odd < 0.35 and self.is_clock:
                self.sample(life, is_idle=True)
            else:
                self.sample(life)

    def threads(self):
        """What samples weigh. A thread of a life is called by its last name."""
        weighs = add_weights(self.expected, self.rows, self.is_clock)
        self.expected.threads.pop(None, None)
        for life in self.ended + list(self.lives.values()):
            for tid, weights in life.weights.items():
                sums = self.expected.threads[life.names[tid]]
                sums[0] += sum(weights) if weighs else len(weights)
                sums[1] += sum(weights) if self.is_clock else 0

    def attribute(self, event, size):
        _, kind, config = self.events[event]
        return struct.pack("<IIQQQQQIIQ", kind, size, config, 1000, self.types[event], self.format, SAMPLE_ID_ALL | self.inherits, 0, 0, 0) + bytes(size - 64)

    def write(self):
        """A stream, or a file with an index; that of a recording that was killed has no size, and may be cut."""
        state, records = ([record for time, record in self.records if is_later == bool(time)] for is_later in (False, True))
        if self.timed and not self.counts and self.random.random() < 0.5:  # samples of a counter are in order
            self.random.shuffle(records)
        records = state + records  # what was there before has no time
        for _ in range(self.random.choice([0, 2])):
            records.insert(self.random.randrange(len(records) + 1), perf_record(FINISHED_ROUND, 0, b""))
        if self.random.random() < 0.1:
            records.append(perf_record(SAMPLE, OF_USER, bytes(64))[:20])
            self.expected.left_out = True
        data, numbers = b"".join(records), range(len(self.events))
        ids = [struct.pack("<Q", self.id(event)) if self.ids else b"" for event in numbers]
        if self.random.random() < 0.4:
            heads = b"".join(perf_record(HEADER_ATTR, 0, self.attribute(event, self.random.choice([64, 112, 136])) + ids[event]) for event in numbers)
            return struct.pack("<8sQ", b"PERFILE2", 16) + heads + data
        size, index, start = self.random.choice([64, 112]), 104, 104 + len(b"".join(ids))
        attributes = b"".join(self.attribute(event, size) + struct.pack("<QQ", index + 8 * event, len(ids[event])) for event in numbers)
        data_size = self.random.choice([len(data), len(data), 0])
        head = struct.pack("<8sQQQQQQQQ32x", b"PERFILE2", index, size + 16, start, len(attributes), start + len(attributes), data_size, 0, 0)
        return head + b"".join(ids) + attributes + data


def perf_data(random):
    machine = PerfData(random)
    machine.run(random.choice([2, 10, 60]))
    machine.threads()
    return machine.write(), machine.expected


FORMATS = {"folded": folded, "pprof": pprof, "cpuprofile": cpuprofile, "trace": trace, "firefox": firefox, "gecko": gecko, "speedscope": speedscope, "perf script": perf_script,
           "perf.data": perf_data}
