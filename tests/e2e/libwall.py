# SPDX-License-Identifier: BSD-2-Clause
"""What tests of record --wall share."""
import json

import libe2e as e


def need_visits():
    e.need_root()
    features = json.loads(e.sysprof("check", "--json").out)["features"]
    if not [f for f in features if f["name"] == "visits" and f["available"]]:
        raise e.Skip("this kernel has no visits")


def report(path, by, *options):
    return json.loads(e.sysprof("report", path, "--wall", "--by", by, "--json", "--top", 100000, *(options or ("--parked",))).out)
