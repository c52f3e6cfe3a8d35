#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
check-runner.py: what tests/run.py makes of tests that fail, pass when they run again, or crash. Runs a copy of it in a tree of its
own, whose unit tests are scripts.
"""
import os
import shutil
import subprocess
import sys
import tempfile

TESTS = {
    "steady": "exit 0",
    "unsteady": "[ -e tried ] && echo the second try && exit 0\n>tried\necho the first try\nexit 1",
    "broken": "echo never right\nexit 1",
    "crashed": "kill -SEGV $$",
}


def run(ci, *names):
    """(exit status, output, {name of a log: its text}) of a run of these tests."""
    with tempfile.TemporaryDirectory() as top:
        os.makedirs(f"{top}/tests/unit")
        os.makedirs(f"{top}/build/tests/unit")
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py"), f"{top}/tests/run.py")
        for name in names:
            with open(f"{top}/tests/unit/test_{name}.c", "w", encoding="ascii"):
                pass
            program = f"{top}/build/tests/unit/test_{name}"
            with open(program, "w", encoding="ascii") as f:
                f.write(f"#!/bin/sh\n{TESTS[name]}\n")
            os.chmod(program, 0o755)
        settings = {name: value for name, value in os.environ.items() if name not in ("CI", "SECOND_TRIES", "UNSTEADY_PASSES")}
        result = subprocess.run([sys.executable, f"{top}/tests/run.py", "build:unit"], env={**settings, "CI": ci}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        logs = {}
        for name in os.listdir(f"{top}/build/tests/log"):
            with open(f"{top}/build/tests/log/{name}", encoding="ascii") as f:
                logs[name.removeprefix("unit-test_")] = f.read()
        return result.returncode, result.stdout, logs


def expect(ci, names, status, has, has_not, logs):
    got, out, found = run(ci, *names)
    wrong = [f"exit status {got}, not {status}"] if got != status else []
    wrong += [f"not printed: {text}" for text in has if text not in out]
    wrong += [f"printed: {text}" for text in has_not if text in out]
    wrong += [f"{name}: {found.get(name)!r}, not {text!r}" for name, text in logs.items() if found.get(name) != text]
    if wrong:
        sys.exit(f"CI={ci!r}, {', '.join(names)}:\n  " + "\n  ".join(wrong) + "\n---- the run\n" + out)


def main():
    both = {"unsteady.first.log": "the first try\n", "unsteady.log": "the second try\n"}
    expect("", ["steady", "unsteady"], 0, ["unsteady, passed when they ran again: unit/test_unsteady\n", "\n2 passed, 0 failed, 0 skipped\n"],
           ["\nfailed:"], both)
    expect("true", ["steady", "unsteady"], 1,
           ["FAIL  unit/test_unsteady: unsteady, passed when it ran again: failed (",
            "unsteady, passed when they ran again: failed: unit/test_unsteady\n", "\nfailed: unit/test_unsteady\n",
            "\n1 passed, 1 failed, 0 skipped\n", "\n---- unit/test_unsteady\nthe first try\n"], [], both)
    for ci in "", "true":
        expect(ci, ["steady"], 0, ["\n1 passed, 0 failed, 0 skipped\n"], ["unsteady"], {"steady.log": ""})
        expect(ci, ["broken", "unsteady"], 1, ["unsteady, passed when they ran again", "\nfailed: unit/test_broken"], [], both)
        # a crash is none of the host's: nothing is run again
        expect(ci, ["crashed", "unsteady"], 1, ["\n0 passed, 2 failed, 0 skipped\n"], ["unsteady, passed"],
               {"unsteady.log": "the first try\n", "unsteady.first.log": None})


main()
