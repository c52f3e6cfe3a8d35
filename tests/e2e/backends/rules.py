# SPDX-License-Identifier: BSD-2-Clause
"""What Pyroscope and Parca refuse, and in which words; and what they take and lose. All of it was seen of the real ones."""
import gzip
import re
import zlib

from wire import Bad, Pprof

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
MIB = 1 << 20


class Refused(Exception):
    """An answer: status of HTTP, code, message."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def invalid(message):
    return Refused(400, "invalid_argument", message)


def human(size):
    return f"{size / MIB:.1f} MiB" if size >= MIB else f"{size / 1024:.0f} KiB"


def unpack(raw, limit):
    """A profile, compressed or not."""
    if not raw:
        raise Refused(500, "unknown", "gzip reset: EOF")
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        data = gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as e:
        raise Refused(500, "unknown", "copy to buffer: unexpected EOF") from e
    if len(data) > limit:
        raise invalid(f"uncompressed profile payload size exceeds limit of {limit / 1e6:.1f} MB")
    return data


# ---- Pyroscope ----------------------------------------------------------------------------------------------------

def pyroscope_labels(labels, release):
    """Labels of a series as they are stored: {name: value}."""
    seen = {}
    shown = "{" + ", ".join(f'{name}="{value}"' for name, value in labels) + "}"
    if len(labels) > 30:
        raise invalid(f"profile series has {len(labels)} label names; limit 30: '{shown}'")
    for name, value in labels:
        if name == "service_name" and not value:
            raise invalid("service name is not provided")
        if name in seen:
            raise invalid(f"profile with labels '{shown}' has duplicate label name: '{name}'")
        if not name or len(name.encode()) > 1024 or len(value.encode()) > 2048:
            raise invalid(f"profile with labels '{shown}' has invalid label name or value")
        if release == 1 and not NAME.match(name.replace(".", "_")):
            raise invalid(f"profile with labels '{shown}' has invalid label name: '{name}'")
        seen[name] = value
    if not seen.get("__name__"):
        raise invalid(f"invalid labels '{shown}' with error: invalid metric name")
    seen.setdefault("service_name", "unknown_service")
    return {n.replace(".", "_") if release == 1 else n: v for n, v in seen.items() if v and n != "__session_id__"}


def pyroscope_profile(data, now_ns):
    """The profile, if it may be stored."""
    try:
        p = Pprof(data)
    except Bad as e:
        raise Refused(500, "unknown", str(e)) from e
    if len(data) > 4 * MIB:
        raise invalid("uncompressed profile payload size exceeds limit of 4.2 MB")
    if not p.types:
        raise invalid("empty profile")
    if len(p.samples) > 16000:
        raise invalid(f"the profile has too many samples, actual: {len(p.samples)}, limit: 16000")
    for string in p.strings:
        try:
            string.decode()
        except UnicodeDecodeError as e:
            raise invalid(f"invalid utf8 string hex: {string.hex()}") from e
    if p.strings[:1] != [b""]:
        raise invalid("string 0 should be empty string")
    if any("-" in p.text(kind) for kind, _ in p.types):
        raise invalid("invalid sample type")
    if any(not number for number, *_ in p.locations):
        raise invalid("location id is 0")
    if any(not number for number, *_ in p.functions):
        raise invalid("function id is 0")
    for _, values, labels in p.samples:
        if len(values) != len(p.types):
            raise invalid("sample value length mismatch")
        if len(labels) > 100:
            raise invalid(f"sample has too many labels, actual: {len(labels)}, limit: 100")
    if p.time and not now_ns - 3600e9 <= p.time <= now_ns + 600e9:
        raise invalid(f"profile is outside of ingestion window (profile timestamp: {p.time}, the ingestion window "
                      f"starts at {now_ns - 3600e9:.0f} and ends at {now_ns + 600e9:.0f})")
    return p


def pyroscope_types(p, name):
    """Names of the types of a profile, in order of its values."""
    period = ":".join(p.text(x) for x in p.period_type) if p.period_type else ":"
    return [f"{name}:{p.text(kind)}:{p.text(unit)}:{period}" for kind, unit in p.types]


def pyroscope_samples(p):
    """(names from the root, values) of what is kept of a profile; without a word the rest is lost."""
    mappings = {m[0]: m[1] for m in p.mappings if m[0]}
    functions = {f[0]: p.text(f[1]) for f in p.functions}
    locations = {}
    for number, mapping, _, lines in p.locations:
        if mapping and mapping not in mappings or any(function not in functions for function, _ in lines):
            continue
        locations[number] = [functions[function] for function, _ in reversed(lines)]
    for path, values, _ in p.samples:
        if not path or min(values) < 0 or not any(values) or any(location not in locations for location in path):
            continue
        path = path[-1000:]  # of what is deeper the root's side is kept
        names = [name for location in reversed(path) for name in locations[location] if name]
        yield [name[-65535:] for name in names], values


# ---- Parca --------------------------------------------------------------------------------------------------------

def parca_labels(labels):
    seen = {}
    for name, value in labels:
        if not name:
            raise Refused(400, 3, "invalid label name: ")
        if name in seen:
            raise Refused(400, 3, f"duplicate label name: {name}")
        seen[name] = value
    if "__name__" not in seen:
        raise Refused(400, 3, "missing __name__ label")
    return seen


def sequential(rows, what):
    for expected, row in enumerate(rows, 1):
        if row[0] != expected:
            raise Refused(400, 3, f"invalid profile: {what} id is not sequential")


def parca_profile(raw):
    try:
        p = Pprof(unpack(raw, 1 << 40)) if raw else None
    except Bad as e:
        raise Refused(400, 3, f"failed to parse profile: {e}") from e
    except Refused as e:
        raise Refused(500, 2, e.message) from e
    if p is None:
        return None
    if p.strings[:1] != [b""]:
        raise Refused(400, 3, "invalid profile: first string is not empty")
    if not p.types:
        raise Refused(400, 3, "invalid profile: no sample types")
    sequential(p.mappings, "mapping")
    sequential(p.locations, "location")
    sequential(p.functions, "function")
    for _, mapping, _, lines in p.locations:
        if mapping > len(p.mappings) or any(not 0 < function <= len(p.functions) for function, _ in lines):
            raise Refused(400, 3, "invalid profile: location refers to what is not there")
    for path, values, labels in p.samples:
        if len(values) != len(p.types):
            raise Refused(400, 3, "invalid profile: sample value length mismatch")
        if any(not 0 < location <= len(p.locations) for location in path) or any(not key for key, _, _ in labels):
            raise Refused(400, 3, "invalid profile: sample refers to what is not there")
    return p


def parca_types(p, name):
    types = []
    for kind, unit in p.types:
        full = ":".join([name, p.text(kind), p.text(unit)] + [p.text(x) for x in p.period_type or ()])
        if not all(NAME.match(word) for word in full.split(":")):
            raise Refused(500, 2, f"invalid profile type at row 0 ({full}): parse error")
        types.append(full + (":delta" if p.duration else ""))
    return types
