/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that visits threads that do not run (record --wall): EVENT_VISIT, EVENT_VISIT_BOOKS.
 *
 * A child runs the programs of bpf/visit.bpf.c, each visit at a random moment of its period, so
 * that no program can run in step with them. They read memory of threads, of which a page may never
 * come (a file on FUSE). Then the child is abandoned; another one goes on without that process and
 * all of its user's, unless that is root. After VISIT_BANNED_MAX of these nothing is visited any
 * more.
 */
#ifndef LIVE_PARTS_WALL_H
#define LIVE_PARTS_WALL_H

#include "live/capture/bpf_session.h"
#include "live/part.h"
#include "stream/event_queue.h"

struct wall_options {
	unsigned int hz;     /* visits a second, at most. > 0 */
	unsigned int budget; /* millionths of a CPU; with more threads visits become fewer */
	bool if_possible;    /* no error at the start, and sampling does not wait for visits */
	bool small;	     /* see bpf_visits__open(); a visit that takes long is cut short */
	event_push_fn push;  /* for EVENT_VISIT, which may be changed, and EVENT_VISIT_BOOKS */
	void *context;
};

/* 0 or negative errno with `failure` set. The part has to be freed before the session. */
int wall_part__new(const struct wall_options *options, struct bpf_session *session,
		   struct live_part *part, struct failure *failure);
/*
 * Does the thread of the part that was freed last still load programs of this session (if_possible;
 * takes long without a free CPU)? Then the session must not be freed.
 */
bool wall_parts__still_use(const struct bpf_session *session);
#endif
