/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters as text, and regular expressions: the first line is a filter, the second an expression, the
 * rest a text for it. What was parsed prints as text that parses to the same; a match is found in any
 * longer text, ends in bounded steps, and does not change.
 */
#include <errno.h>
#include <string.h>

#include "filter/filter.h"
#include "fuzz.h"

static void check_filter(const char *text)
{
	struct profile_filter filter = {}, again = {};
	char *printed, *twice;

	if (profile_filter__parse(&filter, text, NULL)) {
		profile_filter__fini(&filter);
		return;
	}
	printed = profile_filter__print(&filter);
	MUST(printed && !profile_filter__parse(&again, printed, NULL));
	twice = profile_filter__print(&again);
	MUST(twice && !strcmp(printed, twice) && filter.count == again.count);
	for (size_t i = 0; i < filter.count; i += profile_filter__group(&filter, i))
		MUST(i + profile_filter__group(&filter, i) <= filter.count);
	free(printed);
	free(twice);
	profile_filter__fini(&filter);
	profile_filter__fini(&again);
}

static void check_pattern(const char *text, const char *subject, size_t size)
{
	struct failure failure = {};
	struct pattern *pattern = pattern__new(text, &failure);
	int matches;

	MUST(pattern || *failure.what);
	if (!pattern)
		return;
	matches = pattern__matches(pattern, subject, size);
	MUST(matches == 0 || matches == 1 || matches == -E2BIG);
	pattern__begin(pattern);
	MUST(pattern__matches(pattern, subject, size) == matches);
	pattern__free(pattern);
}

/* Up to the end of the line, which it passes. */
static char *take_line(const char **at, const char *end)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	char *line = strndup(*at, (size_t)((newline ? newline : end) - *at));

	MUST(line);
	*at = newline ? newline + 1 : end;
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	char *filter = take_line(&at, end), *pattern = take_line(&at, end);
	char *subject = malloc((size_t)(end - at) + 1);

	MUST(subject);
	if (end > at)
		memcpy(subject, at, (size_t)(end - at));
	check_filter(filter);
	check_pattern(pattern, subject, (size_t)(end - at));
	free(filter);
	free(pattern);
	free(subject);
	return 0;
}
