/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the collector shares with a JIT watcher, which is a process of its own: a ring of commands, a ring of
 * events, and what either says of itself. Neither waits for the other. The watcher is less trusted than the
 * collector: what comes from it is copied first and checked then.
 */
#ifndef JITWATCH_JIT_CHANNEL_H
#define JITWATCH_JIT_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

#define JIT_EVENT_BYTES	  (8u << 20) /* powers of two */
#define JIT_COMMAND_BYTES (256u << 10)
#define JIT_WATCHERS_MAX  32 /* of one recording */
#define JIT_LINE_WATCHERS 4  /* of one user, or those who share one: one after the other */

/* One writes, one reads. */
struct jit_ring {
	_Atomic uint64_t written, read; /* bytes */
};

struct jit_channel {
	/* by the collector */
	_Atomic uint32_t asked; /* the number of the last request to have all done */
	_Atomic bool settling;	/* ... at the end: without waiting for writers */
	_Atomic bool ending;
	_Atomic bool paused; /* no files are read */
	bool ask_jvms;
	uint32_t denied[JIT_WATCHERS_MAX]; /* users whose files hung a watcher before */
	uint32_t denied_count;

	/* by the watcher */
	_Atomic int32_t pid;
	_Atomic uint32_t done; /* the last request that is fulfilled */
	_Atomic uint64_t cpu;  /* ns */
	/* At somebody's files since then, CLOCK_MONOTONIC ns; 0: at nobody's. Renewed as reading goes on. */
	_Atomic uint64_t touched_at;
	_Atomic uint32_t touched_user;
	struct quota bytes; /* read of each user's files; begins with what the watcher before had */
	_Atomic bool backlogged;    /* it has more events than there was room for */
	_Atomic int64_t bytes_read; /* of the first channel: by all watchers */

	struct jit_ring commands, events;
	char command_bytes[JIT_COMMAND_BYTES];
	char event_bytes[JIT_EVENT_BYTES];
};

/* Shared with children that are forked later; NULL: no memory. Untouched pages take none. */
struct jit_channel *jit_channel__new(void);
void jit_channel__free(struct jit_channel *channel);

/* `size` bytes that come out whole; false: there is no room now. */
bool jit_channel__send_event(struct jit_channel *channel, const void *event, size_t size);
bool jit_channel__send_command(struct jit_channel *channel, const void *command, size_t size);

/* The next ones into a buffer of `room` bytes: their size; 0: there is none; -EPROTO: nonsense. */
long jit_channel__take_event(struct jit_channel *channel, void *event, size_t room);
long jit_channel__take_command(struct jit_channel *channel, void *command, size_t room);

#endif
