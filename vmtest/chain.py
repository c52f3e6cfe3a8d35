# SPDX-License-Identifier: BSD-2-Clause
"""chain.py SECONDS: main calls outer, middle, inner and leaf, which works."""
import sys
import time


def leaf():
    end = time.monotonic() + 0.05
    n = 0
    while time.monotonic() < end:
        n += sum(range(100))
    return n


def inner():
    return leaf()


def middle():
    return inner()


def outer():
    return middle()


def main():
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        outer()


main()
