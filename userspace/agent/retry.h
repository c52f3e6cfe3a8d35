/* SPDX-License-Identifier: BSD-2-Clause */
/* When a request that failed is tried again: what the backend says, else a back-off. */
#ifndef AGENT_RETRY_H
#define AGENT_RETRY_H

#include <stdint.h>

#define RETRY_AFTER_MAX                                                                            \
	(300 * UINT64_C(1000000000)) /* a backend that requests more is tried before */

/*
 * Nanoseconds of a Retry-After header: seconds, or an HTTP date, compared with the answer's own
 * Date header (`date`), because the clocks may differ; if that is NULL or no date, with `now` (ns
 * since the epoch). 0: empty, invalid or past. RETRY_AFTER_MAX at most.
 */
uint64_t retry_after(const char *value, const char *date, uint64_t now);

/* An HTTP date, "Sun, 06 Nov 1994 08:49:37 GMT", as seconds since the epoch. 0 or -EINVAL. */
int parse_http_date(const char *text, int64_t *seconds);

struct retry_pace {
	uint64_t least, most; /* ns: of the first back-off, and of all */
	uint64_t slow;	      /* ns: if only an administrator can help */
};

/*
 * Full jitter, so that a fleet does not return all at once: up to `least` doubled with each failure
 * (1: the first), `most` at most, a tenth of `least` at least. `random`: 64 random bits.
 */
uint64_t retry_delay(const struct retry_pace *pace, unsigned int failures, uint64_t random);

#endif
