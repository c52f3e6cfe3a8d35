/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a Firefox profile as locations and stacks: shared by all threads (from format 60
 * on), or of one thread.
 *
 * Tables are kept as numbers and checked when read; a sample that needs a stack has it made.
 * Consecutive frames with one address and rising inlineDepth are one location with an inline chain.
 */
#ifndef FORMATS_IN_FIREFOX_H
#define FORMATS_IN_FIREFOX_H

#include "formats/in/frames.h"
#include "formats/in/json.h"

#define FIREFOX_NONE (-1)
#define FIREFOX_BAD  (-2) /* out of range: counted, and none as well */

struct firefox_category {
	enum profile_category category;
	bool is_idle;
	uint32_t first_subcategory, subcategory_count;
};

struct firefox_subcategory {
	enum code_tier tier;
	bool ambiguous;
	enum sample_context context;
};

struct firefox_lib {
	struct dso_id dso;
	enum dso_kind kind;
};

/* Data of the whole file. */
struct firefox_common {
	const struct json_text *text;
	struct profile_builder *b;
	struct frames frames;
	VEC(struct firefox_category) categories;
	VEC(struct firefox_subcategory) subcategories;
	VEC(struct firefox_lib) libs;
	uint64_t inlined; /* functions of inline chains without the outermost of each */
};

typedef VEC(int32_t) firefox_column;
typedef VEC(int64_t) firefox_addresses;

struct firefox_string {
	struct json_value value;
	/* once they are needed: the text, and the path of a file with this URL */
	struct string_id id, file;
	bool is_read, has_file;
};

/* Frames below one another at one address: another inline level than that of its parent. */
struct firefox_chain {
	uint32_t parent, frame, length;
	struct location_id location;
};
MAP_TYPE(firefox_chains, struct firefox_chain);

struct firefox_in {
	struct firefox_common *common;
	VEC(struct firefox_string) strings;
	firefox_column stack_frame, stack_prefix;
	firefox_column frame_func, frame_category, frame_subcategory, frame_line, frame_column,
		frame_native, frame_depth, frame_lib;
	bool has_idle; /* a frame is of the category Idle */
	firefox_addresses frame_address, native_address;
	firefox_column func_name, func_resource, func_source, func_file, func_line, func_column;
	firefox_column resource_lib, native_lib, native_size, source_file;
	struct firefox_chains chains;
	VEC(uint32_t) chain_of_stack;
	VEC(struct stack_id) stacks; /* 0: not made yet */
	VEC(uint32_t) path;	     /* scratch */
	VEC(struct profile_line) lines;
};

/* The context of a sample, by the subcategory of the innermost frame of its stack. */
enum sample_context firefox_in__context(const struct firefox_in *in, uint32_t number);

#endif
