#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 1800
# runs: beside long
"""WebAssembly in Node.js, whose functions sysprof has from memory, against the perf map of the same process, which it is not shown.

Each frame of each sample that lies in code of WebAssembly must have the name of the map's entry at its address, of that time, and
the URL of its module. Without any flag stacks through WebAssembly must be those that the program makes.
"""
import collections
import os
import re

from libe2e import SYSPROF, Background, folded, long, main, need_root, read, record, run, scratch, wait_for
from librecorded import TOP
from runtime_v8_recorded import SAMPLES, SECONDS, Hidden, all_nodes, frames_of, version_of

PROGRAM = os.path.join(TOP, "tests/fixtures/v8/wasm.cjs")
PROGRAMS = os.environ.get("WASM_PROGRAMS", "mixed").split()  # or recursion, mutual, memory, bounce, indirect, many alone
ENTRY = re.compile(r"^(?:JS|Function):(.*)-(\d+)-(liftoff|turbofan)$")
SHOWN = int(os.environ.get("V8_SHOW", "0"))
LABELS = ("[V8]", "[WebAssembly]", "[WebAssembly to JavaScript]", "[JavaScript to WebAssembly]")


def entry(name):
    """The name that a function has in the map, and the code's tier; None: it is no function of a module."""
    match = ENTRY.match(name or "")
    return (match[1], match[3]) if match and not match[1].startswith("wasm-to-js") else None


def verdict_of(frame, reported):
    entries = [entry(name) for name in reported]
    if not any(entries):
        return "nameless in both" if frame[0] == "[WebAssembly]" else None
    name, file = frame[:2]
    for wanted in entries:
        if wanted and wanted[0] == name and file.startswith("wasm://wasm/"):
            is_named = not name.startswith("wasm-function[")
            return f"equal, {wanted[1]}" if ("shapes.wasm" in file) == is_named else "another module"
    if not entries[0] or not entries[1] or entries[0] != entries[1]:
        return "the map changed"
    if frame[5]:
        return "differs, flagged"
    if name.startswith("0x"):
        return "nameless"
    return "not read" if name in LABELS else "differs"


def check_program(binary, name, wanted):
    counts = collections.Counter()
    with Hidden(binary, ["--perf-basic-prof"], PROGRAM, name) as hidden:
        hidden.ready(1)
        for raw, names, i, _, reported in frames_of(hidden, wanted, 2 * SECONDS, counts):
            verdict = verdict_of(names[-1], reported)
            if not verdict:
                continue
            kind = "frame" if i else "innermost"
            counts[f"{kind}: {verdict}"] += 1
            if not verdict.startswith("equal") and counts[f"{kind}: {verdict}"] <= SHOWN:
                print(f"    {kind} {verdict}: ours {names[-1]} theirs {reported} at {raw:#x}")
    return counts


def check_node(binary, programs, wanted):
    need_root()
    version, sums = version_of(binary), collections.Counter()
    for name in programs:
        counts = check_program(binary, name, wanted)
        print(f"  {version} {name}: " + ", ".join(f"{n} {key}" for key, n in sorted(counts.items())), flush=True)
        sums += counts
    share = {}
    for kind in "frame", "innermost":
        all_of = sum(n for key, n in sums.items() if key.startswith(kind) and not key.endswith("flagged"))
        share[kind] = sum(n for key, n in sums.items() if key.startswith(f"{kind}: equal")) / max(1, all_of)
    print(f"  {version}: " + ", ".join(f"{n} {key}" for key, n in sorted(sums.items())))
    print("    equal: " + ", ".join(f"{share:.4f} of {kind}s" for kind, share in share.items()), flush=True)
    # a function that JavaScript has just called has its words yet: flagged, or without a name
    assert share["frame"] >= 0.99 and share["innermost"] >= 0.95, sums
    assert not any(": differs" in key and "flagged" not in key or "another module" in key for key in sums), sums


def test_functions():
    for binary in all_nodes():
        check_node(os.path.realpath(binary), PROGRAMS, 3 * SAMPLES)


# ---- without flags

def stacks_of(binary, name, wanted):
    """{stack, outermost first: samples}, from a second after the start on. The recording is scratch("plain.sysprof")."""
    need_root()
    with Background(os.path.realpath(binary), PROGRAM, name) as program:
        assert program.p.stdout.readline() == "ready\n", "the program does not run"
        record("--no-wall", "-p", program.pid, "-d", 0.3, "-o", scratch("first.folded"))
        for seconds in 0.4, 1, 2, 4:  # while others have the CPUs
            path = scratch("plain.folded")
            record("--no-wall", "-p", program.pid, "-F", 2499, "-d", seconds, "-o", scratch("plain.sysprof"), "-o", path,
                   timeout=120)
            stacks = collections.Counter()
            for stack, count in folded(path):
                stacks[tuple(stack)] += count
            if sum(stacks.values()) >= wanted:
                return stacks
    raise AssertionError(f"no {wanted} samples in 4 s: {sum(stacks.values())}")


def plain(name):
    return re.sub(r"_\[.*\]$", "", name)


def following(stack, names):
    """Are these in the stack, in that order? Others may lie between them."""
    rest = iter(map(plain, stack))
    return all(name in rest for name in names)


def test_whole_stacks():
    """Through JavaScript, WebAssembly of two modules, and back; with the frames between them."""
    # bounce() and wasm-function[5] may be inlined in those that call them
    order = ["fromWasm", "wasm-function[6]", "fromWasm"], ["fromWasm", "naïve::tiefer", "fromWasm"]
    for binary in all_nodes():
        stacks = {stack: n for stack, n in stacks_of(binary, "bounce", 300).items() if "forever" in map(plain, stack)}
        through = sum(n for stack, n in stacks.items() if any(following(stack, names) for names in order))
        nameless = sum(n for stack, n in stacks.items() if any(name.startswith("0x") for name in stack))
        between = sum(n for stack, n in stacks.items() if "[WebAssembly to JavaScript]" in stack)
        print(f"  {version_of(binary)}: {through} of {sum(stacks.values())} samples are several calls deep, {between} have a call of "
              f"JavaScript, {nameless} an address without a name")
        assert through > 0.2 * sum(stacks.values()), through
        assert nameless <= 0.1 * sum(stacks.values()), nameless


@long
def test_recursion():
    """What is inside of the innermost JavaScript function is one function of WebAssembly, again and again."""
    for binary in all_nodes():
        stacks, others = stacks_of(binary, "recursion", 300), 0
        inside = collections.Counter()
        for stack, n in stacks.items():
            names = [plain(name) for name in stack]
            first = next((i for i, name in enumerate(names) if name in ("fib", "wasm-function[1]")), None)
            if first is None:
                continue
            made = [name for name in names[first:] if not re.search(r"\[k\]", name)]
            inside[names[first]] += n
            if len(set(made)) > 1 and not all(name.endswith("_[k]") or name == names[first] for name in stack[first:]):
                others += n
        print(f"  {version_of(binary)}: {dict(inside)}, {others} with other frames inside")
        assert inside["fib"] > 50 and inside["wasm-function[1]"] > 50, inside
        assert others <= 0.03 * sum(inside.values()), others


def test_text_without_a_file():
    """node moves its own text into huge pages, which have no file: no frame there is V8's for its words."""
    need_root()
    spins = "let n = 0; for (;;) n += zlib.deflateSync(Buffer.alloc(200000, 'ab')).length"
    with Background("node", "--use-largepages=on", "-e", spins) as program:
        wait_for(lambda: has_moved_text(program.pid), what="text without a file")
        record("--no-wall", "-p", program.pid, "-F", 1999, "-d", 1, "-o", scratch("huge.folded"))
    stacks = folded(scratch("huge.folded"))
    taken = sum(n for stack, n in stacks if any("WebAssembly" in name for name in stack))
    own = sum(n for stack, n in stacks if any("node::" in name for name in stack))
    print(f"  of {sum(n for _, n in stacks)} samples {own} have a frame of node's code, and {taken} one of WebAssembly")
    assert own > 20 and not taken, (own, taken)


def has_moved_text(pid):
    """Whether code in no file lies between code of its program."""
    of_code = [line.split() for line in read(f"/proc/{pid}/maps").splitlines() if " r-xp " in line]
    paths = [words[5] if len(words) > 5 else "" for words in of_code]
    return any(not path and before == after == os.readlink(f"/proc/{pid}/exe")
               for before, path, after in zip(paths, paths[1:], paths[2:]))


def test_replay():
    """A recording has the same names."""
    if not os.path.exists(scratch("plain.sysprof")):  # of a case before
        stacks_of(all_nodes()[0], "mixed", 100)
    again = scratch("again.folded")
    run(SYSPROF, "convert", scratch("plain.sysprof"), "-o", again, check=0)
    assert folded(again) == folded(scratch("plain.folded"))


@long
def test_regular_expressions():
    """V8 compiles them, and they are no function of anybody's."""
    for binary in all_nodes():
        if version_of(binary).startswith("v18."):
            continue  # its constants have no such type
        stacks = stacks_of(binary, "expressions", 200)
        named = sum(n for stack, n in stacks.items() if "[regular expression]" in stack)
        nameless = sum(n for stack, n in stacks.items() if any(name.startswith("0x") for name in stack))
        print(f"  {version_of(binary)}: {named} of {sum(stacks.values())} in regular expressions, {nameless} without a name")
        assert named > 0.3 * sum(stacks.values()) and nameless <= 0.2 * sum(stacks.values()), (named, nameless)


if __name__ == "__main__":
    main(globals())
