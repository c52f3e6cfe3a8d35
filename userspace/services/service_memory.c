/* SPDX-License-Identifier: BSD-2-Clause */
#include "services/service_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "services/label_set.h"
#include "services/naming.h"

#define IDLE_WINDOWS                                                                               \
	240 /* an hour of 15-s windows: a life that did not run for so long is decided anew */

DEFINE_MAP_BY(life_map, struct kept_life, uint64_t, life);
DEFINE_MAP_BY_STRING(group_map, struct kept_group, path);

struct pid_life {
	uint32_t pid;
	uint64_t life; /* the last one of this pid */
};
DEFINE_MAP_BY(pid_map, struct pid_life, uint32_t, pid);

struct service_memory {
	struct life_map lives;
	struct pid_map pids;
	struct group_map groups;
	uint64_t evicted;
};

struct service_memory *service_memory__new(void)
{
	return calloc(1, sizeof(struct service_memory));
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
	life_map__fini(&m->lives);
	pid_map__fini(&m->pids);
	group_map__fini(&m->groups);
	free(m);
}

/* ---- lives ----------------------------------------------------------------------------------- */

struct kept_life *service_memory__life(struct service_memory *m, uint64_t life)
{
	return life ? life_map__find(&m->lives, life) : NULL;
}

struct kept_life *service_memory__pid(struct service_memory *m, uint32_t pid)
{
	const struct pid_life *known = pid_map__find(&m->pids, pid);

	return known ? service_memory__life(m, known->life) : NULL;
}

/* Keeps lives that were used in this window or after it. */
static void drop_lives(struct service_memory *m, uint64_t before)
{
	struct life_map *lives = &m->lives;
	size_t kept = 0;

	for (size_t i = 0; i < lives->count; i++) {
		if (lives->data[i].used >= before) {
			lives->data[kept++] = lives->data[i];
			continue;
		}
		label_set__release(lives->data[i].set);
		m->evicted++;
	}
	lives->count = kept;
	life_map__reindex(lives);
	for (size_t i = m->pids.count; i-- > 0;)
		if (!life_map__find(lives, m->pids.data[i].life))
			pid_map__remove(&m->pids, &m->pids.data[i]);
}

DEFINE_ORDER(compare_windows, uint64_t, order_of(*x, *y));

/* The window before which half of the lives were used last. */
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
	struct kept_life *life;
	struct pid_life *last;
	uint64_t before;

	if (m->lives.count >= LIVES_KEPT) {
		if (median_window(m, &before))
			return NULL;
		drop_lives(m, before);
	}
	last = pid_map__need(&m->pids, &(struct pid_life){.pid = pid}, NULL);
	life = last ? life_map__need(&m->lives, &(struct kept_life){.life = number, .pid = pid},
				     NULL)
		    : NULL;
	if (life)
		last->life = number;
	return life;
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
	return group_map__find(&m->groups, path);
}

DEFINE_ORDER(compare_groups, struct kept_group, DESCENDING(used));

static void make_group_room(struct service_memory *m)
{
	size_t kept = GROUPS_KEPT / 2;

	if (m->groups.count < GROUPS_KEPT)
		return;
	qsort(m->groups.data, m->groups.count, sizeof(*m->groups.data), compare_groups);
	for (size_t i = kept; i < m->groups.count; i++)
		free_group(&m->groups.data[i]);
	m->evicted += m->groups.count - kept;
	m->groups.count = kept;
	group_map__reindex(&m->groups);
}

static int add_group(struct service_memory *m, const struct kept_group *group)
{
	struct kept_group copy = *group;

	make_group_room(m);
	copy.path = strdup(group->path);
	copy.program = strdup(group->program);
	if (!copy.path || !copy.program || !group_map__need(&m->groups, &copy, NULL)) {
		free(copy.path);
		free(copy.program);
		return -ENOMEM;
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

void service_memory__sweep(struct service_memory *m, uint64_t window)
{
	if (window % IDLE_WINDOWS == 0 && window >= IDLE_WINDOWS)
		drop_lives(m, window - IDLE_WINDOWS + 1);
}

void service_memory__stats(const struct service_memory *m, struct naming_stats *stats)
{
	stats->lives_kept = m->lives.count;
	stats->groups_kept = m->groups.count;
	stats->lives_evicted = m->evicted;
}
