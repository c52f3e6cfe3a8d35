/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/target_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"

#define NO_ADDRESS 1u
#define GROUP	   (TARGET_BLOCK * TARGET_BLOCKS_AHEAD)

int target_blocks__init(struct target_blocks *b, struct target_memory *memory)
{
	b->memory = memory;
	b->bytes = malloc((size_t)TARGET_BLOCK * TARGET_BLOCKS);
	for (size_t i = 0; i < TARGET_BLOCKS; i++)
		b->address[i] = NO_ADDRESS;
	return b->bytes ? 0 : -ENOMEM;
}

void target_blocks__fini(struct target_blocks *b)
{
	free(b->bytes);
	b->bytes = NULL;
}

static size_t slot_of(uint64_t address)
{
	return address / TARGET_BLOCK & (TARGET_BLOCKS - 1);
}

/* A mapping may end within the blocks that are read ahead. */
static int fill(struct target_blocks *b, uint64_t address)
{
	uint64_t group = address & ~(uint64_t)(GROUP - 1);
	size_t slot = slot_of(group);
	int err = target_memory__read(b->memory, b->bytes + slot * TARGET_BLOCK, GROUP, group);

	for (size_t i = 0; i < TARGET_BLOCKS_AHEAD; i++)
		b->address[slot + i] = err ? NO_ADDRESS : group + i * TARGET_BLOCK;
	if (err != -ENODATA)
		return err;
	slot = slot_of(address);
	err = target_memory__read(b->memory, b->bytes + slot * TARGET_BLOCK, TARGET_BLOCK, address);
	b->address[slot] = err ? NO_ADDRESS : address;
	return err;
}

static int block_at(struct target_blocks *b, uint64_t address, const unsigned char **bytes)
{
	uint64_t block = address & ~(uint64_t)(TARGET_BLOCK - 1);
	size_t slot = slot_of(block);

	if (b->address[slot] != block) {
		int err = fill(b, block);

		if (err)
			return err;
	}
	*bytes = b->bytes + slot * TARGET_BLOCK + (address - block);
	return 0;
}

static size_t left_in_block(uint64_t address)
{
	return TARGET_BLOCK - (address & (TARGET_BLOCK - 1));
}

int target_blocks__read(struct target_blocks *b, void *to, size_t size, uint64_t address)
{
	unsigned char *at = to;

	if (address > UINT64_MAX - size - GROUP)
		return -ENODATA;
	while (size) {
		size_t part = min_u64(size, left_in_block(address));
		const unsigned char *bytes;
		int err = block_at(b, address, &bytes);

		if (err)
			return err;
		memcpy(at, bytes, part);
		at += part;
		address += part;
		size -= part;
	}
	return 0;
}

/* A target_read_fn. */
static int read_blocks(void *context, void *to, size_t size, uint64_t address)
{
	return target_blocks__read(context, to, size, address);
}

int target_blocks__string(struct target_blocks *b, char *to, size_t size, uint64_t address)
{
	/* what is read is limited by the memory that the blocks are of */
	struct target_memory memory = {.read = read_blocks,
				       .context = b,
				       .bytes_left = UINT64_MAX,
				       .reads_left = UINT32_MAX};

	return target_memory__string(&memory, to, size, address);
}
