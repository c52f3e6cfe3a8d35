#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""Code that is made as it runs has the name that it had when the sample was taken.

A fixture makes one function after the other at one address and notes when each ran: its log is the judge.
"""
import base64
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from libe2e import (SANITIZED, SYSPROF, Background, FirefoxThread, Fixture, Skip, alone, children_of, deepest, fixture, folded,
                    has_chain, load_json, long, main, natively, need_root, new_scratch, read, record, record_cpu, run, scratch, share,
                    started_sampling, use_cpu, write)

TIERS = 8  # include/sysprof/profile.h; behind them are the same tiers with a doubt


class Leaf:
    """The innermost frame of a sample."""

    def __init__(self, when, name, ambiguous, jit):
        self.when, self.name, self.ambiguous, self.jit = when, name, ambiguous, jit


def leaves(path, pid):
    profile = load_json(path)
    shared = profile["shared"]
    frames, table, functions = shared["frameTable"], shared["stackTable"], shared["funcTable"]
    jit = next(i for i, c in enumerate(profile["meta"]["categories"]) if c["name"] == "JIT")
    for thread in (FirefoxThread(profile, t) for t in profile["threads"]):
        if thread.pid != pid:
            continue
        for stack, when in zip(thread.stacks, thread.times):
            if stack is None:
                continue
            frame = table["frame"][stack]
            name = shared["stringArray"][functions["name"][frames["func"][frame]]]
            yield Leaf(thread.start_ns + round(when * 1e6), name, frames["subcategory"][frame] >= TIERS,
                       frames["category"][frame] == jit)


class Judged:
    def __init__(self, samples, spans):
        """Only samples from within a span: between two there is no code at the address."""
        self.right = self.wrong = self.unnamed = self.flagged = self.flagged_wrong = 0
        self.wrong_at = []
        at = 0
        for leaf in samples:
            while at < len(spans) and spans[at][2] < leaf.when:
                at += 1
            if not leaf.jit or at == len(spans) or leaf.when < spans[at][1]:
                continue
            name = spans[at][0]
            if leaf.ambiguous:
                self.flagged += 1
                self.flagged_wrong += leaf.name != name
            elif leaf.name == name:
                self.right += 1
            elif leaf.name.startswith(("[", "0x")):
                self.unnamed += 1
            else:
                self.wrong += 1
                self.wrong_at.append((leaf.when - spans[at][1], leaf.name, name))
        self.count = self.right + self.wrong + self.unnamed + self.flagged

    def add(self, other):
        """Those of another recording."""
        for name in "right", "wrong", "unnamed", "flagged", "flagged_wrong", "count":
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wrong_at += other.wrong_at

    def __repr__(self):
        return (f"{self.count} samples: {self.right} right, {self.wrong} wrong, {self.unnamed} unnamed, {self.flagged} flagged "
                f"({self.flagged_wrong} of these wrong) {self.wrong_at[:5]}")


def spans_of(facts):
    return [(name, int(start), int(end)) for name, start, end in facts.all("span")]


def with_children(pid):
    """A process, its children and theirs."""
    return [pid, *(p for child in children_of(pid) for p in with_children(child))]


def same_address(*options, seconds=2, hz=999, stop=None, ahead=0):
    """The fixture from before the recording to after it, or all of it if it writes late.

    `ahead`: it runs in a time namespace whose CLOCK_MONOTONIC is so many seconds ahead."""
    need_root()
    path = scratch("jitreuse.json")
    wrap = ("unshare", "-T", "--monotonic", str(ahead), "--fork") if ahead else ()
    with Fixture("jitreuse", *options, seconds + 0.6, wrap=wrap) as f:
        f.wait_facts("start")
        pid = children_of(f.pid)[0] if ahead else f.pid
        recording = ("-o", new_scratch("jitreuse.sysprof")) if stop else ()
        with Background(SYSPROF, "record", "-p", pid, "-F", hz, "-o", path, *recording) as recorder:
            if stop:
                started_sampling(recorder, recording[1])
                time.sleep(0.3)
                ours = with_children(recorder.pid)  # the files are read by a child
                for own in ours:
                    os.kill(own, signal.SIGSTOP)
                begin = time.monotonic_ns()
                time.sleep(stop)
                stopped = begin, time.monotonic_ns()
                for own in ours:
                    os.kill(own, signal.SIGCONT)
            result = recorder.finish(check=0)
        facts = f.finish(check=0)
        if os.path.exists(f"/tmp/perf-{pid}.map"):
            os.unlink(f"/tmp/perf-{pid}.map")
        spans = [(name, start - ahead * 10**9, end - ahead * 10**9) for name, start, end in spans_of(facts)]
        judged = Judged(leaves(path, pid), spans)
    print(f"  {' '.join(map(str, options))}: {judged}")
    print("  " + next(line for line in result.err.splitlines() if "JIT code" in line).strip())
    return (judged, path, facts, pid, stopped) if stop else judged


def enough_at_same_address(least, *options, **more):
    """Again if other processes had the CPU: so many samples are judged, of four recordings at most."""
    judged = same_address(*options, **more)
    for _ in range(3):
        if judged.count > least:
            break
        judged.add(same_address(*options, **more))
    assert judged.count > least, judged
    return judged


# ---- one address, one function after the other --------------------------------------------------

@alone
@natively
def test_two_functions_at_one_address():
    judged = enough_at_same_address(1000, "-p", 500, "-n", 1000)
    assert judged.wrong == 0, judged
    assert judged.unnamed <= 0.01 * judged.count and judged.flagged <= 0.03 * judged.count, judged


@alone
@natively
def test_the_same_reported_by_a_jitdump():
    """Its times are exact: 0 wrong and 0 flagged of at least 2000 samples, reported when the process ends."""
    judged = enough_at_same_address(2000, "-d", "-p", 100, "-f", scratch(""), hz=1999)
    assert judged.wrong == judged.unnamed == judged.flagged == 0, judged


def numbers_of(copies):
    """The samples by the number that is in the code. Two recordings may have the process as two."""
    numbers = {}
    for copy in copies:
        texts = [i["text"] for i in copy.get("instructions", ())]
        number = int(texts[2].rsplit(" ", 1)[1], 0) if texts else None
        numbers[number] = numbers.get(number, 0) + copy["self"]
    return numbers


@natively
def test_machine_code_is_of_the_version_that_ran():
    """One function, compiled again and again at one address: each version has its samples and its own bytes."""
    need_root()
    paths = [scratch(f"versions-{i}.sysprof") for i in range(2)]
    with Fixture("jitreuse", "-d", "-n", 1, "-p", 100, "-f", scratch(""), 300) as f:
        f.wait_facts("start")
        with Background(SYSPROF, "record", "-p", f.pid, "-F", 999, "-o", paths[0]) as one:
            with Background(SYSPROF, "record", "-p", f.pid, "-F", 999, "-o", paths[1]) as other:
                started_sampling(one, paths[0])
                started_sampling(other, paths[1])
                use_cpu(f.pid, 0.5)  # of at least five versions
                f.signal(signal.SIGTERM)
                spans = spans_of(f.finish(check=0))
                other.finish(check=0)
            one.finish(check=0)
    both = {}
    for path in paths:
        run(SYSPROF, "convert", path, "-o", path + ".json", check=0)
        expected = {}
        for leaf in leaves(path + ".json", f.pid):
            if leaf.jit and leaf.name == "f0":
                # between two spans another version is written: samples are of the one before
                number = sum(start <= leaf.when for _, start, _ in spans) - 1
                expected[number] = expected.get(number, 0) + 1
        got = json.loads(run(SYSPROF, "report", path, "--annotate", "f0", "--asm", "--json", check=0).out)["annotation"]
        assert len(expected) > 1 and numbers_of(got["copies"]) == expected, (expected, numbers_of(got["copies"]))
        both.update((number, both.get(number, 0) + count) for number, count in expected.items())
    joined = json.loads(run(SYSPROF, "report", *paths, "--annotate", "f0", "--asm", "--json", check=0).out)["annotation"]
    assert numbers_of(joined["copies"]) == both, (both, numbers_of(joined["copies"]))
    text = run(SYSPROF, "report", paths[0], "--annotate", "f0", "--asm", check=0).out
    assert "version 1" in text and "    rdtsc" in text, text


def code_in_page(path):
    packed = re.search(r'<script type="application/gzip" id="code">(.*?)</script>', read(path), re.S)
    return gzip.decompress(base64.b64decode(packed[1])) if packed else b""


@natively
def test_pages_that_are_recorded_have_machine_code():
    need_root()
    page = scratch("code.html")
    for options, there in ((), True), (("--no-code",), False):
        record("-o", page, *options, "--", fixture("jitreuse"), "-d", "-n", 1, "-f", scratch(""), 1)
        assert (b"[jit]" in code_in_page(page)) == there, options


@natively
def test_a_recording_without_machine_code():
    """Names are there, and the code is not, wherever the file has it."""
    need_root()
    path, code = scratch("no-code.sysprof"), bytes.fromhex("0f3148c1e2204809d04839f8")
    for options, there in ((), True), (("--no-code",), False):
        record("-o", path, *options, "--", fixture("jitreuse"), "-d", "-n", 1, "-f", scratch(""), 1)
        with open(path, "rb") as file:
            assert (code in file.read()) == there, options
        text = run(SYSPROF, "report", path, "--annotate", "f0", "--asm", check=0).out
        assert ("    rdtsc" in text) == there and ("the recording has no machine code" in text) != there, text


@long
@alone
@natively
def test_the_same_in_a_time_namespace():
    """As a process that was restored from a checkpoint: its dump's times are those of another clock."""
    if subprocess.run(("unshare", "-T", "true"), check=False, capture_output=True).returncode:
        raise Skip("no time namespaces")
    for ahead in 100000, -5:
        judged = enough_at_same_address(50, "-d", "-p", 100, "-f", scratch(""), ahead=ahead)
        assert judged.wrong == judged.unnamed == judged.flagged == 0, judged
    refused = run("unshare", "-T", "--monotonic", "-5", "--fork", SYSPROF, "record", "-a", "-d", 1, "-o", scratch("no.folded"),
                  check=1)
    assert "its clock is 5.000 s behind the kernel's" in refused.err, refused


@alone
@natively
def test_two_milliseconds_a_function():
    """Where the file is reopened for each line, too."""
    for options in (), ("-r",):
        judged = enough_at_same_address(500, "-p", 2, *options)
        assert judged.wrong == 0, judged
        assert judged.unnamed <= 0.01 * judged.count, judged
        # how late the reader comes is the machine's: that it says so is ours
        assert 1 <= judged.flagged < 0.6 * judged.count, judged


@alone
@natively
def test_sysprof_is_stopped_for_a_second():
    """It is unknown when in that second a line was written."""
    judged, path, facts, pid, (begin, end) = same_address("-p", 2, seconds=3, stop=1)
    assert judged.wrong == 0, judged
    spans = [s for s in spans_of(facts) if s[1] > begin + 10000000 and s[2] < end - 10000000]
    during = Judged(leaves(path, pid), spans)
    print(f"  in that second: {during}")
    assert during.count == during.flagged and during.count > 100, during


@long
@alone
@natively
def test_code_in_a_deleted_file():
    """As libffi and others have it where anonymous memory may not be executed."""
    judged = enough_at_same_address(1000, "-x", "-p", 200, "-n", 1000)
    assert judged.wrong == 0, judged
    assert judged.unnamed <= 0.01 * judged.count and judged.flagged <= 0.05 * judged.count, judged


@long
@alone
@natively
def test_snapshots():
    """Each line replaces the file: what it has holds back to the one before, and is in doubt there."""
    judged = enough_at_same_address(1000, "-p", 200, "-s", "-n", 1000)
    assert judged.wrong == 0, judged


@natively
def test_functions_without_frame_pointers():
    """Small functions of .NET, and LLVM's: the frame pointer is that of a caller, and leads beyond the next one."""
    need_root()
    with Fixture("jitshapes", 60) as f:
        f.wait_facts("start")
        path, text = scratch("shapes.json"), scratch("shapes.folded")
        record_cpu(f.pid, 1.3, "-p", f.pid, "-F", 999, "-o", path, "-o", text)
        os.unlink(f"/tmp/perf-{f.pid}.map")
        f.p.kill()
    rows = [(frames, n) for frames, n in folded(text) if not frames[-1].endswith("_[k]")]
    whole = [(frames, n) for frames, n in rows if frames[-1] == "leaf"]
    away = [(frames, n) for frames, n in rows if frames[-1] == "leaf_of_away"]
    good = share(whole, lambda frames: has_chain(frames, "main", "outer", "pushes", "small", "leaf"))
    print(f"  {good:.4f} of {sum(n for _, n in whole)}; beside {sum(n for _, n in away)}")
    assert good >= 0.95, whole
    # how it goes on cannot be seen: its caller is missing, and the stack is not whole
    assert share(away, lambda frames: frames[-2:] == ["away", "leaf_of_away"]) >= 0.95, away
    assert not any("main" in frames and "outer_away" not in frames for frames, _ in away), away
    ends = load_json(path)["meta"]
    assert "JIT code that may keep no frame pointer" in str(ends), ends


@alone
def test_unwinding_by_jitdump():
    """Its functions use the frame pointer for something else: what the dump says of frames leads to their caller."""
    need_root()
    with Fixture("jitreuse", "-u", "-p", 1000, "-n", 1, "-f", scratch(""), 60) as f:
        f.wait_facts("start")
        time.sleep(0.5)
        path = scratch("unwinding.folded")
        # the dump is read at the start, then each second
        result = record_cpu(f.pid, 1.3, "-p", f.pid, "-F", 1999, "-o", path)
    rows = [(frames, n) for frames, n in folded(path) if frames[-1] == "f0"]
    whole = share(rows, lambda frames: frames[-2] == "run_one" and frames[-3] == "main")
    print(f"  {sum(n for _, n in rows)} samples in it, {whole:.4f} through to its callers")
    assert sum(n for _, n in rows) > 500 and whole >= 0.95, (rows, result)


# ---- files that must not be trusted --------------------------------------------------------------

class Elsewhere(Fixture):
    """The fixture, whose real map is not found, so the test makes the one in /tmp."""

    def __init__(self, *options, seconds=600):
        need_root()
        super().__init__("jitreuse", "-f", scratch(""), "-p", 100, *options, seconds)
        self.wait_facts("start")
        self.map = f"/tmp/perf-{self.pid}.map"
        self.remove()

    def remove(self):
        if os.path.islink(self.map) or os.path.exists(self.map):
            (os.rmdir if os.path.isdir(self.map) and not os.path.islink(self.map) else os.unlink)(self.map)

    def __exit__(self, *exception):
        self.remove()
        super().__exit__(*exception)

    def record(self, seconds=0.5):
        path = scratch("hostile.folded")
        result = record_cpu(self.pid, seconds, "-p", self.pid, "-o", path)
        line = next(line.strip() for line in result.err.splitlines() if "JIT code" in line)
        return line, folded(path)

    def code(self):
        """Where its code lies."""
        return next(int(line.split("-")[0], 16) for line in read(f"/proc/{self.pid}/maps").splitlines() if " rwxp " in line)


@natively
def test_what_is_no_file_of_its():
    secret = scratch("secret.map")
    with Elsewhere() as f:
        write(secret, f"{f.code():x} 1000 secret\n")
        os.chmod(secret, 0o600)

        def foreign():
            write(f.map, f"{f.code():x} 1000 foreign\n")
            os.chown(f.map, 12345, 12345)

        def old():
            write(f.map, f"{f.code():x} 1000 old\n")
            os.utime(f.map, (1000000000, 1000000000))

        def listening():
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(f.map)

        for make, word in ((lambda: os.symlink(secret, f.map), "a symbolic link"),
                           (lambda: os.symlink("../../../../etc/passwd", f.map), "a symbolic link"),
                           (lambda: os.mkfifo(f.map), "not a regular file"), (listening, "not a regular file"),
                           (lambda: os.mkdir(f.map), "not a regular file"), (foreign, "does not belong to the process's user"),
                           (old, "older than the process")):
            f.remove()
            make()
            line, rows = f.record(seconds=0.2)
            assert word in line, (word, line)
            names = {frame for frames, _ in rows for frame in frames}
            assert not names & {"secret", "foreign", "old"} and "root:x:0:0" not in str(names), names
            print("  " + line)


def test_what_is_no_map():
    """Bad lines cost themselves; sizes are bounded; what is shown is clean text."""
    with Elsewhere() as f:
        code = f.code()
        write(f.map, b"\n \nzzz 10 x\n10\n10 20\nffffffff81000000 1000 kernel\nfffffffffffffff0 ffff wraps\n"
                  b"11111111111111111111 1 long\n" + b"1000 10 " + b"n" * (1 << 20) + b"\n" +
                  f"{code:x} 1000 ".encode() + b"\xff\xfe\x1b[31mred;\0nul\r\n" + b"7000 10 torn")
        line, rows = f.record()
        print("  " + line)
        assert "1 entry, 8 bad" in line, line
        leaf = {frames[-1] for frames, _ in rows if "31mred" in frames[-1]}
        assert len(leaf) == 1 and "\x1b" not in str(leaf) and ";" not in leaf.pop(), rows
        assert share(rows, lambda frames: "31mred" in frames[-1]) >= 0.9, rows
        # a hole of 20 GB in front of it
        size = 20 << 30
        with open(f.map, "r+b") as out:
            out.truncate(0)
            out.seek(size)
            out.write(f"\n{code:x} 1000 behind\n".encode())
        result = record("-p", f.pid, "-d", 4, "-o", scratch("hole.folded"))
        peak = int(result.err.split(" MB peak memory, ")[0].split()[-1])
        assert peak < (1500 if SANITIZED else 200), result.err
        assert "its user's files reached their limit" in result.err, result.err


@long
def test_a_map_that_grows_without_end():
    """A writer at full speed: bounded in CPU and memory, and no wrong name."""
    with Elsewhere() as f:
        code, line = f.code(), b"".join(b"%x 10 fills_the_disk_%d\n" % (i * 16, i) for i in range(20000))
        with open(f.map, "wb") as out:
            out.write(f"{code:x} 1000 first\n".encode())
            out.flush()
            with Background(SYSPROF, "record", "-p", f.pid, "-d", 2, "-o", scratch("grow.folded")) as recorder:
                end = time.monotonic() + 2.5
                while time.monotonic() < end:
                    out.write(line)
                result = recorder.finish(check=0)
        print("  " + next(x.strip() for x in result.err.splitlines() if "JIT code" in x))
        cpu = float(result.err.split("sysprof itself: ")[1].split()[0])
        peak = int(result.err.split(" MB peak memory, ")[0].split()[-1])
        print(f"  {cpu} s CPU, {peak} MB")
        assert peak < (4000 if SANITIZED else 700), result.err
        assert SANITIZED or cpu < 2.5, result.err
        names = {frames[-1].removesuffix("_[?]") for frames, _ in folded(scratch("grow.folded"))}
        assert not any(name.startswith("fills") for name in names), names


def test_deleted_and_replaced():
    """A file that is renamed over the old one is the map from then on, since an unknown time."""
    with Elsewhere() as f:
        write(f.map, f"{f.code():x} 1000 before\n")
        path = scratch("replaced.json")
        with Background(SYSPROF, "record", "-p", f.pid, "-d", 4, "-o", path) as recorder:
            time.sleep(1)
            write(scratch("new.map"), f"{f.code():x} 1000 after\n")
            moved = time.monotonic_ns()
            shutil.move(scratch("new.map"), f.map)
            recorder.finish(check=0)
        samples = [leaf for leaf in leaves(path, f.pid) if leaf.jit]
        early = {leaf.name for leaf in samples if leaf.when < moved - 100000000 and not leaf.ambiguous}
        late = {leaf.name for leaf in samples if leaf.when > moved + 1500000000 and not leaf.ambiguous}
        assert early <= {"before"} and late == {"after"}, (early, late)


def test_namespaces():
    """Three nested ones; and a pid that another process has outside, in the same /tmp."""
    need_root()
    nest = ["unshare", "-pf", "--kill-child", "--mount-proc"]
    with Fixture("jitreuse", "-p", 100, 8, wrap=[*nest, *nest, *nest]) as f:
        own = f.wait_number("start")
        pid = deepest(f.pid)
        line = jit_line(record("-p", pid, "-d", 0.6, "-o", scratch("nested.folded")))
        # all of them have the host's /tmp, where somebody may have that number
        assert f"/tmp/perf-{own}.map" in line and "without a name" not in line, line
    with Elsewhere() as outside:
        write(outside.map, "0 ffffffffffff of_somebody_else\n")
        # the next number inside of its namespace is that of the one outside
        script = f'echo {outside.pid - 1} >/proc/sys/kernel/ns_last_pid && exec "$@"'
        run_it = ["sh", "-c", script + " & wait", "sh", "sh", "-c", '"$@" & wait', "sh"]
        with Fixture("jitreuse", "-f", scratch(""), "-p", 100, 8, wrap=[*nest, *run_it]) as inside:
            own = inside.wait_number("start")
            if own != outside.pid:
                raise Skip(f"the number inside is {own}, not {outside.pid}")
            pid = deepest(inside.pid)
            result = record("-p", pid, "-d", 0.6, "-o", scratch("collides.folded"))
            assert "of_somebody_else" not in str(folded(scratch("collides.folded"))), jit_line(result)
            print("  " + jit_line(result))


def jit_line(result):
    return next(line.strip() for line in result.err.splitlines() if "JIT code" in line)


if __name__ == "__main__":
    main(globals())
