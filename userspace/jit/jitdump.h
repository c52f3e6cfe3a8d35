/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jitdumps, binary files with which runtimes report JIT code with times and lines
 * (linux/tools/perf/Documentation/jitdump-specification.txt). Written in pieces of 4 KB, so the end
 * is usually incomplete until the writer ends. The writer is untrusted.
 */
#ifndef JIT_JITDUMP_H
#define JIT_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define JITDUMP_RECORD_MAX (64u << 20) /* larger records are skipped and counted */

struct jitdump_line {
	uint64_t address; /* of its first instruction */
	uint32_t line;	  /* from 1 on */
	uint32_t column;  /* V8; others: a discriminator */
	const char *file; /* NUL-terminated */
};

/* Code loaded at `time`. All pointers are valid during the call. */
struct jitdump_load {
	uint64_t time, address, size;
	const char *name; /* NUL-terminated */
	const struct jitdump_line
		*lines; /* in the order of the file; addresses are those of the code */
	size_t line_count;
	const uint8_t *code;   /* its `size` bytes; NULL: they were blanked */
	const void *unwinding; /* .eh_frame, then its .eh_frame_hdr; NULL: none */
	size_t unwinding_size, eh_frame_header_size;
};

/* Code that moved at `time`. */
struct jitdump_move {
	uint64_t time, from, to, size;
};

/* 0, or negative errno, which ends reading and is returned. Each may be NULL. */
struct jitdump_handler {
	void *context;
	int (*load)(void *context, const struct jitdump_load *load);
	int (*move)(void *context, const struct jitdump_move *move);
	int (*close)(void *context, uint64_t time);
};

struct jitdump_counts {
	uint64_t loads, moves;
	uint64_t bad_records; /* inconsistent */
	uint64_t left;	      /* too large */
};

/* A dump, read piece by piece. All zero is ready. */
struct jitdump_reader {
	bool has_header;
	bool tsc;	  /* times are those of the TSC, else of CLOCK_MONOTONIC */
	uint32_t machine; /* EM_X86_64, … */
	struct jitdump_counts counts;

	/* private */
	VEC(char) rest;			/* of the last piece: an incomplete record */
	uint64_t skip;			/* bytes to skip */
	VEC(struct jitdump_line) lines; /* of the next load; files are offsets into `files` + 1 */
	VEC(char) files;
	uint64_t lines_of; /* address of the code */
	VEC(char) unwinding;
	size_t eh_frame_header_size;
};

/*
 * 0, the result of a handler, -ENOMEM; -ENOTSUP: another byte order or version; -EBADMSG: no
 * jitdump, or too damaged to find the next record. Must not be fed again after an error.
 */
int jitdump_reader__feed(struct jitdump_reader *r, const void *bytes, size_t size,
			 const struct jitdump_handler *handler);
/* Bytes of an incomplete record. */
size_t jitdump_reader__torn(const struct jitdump_reader *r);
void jitdump_reader__fini(struct jitdump_reader *r);

#endif
