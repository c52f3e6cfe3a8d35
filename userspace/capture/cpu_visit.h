/* SPDX-License-Identifier: BSD-2-Clause */
/* Moving the calling thread from CPU to CPU, for what can only be read there. */
#ifndef CAPTURE_CPU_VISIT_H
#define CAPTURE_CPU_VISIT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define CPU_VISIT_MAX 8192 /* CPU numbers are below this */
#define CPUS_ONLINE   "/sys/devices/system/cpu/online"

/* The affinity of the calling thread, to be restored. NULL: it cannot be read; then do not move. */
cpu_set_t *save_affinity(void);
/* Give it back, and free it. NULL is fine. */
void restore_affinity(cpu_set_t *set);

/* False: the cpuset forbids it. */
bool go_to_cpu(uint32_t cpu);

#endif
