#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""In which control group a process was sampled, by what the kernel says (agent_services.c prints it, window by window):
of processes that are moved and end, of groups that are gone at once; and groups that are not sampled at all.
"""
import os
import shutil
import signal

import libe2e as e
from libservices import NOW_AND_THEN, Groups, remove, run_tool, start

BURN = "import time\nwhile True: sum(range(150000)), time.sleep(0.005)"  # a third of a CPU or so
NOT_READ = 0  # FACTS_STATE_NONE
MOMENTS = 25  # groups that live for one


def busy(groups, path):
    """A process that is often on a CPU, in that group."""
    return groups.start(path, "/usr/bin/python3", "-c", BURN)


def cpu_of(pid):
    """Of all its threads, in ns."""
    return int(e.read(f"/proc/{pid}/schedstat").split()[0])


def move(process, group):
    write_pid(group, process.pid)


def write_pid(group, pid):
    e.write(f"{group}/cgroup.procs", str(pid))


def samples_of(window, pid):
    return sum(p["samples"] for p in window["processes"] if p["pid"] == pid)


def cpu_in(windows, pid):
    """ns, over all windows."""
    return sum(p["cpu_ns"] for w in windows.windows for p in w["processes"] if p["pid"] == pid)


def filtered(windows):
    """Filtered ticks, once the groups to filter are known."""
    return sum(w["filtered"] for w in windows.windows[2:])


def check_books(windows):
    """Ticks of a CPU that is idle at the end of a window are reported in the next one."""
    due, counted = (sum(w[key] for w in windows.windows) for key in ("due", "counted"))
    print(f"  ticks: {due} due, {counted} in the books, {filtered(windows)} filtered since")
    assert abs(due - counted) <= 0.02 * due + 100, (due, counted)


def test_groups_that_are_left_out():
    """Their ticks are filtered in the kernel once there was a sample: the window after it is the last that can have one."""
    e.need_root()
    with Groups() as groups:
        running = {name: busy(groups, f"{name}.service") for name in ("out", "within")}
        running["below"] = busy(groups, "out.service/worker")
        windows, _ = run_tool("-x", "unit=out.service",
                              until=lambda w: len(w.windows) > 4 and w.count(running["within"].pid) > 2 and
                              filtered(w) > 100)
    for name in ("out", "below"):
        seen = [samples_of(w, running[name].pid) for w in windows.windows]
        first = next((i for i, count in enumerate(seen) if count), 0)  # late, where others take the CPUs
        print(f"  {name}: {seen} samples")
        assert not any(seen[first + 2:]), (name, seen)
    assert windows.count(running["within"].pid) > 2
    assert filtered(windows) > 100
    check_books(windows)
    # what was sampled before its group was known is left out as well
    for window in windows.windows:
        for service in window["services"]:
            assert service["excluded"] == (service["labels"].get("unit") == "out.service"), service


@e.long
def test_requested_groups():
    """A new one is sampled at once, although others are filtered."""
    e.need_root()
    began, used = [], 0
    with Groups() as groups:
        busy(groups, "other.service")

        def start_late(tool):
            if not began and len(tool.windows.windows) > 2:
                began.append(busy(groups, "wanted@1.service"))

        def enough(w):
            nonlocal used
            used = cpu_of(began[0].pid) if began else 0
            return began and w.count(began[0].pid) > 2 and filtered(w) > 100

        windows, _ = run_tool("-i", "unit=wanted*", meanwhile=start_late, until=enough)
    sampled = cpu_in(windows, began[0].pid)
    print(f"  {sampled / 1e6:.0f} ms of {used / 1e6:.0f} ms are in samples")
    assert sampled > 0.5 * used, (sampled, used)
    assert windows.last(began[0].pid)["service_name"] == "wanted", windows.last(began[0].pid)
    sent = {s["labels"]["service_name"] for w in windows.windows for s in w["services"] if not s["excluded"]}
    assert sent == {"wanted"}, sent
    assert filtered(windows) > 100


@e.long
def test_out_of_a_group_that_is_left_out():
    """What a process used while it was filtered is not in its first sample elsewhere."""
    e.need_root()
    moved = []
    with Groups() as groups:
        process = busy(groups, "out.service")
        target = groups.make("kept.service")
        other_threads = groups.start("out.service", "/usr/bin/python3", "-c", THREADS)

        def move_late(tool):
            # beside other tests it takes a while until there is something that could be counted by mistake
            enough = min(cpu_of(process.pid), cpu_of_process(other_threads.pid)) > 10**9
            count = len(tool.windows.windows)
            if not moved and count > 3 and (enough or count > 23):
                moved.extend((cpu_of(process.pid), cpu_of_process(other_threads.pid)))
                move(process, target)
                move(other_threads, target)

        windows, _ = run_tool("-x", "unit=out.service", meanwhile=move_late,
                              until=lambda w: moved and w.count(process.pid) > 3 and
                              w.windows and samples_of(w.windows[-1], process.pid) and
                              samples_of(w.windows[-1], other_threads.pid))
        used = cpu_of(process.pid), cpu_of_process(other_threads.pid)
    for p, before, after in zip((process, other_threads), moved, used):
        sampled = sum(x["cpu_ns"] for w in windows.windows[3:] for x in w["processes"] if x["pid"] == p.pid)
        print(f"  {before / 1e6:.0f} ms before it was moved, {after / 1e6:.0f} ms in all, {sampled / 1e6:.0f} ms in samples")
        assert windows.last(p.pid)["service_name"] == "kept"
        # what it has used by then is read at the next tick, which may be late, and taken for all of the time in between
        assert sampled <= after - 0.25 * before, (before, after, sampled)


THREADS = """
import threading
threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()
[0 for _ in iter(int, 1)]
"""


def cpu_of_process(pid):
    return sum(cpu_of(f"{pid}/task/{tid}") for tid in os.listdir(f"/proc/{pid}/task"))


def test_processes_that_are_moved_and_end():
    """They count for the group in which they ended, although their /proc is not read in that time."""
    e.need_root()
    moved = []
    with Groups() as groups:
        process = busy(groups, "first.service")
        second = groups.make("second.service")

        def move_and_end(tool):
            if not moved and tool.windows.count(process.pid) > 1:
                moved.append(cpu_of(process.pid))
                move(process, second)
                # until it has run there
                e.wait_for(lambda: cpu_of(process.pid) > moved[0] + 100_000_000, what="100 ms of CPU time")
                process.signal(signal.SIGKILL)

        windows, _ = run_tool(meanwhile=move_and_end, until=lambda w: moved and len(w.windows) > 5)
    seen = [labels["service_name"] for w in windows.windows for labels in windows.of(w, process.pid)]
    print(f"  it was {seen}")
    assert seen[0] == "first" and seen[-1] == "second", seen


def spin_in(group, ns):
    """In a grandchild that is born in the group and uses so much CPU time there; its pid, when it has ended.

    A process that joins the group itself would be outside of it for its first moments, and rightly sampled there.
    """
    its_pid, reported = os.pipe()
    joining = os.fork()
    if not joining:
        try:
            write_pid(group, os.getpid())
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
                os.write(reported, str(pid).encode())
            end = time.thread_time_ns() + ns
            while not pid and time.thread_time_ns() < end:
                pass
        finally:
            os._exit(0)
    os.close(reported)
    os.waitpid(joining, 0)
    return int(e.read(its_pid))


def test_groups_that_are_gone_at_once():
    """As of containers that live for a moment: each one's samples have its own unit."""
    e.need_root()
    groups_of = {}
    with Groups() as groups:
        top = os.path.dirname(groups.make("x"))

        def make_another(tool):
            if len(groups_of) == MOMENTS or not tool.windows.windows:
                return
            group = f"{top}/job{len(groups_of)}.service"
            os.mkdir(group)
            pid = spin_in(group, 30_000_000)
            assert e.wait_for(lambda: remove(group), what=f"the end of {group}")
            groups_of[pid] = os.path.basename(group)

        with start("/usr/bin/python3", "-c", BURN):
            windows, _ = run_tool(meanwhile=make_another, until=lambda w: len(groups_of) == MOMENTS and len(w.windows) > 1)
    units = {pid: windows.last(pid).get("unit", "") for pid in groups_of if windows.count(pid)}
    wrong = {pid: (unit, groups_of[pid]) for pid, unit in units.items() if unit != groups_of[pid]}
    print(f"  {len(units)} of {len(groups_of)} were sampled; wrong: {wrong}")
    assert len(units) > MOMENTS / 2 and not wrong, wrong


def test_programs_that_are_gone_at_once():
    """Hundreds of programs a second, too short-lived to be read: each has a service, its program."""
    e.need_root()
    ran = []
    with Groups() as groups:
        def storm(tool):
            if not ran and tool.windows.windows:
                ran.append(groups.start("stormy", e.fixture("storm"), "-j", "4", "exec", "1500", "300", e.scratch("storm.log")))

        windows, _ = run_tool("-l", "where = cgroup ~ /(stormy)$", meanwhile=storm,
                              until=lambda w: ran and ran[0].p.poll() is not None and len(w.windows) > 2)
    lost = sum(w["sideband_lost"] for w in windows.windows)
    print("  lost records of mappings:", lost)
    lives = [(p["samples"], p["state"], labels) for w in windows.windows for p in w["processes"]
             for labels in [w["services"][p["service"]]["labels"]] if labels.get("where") == "stormy"]
    by_source = {}
    for samples, _, labels in lives:
        by_source[labels["service_source"]] = by_source.get(labels["service_source"], 0) + samples
    print(f"  {len(lives)} programs were sampled, {sum(state == 0 for _, state, _ in lives)} of them were gone "
          f"before they were read; samples by source: {by_source}")
    assert len(lives) > 100 and any(state == 0 for _, state, _ in lives)
    assert "none" not in by_source, by_source
    if lost:  # the host gave the tool no CPU time: its control group or its parent decides
        return
    # but for those that the end of the recording met in their execve
    assert by_source["exe"] > 0.95 * sum(by_source.values()), by_source
    names = {labels["service_name"] for _, _, labels in lives}
    # those that joined the group for it
    assert names - {"sh", "dash", "bash", "busybox", "nice"} == {"storm"}, names


IN_MEMORY = """
import os, sys
fd = os.memfd_create("runc_cloned:/proc/self/exe")
os.write(fd, open("/usr/bin/perl", "rb").read())
os.execve(fd, ["x", "-e", "NOW_AND_THEN"], {})
""".replace("NOW_AND_THEN", NOW_AND_THEN)
FAR_AWAY = """
import os, shutil, sys
os.chdir(sys.argv[1])
for _ in range(25):
    os.mkdir(200 * "d")
    os.chdir(200 * "d")
shutil.copy("/usr/bin/perl", "far")
os.execve("./far", ["x", "-e", "NOW_AND_THEN"], {"DD_SERVICE": "far-away"} if len(sys.argv) > 2 else {})
""".replace("NOW_AND_THEN", NOW_AND_THEN)


@e.long
def test_programs_without_a_file():
    """In memory alone, deleted, with names that are no text, and with paths that are too long for anybody to read."""
    e.need_root()
    top = e.scratch("programs")
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)

    def copy(name):
        path = os.path.join(os.fsencode(top), name)
        shutil.copy("/usr/bin/perl", path)
        return os.fsdecode(path)

    spin = ["-e", NOW_AND_THEN]
    running = {
        "memfd:runc_cloned": start("/usr/bin/python3", "-c", IN_MEMORY),
        "upgraded": start(copy(b"upgraded"), *spin),
        "new_line": start(copy(b"new\nline"), *spin),
        "no__text": start(copy(b"no\xff\xfetext"), *spin),
    }
    for name, more in (("far-away", ["environment"]), ("toolong", [])):
        os.mkdir(f"{top}/{name}")
        running[name] = start("/usr/bin/python3", "-c", FAR_AWAY, f"{top}/{name}", *more)
    try:
        e.wait_for(lambda: os.readlink(f"/proc/{running['upgraded'].pid}/exe").endswith("upgraded"), what="its execve")
        os.unlink(f"{top}/upgraded")
        windows, _ = run_tool(until=lambda w: len(w.windows) > 3 and all(
            w.is_read(p.pid) and w.count(p.pid) > 1 for p in running.values()))
    finally:
        for process in running.values():
            process.__exit__()
        e.run("rm", "-rf", top)
    for name, process in running.items():
        labels = windows.last(process.pid)
        print(f"  {name}: {labels}")
        assert labels["service_name"] == name, (name, labels)
        assert labels["service_source"] == ("env" if name == "far-away" else "exe"), labels


HOSTILE_NAMES = [
    b"\xff\xfe\x80.service", b"\x1b[31m\r\t\x7f.service", b" .service", b".service", b"@.service", b"a" * 247 + b".service",
    b"docker-" + b"f" * 64 + b".scope", b"cri-containerd-" + b"0" * 63 + b"g.scope", b"pod" + b"-" * 36, b"lxc.payload. ",
    b"machine-\\x00\\x0a.scope", b"%s%n%x.service", b"{\"a\":\"b\"}.service", b"x=y,z~w.service", b"_other.service", b"..\xc3",
    b"\xe2\x80\xae.service", b"user@1.service", b"app-\\x2d\\x2d-1.scope", b"kubepods-pod" + b"_" * 32 + b".slice",
]
TEXTS = {
    "newlines": {b"DD_SERVICE": b"\n\n", b"OTEL_SERVICE_NAME": b"a\nb: c\r\n# TYPE"},
    "not text": {b"DD_SERVICE": b"\xff\xfe\xc3(", b"OTEL_RESOURCE_ATTRIBUTES": b"service.name=%ff%00%0a"},
    "much": {b"FILLER%d" % i: b"x" * 100_000 for i in range(10)} | {b"DD_SERVICE": b"y" * 100_000},
    "attributes": {b"OTEL_RESOURCE_ATTRIBUTES": b"service.name" + b"=,%" * 20_000},
}


def memory_of(pid):
    """The most that it has had, in kB."""
    return next(int(line.split()[1]) for line in e.read(f"/proc/{pid}/status").splitlines() if line.startswith("VmHWM:"))


def test_hostile_names_and_environments():
    """Hundreds of groups with names that are no text, look like others or are as long as can be, and what processes say:
    every sample has a service that is a text, and the tool does not grow."""
    e.need_root()
    memory, pids = [], []
    with Groups() as groups:
        top = os.fsencode(groups.make("x"))
        below = top
        for i, name in enumerate(HOSTILE_NAMES + [b"g%d.service" % i for i in range(200)]):
            group = os.path.join(below if i % 4 else top, name)
            os.mkdir(group)
            groups.made.append(os.fsdecode(group))
            if i < 20:
                below = group if i < 8 else below
                environment = list(TEXTS.values())[i % len(TEXTS)]
                pids.append(spawn_in(group, environment))

        try:
            for pid in pids:
                e.wait_for(lambda: e.comm_of(pid) == "dash", what="its execve")  # pylint: disable=cell-var-from-loop
            windows, _ = run_tool(meanwhile=lambda tool: memory.append(memory_of(tool.pid)), until=lambda w: len(w.windows) > 3 and
                                  sum(w.is_read(pid) for pid in pids) == len(pids))
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    assert not any(windows.last(pid)["service_source"] == "none" for pid in pids)
    # others, too, but for those that were sampled in their execve alone and then gone, of parents that were never sampled
    nameless = [p for w in windows.windows for p in w["processes"]
                if w["services"][p["service"]]["labels"]["service_source"] == "none"]
    lost = sum(w["sideband_lost"] for w in windows.windows)  # the host gave the tool no CPU time: others may have no name then
    print("  lost records of mappings:", lost, "without a name:", nameless)
    assert lost or all(p["state"] == NOT_READ for p in nameless), nameless
    names = {windows.last(pid)["service_name"] for pid in pids}
    print(f"  {len(pids)} processes, {max(memory) // 1024} MB at most; services: {sorted(name[:40] for name in names)}")
    assert max(len(name.encode()) for name in names) <= 255
    assert "a_b: c_# TYPE" in {name.replace("__", "_") for name in names}, names


def spawn_in(group, environment):
    """Runs now and then there."""
    pid = os.fork()
    if pid:
        return pid
    try:
        e.write(os.path.join(group, b"cgroup.procs"), str(os.getpid()))
        os.execve("/bin/dash", [b"dash", b"-c", b"while :; do n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done; sleep 1; done"],
                  environment | {b"PATH": b"/usr/bin:/bin"})
    finally:
        os._exit(1)


e.main(globals())
