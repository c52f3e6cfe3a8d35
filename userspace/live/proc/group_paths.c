/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/group_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/order.h"
#include "base/proc_task.h"

#define HANDLE_OF_KERNFS 0xfe /* FILEID_KERNFS: what follows is the id */

DEFINE_MAP_BY(group_map, struct known_group, uint64_t, id);

struct group_paths {
	char *root;
	int root_fd; /* -1: paths cannot be looked up */
	struct group_map groups;
	size_t bytes;
	uint64_t uses;
};

int group_paths__new(const char *root, struct group_paths **paths)
{
	struct group_paths *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->root_fd = root ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	p->root = strdup(root ? root : "");
	if (!p->root) {
		group_paths__free(p);
		return -ENOMEM;
	}
	*paths = p;
	return 0;
}

void group_paths__free(struct group_paths *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->groups.count; i++)
		free(p->groups.data[i].path);
	if (p->root_fd >= 0)
		close(p->root_fd);
	group_map__fini(&p->groups);
	free(p->root);
	free(p);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The path used last comes first. */
DEFINE_ORDER(compare_uses, struct known_group, DESCENDING(used));

/* Half of them go, and half of their bytes. */
static void make_room(struct group_paths *p)
{
	size_t kept = 0, bytes = 0;

	qsort(p->groups.data, p->groups.count, sizeof(*p->groups.data), compare_uses);
	while (kept < p->groups.count && kept < GROUP_PATHS_MAX / 2) {
		size_t size = strlen(p->groups.data[kept].path) + 1;

		if (bytes + size > GROUP_PATHS_BYTES / 2)
			break;
		kept++;
		bytes += size;
	}
	for (size_t i = kept; i < p->groups.count; i++)
		free(p->groups.data[i].path);
	p->groups.count = kept;
	p->bytes = bytes;
	group_map__reindex(&p->groups);
}

int group_paths__add(struct group_paths *p, uint64_t id, const char *path)
{
	struct known_group group = {.id = id, .used = ++p->uses};
	size_t size = strlen(path) + 1;

	if (group_map__find(&p->groups, id))
		return 0;
	if (p->groups.count >= GROUP_PATHS_MAX || p->bytes + size > GROUP_PATHS_BYTES)
		make_room(p);
	group.path = strdup(path);
	if (!group.path || !group_map__need(&p->groups, &group, NULL)) {
		free(group.path);
		return -ENOMEM;
	}
	p->bytes += size;
	return 0;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

/* The path below the root, from the link of a descriptor. NULL: it is elsewhere. */
static const char *below_root(const struct group_paths *p, char *link)
{
	size_t root = strlen(p->root);

	link[mapping_path_length(link)] = '\0';
	if (strncmp(link, p->root, root))
		return NULL;
	if (!link[root])
		return "/";
	return link[root] == '/' ? link + root : NULL;
}

static const char *path_by_handle(const struct group_paths *p, uint64_t id, char link[PATH_MAX])
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} h = {.handle = {.handle_bytes = sizeof(id), .handle_type = HANDLE_OF_KERNFS}};
	_cleanup_close_ int fd = -1;
	char name[48];
	ssize_t length;

	if (p->root_fd < 0)
		return NULL;
	memcpy(h.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(p->root_fd, &h.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, link, PATH_MAX - 1);
	if (length <= 0)
		return NULL;
	link[length] = '\0';
	return below_root(p, link);
}

struct known_group *group_paths__find(struct group_paths *p, uint64_t id)
{
	struct known_group *known = group_map__find(&p->groups, id);
	char link[PATH_MAX];
	const char *path;

	if (!known) {
		path = path_by_handle(p, id, link);
		if (!path || group_paths__add(p, id, path))
			return NULL;
		known = &p->groups.data[p->groups.count - 1];
	}
	known->used = ++p->uses;
	return known;
}

struct known_group *group_paths__all(struct group_paths *p, size_t *count)
{
	*count = p->groups.count;
	return p->groups.data;
}
