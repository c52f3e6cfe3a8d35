/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the collector shares with its JIT watchers, a channel for each: a ring of events, and what either reports of
 * itself. Events are in a ring, not in messages, because a map may have 512 MB. Neither side waits for the other. The watcher is
 * less trusted than the collector: what comes from it is copied first and checked then. Commands are messages (helpers/message.h).
 */
#ifndef JITWATCH_JIT_CHANNEL_H
#define JITWATCH_JIT_CHANNEL_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "base/quota.h"
#include "helpers/child.h"

#define JIT_EVENT_BYTES	  (1u << 20) /* a power of two */
#define JIT_WATCHERS_MAX  32	     /* of one recording */
#define JIT_LINE_WATCHERS 4    /* of one user, or of users that share one: one after the other */
#define JIT_PAGE	  4096 /* where pages are larger, other channels stay mapped */

struct jit_channel {
	/* by the collector */
	_Alignas(JIT_PAGE) _Atomic uint32_t requested; /* number of the last request to do all */
	_Atomic bool settling; /* ... at the end: without waiting for writers */
	_Atomic bool paused;   /* no files are read */
	bool attach_jvms;
	uint32_t denied[JIT_WATCHERS_MAX]; /* users whose files hung a watcher before */
	uint32_t denied_count;

	/* by the watcher */
	_Atomic int32_t pid;
	_Atomic uint32_t done; /* the last request that is fulfilled */
	_Atomic uint64_t cpu;  /* ns */
	/* Reads files of a user since then, CLOCK_MONOTONIC ns; 0: reads none. Renewed as reading goes on. */
	_Atomic uint64_t touched_at;
	_Atomic uint32_t touched_user;
	struct quota bytes; /* read of each user's files; begins with what the watcher before had */
	_Atomic bool backlogged; /* it has more events than there was room for */

	_Atomic uint64_t written, read; /* bytes of events; one writes, one reads */
	char event_bytes[JIT_EVENT_BYTES];
};

struct jit_channels {
	_Atomic int64_t bytes_read; /* by all watchers */
	_Alignas(JIT_PAGE) struct jit_channel of[JIT_WATCHERS_MAX];
};

/* Shared with children that are forked later; NULL: no memory. Untouched pages take none. */
struct jit_channels *jit_channels__new(void);
void jit_channels__free(struct jit_channels *channels);
/* In a watcher: the other channels are not mapped any more. */
struct jit_channel *jit_channels__keep(struct jit_channels *channels, unsigned int number);

/* An event about a file, with its path. */
union jit_file_room {
	struct jit_file_event event;
	char room[sizeof(struct jit_file_event) + PATH_MAX + EVENT_ALIGN];
};
/* The fields but for size and type of the header, and the path, which is cut where it does not fit. */
void jit_file_room__fill(union jit_file_room *e, const char *path,
			 const struct jit_file_event *fields);

/* `size` bytes that come out whole; false: there is no room now. */
bool jit_channel__send_event(struct jit_channel *channel, const void *event, size_t size);
/* The next one into a buffer of `room` bytes: its size; 0: there is none; -EPROTO: invalid. */
long jit_channel__take_event(struct jit_channel *channel, void *event, size_t room);

/* ---- the watcher ----------------------------------------------------------------------------- */

/*
 * The work of a JIT watcher, a process of its own: it runs commands, sends requests to JVMs, follows files, and passes what
 * it has read to the collector by a channel. The owner of a file can make reading it slow, or never end, so no thread of
 * the collector reads such files, and nothing waits for a watcher that hangs.
 */

/* The data of its fork. */
struct jit_begin {
	struct jit_channels *channels; /* at the same address in all processes */
	unsigned int number;	       /* of its own */
};

/* The services of messages to a watcher. */
enum jit_command_kind { JIT_WAKE, JIT_FOLLOW, JIT_FOLLOW_DUMP, JIT_GONE };

/* The bytes of the last three. */
struct jit_command {
	pid_t pid;
	uint64_t start, end;
	char path[PATH_MAX]; /* of a dump; the bytes behind its NUL are not sent */
};

/* A child_run_fn. It runs until the collector closes its socket. */
int jit_watcher__run(const struct child_self *self);

#endif
