#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 900
# runs: beside long sanitized
"""
Filters: random profiles and clauses are what a model says (tests/models/filter_model.py), and what `go tool pprof` makes of focus,
ignore, hide and show_from; the books add up in every format; bad input.
"""
import base64
import collections
import dataclasses
import gzip
import itertools
import json
import os
import random
import re
import sys

from libe2e import GOLDEN, SYSPROF, TOP, long, main, natively, quick, read, run, scratch, sysprof, write
from libgo import pprof

import read_pprof

sys.path.append(os.path.join(TOP, "tests/models"))
import filter_model  # noqa: E402

SHOWN = 3  # cases that differ


def read_totals(path):
    """As filter_model.totals(), of a pprof file."""
    with gzip.open(path) as file:
        p = read_pprof.read_pprof(file.read())
    strings = p["string_table"]
    types = [strings[t["type"]] for t in p["sample_type"]]
    count, cpu = types.index("samples"), types.index("cpu")
    functions = {f["id"]: strings[f["name"]] for f in p["function"]}
    names = {place["id"]: [functions[line["function_id"]] for line in reversed(place["line"])] for place in p["location"]}
    sums = collections.defaultdict(lambda: [0, 0])
    for sample in p["sample"]:
        labels = {strings[label["key"]]: label["num"] for label in sample["label"] if not label["str"]}
        path = tuple(name for i in reversed(sample["location_id"]) for name in names[i])
        sums[labels["pid"], labels["tid"], path][0] += sample["value"][count]
        sums[labels["pid"], labels["tid"], path][1] += sample["value"][cpu]
    return dict(sums)


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}s"


def sliced(path, given):
    """The file with the slice of the clauses."""
    slices = [f"@{seconds(begin)}-{'' if end is None else seconds(end)}" for kind, (begin, end) in (c for c in given if c[0] == "@")]
    return path + "".join(slices)


def options(given):
    return [f"--{kind}={','.join(map(str, value)) if kind == 'cpu' else value}" for kind, value in given if kind != "@"]


def convert(source, given, out):
    return sysprof("convert", sliced(source, given), *options(given), "-o", out, check=0)


def made(seed):
    """A file, what is in it, and clauses: of every second one slices of time and CPUs."""
    rng = random.Random(seed)
    if seed % 2:
        samples = filter_model.profile(rng)
        return write(scratch(f"model-{seed}.pb.gz"), filter_model.pprof(samples)), samples, filter_model.clauses(rng)
    samples = filter_model.as_printed(filter_model.profile(rng))
    return write(scratch(f"model-{seed}.txt"), filter_model.perf_script(samples)), samples, filter_model.timed_clauses(rng, samples)


def check_case(seed):
    source, samples, given = made(seed)
    out = scratch(f"left-{seed}.pb.gz")
    convert(source, given, out)
    left, books = filter_model.apply(given, samples)
    expected, found = filter_model.totals(left), read_totals(out)
    summary = json.loads(sysprof("report", "--json", sliced(source, given), *options(given), check=0).out)["summary"]
    dropped = [[row["samples"], row["cpu_ns"]] for row in summary["filter"]["dropped"]]
    os.unlink(source), os.unlink(out)
    if expected == found and dropped == books:
        return None
    return f"seed {seed}: {given}: expected {expected} {books}, found {found} {dropped}"


def check_cases(seeds):
    wrong = [text for text in map(check_case, seeds) if text]
    assert not wrong, f"{len(wrong)} of {len(seeds)} differ:\n" + "\n".join(wrong[:SHOWN])


@quick
def test_random_clauses_keep_what_the_model_says():
    check_cases(range(50))


@natively
@long
def test_a_thousand_random_clauses_keep_what_the_model_says():
    check_cases(range(1000, 2000))


# ---- go tool pprof ---------------------------------------------------------------------------------------------------

def check_with_pprof(seed):
    rng = random.Random(seed)
    samples, given = filter_model.profile(rng), filter_model.frame_clauses(rng)
    source, out, theirs = write(scratch(f"go-{seed}.pb.gz"), filter_model.pprof(samples)), scratch(f"ours-{seed}.pb.gz"), scratch(f"theirs-{seed}.pb.gz")
    convert(source, given, out)
    pprof("-proto", "-symbolize=none", f"-output={theirs}", *[f"-{kind.replace('-', '_')}={value}" for kind, value in given], source)
    ours, judged = read_totals(out), read_totals(theirs)
    for path in (source, out, theirs):
        os.unlink(path)
    return None if ours == judged else f"seed {seed}: {options(given)}: pprof has {judged}, sysprof {ours}"


def compare_with_pprof(seeds):
    wrong = [text for text in map(check_with_pprof, seeds) if text]
    assert not wrong, f"{len(wrong)} of {len(seeds)} differ:\n" + "\n".join(wrong[:SHOWN])


def test_frame_clauses_are_those_of_go_tool_pprof():
    compare_with_pprof(range(20))


@natively
@long
def test_a_thousand_frame_clauses_are_those_of_go_tool_pprof():
    compare_with_pprof(range(5000, 6000))


# ---- books in every format ------------------------------------------------------------------------------------------

AMOUNTS = re.compile(r"(\d+)(?: of (\d+))? (?:sample|weight)s?(?:, (\d+)(?: of (\d+))? events?)?(?:, (\d+\.\d{9}) s(?: of (\d+\.\d{9}) s)? of CPU time)?"
                     r"(?:, (\d+\.\d{9}) s(?: of (\d+\.\d{9}) s)? of the threads' time)?")
KEYS = "samples", "events", "cpu_ns", "wall_ns"


def amounts(text):
    """{what: so many} of "12 of 34 samples, …"; of the whole behind it."""
    found = AMOUNTS.search(text)
    numbers = [int(number.replace(".", "")) if number else 0 for number in found.groups()]
    return dict(zip(KEYS, numbers[::2])), dict(zip(KEYS, numbers[1::2]))


def of_lines(kept, dropped):
    part, whole = amounts(kept)
    return [part, *(amounts(text)[0] for text in dropped)], whole


def of_json(summary):
    rows = [summary["kept"], *summary["dropped"]]
    parts = [{key: row.get(key, row.get(key.replace("_ns", "Ns"), 0)) for key in KEYS} for row in rows]
    return parts, {key: sum(part[key] for part in parts) for key in KEYS}


def lines_with(text, *words):
    return [line for line in text.splitlines() if line.startswith("#") and any(word in line for word in words)]


def page_data(text):
    data = gzip.decompress(base64.b64decode(re.search(r'id="profile">([^<]*)<', text)[1]))
    return data[data.index(b"{"):]


def books_of(path):
    """What a file says of its filter: what is kept, what each line dropped; and the whole, where it has that."""
    data = read(path, "rb")
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if path.endswith(".pb.gz"):
        profile = read_pprof.read_pprof(data)
        comments = [profile["string_table"][i] for i in profile["comment"]]
        return of_lines(*[text for text in comments if text.startswith("kept: ")], [text for text in comments if text.startswith("dropped: ")])
    text = data.decode()
    if path.endswith(".txt"):
        return of_lines(*lines_with(text, "# kept "), lines_with(text, "# dropped "))
    if path.endswith(".folded"):
        return of_lines(*lines_with(text, ": kept "), lines_with(text, ": dropped "))
    if path.endswith(".html"):
        return of_json(json.JSONDecoder().raw_decode(page_data(text).decode(errors="replace"))[0]["summary"]["filter"])
    profile = json.loads(text)
    if path.endswith((".cpuprofile", ".trace.json")):
        return of_json((profile.get("metadata") or profile)["$sysprof"]["recording"]["filter"])
    entries = [entry for section in profile["meta"]["extra"] for entry in section["entries"]]
    return of_lines(*[entry["value"] for entry in entries if entry["label"] == "Kept"], [entry["value"] for entry in entries if entry["label"] == "Dropped"])


def check_part(path, wanted):
    """A file that is read says what it is a part of, and so does one that is made of it."""
    for suffix in None, "folded", "pb.gz", "json", "trace.json", "cpuprofile":
        again = scratch(f"part.{suffix}") if suffix else path
        if suffix:
            sysprof("convert", path, "-o", again, check=0)
        part = json.loads(sysprof("report", "--json", again, check=0).out)["summary"]["meta"]["part_of"]
        assert [amounts(piece)[0] for piece in part.split("; ")] == wanted, (path, suffix, part, wanted)
        assert part.count("--thread=") == 2, part
        assert f"# part of    {part}\n" in sysprof("report", again, check=0).out, again


def check_books(source, *given):
    whole = json.loads(sysprof("report", "--json", source, check=0).out)["summary"]
    lines = json.loads(sysprof("report", "--json", source, *given, check=0).out)["summary"]["filter"]
    wanted, _ = of_json(lines)
    assert len(wanted) == 1 + len(given) and any(wanted[0].values()) and any(any(part.values()) for part in wanted[1:]), lines
    assert sum(part["samples"] for part in wanted) == whole["samples"], (lines, whole)
    assert sum(part["cpu_ns"] for part in wanted) == whole["cpu_ns"], (lines, whole)
    without = [part | {"wall_ns": 0} for part in wanted]
    options_of_waits = ([], ["--wall"]) if "wall_ns" in lines["kept"] else ([],)
    for suffix, waits in itertools.product(("txt", "folded", "pb.gz", "json", "trace.json", "cpuprofile", "html"), options_of_waits):
        path = scratch(f"books.{suffix}")
        sysprof("convert", source, *given, *waits, "-o", path, check=0)
        found, said = books_of(path)
        assert found == (without if suffix in ("json", "trace.json") and not waits else wanted), (source, suffix, waits, found, wanted)
        assert said == {key: sum(part[key] for part in found) for key in KEYS}, (source, suffix, said)
        if suffix not in ("txt", "html"):
            check_part(path, found)
        if suffix in ("folded", "pb.gz", "json", "trace.json") and not waits:
            summary = json.loads(sysprof("report", "--json", path, check=0).out)["summary"]
            key = "samples" if summary.get("samples_known", True) else "events"
            assert summary[key] == wanted[0][key], (source, suffix, summary, wanted)


@quick
def test_every_format_says_what_was_kept_and_dropped():
    """Recordings with waits, of an event, and folded stacks: the same figures, which add up to the whole, to the ns."""
    for name in "waits", "hardware-events", "services":
        source = os.path.join(GOLDEN, f"{name}.sysprof")
        rows = json.loads(sysprof("report", "--json", source, check=0).out)["rows"]
        check_books(source, f"--ignore=^{re.escape(rows[0]['function'])}$", "--thread=*")
    check_books(write(scratch("plain.folded"), "web;main;a 30\nweb;main;b 50\nlog;main;c 1\n"), "--thread=web", "--ignore=^a$")


@quick
def test_what_keeps_nothing_is_an_empty_file_in_every_format():
    """Exit status 0, and a message that says so; each reader finds no sample in it."""
    for source in os.path.join(GOLDEN, "containers.sysprof"), write(scratch("all.folded"), "web;main;a 30\nlog;main;c 1\n"):
        for suffix in "txt", "folded", "pb.gz", "json", "trace.json", "cpuprofile", "html":
            path = scratch(f"nothing.{suffix}")
            said = sysprof("convert", source, "--focus=nothing-has-this-name", "-o", path, check=0)
            assert "the filter keeps none of its" in said.err, said
            parts, whole = books_of(path)
            assert not any(parts[0].values()) and parts[1] == whole and whole["samples"] > 30, (suffix, parts, whole)
            if suffix not in ("txt", "html"):
                assert json.loads(sysprof("report", "--json", path, check=0).out)["summary"]["samples"] == 0, suffix


# ---- markers ---------------------------------------------------------------------------------------------------------

def check_markers(seed):
    """The slice of a marker's name, of the file and of what it is converted to."""
    rng = random.Random(seed)
    samples = [dataclasses.replace(s, weight=s.count * 10**6) for s in filter_model.profile(rng, inlines=False)]
    markers = filter_model.markers(rng, samples)
    name = rng.choice([rng.choice(markers).name, "GC*", "*", "[GR]*", "nothing"])
    source, again, out = (scratch(f"markers-{seed}{suffix}") for suffix in (".json", "-again.json", ".pb.gz"))
    sysprof("convert", write(source, filter_model.firefox(rng, samples, markers)), "-o", again, check=0)
    left = filter_model.in_markers(name, markers, samples)
    for path in source, again:
        done = sysprof("convert", f"{path}@{name}", "-o", out)
        if isinstance(left, str):
            if done.status != 1 or left not in done.err:
                return f"seed {seed}: {path}@{name}: expected the refusal: {left}, found {done}"
        elif done.status or read_totals(out) != filter_model.totals(left):
            return f"seed {seed}: {path}@{name}: expected {filter_model.totals(left)}, found {done.err or read_totals(out)}"
    return None


@quick
def test_slices_by_the_name_of_markers_keep_what_the_model_says():
    wrong = [text for text in map(check_markers, range(40)) if text]
    assert not wrong, "\n".join(wrong[:SHOWN])


@natively
@long
def test_slices_by_the_name_of_markers_keep_what_the_model_says_a_thousand_times():
    wrong = [text for text in map(check_markers, range(2000, 3000)) if text]
    assert not wrong, "\n".join(wrong[:SHOWN])


def phases():
    """Two threads at once, with a marker of each, twice the one; then an instant."""
    place = filter_model.Location("", (filter_model.Line("work", ""),))
    samples = [filter_model.Sample(10, "app", tid, f"t{tid}", "", 10**12 + i * 10**6, 0, (place,), 1, 10**6) for i in range(100) for tid in (1, 2)]
    start = samples[0].time
    markers = [filter_model.Marker(name, tid, start + begin * 10**6, start + end * 10**6)
               for name, tid, begin, end in (("load", 1, 10, 30), ("load", 2, 50, 60), ("10s-20s", 1, 0, 5), ("click", 2, 70, 70), ("a@b", 1, 0, 7))]
    return filter_model.firefox(random.Random(1), samples, markers)


@quick
def test_a_marker_is_a_time_of_all_threads():
    source = write(scratch("phases.json"), phases())
    summary = json.loads(sysprof("report", "--json", f"{source}@load", check=0).out)["summary"]
    assert summary["samples"] == 2 * (20 + 10) and summary["threads"] == 2, summary
    assert summary["filter"]["text"] == "@load" and [row["samples"] for row in summary["filter"]["dropped"]] == [200 - 60], summary["filter"]
    assert json.loads(sysprof("report", "--json", f"{source}@a@b", check=0).out)["summary"]["samples"] == 14
    sides = json.loads(sysprof("diff", "--json", f"{source}@load", f"{source}@a@b", check=None).out)["files"]
    assert [side["samples"] for side in sides] == [60, 14], sides
    named = write(scratch("phases.json@load"), phases())
    assert json.loads(sysprof("report", "--json", named, check=0).out)["summary"]["samples"] == 200


@quick
def test_markers_of_geckos_own_format_are_slices():
    """Rows, columns where the schema says; an interval is one row or two."""
    thread = {"name": "GeckoMain", "pid": 7, "tid": 7, "registerTime": 0, "stringTable": ["f", "paint", "load", "click"],
              "frameTable": {"schema": {"location": 0}, "data": [[0]]}, "stackTable": {"schema": {"frame": 0, "prefix": 1}, "data": [[0, None]]},
              "samples": {"schema": {"stack": 0, "time": 1}, "data": [[0, 10 + i] for i in range(100)]},
              "markers": {"schema": {"phase": 0, "name": 1, "startTime": 2, "endTime": 3, "data": 4},
                          "data": [[1, 1, 20, 30, {"type": "Text"}], [2, 2, 40], [0, 3, 45], [3, 2, None, 60], [1, "?", 1, 2], [], [1, 1, 25, 33]]}}
    source = write(scratch("gecko.json"), json.dumps({"meta": {"version": 24, "interval": 1, "startTime": 1700000000000}, "libs": [], "threads": [thread]}))
    for name, samples in ("paint", 13), ("load", 20), ("[pl]*", 33):
        assert json.loads(sysprof("report", "--json", f"{source}@{name}", check=0).out)["summary"]["samples"] == samples, name
    assert "instants" in sysprof("report", f"{source}@click", check=1).err


@quick
def test_names_that_are_no_markers_are_refused_or_keep_nothing():
    source, none = write(scratch("named.json"), phases()), write(scratch("plain.folded"), "main;f 3\n")
    untimed, timed = sysprof("report", f"{none}@load", check=1), sysprof("report", f"{os.path.join(TOP, 'tests/golden/recordings/waits.sysprof')}@load", check=1)
    assert "no times" in untimed.err and "no markers, and load is no time" in timed.err, (untimed, timed)
    assert "the markers click are instants, without an extent" in sysprof("report", f"{source}@click", check=1).err
    nothing = sysprof("convert", f"{source}@nothing", "-o", "folded:-", check=0)
    assert "keeps none of its 200 samples" in nothing.err and "dropped 200 by @nothing" in nothing.err, nothing
    assert "no sample" not in sysprof("report", f"{source}@10s-20s", check=0).out  # a time, in which there is nothing
    assert "cannot open" in sysprof("report", f"{source}.gone@load", check=1).err


# ---- collapsed files -------------------------------------------------------------------------------------------------

@quick
def test_collapsed_files_are_names_also_when_they_are_read_again():
    """A frame of all code of a file is no code without a symbol: merged, as pprof and as folded stacks."""
    rng = random.Random(3)
    source, other = (write(scratch(f"{name}.pb.gz"), filter_model.pprof(filter_model.profile(rng))) for name in ("first", "second"))
    collapsed = [scratch("collapsed.pb.gz"), scratch("collapsed.folded")]
    for out in collapsed:
        sysprof("convert", source, "--collapse", "dso", "-o", out, check=0)
    for words in [source, "--collapse", "dso"], [source, other, "--collapse", "dso"], *([path] for path in collapsed):
        summary = json.loads(sysprof("report", "--json", *words, check=0).out)["summary"]
        assert summary["named_share"] == 1, (words, summary)


if __name__ == "__main__":
    main(globals())
