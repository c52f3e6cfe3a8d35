#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""push.py FORMAT URL RECORDING: what the agent would send of a recording, sent to a real backend; by hand.

Prints each answer; of Pyroscope (FORMAT pyroscope) also what it finds again, which must be what was
sent. BUILD as for the tests.
"""
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

BUILD = os.environ.get("BUILD", "build")
TYPES = {"process_cpu:samples:count:cpu:nanoseconds": "samples", "process_cpu:cpu:nanoseconds:cpu:nanoseconds": "cpu_ns"}


def post(url, body, headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return answer.status, answer.headers.get("Content-Type"), answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers.get("Content-Type"), e.read()


def find(url, kind):
    """The total of all services in the last two minutes."""
    now = int(time.time() * 1000)
    requested = {"profileTypeID": kind, "labelSelector": '{service_name=~".+"}', "start": now - 120000, "end": now + 60000}
    status, _, body = post(url + "/querier.v1.QuerierService/SelectMergeStacktraces", json.dumps(requested).encode(),
                           {"Content-Type": "application/json"})
    assert status == 200, (status, body)
    return int(json.loads(body).get("flamegraph", {}).get("total", 0))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    form, url, recording = sys.argv[1:]
    url = url.rstrip("/")
    environment = dict(os.environ, START=str(time.time_ns() - 15 * 10**9))
    before = {kind: find(url, kind) for kind in TYPES} if form == "pyroscope" else {}
    out = subprocess.run([os.path.join(BUILD, "tests/e2e/agent_formats"), form, "/tmp/push", recording], env=environment,
                         check=True, capture_output=True, text=True).stdout
    requests = [json.loads(line) for line in out.splitlines()]
    failed = False
    for request in requests:
        with open(request["file"], "rb") as f:
            body = f.read()
        headers = {"Content-Type": request["type"]}
        if request["encoding"]:
            headers["Content-Encoding"] = request["encoding"]
        begin = time.monotonic()
        status, kind, answer = post(url + request["path"], body, headers)
        print(f"{len(body)} bytes, {request['series']} series: {status} {kind} {answer[:300]!r} ({time.monotonic() - begin:.2f} s)")
        failed |= status != 200
    for kind, field in TYPES.items() if before else ():
        sent, found = sum(r[field] for r in requests), find(url, kind) - before[kind]
        print(f"{kind}: sent {sent}, found {found}")
        failed |= sent != found
    sys.exit(failed)


if __name__ == "__main__":
    main()
