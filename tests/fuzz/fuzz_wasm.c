/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WebAssembly. First byte even: the rest are the bytes of a module, whatever they are reading them ends, and names are text. Odd: a
 * forged module in a forged heap of V8, with words of it changed: {offset from its first byte, 2 bytes; what, 1 byte; value, 8 bytes}.
 */
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "runtimes/v8/wasm.h"
#include "../unit/forge_wasm.h"
#include "runtimes/v8/wasm_bytes.h"

#define CHANGE	  11u
#define FUNCTIONS 64u

struct input {
	const uint8_t *data;
	size_t size;
};

static struct v8_heap *heap;

static int read_input(void *context, void *to, size_t size, uint64_t address)
{
	const struct input *input = context;

	if (address < HEAP_BASE || address - HEAP_BASE > input->size ||
	    size > input->size - (address - HEAP_BASE))
		return -ENODATA;
	memcpy(to, input->data + (address - HEAP_BASE), size);
	return 0;
}

static void fuzz_bytes(const struct input *input)
{
	struct target_memory m = {.read = read_input,
				  .context = (void *)input,
				  .bytes_left = 1 << 24,
				  .reads_left = 100000};
	struct wasm_bytes w;
	char name[64];

	if (wasm_bytes__open(&w, &m, HEAP_BASE, input->size))
		return;
	MUST(w.imported <= WASM_FUNCTIONS_MAX && w.own <= WASM_FUNCTIONS_MAX);
	MUST(w.marks.count <= WASM_MARKS_MAX && w.names_end <= input->size);
	for (size_t i = 0; i < w.marks.count && i < FUNCTIONS; i++)
		MUST(wasm_bytes__name(&w, &m, w.marks.data[i].function, name, sizeof(name)) ||
		     name[0]);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		int err = wasm_bytes__name(&w, &m, i, name, sizeof(name));

		MUST(strnlen(name, sizeof(name)) < sizeof(name) && !err == (name[0] != '\0'));
	}
	wasm_bytes__fini(&w);
}

/* A value as it is, the address of something that is there, or a small number. */
static void change(size_t first, const uint8_t *c)
{
	size_t offset = first + ((c[0] | c[1] << 8) & ~3u);
	uint64_t value;

	memcpy(&value, c + 3, sizeof(value));
	if ((c[2] & 3) == 1)
		value = HEAP_BASE + first + (value & 0xfff);
	else if ((c[2] & 3) == 2)
		value &= 0xff;
	if (offset + sizeof(value) <= heap->used)
		memcpy(heap->bytes + offset, &value, (c[2] & 4) ? 4 : 8);
}

static void request(struct v8_wasm *w, uint64_t instance, uint64_t address)
{
	static struct managed_function f;
	struct v8_wasm_function function;

	if (v8_wasm__function(w, &heap->reader, instance, address, true, &function))
		return;
	MUST(function.number < 2 * WASM_FUNCTIONS_MAX);
	if (v8_wasm__describe(w, &heap->reader, instance, function.number, &f))
		return;
	MUST(f.name[0] && strlen(f.name) < sizeof(f.name) && strlen(f.file) < sizeof(f.file));
}

static void fuzz_heap(uint8_t version, const struct input *input)
{
	struct forged_wasm forged;
	struct v8_wasm *w;
	size_t first;

	heap = heap ? heap : malloc(sizeof(*heap));
	MUST(heap);
	v8_heap__init(heap, version % V8_VERSIONS);
	first = heap->used;
	forge_wasm(heap, &forged, WASM_NAMES);
	w = v8_wasm__new();
	MUST(w);
	for (size_t at = 0; at + CHANGE <= input->size || !at; at += CHANGE) {
		if (at + CHANGE <= input->size)
			change(first, input->data + at);
		v8_wasm__begin(w);
		for (unsigned int i = 0; i < WASM_CODES; i++)
			request(w, forged.instance, WASM_CODE + i * WASM_CODE_BYTES + 4);
		request(w, forged.seen, WASM_CODE + WASM_CODE_2 * WASM_CODE_BYTES);
		if (!heap->memory.reads_left)
			break;
	}
	v8_wasm__free(w);
	v8_heap__fini(heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data + 1, size - 1};

	if (!size)
		return 0;
	if (data[0] & 1)
		fuzz_heap(data[0] >> 1, &input);
	else
		fuzz_bytes(&input);
	return 0;
}
