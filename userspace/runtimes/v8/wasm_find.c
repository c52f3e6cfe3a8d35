/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/wasm_find.h"

#include <errno.h>
#include <string.h>

#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/wasm.h"
#include "runtimes/v8/wasm_bytes.h"

#define PIECE	     64u
#define MANAGED_WORD 8 /* of a Foreign: its one address, … */
#define PAIR_WORDS   8 /* … and the words read there */
#define TREE_CODE    (1u << 20)

/* Records a word that was followed. */
static int follow(struct v8_wasm_module *module, uint64_t address, uint64_t value)
{
	if (module->link_count == WASM_LINKS)
		return -ENODATA;
	module->links[module->link_count++] = (struct wasm_link){address, value};
	return 0;
}

bool wasm_module__is_there(struct v8_reader *r, const struct v8_wasm_module *module)
{
	for (unsigned int i = 0; i < module->link_count; i++) {
		const struct wasm_link *link = &module->links[i];
		uint64_t value;

		if (target_memory__word(r->memory, &value, link->address) || value != link->value)
			return false;
	}
	return module->link_count > 0;
}

/* As many words as are there. */
static size_t read_words(struct v8_reader *r, uint64_t address, uint64_t *words, size_t bytes)
{
	size_t done = 0;

	while (done < bytes &&
	       !target_memory__read(r->memory, (char *)words + done, PIECE, address + done))
		done += PIECE;
	return done / sizeof(*words);
}

/* ---- from the instance to the script --------------------------------------------------------- */

static bool has_type(struct v8_reader *r, uint64_t word, int32_t type)
{
	uint64_t map;
	int32_t found;

	return type > 0 && v8_is_object(word) && !(word >> 47) &&
	       !target_memory__word(r->memory, &map, word - 1) && map != word &&
	       !v8_reader__type(r, map, &found) && found == type;
}

static bool has_word(struct v8_reader *r, uint64_t object, uint64_t word)
{
	uint64_t words[V8_OBJECT_BYTES / 8];
	size_t count = read_words(r, object - 1, words, sizeof(words));

	for (size_t i = 1; i < count; i++)
		if (words[i] == word)
			return true;
	return false;
}

/*
 * The first field of an object that is an object of this type. It has to be the first, or to refer
 * back, because the object's size is unknown, and others may follow.
 */
static int find_field(struct v8_reader *r, uint64_t object, size_t bytes, int32_t type,
		      bool refers_back, struct v8_wasm_module *module, uint64_t *found)
{
	uint64_t words[WASM_OBJECT_BYTES / 8];
	size_t count = read_words(r, object - 1, words, bytes);

	for (size_t i = 1; i < count; i++) {
		if (!has_type(r, words[i], type) || (refers_back && !has_word(r, words[i], object)))
			continue;
		*found = words[i];
		return follow(module, object - 1 + i * sizeof(*words), words[i]);
	}
	return r->memory->reads_left ? -ENODATA : -EDQUOT;
}

/* A frame's instance has it; from V8 12 on the instance of JavaScript, to which that refers. */
static int find_module_object(struct v8_reader *r, uint64_t instance, struct v8_wasm_module *module,
			      uint64_t *found)
{
	const struct v8_layout *l = r->layout;
	uint64_t seen;
	int err;

	if (l->type_wasm_instance <= 0)
		return find_field(r, instance, WASM_OBJECT_BYTES, l->type_wasm_module, false,
				  module, found);
	err = find_field(r, instance, WASM_OBJECT_BYTES, l->type_wasm_instance, true, module,
			 &seen);
	return err ? err
		   : find_field(r, seen, V8_OBJECT_BYTES, l->type_wasm_module, false, module,
				found);
}

/* ---- the NativeModule ------------------------------------------------------------------------ */

/* Is it code whose owner is this module? */
static bool owns(struct v8_reader *r, uint64_t native, uint64_t code)
{
	uint64_t owner;

	return target_is_pointer(code) && !target_memory__word(r->memory, &owner, code) &&
	       owner == native;
}

static bool is_vector(const struct tree_header *t)
{
	return t->fresh_begin <= t->fresh_end && t->fresh_end <= t->fresh_capacity &&
	       (t->fresh_begin | t->fresh_end | t->fresh_capacity) % 8 == 0 &&
	       t->fresh_capacity - t->fresh_begin <= TREE_CODE * 8ull &&
	       target_is_pointer(t->table);
}

static bool is_tree(struct v8_reader *r, uint64_t native, uint64_t at, const struct tree_header *t)
{
	struct tree_node node;
	uint64_t code;

	if ((uint32_t)t->color || !is_vector(t) || t->count > TREE_CODE)
		return false;
	if (!t->count)
		return !t->parent && t->left == at && t->right == at &&
		       t->fresh_begin < t->fresh_end &&
		       !target_memory__word(r->memory, &code, t->fresh_begin) &&
		       owns(r, native, code);
	if (!target_is_pointer(t->parent) || !target_is_pointer(t->left) ||
	    !target_is_pointer(t->right))
		return false;
	if (target_memory__read(r->memory, &node, sizeof(node), t->parent) || node.parent != at)
		return false;
	return !target_memory__read(r->memory, &node, sizeof(node), t->left) && !node.left &&
	       owns(r, native, node.value);
}

/* Finds the module's bytes: their address and size are side by side. */
static int find_bytes(struct v8_reader *r, const uint64_t *words, size_t count,
		      struct v8_wasm_module *module)
{
	static const unsigned char magic[8] = {0, 'a', 's', 'm', 1};

	for (size_t i = 0; i < count; i++) {
		uint64_t pair[2], first;
		int err;

		if (!target_is_pointer(words[i]) ||
		    target_memory__read(r->memory, pair, sizeof(pair), words[i]) ||
		    pair[0] < 4096 || pair[0] >> 47 || pair[1] < sizeof(magic) ||
		    pair[1] > WASM_BYTES_MAX || target_memory__word(r->memory, &first, pair[0]) ||
		    memcmp(&first, magic, sizeof(magic)))
			continue;
		err = wasm_bytes__open(&module->bytes, r->memory, pair[0], pair[1]);
		if (err != -EINVAL)
			return err;
	}
	return r->memory->reads_left ? -ENODATA : -EDQUOT;
}

static int try_native(struct v8_reader *r, uint64_t native, struct v8_wasm_module *module)
{
	uint64_t words[WASM_OBJECT_BYTES / 8];
	size_t count = read_words(r, native, words, sizeof(words));

	for (size_t i = 0; i + TREE_BYTES / 8 <= count; i++) {
		struct tree_header tree;

		memcpy(&tree, words + i, sizeof(tree));
		if (!is_tree(r, native, native + i * 8, &tree))
			continue;
		module->native = native;
		module->tree = native + i * 8;
		return find_bytes(r, words, count, module);
	}
	return r->memory->reads_left ? -ENODATA : -EDQUOT;
}

/* The object of a Managed<NativeModule> has the address of a shared_ptr, which has the module's. */
static int find_native(struct v8_reader *r, uint64_t managed, struct v8_wasm_module *module)
{
	uint64_t words[PAIR_WORDS], owner, native;
	unsigned int links = module->link_count;
	int err = target_memory__word(r->memory, &owner, managed - 1 + MANAGED_WORD);

	if (err)
		return err;
	if (!target_is_pointer(owner) ||
	    target_memory__read(r->memory, words, sizeof(words), owner))
		return -ENODATA;
	for (size_t i = 0; i < PAIR_WORDS; i++) {
		if (!target_is_pointer(words[i]) ||
		    target_memory__word(r->memory, &native, words[i]) || !target_is_pointer(native))
			continue;
		module->link_count = links;
		err = follow(module, managed - 1 + MANAGED_WORD, owner)
				?: follow(module, owner + i * sizeof(*words), words[i])
				?: try_native(r, native, module);
		if (err != -ENODATA)
			return err;
	}
	return r->memory->reads_left ? -ENODATA : -EDQUOT;
}

int wasm_module__find(struct v8_reader *r, uint64_t instance, struct v8_wasm_module *module)
{
	const struct v8_layout *l = r->layout;
	uint64_t object, script, name, managed;
	int err;

	if (!v8_is_object(instance) || l->type_wasm_module <= 0 || l->script_wasm <= 0)
		return -ENODATA;
	module->instance = instance;
	module->link_count = 0;
	err = find_module_object(r, instance, module, &object)
			?: find_field(r, object, V8_OBJECT_BYTES, l->type_script, false, module,
			      &script)
			?: target_memory__word(r->memory, &name, script - 1 + l->script_name)
			?: v8_string__text(r, name, module->url, sizeof(module->url));
	if (err == -EAGAIN || err == -ELOOP || err == -EINVAL)
		err = -ENODATA; /* no string, or not now */
	if (!err)
		err = target_memory__word(r->memory, &managed, script - 1 + l->script_wasm);
	if (!err)
		err = follow(module, script - 1 + l->script_wasm, managed);
	if (!err && !v8_is_object(managed))
		err = -ENODATA;
	return err ? err : find_native(r, managed, module);
}
