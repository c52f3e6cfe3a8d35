/* SPDX-License-Identifier: BSD-2-Clause */
/* Call trees and callers of a report, without what is too small to be shown. */
#ifndef FORMATS_OUT_REPORT_TREE_H
#define FORMATS_OUT_REPORT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "formats/out/report.h"
#include "formats/out/report_code.h"

struct profile;
struct report_row;

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

#endif
