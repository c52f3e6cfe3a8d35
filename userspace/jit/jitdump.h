/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jitdumps, binary files with which runtimes report JIT code, its times and its lines
 * (linux/tools/perf/Documentation/jitdump-specification.txt). Written in pieces of 4 KB: the end is usually
 * incomplete until the writer has ended. The writer is untrusted.
 */
#ifndef JIT_JITDUMP_H
#define JIT_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define JITDUMP_RECORD_MAX (64u << 20) /* larger ones are passed over */

struct jitdump_line {
	uint64_t address; /* from here on */
	uint32_t line;	  /* from 1 on */
	uint32_t column;  /* V8; others: what they call discriminator */
	const char *file; /* NUL-terminated */
};

/* Code that was loaded at `time`. All pointers are valid during the call. */
struct jitdump_load {
	uint64_t time, address, size;
	const char *name; /* NUL-terminated */
	const struct jitdump_line
		*lines; /* in the order of the file; addresses are those of the code */
	size_t line_count;
	const void *unwinding; /* .eh_frame with its .eh_frame_hdr behind it; NULL: none */
	size_t unwinding_size, eh_frame_header_size;
};

/* It lies elsewhere from `time` on. */
struct jitdump_move {
	uint64_t time, from, to, size;
};

/* 0, or negative errno, which ends the reading and is returned. Each may be NULL. */
struct jitdump_handler {
	void *context;
	int (*load)(void *context, const struct jitdump_load *load);
	int (*move)(void *context, const struct jitdump_move *move);
	int (*close)(void *context, uint64_t time);
};

struct jitdump_counts {
	uint64_t loads, moves;
	uint64_t bad_records; /* which contradict themselves, or are too large */
};

/* A dump that is read piece by piece. All zero is ready. */
struct jitdump_reader {
	bool has_header;
	bool tsc; /* times are those of the TSC, else of CLOCK_MONOTONIC */
	struct jitdump_counts counts;

	/* its own */
	VEC(char) rest;			/* of the last piece: a record without an end */
	uint64_t skip;			/* bytes to come that are passed over */
	VEC(struct jitdump_line) lines; /* of the next load; files are offsets into `files` + 1 */
	VEC(char) files;
	uint64_t lines_of; /* address of the code */
	VEC(char) unwinding;
	size_t eh_frame_header_size;
};

/*
 * 0, what a handler returned, -ENOMEM; -ENOTSUP: of another byte order or version; -EBADMSG: no jitdump, or so
 * damaged that no next record can be found. After an error it must not be fed again.
 */
int jitdump_reader__feed(struct jitdump_reader *r, const void *bytes, size_t size,
			 const struct jitdump_handler *handler);
/* Bytes of a record whose end has not come. */
size_t jitdump_reader__torn(const struct jitdump_reader *r);
void jitdump_reader__fini(struct jitdump_reader *r);

#endif
