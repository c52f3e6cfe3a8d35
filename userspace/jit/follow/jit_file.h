/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef JIT_FOLLOW_JIT_FILE_H
#define JIT_FOLLOW_JIT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "jit/follow/jit_find.h"
#include "stream/event_queue.h"

struct stat;

/*
 * A perf map or jitdump that is read while it grows. Its bytes become events, each with the two
 * times between which they were written.
 *
 * Most writers append. One that truncates the file and closes it writes a snapshot, which is read
 * as a whole once it is closed. One that truncates without closing counts as an appender again
 * after JIT_FILE_REWRITE_PATIENCE. A file was rewritten if it is shorter, if it was opened and the
 * last 256 bytes before the read position differ, or if it never grew but was opened, written and
 * closed.
 */

#define JIT_LINKED_MAX	   (16ull << 20) /* bytes of a file with several links: not a runtime's */
#define JIT_FILE_TAIL_SIZE 256u
#define JIT_FILE_LINE_MAX  1024u

/* ns to wait before reading a file that is being written; HotSpot writes for 5 ms. */
#define JIT_FILE_REWRITE_PATIENCE 50000000ull

/* The time of the last write, from the modification time of the file. */
struct jit_write {
	uint64_t size;	/* of the file then */
	uint64_t mtime; /* CLOCK_REALTIME ns */
	uint64_t time;	/* the same in CLOCK_MONOTONIC ns, a lower bound; 0: unknown */
	int64_t offset; /* from CLOCK_MONOTONIC to CLOCK_REALTIME */
};

/* A line held back: the modification time is its time, unless a later write is in progress. */
struct jit_held {
	unsigned int size; /* 0: none is held */
	uint64_t mtime;	   /* the modification time, CLOCK_REALTIME ns */
	uint64_t after;	   /* the same in CLOCK_MONOTONIC ns */
	uint64_t doubtful; /* it was certainly written after this time */
	uint64_t before;   /* ... and before this one */
	uint64_t until;	   /* the bytes of a write with that time are visible by now */
	char line[JIT_FILE_LINE_MAX];
};

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
	uint64_t offset;      /* everything before it was reported, or is held */
	bool at_end;	      /* the last read reached the end, ... */
	uint64_t end_mtime;   /* ... where this was its mtime */
	uint64_t silent;      /* all bytes written up to this time were read; 0: unknown */
	uint64_t listed;      /* time of the last snapshot or first reading, which had all code */
	bool appended;	      /* ... and it has grown since */
	uint64_t reported;    /* bytes, of all snapshots */
	uint64_t began;	      /* when following began */
	uint64_t found_size;  /* of the file when it was found */
	uint64_t found_mtime; /* ... and its mtime */
	uint64_t named_at;    /* when it was last found under its name */
	uint64_t waits_since; /* it is being rewritten, or was just found; 0: neither */
	bool rewritten;	      /* ... and something was reported of it before */
	bool opened;	      /* a process opened it: it may have been rewritten */
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

/* Takes the descriptor and reports the file. 0, or the result of `push`. */
int jit_file__begin(struct jit_file *f, uint32_t number, enum jit_file_kind kind,
		    const struct jit_owner *owner, struct jit_found *found, uint64_t now,
		    const struct jit_file_sink *sink);

/* Reads JIT_READ_MAX at most. `settle`: hold nothing back. 1: there is more; 0; push's result. */
#define JIT_READ_MAX (4u << 20)
int jit_file__read(struct jit_file *f, const struct jit_signs *signs, bool settle);

/* Checks with one system call that nothing was written: later lines are then younger than now. */
void jit_file__glance(struct jit_file *f);

/* Stops reading: from the last reading on all entries are in doubt. */
int jit_file__give_up(struct jit_file *f, enum jit_file_state why);

/* When it must be read even without an inotify event; 0: never. */
uint64_t jit_file__wakes_at(const struct jit_file *f);

/* Follows a new file of the same name from its start. Takes `fd`. 0, or the result of `push`. */
int jit_file__replace(struct jit_file *f, int fd, const struct stat *st, uint64_t now);

void jit_file__close(struct jit_file *f);

#endif
