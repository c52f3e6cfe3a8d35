/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which locations and stacks of a profile say the same: one line of one function, wherever the
 * addresses are. Backends show functions and lines, so one of them is sent for all.
 */
#ifndef AGENT_MERGED_CODE_H
#define AGENT_MERGED_CODE_H

#include <stdint.h>

#include <sysprof/profile.h>

#include "formats/out/code_tables.h"

/* The first equal one, by id. Frames that differ only in their address stay separate. */
struct merged_code {
	uint32_t *locations;
	uint32_t *stacks;
};

/* 0, -ENOMEM. */
int merged_code__init(struct merged_code *m, const struct profile *p);
void merged_code__fini(struct merged_code *m);

/*
 * Numbers the code of a message file by file. In order of first use, rows of the kernel, libraries
 * and the program alternate; rows of one file are alike and compress better.
 */

struct code_order;

/* NULL: no memory. Profile and code have to outlive it. */
struct code_order *code_order__new(const struct profile *p, const struct merged_code *code);
void code_order__free(struct code_order *o);

/* The locations of a merged stack, up to depth_max of them from its leaf. 0, -ENOMEM. */
int code_order__add_stack(struct code_order *o, struct stack_id stack, uint32_t depth_max);

/* Gives numbers to what was added, and begins anew. */
void code_order__number(struct code_order *o, struct code_tables *code);

#endif
