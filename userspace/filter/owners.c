/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/owners.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* The shortest beginning of a container's id that stands for it, as tools print it. */
#define ID_SIZE_LEAST 12
#define NAME_SIZE     1280 /* of a unit with its instance */

static bool is_number(const char *text, uint32_t number)
{
	uint64_t value;

	return !parse_u64(text, 0, UINT32_MAX, &value) && value == number;
}

bool is_name(const char *pattern, const char *text)
{
	return *text && (!strcmp(pattern, text) || !fnmatch(pattern, text, 0));
}

/* "nginx.service", or "nginx" */
static bool is_unit(const char *pattern, const char *unit)
{
	static const char *const types[] = {".service", ".scope", ".slice", ".socket"};
	size_t size = strlen(unit);
	char name[NAME_SIZE];

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		size_t ending = strlen(types[i]);

		if (size <= ending || size >= sizeof(name) ||
		    strcmp(unit + size - ending, types[i]) != 0)
			continue;
		memcpy(name, unit, size - ending);
		name[size - ending] = '\0';
		return is_name(pattern, unit) || is_name(pattern, name);
	}
	return false;
}

/* An id, by a pattern or its beginning. */
static bool is_id(const char *pattern, const char *id)
{
	size_t length = strlen(pattern);

	return is_name(pattern, id) || (length >= ID_SIZE_LEAST && !strncmp(pattern, id, length));
}

/* ---- of files without names: by the path of the control group --------------------------------- */

/* Is one of the parts of a control group's path such a name? */
static bool has_part(const struct profile *p, const struct profile_process *process,
		     bool (*matches)(const char *pattern, const char *part), const char *pattern)
{
	const char *path = profile__string(p, process->cgroup);
	char part[NAME_SIZE];

	while (*path) {
		size_t size = strcspn(path, "/");

		if (size && size < sizeof(part)) {
			memcpy(part, path, size);
			part[size] = '\0';
			if (matches(pattern, part))
				return true;
		}
		path += size + (path[size] == '/');
	}
	return false;
}

/* The id in "docker-0123….scope", or its beginning. */
static bool is_container(const char *pattern, const char *part)
{
	const char *dash = strrchr(part, '-'), *id = dash ? dash + 1 : part;
	size_t size = 0;
	char text[65] = "";

	while (isxdigit((unsigned char)id[size]))
		size++;
	if (size != 64 || (id[size] && id[size] != '.'))
		return false;
	memcpy(text, id, size);
	return is_id(pattern, text);
}

/* ---- names of processes ---------------------------------------------------------------------- */

/* "postgresql@.service" of the instance "14-main" is "postgresql@14-main.service" as well. */
static bool is_instance(const char *pattern, const char *unit, const char *instance)
{
	const char *at = strchr(unit, '@');
	char whole[NAME_SIZE];

	if (!*instance || !at)
		return false;
	snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at + 1 - unit), unit, instance, at + 1);
	return is_unit(pattern, whole);
}

static bool unit_matches(const char *pattern, const struct profile *p,
			 const struct profile_process *process)
{
	const char *unit = profile__string(p, process->names.unit);

	if (!*unit)
		return has_part(p, process, is_unit, pattern);
	return is_unit(pattern, unit) || is_name(pattern, unit) ||
	       is_instance(pattern, unit, profile__string(p, process->names.instance));
}

static bool container_matches(const char *pattern, const struct profile *p,
			      const struct profile_process *process)
{
	const struct profile_names *names = &process->names;

	if (!names->container.v && !names->container_id.v)
		return has_part(p, process, is_container, pattern);
	return is_name(pattern, profile__string(p, names->container)) ||
	       is_id(pattern, profile__string(p, names->container_id));
}

bool owner_matches(const struct filter_clause *clause, const struct profile *p,
		   const struct profile_thread *thread)
{
	const struct profile_process *process = &p->processes[thread->process.v];
	const char *text = clause->text + clause->drops;

	switch (clause->kind) {
	case FILTER_PROCESS:
		return is_number(text, process->pid) ||
		       is_name(text, profile__string(p, process->name));
	case FILTER_THREAD:
		return is_number(text, thread->tid) ||
		       is_name(text, profile__string(p, thread->name));
	case FILTER_SERVICE:
		return is_name(text, profile__string(p, process->names.service));
	case FILTER_CONTAINER:
		return container_matches(text, p, process);
	case FILTER_UNIT:
		return unit_matches(text, p, process);
	case FILTER_USER:
		return is_name(text, profile__string(p, process->names.user));
	default:
		return false;
	}
}
