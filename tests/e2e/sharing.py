#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 120
# runs: beside sanitized
"""What of a host is in files that people send: never the arguments of programs."""
import base64
import glob
import gzip
import json
import os
import re
import shutil

from libe2e import SCRATCH, Background, fixture, main, quick, read, record, scratch, sysprof, write
from libprofiles import perf

SHARED = "json", "json.gz", "cpuprofile", "trace.json", "pb.gz", "folded", "html", "txt"
SECRETS = b"hunter2", b"--password", b"swordfish"
PAGE_PROFILE = re.compile(rb'<script type="application/gzip" id="profile">([^<]*)</script>')


def contents(path, page=True):
    """The bytes of a file without its compression; of a page also those of its profile, or these alone."""
    data = read(path, "rb")
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    packed = PAGE_PROFILE.search(data)
    return (data if page or not packed else b"") + (gzip.decompress(base64.b64decode(packed[1])) if packed else b"")


def written(name, *options, command=()):
    """{suffix: contents} of the files of one recording, those of .cpuprofile together."""
    for path in glob.glob(scratch(name + ".*")):
        os.unlink(path)
    suffixes = (*SHARED, "sysprof")
    outputs = [word for suffix in suffixes for word in ("-o", scratch(f"{name}.{suffix}"))]
    record(*options, *outputs, *(("--", *command) if command else ()),
           env={**os.environ, "SECRET_OF_THE_ENVIRONMENT": "swordfish"})
    found = {suffix: contents(scratch(f"{name}.{suffix}")) for suffix in suffixes}
    for path in glob.glob(scratch(f"{name}.*-*.cpuprofile")):
        found["cpuprofile"] += contents(path)
    return found


def with_secrets(files):
    return {suffix for suffix, data in files.items() if any(secret in data for secret in SECRETS)}


def secret_command(seconds):
    return "/bin/sh", "-c", f'"$0" {seconds} & "$0" {seconds}; wait', fixture("chain"), "--password=hunter2"


@quick
def test_arguments_are_in_the_recording_alone():
    files = written("default", command=secret_command(0.5))
    assert with_secrets(files) == {"sysprof"}, with_secrets(files)
    assert b"swordfish" not in files["sysprof"]
    assert os.stat(scratch("default.sysprof")).st_mode & 0o777 == 0o600
    for suffix in "json", "pb.gz", "html", "txt":
        assert "sysprof record … -- /bin/sh …".encode() in files[suffix], suffix


def test_no_arguments_is_for_the_recording_too():
    files = written("nowhere", "--no-arguments", command=secret_command(0.5))
    assert not with_secrets(files), with_secrets(files)
    assert "sysprof record … -- /bin/sh …".encode() in files["sysprof"]


def test_arguments_are_shown_on_request():
    files = written("shown", "--arguments", command=secret_command(0.3))
    for suffix in "json", "pb.gz", "html", "txt", "sysprof":
        assert b"--password=hunter2" in files[suffix], suffix


def test_a_recording_s_arguments_are_converted_on_request():
    record("-o", scratch("sent.sysprof"), "--", *secret_command(0.3))
    for suffix in SHARED:
        path = scratch(f"sent.{suffix}")
        sysprof("convert", scratch("sent.sysprof"), "-o", path, check=0)
        assert not with_secrets({suffix: contents(path)}), suffix
    sysprof("convert", scratch("sent.sysprof"), "--arguments", "-o", scratch("sent.txt"), check=0)
    assert b"--password=hunter2" in contents(scratch("sent.txt"))
    assert "hunter2" not in sysprof("report", scratch("sent.sysprof"), "--json", check=0).out


def test_a_profiled_program_s_arguments_are_nowhere():
    command = "/bin/sh", "-c", "while :; do :; done", "sh", "--password=hunter2"
    with Background(*command, env={**os.environ, "SECRET": "swordfish"}) as running:
        files = written("running", "-p", running.pid, "-d", "0.5")
    assert not with_secrets(files), with_secrets(files)


def test_arguments_in_files_of_perf():
    perf("record", "-e", "cpu-clock", "-o", scratch("perf.data"), *secret_command(0.3))
    assert b"hunter2" in read(scratch("perf.data"), "rb")
    for suffix in SHARED:
        path = scratch(f"perf.{suffix}")
        sysprof("convert", scratch("perf.data"), "-o", path, check=0)
        assert not with_secrets({suffix: contents(path)}), suffix
    sysprof("convert", scratch("perf.data"), "--arguments", "-o", scratch("perf.txt"), check=0)
    assert b"--password=hunter2" in contents(scratch("perf.txt"))


# ---- without names ------------------------------------------------------------------------------

def key(name, text):
    return write(scratch(name), text)


def anonymous(source, suffix, secret):
    """The bytes of a recording without names."""
    path = scratch(f"{os.path.basename(source)}.anonymous.{suffix}")
    sysprof("convert", source, f"--anonymize={secret}", "-o", path, check=0)
    return path


def figures(value):
    """All numbers of a JSON text, and what else is no name."""
    if isinstance(value, dict):
        return [(k, figures(v)) for k, v in value.items() if k not in ("path", "files", "start_realtime_ns")]
    if isinstance(value, list):
        return [figures(v) for v in value]
    return None if isinstance(value, str) else value


@quick
def test_a_program_without_its_names():
    """A program of its own name and directory, in every format; libc and the kernel keep theirs."""
    directory = scratch("acmehome")
    os.makedirs(directory, exist_ok=True)
    program = os.path.join(directory, "acmeshop")
    shutil.copy2(fixture("chain"), program)
    recording = scratch("shop.sysprof")
    record("-o", recording, "--", program, "0.5")
    names = re.compile(rb"acmeshop|acmehome|middle|\bhost\W+%s\b" % re.escape(os.uname().nodename.encode()))
    secret = key("key", "0123456789abcdef0123456789abcdef")
    for suffix in SHARED:
        open_path = scratch(f"shop.open.{suffix}")
        sysprof("convert", recording, "-o", open_path, check=0)
        assert b"middle" in contents(open_path), suffix
        if suffix in ("json", "pb.gz", "txt"):
            assert os.uname().nodename.encode() in contents(open_path), suffix
        hidden = contents(anonymous(recording, suffix, secret), page=False)
        assert not names.search(hidden), (suffix, names.search(hidden))
        assert re.search(rb"libc(\.so|_start|_start_call_main)|\[kernel|asm_sysvec|do_syscall", hidden), suffix


def test_the_same_key_gives_the_same_difference():
    old, new = scratch("old.sysprof"), scratch("new.sysprof")
    for path, seconds in (old, "0.4"), (new, "0.7"):
        record("-o", path, "--", fixture("chain"), "-t", "3", seconds)
    secret = key("key", "0123456789abcdef0123456789abcdef")
    shown = sysprof("diff", old, new, "--json").out
    hidden = sysprof("diff", anonymous(old, "pb.gz", secret), anonymous(new, "pb.gz", secret), "--json").out
    converted = []
    for path in old, new:
        converted.append(scratch(f"{os.path.basename(path)}.pb.gz"))
        sysprof("convert", path, "-o", converted[-1], check=0)
    shown = sysprof("diff", *converted, "--json").out
    assert figures(json.loads(shown)) == figures(json.loads(hidden)), (shown, hidden)
    assert "leaf" in shown and "leaf" not in hidden
    other = key("other", "another key of the same length ..")
    assert contents(anonymous(old, "folded", secret)) == contents(anonymous(old, "folded", secret))
    assert contents(anonymous(old, "folded", secret)) != contents(anonymous(old, "folded", other))


def test_bad_keys():
    recording = scratch("keys.sysprof")
    record("-o", recording, "--", fixture("chain"), "0.1")
    for path, words in (scratch("nowhere"), "No such file"), (key("short", "0123456789abcde"), "at least 16"), (SCRATCH, ""):
        result = sysprof("convert", recording, f"--anonymize={path}", "-o", scratch("bad.json"))
        assert result.status == 1 and "the key" in result.err, result
        assert words in result.err and "/dev/urandom" in result.err, result
        assert not os.path.exists(scratch("bad.json"))
    first, second = scratch("first.folded"), scratch("second.folded")
    for path in first, second:
        sysprof("convert", recording, "--anonymize", "-o", path, check=0)
    assert read(first) != read(second)  # each run has a key of its own


main(globals())
