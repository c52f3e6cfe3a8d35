/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which locations and stacks of a profile say the same: those of one line of one function, wherever in it the
 * addresses are. Backends show functions and lines, so one of them is sent for all.
 */
#ifndef AGENT_MERGED_CODE_H
#define AGENT_MERGED_CODE_H

#include <stdint.h>

#include <sysprof/profile.h>

/* The first equal one, by id. Frames that differ only in their address stay separate. */
struct merged_code {
	uint32_t *locations;
	uint32_t *stacks;
};

/* 0, -ENOMEM. */
int merged_code__init(struct merged_code *m, const struct profile *p);
void merged_code__fini(struct merged_code *m);

#endif
