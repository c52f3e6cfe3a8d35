/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/retry.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/minmax.h"
#include "base/parse.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/* Digits at *cursor, exactly so many. */
static bool take_number(const char **cursor, int digits, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++, (*cursor)++) {
		if (!isdigit((unsigned char)**cursor))
			return false;
		*value = *value * 10 + (**cursor - '0');
	}
	return true;
}

static bool take_text(const char **cursor, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(*cursor, text, length))
		return false;
	*cursor += length;
	return true;
}

static bool take_month(const char **cursor, int *month)
{
	static const char NAMES[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (*month = 0; *month < 12; (*month)++)
		if (!strncmp(*cursor, NAMES + *month * 3, 3)) {
			*cursor += 3;
			return true;
		}
	return false;
}

/* The form that senders have to use; of the two older ones none was met. */
int parse_http_date(const char *text, int64_t *seconds)
{
	const char *comma = strchr(text, ','), *p;
	struct tm tm = {};

	if (!comma || comma - text != 3)
		return -EINVAL;
	p = comma + 1;
	if (!take_text(&p, " ") || !take_number(&p, 2, &tm.tm_mday) || !take_text(&p, " ") ||
	    !take_month(&p, &tm.tm_mon) || !take_text(&p, " ") || !take_number(&p, 4, &tm.tm_year))
		return -EINVAL;
	if (!take_text(&p, " ") || !take_number(&p, 2, &tm.tm_hour) || !take_text(&p, ":") ||
	    !take_number(&p, 2, &tm.tm_min) || !take_text(&p, ":") ||
	    !take_number(&p, 2, &tm.tm_sec) || !take_text(&p, " GMT") || *p)
		return -EINVAL;
	if (tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 ||
	    tm.tm_sec > 60 || tm.tm_year < 1970)
		return -EINVAL;
	tm.tm_year -= 1900;
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
