#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
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
import xml.etree.ElementTree

import libbrowser
import libe2e as e

RECORDINGS = ("containers", "cut-short", "fork-exec", "jit-reuse", "left-out", "lost-records", "pid-reuse", "services")
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


def choose(page, item):
    """Of the menu that is open."""
    page.evaluate(f"[...document.querySelectorAll('#menu button')].find((b) => b.textContent === {json.dumps(item)}).click()")
    assert page.evaluate("document.getElementById('menu') === null")


def chips(page):
    return page.evaluate("[...document.querySelectorAll('#path .chip')].map((chip) => chip.textContent)")


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


def test_processes_of_services():
    """Processes have the titles of other formats; grouped by service, the page has the figures of the report."""
    make_files()
    page = open_page("services", "group=service")
    titles = page.evaluate("page.profile.processes.map((p, i) => page.profile.processName(i))")
    assert titles[:3] == ["OrderService (java, shop/api-7f9)", "shop/orders (sh, shop/api-7f9)", "web (python3)"], titles
    hostile = [title for title in titles if title.startswith('a__[31m"<b>')]
    assert len(hostile) == 3 and all(len(title) < 256 for title in hostile), titles
    got = page.evaluate("""(() => {
      const { tree, sums } = page.pictures().flame, sum = {};
      for (let i = 1; i < tree.count; i++) if (!tree.parent[i]) sum[page.pictures().flame.options.textOf(tree.fn[i])] = sums.ticks.total[i];
      return sum; })()""")
    report = json.loads(e.sysprof("report", os.path.join(e.GOLDEN, "services.sysprof"), "--by", "service", "--json", check=0).out)
    assert got == {row["service"]: row["self"] for row in report["rows"]}, (got, report["rows"])
    assert page.evaluate("document.getElementById('choose-group').value") == "service"
    close(page)
    page = open_page("containers", "group=service")  # without services
    assert state(page)["group"] == "merged"
    close(page)


def test_waits():
    """Of the profile `waits`: its rows in each mode, by state, in the timeline and the table of locks."""
    make_files()
    page = open_page("waits", "mode=waiting&measure=cpu&parked=1")
    assert page.evaluate("page.whole()") == {"ticks": 6, "cpu": 181250000}
    by_state = """(() => { page.change({group: 'state'}); const { tree, sums } = page.pictures().flame, sum = {};
      for (let i = 1; i < tree.count; i++) if (!tree.parent[i]) sum[page.pictures().flame.options.textOf(tree.fn[i])] = sums.cpu.total[i];
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
    page.wait("document.getElementById('menu') !== null")
    choose(page, "Callers and callees")
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


def test_a_menu_at_boxes_rows_and_threads_filters():
    make_files()
    page = open_page("processes", "down=1")
    pids = page.evaluate("[...new Set(page.profile.threads.filter((t) => t.end > t.first).map((t) => page.profile.processes[t.process].pid))]")
    whole, (first, second) = page.evaluate("page.whole().ticks"), pids[:2]
    # a thread's label, by the right button: its process
    page.evaluate("document.querySelector('.time-rows .time-label').dispatchEvent(new MouseEvent('contextmenu', {bubbles: true, cancelable: true, clientX: 60, clientY: 200}))")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "menuitem"
    items = page.evaluate("[...document.querySelectorAll('#menu button')].map((b) => b.textContent)")
    page.key("Escape")
    assert page.evaluate("document.getElementById('menu') === null")
    assert any(item.startswith("Only process ") for item in items) and "Copy link" in items, items
    page.evaluate(f"page.change({{filter: '--process={first}'}})")
    one = page.evaluate("page.whole().ticks")
    page.evaluate(f"page.change({{filter: '--process={second} --process={first}'}})")
    both = page.evaluate("page.whole().ticks")
    assert 0 < one < both <= whole and chips(page) == [f"process {pid}" for pid in sorted((first, second), key=str)], (one, both, whole, chips(page))
    assert page.evaluate("document.getElementById('kept').textContent") == f"kept {both} of {whole} samples"
    # chips go one by one
    page.evaluate(f"[...document.querySelectorAll('#path .chip')].find((chip) => chip.textContent === 'process {second}').click()")
    assert page.evaluate("page.whole().ticks") == one and state(page)["filter"] == f"--process={first}"
    page.key("Escape")
    assert page.evaluate("page.whole().ticks") == whole and chips(page) == []
    # a box, by the keyboard
    close(page)
    page = open_page("recursion", "down=1")
    whole = page.evaluate("page.whole().ticks")
    page.evaluate("page.pictures().flame.surface.canvas.focus()")
    page.key("ArrowDown")
    page.key("ArrowDown")
    name = page.evaluate("(f => page.profile.nameOf(f.tree.fn[f.chosen]))(page.pictures().flame)")
    page.key("F10", modifiers=8)
    assert page.evaluate("document.querySelector('#menu .title').textContent") == name
    choose(page, "Focus on it")
    focused = page.evaluate("page.whole().ticks")
    assert 0 < focused <= whole and chips(page) == [f"focus {name}"] and state(page)["filter"], (focused, chips(page))
    # a row
    page.evaluate("page.change({view: 'table', filter: ''})")
    page.evaluate("[...document.querySelectorAll('button.name')].find((b) => b.textContent === 'fib').dispatchEvent(new MouseEvent('contextmenu', {bubbles: true, cancelable: true}))")
    choose(page, "Hide it")
    rows = {row["name"]: row for row in page.evaluate(ROWS)}
    assert "fib" not in rows and "main" in rows and page.evaluate("page.whole().ticks") == whole, rows
    # the address has it
    page.wait("location.hash.includes('--hide')")
    link = page.evaluate("location.hash")
    close(page)
    page = open_page("recursion", link[1:])
    assert chips(page) == ["hide fib"] and "fib" not in {row["name"] for row in page.evaluate(ROWS)}
    close(page)


def menu_items(page):
    return page.evaluate("[...document.querySelectorAll('#menu button')].map((item) => item.textContent)")


def test_a_menu_has_the_process_of_a_box():
    make_files()
    page = open_page("processes", "down=1&group=process")
    # by the grouping: the first box of the last process
    group, name = page.evaluate("""(() => { const f = page.pictures().flame, at = f.surface.canvas.getBoundingClientRect();
      const group = f.children(0).at(-1), box = f.boxOf(f.children(group)[0]);
      f.surface.canvas.dispatchEvent(new MouseEvent('contextmenu', {bubbles: true, cancelable: true, clientX: at.left + box.x + box.w / 2, clientY: at.top + box.y + 9}));
      const p = page.profile; return [-2 - f.tree.fn[group], p.processName(-2 - f.tree.fn[group])]; })()""")
    choose(page, f"Only process {name}")
    assert len(chips(page)) == 1 and page.evaluate("[...new Set(page.profile.threads.filter((t) => t.end > t.first).map((t) => t.process))]") == [group]
    close(page)
    # merged: what all processes have is none's, what one alone has is its own
    page = open_page("processes", "down=1")
    owned = page.evaluate("""(() => { const p = page.profile, f = page.pictures().flame, owners = new Map(), { tree } = f;
      for (const t of p.threads) for (let i = t.first; i < t.end; i++) for (let at = tree.map[p.node[i]]; at; at = tree.parent[at]) {
        const name = p.nameOf(tree.fn[at]);
        owners.set(name, (owners.get(name) ?? new Set()).add(t.process));
      }
      return [...owners].map(([name, all]) => [name, all.size, p.processName([...all][0])]); })()""")
    assert any(count == 1 for _, count, _ in owned) and any(count > 1 for _, count, _ in owned), owned
    for name, count, process in owned:
        page.evaluate(f"page.change({{view: 'table', query: {json.dumps(name)}}})")
        page.evaluate(f"[...document.querySelectorAll('button.name')].find((b) => b.textContent === {json.dumps(name)}).dispatchEvent(new MouseEvent('contextmenu', {{bubbles: true, cancelable: true}}))")
        items = menu_items(page)
        assert [item for item in items if item.startswith("Only process ")] == ([f"Only process {process}"] if count == 1 else []), (name, count, items)
        page.key("Escape")
    close(page)


TIME_LABELS = "[...document.querySelectorAll('.time-rows .time-label')]"
LEFT = "(threads => [threads.length, new Set(threads.map((t) => t.process)).size])(page.profile.threads.filter((t) => t.end > t.first))"


def items_of_label(page, label):
    page.evaluate(f"{TIME_LABELS}[{label}].dispatchEvent(new MouseEvent('contextmenu', {{bubbles: true, cancelable: true, clientX: 60, clientY: 200}}))")
    return [item for item in menu_items(page) if item.startswith("Only ")]


def test_a_menu_says_how_many_processes_and_threads_it_keeps():
    """Programs that a process executes, later processes and other hosts have the same numbers."""
    make_files()
    counted = set()
    for name in "pid-reuse", "services", "fork-exec", "alike":
        page = open_page(name)
        for label in range(min(8, page.evaluate(f"{TIME_LABELS}.length"))):
            for item in items_of_label(page, label):
                items_of_label(page, label)
                choose(page, item)
                many, kind = re.match(r"Only (?:the (\d+) )?(\w+)", item).groups()
                threads, processes = page.evaluate(LEFT)
                left = {"thread": threads, "process": processes}.get({"threads": "thread", "processes": "process"}.get(kind, kind))
                assert left is None or left == int(many or 1), (name, label, item, threads, processes)
                counted.add((kind, bool(many)))
                page.evaluate("page.change({filter: ''})")
        close(page)
    assert counted >= {("thread", False), ("process", False), ("threads", True), ("processes", True)}, counted


def test_containers_of_one_name_are_apart():
    make_files()
    page = open_page("alike")
    names = [label["name"] for label in page.evaluate(LABELS) if label["group"]]
    assert names == ["db", "web, bbbbbbbbbbbb", "web, aaaaaaaaaaaa"], names
    page.evaluate(f"page.change({{filter: '--container=web'}})")
    assert page.evaluate("page.whole().ticks") == 3
    label = page.evaluate(f"{TIME_LABELS}.findIndex((label) => label.textContent.includes('bbbb'))")
    assert items_of_label(page, label) == ["Only container web, bbbbbbbbbbbb"]
    choose(page, "Only container web, bbbbbbbbbbbb")
    assert state(page)["filter"] == "--container=bbbbbbbbbbbb --container=web", state(page)
    page.evaluate("page.change({filter: '--container=bbbbbbbbbbbb'})")
    assert page.evaluate("page.whole().ticks") == 2
    close(page)


def test_a_row_of_a_table_has_its_heaviest_stack():
    make_files()
    page = open_page("recursion", "view=table")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => { globalThis.copied = text; return Promise.resolve(); }}})")
    page.evaluate("[...document.querySelectorAll('button.name')].find((b) => b.textContent === 'clamp').focus()")
    page.key("F10", modifiers=8)
    choose(page, "Copy heaviest stack with lines")
    page.wait("globalThis.copied")
    lines = page.evaluate("globalThis.copied").splitlines()
    assert lines[0].startswith("clamp (") and lines[-1].startswith("__libc_start_call_main ") and any(re.search(r"fib \(.*\) /.*:\d+$", line) for line in lines), lines
    # from row to row
    names = [row["name"] for row in page.evaluate(ROWS)]
    page.evaluate("document.querySelector('button.name').focus()")
    for key, name in ("ArrowDown", names[1]), ("ArrowDown", names[2]), ("ArrowUp", names[1]):
        page.key(key)
        assert page.evaluate("document.activeElement.textContent") == name
    close(page)


def test_a_lock_has_a_menu():
    make_files()
    page = open_page("waits", "view=locks")
    page.evaluate("document.querySelector('#view-locks button.name').focus()")
    name = page.evaluate("document.activeElement.textContent")
    page.key("F10", modifiers=8)
    assert page.evaluate("document.querySelector('#menu .title').textContent") == name and "Focus on it" in menu_items(page)
    choose(page, "Focus on it")
    assert chips(page) == [f"focus {name}"]
    close(page)


def test_the_keyboard_in_the_time_order():
    make_files()
    page = open_page("recursion", "view=time")
    span = "((chart) => ({...chart.spanOf(chart.chosen), depth: chart.chosen.depth}))(page.pictures().chart)"
    page.evaluate("page.pictures().chart.surface.canvas.focus()")
    page.key("ArrowDown")
    first = page.evaluate(span)
    assert first["depth"] == 0 and first["start"] == page.evaluate("page.pictures().chart.levels[0].start[0]"), first
    page.key("ArrowDown")
    callee = page.evaluate(span)
    name = page.evaluate(f"page.profile.nameOf(page.pictures().chart.tree.fn[{callee['node']}])")
    assert callee["depth"] == 1 and first["start"] <= callee["start"] < callee["end"] <= first["end"], (first, callee)
    assert page.evaluate("document.getElementById('live').textContent").startswith(f"{name} – from: ")
    page.key("F10", modifiers=8)
    thread = page.evaluate("page.profile.threadName(page.pictures().chart.thread)")
    assert page.evaluate("document.querySelector('#menu .title').textContent") == name and f"Only thread {thread}" in menu_items(page), menu_items(page)
    page.key("Escape")
    page.key("ArrowUp")
    assert page.evaluate(span) == first
    # to the last box of the level, and to it in time
    count = page.evaluate("page.pictures().chart.levels[0].end.length")
    for _ in range(count):
        page.key("ArrowRight")
    last = page.evaluate(span)
    assert last["end"] == page.evaluate("page.pictures().chart.levels[0].end.at(-1)") and last["depth"] == 0
    page.key("Enter")
    assert page.evaluate("page.pictures().chart.from") == last["start"] and page.evaluate("page.pictures().chart.to") == max(last["end"], last["start"] + 1)
    if count > 1:  # what cannot be seen is gone to
        page.key("ArrowLeft")
        before = page.evaluate(span)
        assert page.evaluate("[page.pictures().chart.from, page.pictures().chart.to]")[0] < before["end"], before
    page.key("x")
    assert state(page)["view"] == "sandwich" and page.evaluate("page.profile.nameOf(page.state.fn)"), state(page)
    close(page)


LABELS = """[...document.querySelectorAll('.time-rows .time-label')].map((label) => ({
  group: label.classList.contains('group'), name: label.querySelector('bdi').textContent, open: label.getAttribute('aria-expanded')}))"""


def test_threads_are_in_groups_that_fold():
    make_files()
    page = open_page("services")
    labels = page.evaluate(LABELS)
    groups = page.evaluate("page.pictures().timeline.groups.map((group) => group.name)")
    cpu = page.evaluate("page.pictures().timeline.groups.map((group) => group.cpu)")
    rows = json.loads(e.sysprof("report", os.path.join(e.GOLDEN, "services.sysprof"), "--by", "service", "--json", check=0).out)["rows"]
    assert sorted(groups) == sorted(row["service"] for row in rows) and cpu == sorted(cpu, reverse=True), (groups, cpu, rows)
    sizes = page.evaluate("page.pictures().timeline.groups.map((group) => group.threads.length)")
    assert [label["open"] for label in labels if label["group"]] == ["true" if size > 1 else "false" for size in sizes], (labels, sizes)
    assert len(labels) - len(groups) == sum(size for size in sizes if size > 1)
    page.evaluate("document.querySelectorAll('.time-label.group').forEach((label) => label.getAttribute('aria-expanded') === 'false' && label.click())")
    labels = page.evaluate(LABELS)
    assert len(labels) - len(groups) == page.evaluate("page.pictures().timeline.threads.length")
    page.evaluate("document.querySelector('.time-label.group').click()")
    folded = page.evaluate(LABELS)
    first = next(i for i, label in enumerate(labels) if i and label["group"])
    assert folded[0]["open"] == "false" and folded[1:] == labels[first:], (folded, labels)
    # the group's menu; a filter keeps what is folded
    at = next(i for i, name in enumerate(groups) if not name.startswith("["))
    page.evaluate(f"document.querySelectorAll('.time-label.group')[{at}].dispatchEvent(new MouseEvent('contextmenu', {{bubbles: true, cancelable: true, clientX: 60, clientY: 200}}))")
    assert menu_items(page) == [f"Only service {groups[at]}", f"Drop service {groups[at]}", "Copy name", "Copy link"], menu_items(page)
    whole = page.evaluate("page.whole().ticks")
    choose(page, f"Drop service {groups[at]}")
    left = page.evaluate("page.whole().ticks")
    assert chips(page) == [f"drop service {groups[at]}"] and page.evaluate(LABELS) and all(label["name"] != groups[at] for label in page.evaluate(LABELS)), page.evaluate(LABELS)
    page.key("Escape")
    page.evaluate(f"document.querySelectorAll('.time-label.group')[{at}].dispatchEvent(new MouseEvent('contextmenu', {{bubbles: true, cancelable: true, clientX: 60, clientY: 200}}))")
    choose(page, f"Only service {groups[at]}")
    assert page.evaluate("page.whole().ticks") + left == whole, (left, whole)
    assert len(chips(page)) == 1 and len(page.evaluate(LABELS)) < len(labels), page.evaluate(LABELS)
    page.key("Escape")
    assert page.evaluate(LABELS) == folded
    close(page)


def test_a_hundred_services_are_folded_at_first():
    make_files()
    page = open_page("crowd")
    labels = page.evaluate(LABELS)
    assert len(labels) == 100 and all(label["group"] and label["open"] == "false" for label in labels), labels
    assert labels[0]["name"] == "service 99", labels[0]
    page.evaluate("document.querySelector('.time-label.group').click()")
    opened = page.evaluate(LABELS)
    assert [label["group"] for label in opened[:7]] == [True] + 5 * [False] + [True] and len(opened) == 105, opened[:7]
    # Tab comes to one label, arrows to the others
    assert page.evaluate("[...document.querySelectorAll('.time-rows .time-label')].filter((label) => label.tabIndex === 0).length") == 1
    page.evaluate("document.querySelector('.time-label.group').focus()")
    focused = "document.activeElement.querySelector('bdi').textContent"
    for key, name, lines in (("ArrowLeft", "service 99", 100), ("ArrowDown", "service 98", 100), ("ArrowRight", "service 98", 105),
                             ("ArrowDown", "", 105), ("ArrowLeft", "service 98", 105), ("ArrowLeft", "service 98", 100), ("End", "service 0", 100),
                             ("Home", "service 99", 100), ("ArrowRight", "service 99", 105)):
        page.key(key)
        assert name in page.evaluate(focused) and len(page.evaluate(LABELS)) == lines, (key, name, page.evaluate(focused), len(page.evaluate(LABELS)))
    # a thread that is selected is shown, though its group is folded
    page.evaluate("page.change({threads: [7]})")
    settle(page)
    assert len(page.evaluate(LABELS)) == 110
    assert page.evaluate("document.querySelector('.time-label[aria-pressed=true] small').textContent").endswith("1007")
    # what does not belong to a hundred others
    page.evaluate("page.change({threads: [], filter: \"'--service=service 3?'\"})")
    assert len([label for label in page.evaluate(LABELS) if label["group"]]) == 10
    assert page.evaluate("page.whole().ticks") == page.evaluate("page.filtered.kept.ticks") == 50 * 2
    first = page.evaluate("performance.getEntriesByName('first-picture')[0].startTime")
    print(f"  first picture of 500 threads in 100 services: {first:.0f} ms")
    close(page)


def test_threads_are_found_by_their_names():
    make_files()
    page = open_page("threads")
    name = page.evaluate("document.querySelectorAll('.time-rows .time-label bdi')[77].textContent")
    page.evaluate(f"(field => {{ field.value = {json.dumps(name)}; field.dispatchEvent(new Event('input')); }})(document.querySelector('.time-head input'))")
    names = [label["name"] for label in page.evaluate(LABELS)]
    assert names and len(names) < 500 and all(name.lower() in found.lower() for found in names), names
    settle(page)
    close(page)


BOXES = """(() => { const { tree, sums } = page.pictures().flame, found = {};
  for (let i = 1; i < tree.count; i++) if (sums.ticks.total[i]) found[[tree.depth[i], page.profile.nameOf(tree.fn[i])]] = sums.ticks.total[i];
  return found; })()"""


def test_code_without_a_symbol_is_one_box_until_it_is_opened():
    make_files()
    page = open_page("unnamed", "down=1")
    assert page.evaluate(BOXES) == {"1,JIT code of qemu": 3, "1,JIT code of guest": 3, "1,0x7f0000001200": 1}, page.evaluate(BOXES)
    page.evaluate("page.change({view: 'table'})")
    rows, wanted = page.evaluate(ROWS), report_of("unnamed")["rows"]
    assert [(r["self"], r["total"], r["name"]) for r in rows] == [(r["self"], r["total"], r["function"]) for r in wanted], (rows, wanted)
    page.evaluate("page.change({view: 'flame'})")
    settle(page)
    page.mouse("mouseMoved", *box_of(page, "JIT code of qemu"))
    page.mouse("mousePressed", *box_of(page, "JIT code of qemu"), "right", 2, 1)
    page.mouse("mouseReleased", *box_of(page, "JIT code of qemu"), "right", 0, 1)
    page.wait("document.getElementById('menu') !== null")
    choose(page, "Show its addresses")
    opened = {"1,0x7f0000001000": 2, "2,0x7f0000001010": 1, "1,0x7f0000001010": 1, "1,JIT code of guest": 3, "1,0x7f0000001200": 1}
    assert page.evaluate(BOXES) == opened, page.evaluate(BOXES)
    page.wait("location.hash.includes('opened=')")
    link = page.evaluate("location.hash")
    close(page)
    page = open_page("unnamed", link[1:])
    assert page.evaluate(BOXES) == opened, page.evaluate(BOXES)
    page.evaluate("page.change({filter: '--process=qemu', opened: []})")
    assert page.evaluate(BOXES) == {"1,JIT code of qemu": 3}, page.evaluate(BOXES)
    close(page)


def test_a_long_touch_opens_the_menu():
    make_files()
    page = open_page("recursion", "down=1")
    x, y = box_of(page, "main")
    at = f"{{pointerType: 'touch', isPrimary: true, pointerId: 7, clientX: {x}, clientY: {y}, button: 0, bubbles: true}}"
    canvas = "page.pictures().flame.surface.canvas"
    page.evaluate(f"{canvas}.setPointerCapture = () => {{}}; {canvas}.dispatchEvent(new PointerEvent('pointerdown', {at}))")
    page.wait("document.getElementById('menu') !== null")
    page.evaluate(f"{canvas}.dispatchEvent(new PointerEvent('pointerup', {at}))")
    assert state(page)["node"] == 0 and page.evaluate("document.querySelector('#menu .title').textContent") == "main"
    close(page)


def test_clauses_that_are_typed():
    make_files()
    page = open_page("recursion")
    for text, wanted in (("fib", "--focus=fib"), ("--hide=^min$ --process=*", "--process=* --focus=fib --hide=^min$")):
        page.key("e")
        page.evaluate(f"document.getElementById('clause').value = {json.dumps(text)}")
        page.key("Enter")
        wanted = "'--process=*' --focus=fib '--hide=^min$'" if "process" in wanted else wanted
        assert state(page)["filter"] == wanted, state(page)["filter"]
        page.key("Escape")
    page.key("e")
    for text, why in (("a(", "--focus a(: invalid regular expression: byte 2: missing )"), ("--cpu=1", "--cpu 1: the samples have no CPU"),
                      ("@10s-20s", "@10s-20s: a part of the time is selected in the timeline"),
                      ("@gc", "@gc: the page has no markers; take the slice before: sysprof convert FILE@gc")):
        page.evaluate(f"document.getElementById('clause').value = {json.dumps(text)}")
        page.key("Enter")
        assert page.evaluate("document.getElementById('status').textContent") == why
        assert page.evaluate("document.getElementById('clause').classList.contains('bad')") and len(chips(page)) == 3
    close(page)
    page = open_page("recursion", "filter=--focus%3D%5B")
    assert state(page)["filter"] == "" and "missing ]" in page.evaluate("document.getElementById('refusal').textContent")
    close(page)


def test_a_filter_that_keeps_nothing():
    make_files()
    for name in ("recursion", "waits"):
        page = open_page(name, "filter=--focus%3Dnothing-has-this-name")
        for view in ("flame", "time", "sandwich", "table", "heat"):
            page.evaluate(f"page.change({{view: '{view}'}})")
            settle(page)
            assert "no sample" in page.evaluate("document.getElementById('message').textContent"), (name, view)
        page.evaluate("page.change({filter: ''})")
        assert page.evaluate("page.whole().ticks") > 0
        close(page)


def test_stacks_are_copied_with_lines():
    make_files()
    page = open_page("recursion", "down=1")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => { globalThis.copied = text; return Promise.resolve(); }}})")
    x, y = box_of(page, "clamp")
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y, "right", 2, 1)
    page.mouse("mouseReleased", x, y, "right", 0, 1)
    page.wait("document.getElementById('menu') !== null")
    choose(page, "Copy stack with lines")
    page.wait("globalThis.copied")
    lines = page.evaluate("globalThis.copied").splitlines()
    assert lines[0].startswith("clamp (") and any(re.search(r"fib \(.*\) /.*:\d+$", line) for line in lines), lines
    close(page)


def test_folded_text_is_saved():
    make_files()
    folder = e.scratch("saved")
    libbrowser.shared().call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
    page = open_page("recursion")
    page.evaluate("document.getElementById('save').click()")
    choose(page, "Folded stacks (f)")
    saved = os.path.join(folder, "profile.folded")
    e.wait_for(lambda: os.path.exists(saved), what="the saved file")
    with open(saved, encoding="utf-8") as a, open(file_of("recursion", ".folded"), encoding="utf-8") as b:
        assert a.read() == b.read()
    shutil.rmtree(folder)
    close(page)


def save_picture(page, folder, view, suffix, path):
    page.evaluate("document.getElementById('save').click()")
    choose(page, f"{view} as {suffix.upper()}")
    saved = os.path.join(folder, f"profile.{suffix}")
    e.wait_for(lambda: os.path.exists(saved) and os.path.getsize(saved), what=f"the saved {suffix}")
    os.rename(saved, path)
    return path


def test_pictures_are_saved():
    make_files()
    folder = e.scratch("pictures")
    libbrowser.shared().call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
    names = {}
    for name in ("recursion", "attacks"):
        page = open_page(name)
        settle(page)
        for suffix in ("svg", "png"):
            names[name, suffix] = save_picture(page, folder, "Flame graph", suffix, os.path.join(folder, f"{name}.{suffix}"))
        close(page)
    svg = xml.etree.ElementTree.parse(names["recursion", "svg"]).getroot()
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "main" in texts and any(text.startswith("all: ") for text in texts), texts
    assert float(svg.get("height")) > 19 * 3 and len(list(svg)) > len(texts), svg.attrib
    attacks = xml.etree.ElementTree.parse(names["attacks", "svg"]).getroot()
    assert {child.tag.split("}")[1] for child in attacks.iter()} == {"svg", "rect", "text"}
    for name in ("recursion", "attacks"):
        with open(names[name, "png"], "rb") as file:
            head = file.read(24)
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(head[16:20], "big") > 800, head
    shutil.rmtree(folder)


# Of a view: its name, and a text of its picture.
PICTURES = {"time": ("Time order", "main"), "sandwich": ("Sandwich", "Callers of "), "heat": ("Heat map", " ms")}


def test_pictures_of_the_other_views_are_saved():
    make_files()
    folder = e.scratch("pictures")
    libbrowser.shared().call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
    page = open_page("processes")
    for view, (title, text) in PICTURES.items():
        page.evaluate(f"page.change({{view: '{view}'}})")
        settle(page)
        svg = xml.etree.ElementTree.parse(save_picture(page, folder, title, "svg", os.path.join(folder, "view.svg"))).getroot()
        texts = [part.text for part in svg.iter("{http://www.w3.org/2000/svg}text")]
        assert any(text in part for part in texts) and len(list(svg)) > len(texts) + 1, (view, texts)
        assert all(0 <= float(part.get("y")) <= float(svg.get("height")) for part in svg), view
        with open(save_picture(page, folder, title, "png", os.path.join(folder, "view.png")), "rb") as file:
            head = file.read(24)
        size = [int.from_bytes(head[at:at + 4], "big") for at in (16, 20)]
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and size == [round(2 * float(svg.get(key))) for key in ("width", "height")], (view, size)
    page.evaluate("page.change({view: 'table'}); document.getElementById('save').click()")
    assert page.evaluate("[...document.querySelectorAll('#menu button')].map((item) => item.textContent)") == ["Folded stacks (f)"]
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
            assert page.evaluate("document.querySelectorAll('script, img, svg:not(.jumps), iframe').length") == 1, view
            assert page.evaluate("globalThis.hacked === undefined && Object.prototype.hacked === undefined")
        close(page)
    data = e.read(file_of("attacks"), "rb")
    assert b"hacked" not in data and data.isascii() is False and data.count(b"</script>") == 3
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
    assert "something was left out" in page.evaluate("document.getElementById('strip').textContent")
    page.evaluate("document.querySelector('.facts').click()")
    details = page.evaluate("document.getElementById('details').textContent")
    rows = report_of("left-out")["summary"]["outside"]
    assert len(rows) == 5 and all(row["text"] in details for row in rows), (rows, details)
    close(page)
    page, summary = open_page("services"), report_of("services")["summary"]
    strip = page.evaluate("document.getElementById('strip').textContent")
    page.evaluate("document.querySelector('.facts').click()")
    details = page.evaluate("document.getElementById('details').textContent")
    assert summary["facts_left_out"] > 0 and "something was left out" in strip, (summary, strip)
    assert f"(services by program alone) left out{summary['facts_left_out']}" in details, details
    cut = f"{100 * (1 - summary['complete_share']):.1f} % of stacks cut"  # names are no stacks
    assert cut in strip if summary["complete_share"] < 1 else "all stacks whole" in strip, (cut, strip)
    close(page)
    page = open_page("cut-short")
    assert "cut short" in page.evaluate("document.getElementById('strip').textContent")
    close(page)


def test_cpu_time_after_the_last_samples_is_said():
    """The root's figure and what is said beside it are the summary's."""
    make_files()
    for name, has_such in (("processes", True), ("fork-exec", True), ("services", False)):
        page = open_page(name, "measure=cpu")
        where = "document.querySelector('.where').textContent"
        behind = page.evaluate("page.profile.threads.reduce((sum, t) => sum + t.tail, 0)")
        assert page.evaluate("page.whole().cpu") + behind == page.evaluate("page.profile.summary.cpu_ns"), name
        text = page.evaluate(where)
        assert ("after the last samples" in text) == (behind > 0) == has_such, (name, behind, text)
        page.evaluate("document.querySelector('.facts').click()")
        assert ("after the last sample of each thread" in text_of(page, "#details")) == (behind > 0), name
        # what is said is of what is selected
        page.evaluate("document.getElementById('details').closest('dialog')?.close()")
        page.evaluate("page.change({filter: '--process=nothing'})")
        assert "after the last samples" not in page.evaluate(where), page.evaluate(where)
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
