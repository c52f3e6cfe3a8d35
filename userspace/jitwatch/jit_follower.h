/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The perf maps and jitdumps that are followed, and when each is read: on an inotify event ("sign"), when a
 * deadline of its own passes (jit_file.h), or by polling if there is no watch. CPU time per second is limited
 * for each file. Processes without a map are checked again at growing intervals. Used by one thread.
 */
#ifndef JITWATCH_JIT_FOLLOWER_H
#define JITWATCH_JIT_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/quota.h"
#include "jitwatch/jit_find.h"
#include "stream/event_queue.h"

struct jit_follower;

struct jit_follower_output {
	event_push_fn push;
	/* Nothing more is to be read for now; `settle`: for good. */
	bool (*is_full)(void *context, bool settle);
	/* Files of this process are about to be used, which may never return; NULL: no more. */
	void (*touch)(void *context, const struct jit_owner *owner);
	void *context;
};

/*
 * What is read is taken from `bytes` (QUOTA_JIT_BYTES). No file of the users `denied` is opened. Both outlive it. 0 or
 * -ENOMEM.
 */
int jit_follower__new(const struct jit_follower_output *output, struct quota *bytes,
		      const uint32_t *denied, size_t denied_count, struct jit_follower **follower);
/* NULL is fine. */
void jit_follower__free(struct jit_follower *r);

/* Readable when there are signs; -1: files are polled. The follower's own. */
int jit_follower__signs_fd(const struct jit_follower *r);

/* Is the process's map followed already, or searched for? */
bool jit_follower__has_map(const struct jit_follower *r, pid_t pid);
void jit_follower__follow_map(struct jit_follower *r, const struct jit_owner *owner);
/* There may be a map now. */
void jit_follower__expect_map(struct jit_follower *r, pid_t pid);
/* It has mapped a jitdump at [start, end). */
void jit_follower__follow_dump(struct jit_follower *r, pid_t pid, const char *path, uint64_t start,
			       uint64_t end);
/* The process has ended: read its files once more and close them. */
void jit_follower__let_go(struct jit_follower *r, pid_t pid);

/* A round: takes inotify events, looks for new files, reads what is due. `settle`: reads every file, without waiting for writers. */
void jit_follower__take_signs(struct jit_follower *r);
void jit_follower__look_for_files(struct jit_follower *r);
void jit_follower__read_due(struct jit_follower *r, bool settle);

/* Is there anything to read now? */
bool jit_follower__has_more(const struct jit_follower *r, bool settle);
/* When the next round is due; UINT64_MAX: after the next inotify event. `full`: nothing may be read. */
uint64_t jit_follower__next_due(const struct jit_follower *r, bool full);
/* When a file was last read. */
uint64_t jit_follower__last_read(const struct jit_follower *r);

/* Negative errno: out of memory, or what `push` returned. 0: no error. */
int jit_follower__error(const struct jit_follower *r);

#endif
