/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/v8.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/elf_file.h"

#define COUNT_LEAST 128u
#define BLOCK	    (1u << 20)
#define OVERLAP	    (V8_SCALES * V8_BYTECODES)
#define READ_MAX    (96u << 20) /* of a file's constants */

/* Wide, ExtraWide and those of the debugger, which have the registers 0, 1, 2, 3 as operands. */
static const unsigned char first[] = {1, 1, 1, 1, 1, 2, 3, 4};

/* Operands that are widened grow by their number; others do not. */
static bool is_table(const unsigned char *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned int one = table[i], two = table[count + i], four = table[2 * count + i];

		if (!one || two < one || four - two != 2 * (two - one) || four > V8_BYTECODE_MAX)
			return false;
	}
	return true;
}

static bool take(const unsigned char *at, size_t left, struct v8_bytecodes *table)
{
	for (uint32_t count = COUNT_LEAST; count <= V8_BYTECODES && V8_SCALES * count <= left;
	     count++) {
		/* the debugger's are wider in the second row */
		if (memcmp(at + count, first, 5) || at[count + 5] != 3 || !is_table(at, count))
			continue;
		table->count = count;
		for (unsigned int scale = 0; scale < V8_SCALES; scale++)
			memcpy(table->size[scale], at + scale * count, count);
		return true;
	}
	return false;
}

bool v8_bytecodes__find(const unsigned char *bytes, size_t size, struct v8_bytecodes *table)
{
	const unsigned char *at = bytes, *end = bytes + size;

	*table = (struct v8_bytecodes){};
	while ((at = memmem(at, end - at, first, sizeof(first)))) {
		if (take(at, end - at, table))
			return true;
		at++;
	}
	return false;
}

bool v8_bytecodes__read(struct elf_file *file, struct v8_bytecodes *table)
{
	_cleanup_free_ unsigned char *block = malloc(BLOCK + OVERLAP);
	struct elf_section section;
	uint64_t offset;

	*table = (struct v8_bytecodes){};
	if (!block || elf_file__find_section(file, ".rodata", &section))
		return false;
	for (offset = 0; offset < min_u64(section.size, READ_MAX); offset += BLOCK) {
		ssize_t got = elf_file__read_section(file, &section, offset, block,
						     BLOCK + OVERLAP);

		if (got <= 0)
			return false;
		if (v8_bytecodes__find(block, (size_t)got, table))
			return true;
	}
	return false;
}

size_t v8_bytecodes__length(const struct v8_bytecodes *table, const unsigned char *at, size_t left)
{
	/* Wide, ExtraWide; the debugger has put the others in the place of these */
	unsigned int scale = left && at[0] < 4 ? 1 + (at[0] & 1) : 0;
	size_t prefix = scale ? 1 : 0, length;

	if (left <= prefix || at[prefix] >= table->count)
		return 0;
	length = prefix + table->size[scale][at[prefix]];
	return length <= left ? length : 0;
}
