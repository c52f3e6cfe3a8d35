/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes may tell of their functions, in bytes of events a minute: each process, each user and all together. A process
 * has as many functions as it likes, and a user as many processes, and all that is told is in the recording.
 *
 * Who the user is takes system calls to find out, so he counts only once a quarter of what all may tell is used up.
 */
#ifndef SESSION_TOLD_BUDGET_H
#define SESSION_TOLD_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/outside_books.h"
#include "base/vec.h"

#define TOLD_TIME    60000000000ull /* ns */
#define TOLD_PROCESS ((size_t)8 << 20)
#define TOLD_USER    ((size_t)32 << 20)
#define TOLD_ALL     ((size_t)64 << 20)
#define COPIES_TIME  1000000000ull /* ns */
#define COPIES_ALL   ((size_t)4 << 20)
#define TOLD_USERS                                                                                 \
	256u /* that are known at a time; of more the last one has what they have told together */

struct told_by_user {
	uint32_t user;
	size_t bytes;
};

/* What a process has told in the minute that began then. Zero-initialised. */
struct told_by_process {
	uint64_t since; /* CLOCK_MONOTONIC ns */
	size_t bytes;
};

/* Zero-initialised. */
struct told_budget {
	uint64_t since;
	size_t bytes;
	VEC(struct told_by_user) users;
	uint64_t copies_since;
	size_t copied; /* bytes */
};

void told_budget__fini(struct told_budget *b);

/*
 * May a copy of a function (EVENT_CODE_COPY) of so many bytes be looked at? Whatever many CPUs copy, one thread reads: so much a
 * second, and then functions are asked about, as if there were no copies.
 */
bool told_budget__may_read(struct told_budget *b, size_t bytes, uint64_t now);

/* May the process tell so many bytes more? If so they are counted. What it may not tell is in the books, if there are any. */
bool told_budget__spend(struct told_budget *b, struct told_by_process *process,
			struct outside_books *books, uint32_t pid, size_t bytes, uint64_t now);

#endif
