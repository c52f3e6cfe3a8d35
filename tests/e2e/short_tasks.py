#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Tasks that live for less than a period: sampled in proportion to their CPU time, under their own names.

The storm logs the name, life, renames and CPU time of each of its tasks; the profile is joined with that.
"""
import math
import os
import struct
import subprocess
import threading

import libe2e as e

HZ = 999
EVENT_THREAD_CPU, EVENT_FORK, EVENT_EXIT, EXITED = 2, 10, 11, 8
PERIOD = 1000000000 // HZ  # ns
PREFIX = "s%05d" % (os.getpid() % 100000)  # no other task has such a name
SLACK = 10000  # ns by which the profile's times may be off: the clock's error and some rounding


class Task:
    """A line of the storm's log."""

    def __init__(self, fields):
        self.pid, self.tid, self.comm = int(fields[0]), int(fields[1]), fields[2]
        (self.start, self.exit, self.cpu_ns, self.total_ns, self.exec_from, self.exec_to,
         self.named_from, self.named_to, self.switches) = map(int, fields[3:])
        self.samples = 0
        assert self.start <= self.exit, fields

    def __repr__(self):
        return f"{self.pid}/{self.tid} {self.comm}"

    def names(self, parent, executed):
        """[(from, to, name)]: certain in between, and what is between two of them may be either."""
        names, since, name = [], 0, parent
        for begin, end, next_name in ((self.exec_from, self.exec_to, executed),
                                      (self.named_from, self.named_to, self.comm)):
            if begin:
                names.append((since, begin, name))
                since, name = end, next_name
        return [*names, (since, math.inf, name)]


class Storm:
    """One recorded storm: its log, and the threads and names that the profile has."""

    def __init__(self, name, options, target=None):
        """`target` None: the storm is COMMAND. Else it runs beside `record TARGET…`."""
        e.need_root()
        # The storm's first process is called as its file; what is executed in it by its real name.
        self.parent, self.executed = f"front-{os.getpid()}", "storm"
        self.whole_system = target is not None
        program = e.scratch(self.parent)
        if not os.path.lexists(program):
            os.symlink(e.fixture("storm"), program)
        log = e.scratch(name + ".log")
        self.recording = e.scratch(name + ".sysprof")
        json_path, folded_path = e.scratch(name + ".json"), e.scratch(name + ".folded")
        stolen = e.stolen_ns()
        outputs = ["-F", HZ, "-o", self.recording, "-o", json_path, "-o", folded_path]
        if target is None:
            reported = e.record(*outputs, "--", program, *options, log).out
        else:
            with e.Background(e.SYSPROF, "record", *target, *outputs) as recorder:
                e.started_sampling(recorder, self.recording)
                reported = e.run(program, *options, log, check=0).out
                recorder.signal(e.signal.SIGINT)
                recorder.finish(check=0)
        self.stolen = (e.stolen_ns() - stolen) / PERIOD
        self.reported = dict(e.key_values(reported))
        self.main_pid = int(self.reported["pid"])
        with open(log, encoding="utf-8") as f:
            rows = [line.split()[1:] for line in f]
        self.tasks = [Task(row) for row in rows]
        self.by_id = {}
        for task in self.tasks:
            self.by_id.setdefault((task.pid, task.tid), []).append(task)
        self.lost = e.lost_ticks(self.recording)
        self.rows = e.folded(folded_path)
        profile = e.load_json(json_path)
        self.start = profile["meta"]["startTimeAsClockMonotonicNanosecondsSinceBoot"]
        self.threads = [e.FirefoxThread(profile, t) for t in profile["threads"]]
        for thread in self.threads:
            task = self.task_of(thread)
            if task:
                task.samples += thread.count

    def task_of(self, thread):
        """The task that a thread of the profile is. Numbers are used again: the nearest in time."""
        end = self.sample_times(thread)[-1]
        tasks = [t for t in self.by_id.get((thread.pid, thread.tid), ())
                 if t.start - 1000000000 < end < t.exit + 1000000000]
        return min(tasks, key=lambda t: abs(t.start - end), default=None)

    def absolute(self, milliseconds):
        return self.start + round(milliseconds * 1000000)

    def sample_times(self, thread):
        return [self.absolute(t) for t, s in zip(thread.times, thread.stacks) if s is not None]

    # ---- how often -------------------------------------------------------------------------------

    def check_count(self, cpu_ns):
        """
        A tick meets a task with the probability (CPU time ÷ period) if its phase is random, and it is:
        the storm pauses for a random part of a period before each task. A task that runs in one piece of
        a share p of a period then has a variance of p (1 - p), one that is interrupted up to p, and one
        that runs longer than a period no more than that either. The tasks are independent of
        each other, so the variance of the sum is at most the sum of all p: the expected number itself.

        Ticks that the books say were lost may have been the storm's, and those that fell due in time
        that was stolen from it came on top.
        """
        assert all(t.cpu_ns >= 490000 for t in self.tasks), "tasks that ran for less than requested"
        expected = cpu_ns / PERIOD
        seen = sum(t.samples for t in self.tasks)
        sigma = math.sqrt(expected)
        reported = (f"{seen} samples of {len(self.tasks)} tasks, expected {expected:.1f} ± {sigma:.1f}, "
                f"{self.lost} ticks lost, {self.stolen:.0f} stolen")
        print(f"  {reported}: {(seen - expected) / sigma:+.2f} σ")
        assert expected - 4 * sigma - self.lost <= seen <= expected + 4 * sigma + self.stolen, reported

    # ---- processes -------------------------------------------------------------------------------

    def check_names(self):
        wrong = []
        certain, possible = {}, {}
        for thread in self.threads:
            task = self.task_of(thread)
            if task:
                wrong += self.check_life(task, thread)
                self.count_names(task, thread, certain, possible)
            elif not self.is_ours(thread):
                continue
            elif (thread.pid, thread.tid) != (self.main_pid, self.main_pid):
                wrong.append(f"{thread.pid}/{thread.tid} {thread.name!r} is in no log")
        wrong += self.check_folded(certain, possible)
        assert not wrong, f"{len(wrong)} wrong: " + "\n".join(wrong[:20])

    def is_ours(self, thread):
        return (thread.pid == self.main_pid or self.parent in (thread.name, thread.process)
                or thread.name.startswith(PREFIX + "-"))

    def check_life(self, task, thread):
        """A thread of the profile is one life of the task: before its execve, or after."""
        wrong = []
        times = self.sample_times(thread)
        begin = self.absolute(thread.thread["registerTime"])
        before = bool(task.exec_from) and begin < task.exec_from
        names = task.names(self.parent, self.executed)
        name = names[0][2] if before else task.comm
        # a process is called as its program, whatever its main thread is called
        process = self.executed if task.exec_from and not before else self.parent
        if (thread.name, thread.process) != (name, process):
            wrong.append(f"{task}: is {thread.name!r} of {thread.process!r}, "
                         f"not {name!r} of {process!r}")
        end = thread.thread["unregisterTime"]
        end = math.inf if end is None else self.absolute(end)
        born = task.exec_from if task.exec_from and not before else None
        if born and not task.exec_from - SLACK <= begin <= task.exec_to + SLACK:
            wrong.append(f"{task}: its life after execve begins at {begin}, "
                         f"execve was in {task.exec_from} to {task.exec_to}")
        if not born and begin > task.start + SLACK:
            wrong.append(f"{task}: begins at {begin}, but was there at {task.start}")
        if before and not task.exec_from - SLACK <= end <= task.exec_to + SLACK:
            wrong.append(f"{task}: its life before execve ends at {end}, "
                         f"execve was in {task.exec_from} to {task.exec_to}")
        if not before and end < task.exit - SLACK:
            wrong.append(f"{task}: ends at {end}, but was there at {task.exit}")
        if not begin <= times[0] <= times[-1] <= end:
            wrong.append(f"{task}: sampled at {times[0]} to {times[-1]}, lived {begin} to {end}")
        return wrong

    def count_names(self, task, thread, certain, possible):
        """How many samples each name must have, and how many more it may have."""
        names = task.names(self.parent, self.executed)
        for when in self.sample_times(thread):
            fitting = {name for begin, end, name in names if begin + SLACK <= when <= end - SLACK}
            if fitting:
                name, = fitting
                certain[name] = certain.get(name, 0) + 1
                continue
            for i, (begin, end, name) in enumerate(names):
                next_begin = names[i + 1][0] if i + 1 < len(names) else math.inf
                before = names[i - 1][1] if i else 0
                if before - SLACK <= when <= next_begin + SLACK:
                    possible[name] = possible.get(name, 0) + 1

    def check_folded(self, certain, possible):
        """The folded file has each sample's name as it was at the time of the sample."""
        counts = e.comms(self.rows)
        for thread in self.threads:  # the first process, in its two lives
            if thread.pid == thread.tid == self.main_pid:
                for name in (self.parent, "sysprof"):
                    possible[name] = possible.get(name, 0) + thread.count
        wrong = []
        own = {t.comm for t in self.tasks} | {self.parent} | set(certain)
        if self.whole_system:
            own.discard(self.executed)  # there may be others of that name
        for name in own:
            least, seen = certain.get(name, 0), counts.get(name, 0)
            if not least <= seen <= least + possible.get(name, 0):
                wrong.append(f"{seen} samples are called {name!r}, should be {least} and at most "
                             f"{possible.get(name, 0)} more")
        return wrong

    def check_none_missing(self):
        """
        A task that ran in so few pieces that one of them was longer than a period met a tick, unless
        that was lost. One in many short pieces may have run between the ticks.
        """
        sure = [t for t in self.tasks if t.cpu_ns >= (t.switches + 1) * (PERIOD + PERIOD // 10)]
        missing = [t for t in sure if not t.samples]
        assert sure, "no task ran that long without a break"
        assert len(missing) <= self.lost, \
            f"{len(missing)} of {len(sure)} tasks have no sample, {self.lost} ticks were lost: {missing[:20]}"
        return len(sure)


def check_thousand(mode, used, target=None):
    """`used`: the CPU time of all tasks of a storm. What else happens here can spoil a recording."""
    for attempt in range(5):
        name = f"thousand-{mode}-{'command' if target is None else 'system'}-{attempt}"
        with e.NoIdleCpus():
            storm = Storm(name, ["-g", 1000, mode, 1000, 500], target)
        if storm.lost + storm.stolen < 3 * math.sqrt(1000 * 500000 / PERIOD):
            storm.check_count(used(storm))
            storm.check_names()
            return
        print(f"  {storm.lost} ticks were lost, {storm.stolen:.0f} stolen: cannot judge by that")
    raise e.Skip("too many ticks are lost on this machine to count samples")


def reaped(storm):
    return sum(t.total_ns for t in storm.tasks)


@e.alone
def test_thousand_forks():
    check_thousand("fork", reaped)


@e.long
@e.alone
def test_thousand_execs():
    check_thousand("exec", reaped)


@e.long
@e.alone
def test_thousand_threads():
    check_thousand("thread", lambda storm: int(storm.reported["threads_cpu"]))


@e.alone
def test_thousand_in_the_whole_system():
    check_thousand("fork", reaped, ["-a"])


def check_named(mode, target=None):
    """Tasks long enough to be seen each, and three at a time on any CPU."""
    name = f"named-{mode}-{'command' if target is None else 'system'}"
    with e.NoIdleCpus():
        storm = Storm(name, ["-N", PREFIX, "-j", 3, mode, 150, 3500], target)
    storm.check_names()
    sure = storm.check_none_missing()
    print(f"  {mode}: {sum(t.samples for t in storm.tasks)} samples, {storm.lost} ticks lost, "
          f"{sure} of {len(storm.tasks)} tasks must have met a tick")


@e.alone
def test_names_of_command():
    for mode in ("fork", "exec", "thread"):
        check_named(mode)


@e.long
@e.alone
def test_names_in_the_whole_system():
    for mode in ("fork", "exec", "thread"):
        check_named(mode, ["-a"])


def test_names_of_short_lives():
    """As above, but most of a task's life is its birth, its execve and its death."""
    for mode in ("fork", "exec", "thread"):
        Storm("short-" + mode, ["-N", PREFIX, "-j", 2, mode, 500, 300]).check_names()


@e.alone
def test_the_unsampled_leave_no_trace():
    """In the whole system a process without samples costs nothing if it ends before it is looked at, and the books of a
    thread are closed only if it has some."""
    recording = e.scratch("unsampled.sysprof")
    with e.Background(e.SYSPROF, "record", "-q", "-a", "-F", 19, "-o", recording) as recorder:
        e.started_sampling(recorder, recording)
        pids = set()
        for _ in range(400):
            with subprocess.Popen(["/bin/true"]) as child:
                pids.add(child.pid)
        recorder.signal(e.signal.SIGINT)
        recorder.finish(check=0)
    sampled, forked, exited, reported = set(), set(), set(), []
    for kind, flags, _, body in e.recording_events(recording):
        first, second = struct.unpack_from("<II", body) if len(body) >= 8 else (0, 0)
        if kind == e.EVENT_SAMPLE:
            sampled.update(struct.unpack_from("<II", body, 16))
        elif kind == EVENT_THREAD_CPU and flags & EXITED:
            reported.append(second)
        elif kind in (EVENT_FORK, EVENT_EXIT):
            (forked if kind == EVENT_FORK else exited).add(first)
    assert pids & forked == pids & exited, "a life with one end"
    traced = pids & forked
    print(f"  {len(traced)} of {len(pids)} are in the recording, {len(pids & sampled)} were sampled")
    assert len(traced) < len(pids) / 2
    unsampled = [tid for tid in reported if tid not in sampled]
    assert len(unsampled) <= e.lost_ticks(recording), f"{len(unsampled)} of {len(reported)} ends"


@e.long
@e.alone
def test_beside_other_recorders():
    """Each that starts or ends makes the kernel rearrange the counters that time a tick."""
    done = threading.Event()

    def others():
        while not done.is_set():
            e.run(e.SYSPROF, "record", "-q", "-a", "-d", 0.05, "-o", e.scratch("other.folded"))

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for mode in ("fork", "exec"):
            Storm("beside-" + mode, ["-N", PREFIX, mode, 2000, 500]).check_names()
    finally:
        done.set()
        thread.join()


e.main(globals())
