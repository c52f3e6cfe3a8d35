/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of gopclntab. */
#ifndef ELF_GOPCLNTAB_PRIVATE_H
#define ELF_GOPCLNTAB_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elf/elf_private.h"
#include "elf/gopclntab.h"

/* A part of the table. */
struct go_bytes {
	const unsigned char *data;
	size_t size;
};

/* One function's record. */
struct go_record {
	uint64_t start, end;
	uint32_t name, unit;
	uint32_t depths, file_numbers, lines; /* in `values`; 0: none */
	uint32_t value_tables, data_tables;   /* how many */
	size_t tables;			      /* offset in `functions`: values first, then data */
	int32_t start_line;		      /* 0: unknown (before Go 1.20) */
	uint8_t id, flags;
};

/* A value for each range [start, end) of a function's instructions, ascending, without gaps. */
struct go_values {
	const unsigned char *at, *limit;
	uint64_t start, end, function_end;
	int32_t value;
	bool first;
};

/* ---- lines: what the last look-up read, because neighbours need the same ---- */

#define GO_KNOWN_CALLS 64

/* How far tables were read; ascending addresses continue from there. */
struct go_cursor {
	struct go_values files, lines, nodes;
	int32_t file_number;
	const char *file; /* that number's */
};

struct go_place {
	const char *file;
	uint32_t line;
	int32_t node; /* in the tree of inlined calls; negative: none */
};

/* A node of the tree: the function, and where it was called. */
struct go_call {
	int32_t number; /* -1: none */
	struct symbol_frame frame;
	struct go_place place;
};

struct go_lines {
	bool begun; /* these are of function `number`: */
	size_t number;
	struct go_record record;
	struct symbol_frame function;
	struct go_cursor executing, calling;
	struct go_call calls[GO_KNOWN_CALLS]; /* by number */
	bool has_definition;
	const char *definition;	  /* its file */
	uint32_t steps;		  /* budget of the look-up: steps through tables */
	struct elf_window window; /* around the last tree */
};

/*
 * `functions` begins with `count` pairs (start, offset of its record), ascending by start, and the
 * end of the last function. Starts are relative to `text`, other offsets to the part they are in.
 */
struct gopclntab {
	struct elf_file *file;
	unsigned char *data; /* all of it */
	size_t size;
	size_t count;
	bool go_120;	 /* the form of Go 1.20 and later; else that of 1.18 and 1.19 */
	uint64_t text;	 /* ELF virtual address of runtime.text */
	uint64_t gofunc; /* of go:func.*, where the inline trees are; 0: unknown */
	struct go_bytes names, units, files, values, functions;
	struct go_lines lines;
	bool left; /* a limit ended the reading of an address's frames */
};

static inline uint32_t go_load32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t go_load64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

#endif
