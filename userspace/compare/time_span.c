/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/time_span.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clocks.h"

#define NUMBER_MAX 1000000
#define LENGTH_MAX (UINT64_C(100) * 366 * 86400 * NS_PER_SECOND)
#define TEXT_SIZE  64

/* The words of a unit: its letter, its name, and that with an s. */
static uint64_t unit_of(const char *text, size_t size)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = {
		{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t length = strlen(units[i].name);

		if ((size == 1 && *text == *units[i].name) ||
		    ((size == length || (size == length + 1 && text[length] == 's')) &&
		     !memcmp(text, units[i].name, length)))
			return units[i].seconds * NS_PER_SECOND;
	}
	return 0;
}

/* "1h", "30 minutes": more than 0 */
static int parse_length(const char *text, size_t size, uint64_t *ns)
{
	uint64_t number = 0, unit;
	size_t at = 0;

	for (; at < size && text[at] >= '0' && text[at] <= '9' && number <= NUMBER_MAX; at++)
		number = number * 10 + (uint64_t)(text[at] - '0');
	while (at && at < size && text[at] == ' ')
		at++;
	unit = unit_of(text + at, size - at);
	if (!number || number > NUMBER_MAX || !unit || number > LENGTH_MAX / unit)
		return -EINVAL;
	*ns = number * unit;
	return 0;
}

/* "2026-11-26", "2026-11-26 10:00", "2026-11-26T10:00:00Z" */
static int parse_date(const char *text, uint64_t *ns)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%d%n%H:%M", "%Y-%m-%d%n%H:%M:%S",
					      "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct tm tm = {.tm_isdst = -1};
		const char *end = strptime(text, formats[i], &tm);
		uint64_t seconds;

		if (!end || (*end && strcmp(end, "Z")))
			continue;
		seconds = date_seconds(&tm, *end);
		if (!seconds || seconds > LENGTH_MAX / NS_PER_SECOND)
			return -EINVAL;
		*ns = seconds * NS_PER_SECOND;
		return 0;
	}
	return -EINVAL;
}

/* "1 day ago", or a date */
static int parse_start(const char *text, size_t size, uint64_t now, uint64_t *ns)
{
	static const char ago[] = " ago";
	size_t ending = sizeof(ago) - 1;
	char copy[TEXT_SIZE];
	uint64_t before;

	if (size >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (size <= ending || strcmp(copy + size - ending, ago))
		return parse_date(copy, ns);
	if (parse_length(copy, size - ending, &before) || before > now)
		return -EINVAL;
	*ns = now - before;
	return 0;
}

int parse_time_span(const char *text, uint64_t now, struct time_span *span)
{
	const char *plus = strrchr(text, '+');
	uint64_t length;

	if (*text == '-') {
		if (parse_length(text + 1, strlen(text + 1), &length) || length > now)
			return -EINVAL;
		*span = (struct time_span){now - length, now};
		return 0;
	}
	if (!plus || parse_length(plus + 1, strlen(plus + 1), &length) ||
	    parse_start(text, (size_t)(plus - text), now, &span->from))
		return -EINVAL;
	span->until = span->from + length;
	return 0;
}
