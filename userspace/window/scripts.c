/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/scripts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/profile_code.h>

#include "base/cleanup.h"
#include "base/file_url.h"
#include "base/minmax.h"
#include "base/order.h"

static uint64_t hash_script(const struct script *s)
{
	return hash_combine(hash_u64((uint64_t)s->dso.v << 32 | s->path.v),
			    (uint64_t)s->root_fd << 32 | s->user);
}

static bool same_script(const struct script *a, const struct script *b)
{
	return a->dso.v == b->dso.v && a->path.v == b->path.v && a->root_fd == b->root_fd &&
	       a->user == b->user;
}

MAP_FUNCTIONS_OF(script_map, struct script, hash_script, same_script);

struct script_life {
	uint32_t pid;
	uint64_t start;
	struct process_id process;
};

struct search {
	struct scripts *scripts;
	struct window *window;
	const struct location_samples *samples;
	uint64_t least;
	/* the last process whose samples had it, 1 + its place in window.process_roots */
	uint32_t *of_stack, *of_location;
	/* lists of threads: the first of a process, and the next of a thread; 0: none */
	uint32_t *first, *next;
	VEC(struct script_life) lives; /* by pid and start */
	uint64_t started;	       /* of the process that is walked */
};

/* ---- since when their code was loaded -------------------------------------------------------- */

#define ANCESTORS_MAX 64 /* a chain of forks may be as long as a tenant likes */

DEFINE_ORDER(compare_lives, struct script_life, ASCENDING(pid) ?: ASCENDING(start));

static int list_lives(struct search *s)
{
	struct profile_builder *b = s->window->builder;
	int err = 0;

	for (uint32_t i = 1; i < profile_builder__process_count(b) && !err; i++) {
		const struct profile_process *p =
			profile_builder__get_process(b, (struct process_id){i});

		err = vec_push(&s->lives, ((struct script_life){p->pid, p->start, {i}}));
	}
	vec_sort(&s->lives, compare_lives);
	return err;
}

/* The process that had a pid at that time; NULL: it is unknown. */
static const struct profile_process *process_at(struct search *s, uint32_t pid, uint64_t time)
{
	const struct script_life *lives = s->lives.data;
	size_t after = partition_index(s->lives.count, i,
				       lives[i].pid < pid ||
					       (lives[i].pid == pid && lives[i].start <= time));
	const struct profile_process *p;

	if (!after || lives[after - 1].pid != pid)
		return NULL;
	p = profile_builder__get_process(s->window->builder, lives[after - 1].process);
	return !p->end || p->end >= time ? p : NULL;
}

/*
 * No code of the process was loaded before. A child has the code of its parent; that it executed the same
 * program since is not seen if it did so before the session. CLOCK_MONOTONIC ns, 0: unknown.
 */
static uint64_t loaded_since(struct search *s, struct process_id id)
{
	const struct profile_process *p = profile_builder__get_process(s->window->builder, id);

	for (int i = 0; i < ANCESTORS_MAX; i++) {
		const struct profile_process *parent = process_at(s, p->ppid, p->start);

		if (p->began == PROCESS_EXECED)
			return p->start;
		if (!parent || !p->program.v || parent->program.v != p->program.v)
			return p->began == PROCESS_WAS_THERE ? p->born : 0;
		p = parent;
	}
	return 0;
}

/* ns since the epoch; 0: unknown */
static uint64_t started(struct search *s, struct process_id id)
{
	const struct profile *session = profile_builder__session(s->window->builder);
	uint64_t at = loaded_since(s, id);

	return at && session->start_realtime + at > session->start
		       ? session->start_realtime + at - session->start
		       : 0;
}

/* ---- which files ----------------------------------------------------------------------------- */

/* Names like "node:fs" and "<string>" are of no file. */
static bool is_file(const char *path)
{
	return *path == '/' || is_file_url(path);
}

static int add_location(struct search *s, const struct process_root *root,
			const struct profile_location *l, struct location_samples samples)
{
	struct profile_builder *b = s->window->builder;
	struct script wanted = {
		.dso = l->dso, .root_fd = root->fd, .user = root->user, .started = s->started};

	for (uint32_t i = 0; i < l->line_count; i++) {
		struct script *known;

		wanted.path = profile_builder__source_line(b, l, i).file;
		if (!is_file(profile_builder__get_string(b, wanted.path)))
			continue;
		known = script_map__need(&s->scripts->all, &wanted, NULL);
		if (!known)
			return -ENOMEM;
		if (wanted.started < known->started)
			known->started = wanted.started;
		known->samples = max_u64(known->samples,
					 (uint64_t)samples.self << 32 | samples.all);
	}
	return 0;
}

/* Callers that another sample of the process had were seen then. */
static int add_stack(struct search *s, uint32_t process, struct stack_id id)
{
	const struct process_root *root = &s->window->process_roots.data[process - 1];
	struct profile_builder *b = s->window->builder;
	int err = 0;

	while (id.v && s->of_stack[id.v] != process && !err) {
		const struct profile_stack *stack = profile_builder__get_stack(b, id);
		const uint32_t at = stack->location.v;
		const struct profile_location *l = profile_builder__get_location(b,
										 stack->location);

		s->of_stack[id.v] = process;
		id = stack->parent;
		if (s->of_location[at] == process || s->samples[at].all < s->least ||
		    !dso_kind_is_made(profile_builder__get_dso(b, l->dso)->kind))
			continue;
		s->of_location[at] = process;
		err = add_location(s, root, l, s->samples[at]);
	}
	return err;
}

/* By process: so each stack is walked once for each. */
static int add_process(struct search *s, uint32_t process)
{
	struct profile_builder *b = s->window->builder;
	const struct process_id id = s->window->process_roots.data[process - 1].process;
	uint32_t t = s->first[id.v];
	int err = 0;

	s->started = started(s, id);
	for (; t && !err; t = s->next[t]) {
		struct builder_samples samples = profile_builder__samples(b, (struct thread_id){t},
									  SAMPLE_CPU);

		for (size_t i = 0; i < samples.count && !err; i++)
			err = add_stack(s, process, samples.stack[i]);
	}
	return err;
}

static void list_threads(struct search *s)
{
	struct profile_builder *b = s->window->builder;

	for (uint32_t t = (uint32_t)profile_builder__thread_count(b); t; t--) {
		const struct builder_samples samples =
			profile_builder__samples(b, (struct thread_id){t}, SAMPLE_CPU);

		s->next[t] = s->first[samples.process.v];
		s->first[samples.process.v] = t;
	}
}

int scripts__find(struct scripts *s, struct window *w, const struct location_samples *samples,
		  uint64_t least)
{
	size_t stacks = profile_builder__stack_count(w->builder);
	size_t locations = profile_builder__location_count(w->builder);
	_cleanup_free_ uint32_t *of_stack = calloc(stacks + 1, sizeof(*of_stack));
	_cleanup_free_ uint32_t *of_location = calloc(locations + 1, sizeof(*of_location));
	_cleanup_free_ uint32_t *first = calloc(profile_builder__process_count(w->builder) + 1,
						sizeof(*first));
	_cleanup_free_ uint32_t *next = calloc(profile_builder__thread_count(w->builder) + 1,
					       sizeof(*next));
	struct search search = {.scripts = s,
				.window = w,
				.samples = samples,
				.least = least,
				.of_stack = of_stack,
				.of_location = of_location,
				.first = first,
				.next = next};
	int err = of_stack && of_location && first && next ? 0 : -ENOMEM;

	if (!err)
		err = list_lives(&search);
	if (!err)
		list_threads(&search);
	for (uint32_t i = 0; i < w->process_roots.count && !err; i++)
		err = add_process(&search, i + 1);
	for (size_t i = 0; i < s->all.count && !err; i++) {
		const struct script *script = &s->all.data[i];
		const struct symbolizer_script wanted = {
			.path = profile_builder__get_string(w->builder, script->path),
			.root_fd = script->root_fd,
			.user = script->user,
			.started = script->started,
			.samples = script->samples,
		};

		err = vec_push(&s->wanted, wanted);
	}
	vec_free(&search.lives);
	return err;
}

void scripts__fini(struct scripts *s)
{
	script_map__fini(&s->all);
	vec_free(&s->wanted);
}
