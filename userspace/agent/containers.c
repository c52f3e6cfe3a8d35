/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache by id. kubelet's names of log files are an index of all pods that costs one readdir, which is read when a
 * container is unknown, at most every INDEX_INTERVAL.
 */
#include "agent/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/map.h"
#include "base/order.h"

#define S	       1000000000ull
#define INDEX_INTERVAL (10 * S)
#define INDEX_MAX      16384u /* names in it */
#define TRIES	       5
#define TRY_INTERVAL   (15 * S)
#define KEY_SIZE       96

struct known_container {
	char key[KEY_SIZE]; /* its id, or "pod:" and the uid of its pod */
	struct container_names names;
	uint64_t used; /* counts calls */
	uint64_t next_try;
	unsigned int tries;
	bool found;
};
DEFINE_MAP_BY_STRING(known_containers, struct known_container, key);

/* "<pod>_<namespace>_<container>-<id>.log", "<namespace>_<pod>_<uid>" */
struct logged_pod {
	char key[KEY_SIZE];
	char *names; /* the name of the file, its separators replaced by NULs */
	const char *pod, *pod_namespace, *container;
};
DEFINE_MAP_BY_STRING(logged_pods, struct logged_pod, key);

struct containers {
	int root_fd;
	struct known_containers known;
	struct logged_pods logged;
	bool was_indexed;
	uint64_t indexed, uses;
	struct containers_stats stats;
};

int containers__new(const char *root, struct containers **containers)
{
	struct containers *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->root_fd < 0) {
		err = -errno;
		containers__free(c);
		return err;
	}
	*containers = c;
	return 0;
}

static void forget_index(struct containers *c)
{
	for (size_t i = 0; i < c->logged.count; i++)
		free(c->logged.data[i].names);
	logged_pods__clear(&c->logged);
}

void containers__free(struct containers *c)
{
	if (!c)
		return;
	if (c->root_fd >= 0)
		close(c->root_fd);
	forget_index(c);
	for (size_t i = 0; i < c->known.count; i++)
		container_names__fini(&c->known.data[i].names);
	known_containers__fini(&c->known);
	logged_pods__fini(&c->logged);
	free(c);
}

/* ---- the names of log files ------------------------------------------------------------------ */

/* Cuts at the next "_": what is before it, or NULL. */
static const char *cut_part(char **rest)
{
	char *part = *rest, *separator = part ? strchr(part, '_') : NULL;

	if (!separator || separator == part)
		return NULL;
	*separator = '\0';
	*rest = separator + 1;
	return part;
}

/* "<pod>_<namespace>_<container>-<id>.log" */
static bool parse_container_log(struct logged_pod *entry)
{
	size_t length = strlen(entry->names);
	char *rest = entry->names, *dash;

	if (length < 5 || strcmp(rest + length - 4, ".log"))
		return false;
	rest[length - 4] = '\0';
	entry->pod = cut_part(&rest);
	entry->pod_namespace = entry->pod ? cut_part(&rest) : NULL;
	dash = entry->pod_namespace ? strrchr(rest, '-') : NULL;
	if (!dash || dash == rest || !dash[1] || strlen(dash + 1) >= KEY_SIZE)
		return false;
	*dash = '\0';
	entry->container = rest;
	snprintf(entry->key, sizeof(entry->key), "%s", dash + 1);
	return true;
}

/* "<namespace>_<pod>_<uid>" */
static bool parse_pod_directory(struct logged_pod *entry)
{
	char *rest = entry->names;

	entry->pod_namespace = cut_part(&rest);
	entry->pod = entry->pod_namespace ? cut_part(&rest) : NULL;
	return entry->pod && *rest &&
	       snprintf(entry->key, sizeof(entry->key), "pod:%s", rest) < (int)sizeof(entry->key);
}

static int add_logged(struct containers *c, const char *name,
		      bool (*parse)(struct logged_pod *entry))
{
	struct logged_pod entry = {.names = strdup(name)};
	bool is_new = false;

	if (!entry.names)
		return -ENOMEM;
	if (!parse(&entry) || !logged_pods__need(&c->logged, &entry, &is_new) || !is_new)
		free(entry.names);
	return 0;
}

static int index_directory(struct containers *c, const char *path,
			   bool (*parse)(struct logged_pod *entry))
{
	_cleanup_closedir_ DIR *dir = open_names(c->root_fd, path);
	struct dirent *entry;
	int err = 0;

	while (dir && !err && c->logged.count < INDEX_MAX && (entry = readdir(dir)))
		err = add_logged(c, entry->d_name, parse);
	return err;
}

static int read_index(struct containers *c, uint64_t now)
{
	if (c->was_indexed && now < c->indexed + INDEX_INTERVAL)
		return 0;
	c->was_indexed = true;
	c->indexed = now;
	forget_index(c);
	return index_directory(c, "var/log/containers", parse_container_log)
		       ?: index_directory(c, "var/log/pods", parse_pod_directory);
}

static int set_text(char **text, const char *value)
{
	if (*text || !value || !*value || strlen(value) > CONTAINER_TEXT_MAX)
		return 0;
	*text = strdup(value);
	return *text ? 0 : -ENOMEM;
}

static int take_logged(struct containers *c, const char *key, struct container_names *names)
{
	const struct logged_pod *entry = logged_pods__find(&c->logged, key);

	if (!entry)
		return 0;
	return set_text(&names->pod, entry->pod)
			?: set_text(&names->pod_namespace, entry->pod_namespace)
			?: set_text(&names->container, entry->container);
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* An id becomes part of a path. */
static bool is_plain(const char *id)
{
	return strspn(id, "0123456789abcdefABCDEF-") == strlen(id);
}

static bool is_something(const struct container_names *t)
{
	return t->pod || t->pod_namespace || t->container || t->name || t->image || t->service;
}

static int look_up(struct containers *c, struct known_container *known, const char *id,
		   const char *pod_key)
{
	struct container_names *names = &known->names;
	int err = 0;

	c->stats.looked_up++;
	if (*id)
		err = container_files__read(c->root_fd, id, names) ?: take_logged(c, id, names);
	if (!err && *pod_key)
		err = take_logged(c, pod_key, names);
	known->found = is_something(names);
	c->stats.found += known->found;
	return err;
}

DEFINE_ORDER(compare_used, struct known_container, DESCENDING(used));

/* Evicts the half that was not used lately. */
static void make_room(struct containers *c)
{
	size_t kept = CONTAINERS_KEPT / 2;

	if (c->known.count < CONTAINERS_KEPT)
		return;
	qsort(c->known.data, c->known.count, sizeof(*c->known.data), compare_used);
	for (size_t i = kept; i < c->known.count; i++)
		container_names__fini(&c->known.data[i].names);
	c->stats.evicted += c->known.count - kept;
	c->known.count = kept;
	known_containers__reindex(&c->known);
}

static struct known_container *need(struct containers *c, const char *key)
{
	struct known_container *known = known_containers__find(&c->known, key), added = {};

	if (known)
		return known;
	snprintf(added.key, sizeof(added.key), "%s", key);
	make_room(c);
	return known_containers__need(&c->known, &added, NULL);
}

const struct container_names *containers__find(struct containers *c, const char *id,
					       const char *pod_uid, uint64_t now)
{
	char pod_key[KEY_SIZE] = "";
	struct known_container *known;

	if (!is_plain(id) || !is_plain(pod_uid) || (!*id && !*pod_uid) || strlen(id) >= KEY_SIZE)
		return NULL;
	if (*pod_uid && snprintf(pod_key, sizeof(pod_key), "pod:%s", pod_uid) >= KEY_SIZE)
		return NULL;
	known = need(c, *id ? id : pod_key);
	if (!known)
		return NULL;
	known->used = ++c->uses;
	if (!known->found && known->tries < TRIES && (!known->tries || now >= known->next_try)) {
		known->tries++;
		known->next_try = now + TRY_INTERVAL;
		if (read_index(c, now) || look_up(c, known, id, pod_key))
			known->tries--; /* no memory */
	}
	return known->found ? &known->names : NULL;
}

void containers__stats(const struct containers *c, struct containers_stats *stats)
{
	*stats = c->stats;
}
