# SPDX-License-Identifier: BSD-2-Clause
"""spin.py SECONDS: calls, sorts, converts."""
import sys
import time


def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)


end = time.time() + float(sys.argv[1])
while time.time() < end:
    f(16)
    sorted(str(i) for i in range(1000))
