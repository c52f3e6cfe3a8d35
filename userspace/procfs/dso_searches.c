/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searches that are under way. A reader makes them (file_search.c); until it answers, the search keeps the request
 * and holds the roots that it looks below.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "procfs/dso_opener_private.h"
#include "helpers/owner.h"
#include "helpers/pool.h"

#define COPY_MAX (256ull << 20) /* bytes of a file that is kept as a copy */

struct search {
	struct dso_opener *opener;
	uint32_t user;
	uint64_t copy_max;	 /* that was allowed in the request */
	int roots[SEARCH_ROOTS]; /* or NO_ROOT */
	char *path;
	size_t path_length;
	uint64_t owner; /* to charge */
	search_done_fn done;
	void *context;
};

/* ---- the question ---------------------------------------------------------------------------- */

static void fill_question(struct file_question *q, const struct wanted *w)
{
	*q = (struct file_question){
		.pid = w->pid,
		.tid = w->tid,
		.start = w->start,
		.end = w->end,
		.build_id = w->build_id,
		.inode = w->inode,
		.just_read = w->just_read,
		.path_length = file_search__is_nameless(w->path) ? 0 : w->path_length,
	};
	snprintf(q->path, sizeof(q->path), "%s", w->path);
}

/* The roots that a process which is gone may have had. */
static void add_other_roots(struct dso_opener *o, const struct wanted *w, int roots[SEARCH_ROOTS])
{
	uint32_t recent = lru__newest(&o->root_order);
	int at = SEARCH_OTHERS;

	roots[SEARCH_PARENT] = dso_roots__of(o, w->parent);
	if (o->own_root >= 0 && o->own_root != roots[SEARCH_PARENT])
		roots[at++] = o->own_root;
	/* an inode number says nothing about a file of another root */
	while (w->build_id.size && at < SEARCH_ROOTS && recent != LRU_NONE) {
		if ((int)recent != roots[SEARCH_PARENT] && (int)recent != o->own_root)
			roots[at++] = (int)recent;
		recent = lru__older(&o->root_order, recent);
	}
}

/* ---- the answer ------------------------------------------------------------------------------ */

/*
 * Charge a copy to its user, who may have more copies by now than at the request. *fd -1: it is left out, or was not
 * made for that reason.
 */
static void judge_copy(const struct search *s, struct file_finding *facts, int *fd)
{
	struct dso_opener *o = s->opener;
	bool left = *fd < 0 ? facts->copy_too_big && s->copy_max < COPY_MAX
			    : dso_images__copy_room(o, s->user, facts->copied) < facts->copied;

	if (*fd < 0 && facts->copy_too_big && !left)
		dso_images__note_copy(o, s->user, facts, true);
	if (!left)
		return;
	dso_images__note_copy(o, s->user, facts, false);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	facts->state = FILE_STATE_OVER_BUDGET;
}

static void end_search(struct search *s, struct file_finding *facts, int fd)
{
	struct dso_opener *o = s->opener;
	struct found found = {.root = NO_ROOT};

	judge_copy(s, facts, &fd);
	found.fd = fd;
	found.facts = *facts;
	found.copied = facts->copied;
	found.user = s->user;
	found.owner = s->owner;

	if (facts->root < SEARCH_ROOTS) {
		found.root = s->roots[facts->root];
		found.path = s->path;
		found.path_length = facts->shortened ? s->path_length : strlen(s->path);
	} else { /* its name leads elsewhere, or nowhere */
		found.root = s->roots[SEARCH_PROCESS];
	}
	o->opens += fd >= 0;
	s->done(o, s->context, fd >= 0 ? &found : NULL, facts->state);
	for (int i = 0; i < SEARCH_ROOTS; i++)
		if (s->roots[i] >= 0)
			dso_roots__unhold(o, s->roots[i]);
	free(s->path);
	free(s);
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

	if (answer->refusal || answer->size != sizeof(facts)) {
		facts.err = -ETIMEDOUT;
		facts.state = state_of_refusal(answer->refusal);
	} else {
		memcpy(&facts, answer->data, sizeof(facts));
		if (facts.root > SEARCH_MAPPED || facts.state >= FILE_STATE_COUNT)
			facts = (struct file_finding){.err = -EPROTO, .root = SEARCH_MAPPED};
		if (!facts.err && answer->fd_count) {
			fd = answer->fds[0];
			answer->fds[0] = -1;
		}
	}
	end_search(context, &facts, fd);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Of a process that is gone its parent is the best guess. */
static uint64_t owner_of(const struct wanted *w)
{
	uint64_t owner = helper_owner(w->pid);

	return owner == HELPER_OWNER_UNKNOWN ? helper_owner(w->parent) : owner;
}

static int send_question(struct search *s, struct file_question *q)
{
	struct dso_opener *o = s->opener;
	int fds[SEARCH_ROOTS];
	struct helper_request request = {
		.service = o->caps.service,
		.owner = s->owner,
		.holds = true,
		.data = q,
		.size = file_question__size(q),
		.fds = fds,
		.answer = take_finding,
		.context = s,
	};

	for (int i = 0; i < SEARCH_ROOTS; i++) {
		q->has_root[i] = s->roots[i] >= 0;
		if (q->has_root[i])
			fds[request.fd_count++] = o->roots.data[s->roots[i]].fd;
	}
	return helper_pool__request(o->pool, &request);
}

static void search_in_place(struct search *s, const struct file_question *q)
{
	const struct dso_opener *o = s->opener;
	struct file_finding facts;
	int roots[SEARCH_ROOTS], fd;

	for (int i = 0; i < SEARCH_ROOTS; i++)
		roots[i] = s->roots[i] >= 0 ? o->roots.data[s->roots[i]].fd : -1;
	fd = file_search__find(q, roots, &facts);
	end_search(s, &facts, fd);
}

/* Takes the roots by number. */
static int start_search(struct dso_opener *o, const struct wanted *w, const char *path,
			const int roots[SEARCH_ROOTS], search_done_fn done, void *context)
{
	struct search *s = calloc(1, sizeof(*s));
	struct file_question q;
	int err = 0;

	if (!s)
		return -ENOMEM;
	*s = (struct search){
		.opener = o, .path_length = w->path_length, .done = done, .context = context};
	s->owner = owner_of(w);
	s->path = strdup(path);
	if (!s->path) {
		free(s);
		return -ENOMEM;
	}
	for (int i = 0; i < SEARCH_ROOTS; i++) {
		s->roots[i] = roots[i];
		if (roots[i] >= 0)
			dso_roots__hold(o, roots[i]);
	}
	fill_question(&q, w);
	s->user = helper_owner_user(s->owner);
	s->copy_max = q.copy_max = dso_images__copy_room(o, s->user, COPY_MAX);
	if (!o->pool) {
		search_in_place(s, &q);
		return 0;
	}
	err = send_question(s, &q);
	if (!err)
		return 0;
	for (int i = 0; i < SEARCH_ROOTS; i++)
		if (roots[i] >= 0)
			dso_roots__unhold(o, roots[i]);
	free(s->path);
	free(s);
	return -ENOMEM;
}

static void no_roots(int roots[SEARCH_ROOTS])
{
	for (int i = 0; i < SEARCH_ROOTS; i++)
		roots[i] = NO_ROOT;
}

int dso_searches__mapping(struct dso_opener *o, const struct wanted *w, int root,
			  search_done_fn done, void *context)
{
	int roots[SEARCH_ROOTS];

	no_roots(roots);
	if (root >= 0)
		roots[SEARCH_PROCESS] = root;
	else
		add_other_roots(o, w, roots);
	return start_search(o, w, w->path, roots, done, context);
}

int dso_searches__own(struct dso_opener *o, const struct wanted *w, struct found *found)
{
	struct file_question q;
	int roots[SEARCH_ROOTS], fd;

	if (o->own_root < 0)
		return o->own_root;
	no_roots(roots);
	roots[SEARCH_PROCESS] = o->roots.data[o->own_root].fd;
	fill_question(&q, w);
	q.copy_max = dso_images__copy_room(o, 0, COPY_MAX);
	*found = (struct found){.root = o->own_root, .path = w->path};
	fd = file_search__find(&q, roots, &found->facts);
	if (fd < 0)
		return found->facts.err;
	o->opens++;
	found->fd = fd;
	found->copied = found->facts.copied;
	found->path_length = found->facts.shortened ? w->path_length : strlen(w->path);
	return 0;
}
