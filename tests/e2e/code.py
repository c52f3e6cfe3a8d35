#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Machine code of hot functions in a recording, with lines and sources: whose they are, and within limits."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import urllib.parse
import time

from libe2e import (Background, Skip, as_user, fixture, fuse_device, main, place_of, read, record, recording_events, scratch, sysprof,
                    wait_for, write)

import recordings as r

HEAD = "<IIQIIIIB7x"  # of EVENT_CODE_TEXT
FRAME = "<QQIIIIHHHH"  # struct symbol_event_frame


def places_of(symbol):
    """The names and files of the frames of an EVENT_SYMBOL."""
    count, at, places = struct.unpack_from("<I", symbol, 32)[0], 40, []
    for _ in range(count):
        sizes = struct.unpack_from(FRAME, symbol, at)[6:9]
        at += struct.calcsize(FRAME)
        strings = []
        for size in sizes:
            strings.append(symbol[at:at + size - 1].decode() if size else "")
            at += size
        at = (at + 7) // 8 * 8
        places.append((strings[0], strings[1]))
    return places


def bundled_code(path):
    """[(dso, address, bytes, [(offset, line, depth, function, file)])] of a recording."""
    codes = []
    for kind, _, _, body in recording_events(path):
        if kind == r.CODE_TEXT:
            dso, _, address, _, size, offset, count, machine = struct.unpack_from(HEAD, body)
            if not offset:
                codes.append([dso, address, b"", [], size, machine])
            codes[-1][2] += body[struct.calcsize(HEAD):][:count]
        elif kind == r.CODE_LINES:
            address, dso, count = struct.unpack_from("<QII", body)
            assert [dso, address] == codes[-1][:2], "lines of other code"
            places = places_of(body[16 + 16 * count:])
            for i in range(count):
                offset, line, _, place, depth, _ = struct.unpack_from("<IIHHHH", body, 16 + 16 * i)
                codes[-1][3].append((offset, line, depth, *places[place]))
    assert all(len(c[2]) == c[4] for c in codes), "code is not complete"
    return [tuple(c[:4]) for c in codes]


def symbols_of(program):
    """{name: (address, size)} by nm."""
    out = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    return {f[3]: (int(f[0], 16), int(f[1], 16)) for f in map(str.split, out.splitlines()) if len(f) == 4}


def code_of(path, program, name):
    """The code that is the function's of the file, which must be there once."""
    size = symbols_of(program)[name][1]
    data = read(program, "rb")
    found = [c for c in bundled_code(path) if len(c[2]) == size and data[c[1]:c[1] + size] == c[2]]
    assert len(found) == 1, f"{name} is there {len(found)} times"
    return found[0]


def check_own_spin(path, program):
    _, _, _, rows = code_of(path, program, "own_spin")
    offsets = [row[0] for row in rows]
    assert offsets == sorted(set(offsets)) and offsets[0] == 0, offsets
    inner = {row[3]: row for row in rows}
    assert os.path.basename(inner["step_hot"][4]) == "inlined.h" and inner["step_hot"][2] == 3, inner
    assert inner["own_spin"][2] == 0 and all(row[1] for row in rows if row[3] == "step_hot"), rows


def test_code_and_its_lines():
    path, program = scratch("own.sysprof"), fixture("inlined")
    record("--no-symbol-cache", "-o", path, "--", program, "0.5")
    check_own_spin(path, program)
    sysprof("report", path, check=0)


def test_names_and_code_from_the_cache():
    """When no name has to be read, no code is, but code, lines and sources are there again, as without a cache."""
    program = shutil.copy(fixture("inlined"), scratch("cached"))
    paths = [scratch(f"cached-{turn}.sysprof") for turn in range(12)]
    record("-o", paths[0], "--no-symbol-cache", "--", program, "0.3")
    for path in paths[1:]:  # until an earlier one has had all addresses that have samples
        said = record("-vv", "-o", path, "--", program, "0.3").err
        found = code_of(path, program, "own_spin")[1:], {name for name in bundled_sources(path) if "inlined" in name}
        assert found == (code_of(paths[0], program, "own_spin")[1:], {name for name in bundled_sources(paths[0]) if "inlined" in name})
        if re.search(rf"{program}: \d+ addresses: \d+ cached, 0 to resolve", said):
            break
    assert f"{program}: code is in the cache" in said and found[1], said
    check_own_spin(path, program)


def test_without_code():
    path = scratch("none.sysprof")
    record("--no-code", "-o", path, "--", fixture("inlined"), "0.3")
    assert not bundled_code(path)


def test_what_has_no_room_is_counted():
    path = scratch("small.sysprof")
    result = record("--code-size", "1K", "-o", path, "--", fixture("inlined"), "0.3")
    left = re.search(r"left out \(--code-size\): (\d+) of \d+ functions, (\d+) of (\d+) sources", result.err)
    assert left and int(left[1]) and left[2] == left[3] != "0", result.err
    assert sum(len(c[2]) for c in bundled_code(path)) <= 1024


def test_a_rare_function_is_not_in_it():
    path, program = scratch("share.sysprof"), fixture("inlined")
    record("--code", "40%", "-o", path, "--", program, "0.5")
    code_of(path, program, "own_spin")
    names = symbols_of(program)
    data = read(program, "rb")
    start = names["_start"]
    assert not any(c[2] == data[c[1]:c[1] + len(c[2])] and len(c[2]) == start[1] and c[1] == start[0] & 0xfff
                   for c in bundled_code(path))


def test_a_stripped_program():
    """Bytes without lines."""
    program, path = scratch("stripped"), scratch("stripped.sysprof")
    shutil.copy(fixture("inlined"), program)
    size = symbols_of(program)["own_spin"][1]
    subprocess.run(["strip", "-g", program], check=True)
    record("--no-symbol-cache", "-o", path, "--", program, "0.5")
    data = read(program, "rb")
    found = [c for c in bundled_code(path) if len(c[2]) == size and data[c[1]:c[1] + size] == c[2]]
    assert len(found) == 1 and not any(row[1] for row in found[0][3]), found


def test_damaged_debug_information():
    """Its reader may fail, the recording does not."""
    program, path = scratch("damaged"), scratch("damaged.sysprof")
    shutil.copy(fixture("inlined"), program)
    sections = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    fields = next(line for line in sections.splitlines() if " .debug_line " in line).split(".debug_line", 1)[1].split()
    offset, size = int(fields[2], 16), int(fields[3], 16)
    data = bytearray(read(program, "rb"))
    for i in range(offset + 4, offset + size):
        data[i] ^= 0x55 if i % 3 else 0xff
    write(program, bytes(data))
    os.chmod(program, 0o755)
    record("--no-symbol-cache", "-o", path, "--", program, "0.3")
    sysprof("report", path, check=0)


# ---- sources ------------------------------------------------------------------------------------

UNCHANGED, PLAUSIBLE, CHANGED = range(3)
TENANT = 4711
PROGRAM = """#include <stdlib.h>
static volatile unsigned long sum;
int main(int argc, char **argv)
{
	for (unsigned long i = 0, end = strtoul(argv[1], 0, 10) * 1000000; i < end; i++)
		sum += i ^ sum >> 3;
	return argc == 9;
}
"""


def bundled_sources(path):
    """{path: (state, text)} of a recording."""
    found = {}
    for kind, _, _, body in recording_events(path):
        if kind == r.SOURCE:
            size, offset, count, path_size, state = struct.unpack_from("<IIIHB", body)
            name, data = body[16:16 + path_size - 1].decode(), body[16 + path_size:16 + path_size + count]
            found[name] = (state, found[name][1] + data if offset else data)
            assert len(found[name][1]) <= size
    return found


def compiled(name, text=PROGRAM, owner=0, compiler="gcc", *options):
    """A program, and its source, below a directory of its own; all of the owner's."""
    place = scratch(name)
    os.makedirs(place)
    os.chmod(place, 0o755)
    source, program = os.path.join(place, "hot.c"), os.path.join(place, "hot")
    write(source, text)
    os.utime(source, (1e9, 1e9))
    subprocess.run([compiler, "-g", "-O1", *options, "-o", program, source], check=True)
    for file in place, source, program:
        os.chown(file, owner, owner)
    return source, program


def sources_of(program, *options):
    path = program + ".sysprof"
    record("--no-symbol-cache", "-o", path, *options, "--", program, "60")
    return bundled_sources(path)


def test_a_source_and_its_state():
    source, program = compiled("plain")
    found = sources_of(program)
    assert found[source] == (PLAUSIBLE, PROGRAM.encode()), found.keys()
    write(source, PROGRAM + "/* later */\n")
    assert sources_of(program)[source][0] == CHANGED
    assert not sources_of(program, "--no-source")
    assert not sources_of(program, "--no-code")


def test_md5_is_what_counts():
    if not shutil.which("clang"):
        raise Skip("there is no clang")
    source, program = compiled("md5", PROGRAM, 0, "clang", "-gdwarf-5")
    assert sources_of(program)[source][0] == UNCHANGED
    os.utime(source)  # newer than the program, but the same
    assert sources_of(program)[source][0] == UNCHANGED
    write(source, PROGRAM.replace("sum", "som"))
    os.utime(source, (1e9, 1e9))
    assert sources_of(program)[source][0] == CHANGED


def test_a_source_of_an_old_and_a_new_program():
    """It was changed between their builds."""
    source, old = compiled("two-builds")
    new, recording = old + "-2", scratch("two-builds.sysprof")
    subprocess.run(["gcc", "-g", "-O2", "-o", new, source], check=True)
    for file, built in (old, 1e9), (source, 1e9 + 1), (new, 1e9 + 2):
        os.utime(file, (built, built))
    for commands, state in ([new], PLAUSIBLE), ([new, new, old], CHANGED), ([new, old, old], CHANGED):
        record("--no-symbol-cache", "-o", recording, "--", "sh", "-c", " & ".join(f"{program} 90" for program in commands) + " & wait")
        assert bundled_sources(recording)[source][0] == state, commands


def test_a_map_of_directories():
    source, program = compiled("mapped", PROGRAM, 0, "gcc", f"-ffile-prefix-map={scratch('mapped')}=/built/here")
    assert not any("hot.c" in name for name in sources_of(program))
    found = sources_of(program, "--source-map", f"/built/here={scratch('mapped')}")
    assert found["/built/here/hot.c"] == (PLAUSIBLE, PROGRAM.encode()), found.keys()


def test_another_machine():
    """Without the program and its source."""
    source, program = compiled("gone")
    path = scratch("gone.sysprof")
    record("-o", path, "--", program, "60")
    shutil.rmtree(os.path.dirname(source))
    text = sysprof("report", path, "--annotate", "main", check=0).out
    assert "sum += i ^ sum >> 3;" in text and "older than the program" in text, text
    assert re.search(r"^ *\d+\.\d+%.* sum \+= i", text, re.M), text


def losses_of(program):
    """{reason: number} of the sources that are not in its recording."""
    line = re.search(r"^# no sources (.*)", sysprof("report", program + ".sysprof", check=0).out, re.M)
    return {reason: int(number) for number, reason in re.findall(r"(\d+) ([^,]+)", line.group(1))} if line else {}


FORBIDDEN = "not readable for those who can have written the debug information"


def test_no_file_that_a_tenant_may_not_read():
    """A tenant's program names root's files as its source: only what all may read is carried, and the rest is counted."""
    secret, public, other = scratch("secret.c"), scratch("public.c"), scratch("other.c")
    for path, mode, owner in (secret, 0o600, 0), (public, 0o644, 0), (other, 0o600, TENANT + 1):
        write(path, "secret of root\n" * 40)
        os.chmod(path, mode)
        os.chown(path, owner, owner)
    link, fifo, huge, binary = (scratch(name) for name in ("link.c", "fifo.c", "huge.c", "binary.c"))
    os.symlink(secret, link)
    os.mkfifo(fifo, 0o666)
    write(huge, "x\n" * (1 << 20) + "y")
    write(binary, b"secret of root\0\n")
    for number, (name, loss) in enumerate({
            "/etc/shadow": FORBIDDEN, secret: FORBIDDEN, other: FORBIDDEN, link: "with a link in their path",
            fifo: "no regular files", huge: "larger than 2 MiB", binary: "with NUL bytes", "/proc/1/environ": FORBIDDEN,
            "/proc/kcore": None, "/nowhere/at/all.c": "not there", public: None}.items()):
        text = PROGRAM.replace("\tfor (", f'#line 1 "{name}"\n\tfor (')
        own, program = compiled(f"tenant-{number}", text, TENANT)
        found = sources_of(program)
        assert (name in found) == (name == public), (name, found.keys())
        assert all(b"secret of root" not in data for path, (_, data) in found.items() if path != public), found.keys()
        assert loss is None or losses_of(program).get(loss) == 1, (name, losses_of(program))


def test_a_tenants_own_private_source():
    source, program = compiled("private", PROGRAM, TENANT)
    os.chmod(source, 0o600)
    assert source in sources_of(program)
    os.chown(source, 0, 0)
    assert source not in sources_of(program)


def test_a_program_that_others_may_write():
    """They could name the owner's files."""
    source, program = compiled("open-to-all", PROGRAM, TENANT)
    os.chmod(source, 0o600)
    for mode, group, carried in (0o755, TENANT, True), (0o777, TENANT, False), (0o775, TENANT, True), (0o775, TENANT + 1, False):
        os.chown(program, TENANT, group)
        os.chmod(program, mode)
        assert (source in sources_of(program)) == carried, (oct(mode), group)


def test_a_debug_file_of_another_user():
    """The names come from there."""
    source, program = compiled("two-owners", PROGRAM, TENANT)
    debug = program + ".debug"
    os.chmod(source, 0o600)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    for owner, carried in (TENANT, True), (0, True), (TENANT + 1, False):
        os.chown(debug, owner, owner)
        assert (source in sources_of(program)) == carried, owner
    assert losses_of(program)[FORBIDDEN] == 1, losses_of(program)


def test_a_setuid_program():
    """Any user may run it, so root's private source is not carried."""
    source, program = compiled("setuid")
    os.chmod(program, 0o4755)
    path = program + ".sysprof"
    for mode, carried in (0o644, True), (0o600, False):
        os.chmod(source, mode)
        record("--no-symbol-cache", "-o", path, "--", *as_user(TENANT), program, "60")
        assert (source in bundled_sources(path)) == carried, oct(mode)


def process_of(program):
    """One that runs it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == program:
                return pid
        except OSError:
            pass
    return None


def in_roots(name, texts):
    """Programs that run below root directories of their own, each with its text as /app/hot.c."""
    commands = []
    for number, text in enumerate(texts):
        root = scratch(f"{name}-{number}")
        os.makedirs(os.path.join(root, "app"))
        for place in root, os.path.join(root, "app"):
            os.chmod(place, 0o755)
        source, program = (os.path.join(root, "app", file) for file in ("hot.c", "hot"))
        write(source, text)
        os.chmod(source, 0o644)
        os.utime(source, (1e9, 1e9))
        subprocess.run(["gcc", "-g", "-O1", "-static", f"-ffile-prefix-map={root}=", f"-DPART={number}", "-o", program, source], check=True)
        commands.append(f"chroot {root} /app/hot 60")
    return " & ".join(commands) + " & wait"


def texts_of(path, name):
    """{number of the root: text} of the sources with this path."""
    found = {}
    for kind, _, _, body in recording_events(path):
        if kind == r.SOURCE:
            size, offset, count, path_size, _, root = struct.unpack_from("<IIIHBB", body)
            if body[16:16 + path_size - 1].decode() == name:
                found[root] = found.get(root, b"") + body[16 + path_size:16 + path_size + count]
    return found


def test_one_path_in_two_roots():
    """Each program has its own text, in the report, its JSON and after reading both with filters."""
    path = scratch("roots.sysprof")
    texts = [PROGRAM.replace("i ^ sum", f"i + {number + 3} ^ sum") for number in range(2)]
    record("--no-symbol-cache", "-o", path, "--", "sh", "-c", in_roots("roots", texts))
    found = texts_of(path, "/app/hot.c")
    assert sorted(found) == [0, 1] and sorted(found.values()) == [text.encode() for text in texts], found
    for options in (), ("--process", "hot"):
        shown = sysprof("report", path, "--annotate", "main", *options, check=0).out
        parts = re.split(r"^# source .*", shown, flags=re.M)[1:]
        assert [re.search(r"line  (.*)", part)[1] for part in parts] == ["/app/hot.c", "/app/hot.c (root directory 2)"], shown
        for number in range(2):
            part = next(part for part in parts if f"i + {number + 3} ^" in part)
            assert f"i + {4 - number} ^" not in part and re.search(rf"%.* sum \+= i \+ {number + 3}", part), part
        rows = json.loads(sysprof("report", path, "--annotate", "main", "--json", *options, check=0).out)["rows"]
        assert {row["text"].strip() for row in rows if "sum +=" in row.get("text", "")} == {
            f"sum += i + {number + 3} ^ sum >> 3;" for number in range(2)}, rows
        assert {row.get("source_root", 0) for row in rows} == {0, 1}, rows


def test_one_text_in_two_roots():
    """It is there once."""
    path = scratch("same.sysprof")
    record("--no-symbol-cache", "-o", path, "--", "sh", "-c", in_roots("same", [PROGRAM, PROGRAM]))
    assert texts_of(path, "/app/hot.c") == {0: PROGRAM.encode()}
    assert "(root directory" not in sysprof("report", path, "--annotate", "main", check=0).out


def test_a_root_without_the_source():
    """Its program does not get the text that another root has."""
    path, program = scratch("one.sysprof"), in_roots("one", [PROGRAM.replace("argc == 9", "argc == 8"), PROGRAM])
    os.unlink(os.path.join(scratch("one-1"), "app", "hot.c"))
    record("--no-symbol-cache", "-o", path, "--", "sh", "-c", program)
    assert texts_of(path, "/app/hot.c") == {0: PROGRAM.replace("argc == 9", "argc == 8").encode()}
    shown = sysprof("report", path, "--annotate", "main", check=0).out
    assert len(re.findall("the recording does not have it", shown)) == 1 and len(re.findall("older than the program", shown)) == 1, shown


# ---- scripts ------------------------------------------------------------------------------------

PYTHON = "/usr/bin/python3"
SCRIPT = """import time
def hot(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
end = time.monotonic() + 1
while time.monotonic() < end:
    hot(20000)
"""


def script(name, text=SCRIPT, owner=0, mode=0o644):
    """A file below a directory of its own; both of the owner's."""
    place = scratch(name)
    os.makedirs(place)
    os.chmod(place, 0o755)
    path = os.path.join(place, "app.js" if "function" in text else "app.py")
    write(path, text)
    os.utime(path, (1e9, 1e9))
    os.chmod(path, mode)
    for file in place, path:
        os.chown(file, owner, owner)
    return path


def scripts_of(path, *command):
    recording = path + ".sysprof"
    record("-o", recording, "--", *command)
    return bundled_sources(recording)


def check_script(path, interpreter, line):
    assert scripts_of(path, interpreter, path).get(path) == (PLAUSIBLE, read(path, "rb"))
    text = sysprof("report", path + ".sysprof", "--annotate", "hot", check=0).out
    assert "older than the program" in text and re.search(rf"^ *\d+\.\d+%.* {line}$", text, re.M), text
    os.utime(path, (4e9, 4e9))
    assert scripts_of(path, interpreter, path)[path][0] == CHANGED
    assert "changed since" in sysprof("report", path + ".sysprof", "--annotate", "hot", check=0).out


def test_a_script_of_python():
    check_script(script("python"), PYTHON, re.escape("total += i * i % 7"))


def test_a_script_of_a_forked_worker():
    """It has the code that its parent loaded, whenever it was forked."""
    fork = "import os, sys\nif len(sys.argv) > 1: os.utime(__file__)\nif os.fork():\n    os.wait()\n"
    path = script("forked", fork + SCRIPT.replace("() + 1", "() + 100"))
    for arguments, state in ((), PLAUSIBLE), (("changes it",), CHANGED):
        with Background(PYTHON, path, *arguments) as server:
            children = f"/proc/{server.p.pid}/task/{server.p.pid}/children"
            wait_for(lambda: read(children))
            worker = read(children).split()[0]
            record("-o", path + ".sysprof", "-p", f"{server.p.pid},{worker}", "-d", "2")
            server.p.kill()
            os.kill(int(worker), signal.SIGKILL)
        assert bundled_sources(path + ".sysprof")[path][0] == state, arguments


def test_a_script_of_node():
    """Lines within a compiled function are unknown: its samples are at its first one."""
    if not shutil.which("node"):
        raise Skip("there is no node")
    text = "let sum = 0;\nfunction hot(n) {\n  for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003;\n}\n" \
        "const end = Date.now() + 1500;\nwhile (Date.now() < end) hot(20000);\n"
    check_script(script("node", text), "node", re.escape("function hot(n) {"))


def test_a_module_of_node_by_its_url():
    """Its name is a URL with escapes, and perhaps a query; the file's path has none, as --source-map has it."""
    if not shutil.which("node"):
        raise Skip("there is no node")
    place, here = (os.path.dirname(script(name, "function")) for name in ("a module 100%", "mapped module"))
    text = "function hot(n) {\n  let sum = 0;\n  for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003;\n  return sum;\n}\n" \
        "const end = Date.now() + 1500;\nwhile (Date.now() < end) hot(20000);\n"
    main, module, mapped = (os.path.join(*path) for path in ((place, "main.mjs"), (place, "app.mjs"), (here, "app.mjs")))
    write(main, "await import('./app.mjs?version=1');\n")
    write(module, text)
    write(mapped, text + "// mapped\n")
    for run, options, query, suffix in ((module, (), "", ""), (main, (), "?version=1", ""),
                                        (module, ("--source-map", f"{place}={here}"), "", "// mapped\n")):
        recording = scratch("module.sysprof")
        record("-o", recording, *options, "--", "node", run)
        found = bundled_sources(recording)
        name = "file://" + urllib.parse.quote(module) + query
        assert name in found and found[name][1].decode() == text + suffix, (name, found.keys())


def test_whose_scripts_are_carried():
    """As with programs: what all may read, and the private files of the user whose process names them."""
    place = script("word", SCRIPT)
    for number, (owner, mode, user, carried) in enumerate(((0, 0o644, TENANT, True), (0, 0o600, TENANT, False), (0, 0o600, 0, False),
                                                           (TENANT, 0o600, TENANT, True), (TENANT + 1, 0o600, TENANT, False))):
        named = script(f"word-{number}", "# secret of root\n" * 9, owner, mode)
        run = [PYTHON, "-c", f"exec(compile(open({place!r}).read(), {named!r}, 'exec'))"]
        found = scripts_of(named, *as_user(TENANT) * bool(user), *run)
        assert (named in found) == carried, (number, found.keys())
        assert carried or not any(b"secret of root" in text for _, text in found.values()), number


REUSED = """import os, sys
def start(user, named, pid=None):
    if pid:
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
    child = os.fork()
    if not child and (not pid or os.getpid() == pid):
        os.setgid(user)
        os.setuid(user)
        os.execv({python!r}, [{python!r}, "-c", "exec(compile(open({place!r}).read(), " + repr(named) + ", 'exec'))"])
    if not child:
        os._exit(9)
    return child, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
first, _ = start({tenant}, {named!r})
for _ in range(1000):
    if start({tenant} + 1, {own!r}, first) == (first, 0):
        print("reused")
        break
"""


def test_a_pid_of_two_tenants():
    """The one that had it before does not get the private files of the later one."""
    if os.geteuid() or not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK):
        raise Skip("pids cannot be chosen")
    named, own = (script(f"reused-{name}", f"# of the later one: {name}\n" * 9, TENANT + 1, 0o600) for name in ("named", "own"))
    code = REUSED.format(python=PYTHON, place=script("reused", SCRIPT), tenant=TENANT, named=named, own=own)
    path = scratch("reused.sysprof")
    if "reused" not in record("-o", path, "--", PYTHON, "-c", code).out:
        raise Skip("others took the pid")
    found = bundled_sources(path)
    assert own in found and named not in found, found.keys()


def test_a_script_of_two_roots():
    """One name for the functions of both: equal texts are shown, others are counted."""
    at = scratch("mounted")
    os.makedirs(at)
    endless = SCRIPT.replace("() + 1", "() + 100")
    paths = [script(f"root-{number}", endless + "# other\n" * (number == 2)) for number in range(3)]
    recording = scratch("two-roots.sysprof")
    for other, carried in (1, True), (2, False):
        one, two = (("unshare", "-m", "sh", "-c", f"mount --bind {os.path.dirname(paths[i])} {at} && exec {PYTHON} {at}/app.py")
                    for i in (0, other))
        with Background(*one) as first, Background(*two) as second:
            pids = first.p.pid, second.p.pid
            wait_for(lambda: all(read(f"/proc/{pid}/cmdline", "rb").startswith(PYTHON.encode()) for pid in pids))
            said = record("-o", recording, "-p", ",".join(map(str, pids)), "-d", "2").err
            for running in first, second:
                running.p.kill()
        text = sysprof("report", recording, "--annotate", "hot", check=0).out
        assert ("total += i * i % 7" in text) == carried, text
        assert ("1 of several root directories, with other texts" in said) == (not carried), said


def named_by_python(text, path):
    """A command that runs the text of a file under another name."""
    return [PYTHON, "-c", f"exec(compile(open({text!r}).read(), {path!r}, 'exec'))"]


def shown_of(recording, function):
    return sysprof("report", recording, "--annotate", function, check=0).out


def record_both(recording, python, program, *options):
    """A program, and a command that becomes Python's."""
    with Background(*python) as other, Background(program, "1000000") as hot:
        wait_for(lambda: process_of(program) and read(f"/proc/{other.p.pid}/cmdline", "rb").startswith(PYTHON.encode()))
        record("--no-symbol-cache", "-o", recording, *options, "-p", f"{hot.p.pid},{other.p.pid}", "-d", "2")
        for running in hot, other:
            running.p.kill()


def test_a_script_with_the_path_of_another_program():
    """A tenant mounts a text of his own over it: it is no source of that program."""
    source, program = compiled("shadowed")
    own = script("shadow", SCRIPT.replace("() + 1", "() + 100"), TENANT)
    mounted = os.path.join(os.path.dirname(own), "hot.c")
    os.rename(own, mounted)
    run = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', os.path.dirname(mounted), os.path.dirname(source),
           *as_user(TENANT), *named_by_python(source, source)]
    recording = scratch("shadow.sysprof")
    for has_own in True, False:
        if not has_own:
            os.unlink(source)
        record_both(recording, run, program)
        assert set(texts_of(recording, source)) == ({0, 253} if has_own else {253})
        native, python = shown_of(recording, "main"), shown_of(recording, "hot")
        assert ("sum += i ^ sum" in native) == has_own and "total +=" not in native, native
        assert ("the recording does not have it" in native) != has_own, native
        assert "total += i * i % 7" in python and "sum +=" not in python, python
        assert (f"{source} (script)" in python) == has_own and (f"{source} (root directory 1)" in native) != has_own, (native, python)


def test_a_script_and_a_program_of_one_file():
    """Both have its text; also if it is mapped."""
    source, program = compiled("both")
    endless, recording = script("both-script", SCRIPT.replace("() + 1", "() + 100")), scratch("both.sysprof")
    for options in (), ("--source-map", f"{os.path.dirname(source)}={os.path.dirname(source)}"):
        record_both(recording, named_by_python(endless, source), program, *options)
        assert texts_of(recording, source) == {255 if options else 0: PROGRAM.encode(), 253: PROGRAM.encode()}, options
        for function in "main", "hot":
            assert "for (unsigned long i" in shown_of(recording, function), (options, function)


def test_a_script_of_an_old_and_a_new_process():
    """It was changed between their beginnings."""
    path = script("aged", SCRIPT.replace("() + 1", "() + 100"))
    recording = path + ".sysprof"
    for users in (TENANT, 0), (0, TENANT):
        commands = [[*(as_user(user) if user else ()), PYTHON, path] for user in users]
        with Background(*commands[0]) as first:
            wait_for(lambda: read(f"/proc/{first.p.pid}/cmdline", "rb").startswith(PYTHON.encode()))
            changed = time.time()
            os.utime(path, (changed, changed))
            wait_for(lambda: time.time() > changed + 0.1)  # times of processes are of ticks
            with Background(*commands[1]) as second:
                wait_for(lambda: read(f"/proc/{second.p.pid}/cmdline", "rb").startswith(PYTHON.encode()))
                record("-o", recording, "-p", f"{first.p.pid},{second.p.pid}", "-d", "2")
                second.p.kill()
            first.p.kill()
        assert bundled_sources(recording)[path][0] == CHANGED, users


def test_a_file_system_that_does_not_answer():
    """A tenant's source is in a file system that hangs: the others' sources are there, and it is counted."""
    place = place_of(TENANT)  # the tenant has a /tmp of its own
    try:
        _, program = compiled("silent", PROGRAM.replace("\tfor (", '#line 1 "/tmp/perf-0.c"\n\tfor ('), TENANT)
        silent = shutil.copy(program, os.path.join(place, "silent"))
        source, loud = compiled("loud")
        path = scratch("silent.sysprof")
        with Background(loud, "1000000") as other, Background(*as_user(TENANT), fixture("silentfs"), "-w", "read", fuse_device(), place,
                                                              silent, "1000000"):
            pid = wait_for(lambda: process_of(silent))
            result = record("--no-symbol-cache", "-o", path, "-p", f"{pid},{other.p.pid}", "-d", "2")
            os.kill(int(pid), signal.SIGKILL)
            other.p.kill()
        found = bundled_sources(path)
        assert source in found and "/tmp/perf-0.c" not in found, found.keys()
        assert "not searched: a file system did not answer, or a limit was reached" in result.err, result
    finally:
        shutil.rmtree(place)


def forged(name, code):
    """A recording of one program, whose events of code are these."""
    s = r.begun("program")
    s.sample(100, 0x10010)
    s.end(symbols=[(1, [(0x1010, ("hot", 0x1000, 0x18))])], code=code)
    path = scratch(name)
    write(path, s.data())
    return path


def test_forged_events():
    """Broken ones refuse the recording at their chunk, at most; wrong ones are left out."""
    row, place = (0, 1, 0, 0, 0), ("f", 0, 4, "a.c", 0)
    for number, code in enumerate((
            [r.code_lines(1, 0x1000, [row], [place])],                                 # lines of no code
            [r.code_text(1, 0x1000, 8, 4, bytes(4))],                                   # no beginning
            [r.code_text(1, 2 ** 64 - 4, 8, 0, bytes(8))],                              # behind the end of memory
            [r.code_text(0, 0x1000, 8, 0, bytes(8)), r.code_lines(0, 0x1000, [row], [place])],
            [r.code_text(2 ** 32 - 1, 0x1000, 8, 0, bytes(8)), r.code_lines(2 ** 32 - 1, 0x1000, [row], [place])],
            [r.code_text(1, 0x1000, 8, 0, bytes(8), machine=200)],
            [r.code_text(1, 0x1000, 8, 0, bytes(8)), r.code_lines(1, 0x1000, [(9, 1, 0, 0, 0)], [place])],
            [r.source("/etc/shadow", b"a\0b")], [r.source("x", b"x", state=9)])):
        result = sysprof("report", forged(f"forged-{number}.sysprof", code), check=0)
        assert "hot" in result.out, result


if __name__ == "__main__":
    main(globals())
