/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/firefox_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "formats/in/firefox.h"
#include "formats/in/import.h"

#define NO_CHAIN    UINT32_MAX
#define ADDRESSES   (1LL << 53)
#define LINES_MAX   (1u << 24) /* of all inline chains: each repeats what it is inlined into */
#define COLUMNS_MAX 9
#define AMBIGUOUS   " (or another function)" /* our own */

/* ---- libraries and categories ---------------------------------------------------------------- */

static enum dso_kind kind_of_lib(const char *name)
{
	if (!strncmp(name, "[kernel", 7))
		return DSO_KERNEL;
	return strcmp(name, "[vdso]") ? DSO_FILE : DSO_VDSO;
}

static int add_lib(void *context, struct json_value value)
{
	struct firefox_common *common = context;
	_cleanup_json_ struct json_tree *tree = NULL;
	int err = json_tree__parse(common->text, value, &tree);
	const char *name, *path;
	struct firefox_lib lib;
	struct profile_dso dso;

	if (err)
		return err;
	name = json_tree__string(tree, "name", "");
	path = json_tree__string(tree, "path", "");
	lib.kind = kind_of_lib(name);
	dso = (struct profile_dso){
		.kind = lib.kind,
		.path = profile_builder__string(common->b, *path ? path : name),
		.name = profile_builder__string(common->b, *name ? name : path),
		.is_library = is_library_path(name),
		.file_state = FILE_STATE_UNOPENED,
		.symbol_state = SYMBOL_STATE_RESOLVED,
	};
	dso.build_id_size = (uint8_t)parse_hex_bytes(json_tree__string(tree, "codeId", ""),
						     dso.build_id, sizeof(dso.build_id));
	lib.dso = profile_builder__dso(common->b, &dso);
	return lib.dso.v ? vec_push(&common->libs, lib) : -ENOMEM;
}

int firefox_common__libs(struct firefox_common *common, struct json_value libs)
{
	common->libs.count = 0;
	return json_each(common->text, libs, add_lib, common);
}

/* Ours, samply's and Firefox's own. */
static const struct {
	const char *name;
	enum profile_category category;
} category_names[] = {
	{"User", CATEGORY_USER},    {"Kernel", CATEGORY_KERNEL}, {"Libraries", CATEGORY_LIBRARY},
	{"JIT", CATEGORY_JIT},	    {"Native", CATEGORY_USER},	 {"JavaScript", CATEGORY_JIT},
	{"Regular", CATEGORY_USER},
};

static struct firefox_subcategory subcategory_of(const char *name)
{
	struct firefox_subcategory found = {};

	for (int context = CONTEXT_NONE + 1; context < CONTEXT_COUNT; context++)
		if (!strcmp(name, sample_context_name((enum sample_context)context)))
			return (struct firefox_subcategory){.context = context};
	for (unsigned int tier = 0; tier < CODE_TIER_COUNT; tier++) {
		const char *text = tier ? code_tier_text(tier) : "Other";
		size_t size = strlen(text);

		if (strncmp(name, text, size))
			continue;
		if (!name[size])
			return (struct firefox_subcategory){.tier = tier};
		if (!strcmp(name + size, AMBIGUOUS))
			return (struct firefox_subcategory){.tier = tier, .ambiguous = true};
	}
	return found;
}

static int add_subcategories(struct firefox_common *common, struct json_value value,
			     struct firefox_category *category)
{
	struct json_walk walk;
	int more = json_walk__init(&walk, common->text, value.at, JSON_ARRAY);

	category->first_subcategory = (uint32_t)common->subcategories.count;
	while (!more && (more = json_walk__next(&walk)) > 0) {
		_cleanup_free_ char *name = NULL;

		more = json_string_copy(common->text, walk.value, &name);
		if (!more)
			more = vec_push(&common->subcategories, subcategory_of(name));
	}
	category->subcategory_count = (uint32_t)common->subcategories.count -
				      category->first_subcategory;
	return more;
}

static int add_category(void *context, struct json_value value)
{
	struct firefox_common *common = context;
	struct firefox_category category = {};
	struct json_value name, subcategories;
	_cleanup_free_ char *text = NULL;
	int err = json_members(common->text, value, {"name", &name},
			       {"subcategories", &subcategories})
			  ?: json_string_copy(common->text, name, &text);

	if (err)
		return err;
	/* the waits of record --wall are no CPU samples, either */
	category.is_idle = !strcmp(text, "Idle") || !strncmp(text, "Waiting: ", 9);
	for (size_t i = 0; i < sizeof(category_names) / sizeof(*category_names); i++)
		if (!strcmp(text, category_names[i].name))
			category.category = category_names[i].category;
	if (subcategories.at)
		err = add_subcategories(common, subcategories, &category);
	return err ? err : vec_push(&common->categories, category);
}

int firefox_common__categories(struct firefox_common *common, struct json_value categories)
{
	return json_each(common->text, categories, add_category, common);
}

void firefox_common__fini(struct firefox_common *common)
{
	frames__fini(&common->frames);
	vec_free(&common->categories);
	vec_free(&common->subcategories);
	vec_free(&common->libs);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* A column and where its numbers go: null and -1 are FIREFOX_NONE, those not in 0..limit - 1 FIREFOX_BAD. */
struct column_spec {
	const char *name;
	void *out; /* a firefox_column, or if the limit is ADDRESSES firefox_addresses */
	int64_t limit;
	bool required; /* rows without it are out of range */
};

static int32_t at(const firefox_column *column, uint32_t index)
{
	return index < column->count ? column->data[index] : FIREFOX_NONE;
}

static int add_number(const struct column_spec *spec, int64_t v)
{
	return spec->limit == ADDRESSES ? vec_push((firefox_addresses *)spec->out, v)
					: vec_push((firefox_column *)spec->out, (int32_t)v);
}

/* What the first column has no row for is left out; a row that this one lacks is out of range. */
static int fit_column(struct firefox_common *common, const struct column_spec *spec, size_t count,
		      size_t rows)
{
	int err = 0;

	common->frames.left_out[LEFT_OUT_NUMBERS] += count > rows ? count - rows : rows - count;
	for (; count < rows && !err; count++)
		err = add_number(spec, FIREFOX_BAD);
	if (count > rows && spec->limit == ADDRESSES)
		((firefox_addresses *)spec->out)->count = rows;
	else if (count > rows)
		((firefox_column *)spec->out)->count = rows;
	return err;
}

/* The first column of a table has its number of rows. */
static int read_column(struct firefox_common *common, struct json_value value,
		       const struct column_spec *spec, bool *is_first, size_t *rows)
{
	struct json_column column;
	struct json_number number;
	size_t count = 0;
	int more;

	if (json_type(value) != JSON_ARRAY) /* a column of an older or newer format */
		return 0;
	more = json_column__init(&column, common->text, value);
	for (; !more && (more = json_column__next(&column, &number)) > 0; count++) {
		int64_t v = FIREFOX_NONE;

		/* JavaScript writes fractions and huge numbers */
		if (!number.is_null &&
		    (json_scaled(&number, 0, &v) || v < FIREFOX_NONE || v >= spec->limit)) {
			common->frames.left_out[LEFT_OUT_NUMBERS]++;
			v = FIREFOX_BAD;
		}
		more = add_number(spec, v);
	}
	if (more)
		return more;
	*rows = *is_first ? count : *rows;
	*is_first = false;
	return fit_column(common, spec, count, *rows);
}

/* The columns of a table, all with the same number of rows; of a missing table none. */
static int read_table(struct firefox_common *common, struct json_value table,
		      const struct column_spec *specs, size_t count, size_t *rows)
{
	struct json_value values[COLUMNS_MAX];
	struct json_member wanted[COLUMNS_MAX + 1] = {};
	bool is_first = true;
	int err;

	*rows = 0;
	if (json_type(table) != JSON_OBJECT)
		return 0;
	for (size_t i = 0; i < count; i++)
		wanted[i] = (struct json_member){specs[i].name, &values[i]};
	err = json_find_members(common->text, table, wanted);
	for (size_t i = 0; i < count && !err; i++)
		err = read_column(common, values[i], &specs[i], &is_first, rows);
	for (size_t i = 0; i < count && !err; i++)
		if (specs[i].required && json_type(values[i]) != JSON_ARRAY)
			err = fit_column(common, &specs[i], 0, *rows);
	return err;
}

#define READ_TABLE(in, table, specs, rows)                                                         \
	read_table((in)->common, table, specs, sizeof(specs) / sizeof(*(specs)), rows)

static int add_string(void *context, struct json_value value)
{
	struct firefox_in *in = context;

	return vec_push(&in->strings, (struct firefox_string){.value = value});
}

static int read_strings(struct firefox_in *in, struct json_value strings)
{
	return json_type(strings) == JSON_ARRAY
		       ? json_each(in->common->text, strings, add_string, in)
		       : 0;
}

int firefox_in__string(struct firefox_in *in, int32_t number, struct string_id *id)
{
	struct firefox_string *s;
	_cleanup_free_ char *copy = NULL;
	int err = 0;

	*id = (struct string_id){0};
	if (number < 0)
		return 0;
	s = &in->strings.data[number];
	if (!s->is_read) {
		err = json_string_copy(in->common->text, s->value, &copy);
		if (!err)
			s->id = profile_builder__string(in->common->b, copy);
		s->is_read = !err;
	}
	*id = s->id;
	return err;
}

/* ---- the tables ------------------------------------------------------------------------------ */

struct tables {
	struct json_value stacks, frames, funcs, resources, natives, sources, strings;
};

static int read_funcs(struct firefox_in *in, const struct tables *t, size_t *funcs)
{
	const int64_t texts = (int64_t)in->strings.count;
	size_t resources = 0, natives = 0, sources = 0;
	const struct column_spec resource[] = {{"lib", &in->resource_lib, INT32_MAX, false}};
	const struct column_spec source[] = {{"filename", &in->source_file, texts, false}};
	const struct column_spec native[] = {
		{"libIndex", &in->native_lib, INT32_MAX, false},
		{"address", &in->native_address, ADDRESSES, false},
		{"functionSize", &in->native_size, INT32_MAX, false},
	};
	int err = 0;

	if (t->resources.at)
		err = READ_TABLE(in, t->resources, resource, &resources);
	if (!err && t->sources.at)
		err = READ_TABLE(in, t->sources, source, &sources);
	if (!err && t->natives.at)
		err = READ_TABLE(in, t->natives, native, &natives);
	if (err)
		return err;
	const struct column_spec func[] = {
		{"name", &in->func_name, texts, true},
		/* without a library its row may be missing in that column */
		{"resource", &in->func_resource, INT32_MAX, false},
		{"source", &in->func_source, (int64_t)sources, false},
		{"fileName", &in->func_file, texts, false},
		{"lineNumber", &in->func_line, INT32_MAX, false},
		{"columnNumber", &in->func_column, INT32_MAX, false},
	};

	return READ_TABLE(in, t->funcs, func, funcs);
}

static bool is_idle(const struct firefox_in *in, uint32_t frame)
{
	int32_t category = at(&in->frame_category, frame);

	return category >= 0 && in->common->categories.data[category].is_idle;
}

static int read_frames(struct firefox_in *in, const struct tables *t, size_t funcs, size_t *frames)
{
	int64_t categories = (int64_t)in->common->categories.count;
	const struct column_spec frame[] = {
		{"func", &in->frame_func, (int64_t)funcs, true},
		{"category", &in->frame_category, categories ?: INT32_MAX, false},
		{"subcategory", &in->frame_subcategory, INT32_MAX, false},
		{"line", &in->frame_line, INT32_MAX, false},
		{"column", &in->frame_column, INT32_MAX, false},
		{"nativeSymbol", &in->frame_native, (int64_t)in->native_lib.count, false},
		{"inlineDepth", &in->frame_depth, INT32_MAX, false},
		{"lib", &in->frame_lib, INT32_MAX, false},
		{"address", &in->frame_address, ADDRESSES, false},
	};

	int err = READ_TABLE(in, t->frames, frame, frames);

	if (!categories) /* of old files they are bits of a list of their own */
		in->frame_category.count = 0;
	for (uint32_t i = 0; i < *frames && !err && !in->has_idle; i++)
		in->has_idle = is_idle(in, i);
	return err;
}

/* The caller of a stack; FIREFOX_BAD: none that comes before it, so there is no cycle. */
static int32_t caller_in(const struct firefox_in *in, size_t stack, bool offsets)
{
	int32_t prefix = in->stack_prefix.data[stack];

	if (prefix == FIREFOX_NONE || (offsets && !prefix))
		return FIREFOX_NONE;
	if (prefix < 0 || (size_t)prefix >= stack + offsets)
		return FIREFOX_BAD;
	return offsets ? (int32_t)stack - prefix : prefix;
}

/* A stack of a frame that is damaged, or without its caller, has no frame, and so have those above it. */
static void settle_stack(struct firefox_in *in, size_t stack, bool offsets)
{
	int32_t *frame = &in->stack_frame.data[stack], caller = caller_in(in, stack, offsets);

	in->common->frames.left_out[LEFT_OUT_MISSING_CALLERS] += caller == FIREFOX_BAD;
	if (caller == FIREFOX_BAD || (caller >= 0 && in->stack_frame.data[caller] < 0) ||
	    (*frame >= 0 && in->frame_func.data[*frame] < 0))
		*frame = FIREFOX_NONE;
	in->stack_prefix.data[stack] = caller >= 0 ? caller : FIREFOX_NONE;
}

int firefox_in__add_stacks(struct firefox_in *in, size_t count)
{
	int err = 0;

	while (in->stacks.count < count && !err)
		err = vec_push(&in->chain_of_stack, NO_CHAIN)
			      ?: vec_push(&in->stacks, (struct stack_id){0});
	return err;
}

static int read_stacks(struct firefox_in *in, const struct tables *t, size_t frames)
{
	firefox_column offset = {};
	const struct column_spec stack[] = {
		{"frame", &in->stack_frame, (int64_t)frames, true},
		{"prefix", &in->stack_prefix, INT32_MAX, false},
		{"prefixOffset", &offset, INT32_MAX, false},
	};
	size_t rows;
	int err = READ_TABLE(in, t->stacks, stack, &rows);
	bool offsets = offset.data != NULL;

	if (!err && offsets && in->stack_prefix.data)
		err = json_fail(in->common->text, t->stacks.at, -EBADMSG,
				"the stackTable has both prefix and prefixOffset");
	if (offsets && !err) {
		memcpy(&in->stack_prefix, &offset, sizeof(offset));
		offset = (firefox_column){};
	}
	if (!err && !in->stack_prefix.data)
		err = fit_column(in->common, &stack[1], 0, rows);
	vec_free(&offset);
	for (size_t i = 0; i < rows && !err; i++)
		settle_stack(in, i, offsets);
	return err ?: firefox_in__add_stacks(in, rows);
}

#define hash_chain(chain)   hash_u64((uint64_t)(chain)->parent << 32 | (chain)->frame)
#define is_same_chain(a, b) ((a)->parent == (b)->parent && (a)->frame == (b)->frame)

MAP_FUNCTIONS_OF(firefox_chains, struct firefox_chain, hash_chain, is_same_chain);

int firefox_in__read(struct firefox_in *in, struct firefox_common *common, struct json_value tables,
		     struct json_value strings, struct json_value sources)
{
	struct tables t;
	size_t funcs, frames;
	int err;

	*in = (struct firefox_in){.common = common};
	err = json_members(common->text, tables, {"stackTable", &t.stacks},
			   {"frameTable", &t.frames}, {"funcTable", &t.funcs},
			   {"resourceTable", &t.resources}, {"nativeSymbols", &t.natives},
			   {"sources", &t.sources}, {"stringArray", &t.strings});
	if (!err && json_type(t.stacks) != JSON_OBJECT)
		return json_fail(common->text, common->text->start, -ENOENT,
				 "there is no stackTable");
	if (!err && !t.strings.at)
		t.strings = strings;
	if (!err && !t.sources.at)
		t.sources = sources;
	if (!err)
		err = read_strings(in, t.strings)
			?: read_funcs(in, &t, &funcs)
			?: read_frames(in, &t, funcs, &frames)
			?: read_stacks(in, &t, frames);
	if (err)
		firefox_in__fini(in);
	return err;
}

void firefox_in__fini(struct firefox_in *in)
{
	firefox_column *columns[] = {
		&in->stack_frame,  &in->stack_prefix,	   &in->frame_func,  &in->frame_category,
		&in->frame_line,   &in->frame_subcategory, &in->frame_depth, &in->frame_column,
		&in->frame_native, &in->frame_lib,	   &in->func_name,   &in->func_resource,
		&in->func_source,  &in->func_file,	   &in->func_line,   &in->func_column,
		&in->resource_lib, &in->native_lib,	   &in->native_size, &in->source_file,
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		vec_free(columns[i]);
	vec_free(&in->strings);
	vec_free(&in->frame_address);
	vec_free(&in->native_address);
	firefox_chains__fini(&in->chains);
	vec_free(&in->chain_of_stack);
	vec_free(&in->stacks);
	vec_free(&in->path);
	vec_free(&in->lines);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int64_t address_of(const struct firefox_in *in, uint32_t frame)
{
	return frame < in->frame_address.count ? in->frame_address.data[frame] : FIREFOX_NONE;
}

/* Its library: a column of the frame itself (from 70 on), or its function's resource. */
static const struct firefox_lib *lib_of(const struct firefox_in *in, uint32_t frame)
{
	int32_t lib = at(&in->frame_lib, frame), resource, native = at(&in->frame_native, frame);

	if (lib < 0) {
		resource = at(&in->func_resource, (uint32_t)in->frame_func.data[frame]);
		lib = resource < 0 ? FIREFOX_NONE : at(&in->resource_lib, (uint32_t)resource);
	}
	if (lib < 0 && native >= 0)
		lib = at(&in->native_lib, (uint32_t)native);
	return lib >= 0 && (size_t)lib < in->common->libs.count ? &in->common->libs.data[lib]
								: NULL;
}

/* Of a frame; NULL: it is none that has a meaning here. */
static const struct firefox_subcategory *subcategory_at(const struct firefox_in *in,
							uint32_t number)
{
	int32_t category = at(&in->frame_category, number),
		sub = at(&in->frame_subcategory, number);
	const struct firefox_category *c;

	if (category < 0 || sub < 0)
		return NULL;
	c = &in->common->categories.data[category];
	return (uint32_t)sub < c->subcategory_count
		       ? &in->common->subcategories.data[c->first_subcategory + (uint32_t)sub]
		       : NULL;
}

static void set_category(const struct firefox_in *in, uint32_t number, struct frame *frame)
{
	int32_t category = at(&in->frame_category, number);
	const struct firefox_subcategory *s = subcategory_at(in, number);

	frame->category = CATEGORY_OTHER;
	if (category < 0)
		return;
	frame->category = in->common->categories.data[category].category;
	if (frame->category == CATEGORY_JIT && s) {
		frame->tier = s->tier;
		frame->ambiguous = s->ambiguous;
	}
}

enum sample_context firefox_in__context(const struct firefox_in *in, uint32_t number)
{
	const struct firefox_subcategory *s =
		subcategory_at(in, (uint32_t)in->stack_frame.data[number]);

	return s ? s->context : CONTEXT_NONE;
}

static void make_frame(struct firefox_in *in, uint32_t number, struct process_id process,
		       struct frame *frame)
{
	const struct firefox_lib *lib = lib_of(in, number);
	int64_t address = address_of(in, number);

	*frame = (struct frame){.elf_address = PROFILE_UNKNOWN_ADDRESS};
	set_category(in, number, frame);
	if (lib) {
		frame->dso = lib->dso;
		if (address >= 0)
			frame->address = frame->elf_address = (uint64_t)address;
		return;
	}
	frame->process = process;
	frame->dso = frames__dso(&in->common->frames,
				 frame->category == CATEGORY_JIT ? DSO_JIT : DSO_UNKNOWN, "", 0);
}

static int file_of(struct firefox_in *in, uint32_t func, struct string_id *file)
{
	int32_t source = at(&in->func_source, func);
	int32_t text = source >= 0 ? at(&in->source_file, (uint32_t)source)
				   : at(&in->func_file, func);
	int err = firefox_in__string(in, text, file);
	struct firefox_string *s;

	if (err || !file->v)
		return err;
	s = &in->strings.data[text];
	if (!s->has_file)
		s->file = frames__file(&in->common->frames,
				       profile_builder__get_string(in->common->b, s->id));
	s->has_file = true;
	*file = s->file;
	return 0;
}

static uint32_t position(int32_t number)
{
	return number > 0 ? (uint32_t)number : 0;
}

/* The function of a frame, at its line. `is_outermost`: the machine code belongs to it. */
static int make_line(struct firefox_in *in, uint32_t number, const struct frame *frame,
		     bool is_outermost, struct profile_line *line)
{
	uint32_t func = (uint32_t)in->frame_func.data[number];
	int32_t native = is_outermost ? at(&in->frame_native, number) : FIREFOX_NONE;
	struct profile_function function = {
		.dso = frame->dso,
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_line = position(at(&in->func_line, func)),
		.definition_column = position(at(&in->func_column, func)),
	};
	int err = firefox_in__string(in, at(&in->func_name, func), &function.name)
			  ?: file_of(in, func, &function.definition_file);

	if (err)
		return err;
	if (!function.name.v)
		function.name = profile_builder__string(
			in->common->b,
			at(&in->func_name, func) == FIREFOX_BAD ? "[unknown]" : "(anonymous)");
	if (native >= 0 && (size_t)native < in->native_address.count) {
		function.address = (uint64_t)in->native_address.data[native];
		function.size = position(at(&in->native_size, (uint32_t)native));
	}
	*line = (struct profile_line){
		.function = profile_builder__function(in->common->b, &function),
		.line = position(at(&in->frame_line, number)),
		.column = position(at(&in->frame_column, number)),
	};
	line->file = (struct string_id){line->line ? function.definition_file.v : 0};
	return line->function.v ? 0 : -ENOMEM;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Is frame `inner` inlined into frame `outer`, which called it? */
static bool is_inlined(const struct firefox_in *in, uint32_t inner, uint32_t outer)
{
	int32_t depth = at(&in->frame_depth, inner);

	return depth > 0 && at(&in->frame_depth, outer) == depth - 1 &&
	       address_of(in, inner) == address_of(in, outer) &&
	       at(&in->frame_native, inner) == at(&in->frame_native, outer);
}

static bool continues(const struct firefox_in *in, uint32_t stack)
{
	int32_t prefix = in->stack_prefix.data[stack];

	return prefix >= 0 && is_inlined(in, (uint32_t)in->stack_frame.data[stack],
					 (uint32_t)in->stack_frame.data[prefix]);
}

static int intern_chain(struct firefox_in *in, uint32_t parent, uint32_t frame, uint32_t *chain)
{
	struct firefox_chain key = {.parent = parent, .frame = frame, .length = 1};

	if (parent != NO_CHAIN)
		key.length = in->chains.data[parent].length + 1;
	if (key.length > FRAME_LINES_MAX)
		return json_fail(in->common->text, in->common->text->start, -E2BIG,
				 "more than %u functions inlined into one another",
				 FRAME_LINES_MAX);
	return map_number(&in->chains, firefox_chains__need(&in->chains, &key, NULL), chain);
}

/* The chain of a stack's leaf: its own frame, and those that it is inlined into. */
static int chain_of(struct firefox_in *in, uint32_t stack, uint32_t *chain)
{
	uint32_t first = stack, length = 1, parent = NO_CHAIN;
	int err = 0;

	while (in->chain_of_stack.data[first] == NO_CHAIN && continues(in, first) &&
	       length++ <= FRAME_LINES_MAX)
		first = (uint32_t)in->stack_prefix.data[first];
	/* downwards again: at most FRAME_LINES_MAX levels, each found by walking up */
	for (; length > 0 && !err; length--) {
		uint32_t at_stack = stack;

		for (uint32_t up = 1; up < length; up++)
			at_stack = (uint32_t)in->stack_prefix.data[at_stack];
		if (in->chain_of_stack.data[at_stack] == NO_CHAIN)
			err = intern_chain(in, parent, (uint32_t)in->stack_frame.data[at_stack],
					   &in->chain_of_stack.data[at_stack]);
		parent = in->chain_of_stack.data[at_stack];
	}
	*chain = parent;
	return err;
}

/* samply and Firefox call code without a symbol by its address in the library: "0x12ab". */
static int is_unnamed(struct firefox_in *in, const struct firefox_chain *chain, bool *unnamed)
{
	int64_t address = address_of(in, chain->frame);
	struct string_id id;
	char name[32];
	int err = firefox_in__string(
		in, at(&in->func_name, (uint32_t)in->frame_func.data[chain->frame]), &id);

	snprintf(name, sizeof(name), "0x%" PRIx64, (uint64_t)address);
	*unnamed = !err && chain->parent == NO_CHAIN && lib_of(in, chain->frame) && address >= 0 &&
		   !strcmp(name, profile_builder__get_string(in->common->b, id));
	return err;
}

static int location_of(struct firefox_in *in, uint32_t number, struct process_id process,
		       struct location_id *location)
{
	struct frame frame;
	bool unnamed;
	int err;

	*location = in->chains.data[number].location;
	if (location->v)
		return 0;
	in->common->inlined += in->chains.data[number].length - 1;
	if (in->common->inlined > LINES_MAX)
		return json_fail(in->common->text, in->common->text->start, -E2BIG,
				 "its inline chains have more than %u functions in all", LINES_MAX);
	make_frame(in, in->chains.data[number].frame, process, &frame);
	in->lines.count = 0;
	err = is_unnamed(in, &in->chains.data[number], &unnamed);
	for (uint32_t at_chain = unnamed ? NO_CHAIN : number; at_chain != NO_CHAIN && !err;) {
		const struct firefox_chain *chain = &in->chains.data[at_chain];
		struct profile_line line;

		err = make_line(in, chain->frame, &frame, chain->parent == NO_CHAIN, &line)
			      ?: vec_push(&in->lines, line);
		at_chain = chain->parent;
	}
	if (err)
		return err;
	*location = frames__location(&in->common->frames, &frame, in->lines.data,
				     (uint32_t)in->lines.count);
	in->chains.data[number].location = *location;
	return location->v ? 0 : -ENOMEM;
}

/* The caller's stack: the parent of the outermost of the frames that are one location. -1: none. */
static int32_t caller_of(const struct firefox_in *in, uint32_t stack)
{
	while (continues(in, stack))
		stack = (uint32_t)in->stack_prefix.data[stack];
	return in->stack_prefix.data[stack];
}

static int make_stack(struct firefox_in *in, uint32_t number, struct process_id process)
{
	int32_t caller = caller_of(in, number);
	struct location_id location;
	uint32_t chain;
	int err = chain_of(in, number, &chain) ?: location_of(in, chain, process, &location);

	if (err)
		return err;
	in->stacks.data[number] = profile_builder__stack(
		in->common->b, caller >= 0 ? in->stacks.data[caller] : (struct stack_id){0},
		location);
	if (!in->stacks.data[number].v)
		return -ENOMEM;
	if (profile_builder__get_stack(in->common->b, in->stacks.data[number])->depth >
	    IMPORT_DEPTH_MAX)
		return json_fail(in->common->text, in->common->text->start, -E2BIG,
				 "stack %u is deeper than %u frames", number, IMPORT_DEPTH_MAX);
	return 0;
}

int firefox_in__stack(struct firefox_in *in, uint32_t number, struct process_id process,
		      struct stack_id *stack, bool *idle)
{
	int err = 0;

	in->path.count = 0;
	for (int32_t next = (int32_t)number; next >= 0 && !in->stacks.data[next].v && !err;
	     next = caller_of(in, (uint32_t)next))
		err = vec_push(&in->path, (uint32_t)next);
	for (size_t i = in->path.count; i-- > 0 && !err;)
		err = make_stack(in, in->path.data[i], process);
	if (err)
		return err;
	*stack = in->stacks.data[number];
	*idle = in->has_idle && is_idle(in, (uint32_t)in->stack_frame.data[number]);
	return 0;
}
