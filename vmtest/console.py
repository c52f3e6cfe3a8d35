# SPDX-License-Identifier: BSD-2-Clause
"""What the guest printed between its marks, for checks of its reports."""
import json
import re
import sys


class Console:
    def __init__(self, path, what):
        with open(path, encoding="utf-8", errors="replace") as file:
            self.text = file.read()
        self.what = what

    def has(self, name):
        return re.search(f"^@@begin {name}$", self.text, re.M) is not None

    def section(self, name):
        found = re.search(f"^@@begin {name}\n(.*?)^@@end {name}$", self.text, re.M | re.S)
        self.check(found, name, "is missing")
        return found.group(1)

    def report(self, name):
        text = self.section(name)
        self.check("{" in text, name, "is no report:", text)
        return json.loads(text[text.index("{"):])  # behind warnings

    def check(self, condition, *why):
        if not condition:
            print(f"{self.what}:", *why)
            sys.exit(1)
