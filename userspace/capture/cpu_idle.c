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

#define STAT_MAX      (4u << 20)
#define IDLE_UNKNOWN  UINT64_MAX
#define NS_PER_SECOND 1000000000ULL

struct cpu_idle {
	char *start, *now; /* /proc/stat then and now; NULL: not read */
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

void cpu_idle__split(const struct cpu_idle *idle, struct books_event *books)
{
	uint64_t before = cpu_idle_parse(idle->start, books->cpu);
	uint64_t now = cpu_idle_parse(idle->now, books->cpu);

	if (before != IDLE_UNKNOWN && now != IDLE_UNKNOWN && now > before)
		cpu_idle_move(books, now - before);
}
