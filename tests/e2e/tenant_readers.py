#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Files of users who mean harm: those that nobody serves, and those that say that they are others.

The attackers are unprivileged, in user namespaces of their own where that helps them. Beside them runs a victim,
whose stacks must be whole and whose names must be right.
"""
import os
import shutil
import signal
import time

from libe2e import (SYSPROF, Background, Fixture, as_user, comm_of, firefox_threads, fixture, folded,
                    fuse_device, has_chain, main, need_root, place_of, read, run, scratch, share, started_sampling,
                    wait_for, write)

ATTACKER = 23456
CHAIN = "outer", "middle", "inner", "leaf"
MAPPER = """
import mmap, os, sys, time
where = int(sys.argv[1])
maps = []
for i in range(where):
    fd = os.open(f"/tmp/perf-{i}.map", os.O_RDONLY)
    maps.append(mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
open("/proc/self/comm", "w").write("mapped")
while True:
    sum(range(50000)), time.sleep(0.01)
"""


def record_beside(seconds, *outputs):
    """The whole system, with a victim that starts while it is recorded."""
    with Background(SYSPROF, "record", "-a", "-d", seconds, "-F", 499, *(word for path in outputs for word in ("-o", path)),
                    start_new_session=True) as recorder:
        time.sleep(1.2)
        with Fixture("chain", seconds + 20):
            begin = time.monotonic()
            try:
                result = recorder.finish()
            finally:
                print(f"  ended {time.monotonic() - begin:.1f} s later")
    assert result.status == 0, result
    return result


def victim_is_whole(path):
    """But for its first moments: on a busy host its table is some 50 ms late, with or without an attacker."""
    rows = [row for row in folded(path) if row[0][0] == "chain"]
    whole = share(rows, lambda f: has_chain(f, *CHAIN))
    print(f"  {whole:.4f} of the victim's {sum(n for _, n in rows)} samples are whole")
    assert whole >= 0.9, [row for row in rows if not has_chain(row[0], *CHAIN)][:5]


def silent_file(operation):
    """A user maps files of a file system of his that has stopped to answer."""
    need_root()
    place, path = place_of(ATTACKER), scratch("silent.folded")
    server = [fixture("silentfs"), "-w", operation, fuse_device(), place, "/usr/bin/python3", "-c", MAPPER, 20]
    try:
        with Background(*as_user(ATTACKER), *server) as attacker:
            wait_for(lambda: comm_of(attacker.pid) == "mapped", what="the mappings")
            result = record_beside(4, path)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert any(f"left out: user {ATTACKER}: " in line and "no answer" in line for line in result.err.splitlines()), result
    victim_is_whole(path)
    assert any(row[0][0] == "mapped" for row in folded(path)), "the attacker is seen"


def test_read_that_is_not_answered():
    silent_file("read")


def test_another_one_with_this_build_id():
    """A copy of a program with other names and the same build-id, which is seen first: its names are its own."""
    need_root()
    place, path = place_of(ATTACKER), scratch("forged.json.gz")
    forged = os.path.join(place, "chain")
    program = read(fixture("chain"), "rb")
    write(forged, with_other_names(program))
    os.chmod(forged, 0o755)
    os.chown(forged, ATTACKER, ATTACKER)
    try:
        with Background(*as_user(ATTACKER), forged, "30") as attacker:
            wait_for(lambda: os.path.exists(f"/proc/{attacker.pid}/exe") and
                     os.readlink(f"/proc/{attacker.pid}/exe") == forged, what="the attacker")
            record_beside(4, path)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    wrong = {True: 0, False: 0}
    for thread in firefox_threads(path):
        if thread.process != "chain":
            continue
        is_attacker = thread.pid == attacker.pid
        names = [{name for name, _ in frames} for _, frames in thread.samples()]
        own, others = (name_set(str.upper), set(CHAIN)) if is_attacker else (set(CHAIN), name_set(str.upper))
        named = sum(bool(seen & own) for seen in names)
        wrong[is_attacker] = sum(bool(seen & others) for seen in names)
        print(f"  {'attacker' if is_attacker else 'victim'}: {named} of {len(names)} samples have its own names, "
              f"{wrong[is_attacker]} the other's")
        assert named >= 0.9 * len(names) > 10, names[:5]
    assert wrong == {True: 0, False: 0}, wrong


# in namespaces of his own, where nobody else has the file: one with the very number of the other's
TWIN = """
import os, shutil, subprocess, sys
place, program, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(program, "rb") as f:
    data = f.read()
subprocess.run(["mount", "-t", "tmpfs", "twin", place], check=True)
for i in range(100000):
    path = f"{place}/program"
    open(path, "wb").close()
    if os.stat(path).st_ino == number:
        break
    os.rename(path, f"{place}/{i}")
with open(path, "wb") as f:
    f.write(data)
os.chmod(path, 0o755)
os.execv(path, [path, "60"])
"""


def with_other_names(program):
    for name in CHAIN:
        program = program.replace(name.encode() + b"\0", name.upper().encode() + b"\0")
    return program


def bare_programs():
    """Without a build-id: its own names, and others."""
    bare, other = scratch("bare"), scratch("other")
    run("objcopy", "--remove-section=.note.gnu.build-id", fixture("chain"), bare, check=0)
    with open(bare, "rb") as f, open(other, "wb") as out:
        out.write(with_other_names(f.read()))
    os.chmod(other, 0o755)
    return bare, other


def test_a_dead_program_and_its_twin():
    """
    A program without a build-id is gone, and so is its file, before anybody has looked at it. A tenant's has the same
    name below another root, and the same inode number.
    """
    need_root()
    bare, other = bare_programs()
    place, path = scratch("dead"), scratch("dead.json.gz")
    os.mkdir(place)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "dead", place, check=0)
    program = f"{place}/program"
    try:
        shutil.copy(bare, program)
        twin = [*as_user(ATTACKER), "unshare", "-Urm", "/usr/bin/python3", "-c", TWIN, place, other, os.stat(program).st_ino]
        recording = scratch("dead.sysprof")
        with Background(*twin) as attacker:
            wait_for(lambda: comm_of(attacker.pid) == "program", what="the twin")
            with Background(SYSPROF, "record", "-a", "-d", 3, "-F", 999, "-o", path, "-o", recording) as recorder:
                started_sampling(recorder, recording)
                recorder.signal(signal.SIGSTOP)
                with Background(program, "0.2") as victim:
                    victim.finish(check=0)
                os.unlink(program)
                recorder.signal(signal.SIGCONT)
                recorder.finish(timeout=60, check=0)
    finally:
        run("umount", "-l", place)
    named = {attacker.pid: 0, victim.pid: 0}
    counts = dict(named)
    for thread in firefox_threads(path):
        if thread.process == "program" and thread.pid in named:
            samples = [{name for name, _ in frames} for _, frames in thread.samples()]
            counts[thread.pid] += len(samples)
            named[thread.pid] += sum(bool(seen & name_set(str.upper)) for seen in samples)
    print(f"  with the twin's names: {named[attacker.pid]} of its own {counts[attacker.pid]} samples, "
          f"{named[victim.pid]} of the other's {counts[victim.pid]}")
    assert named[attacker.pid] >= 10 and counts[victim.pid] >= 10 and not named[victim.pid], (named, counts)


def name_set(form):
    return {form(name) for name in CHAIN}


if __name__ == "__main__":
    main(globals())
