/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle time by CPU: see cpu_idle.h. */
#include "live/capture/cpu_idle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/vec.h"

#define STAT_MAX     (4u << 20)
#define IDLE_UNKNOWN UINT64_MAX

/* The figures of a CPU at the end of the last window. */
struct idle_mark {
	uint32_t cpu;
	uint64_t not_run; /* ticks, idle or not */
	uint64_t moved;	  /* of these, idle ones */
};

/* A CPU's time since it came, and before it went. */
struct idle_life {
	uint32_t cpu;
	uint64_t start;			    /* what /proc/stat had then, ns */
	uint64_t last;			    /* since then, when it was last seen */
	uint64_t past;			    /* in lives before this one */
	uint64_t seen;			    /* all of it, at the last look */
	uint64_t period;		    /* of ticks, at the last look, ns */
	uint64_t ticks_before, time_before; /* at other periods */
};

struct cpu_idle {
	char *start, *now; /* /proc/stat then and now; NULL: not read */
	VEC(struct idle_mark) marks;
	VEC(struct idle_life) lives; /* of the requested CPUs */
};

struct cpu_idle *cpu_idle__new(void)
{
	return calloc(1, sizeof(struct cpu_idle));
}

void cpu_idle__free(struct cpu_idle *idle)
{
	if (!idle)
		return;
	free(idle->start);
	free(idle->now);
	vec_free(&idle->marks);
	vec_free(&idle->lives);
	free(idle);
}

static void read_stat(char **text)
{
	size_t size;

	free(steal_ptr(*text));
	if (read_file_at(AT_FDCWD, "/proc/stat", STAT_MAX, text, &size))
		*text = NULL;
}

void cpu_idle__start(struct cpu_idle *idle)
{
	idle->lives.count = 0;
	read_stat(&idle->start);
}

void cpu_idle__read(struct cpu_idle *idle)
{
	read_stat(&idle->now);
}

/* Columns of a CPU's line. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, GUEST, GUEST_NICE, COLUMNS };

/* In ns. False: there is no such line, or it has fewer than `least` columns. */
static bool parse_cpu(const char *text, unsigned int cpu, int least, __u64 ns[COLUMNS])
{
	unsigned long long v[COLUMNS] = {};
	char name[24];
	const char *line;
	int found = 0;

	snprintf(name, sizeof(name), "\ncpu%u ", cpu);
	line = text ? strstr(text, name) : NULL;
	if (line)
		found = sscanf(line + strlen(name),
			       "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &v[USER],
			       &v[NICE], &v[SYSTEM], &v[IDLE], &v[IOWAIT], &v[IRQ], &v[SOFTIRQ],
			       &v[STEAL], &v[GUEST], &v[GUEST_NICE]);
	for (int i = 0; i < COLUMNS; i++)
		ns[i] = v[i] * (NS_PER_SECOND / sysconf(_SC_CLK_TCK));
	return found >= least;
}

__u64 cpu_idle_parse(const char *text, unsigned int cpu)
{
	__u64 ns[COLUMNS];

	return parse_cpu(text, cpu, IOWAIT + 1, ns) ? ns[IDLE] + ns[IOWAIT] : IDLE_UNKNOWN;
}

bool cpu_times_parse(const char *text, unsigned int cpu, __u64 times[CPU_TIME_COUNT])
{
	__u64 ns[COLUMNS];

	if (!parse_cpu(text, cpu, GUEST_NICE + 1, ns))
		return false;
	times[CPU_TIME_IRQ] = ns[IRQ];
	times[CPU_TIME_SOFTIRQ] = ns[SOFTIRQ];
	times[CPU_TIME_STEAL] = ns[STEAL];
	times[CPU_TIME_GUEST] = ns[GUEST] + ns[GUEST_NICE];
	return true;
}

bool cpu_idle__times(const struct cpu_idle *idle, __u32 cpu, struct cpu_times_event *event)
{
	__u64 start[CPU_TIME_COUNT];

	*event = (struct cpu_times_event){
		.header = {.size = sizeof(*event), .type = EVENT_CPU_TIMES},
		.cpu = cpu,
		.kinds = CPU_TIME_COUNT,
	};
	if (!cpu_times_parse(idle->start, cpu, start) ||
	    !cpu_times_parse(idle->now, cpu, event->time))
		return false;
	/* steal may go back after a migration of the machine */
	for (int i = 0; i < CPU_TIME_COUNT; i++)
		event->time[i] -= min_u64(start[i], event->time[i]);
	return true;
}

void cpu_idle_move(struct books_event *books, __u64 ticks)
{
	uint64_t moved;

	if (ticks <= books->count[BOOK_IDLE])
		return;
	moved = min_u64(ticks - books->count[BOOK_IDLE], books->count[BOOK_NOT_RUN]);
	books->count[BOOK_NOT_RUN] -= moved;
	books->count[BOOK_IDLE_NOT_RUN] += moved;
}

/* Ticks up to the mark stay reported as they were, lost or not. */
static void keep_since_mark(const struct cpu_idle *idle, struct books_event *books)
{
	uint64_t not_run = books->count[BOOK_NOT_RUN] + books->count[BOOK_IDLE_NOT_RUN];
	uint64_t moved = books->count[BOOK_IDLE_NOT_RUN];

	for (size_t i = 0; i < idle->marks.count; i++) {
		const struct idle_mark *mark = &idle->marks.data[i];

		if (mark->cpu == books->cpu)
			moved = min_u64(max_u64(moved, mark->moved),
					mark->moved + (not_run - mark->not_run));
	}
	books->count[BOOK_IDLE_NOT_RUN] = moved;
	books->count[BOOK_NOT_RUN] = not_run - moved;
}

/* NULL: no memory. */
static struct idle_life *life_of(struct cpu_idle *idle, uint32_t cpu)
{
	struct idle_life life = {.cpu = cpu, .start = cpu_idle_parse(idle->start, cpu)};

	for (size_t i = 0; i < idle->lives.count; i++)
		if (idle->lives.data[i].cpu == cpu)
			return &idle->lives.data[i];
	if (vec_push(&idle->lives, life))
		return NULL;
	return &idle->lives.data[idle->lives.count - 1];
}

/* The idle time by now. /proc/stat has no line of a CPU that is offline. */
static uint64_t look(struct idle_life *life, const char *text)
{
	uint64_t now = cpu_idle_parse(text, life->cpu);

	if (life->start != IDLE_UNKNOWN && now != IDLE_UNKNOWN && now > life->start)
		life->last = now - life->start;
	return life->past + life->last;
}

/* How many ticks fell into all of `time`. A changed period applies from the last look on. */
static uint64_t ticks_of(struct idle_life *life, uint64_t time, uint64_t period)
{
	if (life->period && life->period != period) {
		life->ticks_before += (life->seen - life->time_before) / life->period;
		life->time_before = life->seen;
	}
	life->period = period;
	life->seen = max_u64(life->seen, time);
	return life->ticks_before + (life->seen - life->time_before) / period;
}

int cpu_idle__came(struct cpu_idle *idle, __u32 cpu)
{
	struct idle_life *life = life_of(idle, cpu);

	if (!life)
		return -ENOMEM;
	life->past += life->last;
	life->last = 0;
	read_stat(&idle->now);
	life->start = cpu_idle_parse(idle->now, cpu);
	return 0;
}

void cpu_idle__split(struct cpu_idle *idle, struct books_event *books)
{
	struct idle_life *life = life_of(idle, books->cpu);
	uint64_t time = life ? look(life, idle->now) : 0;

	if (time && books->period)
		cpu_idle_move(books, ticks_of(life, time, books->period));
	keep_since_mark(idle, books);
}

int cpu_idle__mark(struct cpu_idle *idle, const struct books_event *books)
{
	const struct idle_mark mark = {
		.cpu = books->cpu,
		.not_run = books->count[BOOK_NOT_RUN] + books->count[BOOK_IDLE_NOT_RUN],
		.moved = books->count[BOOK_IDLE_NOT_RUN],
	};

	for (size_t i = 0; i < idle->marks.count; i++) {
		if (idle->marks.data[i].cpu != mark.cpu)
			continue;
		idle->marks.data[i] = mark;
		return 0;
	}
	return vec_push(&idle->marks, mark);
}
