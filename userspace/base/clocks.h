/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks, in nanoseconds. */
#ifndef BASE_CLOCKS_H
#define BASE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

uint64_t monotonic_ns(void);
uint64_t realtime_ns(void);
/* Counts while the machine sleeps, too. */
uint64_t boottime_ns(void);
/* CPU time of the calling thread; of the process. */
uint64_t thread_cpu_ns(void);
uint64_t process_cpu_ns(void);
/* CPU time of all threads of another process. False: it has ended. */
bool process_cpu_ns_of(pid_t pid, uint64_t *ns);
/* A date of UTC or of the local time, in seconds since the epoch; 0: it is before, or no day. */
uint64_t date_seconds(struct tm *date, bool utc);

#endif
