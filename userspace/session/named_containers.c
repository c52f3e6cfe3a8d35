/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/named_containers.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "services/cgroup_path.h"
#include "services/containers.h"

#define ID_LEAST    12		   /* digits, as other tools show */
#define NAMELESS_NS 20000000000ull /* a name is awaited for so long: it is looked for after 15 s */
#define SECOND	    1000000000ull
#define LOOK_UPS    20u /* a second: each reads files, and a user can make any number of groups */

struct named_containers {
	struct containers *containers; /* NULL: there are no files */
	uint64_t second;	       /* when this one began … */
	unsigned int look_ups;	       /* … and what was looked up in it */
};

struct named_containers *named_containers__new(const char *root)
{
	struct named_containers *c = calloc(1, sizeof(*c));

	if (c && containers__new(root, &c->containers))
		c->containers = NULL;
	return c;
}

void named_containers__free(struct named_containers *c)
{
	if (!c)
		return;
	containers__free(c->containers);
	free(c);
}

/* False: too many in this second. */
static bool may_look_up(struct named_containers *c, uint64_t now)
{
	if (now >= c->second + SECOND) {
		c->second = now;
		c->look_ups = 0;
	}
	if (c->look_ups == LOOK_UPS)
		return false;
	c->look_ups++;
	return true;
}

/* NULL: it has none; *may_change: it may still come. */
static const struct container_names *find_names(struct named_containers *c,
						const struct cgroup_place *place, uint64_t now,
						bool *may_change)
{
	const char *id = place->container, *pod = place->pod_uid;
	const struct container_names *names;

	if (!c->containers)
		return NULL;
	if (containers__is_due(c->containers, id, pod, now) && !may_look_up(c, now)) {
		*may_change = true;
		return NULL;
	}
	names = containers__find(c->containers, id, pod, now);
	*may_change |= !names && now < containers__first_try(c->containers, id, pod) + NAMELESS_NS;
	return names;
}

static bool matches_id(const char *pattern, const char *id)
{
	size_t size = strlen(pattern);

	return (size >= ID_LEAST && !strncmp(id, pattern, size)) || !fnmatch(pattern, id, 0);
}

static bool matches_name(const char *pattern, const char *name)
{
	return name && *name && !fnmatch(pattern, name, 0);
}

static bool matches_place(struct named_containers *c, const char *pattern,
			  const struct cgroup_place *place, uint64_t now, bool *may_change)
{
	const struct container_names *names;

	if (place->is_monitor)
		return false;
	if (matches_name(pattern, place->container_name))
		return true;
	if (!place->container[0])
		return false;
	if (matches_id(pattern, place->container))
		return true;
	names = find_names(c, place, now, may_change);
	return names &&
	       (matches_name(pattern, names->name) || matches_name(pattern, names->container));
}

bool named_containers__match(struct named_containers *c, const char *pattern, const char *path,
			     uint64_t now, bool *may_change)
{
	_cleanup_free_ char *outer = strdup(path);
	char name[CGROUP_NAME_SIZE];
	struct cgroup_place place;
	const char *rest = path;

	/* a container in another one: each is in its own group and in those around it */
	while (outer && pattern && *rest) {
		rest = cgroup_path_part(rest, name);
		if (cgroup_owner_of(name) == CGROUP_OF_CONTAINER) {
			memcpy(outer, path, rest - path);
			outer[rest - path] = '\0';
			cgroup_place__parse(&place, outer);
			if (matches_place(c, pattern, &place, now, may_change))
				return true;
		}
		pattern = cgroup_pattern_below(pattern, name);
	}
	return false;
}
