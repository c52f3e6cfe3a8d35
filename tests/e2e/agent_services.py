#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Which services running processes are given (agent_services.c prints them, window by window).

Processes of every kind run in control groups as systemd, Docker and kubelet make them, and files of container runtimes
are in a directory of the test's own. One user blocks readers of the environment of his processes.
"""
import json
import os
import shutil
import signal
import time

import libe2e as e
from libchildren import children_of
from libservices import CONTEXT, HOLD_UP, NOW_AND_THEN, SECRET, SPIN, Groups, run_tool, start, write

ATTACKER = 23457
LOADER = "/lib64/ld-linux-x86-64.so.2"
DOCKER = "d0c4" * 16
POD = "c0de" * 16
POD_UID = "12345678-1234-1234-1234-123456789abc"

def host_files():
    """Of a host where Docker and kubelet run."""
    root = e.scratch("host")
    shutil.rmtree(root, ignore_errors=True)
    write(f"{root}/var/lib/docker/containers/{DOCKER}/config.v2.json", json.dumps({
        "Name": "/web_1", "Config": {"Image": "registry/web:2.4", "Labels": {"com.docker.compose.service": "web"}}}))
    write(f"{root}/var/log/containers/cart-5d9f8-abcde_prod_cart-{POD}.log", "")
    return root


def test_services_of_processes():
    e.need_root()
    script = write(e.scratch("api/main.py"), SPIN)
    shell = write(e.scratch("backup.sh"), "while :; do :; done\n")
    context = write(e.scratch("otel.py"), CONTEXT)
    user = "user.slice/user-0.slice/session-7.scope"
    pod = f"kubepods.slice/kubepods-pod{POD_UID.replace('-', '_')}.slice/cri-containerd-{POD}.scope"
    # a child that is gone in some milliseconds, again and again
    short = "while :; do /usr/bin/seq 20000 >/dev/null; done"
    with Groups() as groups:
        running = {
            "env": groups.start("system.slice/named.service", "python3", "-c", SPIN, DD_SERVICE="shop", DD_VERSION="1.2",
                                TEAM="red", SECRET_TOKEN=SECRET),
            "attributes": groups.start(user, "python3", "-c", SPIN,
                                       OTEL_RESOURCE_ATTRIBUTES="service.name=pay%6Dents,service.namespace=eu"),
            "hostile": groups.start(user, "python3", "-c", SPIN, OTEL_SERVICE_NAME="a\nb\x1b[31m" + 3000 * "x",
                                    DD_SERVICE="  e\x7fvil\n\tname  ", OTEL_RESOURCE_ATTRIBUTES="%%%=,"),
            "script": groups.start(user, "python3", "-u", script, "--password", SECRET),
            "shell": groups.start(user, "/bin/sh", shell),
            "context": groups.start(user, "python3", context, DD_SERVICE="not-this-one"),
            "loader": groups.start(user, LOADER, "--library-path", "/nowhere", "/usr/bin/perl", "-e", "1 while 1"),
            "unit": groups.start("system.slice/backup.service", "python3", "-c", SPIN),
            "instance": groups.start("system.slice/pg@14-main.service", "python3", "-c", SPIN),
            "docker": groups.start(f"system.slice/docker-{DOCKER}.scope", "python3", "-c", SPIN),
            "pod": groups.start(pod, "python3", "-c", SPIN),
            "noise": groups.start("system.slice/noise.service", "python3", "-c", SPIN),
            "short": groups.start("system.slice/short.service", "/bin/sh", "-c", short),
        }
        if shutil.which("java"):
            source = write(e.scratch("Spinner.java"), "class Spinner { public static void main(String[] a) { while (true); } }")
            running["java"] = groups.start(user, "java", "-Xint", "-XX:TieredStopAtLevel=1", source)
        def enough(windows):
            """All were read, also facts that are published late."""
            return (all(windows.is_read(p.pid) for name, p in running.items() if name != "context") and
                    windows.count(running["context"].pid) > 2 and
                    windows.last(running["context"].pid)["service_source"] == "otel_ctx" and
                    len(windows.windows) > 3)

        windows, result = run_tool("-l", "team = env:TEAM", "-l", "kind = exe ~ ([a-z]+)[0-9.]*$", "-x", "service=noise",
                                   "-r", host_files(), "-p", "-o", e.scratch("services.sysprof"), until=enough)
    expected = {
        "env": ("shop", "env"), "attributes": ("payments", "resource_attributes"), "hostile": ("e_vil__name", "env"),
        "script": ("api/main.py", "script"), "shell": ("backup.sh", "script"), "context": ("checkout", "otel_ctx"),
        "loader": ("perl", "exe"),
        "unit": ("backup", "unit"), "instance": ("pg", "unit"), "docker": ("web", "container"),
        "pod": ("prod/cart", "kubernetes"), "noise": ("noise", "unit"), "short": ("short", "unit"),
    }
    labels = {name: windows.last(program.pid) for name, program in running.items()}
    for name, (service, source) in expected.items():
        print(f"  {name}: {labels[name]}")
        assert (labels[name]["service_name"], labels[name]["service_source"]) == (service, source), labels[name]
    if "java" in running:  # its main class is the launcher's: it runs a file of source
        assert labels["java"]["service_source"] == "script", labels["java"]
        assert labels["java"]["service_name"] == "Spinner.java" or "/" in labels["java"]["service_name"], labels["java"]
    more = {("env", "service_version"): "1.2", ("env", "team"): "red", ("env", "kind"): "python",
            ("env", "unit"): "named.service", ("attributes", "namespace"): "eu", ("context", "service_version"): "7.1",
            ("instance", "instance"): "14-main", ("docker", "service_version"): "2.4", ("docker", "container"): "web",
            ("pod", "namespace"): "prod", ("pod", "pod"): "cart-5d9f8-abcde", ("pod", "container"): "cart"}
    for (name, label), value in more.items():
        assert labels[name].get(label) == value, (name, label, labels[name])
    check_short_lives(windows)
    check_lives(windows, running)
    # the same by the recording
    for name, program in running.items():
        if name != "context":  # in one window it has all that was known at last
            assert windows.of(windows.replays[0], program.pid)[-1] == labels[name], name
    excluded = [s["labels"]["service_name"] for w in windows.windows for s in w["services"] if s["excluded"]]
    assert set(excluded) == {"noise"}, excluded
    # nothing but what is on the list was ever read
    assert SECRET not in result.out + result.err
    assert SECRET.encode() not in e.read(e.scratch("services.sysprof"), "rb")


def check_short_lives(windows):
    """Those that were gone before anybody could ask them are in the service of their control group."""
    lives = [(p["pid"], p["state"], window["services"][p["service"]]["labels"]) for window in windows.windows
             for p in window["processes"] if window["services"][p["service"]]["labels"].get("unit") == "short.service"]
    unread = sum(1 for _, state, _ in lives if state == 0)
    print(f"  {len({pid for pid, _, _ in lives})} short processes were sampled, {unread} were gone before they were read")
    assert len(lives) > 10 and unread, lives
    assert all(labels["service_name"] == "short" for _, _, labels in lives)
    seq = [s for w in windows.windows for s in w["services"] if s["labels"]["service_name"] == "seq"]
    assert not seq, seq


def check_lives(windows, running):
    """Once a life was read its service stays, except for facts that are published late."""
    pids = {program.pid: name for name, program in running.items()}
    names = {}
    for window in windows.windows:
        for p in window["processes"]:
            if p["pid"] in pids and p["state"] == 2:
                names.setdefault((p["pid"], p["life"]), []).append(
                    window["services"][p["service"]]["labels"]["service_name"])
    assert len(names) >= len(running), names
    for (pid, _), seen in names.items():
        changes = sum(a != b for a, b in zip(seen, seen[1:]))
        assert changes <= (1 if pids[pid] == "context" else 0), (pids[pid], seen)


def test_memory_that_is_not_answered():
    """Windows are named in time, and other users are read, while one user blocks readers of his facts."""
    e.need_root()
    place = e.place_of(ATTACKER)
    server = [e.fixture("silentfs"), "-w", "read", e.fuse_device(), place, "/usr/bin/python3", "-c", HOLD_UP]
    try:
        with e.Background(*e.as_user(ATTACKER), *server, env={"PATH": os.environ["PATH"], "DD_SERVICE": "attacker"}) as attacker:
            e.wait_for(lambda: e.comm_of(attacker.pid) == "mapped", what="the mapping")
            with start("python3", "-c", SPIN, DD_SERVICE="first"):
                time.sleep(0.2)
                with e.Background("/bin/sh", "-c", 'sleep 4; exec "$@"', "sh", "python3", "-c", SPIN,
                                  env={"PATH": os.environ["PATH"], "DD_SERVICE": "second"}) as second:
                    windows, _ = run_tool(until=lambda w: w.is_read(second.pid) and w.is_read(attacker.pid) and
                                          len(w.windows) > 6)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print("  without an answer:", windows.stats["unanswered"])  # some kernels give an error instead of waiting
    assert windows.last(attacker.pid)["service_name"] == "attacker", windows.last(attacker.pid)
    # one that began when the readers were held up
    assert windows.last(second.pid)["service_name"] == "second", windows.last(second.pid)
    assert sorted(w["late_ms"] for w in windows.windows)[len(windows.windows) // 2] < 10000


def readers_of(tool):
    """The children of their keeper, which is the tool's child of that name."""
    for keeper in children_of(tool):
        if e.status_of(keeper).get("Name") == "sysprof-reader":
            yield from children_of(keeper)


def deleted_files(pid, below):
    found = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        found += path.startswith(below) and path.endswith(" (deleted)")
    return found


@e.long
def test_programs_that_were_deleted():
    """Their files are read as long as they run, and closed when they have ended: else their place on the disk would be kept."""
    e.need_root()
    top, most, left = e.scratch("deleted"), [], []
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    paths = [f"{top}/program{i}" for i in range(6)]
    for path in paths:
        # one build-id would make them one file
        e.run("objcopy", "--remove-section", ".note.gnu.build-id", "/usr/bin/perl", path, check=0)
    running = [start("nice", "-n", "19", path, "-e", NOW_AND_THEN) for path in paths]
    kept = running[-1]

    def meanwhile(tool):
        """For two seconds all run without their files: the open window and one that is being named have them, too."""
        now = time.monotonic()
        if now < began + 3:
            return
        if now < began + 5:
            for path in paths:
                if os.path.exists(path):
                    os.unlink(path)
            most[:] = [max(most + [deleted_files(tool.pid, top)])]
        elif most and not left:
            for process in running[:-1]:
                process.__exit__()
            left.append(deleted_files(tool.pid, top))
        elif left:
            left.append(deleted_files(tool.pid, top))

    began = time.monotonic()
    try:
        windows, _ = run_tool(meanwhile=meanwhile, until=lambda w: left and 6 * left[-1] <= most[0] and
                              w.windows and any(p["pid"] == kept.pid for p in w.windows[-1]["processes"]))
    finally:
        for process in running:
            process.__exit__()
        shutil.rmtree(top)
    print(f"  {most[0]} descriptors of deleted files, {left[-1]} in the end: of the one which runs")
    assert most[0] >= 6 and 6 * left[-1] <= most[0], (most, left[-1:])
    assert windows.last(kept.pid)["service_name"] == "program5"


def beside_stopped_readers():
    """Windows of two programs, these, and what became of their facts."""
    stopped = set()
    with Groups() as groups:
        running = [groups.start("system.slice/named.service", "python3", "-c", SPIN, DD_SERVICE="never-read"),
                   groups.start("user.slice/user-0.slice/session-7.scope", "/usr/bin/perl", "-e", NOW_AND_THEN)]
        try:
            def stop_readers(tool):
                for pid in set(readers_of(tool.pid)) - stopped:
                    os.kill(pid, signal.SIGSTOP)
                    stopped.add(pid)

            windows, _ = run_tool(until=lambda w: all(w.count(p.pid) > 2 for p in running), meanwhile=stop_readers,
                                  start_new_session=True)
        finally:
            for program in running:
                program.__exit__()
            for pid in stopped:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
    print("  without an answer:", windows.stats["unanswered"])
    assert stopped and windows.stats["unanswered"]
    return windows, running, {p["state"] for w in windows.windows for p in w["processes"] if p["pid"] in {r.pid for r in running}}


@e.long
def test_readers_that_do_not_answer():
    """As if all users blocked them: services are decided in time, by facts that no user can block."""
    e.need_root()
    for _ in range(3):
        windows, running, states = beside_stopped_readers()
        if 2 not in states:  # a new reader may answer before it is stopped
            break
    assert 2 not in states and states & {1, 3}, states
    labels = [windows.last(program.pid) for program in running]
    assert (labels[0]["service_name"], labels[0]["service_source"]) == ("named", "unit"), labels
    assert (labels[1]["service_name"], labels[1]["service_source"]) == ("perl", "exe"), labels
    assert sorted(w["late_ms"] for w in windows.windows)[len(windows.windows) // 2] < 10000


e.main(globals())
