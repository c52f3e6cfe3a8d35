#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""
Unwind tables that are kept: the second recording reads what the first one built, and walks the same
stacks; a cache that is damaged, foreign or full changes nothing but the time it takes.

Each recording runs in a mount namespace of its own with a cache of this test's, so that it finds
nothing of others and leaves nothing to them.
"""
import os
import re
import shutil

from libe2e import SYSPROF, common_functions, folded, long, main, need_root, run, scratch

CACHE = "sysprof/unwind-tables"
WHAT = "unwind tables: .*; (\\d+) built and (\\d+) read from the cache"

# bash has 17,000 rows, libc 23,000; both work long enough that their tables are built while they run
WORK = ("bash", "-c", "for ((i = 0; i < 300000; i++)); do :; done")


class Reported:
    """What a recording said of its tables."""

    def __init__(self, text):
        match = re.search(WHAT, text)
        assert match, text
        self.built, self.cached = (int(n) for n in match.groups())

    def __repr__(self):
        return f"{self.built} built, {self.cached} read"


def recorded(home, *options, mount='mount --bind "$HOME" /var/cache', after=""):
    """One recording of WORK with its caches in `home`: what it said, all of it, and its folded stacks."""
    need_root()
    os.makedirs(home, exist_ok=True)
    out = scratch("stacks.folded")
    result = run("unshare", "-m", "sh", "-c", f'{mount} && "$@" && {after or ":"}', "sh",
                 SYSPROF, "record", "-F", 499, *options, "-o", out, "--", *WORK, check=0,
                 env={**os.environ, "HOME": home})
    return Reported(result.err), result.out, folded(out)


def fresh(name):
    home = scratch(name)
    shutil.rmtree(home, ignore_errors=True)
    return home


def kept(home):
    directory = os.path.join(home, CACHE)
    return sorted(os.path.join(directory, name) for name in os.listdir(directory))


def test_second_recording_reads():
    home = fresh("second")
    first, _, stacks = recorded(home)
    files = kept(home)
    assert first.built > 0 and first.cached == 0, first
    assert files and all(os.stat(path).st_mode & 0o777 == 0o600 for path in files)
    second, _, again = recorded(home)
    print(f"first {first}, second {second}")
    assert second.cached >= len(files), f"{len(files)} kept, {second}"
    first_names, names = (common_functions(rows, 1 / 50) for rows in (stacks, again))
    assert len(first_names & names) > 2 and len(first_names & names) >= len(first_names) / 2, f"{first_names} {names}"


def test_not_wanted():
    home = fresh("unwanted")
    reported, _, _ = recorded(home, "--no-symbol-cache")
    assert reported.built > 0 and reported.cached == 0, reported
    assert not os.path.exists(os.path.join(home, CACHE))
    recorded(home)
    assert kept(home)
    reported, _, _ = recorded(home, "--no-symbol-cache")
    assert reported.built > 0 and reported.cached == 0, reported


def test_damaged():
    home = fresh("damaged")
    recorded(home)
    files = kept(home)
    assert len(files) > 1, files
    for number, path in enumerate(files):
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            if number % 2:
                f.truncate()
            else:
                f.write(bytes(64 * [0xa5]))
    reported, _, _ = recorded(home)
    assert reported.built > 0 and reported.cached == 0, reported
    assert kept(home), "nothing was written again"
    reported, _, _ = recorded(home)
    assert reported.cached > 0, reported


@long
def test_foreign_directory():
    home = fresh("foreign")
    recorded(home)
    directory = os.path.join(home, CACHE)
    for change in (lambda: os.chmod(directory, 0o777), lambda: os.chown(directory, 12345, 12345)):
        change()
        reported, _, _ = recorded(home)
        assert reported.built > 0 and reported.cached == 0, reported
        os.chmod(directory, 0o700)
        os.chown(directory, 0, 0)
    reported, _, _ = recorded(home)
    assert reported.cached > 0, reported


def test_full_disk():
    """What does not fit is built each time, and no part of it is left behind."""
    reported, listed, stacks = recorded(fresh("full"), mount="mount -t tmpfs -o size=16k tmpfs /var/cache",
                                    after=f"ls -A /var/cache/{CACHE}")
    assert reported.built > 0 and reported.cached == 0, reported
    assert ".writing-" not in listed, listed
    assert stacks


main(globals())
