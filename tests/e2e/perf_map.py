#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside sanitized long
"""sysprof perf-map: the example of the well-known script, its edge cases, and maps of any size and content."""
import os
import random
import stat

from libe2e import long, main, natively, quick, scratch, sysprof, write

RENDER = "LazyCompile:*a.renderDOM /opt/app/node_modules/react-dom/cjs/react-dom-server.node.production.min.js:35"
STREAM = "LazyCompile:*stream.on /opt/app/src/api.js:44"
COUNT = 300000
FOUR = [f"227bbdff8940 1942 {RENDER}", f"227bbdff8940 1942 {RENDER}", f"227bbdff9420 1942 {RENDER}",
        f"227bbdff9420 2a0 {STREAM}"]


def perf_map(*args, status=0):
    place = scratch("here")
    os.makedirs(place, exist_ok=True)
    result = sysprof("perf-map", *args, check=status, cwd=place)
    assert not os.listdir(place), "it left a file behind"
    return result


@quick
def test_find():
    path = write(scratch("four.map"), "\n".join(FOUR) + "\n")
    reported = perf_map("find", path, "227bbdff955b").out
    assert reported.splitlines() == ["Total: 4 entries", "Fresh: 1 entries", "All Matches: 4 entries",
                                 *("  " + line for line in FOUR), "Fresh Matches: 1 entries", "  " + FOUR[3]], reported
    assert "All Matches: 0 entries" in perf_map("find", path, "0x1").out


def test_tidy():
    text = "\n".join(FOUR) + "\n"
    path = write(scratch("four.map"), text)
    assert perf_map("tidy", path).out == FOUR[3] + "\n"
    with open(path, encoding="utf-8") as f:
        assert f.read() == text
    out = scratch("tidy.map")
    perf_map("tidy", path, "-o", out)
    with open(out, encoding="utf-8") as f:
        assert f.read() == FOUR[3] + "\n"
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o600
    assert perf_map("tidy", out).out == FOUR[3] + "\n"


def test_edges():
    entries = "1000 100 A/1080 100 B/3000 0 Z/2ff0 20 C/4000 0 Z2/4000 10 D/5000 10 E/5000 0 Z3/6000 10 F/6010 10 G"
    path = write(scratch("edges.map"), entries.replace("/", "\n") + "\n")
    assert [line.split()[2] for line in perf_map("tidy", path).out.splitlines()] == "B C D E Z3 F G".split()


def test_update():
    path = write(scratch("four.map"), "\n".join(FOUR) + "\n")
    stacks = (f"node 1 [000] 1.0: 10101010 cpu-clock:\n"
              f"\t    227bbdff955b {RENDER} (/tmp/perf-1.map)\n"
              "\t    227bbdc8a1dd [unknown] (/tmp/perf-1.map)\n"
              "\t    227bbdff955b [unknown] (/usr/bin/node)\n"
              "\t    7f0000001000 main (/usr/bin/node)\r\n"
              "227bbdff955b at the start of a line (/tmp/perf-1.map)\n"
              "\n\t    227bbdff9420 x (/tmp/perf-77.map)")
    wanted = stacks.replace(f"955b {RENDER}", f"955b {STREAM}").replace("9420 x", f"9420 {STREAM}")
    perf_map("update", path, write(scratch("stacks.txt"), stacks), "-o", scratch("updated.txt"))
    with open(scratch("updated.txt"), "rb") as f:
        assert f.read() == wanted.encode()


def test_odd_lines():
    """What is no entry is counted; names are given back as they are, and shown without what could harm a terminal."""
    odd = (b"0x00007fd0e8a1c2c0 0x0000000000000158 void Fib.run(int)\r\n\r\n\nnot an entry\n"
           b"2000 10 name  with  spaces \n3000 10 \x1b[31mred\xff\n4000 10 " + b"n" * 100000 + b"\n"
           b"ffffffffffffffff 2 overflow\nffffffff81000000 10 kernel\n5000 10 last")
    path = write(scratch("odd.map"), odd)
    reported = perf_map("tidy", path, "-o", scratch("odd.tidy"))
    assert "4 malformed lines" in reported.err, reported.err
    with open(scratch("odd.tidy"), "rb") as f:
        assert f.read() == (b"7fd0e8a1c2c0 158 void Fib.run(int)\n2000 10 name  with  spaces \n"
                            b"3000 10 \x1b[31mred\xff\n5000 10 last\n")
    assert "\\x1b[31mred\\xff" in perf_map("find", path, "3005").out


def test_errors():
    path = write(scratch("four.map"), "\n".join(FOUR) + "\n")
    for bad in "xyz", "", "12 34", "+5", "11111111111111111":
        assert "invalid address" in perf_map("find", path, bad, status=2).err
    assert "cannot read" in perf_map("tidy", scratch("missing"), status=1).err
    assert "cannot read" in perf_map("update", path, scratch("missing"), status=1).err
    assert "cannot write" in perf_map("tidy", path, "-o", scratch("no/such/directory"), status=1).err
    for usage in ((), ("tidy",), ("find", path), ("find", path, "1", "2"), ("mend", path), ("tidy", path, "-x")):
        perf_map(*usage, status=2)
    out = scratch("kept.map")
    assert not os.path.exists(out)
    perf_map("update", path, scratch("missing"), "-o", out, status=1)
    assert not os.path.exists(out), "half a result was left"


@natively
@long
def test_very_many_entries():
    """What takes quadratic time does not end."""
    random.seed(7)
    entries = [(random.randrange(1 << 32) * 64, 1 + random.randrange(4096)) for _ in range(COUNT)]
    path = write(scratch("many.map"), "".join(f"{start:x} {size:x} f{i}\n" for i, (start, size) in enumerate(entries)))
    fresh = [line.split() for line in perf_map("tidy", path).out.splitlines()]
    ranges = sorted((int(start, 16), int(size, 16)) for start, size, _ in fresh)
    assert all(a[0] + a[1] <= b[0] for a, b in zip(ranges, ranges[1:])), "two of them overlap"
    numbers = [int(name[1:]) for _, _, name in fresh]
    assert numbers == sorted(numbers) and numbers[-1] == COUNT - 1


if __name__ == "__main__":
    main(globals())
