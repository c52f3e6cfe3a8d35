#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
sysprof diff of recordings with waits: states and functions that wait compare as functions that run, in the page too.
"""
import concurrent.futures
import json
import os

import libbrowser
from diff import diff
from diff_page import assert_page, close, compared, figures, open_page
from libe2e import GOLDEN, main, need_root, record, run, scratch, sysprof, write
from libreport import invalid

WAITS = os.path.join(GOLDEN, "waits.sysprof")
PROGRAM = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
#define FUNCTION __attribute__((noinline)) static void
FUNCTION work(void) { for (unsigned long i = 0; i < 200000; i++) sink = sink * 33 + i; }
FUNCTION write_log(void) { pthread_mutex_lock(&lock); usleep(HOLD); pthread_mutex_unlock(&lock); }
FUNCTION read_input(void) { usleep(3000); }
static void *serve(void *unused) { for (int i = 0; i < 100; i++) { work(); write_log(); read_input(); } return unused; }
int main(void)
{
\tpthread_t threads[3];
\tfor (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, serve, 0);
\tfor (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}
"""


def waiting_of(path):
    """ns by state, as the report has it."""
    rows = json.loads(sysprof("report", "--wall", "--parked", "--json", path, check=0).out)["rows"]
    return {row["state"]: row["ns"] for row in rows if row["state"] != "running"}


def test_sums_are_exact():
    """The waiting time of a side is the kernel's account of its threads; each state has its part of it."""
    found = diff(WAITS, WAITS)
    waiting, states = found["waiting"], waiting_of(WAITS)
    assert waiting["old_ns"] == waiting["new_ns"] == sum(states.values()), (waiting, states)
    assert waiting["total"]["relative"] == 0 and not waiting["rows"], waiting
    assert waiting["run_noise"] == 0.3 and diff(WAITS, WAITS, "--run-noise", "5%")["waiting"]["run_noise"] == 0.05
    assert not invalid(found, schema="diff")


def test_parts_of_the_time():
    """Waits are cut at the ends of a part (which needs a sample of the CPU): two parts that overlap have all of it."""
    whole = diff(WAITS, WAITS)["waiting"]["old_ns"]
    at = next(i for i in range(50) if sysprof("diff", f"{WAITS}@{i / 1000}-{(i + 1) / 1000}", WAITS).status == 0)
    sums = [diff(f"{WAITS}@{part}", WAITS)["waiting"]["old_ns"] for part in
            (f"0-{(at + 1) / 1000}", f"{at / 1000}-{(at + 1) / 1000}", f"{at / 1000}-")]
    assert abs(sums[0] + sums[2] - sums[1] - whole) <= 3 and 0 < sums[1] < whole / 10, (sums, whole)


def test_not_on_both_sides():
    """One side alone: said, and CPU time is compared."""
    source = os.path.join(GOLDEN, "containers.sysprof")
    again = scratch("again.folded")
    sysprof("convert", source, "-o", again, check=0)
    for words in [source, again], [source, source]:
        found = sysprof("diff", *words, check=0).out
        assert "Waiting" not in found and "waiting" not in found, found
    text = sysprof("diff", "--fail-if", "waiting > 5%", "--fail-if", "state lock > 5%", "--view", "share", WAITS, source)
    assert text.status == 4 and text.out.count("cannot tell: waiting time is not compared") == 2, text
    assert "note: waiting time is not compared: not all files were recorded with --wall" in text.out, text
    assert sysprof("diff", "--fail-if", "waiting > 5%", source, source).status == 4
    assert sysprof("diff", "--fail-if", "waiting > 1000%", WAITS, WAITS).status == 0
    assert sysprof("diff", "--fail-if", "state nothing > 5%", WAITS, WAITS).status == 4
    for wrong in "waiting 5%", "waiting lock > 5%", "state > 5%", "states lock > 5%", "state lock":
        assert sysprof("diff", "--fail-if", wrong, WAITS, WAITS).status == 2, wrong


MODES = "[...document.querySelectorAll('#choose-mode option')].map((o) => o.textContent)"


def tip_of(page, name):
    """What the page shows of the first box of a function in the flame graph."""
    at = page.evaluate(f"""(() => {{ const p = page.pictures().flame, at = p.surface.canvas.getBoundingClientRect();
      for (let i = 1; i < p.tree.count; i++) {{ const box = page.profile.nameOf(p.tree.fn[i]) === '{name}' && p.boxOf(i);
        if (box) return [at.left + box.x + box.w / 2, at.top + box.y + 9]; }} }})()""")
    page.mouse("mouseMoved", *at)
    return page.evaluate("document.getElementById('tip').textContent")


def test_page_of_the_same_waits():
    """Grey, with exact sums and the states as functions; without waits on both sides there is no switch."""
    path = scratch("same.html")
    found = compared(path, WAITS, WAITS)
    page = open_page(path)
    assert page.evaluate(MODES) == ["CPU", "Waiting"], page.evaluate(MODES)
    assert not page.evaluate("page.profile.threads.some((t) => t.parked) || !document.getElementById('toggle-parked').hidden")
    page.evaluate("page.change({mode: 'waiting', measure: 'old'})")
    shown, whole = figures(page), found["waiting"]["total"]["old"]["value"]
    assert shown and all(row["grey"] for row in shown.values()), shown
    for test in found["waiting"]["tests"]:
        assert test["own_code"] or abs(shown[test["function"]]["new"] - test["new"]["value"]) < 1e-6 * whole, test
    assert found["waiting"]["old_ns"] == sum(file["waiting_ns"] for file in found["waiting"]["files"] if file["side"] == "old")
    page.evaluate("page.change({mode: 'wall'})")
    assert page.evaluate("[page.state.mode, page.state.measure]") == ["cpu", "old"]
    close(page)
    source, again = os.path.join(GOLDEN, "containers.sysprof"), scratch("without.folded")
    sysprof("convert", source, "-o", again, check=0)
    for words in [source, again], [source, source]:
        assert "waiting" not in compared(path, *words)
        page = open_page(path, "mode=waiting")
        assert page.evaluate("document.getElementById('choose-mode')") is None
        assert page.evaluate("[page.state.mode, page.profile.waits ?? 0]") == ["cpu", 0]
        close(page)


def assert_page_of_waits(found, path):
    """The colours are those of the tests of waits; the text of a box has the interval and q of its function."""
    waiting = {**found, **found["waiting"]}
    page = assert_page(waiting, path, 6, "mode=waiting")
    test = next(t for t in waiting["tests"] if t["function"] == "write_log" and not t["own_code"])
    text = tip_of(page, "write_log")
    q = "q < 0.001" if test["q"] < 0.001 else f"q {test['q']:.3f}"
    for part in "slower", q, f"(+{100 * test['relative_low']:.0f} to +{100 * test['relative_high']:.0f}, 95 % interval)":
        assert part in text, (part, text, test)
    assert page.evaluate("document.getElementById('strip').textContent").startswith(waiting["sentence"])
    assert "no difference proved" in page.evaluate("document.getElementById('legend').textContent")
    page.evaluate("page.change({view: 'table'})")
    rows = page.evaluate("[...document.querySelectorAll('table.functions tbody tr')].map((r) => r.textContent)")
    assert any("[waiting: sleep]" in row and "slower" in row for row in rows), rows
    page.evaluate("page.change({view: 'flame', mode: 'cpu'})")
    assert page.evaluate("document.getElementById('strip').textContent").startswith(found["sentence"])
    assert not any(row["mean"] for name, row in figures(page).items() if name.startswith("[waiting: "))
    close(page)


def test_a_lock_that_is_held_longer():
    """Four runs a side, four at a time: the sleep with the mutex, and the lock, take more; nothing else does."""
    need_root()
    write(scratch("program.c"), PROGRAM)
    programs = []
    for side, hold in ("old", 300), ("new", 9000):
        programs.append(scratch(side))
        run("gcc", "-O1", "-g", "-pthread", "-fno-omit-frame-pointer", f"-DHOLD={hold}", "-o", programs[-1], scratch("program.c"), check=0)
    paths = [[scratch(f"{side}-{i}.sysprof") for i in range(4)] for side in (0, 1)]
    with concurrent.futures.ThreadPoolExecutor() as pool:  # what drifts hits both; they mostly wait
        for half in slice(2), slice(2, 4):
            runs = [(path, program) for side, program in zip(paths, programs) for path in side[half]]
            list(pool.map(lambda run: record("--wall", "-o", run[0], "--", run[1]), runs))
    files = [*paths[0], "--", *paths[1]]
    found = compared(scratch("page.html"), *files)
    assert_page_of_waits(found, scratch("page.html"))
    waiting = found["waiting"]
    assert found["runs_measured"] and waiting["total"]["relative_low"] > 0.3, waiting["total"]
    assert waiting["sentence"].startswith("Waiting: NEW waits ") and "more per run" in waiting["sentence"], waiting["sentence"]
    total = {t["function"]: t for t in waiting["tests"] if not t["own_code"]}
    for name in "write_log", "[waiting: lock]", "[waiting: sleep]":
        assert total[name]["q"] <= 0.05 and total[name]["relative_low"] > 0.2, (name, total[name])
    assert total["read_input"]["relative"] < 0.5 * total["write_log"]["relative"], total["read_input"]
    rows = {row["function"]: row for row in waiting["rows"]}
    assert any("write_log" in row["path"] and row["verdict"] == "slower" for row in rows.values()), waiting["rows"]
    assert abs(waiting["old_ns"] - sum(sum(waiting_of(path).values()) for path in paths[0])) <= 4, waiting["old_ns"]
    assert not invalid(found, schema="diff")
    text = sysprof("diff", *files, check=0).out
    assert waiting["sentence"] in text and "OLD and NEW are waiting time per run" in text, text
    status = sysprof("diff", "--fail-if", "waiting > 10%", "--fail-if", "state sleep > 10%", *files).status
    assert status == 3, status
    assert sysprof("diff", "--fail-if", "waiting > 10%", *paths[1], "--", *paths[0]).status == 0
    markdown = sysprof("diff", "--markdown", "--fail-if", "waiting > 10%", *files).out.splitlines()
    assert len(markdown) <= 20 and f"- {waiting['sentence']}" in markdown, markdown
    assert any("[waiting: " in line for line in markdown if line.startswith("| ")), markdown


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        libbrowser.close_shared()
