/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perf maps: cut into pieces anyhow they say what they say whole, entries are where a process can have
 * code, and of those that are still true no two have an address in common. The first byte is the size
 * of the pieces.
 */
#include <string.h>

#include "base/hashmap.h"
#include "fuzz.h"
#include "jit/jit_timeline.h"
#include "jit/perf_map.h"

#define ENTRIES_MAX 4096

struct reported {
	struct code_range ranges[ENTRIES_MAX];
	size_t count;
	uint64_t hash;
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	(void)seed;
	return LLVMFuzzerMutate(data, size, max_size);
}

static int report(void *context, const struct perf_map_entry *e)
{
	struct reported *t = context;

	MUST(e->start <= e->end && e->end <= UINT64_C(1) << 56);
	MUST(e->name_size && e->name_size < PERF_MAP_LINE_MAX);
	MUST(!memchr(e->name, '\n', e->name_size));
	t->hash = t->hash * 31 + e->start + 7 * e->end + hash_bytes(e->name, e->name_size);
	if (t->count < ENTRIES_MAX)
		t->ranges[t->count++] = (struct code_range){e->start, e->end};
	return 0;
}

static void read_map(const char *bytes, size_t size, size_t piece, struct reported *reported)
{
	struct perf_map_reader reader = {};

	for (size_t at = 0; at < size; at += piece)
		MUST(!perf_map_reader__feed(&reader, bytes + at,
					    size - at < piece ? size - at : piece, report,
					    reported));
	MUST(!perf_map_reader__finish(&reader, report, reported));
	MUST(reader.entries >= reported->count && reader.entries + reader.bad_lines <= size + 1);
	perf_map_reader__fini(&reader);
}

static int compare(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void check_fresh(struct reported *reported)
{
	static bool fresh[ENTRIES_MAX];
	size_t kept = 0;

	MUST(!find_fresh(reported->ranges, reported->count, fresh));
	MUST(!reported->count || fresh[reported->count - 1]);
	for (size_t i = 0; i < reported->count; i++)
		if (fresh[i] && reported->ranges[i].start != reported->ranges[i].end)
			reported->ranges[kept++] = reported->ranges[i];
	if (kept)
		qsort(reported->ranges, kept, sizeof(reported->ranges[0]), compare);
	for (size_t i = 1; i < kept; i++)
		MUST(reported->ranges[i - 1].end <= reported->ranges[i].start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reported whole, pieces;

	if (!size)
		return 0;
	whole.count = whole.hash = pieces.count = pieces.hash = 0;
	read_map((const char *)data + 1, size - 1, SIZE_MAX / 2, &whole);
	read_map((const char *)data + 1, size - 1, 1 + data[0], &pieces);
	MUST(whole.count == pieces.count && whole.hash == pieces.hash);
	check_fresh(&whole);
	return 0;
}
