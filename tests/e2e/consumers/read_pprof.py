# SPDX-License-Identifier: BSD-2-Clause
"""A pprof file as plain lists and dicts, read by the field numbers of profile.proto and nothing of ours."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

# message: {field number: (name, kind)}; kind: int, uint, bool, str, a message, or [kind] if repeated
MESSAGES = {
    "profile": {
        1: ("sample_type", ["value_type"]), 2: ("sample", ["sample"]), 3: ("mapping", ["mapping"]),
        4: ("location", ["location"]), 5: ("function", ["function"]), 6: ("string_table", ["str"]),
        7: ("drop_frames", "int"), 8: ("keep_frames", "int"), 9: ("time_nanos", "int"),
        10: ("duration_nanos", "int"), 11: ("period_type", "value_type"), 12: ("period", "int"),
        13: ("comment", ["int"]), 14: ("default_sample_type", "int"), 15: ("doc_url", "int")},
    "value_type": {1: ("type", "int"), 2: ("unit", "int")},
    "sample": {1: ("location_id", ["uint"]), 2: ("value", ["int"]), 3: ("label", ["label"])},
    "label": {1: ("key", "int"), 2: ("str", "int"), 3: ("num", "int"), 4: ("num_unit", "int")},
    "mapping": {
        1: ("id", "uint"), 2: ("memory_start", "uint"), 3: ("memory_limit", "uint"),
        4: ("file_offset", "uint"), 5: ("filename", "int"), 6: ("build_id", "int"),
        7: ("has_functions", "bool"), 8: ("has_filenames", "bool"),
        9: ("has_line_numbers", "bool"), 10: ("has_inline_frames", "bool")},
    "location": {1: ("id", "uint"), 2: ("mapping_id", "uint"), 3: ("address", "uint"),
                 4: ("line", ["line"]), 5: ("is_folded", "bool")},
    "line": {1: ("function_id", "uint"), 2: ("line", "int"), 3: ("column", "int")},
    "function": {1: ("id", "uint"), 2: ("name", "int"), 3: ("system_name", "int"),
                 4: ("filename", "int"), 5: ("start_line", "int")},
}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at
        if shift > 63:
            raise ValueError("a varint of more than 10 bytes")


def scalar(kind, value):
    if kind == "int":
        return value - (1 << 64) if value >> 63 else value
    if kind == "bool":
        if value > 1:
            raise ValueError("a bool of %d" % value)
        return bool(value)
    return value


def empty(message):
    return {name: [] if isinstance(kind, list) else None if kind in MESSAGES else scalar(kind, 0)
            for name, kind in MESSAGES[message].values()}


def parse(message, data):
    result, at = empty(message), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag >> 3 not in MESSAGES[message]:
            raise ValueError("%s: field %d" % (message, tag >> 3))
        name, kind = MESSAGES[message][tag >> 3]
        repeated, kind = isinstance(kind, list), kind[0] if isinstance(kind, list) else kind
        values = []
        if tag & 7 == VARINT and kind in ("int", "uint", "bool"):
            value, at = varint(data, at)
            values.append(scalar(kind, value))
        elif tag & 7 == BYTES:
            size, at = varint(data, at)
            part, at = data[at:at + size], at + size
            if at > len(data):
                raise ValueError("%s.%s is cut off" % (message, name))
            if kind == "str":
                values.append(part.decode("utf-8"))  # as proto3 wants strings
            elif kind in MESSAGES:
                values.append(parse(kind, part))
            else:  # packed
                inner = 0
                while inner < len(part):
                    value, inner = varint(part, inner)
                    values.append(scalar(kind, value))
        else:
            raise ValueError("%s.%s: wire type %d" % (message, name, tag & 7))
        if repeated:
            result[name] += values
        else:
            result[name] = values[-1]
    return result


def read_pprof(data):
    return parse("profile", data)
