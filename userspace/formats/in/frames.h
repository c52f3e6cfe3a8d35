/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of imported files as locations of a profile.
 *
 * A location of the profile is an address, which has its lines. A frame of other formats is a
 * function, perhaps a line, often no address; two frames may share one. Equal frames become one
 * location. Different frames without an address, or with the same one, are versions of one address.
 */
#ifndef FORMATS_IN_FRAMES_H
#define FORMATS_IN_FRAMES_H

#include <stdbool.h>

#include <sysprof/profile_builder.h>

#include "base/map.h"
#include "base/vec.h"

struct import_failure;

#define FRAME_LINES_MAX	 1024 /* of an inline chain */
#define KERNEL_ADDRESSES (0xffffULL << 48)

struct frame {
	struct dso_id dso;
	enum profile_category category;
	struct process_id process; /* for kinds of dso that are a process's own */
	uint64_t address;	   /* in the dso; 0: unknown */
	uint64_t elf_address;	   /* PROFILE_UNKNOWN_ADDRESS: unknown */
	enum code_tier tier;
	bool ambiguous;
};

struct known_frame {
	struct location_id location;
	uint32_t first_line, line_count;
	struct frame frame;
};
MAP_TYPE(known_frames, struct known_frame);

/* What a file has that is no part of its profile. X(ENUM, text) */
#define IMPORT_LEFT_OUT(X)                                                                         \
	X(MISSING_NODES, "samples of call paths that the file does not have")                      \
	X(NO_TIME, "samples without a time")                                                       \
	X(MISSING_CALLERS, "functions whose callers the file does not have")                       \
	X(DAMAGED_NODES, "functions without a name and place")                                     \
	X(CUT, "bytes behind the last whole event")                                                \
	X(NO_BRACKET, "ends without the last bracket, before which events may be missing")         \
	X(REST, "ends of gzip data, which are cut off")                                            \
	X(BAD_EVENTS, "events without a process, thread, time or name")                            \
	X(LINES, "lines without a stack and a count")                                              \
	X(NO_END, "numbers without an end of line, which may be cut off and count as they are")    \
	X(NUMBERS, "numbers in tables that are missing or out of range")                           \
	X(WEIGHTS, "samples without a valid weight, or weights without a sample")                  \
	X(SMALL, "samples of less than half of the smallest weight that is kept")                  \
	X(CPU_TIMES,                                                                               \
	  "CPU times that are missing, for which the time since the sample before counts")         \
	X(EVENTS, "events that neither begin nor end a function")                                  \
	X(BACKWARDS, "events without a time, or with one before the last")                         \
	X(UNMATCHED, "ends of functions that are not the innermost")                               \
	X(THREADS, "threads and processes without their tables")                                   \
	X(PROFILES, "profiles of an unknown kind or unit")                                         \
	X(OTHER_UNIT, "profiles in another unit than the active one")                              \
	X(OTHER_EVENTS, "samples of other events")                                                 \
	X(ONE_EVENT, "samples without a period, which count as one event")                         \
	X(NO_PERIOD, "samples without a period")                                                   \
	X(SUMS, "samples whose numbers are cut, because sums end at 2^62")                         \
	X(DELTAS, "times that often fall from one sample to the next, which are differences")      \
	X(FREQUENCY, "periods far below the time between samples, so CPU time is unknown")         \
	X(IDLE, "samples of idle CPUs")                                                            \
	X(NO_FIELDS, "lines that are no part of a sample")                                         \
	X(PATTERNS, "patterns of frames to be dropped, which cannot be applied")

enum import_left_out {
#define X(name, text) LEFT_OUT_##name,
	IMPORT_LEFT_OUT(X)
#undef X
		LEFT_OUT_COUNT,
};

/* Begins with its builder and zeros. */
struct frames {
	struct profile_builder *b;
	uint64_t left_out[LEFT_OUT_COUNT];
	const char *details[LEFT_OUT_COUNT]; /* what else to say, or NULL; not copied */
	struct known_frames known;
	VEC(struct profile_line) lines;
	VEC(char) text; /* of frames__text() */
	VEC(char) part; /* of frames__part_of() */
	/* of frames__sample(): by stack, and of all of them */
	VEC(bool) has_sample;
	VEC(uint64_t) cpu_sums; /* by thread */
	uint64_t stack_frames;
	uint32_t versions;
	bool has_unnamed; /* code without a function, of files with build-ids */
};

/* The profile says what was left out, and what it is a part of. */
void frames__fini(struct frames *f);

/* Add two texts to those of what filters kept and dropped (META_PART_OF). 0, -ENOMEM. */
int frames__part_of(struct frames *f, const char *what, const char *at, size_t size);

/* The location of a frame with this inline chain, innermost first. 0: out of memory. */
struct location_id frames__location(struct frames *f, const struct frame *frame,
				    const struct profile_line *lines, uint32_t line_count);

/*
 * Add a sample to a thread. All readers do it here, because here the stacks are bounded. 0; -E2BIG
 * and `failure` at `offset`; -ENOMEM.
 */
int frames__sample(struct frames *f, struct thread_id thread, const struct profile_sample *sample,
		   struct import_failure *failure, uint64_t offset);

/* Where code without a known address and function is, such as a sample without a stack. */
struct location_id frames__nowhere(struct frames *f, struct process_id process);

/* The kind of a mapping with this name, and the category of its code. */
enum dso_kind frames__mapping_kind(const char *path, enum profile_category *category);

/*
 * A file with code, by its path, which may have " (deleted)" behind it; `number` separates files of
 * one path.
 */
struct dso_id frames__dso(struct frames *f, enum dso_kind kind, const char *path, uint64_t number);

/* A function without an address, by name (empty: an engine's anonymous function) and site. */
struct function_id frames__function(struct frames *f, const char *name, struct dso_id dso,
				    struct string_id file, uint32_t line, uint32_t column);

/* The same, with the name's string; 0: an anonymous function. */
struct function_id frames__named(struct frames *f, struct string_id name, struct dso_id dso,
				 struct string_id file, uint32_t line, uint32_t column);

/* A part of a text with a NUL behind it, until the next call. NULL: out of memory. */
const char *frames__text(struct frames *f, const char *at, size_t size);

/* A file's path, or its URL if it is no file: 0 for "". */
struct string_id frames__file(struct frames *f, const char *url);

/* The greatest number that divides both; of 0 and a number that number. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

#endif
