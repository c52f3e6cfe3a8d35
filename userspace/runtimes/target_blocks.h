/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a process in aligned blocks that are read once: for looking at many small things that lie near one
 * another. Its bytes are as old as the first read, so one is made for each request.
 */
#ifndef RUNTIMES_TARGET_BLOCKS_H
#define RUNTIMES_TARGET_BLOCKS_H

#include "runtimes/target_memory.h"

#define TARGET_BLOCK	    4096u
#define TARGET_BLOCKS	    256u /* that are kept; a power of two */
#define TARGET_BLOCKS_AHEAD 4u	 /* that are read at once; a power of two */

struct target_blocks {
	struct target_memory *memory;
	unsigned char *bytes;
	uint64_t address[TARGET_BLOCKS]; /* 1: it has none */
};

/* 0, -ENOMEM. The memory must live as long. */
int target_blocks__init(struct target_blocks *b, struct target_memory *memory);
void target_blocks__fini(struct target_blocks *b);

/* As those of target_memory.h. */
int target_blocks__read(struct target_blocks *b, void *to, size_t size, uint64_t address);
int target_blocks__string(struct target_blocks *b, char *to, size_t size, uint64_t address);

#endif
