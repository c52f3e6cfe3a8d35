/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/wasm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "elf/x86_code.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/wasm_bytes.h"
#include "runtimes/v8/wasm_find.h"

#define MODULES	     16u
#define NEAR_BITS    20	   /* V8 reserves a megabyte and more for code of WebAssembly */
#define PLACES	     64u   /* a power of two */
#define TREE_DEPTH   64u   /* a tree of 2^32 nodes is no deeper */
#define FRESH_MAX    4096u /* the last ones of those that were made */
#define FRESH_PIECE  256u
#define CODE_BYTES   64u /* of a piece of code, that are looked at */
#define CALIBRATIONS 64u /* pieces that are compared with the table */
#define TABLE_PIECE  256u
#define TABLE_MAX    (1u << 17) /* functions, of which some must have been compiled */
#define CODE_START   8
#define JUMP_BYTES   5u /* jmp rel32 */

struct v8_wasm {
	struct v8_wasm_module modules[MODULES];
	uint64_t uses, request;
	uint64_t places[PLACES]; /* of code, by their low bits: numbers of megabytes + 1 */
};

struct v8_wasm *v8_wasm__new(void)
{
	struct v8_wasm *w = calloc(1, sizeof(*w));

	if (w)
		w->request = 1; /* 0 in a module: it was not checked */
	return w;
}

static void free_module(struct v8_wasm_module *module)
{
	wasm_bytes__fini(&module->bytes);
	vec_free(&module->fresh);
	*module = (struct v8_wasm_module){};
}

void v8_wasm__free(struct v8_wasm *w)
{
	for (size_t i = 0; w && i < MODULES; i++)
		free_module(&w->modules[i]);
	free(w);
}

void v8_wasm__begin(struct v8_wasm *w)
{
	w->request++;
}

/* ---- modules --------------------------------------------------------------------------------- */

static struct v8_wasm_module *known_module(struct v8_wasm *w, uint64_t instance)
{
	return find_first(w->modules, MODULES, m, m->instance == instance);
}

static struct v8_wasm_module *forget_oldest(struct v8_wasm *w)
{
	struct v8_wasm_module *oldest = &w->modules[0];

	for (size_t i = 1; i < MODULES; i++)
		if (w->modules[i].last_use < oldest->last_use)
			oldest = &w->modules[i];
	free_module(oldest);
	return oldest;
}

static int find_module(struct v8_wasm *w, struct v8_reader *r, uint64_t instance,
		       struct v8_wasm_module **found)
{
	struct v8_wasm_module *module = known_module(w, instance);
	int err;

	if (module && module->checked != w->request) {
		if (!wasm_module__is_there(r, module)) {
			free_module(module);
			module = NULL;
		} else {
			module->checked = w->request;
		}
	}
	if (!module) {
		module = forget_oldest(w);
		err = wasm_module__find(r, instance, module);
		if (err) {
			free_module(module);
			return err;
		}
		module->checked = w->request;
	}
	module->last_use = ++w->uses;
	*found = module;
	return 0;
}

/* ---- code ------------------------------------------------------------------------------------ */

struct code {
	unsigned char bytes[CODE_BYTES];
};

/* Reads a piece of the module's code that begins at `start`. */
static bool read_code(struct v8_reader *r, const struct v8_wasm_module *module, uint64_t object,
		      uint64_t start, struct code *code)
{
	return target_is_pointer(object) &&
	       !target_memory__read(r->memory, code->bytes, sizeof(code->bytes), object) &&
	       !memcmp(code->bytes, &module->native, 8) &&
	       !memcmp(code->bytes + CODE_START, &start, 8);
}

static uint32_t word_of(const struct code *code, uint32_t at)
{
	return (uint32_t)target_number(code->bytes, sizeof(code->bytes), at, sizeof(uint32_t));
}

static int read_tree(struct v8_reader *r, const struct v8_wasm_module *module,
		     struct tree_header *tree)
{
	return target_memory__read(r->memory, tree, sizeof(*tree), module->tree);
}

/* The node with the greatest key that is not above the address. 0; -ENODATA: none. */
static int find_node(struct v8_reader *r, const struct v8_wasm_module *module,
		     const struct tree_header *tree, uint64_t address, struct tree_node *found)
{
	uint64_t at = tree->count ? tree->parent : 0, parent = module->tree;
	bool has_found = false;

	for (unsigned int i = 0; at && i < TREE_DEPTH; i++) {
		struct tree_node node;
		int err = target_memory__read(r->memory, &node, sizeof(node), at);

		if (err)
			return err;
		if (node.parent != parent)
			return -ENODATA; /* it is just being changed */
		parent = at;
		if (node.key <= address) {
			*found = node;
			has_found = true;
		}
		at = node.key <= address ? node.right : node.left;
	}
	return has_found && !at ? 0 : -ENODATA;
}

/* ---- code that is not in the tree yet -------------------------------------------------------- */

DEFINE_ORDER(by_start, struct wasm_code, ASCENDING(start));

static int add_fresh(struct v8_reader *r, struct v8_wasm_module *module, const uint64_t *objects,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t words[2]; /* owner, start */
		int err = target_is_pointer(objects[i])
				  ? target_memory__read(r->memory, words, sizeof(words), objects[i])
				  : -ENODATA;

		if (err && err != -ENODATA)
			return err;
		if (err || words[0] != module->native)
			continue;
		if (vec_push(&module->fresh, ((struct wasm_code){words[1], objects[i]})))
			return -ENOMEM;
	}
	return 0;
}

static int read_fresh(struct v8_reader *r, struct v8_wasm_module *module,
		      const struct tree_header *tree)
{
	uint64_t begin = tree->fresh_begin, end = tree->fresh_end;
	int err = 0;

	if (module->fresh_read == module->checked)
		return 0;
	module->fresh_read = module->checked;
	module->fresh.count = 0;
	if (begin % 8 || end % 8 || end < begin)
		return -ENODATA;
	if (end - begin > FRESH_MAX * 8ull) {
		r->memory->left = true;
		begin = end - FRESH_MAX * 8ull;
	}
	while (begin < end && !err) {
		uint64_t objects[FRESH_PIECE];
		size_t size = min_u64(sizeof(objects), end - begin);

		err = target_memory__read(r->memory, objects, size, begin)
			      ?: add_fresh(r, module, objects, size / 8);
		begin += size;
	}
	if (err)
		return err;
	vec_sort(&module->fresh, by_start);
	return 0;
}

static const struct wasm_code *find_fresh(const struct v8_wasm_module *module, uint64_t address)
{
	size_t at = partition_point(module->fresh.data, module->fresh.count, code,
				    code->start <= address);

	return at ? &module->fresh.data[at - 1] : NULL;
}

/* ---- where a piece of code has its size and its function ------------------------------------- */

static const struct {
	uint32_t size, index;
	uint32_t
		inlined; /* bytes that describe what is inlined; 0: these versions inline nothing */
} code_layouts[] = {{24, 44, 0}, {32, 48, 0}, {32, 56, 44}};
#define CODE_LAYOUTS (sizeof(code_layouts) / sizeof(code_layouts[0]))

struct votes {
	uint32_t count, hits[CODE_LAYOUTS];
};

/* The code of a function in the table has the function's number in it. */
static void vote(struct v8_reader *r, const struct v8_wasm_module *module, uint32_t function,
		 uint64_t object, struct votes *votes)
{
	struct code code;

	if (!target_is_pointer(object) ||
	    target_memory__read(r->memory, code.bytes, sizeof(code.bytes), object) ||
	    memcmp(code.bytes, &module->native, 8))
		return;
	votes->count++;
	for (size_t i = 0; i < CODE_LAYOUTS; i++) {
		uint32_t size = word_of(&code, code_layouts[i].size);

		votes->hits[i] += size && word_of(&code, code_layouts[i].index) == function;
	}
}

/* True if one of the layouts, and no other, is right for each function that was looked at. */
static bool calibrate(struct v8_reader *r, struct v8_wasm_module *module,
		      const struct tree_header *tree)
{
	uint32_t own = min_u64(module->bytes.own, TABLE_MAX);
	struct votes votes = {};
	size_t right = CODE_LAYOUTS;

	for (uint32_t i = 0; i < own && votes.count < CALIBRATIONS; i += TABLE_PIECE) {
		uint64_t objects[TABLE_PIECE];
		uint32_t count = min_u64(TABLE_PIECE, own - i);

		if (target_memory__read(r->memory, objects, count * sizeof(*objects),
					tree->table + i * sizeof(*objects)))
			return false;
		for (uint32_t k = 0; k < count && votes.count < CALIBRATIONS; k++)
			vote(r, module, module->bytes.imported + i + k, objects[k], &votes);
	}
	for (size_t i = 0; i < CODE_LAYOUTS; i++) {
		if (!votes.count || votes.hits[i] != votes.count)
			continue;
		if (right != CODE_LAYOUTS)
			return false;
		right = i;
	}
	if (right == CODE_LAYOUTS)
		return false;
	module->size_at = code_layouts[right].size;
	module->index_at = code_layouts[right].index;
	module->inlined_at = code_layouts[right].inlined;
	return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* 0; -ENODATA: the code ends before the address, or is none of a function. */
static int function_of(const struct v8_wasm_module *module, const struct code *code, uint64_t start,
		       uint64_t address, struct v8_wasm_function *function)
{
	uint32_t index = word_of(code, module->index_at);

	if (address - start >= word_of(code, module->size_at) || index < module->bytes.imported ||
	    index - module->bytes.imported >= module->bytes.own)
		return -ENODATA;
	function->number = index;
	function->is_start = address == start;
	function->has_inlined = module->inlined_at && word_of(code, module->inlined_at);
	return 0;
}

static int code_at(struct v8_reader *r, struct v8_wasm_module *module,
		   const struct tree_header *tree, uint64_t address,
		   struct v8_wasm_function *function)
{
	const struct wasm_code *fresh;
	struct tree_node node = {};
	struct code code;
	int err = find_node(r, module, tree, address, &node);

	if (!err && read_code(r, module, node.value, node.key, &code) &&
	    !function_of(module, &code, node.key, address, function))
		return 0;
	if (err && err != -ENODATA)
		return err;
	err = read_fresh(r, module, tree);
	if (err)
		return err;
	fresh = find_fresh(module, address);
	if (!fresh || !read_code(r, module, fresh->object, fresh->start, &code))
		return -ENODATA;
	return function_of(module, &code, fresh->start, address, function);
}

/* Functions call each other through a table of jumps, each to the beginning of a function. */
static bool follow_jump(struct v8_reader *r, uint64_t address, uint64_t *target)
{
	struct x86_instruction jump;
	uint8_t code[JUMP_BYTES];

	if (target_memory__read(r->memory, code, sizeof(code), address) ||
	    !x86_decode(code, sizeof(code), &jump) || jump.effect != X86_JUMP)
		return false;
	*target = address + jump.size + (uint64_t)(int64_t)jump.amount;
	return true;
}

static int look_up(struct v8_reader *r, struct v8_wasm_module *module, uint64_t address,
		   bool is_leaf, struct v8_wasm_function *function)
{
	struct tree_header tree;
	uint64_t target;
	int err = read_tree(r, module, &tree);

	if (err)
		return err;
	module->is_calibrated = module->is_calibrated || calibrate(r, module, &tree);
	if (!module->is_calibrated)
		return -ENODATA;
	err = code_at(r, module, &tree, address, function);
	if (err != -ENODATA || !is_leaf || !follow_jump(r, address, &target))
		return err;
	err = code_at(r, module, &tree, target, function);
	return !err && !function->is_start ? -ENODATA : err;
}

int v8_wasm__function(struct v8_wasm *w, struct v8_reader *r, uint64_t instance, uint64_t address,
		      bool is_leaf, struct v8_wasm_function *function)
{
	const uint64_t place = address >> NEAR_BITS;
	struct v8_wasm_module *module;
	int err = find_module(w, r, instance, &module)
			  ?: look_up(r, module, address, is_leaf, function);

	if (!err)
		w->places[place & (PLACES - 1)] = place + 1;
	return err;
}

static bool is_place(const struct v8_wasm *w, uint64_t place)
{
	return w->places[place & (PLACES - 1)] == place + 1;
}

/* What V8 reserves begins anywhere, so wrappers may be in the megabyte beside that of the functions. */
bool v8_wasm__is_near(const struct v8_wasm *w, uint64_t address)
{
	const uint64_t place = address >> NEAR_BITS;

	return is_place(w, place) || is_place(w, place + 1) || (place && is_place(w, place - 1));
}

int v8_wasm__describe(struct v8_wasm *w, struct v8_reader *r, uint64_t instance, uint32_t function,
		      struct managed_function *f)
{
	const struct v8_wasm_module *module = known_module(w, instance);
	int err;

	if (!module)
		return -ENODATA;
	memcpy(f->file, module->url, sizeof(f->file));
	err = wasm_bytes__name(&module->bytes, r->memory, function, f->name, sizeof(f->name));
	if (err == -ENODATA) {
		snprintf(f->name, sizeof(f->name), "wasm-function[%u]", function);
		err = 0;
	}
	return err;
}
