# SPDX-License-Identifier: BSD-2-Clause
"""
On CPU 1: threads that end on CPU 0, where their process had no tick, and processes that end with another name. Prints the CPU
time of each.
"""
import _thread
import os
import time

SECONDS, COUNT = 0.4, 6


def work():
    while time.thread_time() < SECONDS:
        sum(range(100))


def report():
    os.write(1, b'{"tid": %d, "cpu_ns": %d}\n' % (_thread.get_native_id(), time.thread_time_ns()))


def thread(ended):
    work()
    os.sched_setaffinity(0, {0})
    report()
    ended.release()


def process():
    work()
    with open("/proc/self/comm", "wb") as name:
        name.write(b"ends")
    report()
    os._exit(0)


for _ in range(COUNT):
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(thread, (lock,))
    lock.acquire()
    pid = os.fork()
    if not pid:
        process()
    os.waitpid(pid, 0)
