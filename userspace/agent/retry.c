/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/retry.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "base/parse.h"

/* The form that senders have to use, exactly; of the two older ones none was met. */
int parse_http_date(const char *text, int64_t *seconds)
{
	static const char format[] = "%a, %d %b %Y %H:%M:%S GMT";
	char again[sizeof("Sun, 06 Nov 1994 08:49:37 GMT")];
	struct tm tm = {};
	const char *end = strptime(text, format, &tm);

	if (!end || *end || !strftime(again, sizeof(again), format, &tm) || strcmp(again, text) ||
	    tm.tm_year < 70)
		return -EINVAL;
	*seconds = timegm(&tm);
	return 0;
}

uint64_t retry_after(const char *value, const char *date, uint64_t now)
{
	int64_t then, base;
	uint64_t seconds;
	int err = parse_u64(value, 0, UINT64_MAX, &seconds);

	if (err == -ERANGE)
		return RETRY_AFTER_MAX;
	if (!err)
		return min_u64(seconds, RETRY_AFTER_MAX / NS_PER_SECOND) * NS_PER_SECOND;
	if (parse_http_date(value, &then))
		return 0;
	if (!date || parse_http_date(date, &base))
		base = now / NS_PER_SECOND;
	if (then <= base)
		return 0;
	return min_u64(then - base, RETRY_AFTER_MAX / NS_PER_SECOND) * NS_PER_SECOND;
}

uint64_t retry_delay(const struct retry_pace *pace, unsigned int failures, uint64_t random)
{
	uint64_t most = pace->least;

	for (unsigned int i = 1; i < failures && most < pace->most; i++)
		most *= 2;
	most = min_u64(most, pace->most);
	return max_u64(most ? random % most : 0, pace->least / 10);
}
