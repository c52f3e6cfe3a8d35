/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks, in nanoseconds. */
#ifndef BASE_CLOCKS_H
#define BASE_CLOCKS_H

#include <stdint.h>

uint64_t monotonic_ns(void);
uint64_t realtime_ns(void);
/* Goes on while the machine sleeps. */
uint64_t boottime_ns(void);
/* CPU time of the calling thread; of the process. */
uint64_t thread_cpu_ns(void);
uint64_t process_cpu_ns(void);

#endif
