#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""Options of `sysprof record` and their results: targets, known call chains, rates, clocks,
CPUs, depths, durations and files."""
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

from libconsumers import structure
from libe2e import (CANCELLATION, SCRATCH, SYSPROF, Background, Facts, Fixture, Skip, assert_sample_count, comms,
                    firefox_extra, firefox_threads, fixture, folded, has_chain, kernel_part, load_json, long, lost_in,
                    main, natively, quick, read, record, record_cpu, recording_events, run, scratch, share, started_sampling, sysprof, total,
                    use_cpu, user_part, write)

CHAIN = ("outer", "middle", "inner", "leaf")
SLACK_NS = 2_000_000
EVENT_MMAP, EVENT_MMAP_PATH = 8, 88  # bytes behind the header


def of_user(rows):
    """The samples that were taken in user space."""
    return [(frames, count) for frames, count in rows if not kernel_part(frames)]


# ---- targets ------------------------------------------------------------------------------------

@quick
def test_command_has_its_known_chain():
    path = scratch("chain.folded")
    record("-o", path, "--", fixture("chain"), "0.7")
    rows = of_user(folded(path))
    assert total(rows) >= 20, rows
    assert set(comms(rows)) == {"chain"}, comms(rows)
    good = share(rows, lambda f: has_chain(f, "main", *CHAIN) and f[-1] == "leaf")
    assert good >= 0.95, f"{good:.3f} have the chain: {rows}"


def test_command_in_an_empty_element_of_path():
    """
    It is the working directory, as for the shell: COMMAND's file is known before its first instruction. Only the process that
    waits has mapped a script.
    """
    program = scratch("in-this-directory")
    write(program, "#!/bin/sh\nexit 7\n")
    os.chmod(program, 0o755)
    for path in f":{os.environ['PATH']}", f"/nowhere::{os.environ['PATH']}", f"{os.environ['PATH']}:":
        out = scratch("path.sysprof")
        record("-q", "-o", out, "--", os.path.basename(program), check=7, cwd=SCRATCH, env={**os.environ, "PATH": path})
        mapped = {body[EVENT_MMAP_PATH:].split(b"\0")[0].decode() for kind, _, _, body in recording_events(out)
                  if kind == EVENT_MMAP}
        assert os.path.realpath(program) in mapped, (path, mapped)


@natively
def test_command_with_threads():
    path = scratch("threads.json.gz")
    reported = Facts(record("-o", path, "--", fixture("chain"), "-t", "3", "0.9").out)
    tids = {int(row[0]) for row in reported.all("tid")}
    threads = {t.tid: t for t in firefox_threads(path)}
    assert len(tids) == 3 and tids <= set(threads), f"{tids} are not all in {set(threads)}"
    for tid in tids:
        samples = list(threads[tid].samples())
        good = sum(has_chain([n for n, _ in frames], "chain_thread", *CHAIN)
                   for _, frames in samples)
        assert len(samples) >= 20 and good >= 0.95 * len(samples), \
            f"thread {tid}: {good} of {len(samples)}"
        assert threads[tid].pid == reported.number("pid") and threads[tid].process == "chain"


@quick
def test_process_and_all_its_threads():
    path = scratch("process.json.gz")
    with Fixture("chain", "-t", "3", "30") as chain, Fixture("loop", "30"):
        tids = {int(row[0]) for row in chain.wait_facts("tid", 3)}
        record_cpu(chain.pid, 1.5, "-p", chain.pid, "-o", path)
        assert chain.p.poll() is None, "the target was ended"
    threads = firefox_threads(path)
    assert {t.pid for t in threads} == {chain.pid}, threads
    assert {t.tid for t in threads if t.count} == tids
    functions = [t.functions() for t in threads if t.count]
    for seen in functions:
        assert seen["leaf"] >= 0.9 * max(seen.values()), seen


def test_process_and_threads_to_come():
    """chain starts its threads 0.5 s after sampling began."""
    path = scratch("later.json.gz")
    with Fixture("chain", "-w", "1.5", "-t", "2", "0.5") as chain:
        chain.wait_facts("pid")
        record("-p", chain.pid, "-o", path)
        reported = chain.finish(check=0)
    tids = {int(row[0]) for row in reported.all("tid")}
    assert {t.tid for t in firefox_threads(path) if t.count >= 20} == tids


@quick
@natively
def test_only_the_requested_thread():
    path = scratch("tid.json.gz")
    with Fixture("chain", "-t", "3", "30") as chain:
        tid = int(chain.wait_facts("tid", 3)[1][0])
        record_cpu(chain.pid, 1.5, "-t", tid, "-o", path)
    threads = firefox_threads(path)
    assert [(t.pid, t.tid) for t in threads if t.count] == [(chain.pid, tid)], \
        [(t.pid, t.tid, t.count) for t in threads]
    assert threads[0].count >= 20


@natively
def test_threads_of_a_thread():
    """The first thread starts two others after a while: they belong to it, by default."""
    path = scratch("tid-inherit.json.gz")
    for options, wanted in ([], 2), (["--no-inherit"], 0):
        with Fixture("chain", "-w", "4", "-t", "2", "0.7") as chain:
            chain.wait_facts("pid")
            record("-t", chain.pid, *options, "-o", path)
        busy = {t.tid for t in firefox_threads(path) if t.count >= 20}
        assert len(busy) == wanted and chain.pid not in busy, (options, busy)


@natively
def test_process_that_is_also_a_child():
    """Requested twice, sampled once."""
    path = scratch("twice.json.gz")
    with Fixture("/bin/sh", "-c", f"{fixture('loop')} 60 & echo child $!; wait") as shell:
        child = shell.wait_number("child")
        shell.wait_facts("pid")
        record_cpu(child, 0.5, "-p", f"{shell.pid},{child}", "-o", path)
        os.kill(child, signal.SIGKILL)
    (thread,) = [t for t in firefox_threads(path) if t.pid == child]
    assert_sample_count(thread.count, thread.cpu_ns, lost_in(path), "child")


@natively
@long
def test_recording_ends_with_its_target():
    for option in "-p", "-t":
        path = scratch("ends.folded")
        with Fixture("chain", "2") as chain:
            chain.wait_facts("start")
            with Background(SYSPROF, "record", option, chain.pid, "-o", path) as recorder:
                chain.p.wait(60)
                recorder.finish(check=0)
        assert share(of_user(folded(path)), lambda f: has_chain(f, *CHAIN)) > 0.9, folded(path)


SHELL = """
{chain} 60 & echo existing $!
read -r line <{go}
{chain} 60 & echo future $!
sh -c '{loop} 60 & echo grandchild $!; wait; true'
wait
"""
CHILDREN = "existing", "future", "grandchild"


def test_children_that_are_there_and_that_come():
    path, own, go = scratch("children.json.gz"), scratch("no-children.json.gz"), scratch("go")
    os.mkfifo(go)
    recordings = [(scratch("children.sysprof"), path), (scratch("no-children.sysprof"), own)]
    with Fixture("/bin/sh", "-c", SHELL.format(chain=fixture("chain"), loop=fixture("loop"), go=go)) as shell:
        shell.wait_facts("existing")
        recorders = [Background(SYSPROF, "record", "-p", shell.pid, *options, *(word for output in outputs for word in ("-o", output)))
                     for outputs, options in zip(recordings, ([], ["--no-inherit"]))]
        for recorder, outputs in zip(recorders, recordings):
            started_sampling(recorder, outputs[0])
        write(go, "go\n")
        shell.wait_facts("grandchild")
        for child in CHILDREN:
            use_cpu(shell.wait_number(child), 0.2)
        for recorder in recorders:
            recorder.signal(signal.SIGINT)
            recorder.finish(check=0)
        for child in CHILDREN:
            os.kill(shell.wait_number(child), signal.SIGKILL)
    reported = shell.facts()
    seen = {t.pid: t.count for t in firefox_threads(path)}
    for child in CHILDREN:
        assert seen.get(reported.number(child), 0) >= 20, f"{child} {reported.number(child)}: {seen}"
    others = {t.pid for t in firefox_threads(own)} - {shell.pid}
    assert not others, f"--no-inherit: {others}"


@natively
def test_no_inherit_of_a_command():
    path = scratch("inherit.folded")
    storm = [fixture("storm"), "-n", "fork", "30", "10000", scratch("storm.log")]
    record("-o", path, "--", *storm)
    assert len(comms(folded(path))) >= 30, comms(folded(path))
    # it sleeps while its children burn CPU: no samples of it are no failure
    record("--no-inherit", "-o", path, "--", *storm)
    assert set(comms(folded(path))) <= {"storm"}, comms(folded(path))


@quick
@natively
def test_whole_system():
    path = scratch("all.json.gz")
    with Fixture("chain", "30") as one, Fixture("loop", "30") as two:
        one.wait_facts("start"), two.wait_facts("pid")
        record_cpu(one.pid, 0.5, "-a", "-F", "499", "-o", path)
    threads = firefox_threads(path)
    seen = {t.pid: t for t in threads}
    for pid, function in (one.pid, "leaf"), (two.pid, "count_iterations"):
        assert pid in seen and seen[pid].functions().get(function, 0) >= 20, (pid, set(seen))
    assert 0 not in seen, "idle is no thread"
    assert seen[one.pid].name == "chain" and seen[two.pid].name == "loop"


@natively
@long
def test_exclude_self():
    counts = []
    for option in [], ["--exclude-self"]:
        path = scratch("self.json.gz")
        # a rate at which the collector is busy enough to be seen
        with Fixture("chain", "30") as chain:
            chain.wait_facts("start")
            with Background(SYSPROF, "record", "-a", "-F", "4999", "-d", "1.2", *option, "-o",
                            path) as recorder:
                recorder.finish(check=0)
        seen = {t.pid: t.count for t in firefox_threads(path)}
        assert seen[chain.pid] >= 50
        counts.append(seen.get(recorder.pid, 0))
    assert counts[0] > 0 and counts[1] == 0, counts


# ---- stacks -------------------------------------------------------------------------------------

def without(frames, name):
    return [f for f in frames if f != name]


@natively
def test_kernel_stack_follows_user_stack():
    """From the kernel's root on: user frames, the entry, the system call, the function."""
    path = scratch("kernel.folded")
    record("-o", path, "--", fixture("kstack"), "read", "0.7")
    rows = folded(path)
    for frames, _ in rows:
        kernel = [f.endswith("_[k]") for f in frames[1:]]
        assert kernel == sorted(kernel), f"a user frame below the kernel: {frames}"
    # read_zeros calls read, which has no frame pointer: until its table is there it is left out
    reading = share(rows, lambda f: has_chain(without(f, "read_zeros"), "main", "spend_in_kernel", "read",
                                              "entry_SYSCALL_64_after_hwframe_[k]",
                                              "do_syscall_64_[k]"))
    assert reading >= 0.9, f"{reading:.3f}: {rows}"
    function = share(rows, lambda f: has_chain(f, "ksys_read_[k]", "vfs_read_[k]",
                                               "read_zero_[k]"))
    assert function >= 0.8, f"{function:.3f}: {rows}"

    record("-o", path, "--", fixture("kstack"), "getdents", "0.5")
    listing = share(folded(path), lambda f: "spend_in_kernel" in f and any(
        "getdents64" in x and x.endswith("_[k]") for x in f) and "proc_pid_readdir_[k]" in f)
    assert listing >= 0.5, folded(path)


def test_no_kernel():
    path = scratch("no-kernel.folded")
    record("--no-kernel", "-o", path, "--", fixture("kstack"), "read", "0.5")
    rows = folded(path)
    # a tick in the middle of execve, where there is no user stack, has nothing else to show than that it was the kernel
    assert all(not kernel_part(frames) or frames[1:] == ["[kernel]_[k]"] for frames, _ in rows), rows
    assert total([row for row in rows if kernel_part(row[0])]) <= 2 + 0.02 * total(rows), rows
    assert share(rows, lambda f: has_chain(without(f, "read_zeros"), "main", "spend_in_kernel", "read")
                 and f[-1] == "read") >= 0.9, rows


def test_no_call_graph():
    path = scratch("leaf.folded")
    record("-g", "none", "-o", path, "--", fixture("chain"), "0.5")
    rows = of_user(folded(path))
    # one address, which may be several levels of inlined functions
    assert share(rows, lambda f: f[1:] == ["leaf"]) >= 0.95, rows
    record("-g", "none", "-o", path, "--", fixture("kstack"), "read", "0.5")
    rows = folded(path, cancellation=True)
    assert share(rows, lambda f: len(user_part(f)) == 1 and user_part(f)[0] in {"read", *CANCELLATION}
                 and "vfs_read_[k]" in kernel_part(f)) >= 0.8, rows


@natively
def test_frame_pointers_are_said_by_name():
    path = scratch("fp.folded")
    for mode in "fp", "auto":
        record("-g", mode, "-o", path, "--", fixture("chain"), "0.3")
        assert share(of_user(folded(path)), lambda f: has_chain(f, "main", *CHAIN)) >= 0.95


def test_max_depth():
    path, firefox = scratch("depth.folded"), scratch("depth.json.gz")
    result = record("--max-depth", "3", "--no-kernel", "-o", path, "-o", firefox, "--",
                    fixture("chain"), "0.5")
    rows = of_user(folded(path))
    assert share(rows, lambda f: f[1:] == ["middle", "inner", "leaf"]) >= 0.95, rows
    # Inlined functions are frames of an address, not further ones.
    depths = {t.addresses(s) for t in firefox_threads(firefox) for s in set(t.stacks) - {None}}
    assert max(depths) == 3, (depths, folded(path))
    assert "deeper than --max-depth" in result.err, result
    stacks = firefox_extra(firefox)["Stacks"]
    cut = next(v for k, v in stacks.items() if "--max-depth" in k)
    assert cut >= 0.95 * total(rows), stacks


# ---- how often, when, where ---------------------------------------------------------------------

@natively
@long
def test_rates():
    for hz in 49, 999, 4999:
        path = scratch("rate.json.gz")
        reported = Facts(record("-F", hz, "-o", path, "--", fixture("loop"), "1").out)
        samples = sum(t.count for t in firefox_threads(path))
        assert load_json(path)["meta"]["interval"] - 1000 / hz < 0.001
        assert_sample_count(samples, reported.number("cpu_ns"), lost_in(path), f"-F {hz}", 1e9 / hz)


@quick
@natively
def test_cpus():
    if os.sysconf("SC_NPROCESSORS_ONLN") < 2:
        raise Skip("one CPU only")
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise Skip(f"may use CPU {allowed} only")
    here, there = allowed[:2]
    with Fixture("loop", "-c", here, "60") as one, Fixture("loop", "-c", there, "60") as two:
        one.wait_facts("pid"), two.wait_facts("pid")
        pids = f"{one.pid},{two.pid}"
        for cpus, wanted in (f"{there}", {two.pid}), (f"{here},{there}", {one.pid, two.pid}):
            path = scratch("cpus.json.gz")
            record("-C", cpus, "-p", pids, "-d", "0.6", "-o", path)
            assert {t.pid for t in firefox_threads(path) if t.count} == wanted, (cpus, pids)
            books = next(v for k, v in firefox_extra(path).items() if k.startswith("Books"))
            assert {k for k in books if k.startswith("CPU ")} == \
                {f"CPU {cpu}" for cpu in cpus.split(",")}, books
        # on the other CPU only: an empty profile, as requested
        record("-C", here, "-p", two.pid, "-d", "0.3", "-o", scratch("none.folded"))
        assert folded(scratch("none.folded")) == []


@natively
def test_clocks():
    """Either clock puts each sample into the phase in which its function ran."""
    for clock, source in ("tsc", "TSC"), ("monotonic", "CLOCK_MONOTONIC"):
        path = scratch("clock.json.gz")
        reported = Facts(record("--clock", clock, "-o", path, "--", fixture("rename"), "0.12").out)
        assert source in firefox_extra(path)["Clock"]["Timestamps from"], firefox_extra(path)
        phases = [(row[1], int(row[2]), int(row[3])) for row in reported.all("phase")]
        assert len(phases) == 10
        (thread,) = [t for t in firefox_threads(path) if t.tid == reported.number("tid")]
        seen = 0
        for when, frames in thread.samples():
            names = {name for name, _ in frames} & {"f_one", "f_two"}
            if not names:
                continue
            seen += 1
            assert any({function} == names and start - SLACK_NS <= when <= end + SLACK_NS
                       for function, start, end in phases), (clock, when, names, phases)
        assert seen >= 100, seen


@natively
def test_duration():
    with Fixture("chain", "30") as chain:
        chain.wait_facts("start")
        for duration in 0.4, 1.5:
            path = scratch("duration.json.gz")
            begin = time.monotonic()
            result = record("-p", chain.pid, "-d", duration, "-o", path)
            took = time.monotonic() - begin
            assert result.status == 0 and took >= duration
            meta = load_json(path)["meta"]
            recorded = meta["profilingEndTime"] / 1000
            assert abs(recorded - duration) < 1, f"{recorded} s, not {duration}"
            (thread,) = [t for t in firefox_threads(path) if t.count]
            span = (max(thread.times) - min(thread.times)) / 1000
            assert span <= duration + 1, span
        assert chain.p.poll() is None


# ---- files --------------------------------------------------------------------------------------

def test_one_run_many_files():
    """Several formats, the totals in all of them, and a cpuprofile for each busy thread."""
    path, base = scratch("many.json.gz"), scratch("many")
    # of 200 % of a CPU at most, 1 % is 0.5 % of the samples at least
    record("-F", "1999", "-o", path, "-o", base + ".cpuprofile", "-o", base + ".folded", "-o",
           base + ".txt", "-o", base + ".sysprof", "--", fixture("duty"), "-p", "100", "2.5", "100",
           "60", "20", "1")
    files = structure(path, base + ".folded", *glob.glob(base + "*.cpuprofile"))
    firefox = files[path]
    totals = firefox["totals"]
    assert firefox["samples"] == files[base + ".folded"]["samples"] > 300
    busiest = max(totals, key=lambda key: totals[key]["samples"])
    wanted = {base + ".cpuprofile" if key == busiest else
              base + "." + key.replace("/", "-") + ".cpuprofile": key
              for key, thread in totals.items() if thread["samples"] >= 0.01 * firefox["samples"]}
    written = {p for p in files if p.endswith(".cpuprofile")}
    assert written == set(wanted), (written, wanted)
    assert len(wanted) >= 3 and len(wanted) < len(totals), totals
    for name, key in wanted.items():
        seen, due = files[name]["totals"], totals[key]
        assert list(seen) == [key], (name, seen)
        assert seen[key]["samples"] == due["samples"], (name, seen, due)
        assert abs(seen[key]["cpu_ns"] - due["cpu_ns"]) <= 1000, (name, seen, due)
        own = load_json(name)["$sysprof"]
        pid, tid = map(int, key.split("/"))
        (thread,) = [t for t in firefox_threads(path) if t.tid == tid]
        assert (own["pid"], own["tid"], own["comm"], own["process"]) == \
            (pid, tid, thread.name, "duty"), own
    names = sorted(load_json(n)["$sysprof"]["comm"] for n in wanted)
    assert {"duty-100", "duty-60", "duty-20"} <= set(names), names
    assert "burn_until_cpu" in read(base + ".txt") and os.path.getsize(base + ".sysprof") > 1000
    for name in files:
        assert os.stat(name).st_mode & 0o777 == 0o600, name


def test_standard_output_and_named_formats():
    path = scratch("stacks.out")
    result = record("-o", "folded:" + path, "-o", "folded:-", "--", fixture("chain"), "0.3")
    lines = [line for line in result.out.splitlines() if ";" in line]
    assert read(path).splitlines() == lines
    assert share(of_user(folded(path)), lambda f: has_chain(f, "main", *CHAIN)) >= 0.95


def test_default_file():
    record("--", fixture("chain"), "0.2", cwd=SCRATCH)
    (profile,) = structure(scratch("sysprof.json.gz")).values()
    assert profile["samples"] > 20


def test_lost_ticks_may_be_of_others():
    """Of a target that sleeps beside a busy program the summary says that lost ticks need not be its own."""
    with Background(fixture("chain"), "10"):
        result = run(SYSPROF, "record", "-o", scratch("asleep.folded"), "--", "sleep", "1")
    for line in result.err.splitlines():
        assert " not-run (" not in line or " may be of other programs, which had " in line, result.err


def test_verbosity():
    """-q: errors; nothing: the summary; -v: how it is done; -vv: a debug log as well."""
    said = {}
    for option in "-q", None, "-v", "-vv":
        options = [option] if option else []
        result = run(SYSPROF, "record", *options, "-o", scratch("verbosity.folded"), "-o",
                     scratch("verbosity.sysprof"), "--", fixture("chain"), "0.2", check=0)
        said[option] = result.err.splitlines()
    summary, how, debug = (
        {option: sum(bool(re.search(pattern, line)) for line in lines)
         for option, lines in said.items()}
        for pattern in (r" samples of ", r"^sysprof: (program|event|rings)",
                        r"^sysprof: \[[a-z]+\] \d+\.\d{3} s: \S"))
    assert not said["-q"], said
    assert summary == {"-q": 0, None: 1, "-v": 1, "-vv": 1}, said
    assert how["-v"] == how["-vv"] > 2 and not how["-q"] and not how[None], said
    assert debug == {"-q": 0, None: 0, "-v": 0, "-vv": debug["-vv"]}, said
    subsystems = {line.split("]")[0].split("[")[1] for line in said["-vv"] if "] " in line[:20]}
    assert subsystems >= {"stream", "unwind", "symbols", "export"}, said["-vv"]
    assert any("verbosity.folded: folded written: " in line for line in said["-vv"]), said["-vv"]


def test_own_cost():
    """The CPU time in the summary is that of all processes of sysprof, without COMMAND's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run(SYSPROF, "record", "--no-symbol-cache", "-o", scratch("cost.json.gz"), "--", sys.executable, "-c",
                 "import time\nwhile time.process_time() < 1: sum(range(1000))\nprint(time.process_time())", check=0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - float(result.out)
    reported = float(re.search(r"sysprof itself: ([\d.]+) s CPU", result.err)[1])
    # what follows the summary is not in it
    assert 0.8 * used < reported < used + 0.05, (used, reported)


def test_full_disk():
    for command in (["version"], ["help"], ["help", "record"], ["check", "-p", os.getpid()], ["agent", "--check"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([SYSPROF, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "cannot write to standard output: No space left" in done.stderr, (command, done)


def cpuprofiles(name):
    return sorted(glob.glob(scratch(name + "*.cpuprofile")))


def test_threads_of_a_process_in_one_file():
    """More than four files are too many to read: the summary names two other ways, of which one is a file for a process."""
    recording, merged = scratch("merged.sysprof"), scratch("merged.cpuprofile")
    result = record("-o", scratch("apart.cpuprofile"), "--", fixture("chain"), "-t", "6", "0.3")
    assert len(cpuprofiles("apart")) >= 6 and ".trace.json; a file for each process: --merge-threads process" in result.err, result
    result = record("-o", recording, "-o", merged, "--merge-threads", "process", "--", fixture("chain"), "-t", "6", "0.3")
    assert cpuprofiles("merged") == [merged] and "--merge-threads" not in result.err, result
    profile, report = load_json(merged), load_json_of_report(recording)
    own, deltas = profile["$sysprof"], profile["timeDeltas"]
    assert own["mergedThreads"] >= 6 and own["tid"] == own["pid"], own
    assert sum(own["threadCPUDeltas"]) == own["cpuTimeNs"] == report["cpu_ns"] - report["silent_cpu_ns"], (own, report)
    assert own["samples"] == report["samples"]
    names = {node["id"]: node["callFrame"]["functionName"] for node in profile["nodes"]}
    lengths = [*deltas[1:], profile["endTime"] - profile["startTime"] - sum(deltas)]
    busy = sum(us for us, node in zip(lengths, profile["samples"]) if names[node] != "(idle)")
    assert abs(busy * 1000 - own["cpuTimeNs"]) <= 2000 * len(deltas), (busy, own["cpuTimeNs"])
    assert structure(merged)
    again = scratch("again.cpuprofile")
    sysprof("convert", recording, "-o", again, "--merge-threads", "process", check=0)
    assert read(again) == read(merged)


def load_json_of_report(path):
    return json.loads(sysprof("report", path, "--json", check=0).out)["summary"]


main(globals())
