#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
A comparison as a profile of both sides: the page in a browser (its figures are those of diff --json, colours are of what
is proved), pprof's reader, and a Firefox file.
"""
import json
import os
import random

import libbrowser
from diff import SHARES, folded_file, timed_file
from libe2e import Skip, main, read, scratch, sysprof, write
from libgo import pprof

READY = "document.documentElement.dataset.ready === 'yes'"
CHANGES = [("main;run;parse;header", 9), ("main;idle", 2), ("main;run;new", 4)]
GREY = "page.profile.difference.colour('same')"
def compared(path, *words):
    """The comparison as JSON, and the same in the format of `path`. What is printed does not depend on the latter."""
    printed = sysprof("diff", "--json", *words, check=0).out
    assert sysprof("diff", "--json", "-o", path, *words, check=0).out == printed
    assert sysprof("diff", "-o", path, *words, check=0).out == sysprof("diff", *words, check=0).out
    return json.loads(printed)


def open_page(path, fragment=""):
    page = libbrowser.shared().page(f"file://{path}#{fragment}")
    page.wait(READY)
    page.path = path
    return page


def close(page):
    assert page.messages() == [], page.messages()
    requested = [url for url in page.requests() if not url.startswith(("data:", "about:", "blob:"))]
    assert requested and all(url.split("#")[0] == "file://" + page.path for url in requested), requested
    page.close()


def figures(page):
    """By function: its totals in the view, and what the flame graph shows of it."""
    return page.evaluate(f"""(() => {{
      const rows = page.rows(), d = page.profile.difference, p = page.pictures().flame, found = {{}};
      for (let node = 1; node < p.tree.count; node++) {{
        const f = p.tree.fn[node];
        if (f >= 0) found[page.profile.nameOf(f)] = {{ old: rows.old.total[f] / d.unit, new: rows.new.total[f] / d.unit,
          mean: rows.mean.total[f] / d.unit, grey: p.options.styleOf(node, p).colour === {GREY} }};
      }}
      return found; }})()""")


def assert_page(found, path, count, fragment=""):
    """Sums by function are those of the tests; a colour has what passed a test."""
    page = open_page(path, fragment)
    shown, unit = figures(page), found["total"]["old"]["value"]
    proved = {t["function"] for t in found["tests"] if t["q"] <= found["level"] and not t["doubtful"]}
    tested = 0
    for test in found["tests"]:
        if test["own_code"]:
            continue
        row, tested = shown[test["function"]], tested + 1
        for side in "old", "new":
            assert abs(row[side] - test[side]["value"]) < 1e-6 * unit, (test, row)
        assert abs(row["mean"] - (row["old"] + row["new"]) / 2) < 1e-9 * unit, row
        assert row["grey"] == (test["function"] not in proved), (test["function"], row)
    assert tested >= count and proved, (tested, proved)
    return page


def test_page_of_shares():
    path = scratch("shares.html")
    found = compared(path, "--run-noise", "0", folded_file("old.folded", 1), folded_file("new.folded", 2, CHANGES))
    page = assert_page(found, path, 10)
    assert page.evaluate("document.getElementById('strip').textContent").startswith(found["sentence"])
    legend = page.evaluate("document.getElementById('legend').textContent")
    assert "no difference proved" in legend and "−50 %" in legend and "+100 %" in legend, legend
    header = next(t for t in found["tests"] if t["function"] == "header")
    at = page.evaluate("""(() => { const p = page.pictures().flame, at = p.surface.canvas.getBoundingClientRect();
      for (let i = 1; i < p.tree.count; i++) { const box = page.profile.nameOf(p.tree.fn[i]) === 'header' && p.boxOf(i);
        if (box) return [at.left + box.x + box.w / 2, at.top + box.y + 9]; } })()""")
    page.mouse("mouseMoved", *at)
    tip = page.evaluate("document.getElementById('tip').textContent")
    old, new = (f"{100 * header[side]['value']:.2f} %" for side in ("old", "new"))
    interval = f"(+{100 * header['relative_low']:.0f} to +{100 * header['relative_high']:.0f}, 95 % interval)"
    assert f"{old} → {new}" in tip and interval in tip and "slower" in tip, (tip, old, new, interval)
    tabs = page.evaluate("[...document.querySelectorAll('[role=tab]')].map((t) => t.textContent)")
    assert tabs == ["Flame graph", "Sandwich", "Functions"], tabs
    groups = page.evaluate("[...document.querySelectorAll('#choose-group option')].map((o) => o.textContent)")
    assert groups == ["Merged", "By side", "By file"], groups
    for measure in "old", "new", "mean":
        page.evaluate(f"page.change({{measure: '{measure}'}})")
        width = page.evaluate("(() => { const p = page.pictures().flame; return p.total[0] / page.profile.difference.unit; })()")
        whole = {"old": 1, "new": found["total"]["new"]["value"]}
        whole["mean"] = (whole["old"] + whole["new"]) / 2
        assert abs(width - whole[measure]) < 1e-6, (measure, width)
    page.evaluate("page.change({view: 'table', measure: 'mean'})")
    first = page.evaluate("[...document.querySelectorAll('table.functions tbody tr')].map((r) => r.textContent)")
    assert len(first) == len({f for stack in [*SHARES, "main;run;new"] for f in stack.split(";")}), first
    assert "slower" in first[0] and "too few samples" in first[-1], first
    close(page)


def test_page_of_times_and_files():
    """Several files a side: the mean of files. A selection has no colours, because nothing was tested in it."""
    old = [timed_file(f"old{i}.cpuprofile", i, samples=6000) for i in range(3)]
    new = [timed_file(f"new{i}.cpuprofile", 10 + i, [("main;run;parse;header", 90)], samples=6500) for i in range(3)]
    path = scratch("files.html")
    found = compared(path, "--view", "run", *old, "--", *new)
    assert found["runs_measured"]
    page = assert_page(found, path, 8)
    page.evaluate("page.change({time: [1000000, 3000000]})")
    assert all(row["grey"] for row in figures(page).values())
    page.evaluate("page.change({time: null, threads: [0, 3]})")
    shown = page.evaluate("[page.whole().old, page.whole().new].map((v) => v / page.profile.difference.unit)")
    for value, file in zip(shown, (found["files"][0], found["files"][3])):
        assert abs(value - 3 * file["value"]) < 1e-6 * value, (value, file)
    page.evaluate("page.change({threads: []})")
    page.close()
    page = open_page(path, "measure=old&colours=kind&view=table&time=1-2000000")
    assert page.evaluate("[page.state.measure, page.state.colours, page.state.view]") == ["old", "kind", "table"]
    close(page)
    page = open_page(path, "measure=ticks&view=heat&colours=nothing")
    assert page.evaluate("[page.state.measure, page.state.colours, page.state.view]") == ["mean", "difference", "flame"]
    close(page)


def test_page_of_nothing():
    """The same file twice is grey."""
    old = folded_file("same.folded", 1)
    path = scratch("same.html")
    found = compared(path, old, old)
    page = open_page(path)
    assert found["rows"] == [] and all(row["grey"] for row in figures(page).values())
    close(page)


def test_hostile_names():
    """Names are text, whatever they look like."""
    attack = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    names = [attack, "\x1b[31mred", "x" * 5000, "\u202eevil", "a|b`c", "__proto__", "constructor", '"},{"x":"']
    paths = []
    for i in range(2):
        paths.append(scratch(f"{attack[:9].replace('/', '_')}{i}.folded"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.writelines(f"app;main;{n.replace(';', ':')} {1000 + 900 * i * (k % 2)}\n" for k, n in enumerate(names))
            file.write("app;main;rest 30000\n")
    path = scratch("hostile.html")
    found = compared(path, "--run-noise", "0", *paths)
    assert found["rows"], found["sentence"]
    for view in "flame", "table", "sandwich":
        page = open_page(path, f"view={view}")
        assert "owned" not in page.evaluate("document.title") and not page.evaluate("document.images.length")
        assert "\u202e" not in page.evaluate("document.body.textContent")
        close(page)
    page = open_page(path)
    coloured = [name for name, row in figures(page).items() if not row["grey"]]
    assert any(name.startswith("</script>") for name in figures(page)), coloured
    assert "constructor" in coloured or "__proto__" in coloured or len(coloured) >= 3, coloured
    close(page)


def test_pprof():
    """pprof shows differences in percent of OLD, as of a file that it made with -diff_base."""
    path = scratch("both.pb.gz")
    found = compared(path, "--run-noise", "0", folded_file("old.folded", 1), folded_file("new.folded", 2, CHANGES))
    try:
        text = pprof("-top", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000", path)
    except FileNotFoundError as error:
        raise Skip("no go") from error
    assert "Total samples = 1000000000ppb" in text, text
    shown = {words[5]: float(words[3].rstrip("pb")) / 1e9 for words in (line.split(None, 5) for line in text.split("cum%\n")[1].splitlines())}
    for test in found["tests"]:
        if not test["own_code"]:
            value = test["difference"]["value"]
            assert abs(shown[test["function"]] - value) < 1e-7, (test["function"], value, shown)
    raw = pprof("-raw", path)
    assert "pprof::base:[true]" in raw and "process:[NEW]" in raw, raw


def test_firefox():
    """Both are processes of one file, which can be read again: with all samples, at their times."""
    old, new = timed_file("a.cpuprofile", 1), timed_file("b.cpuprofile", 2, samples=9000)
    path = scratch("both.json.gz")
    found = compared(path, old, new)
    report = json.loads(sysprof("report", "--json", path, "--by", "process", check=0).out)
    samples = {row["process"]: row["self"] for row in report["rows"]}
    assert samples == {"OLD": found["old"]["samples"], "NEW": found["new"]["samples"]}, report["rows"]
    again = compared(scratch("again.json.gz"), f"{path}@0-2s", f"{path}@2s-4s")
    assert again["old"]["samples"] + again["new"]["samples"] < found["old"]["samples"] + found["new"]["samples"]


def test_the_same_bytes_each_time():
    old, new = timed_file("a.cpuprofile", 1), timed_file("b.cpuprofile", 2)
    for suffix in "html", "pb.gz", "json.gz":
        data = []
        for i in range(2):
            compared(scratch(f"{i}.{suffix}"), old, new)
            data.append(read(scratch(f"{i}.{suffix}"), "rb"))
        assert data[0] == data[1], suffix


def test_many_rows():
    """Beyond half a million rows blocks of time are joined: no sample is missing."""
    rng = random.Random(1)
    paths = []
    for i in range(2):
        nodes = [{"id": 1, "callFrame": {"functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1,
                                         "columnNumber": -1}, "children": list(range(2, 20002))}]
        nodes += [{"id": k, "callFrame": dict(nodes[0]["callFrame"], functionName=f"f{k}")} for k in range(2, 20002)]
        paths.append(scratch(f"many{i}.cpuprofile"))
        write(paths[-1], json.dumps({"nodes": nodes, "startTime": 1000000, "endTime": 1000000 + 1000 * 300001,
                   "samples": rng.choices(range(2, 20002), k=300000), "timeDeltas": [1000] * 300000}))
    path = scratch("many.html")
    found = compared(path, *paths)
    page = open_page(path)
    rows, ticks = page.evaluate("[page.profile.node.length, page.whole().ticks]")
    assert rows <= 500000 and ticks == found["old"]["samples"] + found["new"]["samples"], (rows, ticks)
    close(page)
    assert os.path.getsize(path) < 4 << 20


def run_all():
    try:
        main(globals())
    finally:
        libbrowser.close_shared()


if __name__ == "__main__":
    run_all()
