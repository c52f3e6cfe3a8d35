# SPDX-License-Identifier: BSD-2-Clause
"""What reading files of perf costs: a recording of this machine, repeated until it is large."""
import re
import struct
import subprocess
import time

import workloads
from libbench import PERF, SYSPROF, Broken, Perf, Program, budget, pick, read, scratch, table

SAMPLE, FINISHED_ROUND = 9, 68
IP, TID, TIME, IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 16


def records(data):
    """(place, type, size) of each."""
    at = 0
    while at + 8 <= len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if size < 8:
            raise Broken("perf has written a record without a size")
        yield at, kind, size
        at += size


def repeat_data(seed, path, size):
    """All records of a file, then its samples again and again, each time later. Returns how many samples there are."""
    with open(seed, "rb") as file:
        whole = file.read()
    header = list(struct.unpack_from("<8sQQQQQQQQ", whole))
    attrs, begin, length = header[3], header[5], header[6]
    fields, = struct.unpack_from("<Q", whole, attrs + 24)
    if fields & (IP | TID | TIME) != IP | TID | TIME:
        raise Broken("perf's samples have no times")
    before = 24 + 8 * bool(fields & IDENTIFIER)
    data = whole[begin:begin + length]
    samples, places = bytearray(), []
    for at, kind, record in records(data):
        if kind == SAMPLE:
            places.append(len(samples) + before)
            samples += data[at:at + record]
    times = [struct.unpack_from("<Q", samples, at)[0] for at in places]
    samples += struct.pack("<IHH", FINISHED_ROUND, 0, 8)
    span, rounds = max(times) - min(times) + 1, max(0, size - length) // len(samples)
    with open(path, "wb") as out:
        header[6] = length + rounds * len(samples)
        out.write(struct.pack("<8sQQQQQQQQ", *header) + whole[72:begin] + data)
        for k in range(1, rounds + 1):
            for at, time_then in zip(places, times):
                struct.pack_into("<Q", samples, at, time_then + k * span)
            out.write(samples)
        rest = bytearray(whole[begin + length:])
        flags = sum(bin(byte).count("1") for byte in whole[72:104])
        for at in range(0, 16 * flags, 16): # sections lie behind the records
            struct.pack_into("<Q", rest, at, struct.unpack_from("<Q", rest, at)[0] + rounds * len(samples))
        out.write(rest)
    return len(times) * (rounds + 1)


def repeat_text(seed, path, size):
    """What perf script prints, again and again, each time later. Returns how many samples there are."""
    text = subprocess.run([PERF, "script", "-i", seed], capture_output=True, check=False).stdout
    clock = re.compile(rb"^(\S.*? )(\d+)(\.\d{6}: )", re.M)
    times = [int(match[2]) for match in clock.finditer(text)]
    if not times:
        raise Broken("perf script has printed no samples")
    span, samples = max(times) - min(times) + 1, 0
    with open(path, "wb") as out:
        while out.tell() < size:
            late = out.tell() // len(text) * span
            part = clock.sub(lambda match, late=late: match[1] + b"%d" % (int(match[2]) + late) + match[3], text)
            part = part[:part.rindex(b"\n\n", 0, max(size - out.tell(), 1 << 16)) + 2]
            out.write(part)
            samples += part.count(b"\n\n")
            if len(part) < len(text):
                break
    return samples


def measure(path):
    """(CPU s, wall s, peak MB) of a report."""
    begin = time.monotonic()
    with Program(SYSPROF, "report", path, stdout=subprocess.DEVNULL) as program:
        program.wait(600)
        if program.ended_with:
            raise program.broken()
        usage = program.usage
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 1024


def files():
    if not PERF:
        raise Broken("perf is not here")
    part, rows, notes = pick(1, 4), [], []
    with workloads.Busy("clang", "chain", "python") as busy:
        perf, names = Perf("-a", "-F", 4999), busy.names()
        time.sleep(pick(10, 3))
        perf.stop()
    with perf:
        for name, repeat, size, seconds, memory in (("perf.data", repeat_data, 10**9, 15, 500),
                                                    ("perf script", repeat_text, 10**8, 3, None)):
            path, size = scratch("repeated"), size // part
            samples = repeat(perf.data, path, size)
            cpu, wall, peak = measure(path)
            what = f"{name}, {size // 10**6:,} MB"
            rows.append([what, f"{samples:,}", f"{cpu:.2f}", f"{wall:.2f}", f"{peak:.0f}"])
            if part == 1:
                notes.append(budget(f"report of {what}", wall, seconds, "s"))
            if part == 1 and memory:
                notes.append(budget(f"report of {what}", peak, memory, "MB", 0))
    model = re.search(r"^model name\s*: (.*)", read("/proc/cpuinfo"), re.M)
    table(f"Reading files of perf, of the whole system beside {names}",
          ["perf record -a -B -g -F 4999 -e cpu-clock, its samples repeated with later times; perf script",
           "sysprof report FILE"],
          ["", "samples", "CPU s", "wall s", "peak MB"], rows,
          [f"CPU: {model[1] if model else 'unknown'}", *notes])
