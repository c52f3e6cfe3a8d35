/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HotSpot's memory: of one that is forged as it should be, some bytes are what the input says. Whatever they are, reading ends
 * within its limits, and what it gives is within its own. The first byte chooses the version; then follow patches: three bytes
 * of offset, one of length, bytes.
 */
#include <string.h>

#include "../unit/hotspot_image.h"
#include "fuzz.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/hotspot/scopes.h"

#define FRAMES_MAX 64
#define PLACES	   8

static struct hotspot_image image, fresh[2];

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	(void)seed;
	return LLVMFuzzerMutate(data, size, max_size);
}

static void patch(const uint8_t *data, size_t size)
{
	size_t at = 1;

	image = fresh[data[0] & 1];
	while (size - at >= 4) {
		uint32_t to = (data[at] | data[at + 1] << 8 | data[at + 2] << 16) % IMAGE_SIZE;
		size_t count = data[at + 3];

		at += 4;
		if (count > size - at)
			count = size - at;
		if (count > IMAGE_SIZE - to)
			count = IMAGE_SIZE - to;
		memcpy(image.bytes + to, data + at, count);
		at += count;
	}
}

static void name(const struct hotspot_layout *layout, struct target_memory *memory, uint64_t method)
{
	struct managed_function f = {};
	struct hotspot_method m;

	if (!hotspot_method__read(layout, memory, method, &m) &&
	    !hotspot_method__describe(layout, memory, &m, &f)) {
		MUST(strlen(f.name) < MANAGED_NAME_MAX && strlen(f.file) < MANAGED_FILE_MAX);
		MUST(f.rows.count <= MANAGED_ROWS_MAX);
		for (size_t i = 1; i < f.rows.count; i++)
			MUST(f.rows.data[i - 1].offset <= f.rows.data[i].offset);
	}
	managed_function__fini(&f);
}

static void look_at_blob(struct hotspot_code *code, struct target_memory *memory,
			 const struct hotspot_blob *b)
{
	static struct hotspot_chain chain;
	struct hotspot_debug debug = {};

	MUST(b->code <= b->code_end && b->code_end - b->address <= b->size);
	name(code->layout, memory, b->method);
	for (uint32_t i = 0; i < PLACES; i++)
		if (!hotspot_chain__read(code, memory, b, &debug, b->code + 16 * i - !(i & 1),
					 &chain)) {
			MUST(chain.count && chain.count <= HOTSPOT_SCOPES_MAX);
			name(code->layout, memory, chain.scopes[0].method);
		}
	hotspot_debug__fini(&debug);
}

/* Each frame is above the last one, so that there is an end. */
static void walk(struct hotspot_code *code, const struct hotspot_table *table,
		 struct target_memory *memory, uint64_t ip)
{
	struct hotspot_frame f = {.ip = ip, .is_innermost = true};
	struct hotspot_seen seen;

	for (int i = 0; i < HOTSPOT_REGISTERS; i++)
		f.general[i] = IMAGE_BASE + IMAGE_STACK + 64 + 8 * i;
	for (int i = 0; i < FRAMES_MAX; i++) {
		uint64_t sp = f.general[4];

		if (hotspot_walk__step(code, table, memory, &f, &seen))
			return;
		MUST(f.general[4] > sp || (!i && f.general[4] == sp));
	}
}

static void look(struct hotspot_code *code, struct target_memory *memory)
{
	struct hotspot_changes changes = {};
	struct hotspot_blobs blobs = {};
	struct hotspot_table table = {};
	uint64_t address;

	if (!hotspot_blobs__refresh(&blobs, code, memory, &changes)) {
		MUST(changes.added.count == blobs.list.count && !changes.gone.count);
		for (size_t i = 0; i < blobs.list.count && i < PLACES; i++)
			look_at_blob(code, memory, &blobs.list.data[i]);
		hotspot_table__refresh(&table, code, memory, &blobs, &changes);
	}
	for (uint32_t segment = 0; segment < 128; segment += 5) {
		walk(code, NULL, memory, image_code_of(segment));
		walk(code, &table, memory, image_code_of(segment) + 13);
	}
	hotspot_counter__find(code->layout, memory, "sun.ci.totalCompiles", &address);
	hotspot_table__fini(&table);
	hotspot_blobs__fini(&blobs);
	hotspot_changes__fini(&changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target_memory memory = image_memory(&image);
	static struct hotspot_layout layout;
	static struct hotspot_code code;

	if (!size)
		return 0;
	if (!fresh[0].next_string) {
		image_init(&fresh[0], false);
		image_init(&fresh[1], true);
	}
	patch(data, size);
	if (hotspot_layout__read(&layout, &memory, image.exports))
		return 0;
	if (!hotspot_code__read(&code, &layout, &memory))
		look(&code, &memory);
	hotspot_layout__fini(&layout);
	return 0;
}
