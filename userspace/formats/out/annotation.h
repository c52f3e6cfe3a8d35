/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines and instructions of a function with their samples.
 *
 * A sample is one of its own (self) if the innermost line of the innermost location is a line of the
 * function. It is in the total if any line of its stack is, once. The function's code is in copies:
 * its own machine code, clones, versions of a JIT compiler, and code of functions that it is inlined
 * into. Self samples of lines, of copies and of instructions each add up to those of the function.
 */
#ifndef FORMATS_OUT_ANNOTATION_H
#define FORMATS_OUT_ANNOTATION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/map.h"
#include "base/vec.h"

struct annotation_counts {
	uint64_t self, total;
	double self_square, total_square; /* see report_row */
};

/* A line of source; line 0: those whose line is unknown. */
struct annotation_line {
	struct string_id file;
	uint8_t root;	   /* as in profile_source */
	struct dso_id dso; /* one whose source it is */
	uint32_t line;
	bool is_beginning; /* of a function, whose lines are unknown */
	uint32_t stamp;	   /* the last stack that counted it; used while counting */
	struct annotation_counts counts;
};
MAP_TYPE(annotation_lines, struct annotation_line);

struct annotation_copy {
	uint32_t function; /* the outermost one: its own, or that which it is inlined into */
	struct dso_id dso;
	struct process_id process;
	uint32_t version;		 /* of JIT code, by their first samples, from 0 on */
	const struct profile_code *code; /* NULL: there is none */
	uint32_t stamp;
	enum code_tier tier;
	uint64_t to_elf; /* what makes the ELF's address of a location's */
	struct annotation_counts counts;
	uint64_t doubtful; /* self samples that may be of another function */
};
MAP_TYPE(annotation_copies, struct annotation_copy);

struct annotation {
	const struct profile *p;
	bool *wanted; /* by function */
	struct annotation_counts counts;
	struct annotation_lines lines;	    /* by path and line; those without samples, too */
	struct annotation_copies copies;    /* most self samples first */
	struct annotation_counts *of_place; /* by location */
	uint32_t *stamp_of_place;	    /* used while counting */
};

/*
 * `what`: a function by its name, or FILE:LINE, which means the functions with that line. 0; -ENOENT:
 * there is none in the profile; -ENOMEM. To be finished in any case.
 */
int annotation__init(struct annotation *a, const struct profile *p, const char *what);
void annotation__fini(struct annotation *a);

/* The code of the copy is of the function itself. */
static inline bool annotation_copy__is_own(const struct annotation *a,
					   const struct annotation_copy *copy)
{
	return a->wanted[copy->function];
}

/* By offset in the code of the copy, which has code: the caller frees. NULL: no memory. */
struct annotation_counts *annotation__bytes(const struct annotation *a,
					    const struct annotation_copy *copy);

/* EM_X86_64, …; 0: unknown. */
uint16_t elf_machine_of(enum code_machine machine);

/* How certain a single instruction is. */
const char *annotation_skid(const struct profile *p);

/* What a missing text of the source or missing instructions are due to. */
const char *annotation_no_code(const struct profile *p);

/*
 * A path, with a word on whose it is if the profile has another source of that path before the dso's: two
 * names are equal only if both have that source, or there is none. `name` has room for it; without such a
 * word the path itself is returned.
 */
#define SOURCE_NAME_SIZE (PATH_MAX + 32)
const char *source_name(const struct profile *p, struct dso_id dso, struct string_id path,
			char name[static SOURCE_NAME_SIZE]);

/* Where the lines of a source begin. */
struct source_lines {
	const struct profile_source *source;
	VEC(uint32_t) starts;
};

/* 0 or -ENOMEM; to be finished in any case. */
int source_lines__init(struct source_lines *lines, const struct profile_source *source);
void source_lines__fini(struct source_lines *lines);

/* A copy of a line, fit to be printed, tabs as blanks; NULL: there is no such line, or no memory. */
char *source_lines__text(const struct source_lines *lines, uint32_t line);

#endif
