# SPDX-License-Identifier: BSD-2-Clause
"""Protobuf messages, and profiles in them, by a decoder that has nothing in common with the program's."""


class Bad(Exception):
    """These are not the bytes of such a message."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Bad("proto: unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at
        shift += 7


def fields(data):
    """(number, value) of each field: a number, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind, number = tag & 7, tag >> 3
        if not number:
            raise Bad("proto: invalid field number")
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1 or kind == 5:
            size = 8 if kind == 1 else 4
            if at + size > len(data):
                raise Bad("proto: unexpected EOF")
            value = int.from_bytes(data[at:at + size], "little")
            at += size
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise Bad("proto: unexpected EOF")
            value = data[at:at + size]
            at += size
        else:
            raise Bad("proto: cannot parse invalid wire-format data")
        yield number, value


def raw_fields(data):
    """(number, its bytes with the tag) of each field of a message."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = varint(data, at)
        if tag & 7 == 2:
            size, at = varint(data, at)
            at += size
        elif tag & 7 == 0:
            _, at = varint(data, at)
        else:
            raise Bad("proto: neither a number nor bytes")
        yield tag >> 3, data[begin:at]


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def numbers(value):
    """A repeated number, packed or one of it."""
    if isinstance(value, int):
        return [signed(value)]
    at, found = 0, []
    while at < len(value):
        number, at = varint(value, at)
        found.append(signed(number))
    return found


class Message:
    """Fields by number, as lists."""

    def __init__(self, data):
        self.all = {}
        for number, value in fields(data):
            self.all.setdefault(number, []).append(value)

    def many(self, number):
        return self.all.get(number, [])

    def messages(self, number):
        return [Message(self.bytes_of(value)) for value in self.many(number)]

    @staticmethod
    def bytes_of(value):
        if isinstance(value, int):
            raise Bad("proto: cannot parse invalid wire-format data")
        return value

    def number(self, number):
        values = self.many(number)
        if values and not isinstance(values[-1], int):
            raise Bad("proto: cannot parse invalid wire-format data")
        return signed(values[-1]) if values else 0

    def bytes(self, number):
        values = self.many(number)
        return self.bytes_of(values[-1]) if values else b""

    def text(self, number):
        return self.bytes(number).decode()

    def numbers(self, number):
        return [n for value in self.many(number) for n in numbers(value)]


class Pprof:
    """A pprof message; nothing is checked but that it is one."""

    def __init__(self, data):
        m = Message(data)
        self.strings = [Message.bytes_of(s) for s in m.many(6)]
        self.types = [(t.number(1), t.number(2)) for t in m.messages(1)]
        self.samples = [(s.numbers(1), s.numbers(2), [(x.number(1), x.number(2), x.number(3)) for x in s.messages(3)])
                        for s in m.messages(2)]
        # id, has_functions, build id, file
        self.mappings = [(x.number(1), bool(x.number(7)), x.number(6), x.number(5)) for x in m.messages(3)]
        # id, mapping, address, lines
        self.locations = [(x.number(1), x.number(2), x.number(3), [(y.number(1), y.number(2)) for y in x.messages(4)])
                          for x in m.messages(4)]
        # id, name, file, start line
        self.functions = [(x.number(1), x.number(2), x.number(4), x.number(5)) for x in m.messages(5)]
        self.time, self.duration, self.period = m.number(9), m.number(10), m.number(12)
        periods = m.messages(11)
        self.period_type = (periods[-1].number(1), periods[-1].number(2)) if periods else None

    def text(self, index):
        return self.strings[index].decode()

    def stacks(self):
        """(names from the root, values) of each sample; a frame without a name is None."""
        functions = {f[0]: self.text(f[1]) for f in self.functions}
        names = {}
        for number, _, _, lines in self.locations:  # innermost first
            names[number] = [functions[function] for function, _ in reversed(lines)] or [None]
        for path, values, _ in self.samples:
            yield [name for location in reversed(path) for name in names[location]], values


class OtlpProfile:
    """A profile of a request: its attributes, type, period, and samples as (names from the root, values)."""

    def __init__(self, resource, scope, profile, dictionary):
        self.attributes = {kv.text(1): kv.messages(2)[-1].text(1) for kv in resource.messages(1)}
        self.scope = scope.text(1)
        text = dictionary.text
        kind, period_kind = profile.messages(1)[-1], profile.messages(5)[-1]
        self.type = text(kind.number(1)), text(kind.number(2))
        self.period_type = text(period_kind.number(1)), text(period_kind.number(2))
        self.time, self.duration, self.period = profile.number(3), profile.number(4), profile.number(6)
        self.samples = [(dictionary.stack(s.number(1)), s.numbers(4)) for s in profile.messages(2)]


class Dictionary:
    """Tables of which element 0 is there and says nothing."""

    def __init__(self, data):
        m = Message(data)
        self.strings = [Message.bytes_of(s).decode() for s in m.many(5)]
        self.functions = [f.number(1) for f in m.messages(3)]
        self.mappings = [x.numbers(5) for x in m.messages(1)]
        self.locations = [(x.number(1), [y.number(1) for y in x.messages(3)]) for x in m.messages(2)]
        self.stacks = [s.numbers(1) for s in m.messages(7)]
        self.attributes = [(a.number(1), a.messages(2)[-1].text(1) if a.many(2) else None) for a in m.messages(6)]
        tables = [m.many(number) for number in range(1, 8)]
        if not all(tables) or any(table[0] for table in tables):
            raise Bad("element 0 of a table is not the zero value")

    def text(self, index):
        return self.strings[index]

    def stack(self, index):
        names = []
        for location in reversed(self.stacks[index]):
            mapping, lines = self.locations[location]
            for attribute in self.mappings[mapping]:
                self.text(self.attributes[attribute][0])
            names += [self.text(self.functions[function]) for function in reversed(lines)] or [None]
        return names


def otlp(data):
    """The profiles of an ExportProfilesServiceRequest."""
    m = Message(data)
    if not m.many(2):
        raise KeyError("missing profile metadata dictionary")
    dictionary = Dictionary(m.bytes(2))
    return [OtlpProfile(resource.messages(1)[-1], scope.messages(1)[-1], profile, dictionary)
            for resource in m.messages(1) for scope in resource.messages(2) for profile in scope.messages(2)]
