/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of control groups of the unified hierarchy by id, as eBPF programs see them. An existing
 * group is looked up by its id; a path reported when its group was made outlives the group.
 *
 * A user can make many groups with long names, so the paths used last are kept, within limits.
 */
#ifndef LIVE_PROC_GROUP_PATHS_H
#define LIVE_PROC_GROUP_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_PATHS_MAX	  8192u
#define GROUP_PATHS_BYTES (4u << 20)

struct group_paths;

struct known_group {
	uint64_t id;
	char *path; /* from the root of the hierarchy: "/system.slice/x.service" */
	uint64_t used;
	bool excluded; /* the caller's */
};

/* `root`: mount point of the hierarchy; NULL: not mounted or not accessible. 0 or -ENOMEM. */
int group_paths__new(const char *root, struct group_paths **paths);
void group_paths__free(struct group_paths *p);

/* Known paths stay: no group is ever renamed. 0 or -ENOMEM. */
int group_paths__add(struct group_paths *p, uint64_t id, const char *path);

/* Looks it up if it is not cached. NULL: unknown. Valid until the next call. */
struct known_group *group_paths__find(struct group_paths *p, uint64_t id);

/* All that are known, in any order. */
struct known_group *group_paths__all(struct group_paths *p, size_t *count);

#endif
