/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives the code of a message its numbers file by file. In order of first use, which is that of stacks, rows of the
 * kernel, of libraries and of the program alternate; rows of one file are alike, and a message of them gets smaller by
 * compression.
 */
#ifndef AGENT_CODE_ORDER_H
#define AGENT_CODE_ORDER_H

#include <stdint.h>

#include <sysprof/profile.h>

#include "agent/merged_code.h"
#include "export/code_tables.h"

struct code_order;

/* NULL: no memory. Profile and code have to outlive it. */
struct code_order *code_order__new(const struct profile *p, const struct merged_code *code);
void code_order__free(struct code_order *o);

/* The locations of a merged stack, up to depth_max of them from its leaf. 0, -ENOMEM. */
int code_order__add_stack(struct code_order *o, struct stack_id stack, uint32_t depth_max);

/* Gives numbers to what was added, and begins anew. */
void code_order__number(struct code_order *o, struct code_tables *code);

#endif
