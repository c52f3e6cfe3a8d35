/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/vec.h"

#define IDLE_WINDOWS                                                                               \
	240 /* an hour of 15-s windows: a life that did not run for so long is decided anew */

struct service_memory {
	VEC(struct kept_life) lives;
	struct hashmap by_life, by_pid;
	VEC(struct kept_group) groups;
	struct hashmap by_path;
	uint64_t evicted;
};

static bool life_is(const void *owner, uint32_t index, const void *key)
{
	const struct service_memory *m = owner;

	return m->lives.data[index].life == *(const uint64_t *)key;
}

static bool pid_is(const void *owner, uint32_t index, const void *key)
{
	const struct service_memory *m = owner;

	return m->lives.data[index].pid == *(const uint32_t *)key;
}

static bool path_is(const void *owner, uint32_t index, const void *key)
{
	const struct service_memory *m = owner;

	return !strcmp(m->groups.data[index].path, key);
}

struct service_memory *service_memory__new(void)
{
	struct service_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	hashmap__init(&m->by_life, life_is, m);
	hashmap__init(&m->by_pid, pid_is, m);
	hashmap__init(&m->by_path, path_is, m);
	return m;
}

static void free_group(struct kept_group *group)
{
	label_set__release(group->set);
	free(group->path);
	free(group->program);
}

void service_memory__free(struct service_memory *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->groups.count; i++)
		free_group(&m->groups.data[i]);
	hashmap__fini(&m->by_life);
	hashmap__fini(&m->by_pid);
	hashmap__fini(&m->by_path);
	vec_free(&m->lives);
	vec_free(&m->groups);
	free(m);
}

/* ---- lives ----------------------------------------------------------------------------------- */

struct kept_life *service_memory__life(struct service_memory *m, uint64_t life)
{
	uint32_t index = life ? hashmap__find(&m->by_life, hash_u64(life), &life) : HASHMAP_NONE;

	return index == HASHMAP_NONE ? NULL : &m->lives.data[index];
}

struct kept_life *service_memory__pid(struct service_memory *m, uint32_t pid)
{
	uint32_t index = hashmap__find(&m->by_pid, hash_u64(pid), &pid);

	return index == HASHMAP_NONE ? NULL : &m->lives.data[index];
}

/* This life is its pid's now. */
static int index_pid(struct service_memory *m, uint32_t index)
{
	uint32_t pid = m->lives.data[index].pid;

	hashmap__remove(&m->by_pid, hash_u64(pid), &pid);
	return hashmap__add(&m->by_pid, hash_u64(pid), index);
}

static int index_life(struct service_memory *m, uint32_t index)
{
	uint64_t life = m->lives.data[index].life;
	int err = hashmap__add(&m->by_life, hash_u64(life), index);

	if (err)
		return err;
	err = index_pid(m, index);
	if (err)
		hashmap__remove(&m->by_life, hash_u64(life), &life);
	return err;
}

/* Keeps those that were used in a window after this one. 0 or -ENOMEM. */
static int drop_lives(struct service_memory *m, uint64_t before)
{
	size_t kept = 0;
	int err = 0;

	hashmap__clear(&m->by_life);
	hashmap__clear(&m->by_pid);
	for (size_t i = 0; i < m->lives.count; i++) {
		struct kept_life life = m->lives.data[i];

		if (err || life.used < before) {
			label_set__release(life.set);
			m->evicted++;
			continue;
		}
		m->lives.data[kept] = life;
		err = index_life(m, (uint32_t)kept);
		if (err)
			label_set__release(life.set);
		else
			kept++;
	}
	m->lives.count = kept;
	return err;
}

static int compare_windows(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The window so that half of the lives were not used since. */
static int median_window(const struct service_memory *m, uint64_t *window)
{
	uint64_t *windows = malloc(m->lives.count * sizeof(*windows));

	if (!windows)
		return -ENOMEM;
	for (size_t i = 0; i < m->lives.count; i++)
		windows[i] = m->lives.data[i].used;
	qsort(windows, m->lives.count, sizeof(*windows), compare_windows);
	*window = windows[m->lives.count / 2] + 1;
	free(windows);
	return 0;
}

/* Without a service so far. NULL: no memory. */
static struct kept_life *add_life(struct service_memory *m, uint64_t number, uint32_t pid)
{
	uint64_t before;
	int err = 0;

	if (m->lives.count >= LIVES_KEPT) {
		err = median_window(m, &before);
		if (!err)
			err = drop_lives(m, before);
	}
	if (err || vec_push(&m->lives, (struct kept_life){.life = number, .pid = pid}))
		return NULL;
	if (index_life(m, (uint32_t)(m->lives.count - 1))) {
		m->lives.count--;
		return NULL;
	}
	return &m->lives.data[m->lives.count - 1];
}

int service_memory__keep_life(struct service_memory *m, const struct kept_life *kept)
{
	struct kept_life *life = service_memory__life(m, kept->life);

	if (!kept->life)
		return 0;
	if (!life)
		life = add_life(m, kept->life, kept->pid);
	if (!life)
		return -ENOMEM;
	label_set__hold(kept->set);
	label_set__release(life->set);
	*life = *kept;
	return 0;
}

/* ---- control groups -------------------------------------------------------------------------- */

struct kept_group *service_memory__group(struct service_memory *m, const char *path)
{
	uint32_t index = hashmap__find(&m->by_path, hash_string(path), path);

	return index == HASHMAP_NONE ? NULL : &m->groups.data[index];
}

static int compare_groups(const void *a, const void *b)
{
	const struct kept_group *x = a, *y = b;

	return x->used < y->used ? 1 : x->used > y->used ? -1 : 0;
}

static int make_group_room(struct service_memory *m)
{
	size_t kept = GROUPS_KEPT / 2;
	int err = 0;

	if (m->groups.count < GROUPS_KEPT)
		return 0;
	qsort(m->groups.data, m->groups.count, sizeof(*m->groups.data), compare_groups);
	hashmap__clear(&m->by_path);
	for (size_t i = 0; i < kept && !err; i++) {
		err = hashmap__add(&m->by_path, hash_string(m->groups.data[i].path), (uint32_t)i);
		kept = err ? i : kept;
	}
	for (size_t i = kept; i < m->groups.count; i++)
		free_group(&m->groups.data[i]);
	m->evicted += m->groups.count - kept;
	m->groups.count = kept;
	return err;
}

static int add_group(struct service_memory *m, const struct kept_group *group)
{
	struct kept_group copy = *group;
	int err = make_group_room(m);

	if (err)
		return err;
	copy.path = strdup(group->path);
	copy.program = strdup(group->program);
	if (!copy.path || !copy.program || vec_push(&m->groups, copy)) {
		free(copy.path);
		free(copy.program);
		return -ENOMEM;
	}
	err = hashmap__add(&m->by_path, hash_string(copy.path), (uint32_t)(m->groups.count - 1));
	if (err) {
		m->groups.count--;
		free(copy.path);
		free(copy.program);
		return err;
	}
	label_set__hold(copy.set);
	return 0;
}

int service_memory__keep_group(struct service_memory *m, const struct kept_group *group)
{
	struct kept_group *known = service_memory__group(m, group->path);
	char *program;

	if (!known)
		return add_group(m, group);
	known->used = group->used;
	if (known->window == group->window && known->cpu >= group->cpu)
		return 0;
	program = strdup(group->program);
	if (!program)
		return -ENOMEM;
	label_set__hold(group->set);
	label_set__release(known->set);
	free(known->program);
	known->program = program;
	known->source = group->source;
	known->set = group->set;
	known->window = group->window;
	known->cpu = group->cpu;
	return 0;
}

int service_memory__sweep(struct service_memory *m, uint64_t window)
{
	if (window % IDLE_WINDOWS || window < IDLE_WINDOWS)
		return 0;
	return drop_lives(m, window - IDLE_WINDOWS + 1);
}

void service_memory__stats(const struct service_memory *m, struct service_memory_stats *stats)
{
	*stats = (struct service_memory_stats){
		.lives = m->lives.count, .groups = m->groups.count, .evicted = m->evicted};
}
