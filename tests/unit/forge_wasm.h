/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of WebAssembly in V8: a module, its instance and its code in a forged heap. Behind v8_support.h.
 *
 * Two functions are imported, four are its own: numbers 2 to 5. Three have code: 2 and 3 in the tree, 4 in the vector of what is not
 * there yet. Besides there is old code of 3, which the table does not have any more, and a stub.
 */
#ifndef TESTS_UNIT_FORGE_WASM_H
#define TESTS_UNIT_FORGE_WASM_H

#include "runtimes/v8/layout.h"
#include "v8_support.h"

#define WASM_CODE	(HEAP_BASE + HEAP_SIZE - 0x1000) /* can be read */
#define WASM_CODE_BYTES 0x100u
#define WASM_IMPORTED	2
#define WASM_OWN	4

/* Which code lies where, from WASM_CODE on, one behind the other. */
enum { WASM_STUB, WASM_OLD_3, WASM_CODE_2, WASM_CODE_3, WASM_CODE_4, WASM_CODES };

struct forged_wasm {
	uint64_t instance, seen, script, native, tree, root, table, fresh, bytes;
	uint64_t code[WASM_CODES];
	size_t size; /* of the bytes */
};

static inline size_t wasm_put(unsigned char *to, size_t at, const char *bytes, size_t size)
{
	memcpy(to + at, bytes, size);
	return at + size;
}

/* A module with these names of functions, in the form of its section. */
static inline size_t forge_module(unsigned char *to, const char *names, size_t size)
{
	size_t at = 0;

	at = wasm_put(to, at, "\0asm\1\0\0\0", 8);
	at = wasm_put(to, at, "\1\4\1\x60\0\0", 6);
	/* a function, a memory, a table of references, a global, a tag, a function */
	at = wasm_put(to, at, "\2\x2b\6", 3);
	at = wasm_put(to, at, "\1e\1f\0\0", 6);
	at = wasm_put(to, at, "\1e\1m\2\1\1\2", 8);
	at = wasm_put(to, at, "\1e\1t\1\x63\x70\0\x09", 9);
	at = wasm_put(to, at, "\1e\1g\3\x7f\0", 7);
	at = wasm_put(to, at, "\1e\0\4\0\0", 6);
	at = wasm_put(to, at, "\1e\1h\0\0", 6);
	at = wasm_put(to, at, "\3\5\4\0\0\0\0", 7);
	if (size) {
		to[at++] = 0;
		to[at++] = (unsigned char)(size + 5);
		at = wasm_put(to, at, "\4name", 5);
		at = wasm_put(to, at, names, size);
	}
	return at;
}

/* Of the module itself, then of functions 0, 2 and 4. */
#define WASM_NAMES "\0\4\3mod\1\x0f\3\0\1f\2\3two\4\4\xc3\xa4\x1b.", 23

static inline void put_words(struct v8_heap *h, uint64_t address, const uint64_t *words,
			     size_t count)
{
	v8_heap_put(h, address + 1, 0, words, count * sizeof(*words));
}

static inline void forge_code(struct v8_heap *h, struct forged_wasm *w, int which, uint32_t index)
{
	bool is_new = h->layout.major >= 13;
	uint64_t at = v8_heap_space(h, 64, 8);

	w->code[which] = at;
	put_words(h, at, (uint64_t[]){w->native, WASM_CODE + (unsigned int)which * WASM_CODE_BYTES},
		  2);
	v8_heap_u32(h, at + 1, is_new ? 32 : 24, WASM_CODE_BYTES - 0x40);
	v8_heap_u32(h, at + 1, is_new ? 56 : 44, index);
}

/* Code of 2 is the root, with old code and code of 3 below it, and the stub below the old code. */
static inline void forge_tree(struct v8_heap *h, struct forged_wasm *w)
{
	uint64_t nodes[4];

	for (size_t i = 0; i < 4; i++)
		nodes[i] = v8_heap_space(h, 48, 8);
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t words[6] = {
			1, nodes[WASM_CODE_2], 0, 0, WASM_CODE + i * WASM_CODE_BYTES, w->code[i]};

		if (i == WASM_STUB)
			words[1] = nodes[WASM_OLD_3];
		if (i == WASM_OLD_3)
			words[2] = nodes[WASM_STUB];
		if (i == WASM_CODE_2) {
			words[1] = w->tree;
			words[2] = nodes[WASM_OLD_3];
			words[3] = nodes[WASM_CODE_3];
		}
		put_words(h, nodes[i], words, 6);
	}
	w->root = nodes[WASM_CODE_2];
	put_words(h, w->tree, (uint64_t[]){0, w->root, nodes[WASM_STUB], nodes[WASM_CODE_3], 4}, 5);
}

static inline void forge_native(struct v8_heap *h, struct forged_wasm *w, const char *names,
				size_t size)
{
	unsigned char module[512];
	uint64_t pair;

	w->native = v8_heap_space(h, 1024, 8);
	w->tree = w->native + 312;
	w->size = forge_module(module, names, size);
	w->bytes = v8_heap_space(h, w->size, 8);
	v8_heap_put(h, w->bytes + 1, 0, module, w->size);
	pair = v8_heap_space(h, 16, 8);
	put_words(h, pair, (uint64_t[]){w->bytes, w->size}, 2);
	put_words(h, w->native + 200, &pair, 1);
	forge_code(h, w, WASM_STUB, UINT32_MAX);
	forge_code(h, w, WASM_OLD_3, 3);
	forge_code(h, w, WASM_CODE_2, 2);
	forge_code(h, w, WASM_CODE_3, 3);
	forge_code(h, w, WASM_CODE_4, 4);
	forge_tree(h, w);
	w->fresh = v8_heap_space(h, 16, 8);
	put_words(h, w->fresh, &w->code[WASM_CODE_4], 1);
	w->table = v8_heap_space(h, 8 * WASM_OWN, 8);
	put_words(h, w->table,
		  (uint64_t[]){w->code[WASM_CODE_2], w->code[WASM_CODE_3], w->code[WASM_CODE_4], 0},
		  4);
	put_words(h, w->tree + 40, (uint64_t[]){w->fresh, w->fresh + 8, w->fresh + 16, w->table},
		  4);
}

/* From Node.js 22 on the instance in a frame is one that no script sees, which refers to the other one. */
static inline void forge_wasm(struct v8_heap *h, struct forged_wasm *w, const char *names,
			      size_t size)
{
	const struct v8_layout *l = &h->layout;
	uint64_t owner, shared, managed, module;

	forge_native(h, w, names, size);
	shared = v8_heap_space(h, 16, 8);
	put_words(h, shared, &w->native, 1);
	owner = v8_heap_space(h, 64, 8);
	put_words(h, owner, (uint64_t[]){4096, owner, owner, shared}, 4);
	managed = v8_heap_object(h, 204, 16);
	v8_heap_word(h, managed, 8, owner);
	w->script = v8_heap_object(h, l->type_script, 128);
	v8_heap_word(h, w->script, l->script_name, v8_heap_string(h, "wasm://wasm/mod-1234"));
	v8_heap_word(h, w->script, l->script_wasm, managed);
	module = v8_heap_object(h, l->type_wasm_module, 128);
	v8_heap_word(h, module, 24, managed);
	v8_heap_word(h, module, 32, w->script);
	w->instance = v8_heap_object(h, 300, 512);
	w->seen = module;
	if (l->type_wasm_instance > 0) {
		w->seen = v8_heap_object(h, l->type_wasm_instance, 128);
		v8_heap_word(h, w->seen, 24, w->instance);
		v8_heap_word(h, w->seen, 32, module);
	}
	v8_heap_word(h, w->instance, 200, w->seen);
}

#endif
