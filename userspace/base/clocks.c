/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clocks.h"

#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now = {};

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

uint64_t monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t boottime_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t process_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
