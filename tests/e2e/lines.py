#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""Lines and inlined functions in every output: of a program that is known line by line, and of a
stripped library whose debug file is found by link, by build-id, in a container's root, or not at all."""
import os
import re
import shutil
import signal
import time

from libe2e import (SYSPROF, TOP, Background, Fixture, Skip, firefox_threads, fixture, folded, kernel_part, load_json,
                    main, read, record, run, scratch, share, started_sampling, sysprof)

FIXTURES = os.path.join(TOP, "tests/fixtures")
HEADER = os.path.join(FIXTURES, "inlined.h")


def marked(file, mark):
    """The lines (1-based) that end with this comment."""
    with open(file, encoding="utf-8") as f:
        lines = [n for n, line in enumerate(f, 1) if line.rstrip().endswith(f"/* {mark} */")]
    assert lines, f"no line of {file} is marked {mark}"
    return lines


HOT, WARM = marked(HEADER, "hot"), marked(HEADER, "warm")


def definition(name):
    for file in ("inlined.h", "inlined.c", "libinlined.c"):
        path = os.path.join(FIXTURES, file)
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if f"/* definition of {name} */" in line:
                    return path, number, line.index(name)
    raise AssertionError(f"no definition of {name}")


def user_rows(path):
    """The samples of user space, as [(["function:line", …], count)]."""
    return [(frames[1:], count) for frames, count in folded(path) if not kernel_part(frames)]


def assert_hot(rows, spin):
    """Nearly all samples are where the work is, three quarters of it on the hot lines."""
    def where(frames):
        name, _, line = frames[-1].rpartition(":")
        return name, int(line) if line.isdigit() else 0

    total = share(rows, lambda f: where(f) in {("step_hot", n) for n in HOT} |
                  {("step_warm", n) for n in WARM})
    hot = share(rows, lambda f: where(f) in {("step_hot", n) for n in HOT})
    assert total >= 0.95, f"{total:.3f} on the known lines: {rows}"
    assert 0.65 <= hot <= 0.85, f"{hot:.3f} on the hot lines: {rows}"
    chain = [f"{spin}:{marked_in(spin)}",
             f"many_steps:{marked(HEADER, 'call of both_steps')[0]}",
             f"both_steps:{marked(HEADER, 'call of step_hot')[0]}"]
    whole = share([r for r in rows if r[0][-1].startswith("step_hot:")],
                  lambda f: f[-4:-1] == chain)
    assert whole >= 0.95, f"{whole:.3f} of the hot samples came by {chain}: {rows}"


def marked_in(spin):
    """The line in which the outermost function calls many_steps."""
    path, number, _ = definition(spin)
    lines = read(path).splitlines()
    return next(n for n in range(number, len(lines)) if "many_steps(" in lines[n - 1])


# ---- the outputs --------------------------------------------------------------------------------

def own_recording():
    """All formats of one recording of the fixture, made once."""
    paths = {kind: scratch(f"own.{kind}") for kind in ("sysprof", "json", "cpuprofile", "folded")}
    if not os.path.exists(paths["sysprof"]):
        outputs = [word for path in paths.values() for word in ("-o", path)]
        result = record("--lines", "--no-symbol-cache", *outputs, "--", fixture("inlined"), "1.5")
        assert "lines are missing" not in result.err, result
    return paths


def test_folded():
    assert_hot(user_rows(own_recording()["folded"]), "own_spin")


def cpuprofile_nodes(path):
    profile = load_json(path)
    nodes = {node["id"]: node for node in profile["nodes"]}
    for node in profile["nodes"]:
        for child in node.get("children", ()):
            nodes[child]["parent"] = node["id"]
    return nodes


def test_cpuprofile_ticks():
    """positionTicks of the leaves fall on the known lines; sorted; no more than the node's hits."""
    nodes = cpuprofile_nodes(own_recording()["cpuprofile"])
    ticks, checked = {}, 0
    for node in nodes.values():
        positions = node.get("positionTicks", [])
        lines = [p["line"] for p in positions]
        assert lines == sorted(set(lines)) and all(p["ticks"] > 0 for p in positions), node
        assert sum(p["ticks"] for p in positions) <= node["hitCount"], node
        assert not ("positionTicks" in node and not positions), node
        if node["callFrame"]["functionName"] in ("step_hot", "step_warm") and positions:
            for p in positions:
                ticks[p["line"]] = ticks.get(p["line"], 0) + p["ticks"]
            checked += 1
    assert checked >= 2, f"{checked} nodes of the two leaves"
    total = sum(ticks.values())
    good = sum(n for line, n in ticks.items() if line in HOT + WARM)
    assert total > 100 and good / total >= 0.95, ticks


def test_cpuprofile_definitions():
    """callFrame is where the function is defined, 0-based, by file://; not the executing line."""
    nodes = cpuprofile_nodes(own_recording()["cpuprofile"])
    for name in ("own_spin", "many_steps", "both_steps", "step_hot", "step_warm"):
        found = [n["callFrame"] for n in nodes.values() if n["callFrame"]["functionName"] == name]
        # one node, or a second for a sample in a prologue, whose caller is not known
        assert found and all(frame == found[0] for frame in found), f"{name}: {found}"
        if name == "many_steps":
            continue
        path, line, column = definition(name)
        assert found[0]["url"] == f"file://{path}", found
        assert (found[0]["lineNumber"], found[0]["columnNumber"]) == (line - 1, column), found
    for node in nodes.values():
        if node["callFrame"]["functionName"].startswith("step_"):
            chain = []
            while "parent" in node:
                chain.append(node["callFrame"]["functionName"])
                node = nodes[node["parent"]]
            assert chain[1:4] == ["both_steps", "many_steps", "own_spin"], chain


def firefox_frames(path):
    """The frames of user code of the Firefox file, each as a dictionary with names for numbers."""
    shared = load_json(path)["shared"]
    frames, functions = shared["frameTable"], shared["funcTable"]
    strings, symbols, sources = shared["stringArray"], shared["nativeSymbols"], shared["sources"]
    for i, func in enumerate(frames["func"]):
        source, symbol = functions["source"][func], frames["nativeSymbol"][i]
        yield {
            "name": strings[functions["name"][func]],
            "line": frames["line"][i], "depth": frames["inlineDepth"][i],
            "address": frames["address"][i],
            "file": None if source is None else strings[sources["filename"][source]],
            "definition": (functions["lineNumber"][func], functions["columnNumber"][func]),
            "symbol": None if symbol is None else strings[symbols["name"][symbol]],
            "symbol_range": None if symbol is None else
            (symbols["address"][symbol], symbols["functionSize"][symbol]),
        }


def test_firefox():
    path = own_recording()["json"]
    seen = {}
    for frame in firefox_frames(path):
        name = frame["name"]
        if name not in ("own_spin", "both_steps", "step_hot", "step_warm"):
            continue
        file, line, column = definition(name)
        assert frame["file"] == file and frame["definition"] == (line, column + 1), frame
        assert frame["symbol"] == "own_spin", frame
        start, size = frame["symbol_range"]
        assert start <= frame["address"] < start + size, frame
        depth = {"own_spin": 0, "both_steps": 2, "step_hot": 3, "step_warm": 3}[name]
        assert frame["depth"] == depth, frame
        seen.setdefault(name, set()).add(frame["line"])
    assert seen["step_hot"] & set(HOT) and seen["step_warm"] & set(WARM), seen
    assert set(marked(HEADER, "call of step_hot")) <= seen["both_steps"], seen
    assert marked_in("own_spin") in seen["own_spin"], seen
    thread = max(firefox_threads(path), key=lambda t: t.count)
    stacks = [[n for n, _ in frames] for _, frames in thread.samples()]
    good = sum("own_spin" in s and s[s.index("own_spin") + 1:][:2] == ["many_steps", "both_steps"]
               for s in stacks)
    assert good >= 0.95 * len(stacks), f"{good} of {len(stacks)}"


def test_report():
    path = own_recording()["sysprof"]
    lines = sysprof("report", path, "--by", "line", "--top", "4", check=0).out
    top = [row for row in lines.splitlines() if re.match(r" *\d+\.\d+%", row)][0]
    assert re.search(rf"step_hot +{re.escape(HEADER)}:({'|'.join(map(str, HOT))})$", top), lines
    dsos = sysprof("report", path, "--by", "dso", "--top", "1", check=0).out
    assert re.search(r"\n *(9\d\.\d\d|100\.00)%.* inlined\n", dsos), dsos


def test_convert_gives_the_same_bytes():
    paths = own_recording()
    for kind in ("json", "cpuprofile", "folded"):
        again = scratch(f"again.{kind}")
        sysprof("convert", paths["sysprof"], "-o", again, "--lines", check=0)
        with open(paths[kind], "rb") as a, open(again, "rb") as b:
            assert a.read() == b.read(), f"{kind} differs"


def test_cache_changes_nothing():
    """A recording without symbols, named thrice: without, into, and out of the cache."""
    path = scratch("cut.sysprof")
    with Fixture("inlined", "20") as target, \
            Background(SYSPROF, "record", "-p", target.pid, "-o", path) as recorder:
        started_sampling(recorder, path)
        time.sleep(1.5)
        recorder.signal(signal.SIGKILL)
        recorder.finish()
    results = []
    for options in (("--no-symbol-cache",), (), ()):
        out = scratch("cut.json")
        sysprof("convert", path, "-o", out, "--lines", *options, check=0)
        results.append(read(out, "rb"))
    assert results[0] == results[1] == results[2]
    assert b"step_hot" in results[0]


# ---- debug files --------------------------------------------------------------------------------

def strip(source, library, debug):
    """`source` without what no program needs, as `library`; and that, as `debug`."""
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    run("objcopy", "--only-keep-debug", source, debug, check=0)
    run("objcopy", "--strip-all", source, library, check=0)


def strip_library(path, debug, link=True):
    """In its place; with a link to that file."""
    strip(path, path + ".stripped", debug)
    os.rename(path + ".stripped", path)
    if link:
        run("objcopy", f"--add-gnu-debuglink={debug}", path, check=0)


def build_id(path):
    notes = run("readelf", "-n", path, check=0).out
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def by_build_id(root, identity):
    return f"{root}/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug"


def library(name):
    """A library of its own build-id, so that no answer about another one fits: (path, directory)."""
    directory = scratch(f"lib-{name}")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "libinlined.so")
    run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls", f"-frandom-seed={directory}", f'-DNAME="{name}"',
        "-Wl,--build-id=sha1", f"-Wl,--defsym=of_{name.replace('-', '_')}={os.getpid()}",
        "-fPIC", "-shared", "-o", path,
        os.path.join(FIXTURES, "libinlined.c"), check=0)
    return path, directory


def spin(path, name):
    out = scratch(f"{name}.folded")
    result = record("--lines", "-o", out, "--", fixture("inlined"), "0.8", path)
    return user_rows(out), result


def test_debug_file():
    """Found by its link, beside the library and below, and by its build-id."""
    for name, place in ("link", "libinlined.so.debug"), ("link-below", ".debug/libinlined.so.debug"), ("by-id", None):
        path, directory = library(name)
        debug = os.path.join(directory, place) if place else by_build_id("", build_id(path))
        try:
            strip_library(path, debug, link=place)
            rows, _ = spin(path, name)
            assert_hot(rows, "inlined_spin")
        finally:
            if os.path.exists(debug):
                os.unlink(debug)


def test_debug_file_of_another_build():
    """It has the right name and is not it: no line at all, and the refusal is said."""
    path, directory = library("other")
    debug = os.path.join(directory, "libinlined.so.debug")
    strip_library(path, debug)
    shutil.copy(library("another")[0], debug)
    rows, result = spin(path, "other")
    assert_symbols_alone(rows)
    assert "another build" in result.err, result


def split_program(root, name):
    """The fixture with its DWARF in a .dwo file: (program, that file), as named inside the root."""
    directory = f"/{name}"
    os.makedirs(root + directory, exist_ok=True)
    built = run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-gsplit-dwarf", "-w",
                "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-static",
                f"-ffile-prefix-map={root}=", "-Wl,--build-id=sha1", "-c",
                os.path.join(FIXTURES, "inlined.c"), "-o", "inlined.o", cwd=root + directory)
    assert built.status == 0, built
    built = run("cc", "-static", "-o", f"{root}{directory}/inlined",
                f"{root}{directory}/inlined.o")
    if built.status:
        raise Skip("no static C library to build a container's program with")
    return f"{directory}/inlined", f"{root}{directory}/inlined.dwo"


def test_split_dwarf_inside_a_container():
    """The .dwo file has the name that it has in the program's root; then it is gone, which is said."""
    root = scratch("split-root")
    program, dwo = split_program(root, "build")
    assert os.path.exists(dwo)
    for there in (True, False):
        if not there:
            os.unlink(dwo)
        out = scratch("split.folded")
        result = record("--lines", "--no-symbol-cache", "-o", out, "--", "chroot", root, program,
                        "1")
        rows = [(f, n) for f, n in user_rows(out) if any("spin" in x for x in f)]
        assert rows, result
        if there:
            assert_hot(rows, "own_spin")
        else:
            named = share(rows, lambda f: f[-1].startswith("own_spin"))
            assert named >= 0.9, rows
        said = re.search(r"lines are missing: .*inlined: a part .* missing", result.err)
        assert bool(said) != there, result


def test_debug_file_inside_a_container():
    """The program's root has it, the host has not."""
    root = scratch("root")
    os.makedirs(os.path.join(root, "bin"), exist_ok=True)
    path = scratch("static")
    built = run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fno-omit-frame-pointer", "-w",
                "-fno-optimize-sibling-calls", "-static", "-Wl,--build-id=sha1", "-o", path,
                os.path.join(FIXTURES, "inlined.c"))
    if built.status:
        raise Skip("no static C library to build a container's program with")
    strip(path, os.path.join(root, "bin/inlined"), by_build_id(root, build_id(path)))
    out = scratch("container.folded")
    record("--lines", "-o", out, "--", "chroot", root, "/bin/inlined", "1")
    rows = [(f, n) for f, n in user_rows(out) if any("spin" in x for x in f)]
    assert_hot(rows, "own_spin")


def assert_symbols_alone(rows):
    named = share(rows, lambda f: f[-1] == "inlined_spin")
    assert named >= 0.95, f"{named:.3f} have the exported name alone: {rows}"


def test_without_debug_file():
    path, _ = library("absent")
    strip_library(path, scratch("elsewhere/absent.debug"), link=False)
    rows, result = spin(path, "absent")
    assert_symbols_alone(rows)
    assert "lines are missing" not in result.err, result


if __name__ == "__main__":
    main(globals())
