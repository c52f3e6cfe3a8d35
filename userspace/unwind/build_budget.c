/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/build_budget.h"

#include <errno.h>

#include "base/clocks.h"
#include "base/list_column.h"

#define MB (UINT64_C(1) << 20)
#define CLOCK_STEP                                                                                 \
	65536 /* steps between two looks at the clock, a system call: less than a millisecond */

const struct build_limits BUILD_LIMITS = {
	.input = 64 * MB,
	.go = 256 * MB,
	.rows = 16 * MB,
	.memory = 384 * MB,
	.cpu_ns = UINT64_C(5000000000),
	.code_steps = 256 * MB,
};

const char *table_refusal_text(enum table_refusal refusal)
{
	static const char *const TEXTS[] = {TABLE_REFUSALS(SECOND_COLUMN)};

	return refusal < TABLE_REFUSAL_COUNT ? TEXTS[refusal] : TEXTS[TABLE_REFUSAL_NONE];
}

void build_budget__start(struct build_budget *b, const struct build_limits *limits)
{
	*b = (struct build_budget){
		.limits = *limits,
		.cpu_end = thread_cpu_ns() + limits->cpu_ns,
		.steps = CLOCK_STEP,
	};
}

int build_budget__refuse(struct build_budget *b, enum table_refusal refusal)
{
	if (b && !b->refusal)
		b->refusal = refusal;
	return -EFBIG;
}

int build_budget__take(struct build_budget *b, uint64_t bytes)
{
	if (!b)
		return 0;
	if (bytes > b->limits.memory - b->memory)
		return build_budget__refuse(b, TABLE_REFUSAL_MEMORY);
	b->memory += bytes;
	if (b->memory > b->peak)
		b->peak = b->memory;
	return 0;
}

void build_budget__give_back(struct build_budget *b, uint64_t bytes)
{
	if (b)
		b->memory -= bytes < b->memory ? bytes : b->memory;
}

int build_budget__check_clock(struct build_budget *b)
{
	b->steps = CLOCK_STEP;
	return thread_cpu_ns() > b->cpu_end ? build_budget__refuse(b, TABLE_REFUSAL_TIME) : 0;
}
