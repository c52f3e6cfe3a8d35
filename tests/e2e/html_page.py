#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 120
# runs: beside
"""The page, in a browser: its figures are the report's, its folded stacks those of .folded, no name is ever
more than text, there is no request to any network, and a link restores the view.

The profiles are the golden recordings and peculiar ones (html_pages.c). One browser for all.
"""
import json
import math
import os
import re
import shutil
import time

import libbrowser
import libe2e as e

RECORDINGS = ("containers", "cut-short", "fork-exec", "jit-reuse", "left-out", "lost-records", "pid-reuse")
READY = "document.documentElement.dataset.ready === 'yes'"
ROWS = """[...document.querySelectorAll('table.functions tbody tr')].slice(0, 20).map((row) => ({
  self: Number(row.querySelector('.self .number').textContent.replaceAll(',', '')),
  total: Number(row.querySelector('.total .number').textContent.replaceAll(',', '')),
  name: row.querySelector('button.name').textContent, module: row.querySelector('.module').textContent}))"""

def file_of(name, suffix=".html"):
    return e.scratch(name + suffix)


def open_page(name, fragment=""):
    page = libbrowser.shared().page("file://" + file_of(name) + (f"#{fragment}" if fragment else ""))
    page.wait(READY)
    page.name = name
    return page


def close(page):
    """There were no errors, and no request but the one for the page."""
    assert page.messages() == [], (page.name, page.messages())
    requested = [url for url in page.requests() if not url.startswith(("data:", "about:", "blob:"))]
    assert requested and all(url.split("#")[0] == "file://" + file_of(page.name) for url in requested), requested
    page.close()


def settle(page):
    page.evaluate("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")


def state(page):
    return page.evaluate("page.state")


def make_files():
    """All pages, before the first case."""
    if os.path.exists(file_of("attacks")):
        return
    e.run(os.path.join(e.BUILD, "tests", "e2e", "html_pages"), e.SCRATCH, check=0)
    for name in RECORDINGS:
        recording = os.path.join(e.GOLDEN, name + ".sysprof")
        for suffix in (".html", ".folded"):
            e.sysprof("convert", recording, "-o", file_of(name, suffix), "--no-symbol-cache", check=0)
        report = e.sysprof("report", recording, "--json", "--top", 1000000, check=0).out
        e.write(file_of(name, ".json"), report)


def report_of(name):
    return e.load_json(file_of(name, ".json"))


def box_of(page, name, picture="flame"):
    """The middle of the first box of a function, on the screen."""
    return page.evaluate(f"""(() => {{
      const p = page.pictures()[{json.dumps(picture)}], at = p.surface.canvas.getBoundingClientRect();
      for (let node = 1; node < p.tree.count; node++) {{
        const box = p.tree.fn[node] >= 0 && page.profile.nameOf(p.tree.fn[node]) === {json.dumps(name)} && p.boxOf(node);
        if (box) return [at.left + box.x + box.w / 2, at.top + box.y + 9];
      }}
      return null; }})()""")


def check_folded(page):
    with open(file_of(page.name, ".folded"), encoding="utf-8", newline="") as file:
        assert page.evaluate("page.folded()") == file.read(), page.name


def test_figures_are_those_of_report_and_folded():
    make_files()
    for name in RECORDINGS + ("recursion", "processes", "untimed"):
        page = open_page(name, "view=table")
        check_folded(page)
        rows, wanted = page.evaluate(ROWS), report_of(name)["rows"][:20]
        got = [(r["self"], r["total"], r["name"], r["module"]) for r in rows]
        assert got == [(r["self"], r["total"], r["function"], r["dso"]) for r in wanted], (name, got, wanted)
        assert page.evaluate("page.whole().ticks") == report_of(name)["summary"]["samples"]
        close(page)


def test_waits():
    """Of the profile `waits`: its rows in each mode, by state, in the timeline and the table of locks."""
    make_files()
    page = open_page("waits", "mode=waiting&measure=cpu&parked=1")
    assert page.evaluate("page.whole()") == {"ticks": 6, "cpu": 181250000}
    by_state = """(() => { page.change({group: 'state'}); const { tree, sums } = page.pictures().flame, sum = {};
      for (let i = tree.first[0]; i; i = tree.next[i]) sum[page.pictures().flame.options.textOf(tree.fn[i])] = sums.cpu.total[i];
      return sum; })()"""
    states = {"lock": 54250000, "runnable": 250000, "disk": 1750000, "other": 25000000, "sleep": 100000000}
    assert page.evaluate(by_state) == states
    # a part of the time has a part of a long wait: 20 of 99 ms of the sleep, 11.5 of 20 ms of the first lock
    page.evaluate("page.change({time: [10000, 30000], threads: [1]})")
    assert abs(page.evaluate("page.whole().cpu") - 20 / 99 * 100000000) < 2 * 100000000 / 99, page.evaluate("page.whole().cpu")
    page.evaluate("page.change({time: null, threads: [], group: 'merged', mode: 'wall'})")
    assert page.evaluate("page.whole()") == {"ticks": 10, "cpu": 194250000}
    assert page.evaluate(by_state) == {**states, "running": 13000000}
    # the thread that only sleeps is parked: in the timeline, but in no sum, unless it is requested
    page.evaluate("page.change({group: 'merged', parked: false})")
    assert page.evaluate("page.whole().cpu") == 94250000, (page.evaluate("page.whole()"), state(page))
    assert page.evaluate("document.querySelector('.time-label.parked').textContent").startswith("server501")
    page.evaluate("document.querySelector('#path .apart').click()")
    assert state(page)["parked"] and page.evaluate("page.whole().cpu") == 194250000
    assert page.evaluate("page.folded()").splitlines() == [
        "server;[waiting: lock];[waiting: other] 25", "server;start;serve 3", "server;start;serve;[waiting: lock] 1",
        "server;start;serve;[waiting: lock];[waiting: disk] 2", "server;start;serve;take_lock;[waiting: lock] 54",
        "server;start;take_lock;[waiting: sleep] 100"]
    for view in ("flame", "time", "sandwich", "table", "heat", "locks"):
        page.evaluate(f"page.change({{view: '{view}'}})")
        settle(page)
        assert page.evaluate(f"!document.getElementById('view-{view}').hidden && document.getElementById('message').hidden"), view
    rows = page.evaluate("[...document.querySelectorAll('.locks tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert [(waits, waiters, where, holder) for _, waits, waiters, where, holder in rows] == \
        [("1", "1", "serve", "not known"), ("1", "1", "serve", "server (tid 501)")], rows
    stacks = "[...document.querySelectorAll('.lock-stack')].map((s) => [s.querySelector('h3').textContent, ...[...s.querySelectorAll('li')].map((l) => l.textContent)])"
    assert page.evaluate(stacks) == [["server (tid 500) waits", "take_lock", "serve", "start"], ["server (tid 501) has the lock when the wait is found", "take_lock", "start"]]
    # the address leads back to it, and the samples are as they were
    again = page.evaluate("location.hash")
    page.wait("location.hash.includes('view=locks')")
    assert "mode=wall" in page.evaluate("location.hash"), again
    page.evaluate("page.change({mode: 'cpu', measure: 'ticks', view: 'flame'})")
    assert page.evaluate("page.whole()") == {"ticks": 4, "cpu": 13000000}
    close(page)
    page = open_page("recursion", "mode=waiting&view=locks&group=state")
    assert {key: state(page)[key] for key in ("mode", "view", "group")} == {"mode": "cpu", "view": "flame", "group": "merged"}
    assert page.evaluate("!document.getElementById('choose-mode') && !document.getElementById('tab-locks')")
    close(page)


def test_folded_text_of_bad_names():
    make_files()
    for name in ("hostile", "attacks", "deep"):
        page = open_page(name)
        check_folded(page)
        close(page)


def test_the_mouse():
    make_files()
    page = open_page("recursion", "down=1")
    x, y = box_of(page, "main")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400, modifiers=2)
    page.wait("page.state.zoom !== null")
    zoomed = state(page)["zoom"]
    assert 0.3 < zoomed[1] - zoomed[0] < 0.9, zoomed
    page.drag(x, y, x - 200, y)
    moved = state(page)["zoom"]
    assert moved[0] > zoomed[0] and abs((moved[1] - moved[0]) - (zoomed[1] - zoomed[0])) < 1e-6, (zoomed, moved)
    page.evaluate("page.change({zoom: null})")
    x, y = box_of(page, "min")
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y, "right", 2, 1)
    page.mouse("mouseReleased", x, y, "right", 0, 1)
    page.wait("page.state.view === 'sandwich'")
    assert page.evaluate("page.profile.nameOf(page.state.fn)") == "min"
    # moving through the time selects it, for the other views too
    page.evaluate("page.change({view: 'time'})")
    whole = page.evaluate("page.whole().ticks")
    page.evaluate("page.pictures().chart.range(2000, 5000)")
    assert state(page)["time"] == [2000, 5000]
    page.evaluate("page.change({view: 'flame'})")
    assert 0 < page.evaluate("page.whole().ticks") < whole
    # a thread alone, then two
    labels = "document.querySelectorAll('.time-rows .time-label')"
    close(page)
    page = open_page("processes")
    page.evaluate(f"{labels}[0].click()")
    assert len(state(page)["threads"]) == 1
    page.evaluate(f"{labels}[1].dispatchEvent(new MouseEvent('click', {{ctrlKey: true, bubbles: true}}))")
    assert len(state(page)["threads"]) == 2 and page.evaluate("document.querySelectorAll('#path .chip').length") == 2
    page.evaluate("document.querySelector('#path .chip').click()")
    assert len(state(page)["threads"]) == 1
    close(page)


def test_folded_text_is_saved():
    make_files()
    folder = e.scratch("saved")
    libbrowser.shared().call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
    page = open_page("recursion")
    page.evaluate("document.getElementById('save').click()")
    saved = os.path.join(folder, "profile.folded")
    e.wait_for(lambda: os.path.exists(saved), what="the saved file")
    with open(saved, encoding="utf-8") as a, open(file_of("recursion", ".folded"), encoding="utf-8") as b:
        assert a.read() == b.read()
    shutil.rmtree(folder)
    close(page)


def test_names_are_text():
    make_files()
    for name in ("attacks", "hostile"):
        page = open_page(name, "group=thread&query=script&fn=1&threads=0.1")
        page.evaluate("document.querySelector('.facts').click()")
        for view in ("flame", "time", "sandwich", "table", "heat"):
            page.evaluate(f"page.change({{view: '{view}'}})")
            settle(page)
            assert page.evaluate("document.querySelectorAll('script, img, svg, iframe').length") == 1, view
            assert page.evaluate("globalThis.hacked === undefined && Object.prototype.hacked === undefined")
        close(page)
    data = e.read(file_of("attacks"), "rb")
    assert b"hacked" not in data and data.isascii() is False and data.count(b"</script>") == 2
    page = open_page("attacks", "view=table")
    names = {row["name"] for row in page.evaluate(ROWS)}
    assert "</script><script>globalThis.hacked = 1</script>" in names, names
    assert "line\\u2028separator \\u202edesrever" in names, names
    assert "control\\x01\\x1b[31m\\x7f\\xc2\\x85 and \\xff\\xfe\\xc0\\xaf bytes" in names, names
    page.evaluate("page.change({view: 'flame'})")
    settle(page)
    x, y = box_of(page, "<img src=x onerror='globalThis.hacked = 2'>")
    page.mouse("mouseMoved", x, y)
    assert page.evaluate("document.querySelector('#tip .title').textContent").startswith("<img src=x")
    close(page)


def test_the_policy_forbids_scripts_and_requests():
    make_files()
    page = open_page("one")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'globalThis.hacked = 1'}))")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=\"http://127.0.0.1:9/x\" onerror=\"globalThis.hacked = 1\">')")
    for attempt in ("fetch('http://127.0.0.1:9/')", "fetch(location.href)", "import('data:text/javascript,1')"):
        assert page.evaluate(f"{attempt}.then(() => 'done', () => 'refused')") == "refused", attempt
    assert page.evaluate("globalThis.hacked === undefined")
    assert any("Content Security Policy" in text for text in page.messages()), page.messages()
    page.close()


def test_peculiar_profiles():
    make_files()
    for name in ("empty", "silent", "one", "threads", "deep", "untimed"):
        page = open_page(name)
        for view in ("flame", "time", "sandwich", "table", "heat"):
            page.evaluate(f"page.change({{view: '{view}'}})")
            settle(page)
            message = page.evaluate("(m => m.hidden ? '' : m.textContent)(document.getElementById('message'))")
            if name in ("empty", "silent"):
                assert "no samples" in message, (name, view, message)
            elif name == "untimed" and view in ("time", "heat"):
                assert "no times" in message, (name, view, message)
            else:
                assert message == "", (name, view, message)
            if view == "flame":
                assert page.evaluate("document.getElementById('timeline').hidden") == (name in ("empty", "silent", "untimed"))
        close(page)
    page = open_page("threads", "group=thread")
    assert page.evaluate("document.querySelectorAll('.time-rows .time-label').length") == 500
    close(page)
    page = open_page("deep", "down=1")
    page.evaluate("page.pictures().flame.surface.host.scrollTop = 1e6")
    settle(page)
    assert page.evaluate("(f => [...f.tree.depth.keys()].some((n) => f.tree.depth[n] > 480 && f.boxOf(n)))(page.pictures().flame)")
    close(page)


def test_a_selected_time_refilters_everything():
    make_files()
    page = open_page("processes")
    whole = page.evaluate("page.whole()")
    end = page.evaluate("page.profile.end")
    cuts = [0, end / 3, end / 2, end]
    parts = []
    for since, until in zip(cuts, cuts[1:]):
        page.evaluate(f"page.change({{time: [{since}, {until}]}})")
        parts.append(page.evaluate("page.whole()"))
    assert all(0 < part["ticks"] < whole["ticks"] for part in parts), parts
    assert sum(part["ticks"] for part in parts) == whole["ticks"], (parts, whole)
    assert sum(part["cpu"] for part in parts) == whole["cpu"], (parts, whole)
    page.evaluate("page.change({time: null})")
    # by hand, and back by a click
    box = page.evaluate("(r => [r.left, r.top, r.width, r.height])(document.querySelector('.time-all canvas').getBoundingClientRect())")
    page.drag(box[0] + box[2] * 0.2, box[1] + 30, box[0] + box[2] * 0.5, box[1] + 30)
    since, until = state(page)["time"]
    assert abs(since - 0.2 * end) < end * 0.01 and abs(until - 0.5 * end) < end * 0.01, (since, until, end)
    part = page.evaluate("page.whole()")
    page.evaluate("page.change({view: 'table'})")
    rows = page.evaluate(ROWS)
    assert sum(row["self"] for row in rows) == part["ticks"] < whole["ticks"], (rows, part)
    folded = page.evaluate("page.folded()").splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded) == part["ticks"]
    page.click(box[0] + 20, box[1] + 30)
    assert state(page)["time"] is None and page.evaluate("page.whole()") == whole
    # threads: each alone, together all
    threads = page.evaluate("page.profile.threads.map((t) => t.number)")
    alone = []
    for thread in threads:
        page.evaluate(f"page.change({{threads: [{thread}]}})")
        alone.append(page.evaluate("page.whole().ticks"))
    assert sum(alone) == whole["ticks"] and max(alone) < whole["ticks"], (alone, whole)
    close(page)


def test_the_timeline_and_the_heat_map_are_exact():
    make_files()
    for name in ("processes", "gaps"):
        page = open_page(name, "view=heat")
        sums = page.evaluate("""(() => { const t = page.pictures().timeline, add = (a) => a.reduce((x, y) => x + y, 0);
          return {all: add(t.bins('all', 900, t.threads)), each: t.threads.map((x) => add(t.bins(x.number, 900, [x]))),
                  wanted: t.threads.map((x) => x.cpu - x.tail), cells: add(page.pictures().heat.cells)}; })()""")
        for got, wanted in zip(sums["each"] + [sums["all"]], sums["wanted"] + [sum(sums["wanted"])]):
            assert math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-3), (name, sums)
        assert sums["cells"] == page.evaluate("page.whole().ticks"), sums
        box = page.evaluate("""(() => { const h = page.pictures().heat, r = h.surface.canvas.getBoundingClientRect();
          return [r.left + 52 + h.across / 2, r.top + 22 + h.down * h.rows, h.down, h.each]; })()""")
        page.drag(box[0], box[1] - box[2] / 2, box[0], box[1] - box[2] * 1.5)
        since, until = state(page)["time"]
        assert since == 0 and abs(until - min(2 * box[3], page.evaluate("page.profile.end"))) <= 1, (name, since, until, box)
        close(page)


def test_the_timeline_has_no_more_cpus_than_the_host():
    make_files()
    page = open_page("late")
    assert page.evaluate("document.querySelector('.time-all small').textContent") == "peak: 2.0 CPUs"
    most, all_of_it, cpu = page.evaluate("""(() => { const t = page.pictures().timeline, add = (a) => a.reduce((x, y) => x + y, 0);
      const values = t.bins('all', 900, t.threads), bins = Math.floor(900 / 3), levels = values.length / bins, each = t.end * 1000 / bins;
      const sums = Array.from({length: bins}, (_, b) => add(values.subarray(b * levels, (b + 1) * levels)) / each);
      return [Math.max(...sums), add(values), add(t.threads.map((x) => x.cpu - x.tail))]; })()""")
    assert 1.99 < most < 2.0001 and math.isclose(all_of_it, cpu, rel_tol=1e-9), (most, all_of_it, cpu)
    close(page)


def test_search_shows_the_matched_share():
    make_files()
    lines = [line.rsplit(" ", 1) for line in e.read(file_of("recursion", ".folded")).splitlines()]
    page = open_page("recursion")
    whole = sum(int(n) for _, n in lines)
    for query, regex, found in (("fib", False, "fib"), ("^(min|schedule)$", True, r";(min|schedule)(_\[k\])?(;|$)")):
        page.evaluate(f"document.getElementById('regex').getAttribute('aria-pressed') === '{str(regex).lower()}' || document.getElementById('regex').click()")
        page.evaluate("document.getElementById('query').focus(); document.getElementById('query').select()")
        page.call("Input.insertText", text=query)
        matched = sum(int(n) for stack, n in lines if re.search(found, stack.split(";", 1)[1] if not regex else stack))
        text = page.evaluate("document.getElementById('matched').textContent")
        assert 0 < matched < whole and abs(float(text.split()[0]) - 100 * matched / whole) < 0.06, (query, text, matched, whole)
    page.evaluate("page.change({query: '(', regex: true})")
    assert page.evaluate("document.getElementById('matched').textContent") == "not a pattern"
    close(page)


def test_a_link_leads_back():
    make_files()
    page = open_page("recursion", "down=1")
    settle(page)
    page.click(*box_of(page, "fib"))
    page.evaluate("page.change({query: 'fib', measure: 'cpu', colours: 'module', threads: [0]})")
    page.evaluate("document.getElementById('choose-group').value = 'process'; document.getElementById('choose-group').dispatchEvent(new Event('change'))")
    page.evaluate("new Promise((r) => setTimeout(r, 250))")
    settle(page)
    page.click(*box_of(page, "main"))
    page.evaluate("page.change({time: [1000, 9000]}); new Promise((r) => setTimeout(r, 300))")
    url, before = page.evaluate("location.href"), state(page)
    picture = "page.pictures().flame.surface.canvas.toDataURL()"
    page.evaluate("page.pictures().flame.hovered = 0; page.pictures().flame.surface.paint()")
    seen = page.evaluate(picture)
    assert before["node"] > 0 and "node=" in url and url.startswith("file://"), (url, before)
    page.close()
    again = libbrowser.shared().page(url)
    again.wait(READY)
    again.name = "recursion"
    assert state(again) == before, (state(again), before)
    settle(again)
    assert again.evaluate(picture) == seen
    # malformed
    for fragment in ("view=nonsense&time=9-1&zoom=a-b&threads=x.99999&fn=-7&node=123456789&group=%E0%A4%A", "__proto__=1&constructor=2&query=%3Cb%3E"):
        again.evaluate(f"location.hash = {json.dumps(fragment)}; new Promise((r) => setTimeout(r, 50))")
        got = state(again)
        assert (got["view"], got["time"], got["zoom"], got["threads"], got["group"]) == ("flame", None, None, [], "merged"), got
    close(again)


def test_keys_and_focus():
    make_files()
    page = open_page("recursion", "down=1")
    page.evaluate("page.pictures().flame.surface.canvas.focus()")
    page.key("ArrowDown", "ArrowDown")
    page.key("ArrowDown", "ArrowDown")
    spoken = page.evaluate("document.getElementById('live').textContent")
    assert re.search(r"(main|__libc_start_call_main).*total: .*95 % confidence: .*Wilson", spoken), spoken
    page.key("Enter", "Enter")
    assert state(page)["node"] > 0
    page.key("Backspace", "Backspace")
    page.key("0", "Digit0")
    assert state(page)["node"] == 0
    page.key("?", "Slash")
    assert page.evaluate("document.getElementById('keys').open")
    page.key("Escape", "Escape")
    page.wait("!document.getElementById('keys').open")
    for key, name, value in (("4", "view", "table"), ("2", "view", "time"), ("1", "view", "flame"), ("g", "group", "process"),
                             ("m", "measure", "cpu"), ("i", "down", False), ("r", "recursion", True)):
        page.key(key, f"Digit{key}" if key.isdigit() else None)
        assert state(page)[name] == value, (key, state(page))
    page.key("/", "Slash")
    assert page.evaluate("document.activeElement.id") == "query"
    unnamed = page.evaluate("""[...document.querySelectorAll('button, input, select, canvas, [role]')].filter((x) =>
      !(x.getAttribute('aria-label') || x.title || x.textContent.trim() || x.getAttribute('aria-labelledby') || x.id === 'live')).length""")
    assert unnamed == 0, unnamed
    close(page)


def test_callers_and_callees():
    make_files()
    report = {r["function"]: r for r in report_of("recursion")["rows"]}
    for name in ("fib", "min", "main"):
        page = open_page("recursion", "view=table")
        page.evaluate(f"[...document.querySelectorAll('button.name')].find((b) => b.textContent === '{name}').click()")
        totals = page.evaluate("['upper', 'lower'].map((p) => page.pictures()[p].sums.ticks.total[0])")
        assert state(page)["view"] == "sandwich" and totals == [report[name]["total"]] * 2, (name, totals)
        close(page)


def test_recursion_as_one_frame_keeps_the_sums():
    make_files()
    for group in ("merged", "thread"):
        page = open_page("recursion", f"view=table&recursion=1&group={group}")
        got = [(r["self"], r["total"], r["name"]) for r in page.evaluate(ROWS)]
        assert got == [(r["self"], r["total"], r["function"]) for r in report_of("recursion")["rows"]], got
        deepest = page.evaluate("page.pictures().flame.deepest")
        page.evaluate("page.change({recursion: false})")
        assert deepest < page.evaluate("page.pictures().flame.deepest")
        close(page)


def wilson(k, n):
    z, p = 1.959964, k / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [100 * (middle + sign * half) / (1 + z * z / n) for sign in (-1, 1)]


def test_the_tooltip():
    make_files()
    page = open_page("recursion")
    settle(page)
    page.mouse("mouseMoved", *box_of(page, "clamp"))
    lines = dict(page.evaluate("[...document.querySelectorAll('#tip dt')].map((t) => [t.textContent, t.nextSibling.textContent])"))
    row = next(r for r in report_of("recursion")["rows"] if r["function"] == "clamp")
    whole = report_of("recursion")["summary"]["samples"]
    assert page.evaluate("document.querySelector('#tip .title').textContent") == "clamp"
    assert lines["source"] == "/src/a dir/fib.c:7" and "inlined" in lines["kind"], lines
    box = page.evaluate("(f => f.sums.ticks.total[f.hovered])(page.pictures().flame)")
    assert 0 < box <= row["total"] and lines["total"].startswith(f"{box} sample"), (lines, row)
    low, high = map(float, re.match(r"([\d.]+)–([\d.]+) %", lines["95 % confidence"]).groups())
    assert all(abs(a - b) < 0.06 for a, b in zip((low, high), wilson(box, whole))), (lines, wilson(box, whole))
    close(page)


def test_light_and_dark():
    make_files()
    page = open_page("recursion")
    light = "(c => c.match(/\\d+/g).reduce((a, b) => a + Number(b), 0))(getComputedStyle(document.body).backgroundColor) > 380"
    page.dark(False)
    page.wait(light)
    page.dark()
    page.wait(f"!({light})")
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate(light)
    page.evaluate("localStorage.clear()")
    # where the same function is more or less than in a second profile; for comparisons of two
    less, same, more = page.evaluate("[[1, 3], [2, 2], [3, 1]].map(([a, b]) => page.frameColour('kind', 1, 'x', '', {total: a, whole: 4}, {total: b, whole: 4}))")
    assert len({less, same, more}) == 3, (less, same, more)
    close(page)


def test_what_was_lost_is_reported():
    make_files()
    page = open_page("lost-records")
    summary = report_of("lost-records")["summary"]
    text = page.evaluate("document.getElementById('strip').textContent")
    assert f"{summary['samples']:,} samples" in text, text
    lost = page.evaluate("page.profile.words.lost.reduce((a, b) => a + b.count, 0)")
    assert lost > 0 and f"{lost:,} lost" in text, (lost, text)
    page.evaluate("document.querySelector('.facts').click()")
    details = page.evaluate("document.getElementById('details').textContent")
    assert all(word in details for word in ("Lost", "Stacks", "Names", "ticks due", "hostname")), details
    close(page)
    page = open_page("left-out")
    assert "limits left something out" in page.evaluate("document.getElementById('strip').textContent")
    page.evaluate("document.querySelector('.facts').click()")
    details = page.evaluate("document.getElementById('details').textContent")
    rows = report_of("left-out")["summary"]["outside"]
    assert len(rows) == 5 and all(row["text"] in details for row in rows), (rows, details)
    close(page)
    page = open_page("cut-short")
    assert "cut short" in page.evaluate("document.getElementById('strip').textContent")
    close(page)


def text_of(page, what):
    return page.evaluate(f"document.querySelector({json.dumps(what)}).textContent")


def test_events_have_their_unit():
    """Shares are of the events, not of the samples; weights are no samples."""
    make_files()
    page = open_page("bytes", "view=table")
    strip = text_of(page, "#strip")
    assert "2 samples · 4,000 bytes of memory · " in strip and "25.0 % of memory in code without a name" in strip, strip
    assert text_of(page, "table.functions .self .number") == "3,000 bytes"
    assert page.evaluate("page.folded()").startswith("# weights: bytes of memory\n")
    check_folded(page)
    page.evaluate("document.querySelector('.facts').click()")
    details = text_of(page, "#details")
    assert "memory whose innermost frame has no name1,000 bytes (25.0 %)" in details, details
    close(page)
    page = open_page("bytes", "view=heat")
    assert text_of(page, "#legend").startswith("04,000 bytes of memory in "), text_of(page, "#legend")
    close(page)
    for name, text, measure, value in (("fractions", "a;b 0.4\na;c 0.3\n", "weight", "0.4"),
                                       ("times", "# weights: 5000 ns of CPU time\na;b 4\na;c 3\n", "Weight", "20.0 µs")):
        e.write(file_of(name, ".txt"), text)
        e.sysprof("convert", file_of(name, ".txt"), "-o", file_of(name), "-o", file_of(name, ".folded"), check=0)
        page = open_page(name, "view=table")
        check_folded(page)
        assert text_of(page, "table.functions .self .number") == value, name
        assert page.evaluate("document.querySelector('select option[value=ticks]').textContent") == measure
        close(page)


def test_the_same_bytes_each_time():
    make_files()
    recording = os.path.join(e.GOLDEN, "jit-reuse.sysprof")
    time.sleep(0.01)
    e.sysprof("convert", recording, "-o", file_of("again"), "--no-symbol-cache", check=0)
    with open(file_of("again"), "rb") as a, open(file_of("jit-reuse"), "rb") as b:
        assert a.read() == b.read()


def main():
    try:
        e.main(globals())
    finally:
        libbrowser.close_shared()


main()
