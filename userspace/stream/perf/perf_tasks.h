/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many processes and threads a file may have. Each takes a kilobyte or more, and its record a few
 * bytes of a compressed file. Private to stream/perf.
 */
#ifndef STREAM_PERF_PERF_TASKS_H
#define STREAM_PERF_PERF_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#define PERF_TASK_NUMBERS (4u << 20) /* the kernel's PID_MAX_LIMIT */
#define PERF_LIVES_MAX	  (4u << 20)
/* A file has so many lives at most, and one for so many bytes of it. */
#define PERF_LIVES_FREE	  4096u
#define PERF_BYTES_A_LIFE 4u

struct perf_tasks {
	uint64_t lives;
	uint64_t seen[PERF_TASK_NUMBERS / 64]; /* bits, by pid or tid */
};

enum perf_admission {
	PERF_TASK_ADMITTED,
	PERF_TASK_OVER_LIMIT,
	PERF_TASK_IMPOSSIBLE, /* no task has such a number */
};

/*
 * Of a record, in a file of `size` bytes. `is_new`: it begins a life, whether or not the number was there
 * before. Tasks that had ended (-1) always are.
 */
enum perf_admission perf_tasks__admit(struct perf_tasks *tasks, uint64_t size, uint32_t pid,
				      uint32_t tid, bool is_new);

/* Was a task of that number admitted? */
bool perf_tasks__has(const struct perf_tasks *tasks, uint32_t number);

#endif
