#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""
Files of perf record through report, convert and diff. The judge is perf itself: each sample of `perf script`, with its
name, numbers, time, period and stack, is one of the profile, and the other way round.
"""
import collections
import contextlib
import gzip
import json
import os
import random
import re
import signal
import struct
import subprocess

from libe2e import (BUILD, SCRATCH, SYSPROF, Background, alone, children_of, comm_of, fixture, main, natively, quick, read, run, scratch,
                    started_sampling, sysprof, wait_for, write)
from libperf import perf_data, without_kernel_code

ADDRESS = (1 << 56) - 1  # a frame's upper byte is ours
KERNEL = 0xff << 56


def perf(*args, check=None):
    """A system without perf fails the test."""
    result = run("perf", *args)
    assert check is None or result.status == check, result
    return result


def recorded(name, *options, command=None):
    """A perf.data file of a program."""
    path = scratch(name)
    perf("record", "-o", path, "-e", "cpu-clock", *options, "--", *(command or (fixture("chain"), "0.4")), check=0)
    return path


def judged(path, chains=True):
    """[(comm, pid, tid, ns, period, event, [(address, function)])] of perf script."""
    out = perf("script", "--ns", "--no-inline", "-i", path, "-F", "comm,pid,tid,time,period,ip,sym,event", check=0).out
    samples = []
    for block in out.split("\n\n" if chains else "\n"):
        lines = block.strip("\n").split("\n")
        head = re.fullmatch(r"\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+?):((?:\s.*)?)", lines[0])
        if not head:
            assert not lines[0].strip(), f"not a sample: {lines[0]!r}"
            continue
        comm, pid, tid, seconds, ns, period, event, rest = head.groups()
        frames = [line.split(None, 1) for line in ([rest] if rest.strip() else []) + lines[1:]]
        samples.append((comm, max(int(pid), 0), max(int(tid), 0), int(seconds + ns), int(period), event.split(":")[0],
                        [(int(frame[0], 16), frame[1] if len(frame) > 1 else "[unknown]") for frame in frames]))
    return samples


def read_by_us(path):
    """The same of ours, with weight and events instead of the period."""
    samples = []
    for line in run(os.path.join(BUILD, "tests", "e2e", "perf_samples"), path, check=0).out.splitlines():
        comm, pid, tid, time, weight, events, *frames = line.split("\t")
        pairs = [frame.split("|", 1) for frame in frames]
        samples.append((comm, int(pid), int(tid), int(time), int(weight), int(events),
                        [(int(address, 16), function) for address, function in pairs]))
    return samples


def is_kernel(address):
    return address & KERNEL == KERNEL


def looked_up(frames):
    """Where each frame is: return addresses are behind their call."""
    places, user = [], False
    for number, (address, _) in enumerate(frames):
        exact = number == 0 or (not is_kernel(address) and not user)
        user |= not is_kernel(address)
        place = address if is_kernel(address) else address & ADDRESS
        places.append(place if exact else max(place - 1, 0))
    return places


def names_differ(theirs, ours):
    """Frames whose names are known to both and are not the same, but for aliases."""
    return [(t, o) for t, o in zip(theirs, ours) if "[unknown]" not in t[1] and t[1] != o[1]]


def in_execve(frames):
    """Then perf shows an address of the program before in the mappings of that, which are gone."""
    return any("execve" in function for address, function in frames if is_kernel(address))


def compare(path, is_clock=True, named=0, chains=True, everywhere=True, judge=None):
    """
    Returns the number of samples. `named`: so many of 100 frames have perf's very name. Not `everywhere`: without
    the addresses of users, which perf prints as mapped where there are no chains. `judge`: the file that perf reads instead.
    """
    theirs, ours = judged(judge or path, chains), read_by_us(path)
    if is_clock:
        theirs = [sample for sample in theirs if sample[2] or sample[0] == ":-1"]  # the idle task takes no CPU time
    assert theirs, "perf script shows no sample"
    assert len(theirs) == len(ours), (len(theirs), len(ours))
    frames = differing = 0
    for t, o in zip(sorted(theirs, key=lambda s: (s[3], s[2])), sorted(ours, key=lambda s: (s[3], s[2]))):
        assert t[1:4] == o[1:4], (t, o)
        assert t[0] == o[0] or t[0][0] == ":" or not t[2], (t, o)  # perf has a number for a name that it lacks
        assert t[4] == (o[4] if is_clock else o[5]), (t, o)
        places = [ours if is_kernel(their) else ours & ADDRESS for (their, _), (ours, _) in zip(t[6], o[6])]
        if not t[6]:
            continue  # perf drops a chain that is empty or has a word that is no address; here it has what is before
        assert len(t[6]) == len(o[6]), (t, o)
        if in_execve(t[6]):
            assert looked_up(t[6])[:-1] == places[:-1], (t, o)
        else:
            assert not everywhere or looked_up(t[6]) == places, (t, o)
        frames += len(t[6])
        differing += len(names_differ(t[6], o[6]))
    assert differing * 100 <= (100 - named) * frames, (differing, frames)
    return len(theirs)


def compare_all_cpus(path, is_clock=True):
    """Others have code without a file, and may load programs of BPF."""
    return compare(path, is_clock, everywhere=False, judge=without_kernel_code(path, scratch("judged.data")))


@quick
def test_samples_are_those_of_perf_script():
    """Times, periods, numbers, names and stacks of each sample are equal, 100 %."""
    samples = compare(recorded("chain.data", "-g"), named=99)
    print(f"{samples} samples")
    assert samples > 100


@quick
def test_perf_records_beside_a_recording():
    """
    The kernel hands a record of a mapping to all listeners. If sysprof requested build-ids, those of perf were marked
    as if they had one, and perf 6.1 ends in an assertion about its size.
    """
    recording = scratch("beside.sysprof")
    with Background(SYSPROF, "record", "-a", "-o", recording) as recorder:
        started_sampling(recorder, recording)
        for _ in range(8):
            path = recorded("beside.data", "-g", command=("true",))
            out = perf("script", "--show-mmap-events", "-i", path, check=0).out
            mappings = [line for line in out.splitlines() if "PERF_RECORD_MMAP2" in line]
            assert any("/true" in line for line in mappings), out
            assert all(re.search(r" [0-9a-f]+:[0-9a-f]+ \d+ \d+\]: ", line) for line in mappings), mappings
        recorder.signal(signal.SIGINT)
        recorder.finish(check=0)


@natively
def test_samples_of_threads_and_children():
    """Names of processes that fork and execute, and of what there was before (-a)."""
    compare(recorded("children.data", "-g", command=("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do grep -r a /usr/include/linux >/dev/null; done")))
    compare_all_cpus(recorded("all.data", "-g", "-a", command=("sleep", "1")))
    path = scratch("switches.data")  # the last one of a thread has no number
    perf("record", "-o", path, "-e", "context-switches", "-g", "-a", "--", "sleep", "0.5", check=0)
    compare_all_cpus(path, is_clock=False)


@natively
def test_samples_without_call_chains():
    compare(recorded("flat.data"), chains=False, everywhere=False, named=90)


def test_tasks_without_a_number_have_none():
    """perf writes -1 for those that have ended."""
    path = perf_data(scratch("ended.data"), 10, pid=0xffffffff, tid=0xffffffff)
    said = sysprof("report", path, "--by", "thread", check=0).out
    assert "[ended]" in said and str(0xffffffff) not in said, said


@natively
def test_samples_of_an_event_that_is_no_clock():
    """Each stands for the events of its period."""
    path = scratch("faults.data")
    perf("record", "-o", path, "-e", "page-faults", "-c", "3", "-g", "--", "grep", "-r", "a", "/usr/include/linux", check=0)
    compare(path, is_clock=False)
    said = json.loads(sysprof("report", path, "--json", check=0).out)
    assert said["summary"]["event"] == "page-faults", said["summary"]


@natively
def test_samples_of_a_pipe():
    """perf record -o -: attributes and facts are among the records."""
    path = scratch("pipe.data")
    perf("version", check=0)
    with open(path, "wb") as f:
        subprocess.run(["perf", "record", "-o", "-", "-e", "cpu-clock", "-g", "--", fixture("chain"), "1"],
                       stdout=f, stderr=subprocess.DEVNULL, check=True)
    compare(path)


@natively
def test_samples_of_a_compressed_file():
    """perf record -z."""
    path = recorded("packed.data", "-g", "-z")
    assert "compressed" in perf("report", "-i", path, "--header-only", check=0).out
    compare(path)


def compare_copied(path):
    """The user stacks of both, of samples in order of time. Those of perf, which has subtracted 1 from return addresses, as it prints them."""
    theirs, ours = judged(path), read_by_us(path)
    assert len(theirs) == len(ours) > 100
    pairs = []
    for t, o in zip(sorted(theirs, key=lambda s: (s[3], s[2])), sorted(ours, key=lambda s: (s[3], s[2]))):
        assert t[:5] == o[:5], (t, o)
        pairs.append([[frame for frame in frames if not is_kernel(frame[0])] for frames in (t[6], o[6])])
    same = sum([address for address, _ in t] == [address for address, _ in o] for t, o in pairs)
    print(f"{same} of {len(pairs)} stacks are perf's")
    assert same >= len(pairs) * 0.99
    return pairs


@natively
def test_copied_stacks_are_those_that_perf_walks():
    """--call-graph dwarf: perf unwinds with libdw or libunwind, here with tables. A program without frame pointers."""
    path = recorded("dwarf.data", "--call-graph", "dwarf", command=(fixture("chain-no-fp"), "1"))
    compare_copied(path)
    said = sysprof("report", path, check=0)
    assert "copied user stacks" not in said.out, said


@natively
def test_copied_stacks_of_a_function_without_a_frame():
    """
    perf copies from the stack pointer on, and nothing below. If the frame pointer is saved there, its callers are unknown.
    A copy may end within a page.
    """
    for size, options, function, root in ((8192, (), "spin", "_start"), (8192, ("-p",), "spin_popped", "caller"), (1024, (), "spin", "_start")):
        path = recorded("leaf.data", "--call-graph", f"dwarf,{size}", command=(fixture("leaf"), *options, "1"))
        stacks = [[name for _, name in ours] for _, ours in compare_copied(path)]
        within = [names for names in stacks if names[:1] == [function]]
        assert len(within) >= len(stacks) * 0.9, stacks
        # a tick may find it before it has restored the frame pointer
        assert all(names[1] == "caller" and names[-1] in (root, "_start") for names in within), within
        assert sum(names[-1] == root for names in within) >= 0.99 * len(within), within


@natively
def test_samples_are_of_a_cpu_if_perf_recorded_it():
    """perf records the CPU of all samples with -a, of those of a program with --sample-cpu alone."""
    path = recorded("without.data")
    said = sysprof("report", path, "--cpu", "0", check=1)
    assert "its samples have no CPU" in said.err, said
    path = recorded("with.data", "--sample-cpu")
    cpus = collections.Counter(re.findall(r"\[(\d+)\]", perf("script", "-i", path, "-F", "cpu", check=0).out))
    assert cpus, path
    for cpu, count in cpus.items():
        summary = json.loads(sysprof("report", path, "--json", "--cpu", str(int(cpu)), check=0).out)["summary"]
        assert summary["samples"] == count, (cpus, summary)


@natively
def test_what_the_file_does_not_say_is_unknown():
    """Why stacks of frame pointers end. That of copied ones is known, as they are walked here, and so is what was lost."""
    for options, header, share in ((("-g",), "unknown how many are complete", None), (("--call-graph", "dwarf"), "% complete", 1)):
        path = recorded("ends.data", *options)
        said = sysprof("report", path, check=0).out
        summary = json.loads(sysprof("report", path, "--json", check=0).out)["summary"]
        assert re.search(rf"^# stacks .*{header}", said, re.M) and "# lost       unknown" not in said, said
        assert summary["clock"] is None and "losses_known" not in summary, summary
        assert (summary["complete_share"] is None) == (share is None), summary


@natively
def test_of_several_events_a_clock_is_read():
    """The others are counted by name."""
    path = scratch("several.data")
    perf("record", "-o", path, "-e", "page-faults,cpu-clock", "-g", "--", fixture("chain"), "0.4", check=0)
    theirs = collections.Counter(sample[5] for sample in judged(path))
    assert theirs["cpu-clock"] == len(read_by_us(path)) and theirs["page-faults"], theirs
    said = sysprof("report", path, check=0)
    assert f"samples of page-faults: {theirs['page-faults']}" in said.err, said


@quick
def test_files_without_times_have_none():
    """They are compared by shares, as perf's text of them: they have no seconds. All their samples are read."""
    path = recorded("timeless.data", "--no-timestamp", "-g")
    text = write(scratch("timeless.txt"), perf("script", "--no-inline", "-i", path, check=0).out.encode())
    said = sysprof("report", path, check=0)
    assert "# times      none" in said.out and "# started" not in said.out and "not read" not in said.out + said.err, said
    cpu = set()
    for name in (path, text):
        cpu.add(re.search(r"^# CPU .*", sysprof("report", name, check=0).out, re.M).group())
        compared = sysprof("diff", name, name, check=0).out
        assert "CPU per second" not in compared, compared
    assert len(cpu) == 1, cpu


@quick
def test_two_files_are_compared_with_statistics():
    """The commands of docs/DIFF.md, as they stand there: perf record twice, sysprof diff, a page."""
    recorded("probe.data")
    text = read(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "DIFF.md"))
    commands = text.split("## Files of perf")[1].split("```")[1].strip().split("\n")
    assert len(commands) == 4, commands
    out = ""
    for command in commands:
        result = run("sh", "-c", command.replace("build/sysprof", SYSPROF), cwd=SCRATCH)
        assert not result.status, result
        out += result.out
    samples = re.findall(r"^# (?:OLD|NEW): 1 file, (\d+) samples", out, re.M)
    assert [len(judged(scratch(name))) for name in ("a.data", "b.data")] == [int(n) for n in samples], out
    assert "smallest change" in out and "CPU per run" in out, out
    assert os.path.getsize(scratch("a.html")) > 100000


@quick
def test_several_files_and_folded_stacks_add_up():
    """In every order, in tables and in folded stacks; files that count something else are refused."""
    first, second = perf_data(scratch("sums-a.data"), 7), perf_data(scratch("sums-b.data"), 11)
    stacks = write(scratch("sums.folded"), "t;main;f 10\nt;main;g 3\n")
    other = write(scratch("sums-bytes.folded"), "# weights: bytes\nt;main;f 10\n")
    for files, samples in (((first, second), 18), ((first, stacks), 20), ((stacks, second), 24), ((second, stacks, first), 31)):
        found = json.loads(sysprof("report", *files, "--json", check=0).out)
        own = {row["function"]: row["self"] for row in found["rows"]}
        assert found["summary"]["samples"] == sum(own.values()) == samples, (files, found)
        assert stacks not in files or (own["f"], own["g"]) == (10, 3), (files, own)
        lines = sysprof("convert", *files, "-o", "folded:-", check=0).out.splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines if line[0] != "#") == samples, (files, lines)
    assert "cannot be one profile" in sysprof("report", first, other, check=1).err


@quick
def test_files_of_other_machines_are_read_or_refused():
    """Of the other byte order: refused. Of another architecture: addresses, without names of this machine's kernel."""
    path = recorded("mine.data", "-g")
    with open(path, "rb") as f:
        data = f.read()
    other = write(scratch("other.data"), data[7::-1] + data[8:])
    said = sysprof("report", other, check=1)
    assert "other byte order" in said.err, said
    assert data.count(b"x86_64\0"), "the architecture is not in the file"
    arm = write(scratch("arm.data"), data.replace(b"x86_64\0", b"arm64_\0"))
    assert "samples" in sysprof("report", arm, check=0).out


@quick
def test_a_file_that_is_cut_is_read_up_to_there():
    """A recording that was killed has no size, no features and no end."""
    path = recorded("whole.data", "-g")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    start, size = struct.unpack_from("<QQ", data, 40)
    struct.pack_into("<Q", data, 48, 0)
    cut = write(scratch("cut.data"), bytes(data[:start + size // 2]))
    said = sysprof("report", cut, check=0)
    assert "bytes behind the last whole record" in said.err or "samples" in said.out, said
    assert len(read_by_us(cut)) > len(read_by_us(path)) // 3


@natively
def test_a_directory_of_perf_is_refused_with_its_reason():
    path = recorded("threads.data", "--threads=cpu")
    said = sysprof("report", path, check=1)
    assert f"perf script -i {path} | sysprof report -" in said.err, said
    text = write(scratch("threads.txt"), run("perf", "script", "-i", path, check=0).out)
    assert "samples" in sysprof("report", text, check=0).out
    said = sysprof("report", os.path.join(path, "data"), check=1)
    assert "perf script -i DIRECTORY | sysprof report -" in said.err, said
    for name in os.listdir(path):
        if name != "data":
            os.remove(os.path.join(path, name))
    assert f"perf's records are in {path}/data" in sysprof("report", path, check=1).err


@natively
def test_what_perf_stat_counted_is_refused():
    path = scratch("counted.data")
    perf("stat", "record", "-o", path, "-e", "task-clock", "--", "true")
    assert "perf stat report -i FILE" in sysprof("report", path, check=1).err


@quick
def test_a_packed_file_is_refused_with_the_command_that_unpacks_it():
    path = recorded("packed.data")
    with open(path, "rb") as f:
        packed = write(scratch("packed.data.gz"), gzip.compress(f.read()))
    said = sysprof("report", packed, check=1)
    command = re.search(r"`(.*)`", said.err)[1].replace("sysprof", SYSPROF).replace("FILE", packed)
    assert run("sh", "-c", command, check=0).out == sysprof("report", path, check=0).out, command


@quick
def test_damaged_files_are_read_or_refused():
    """The process that reads them does not crash, and the report is made, or says why not."""
    with open(recorded("sound.data", "-g"), "rb") as f:
        data = f.read()
    chance = random.Random(1)
    for _ in range(30):
        forged = bytearray(data)
        for _ in range(chance.choice((1, 30, 3000))):
            forged[chance.randrange(16, len(forged))] = chance.randrange(256)
        said = sysprof("report", write(scratch("forged.data"), bytes(forged)))
        assert "ended by signal" not in said.err and "Traceback" not in said.err, said
        assert (said.status, "samples" in said.out) == (0, True) or (said.status == 1 and "cannot read" in said.err), said


def reader_of(program):
    with contextlib.suppress(OSError):
        return next((pid for pid in children_of(program.pid) if comm_of(pid) == "sysprof-perf"), None)
    return None


def signalled(path, number, to_reader):
    """(result, reader) of a report during whose reading the program or the reader got a signal."""
    for _ in range(10):
        with Background(SYSPROF, "report", path) as program:
            wait_for(lambda: reader_of(program) or program.p.poll() is not None, what="a reader")
            reader = reader_of(program)
            if reader:
                os.kill(reader if to_reader else program.pid, number)
            result = program.finish()
        if reader and result.status:
            return result, reader
    raise AssertionError("each report was made before it got a signal")


@quick
@alone
def test_program_and_reader_end_together():
    path = perf_data(scratch("large.data"), 1000000)
    result, _ = signalled(path, signal.SIGKILL, True)
    assert result.status == 1 and "the process that reads it was ended by signal 9" in result.err, result
    assert not result.out, result
    for number in signal.SIGINT, signal.SIGKILL:
        result, reader = signalled(path, number, False)
        assert not result.out, result
        wait_for(lambda reader=reader: not os.path.exists(f"/proc/{reader}"), what="the end of the reader")


if __name__ == "__main__":
    main(globals())
