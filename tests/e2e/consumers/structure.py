# SPDX-License-Identifier: BSD-2-Clause
"""What the structural checkers of all formats have in common."""
import re
from decimal import Decimal

MAX_ERRORS = 20


class Checker:
    def __init__(self, path):
        self.path = path
        self.errors = []
        self.more = 0
        self.threads = []

    def error(self, text):
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(text)
        else:
            self.more += 1

    def check(self, condition, text):
        if not condition:
            self.error(text)
        return bool(condition)

    def call_frame(self, what, node):
        """[C10] Positions are 0-based or -1, never garbage. None: it is so wrong that nothing else matters."""
        frame = node.get("callFrame", {})
        for key in ("functionName", "scriptId", "url"):
            if not self.check(isinstance(frame.get(key), str), "%s: %s" % (what, key)):
                return None
        for key in ("lineNumber", "columnNumber"):
            value = frame.get(key)
            if not self.check(is_int(value) and -1 <= value < 1 << 31, "%s: %s" % (what, key)):
                return None
        self.check(re.fullmatch(r"\d+", frame["scriptId"]), what + ": scriptId")
        # a path is a file:// URL; engines have names of their own for scripts: "node:fs", "evalmachine.<anonymous>"
        url = frame["url"]
        self.check(re.fullmatch(r"file:///[!-~]+", url) if url.startswith(("/", "file:")) else url.isprintable(),
                   what + ": url %r" % frame["url"])
        return frame

    def result(self, file_format):
        totals = {}
        for thread in self.threads:
            # lives of one number ("123", "123.1") are one thread for a test by numbers
            key = "%s/%s" % (str(thread["pid"]).split(".")[0], str(thread["tid"]).split(".")[0])
            total = totals.setdefault(key, {"samples": 0, "cpu_ns": 0})
            total["samples"] += thread["samples"]
            total["cpu_ns"] += thread["cpu_ns"]
        errors = self.errors + (["… and %d more" % self.more] if self.more else [])
        return {
            "path": self.path,
            "format": file_format,
            "samples": sum(t["samples"] for t in self.threads),
            "cpu_ns": sum(t["cpu_ns"] for t in self.threads),
            "totals": totals,
            "threads": self.threads,
            "counters": getattr(self, "counters", []),
            "errors": errors,
        }


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value):
    return is_int(value) and value >= 0


def is_index(value, size):
    return is_count(value) and value < size


def is_number(value):
    return is_int(value) or isinstance(value, Decimal)
