#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""The unwind table of every ELF file under /usr/bin and /usr/lib against libdw, at random addresses: CFA, frame
pointer and return address (cfi_oracle.c evaluates both with random registers and memory)."""
import os
import random

from libe2e import BUILD, SANITIZED, long, main, run, scratch, write

ADDRESSES = 600  # of each file
FILES_DUE, ROWS_DUE = 1000, 1000000
SOME = 300  # files of `make test`


def elf_files():
    seen = set()
    for top in ("/usr/bin", "/usr/lib"):
        for directory, _, names in os.walk(top):
            for name in names:
                path = os.path.join(directory, name)
                try:
                    st = os.stat(path, follow_symlinks=False)
                    if (st.st_mode & 0o170000) != 0o100000 or (st.st_dev, st.st_ino) in seen:
                        continue
                    with open(path, "rb") as f:
                        head = f.read(18)
                    if head[:4] != b"\x7fELF" or head[16:] == b"\1\0":  # relocatable: never mapped, its addresses are 0
                        continue
                except OSError:
                    continue
                if "\n" not in path:
                    seen.add((st.st_dev, st.st_ino))
                    yield path


def check_tables(files, files_due, rows_due):
    seed = random.getrandbits(63)
    write(scratch("files"), "".join((path + "\n" for path in files)))
    result = run(os.path.join(BUILD, "tests/e2e/cfi_oracle"), ADDRESSES, seed, scratch("files"),
                 timeout=550)
    lines = [line.split(" ") for line in result.out.splitlines()]
    total = {name: int(value) for kind, name, value in (x for x in lines if x[0] == "total")}
    reasons = {}
    for line in lines:
        if line[0] == "skip":
            reason = " ".join(line[2:])
            reasons[reason] = reasons.get(reason, 0) + 1
    print(f"  seed {seed}: {total['files']} files, {total['compared']} addresses compared, "
          f"{total['differing']} differ")
    print(f"  {total['undescribed']} without a description, of which {total['padding']} are padding "
          f"{total['inferred']} inferred and {total['go']} Go's; "
          f"{total['roots']} roots; {total['unknown']} rules and {total['fp_unknown']} frame pointers "
          f"not followed")
    print("  skipped: " + ", ".join(f"{count} ({why})" for why, count in sorted(reasons.items())))
    print(f"  {total['rows']} rows, {total['bytes'] / total['rows']:.2f} bytes a row, "
          f"{total['build_ns'] / total['rows'] / 1000:.3f} µs to build one")
    different = [line for line in lines if line[0] == "differs"]
    assert not different and total["differing"] == 0 and result.status == 0, (seed, different[:10], result.err)
    assert total["files"] >= files_due, total
    assert total["compared"] >= rows_due or SANITIZED, total
    assert total["unknown"] + total["unevaluated"] <= 0.001 * total["compared"], total
    # libdw finds nothing where all that there is was made from trampolines
    assert set(reasons) <= {"describes no code", "libdw finds nothing in it", "not of x86-64", "not ELF"}, reasons


def test_some_tables():
    """Of files by chance: others each time."""
    files = list(elf_files())
    check_tables(random.sample(files, min(SOME, len(files))), SOME // 2, ROWS_DUE * SOME // FILES_DUE // 4)


@long
def test_all_tables():
    check_tables(list(elf_files()), FILES_DUE, ROWS_DUE)


if __name__ == "__main__":
    main(globals())
