#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside whole
"""What each child process of sysprof may do, as /proc shows it, in recordings of every kind, compared with the table of
classes in helper_classes.json.

A child of no class fails the test, one that has worked without being what its class says, and one that was it and is so no
longer; so does a class of which no child was seen.

It is of no use with the sanitizers. A build with them has no system call filters and its limits of memory are above what the
sanitizer reserves; its helpers keep standard error for the reports (tenants/child.c), and the sanitizer searches leaks in a
process of its own.
"""
import os
import shutil
import signal
import time

from libchildren import Watch, classes
from libe2e import (SCRATCH, SYSPROF, Background, Fixture, as_user, fixture, main, need_root, run, scratch,
                    started_sampling, wait_for, write)
from libperf import perf_data

NOBODY, JIT_USER, JVM_USER = 65534, 23461, 23462
TRIES = 60  # of a recording, until each class was seen that it is to show: some live for a millisecond
# A process is a JVM if it has mapped a file of that name. This one never listens: a request to it lasts a second.
JVM = "#include <signal.h>\nstatic void nothing(int n) { (void)n; }\n" \
      "__attribute__((constructor)) static void begin(void) { signal(SIGQUIT, nothing); }\n"
os.environ.update(SUDO_UID=str(NOBODY), SUDO_GID=str(NOBODY))
for name in "DISPLAY", "WAYLAND_DISPLAY", "BROWSER":
    os.environ.pop(name, None)
seen = {}


def watched(session, wanted):
    """A session is repeated until its children of the classes that are wanted were seen as such."""
    missing, tries = set(wanted), 0
    while missing and tries < TRIES:
        tries += 1
        watch = session()
        watch.check()
        for name, count in watch.seen.items():
            seen[name] = seen.get(name, 0) + count
        missing -= set(watch.seen)
        print(f"  {watch.polls} polls: {watch.seen}", flush=True)
    assert not missing, f"not seen in {tries} tries: {missing}; of no class: {watch.never_known()}"


def all_known(watch):
    """Whoever lives is what its class says, soon."""
    end = time.monotonic() + 60
    while watch.strangers() and time.monotonic() < end:
        time.sleep(0.05)
    assert not watch.strangers(), f"not what their classes say: {watch.strangers()}"


def recorded(*args, targets=(), during=lambda recorder, watch: None, timeout=60, options=()):
    """`sysprof record`, watched from its beginning to its end."""
    out = scratch("watched.sysprof")
    if os.path.exists(out):
        os.unlink(out)
    with Background(*options, SYSPROF, "record", "-q", "--no-symbol-cache", "-o", out, *args) as recorder:
        with Watch(recorder.pid, targets) as watch:
            started_sampling(recorder, out)
            during(recorder, watch)
            result = recorder.finish(timeout=timeout)
            assert result.status == 0, result
    return watch


def test_a_command():
    """Keepers, readers, builders and COMMAND from the beginning, at the end the finder and sandboxed readers."""
    need_root()
    watched(lambda: recorded("-o", scratch("command.json"), "--", fixture("inlined"), "1.5", fixture("libinlined.so"),
                             during=lambda recorder, watch: all_known(watch)),
            ("keeper of readers", "reader", "JIT keeper", "keeper of builders", "builder that waits", "builder", "file finder",
             "keeper of sandboxed readers", "sandboxed reader", "COMMAND"))


def test_the_whole_system():
    """A watcher for each user of JIT code, one of which belongs to a process that looks like a JVM."""
    need_root()
    source, library = scratch("jvm.c"), scratch("libjvm.so")
    write(source, JVM)
    run("cc", "-shared", "-fPIC", "-o", library, source, check=0)
    os.chmod(SCRATCH, 0o755)

    def session():
        with Fixture("jitreuse", "-p", 100, "-n", 1, 60, wrap=as_user(JIT_USER)) as plain, \
                Fixture("jitreuse", "-p", 100, "-n", 1, 60,
                        wrap=[*as_user(JVM_USER), "env", f"LD_PRELOAD={library}"]) as jvm:
            plain.wait_facts("start"), jvm.wait_facts("start")

            def during(recorder, watch):
                end = time.monotonic() + 25
                while "JVM client" not in watch.seen and time.monotonic() < end:
                    time.sleep(0.05)
                all_known(watch)
                recorder.signal(signal.SIGINT)

            return recorded("-a", "--jvm-perfmap", "-d", "30", "-o", scratch("system.json"), during=during,
                            targets=[(user, user) for user in (JIT_USER, JVM_USER)])

    watched(session, ("keeper of readers", "reader", "JIT keeper", "JIT watcher", "JVM client", "keeper of builders",
                      "builder that waits", "builder", "file finder", "keeper of sandboxed readers", "sandboxed reader"))


def test_an_agent():
    """Windows: the finder stays, sandboxed readers end."""
    need_root()
    out = scratch("out")

    def session():
        os.makedirs(out, exist_ok=True)
        for name in os.listdir(out):
            os.unlink(os.path.join(out, name))
        with Fixture("duty", "100", "10"), \
                Background(SYSPROF, "agent", "--sink", f"dir:{out}", "--spool", scratch("spool"), "--listen", "none",
                           "--window", "10", "--memory", "0") as agent:
            with Watch(agent.pid) as watch:
                wait_for(lambda: len([n for n in os.listdir(out) if n.endswith(".json")]) >= 2, what="two windows")
                all_known(watch)
                agent.signal(signal.SIGTERM)
                result = agent.finish()
                assert result.status == 0, result
        return watch

    watched(session, ("keeper of readers", "reader", "JIT keeper", "keeper of builders", "builder that waits", "builder",
                      "file finder", "keeper of sandboxed readers", "sandboxed reader"))


def cut_recording():
    """One without symbols, as of a sysprof that was killed."""
    path = scratch("cut.sysprof")
    if not os.path.exists(path):
        with Fixture("inlined", "100", fixture("libinlined.so")) as target, \
                Background(SYSPROF, "record", "-q", "-p", target.pid, "-o", path) as recorder:
            started_sampling(recorder, path)
            time.sleep(1)
            recorder.signal(signal.SIGKILL)
            recorder.finish()
    return path


def replayed(*command, user=()):
    with Background(*user, SYSPROF, *command, env={**os.environ, "DEBUGINFOD_URLS": "http://127.0.0.1:9", "XDG_CACHE_HOME": scratch("cache")}) as program:
        wait_for(lambda: program.p.poll() is not None or os.readlink(f"/proc/{program.pid}/exe") == os.path.realpath(SYSPROF),
                 10, "exec")
        with Watch(program.pid) as watch:
            result = program.finish()
            assert result.status in (0, 3), result
    return watch


def test_recordings_without_symbols():
    """convert and report read the debug files themselves."""
    need_root()
    path = cut_recording()
    watched(lambda: replayed("convert", "--no-symbol-cache", path, "-o", scratch("cut.json")), ("file finder", "sandboxed reader"))
    watched(lambda: replayed("convert", "--no-symbol-cache", "--debuginfod", path, "-o", scratch("cut.json")),
            ("file finder with --debuginfod", "sandboxed reader"))

    def reported():
        shutil.rmtree(scratch("cache"), ignore_errors=True)
        return replayed("report", path)

    watched(reported, ("file finder",))


def test_a_user_who_is_not_root():
    """Without privileges there is no other user to become and no root directory to enter; the rest is the same."""
    need_root()
    os.chmod(cut_recording(), 0o644)
    os.chmod(SCRATCH, 0o755)
    watched(lambda: replayed("convert", "--no-symbol-cache", cut_recording(), "-o", "folded:-", user=as_user(NOBODY)),
            ("file finder", "sandboxed reader"))


def test_perf_data():
    """The process that reads a file of perf."""
    need_root()
    path = perf_data(scratch("samples.data"), 1000000)
    os.chmod(path, 0o644)
    os.chmod(SCRATCH, 0o755)
    watched(lambda: replayed("report", path), ("reader of perf.data",))
    watched(lambda: replayed("report", path, user=as_user(NOBODY)), ("reader of perf.data",))


def test_a_server():
    """record --open: the server is its caller's, not root's."""
    need_root()

    def during(recorder, watch):
        wait_for(lambda: "server" in watch.seen or watch.failures or recorder.p.poll() is not None, what="a server")
        all_known(watch)
        recorder.signal(signal.SIGINT)

    watched(lambda: recorded("--open", "-d", "0.5", "-a", during=during), ("server", "reader"))


def test_check():
    """The readers of `sysprof check -p`."""
    need_root()

    def session():
        with Fixture("inlined", "100") as target, Background(SYSPROF, "check", "-p", target.pid) as program:
            with Watch(program.pid) as watch:
                program.finish()
        return watch

    watched(session, ("keeper of readers", "reader"))


def test_visits():
    """The process that visits threads for --wall has no rights but to run its two programs."""
    need_root()
    watched(lambda: recorded("--wall", "-d", "1", "-a", during=lambda recorder, watch: all_known(watch)), ("visitor",))


def test_every_class_was_seen():
    """Behind all the others."""
    need_root()
    missing = set(classes()) - set(seen)
    assert not missing, f"no child was seen of {missing}"


if __name__ == "__main__":
    main(globals())
