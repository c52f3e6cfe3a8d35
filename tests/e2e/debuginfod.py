#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""--debuginfod: a stripped program gets its lines from a debuginfod that runs here, on loopback; not
without the option; and a server that is not there costs the lines, and no more.

The program and its library are known line by line (tests/fixtures/inlined.h). What the server has is the
debug file alone; sysprof is given a stripped copy in a directory of its own.
"""
import contextlib
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from libe2e import Background, Skip, fixture, folded, free_port, kernel_part, main, read, record, run, scratch, sysprof, write

# Neither the caller's servers nor his cache.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith("DEBUGINFOD_")}


def build_id(path):
    notes = run("readelf", "-n", path, check=0).out
    return notes.split("Build ID: ")[1].split()[0]


def stripped_program():
    """A stripped copy, with its debug file in "served" and nowhere else. The build-id is new each
    time, so no cache has it."""
    directory, served = scratch("bin"), scratch("served")
    program, whole = os.path.join(directory, "inlined"), scratch("whole")
    if not os.path.exists(program):
        os.makedirs(directory, exist_ok=True)
        os.makedirs(served, exist_ok=True)
        note = scratch("note")
        run("objcopy", "--dump-section", f".note.gnu.build-id={note}", fixture("inlined"),
            scratch("unused"), check=0)
        data = read(note, "rb")
        write(note, data[:-20] + os.urandom(20))
        run("objcopy", "--update-section", f".note.gnu.build-id={note}", fixture("inlined"), whole,
            check=0)
        run("objcopy", "--only-keep-debug", whole, os.path.join(served, "inlined.debug"), check=0)
        run("strip", "-o", program, whole, check=0)
    return program, served


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def server(directory, wanted, what="/debuginfo"):
    """debuginfod over what is in `directory`, once it has that of the build-id `wanted`; yields its URL."""
    if not shutil.which("debuginfod"):
        raise Skip("there is no debuginfod")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with open(scratch("debuginfod.log"), "w", encoding="utf-8") as log, \
            Background("debuginfod", "-F", "-p", port, "-d", ":memory:", directory,
                       env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT):
        deadline = time.monotonic() + 120
        while not answers(f"{url}/buildid/{wanted}{what}"):
            assert time.monotonic() < deadline, "debuginfod does not find the debug file"
            time.sleep(0.2)
        yield url


def profile(name, *options, servers=None, timeout=60):
    """Names and lines of the user frames of all samples, as a set; and what was said."""
    program, _ = stripped_program()
    path = scratch(name + ".folded")
    environment = dict(ENVIRONMENT, DEBUGINFOD_CACHE_PATH=scratch("cache-" + name),
                       DEBUGINFOD_TIMEOUT="3")
    # where none is named, the machine's own servers get no request either
    environment["DEBUGINFOD_URLS"] = servers or ""
    result = record("--lines", "--no-symbol-cache", *options, "-o", path, "--", program, "1",
                    env=environment, timeout=timeout)
    frames = {frame for stack, _ in folded(path) if not kernel_part(stack) for frame in stack}
    return frames, result.err


def has_lines(frames):
    return any(f.startswith("step_hot:") for f in frames) and \
        any(f.startswith("own_spin:") for f in frames)


def test_with_server():
    program, served = stripped_program()
    with server(served, build_id(program)) as url:
        frames, err = profile("without", servers=url)
        assert not has_lines(frames), f"lines without the option: {frames}\n{err}"
        frames, err = profile("with", "--debuginfod", servers=url)
        assert has_lines(frames), f"no lines: {frames}\n{err}"
        assert os.listdir(scratch("cache-with")), "not in libdebuginfod's cache"


def test_a_source_of_a_server():
    """Of a program whose root directory does not have it; another text is not taken for the same."""
    root, served = scratch("root"), scratch("sources")
    for directory in root, served:
        os.makedirs(directory)
        os.chmod(directory, 0o755)
    source, program = os.path.join(served, "fetched.c"), os.path.join(served, "fetched")
    write(source, "volatile unsigned long sum;\nint main(void)\n{\n\tfor (unsigned long i = 0; i < 300000000; i++)\n\t\tsum += i;\n\treturn 0;\n}\n")
    run("gcc", "-g", "-O1", "-static", "-o", program, source, check=0)
    shutil.copy(program, root)
    with server(served, build_id(program), f"/source{source}") as url:
        for name, options in ("none", []), ("fetched", ["--debuginfod"]):
            path = scratch(name + ".sysprof")
            result = record("--no-symbol-cache", *options, "-o", path, "--", "chroot", root, "/fetched",
                            env=dict(ENVIRONMENT, DEBUGINFOD_CACHE_PATH=scratch("cache-" + name), DEBUGINFOD_URLS=url))
            shown = sysprof("report", path, "--annotate", "main", check=0).out
            assert ("sum += i;" in shown) == bool(options), f"{name}: {shown}\n{result.err}"
            assert ("# source     the same text" in shown) == bool(options), shown


def test_server_without_the_file():
    program, served = stripped_program()
    empty = scratch("empty")
    os.makedirs(empty, exist_ok=True)
    shutil.copy(fixture("chain"), empty)
    assert program and served
    with server(empty, build_id(fixture("chain"))) as url:
        frames, err = profile("empty", "--debuginfod", servers=url)
        assert frames and not has_lines(frames), f"{frames}\n{err}"


def test_no_server():
    """No server listens: the profile is written all the same, soon, with a note about it."""
    begin = time.monotonic()
    frames, err = profile("refused", "--debuginfod", servers=f"http://127.0.0.1:{free_port()}")
    assert frames and not has_lines(frames), frames
    assert "could not be fetched" in err, f"not a word about it: {err}"
    assert time.monotonic() - begin < 30


def test_no_server_configured():
    frames, err = profile("none", "--debuginfod")
    assert frames and not has_lines(frames), frames
    assert "could not be fetched: no server is configured" in err, f"not a word about it: {err}"


main(globals())
