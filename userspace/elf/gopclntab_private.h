/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of gopclntab. */
#ifndef ELF_GOPCLNTAB_PRIVATE_H
#define ELF_GOPCLNTAB_PRIVATE_H

#include <endian.h>
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
	size_t tables;			      /* in `functions`: first those of values */
	int32_t start_line;		      /* 0: unknown (before Go 1.20) */
	uint8_t id, flags;
};

/*
 * A value for each stretch of instructions of a function: [start, end), ascending, without gaps.
 * After go_values__init() each call to go_values__next() gives one. 1; 0: no more; -EBADMSG.
 */
struct go_values {
	const unsigned char *at, *limit;
	uint64_t start, end, function_end;
	int32_t value;
	bool first;
};

/* ---- lines: what the last look-up read, as neighbours need the same ---- */

#define GO_KNOWN_CALLS	64
#define GO_WINDOW_BYTES 4096

/* How far tables were read; ascending addresses go on from there. */
struct go_cursor {
	struct go_values files, lines, nodes;
	int32_t file_number;
	const char *file; /* that number's */
};

struct go_place {
	const char *file;
	uint32_t line;
	int32_t node; /* in the tree of inlined calls; negative: in none of them */
};

/* A node of the tree: the function, and where it was called. */
struct go_call {
	int32_t number; /* -1: none */
	struct go_frame frame;
	struct go_place place;
};

struct go_lines {
	bool begun; /* these are of function `number`: */
	size_t number;
	struct go_record record;
	struct go_frame function;
	struct go_cursor executing, calling;
	struct go_call calls[GO_KNOWN_CALLS]; /* by number */
	bool has_definition;
	const char *definition; /* its file */
	uint32_t steps;		/* through tables that the look-up may still take */
	/* Bytes of the file, where the last tree is. */
	unsigned char window[GO_WINDOW_BYTES];
	uint64_t window_at;
	size_t window_size;
};

/*
 * `functions` begins with `count` pairs (start, where its record is), ascending by start, and the end
 * of the last function. Starts are relative to `text`, all other offsets to the part they are in.
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
};

/* 0 or -EBADMSG. `number` is below the count. */
int gopclntab__record(const struct gopclntab *t, size_t number, struct go_record *record);

/* The string at `offset` of a part, or NULL: outside, not terminated, or far too long. */
const char *go_string(struct go_bytes bytes, uint32_t offset);

void go_values__init(struct go_values *v, const struct gopclntab *t, const struct go_record *record,
		     uint32_t offset);
int go_values__next(struct go_values *v);

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

/* A table that is being opened: values of its header and of the program's moduledata. */

#define GO_MAX_TABLE (256u << 20)
#define GO_MAX_TRIES 8

/* Words of the table's header. */
enum {
	HEADER_FUNCTIONS = 1,
	HEADER_TEXT = 3, /* nothing from Go 1.26 on */
	HEADER_NAMES,
	HEADER_UNITS,
	HEADER_FILES,
	HEADER_VALUES,
	HEADER_RECORDS,
	HEADER_WORDS,
};

/* Words of moduledata. Slices are a pointer, a length and a capacity. */
enum {
	MODULE_TABLE = 0,
	MODULE_NAMES = 1,
	MODULE_UNITS = 4,
	MODULE_FILES = 7,
	MODULE_VALUES = 10,
	MODULE_RECORDS = 13,
	MODULE_FUNCTIONS = 16,
	MODULE_FIRST_PC = 20,
	MODULE_END_PC = 21,
	MODULE_TEXT = 22,
	MODULE_TEXT_END = 23,
	MODULE_GOFUNC_118 = 38,
	MODULE_GOFUNC_120 = 40,
	MODULE_WORDS,
};

/* A table that is being opened. */
struct go_opening {
	struct elf_file *file;
	uint64_t address, offset, available; /* of its header; bytes from there on */
	uint64_t header[HEADER_WORDS];
	uint64_t module[MODULE_WORDS], module_address;
	unsigned int tries, module_tries;
	uint64_t read_budget, size_max;
	struct gopclntab *table; /* when it could be opened */
};

/* An address where something was found: nonzero ends the search and is returned. */
typedef int (*go_address_fn)(struct go_opening *o, uint64_t address);

/* A word to search for, but for the bits that are left out. */
struct go_wanted {
	uint64_t word, without;
	uint32_t flags; /* segments that have any of these */
};
int go_search(struct go_opening *o, const struct go_wanted *wanted, go_address_fn found);

/* So many words at an offset of the file. 0, -EBADMSG, -EIO. */
int go_read_words(const struct elf_file *file, uint64_t offset, uint64_t *words, size_t count);

/* Find o->module, after o->address and o->header. 1; 0: there is none; -ENOMEM, -EIO, … */
int go_find_module(struct go_opening *o);

#endif
