/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes of events about functions a process may add to the recording: see QUOTA_FUNCTIONS in base/quota.h. A process
 * has as many functions as it likes, and a user as many processes.
 *
 * Finding the user of a process takes system calls, so users count only once a quarter of what all may have is used up.
 */
#ifndef SESSION_TOLD_BUDGET_H
#define SESSION_TOLD_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

struct told_budget {
	struct quota functions;
	struct meter copies;
};

void told_budget__init(struct told_budget *b);

/*
 * May a copy of a function (EVENT_CODE_COPY) of so many bytes be read? Many CPUs copy, and one thread reads: so much
 * a second (QUOTA_CODE_COPIES). Beyond it functions are requested, as if there were no copies.
 */
bool told_budget__may_read(struct told_budget *b, size_t bytes, uint64_t now);

/* May the process add so many bytes? If so they are counted; if not, the books have a row, if there are any. */
bool told_budget__spend(struct told_budget *b, struct meter *process, struct outside_books *books,
			uint32_t pid, size_t bytes, uint64_t now);

#endif
