#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
The commands of README's "Which service, and only this part", its pipe, and those of docs/FILTERS.md, each as it is written
there, with the services that they name: sudo and ssh are scripts that execute the rest of the line here.
"""
import base64
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

from libe2e import SYSPROF, TOP, Background, Skip, main, need_root, quick, read, record, run, scratch, sysprof, wait_for, write
from libservices import Groups

EXAMPLES = os.path.join(TOP, "docs/examples")
SCRIPTS = {"sudo": 'exec "$@"', "ssh": 'shift; exec sh -c "$*"'}
BROWSERS = {"DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SUDO_UID", "SUDO_GID", "BROWSER", "PROFILER_URL"}
SERVICES = "shop", "search", "billing", "backup"
WORSE, CANNOT_TELL = 3, 4
LOST = "lost samples, NEW"  # of the sentence that there is no verdict because of them


def commands_of(path, begin="", end=None):
    """Of the fenced blocks: [(command, what it prints; None: the document does not say)]."""
    text = read(os.path.join(TOP, path)).partition(begin)[2] if begin else read(os.path.join(TOP, path))
    found = []
    for block in re.findall(r"^```\n(.*?)^```", text.partition(end)[0] if end else text, re.M | re.S):
        if block.startswith("$ "):
            found += re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
        else:
            found += [(line, None) for line in block.splitlines()]
    return found


FILTERS = commands_of("docs/FILTERS.md")
README = commands_of("README.md", "## Which service, and only this part\n", "\n## ")
(PIPE,) = [command for command, _ in commands_of("README.md") if command.startswith("ssh ")]


def workplace(name):
    """An empty directory, and an environment in which `sysprof` is that of the build."""
    place = scratch(name)
    os.makedirs(place)
    os.symlink(SYSPROF, os.path.join(place, "sysprof"))
    for script, text in SCRIPTS.items():
        write(os.path.join(place, script), f"#!/bin/sh\n{text}\n")
        os.chmod(os.path.join(place, script), 0o755)
    kept = {name: value for name, value in os.environ.items() if name not in BROWSERS}
    return place, {**kept, "PATH": f"{place}:{kept['PATH']}"}


@quick
def test_what_the_document_prints():
    """Of docs/FILTERS.md: with files that `cat` shows, which are made."""
    place, environment = workplace("printed")
    printed = [(command, output) for command, output in FILTERS if output is not None]
    assert len(printed) >= 9, printed
    for command, output in printed:
        if command.startswith("cat "):
            write(os.path.join(place, command.removeprefix("cat ")), output)
            continue
        result = run("sh", "-c", f"exec 2>&1; {command}", cwd=place, env=environment)
        assert result.out == output, f"{command}:\n{result.out}"


def start_services(stack, place):
    """Those of README, one of them in a unit, and one more."""
    if not shutil.which("node"):
        raise Skip("needs node")
    for name, flags in ("orders", ()), ("new-orders", ("-DNEW",)):
        run("cc", "-O1", "-g", *flags, "-o", os.path.join(place, name), os.path.join(EXAMPLES, "orders.c"), check=0)
    unit = stack.enter_context(Groups()).make("nginx.service")
    loop = ("sh", "-c", "while ./orders; do :; done")
    in_unit = "sh", "-c", f'echo $$ >{unit}/cgroup.procs; exec "$@"', "sh"
    commands = (sys.executable, os.path.join(EXAMPLES, "app.py")), (*in_unit, "node", os.path.join(EXAMPLES, "app.js")), loop, loop
    for name, command in zip(SERVICES, commands):
        process = stack.enter_context(Background(*command, cwd=place, env={**os.environ, "OTEL_SERVICE_NAME": name},
                                                 stdout=subprocess.DEVNULL, stderr=None, start_new_session=True))
        stack.callback(os.killpg, process.pid, signal.SIGKILL)


def services_of(path):
    """Those of the test; in a page, where a title of a process begins with one."""
    if path.endswith(".html"):
        data = gzip.decompress(base64.b64decode(re.search(r'id="profile">([^<]*)<', read(path))[1]))
        return {name for name in SERVICES if f"\0{name} (".encode() in data}
    rows = json.loads(sysprof("report", "--json", "--by", "service", path, check=0).out)["rows"]
    return {row["service"] for row in rows} & set(SERVICES)


def fetch_page(place, environment, command):
    """A command that ends in `sysprof open`: the page that it serves."""
    log = os.path.join(place, "open.log")
    options = {"cwd": place, "env": environment, "stdout": subprocess.DEVNULL, "start_new_session": True}
    with open(log, "w", encoding="utf-8") as err, Background("sh", "-c", command, stderr=err, **options) as shell:
        try:
            wait_for(lambda: "all formats:" in read(log) or shell.p.poll() is not None, what="the page")
            address = re.search(r"(http://127\.0\.0\.1:\d+/\w+/)\n", read(log))
            assert address, read(log)
            with urllib.request.urlopen(address[1], timeout=60) as answer:
                write(os.path.join(place, "served.html"), answer.read())
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGINT)
    return os.path.join(place, "served.html")


def check_readme(place, environment):
    (recorded, _), (by_service, services), (tree, frames) = README
    summary = run("sh", "-c", recorded, cwd=place, env=environment, check=0).err
    printed = run("sh", "-c", by_service, cwd=place, env=environment, check=0).out
    # an `orders` that was about to end when the recording began is not read: it has its program's name, and is counted
    rows = {line.split()[-1] for line in printed.splitlines()} - {"service"}  # its row takes that of the heading
    assert rows - {"orders"} == {line.split()[-1] for line in services.splitlines()} - {"service"}, printed
    assert "orders" not in rows or "(services by program alone)" in summary, summary
    printed = run("sh", "-c", tree, cwd=place, env=environment, check=0).out
    ours = re.findall(r"^100\.00%.*%  ([a-z_]+)(?: |$)", frames, re.M)
    assert ours == ["handle_request", "index", "words"] and " python3" not in printed, printed
    printed = run("sh", "-c", tree.partition(" | ")[0], cwd=place, env=environment, check=0).out
    # the others are calls from elsewhere: a sample of each is enough for 99.9 %
    assert re.findall(r"^(?:100\.00| 9\d\.\d\d)%.*%  ([a-z_]+)(?: |$)", printed, re.M) == ours, printed
    assert services_of(fetch_page(place, environment, PIPE)) == set(SERVICES)


def check_filters(place, environment):
    """In a directory with the recording of README."""
    seen = []
    for command, output in FILTERS:
        if output is not None:
            continue
        result = run("sh", "-c", command, cwd=place, env=environment)
        lost = LOST in result.out + result.err  # the host took the CPUs
        assert result.status == ((CANNOT_TELL if lost else WORSE) if "--fail-if" in command else 0), f"{command}: {result}"
        seen.append(result.out)
    report, _, difference, *_ = seen
    assert len(seen) == 5 and "--service=shop @2s-8s --focus=words" in report and re.search(r"\bwords\b", report), report
    assert "find_discount" in difference and "read_order" not in difference, difference
    services = {name: services_of(os.path.join(place, name)) for name in ("nginx.html", "orders.sysprof", "rest.html")}
    assert services == {"nginx.html": {"search"}, "orders.sysprof": {"shop", "billing"}, "rest.html": set(SERVICES) - {"backup"}}, services


def test_every_command():
    need_root()
    place, environment = workplace("commands")
    with contextlib.ExitStack() as stack:
        start_services(stack, place)
        for name, program in ("old", "orders"), ("new", "new-orders"):
            record("-o", os.path.join(place, f"{name}.sysprof"), "--", os.path.join(place, program))
        check_readme(place, environment)
        check_filters(place, environment)


if __name__ == "__main__":
    main(globals())
