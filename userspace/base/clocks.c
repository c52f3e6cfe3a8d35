/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clocks.h"

#define CPU_CLOCK_OF(pid) ((clockid_t)(~(unsigned int)(pid) << 3 | 2)) /* the kernel's numbers */

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

/* clock_getcpuclockid() makes the same number, with one more system call to check it. */
bool process_cpu_ns_of(pid_t pid, uint64_t *ns)
{
	struct timespec time;

	if (pid <= 0 || clock_gettime(CPU_CLOCK_OF(pid), &time))
		return false;
	*ns = time.tv_sec * NS_PER_SECOND + time.tv_nsec;
	return true;
}

/* The C library makes March 2 of February 30. */
uint64_t date_seconds(struct tm *date, bool utc)
{
	struct tm day = {
		.tm_year = date->tm_year, .tm_mon = date->tm_mon, .tm_mday = date->tm_mday};
	time_t seconds;

	timegm(&day);
	if (day.tm_mday != date->tm_mday)
		return 0;
	seconds = utc ? timegm(date) : mktime(date);
	return seconds > 0 ? (uint64_t)seconds : 0;
}
