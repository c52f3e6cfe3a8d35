/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks user stacks that perf has copied (`perf record --call-graph dwarf`), by the tables of files of
 * this machine that have the recorded build-id. Tables are built in the sandboxed processes of a live
 * session, one for each file, when the first stack reaches it.
 */
#ifndef SESSION_COPIED_STACKS_H
#define SESSION_COPIED_STACKS_H

#include "window/replay.h"

struct copied_stacks;

/* Of one replay: images have its numbers. Starts nothing until a stack comes. 0 or -ENOMEM. */
int copied_stacks__new(struct copied_stacks **stacks);
void copied_stacks__free(struct copied_stacks *s); /* NULL is fine */

/* A replay_walk_fn; the context is the stacks. */
int copied_stacks__walk(void *stacks, struct world *world, const struct sample_event **sample);

#endif
