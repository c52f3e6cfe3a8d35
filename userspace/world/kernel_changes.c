/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/kernel_changes.h"

#include <errno.h>
#include <string.h>

#include "base/order.h"

/* More than kernel_history.h names: there the limit is met first, and reported. */
#define RANGES_MAX (256u << 10)
#define TIMES_MAX  (4u << 20)

void kernel_changes__fini(struct kernel_changes *c)
{
	vec_free(&c->ranges);
	vec_free(&c->times);
}

/* Number of ranges that begin before `address`. */
static size_t count_before(const struct kernel_changes *c, uint64_t address)
{
	return partition_point(c->ranges.data, c->ranges.count, r, r->start < address);
}

/* Makes room for one range at `at`, where `gone` were. */
static void move_behind(struct kernel_changes *c, size_t at, size_t gone)
{
	memmove(&c->ranges.data[at + 1], &c->ranges.data[at + gone],
		(c->ranges.count - at - gone) * sizeof(*c->ranges.data));
	c->ranges.count += 1 - gone;
}

/* A range that contains the address ends there; the rest of it is a range of its own. */
static void split_at(struct kernel_changes *c, uint64_t address)
{
	size_t at = count_before(c, address);
	struct kernel_range *before = at ? &c->ranges.data[at - 1] : NULL;

	if (!before || before->end <= address)
		return;
	move_behind(c, at, 0);
	before[1] = *before;
	before[1].start = before->end = address;
}

int kernel_changes__add(struct kernel_changes *c, uint64_t start, uint64_t end, uint64_t time)
{
	size_t at;

	if (c->ranges.count + 2 > RANGES_MAX || c->times.count >= TIMES_MAX) {
		c->left++;
		return 0;
	}
	/* room for this range and for what it splits */
	if (vec_reserve(&c->ranges, c->ranges.count + 3) || vec_push(&c->times, time))
		return -ENOMEM;
	split_at(c, start);
	split_at(c, end);
	at = count_before(c, start);
	move_behind(c, at, count_before(c, end) - at);
	c->ranges.data[at] = (struct kernel_range){start, end, (uint32_t)c->times.count};
	return 0;
}

uint32_t kernel_changes__version(const struct kernel_changes *c, uint64_t address)
{
	size_t count = partition_point(c->ranges.data, c->ranges.count, r, r->start <= address);

	return count && address < c->ranges.data[count - 1].end ? c->ranges.data[count - 1].version
								: 0;
}
