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
 * Charges bytes read to `bytes` (QUOTA_JIT_BYTES) and opens no files of the users `denied`. Both
 * must outlive it. 0 or -ENOMEM.
 */
int jit_follower__new(const struct jit_follower_output *output, struct quota *bytes,
		      const uint32_t *denied, size_t denied_count, struct jit_follower **follower);
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
