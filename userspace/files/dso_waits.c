/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/dso_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/minmax.h"
#include "files/dso_events.h"
#include "files/dso_search.h"
#include "tenants/owner.h"
#include "tenants/pool.h"

#define COPY_MAX     (256ull << 20) /* bytes of a file that is kept as a copy */
#define MOVED_MISSES 8
#define MOVED_PERIOD 60000000000ull /* ns */

void dso_waits__init(struct dso_waits *w, struct dso_files *files, struct dso_roots *roots,
		     struct helper_pool *readers, unsigned int service)
{
	*w = (struct dso_waits){
		.files = files, .roots = roots, .readers = readers, .service = service};
}

void dso_waits__fini(struct dso_waits *w)
{
	vec_free_with(&w->passed, passed_on, free(passed_on->event));
}

static void *copy_of(const struct event_header *event)
{
	void *copy = malloc(event->size);

	return copy ? memcpy(copy, event, event->size) : NULL;
}

/* ---- memory that may have a file's text ------------------------------------------------------ */

static struct moved_searches *searches_of(struct dso_waits *w, pid_t pid)
{
	return &w->moved[(unsigned int)pid % MOVED_SEARCHED];
}

static bool was_just_read(const struct mmap_event *event)
{
	return (event->header.flags & EVENT_FROM_PROC) != 0;
}

/* Found: such searches of the process are of use. */
static void forgive_search(struct dso_waits *w, const struct mmap_event *event)
{
	struct moved_searches *searches = searches_of(w, (pid_t)event->pid);
	unsigned int *count = &searches->count[was_just_read(event)];

	if (searches->pid == (pid_t)event->pid && *count)
		--*count;
}

bool dso_waits__may_search_moved(struct dso_waits *w, const struct mmap_event *event)
{
	struct moved_searches *searches = searches_of(w, (pid_t)event->pid);
	uint64_t now = event->header.time;

	if (!(event->protection & PROT_EXEC) || !moved_text__may_be(event->path))
		return false;
	if (searches->pid != (pid_t)event->pid || now - searches->since > MOVED_PERIOD)
		*searches = (struct moved_searches){.pid = (pid_t)event->pid, .since = now};
	/* JIT code that comes all the time must not use up those of a reading */
	return searches->count[was_just_read(event)]++ < MOVED_MISSES;
}

static void note_error(struct dso_waits *w, int err)
{
	if (!w->err)
		w->err = err;
}

int dso_waits__take_error(struct dso_waits *w)
{
	int err = w->err;

	w->err = 0;
	return err;
}

/* ---- searches come and go -------------------------------------------------------------------- */

/* A file not below a root is found only by its process, which may map it thousands of times. */
static bool is_of_process(const char *path, struct root_id root)
{
	return !root.v || file_search__is_nameless(path);
}

static uint64_t hash_mapping(const struct mmap_event *m, struct root_id root)
{
	uint64_t hash = hash_combine(hash_string(m->path), hash_u64(root.v));

	hash = hash_combine(hash, hash_u64(m->inode));
	return is_of_process(m->path, root) ? hash_combine(hash, hash_u64(m->pid)) : hash;
}

static bool same_file(const struct mmap_event *a, const struct mmap_event *b)
{
	const struct file_numbers numbers_a = mapping_numbers(a), numbers_b = mapping_numbers(b);

	return !strcmp(a->path, b->path) && same_inode(&numbers_a, &numbers_b) &&
	       numbers_a.generation == numbers_b.generation;
}

/* A pending search for the file of a mapping. */
static struct dso_search *find_search(struct dso_waits *w, const struct mmap_event *m,
				      struct root_id root)
{
	uint64_t hash = hash_mapping(m, root);
	bool of_process = is_of_process(m->path, root);
	struct dso_search *s;

	LIST_FOREACH (s, &w->searches[hash % DSO_SEARCH_BUCKETS], link)
		if (s->mapping && s->hash == hash && s->roots[SEARCH_PROCESS].v == root.v &&
		    same_file(s->mapping, m) && (!of_process || s->mapping->pid == m->pid))
			return s;
	return NULL;
}

/* If the process is gone, its parent is the best guess. */
static uint64_t owner_of(pid_t pid, pid_t parent)
{
	uint64_t owner = helper_owner(pid);

	return owner == HELPER_OWNER_UNKNOWN ? helper_owner(parent) : owner;
}

static struct dso_search *new_search(struct dso_waits *w, uint64_t hash, struct root_id root)
{
	struct dso_search *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct dso_search){
		.waits = w,
		.roots[SEARCH_PROCESS] = root,
		.hash = hash,
		.requested = HASHMAP_NONE,
	};
	dso_roots__hold(w->roots, root);
	LIST_INSERT_HEAD(&w->searches[hash % DSO_SEARCH_BUCKETS], s, link);
	s->is_linked = true;
	return s;
}

/* Of a process that has ended: that of its parent, and ours. */
static void guess_roots(struct dso_search *s)
{
	struct dso_roots *roots = s->waits->roots;

	s->roots[SEARCH_PARENT] = dso_roots__of(roots, s->parent);
	if (roots->own.v != s->roots[SEARCH_PARENT].v)
		s->roots[SEARCH_OWN] = roots->own;
	for (int i = SEARCH_PARENT; i < SEARCH_ROOTS; i++)
		dso_roots__hold(roots, s->roots[i]);
}

/* Later mappings wait for another search. */
static void unlink_search(struct dso_search *s)
{
	if (s->is_linked)
		LIST_REMOVE(s, link);
	s->is_linked = false;
}

static void free_search(struct dso_search *s)
{
	unlink_search(s);
	vec_free_with(&s->events, event, free(event->event));
	for (int i = 0; i < SEARCH_ROOTS; i++)
		dso_roots__unhold(s->waits->roots, s->roots[i]);
	dso_archives__unhold(&s->waits->files->archives, s->number);
	if (s->requested != HASHMAP_NONE)
		dso_files__unhold(s->waits->files, s->requested);
	free(s);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Leaves out a copy (*fd -1) if its user has no room now, or had none at the request. */
static void judge_copy(const struct dso_search *s, struct file_finding *facts, int *fd)
{
	struct dso_files *files = s->waits->files;
	uint32_t user = helper_owner_user(s->owner);
	bool left = *fd < 0 ? facts->copy_too_big && s->copy_max < COPY_MAX
			    : dso_files__copy_room(files, user, facts->copied) < facts->copied;

	if (*fd < 0 && facts->copy_too_big && !left)
		dso_files__note_copy(files, user, facts, true);
	if (!left)
		return;
	dso_files__note_copy(files, user, facts, false);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	facts->state = FILE_STATE_OVER_BUDGET;
}

/* The mapping as one of the file whose text the memory has. */
static void fill_moved_event(const struct mmap_event *event, const struct moved_text *text,
			     struct mmap_event_space *space)
{
	struct mmap_event *moved = &space->event;

	memset(space, 0, sizeof(*space));
	memcpy(moved, event, sizeof(*event));
	snprintf(moved->path, EVENT_PATH_MAX, "%s", text->path);
	moved->header.size = event_aligned(sizeof(*moved) + strlen(moved->path) + 1);
	moved->page_offset = text->offset;
	moved->major = text->major;
	moved->minor = text->minor;
	moved->inode = text->inode;
}

static int answer_moved(struct dso_search *s)
{
	struct dso_files *files = s->waits->files;
	struct waiting_event *waiting = &s->events.data[0];
	const enum file_state state = s->facts->state;
	struct mmap_event_space space;
	uint32_t file = HASHMAP_NONE;
	int err;

	if (s->fd < 0) {
		waiting->event->file_state = state == FILE_STATE_LATE ? FILE_STATE_LATE
								      : FILE_STATE_NONE;
		return waiting->answer(waiting->context, waiting->event);
	}
	forgive_search(s->waits, waiting->event);
	fill_moved_event(waiting->event, &s->facts->moved, &space);
	err = dso_files__complete_found(files, &space.event, s, &file);
	return err ? err
		   : dso_files__answer_event(files, &space.event, file, waiting->answer,
					     waiting->context);
}

/* The other mappings get the answer of the first one. */
static int answer_mappings(struct dso_search *s)
{
	struct dso_files *files = s->waits->files;
	struct mmap_event *first = s->events.data[0].event;
	uint32_t file = HASHMAP_NONE;
	int err = 0;

	if (s->fd >= 0)
		err = dso_files__complete_found(files, first, s, &file);
	else
		dso_files__give_up(first, s->facts->state);
	if (file != HASHMAP_NONE)
		dso_files__hold(files, file);
	for (size_t i = 0; i < s->events.count && !err; i++) {
		struct waiting_event *waiting = &s->events.data[i];

		if (i)
			dso_files__complete_like(files, waiting->event, first, file);
		err = dso_files__answer_event(files, waiting->event, file, waiting->answer,
					      waiting->context);
	}
	if (file != HASHMAP_NONE)
		dso_files__unhold(files, file);
	return err;
}

static int answer_request(struct dso_search *s)
{
	struct dso_files *files = s->waits->files;
	bool replaced = s->fd >= 0 ? !dso_files__reopen(files, s->requested, s)
				   : s->facts->state == FILE_STATE_REPLACED;
	uint32_t file;
	struct file_answer located = dso_files__locate(files, s->number, &file);

	if (located.fd == -EAGAIN)
		located.fd = replaced ? -ESTALE : -ENOENT;
	return dso_files__answer(files, file, located, &s->request);
}

static void end_search(struct dso_search *s, struct file_finding *facts, int fd)
{
	struct dso_waits *w = s->waits;
	const uint32_t requested = s->requested;

	judge_copy(s, facts, &fd);
	s->fd = fd;
	s->facts = facts;
	w->opens += fd >= 0;
	unlink_search(s);
	note_error(w, s->moved	   ? answer_moved(s)
		      : s->mapping ? answer_mappings(s)
				   : answer_request(s));
	free_search(s);
	if (requested != HASHMAP_NONE)
		dso_files__close_surplus(w->files, requested);
}

static enum file_state state_of_refusal(enum helper_refusal refusal)
{
	switch (refusal) {
	case HELPER_HUNG:
	case HELPER_DIED:
	case HELPER_FORGED:
		return FILE_STATE_NO_ANSWER;
	case HELPER_BANNED:
		return FILE_STATE_BANNED;
	case HELPER_OVER_BUDGET:
		return FILE_STATE_OVER_BUDGET;
	case HELPER_LATE:
		return FILE_STATE_LATE;
	default:
		return FILE_STATE_UNOPENED;
	}
}

/* A helper_answer_fn. */
static void take_finding(void *context, const struct helper_answer *answer)
{
	struct file_finding facts = {.root = SEARCH_MAPPED};
	int fd = -1;

	if (answer->refusal || answer->size <= offsetof(struct file_finding, moved.path) ||
	    answer->size > sizeof(facts)) {
		facts.err = -ETIMEDOUT;
		facts.state = state_of_refusal(answer->refusal);
	} else {
		memcpy(&facts, answer->data, answer->size);
		facts.moved.path[sizeof(facts.moved.path) - 1] = '\0';
		if (facts.root > SEARCH_MAPPED || facts.state >= FILE_STATE_COUNT)
			facts = (struct file_finding){.err = -EPROTO, .root = SEARCH_MAPPED};
		if (!facts.err && answer->fd_count) {
			fd = answer->fds[0];
			answer->fds[0] = -1;
		}
	}
	end_search(context, &facts, fd);
}

/* ---- the question ---------------------------------------------------------------------------- */

static void fill_mapping(struct mmap_event *event, const struct dso_file *file)
{
	build_id_report(&file->build_id, event);
	event->inode = file->inode;
	snprintf(event->path, EVENT_PATH_MAX, "%s", file->path);
}

static void fill_question(struct dso_search *s, struct file_question *q, int fds[SEARCH_ROOTS])
{
	s->copy_max = dso_files__copy_room(s->waits->files, helper_owner_user(s->owner), COPY_MAX);
	memset(q, 0, sizeof(*q));
	q->copy_max = s->copy_max;
	q->moved = s->moved;
	if (s->mapping)
		memcpy(&q->mapping, s->mapping,
		       min_u64(s->mapping->header.size, sizeof(q->mapping) - 1));
	else
		fill_mapping(&q->mapping.event, &s->waits->files->files.data[s->requested]);
	for (int i = 0; i < SEARCH_ROOTS; i++) {
		fds[i] = dso_roots__fd(s->waits->roots, s->roots[i]);
		q->has_root[i] = fds[i] >= 0;
	}
}

static int send_question(struct dso_search *s, struct file_question *q, int fds[SEARCH_ROOTS])
{
	struct helper_request request = {
		.service = s->waits->service,
		.owner = s->owner,
		.holds = true,
		.data = q,
		.size = file_question__size(q),
		.fds = fds,
		.answer = take_finding,
		.context = s,
	};

	for (int i = 0; i < SEARCH_ROOTS; i++)
		if (fds[i] >= 0)
			fds[request.fd_count++] = fds[i];
	return helper_pool__request(s->waits->readers, &request);
}

/* On an error the search is freed without an answer. */
static int start(struct dso_search *s)
{
	struct file_question q;
	struct file_finding facts;
	int fds[SEARCH_ROOTS], fd, err = 0;

	fill_question(s, &q, fds);
	if (s->waits->readers) {
		err = send_question(s, &q, fds);
		if (err)
			free_search(s);
		return err;
	}
	fd = file_search__find(&q, fds, &facts);
	end_search(s, &facts, fd);
	return 0;
}

int dso_waits__adopt_own(struct dso_waits *w, const struct mmap_event *mapping, uint32_t *file)
{
	struct dso_search s = {
		.waits = w, .mapping = mapping, .roots[SEARCH_PROCESS] = w->roots->own};
	struct file_question q;
	struct file_finding facts;
	int fds[SEARCH_ROOTS];

	if (!w->roots->own.v)
		return -ENOENT;
	fill_question(&s, &q, fds);
	q.mapping.event.pid = q.mapping.event.tid = 0;
	s.fd = file_search__find(&q, fds, &facts);
	s.facts = &facts;
	if (s.fd < 0)
		return facts.err;
	w->opens++;
	return dso_files__adopt(w->files, &s, file);
}

/* ---- what waits for it ----------------------------------------------------------------------- */

static int add_event(struct dso_search *s, const struct waiting_event *waiting)
{
	struct mmap_event *copy = copy_of(&waiting->event->header);
	int err = copy ? vec_push(&s->events,
				  ((struct waiting_event){copy, waiting->answer, waiting->context}))
		       : -ENOMEM;

	if (err)
		free(copy);
	return err;
}

static struct dso_search *search_for_mapping(struct dso_waits *w, const struct mmap_event *event,
					     pid_t parent, struct root_id root, bool moved)
{
	struct dso_search *s = moved ? NULL : find_search(w, event, root);

	if (s)
		return s;
	s = new_search(w, hash_mapping(event, root), root);
	if (!s)
		return NULL;
	s->parent = parent;
	s->moved = moved;
	s->owner = owner_of((pid_t)event->pid, parent);
	return s;
}

int dso_waits__add_mapping(struct dso_waits *w, const struct waiting_event *waiting, pid_t parent,
			   struct root_id root, bool moved)
{
	struct dso_search *s = search_for_mapping(w, waiting->event, parent, root, moved);
	int err = s ? add_event(s, waiting) : -ENOMEM;

	if (err && s && !s->mapping)
		free_search(s);
	if (err || s->mapping)
		return err;
	s->mapping = s->events.data[0].event;
	if (!s->roots[SEARCH_PROCESS].v)
		guess_roots(s);
	return start(s);
}

int dso_waits__add_request(struct dso_waits *w, uint64_t number, uint32_t i,
			   const struct file_request *request)
{
	const struct dso_file *file = &w->files->files.data[i];
	struct dso_search *s;

	if (!file->path || dso_roots__fd(w->roots, file->root) < 0)
		return -ENOENT;
	s = new_search(w, hash_u64(number), file->root);
	if (!s)
		return -ENOMEM;
	s->owner = owner_of(0, 0);
	s->requested = i;
	s->number = number;
	s->request = *request;
	dso_archives__hold(&w->files->archives, number);
	dso_files__hold(w->files, i);
	return start(s);
}

/* ---- what comes after them ------------------------------------------------------------------- */

static uint64_t oldest_mapping(const struct dso_waits *w)
{
	uint64_t since = UINT64_MAX;

	const struct dso_search *s;

	for (size_t bucket = 0; bucket < DSO_SEARCH_BUCKETS; bucket++)
		LIST_FOREACH (s, &w->searches[bucket], link)
			for (size_t i = 0; i < s->events.count; i++)
				since = min_u64(since, s->events.data[i].event->header.time);
	return since;
}

uint64_t dso_waits__since(const struct dso_waits *w)
{
	uint64_t since = oldest_mapping(w);

	for (size_t i = 0; i < w->passed.count; i++)
		since = min_u64(since, w->passed.data[i].event->time);
	return since;
}

int dso_waits__pass(struct dso_waits *w, struct event_header *event, event_push_fn push,
		    void *context)
{
	struct event_header *copy;
	int err;

	if (oldest_mapping(w) > event->time)
		return push(context, event);
	copy = copy_of(event);
	err = copy ? vec_push(&w->passed, ((struct passed_event){copy, push, context})) : -ENOMEM;
	if (err)
		free(copy);
	return err;
}

void dso_waits__pass_on(struct dso_waits *w)
{
	uint64_t oldest = w->passed.count ? oldest_mapping(w) : 0;
	size_t kept = 0;

	for (size_t i = 0; i < w->passed.count; i++) {
		const struct passed_event passed = w->passed.data[i];

		if (passed.event->time >= oldest) {
			w->passed.data[kept++] = passed;
			continue;
		}
		if (!w->err)
			note_error(w, passed.push(passed.context, passed.event));
		free(passed.event);
	}
	w->passed.count = kept;
}
