#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
Two parts of a recording's time, compared in its page (Ctrl and drag): the tests are those of `sysprof diff FILE@a-b FILE@c-d`,
and colours, texts and the table follow them.
"""
import json
import os
import random
import re

import libbrowser
from diff import diff, timed_file
from diff_page import READY, close
from libe2e import GOLDEN, load_json, main, scratch, sysprof, write

CTRL = 2
VALUES = "p", "q", "low", "high", "relative", "relative_low", "relative_high"
TESTS = """(() => { const { all } = page.profile.difference, plain = (t) => ({ ...t, function: t.fn < 0 ? 'total' : page.profile.nameOf(t.fn), verdict: t.verdict });
  return [all.total, ...all.tests].map(plain); })()"""


def page_of(path, name):
    html = scratch(name)
    sysprof("convert", path, "-o", html, check=0)
    page = libbrowser.shared().page(f"file://{html}")
    page.wait(READY)
    page.path = html
    return page


def changing_file(name, factor=5):
    """In the second half `header` runs instead of a part of `body`."""
    path = timed_file(name, 1, samples=20000, in_a_row=4)
    profile = load_json(path)
    number = {node["callFrame"]["functionName"]: node["id"] for node in profile["nodes"]}
    rng = random.Random(2)
    for i in range(10000, 20000):
        if profile["samples"][i] == number["body"] and rng.random() < 0.1 * factor:
            profile["samples"][i] = number["header"]
    write(path, json.dumps(profile))
    return path


def graph_of(page):
    """(left, width, y) of the timeline's upper graph."""
    return page.evaluate("""(() => { const box = page.pictures().timeline.top.canvas.getBoundingClientRect();
      return [box.left, box.width, box.top + box.height / 2]; })()""")


def drag(page, start, end, **more):
    left, width, y = graph_of(page)
    page.drag(left + width * start, y, left + width * end, y, **more)


def assert_as_diff(page, path):
    """All tests of the page against those of the command line; the tests."""
    base, time = page.evaluate("[page.state.base, page.state.time]")
    found = diff("--view", "second", *[f"{path}@{a / 1e6:.6f}s-{b / 1e6:.6f}s" for a, b in (base, time)])
    tests = {(t["function"], t["own_code"]): t for t in page.evaluate(TESTS)}
    wanted = [found["total"], *found["tests"]]
    assert len(tests) == len(wanted), (len(tests), len(wanted))
    for w in wanted:
        t = tests[w["function"], w["own_code"]]
        for side in "old", "new":
            assert abs(t[side]["value"] - w[side]["value"]) <= 1e-6 * abs(w[side]["value"]), (w, t)
            assert t[side + "_samples"] == w[side + "_samples"], (w, t)
        for key in VALUES:
            assert (t[key] is None) == (w[key] is None) and (t[key] is None or abs(t[key] - w[key]) <= 1e-6 * max(1, abs(w[key]))), (key, w, t)
    for key, value in page.evaluate("page.profile.difference.all.detectable").items():
        assert value is None or abs(value - found["detectable"][key]) < 1e-6, (key, value, found["detectable"])
    return tests


def test_two_selections():
    path = changing_file("changing.cpuprofile")
    page = page_of(path, "changing.html")
    drag(page, 0.05, 0.45)
    assert page.evaluate("page.state.time !== null && page.state.base === null && !page.profile.difference")
    drag(page, 0.55, 0.9, modifiers=CTRL)
    tests = assert_as_diff(page, path)
    assert tests["header", False]["verdict"] == "slower" and tests["header", False]["q"] < 0.001, tests["header", False]
    assert tests["write", False]["verdict"] == "same", tests["write", False]
    state = page.evaluate("page.state")
    assert (state["measure"], state["colours"]) == ("mean", "difference"), state
    colours = page.evaluate("""(() => { const p = page.pictures().flame, found = {};
      for (let i = 1; i < p.tree.count; i++) if (p.tree.fn[i] >= 0) found[page.profile.nameOf(p.tree.fn[i])] = p.options.styleOf(i, p).colour;
      return [page.profile.difference.colour('same'), found]; })()""")
    grey, found = colours
    for name, colour in found.items():
        own, total = tests.get((name, True)), tests.get((name, False))
        proved = any(t and t["q"] <= 0.05 for t in (own, total))
        assert (colour != grey) == proved, (name, colour, own, total)
    at = page.evaluate("""(() => { const p = page.pictures().flame, at = p.surface.canvas.getBoundingClientRect();
      for (let i = 1; i < p.tree.count; i++) { const box = p.tree.fn[i] >= 0 && page.profile.nameOf(p.tree.fn[i]) === 'header' && p.boxOf(i);
        if (box) return [at.left + box.x + box.w / 2, at.top + box.y + 9]; } })()""")
    page.mouse("mouseMoved", *at)
    tip, header = page.evaluate("document.getElementById('tip').textContent"), tests["header", False]
    old, new = (f"{100 * header[side]['value']:.2f} %" for side in ("old", "new"))
    assert f"{old} → {new}" in tip and "95 % interval" in tip and "slower" in tip, (tip, old, new)
    text = page.evaluate("document.getElementById('path').textContent")
    assert "OLD " in text and "NEW " in text and "No difference was found in the whole" in text, text
    # the CPU time of two parts of a recording is known
    assert re.search(r"found in the whole: [+-]?[\d.]+ % per second", text), text
    assert "no difference proved" in page.evaluate("document.getElementById('legend').textContent")
    tabs = page.evaluate("[...document.querySelectorAll('[role=tab]:not([hidden])')].map((t) => t.textContent)")
    assert tabs == ["Flame graph", "Sandwich", "Functions"], tabs
    page.evaluate("page.change({view: 'table'})")
    rows = page.evaluate("[...document.querySelectorAll('#view-table tbody tr')].map((r) => r.textContent)")
    assert "slower" in rows[0] or "faster" in rows[0], rows[0]
    page.evaluate("page.change({view: 'sandwich'})")
    close(page)


def test_back_to_one():
    """What a comparison changes is as before after it; the address leads back to it."""
    path = changing_file("back.cpuprofile")
    page = page_of(path, "back.html")
    before = page.evaluate("[page.whole(), page.rows().ticks.total.length, document.getElementById('choose-colours').options.length]")
    drag(page, 0.1, 0.3)
    page.key("b")
    assert page.evaluate("page.state.base !== null && page.state.time === null && !page.profile.difference")
    drag(page, 0.6, 0.8)
    assert page.evaluate("!!page.profile.difference")
    assert_as_diff(page, path)
    page.wait("location.hash.includes('base=') && location.hash.includes('time=')")
    address = page.evaluate("location.hash")
    drag(page, 0.5, 0.9, modifiers=CTRL)
    assert_as_diff(page, path)
    page.evaluate("page.change({threads: [0]})")
    assert_as_diff(page, path)
    page.evaluate("document.activeElement.blur()")
    for _ in range(4):
        page.key("Escape")
    assert page.evaluate("[page.state.base, page.state.time]") == [None, None]
    assert page.evaluate("page.state.threads.length") == 0
    after = page.evaluate("[page.whole(), page.rows().ticks.total.length, document.getElementById('choose-colours').options.length]")
    assert before == after and page.evaluate("!page.profile.difference"), (before, after)
    assert page.evaluate("[page.state.measure, page.state.colours]") == ["ticks", "kind"]
    tabs = page.evaluate("[...document.querySelectorAll('[role=tab]:not([hidden])')].length")
    assert tabs == 5, tabs
    close(page)
    page = libbrowser.shared().page(f"file://{scratch('back.html')}{address}")
    page.wait(READY)
    page.path = scratch("back.html")
    assert_as_diff(page, path)
    close(page)


def test_what_cannot_be_compared():
    """A part without samples, parts that overlap, addresses of any kind, and a page without times."""
    source = os.path.join(GOLDEN, "containers.sysprof")
    page = page_of(source, "containers.html")
    page.evaluate("page.change({base: [0, 1], time: [100000, 200000]})")
    assert "no sample in the time of OLD" in page.evaluate("document.getElementById('message').textContent")
    page.evaluate("page.change({base: [0, 200000], time: [100000, 300000]})")
    assert page.evaluate("!!page.profile.difference && document.getElementById('message').hidden")
    assert page.evaluate("Object.values(page.whole()).every(Number.isFinite)")
    page.evaluate("page.change({base: [1e12, 2e12]})")
    assert page.evaluate("page.state.base === null && !page.profile.difference")
    for text in "base=5", "base=9-3&time=1-2", "base=x-y", "base=1-2&time=1-2":
        page.evaluate(f"location.hash = '{text}'")
        page.evaluate("new Promise((done) => setTimeout(done, 50))")
    close(page)
    folded = scratch("x.folded")
    write(folded, "app;main 5\n")
    page = page_of(folded, "folded.html")
    page.evaluate("page.change({base: [0, 1], time: [1, 2]})")
    assert page.evaluate("page.state.base === null && !page.profile.difference")
    close(page)


def test_waits():
    """Waiting time of two parts, in the mode Waiting."""
    page = page_of(os.path.join(GOLDEN, "waits.sysprof"), "waits.html")
    end = page.evaluate("page.profile.end")
    page.evaluate(f"page.change({{mode: 'waiting', parked: true, measure: 'cpu', base: [0, {end} / 2], time: [{end} / 2, {end}]}})")
    sums = page.evaluate("[page.profile.difference.all.old.cpu_ns, page.profile.difference.all.new.cpu_ns, page.whole().cpu]")
    assert sums[0] > 0 and sums[1] > 0 and abs(sums[0] + sums[1] - sums[2]) < 1, sums
    assert "NEW" in page.evaluate("document.getElementById('sentence').textContent") or \
        "No difference" in page.evaluate("document.getElementById('sentence').textContent")
    page.evaluate("page.change({mode: 'cpu'})")
    close(page)


def run_all():
    try:
        main(globals())
    finally:
        libbrowser.close_shared()


if __name__ == "__main__":
    run_all()
