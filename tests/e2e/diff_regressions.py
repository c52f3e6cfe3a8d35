#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: soak
# time-limit: 1500
"""
sysprof compare finds what made three published packages slower: two versions of each, between which their authors found
a regression. They are installed by name and version from PyPI, npm and the Go module proxy.
"""
import glob
import json
import os
import shutil

from libe2e import Skip, main, need_root, run, scratch, soak, sysprof, write

PYTHON = "/usr/bin/python3"

# python-jsonschema issues 853 and 893: since 4.0, uniqueItems compares each item with each other one, by equal().
UNIQUE = """
import jsonschema
numbers = {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True}
person = {"type": "object", "required": ["name", "scores"], "properties": {
    "name": {"type": "string", "pattern": "^[a-z ]+$"}, "age": {"type": "integer"}, "scores": numbers}}
validator = jsonschema.Draft7Validator({"type": "array", "items": person})
people = [{"name": "name " + "x" * (i % 9), "age": i, "scores": list(range(i, i + 25))} for i in range(40)]
for _ in range(150):
    assert validator.is_valid(people)
"""

# babel pull requests 17756 and 17834: since 8.0.0-rc.1, finishNodeAt() reads an environment variable for each node.
PARSE = """
import { pathToFileURL } from "node:url";
const { parse } = await import(pathToFileURL(process.argv[2] + "/node_modules/@babel/parser/lib/index.js"));
let text = "";
for (let i = 0; i < 300; i++)
  text += `async (a${i}, b = [1, ${i}]) => { if (a${i} > b.length) return a${i} * 2; await b.map((x) => x + ${i}); };`;
for (let i = 0; i < 150; i++) parse(text, { sourceType: "module" });
"""

# go-runewidth pull requests 51 and 63: since 0.0.10, StringWidth() splits text into graphemes, with maps.
WIDTH = """
package main

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"
)

func main() {
	columns := 0
	for i := 0; i < 12000; i++ {
		line := strings.Repeat(fmt.Sprintf("%d: plain words and 中文字 ", i), 12)
		columns += runewidth.StringWidth(line)
		columns += len(runewidth.Truncate(line, 60, "…"))
	}
	fmt.Println(columns)
}
"""


def install(*command, **options):
    if not shutil.which(command[0]):
        raise Skip(f"no {os.path.basename(command[0])}: tools/install-deps.sh test")
    done = run(*command, timeout=240, **options)
    if done.status:
        raise Skip(f"cannot install: {' '.join(command)}: {done.err.strip()[-200:]}")


def assert_names(name, old, new, where):
    """NEW is slower because of `where`, and the other way round it is faster, and nothing there slower."""
    keep = scratch("kept-" + name)
    os.mkdir(keep)
    need_root()
    found = json.loads(sysprof("compare", "-n", "5", "--view", "run", "--json", "--keep", keep, "--", *old, "---", *new,
                               timeout=400, check=0).out)
    print(name + ":", found["sentence"])
    for row in found["rows"][:5]:
        print("   ", row["verdict"], row["function"])
    assert found["total"]["relative_low"] > 0, found["sentence"]
    first = next(row for row in found["rows"] if row["verdict"] in ("slower", "new"))
    assert any(where in frame for frame in first["path"]), (found["sentence"], first)
    sides = [sorted(glob.glob(f"{keep}/{side}-*.sysprof")) for side in ("old", "new")]
    back = json.loads(sysprof("diff", "--view", "run", "--json", *sides[1], "--", *sides[0], check=0).out)
    assert back["total"]["relative_high"] < 0, back["sentence"]
    wrong = [row for row in back["rows"] if row["verdict"] in ("slower", "new") and where in row["path"][-1]]
    assert not wrong, wrong


@soak
def test_python_package():
    script = write(scratch("unique.py"), UNIQUE)
    common = scratch("common")
    pip = [PYTHON, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    install(*pip, common, "attrs==23.1.0", "pyrsistent==0.19.3", "six==1.16.0", "setuptools==68.2.2")
    commands = []
    for version in "3.2.0", "4.0.1":
        install(*pip, scratch("jsonschema-" + version), "jsonschema==" + version)
        commands.append(["env", f"PYTHONPATH={scratch('jsonschema-' + version)}:{common}", PYTHON, "-W", "ignore", script])
    assert_names("jsonschema", *commands, "uniq")


@soak
def test_npm_package():
    script = write(scratch("parse.mjs"), PARSE)
    commands = []
    for version in "8.0.0-beta.4", "8.0.0-rc.1":
        place = scratch("parser-" + version)
        install("npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix", place,
                "@babel/parser@" + version)
        commands.append(["node", script, place])
    assert_names("babel", *commands, "finishNodeAt")


@soak
def test_go_module():
    commands = []
    for version in "v0.0.9", "v0.0.10":
        place = scratch("width-" + version)
        os.mkdir(place)
        write(scratch(f"width-{version}/main.go"), WIDTH)
        write(scratch(f"width-{version}/go.mod"), "module example\n\ngo 1.18\n")
        install("go", "get", "github.com/mattn/go-runewidth@" + version, cwd=place)
        install("go", "build", "-o", "width", ".", cwd=place)
        commands.append([os.path.join(place, "width")])
    assert_names("runewidth", *commands, "uniseg")


if __name__ == "__main__":
    main(globals())
