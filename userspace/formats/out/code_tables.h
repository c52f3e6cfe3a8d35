/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of a profile for pprof and OTLP: tables of locations, mappings, functions and strings,
 * numbered from 1 without gaps in order of first use. String 0 is "".
 *
 * Describing a row, when it is written, numbers what it refers to. So locations are written first,
 * then mappings and functions, strings last.
 *
 * Addresses and mappings. A mapping is a file, for any process. Addresses are those of the ELF
 * file; an address less start plus file_offset is the file offset. So equal code of two processes
 * is one location, and profiles of two machines merge. Kernel addresses stay as they are.
 *
 * Names. Readers take a mapping with has_functions as completely named, one without as not named. A
 * line has no file, so a function with lines in several files (headers expanded in it) is several
 * functions; the one in the file of the definition has the start_line.
 */
#ifndef FORMATS_OUT_CODE_TABLES_H
#define FORMATS_OUT_CODE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct code_options {
	/*
	 * Named and unnamed code of a file are two mappings. Otherwise a file is one; if it has a
	 * build id and no named location, without names, and its addresses are file offsets.
	 */
	bool split_unnamed;
	bool name_all; /* with split_unnamed: code without a name is called "libfoo.so+0x1234" */
	bool map_all;  /* also JIT code, and what is outside of every mapping, has a mapping */
	/* Named code has no addresses, for readers that cannot use them. Needs split_unnamed. */
	bool no_addresses;
	/* By location: the one that stands for it; NULL: itself. Columns are left out then. */
	const uint32_t *merged;
	size_t text_max; /* bytes of a text; 0: any number */
};

struct code_line {
	uint32_t function; /* never 0 */
	uint32_t line, column;
};

struct code_location {
	uint32_t mapping; /* 0: none */
	uint64_t address;
	const struct code_line *lines; /* innermost first; valid until the next call */
	size_t line_count;
};

struct code_mapping {
	struct dso_id dso;
	uint64_t start, limit, file_offset;
	uint32_t filename, build_id; /* strings; build_id is hexadecimal, "": unknown */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct code_function {
	uint32_t name, full_name, filename; /* strings; full_name "": the name is all */
	uint32_t start_line;		    /* 0: unknown */
};

struct code_tables;

/* NULL: no memory. The profile has to outlive it. */
struct code_tables *code_tables__new(const struct profile *p, const struct code_options *options);
void code_tables__free(struct code_tables *t);

/* Empties it for another message about the profile, in time of its contents. 0, -ENOMEM. */
int code_tables__reset(struct code_tables *t);

/* The first error so far, -ENOMEM or 0; it is sticky, so callers need not check each call. */
int code_tables__error(const struct code_tables *t);

/* Numbers of strings as valid UTF-8 without control characters: readers demand or print it. */
uint32_t code_tables__text(struct code_tables *t, const char *text);
uint32_t code_tables__string(struct code_tables *t, struct string_id string);

/* Number of a location; {0}: a function called "[not sampled]". */
uint32_t code_tables__location(struct code_tables *t, struct location_id id);
/* Number of the location of a function "[truncated]": it stands for callers that were cut. */
uint32_t code_tables__truncated(struct code_tables *t);
/* Number of the location of a function called "[waiting: STATE]". */
uint32_t code_tables__waiting(struct code_tables *t, enum wall_state state);
/* Number of the mapping of a file's named code; 0: it has none. */
uint32_t code_tables__mapping(struct code_tables *t, struct dso_id id);

/* How many rows there are, and row number `number` (1 to that count). */
size_t code_tables__location_count(const struct code_tables *t);
size_t code_tables__mapping_count(const struct code_tables *t);
size_t code_tables__function_count(const struct code_tables *t);
/* Numbers all names so far in one run, not in turn with files: such tables compress better. */
void code_tables__number_names(struct code_tables *t);
struct code_location code_tables__describe_location(struct code_tables *t, uint32_t number);
struct code_mapping code_tables__describe_mapping(struct code_tables *t, uint32_t number);
struct code_function code_tables__describe_function(struct code_tables *t, uint32_t number);
const char *const *code_tables__strings(const struct code_tables *t, size_t *count);

#endif
