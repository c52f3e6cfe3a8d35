#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 900
# runs: beside long
"""Filters in the page are those of the command line: the same texts, expressions, stacks and books, of random profiles and
clauses (tests/models/filter_model.py) and of the cases of tests/unit/testdata/filter.txt."""
import json
import os
import random
import re
import sys

import libbrowser
from libe2e import TOP, long, main, quick, scratch, sysprof, write

from filters import convert, options, read_totals

sys.path.append(os.path.join(TOP, "tests/models"))
import filter_model  # noqa: E402

SHOWN = 3  # cases that differ

# Of a page's data and the text of a filter: rows of each thread's call paths, what was dropped, folded stacks.
FILTERED = """(async (data, text) => {
  const profile = await readProfile(data), clauses = parseClauses(text), part = applyFilter(profile, clauses), rows = [];
  for (const t of part.threads) {
    for (let i = t.first; i < t.end; i++) {
      const path = [];
      for (let at = part.node[i]; at; at = part.nodeParent[at]) path.unshift(part.nameOf(part.frameFunction[part.nodeFrame[at]]));
      rows.push([part.processes[t.process]?.pid ?? 0, t.tid, path, part.ticks ? part.ticks[i] : 1, part.weight[i]]);
    }
  }
  const { kept, dropped } = part.filter ?? { kept: null, dropped: [] };
  return { rows, kept, dropped, text: printClauses(clauses), event: profile.event, folded: folded(part, (t) => [t.first, t.end]) };
})"""

TRIED = """((run) => { try { return run(); } catch (error) { return error.message; } })"""


def page_of():
    """A tab with the functions of the page; its own profile does not matter."""
    path = write(scratch("any.folded"), b"main;a 1\n")
    sysprof("convert", path, "-o", scratch("any.html"), check=0)
    page = libbrowser.shared().page("file://" + scratch("any.html"))
    page.wait("document.documentElement.dataset.ready === 'yes'")
    return page


def data_of(source, *given):
    out = scratch(os.path.basename(source) + ".html")
    sysprof("convert", source, *given, "-o", out, check=0)
    with open(out, encoding="utf-8") as file:
        data = re.search(r'id="profile">([^<]*)<', file.read())[1]
    os.unlink(out)
    return data


def filtered(page, data, text):
    return page.evaluate(f"{FILTERED}({json.dumps(data)}, {json.dumps(text)})")


def totals_of(rows):
    sums = {}
    for pid, tid, path, ticks, weight in rows:
        total = sums.setdefault((pid, tid, tuple(path)), [0, 0])
        total[0] += ticks
        total[1] += weight
    return sums


def quoted(given):
    return " ".join("'" + f"--{kind}={value}".replace("'", "'\\''") + "'" for kind, value in given)


def check_case(page, seed):
    rng = random.Random(seed)
    samples, given = filter_model.profile(rng), filter_model.clauses(rng)
    source, out = write(scratch(f"page-{seed}.pb.gz"), filter_model.pprof(samples)), scratch(f"left-{seed}.pb.gz")
    convert(source, given, out)
    expected = read_totals(out)
    summary = json.loads(sysprof("report", "--json", source, *options(given), check=0).out)["summary"]
    books = [[row["samples"], row["cpu_ns"]] for row in summary["filter"]["dropped"]]
    got = filtered(page, data_of(source), quoted(given))
    shown = filtered(page, data_of(source, *options(given)), "") if expected else None  # what the command line makes of it
    os.unlink(source), os.unlink(out)
    dropped = [[line["ticks"], line["cpu"]] for line in got["dropped"]]
    found = totals_of(got["rows"])
    if got["event"]:  # the page counts it, instead of samples
        expected, books = {key: [cpu, cpu] for key, (_, cpu) in expected.items()}, [[cpu, cpu] for _, cpu in books]
    if found != expected or dropped != books or got["text"] != summary["filter"]["text"]:
        return f"seed {seed}: {options(given)}: expected {expected} {books} {summary['filter']['text']}, found {found} {dropped} {got['text']}"
    if shown and shown["folded"].splitlines() != got["folded"].splitlines():
        return f"seed {seed}: {options(given)}: folded stacks: expected {shown['folded']}, found {got['folded']}"
    return None


def check_cases(seeds):
    page = page_of()
    wrong = [text for text in (check_case(page, seed) for seed in seeds) if text]
    page.close()
    assert not wrong, f"{len(wrong)} of {len(seeds)} differ:\n" + "\n".join(wrong[:SHOWN])


@quick
def test_random_clauses_keep_in_the_page_what_they_keep_on_the_command_line():
    check_cases(range(30))


@long
def test_a_thousand_random_clauses_keep_in_the_page_what_they_keep_on_the_command_line():
    check_cases(range(3000, 4000))


def check_cpus(page, seed):
    rng = random.Random(seed)
    samples = filter_model.profile(rng)
    given = [(kind, value) for kind, value in filter_model.timed_clauses(rng, samples) if kind not in ("@", "state")]
    given += [] if any(kind == "cpu" for kind, _ in given) else [("cpu", [0, 1, 2])]
    source = write(scratch(f"cpus-{seed}.txt"), filter_model.perf_script(samples))
    summary = json.loads(sysprof("report", "--json", source, *options(given), check=0).out)["summary"]["filter"]
    got, text = filtered(page, data_of(source), summary["text"]), str(options(given))
    shown = filtered(page, data_of(source, *options(given)), "")["folded"] if got["kept"]["ticks"] else got["folded"]
    os.unlink(source)
    # samples that weigh their CPU time are that many events
    books = [[row.get("events", row["samples"]), row["cpu_ns"]] for row in summary["dropped"]]
    assert [[line["ticks"], line["cpu"]] for line in got["dropped"]] == books and got["text"] == summary["text"], (text, got, summary)
    assert got["folded"].splitlines() == shown.splitlines(), (text, got["folded"], shown)
    return 0 < summary["kept"]["samples"] < len(samples)


@quick
def test_cpus_keep_in_the_page_what_they_keep_on_the_command_line():
    page = page_of()
    assert sum(check_cpus(page, seed) for seed in range(30)) > 5
    folded_data = data_of(write(scratch("none.folded"), b"main;a 1\n"))
    assert page.evaluate(f"{FILTERED}({json.dumps(folded_data)}, '--cpu=0').catch((error) => error.message)") == "--cpu 0: the samples have no CPU"
    page.close()


# ---- the text cases of the program ------------------------------------------------------------------------------------

def section(name):
    with open(os.path.join(TOP, "tests/unit/testdata/filter.txt"), encoding="utf-8") as file:
        return re.split(r"^@\w+\n", re.split(rf"^@{name}\n", file.read(), maxsplit=1, flags=re.M)[1], maxsplit=1, flags=re.M)[0]


def bytes_of(text):
    """As text_unescape() of tests/models/text_cases.c."""
    def byte(match):
        code = match[1]
        return bytes([int(code[1:], 16)]) if code.startswith(b"x") else {b"n": b"\n", b"t": b"\t"}.get(code, code)
    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", byte, text.encode(), flags=re.S)


def cases_of(name):
    return [tuple(line.split(" => ")) for line in section(name).splitlines() if " => " in line]


@quick
def test_expressions_match_in_the_page_what_they_match_in_the_program():
    page, cases = page_of(), cases_of("match")
    assert len(cases) > 60, cases
    for given, wanted in cases:
        expression, text = bytes_of(given).split(b" ~ ", 1)
        call = f"new Pattern({json.dumps(expression.decode())}).matches(Uint8Array.from({list(text)})) ? 'yes' : 'no'"
        got = page.evaluate(f"{TRIED}(() => {call})")
        assert got == bytes_of(wanted).decode(), (given, wanted, got)
    page.close()


def without_times(text):
    """The words that are clauses in the page, too."""
    return " ".join(word for word in re.findall(r"(?:'[^']*'|[^ '])+", text) if not re.match("'?(@|--state=)", word))


@quick
def test_clauses_are_printed_by_the_page_as_by_the_program():
    page, cases = page_of(), cases_of("filter")
    assert len(cases) > 15, cases
    for given, wanted in cases:
        text = bytes_of(given).decode()
        got = page.evaluate(f"{TRIED}(() => printClauses(parseClauses({json.dumps(text)})))")
        if re.search(r"(^| )(@[^ ]|--state=)", text):
            assert re.search("selected in the timeline|has no markers|choose Waiting", got), (given, got)
            text = without_times(text)
            wanted = without_times(wanted) if text else ""
            got = page.evaluate(f"{TRIED}(() => printClauses(parseClauses({json.dumps(text)})))")
        if text:
            assert got == bytes_of(wanted).decode(), (given, wanted, got)
    spaced = "--service shop --focus 'a b' --hide=c"
    assert page.evaluate(f"printClauses(parseClauses({json.dumps(spaced)}))") == "--service=shop '--focus=a b' --hide=c"
    page.close()


def plural(n):
    return f"{n} sample" if n == 1 else f"{n} samples"


@quick
def test_stacks_in_the_page_are_those_of_the_program():
    page, blocks = page_of(), re.findall(r"^(-.*)\n((?:[^#\t\n].*\n)+)((?:\t.*\n?)+)", section("stacks"), re.M)
    assert len(blocks) >= 12, blocks
    for text, stacks, wanted in blocks:
        source = write(scratch("case.folded"), stacks.encode())
        got = filtered(page, data_of(source, "--root", "thread"), text)
        lines = [line.removeprefix("\t") for line in wanted.splitlines()]
        kept = [line for line in got["folded"].splitlines() if not line.startswith("#")]
        assert kept == [line for line in lines if not line.startswith("#")], (text, got, lines)
        whole = got["kept"]["ticks"] + sum(line["ticks"] for line in got["dropped"])
        books = [f"# filter: {got['text']}: kept {got['kept']['ticks']} of {plural(whole)}"]
        books += [f"# filter: {line['text']}: dropped {plural(line['ticks'])}" for line in got["dropped"]]
        assert books == [line for line in lines if line.startswith("#")], (text, books, lines)
    page.close()


@quick
def test_a_slice_by_markers_is_named_in_the_page():
    place = filter_model.Location("", (filter_model.Line("work", ""),))
    samples = [filter_model.Sample(10, "app", tid, f"t{tid}", "", 10**12 + i * 10**6, 0, (place,), 1, 10**6) for i in range(100) for tid in (1, 2)]
    markers = [filter_model.Marker("load page", 1, samples[0].time + begin * 10**6, samples[0].time + end * 10**6) for begin, end in ((10, 30), (50, 60))]
    source = write(scratch("markers.json"), filter_model.firefox(random.Random(1), samples, markers))
    sysprof("convert", source + "@load page", "-o", scratch("markers.html"), check=0)
    page = libbrowser.shared().page("file://" + scratch("markers.html"))
    page.wait("document.documentElement.dataset.ready === 'yes'")
    badge = page.evaluate("[...document.querySelectorAll('.badge')].map((badge) => badge.innerText).find((text) => text.startsWith('a part'))")
    assert badge == "a part: 30.0 % of samples: '@load page'", badge
    # no thread uses more than a CPU, where the file has no number of CPUs
    use = page.evaluate("page.pictures().timeline.useAt(0, null, 600)")
    assert 1.9 < use < 2.01, use
    page.close()


@quick
def test_patterns_of_names_are_those_of_the_c_library():
    page = page_of()
    cases = [("a*", "abc", True), ("*b*", "abc", True), ("?", "é", False), ("??", "é", True), ("[a-c]x", "bx", True), ("[!a]", "b", True), ("[!a]", "a", False),
             ("[]a]", "]", True), ("[[:digit:]]*", "1a", True), ("[[:foo:]]", "f", False), ("\\*", "*", True), ("\\*", "a", False), ("[a", "[a", True), ("a**b", "ab", True),
             ("*a*b*c", "xaybzc", True), ("*a*b*c", "xaybz", False), ("", "", True), ("[a\\]]", "]", True), ("[--0]", ".", True)]
    for pattern, text, wanted in cases:
        got = page.evaluate(f"globMatches(binaryOf(encoder.encode({json.dumps(pattern)})), binaryOf(encoder.encode({json.dumps(text)})))")
        assert got == wanted, (pattern, text, got)
    page.close()


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        libbrowser.close_shared()
