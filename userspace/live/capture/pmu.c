/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/pmu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/parse.h"

#define DEVICES	  "/sys/bus/event_source/devices"
#define TEXT_MAX  256
#define NAMES_MAX 4096 /* of one PMU */

struct pmu {
	const char *root;
	char name[64];
	struct tick_source *source;
	struct failure *failure;
};

/* A file of the PMU: what is in it, or an error. Names with a slash are none. */
static int read_file_of(const struct pmu *pmu, const char *directory, const char *name, char *text)
{
	char path[512];

	if (strchr(name, '/') || *name == '.' ||
	    (size_t)snprintf(path, sizeof(path), "%s/%s/%s%s%s", pmu->root, pmu->name, directory,
			     *directory ? "/" : "", name) >= sizeof(path))
		return -ENOENT;
	return read_line(path, text, TEXT_MAX);
}

/* The next number of a list of bits; moves behind it. */
static int take_bit(const char **at, unsigned long *bit)
{
	char *end;

	if (**at < '0' || **at > '9')
		return -EINVAL;
	*bit = strtoul(*at, &end, 10);
	*at = end;
	return *bit < 64 ? 0 : -EINVAL;
}

/* Puts the low bits of `value` where "0-7,32-35" says. -ERANGE: some are left. */
static int deposit(const char *ranges, uint64_t value, uint64_t *config)
{
	do {
		unsigned long first, last;

		if (take_bit(&ranges, &first))
			return -EINVAL;
		last = first;
		if (*ranges == '-' && (ranges++, take_bit(&ranges, &last)))
			return -EINVAL;
		for (unsigned long bit = first; bit <= last; bit++, value >>= 1)
			*config |= (value & 1) << bit;
	} while (*ranges == ',' && *++ranges);
	return value ? -ERANGE : 0;
}

/* The number of a configuration word at the start of "config1:0-7"; moves behind it. */
static int take_config(const char **at)
{
	int number = 0;

	if (strncmp(*at, "config", strlen("config")))
		return -EINVAL;
	*at += strlen("config");
	if (**at == '1' || **at == '2')
		number = *(*at)++ - '0';
	return number;
}

/* A field in the words that the PMU is programmed with. */
static int set_field(struct pmu *pmu, const char *field, uint64_t value)
{
	char format[TEXT_MAX];
	const char *at = field;
	int number = take_config(&at);

	if (number >= 0 && !*at) {
		pmu->source->config[number] |= value;
		return 0;
	}
	if (read_file_of(pmu, "format", field, format))
		return fail(pmu->failure, -EINVAL, "the PMU \"%s\" has no event or field \"%s\"",
			    pmu->name, field);
	at = format;
	number = take_config(&at);
	if (number < 0 || *at++ != ':')
		return fail(pmu->failure, -EINVAL, "the field \"%s\" of the PMU \"%s\" is \"%s\"",
			    field, pmu->name, format);
	if (deposit(at, value, &pmu->source->config[number]))
		return fail(pmu->failure, -EINVAL, "%s=%llu: the field has the bits %s", field,
			    (unsigned long long)value, at);
	return 0;
}

static int set_terms(struct pmu *pmu, char *terms, bool is_event);

/* "event=0x3c", a field that is set by its name, or an event. */
static int set_term(struct pmu *pmu, char *term, bool is_event)
{
	char *equals = strchr(term, '='), *end, event[TEXT_MAX];
	uint64_t value;

	if (!equals && !is_event && !read_file_of(pmu, "events", term, event))
		return set_terms(pmu, event, true);
	if (!equals)
		return set_field(pmu, term, 1);
	*equals++ = '\0';
	if (!strcmp(equals, "?"))
		return fail(pmu->failure, -EINVAL, "the event needs a value: %s=NUMBER", term);
	errno = 0;
	value = strtoull(equals, &end, 0);
	if (*equals < '0' || *equals > '9' || *end || errno)
		return fail(pmu->failure, -EINVAL, "%s=%s: not a number", term, equals);
	return set_field(pmu, term, value);
}

static int set_terms(struct pmu *pmu, char *terms, bool is_event)
{
	char *save, *term = strtok_r(terms, ",", &save);
	int err = 0;

	for (; term && !err; term = strtok_r(NULL, ",", &save))
		err = set_term(pmu, term, is_event);
	return err;
}

int pmu__find(const char *root, const char *text, struct tick_source *source,
	      struct failure *failure)
{
	struct pmu pmu = {.root = root ? root : DEVICES, .source = source, .failure = failure};
	char terms[TEXT_MAX], type[TEXT_MAX];
	size_t size = strcspn(text, "/"), left = strlen(text + size);
	uint64_t number;

	if (left < 2 || text[size + left - 1] != '/')
		return fail(failure, -EINVAL, "\"%s\" is not PMU/EVENT/ or PMU/FIELD=NUMBER,…/",
			    text);
	snprintf(pmu.name, sizeof(pmu.name), "%.*s", (int)size, text);
	if (!size || read_file_of(&pmu, "", "type", type) ||
	    parse_u64(type, 0, UINT32_MAX, &number)) {
		fail(failure, -ENOENT, "this machine has no PMU \"%s\"", pmu.name);
		return fail_remedy(failure, -ENOENT,
				   "sysprof check --events lists what this machine has");
	}
	source->type = (uint32_t)number;
	snprintf(source->name, sizeof(source->name), "%s", text);
	snprintf(terms, sizeof(terms), "%.*s", (int)left - 2, text + size + 1);
	return set_terms(&pmu, terms, false);
}

/* ---- what there is --------------------------------------------------------------------------- */

/* Names of events have no dot: those that have describe another one. */
static bool is_event_name(const char *name)
{
	return *name != '.' && !strchr(name, '.');
}

static int list_pmu(const char *root, const char *pmu, int (*take)(void *, const char *),
		    void *context)
{
	char path[512], name[TICK_SOURCE_NAME_MAX];
	_cleanup_closedir_ DIR *events = NULL;
	const struct dirent *entry;
	int err = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/events", root, pmu) >= sizeof(path))
		return 0;
	events = open_names(AT_FDCWD, path);
	if (!events)
		return 0;
	for (int i = 0; i < NAMES_MAX && !err && (entry = readdir(events)); i++)
		if (is_event_name(entry->d_name) &&
		    (size_t)snprintf(name, sizeof(name), "%s/%s/", pmu, entry->d_name) <
			    sizeof(name))
			err = take(context, name);
	return err;
}

int pmu__list(const char *root, int (*take)(void *context, const char *name), void *context)
{
	_cleanup_closedir_ DIR *pmus = NULL;
	const struct dirent *entry;
	int err = 0;

	root = root ? root : DEVICES;
	pmus = open_names(AT_FDCWD, root);
	while (pmus && !err && (entry = readdir(pmus)))
		if (*entry->d_name != '.')
			err = list_pmu(root, entry->d_name, take, context);
	return err;
}
