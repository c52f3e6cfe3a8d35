# SPDX-License-Identifier: BSD-2-Clause
"""Programs of JavaScript, and what node's own perf map says of their code."""
import collections
import os
import re

from librecorded import TOP

PROGRAM = os.path.join(TOP, "tests/fixtures/v8/programs.cjs")
PROGRAMS = ["recursion", "closures", "classes", "asynchronous", "exceptions", "inlining", "churn", "workers"]
FLAGS = ["--perf-basic-prof", "--interpreted-frames-native-stack"]
ENTRY = re.compile(r"^(?:JS|LazyCompile|Function|Script|Eval|Interpreted ?Function):(?:o(?=[~^+*]))?([~^+*]?)'?(.*)$")


class PerfMap:
    """What the file said when it had so many bytes: where two entries overlap, the later one."""

    GRANULE = 64
    LINE = re.compile(r"^([0-9a-f]{6,12}) ([0-9a-f]{1,6}) (.*)$")

    def __init__(self, path):
        self.path = path
        with open(self.path, "rb") as f:
            self.data = f.read()
        self.taken = 0
        self.at = collections.defaultdict(list)

    def up_to(self, size):
        end = self.data.rfind(b"\n", 0, size) + 1
        for line in self.data[self.taken:max(end, self.taken)].decode("utf-8", "replace").split("\n")[:-1]:
            match = self.LINE.match(line)
            if not match:  # several threads write it at once, in old versions
                continue
            start, length, name = int(match[1], 16), int(match[2], 16), match[3]
            entry = (start, start + length, name)
            for granule in range(entry[0] // self.GRANULE, (entry[1] - 1) // self.GRANULE + 1):
                self.at[granule].append(entry)
        self.taken = max(end, self.taken)

    def name(self, address):
        for start, end, name in reversed(self.at.get(address // self.GRANULE, ())):
            if start <= address < end:
                return name
        return None
