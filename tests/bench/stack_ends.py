# SPDX-License-Identifier: BSD-2-Clause
"""How stacks ended: of a recording of ours, sample by sample, and of what perf script prints.

A recording is read as docs/FORMATS.md and include/sysprof/event.h say, so that each sample can be
asked for the age of its process. The names of the ends come from `report --json`, whose sums have to
agree with those that are counted here.
"""
import collections
import json
import re
import struct
import subprocess

from libbench import SYSPROF, Broken

SAMPLE, COMM, FORK, PROCESS = 1, 9, 10, 16  # enum event_type
COMM_EXEC = 0x0002
COMPLETE = {"root", "no-user", "disabled"}  # those of STACK_ENDS that are
FIRST_NS = 50_000_000

# Where a stack begins, as perf names it. A stripped program's _start has no name: its callee counts.
ROOTS = re.compile(r"(_start|_start_c|__?clone3?|clone3?|__clone_internal|_dl_start_user|ret_from_fork(_asm)?|"
                   r"runtime\.(goexit|mstart|rt0_go)(\.abi0)?|_rt0_amd64(_linux)?)(\+0x[0-9a-f]+)?$")
NEXT_TO_ROOT = re.compile(r"(__libc_start_(main|call_main)|start_thread|_dl_start)\b")


class Ends:
    """Samples by how their stacks ended: all, and those after the first 50 ms of their process."""

    def __init__(self):
        self.all, self.late = collections.Counter(), collections.Counter()

    @staticmethod
    def _whole(counts):
        total = sum(counts.values())
        return 100 * sum(counts[name] for name in COMPLETE) / total if total else float("nan")

    def samples(self):
        return sum(self.all.values())

    def whole(self):
        return self._whole(self.all)

    def whole_late(self):
        return self._whole(self.late)

    def reasons(self, most=3):
        """The commonest ends of the others, with their share of all samples."""
        total = self.samples()
        rest = [(name, n) for name, n in self.all.most_common() if name not in COMPLETE]
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


def of_recording(path):
    """A process begins with its fork, and anew with each execve."""
    told = json.loads(subprocess.run([SYSPROF, "report", "--json", path], capture_output=True,
                                     check=True).stdout)["summary"]["stack_ends"]
    names, ends, begun = list(told), Ends(), {}
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
    counted = {name: ends.all[name] for name in names}
    if counted != told:
        raise Broken(f"{path}: report --json says {told}, its events {counted}")
    return ends


def named_share(path):
    """Of the user frames of folded stacks: those that have a function's name. NaN: there are none."""
    frames = named = 0
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, count = line.rsplit(" ", 1)
            user = [x for x in stack.split(";")[1:] if not x.endswith("_[k]")]
            frames += len(user) * int(count)
            named += int(count) * sum(not x.startswith(("[", "0x")) for x in user)
    return 100 * named / frames if frames else float("nan")


def of_perf_script(lines):
    """(samples, whole) of `perf script -F comm,pid,tid,ip,sym,dso`, innermost frame first."""
    samples = whole = 0
    stack = None
    for line in lines:
        line = line.strip()
        if not line:
            if stack is not None:
                samples, whole = samples + 1, whole + _is_rooted(stack)
            stack = None
        elif stack is None:
            stack = []
        else:
            stack.append(line)
    if stack is not None:
        samples, whole = samples + 1, whole + _is_rooted(stack)
    return samples, whole


def _is_rooted(stack):
    """The frames are lines "address symbol (file)"."""
    symbols = [line.split(" ", 1)[1].rsplit(" (", 1)[0] for line in stack if " " in line]
    if not symbols:
        return False
    return bool(ROOTS.match(symbols[-1])) or len(symbols) > 1 and bool(NEXT_TO_ROOT.match(symbols[-2]))
