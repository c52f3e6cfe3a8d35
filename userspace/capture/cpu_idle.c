/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle time by CPU: see cpu_idle.h. */
#include "capture/cpu_idle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/vec.h"

#define STAT_MAX      (4u << 20)
#define IDLE_UNKNOWN  UINT64_MAX
#define NS_PER_SECOND 1000000000ULL

/* The figures of a CPU at the end of the last window. */
struct idle_mark {
	uint32_t cpu;
	uint64_t not_run; /* ticks, idle or not */
	uint64_t moved;	  /* of these, idle ones */
};

struct cpu_idle {
	char *start, *now; /* /proc/stat then and now; NULL: not read */
	VEC(struct idle_mark) marks;
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
	read_stat(&idle->start);
}

void cpu_idle__read(struct cpu_idle *idle)
{
	read_stat(&idle->now);
}

__u64 cpu_idle_parse(const char *text, unsigned int cpu)
{
	unsigned long long user, nice, system, idle, iowait;
	char name[24];
	const char *line;
	size_t length;

	snprintf(name, sizeof(name), "\ncpu%u ", cpu);
	length = strlen(name);
	line = text ? strstr(text, name) : NULL;
	if (!line || sscanf(line + length, "%llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
			    &iowait) != 5)
		return IDLE_UNKNOWN;
	return (idle + iowait) * (NS_PER_SECOND / sysconf(_SC_CLK_TCK));
}

void cpu_idle_move(struct books_event *books, __u64 idle_time)
{
	uint64_t ticks, moved;

	if (!books->period)
		return;
	ticks = idle_time / books->period;
	if (ticks <= books->count[BOOK_IDLE])
		return;
	moved = min_u64(ticks - books->count[BOOK_IDLE], books->count[BOOK_NOT_RUN]);
	books->count[BOOK_NOT_RUN] -= moved;
	books->count[BOOK_IDLE_NOT_RUN] += moved;
}

/* What was told as a loss, or as none, up to the mark remains so. */
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

void cpu_idle__split(const struct cpu_idle *idle, struct books_event *books)
{
	uint64_t before = cpu_idle_parse(idle->start, books->cpu);
	uint64_t now = cpu_idle_parse(idle->now, books->cpu);

	if (before != IDLE_UNKNOWN && now != IDLE_UNKNOWN && now > before)
		cpu_idle_move(books, now - before);
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
