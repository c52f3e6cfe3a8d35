/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a report: the same rows and trees as text for people and as JSON for programs. */
#ifndef EXPORT_REPORT_PRIVATE_H
#define EXPORT_REPORT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "export/report.h"

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

/* ---- report_paint.c: text on a terminal, names made safe and fitting, colours ---------------- */

/* A new copy that is safe on a terminal; never empty. NULL: no memory. */
char *printable_copy(const char *text);

/* Columns on a terminal: one for each character. */
size_t text_columns(const char *text);

/*
 * Cuts the text in place to so many columns (at least 3) if it is longer, with "…" (or "..") for
 * the missing part: its end, or with `keep_end` its beginning.
 */
void shorten_text(char *text, size_t columns, bool keep_end, bool utf8);

enum paint { PAINT_NONE, PAINT_HOT, PAINT_WARM, PAINT_DIM, PAINT_KERNEL, PAINT_LIBRARY, PAINT_JIT };

enum paint paint_of_category(enum profile_category category);

/* Nothing without `color`. Each begin has its end. */
void paint_begin(FILE *out, bool color, enum paint paint);
void paint_end(FILE *out, bool color, enum paint paint);
void paint_text(FILE *out, bool color, enum paint paint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* " 12.34%" */
void paint_share(FILE *out, bool color, double share);

/* ---- report_rows.c: CPU samples, grouped. Counts are events where the event is no clock ----------------------------------------------------- */

/* Texts belong to the profile or are static; they have to be sanitized before they are printed. */
struct report_row {
	uint64_t self;	/* samples of it: its code was executing, or it is the thread or process */
	uint64_t total; /* samples with it anywhere in the stack, each counted once */
	double self_square, total_square; /* of single samples: for their errors */
	uint64_t cpu;			  /* ns; threads and processes only */
	const char *name;
	const char *place; /* dso of a function, file of a line, process of a thread */
	uint32_t pid, tid, line;
	uint32_t threads;		/* of a process, with at least one sample */
	enum profile_category category; /* of code: that of its first location */
};

/* The row of a thread or its process, without counts; `by` is one of these. */
struct report_row report_task(const struct profile *p, enum report_by by, uint32_t thread);

/* Of all of them: see profile_samples__square(). */
double samples_square(const struct profile_samples *samples);

/* Sorted by self, then total, then name and the rest. The caller frees *rows. */
int report_rows(const struct profile *p, enum report_by by, struct report_row **rows,
		size_t *count);

/* ---- report_rows.c --------------------------------------------------------------------------- */

/* How far a share of samples can be trusted. */

/* Of random samples 95 of 100 intervals contain the true share. 0 <= low <= share <= high <= 1. */
struct interval {
	double low, high;
};

/*
 * Wilson's score interval of `part` of all that the profile counts; 0 to 1 if there is no sample.
 * `square`: the sum of the squares of what each sample of the part counts. A sum of unequal samples
 * is as exact as that of fewer equal ones, by the ratio of its variance.
 */
struct interval share_interval(const struct profile *p, uint64_t part, double square);

/* part / whole, 0 if there is nothing */
static inline double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* ---- report_code.c: which code is one row ---------------------------------------------------- */

/* Code that looks the same to a reader is one row. A line of the profile belongs to one row. */

/* The fields that make rows of code equal: all that is shown of them. */
/* The modules of code, by the name that is shown: versions of a library are one. */
struct report_module {
	const char *name; /* in the profile, or constant */
};
MAP_TYPE(report_modules, struct report_module);

struct report_code_key {
	struct string_id name; /* of the function; 0 for dsos */
	struct string_id file;
	uint32_t module, line;
};
MAP_TYPE(report_code_keys, struct report_code_key);

struct report_code {
	const struct profile *p;
	enum report_by by; /* REPORT_FUNCTION, REPORT_DSO or REPORT_LINE */
	VEC(struct report_row) rows;
	struct report_code_keys keys; /* by row */
	uint32_t *row_of_line;	      /* by line of the profile */
	struct report_modules modules;
};

/* 0 or -ENOMEM; fini is due in both cases. */
int report_code__init(struct report_code *code, const struct profile *p, enum report_by by);
void report_code__fini(struct report_code *code);

/* The row of a line of a location; new rows have no counts. 0 or -ENOMEM. */
int report_code__row(struct report_code *code, const struct profile_location *location,
		     uint32_t line, uint32_t *row);

/* Orders what rows show, names first; 0 only for equal ones. For rows with equal counts. */
int report_row__compare_texts(const struct report_row *a, const struct report_row *b);

/* ---- report_tree.c: from the roots of the stacks down, or from functions to their callers ---- */

#define REPORT_NO_NODE UINT32_MAX

struct report_node {
	const struct report_row *row; /* what it shows; the counts in there are not the node's */
	uint32_t key;		      /* private */
	uint32_t parent;	      /* number of a node before this one; REPORT_NO_NODE: none */
	uint32_t depth;		      /* 0 without parent */
	uint32_t children;	      /* that are nodes */
	bool last;		      /* of its parent's children */
	bool group;		      /* a thread or process */
	uint64_t total;		      /* samples in it */
	uint64_t self;		      /* at its code; of callers: without another caller */
	double total_square, self_square;
	uint32_t cut;	    /* children that are too small to be nodes … */
	uint64_t cut_total; /* … and their samples */
};

/* In preorder, siblings by their samples, most first. */
struct report_tree {
	VEC(struct report_node) nodes;
	uint32_t roots;	    /* nodes without parent */
	uint32_t cut;	    /* roots that are too small … */
	uint64_t cut_total; /* … and their samples */
	struct report_code code;
	struct report_row *groups; /* by thread or process */
	VEC(char *) texts;	   /* names that were cut */
};

/* Cuts nodes with less samples than `min`. 0, -ENOMEM: fini is due anyway. Never move the tree. */
int report_tree__init(struct report_tree *tree, const struct profile *p, enum report_by by,
		      bool callers, uint64_t min);
void report_tree__fini(struct report_tree *tree);

/* ---- report_wall.c: what threads do, and wait for -------------------------------------------- */

int report_wall(const struct export_request *request, const struct report_options *options);

/* ---- the parts ------------------------------------------------------------------------------- */

/* A table: `rows` are shown; `count` is the number of all that are not below the least share. */
struct report_table {
	const struct report_row *rows;
	size_t shown, count;
};

/* "function", … */
const char *report_by_name(enum report_by by);

/* All return 0 or negative errno; write errors may be visible in ferror() only. */
int report_header(const struct profile *p, FILE *out);
int report_table_text(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out);
/* `shown`: nodes at most */
int report_tree_text(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out);
/* A report's object up to "min_share"; the caller writes the rest of its members. */
struct json_writer;
void report_json__begin(struct json_writer *w, const struct profile *p, const char *by,
			const char *shape, double min_share, FILE *out);
int report_json__end(struct json_writer *w, FILE *out);
int report_table_json(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out);
int report_tree_json(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out);

#endif
