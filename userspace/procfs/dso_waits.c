/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings that wait for their files. Hundreds of processes map one library before a reader has answered about
 * it: they wait together. The queue of events waits for the oldest of all (dso_opener__pending_since()).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "procfs/dso_opener_private.h"

struct waiting_event {
	struct mmap_event *event; /* owned */
	mapping_answer_fn answer;
	void *context;
};

/* For one search. */
struct dso_wait {
	struct dso_wait *next;
	uint64_t hash, root_serial;
	struct wanted wanted; /* its path is `path` */
	char *path;
	int root; /* held, or negative */
	VEC(struct waiting_event) events;
};

static uint64_t hash_wait(const struct wanted *w, uint64_t root_serial)
{
	uint64_t hash = hash_combine(hash_string(w->path), hash_u64(root_serial));

	hash = hash_combine(hash, hash_bytes(w->build_id.bytes, w->build_id.size));
	return hash_combine(hash, hash_u64(w->inode));
}

static bool same_file(const struct wanted *a, const struct wanted *b)
{
	return !strcmp(a->path, b->path) && build_id_equal(&a->build_id, &b->build_id) &&
	       a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
	       a->generation == b->generation;
}

/* A file that is not below a root is found by its process alone. */
static struct dso_wait *find_wait(struct dso_opener *o, const struct wanted *w, int root,
				  uint64_t hash)
{
	if (root < 0 || file_search__is_nameless(w->path))
		return NULL;
	for (struct dso_wait *wait = o->waits; wait; wait = wait->next)
		if (wait->hash == hash && wait->root == root &&
		    wait->root_serial == dso_roots__serial(o, root) && same_file(&wait->wanted, w))
			return wait;
	return NULL;
}

static void unlink_wait(struct dso_opener *o, struct dso_wait *wait)
{
	struct dso_wait **link = &o->waits;

	while (*link && *link != wait)
		link = &(*link)->next;
	if (*link)
		*link = wait->next;
}

static void free_wait(struct dso_opener *o, struct dso_wait *wait)
{
	for (size_t i = 0; i < wait->events.count; i++)
		free(wait->events.data[i].event);
	vec_free(&wait->events);
	if (wait->root >= 0)
		dso_roots__unhold(o, wait->root);
	free(wait->path);
	free(wait);
}

static int answer_first(struct dso_opener *o, struct dso_wait *wait, struct waiting_event *first,
			const struct found *found, enum file_state state, uint32_t *image)
{
	*image = HASHMAP_NONE;
	if (!found)
		dso_event__give_up(first->event, state);
	return found ? dso_event__complete(o, first->event, &wait->wanted, wait->root, found, image)
		     : 0;
}

/* The other mappings get the answer of the first one. */
static void report_other(struct dso_opener *o, const struct mmap_event *first,
			 struct mmap_event *other, uint32_t image)
{
	if (image != HASHMAP_NONE) {
		dso_event__set_image(o, other, image);
		return;
	}
	other->file_state = first->file_state;
	other->header.flags |= first->header.flags & (EVENT_UNSHARED | EVENT_BUILD_ID);
	other->build_id_size = first->build_id_size;
	memcpy(other->build_id, first->build_id, sizeof(other->build_id));
}

/* A search_done_fn. */
static void finish_wait(struct dso_opener *o, void *context, const struct found *found,
			enum file_state state)
{
	struct dso_wait *wait = context;
	uint32_t image;
	int err;

	unlink_wait(o, wait);
	err = answer_first(o, wait, &wait->events.data[0], found, state, &image);
	if (image != HASHMAP_NONE)
		dso_images__hold(o, image);
	for (size_t i = 0; i < wait->events.count && !err; i++) {
		struct waiting_event *waiting = &wait->events.data[i];
		struct wanted w = wait->wanted;

		if (i)
			report_other(o, wait->events.data[0].event, waiting->event, image);
		w.pid = waiting->event->pid;
		w.tid = waiting->event->tid;
		w.generation = waiting->event->inode_generation;
		err = dso_event__answer(o, waiting->event, &w, image, waiting->answer,
					waiting->context);
	}
	if (image != HASHMAP_NONE)
		dso_images__unhold(o, image);
	o->err = o->err ? o->err : err;
	free_wait(o, wait);
}

static int add_event(struct dso_wait *wait, const struct mmap_event *event,
		     mapping_answer_fn answer, void *context)
{
	struct mmap_event *copy = malloc(event->header.size);
	int err = copy ? vec_push(&wait->events, ((struct waiting_event){copy, answer, context}))
		       : -ENOMEM;

	if (err)
		free(copy);
	else
		memcpy(copy, event, event->header.size);
	return err;
}

int dso_waits__event(struct dso_opener *o, const struct mmap_event *event, const struct wanted *w,
		     int root, mapping_answer_fn answer, void *context)
{
	uint64_t serial = dso_roots__serial(o, root), hash = hash_wait(w, serial);
	struct dso_wait *wait = find_wait(o, w, root, hash);
	int err;

	if (wait)
		return add_event(wait, event, answer, context);
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	*wait = (struct dso_wait){.next = o->waits,
				  .hash = hash,
				  .root_serial = serial,
				  .wanted = *w,
				  .path = strdup(w->path),
				  .root = root};
	wait->wanted.path = wait->path;
	if (root >= 0)
		dso_roots__hold(o, root);
	o->waits = wait;
	err = wait->path ? add_event(wait, event, answer, context) : -ENOMEM;
	if (!err)
		err = dso_searches__mapping(o, &wait->wanted, root, finish_wait, wait);
	if (err) {
		unlink_wait(o, wait);
		free_wait(o, wait);
	}
	return err;
}

static uint64_t oldest_mapping(const struct dso_opener *o)
{
	uint64_t since = UINT64_MAX;

	for (const struct dso_wait *wait = o->waits; wait; wait = wait->next)
		for (size_t i = 0; i < wait->events.count; i++)
			since = min_u64(since, wait->events.data[i].event->header.time);
	return since;
}

uint64_t dso_waits__since(const struct dso_opener *o)
{
	uint64_t since = oldest_mapping(o);

	for (size_t i = 0; i < o->passed.count; i++)
		since = min_u64(since, o->passed.data[i].event->time);
	return since;
}

/* ---- what comes after them ------------------------------------------------------------------- */

int dso_waits__pass(struct dso_opener *o, struct event_header *event, event_push_fn push,
		    void *context)
{
	struct event_header *copy;
	int err;

	if (oldest_mapping(o) > event->time)
		return push(context, event);
	copy = malloc(event->size);
	err = copy ? vec_push(&o->passed, ((struct passed_event){copy, push, context})) : -ENOMEM;
	if (err)
		free(copy);
	else
		memcpy(copy, event, event->size);
	return err;
}

void dso_waits__pass_on(struct dso_opener *o)
{
	uint64_t oldest = o->passed.count ? oldest_mapping(o) : 0;
	size_t kept = 0;

	for (size_t i = 0; i < o->passed.count; i++) {
		const struct passed_event passed = o->passed.data[i];
		int err;

		if (passed.event->time >= oldest) {
			o->passed.data[kept++] = passed;
			continue;
		}
		err = o->err ? 0 : passed.push(passed.context, passed.event);
		o->err = o->err ? o->err : err;
		free(passed.event);
	}
	o->passed.count = kept;
}

void dso_waits__fini(struct dso_opener *o)
{
	for (size_t i = 0; i < o->passed.count; i++)
		free(o->passed.data[i].event);
	vec_free(&o->passed);
}
