/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/group_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/vec.h"

#define HANDLE_OF_KERNFS 0xfe /* FILEID_KERNFS: what follows is the id */

struct group_paths {
	char *root;
	int root_fd; /* -1: nobody is asked */
	VEC(struct known_group) groups;
	struct hashmap by_id;
	size_t bytes;
	uint64_t uses;
};

static bool id_is(const void *owner, uint32_t index, const void *key)
{
	const struct group_paths *p = owner;

	return p->groups.data[index].id == *(const uint64_t *)key;
}

int group_paths__new(const char *root, struct group_paths **paths)
{
	struct group_paths *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	hashmap__init(&p->by_id, id_is, p);
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
	hashmap__fini(&p->by_id);
	vec_free(&p->groups);
	free(p->root);
	free(p);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* What was used last is first. */
static int compare_uses(const void *a, const void *b)
{
	const struct known_group *x = a, *y = b;

	return x->used > y->used ? -1 : x->used < y->used;
}

/* Half of them go, and half of their bytes. 0 or -ENOMEM: then none is left. */
static int make_room(struct group_paths *p)
{
	size_t kept = 0, bytes = 0;
	int err = 0;

	qsort(p->groups.data, p->groups.count, sizeof(*p->groups.data), compare_uses);
	hashmap__clear(&p->by_id);
	while (!err && kept < p->groups.count && kept < GROUP_PATHS_MAX / 2) {
		size_t size = strlen(p->groups.data[kept].path) + 1;

		if (bytes + size > GROUP_PATHS_BYTES / 2)
			break;
		err = hashmap__add(&p->by_id, hash_u64(p->groups.data[kept].id), (uint32_t)kept);
		kept += !err;
		bytes += err ? 0 : size;
	}
	for (size_t i = kept; i < p->groups.count; i++)
		free(p->groups.data[i].path);
	p->groups.count = kept;
	p->bytes = bytes;
	return err;
}

int group_paths__add(struct group_paths *p, uint64_t id, const char *path)
{
	struct known_group group = {.id = id, .used = ++p->uses};
	size_t size = strlen(path) + 1;
	int err = 0;

	if (hashmap__find(&p->by_id, hash_u64(id), &id) != HASHMAP_NONE)
		return 0;
	if (p->groups.count >= GROUP_PATHS_MAX || p->bytes + size > GROUP_PATHS_BYTES)
		err = make_room(p);
	group.path = err ? NULL : strdup(path);
	if (!group.path)
		return -ENOMEM;
	err = vec_push(&p->groups, group);
	if (!err && (err = hashmap__add(&p->by_id, hash_u64(id), (uint32_t)p->groups.count - 1)))
		p->groups.count--;
	if (err)
		free(group.path);
	else
		p->bytes += size;
	return err;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The path below the root, from what the link of a descriptor says. NULL: it is elsewhere. */
static const char *below_root(const struct group_paths *p, char *link)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(link), tail = sizeof(deleted) - 1, root = strlen(p->root);

	if (length > tail && !strcmp(link + length - tail, deleted))
		link[length - tail] = '\0';
	if (strncmp(link, p->root, root))
		return NULL;
	if (!link[root])
		return "/";
	return link[root] == '/' ? link + root : NULL;
}

static const char *ask_kernel(const struct group_paths *p, uint64_t id, char link[PATH_MAX])
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
	uint32_t index = hashmap__find(&p->by_id, hash_u64(id), &id);
	char link[PATH_MAX];
	const char *path;

	if (index == HASHMAP_NONE) {
		path = ask_kernel(p, id, link);
		if (!path || group_paths__add(p, id, path))
			return NULL;
		index = (uint32_t)p->groups.count - 1;
	}
	p->groups.data[index].used = ++p->uses;
	return &p->groups.data[index];
}

struct known_group *group_paths__all(struct group_paths *p, size_t *count)
{
	*count = p->groups.count;
	return p->groups.data;
}
