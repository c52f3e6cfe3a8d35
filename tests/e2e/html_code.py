#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""The page's tab Code, in a browser: its figures are those of `report --annotate` with the same filters, for functions that
are inlined, recursive, or have jumps; sources are text; what is not seen is not in the document."""
import glob
import json
import os
import re

import libbrowser
from libe2e import SYSPROF, main, need_root, record, run, scratch, sysprof, write

READY = "document.documentElement.dataset.ready === 'yes'"
NAME = "a<b>&\"'.c"
ATTACKS = b"// </script><script>globalThis.hacked = 1</script>\t<img src=x onerror='globalThis.hacked = 2'> \xff\xfe \xe2\x80\xae.\n"
PROGRAM = ATTACKS + b"""
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	for (int i = 0; i < 8; i++)
		x = (x ^ (x >> 7)) * 2654435761u;
	return x;
}

static volatile unsigned sink;

__attribute__((noinline)) static unsigned fib(unsigned n)
{
	if (n < 2)
		return mix(n);
	return fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) static void work(void)
{
	for (unsigned i = 0; i < 3000000; i++)
		sink += mix(i) % 7;
}

int main(void)
{
	for (int i = 0; i < 4; i++) {
		work();
		sink += fib(24);
	}
	return 0;
}
"""
FILTERS = "", "--hide=mix", "--hide=work", "--focus=fib", "--ignore=fib", "--collapse=fib", "--show-from=work", "--hide=^main$"
FUNCTIONS = "mix", "fib", "work", "main"
STATEMENTS = "\n".join(f"\ta = a * {3 + i % 5} + (b ^ {i}); if (a & {1 << i % 9}) b += a;" for i in range(900))
LARGE = f"""volatile unsigned sink;
__attribute__((noinline)) static unsigned large(unsigned a, unsigned b)
{{
{STATEMENTS}
	return a + b;
}}

int main(void)
{{
	for (unsigned i = 0; i < 30000; i++)
		sink += large(i, sink);
	return 0;
}}
""".encode()  # with -O0 a function of more than 10,000 instructions


def make(name, source, *options):
    """The recording of a program and its page."""
    need_root()
    path, program, text = scratch(name + ".sysprof"), scratch(name), scratch(NAME if name == "small" else name + ".c")
    if not os.path.exists(path):
        write(text, source)
        run("cc", "-O2", "-g", "-fno-unroll-loops", "-fno-tree-vectorize", *options, "-o", program, text, check=0)
        record("-o", path, "-F", "997", "--", program)
        sysprof("convert", path, "-o", scratch(name + ".html"), check=0)
    return path


def small():
    return make("small", PROGRAM)


def open_page(name, fragment=""):
    page = libbrowser.shared().page("file://" + scratch(name + ".html") + (f"#{fragment}" if fragment else ""))
    page.wait(READY)
    return page


def close(page):
    assert page.messages() == [], page.messages()
    assert all(url.startswith(("file:", "data:", "about:")) for url in page.requests()), page.requests()
    page.close()


def function(page, name):
    return page.evaluate(f"page.profile.functionName.findIndex((_, f) => page.profile.nameOf(f) === {json.dumps(name)})")


def open_code(page, name, **news):
    page.evaluate(f"page.change({json.dumps({'view': 'code', 'fn': function(page, name), 'copy': 'all', **news})}); page.code().load().then(() => null)")
    return page.evaluate("page.code().figuresOfAll()")


def annotation(path, name, clause):
    return json.loads(sysprof("report", path, "--annotate", name, "--asm", "--json", *[clause] * bool(clause), check=0).out)


def instructions_of(copies):
    return sorted((i["address"], i["self"], i["total"]) for copy in copies for i in copy.get("instructions", []) if i["total"])


def assert_same(page, path, name, clause):
    got, want = open_code(page, name), annotation(path, name, clause)
    whole = want["annotation"]
    assert (got["self"], got["total"]) == (whole["self"], whole["total"]), (name, clause, got, whole)
    lines = [sorted((line.get("file", ""), line.get("line", 0), line["self"], line["total"]) for line in rows) for rows in (got["lines"], want["rows"])]
    assert lines[0] == lines[1], (name, clause, lines)
    assert instructions_of(got["copies"]) == instructions_of(whole["copies"]), (name, clause)
    assert sum(line["self"] for line in got["lines"]) == sum(i["self"] for copy in got["copies"] for i in copy["instructions"]) == got["self"], (name, clause)
    copies = [sorted((copy["self"], copy["total"], copy["inlined"]) for copy in side) for side in (got["copies"], whole["copies"])]
    assert copies[0] == copies[1], (name, clause, copies)
    texts = {i["address"]: i["text"] for copy in whole["copies"] for i in copy["instructions"]}
    assert got["texts"] and all(texts[i["address"]] == i["text"] for i in got["texts"]), (name, clause)
    return got


def test_figures_are_those_of_annotate():
    path, compared = small(), 0
    page = open_page("small")
    for clause in FILTERS:
        page.evaluate(f"page.change({{filter: {json.dumps(clause)}}})")
        kept = {row["function"] for row in json.loads(sysprof("report", path, "--json", *[clause] * bool(clause), check=0).out)["rows"]}
        for name in FUNCTIONS:
            if name in kept:
                compared += 1
                assert_same(page, path, name, clause)
    assert compared > 2 * len(FILTERS), compared
    close(page)


def test_lines_are_those_of_the_report():
    path = small()
    page = open_page("small")
    rows = json.loads(sysprof("report", path, "--json", "--by", "line", "--top", "100000", check=0).out)["rows"]
    for name in FUNCTIONS:
        got = {line["line"]: (line["self"], line["total"]) for line in open_code(page, name)["lines"] if line["total"]}
        assert got == {row["line"]: (row["self"], row["total"]) for row in rows if row["function"] == name}, (name, got)
    close(page)


def test_copies_one_by_one():
    """mix is inlined into two functions: each alone, and their sum."""
    small()
    page = open_page("small")
    every = open_code(page, "mix")
    keys = page.evaluate("[...document.querySelectorAll('#choose-copy option')].map((option) => option.value)")
    # fib has a few samples of it, or none
    names = {copy["name"] for copy in every["copies"]}
    assert {"work"} <= names <= {"work", "fib"} and all(copy["inlined"] for copy in every["copies"]), every["copies"]
    alone = [open_code(page, "mix", copy=key) for key in keys if "." in key] or [every]  # one copy needs no choice
    assert len(alone) == len(every["copies"])
    for line in every["lines"]:
        assert line["self"] == sum(other["self"] for one in alone for other in one["lines"] if other["line"] == line["line"]), line
    assert [one["self"] for one in alone] == [copy["self"] for copy in every["copies"]]
    close(page)


def test_a_selected_time():
    """Halves of the time add up, line by line and instruction by instruction."""
    small()
    page = open_page("small")
    whole = open_code(page, "work")
    middle = page.evaluate("Math.round(page.profile.end / 2)")
    halves = [open_code(page, "work", time=time) for time in ([0, middle], [middle, page.evaluate("Math.ceil(page.profile.end)")])]
    assert all(half["self"] for half in halves)
    for line in whole["lines"]:
        assert line["self"] == sum(other["self"] for half in halves for other in half["lines"] if other["line"] == line["line"]), line
    counted = {}
    for address, own, _ in instructions_of([copy for half in halves for copy in half["copies"]]):
        counted[address] = counted.get(address, 0) + own
    assert counted == {address: own for address, own, _ in instructions_of(whole["copies"])}
    close(page)


def test_two_times_are_compared():
    """OLD and NEW beside each other: shares of the CPU time of each."""
    small()
    page = open_page("small")
    middle, end = page.evaluate("[Math.round(page.profile.end / 2), Math.floor(page.profile.end)]")
    open_code(page, "work", base=[0, middle], time=[middle, end])
    titles = page.evaluate("[...document.querySelectorAll('.row-list:nth-child(1) .row.head span')].map((span) => span.textContent)")
    assert titles[1:4] == ["OLD", "NEW", "Total"], titles
    counts = page.evaluate("""(() => { const view = page.code(), { measures, difference } = page.profile, sums = (list, side) => list.reduce((n, { self }) => n + self[measures.indexOf(side)], 0);
      return ['old', 'new'].map((side) => [sums(view.shown.lines, side), view.shown.whole.self[measures.indexOf(side)], difference.text(view.shown.whole.self[measures.indexOf(side)] / difference.unit)]); })()""")
    assert all(lines == whole > 0 for lines, whole, _ in counts), counts
    text = page.evaluate("document.getElementById('code-sums').textContent")
    assert text.startswith(f"{counts[0][2]} → {counts[1][2]} self"), (text, counts)
    close(page)


def test_a_page_that_is_recorded_has_code():
    """Without a recording: record -o x.html; --no-code leaves it out."""
    small()
    for name, options, has in ("direct", [], True), ("none", ["--no-code"], False):
        record("-o", scratch(name + ".html"), *options, "--", scratch("small"))
        page = open_page(name)
        got = open_code(page, "work", copy="")
        assert bool(got["texts"]) == has and got["self"], (name, got)
        assert any(row.get("text") for row in got["source"] if row["kind"] == "line") == has, (name, got["source"])
        close(page)


def test_two_texts_of_one_path():
    """Of two recordings in one page each program has the text of its own; figures are those of the report."""
    need_root()
    paths, source = [], scratch("edited.c")
    for number in range(2):
        write(source, PROGRAM.replace(b"mix(i) % 7", b"mix(i) %% %d" % (11 + number)))
        program = scratch(f"edited-{number}")
        run("cc", "-O2", "-g", "-o", program, source, check=0)
        paths.append(program + ".sysprof")
        record("-o", paths[-1], "--", program)
    sysprof("convert", *paths, "-o", scratch("edited.html"), check=0)
    page = open_page("edited")
    rows = open_code(page, "work", copy="all")["source"]
    texts = {}
    for row in rows:
        if row["kind"] == "file":
            lines = texts.setdefault(row["text"], [])
        elif row["kind"] == "line":
            lines.append(row["text"])
    assert sorted(texts) == [source, source + " (root directory 2)"], texts
    assert {path: [n for n in (11, 12) if any(f"% {n}" in line for line in lines)] for path, lines in texts.items()} == {
        source: [11], source + " (root directory 2)": [12]}, texts
    want = json.loads(sysprof("report", *paths, "--annotate", "work", "--json", check=0).out)
    assert sum(row["self"] for row in want["rows"]) == want["annotation"]["self"] == page.evaluate("page.code().figuresOfAll().self")
    close(page)


def rows_of(page, which, selector=""):
    return page.evaluate(f"[...document.querySelectorAll('.row-list:nth-child({which}) .row-window .row{selector}')].map((row) => row.textContent)")


def test_opened_by_key_and_menu():
    small()
    page = open_page("small", "view=table")
    page.evaluate("[...document.querySelectorAll('table.functions button.name')].find((button) => button.textContent === 'work').focus()")
    page.key("c")
    page.wait("document.querySelector('.code-name')?.textContent === 'work'")
    assert page.evaluate("page.state.view") == "code"
    page.evaluate("page.change({view: 'flame', query: 'mix'})")  # the hottest match of the search
    page.key("c")
    page.wait("document.querySelector('.code-name').textContent === 'mix'")
    page.evaluate("page.change({view: 'table', query: ''})")
    page.evaluate("""[...document.querySelectorAll('table.functions tr')].find((row) => row.querySelector('button.name')?.textContent === 'fib')
      .dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, clientX: 200, clientY: 300 }))""")
    page.evaluate("[...document.querySelectorAll('#menu button')].find((button) => button.textContent === 'Code').click()")
    page.wait("document.querySelector('.code-name').textContent === 'fib'")
    fragment = page.evaluate("new Promise((r) => setTimeout(() => r(location.hash.slice(1)), 300))")
    close(page)
    page = open_page("small", fragment)  # the link leads back
    page.wait("document.querySelector('.code-name')?.textContent === 'fib'")
    close(page)


def test_steps_hover_folds_and_jumps():
    small()
    page = open_page("small")
    got = open_code(page, "work", copy="")
    by_heat = [line["line"] for line in sorted(got["lines"], key=lambda line: (-line["self"], -line["total"])) if line["total"] and line["line"]]
    chosen = "Number(document.querySelector('.row-list .row.chosen .place').textContent)"
    assert page.evaluate(chosen) == by_heat[0]
    for key, at in ((".", 1 % len(by_heat)), (",", 0), (",", len(by_heat) - 1)):
        page.key(key)
        assert page.evaluate(chosen) == by_heat[at], (key, by_heat)
    folds = [text for text in rows_of(page, 2, ".fold") if "mix, inlined: " in text]
    assert folds and "▸" in folds[0], rows_of(page, 2)
    before = len(open_code(page, "work", copy="")["texts"])
    page.evaluate("document.querySelector('.row-list:nth-child(2) .row.fold button').click()")
    assert len(page.evaluate("page.code().figuresOfAll()")["texts"]) > before
    page.evaluate("[...document.querySelectorAll('.code-head button')].find((button) => button.textContent === 'Inlined').click()")
    unfolded = page.evaluate("page.code().figuresOfAll()")
    assert unfolded["jumps"] and not rows_of(page, 2, ".fold")
    assert page.evaluate("document.querySelectorAll('svg.jumps path').length") > 0
    page.evaluate("""document.querySelector('.row-list .row.chosen').dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))""")
    tied = page.evaluate("[1, 2].map((n) => document.querySelectorAll(`.row-list:nth-child(${n}) .row.tied`).length)")
    assert tied[0] == 1 and tied[1] >= 1, tied
    certainty = page.evaluate("document.querySelector('.code-note').textContent")
    assert "a timer's sample names the instruction that was about to run" in certainty, certainty
    close(page)


def test_sources_are_text():
    small()
    page = open_page("small")
    source = open_code(page, "mix", copy="")["source"]
    lines = {row["line"]: row["text"] for row in source if row["kind"] == "line"}
    assert lines[3] == "static inline __attribute__((always_inline)) unsigned mix(unsigned x)", lines
    assert lines[5] == "        for (int i = 0; i < 8; i++)"
    head = ATTACKS.split(b"\t")[0].decode()
    assert lines[1].startswith(head + " " * (8 - len(head) % 8) + "<img src=x onerror='globalThis.hacked = 2'> \\xff\\xfe \\u202e."), lines[1]
    assert any(head in text for text in rows_of(page, 1)), "the line is on the screen"
    title = [row for row in source if row["kind"] == "file"]
    assert [os.path.basename(row["text"]) for row in title] == [NAME] and title[0]["state"] == "older than the program", title
    assert page.evaluate("typeof globalThis.hacked") == "undefined"
    assert page.evaluate("document.querySelectorAll('#view-code img, #view-code script').length") == 0
    close(page)


HOSTILE = "<img src=x onerror='globalThis.hacked = 3'></script><script>globalThis.hacked = 4</script>"
SCRIPT = f"""# {ATTACKS.decode("latin1").strip()}
import time
def hot(n):
    total = 0
    for i in range(n):
        total += i * i % 7  # <b onclick=1>&amp;
    return total
hot.__code__ = hot.__code__.replace(co_name={HOSTILE!r}, co_qualname={HOSTILE!r})
end = time.monotonic() + 1
while time.monotonic() < end:
    hot(20000)
"""


def test_a_hostile_script():
    """Markup in the name of a function, of its file and in its text: all of it is text, wherever the page shows it."""
    need_root()
    text, path = scratch("<img src=x onerror=hacked=5>.py"), scratch("hostile.sysprof")
    write(text, SCRIPT)
    os.chmod(text, 0o644)
    record("-o", path, "--", "/usr/bin/python3", text)
    sysprof("convert", path, "-o", scratch("hostile.html"), check=0)
    page = open_page("hostile")
    got = open_code(page, HOSTILE, copy="")
    lines = {row["line"]: row["text"] for row in got["source"] if row["kind"] == "line"}
    assert lines[6].endswith("total += i * i % 7  # <b onclick=1>&amp;") and "</script><script>" in lines[1], lines
    assert [line["line"] for line in got["lines"] if line["self"]] and got["self"] == sum(line["self"] for line in got["lines"]), got
    assert page.evaluate("document.querySelector('.code-name').textContent") == HOSTILE
    for view in "code", "table", "flame", "tree":
        page.evaluate(f"page.change({{view: {json.dumps(view)}, query: 'img'}})")
        assert page.evaluate("typeof globalThis.hacked") == "undefined", view
        assert page.evaluate("document.querySelectorAll('img, b[onclick], body script + script[src]').length") == 0, view
    close(page)


def test_a_large_function_is_not_in_the_document():
    """Of 10,000 instructions only those that can be seen are elements."""
    make("large", LARGE, "-O0")
    page = open_page("large")
    open_code(page, "main", copy="")
    took = page.evaluate(f"""(() => {{ const begin = performance.now(); page.change({{view: 'code', fn: {function(page, 'large')}, copy: ''}});
      document.getElementById('view-code').getBoundingClientRect(); return performance.now() - begin; }})()""")
    got = page.evaluate("page.code().figuresOfAll()")
    print(f"  {len(got['texts'])} instructions, {got['jumps']} jumps: {took:.0f} ms")
    assert len(got["texts"]) >= 10000, len(got["texts"])
    assert page.evaluate("document.querySelectorAll('#view-code .row').length") < 300
    page.evaluate("document.querySelector('.row-list:nth-child(2)').scrollTop = 1e9; new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
    assert rows_of(page, 2)[-1].endswith("ret"), rows_of(page, 2)[-1]
    close(page)


def test_without_the_disassembler():
    """Bytes instead of texts, with the reason, and the same figures: where instructions begin is known all the same."""
    path, libraries = small(), sorted({os.path.realpath(found) for found in glob.glob("/usr/lib/*/libcapstone.so.[45]")})
    assert libraries, "libcapstone is not installed"
    hide = "".join(f"mount --bind /dev/null {library} && " for library in libraries)
    run("unshare", "-m", "sh", "-c", hide + 'exec "$@"', "sh", SYSPROF, "convert", path, "-o", scratch("bytes.html"), check=0)
    with_texts, with_bytes = open_page("small"), open_page("bytes")
    want, got = open_code(with_texts, "work"), open_code(with_bytes, "work")
    assert (got["lines"], instructions_of(got["copies"])) == (want["lines"], instructions_of(want["copies"]))
    assert [i["address"] for i in got["texts"]] == [i["address"] for i in want["texts"]]
    assert all(re.fullmatch("[0-9a-f]{2}( [0-9a-f]{2})*", i["text"]) for i in got["texts"]), got["texts"]
    assert any("no texts of instructions: " in text for text in rows_of(with_bytes, 2)) or with_bytes.evaluate(
        "page.code().instructions.some(({ kind, text }) => kind === 'note' && text.includes('capstone'))"), rows_of(with_bytes, 2)
    for page in with_texts, with_bytes:
        close(page)


def test_without_code():
    """Of a recording without it: lines with figures, and the reason; of a profile without lines there is no tab."""
    path = small()
    sysprof("convert", path, "-o", scratch("anonymous.html"), "--anonymize", check=0)
    page = open_page("anonymous")
    assert page.evaluate("document.getElementById('tab-code')?.hidden ?? true") or page.evaluate("page.profile.words.code === undefined")
    close(page)
    record("-o", scratch("bare.sysprof"), "--no-code", "--", scratch("small"))
    sysprof("convert", scratch("bare.sysprof"), "-o", scratch("bare.html"), check=0)
    page = open_page("bare")
    got = open_code(page, "work", copy="")
    assert sum(line["self"] for line in got["lines"]) == got["self"] > 0, got
    assert any("no instructions: the recording has no machine code" in text for text in rows_of(page, 2)), rows_of(page, 2)
    assert any("the page does not have its text" in text for text in rows_of(page, 1)), rows_of(page, 1)
    close(page)


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        libbrowser.close_shared()
