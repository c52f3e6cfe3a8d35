/* SPDX-License-Identifier: BSD-2-Clause */
/* Affinity, for machines of any size. */
#include "capture/cpu_visit.h"

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
