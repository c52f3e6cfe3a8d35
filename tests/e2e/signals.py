#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""Every way of ending a recording from outside, and what is on the terminal meanwhile.

A Ctrl-C is a real one: sysprof runs on a pseudo-terminal that gets the character.
"""
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import time

import libe2e as e
from libconsumers import structure
from libe2e import (SANITIZED, SYSPROF, Background, fixture, folded, load_json, long, main, natively, need_root, run,
                    scratch, sysprof, wait_for)

LIMIT = 120
F_SETPIPE_SZ = 1031
count = 0


def directory():
    global count
    count += 1
    path = scratch(f"dir{count}")
    os.mkdir(path)
    return path


def state(pid):
    """R, S, T, Z… of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def is_alive(pid):
    """A shell that waits in vfork is in state D."""
    return state(pid) not in (None, "Z", "X")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def assert_complete(path, names=("x.json.gz", "x.folded", "x.sysprof"), samples=1):
    """The files are there, nothing else, whole, and of the same samples."""
    assert sorted(os.listdir(path)) == sorted(names), os.listdir(path)
    if "x.json.gz" in names:
        load_json(os.path.join(path, "x.json.gz"))
        total = sum(t.count for t in e.firefox_threads(os.path.join(path, "x.json.gz")))
        assert total >= samples, total
    if "x.folded" in names:
        total = sum(n for _, n in folded(os.path.join(path, "x.folded")))
        assert total >= samples, total
    if "x.sysprof" in names:
        result = sysprof("report", os.path.join(path, "x.sysprof"), check=0)
        # no warning: it has its end. Of the whole system there may be others' programs, which are not read as a whole
        warnings = [line for line in result.err.splitlines() if "lines are missing" not in line and "left out: " not in line]
        assert not any(line.startswith("sysprof:") for line in warnings), result


def outputs(path, names=("x.json.gz", "x.folded", "x.sysprof")):
    return [word for name in names for word in ("-o", os.path.join(path, name))]


def sampling(path, name="x.sysprof"):
    """Waits until there are samples."""
    e.wait_for_sampling(os.path.join(path, name))
    time.sleep(1)


# ---- signals to sysprof alone -------------------------------------------------------------------

def test_signals_end_it():
    """[C9] SIGINT, SIGTERM, SIGHUP, and time: complete files of every format, and the target notices nothing."""
    names = "x.json.gz", "x.folded", "x.cpuprofile", "x.trace.json", "x.pb.gz", "x.sysprof"
    need_root()
    with Background(fixture("chain"), "120") as target:
        # with the sanitizers it is memory that is looked at, and one handler has them all
        for number in (signal.SIGTERM, None) if SANITIZED else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None):
            path = directory()
            end = () if number else ("-d", "1")
            with Background(SYSPROF, "record", "-p", target.pid, *end, *outputs(path, names)) as recorder:
                sampling(path)
                if number:
                    recorder.signal(number)
                result = recorder.finish(timeout=LIMIT)
            assert result.status == 0, result
            assert_complete(path, names, samples=5)
            structure(*(os.path.join(path, name) for name in names if name != "x.sysprof"))
            before = cpu_seconds(target.pid)
            assert state(target.pid) in ("R", "D"), state(target.pid)
            wait_for(lambda: cpu_seconds(target.pid) > before, what="the target to run on")
        with open(f"/proc/{target.pid}/status", encoding="utf-8") as f:
            assert "TracerPid:\t0\n" in f.read()


def assert_only(path, names):
    assert set(os.listdir(path)) == set(names), os.listdir(path)


@natively
def test_nohup():
    """An ignored SIGHUP stays ignored; SIGINT works although a shell ignores it for its jobs."""
    need_root()
    path = directory()
    with Background(fixture("chain"), "120") as target, \
            Background("sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", SYSPROF, "record", "-p", target.pid,
                       *outputs(path)) as recorder:
        sampling(path)
        recorder.signal(signal.SIGHUP)
        time.sleep(0.5)
        assert recorder.p.poll() is None, recorder.finish()
        recorder.signal(signal.SIGINT)
        assert recorder.finish(timeout=LIMIT).status == 0
    assert_complete(path)


def test_signal_while_starting():
    """At any moment of the start: a complete set of files or none at all, never a hang. The whole system, and a process of it."""
    need_root()
    for i in range(8):
        path = directory()
        with Background(SYSPROF, "record", *(("-p", os.getpid()) if i % 2 else ("-a",)), *outputs(path)) as recorder:
            time.sleep(i * (0.1 if SANITIZED else 0.04))
            recorder.signal(signal.SIGINT)
            result = recorder.finish(timeout=LIMIT)
        assert result.status in (0, 1, -signal.SIGINT), result
        if result.status == 0:
            assert_complete(path, samples=0)
        else:
            assert_only(path, ())


@natively
def test_kill_ends_recording_not_command():
    """kill(1) means sysprof alone: files are written, COMMAND runs on, status 0."""
    need_root()
    for number in (signal.SIGTERM, signal.SIGINT):
        path = directory()
        with Background(SYSPROF, "record", *outputs(path), "--", "sh", "-c",
                        "echo $$; while :; do :; done") as recorder:
            pid = int(recorder.p.stdout.readline())
            sampling(path)
            recorder.signal(number)
            status = recorder.p.wait(timeout=LIMIT)
            alive = state(pid)
            os.kill(pid, signal.SIGKILL)
        assert status == 0 and alive == "R", (status, alive)
        assert_complete(path, samples=5)


# ---- the terminal -------------------------------------------------------------------------------

class Terminal:
    """sysprof on a terminal of its own, as the foreground job."""

    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(number, signal.SIG_DFL)
            os.execv(SYSPROF, [SYSPROF, *map(str, args)])
        self.text = ""
        self.status = None

    def read(self, seconds):
        """Takes what is printed for so long, or to the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # nobody has it open any more
                return
            if not data:
                return
            self.text += data.decode("utf-8", "replace")

    def ctrl_c(self):
        os.write(self.fd, b"\x03")

    def poll(self):
        if self.status is None and os.waitpid(self.pid, os.WNOHANG)[0]:
            raise AssertionError("use wait")
        return self.status

    def wait(self, timeout=LIMIT):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read(0.2)
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        raise AssertionError(f"still running after {timeout} s: {self.text}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def on_terminal(path, *args, until=sampling):
    terminal = Terminal("record", *outputs(path), *args)
    until(path)
    terminal.read(0.01)
    return terminal


@natively
def test_ctrl_c_ends_command():
    """COMMAND gets it too and dies of it, which is the status then."""
    need_root()
    path = directory()
    with on_terminal(path, "--", fixture("chain"), "60") as terminal:
        terminal.ctrl_c()
        assert terminal.wait() == 128 + signal.SIGINT, terminal.text
    assert_complete(path, samples=5)


@natively
def test_ctrl_c_waits_for_command():
    """COMMAND cleans up, which is recorded, and exits with a status of its own."""
    need_root()
    path = directory()
    script = (f"trap '{fixture('loop')} 1; exit 5' INT; "
              f"while :; do :; done")
    with on_terminal(path, "--", "sh", "-c", script) as terminal:
        terminal.ctrl_c()
        assert terminal.wait() == 5, terminal.text
    assert_complete(path, samples=5)
    cleaning = sum(n for frames, n in folded(os.path.join(path, "x.folded"))
                   if frames[0] == "loop")
    assert cleaning > 10, f"{cleaning} samples of what COMMAND did after the Ctrl-C"


def test_second_ctrl_c():
    """COMMAND ignores it: the first waits, the second gives up, and leaves no profile."""
    need_root()
    path = directory()
    script = "trap '' INT HUP; echo pid $$; while :; do sleep 0.1; done"
    with on_terminal(path, "--", "sh", "-c", script) as terminal:
        command = int(re.search(r"pid (\d+)", terminal.text)[1])
        try:
            terminal.ctrl_c()
            terminal.read(1)
            assert os.waitpid(terminal.pid, os.WNOHANG) == (0, 0), terminal.text
            terminal.ctrl_c()
            assert terminal.wait() == 1, terminal.text
            assert "aborted" in terminal.text, terminal.text
            assert is_alive(command), "COMMAND was killed"
        finally:
            os.kill(command, signal.SIGKILL)
    assert_only(path, {"x.sysprof"})  # which is valid after every chunk, so it stays
    sysprof("report", os.path.join(path, "x.sysprof"), check=0)


def wait_blocked(pid, what):
    """Until a process sleeps, having got so far."""
    wait_for(lambda: state(pid) == "S" and what(), LIMIT, f"{pid} to be blocked")
    time.sleep(0.3)


def end_of_recording(path):
    """The recording is closed before the other files are written."""
    def closed():
        result = sysprof("report", os.path.join(path, "x.sysprof"))
        return result.status == 0 and "no end" not in result.err
    return closed


@e.natively
@long
def test_second_signal_while_writing():
    """Blocked in writing the last of several files: the second signal leaves none of them."""
    need_root()
    for reader in (False, True):
        for second in (signal.SIGINT, signal.SIGTERM):
            path = directory()
            fifo = os.path.join(path, "fifo")
            os.mkfifo(fifo)
            if reader:  # there is one, but it does not read
                fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
                fcntl.fcntl(fd, F_SETPIPE_SZ, 4096)
            with Background(fixture("chain"), "120") as target, \
                    Background(SYSPROF, "record", "-p", target.pid, *outputs(path), "-o",
                               f"firefox:{fifo}") as recorder:
                sampling(path)
                recorder.signal(signal.SIGINT)
                wait_blocked(recorder.pid, end_of_recording(path))
                assert recorder.p.poll() is None, recorder.finish()
                recorder.signal(second)
                result = recorder.finish(timeout=60)
            if reader:
                os.close(fd)
            assert result.status == 1, result
            assert "aborted" in result.err, result
            assert_only(path, {"fifo", "x.sysprof"})
            assert_complete_recording(path)


def assert_complete_recording(path):
    result = sysprof("report", os.path.join(path, "x.sysprof"), check=0)
    assert "no end" not in result.err, result


def test_second_signal_while_recording_into_a_pipe():
    """Nobody reads the recording, or even opens the pipe: it can be given up all the same."""
    need_root()
    for reader in (False, True):
        path = directory()
        fifo = os.path.join(path, "fifo")
        os.mkfifo(fifo)
        if reader:
            fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        with Background(SYSPROF, "record", "-a", "-o", f"sysprof:{fifo}", "-o",
                        os.path.join(path, "x.json")) as recorder:
            time.sleep(1.5 if SANITIZED else 0.8)
            recorder.signal(signal.SIGINT)
            time.sleep(0.3)
            assert recorder.p.poll() is None, recorder.finish()
            recorder.signal(signal.SIGINT)
            result = recorder.finish(timeout=60)
        if reader:
            os.close(fd)
        assert result.status == 1 and "aborted" in result.err, result
        assert_only(path, {"fifo"})


# ---- stopped, and cut off -----------------------------------------------------------------------

@e.natively
@long
def test_stopped_for_five_seconds():
    """The collector stands still: the file is complete, and every tick is in the books."""
    need_root()
    path = directory()
    with Background(fixture("deep"), "250", "120") as target:
        before = cpu_seconds(target.pid)
        with Background(SYSPROF, "record", "-p", target.pid, "-F", "4999",
                        *outputs(path)) as recorder:
            sampling(path)
            recorder.signal(signal.SIGSTOP)
            time.sleep(5)
            recorder.signal(signal.SIGCONT)
            time.sleep(0.5)
            recorder.signal(signal.SIGINT)
            result = recorder.finish(timeout=LIMIT, check=0)
        used = cpu_seconds(target.pid) - before
    assert_complete(path, samples=5)
    lost = int(re.search(r"lost: (\d+)", result.err)[1])
    assert lost > 0 and "ring-full" in result.err, result
    assert "unexplained" not in result.err, result
    kept = sum(n for _, n in folded(os.path.join(path, "x.folded")))
    # lost ticks are counted for the CPU, so those of other programs are among them
    assert kept + lost > 0.7 * used * 4999, (kept, lost, used)


def check_closed_pipe(pid, close_early):
    path = directory()
    with subprocess.Popen([SYSPROF, "record", "-p", str(pid), "-F", "4999", "-d", "0.5", "-o", "firefox:-",
                           "-o", os.path.join(path, "x.folded")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        fcntl.fcntl(p.stdout.fileno(), F_SETPIPE_SZ, 4096)
        if not close_early:
            p.stdout.read(10)
        p.stdout.close()
        err = p.stderr.read().decode()
        status = p.wait(timeout=LIMIT)
    assert status == 1 and "cannot write -: Broken pipe" in err, (status, err)
    assert_only(path, ())


def test_closed_pipe():
    """The reader goes away: an error of ours, no death by signal, and the other files are gone."""
    need_root()
    # a profile of few samples might fit into the pipe
    with Background(fixture("chain"), "-t", "4", "100") as target:
        for close_early in (True, False):
            check_closed_pipe(target.pid, close_early)


def test_head():
    need_root()
    with Background(fixture("chain"), "100") as target:
        text = run("bash", "-c", f"{SYSPROF} record -p {target.pid} -d 0.5 -o folded:- | head -n 1; "
                   "echo ${PIPESTATUS[0]}", check=0, cwd=directory()).out.splitlines()
    assert re.fullmatch(r".+ \d+", text[0]), text
    assert text[1] in ("0", "1"), text


# ---- what is shown ------------------------------------------------------------------------------

@e.quick
@natively
def test_status_line():
    """And the Ctrl-C behind it ends sysprof, not its target."""
    need_root()
    path = directory()
    with Background(fixture("chain"), "120") as target:
        with on_terminal(path, "-p", target.pid) as terminal:
            terminal.read(1.2)
            terminal.ctrl_c()
            assert terminal.wait() == 0, terminal.text
        assert state(target.pid) in ("R", "D")
    assert_complete(path, samples=5)
    lines = re.findall(r"\r\x1b\[K([^\r]*)", terminal.text)
    status = [re.fullmatch(r"(\d+\.\d) s · (\d+) samples · (\d+) threads? · (\d+) lost · "
                           r"own CPU (\d+\.\d\d) s.*", line) for line in lines]
    status = [m for m in status if m]
    assert len(status) >= 5, terminal.text
    assert float(status[-1][1]) > 1 and int(status[-1][2]) > 5, terminal.text
    assert int(status[-1][3]) >= 1, terminal.text
    assert all(float(a[1]) <= float(b[1]) and int(a[2]) <= int(b[2])
               for a, b in zip(status, status[1:])), terminal.text
    # the line is gone when the summary comes
    assert re.search(r"\r\x1b\[Ksysprof: \d+ samples of \d+ threads?", terminal.text), terminal.text


def test_quiet():
    need_root()
    path = directory()
    args = ("record", "-q", *outputs(path), "-d", "0.6", "--", fixture("chain"), "60")
    with Terminal(*args) as terminal:
        assert terminal.wait() == 0, terminal.text
    os.kill(int(re.search(r"pid (\d+)", terminal.text)[1]), signal.SIGKILL)
    assert re.fullmatch(r"pid \d+\r\nstart \d+\r\n", terminal.text), repr(terminal.text)
    result = sysprof("record", "-q", "-p", 4194303, "-d", "1", check=1)
    assert "4194303" in result.err, result


def test_without_terminal():
    """The summary, and nothing that belongs on a terminal only."""
    need_root()
    path = directory()
    result = sysprof("record", "-a", "-d", "1", *outputs(path), check=0)
    assert not result.out, result
    assert "\r" not in result.err and "\x1b" not in result.err, repr(result.err)
    lines = result.err.splitlines()
    assert re.fullmatch(r"sysprof: \d+ samples of \d+ threads?", lines[0]), result
    for pattern in (r"  lost: \d+", r"  complete stacks: [\d.]+ %",
                    r"  sysprof itself: .* s CPU .* MB peak memory.*"):
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, result)
    for name in ("x.json.gz", "x.folded", "x.sysprof"):
        i = lines.index(f"  wrote {path}/{name}")
        assert lines[i + 1].startswith("    ") and f"{path}/{name}" in lines[i + 1], result


if __name__ == "__main__":
    main(globals())
