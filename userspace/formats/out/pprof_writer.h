/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes one pprof message; the caller chooses its samples and their labels.
 *
 *   types ─► samples ─► pprof_writer__tables() ─► __facts() ─► __finish()
 *
 * All messages but the profile itself are written one at a time, so a big file needs no memory.
 */
#ifndef FORMATS_OUT_PPROF_WRITER_H
#define FORMATS_OUT_PPROF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/wire.h"
#include "formats/out/code_tables.h"

struct pprof_writer;

struct pprof_writer_options {
	struct code_options code;
	uint32_t depth_max; /* locations of a sample, the leaf's side is kept; 0: any number */
	bool names_first;   /* code_tables__number_names() */
};

struct pprof_facts {
	uint64_t time, duration, period; /* ns; time is since the epoch */
	const char *default_sample_type;
	const char *period_type; /* NULL: "cpu" */
	const char *period_unit; /* NULL: "nanoseconds" */
	bool has_comments;	 /* export_comments() */
};

/* NULL: no memory. Profile and `out` have to outlive it. */
struct pprof_writer *pprof_writer__new(const struct profile *p,
				       const struct pprof_writer_options *options, FILE *out);
void pprof_writer__free(struct pprof_writer *w);

/* Begins another message about the same profile. 0, -ENOMEM. */
int pprof_writer__again(struct pprof_writer *w, uint32_t depth_max, FILE *out);

/* For the texts of labels, comments and types. */
struct code_tables *pprof_writer__code(struct pprof_writer *w);

void pprof_writer__sample_type(struct pprof_writer *w, const char *type, const char *unit);
/*
 * Stack 0: a function "[not sampled]". As many values as sample types. A label has a text or a
 * number; if its unit is 0, pprof makes one up.
 */
void pprof_writer__sample(struct pprof_writer *w, struct stack_id stack, const int64_t *values,
			  size_t value_count, const struct pprof_label *labels, size_t label_count);
/* A label with a text. */
struct pprof_label pprof_writer__label(struct pprof_writer *w, const char *key, const char *text);
/* The samples after it have a leaf "[waiting: STATE]"; WALL_NONE: they have none. */
void pprof_writer__set_leaf(struct pprof_writer *w, enum wall_state state);
/* Of all samples so far. */
void pprof_writer__tables(struct pprof_writer *w);
void pprof_writer__facts(struct pprof_writer *w, const struct pprof_facts *facts);
/* Strings, and the end. 0, or the first error of all calls. */
int pprof_writer__finish(struct pprof_writer *w);

/* The first error so far, or 0. */
int pprof_writer__error(const struct pprof_writer *w);

#endif
