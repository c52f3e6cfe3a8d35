#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""sysprof report --annotate: its figures are those of the report, for every function of a real program."""
import functools
import json
import os
import re
import shutil

from libe2e import TOP, main, need_root, quick, record, run, scratch, sysprof
from libreport import invalid

SOURCE = os.path.join(TOP, "docs/examples/orders.c")
FUNCTIONS = "sum_order", "find_discount", "print_order", "read_order"


@functools.cache
def recording():
    """Of the program, once for all cases."""
    need_root()
    path, program = scratch("orders.sysprof"), scratch("orders")
    run("cc", "-O1", "-g", "-o", program, SOURCE, check=0)
    record("-o", path, "--", program)
    return path


def report(path, *options):
    return json.loads(sysprof("report", path, "--json", "--top", "100000", *options, check=0).out)


def lines_of(rows, names):
    return {(row.get("file"), row.get("line")): (row["self"], row["total"]) for row in rows if row.get("function", names[0]) in names and row["total"]}


def assert_same(path, function, *filters):
    row = next(row for row in report(path, *filters)["rows"] if row["function"] == function)
    got = report(path, "--annotate", function, "--asm", *filters)
    annotation = got["annotation"]
    assert (annotation["self"], annotation["total"]) == (row["self"], row["total"])
    assert lines_of(got["rows"], [function]) == lines_of(report(path, "--by", "line", *filters)["rows"], [function])
    assert sum(copy["self"] for copy in annotation["copies"]) == row["self"]
    for copy in annotation["copies"]:
        if "instructions" in copy:
            assert sum(i["self"] for i in copy["instructions"]) == copy["self"], copy
        else:
            assert copy["no_instructions"]
    return got


def objdump(path, function):
    """The addresses of its instructions."""
    text = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", path, check=0).out
    return [int(address, 16) for address in re.findall(r"^ *([0-9a-f]+):\t", text, re.M)]


@quick
def test_figures():
    path = recording()
    documents = [assert_same(path, function) for function in FUNCTIONS]
    for function, document in zip(FUNCTIONS, documents):
        (copy,) = document["annotation"]["copies"]
        assert [i["address"] for i in copy["instructions"]] == objdump(scratch("orders"), function), copy
        assert all(i["line"] for i in copy["instructions"] if i["self"])
    documents.append(assert_same(path, "sum_order", "--focus", "main"))
    assert not invalid(*documents), invalid(*documents)
    every = report(path)["rows"]
    for name in {row["function"] for row in every[:30] if row["self"]}:
        got = report(path, "--annotate", name)
        assert sum(row["self"] for row in got["rows"]) == got["annotation"]["self"], name


def test_text():
    path = recording()
    text = sysprof("report", path, "--annotate", "orders.c:29", "--asm", check=0).out
    assert "# certainty  " in text and "sum_order  orders" in text and "\x1b" not in text, text
    assert any(line.split("%")[0].strip() and line.split()[3:4] == ["29"] for line in text.splitlines() if "%" in line), text
    other = sysprof("report", path, "--annotate", "no_such_function")
    assert other.status == 1 and "no_such_function" in other.err, other


def test_sources():
    """The text is that of the recording, when the file is gone; a source that is newer than the program is marked."""
    need_root()
    for name, age in ("old.c", -3600), ("new.c", 3600):
        source, program, path = scratch(name), scratch(name + ".program"), scratch(name + ".sysprof")
        shutil.copyfile(SOURCE, source)
        run("cc", "-O1", "-g", "-o", program, source, check=0)
        os.utime(source, (os.stat(program).st_mtime + age,) * 2)
        record("-o", path, "--", program)
        os.remove(source)
        got = report(path, "--annotate", "sum_order")
        assert not invalid(got), invalid(got)
        rows = {row["line"]: row for row in got["rows"]}
        assert all(row["changed"] == (age > 0) for row in rows.values()), got
        with open(SOURCE, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if number in rows:
                    assert rows[number]["text"] == line.rstrip("\n").expandtabs(8)
        text = sysprof("report", path, "--annotate", "sum_order", check=0).out
        assert ("changed since the program was built" in text) == (age > 0), text


def test_usage():
    for options in (["--asm"], ["--source"], ["--att", "--annotate", "f"], ["--annotate", "f", "--tree"], ["--annotate", "f", "--wall"],
                    ["--annotate", "f", "--asm", "--att", "--intel"]):
        assert sysprof("report", "x.sysprof", *options).status == 2, options


if __name__ == "__main__":
    main(globals())
