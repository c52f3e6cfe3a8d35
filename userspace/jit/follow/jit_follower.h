/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf maps and jitdumps that grow: a file, and all that are followed. */
#ifndef JIT_FOLLOW_JIT_FOLLOWER_H
#define JIT_FOLLOW_JIT_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jit/follow/jit_find.h"
#include "stream/event_queue.h"
#include "tenants/quota.h"

struct jit_follower;

/* ---- all files ------------------------------------------------------------------------------- */

/*
 * The followed perf maps and jitdumps. Each is read on an inotify event ("sign"), at a deadline of
 * its own, or by polling if it has no watch; its CPU time per second is limited. Processes without
 * a map are checked again at growing intervals. Used by one thread.
 */

struct jit_follower_output {
	event_push_fn push;
	/* Stop reading for now; `settle`: for good. */
	bool (*is_full)(void *context, bool settle);
	/* Called before files of this process are used, which may hang; NULL: afterwards. */
	void (*touch)(void *context, const struct jit_owner *owner);
	void *context;
};

/*
 * Charges bytes read to `bytes` (QUOTA_JIT_BYTES) and opens no files of users who have `hangs`. Both
 * must outlive it. 0 or -ENOMEM.
 */
int jit_follower__new(const struct jit_follower_output *output, struct quota *bytes,
		      const struct quota *hangs, struct jit_follower **follower);
/* NULL is fine. */
void jit_follower__free(struct jit_follower *r);

/* Readable when there are signs; -1: files are polled. The follower's own. */
int jit_follower__signs_fd(const struct jit_follower *r);

/* The process's map is followed or searched for. */
bool jit_follower__has_map(const struct jit_follower *r, pid_t pid);
void jit_follower__follow_map(struct jit_follower *r, const struct jit_owner *owner);
/* There may be a map now. */
void jit_follower__expect_map(struct jit_follower *r, pid_t pid);
/* It has mapped a jitdump at [start, end). */
void jit_follower__follow_dump(struct jit_follower *r, pid_t pid, const char *path, uint64_t start,
			       uint64_t end);
/* The process has ended: read its files once more and close them. */
void jit_follower__let_go(struct jit_follower *r, pid_t pid);

/* The steps of a round. `settle`: reads every file, without waiting for writers. */
void jit_follower__take_signs(struct jit_follower *r);
void jit_follower__look_for_files(struct jit_follower *r);
void jit_follower__read_due(struct jit_follower *r, bool settle);

/* A file was not read to its end. */
bool jit_follower__has_more(const struct jit_follower *r, bool settle);
/* When a round is due; UINT64_MAX: at the next inotify event. `full`: nothing may be read. */
uint64_t jit_follower__next_due(const struct jit_follower *r, bool full);
/* When a file was last read. */
uint64_t jit_follower__last_read(const struct jit_follower *r);

/* -ENOMEM, or what `push` returned. 0: no error. */
int jit_follower__error(const struct jit_follower *r);

#endif
