# SPDX-License-Identifier: BSD-2-Clause
"""A perf.data file without perf."""
import struct

SOFTWARE, CPU_CLOCK, SAMPLE, USER = 1, 0, 9, 2
FIELDS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8  # address, pid and tid, time, period
ATTR, INDEX = 64, 104


def perf_data(path, samples):
    """As `perf record -e cpu-clock` writes it, without facts: a thread, a sample each microsecond. Returns the path."""
    attr = struct.pack("<IIQQQQQIIQ", SOFTWARE, ATTR, CPU_CLOCK, 1000, FIELDS, 0, 0, 0, 0, 0)
    sample = struct.Struct("<IHHQIIQQ")
    start = INDEX + ATTR + 16
    with open(path, "wb") as f:
        f.write(struct.pack("<8sQQQQQQQQ32x", b"PERFILE2", INDEX, ATTR + 16, INDEX, ATTR + 16, start, sample.size * samples, 0, 0))
        f.write(attr + bytes(16))
        f.write(b"".join(sample.pack(SAMPLE, USER, sample.size, 0x401000, 7, 8, 1000 * (i + 1), 1000) for i in range(samples)))
    return path
