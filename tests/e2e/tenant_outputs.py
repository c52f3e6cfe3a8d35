#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Root writes profiles where another user has prepared the names: nothing of root's is overwritten, and nobody
can keep a profile from being written."""
import os
import re
import stat
import time

from libe2e import (SYSPROF, Background, Fixture, folded, load_json, main, need_root, scratch, started_sampling,
                    sysprof, total, wait_for, write)

NOBODY = 65534
WARNING = "other users can replace files in"
LIMIT = 120
count = 0


def directory(owner=NOBODY, mode=0o755):
    global count
    count += 1
    path = scratch(f"outputs{count}")
    os.mkdir(path)
    os.chmod(path, mode)
    os.chown(path, owner, owner)
    return path


class Victim:
    """A file of root's, and a name beside it where nothing is."""

    def __init__(self):
        self.place = directory(owner=0)
        self.path, self.none = os.path.join(self.place, "victim"), os.path.join(self.place, "none")
        write(self.path, "kept")

    def assert_untouched(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            assert f.read(100) == "kept", f"{self.path} was overwritten"
        assert os.listdir(self.place) == ["victim"], os.listdir(self.place)


def link(target, path):
    """As the other user makes it."""
    os.symlink(target, path)
    os.lchown(path, NOBODY, NOBODY)


def is_regular(path):
    return stat.S_ISREG(os.lstat(path).st_mode)


def threads_of(chain):
    chain.wait_facts("tid", 3)
    return [int(t) for t in os.listdir(f"/proc/{chain.pid}/task")]


def siblings(path, chain):
    return [os.path.join(path, f"out.{chain.pid}-{tid}.cpuprofile") for tid in threads_of(chain)]


def test_links_under_the_names_of_siblings():
    """One file for each thread, of which the user named only the first."""
    need_root()
    victim = Victim()
    with Fixture("chain", "-t", "3", "60") as chain:
        for mode in 0o755, 0o1777:
            path = directory(mode=mode)
            names = siblings(path, chain)
            for i, name in enumerate(names):
                link(victim.none if i == 1 else victim.path, name)
            sysprof("record", "-p", chain.pid, "-d", "0.6", "-o", f"{path}/out.cpuprofile", "-o",
                    f"{path}/out.sysprof", check=0, timeout=LIMIT)
            victim.assert_untouched()
            # one of the threads has the first file, and its link is still there
            written = [name for name in names if is_regular(name)]
            assert len(written) >= 2, os.listdir(path)
            for name in written:
                assert load_json(name)["samples"], name
            assert is_regular(f"{path}/out.cpuprofile")
            os.unlink(f"{path}/out.cpuprofile")
            sysprof("convert", f"{path}/out.sysprof", "-o", f"{path}/out.cpuprofile", check=0)
            victim.assert_untouched()


def test_link_under_the_default_name():
    need_root()
    victim = Victim()
    for target in victim.path, victim.none:
        path = directory()
        link(target, f"{path}/sysprof.json.gz")
        result = sysprof("record", "--", "true", check=0, cwd=path, timeout=LIMIT)
        victim.assert_untouched()
        assert is_regular(f"{path}/sysprof.json.gz"), os.listdir(path)
        load_json(f"{path}/sysprof.json.gz")
        assert WARNING in result.err, result


def test_what_the_user_named_in_a_directory_for_all():
    """Of everybody's links and pipes in such a directory only our own are used, whatever the kernel allows."""
    need_root()
    victim, path = Victim(), directory(owner=0, mode=0o1777)
    link(victim.path, f"{path}/link.folded")
    link(victim.none, f"{path}/dangling.folded")
    os.mkfifo(f"{path}/fifo.folded")
    os.chown(f"{path}/fifo.folded", NOBODY, NOBODY)
    for name in "link", "dangling", "fifo":
        result = sysprof("record", "-o", f"{path}/{name}.folded", "--", "true", timeout=LIMIT)
        assert result.status == 1 and "cannot create" in result.err, result
        assert "links and pipes of other users" in result.err, result
        victim.assert_untouched()
    os.lchown(f"{path}/dangling.folded", 0, 0)
    sysprof("record", "-o", f"{path}/dangling.folded", "--", SYSPROF, "--version", check=0,
            timeout=LIMIT)
    assert os.path.islink(f"{path}/dangling.folded") and is_regular(victim.none)


def test_names_that_are_taken_while_recording():
    """A link or a pipe that comes under the name later is replaced, and beside a directory there is another name."""
    need_root()
    victim, path = Victim(), directory(owner=0, mode=0o1777)
    with Fixture("chain", "-t", "3", "60") as chain:
        names = siblings(path, chain)
        with Background(SYSPROF, "record", "-p", chain.pid, "-d", "1", "-o", f"{path}/x.sysprof",
                        "-o", f"{path}/out.cpuprofile", "-o", f"{path}/out.folded", "-o",
                        f"{path}/out.txt", "-o", f"{path}/out.json.gz") as recorder:
            started_sampling(recorder, f"{path}/x.sysprof")
            link(victim.path, f"{path}/out.cpuprofile")
            link(victim.none, f"{path}/out.txt")
            os.mkfifo(f"{path}/out.folded")
            for name in [*names, f"{path}/out.json.gz"]:
                os.mkdir(name)
            result = recorder.finish(timeout=LIMIT, check=0)
    victim.assert_untouched()
    for name in "out.cpuprofile", "out.txt", "out.folded":
        assert is_regular(f"{path}/{name}"), name
    load_json(f"{path}/out.cpuprofile")
    assert total(folded(f"{path}/out.folded")) > 0
    reported = re.findall(r"(\S+) is a directory: wrote (\S+)", result.err)
    assert len(reported) >= 3 and f"{path}/out.json.gz" in {name for name, _ in reported}, result
    for name, other in reported:
        stem, dot, suffix = os.path.basename(name).partition(".json.gz" if "json" in name else ".cpuprofile")
        assert re.fullmatch(re.escape(stem) + r"-\w{8}" + re.escape(dot + suffix), os.path.basename(other)), reported
        load_json(other)
    assert not [n for n in os.listdir(path) if n.startswith(".")], os.listdir(path)


def test_recording_whose_name_becomes_a_directory():
    """The recording gets its name when it has begun: another user may be quicker."""
    need_root()
    for _ in range(10):
        path = directory(owner=0, mode=0o1777)
        with Background(SYSPROF, "record", "-d", "1", "-a", "-o", f"{path}/x.sysprof") as recorder:
            wait_for(lambda there=path: os.listdir(there), LIMIT, "the recording's temporary name")
            time.sleep(0.05)
            os.mkdir(f"{path}/x.sysprof")
            result = recorder.finish(timeout=LIMIT)
        # the first such name is there to see whether it can be: if that was still so, it is said at once
        if "cannot create" not in result.err:
            break
    reported = re.search(r"x\.sysprof is a directory: wrote (\S+)", result.err)
    assert reported and re.fullmatch(r"x-\w{8}\.sysprof", os.path.basename(reported[1])), result
    assert result.status == 0 and f"sysprof report {reported[1]}" in result.err, result
    sysprof("report", reported[1], check=0)


def test_directory_is_swapped_while_recording():
    need_root()
    victim, above = Victim(), directory()
    os.mkdir(f"{above}/d")
    with Background(SYSPROF, "record", "-a", "-d", "1", "-o", f"{above}/x.sysprof", "-o",
                    f"{above}/d/none.folded") as recorder:
        started_sampling(recorder, f"{above}/x.sysprof")
        os.rename(f"{above}/d", f"{above}/moved")
        link(victim.place, f"{above}/d")
        result = recorder.finish(timeout=LIMIT)
    victim.assert_untouched()
    assert result.status == 1 and "cannot finish" in result.err, result
    assert not os.listdir(f"{above}/moved"), os.listdir(f"{above}/moved")


def test_directories_of_others_are_named():
    need_root()
    good, sticky = directory(owner=0), directory(owner=0, mode=0o1777)
    others, everybody = directory(), directory(owner=0, mode=0o777)
    for path, warned in (good, 0), (sticky, 0), (others, 1), (everybody, 1):
        result = sysprof("record", "-o", f"{path}/x.sysprof", "-o", f"{path}/x.folded", "-o",
                         f"{path}/x.json", "--", SYSPROF, "--version", check=0, timeout=LIMIT)
        lines = [line for line in result.err.splitlines() if WARNING in line]
        assert len(lines) == warned and all(path in line for line in lines), result
        result = sysprof("convert", f"{path}/x.sysprof", "-o", f"{path}/x.txt", check=0)
        assert result.err.count(WARNING) == warned, result
    # it is that of the user who called sudo
    result = sysprof("record", "-o", f"{others}/x.folded", "--", SYSPROF, "--version", check=0,
                     timeout=LIMIT, env={**os.environ, "SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)})
    assert WARNING not in result.err, result


if __name__ == "__main__":
    main(globals())
