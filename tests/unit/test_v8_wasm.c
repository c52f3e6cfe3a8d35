/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of WebAssembly by an instance and an address, out of a forged heap. */
#include "unit.h"
#include "runtimes/v8/wasm.h"
#include "unit/forge_wasm.h"

#define INSIDE(which) (WASM_CODE + (which)*WASM_CODE_BYTES + 0x10)

static struct v8_heap *heap;
static struct forged_wasm forged;
static struct v8_wasm *wasm;

static bool is_leaf;

static void fresh(enum v8_version version)
{
	heap = v8_heap_fresh(version);
	forge_wasm(heap, &forged, WASM_NAMES);
	v8_wasm__free(wasm);
	wasm = v8_wasm__new();
	assert_non_null(wasm);
}

/* "NUMBER name file", "-" if nothing is reported. */
static const char *at(uint64_t address)
{
	static struct managed_function f;
	static char text[sizeof(f.name) + sizeof(f.file) + 32];
	struct v8_wasm_function function;
	int err;

	v8_heap_refill(heap);
	err = v8_wasm__function(wasm, &heap->reader, forged.instance, address, is_leaf, &function);
	if (err) {
		assert_true(err == -ENODATA || err == -EDQUOT);
		return "-";
	}
	assert_int_equal(
		v8_wasm__describe(wasm, &heap->reader, forged.instance, function.number, &f), 0);
	snprintf(text, sizeof(text), "%u%s %s %s", function.number, function.has_inlined ? "+" : "",
		 f.name, f.file);
	return text;
}

static const char *anew(uint64_t address)
{
	v8_wasm__begin(wasm);
	return at(address);
}

TEST(wasm_functions_are_found_by_their_address)
{
	for (enum v8_version version = 0; version < V8_VERSIONS; version++) {
		fresh(version);
		assert_string_equal(at(INSIDE(WASM_CODE_2)), "2 two wasm://wasm/mod-1234");
		assert_string_equal(at(INSIDE(WASM_CODE_3)),
				    "3 wasm-function[3] wasm://wasm/mod-1234");
		assert_string_equal(at(INSIDE(WASM_OLD_3)),
				    "3 wasm-function[3] wasm://wasm/mod-1234");
		assert_string_equal(at(INSIDE(WASM_STUB)), "-");
		assert_string_equal(at(INSIDE(WASM_CODE_2) + WASM_CODE_BYTES - 0x40), "-");
		assert_string_equal(at(WASM_CODE - 1), "-");
		assert_string_equal(at(0), "-");
		assert_string_equal(at(UINT64_MAX), "-");
	}
}

TEST(code_is_found_before_it_joins_the_tree)
{
	for (enum v8_version version = 0; version < V8_VERSIONS; version++) {
		fresh(version);
		assert_string_equal(at(INSIDE(WASM_CODE_4)),
				    "4 \xc3\xa4\\x1b. wasm://wasm/mod-1234");
		v8_heap_word(heap, forged.tree + 1, 48,
			     forged.fresh); /* it was put into the tree */
		assert_string_equal(anew(INSIDE(WASM_CODE_4)), "-");
		v8_heap_word(heap, forged.tree + 1, 48, forged.fresh + 8);
		assert_string_equal(anew(INSIDE(WASM_CODE_4)),
				    "4 \xc3\xa4\\x1b. wasm://wasm/mod-1234");
	}
}

TEST(an_empty_tree_leaves_only_fresh_code)
{
	fresh(V8_NODE_24);
	put_words(heap, forged.tree, (uint64_t[]){0, 0, forged.tree, forged.tree, 0}, 5);
	assert_string_equal(at(INSIDE(WASM_CODE_4)), "4 \xc3\xa4\\x1b. wasm://wasm/mod-1234");
	assert_string_equal(at(INSIDE(WASM_CODE_2)), "-");
}

static void put_jump(uint64_t address, uint8_t opcode, uint64_t target)
{
	uint32_t distance = (uint32_t)(target - address - 5);

	v8_heap_put(heap, address + 1, 0, &opcode, 1);
	v8_heap_u32(heap, address + 1, 1, distance);
}

/* A call of a function that has not arrived: it is in the table of jumps, which is code of none. */
TEST(jump_table_slots_have_the_function_they_target)
{
	uint64_t slot = WASM_CODE + 0x20, two = WASM_CODE + WASM_CODE_2 * WASM_CODE_BYTES,
		 four = WASM_CODE + WASM_CODE_4 * WASM_CODE_BYTES;

	for (enum v8_version version = 0; version < V8_VERSIONS; version++) {
		fresh(version);
		is_leaf = true;
		put_jump(slot, 0xe9, two);
		assert_string_equal(at(slot), "2 two wasm://wasm/mod-1234");
		put_jump(slot, 0xe9, four); /* not in the tree yet */
		assert_string_equal(at(slot), "4 \xc3\xa4\\x1b. wasm://wasm/mod-1234");
		put_jump(slot, 0xe9, two + 4); /* leads into the middle, */
		assert_string_equal(at(slot), "-");
		put_jump(slot, 0xe9, WASM_CODE); /* to a stub, */
		assert_string_equal(at(slot), "-");
		put_jump(slot, 0xe9, slot); /* to itself, */
		assert_string_equal(at(slot), "-");
		put_jump(slot, 0xe8, two); /* and this comes back */
		assert_string_equal(at(slot), "-");
		put_jump(slot, 0xe9, two);
		is_leaf = false; /* it called nothing */
		assert_string_equal(at(slot), "-");
		is_leaf = true;
		assert_string_equal(at(HEAP_BASE + HEAP_SIZE - 4), "-");
		is_leaf = false;
	}
}

TEST(a_function_with_inlined_code_is_marked)
{
	fresh(V8_NODE_24);
	v8_heap_u32(heap, forged.code[WASM_CODE_2] + 1, 44, 12);
	assert_string_equal(at(INSIDE(WASM_CODE_2)), "2+ two wasm://wasm/mod-1234");
}

/* What must refer back does not: nothing is reported. */
TEST(nothing_is_reported_of_contradicting_objects)
{
	const struct {
		uint64_t *object;
		uint32_t offset;
	} words[] = {
		{&forged.tree, 0},
		{&forged.tree, 8},
		{&forged.root, 8},
		{&forged.root, 40},
		{&forged.bytes, 0},
		{&forged.code[WASM_CODE_2], 0},
		{&forged.code[WASM_CODE_2], 8},
		{&forged.script, 16},
		{&forged.script, 80},
		{&forged.instance, 200},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		uint64_t address;

		fresh(V8_NODE_24);
		address = *words[i].object + !(*words[i].object & 1);
		v8_heap_word(heap, address, words[i].offset, forged.code[WASM_CODE_4] + 0x10);
		assert_string_equal(at(INSIDE(WASM_CODE_2)), "-");
	}
	fresh(V8_NODE_24);
	v8_heap_word(heap, forged.table + 1, 0,
		     forged.code[WASM_CODE_3]); /* not the function of that number */
	assert_string_equal(at(INSIDE(WASM_CODE_2)), "-");
}

TEST(circular_trees_and_bad_vectors_give_no_function)
{
	fresh(V8_NODE_24);
	v8_heap_word(heap, forged.root + 1, 16, forged.root);
	assert_string_equal(at(INSIDE(WASM_OLD_3)), "-");
	fresh(V8_NODE_24);
	assert_string_equal(at(INSIDE(WASM_CODE_2)), "2 two wasm://wasm/mod-1234");
	v8_heap_word(heap, forged.tree + 1, 48, forged.fresh + (1ull << 40));
	assert_string_equal(anew(INSIDE(WASM_CODE_4)), "-");
	v8_heap_word(heap, forged.tree + 1, 40, forged.fresh + 4);
	assert_string_equal(anew(INSIDE(WASM_CODE_4)), "-");
	v8_heap_word(heap, forged.tree + 1, 32, UINT64_MAX);
	assert_string_equal(anew(INSIDE(WASM_CODE_2)), "2 two wasm://wasm/mod-1234");
}

/* Another module comes to lie where this one was. */
TEST(a_changed_module_is_seen_at_the_next_request)
{
	struct forged_wasm first;

	fresh(V8_NODE_24);
	assert_string_equal(at(INSIDE(WASM_CODE_2)), "2 two wasm://wasm/mod-1234");
	first = forged;
	forge_wasm(heap, &forged, "\1\6\1\2\3zwo", 8);
	/* the instance is the same word, and leads there */
	memcpy(heap->bytes + (first.instance - 1 - HEAP_BASE),
	       heap->bytes + (forged.instance - 1 - HEAP_BASE), 512);
	forged.instance = first.instance;
	v8_heap_word(heap, forged.seen, 24, forged.instance);
	assert_string_equal(at(INSIDE(WASM_CODE_2)), "2 two wasm://wasm/mod-1234");
	assert_string_equal(anew(INSIDE(WASM_CODE_2)), "2 zwo wasm://wasm/mod-1234");
}

TEST(modules_beyond_those_remembered_are_read_again)
{
	struct forged_wasm all[20];

	fresh(V8_NODE_20);
	for (int i = 0; i < 20; i++)
		forge_wasm(heap, &all[i], WASM_NAMES);
	for (int i = 0; i < 60; i++) {
		forged = all[i % 20];
		assert_string_equal(anew(INSIDE(WASM_CODE_2)), "2 two wasm://wasm/mod-1234");
	}
}

static void end(void)
{
	v8_wasm__free(wasm);
}

ALL_TESTS_WITH(NULL, end);
