# SPDX-License-Identifier: BSD-2-Clause
"""Small PNG files."""
import struct
import zlib


def unfilter(data, height, stride, depth):
    """The rows of a PNG (each with a filter's number before it) as plain bytes."""
    above, rows = bytearray(stride), []
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride) if kind else ():
            left, corner = (row[i - depth], above[i - depth]) if i >= depth else (0, 0)
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = above[i]
            elif kind == 3:
                guess = (left + above[i]) // 2
            else:
                p = left + above[i] - corner
                guess = min((left, above[i], corner), key=lambda x: abs(p - x))
            row[i] = (row[i] + guess) & 255
        rows.append(b"\0" + bytes(row))
        above = row
    return b"".join(rows)


def shrink(path):
    """The same picture, compressed as well as drawings without noise can be: unfiltered, by level 9."""
    with open(path, "rb") as file:
        data = file.read()
    head, packed, at = data[:33], b"", 33
    width, height, bits, colour = struct.unpack(">IIBB", head[16:26])
    assert bits == 8 and colour in (2, 6), (bits, colour)
    depth = 3 if colour == 2 else 4
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    plain = zlib.compress(unfilter(zlib.decompress(packed), height, width * depth, depth), 9)
    with open(path, "wb") as file:
        file.write(head)
        for kind, body in ((b"IDAT", plain), (b"IEND", b"")):
            file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
