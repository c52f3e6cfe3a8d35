/* SPDX-License-Identifier: BSD-2-Clause */
/* When a request is tried again: the backend's word (Retry-After), or our own back-off. */
#ifndef AGENT_RETRY_H
#define AGENT_RETRY_H

#include <stdint.h>

#define RETRY_AFTER_MAX                                                                            \
	(300 * UINT64_C(1000000000)) /* a backend that requests more is tried before */

/*
 * Nanoseconds of a Retry-After header: seconds, or an HTTP date. `date`: the answer's own Date header, which a date
 * is compared with, since the two clocks may differ; NULL or not a date: `now` (ns since the epoch) is. 0: it is
 * empty, or its time has come. RETRY_AFTER_MAX at most.
 */
uint64_t retry_after(const char *value, const char *date, uint64_t now);

/* An HTTP date, "Sun, 06 Nov 1994 08:49:37 GMT", as seconds since the epoch. 0 or -EINVAL. */
int parse_http_date(const char *text, int64_t *seconds);

struct retry_pace {
	uint64_t least, most; /* ns: of the first back-off, and of all */
	uint64_t slow;	      /* ns: if only an administrator can help */
};

/*
 * Full jitter, so that a fleet whose backend comes back does not come all at once: anything up to `least` doubled with each
 * failure (1: the first), and up to `most`; a tenth of `least` at the least. `random` is 64 random bits.
 */
uint64_t retry_delay(const struct retry_pace *pace, unsigned int failures, uint64_t random);

#endif
