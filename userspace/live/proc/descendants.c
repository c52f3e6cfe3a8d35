/* SPDX-License-Identifier: BSD-2-Clause */
/* From /proc/PID/task/TID/children downwards. */
#include "live/proc/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"

#define CHILDREN_SIZE (64u << 10)

struct walk {
	descendant_fn *each;
	void *context;
	uint64_t tick_ns;
};

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree of our processes */
static void look_below(const struct walk *w, const struct descendant *parent, pid_t pid, pid_t tid)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *end;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	if (read_file_at(AT_FDCWD, path, CHILDREN_SIZE, &text, &size))
		return;
	for (char *at = text; *at; at = end) {
		struct descendant d = {.pid = (pid_t)strtol(at, &end, 10), .parent = parent};

		if (end == at)
			break;
		if (proc_stat_of(d.pid, &d.stat))
			continue;
		(void)process_cpu_ns_of(d.pid, &d.cpu_ns);
		d.cpu_ns += d.stat.waited_ticks * w->tick_ns;
		if (w->each(&d, w->context))
			look_below(w, &d, d.pid, d.pid);
	}
}

void descendants__each(descendant_fn *each, void *context)
{
	const struct walk w = {each, context, 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)};
	_cleanup_closedir_ DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	while (tasks && (entry = readdir(tasks)))
		if (*entry->d_name != '.')
			look_below(&w, NULL, getpid(), (pid_t)strtol(entry->d_name, NULL, 10));
}

uint64_t waited_for_cpu_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage))
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

struct family {
	pid_t except;
	uint64_t cpu_ns;
};

static bool add_descendant(struct descendant *d, void *context)
{
	struct family *f = context;

	if (d->pid == f->except)
		return false;
	f->cpu_ns += d->cpu_ns;
	return true;
}

uint64_t family_cpu_ns(pid_t except)
{
	struct family f = {except, process_cpu_ns() + waited_for_cpu_ns()};

	descendants__each(add_descendant, &f);
	return f.cpu_ns;
}
