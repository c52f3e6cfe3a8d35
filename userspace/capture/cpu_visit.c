/* SPDX-License-Identifier: BSD-2-Clause */
/* Affinity, for machines of any size; readings of the TSC on both sides of a reading of its counter. */
#include "capture/cpu_visit.h"

#include <errno.h>
#include <unistd.h>

#include "base/clocks.h"

bool go_to_cpu(uint32_t cpu)
{
	cpu_set_t *set = CPU_ALLOC(CPU_VISIT_MAX);
	size_t size = CPU_ALLOC_SIZE(CPU_VISIT_MAX);
	bool there;

	if (!set)
		return false;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	there = !sched_setaffinity(0, size, set) && sched_getcpu() == (int)cpu;
	CPU_FREE(set);
	return there;
}

cpu_set_t *save_affinity(void)
{
	cpu_set_t *set = CPU_ALLOC(CPU_VISIT_MAX);

	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(CPU_VISIT_MAX), set)) {
		CPU_FREE(set);
		set = NULL;
	}
	return set;
}

void restore_affinity(cpu_set_t *set)
{
	if (!set)
		return;
	sched_setaffinity(0, CPU_ALLOC_SIZE(CPU_VISIT_MAX), set);
	CPU_FREE(set);
}

#define TSC_READINGS 16

int tsc_counter_base(int fd, uint64_t *base, uint64_t *error)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TSC_READINGS; i++) {
		uint64_t count, before = read_tsc(), after;

		if (read(fd, &count, sizeof(count)) != sizeof(count))
			return -EIO;
		after = read_tsc();
		if (after - before >= best)
			continue;
		best = after - before;
		*base = before + (after - before) / 2 - count;
	}
	*error = best / 2;
	return 0;
}

uint64_t tsc_per_us(void)
{
	uint64_t start = monotonic_ns(), tsc = read_tsc(), now;

	do
		now = monotonic_ns();
	while (now - start < 1000000);
	return (read_tsc() - tsc) * 1000 / (now - start);
}
