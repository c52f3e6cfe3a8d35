/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed windows that wait for a backend: in a directory of this sink alone, the oldest out first.
 * Bodies are read when they are sent, so an outage costs disk, not memory. If the disk fails, the
 * newest few windows are kept in memory, and moved to the disk when it works again.
 *
 * Any thread may call; those that write wait for each other, and for the disk.
 */
#ifndef AGENT_SPOOL_H
#define AGENT_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_window.h"
#include "base/log.h"

/*
 * A sealed window with a state byte for each request, on disk or in memory. On disk one body is
 * read at a time. All of it is checked: it may be torn, or not ours.
 */

/* Of a request. Numbers are in files. */
enum request_state {
	REQUEST_UNSENT,
	REQUEST_UNSURE, /* sent, perhaps: there was no answer */
	REQUEST_ACCEPTED,
	REQUEST_RESENT, /* was unsure, and was sent again since: it did not arrive a second time */
	REQUEST_DROPPED = 16, /* and the verdict */
};

struct spool_file;

/* Its first bytes, which have been checked. */
struct spool_head {
	char magic[8];
	uint64_t hash;		     /* of head, rows and strings, while this is 0 */
	uint64_t file_size;	     /* bytes */
	uint64_t number, start, end; /* of the window; start, end: ns since the epoch */
	uint32_t count;		     /* of requests */
	uint32_t strings_size;	     /* bytes */
};

#define SPOOL_MEMORY_WINDOWS 4
#define SPOOL_WINDOWS_MAX    4096

struct spool_options {
	const char *directory; /* NULL: in memory */
	uint64_t bytes;	       /* of all windows on disk */
	uint64_t age;	       /* ns that a window is kept after it began */
};

struct spool_stats {
	uint64_t windows, bytes;   /* now, with the one that is taken */
	uint64_t oldest;	   /* ns since the epoch, 0: none */
	uint64_t too_old, no_room; /* windows that were dropped */
	uint64_t strange;	   /* files that were skipped: torn, or not ours */
	int error; /* why the disk is not used, negative errno; 0: it is, or is not wanted */
};

struct spool;

/*
 * 0, also if the directory does not work now: see `error`. Negative errno with `failure`: -EBUSY:
 * another process uses it (not seen within one); -EPERM, -ELOOP, -ENOTDIR: not ours alone; -ENOMEM.
 */
int spool__new(const struct spool_options *options, struct spool **spool, struct failure *failure);
/* NULL is fine. Windows in memory are moved to the disk if that works, and gone if not. */
void spool__free(struct spool *s);
/*
 * For an end while its thread hangs: lets another process have the directory; only the progress of
 * the window under way is still written. Does not wait for a disk.
 */
void spool__leave(struct spool *s);

/* Takes the window; it is empty afterwards. 0; -ENOSPC, -E2BIG, -ENOMEM: dropped. */
int spool__put(struct spool *s, struct sealed_window *window);

/* ---- for the sender: one thread -------------------------------------------------------------- */

struct spool_window {
	uint64_t number; /* in this spool: the older, the smaller */
	bool in_memory;
	struct spool_file *file;
};

/* The oldest, the caller's until spool__give_back(). One at a time. 0, -ENOENT: none; -ENOMEM. */
int spool__take(struct spool *s, struct spool_window **window);
/* done: it is deleted. Else it is the oldest again. */
void spool__give_back(struct spool *s, struct spool_window *window, bool done);
/* The same for one that turned out to be torn: its file stays, and is not looked at again. */
void spool__set_aside(struct spool *s, struct spool_window *window);

/* Any thread; never waits for a disk. */
void spool__stats(struct spool *s, struct spool_stats *stats);

#endif
