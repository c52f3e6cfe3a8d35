# SPDX-License-Identifier: BSD-2-Clause
"""Small PNG files."""
import collections
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


def chunk(kind, body):
    return struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))


def shrink(path):
    """The same picture in 256 colours, those of most pixels, and for every other the one most like it."""
    with open(path, "rb") as file:
        data = file.read()
    head, packed, at = data[16:26], b"", 33
    width, height, bits, colour = struct.unpack(">IIBB", head)
    assert bits == 8 and colour in (2, 6), (bits, colour)
    depth = 3 if colour == 2 else 4
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    plain = unfilter(zlib.decompress(packed), height, width * depth, depth)
    lines = [plain[y * (width * depth + 1) + 1:(y + 1) * (width * depth + 1)] for y in range(height)]
    pixels = [[line[i:i + 3] for i in range(0, len(line), depth)] for line in lines]
    counts = collections.Counter(pixel for line in pixels for pixel in line)
    palette = [colour for colour, _ in counts.most_common(256)]
    number = {colour: i for i, colour in enumerate(palette)}
    for colour in counts.keys() - number.keys():
        number[colour] = min(range(len(palette)), key=lambda i: sum((x - y) ** 2 for x, y in zip(palette[i], colour)))
    indexed = b"".join(b"\0" + bytes(number[pixel] for pixel in line) for line in pixels)
    with open(path, "wb") as file:
        file.write(data[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
                   chunk(b"PLTE", b"".join(palette)) + chunk(b"IDAT", zlib.compress(indexed, 9)) + chunk(b"IEND", b""))
