#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
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
PACKED = re.compile(rb'<script type="application/gzip" id="[a-z]*">([^<]*)</script>')  # a page's profile, and its code


def contents(path, page=True):
    """The bytes of a file without its compression; of a page also those of what is packed in it, or these alone."""
    data = read(path, "rb")
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    packed = PACKED.findall(data)
    return (data if page or not packed else b"") + b"".join(gzip.decompress(base64.b64decode(part)) for part in packed)


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


def compared(old, new):
    return json.loads(sysprof("diff", old, new, "--json").out)


def without_names(difference):
    """Figures and verdicts, rows with equal ones in any order."""
    rows = sorted(json.dumps([row["verdict"], figures(row)]) for row in difference["rows"])
    tests = sorted(json.dumps(figures(test)) for test in difference["tests"])
    rest = {key: value for key, value in difference.items() if key not in ("rows", "tests")}
    return rows, tests, figures(rest)


def shape(path):
    """The call tree of a folded file without its names."""
    root = [0, {}]
    for line in read(path).splitlines():
        if line.startswith("#"):
            continue
        stack, count = line.rsplit(" ", 1)
        node = root
        for frame in stack.split(";"):
            node = node[1].setdefault(frame, [0, {}])
        node[0] += int(count)
    return canonical(root)


def canonical(node):
    return node[0], tuple(sorted(canonical(child) for child in node[1].values()))


def check_pair(old, new, private):
    """Both as files with and without names: the same rows, verdicts and trees."""
    secret = key("key", "0123456789abcdef0123456789abcdef")
    for suffix in "pb.gz", "json", "folded":
        shown = []
        for path in old, new:
            shown.append(scratch(f"{os.path.basename(path)}.shown.{suffix}"))
            sysprof("convert", path, "-o", shown[-1], check=0)
        hidden = [anonymous(path, suffix, secret) for path in (old, new)]
        first, second = compared(*shown), compared(*hidden)
        assert first["tests"] and without_names(first) == without_names(second), (suffix, first, second)
        assert private in contents(shown[0]) and private not in contents(hidden[0]), suffix
        if suffix == "folded":
            assert [shape(path) for path in shown] == [shape(path) for path in hidden]


def recorded(name, *command):
    record("-o", scratch(name), "--", *command)
    return scratch(name)


def test_the_same_key_gives_the_same_difference():
    old, new = (recorded(f"{seconds}.sysprof", fixture("chain"), "-t", "3", seconds) for seconds in ("0.4", "0.7"))
    check_pair(old, new, b"leaf")
    secret, other = key("key", "0123456789abcdef0123456789abcdef"), key("other", "another key of the same length ..")
    assert contents(anonymous(old, "folded", secret)) == contents(anonymous(old, "folded", secret))
    assert contents(anonymous(old, "folded", secret)) != contents(anonymous(old, "folded", other))


def test_differences_of_programs_that_start_often():
    """One side has the loader's _start beside the programs', the other hardly any."""
    loop = '"$0" 0.02;' * 25
    check_pair(recorded("one.sysprof", fixture("chain"), "0.5"),
               recorded("many.sysprof", "/bin/sh", "-c", loop, fixture("chain")), b"leaf")


PYTHON = """
import json, sys, time
def acme_work(value):
    return sum(hash(str(i)) for i in range(3000))
def dumps(value, how):
    return how(value)
end = time.time() + 0.6
while time.time() < end:
    dumps({str(i): [i] * 9 for i in range(200)}, json.dumps if sys.argv[1] == "json" else acme_work)
"""


def test_differences_of_a_script_with_names_of_its_library():
    """The script's dumps() is beside that of Python's json on one side only."""
    script = write(scratch("script.py"), PYTHON)
    check_pair(*(recorded(f"{how}.sysprof", "/usr/bin/python3", script, how) for how in ("acme", "json")), b"acme_work")


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
