/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/groups.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/vec.h"
#include "live/capture/target.h"
#include "live/proc/group_paths.h"

#define ENTERED_MAX 65536u /* that wait until all rings are read; more do not wait */

struct groups {
	struct groups_options options;
	struct bpf_session *session;
	struct group_paths *paths;
	bool root_counts; /* the root's path is its processes' own: there is no other hierarchy */
	VEC(struct in_group_event) entered;
	bool any_excluded;
};

static void groups__free(void *groups)
{
	struct groups *g = groups;

	group_paths__free(g->paths);
	vec_free(&g->entered);
	free(g);
}

static void groups__opened(void *groups, struct bpf_session *session)
{
	struct groups *g = groups;

	g->session = session;
}

/* ---- CPU time -------------------------------------------------------------------------------- */

struct baseline {
	const struct groups *groups;
	uint64_t time; /* of the event; 0: of the reading */
};

/*
 * An event_push_fn: CPU time of a thread when its process left a group, from a later reading: less
 * the time passed since, which is the most that it can have run.
 */
static int push_baseline(void *context, struct event_header *event)
{
	const struct baseline *b = context;
	struct thread_cpu_event *cpu = (struct thread_cpu_event *)event;
	uint64_t passed = b->time && event->time > b->time ? event->time - b->time : 0;

	cpu->cpu_time -= min_u64(cpu->cpu_time, passed);
	event->time -= passed;
	event->flags |= EVENT_BASELINE;
	return b->groups->options.push(b->groups->options.context, event);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct groups *g, const char *path)
{
	/* with another hierarchy, a process in this one's root may be anywhere in that one */
	return !g->options.wanted || (!g->root_counts && !strcmp(path, "/")) ||
	       g->options.wanted(g->options.wanted_context, path);
}

/* If the kernel's set is full, the group's samples are dropped later. */
static void judge(struct groups *g, struct known_group *group)
{
	bool excluded = !is_wanted(g, group->path);

	if (excluded == group->excluded || !g->session)
		return;
	if (bpf_session__exclude_group(g->session, group->id, excluded))
		return;
	group->excluded = excluded;
	g->any_excluded |= excluded;
}

static int report_group(struct groups *g, const struct in_group_event *entered, const char *path)
{
	union {
		struct cgroup_event event;
		char bytes[sizeof(struct cgroup_event) + EVENT_PATH_MAX + EVENT_ALIGN];
	} e;
	size_t length = strlen(path), size;

	if (length >= EVENT_PATH_MAX)
		return 0;
	size = event_aligned(offsetof(struct cgroup_event, path) + length + 1);
	memset(&e, 0, size);
	e.event.header = (struct event_header){
		.size = (uint32_t)size, .type = EVENT_CGROUP, .time = entered->header.time};
	e.event.pid = entered->tgid;
	memcpy(e.event.path, path, length);
	return g->options.push(g->options.context, &e.event.header);
}

static int settle(struct groups *g, const struct in_group_event *entered)
{
	struct baseline baseline = {g, entered->header.time};
	struct known_group *group = group_paths__find(g->paths, entered->group);
	int err = 0;

	if (group)
		judge(g, group);
	/* in another hierarchy it may have a path, which /proc shows */
	if (group && (g->root_counts || strcmp(group->path, "/")))
		err = report_group(g, entered, group->path);
	if (!err && entered->was_excluded)
		err = proc_snapshot__thread_cpu(g->options.proc, (pid_t)entered->tgid,
						push_baseline, &baseline);
	return err;
}

/* After all rings were read. */
static int groups__tick(void *groups, uint64_t now)
{
	struct groups *g = groups;
	int err = 0;

	(void)now;
	for (size_t i = 0; i < g->entered.count && !err; i++)
		err = settle(g, &g->entered.data[i]);
	g->entered.count = 0;
	return err;
}

static int groups__reported(void *groups, const struct event_header *event)
{
	const struct group_made_event *made = (const struct group_made_event *)event;
	struct groups *g = groups;

	if (event->type == EVENT_GROUP_MADE)
		return group_paths__add(g->paths, made->group, made->path);
	if (event->type != EVENT_IN_GROUP)
		return 0;
	return (g->entered.count < ENTERED_MAX ? 0 : groups__tick(g, 0))
		       ?: vec_push(&g->entered, *(const struct in_group_event *)event);
}

/* Baselines of all processes of a group, before its next tick counts. 0 or negative errno. */
static int start_anew(struct groups *g, const char *path)
{
	struct baseline baseline = {g, 0};
	_cleanup_free_ char *name = NULL, *line = NULL;
	_cleanup_fclose_ FILE *list = NULL;
	size_t size = 0;
	uint64_t pid;
	int err = 0;

	if (asprintf(&name, "%s%s/cgroup.procs", target_cgroup_root(), path) < 0)
		return -ENOMEM;
	list = fopen(name, "re");
	while (list && !err && getline(&line, &size, list) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!parse_u64(line, 1, INT_MAX, &pid))
			err = proc_snapshot__thread_cpu(g->options.proc, (pid_t)pid, push_baseline,
							&baseline);
	}
	return err;
}

static int groups__judge_again(void *groups)
{
	struct groups *g = groups;
	struct known_group *all;
	size_t count;
	int err = 0;

	if (!g->session)
		return 0;
	all = group_paths__all(g->paths, &count);
	for (size_t i = 0; i < count && !err; i++)
		if (all[i].excluded && is_wanted(g, all[i].path))
			err = start_anew(g, all[i].path);
	/* includes groups that only the kernel's set has */
	if (!err && g->any_excluded)
		err = bpf_session__exclude_none(g->session);
	for (size_t i = 0; i < count && !err; i++) {
		all[i].excluded = false;
		judge(g, &all[i]);
	}
	return err;
}

int groups_part__new(const struct groups_options *options, struct live_part *part)
{
	struct groups *g = calloc(1, sizeof(*g));
	const char *root = target_cgroup_root();
	int err = g ? group_paths__new(root, &g->paths) : -ENOMEM;

	if (err) {
		free(g);
		return err;
	}
	g->options = *options;
	g->root_counts = root && !strcmp(root, CGROUP_ROOT);
	*part = (struct live_part){.object = g,
				   .reported = groups__reported,
				   .opened = groups__opened,
				   .judge_groups = groups__judge_again,
				   .tick = groups__tick,
				   .free = groups__free};
	return 0;
}
