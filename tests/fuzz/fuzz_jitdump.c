/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jitdumps and the names in them: cut into pieces anyhow they say what they say whole, and all that is
 * told can be read. The first byte is the size of the pieces.
 */
#include <string.h>

#include "base/hashmap.h"
#include "fuzz.h"
#include "jit/jit_name.h"
#include "jit/jitdump.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	(void)seed;
	return LLVMFuzzerMutate(data, size, max_size);
}

static void mix(uint64_t *hash, const void *data, size_t size)
{
	*hash = *hash * 31 + hash_bytes(data, size);
}

static int on_load(void *context, const struct jitdump_load *l)
{
	struct jit_name name = jit_name_parse(l->name, strlen(l->name));
	uint64_t *hash = context;

	MUST(name.function.size && name.tier < CODE_TIER_COUNT);
	MUST(l->address + l->size >= l->address && l->eh_frame_header_size <= l->unwinding_size);
	mix(hash, name.function.text, name.function.size);
	mix(hash, name.file.text, name.file.size);
	mix(hash, l->unwinding, l->unwinding_size);
	for (size_t i = 0; i < l->line_count; i++)
		mix(hash, l->lines[i].file, strlen(l->lines[i].file));
	return 0;
}

static int on_move(void *context, const struct jitdump_move *m)
{
	MUST(m->to + m->size >= m->to);
	mix(context, &m->to, sizeof(m->to));
	return 0;
}

static int read_dump(const uint8_t *data, size_t size, size_t piece, uint64_t *hash)
{
	const struct jitdump_handler handler = {hash, on_load, on_move, NULL};
	struct jitdump_reader reader = {};
	int err = 0;

	for (size_t at = 0; at < size && !err; at += piece)
		err = jitdump_reader__feed(&reader, data + at,
					   size - at < piece ? size - at : piece, &handler);
	MUST(jitdump_reader__torn(&reader) <= size);
	jitdump_reader__fini(&reader);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole = 0, pieces = 0;

	if (!size)
		return 0;
	MUST(read_dump(data + 1, size - 1, SIZE_MAX / 2, &whole) ==
	     read_dump(data + 1, size - 1, 1 + data[0], &pieces));
	MUST(whole == pieces);
	return 0;
}
