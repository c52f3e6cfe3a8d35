#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""What recordings call processes: as the agent does (agent_services.c prints that), at the same time, on the same host.

Forty processes run in control groups as systemd, Docker, containerd, Podman, CRI-O, kubelet, LXC, snapd and flatpak make
them, and files of container runtimes are in a directory of the test's own, which is the host's for both.
"""
import collections
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import struct

import libe2e as e
from libreport import invalid
from libservices import SECRET, Groups, run_tool, write
from read_pprof import read_pprof

LOADER = "/lib64/ld-linux-x86-64.so.2"
FACTS, WHOLE = 21, 2  # an event, and its state
USER = "user.slice/user-1000.slice"
MANAGER = f"{USER}/user@1000.service"
# some ms of each 150
SPIN = "import time\nwhile True:\n" \
       "    end = time.monotonic() + 0.006\n    while time.monotonic() < end: pass\n    time.sleep(0.15)\n"
AS_NOBODY = "import os, sys; os.setuid(65534); os.execvp(sys.argv[1], sys.argv[1:])"
PERL = "while (1) { select(undef, undef, undef, 0.15); for (1 .. 300000) {} }"
LABELS = "service_name", "service_source", "service_version", "namespace", "pod", "container", "unit", "instance"


def ids(digit):
    """Of a container, and of a pod as in slices of systemd and as its uid."""
    uid = f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}"
    return digit * 60 + "c0de", uid.replace("-", "_"), uid


def host_files():
    root = e.scratch("host")
    shutil.rmtree(root, ignore_errors=True)
    docker, containerd, podman = f"{root}/var/lib/docker/containers", f"{root}/run/containerd/io.containerd.runtime.v2.task", \
        "containers/storage/overlay-containers"
    write(f"{docker}/{ids('1')[0]}/config.v2.json", json.dumps(
        {"Name": "/web_1", "Config": {"Image": "registry/web:2.4", "Labels": {"com.docker.compose.service": "web"}}}))
    write(f"{docker}/{ids('2')[0]}/config.v2.json", json.dumps({"Name": "/plain", "Config": {"Image": "redis"}}))
    write(f"{docker}/{ids('3')[0]}/config.v2.json", json.dumps(
        {"Name": "/x.1.y", "Config": {"Labels": {"com.docker.swarm.service.name": "stack_api"}}}))
    write(f"{containerd}/default/{ids('4')[0]}/config.json", json.dumps({"annotations": {"nerdctl/name": "cache"}}))
    write(f"{containerd}/k8s.io/{ids('5')[0]}/config.json", json.dumps({"annotations": {
        "io.kubernetes.cri.sandbox-name": "orders-7f9", "io.kubernetes.cri.sandbox-namespace": "shop",
        "io.kubernetes.cri.container-name": "orders", "io.kubernetes.cri.image-name": "registry/orders:3.1"}}))
    write(f"{root}/run/{podman}/{ids('6')[0]}/userdata/config.json", json.dumps({"annotations": {
        "io.kubernetes.pod.name": "cart-0", "io.kubernetes.pod.namespace": "shop", "io.kubernetes.container.name": "cart",
        "resource.opentelemetry.io/service.name": "cart-service"}}))
    write(f"{root}/var/lib/{podman}/containers.json", json.dumps([{"id": ids("7")[0], "names": ["mail"]}]))
    write(f"{root}/var/log/containers/batch-1_jobs_batch-{ids('8')[0]}.log", "")
    write(f"{root}/var/log/pods/jobs_sweeper-2_{ids('9')[2]}/x", "")
    write(f"{docker}/{ids('a')[0]}/config.v2.json", json.dumps({"Name": "/a\n\x1b[31m\"<b>" + 400 * "x", "Config": {}}))
    write(f"{docker}/{ids('b')[0]}/config.v2.json", "{" * 5000)
    return root


def fixtures():
    """{name: (control group, command, environment)}"""
    python = ["python3", "-c", SPIN]
    script = write(e.scratch("api/main.py"), SPIN)
    shell = write(e.scratch("backup.sh"), "while :; do sleep 0.1; i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; done\n")
    perl = write(e.scratch("report.pl"), PERL)
    kubepods = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/%s-%s.scope"
    return {
        "unit": ("system.slice/nginx.service", python, {}),
        "unit of a script": ("system.slice/worker.service", ["python3", script], {}),
        "instance": ("system.slice/system-postgresql.slice/postgresql@14-main.service", python, {}),
        "socket's instance": ("system.slice/system-sshd.slice/sshd@7-10.0.0.1:22-10.0.0.2:4711.service", python, {}),
        "console": ("system.slice/system-getty.slice/getty@tty1.service", python, {}),
        "nested in a unit": ("system.slice/cron.service/job-12", python, {}),
        "systemd-run": ("system.slice/run-r0123456789abcdef.service", python, {}),
        "session": (f"{USER}/session-3.scope", ["python3", script], {}),
        "manager": (f"{MANAGER}/init.scope", python, {}),
        "user's unit": (f"{MANAGER}/app.slice/syncthing.service", python, {}),
        "desktop": (f"{MANAGER}/app.slice/app-gnome-org.gnome.Terminal-4242.scope", python, {}),
        "flatpak": (f"{MANAGER}/app.slice/app-flatpak-org.gnome.Builder-4243.scope", python, {}),
        "snap": (f"{MANAGER}/app.slice/snap.firefox.firefox-0a1b2c3d-0000-1111-2222-333344445555.scope", python, {}),
        "snap's daemon": ("system.slice/snap.lxd.daemon.service", python, {}),
        "docker, compose": (f"system.slice/docker-{ids('1')[0]}.scope", python, {}),
        "docker, cgroupfs": (f"docker/{ids('2')[0]}", python, {}),
        "docker, swarm": (f"system.slice/docker-{ids('3')[0]}.scope", python, {}),
        "docker, unknown": (f"docker/{ids('c')[0]}", ["python3", script], {}),
        "docker, hostile name": (f"docker/{ids('a')[0]}", python, {}),
        "docker, damaged file": (f"docker/{ids('b')[0]}", python, {}),
        "containerd": (f"system.slice/nerdctl-{ids('4')[0]}.scope", python, {}),
        "cri, containerd": (kubepods % (ids("5")[1], "cri-containerd", ids("5")[0]), python, {}),
        "cri, otel in a pod": (kubepods % (ids("5")[1], "cri-containerd", ids("d")[0]), python, {"OTEL_SERVICE_NAME": "sidecar"}),
        "cri, cgroup driver": (f"system.slice/containerd.service/kubepods-burstable-pod{ids('8')[1]}.slice:cri-containerd:{ids('8')[0]}",
                               python, {}),
        "cri-o": (kubepods % (ids("6")[1], "crio", ids("6")[0]), python, {}),
        "kubelet, cgroupfs": (f"kubepods/besteffort/pod{ids('9')[2]}/{ids('9')[0]}", python, {}),
        "podman": (f"machine.slice/libpod-{ids('7')[0]}.scope/container", python, {}),
        "podman's monitor": (f"machine.slice/libpod-conmon-{ids('7')[0]}.scope", python, {}),
        "lxc": ("lxc.payload.box", python, {}),
        "machine": ("machine.slice/machine-box.scope/payload", python, {}),
        "ecs": (f"ecs/{'e' * 32}/{'e' * 32}-1234567890", python, {}),
        "plain": ("plain", python, {}),
        "script of perl": ("plain-perl", ["perl", perl], {}),
        "shell": ("plain-shell", ["/bin/sh", shell], {}),
        "loader": ("plain-loader", [LOADER, "--library-path", "/nowhere", "/usr/bin/perl", perl], {}),
        "env": ("plain-env", ["/usr/bin/env", "-S", f"python3 {script}"], {}),
        "sh -c exec": ("plain-exec", ["/bin/sh", "-c", f"exec python3 {script} --password {SECRET}"], {}),
        "attributes": ("plain-attributes", python, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=pay%6Dents,service.namespace=eu"}),
        "variables": ("system.slice/named.service", ["python3", "-c", AS_NOBODY, *python],
                      {"DD_SERVICE": "basket", "DD_VERSION": "1.2", "SECRET_TOKEN": SECRET}),
        "hostile variable": ("plain-hostile", python, {"DD_SERVICE": "  e\x7fvil\n\t\"<name>\x1b[31m  " + 3000 * "x"}),
    }


def labels_of(path):
    """{pid: [labels]} of a recording, by pprof."""
    out = e.scratch("named.pb")
    e.sysprof("convert", path, "-o", f"pprof:{out}", check=0)
    data = e.read(out, "rb")
    profile = read_pprof(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    strings, found = profile["string_table"], collections.defaultdict(list)
    for sample in profile["sample"]:
        labels = {strings[one["key"]]: strings[one["str"]] if one["str"] else one["num"] for one in sample["label"]}
        if labels not in found[labels["pid"]]:
            found[labels["pid"]].append(labels)
    return found


def rows(path, by):
    report = e.sysprof("report", path, "--by", by, "--json", "--top", 100000, check=0).out
    assert not invalid(json.loads(report)), invalid(json.loads(report))
    return json.loads(report)


def check_reports(path, running, recorded):
    services = rows(path, "service")
    named = sum(row["self"] for row in services["rows"] if row["service"] not in ("", "unknown"))
    total = sum(row["self"] for row in services["rows"])
    print(f"  {named} of {total} samples have a service; {len(services['rows'])} services")
    assert total == sum(row["self"] for row in rows(path, "process")["rows"])
    assert named >= 0.999 * total - 3, services["rows"]  # one that ends at once may have been sampled once
    assert {row["service"]: row for row in services["rows"]}["payments"]["processes"] == 1
    assert len({row["service"] for row in services["rows"]}) == len(services["rows"])
    users = {row["user"] for row in rows(path, "user")["rows"]}
    assert {"root", "nobody"} <= users, (users, recorded[running["variables"].pid])
    containers = {row["container_id"]: row["container"] for row in rows(path, "container")["rows"]}
    assert containers[ids("1")[0]] == "web" and containers[ids("5")[0]] == "orders", containers
    units = {row["unit"] for row in rows(path, "unit")["rows"]}
    assert {"nginx.service", "postgresql@.service", "snap.lxd.daemon.service", ""} <= units, units
    tree = json.loads(e.sysprof("report", path, "--by", "service", "--tree", "--json", check=0).out)
    assert not invalid(tree) and {row.get("service") for row in tree["rows"]} - {None}
    assert recorded[running["variables"].pid][-1]["user"] == "nobody"


def check_titles(path, running):
    out = e.scratch("named.trace.json")
    e.sysprof("convert", path, "-o", out, check=0)
    names = {event["pid"] % 10000000: event["args"]["name"] for event in e.load_json(out)["traceEvents"]
             if event.get("name") == "process_name"}
    for name, title in {"unit": r"nginx \(python3[\d.]*\)", "cri, containerd": r"shop/orders \(python3[\d.]*, shop/orders-7f9\)",
                        "variables": r"basket \(python3[\d.]*, named\.service\)", "docker, compose": r"web \(python3[\d.]*\)"}.items():
        assert re.fullmatch(title, names[running[name].pid]), (name, names[running[name].pid])
    assert all(len(name) < 256 and name.isprintable() for name in names.values()), names
    page = e.scratch("named.html")
    e.sysprof("convert", path, "-o", page, check=0)
    assert os.path.getsize(page)


def test_forty_of_forty():
    e.need_root()
    root, path = host_files(), e.scratch("named.sysprof")
    # the reader looks below "/": its /run and /var are those of the test
    on_host = ["unshare", "-m", "sh", "-c", 'mount --make-rprivate / && mount --bind "$1/run" /run && mount --bind "$1/var" /var && '
               'shift && exec "$@"', "sh", root]
    with Groups() as groups, contextlib.ExitStack() as opened:
        running = {name: groups.start(group, *command, **environment) for name, (group, command, environment) in fixtures().items()}
        assert len(running) == 40, len(running)
        e.wait_for(lambda: "\nUid:\t65534" in e.read(f"/proc/{running['variables'].pid}/status"), what="the program of nobody")

        read = set()  # pids that were sampled, and then read

        with e.Background(*on_host, e.SYSPROF, "record", "-a", "-o", path) as recorder:
            e.started_sampling(recorder, path)
            growing = e.GrowingRecording(path, opened.enter_context(open(path, "rb")))

            def enough(windows):
                read.update(struct.unpack_from("<I", body)[0] for kind, _, _, body in growing.new_events()
                            if kind == FACTS and body[4] == WHOLE)
                return all(windows.is_read(p.pid) and p.pid in read for p in running.values())

            windows, _ = run_tool("-p", "-r", root, until=enough)
            recorder.signal(signal.SIGINT)
            result = recorder.finish(timeout=60, check=0)
        assert not [name for name, program in running.items() if program.p.poll() is not None], [name for name, program in running.items() if program.p.poll() is not None]
        agent = {name: windows.last(program.pid) for name, program in running.items()}
    print(result.err)
    recorded = labels_of(path)
    same = 0
    for name, program in running.items():
        last = recorded[program.pid][-1]
        ours = {key: last[key] for key in LABELS if key in last}
        print(f"  {name}: {ours}")
        assert ours == {key: value for key, value in agent[name].items() if key in LABELS}, (name, ours, agent[name])
        same += 1
    assert same == 40
    assert SECRET.encode() not in e.read(path, "rb")
    check_reports(path, running, recorded)
    check_titles(path, running)


e.main(globals())
