# SPDX-License-Identifier: BSD-2-Clause
"""What tests of record --wall share."""
import json
import os
import re

import libe2e as e


def need_visits():
    e.need_root()
    features = json.loads(e.sysprof("check", "--json").out)["features"]
    if not [f for f in features if f["name"] == "visits" and f["available"]]:
        release = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
        assert release < (6, 1) or not os.access("/sys/kernel/btf/vmlinux", os.R_OK), "a kernel with visits"
        raise e.Skip("this kernel has no visits")


def report(path, by, *options):
    return json.loads(e.sysprof("report", path, "--wall", "--by", by, "--json", "--top", 100000, *(options or ("--parked",))).out)


def stolen_ns():
    """By interrupts and the hypervisor, from all CPUs: in no account of a thread."""
    words = e.read("/proc/stat").partition("\n")[0].split()
    return sum(map(int, words[6:9])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
