/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/proc_task.h"
#include "base/vec.h"
#include "live/proc/descendants.h"
#include "session/session.h"

#define STATISTICS_FOR 1000000000ull /* ns of an interval in which programs are measured */
#define CHILDREN_MAX   1024	     /* more are not looked at */
#define PROGRAMS_MAX   32
#define TEXT_MAX       (64u << 10)
#define SMAPS_MAX      (16u << 20)
#define LOOK_EVERY     18	    /* reports: PSS is read so often; that visits all pages … */
#define LOOK_CHANGE    (8ull << 20) /* … or when as many bytes more or less are resident */

/* A process's memory as it was last looked at. */
struct memory_look {
	uint64_t bytes, anonymous; /* PSS, and of what is resident then what is of no file */
	unsigned int left;	   /* reports until the next look */
};

/* A process that descends from us. */
struct child {
	pid_t pid;
	uint64_t start; /* clock ticks: a pid may be used again */
	uint64_t cpu;	/* ns, with those that it has waited for, when last seen */
	enum usage_cpu_part part;
	struct memory_look memory;
	bool direct; /* ours: what it used is in our rusage when it has ended */
	bool seen;
};

struct usage {
	VEC(struct child) children;
	struct memory_look own;
	uint64_t ended[USAGE_CPU_PART_COUNT]; /* ns of children that have, as last seen */
	uint64_t ended_direct;
	struct usage_report report; /* the last one */
	uint64_t due;		    /* the next report */
	uint64_t total;		    /* CPU time in it, ns */

	int statistics; /* descriptor; -1: programs are not measured now */
	uint64_t statistics_since, run_ns[USAGE_CPU_PART_COUNT];
	double program_share[USAGE_CPU_PART_COUNT]; /* of one CPU, as last measured */
};

struct usage *usage__new(void)
{
	struct usage *u = calloc(1, sizeof(*u));

	if (u)
		u->statistics = -1;
	return u;
}

void usage__free(struct usage *u)
{
	if (!u)
		return;
	cleanup_close(&u->statistics);
	vec_free(&u->children);
	free(u);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* The time of a program that continues the tick is counted with it. */
static enum usage_cpu_part part_of_program(const struct bpf_program_info *program)
{
	return !strcmp(program->name, "tick") ? USAGE_CPU_BPF : USAGE_CPU_HOOKS;
}

static void read_run_ns(struct session *session, uint64_t run_ns[USAGE_CPU_PART_COUNT])
{
	struct bpf_program_info programs[PROGRAMS_MAX];
	size_t count = session ? session__programs(session, programs, PROGRAMS_MAX) : 0;

	memset(run_ns, 0, USAGE_CPU_PART_COUNT * sizeof(*run_ns));
	for (size_t i = 0; i < count; i++)
		run_ns[part_of_program(&programs[i])] += programs[i].run_ns;
}

static void begin_statistics(struct usage *u, struct session *session, uint64_t now)
{
	int fd = session ? session__run_statistics(-1) : -1;

	if (fd < 0)
		return;
	u->statistics = fd;
	read_run_ns(session, u->run_ns);
	u->statistics_since = now;
}

static void end_statistics(struct usage *u, struct session *session, uint64_t now)
{
	uint64_t run_ns[USAGE_CPU_PART_COUNT];

	if (u->statistics < 0)
		return;
	read_run_ns(session, run_ns);
	for (int i = 0; i < USAGE_CPU_PART_COUNT; i++)
		if (now > u->statistics_since && run_ns[i] >= u->run_ns[i])
			u->program_share[i] = (double)(run_ns[i] - u->run_ns[i]) /
					      (double)(now - u->statistics_since);
	u->statistics = session__run_statistics(u->statistics);
}

/* ---- threads and children -------------------------------------------------------------------- */

/* ns on a CPU, of one of our threads; 0: it has gone. */
static uint64_t thread_ns(pid_t tid)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	return read_line(path, text, sizeof(text)) ? 0 : strtoull(text, NULL, 10);
}

static enum usage_cpu_part part_of_child(const char *comm, enum usage_cpu_part parent)
{
	if (!strcmp(comm, "sysprof-reader"))
		return USAGE_CPU_READERS;
	if (!strcmp(comm, "sysprof-jit"))
		return USAGE_CPU_JIT;
	if (!strcmp(comm, "sysprof-builder"))
		return USAGE_CPU_BUILDER;
	if (!strcmp(comm, "sysprof-visitor"))
		return USAGE_CPU_VISITOR;
	if (!strcmp(comm, "sysprof-sealed") || !strcmp(comm, "sysprof-files"))
		return USAGE_CPU_SYMBOLIZER;
	return parent;
}

/* NULL: there are too many. */
static struct child *need_child(struct usage *u, const struct descendant *d)
{
	uint64_t start = d->stat.start_ticks;

	for (size_t i = 0; i < u->children.count; i++)
		if (u->children.data[i].pid == d->pid && u->children.data[i].start == start)
			return &u->children.data[i];
	if (u->children.count >= CHILDREN_MAX ||
	    vec_push(&u->children,
		     (struct child){.pid = d->pid, .start = start, .direct = !d->parent}))
		return NULL;
	return &u->children.data[u->children.count - 1];
}

static bool see_child(struct descendant *d, void *context)
{
	struct usage *u = context;
	struct child *child = need_child(u, d);

	if (!child || child->seen)
		return false;
	d->tag = part_of_child(d->stat.comm, d->parent ? d->parent->tag : USAGE_CPU_SYMBOLIZER);
	child->part = d->tag;
	child->seen = true;
	child->cpu = max_u64(child->cpu, d->cpu_ns);
	return true;
}

static void forget_ended(struct usage *u)
{
	size_t kept = 0;

	for (size_t i = 0; i < u->children.count; i++) {
		const struct child child = u->children.data[i];

		if (child.seen) {
			u->children.data[kept++] = child;
			continue;
		}
		/* the CPU time of others is in what their parent has waited for */
		if (!child.direct)
			continue;
		u->ended[child.part] += child.cpu;
		u->ended_direct += child.cpu;
	}
	u->children.count = kept;
}

static enum usage_cpu_part part_of_thread(pid_t tid)
{
	char path[64], name[32] = "";

	if (tid == (pid_t)syscall(SYS_gettid))
		return USAGE_CPU_COLLECTOR;
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	(void)read_line(path, name, sizeof(name));
	return strcmp(name, "sysprof-finish") ? USAGE_CPU_THREADS : USAGE_CPU_FINISHER;
}

/* Our threads and what is below them. What the named threads do not have is that of the others. */
static void measure_cpu(struct usage *u, uint64_t cpu[USAGE_CPU_PART_COUNT], unsigned int *threads)
{
	uint64_t waited = waited_for_cpu_ns(), all = process_cpu_ns(), named = 0;
	_cleanup_closedir_ DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	for (size_t i = 0; i < u->children.count; i++)
		u->children.data[i].seen = false;
	while (tasks && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		enum usage_cpu_part part;

		if (!tid)
			continue;
		++*threads;
		part = part_of_thread(tid);
		if (part == USAGE_CPU_THREADS)
			continue;
		cpu[part] = part == USAGE_CPU_COLLECTOR ? thread_cpu_ns() : thread_ns(tid);
		named += cpu[part];
	}
	descendants__each(see_child, u);
	forget_ended(u);
	cpu[USAGE_CPU_THREADS] = all > named ? all - named : 0;
	for (int part = 0; part < USAGE_CPU_PART_COUNT; part++)
		cpu[part] += u->ended[part];
	for (size_t i = 0; i < u->children.count; i++)
		cpu[u->children.data[i].part] += u->children.data[i].cpu;
	if (waited > u->ended_direct)
		cpu[USAGE_CPU_SYMBOLIZER] += waited - u->ended_direct;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t anonymous_of(pid_t pid)
{
	uint64_t kilobytes;

	return proc_status_of(pid, "\nRssAnon:", &kilobytes) ? 0 : kilobytes * 1024;
}

/* PSS; where that cannot be read, what is resident and not shared. */
static uint64_t memory_of(pid_t pid)
{
	uint64_t kilobytes;
	int err = proc_status_number(AT_FDCWD, proc_path(pid, "smaps_rollup").text,
				     "\nPss:", &kilobytes);

	return err ? anonymous_of(pid) : kilobytes * 1024;
}

/* Maps and rings that we have mapped are the kernel's, and counted there. */
static uint64_t own_memory(void)
{
	_cleanup_free_ char *text = NULL;
	bool counts = true;
	uint64_t sum = 0;
	size_t size;

	if (read_file_at(AT_FDCWD, "/proc/self/smaps", SMAPS_MAX, &text, &size))
		return memory_of(getpid());
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		/* names of fields begin with a capital letter, addresses do not */
		if (*line < 'A' || *line > 'Z')
			counts = !strstr(line, " anon_inode:");
		else if (counts && !strncmp(line, "Pss:", 4))
			sum += strtoull(line + 4, NULL, 10) * 1024;
	}
	return sum;
}

/* Between two looks, PSS is taken to change as RssAnon does. */
static uint64_t memory_now(struct memory_look *m, pid_t pid)
{
	uint64_t now = anonymous_of(pid),
		 change = now > m->anonymous ? now - m->anonymous : m->anonymous - now;

	if (!m->left || change > LOOK_CHANGE) {
		*m = (struct memory_look){.bytes = pid == getpid() ? own_memory() : memory_of(pid),
					  .anonymous = now,
					  .left = LOOK_EVERY};
		change = 0;
	}
	m->left--;
	return now > m->anonymous ? m->bytes + change : m->bytes - min_u64(m->bytes, change);
}

static bool is_ours(struct usage *u, pid_t pid)
{
	if (pid == getpid())
		return true;
	return any_of(u->children.data, u->children.count, child, child->pid == pid);
}

/* Is no other process in this directory's group? */
static bool group_is_ours(struct usage *u, const char *directory)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX + 64], *at, *end;
	size_t size;

	snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	if (read_file_at(AT_FDCWD, path, TEXT_MAX, &text, &size) || !size)
		return false;
	for (at = text; *at; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		if (!is_ours(u, (pid_t)pid))
			return false;
		end += *end == '\n';
	}
	return true;
}

/* Of our group in the unified hierarchy, if it is ours alone. */
static bool cgroup_memory(struct usage *u, uint64_t *bytes)
{
	_cleanup_free_ char *text = NULL;
	char directory[PATH_MAX], path[PATH_MAX + 64], number[32];
	const char *group;
	size_t size;

	if (read_file_at(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &text, &size))
		return false;
	group = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!group)
		return false;
	group = strstr(group, "::") + 2;
	if (!strncmp(group, "/\n", 2)) /* the root has no figure */
		return false;
	snprintf(directory, sizeof(directory), "/sys/fs/cgroup%.*s", (int)strcspn(group, "\n"),
		 group);
	snprintf(path, sizeof(path), "%s/memory.current", directory);
	return group_is_ours(u, directory) && !read_line(path, number, sizeof(number)) &&
	       !parse_u64(number, 0, UINT64_MAX, bytes);
}

static void measure_memory(struct usage *u, struct session *session, struct usage_report *report)
{
	uint64_t *by = report->memory_by;

	by[USAGE_MEMORY_PROCESS] = memory_now(&u->own, getpid());
	for (size_t i = 0; i < u->children.count; i++)
		by[USAGE_MEMORY_CHILDREN] += memory_now(&u->children.data[i].memory,
							u->children.data[i].pid);
	by[USAGE_MEMORY_KERNEL] = session ? session__kernel_memory(session) : 0;
	if (cgroup_memory(u, &report->memory))
		return;
	for (int part = 0; part < USAGE_MEMORY_PART_COUNT; part++)
		report->memory += by[part];
}

/* From Linux 6.2 on their number is the size of the directory. */
static unsigned int count_descriptors(void)
{
	_cleanup_closedir_ DIR *dir = NULL;
	unsigned int count = 0;
	struct dirent *entry;
	struct stat st;

	if (!stat("/proc/self/fd", &st) && st.st_size)
		return st.st_size;
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	return count ? count - 1 : 0; /* one is that of the directory */
}

/* ---- reports --------------------------------------------------------------------------------- */

/* They are measured for a part of the time. */
static void add_programs(const struct usage *u, struct usage_report *report)
{
	uint64_t since = u->report.time;

	for (int i = USAGE_CPU_BPF; i <= USAGE_CPU_HOOKS; i++) {
		report->cpu_ns[i] = u->report.cpu_ns[i];
		if (since && report->time > since)
			report->cpu_ns[i] +=
				(uint64_t)(u->program_share[i] * (double)(report->time - since));
	}
}

static void make_report(struct usage *u, struct session *session, uint64_t now)
{
	struct usage_report report = {.time = now};
	uint64_t since = u->report.time, total = 0;

	measure_cpu(u, report.cpu_ns, &report.threads);
	add_programs(u, &report);
	for (int part = 0; part < USAGE_CPU_PART_COUNT; part++) {
		report.cpu_ns[part] = max_u64(report.cpu_ns[part], u->report.cpu_ns[part]);
		total += report.cpu_ns[part];
		if (since && now > since)
			report.cpu_by[part] =
				(double)(report.cpu_ns[part] - u->report.cpu_ns[part]) /
				(double)(now - since);
	}
	if (since && now > since)
		report.cpu = (double)(total - u->total) / (double)(now - since);
	u->total = total;
	report.processes = u->children.count;
	report.descriptors = count_descriptors();
	measure_memory(u, session, &report);
	u->report = report;
}

void usage__by_part(const struct usage_report *report, double cpu_by[BUDGET_PART_COUNT])
{
	static const enum budget_part PART[USAGE_CPU_PART_COUNT] = {
#define X(id, part, label, text) [USAGE_CPU_##id] = BUDGET_PART_##part,
		USAGE_CPU_PARTS(X)
#undef X
	};

	for (int i = 0; i < BUDGET_PART_COUNT; i++)
		cpu_by[i] = 0;
	for (int i = 0; i < USAGE_CPU_PART_COUNT; i++)
		cpu_by[PART[i]] += report->cpu_by[i];
}

bool usage__step(struct usage *u, struct session *session, uint64_t now, uint64_t *next,
		 struct usage_report *report)
{
	bool fresh = now >= u->due;

	if (fresh) {
		end_statistics(u, session, now);
		make_report(u, session, now);
		u->due = now + USAGE_INTERVAL;
		*report = u->report;
	} else if (u->statistics < 0 && now >= u->due - STATISTICS_FOR) {
		begin_statistics(u, session, now);
	}
	*next = u->due;
	if (u->statistics < 0 && now < u->due - STATISTICS_FOR)
		*next = u->due - STATISTICS_FOR;
	return fresh;
}
