# SPDX-License-Identifier: BSD-2-Clause
"""Where the viewers are, and the structural checker: for all tests that ask them."""
import json
import os
import shutil

from libe2e import BUILD, Skip, run

CONSUMERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "consumers")
CACHE = os.environ.get("CONSUMERS") or os.path.join(os.path.dirname(BUILD), "build/consumers")


def node():
    """The node that runs the viewers."""
    if not shutil.which("npm"):
        raise Skip("npm is not installed")
    result = run(os.path.join(CONSUMERS, "install.sh"), CACHE, timeout=200)
    if result.status:
        reason = (result.err.strip() or "no reason given").splitlines()[-1]
        raise Skip(f"the viewers cannot be installed: {reason}")
    return result.out.strip()


def structure(*paths):
    """{path: what the checker finds in it}, which must be all good."""
    result = run("python3", "-B", os.path.join(CONSUMERS, "check_structure.py"), "--json", *paths)
    assert not result.status, result.err
    return {f["path"]: f for f in json.loads(result.out)["files"]}
