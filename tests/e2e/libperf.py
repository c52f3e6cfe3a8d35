# SPDX-License-Identifier: BSD-2-Clause
"""perf.data files: one without perf, and of perf's own what its perf script reads."""
import struct

SOFTWARE, CPU_CLOCK, SAMPLE, USER = 1, 0, 9, 2
FIELDS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8  # address, pid and tid, time, period
ATTR, INDEX = 64, 104


def perf_data(path, samples, pid=7, tid=8):
    """As `perf record -e cpu-clock` writes it, without facts: a thread, a sample each microsecond. Returns the path."""
    attr = struct.pack("<IIQQQQQIIQ", SOFTWARE, ATTR, CPU_CLOCK, 1000, FIELDS, 0, 0, 0, 0, 0)
    sample = struct.Struct("<IHHQIIQQ")
    start = INDEX + ATTR + 16
    with open(path, "wb") as f:
        f.write(struct.pack("<8sQQQQQQQQ32x", b"PERFILE2", INDEX, ATTR + 16, INDEX, ATTR + 16, start, sample.size * samples, 0, 0))
        f.write(attr + bytes(16))
        f.write(b"".join(sample.pack(SAMPLE, USER, sample.size, 0x401000, pid, tid, 1000 * (i + 1), 1000) for i in range(samples)))
    return path


KSYMBOL, FINISHED_INIT = 17, 82


def without_kernel_code(path, copy):
    """
    Writes a copy without the records of code that the kernel loads. Returns its path. Up to Linux 6.18 such a record is longer by
    a sample_id for each listener of its CPU, and perf 6.1 reads its own from the end: after "failed to process type: 17", status
    242, if anything loads a program of BPF while perf records all CPUs and another recorder runs, begins or ends.
    """
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        assert length >= 8, f"{path}: a record of {length} bytes at {at}"
        if kind == KSYMBOL:
            struct.pack_into("<I", data, at, FINISHED_INIT)  # which perf ignores
        at += length
    with open(copy, "wb") as f:
        f.write(data)
    return copy
