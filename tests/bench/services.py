# SPDX-License-Identifier: BSD-2-Clause
"""Fifty services: programs of their own, in control groups as systemd's, with up to 10,000 processes that hardly run."""
import concurrent.futures
import os
import random
import shutil
import subprocess
import time

from libbench import Broken, CPUS, Program, scratch

FUNCTIONS = 60  # of a service
BURST_US = 2000
LOAD = 0.8  # of all CPUs, as far as they are free
WORDS = ("parse", "write", "read", "find", "insert", "remove", "cache", "buffer", "queue", "index", "request", "session",
         "token", "route", "event", "batch", "price", "order", "stock", "mail", "image", "search", "report", "user")

SOURCE = """#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
typedef unsigned (*function)(unsigned depth, unsigned x);
static function table[];
static unsigned seed;
static unsigned number(void) { return (seed = seed * 1103515245 + 12345) >> 8; }
/* a function calls one that it calls mostly, and now and then one of two others */
static unsigned callee(unsigned at) { return (at * 3 + 1 + (number() %% 32 ? 0 : 1 + number() %% 2)) %% COUNT; }
%s
static function table[] = {%s};
static unsigned few(unsigned most) { double x = number() %% 4096 / 4096.0; return most * x * x * x; }
static long cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
static void work(unsigned pause_ms, long burst_us)
{
	volatile unsigned x = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	usleep(number() %% (pause_ms + 1) * 1000);
	for (;; usleep(pause_ms * 1000))
		for (long end = cpu_us() + burst_us; cpu_us() < end;)
			x += table[few(4)](12 + few(24), x);
}
int main(int argc, char **argv)
{
	unsigned made = 0, wanted = atoi(argv[1]);
	for (; made < wanted; made++) {
		seed = getpid() * 977 + made * 31 + 7;
		pid_t pid = fork();
		if (!pid)
			work(atoi(argv[2]), atoi(argv[3]));
		if (pid < 0)
			break;
	}
	printf("%%u\\n", made);
	fflush(stdout);
	for (;;)
		pause();
}
"""

FUNCTION = """#line %d "src/%s/%s.c"
__attribute__((noinline)) static unsigned %s(unsigned depth, unsigned x)
{
	for (unsigned i = 0; i < 2000; i++)
		x = x * 1664525 + i;
	if (depth)
		x += table[callee(%d)](depth - 1, x);
	return x + %d;
}
"""


def source_of(service):
    some = random.Random(service)
    names, text = [], []
    for i in range(FUNCTIONS):
        a, b, c = some.sample(WORDS, 3)
        names.append(f"{a}_{b}_{c}_{i}")
        text.append(FUNCTION % (1 + some.randrange(2000), a, f"{a}_{b}", names[-1], i, i))
    return SOURCE.replace("COUNT", str(FUNCTIONS)) % ("".join(text), ", ".join(names))


def build(service):
    source, program = scratch(f"service-{service}.c"), scratch(f"service-{service}")
    if not os.path.exists(program):
        with open(source, "w", encoding="utf-8") as f:
            f.write(source_of(service))
        subprocess.run([shutil.which("cc") or "gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-o", program, source],
                       check=True)
    return program


def unified_hierarchy():
    """This process's own group of the second version; None: there is none to make others in."""
    mounts = [line.split()[1] for line in open("/proc/self/mounts", encoding="utf-8") if line.split()[2] == "cgroup2"]
    own = [line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup", encoding="utf-8")
           if line.startswith("0::")]
    top = mounts[0] + own[0].rstrip("/") if mounts and own else None
    return top if top and os.access(top, os.W_OK) else None


class Services:
    """So many services with so many processes together, of which `ready` are there in the end."""

    def __init__(self, services, processes):
        self.top = unified_hierarchy()
        self.made, self.running = [], []
        with concurrent.futures.ThreadPoolExecutor(len(CPUS)) as pool:
            programs = list(pool.map(build, range(services)))
        weights = [1 / (i + 1) ** 0.7 for i in range(services)]
        counts = [max(1, int(processes * w / sum(weights))) for w in weights]
        # each runs for BURST_US after a pause, so that all together use LOAD of the CPUs
        pause_ms = max(1, int(sum(counts) * BURST_US / 1000 / (LOAD * len(CPUS))))
        try:
            for i, (program, count) in enumerate(zip(programs, counts)):
                self.running.append(self.start(i, program, count, pause_ms, BURST_US))
            self.ready = sum(int(p.p.stdout.readline() or b"0") for p in self.running)
        except BaseException:
            self.close()
            raise
        if self.ready < services:
            raise Broken("services have no processes")

    def group(self, service):
        at = os.path.join(self.top, f"sysprof-bench-{os.getpid()}.slice")
        for part in ("", "system.slice", f"shop-{service}.service"):
            at = os.path.join(at, part) if part else at
            if at not in self.made:
                os.mkdir(at)
                self.made.append(at)
        return at

    def start(self, service, *command):
        join = f"echo $$ > {self.group(service)}/cgroup.procs && " if self.top else ""
        return Program("/bin/sh", "-c", join + 'exec chrt --idle 0 "$@"', "sh", *command, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def close(self):
        for program in self.running:
            program.close()
        for path in reversed(self.made):
            for _ in range(200):  # until the last of its processes is gone
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.05)

    def __exit__(self, *_):
        self.close()
