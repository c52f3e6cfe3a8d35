/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A merge in the making. Times are those of the profiles until profile_merge_finish.c has placed
 * the clocks on one axis: where a clock ends is known after the last profile only.
 */
#ifndef PROFILE_PROFILE_MERGE_PRIVATE_H
#define PROFILE_PROFILE_MERGE_PRIVATE_H

#include "base/vec.h"
#include "profile/profile_builder_private.h"
#include "profile/profile_copy.h"
#include "profile/profile_merge.h"

/* Identifies the clock of a profile, as far as that is known. */
struct clock_identity {
	char *boot, *host, *kernel; /* NULL: unknown */
	uint64_t zero;		    /* ns since the epoch when the clock was 0; 0: unknown */
};

struct merged_clock {
	struct clock_identity identity;
	uint64_t start, end; /* of all its profiles */
	uint64_t realtime;   /* at `start` */
	uint64_t place;	     /* where `start` comes to lie */
};

/*
 * Of a process or thread of the builder, by its number. It began in [begin_min, seen_from] and
 * ended in [seen_until, end_max].
 */
struct merged_life {
	uint32_t clock, older; /* the life before with the same number; 0: none */
	uint32_t source;       /* the last profile that has it */
	uint64_t begin_min, seen_from, seen_until, end_max;
	bool has_main;	  /* a process */
	bool is_twice;	  /* a process: samples of one time are in several profiles */
	bool is_unsorted; /* a thread: a row is earlier than the one before */
};

/* The latest life of each number. No padding: the key is all bytes of it. */
struct life_key {
	uint32_t owner, number; /* clock and pid, or process and tid */
};
struct latest_life {
	struct life_key key;
	uint32_t id;
};
MAP_TYPE(latest_lives, struct latest_life);

/* When a profile was recorded. */
struct merged_session {
	uint32_t clock;
	uint64_t since, until;
	uint64_t
		twice_until; /* its start until then has samples of earlier ones as well; 0: none */
};

/* What a thread of the builder has of one profile. `session`: its number, until they are sorted. */
struct row_span {
	size_t first, end;
};
struct merged_rows {
	uint32_t thread, session;
	uint64_t since; /* of the session */
	struct row_span rows[SAMPLE_KIND_COUNT];
};

/* What has a time, and is added to the builder in order. */
struct merged_span {
	uint32_t clock;
	uint64_t since, until;
};
struct merged_outside {
	uint32_t clock;
	struct profile_outside row;
};

struct merged_marker {
	uint32_t clock;
	struct profile_marker row;
};

/* A recorder that reads its own memory. Process 0: the first one, of clock 0. */
struct merged_recorder {
	uint32_t clock, pid, process;
};

struct profile_merge {
	struct profile_builder *builder;
	struct copied_code code;
	VEC(struct merged_clock) clocks;
	VEC(struct merged_life) processes, threads;
	struct latest_lives pids, tids;
	VEC(struct merged_session) sessions;
	VEC(struct merged_rows) rows_of;
	VEC(struct merged_span) lost, epochs;
	VEC(struct merged_outside) outside;
	VEC(struct merged_marker) markers;
	VEC(struct merged_recorder) recorders;
	VEC(char *) names;	      /* of the files */
	VEC(uint32_t) jit_of, gil_of; /* by process, by thread: 1 + its number; 0: none yet */
	uint32_t sources;	      /* profiles that were added */
	uint32_t cpu_time_missing;    /* those with META_CPU_TIME */
	uint64_t stack_ends[STACK_END_COUNT];
	double event_squares;
	uint64_t period_min, period_max;
	bool has_untimed;
	bool has_ahead, has_behind; /* which time weights are of */
	bool has_idle, has_no_idle; /* profiles that know, or do not, when threads were idle */
	bool is_windows;
	uint64_t windows, window_length; /* how many, and the longest */
	uint64_t windows_from;		 /* when the first one began, ns since the epoch */
	uint64_t rows, block_length;	 /* of windows: profile_merge_blocks.h */
	size_t with_cpu, with_period;	 /* files with samples that have CPU time, and a period */
	size_t with_samples;
};

/* A profile that is being added. */
struct merging {
	struct profile_merge *m;
	const char *name;
	const struct profile *p;
	struct profile_copy copy; /* has the numbers of processes */
	uint32_t *threads;	  /* by number in the profile: that in the builder */
	uint32_t clock;
	const struct merge_window *window;
	struct string_id service; /* the name of the window's process */
	struct failure *failure;
};

#endif
