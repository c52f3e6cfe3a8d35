#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
Indexes of modules between recordings: when reading a program's symbols has cost as much as an index would, over several
recordings, one makes it; then no process reads the program any more, and the names are the same.

Each recording runs in a mount namespace of its own with a cache of this test's.
"""
import os
import re
import shutil

from libe2e import SYSPROF, common_functions, folded, main, need_root, run, scratch

WORK = ("bash", "-c", "for ((i = 0; i < 60000; i++)); do [[ $i == 1*7 ]] && printf -v x '%x' $i; done; true")
MADE, READ = r"/bash: index: complete", r"/bash: (\d+) addresses: (\d+) cached, (\d+) to resolve"
MOST = 40  # recordings until there is an index: how many it takes depends on how fast the host reads


def recorded(home):
    """(did it make an index of bash?, how many of its addresses did a process read?, its hot functions)"""
    out = scratch("stacks.folded")
    result = run("unshare", "-m", "sh", "-c", 'mount --bind "$HOME" /var/cache && "$@"', "sh", SYSPROF, "record", "-vv",
                 "-F", 999, "-o", out, "--", *WORK, check=0, env={**os.environ, "HOME": home})
    read = re.search(READ, result.err)
    assert read, result.err[-3000:]
    return bool(re.search(MADE, result.err)), int(read[3]), common_functions(folded(out), 1 / 5)


def index_files(home):
    directory = os.path.join(home, "sysprof/symbol-indexes")
    return [os.path.join(directory, name) for name in os.listdir(directory)]


def test_recordings_make_one():
    need_root()
    home = scratch("home")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    made, read, first = recorded(home)
    assert not made and read, "the first recording knows of no cost"
    assert {"main", "execute_command_internal"} <= first, first
    for _ in range(MOST):
        made, read, _ = recorded(home)
        if made:
            break
    assert made, f"no index after {MOST} recordings"
    assert index_files(home) and all(os.stat(path).st_mode & 0o777 == 0o600 for path in index_files(home))
    made, read, names = recorded(home)
    assert not made and not read, f"{read} addresses were read again"
    assert len(names & first) > len(first) * 3 / 4, (names, first)
    for path in index_files(home):
        os.truncate(path, 100)
    made, read, names = recorded(home)
    assert read and len(names & first) > len(first) * 3 / 4, (read, names, first)


if __name__ == "__main__":
    main(globals())
