#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""Targets in namespaces and roots of their own, and sysprof in a pid namespace."""
import os
import re
import shutil
import signal

from libe2e import (SYSPROF, TOP, Facts, Fixture, Skip, children_of, firefox_threads, fixture, folded, has_chain,
                    kernel_part, long, main, natively, new_scratch, quick, read, record, record_cpu, run, scratch, share, total,
                    wait_for, write)

CHAIN = ("outer", "middle", "inner", "leaf")
IN_PID_NAMESPACE = ["unshare", "-p", "-f", "--kill-child", "--mount-proc"]
# the new root, then the command in it; the host's root is gone there
PIVOT = """
mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1" && mkdir -p old &&
mount -t proc proc proc && pivot_root . old && umount -l old && shift && exec "$@"
"""


def assert_chain(result, path, comm):
    """Nine in ten: recordings are short, and a collector that comes late misses the first stacks of a process.
    Those that were cut because a table was not there yet are counted by the summary, and do not count here."""
    rows = [(frames, count) for frames, count in folded(path)
            if frames[0] == comm and not kernel_part(frames)]
    whole = total(rows) * share(rows, lambda f: has_chain(f, *CHAIN))
    late = re.findall(r"(\d+) incomplete: the unwind table of a file was not in memory", result.err)
    assert total(rows) >= 20, (rows, result.err)
    assert whole >= max(1, 0.9 * (total(rows) - sum(map(int, late)))), (late, rows, result.err)


def put(root, path, source):
    """A copy of a file of the host, in a root."""
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)
    return target


def new_root(name, **files):
    """A root directory with a shell and umount, and with programs: name=(path inside, program)."""
    root = scratch(name)
    for directory in "proc", "tmp", "bin":
        os.makedirs(f"{root}/{directory}", exist_ok=True)
    umount = shutil.which("umount")
    for path, program in ("/bin/sh", "/bin/sh"), ("/bin/umount", umount), *files.values():
        put(root, path, program)
        for library in re.findall(r"(/\S+) \(0x", run("ldd", program).out):
            if not os.path.exists(root + library):
                put(root, library, library)
    return root


def in_chroot(root):
    return ["unshare", "-p", "-f", "-m", "--kill-child", "--mount-proc=" + root + "/proc",
            "chroot", root]


def in_pivoted(root):
    return ["unshare", "-p", "-f", "-m", "--kill-child", "sh", "-c", PIVOT, "sh", root]


def only_child(pid):
    (child,) = wait_for(lambda: children_of(pid), what=f"a child of {pid}")
    return child


def without_build_id(name, fixture_name):
    path = scratch(name)
    run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls", "-Wl,--build-id=none", "-o", path,
        os.path.join(TOP, "tests/fixtures", fixture_name + ".c"), "-lpthread", check=0)
    return path


# ---- the target in a container ------------------------------------------------------------------

@natively
@quick
def test_symbols_from_inside_the_targets_root():
    """Its path does not exist on the host, whichever way the root was changed."""
    root = new_root("root", chain=("/opt/app/inside", fixture("chain")))
    for enter in in_chroot, in_pivoted:
        path = scratch("root.folded")
        with Fixture("/opt/app/inside", "-t", "1", "30", wrap=enter(root)) as outer:
            outer.wait_facts("start")
            pid = only_child(outer.pid)
            assert not os.path.exists("/opt/app/inside")
            # the container's first process, then by the one that made it, then everything
            for target in ["-p", pid], ["-p", outer.pid], ["-a", "-F", "499"]:
                assert_chain(record_cpu(pid, 0.5, *target, "-o", path), path, "inside")
        # followed from its first instruction on
        result = record("-o", path, "--", *enter(root), "/opt/app/inside", "0.6")
        assert_chain(result, path, "inside")


@natively
@long
def test_another_file_at_the_same_path_on_the_host():
    """With and without build-ids: the host's file is not taken for the container's."""
    for name, inside, outside in (
            ("with-id", fixture("chain"), fixture("storm")),
            ("without-id", without_build_id("c", "chain"), without_build_id("s", "storm"))):
        place = scratch(name)  # the same for both
        root = new_root(name + "-root", chain=(place + "/app", inside))
        put("", place + "/app", outside)
        for enter in in_chroot, in_pivoted:
            path = scratch("decoy.folded")
            with Fixture(place + "/app", "30", wrap=enter(root)) as outer:
                outer.wait_facts("start")
                result = record_cpu(pid := only_child(outer.pid), 0.5, "-p", pid, "-o", path)
                assert_chain(result, path, "app")
            result = record("-o", path, "--", *enter(root), place + "/app", "0.5")
            assert_chain(result, path, "app")


def test_short_lives_in_a_container():
    root = new_root("short-root", chain=("/opt/brief", fixture("chain")))
    script = "i=0; while [ $i -lt 40 ]; do /opt/brief 0.01; i=$((i+1)); done"
    path, firefox = scratch("short.folded"), scratch("short.json.gz")
    record("-o", path, "-o", firefox, "--", *in_pivoted(root), "/bin/sh", "-c", script)
    brief = [row for row in folded(path) if row[0][0] == "brief"]
    assert share(brief, lambda f: has_chain(f, *CHAIN)) >= 0.5, brief
    unknown = [row for row in brief if row[0][-1] == "[unknown]"]
    assert not unknown, unknown
    processes = [t for t in firefox_threads(firefox) if t.process == "brief" and t.count]
    assert len(processes) >= 36, len(processes)
    for thread in processes:
        libraries = {lib for _, frames in thread.samples() for name, lib in frames
                     if name == "leaf"}
        assert libraries <= {"/opt/brief"}, libraries


@natively
def test_root_on_overlayfs():
    """As containers have it: device numbers of mappings and of files differ there."""
    lower = new_root("lower", chain=("/opt/app/inside", fixture("chain")))
    merged = scratch("merged")
    for name in "upper", "work":
        os.mkdir(scratch(name))
    os.mkdir(merged)
    mount = run("mount", "-t", "overlay", "overlay", "-o",
                f"lowerdir={lower},upperdir={scratch('upper')},workdir={scratch('work')}", merged)
    if mount.status:
        raise Skip(f"no overlayfs here: {mount.err.strip()}")
    try:
        path = scratch("overlay.folded")
        with Fixture("/opt/app/inside", "30", wrap=in_pivoted(merged)) as outer:
            outer.wait_facts("start")
            for target in ["-p", only_child(outer.pid)], ["-a", "-F", "499"]:
                assert_chain(record_cpu(only_child(outer.pid), 0.5, *target, "-o", path), path, "inside")
        result = record("-o", path, "--", *in_pivoted(merged), "/opt/app/inside", "0.5")
        assert_chain(result, path, "inside")
    finally:
        run("umount", merged, check=0)


def test_target_in_a_user_namespace():
    path = scratch("user.folded")
    wrap = ["unshare", "-U", "-r", "-p", "-f", "-m", "--kill-child", "--mount-proc"]
    probe = run(*wrap, "true")
    if probe.status:
        raise Skip(f"no user namespaces here: {probe.err.strip()}")
    with Fixture("chain", "30", wrap=wrap) as outer:
        outer.wait_facts("start")
        result = record_cpu(pid := only_child(outer.pid), 0.5, "-p", pid, "-o", path)
    assert_chain(result, path, "chain")
    result = record("-o", path, "--", *wrap, fixture("chain"), "0.5")
    assert_chain(result, path, "chain")


def test_mount_namespace_that_hides_the_binary():
    """The directory of the binary is covered in the target's namespace, and what is there now is
    another program."""
    place, cover = scratch("covered"), scratch("cover")
    put("", place + "/app", fixture("chain"))
    put("", cover + "/app", fixture("storm"))
    script = (f"{place}/app 60 & until [ /proc/$!/exe -ef {place}/app ]; do sleep 0.01; done; "
              f"mount --bind {cover} {place}; echo covered yes; wait")
    path = scratch("covered.folded")
    with Fixture("/bin/sh", "-c", script, wrap=["unshare", "-m"]) as shell:
        shell.wait_facts("covered")
        app = only_child(shell.pid)
        try:
            result = record_cpu(app, 0.5, "-p", shell.pid, "-o", path)
        finally:
            os.kill(app, signal.SIGKILL)
    assert_chain(result, path, "app")


# ---- sysprof in a pid namespace -----------------------------------------------------------------

# until_sampling FILE: until a recorder has written there that it samples. until_used PID HUNDREDTHS: of a second of CPU time
FUNCTIONS = """
until_sampling() { until grep -aqs sampling_start "$1"; do sleep 0.2; done; }
used() { cut -d ' ' -f 14 "/proc/$1/stat"; }
until_used() { before=$(used "$1"); until [ $(($(used "$1") - before)) -ge "$2" ]; do sleep 0.2; done; }
"""


def inside(script, **options):
    """A shell script as process 1 of a pid namespace; sysprof is $1 there, chain $2, loop $3."""
    return run(*IN_PID_NAMESPACE, "/bin/sh", "-c", FUNCTIONS + script, "sh", SYSPROF, fixture("chain"),
               fixture("loop"), **options)


def test_command_inside():
    """Its children are followed, and all numbers are the namespace's own."""
    path = scratch("inside.json.gz")
    stacks = scratch("inside.folded")
    result = inside(f"""
        "$1" record -o {path} -o {stacks} -- /bin/sh -c '"$0" 0.7 & "$1" 0.7; wait' "$2" "$3" """,
                    check=0)
    pids = {int(row[0]) for row in Facts(result.out).all("pid")}
    assert len(pids) == 2 and max(pids) < 100, pids
    seen = {t.pid: t for t in firefox_threads(path) if t.count >= 20}
    assert set(seen) == pids, seen
    assert {t.process for t in seen.values()} == {"chain", "loop"}
    assert_chain(result, stacks, "chain")


@natively
def test_process_inside():
    """Of the same namespace, and of one below it, with a child to come."""
    for wrap in "", "unshare -p -f --kill-child ":
        path, stacks, recording = new_scratch("inside.json.gz"), new_scratch("inside.folded"), new_scratch("inside.sysprof")
        recorded = new_scratch("recorded")
        result = inside(f"""
            {wrap} /bin/sh -c '"$0" 60 & until [ -e {recorded} ]; do sleep 0.2; done; "$1" 1.2; kill $!; wait' "$2" "$3" &
            target=$!
            echo target $target
            until grep -qsx chain /proc/[0-9]*/comm; do sleep 0.2; done
            "$1" record -p $target -o {path} -o {stacks} -o {recording} &
            until_sampling {recording}
            touch {recorded}
            wait $!""", check=0)
        assert_chain(result, stacks, "chain")
        threads = firefox_threads(path)
        seen = {t.process: t.pid for t in threads if t.count >= 20}
        assert set(seen) == {"chain", "loop"}, seen
        reported = {int(row[0]) for row in Facts(result.out).all("pid")}
        if not wrap:
            assert set(seen.values()) == reported, (seen, reported)
        # in the lower one they are called otherwise than they are called here
        assert max(seen.values()) < 1000, seen
        assert all(thread.pid > 0 for thread in threads), threads


def test_thread_inside():
    path = scratch("inside-tid.json.gz")
    facts = scratch("tids")
    inside(f"""
        "$2" -t 2 60 >{facts} &
        until [ "$(grep -c '^tid ' {facts})" -ge 2 ]; do sleep 0.1; done
        tid=$(sed -n 's/^tid //p' {facts} | tail -n 1)
        "$1" record -t $tid -d 0.6 -o {path}
        status=$?
        kill $!
        exit $status""", check=0)
    tid = int(Facts(read(facts)).all("tid")[1][0])
    assert [t.tid for t in firefox_threads(path) if t.count] == [tid]


def test_whole_system_inside():
    """That is the namespace: what runs outside of it has no number there."""
    path, stacks, recording = scratch("inside-all.json.gz"), scratch("inside-all.folded"), scratch("inside-all.sysprof")
    with Fixture("loop", "30") as outside:
        outside.wait_facts("pid")
        result = inside(f"""
            "$2" 60 & chain=$!
            "$1" record -a -F 499 -o {path} -o {stacks} -o {recording} & recorder=$!
            until_sampling {recording}
            until_used $chain 40
            kill -INT $recorder
            wait $recorder""", check=0)
    threads = firefox_threads(path)
    assert Facts(result.out).number("pid") in {t.pid for t in threads}
    others = {t.process for t in threads if t.count and not t.process.startswith("sysprof")}
    assert others <= {"chain", "sh", "grep", "cut", "sleep"}, others
    assert_chain(result, stacks, "chain")


def test_foreign_proc_is_refused():
    """Without a /proc of the namespace its processes cannot be separated from the host's."""
    path = scratch("refused.json.gz")
    result = run("unshare", "-p", "-f", SYSPROF, "record", "-o", path, "--", fixture("chain"),
                 "0.2", check=1)
    assert "/proc belongs to another pid namespace" in result.err, result
    assert "mount-proc" in result.err, result
    assert "start" not in result.out and not os.path.exists(path), result


@natively
def test_silence_of_a_busy_target_is_an_error():
    """As lxcfs does it, /sys shows one CPU only; the target runs on the other one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU only")
    shown, path, recording = scratch("online"), scratch("silent.json.gz"), scratch("silent.sysprof")
    write(shown, f"{cpus[0]}\n")
    for cpu, status in (cpus[1], 1), (cpus[0], 0):
        # on a host with other work too, it must be busy in that second
        with Fixture("loop", "-c", cpu, "30", wrap=("nice", "-n", "-15")) as loop:
            loop.wait_facts("pid")
            result = run("unshare", "-m", "sh", "-c",
                         f"mount --bind {shown} /sys/devices/system/cpu/online && exec \"$@\"",
                         "sh", SYSPROF, "record", "-p", loop.pid, "-d", "1", "-o", path, "-o",
                         recording, check=status)
        assert os.path.exists(path) == (status == 0), result
        if status:
            assert re.search(r"used [\d.]+ s of CPU", result.err), result
            assert "try:" in result.err, result
            run(SYSPROF, "convert", recording, "-o", scratch("kept.folded"), check=0)


if __name__ == "__main__":
    main(globals())
