# SPDX-License-Identifier: BSD-2-Clause
"""Windows of an agent (--sink dir:), made up."""
import gzip
import os
import time

from libe2e import write

WINDOW = 15
SHARES = {("main", "serve", "parse"): 20, ("main", "serve", "render"): 50, ("main", "serve", "send"): 25, ("main", "idle"): 5}


def varint(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def number(key, value):
    return varint(key << 3) + varint(value)


def field(key, data):
    return varint(key << 3 | 2) + varint(len(data)) + data


def window_bytes(start, services, length=WINDOW):
    """A pprof file as of --sink dir:, of {service: {stack: ticks}}; a tick is 10 ms of CPU time."""
    strings, names = [""], []

    def text(word):
        if word not in strings:
            strings.append(word)
        return strings.index(word)

    def location(name):
        if name not in names:
            names.append(name)
        return names.index(name) + 1

    message = b"".join(field(1, number(1, text(a)) + number(2, text(b)))
                       for a, b in (("samples", "count"), ("cpu", "nanoseconds")))
    for service, stacks in services.items():
        label = field(3, number(1, text("service_name")) + number(2, text(service)))
        for stack, ticks in stacks.items():
            if ticks:
                message += field(2, field(1, b"".join(varint(location(f)) for f in reversed(stack)))
                                 + field(2, varint(ticks) + varint(ticks * 10_000_000)) + label)
    for i, name in enumerate(names):
        message += field(4, number(1, i + 1) + field(4, number(1, i + 1)))
        message += field(5, number(1, i + 1) + number(2, text(name)))
    message += number(9, int(start * 1e9)) + number(10, int(length * 1e9))
    return gzip.compress(message + b"".join(field(6, word.encode()) for word in strings))


def name_of(start):
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(start)) + f".{int(start % 1 * 1e9):09d}Z.pb.gz"


def make(place, start, end, rng, factor=1.0, services=("shop", "other")):
    """Windows from start to end, in which `parse` of the shop takes `factor` times as long."""
    os.makedirs(place, exist_ok=True)
    while start < end:
        counts = {}
        for service in services:
            load = rng.gauss(1, 0.05)
            counts[service] = {s: max(round(rng.gauss(n * load, n ** 0.5)), 0) * (service == "shop" and s[-1] == "parse" and factor or 1)
                               for s, n in ((s, 10 * n) for s, n in SHARES.items())}
            counts[service] = {s: round(n) for s, n in counts[service].items()}
        write(os.path.join(place, name_of(start)), window_bytes(start, counts))
        start += WINDOW


DEPTH, FUNCTIONS = 24, 600


def deep_stacks(rng, count):
    """Distinct call paths with common beginnings, as of a server."""
    found = [("main", "serve")]
    while len(found) < count + 1:
        begin = rng.choice(found[-40:])[:DEPTH]
        found.append(begin + tuple(f"function_{rng.randrange(FUNCTIONS)}" for _ in range(rng.randrange(1, 6))))
    return found[1:]


def make_day(place, until, rng, windows=5760, stacks=1500, rows=300, others=4):
    """A day of windows of a busy service, `rows` of its call paths in each, among `others`. Ticks of the service."""
    os.makedirs(place, exist_ok=True)
    paths = deep_stacks(rng, stacks)
    patterns, ticks = [], []
    for _ in range(16):  # contents take turns: gzip in Python takes long
        services = {"shop": {path: rng.randrange(1, 12) for path in rng.sample(paths, rows)}}
        for i in range(others):
            services[f"other-{i}"] = {path: rng.randrange(1, 5) for path in rng.sample(paths, rows // 3)}
        patterns.append(services)
        ticks.append(sum(services["shop"].values()))
    files = [window_bytes(until - WINDOW, services) for services in patterns]
    for i in range(windows):
        write(os.path.join(place, name_of(until - (windows - i) * WINDOW)), files[i % 16])
    return sum(ticks[i % 16] for i in range(windows))
