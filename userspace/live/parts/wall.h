/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that visits threads which do not run (record --wall): EVENT_VISIT and EVENT_VISIT_BOOKS.
 *
 * A child runs the programs of bpf/visit.bpf.c, each visit at a random moment of its period, so that no program can run in
 * step with them. A program reads the memory of the threads, and a page of it may never come (a file on FUSE): then the child
 * is left behind, the recording goes on, and nothing more is visited.
 */
#ifndef LIVE_PARTS_WALL_H
#define LIVE_PARTS_WALL_H

#include "capture/bpf_session.h"
#include "live/part.h"
#include "stream/event_queue.h"

#define WALL_BUDGET_DEFAULT 5000u /* millionths of a CPU */

struct wall_options {
	unsigned int hz;     /* visits a second, at most. > 0 */
	unsigned int budget; /* millionths of a CPU: at more threads visits become fewer */
	bool if_possible;   /* without visits it is no error, and sampling does not wait for them */
	bool small;	    /* as in bpf_visits__open(); and a visit that takes long is cut short */
	event_push_fn push; /* EVENT_VISIT, which the receiver may change, and EVENT_VISIT_BOOKS */
	void *context;
};

/* 0 or negative errno with `failure` filled. The part has to be freed before the session. */
int wall_part__new(const struct wall_options *options, struct bpf_session *session,
		   struct live_part *part, struct failure *failure);
/* Sampling has begun: the first visit is now; if_possible, when the kernel has verified the programs. */
void wall_part__start(const struct live_part *part);
/* Later events are of another window: where threads wait that do not run is visited once more. */
void wall_part__begin_window(const struct live_part *part);
/* The next visit takes the accounts of threads that have not run, too: they have waited until then. */
void wall_part__begin_round(const struct live_part *part);
/* From now on. Both > 0. */
void wall_part__set_rate(const struct live_part *part, unsigned int hz, unsigned int budget);
/*
 * if_possible: was a part freed whose thread still loads the programs? On a host without a free CPU that takes long. Then the
 * session must not be freed, and the part is not: the process is about to end.
 */
bool wall_parts__still_load(void);
/* if_possible: why there are no visits; NULL: there are, or are to come. */
const char *wall_part__refused(const struct live_part *part);

#endif
