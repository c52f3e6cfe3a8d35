/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf maps and jitdumps that grow: a file, and all that are followed. */
#ifndef JITWATCH_JIT_FOLLOWER_H
#define JITWATCH_JIT_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/quota.h"
#include "jitwatch/jit_find.h"
#include "stream/event_queue.h"

struct jit_follower;

/* ---- a file ---------------------------------------------------------------------------------- */

/*
 * A perf map or jitdump that is read while it grows. Its bytes become events, each with the two times between
 * which the bytes were written.
 *
 * Most writers append. A writer that truncates the file and closes it again writes a snapshot, which is read
 * as a whole once the file is closed. A writer that truncates it without closing counts as an appender again
 * after JIT_FILE_REWRITE_PATIENCE. A file counts as rewritten if it is shorter than it was, or was opened and its last
 * 256 bytes up to where it was read are others, or if it never grew and was opened, written to
 * and closed.
 */

#define JIT_LINKED_MAX	   (16ull << 20) /* bytes of one with several names: no runtime makes them */
#define JIT_FILE_TAIL_SIZE 256u
#define JIT_FILE_LINE_MAX  1024u

/* ns; HotSpot writes for 5 ms. So much later is read what was found to have been written to just now. */
#define JIT_FILE_REWRITE_PATIENCE 50000000ull

/* The time of the last write, from the modification time of the file. */
struct jit_write {
	uint64_t size;	/* of the file then */
	uint64_t mtime; /* CLOCK_REALTIME ns */
	uint64_t time;	/* the same in CLOCK_MONOTONIC ns: it was not earlier; 0: unknown */
	int64_t offset; /* from that clock to CLOCK_REALTIME */
};

/* A line whose time is the modification time, unless that is the time of a later write in progress. */
struct jit_held {
	unsigned int size; /* 0: none is held */
	uint64_t mtime;	   /* that time, CLOCK_REALTIME ns */
	uint64_t after;	   /* the same in CLOCK_MONOTONIC ns */
	uint64_t doubtful; /* it was certainly written after this time */
	uint64_t before;   /* ... and not after this one */
	uint64_t until;	   /* after this time the bytes of any write are visible */
	char line[JIT_FILE_LINE_MAX];
};

/* Where events about a file go. */
struct jit_file_sink {
	event_push_fn push;
	void *context;
};

struct jit_file {
	struct jit_file_sink sink;
	uint32_t number; /* in the recording, from 1 on */
	struct jit_owner owner;
	enum jit_file_kind kind;
	enum jit_file_state state;
	int fd;
	uint64_t device, inode;
	uint64_t offset;    /* everything before it was reported, or is held */
	bool at_end;	    /* ... was all when it was last read, ... */
	uint64_t end_mtime; /* ... its mtime then */
	uint64_t silent;    /* up to this time all written bytes were read; 0: unknown */
	uint64_t listed;   /* the last snapshot or first reading, which had all code of that time */
	bool appended;	   /* ... and has grown since */
	uint64_t reported; /* bytes, of all snapshots */
	uint64_t began;	   /* it is followed since then */
	uint64_t found_size;  /* of the file when it was found */
	uint64_t found_mtime; /* ... and its mtime */
	uint64_t named_at;    /* it was known to have its name then */
	uint64_t waits_since; /* it is being written anew, or has just been found; 0: it is not */
	bool rewritten;	      /* ... and something was reported of it before */
	bool opened;	      /* it was opened by a process: it may have been rewritten */
	bool is_linked;	      /* it has several names */
	struct jit_write last_write;
	struct jit_held held;	       /* the line before `offset` */
	char tail[JIT_FILE_TAIL_SIZE]; /* the last bytes before `offset` */
	unsigned int tail_size;
};

/* Events of inotify about a file. */
struct jit_signs {
	bool opened, modified, closed; /* closed: by a writer */
};

/* Takes the descriptor, and reports the file. 0, or the result of `push`. */
int jit_file__begin(struct jit_file *f, uint32_t number, enum jit_file_kind kind,
		    const struct jit_owner *owner, struct jit_found *found, uint64_t now,
		    const struct jit_file_sink *sink);

/*
 * Reads new bytes, at most JIT_READ_MAX. `settle`: hold nothing back. 1: there is more to read; 0; or the result
 * of `push`.
 */
#define JIT_READ_MAX (4u << 20)
int jit_file__read(struct jit_file *f, const struct jit_signs *signs, bool settle);

/* Checks, with one system call, that nothing was written up to now: later lines are then known to be younger. */
void jit_file__glance(struct jit_file *f);

/* Nothing more will be read, for that reason: from the last reading on all entries are in doubt. */
int jit_file__give_up(struct jit_file *f, enum jit_file_state why);

/* When it must be read even without an inotify event; 0: never. */
uint64_t jit_file__wakes_at(const struct jit_file *f);

/* The file was replaced: reads the new one from its start. Takes the descriptor. 0, or the result of `push`. */
int jit_file__replace(struct jit_file *f, int fd, const struct stat *st, uint64_t now);

void jit_file__close(struct jit_file *f);

/* ---- all files ------------------------------------------------------------------------------- */

/*
 * The perf maps and jitdumps that are followed, and when each is read: on an inotify event ("sign"), when a
 * deadline of its own passes, or by polling if there is no watch. CPU time per second is limited
 * for each file. Processes without a map are checked again at growing intervals. Used by one thread.
 */

struct jit_follower_output {
	event_push_fn push;
	/* Nothing more is to be read for now; `settle`: for good. */
	bool (*is_full)(void *context, bool settle);
	/* Files of this process are about to be used, which may never return; NULL: no more. */
	void (*touch)(void *context, const struct jit_owner *owner);
	void *context;
};

/*
 * Bytes that are read are charged to `bytes` (QUOTA_JIT_BYTES). No file of the users `denied` is opened. Both outlive it. 0 or
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
