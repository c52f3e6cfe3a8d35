# SPDX-License-Identifier: BSD-2-Clause
"""How stacks ended: in a recording of sysprof, sample by sample, and in the output of perf script.

A recording is read as docs/FORMATS.md and include/sysprof describe it, because the age of the
process is needed for each sample. The names of the ends come from `report --json`; its sums have to
agree with what is counted here.
"""
import collections
import json
import os
import re
import struct
import subprocess

from libbench import SYSPROF, Broken, read

SAMPLE_H = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/sysprof/sample.h")
SAMPLE, COMM, FORK, PROCESS = 1, 9, 10, 16  # enum event_type
COMM_EXEC, FROM_COPY = 0x0002, 0x0400
FIRST_NS = 50_000_000

# A stack of perf's is whole if its outermost frame is one of these, or the one before it where that
# has no name, as the _start of a stripped program. Functions of the C library between _start and main
# count too: perf often ends there.
ROOTS = re.compile(r"_start|_start_c|_dl_start|_dl_start_user|start_thread|(__)?clone3?|"
                   r"__libc_start_(main|call_main|main_impl)|ret_from_fork(_asm)?|"
                   r"runtime\.(goexit|mstart|rt0_go)|_rt0_amd64(_linux)?")
UNNAMED = re.compile(r"\[.*\]|0x[0-9a-f]+")


def complete_ends():
    """Names of the ends that STACK_ENDS calls complete."""
    rows = re.search(r"#define STACK_ENDS\(X\)(.*?)\n\n", read(SAMPLE_H), re.S)[1]
    return set(re.findall(r'X\(\w+,\s*"([\w-]+)",\s*1,', rows))


class Ends:
    """Samples by how their stacks ended: all, and those after the first 50 ms of their process."""

    def __init__(self):
        self.complete = complete_ends()
        self.all, self.late = collections.Counter(), collections.Counter()

    def _whole(self, counts):
        total = sum(counts.values())
        return 100 * sum(counts[name] for name in self.complete) / total if total else float("nan")

    def samples(self):
        return sum(self.all.values())

    def whole(self):
        return self._whole(self.all)

    def whole_late(self):
        return self._whole(self.late)

    def reasons(self, most=3):
        """The most frequent ends of the other stacks, with their share of all samples."""
        total = self.samples()
        rest = [(name, n) for name, n in self.all.most_common() if n and name not in self.complete]
        return ", ".join(f"{name} {100 * n / total:.2f}" for name, n in rest[:most])


def _events(path):
    """(type, flags, time, bytes behind the header) of every event."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:8] != b"SYSPROF\n":
        raise Broken(f"{path} is not a recording")
    at = struct.unpack_from("<I", data, 16)[0]
    while at < len(data):
        magic, _, _, payload = struct.unpack_from("<8sIIQ", data, at)
        if magic != b"\x89CHUNK\r\n":
            raise Broken(f"{path}: no chunk at {at}")
        at, end = at + 48, at + 48 + payload
        while at < end:
            size, kind, flags, when = struct.unpack_from("<IHHQ", data, at)
            yield kind, flags, when, data[at + 16:at + size]
            at += size
        at = end + 8


def _summary(path):
    done = subprocess.run([SYSPROF, "report", "--json", path], capture_output=True, check=True)
    return json.loads(done.stdout)["summary"]


def of_recording(path):
    """The Ends of a recording. A process begins with its fork, and anew with each execve."""
    reported = _summary(path)
    names, ends, begun = list(reported["stack_ends"]), Ends(), {}
    for kind, flags, when, body in _events(path):
        if kind == FORK:
            pid, parent = struct.unpack_from("<II", body)
            if pid != parent:
                begun[pid] = when
        elif kind == COMM and flags & COMM_EXEC:
            begun[struct.unpack_from("<I", body)[0]] = when
        elif kind == PROCESS:
            begun[struct.unpack_from("<I", body)[0]] = struct.unpack_from("<Q", body, 8)[0]
        elif kind == SAMPLE:
            tgid, end = struct.unpack_from("<I", body, 16)[0], names[body[32]]
            ends.all[end] += 1
            if when - begun.get(tgid, when) >= FIRST_NS:
                ends.late[end] += 1
    if {name: ends.all[name] for name in names} != reported["stack_ends"]:
        raise Broken(f"{path}: report --json has {reported['stack_ends']}, the events {dict(ends.all)}")
    if abs(ends.whole() - 100 * reported["complete_share"]) > 0.001:
        raise Broken(f"{path}: {100 * reported['complete_share']} % complete by report --json, "
                     f"{ends.whole()} % by its events")
    return ends


def first_by_table(path):
    """Of the first program that called execve: ms until a sample whose stack the kernel side walked by table to its root, samples
    before it, and samples without a whole stack. None: there is no such sample."""
    complete, names = complete_ends(), list(_summary(path)["stack_ends"])
    begun, program, first, before, cut = None, None, None, 0, 0
    for kind, flags, when, body in _events(path):
        if kind == COMM and flags & COMM_EXEC and begun is None:
            program, begun = struct.unpack_from("<I", body)[0], when
        elif kind == SAMPLE and struct.unpack_from("<I", body, 16)[0] == program:
            tag, end = struct.unpack_from("<I", body, 36)[0], names[body[32]]
            if tag and end == "root" and not flags & FROM_COPY and first is None:
                first = (when - begun) / 1e6
            before += first is None
            cut += end not in complete
    return None if first is None else (first, before, cut)


def named_share(path):
    """Share of the user frames of folded stacks that have a function's name."""
    frames = named = 0
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, count = line.rsplit(" ", 1)
            user = [x for x in stack.split(";")[1:] if not x.endswith("_[k]")]
            frames += len(user) * int(count)
            named += int(count) * sum(not UNNAMED.fullmatch(x) for x in user)
    return 100 * named / frames if frames else float("nan")


def of_perf_script(lines):
    """(samples, whole ones) of `perf script -F comm,pid,tid,ip,sym,dso`.

    A sample is a line, then its frames, innermost first ("address symbol (file)"), then an empty line.
    """
    samples = whole = 0
    symbols = None
    for line in lines:
        line = line.strip()
        if not line:
            whole += _is_whole(symbols or [])
            symbols = None
        elif symbols is None:
            symbols, samples = [], samples + 1
        else:
            symbols.append(_symbol(line))
    return samples, whole + _is_whole(symbols or [])


def _symbol(line):
    name = line.partition(" ")[2].rpartition(" (")[0]
    return name.partition("@")[0].removesuffix(".abi0")


def _is_whole(symbols):
    if symbols[-1:] == ["[unknown]"]:
        symbols = symbols[:-1]
    return bool(symbols) and bool(ROOTS.fullmatch(symbols[-1]))
