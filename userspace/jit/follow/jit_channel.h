/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the collector shares with its JIT watchers. Each has a channel: a ring of events, and
 * the state of both sides. Events are not messages because a map may have 512 MB. Neither side
 * waits. The collector does not trust a watcher: it copies its data first, then checks the copy.
 * Commands are messages (tenants/message.h).
 */
#ifndef JIT_FOLLOW_JIT_CHANNEL_H
#define JIT_FOLLOW_JIT_CHANNEL_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "tenants/child.h"
#include "tenants/quota.h"

#define JIT_EVENT_BYTES	  (1u << 20) /* a power of two */
#define JIT_LINES_MAX	  32	     /* watchers that a recording has at the same time */
#define JIT_WATCHERS_MAX  64	     /* with abandoned ones that have not ended yet */
#define JIT_LINE_FAILURES 4	     /* watchers of a line that end without a user to blame */
#define JIT_PAGE	  4096	     /* with larger pages other channels stay mapped */

struct jit_channel {
	/* by the collector */
	_Alignas(JIT_PAGE) _Atomic uint32_t requested; /* the last request to finish all work */
	_Atomic bool settling; /* ... at the end: without waiting for writers */
	_Atomic bool paused;   /* no files are read */
	bool attach_jvms;
	struct quota hangs; /* of users whose files hung a watcher before */

	/* by the watcher */
	_Atomic uint32_t done; /* the last request that is finished */
	/* CLOCK_MONOTONIC ns of the last progress in a user's files; 0: reads none. */
	_Atomic uint64_t touched_at;
	_Atomic uint32_t touched_user;
	struct quota bytes;	 /* read of each user's files; continues the previous watcher's */
	_Atomic bool backlogged; /* it has events that did not fit into the ring */

	_Atomic uint64_t written, read; /* bytes of events; one writes, one reads */
	char event_bytes[JIT_EVENT_BYTES];
};

struct jit_channels {
	_Atomic int64_t bytes_read; /* by all watchers */
	_Alignas(JIT_PAGE) struct jit_channel of[JIT_WATCHERS_MAX];
};

/* Shared with children that are forked later; NULL: no memory. Untouched pages cost nothing. */
struct jit_channels *jit_channels__new(void);
void jit_channels__free(struct jit_channels *channels);
/* In a watcher: unmaps the other channels. */
struct jit_channel *jit_channels__keep(struct jit_channels *channels, unsigned int number);

/* An event about a file, with its path. */
union jit_file_room {
	struct jit_file_event event;
	char room[sizeof(struct jit_file_event) + PATH_MAX + EVENT_ALIGN];
};
/* Copies the fields and the path, which is cut if too long; sets type and size of the header. */
void jit_file_room__fill(union jit_file_room *e, const char *path,
			 const struct jit_file_event *fields);

/* False: no room now. */
bool jit_channel__send_event(struct jit_channel *channel, const void *event, size_t size);
/* Copies the next event into `room` bytes. Its size; 0: there is none; -EPROTO: invalid. */
long jit_channel__take_event(struct jit_channel *channel, void *event, size_t room);

#endif
