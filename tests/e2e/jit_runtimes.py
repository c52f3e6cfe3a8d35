#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Real runtimes: their functions have names, definitions and tiers, and stacks go through them to the root."""
import os
import re
import shutil
import time

from jit import Judged, leaves, spans_of
from libe2e import (Background, Facts, Skip, alone, children_of, folded, load_json, long, lost_in, main, need_root, new_scratch, read, record,
                    record_cpu, scratch, share, use_cpu, user_part, wait_for, write)
from librecorded import FIXTURES, FOREVER, HZ, TOP, java_command, newer_python, nodes, recorded
from unwind import is_rooted, warm_samples

# with a /tmp of its own, unless that would hide what runs
IN_NAMESPACE = ["unshare", "-pfm", "--mount-proc", "--kill-child", "sh", "-c",
                ("" if TOP.startswith("/tmp/") else "mount -t tmpfs tmpfs /tmp && ") + '"$@"', "sh"]


def jit_line(result):
    lines = [line.strip() for line in result.err.splitlines() if "JIT code:" in line]
    assert lines, result
    print("  " + lines[0])
    return lines[0]


def forget_map(pid):
    """A runtime leaves it behind, and its number comes again."""
    path = f"/tmp/perf-{pid}.map"
    if os.path.exists(path):
        os.unlink(path)


def innermost_of(pid, wanted):
    """The process below `pid` whose command line has that word, once it runs."""
    def find(parent):
        for child in children_of(parent):
            found = find(child)
            if found:
                return found
        try:
            with open(f"/proc/{parent}/cmdline", encoding="utf-8", errors="replace") as f:
                words = f.read().split("\0")
            wraps = os.path.basename(words[0]) in ("unshare", "sh", "setpriv", "env", "mount")
            return parent if wanted in words and not wraps else None
        except OSError:
            return None

    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = find(pid)
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing runs {wanted}")


def profile_of(command, wanted, seconds=2.2, options=(), before=1.5):
    """Attach to a command that runs already: ({format: path}, the summary, pid)."""
    need_root()
    paths = {s: scratch(f"runtime{s}") for s in (".cpuprofile", ".json", ".folded")}
    with Background(*command, FOREVER, cwd=scratch("")) as program:
        pid = innermost_of(program.pid, wanted)
        use_cpu(pid, before)
        outputs = [x for path in paths.values() for x in ("-o", path)]
        result = record_cpu(pid, seconds, "-p", pid, "-F", HZ, *options, *outputs, "--thread", pid)
    forget_map(pid)
    return paths, result, pid


# ---- Node.js -------------------------------------------------------------------------------------

def in_whole_stacks(profile):
    """The nodes of stacks that begin where the thread began: one that was cut makes nodes of its own."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    todo = [n for n in profile["nodes"][0].get("children", []) if nodes[n]["callFrame"]["functionName"] == "_start"]
    found = []
    while todo:
        node = nodes[todo.pop()]
        found.append(node)
        todo += node.get("children", [])
    return found


def check_fibonacci(paths, pid=None):
    """
    [C1] definitions at line 0, column 18; [C2] few nodes; [C3] one key; [C5] as many ticks as hits at most, and as many
    hits as samples; [C6] lines within the function; [C8] of the file that ran, consistently; complete stacks.
    """
    profile = load_json(paths[".cpuprofile"])
    frames = [n["callFrame"] for n in profile["nodes"] if n["callFrame"]["functionName"] == "fibonacci"]
    keys = {(f["functionName"], f["url"], f["lineNumber"], f["columnNumber"]) for f in frames}
    assert len(keys) == 1, keys
    name, url, line, column = keys.pop()
    assert (line, column) == (0, 18) and url.endswith("/fibonacci.js"), (name, url, line, column)
    few = [n for n in in_whole_stacks(profile) if n["callFrame"]["functionName"] == "fibonacci"]
    assert 1 <= len(few) < 40, len(few)
    assert sum(n["hitCount"] for n in profile["nodes"]) == len(profile["samples"])
    for node in profile["nodes"]:
        ticks = node.get("positionTicks", [])
        assert sum(t["ticks"] for t in ticks) <= node["hitCount"], node
        assert [t["line"] for t in ticks] == sorted(t["line"] for t in ticks), node
        assert all(t["line"] >= 1 and t["ticks"] > 0 for t in ticks), node
        if node["callFrame"]["functionName"] == "fibonacci":
            assert all(t["line"] == 1 for t in ticks), node
    rows = [(frames, 1) for _, frames in warm_samples(paths[".json"], pid) if "fibonacci" in frames]
    assert len(rows) > 300, len(rows)
    rooted = share(rows, lambda f: f[0] == "_start" and f.index("fibonacci") > 5)
    assert rooted >= 0.99, rooted
    return len(few)


def shared_paths(name, pid):
    """{format: path} of a recording that all tests share; the one of a single thread is that process's main thread."""
    recording = recorded(name)
    paths = {suffix: recording.output(suffix) for suffix in (".json", ".folded")}
    return {**paths, ".cpuprofile": recording.output(".cpuprofile", "--thread", pid)}


def test_fibonacci_by_perf_map():
    recording = recorded("node")
    for key in [key for i in range(len(nodes())) for key in (f"node{i}", f"node{i}-interpreted")]:
        pid = recording.pid(key)
        count = check_fibonacci(shared_paths("node", pid), pid)
        line = recording.jit_line(key)
        print(f"  {key}: {count} nodes of fibonacci")
        assert "without a name" not in line and "ambiguous" not in line, line


def fibonacci_by_jitdump(versions):
    for node in versions:
        directory = scratch("dump")
        os.makedirs(directory, exist_ok=True)
        command = [node, "--perf-prof", os.path.join(FIXTURES, "fibonacci.js")]
        paths = {s: scratch(f"dump{s}") for s in (".cpuprofile", ".json", ".folded")}
        outputs = [x for path in paths.values() for x in ("-o", path)]
        result = record("-F", HZ, *outputs, "--", *command, 2.5, cwd=directory)
        line = jit_line(result)
        assert "without a name" not in line and "ambiguous" not in line and "not yet" not in line, line
        check_fibonacci(paths)
        ticks = [n for n in load_json(paths[".cpuprofile"])["nodes"]
                 if n["callFrame"]["functionName"] == "fibonacci" and n.get("positionTicks")]
        assert ticks, "no executing lines of fibonacci"
        with Background(*command, FOREVER, cwd=directory) as running:
            time.sleep(0.7)
            line = jit_line(record("-p", running.pid, "-d", 0.5, "-o", scratch("early.folded")))
        if "not yet written" in line:
            assert "--perf-basic-prof" in line, line
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))


def test_fibonacci_by_jitdump():
    """[C4] Recorded to its end, it has all names, and executing lines; before that it reports what is missing."""
    fibonacci_by_jitdump(nodes()[:1])


@long
def test_fibonacci_by_jitdump_of_a_newer_one():
    fibonacci_by_jitdump(nodes()[1:])


def functions_come_and_go(versions):
    for node in versions:
        log, path, end = scratch("churn.log"), scratch("churn.json"), new_scratch("churn.end")
        seconds = 4  # of CPU time
        with Background(node, "--perf-basic-prof", "--expose-gc", os.path.join(FIXTURES, "churn.js"), FOREVER, log, end,
                        cwd=scratch("")) as program:
            map_of = f"/tmp/perf-{program.pid}.map"
            wait_for(lambda: os.path.exists(map_of) and "churn_9 " in read(map_of), what="ten functions")
            result = record_cpu(program.pid, seconds, "-p", program.pid, "-F", 999, "-o", path)
            write(end, "")
            program.finish(check=0)
        forget_map(program.pid)
        with open(log, encoding="utf-8") as f:
            spans = spans_of(Facts(f.read()))
        made = {name for name, _, _ in spans}
        samples = list(leaves(path, program.pid))
        judged = Judged([s for s in samples if s.name in made or s.name.startswith(("[", "0x"))], spans)
        jit_line(result)
        print(f"  {node}: {len(spans)} functions, {judged}")
        assert judged.count + lost_in(path) > 300 * seconds and judged.wrong == 0, judged
        assert judged.unnamed < 0.01 * judged.count, judged
        # the longer the map waits to be read, the more code may have moved: a hundredth, if nothing else needs the CPUs
        assert judged.flagged < 0.2 * judged.count, judged


@long
@alone
def test_functions_come_and_go():
    """Judged by the program's own log: no unflagged sample is wrong."""
    functions_come_and_go(nodes()[:1])


@long
@alone
def test_functions_come_and_go_in_a_newer_one():
    functions_come_and_go(nodes()[1:])


def test_without_a_map():
    """Functions have names from V8's memory; the flag that would help is named only if many lack any."""
    recording = recorded("node")
    line = recording.jit_line("json")
    unnamed = re.search(r", (\d+) without a name", line)
    read = int(re.search(r"functions read from its memory,? in (\d+) sample", line)[1])
    lacks = unnamed is not None and 4 * int(unnamed[1]) > read
    assert ("no perf map" in line) == lacks and ("--perf-basic-prof" in line) == lacks, line
    frames = {name for _, frames in warm_samples(recording.output(".json"), recording.pid("json")) for name in frames}
    assert "f" in frames, sorted(frames)[:20]


def test_tiers_are_one_function():
    """Its tier is a subcategory; the same function whatever compiled it."""
    profile = load_json(recorded("node").output(".json"))
    jit = next(c for c in profile["meta"]["categories"] if c["name"] == "JIT")
    assert jit["subcategories"][0] == "Other" and "Optimized" in jit["subcategories"], jit
    shared = profile["shared"]
    functions = [i for i, name in enumerate(shared["funcTable"]["name"])
                 if shared["stringArray"][name] == "fibonacci"]
    assert len(functions) == 1, functions
    assert shared["funcTable"]["lineNumber"][functions[0]] == 1, shared["funcTable"]["lineNumber"]
    assert shared["funcTable"]["columnNumber"][functions[0]] == 19
    tiers = {jit["subcategories"][s] for s, f in
             zip(shared["frameTable"]["subcategory"], shared["frameTable"]["func"]) if f == functions[0]}
    assert "Optimized" in tiers, tiers


# ---- Python and Java ----------------------------------------------------------------------------

def check_python(paths, line, pid=None):
    assert "map /tmp/perf-" in line and "without a name" not in line, line
    rows = [(frames, 1) for _, frames in warm_samples(paths[".json"], pid)]
    with_fib = share(rows, lambda f: "fib" in f and "spin" in f and f.index("spin") < f.index("fib"))
    rooted = share(rows, is_rooted)
    print(f"  {with_fib:.3f} of the samples in fib, {rooted:.3f} complete")
    assert len(rows) > 200 and with_fib >= 0.97 and rooted >= 0.97, (with_fib, rooted)
    frames = [n["callFrame"] for n in load_json(paths[".cpuprofile"])["nodes"]]
    assert any(f["functionName"] == "fib" and f["url"].endswith("/fib.py") for f in frames), frames[:5]


def test_python():
    recording = recorded("python")
    pid = recording.pid("perf")
    check_python(shared_paths("python", pid), recording.jit_line("perf"), pid)


@long
def test_python_in_a_namespace():
    paths, result, _ = profile_of([*IN_NAMESPACE, newer_python(), "-X", "perf", os.path.join(FIXTURES, "fib.py")],
                                  os.path.join(FIXTURES, "fib.py"))
    check_python(paths, jit_line(result))


def check_java(paths, line):
    assert "map /tmp/perf-" in line, line
    rows = [(user_part(frames), n) for frames, n in folded(paths[".folded"])]
    # not the one that compiles what it runs, and so calls it by reflection
    rows = [(frames, n) for frames, n in rows
            if any("JavaMain" in f for f in frames) and not any("JVM_InvokeMethod" in f for f in frames)]
    with_fib = share(rows, lambda f: any(re.search(r"Fib\.fib", x) for x in f))
    rooted = share(rows, lambda f: re.match(r"(__)?clone3?$", f[0]) is not None)
    nameless = share(rows, lambda f: any(re.match(r"0x|\[(lib|java|unknown|HotSpot)", x) for x in f))
    print(f"  {with_fib:.3f} of the samples in Fib.fib, {nameless:.3f} with a frame without a name, {rooted:.3f} complete")
    # the rest is interpreted, until its threads have compiled it: on a busy machine that takes longer
    assert with_fib >= 0.5 and nameless <= 0.02 and rooted >= 0.97, (with_fib, nameless, rooted)


def test_java_that_gets_requests():
    """Beside one without frame pointers, whose stacks do not get to JavaMain."""
    recording = recorded("java")
    check_java(shared_paths("java", recording.pid("java")), recording.jit_line("java"))


def check_own_java(*command):
    paths, result, _ = profile_of(command, "Fib", options=["--jvm-perfmap"])
    check_java(paths, jit_line(result))


@long
def test_java_in_a_namespace():
    check_own_java(*IN_NAMESPACE, *java_command())


@long
def test_java_as_another_user():
    if not shutil.which("setpriv"):
        raise Skip("there is no setpriv")
    check_own_java("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *java_command())


@long
def test_node_in_a_namespace():
    command = [*IN_NAMESPACE, nodes()[0], "--perf-basic-prof", os.path.join(FIXTURES, "fibonacci.js")]
    paths, result, _ = profile_of(command, "--perf-basic-prof")
    assert "without a name" not in jit_line(result)
    check_fibonacci(paths)


if __name__ == "__main__":
    main(globals())
