/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile while it is added to the merged tree. */
#ifndef COMPARE_MERGED_PRIVATE_H
#define COMPARE_MERGED_PRIVATE_H

#include "compare/merged.h"

/* How far the samples of a thread are added, and its cuts looked at. */
struct cursor {
	size_t sample, cut;
};

struct adding {
	struct merged *m;
	struct merged_file *file;
	const struct profile *p;
	uint32_t *name_of_function; /* by function of the profile, or NO_NUMBER */
	uint32_t *node_of_stack;    /* by stack of the profile */
	uint64_t *ticks_of_stack;   /* so far */
	bool is_part;		    /* of the profile's time */
	struct compare_range range; /* CLOCK_MONOTONIC */
	uint64_t *block_ticks;	    /* of these, in the block that is being added */
	VEC(uint32_t) touched;	    /* stacks in it */
	struct cursor *cursors;	    /* by thread */
};

/* The node of a function below another one. 0 or -ENOMEM. */
int merged__child(struct merged *m, uint32_t parent, uint32_t function, uint32_t *node);

/* merged_waits.c: the waits of all threads, below the nodes of their stacks. 0 or -ENOMEM. */
int adding__add_waits(struct adding *a);

#endif
