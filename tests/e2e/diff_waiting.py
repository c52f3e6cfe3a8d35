#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# time-limit: 120
# runs: beside
"""sysprof diff of recordings with waits: states and functions that wait compare as functions that run."""
import json
import os

from diff import PYTHON, RECORDINGS, SCHEMA, diff
from libe2e import Skip, alone, main, need_root, record, run, scratch, sysprof

WAITS = os.path.join(RECORDINGS, "waits.sysprof")
PROGRAM = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
#define FUNCTION __attribute__((noinline)) static void
FUNCTION work(void) { for (unsigned long i = 0; i < 200000; i++) sink = sink * 33 + i; }
FUNCTION write_log(void) { pthread_mutex_lock(&lock); usleep(HOLD); pthread_mutex_unlock(&lock); }
FUNCTION read_input(void) { usleep(3000); }
static void *serve(void *unused) { for (int i = 0; i < 200; i++) { work(); write_log(); read_input(); } return unused; }
int main(void)
{
\tpthread_t threads[3];
\tfor (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, serve, 0);
\tfor (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}
"""


def assert_schema(*documents):
    if run(PYTHON, "-c", "import jsonschema").status:
        raise Skip("no jsonschema: tools/install-deps.sh test installs it")
    for document in documents:
        with open(scratch("d.json"), "w", encoding="utf-8") as file:
            json.dump(document, file)
        said = run(PYTHON, "-c", "import json, sys, jsonschema\nv = jsonschema.Draft202012Validator(json.load(open(sys.argv[1])))\n"
                   "for e in v.iter_errors(json.load(open(sys.argv[2]))): print(e.message[:200])", SCHEMA, scratch("d.json"), check=0).out
        assert not said, said


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
    assert_schema(found)


def test_parts_of_the_time():
    """Waits are cut at the ends of a part (which needs a sample of the CPU): two parts that overlap have all of it."""
    whole = diff(WAITS, WAITS)["waiting"]["old_ns"]
    at = next(i for i in range(50) if sysprof("diff", f"{WAITS}@{i / 1000}-{(i + 1) / 1000}", WAITS).status == 0)
    sums = [diff(f"{WAITS}@{part}", WAITS)["waiting"]["old_ns"] for part in
            (f"0-{(at + 1) / 1000}", f"{at / 1000}-{(at + 1) / 1000}", f"{at / 1000}-")]
    assert abs(sums[0] + sums[2] - sums[1] - whole) <= 3 and 0 < sums[1] < whole / 10, (sums, whole)


def test_not_on_both_sides():
    """One side alone: said, and CPU time is compared."""
    source = os.path.join(RECORDINGS, "containers.sysprof")
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


@alone
def test_a_lock_that_is_held_longer():
    """Four runs a side, in alternation: the sleep with the mutex, and the lock, take more; nothing else does."""
    need_root()
    with open(scratch("program.c"), "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    programs = []
    for side, hold in ("old", 300), ("new", 3000):
        programs.append(scratch(side))
        run("gcc", "-O1", "-g", "-pthread", "-fno-omit-frame-pointer", f"-DHOLD={hold}", "-o", programs[-1], scratch("program.c"), check=0)
    paths = [], []
    for i in range(4):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            paths[side].append(scratch(f"{side}-{i}.sysprof"))
            record("--wall", "-o", paths[side][-1], "--", programs[side])
    files = [*paths[0], "--", *paths[1]]
    found = diff(*files)
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
    assert_schema(found)
    text = sysprof("diff", *files, check=0).out
    assert waiting["sentence"] in text and "OLD and NEW are waiting time per run" in text, text
    status = sysprof("diff", "--fail-if", "waiting > 10%", "--fail-if", "state sleep > 10%", *files).status
    assert status == 3, status
    assert sysprof("diff", "--fail-if", "waiting > 10%", *paths[1], "--", *paths[0]).status == 0
    markdown = sysprof("diff", "--markdown", "--fail-if", "waiting > 10%", *files).out.splitlines()
    assert len(markdown) <= 20 and f"- {waiting['sentence']}" in markdown, markdown
    assert any("[waiting: " in line for line in markdown if line.startswith("| ")), markdown


if __name__ == "__main__":
    main(globals())
