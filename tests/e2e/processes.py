#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long sanitized
"""Processes as they were at the time: mappings, names, lives and files that come and go."""
import os
import re
import shutil
import signal
import sys

from libe2e import (SCRATCH, SYSPROF, TOP, Background, Facts, Fixture, Skip, alone, assert_sample_count, comms,
                    firefox_threads, fixture, folded, has_chain, kernel_part, long, lost_in, main, natively, read,
                    record, record_cpu, run, scratch, share, started_sampling, total, user_part, write)
from librecorded import recorded

CHAIN = ("outer", "middle", "inner", "leaf")
SLACK_NS = 2_000_000
CLOCKS_NS = 100_000  # by which the times of a sample and of the program may differ
def compiled(name, source, *flags):
    """A program of the test's own, with frame pointers like the fixtures."""
    path = scratch(name)
    write(path + ".c", source)
    run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls", "-I", os.path.join(TOP, "tests/fixtures"), "-o", path,
        path + ".c", *flags, "-lpthread", check=0)
    return path


def copied(name, target):
    path = scratch(target)
    shutil.copy(fixture(name), path)
    return path


def is_exec(frames):
    """In the middle of exec: the program of before has gone, the next one is not there yet."""
    return any("execve" in f or "bprm_" in f for f in kernel_part(frames))


def assert_known(rows):
    """Every sample was taken in a function that has a name."""
    bad = [(frames, count) for frames, count in rows
           if user_part(frames)[-1:] == ["[unknown]"] and not is_exec(frames)]
    assert not bad, bad


def assert_chain(rows, at_least=20):
    rows = [(frames, count) for frames, count in rows if not kernel_part(frames)]
    assert total(rows) >= at_least, rows
    assert share(rows, lambda f: has_chain(f, *CHAIN)) >= 0.95, rows


# ---- mappings -----------------------------------------------------------------------------------

def test_libraries_in_turns_at_one_address():
    path = scratch("dl.json.gz")
    reported = Facts(record("-g", "fp", "-o", path, "--", fixture("dl"), "50", "1.5").out)
    turns = [(row[0], *map(int, row[1:4])) for row in reported.all("turn")]
    assert len(turns) >= 6 and reported.number("addresses") < len(turns), "no address was reused"
    thread = max(firefox_threads(path), key=lambda t: t.count)  # not what it was before exec
    seen = {"libdl_one": 0, "libdl_two": 0}
    for when, frames in thread.samples():
        turn = next((t for t in turns if t[1] <= when <= t[2]), None)
        for name, library in frames:
            owner = {"libdl_one_spin": "libdl_one", "one_inner": "libdl_one",
                     "libdl_two_spin": "libdl_two", "two_inner": "libdl_two"}.get(name)
            assert not owner or os.path.basename(library) == owner + ".so", (name, library)
            if owner:
                assert any(t[0] == owner and t[1] - CLOCKS_NS <= when <= t[2] + CLOCKS_NS
                           for t in turns), f"{name} at {when}: {turns}"
        if turn and turn[1] + SLACK_NS <= when <= turn[2] - SLACK_NS:
            names = [name for name, _ in frames]
            assert turn[0] + "_spin" in names, (turn, frames)
            seen[turn[0]] += 1
    for library, samples in seen.items():
        cpu = sum(t[3] for t in turns if t[0] == library)
        edges = 2 * 2 * len(turns)  # ms left out above
        assert_sample_count(samples, cpu, lost_in(path) + edges, library)


def test_fork_takes_its_mappings_along():
    path = scratch("fork.folded")
    record("-o", path, "--", fixture("storm"), "-n", "fork", "40", "10000", scratch("log"))
    rows = folded(path)
    assert_known(rows)
    children = [row for row in rows if row[0][0].startswith("storm-")]
    assert len(comms(children)) == 40, comms(children)
    # between main and live are functions that the compiler inlined
    assert share(children, lambda f: "main" in f and (has_chain(f, "live", "burn_cpu")
                 or has_chain(f, "live", "clock_gettime"))) >= 0.9, children


GENERATIONS = """
#include "fixture.h"
#include <sys/prctl.h>
static noinline uint64_t generation_work(void)
{
	uint64_t x = 1, end = thread_cpu_ns() + 4000000;
	while (thread_cpu_ns() < end)
		x = work_a_little(x);
	return x;
}
static noinline void generations(int count)
{
	char name[16];

	for (int number = 1;; number++) {
		snprintf(name, sizeof(name), "generation-%d", number);
		prctl(PR_SET_NAME, name);
		pin_to_cpu((number / 2) % sysconf(_SC_NPROCESSORS_ONLN));
		generation_work();
		barrier();
		if (number == count || fork())
			_exit(0);
	}
}
int main(int argc, char **argv)
{
	int ends[2];
	char byte;

	if (pipe(ends))
		return 1;
	if (!fork()) {
		close(ends[0]);
		generations(atoi(argv[1]));
	}
	close(ends[1]);
	return read(ends[0], &byte, 1) != 0; /* until the last one has gone */
}
"""


def test_generations_on_alternating_cpus():
    """Each process ends once it has a child, on another CPU half of the time: the records that
    make a process known lie in different rings than those of its parent."""
    path, count = scratch("generations.folded"), 150
    record("-o", path, "--", compiled("generations", GENERATIONS), count)
    rows = folded(path)
    assert_known(rows)
    seen = set(comms(rows))
    assert len({f"generation-{i + 1}" for i in range(count)} & seen) >= 0.95 * count, seen
    working = [row for row in rows if "generation_work" in row[0] and not kernel_part(row[0])]
    assert total(working) >= count, rows
    assert share(working, lambda f: has_chain(f, "main", "generations", "generation_work")) == 1


BEFORE = """
#include "fixture.h"
#include <pthread.h>
static char **next;
static noinline uint64_t before_exec(uint64_t t) { return work_for(t); }
static void *go(void *unused)
{
	before_exec(200000000);
	fact("exec %llu", (unsigned long long)now_ns());
	execv(next[0], next);
	die(1, "exec");
}
int main(int argc, char **argv)
{
	pthread_t thread;

	next = argv + 2;
	if (*argv[1] == 'm')
		go(NULL);
	pthread_create(&thread, NULL, go, NULL);
	pthread_join(thread, NULL);
}
"""

AFTER = """
#include "fixture.h"
static noinline uint64_t after_exec(uint64_t t) { return work_for(t); }
int main(void) { uint64_t x = after_exec(200000000); barrier(); return x == 1; }
"""


def test_exec_replaces_name_and_mappings():
    """Both programs lie at the same addresses; a thread that execs becomes the process."""
    before, after = compiled("before", BEFORE, "-no-pie"), compiled("after", AFTER, "-no-pie")
    for who in "main", "thread":
        path, firefox = scratch("exec.folded"), scratch("exec.json.gz")
        reported = Facts(record("-o", path, "-o", firefox, "--", before, who, after).out)
        rows = folded(path)
        assert_known(rows)
        assert set(comms(rows)) == {"before", "after"}, comms(rows)
        for frames, count in rows:
            assert ("before_exec" not in frames or frames[0] == "before"), frames
            assert ("after_exec" not in frames or frames[0] == "after"), frames
        for name in "before", "after":
            own = [row for row in rows if row[0][0] == name]
            assert total(own) >= 20 and share(own, lambda f: name + "_exec" in f) >= 0.9, own
        when_exec, pids = reported.number("exec"), set()
        for thread in firefox_threads(firefox):
            pids.add(thread.pid)
            for when, frames in thread.samples():
                for name, library in frames:
                    if name == "before_exec":
                        assert library == before and when <= when_exec + SLACK_NS
                    if name == "after_exec":
                        assert library == after and when >= when_exec - SLACK_NS
                        assert thread.tid == thread.pid
        assert len(pids) == 1, pids


# ---- names --------------------------------------------------------------------------------------

@natively
def test_names_at_the_time():
    path, firefox = scratch("rename.folded"), scratch("rename.json.gz")
    reported = Facts(record("-o", path, "-o", firefox, "--", fixture("rename"), "0.15").out)
    rows, missing = folded(path), lost_in(firefox)
    # control bytes and what is no UTF-8 is escaped; ; and line ends would be separators
    names = ["name-one", "name-two", "new line", "quo\"te", "back\\slash", "\\xff\\xfe\\x80 bad",
             "semi:colon 7", "esc\\x1b[31mred", "café", "cut-in-a-chara\\xc3"]
    phases = reported.all("phase")
    assert len(phases) == len(names)
    assert set(comms(rows)) <= {"rename", *names}, comms(rows)
    for name, (_, function, _, _, cpu) in zip(names, phases):
        own = [row for row in rows if row[0][0] == name]
        assert_sample_count(total(own), int(cpu), missing, name)
        other = {"f_one": "f_two", "f_two": "f_one"}[function]
        # a timer that was due before the name was changed
        assert sum(count for frames, count in own if other in frames) <= 1, own
        assert share(own, lambda f: function in f) >= 0.9, own


BRIEF = """
#include "fixture.h"
static noinline uint64_t brief_work(void)
{
	uint64_t x = 1;
	while (thread_cpu_ns() < 10000000)
		x = work_a_little(x);
	return x;
}
int main(void) { uint64_t x = brief_work(); barrier(); return x == 7; }
"""


def new_briefs(directory, count):
    """Programs, each with a name, a build-id and a function of its own, and a script that runs
    them one after the other."""
    build_id = bytes(range(7, 27))
    program = compiled("brief", BRIEF, "-Wl,--build-id=0x" + build_id.hex())
    image = read(program, "rb")
    assert image.count(build_id) == 1 and b"brief_work" in image
    os.mkdir(directory)
    for i in range(count):
        write(f"{directory}/brief-{i}", image.replace(build_id, i.to_bytes(20, "big")).replace(b"brief_work",
                                                                       b"work_%05d" % i))
        os.chmod(f"{directory}/brief-{i}", 0o755)
    return f"i=0; while [ $i -lt {count} ]; do {directory}/brief-$i; i=$((i+1)); done"


WORK = re.compile(r"work_\d{5}")  # the kernel has others


def assert_briefs(directory, rows, firefox, count):
    """All that was sampled is known, by name, function and file."""
    assert_known(rows)
    seen = comms(rows)
    assert len(seen) >= 0.99 * count, f"{len(seen)} of {count} were sampled"
    for frames, _ in rows:
        own = f"work_{int(frames[0][6:]):05}" if frames[0].startswith("brief-") else None
        assert all(f == own for f in frames if WORK.fullmatch(f)), frames
    briefs = [row for row in rows if row[0][0].startswith("brief-")]
    assert share(briefs, lambda f: any(WORK.fullmatch(x) for x in f)) >= 0.5, briefs
    for thread in firefox_threads(firefox):
        for _, frames in thread.samples():
            for name, library in frames:
                if WORK.fullmatch(name):
                    assert thread.process == thread.name == f"brief-{int(name[5:])}", name
                    assert library == f"{directory}/{thread.process}", (library, thread.process)


@alone
@natively
def test_processes_of_10_ms():
    count, directory = 300, scratch("briefs")
    script = new_briefs(directory, count)
    path, firefox = scratch("brief.folded"), scratch("brief.json.gz")
    record("-o", path, "-o", firefox, "--", "/bin/sh", "-c", script)
    rows = folded(path)
    assert set(comms(rows)) <= {"sh"} | {f"brief-{i}" for i in range(count)}, comms(rows)
    assert_briefs(directory, rows, firefox, count)


@long
@alone
@natively
def test_processes_of_10_ms_in_the_whole_system():
    count, directory = 100, scratch("system-briefs")
    script = new_briefs(directory, count)
    path, firefox, recording = (scratch(f"system.{s}") for s in ("folded", "json.gz", "sysprof"))
    with Background(SYSPROF, "record", "-a", "-F", "999", "-o", path, "-o", firefox, "-o",
                    recording) as recorder:
        started_sampling(recorder, recording)
        run("/bin/sh", "-c", script, check=0)
        recorder.signal(signal.SIGINT)
        recorder.finish(check=0)
    rows = [row for row in folded(path) if row[0][0].startswith("brief-")]
    assert_briefs(directory, rows, firefox, count)


# ---- files --------------------------------------------------------------------------------------


def test_binary_deleted_or_replaced():
    """By another program, whose symbols lie elsewhere; before and while we record. And one whose name ends as if it was deleted."""
    path = scratch("binary.folded")
    for name, change in (("to-delete", os.unlink), ("to-replace", lambda path: os.rename(copied("storm", "replacement"), path)),
                         ("app (deleted)", lambda path: None)):
        binary = copied("chain", name)
        with Fixture(binary, "30") as chain:
            chain.wait_facts("start")
            change(binary)
            record_cpu(chain.pid, 0.5, "-p", chain.pid, "-o", path)
        assert_chain(folded(path))
        assert comms(folded(path)).keys() == {name}
    record("-o", path, "--", binary, "0.5")
    assert_chain(folded(path))

    binary = copied("chain", "to-replace-2")
    script = (f"{binary} 0.9 & sleep 0.4; mv {copied('storm', 'replacement')} {binary}; wait; "
              f"exec {binary} fork 20 10000 {scratch('log')}")
    record("-o", path, "--", "/bin/sh", "-c", script)
    rows = [row for row in folded(path) if row[0][0].startswith("to-replace-2")]
    assert_known(rows)
    assert total([row for row in rows if has_chain(row[0], *CHAIN)]) >= 20, rows
    assert total([row for row in rows if "burn_cpu" in row[0]]) >= 20, rows
    for frames, _ in rows:
        assert len({"leaf", "burn_cpu"} & set(frames)) < 2, frames


def test_binary_deleted_and_process_gone_at_the_end():
    path, binary = scratch("gone.folded"), copied("chain", "goes")
    script = f"{binary} 0.9 & sleep 0.4; rm {binary}; wait; {fixture('loop')} 0.3"
    record("-o", path, "--", "/bin/sh", "-c", script)
    assert_chain([row for row in folded(path) if row[0][0] == "goes"])


def test_binary_without_a_path():
    """A program in a memfd: only the process itself has it."""
    script = scratch("memfd.py")
    write(script, "import os, sys\nfd = os.memfd_create('program', 0)\n"
            f"os.write(fd, open({fixture('chain')!r}, 'rb').read())\n"
            "os.execv(f'/proc/self/fd/{fd}', ['chain', sys.argv[1]])\n")
    path = scratch("memfd.folded")
    record("-o", path, "--", sys.executable, script, "0.6")
    rows = [row for row in folded(path) if "leaf" in row[0]]
    assert_chain(rows)


# ---- lives --------------------------------------------------------------------------------------

def test_two_lives_with_one_number():
    if not os.path.exists("/proc/sys/kernel/ns_last_pid"):
        raise Skip("this kernel has no ns_last_pid (CONFIG_CHECKPOINT_RESTORE)")
    for kind in "process", "thread":
        path, stacks = scratch("reuse.json.gz"), scratch("reuse.folded")
        result = record("-o", path, "-o", stacks, "--", fixture("reuse"), kind, "0.4", check=None)
        if result.status == 3:
            raise Skip(f"no number could be used again: {result.err}")
        assert result.status == 0, result
        lives = Facts(result.out).all("life")
        assert len(lives) == 2 and lives[0][2] == lives[1][2], lives
        for frames, _ in folded(stacks):
            assert ("f_first" not in frames or frames[0] == "first-life"), frames
            assert ("f_second" not in frames or frames[0] == "second-life"), frames
        tid, seen = int(lives[0][2]), {}
        for thread in firefox_threads(path):
            functions = thread.functions()
            if thread.tid == tid:
                both = {"f_first", "f_second"} & set(functions)
                assert len(both) <= 1, f"two lives in one track: {functions}"
                if both:
                    assert not seen.get(min(both)), "one life in two tracks"
                    seen[min(both)] = thread
        for life, function in zip(lives, ("f_first", "f_second")):
            assert function in seen, (kind, seen)
            thread, cpu = seen[function], int(life[5])
            assert thread.name == life[0], (thread.name, life)
            assert_sample_count(thread.functions()[function], cpu, lost_in(path), function)
            assert abs(thread.cpu_ns - cpu) <= 0.01 * cpu + 2_000_000, (thread.cpu_ns, cpu)


STRANGER = """
"$2" 60 >"$5" & target=$!
"$3" read 60 >"$5" & other=$!
rm -f "$4.sysprof"
"$1" record -p $target,$other -d 6 -q -o "$4" -o "$4.sysprof" & recorder=$!
until "$1" report "$4.sysprof" 2>&1 | grep -q leaf; do sleep 0.1; done
kill -9 $target; wait $target
i=0
while [ $i -lt 50 ]; do
	echo $((target - 1)) >/proc/sys/kernel/ns_last_pid
	"$6" 60 >"$5" & stranger=$!
	[ $stranger -eq $target ] && break
	kill $stranger; wait $stranger; i=$((i + 1))
done
wait $recorder; status=$?
kill $stranger $other
[ $stranger -eq $target ] || exit 3
echo target $target
exit $status
"""


@natively
@long
def test_stranger_with_the_number_of_a_target():
    """It has ended, while another target goes on: a process that gets its number is no target."""
    if not os.path.exists("/proc/sys/kernel/ns_last_pid"):
        raise Skip("this kernel has no ns_last_pid (CONFIG_CHECKPOINT_RESTORE)")
    for wrap in [], ["unshare", "-p", "-f", "--kill-child", "--mount-proc"]:
        path = scratch("stranger.json.gz")
        result = run(*wrap, "/bin/sh", "-c", STRANGER, "sh", SYSPROF, fixture("chain"),
                     fixture("kstack"), path, scratch("facts"), fixture("loop"))
        if result.status == 3:
            raise Skip("no number could be used again")
        assert result.status == 0, result
        target, seen = Facts(result.out).number("target"), {}
        for thread in firefox_threads(path):
            seen.setdefault(thread.pid, set()).update(thread.functions())
        assert "leaf" in seen[target], seen
        assert not any("count_iterations" in functions for functions in seen.values()), seen
        assert len(seen) == 2, seen


def test_leader_that_exits_first():
    path = scratch("leader.json.gz")
    reported = Facts(record("-o", path, "--", fixture("exits_leader"), "0.6").out)
    tids = {int(row[0]) for row in reported.all("tid")}
    seen = {t.tid: t for t in firefox_threads(path) if t.count >= 20}
    assert set(seen) == tids, seen
    for thread in seen.values():
        assert thread.pid == reported.number("pid") and thread.process == "exits_leader"
        assert thread.functions()["others_go_on"] >= 0.9 * thread.count

    with Fixture("exits_leader", "30") as target:  # and when we come, it has gone already
        tids = {int(row[0]) for row in target.wait_facts("tid", 2)}
        target.wait_facts("leader_exits")
        record_cpu(target.pid, 1, "-p", target.pid, "-o", path)
    seen = {t.tid: t for t in firefox_threads(path) if t.count >= 20}
    assert set(seen) == tids, seen
    for thread in seen.values():
        assert thread.functions().get("others_go_on", 0) >= 0.9 * thread.count, thread.functions()


LATE = """
#include "fixture.h"
#include <dlfcn.h>
#include <pthread.h>
static const char *library;
static void *late(void *unused)
{
	uint64_t (*spin)(uint64_t);

	usleep(5000000);
	spin = (uint64_t (*)(uint64_t))dlsym(dlopen(library, RTLD_NOW), "libdl_one_spin");
	if (!fork()) {
		spin(now_ns() + 400000000);
		_exit(0);
	}
	spin(now_ns() + 400000000);
	usleep(300000);
	exit(0);
}
int main(int argc, char **argv)
{
	pthread_t thread;

	library = argv[1];
	fact("pid %d", getpid());
	pthread_create(&thread, NULL, late, NULL);
	pthread_exit(NULL);
}
"""


def test_leader_that_exited_long_ago():
    """What its process maps and forks then is known all the same."""
    path, program = scratch("late.folded"), compiled("late", LATE, "-ldl")
    # others come and go meanwhile
    with Background("sh", "-c", "while :; do sleep 0.1; /bin/true; done"), \
            Fixture(program, fixture("libdl_one.so")) as target:
        target.wait_facts("pid")
        record("-p", target.pid, "-o", path, "-o", scratch("late.json.gz"))
    assert_known(folded(path))
    spinning = {t.pid for t in firefox_threads(scratch("late.json.gz"))
                if t.functions().get("one_inner", 0) >= 20}
    assert len(spinning) == 2 and target.pid in spinning, folded(path)


SPAWN = """
#include "fixture.h"
#include <spawn.h>
#include <sys/wait.h>
int main(int argc, char **argv)
{
	int vforks = *argv[1] == 'v';
	pid_t pid;

	if (vforks) {
		pid = vfork();
		if (!pid) {
			execv(argv[2], argv + 2);
			_exit(1);
		}
	} else if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, NULL)) {
		return 1;
	}
	fact("child %d", pid);
	return waitpid(pid, NULL, 0) != pid;
}
"""


def test_vfork_and_posix_spawn():
    program = compiled("spawn", SPAWN)
    for how in "vfork", "spawn":
        path, firefox = scratch("spawn.folded"), scratch("spawn.json.gz")
        reported = Facts(record("-o", path, "-o", firefox, "--", program, how, fixture("chain"),
                            "0.5").out)
        rows = folded(path)
        assert_known(rows)
        assert_chain([row for row in rows if row[0][0] == "chain"])
        # before it execs a child of vfork is its parent once more, in a track of its own
        (child,) = [t for t in firefox_threads(firefox) if t.tid == reported.number("child")
                    and t.process == "chain"]
        assert child.functions()["leaf"] >= 20
        parent = [row for row in rows if row[0][0] == "spawn"]
        assert not [row for row in parent if "leaf" in row[0]], parent


def test_setuid_exec():
    """Counters that belong to a task vanish when it executes a set-user-ID program."""
    path, binary = scratch("setuid.folded"), copied("chain", "suid-chain")
    os.chmod(binary, 0o4755)
    if os.statvfs(SCRATCH).f_flag & os.ST_NOSUID:
        raise Skip(f"{SCRATCH} is mounted nosuid")
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with Fixture("/bin/sh", "-c", f"echo ready 1; sleep 1.5; exec {binary} 1.2",
                 wrap=as_nobody) as shell:
        shell.wait_facts("ready")
        with Background(SYSPROF, "record", "-p", shell.pid, "-o", path) as recorder:
            shell.wait_facts("start")
            ids = next(line for line in read(f"/proc/{shell.pid}/status").splitlines() if line.startswith("Uid:")).split()
            assert ids[1:3] == ["65534", "0"], ids
            shell.finish(check=0)
            recorder.finish(check=0)
    rows = [row for row in folded(path) if row[0][0] == "suid-chain"]
    assert_known(rows)
    assert_chain(rows)


# ---- real programs ------------------------------------------------------------------------------

def assert_real(name, key, process, *libraries):
    """Of a recording that all tests share: its name, and one of its libraries in the stacks."""
    recording = recorded(name)
    pid = recording.pid(key)
    threads = [t for t in firefox_threads(recording.output(".json.gz")) if t.pid == pid]
    assert threads and {t.process for t in threads} == {process}, [(t.process, t.name, t.count) for t in threads]
    samples, inside = 0, 0
    for thread in threads:
        for _, frames in thread.samples():
            samples += 1
            inside += any(lib and any(wanted in os.path.basename(lib) for wanted in libraries)
                          for _, lib in frames)
    assert samples >= 50, samples
    assert inside >= 0.3 * samples, f"{inside} of {samples} in {libraries}"
    # the source launcher compiles first
    assert name != "java" or any("Compiler" in t.name for t in threads), [t.name for t in threads]


# recording, program in it, its name, libraries of which one is in the stacks; Python that runs this test often has a shared one
REAL = [("python", "system", "python3", "python3"),
        ("python", "own", os.path.basename(os.path.realpath(sys.executable))[:15], "python3"),
        ("node", "json", os.path.basename(os.path.realpath(shutil.which("node") or "/nonexistent")), "node"),
        ("clang", "clang", "clang", "LLVM", "clang"), ("java", "launcher", "java", "libjvm")]


@natively
def test_real_programs():
    missing = []
    for row in REAL:
        try:
            assert_real(*row)
        except Skip as skip:
            missing.append(skip)
    if missing:
        raise missing[0]


main(globals())
