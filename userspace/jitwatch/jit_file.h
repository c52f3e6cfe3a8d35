/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One perf map or jitdump that is read as it grows. What is read becomes events, each with the two
 * moments between which its bytes were written.
 *
 * Most writers append. One that opens the file with truncation and closes it again writes a snapshot:
 * it is read whole once it is closed. One that truncates and does not close is an appender again,
 * after REWRITE_PATIENCE. A file counts as rewritten if it is shorter than it was, or was opened and its last
 * 256 bytes up to where it was read are others, or if it never grew and was opened, written to
 * and closed.
 */
#ifndef JITWATCH_JIT_FILE_H
#define JITWATCH_JIT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "jitwatch/jit_find.h"
#include "stream/event_queue.h"

#define JIT_FILE_TAIL_SIZE 256u
#define JIT_FILE_LINE_MAX  1024u

/* What the file's own time tells of the last write to it. */
struct jit_write {
	uint64_t size;	/* of the file then */
	uint64_t mtime; /* CLOCK_REALTIME ns */
	uint64_t time;	/* the same in CLOCK_MONOTONIC ns: it was not earlier; 0: unknown */
	int64_t offset; /* from that clock to CLOCK_REALTIME */
};

/* A line that is as old as the file's time says, unless that is the time of a write that was under way. */
struct jit_held {
	unsigned int size; /* 0: none is held */
	uint64_t mtime;	   /* that time, CLOCK_REALTIME ns */
	uint64_t after;	   /* the same in CLOCK_MONOTONIC ns */
	uint64_t doubtful; /* it was written after this moment at any rate, ... */
	uint64_t before;   /* ... and not after this one */
	uint64_t until;	   /* by then every write would have been seen */
	char line[JIT_FILE_LINE_MAX];
};

struct jit_file {
	uint32_t number; /* in the recording, from 1 on */
	struct jit_owner owner;
	enum jit_file_kind kind;
	enum jit_file_state state;
	int fd;
	uint64_t device, inode;
	uint64_t offset;     /* what lies before it has been told, or is held */
	bool at_end;	     /* ... was all when it was last read, ... */
	uint64_t end_mtime;  /* ... its mtime then */
	uint64_t silent;     /* up to here nothing was written that was not read; 0: unknown */
	uint64_t listed;     /* the last snapshot, or first reading: what it has was all the code */
	bool appended;	     /* ... and has grown since */
	uint64_t told;	     /* bytes, of all snapshots */
	uint64_t found_size; /* of the file when it was found */
	uint64_t found_mtime; /* ... and its mtime */
	uint64_t named_at;    /* it was known to have its name then */
	uint64_t waits_since; /* it is being written anew, or has just been found; 0: it is not */
	bool rewritten;	      /* ... and something was told of it before */
	bool opened;	      /* somebody has opened it: it may not be what it was */
	struct jit_write last_write;
	struct jit_held held;	       /* the line before `offset` */
	char tail[JIT_FILE_TAIL_SIZE]; /* the last bytes before `offset` */
	unsigned int tail_size;
};

/* What inotify has told of a file. */
struct jit_signs {
	bool opened, modified, closed; /* closed: by a writer */
};

struct jit_file_sink {
	event_push_fn push;
	void *context;
};

/* Takes the descriptor, and says what was found. 0, or what `push` returned. */
int jit_file__begin(struct jit_file *f, uint32_t number, enum jit_file_kind kind,
		    const struct jit_owner *owner, struct jit_found *found, uint64_t now,
		    const struct jit_file_sink *sink);

/*
 * Read what is new, at most JIT_READ_MAX bytes. `settle`: do not wait for anything any more. 1: there is
 * more to read; 0; or what `push` returned.
 */
#define JIT_READ_MAX (4u << 20)
int jit_file__read(struct jit_file *f, const struct jit_signs *signs, bool settle,
		   const struct jit_file_sink *sink);

/* If nothing was written up to now, that is noted: the next lines are younger. One system call. */
void jit_file__glance(struct jit_file *f);

/* Nothing more will be read: what was told is in doubt from the last reading on. */
int jit_file__give_up(struct jit_file *f, const struct jit_file_sink *sink);

/* When it wants to be read even without a sign; 0: it does not. */
uint64_t jit_file__wakes_at(const struct jit_file *f);

/* Another file has taken its name: it is read from its start. The descriptor is taken. 0, or what `push` returned. */
int jit_file__replace(struct jit_file *f, int fd, const struct stat *st, uint64_t now,
		      const struct jit_file_sink *sink);

void jit_file__close(struct jit_file *f);

#endif
