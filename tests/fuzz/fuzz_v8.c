/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * V8's heap: whatever it is made of, reading ends within its limits, and the results are text, rows in order and chains
 * that end. The first byte is the version; the rest are words at the end of a heap that is sound before them. One that begins
 * with 0xa5 is the map of a type, one with 0x5a points to an object among them, so that an input need not know where it lies.
 */
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "runtimes/v8/code.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/lines.h"
#include "runtimes/v8/v8.h"
#include "../unit/v8_support.h"

#define FUZZED (HEAP_SIZE - 65536) /* where the input lies */
#define READS  2000
#define TYPES  300

static struct v8_heap *heap;
static size_t sound_size; /* of the heap, as it was made */
static unsigned char *sound[V8_VERSIONS];
static uint64_t maps[V8_VERSIONS][TYPES];
static struct managed_function function;

/* A map for every type, so that an input need not find one. */
static void make_heap(enum v8_version version)
{
	v8_heap__init(heap, version);
	for (int32_t type = 0; type < TYPES; type++)
		maps[version][type] = v8_heap_map(heap, type);
	sound_size = heap->used;
	sound[version] = malloc(sound_size);
	MUST(sound[version] && sound_size < FUZZED);
	memcpy(sound[version], heap->bytes, sound_size);
	v8_heap__fini(heap);
}

static void translate(enum v8_version version, const uint8_t *data, size_t size)
{
	memcpy(heap->bytes + FUZZED, data, size);
	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t word;

		memcpy(&word, heap->bytes + FUZZED + at, 8);
		if (word >> 56 == 0xa5)
			word = maps[version][(word & 0xffff) % TYPES];
		else if (word >> 56 == 0x5a)
			word = HEAP_BASE + FUZZED + (word & 0xffff) + 1;
		else
			continue;
		memcpy(heap->bytes + FUZZED + at, &word, 8);
	}
}

static void check_function(const struct v8_function *about)
{
	MUST(strnlen(function.name, sizeof(function.name)) < sizeof(function.name));
	MUST(strnlen(function.file, sizeof(function.file)) < sizeof(function.file));
	for (const char *s = function.name; *s;) {
		size_t length = utf8_sequence(s, strlen(s));

		MUST(length && (unsigned char)*s >= 0x20);
		s += length;
	}
	MUST(about->sfi && (about->sfi & 3) == 1);
}

static void check_rows(void)
{
	MUST(function.rows.count <= MANAGED_ROWS_MAX);
	for (size_t i = 1; i < function.rows.count; i++)
		MUST(function.rows.data[i - 1].offset <= function.rows.data[i].offset);
}

static void read_word(uint64_t word)
{
	struct v8_function about = {};
	struct v8_chain chain;
	struct v8_code code;
	uint64_t found;

	v8_heap_refill(heap);
	heap->memory.reads_left = READS;
	if (!v8_function__read(&heap->reader, word, &function, &about)) {
		check_function(&about);
		v8_function__number(&heap->reader, word, &found);
	}
	MUST(heap->reads <= READS);
	v8_heap_refill(heap);
	heap->memory.reads_left = READS;
	v8_lines__read(&heap->reader, word, &function);
	check_rows();
	if ((word & 63) == 1 && !v8_code__at(&heap->reader, word + 63, &code)) {
		MUST(word + 63 - code.start < code.size);
		v8_code__owner(&heap->reader, &code, word);
		if (!v8_code__chain(&heap->reader, &code, word + 64, &chain))
			MUST(chain.count && chain.count <= V8_INLINED_MAX);
	}
	MUST(heap->reads <= READS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum v8_version version = size ? data[0] % V8_VERSIONS : 0;
	struct v8_trust trust = {};

	if (!heap) {
		heap = malloc(sizeof(*heap));
		MUST(heap);
		for (enum v8_version v = 0; v < V8_VERSIONS; v++)
			make_heap(v);
	}
	if (size < 2 || size > HEAP_SIZE - FUZZED)
		return 0;
	v8_heap__init(heap, version);
	memcpy(heap->bytes, sound[version], sound_size);
	translate(version, data + 1, size - 1);
	for (size_t at = 0; at < size && at < 1024; at += 8) {
		read_word(HEAP_BASE + FUZZED + at + 1);
		v8_trust__see(&trust, &heap->reader, HEAP_BASE + FUZZED + at + 1);
	}
	v8_heap__fini(heap);
	return 0;
}
