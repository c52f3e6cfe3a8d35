/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the writer of Firefox profiles: firefox.c (threads; calls the others),
 * firefox_tables.c (what they share), firefox_waits.c (their waits), firefox_meta.c (facts),
 * firefox_markers.c (what happened at a time), firefox_counters.c (figures over time).
 */
#ifndef FORMATS_OUT_FIREFOX_H
#define FORMATS_OUT_FIREFOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/json_writer.h"
#include "base/map.h"
#include "base/vec.h"
#include "formats/out/tracks.h"
#include "profile/timeline.h"

#define FIREFOX_UNUSED UINT32_MAX

/*
 * A stack of its own: that of waits of one state, a stack with one more leaf; or one in a context
 * (softirq, hardirq), whose innermost frame is of another subcategory.
 */
struct firefox_wait_stack {
	uint64_t key;
};
DEFINE_MAP_BY(firefox_wait_stacks, struct firefox_wait_stack, uint64_t, key);

/* The innermost frame of a location in a context. */
struct firefox_context_frame {
	uint64_t key;
};
DEFINE_MAP_BY(firefox_context_frames, struct firefox_context_frame, uint64_t, key);

/* The used elements of one of the profile's tables, numbered in order of first use. */
struct firefox_index {
	uint32_t *number;   /* by element: its number in the file, or FIREFOX_UNUSED */
	VEC(uint32_t) used; /* by number: the element */
};

/* A text of our own in the string array. */
struct firefox_text {
	const char *text;
	uint32_t number;
};

struct firefox_tables {
	const struct profile *p;
	uint32_t *stack_base;	 /* by stack: the outermost of its nodes in the file */
	uint32_t *frame_base;	 /* by location: the outermost of its frames in the file */
	uint32_t *source_file;	 /* by function: string of the file that its lines are in */
	uint32_t *same_function; /* by function: the first one that is shown in the same way */
	uint32_t stack_count, frame_count;
	struct firefox_index strings, functions, libs, natives, sources;
	struct firefox_index codes; /* of JIT compilers: natives after the others, by index */
	uint64_t *code_places;	    /* firefox_jit_places() */
	uint32_t *code_functions;   /* the function of each code of `codes` */
	VEC(const char *) texts;    /* the string array: by number; has our own names, too */
	VEC(struct firefox_text) own_names; /* those of them that were added; a dozen at most */
	VEC(char *) own_texts;		    /* of these, those that were made here */
	VEC(uint32_t) lib_names;	    /* by library: number of its display name */
	VEC(uint32_t) source_names;	    /* by source: number of its path */
	/* waits, after the others: stacks; by state, their leaf: frame, function and name */
	struct firefox_wait_stacks wait_stacks;
	uint32_t wait_categories; /* number of the first one */
	bool wait_used[WALL_STATE_COUNT];
	uint32_t wait_leaf[WALL_STATE_COUNT], wait_name[WALL_STATE_COUNT], wait_leaf_count;
	struct firefox_context_frames context_frames; /* after the leaves */
};

/* A row of a thread. */
struct firefox_row {
	uint64_t time;
	struct stack_id stack; /* 0: none */
	enum wall_state state; /* of a wait, else NONE */
	enum sample_context context;
	bool fixed; /* a CPU sample, or the start: others may get more CPU time */
	uint64_t cpu_delta, ticks, weight;
};

/* Categories after those of profile.h: of GIL markers (not frames), if the GIL is known. */
#define FIREFOX_CATEGORY_GIL CATEGORY_COUNT
/* After these, in a profile with visits: one for each state. */
static inline uint32_t firefox_category_of_wait(const struct firefox_tables *t,
						enum wall_state state)
{
	return t->wait_categories + (uint32_t)state - 1;
}

/* ---- the whole file -------------------------------------------------------------------------- */

#define TRACK_NAME_SIZE 24

enum firefox_marker_kind {
	MARKER_PROCESS_START,
	MARKER_PROCESS_EXEC,
	MARKER_PROCESS_EXIT,
	MARKER_THREAD_NAME,
	MARKER_CUT_STACKS,
	MARKER_AMBIGUOUS_NAME,
	MARKER_LOST,
	MARKER_CLOCK_EPOCH,
	MARKER_LEFT_OUT,
	MARKER_GIL_HELD,
	MARKER_GIL_WAITING,
	MARKER_WAIT,
	MARKER_READ,
	MARKER_KIND_COUNT
};

/* Something that happened at a time, or from `start` to `end`. */
struct firefox_marker {
	uint64_t start, end; /* ns; equal: a moment */
	uint32_t track;
	enum firefox_marker_kind kind;
	uint32_t
		what; /* by kind: a process, a string, a stack end, a location, a number, a row, a marker */
	uint64_t count; /* of samples, or of ranges */
};

struct firefox {
	const struct profile *p;
	struct json_writer *w;
	struct firefox_tables tables;
	struct tracks tracks;
	uint32_t *first_track;		    /* by process: number of its first track + 1, or 0 */
	uint32_t recording;		    /* the track that stands for the whole recording */
	VEC(struct firefox_marker) markers; /* by track, then by time */
	uint32_t *marker_end;		    /* by track: where its markers end */
	uint32_t marker_name[MARKER_KIND_COUNT];
	bool whole_cgroups;		    /* markers have the whole paths of control groups */
	VEC(struct timeline_entry) entries; /* scratch: those of one thread, … */
	VEC(struct firefox_row) rows;	    /* … with its waits */
};

/* Ticks of the CPU samples of a track. */
uint64_t firefox__events(const struct firefox *f, size_t track);
/* The first track of the process of a track: its main thread, if that is in the file. */
uint32_t firefox__first_of_process(const struct firefox *f, uint32_t track);
/* How the process of a track is numbered; returns `name`. */
const char *firefox__pid(const struct firefox *f, size_t track, char name[TRACK_NAME_SIZE]);
/* Entries of a track's timeline into f->entries. 0, -ENOMEM. */
int firefox__collect_entries(struct firefox *f, size_t track);

#endif
