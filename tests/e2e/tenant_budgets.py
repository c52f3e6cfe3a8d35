#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The books of the outside: who goes over a budget is named, with what was left of his and why.

Three unprivileged users at one time: one whose files are too large, one whose files do not answer, and one beside them
whose files are read as if nobody else were there.
"""
import json
import os
import platform
import shutil
import stat
import struct

from libe2e import (SYSPROF, Background, Skip, as_user, comm_of, firefox_threads, fixture, has_chain, load_json, main,
                    need_root, run, scratch, share, wait_for)

PAGE, MB = 4096, 1 << 20
GREEDY, SILENT, VICTIM = 34561, 34562, 34563
COPIES = 256  # MB that a user's files may take as copies in memory
CHAIN = "outer", "middle", "inner", "leaf"
LOOP = b"\xeb\xfe\x90\x90" * (PAGE // 4)

# What is not on a disk or in memory that root has mounted is copied: below an overlayfs of the user's, say.
OVERLAY = 'mount -t overlay overlay -o lowerdir="$1:$2" "$3" && shift 3 && exec "$@"'
MAPPER = """
import mmap, os, sys, time
maps = []
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    maps.append(mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
open("/proc/self/comm", "w").write("mapped")
while True:
    sum(range(50000)), time.sleep(0.01)
"""
SILENT_FILES = 6


class Place:
    """A directory of the user's, which is seen from everywhere."""

    def __init__(self, uid):
        self.uid, self.path = uid, f"/dev/shm/sysprof-test-{os.getpid()}-{uid}"

    def __enter__(self):
        os.makedirs(self.path)
        os.chown(self.path, self.uid, self.uid)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def directory(self, name):
        path = os.path.join(self.path, name)
        os.mkdir(path)
        os.chown(path, self.uid, self.uid)
        return path

    def program(self, name, megabytes=0):
        """A copy of a program, with so much more behind it."""
        path = os.path.join(self.path, name)
        shutil.copy(fixture("chain"), path)
        with open(path, "ab") as f:
            for _ in range(megabytes):
                f.write(os.urandom(PAGE) * (MB // PAGE))
        os.chown(path, self.uid, self.uid)
        os.chmod(path, 0o755)
        return path

    def endless_frames(self, name):
        """A file with 80 MB of .eh_frame, which is a hole: how much there is says its header."""
        path, size = os.path.join(self.path, name), 80 * MB
        frames, names = 2 * PAGE, b"\0.eh_frame\0.shstrtab\0"
        end = frames + size
        sections = [(0, 0, 0, 0, 0, 0), (1, 1, 2, frames, frames, size), (11, 3, 0, 0, end, len(names))]
        with open(path, "wb") as f:
            f.write(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, end + PAGE, 0, 64, 56, 1, 64,
                                                                    len(sections), 2))
            f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, PAGE))
            f.seek(PAGE)
            f.write(LOOP)
            f.seek(end)
            f.write(names)
            f.seek(end + PAGE)
            for name_at, kind, flags, address, offset, length in sections:
                f.write(struct.pack("<IIQQQQIIQQ", name_at, kind, flags, address, offset, length, 0, 0, 8, 0))
        os.chown(path, self.uid, self.uid)
        return path


def greedy(place):
    """Maps two files of which either may be copied, but not both, and one that takes too much to describe."""
    lower, other, merged = (place.directory(name) for name in ("lower", "other", "merged"))
    for name in "first", "second":
        os.rename(place.program(name, COPIES * 5 // 8), os.path.join(lower, name))
    endless = place.endless_frames("endless")
    return Background(*as_user(GREEDY), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", OVERLAY, "sh", lower, other,
                      merged, "/usr/bin/python3", "-c", MAPPER, f"{merged}/first", f"{merged}/second", endless)


def silent(place):
    """Maps files of a file system of his that does not answer."""
    device = scratch("fuse")
    if not os.path.exists(device):
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
        os.chmod(device, 0o666)
    mapper = MAPPER.replace("sys.argv[1:]", f"[f'/tmp/perf-{{i}}.map' for i in range({SILENT_FILES})]")
    return Background(*as_user(SILENT), fixture("silentfs"), "-w", "read", device, place.path, "/usr/bin/python3", "-c", mapper)


def book_of(path):
    """{(user, what, reason): count}, as the report has it, which replays the recording."""
    rows = json.loads(run(SYSPROF, "report", "--json", path, check=0).out)["summary"]["outside"]
    for row in rows:
        assert row["count"] > 0 and row["since"] >= 0 and row["unit"] in row["text"], row
        assert f" {row['count']} {row['unit']} {'late' if row['waited'] else 'left'} " in row["text"], row
    return {(row["user"], row["what"], row["reason"]): row["count"] for row in rows}


def firefox_book(path):
    """The rows of these users as a Firefox file says them among the losses, which has a marker for each."""
    profile = load_json(path)
    losses = next(s["entries"] for s in profile["meta"]["extra"] if s["label"] == "Losses")
    rows = sorted(e["value"] for e in losses if e["label"] == "Left outside")
    markers = sorted(data["text"] for thread in profile["threads"] for data in thread["markers"]["data"]
                     if data and data["type"] == "LeftOut")
    assert rows == markers, (rows, markers)
    return rows


def victim_is_named(path, pid):
    """Its file was read: its names are there, and its stacks are whole as soon as there was a CPU to make its table on."""
    stacks = [[name for name, _ in frames] for thread in firefox_threads(path) if thread.pid == pid for _, frames in thread.samples()]
    rows = [(names, 1) for names in stacks]
    named = share(rows, lambda names: names[-1] in CHAIN)
    whole = share(rows, lambda names: has_chain(names, *CHAIN))
    print(f"  of the victim's {len(rows)} samples {named:.4f} have its names, {whole:.4f} are whole")
    assert named >= 0.9 and whole > 0, stacks[:5]


def record_tenants(recording, live):
    with Place(GREEDY) as large, Place(SILENT) as dumb, Place(VICTIM) as whole, greedy(large) as one, silent(dumb) as two:
        for process in one, two:
            wait_for(lambda p=process: comm_of(p.pid) == "mapped", what="the mappings")
        with Background(*as_user(VICTIM), whole.program("victim"), "60") as victim:
            targets = ",".join(str(process.pid) for process in (one, two, victim))
            result = run(SYSPROF, "record", "-p", targets, "-d", "5", "-F", "499", "-o", recording, "-o", live)
    assert result.status == 0, result
    return result, victim.pid


def test_books():
    need_root()
    if platform.machine() != "x86_64":
        raise Skip("these files are for x86-64")
    recording, live, replayed = scratch("budgets.sysprof"), scratch("live.json.gz"), scratch("replayed.json.gz")
    for _ in range(4):
        result, victim = record_tenants(recording, live)
        book = book_of(recording)
        print(f"  {book}")
        # what would have been too much may be too slow already on a busy machine
        if not any(user == GREEDY and reason == "too-slow" for user, _, reason in book):
            break
    mine = {key: count for key, count in book.items() if key[0] in (GREEDY, SILENT, VICTIM)}
    # two may cost him a second each; the readers that replace slow ones can be at his files by then
    assert mine.pop((SILENT, "files", "no-answer")) in range(2, 9), book
    # how often what is his is asked for again does not depend on him alone
    assert mine.pop((SILENT, "files", "banned")) >= SILENT_FILES - 2, book
    mine.pop((SILENT, "process-maps", "banned"), None)
    mine.pop((SILENT, "runtimes", "banned"), None)  # his program is a Python
    mine.pop((SILENT, "facts", "banned"), None)
    for key in (GREEDY, "file-copies", "user"), (GREEDY, "tables", "itself"):
        assert mine.pop(key, 0) == 1, (key, book)
    # on a busy machine something may have waited for its turn
    assert all(reason in ("too-often", "too-slow") for _, _, reason in mine), book
    for user, words in (GREEDY, "over what a user may have"), (GREEDY, "too much by itself"), (SILENT, "no answer"):
        assert any(f"left out: user {user}: " in line and words in line for line in result.err.splitlines()), result.err
    run(SYSPROF, "convert", recording, "-o", replayed, check=0)
    reported = firefox_book(live)
    assert reported == firefox_book(replayed) and len(reported) == len(book), (reported, book)
    assert any(row.startswith(f"user {GREEDY}: 1 files left") for row in reported), reported
    victim_is_named(live, victim)


if __name__ == "__main__":
    main(globals())
