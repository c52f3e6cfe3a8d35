/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of gopclntab. */
#ifndef ELF_GOPCLNTAB_PRIVATE_H
#define ELF_GOPCLNTAB_PRIVATE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elf/gopclntab.h"

/* A part of the table. */
struct go_bytes {
	const unsigned char *data;
	size_t size;
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

/* 0 or -EBADMSG. `number` is below the count. */
int gopclntab__record(const struct gopclntab *t, size_t number, struct go_record *record);

/* The string at `offset` of a part, or NULL: outside, not terminated, or far too long. */
const char *go_string(struct go_bytes bytes, uint32_t offset);

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

#endif
