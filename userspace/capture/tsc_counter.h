/* SPDX-License-Identifier: BSD-2-Clause */
/* perf's counter of the TSC counts from its opening on: what the TSC itself was then. */
#ifndef CAPTURE_TSC_COUNTER_H
#define CAPTURE_TSC_COUNTER_H

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* The TSC, when what is before it is done; 0: this machine has none. */
static inline uint64_t read_tsc(void)
{
#if defined(__x86_64__)
	unsigned int processor;

	return __rdtscp(&processor);
#else
	return 0;
#endif
}

/*
 * TSC at which the counter behind `fd` stood at 0; *error is half the bracket of the best reading, in TSC
 * ticks: a tenth of a microsecond on the counter's own CPU, several from another one. 0 or -EIO.
 */
int tsc_counter_base(int fd, uint64_t *base, uint64_t *error);

/* TSC ticks per microsecond, well enough to judge an error by. Takes a millisecond. */
uint64_t tsc_per_us(void);

#endif
