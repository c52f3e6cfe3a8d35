/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ticks of functions over time. If each side has COMPARE_RUNS_MIN files, a slot is a file;
 * otherwise it is a block of time of one file, and all are equally long.
 */
#ifndef COMPARE_SERIES_H
#define COMPARE_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/merged.h"

#define SERIES_FUNCTIONS_MAX 4096
#define SERIES_TICKS_MIN     20 /* samples of both sides: fewer can show nothing */

/* A tested function. The first one is the whole: COMPARE_WHOLE. */
struct series_function {
	uint32_t function;
	uint64_t total[COMPARE_SIDES], self[COMPARE_SIDES];
	uint64_t unchanged[COMPARE_SIDES]; /* of `total`: in code taken as unchanged */
	bool changed;			   /* its own code is not taken as unchanged */
	/* by slot: */
	double *total_slots[COMPARE_SIDES], *self_slots[COMPARE_SIDES];
};

struct series_side {
	size_t slots;
	size_t files;
	uint32_t *file;		   /* by slot: index of the merged file */
	double *ticks, *unchanged; /* by slot: of all code, of code taken as unchanged */
	uint64_t tick_sum, unchanged_sum;
};

struct series {
	const struct merged *m;
	bool by_file;
	struct series_side side[COMPARE_SIDES];
	uint64_t *node_ticks[COMPARE_SIDES];  /* by node, with all nodes below */
	uint32_t *first_child, *next_sibling; /* by node; MERGED_ROOT: none */
	bool *outermost;		      /* by node: no node above has its function */
	struct series_function *functions;
	size_t count;
	uint32_t *number_of; /* by function: its number in `functions`; 0: not tested */
	size_t name_count;
	double *room; /* memory of all slots of all functions */
};

/* 0 or -ENOMEM; call fini in both cases. */
int series__init(struct series *s, const struct merged *m);
void series__fini(struct series *s);

/* Takes the own code of function number i as changed; exclude_none(): no code. */
void series__exclude(struct series *s, size_t i);
void series__exclude_none(struct series *s);
/* Then counts the ticks of each function in unchanged code. 0 or -ENOMEM. */
int series__count_unchanged(struct series *s);

#endif
