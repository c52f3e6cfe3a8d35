/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/environment.h"

#include <ctype.h>

#include "base/order.h"
#include "live/proc/fact_reader.h"

const char *const environment_names[] = {
	"DD_SERVICE",
	"DD_VERSION",
	"DD_ENV",
	"OTEL_SERVICE_NAME",
	"OTEL_RESOURCE_ATTRIBUTES",
	"HOSTNAME",
	"INVOCATION_ID",
	"SLURM_JOB_ID",
	NULL,
};

bool environment_name_is_valid(const char *name)
{
	size_t length = strnlen(name, ENVIRONMENT_NAME_MAX);

	if (!length || length == ENVIRONMENT_NAME_MAX || isdigit((unsigned char)*name))
		return false;
	return !any_of(name, length, letter, !isalnum((unsigned char)*letter) && *letter != '_');
}

/* The name in the list that the variable has, or NULL. */
static const char *wanted_name(const char *variable, size_t length, const char *names, size_t size)
{
	for (const char *name = names, *end = names + size; name < end; name += strlen(name) + 1)
		if (strlen(name) == length && !memcmp(name, variable, length))
			return name;
	return NULL;
}

void environment__pick(const char *text, size_t size, const char *names, size_t names_size,
		       struct fact_text *facts)
{
	const char *at = text, *end = text + size, *zero;

	if (!names_size || names[names_size - 1])
		return;
	for (; at < end && (zero = memchr(at, '\0', end - at)); at = zero + 1) {
		const char *equal = memchr(at, '=', zero - at);
		const char *name = equal ? wanted_name(at, equal - at, names, names_size) : NULL;

		if (name)
			fact_text__add(facts, "env:", name, equal + 1, zero - equal - 1);
	}
}
