#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Rules for Go's code, at each instruction of a program that is single-stepped: each leads to the newest call and to
the frame pointer that it was made with. The oracle is what the calls and returns before have left."""
import os
import time

from libe2e import BUILD, long, main, run
from libgo import go_build


def check_steps(name, output, *flags, steps=300000, cgo=False):
    begin = time.monotonic()
    result = run(os.path.join(BUILD, "tests/e2e/go_steps"), steps, go_build(name, output, *flags, cgo=cgo), "1", timeout=300)
    total = {x[1]: int(x[2]) for x in (line.split() for line in result.out.splitlines()) if x[0] == "total"}
    print(f"  {output}: {total}, {time.monotonic() - begin:.0f} s")
    assert result.status == 0 and total["differing"] == 0, result
    assert total["compared"] > 10000 and total["switched"] + total["across"] > 0, result
    assert total["not_followed"] < 0.001 * total["compared"], result


def test_go():
    check_steps("shadow", "steps-shadow", steps=100000)


@long
def test_with_c():
    check_steps("mixed", "steps-mixed", cgo=True)


@long
def test_position_independent():
    check_steps("shadow", "steps-pie", "-buildmode=pie")


main(globals())
