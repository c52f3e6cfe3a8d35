#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Programs on a file system that answers its user alone (AppImage, rootless podman): read with that user's ids, or said why not."""
import contextlib
import os
import re
import shutil
import stat
import tempfile

from libe2e import SYSPROF, Background, Skip, fixture, folded, has_chain, long, main, need_root, run, share, sysprof, wait_for

TENANT = 65534  # fusermount wants a name
AS_TENANT = ("setpriv", f"--reuid={TENANT}", f"--regid={TENANT}", "--clear-groups")
# as an agent that may not become another user
WITHOUT_IDS = ("setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-all")
CHAIN = "main", "outer", "middle", "inner", "leaf"


@contextlib.contextmanager
def fuse_for_all():
    """/dev/fuse as it is on most machines."""
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse")
    mode = stat.S_IMODE(os.stat("/dev/fuse").st_mode)
    os.chmod("/dev/fuse", 0o666)
    try:
        yield
    finally:
        os.chmod("/dev/fuse", mode)


@contextlib.contextmanager
def program_below(server):
    """A program of the tenant's, in a mount that the shell text `server` makes from lower, upper and work at `mnt`."""
    need_root()
    for needed in ("bindfs", "fuse-overlayfs", "fusermount3"):
        if not shutil.which(needed):
            raise Skip(f"no {needed}")
    with fuse_for_all(), tempfile.TemporaryDirectory(dir="/tmp") as top:
        os.chmod(top, 0o755)
        for name in ("lower", "upper", "work", "mnt"):
            os.mkdir(os.path.join(top, name))
            os.chown(os.path.join(top, name), TENANT, TENANT)
        shutil.copy(fixture("chain"), os.path.join(top, "lower", "chain"))
        ready = os.path.join(top, "upper", "ready")
        script = f"cd {top} && {server} && touch upper/ready && exec mnt/chain 60"
        with Background(*AS_TENANT, *(("unshare", "-Urm") if "overlay" in server else ()), "sh", "-c", script) as shell:
            try:
                wait_for(lambda: os.path.exists(ready) and os.readlink(f"/proc/{shell.pid}/exe").endswith("/chain"), what="the program")
                yield shell.pid, top
            finally:
                shell.p.kill()
                shell.p.wait()
                run(*AS_TENANT, "fusermount3", "-u", "-z", os.path.join(top, "mnt"))


def check_whole(server):
    with program_below(server) as (pid, top):
        path = os.path.join(top, "whole.folded")
        sysprof("record", "-F", "499", "-d", "2", "-o", path, "-p", pid, check=0)
        found = share(folded(path), lambda f: has_chain(f, *CHAIN))
        reported = run(SYSPROF, "check", "-p", pid).out
        print(f"  {found:.3f} named and whole")
        assert found > 0.9
        assert re.search(r"ok +\S*/mnt/chain\n +CFI, symbols", reported), reported


@long
def test_mounted_by_the_user():
    check_whole("bindfs --no-allow-other lower mnt")


@long
def test_in_a_user_namespace():
    check_whole("fuse-overlayfs -o lowerdir=lower,upperdir=upper,workdir=work mnt")


@long
def test_without_the_right_to_be_the_user():
    with program_below("bindfs --no-allow-other lower mnt") as (pid, top):
        path = os.path.join(top, "none.folded")
        err = run(*WITHOUT_IDS, SYSPROF, "record", "-F", "499", "-d", "1", "-o", path, "-p", pid, check=0).err
        reported = run(*WITHOUT_IDS, SYSPROF, "check", "-p", pid).out
        assert re.search(r"no symbols from 1 file: cannot open the mapped file: permission denied", err), err
        assert re.search(r"no +\S*/mnt/chain\n +Permission denied", reported), reported


if __name__ == "__main__":
    main(globals())
