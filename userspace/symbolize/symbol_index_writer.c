/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/symbol_index_writer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/vec.h"
#include "base/wire.h"
#include "stream/symbol_blob.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/symbol_names.h"

#define NUMBER_SIZE 10 /* bytes of the largest */
#define RECORD_SIZE (6 * NUMBER_SIZE)
#define RECENT	    8192 /* keys of each kind whose records are known */
#define NOT_WRITTEN UINT32_MAX

struct function_key {
	uint64_t address, size;
	uint32_t name;
	struct index_place definition;
};

struct node_key {
	uint32_t function, around; /* positions */
	struct index_place call;
};

/* The position of a record or string with this hash. */
struct slot {
	uint32_t hash, position;
};

/*
 * Records of a section. Equal ones mostly follow soon: `recent` has the last ones by their keys'
 * hashes, and a record is compared with the bytes there. One that is not found is written again.
 */
struct records {
	unsigned char *data;
	size_t count, capacity; /* bytes */
	struct slot recent[RECENT];
};

/* The numbers that a place was written with, as a name and as a file. */
struct recent_place {
	const char *place;
	uint32_t name, file;
};

struct index_writer {
	size_t limit;
	index_readable_fn readable;
	VEC(struct index_segment) segments;
	VEC(struct index_block) blocks;
	VEC(uint32_t) files;
	VEC(uint32_t) name_blocks;
	struct records functions, nodes;
	VEC(unsigned char) rows, names;
	VEC(char) strings;
	char block[NAMES_BLOCK]; /* the last one of names, … */
	size_t block_size;	 /* … so far */
	struct slot recent_strings[RECENT];
	uint32_t recent_files[RECENT]; /* their numbers, by the positions of their names */
	struct recent_place recent[RECENT];
	struct index_row last;
	uint64_t row_count;
	/* The answer before: most rows differ in the innermost place alone. */
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	size_t frame_count;
	bool begun, has_gaps;
};

/* ---- life ------------------------------------------------------------------------------------ */

struct index_writer *index_writer__new(size_t limit, index_readable_fn readable)
{
	struct index_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->limit = limit;
	w->readable = readable;
	/* Position 0 is ""; the first nodes have no bytes of their own. */
	if (vec_push(&w->strings, '\0') || vec_append(&w->nodes, "\0\0", NODE_FIRST)) {
		index_writer__free(w);
		return NULL;
	}
	return w;
}

void index_writer__free(struct index_writer *w)
{
	if (!w)
		return;
	vec_free(&w->segments);
	vec_free(&w->blocks);
	vec_free(&w->files);
	vec_free(&w->name_blocks);
	vec_free(&w->functions);
	vec_free(&w->nodes);
	vec_free(&w->rows);
	vec_free(&w->strings);
	vec_free(&w->names);
	free(w);
}

int index_writer__segment(void *writer, uint64_t offset, uint64_t size, uint64_t address)
{
	struct index_writer *w = writer;

	return vec_push(&w->segments, (struct index_segment){offset, size, address});
}

/* ---- records --------------------------------------------------------------------------------- */

static size_t put_place(unsigned char *to, const struct index_place *place)
{
	size_t size = 1;

	to[0] = 0;
	if (!place->file && !place->line && !place->column)
		return size;
	size = wire_put_varint(to, (uint64_t)place->file + 1);
	size += wire_put_varint(to + size, place->line);
	return size + wire_put_varint(to + size, place->column);
}

/* The bytes of a record at position `here`; 0: it cannot be there. */
typedef size_t (*put_record_fn)(unsigned char *to, const void *key, uint32_t here);

static size_t put_function(unsigned char *to, const void *record, uint32_t here)
{
	const struct function_key *key = record;
	size_t size = wire_put_varint(to, key->name);

	(void)here;
	size += wire_put_varint(to + size, key->address + 1);
	size += wire_put_varint(to + size, key->size);
	return size + put_place(to + size, &key->definition);
}

static size_t put_node(unsigned char *to, const void *record, uint32_t here)
{
	const struct node_key *key = record;
	size_t size = wire_put_varint(to, key->function);

	if (key->around >= here)
		return 0;
	size += wire_put_varint(to + size, key->around ? here - key->around : 0);
	return key->around ? size + put_place(to + size, &key->call) : size;
}

static uint32_t hash_of(const void *key, size_t size)
{
	const uint32_t *words = key;
	uint64_t hash = 0;

	for (size_t i = 0; i < size / sizeof(*words); i++)
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 32);
	return (uint32_t)(hash >> 32);
}

static int write_record(struct index_writer *w, struct records *r, const void *key, size_t key_size,
			put_record_fn put, uint32_t *position)
{
	uint32_t hash = hash_of(key, key_size);
	struct slot *recent = &r->recent[hash % RECENT];
	unsigned char bytes[RECORD_SIZE];
	size_t size;

	*position = recent->position;
	if (recent->hash == hash) {
		size = put(bytes, key, *position);
		if (size && *position + size <= r->count &&
		    !memcmp(r->data + *position, bytes, size))
			return 0;
	}
	*position = (uint32_t)r->count;
	*recent = (struct slot){hash, *position};
	size = put(bytes, key, *position);
	return r->count + size > w->limit ? -EFBIG : vec_append(r, bytes, size);
}

/* ---- strings and names ----------------------------------------------------------------------- */

static bool is_string_at(const struct index_writer *w, uint32_t position, const char *text,
			 size_t length)
{
	const char *at = w->strings.data + position;

	return length < w->strings.count - position && !memcmp(at, text, length) && !at[length];
}

static int write_string(struct index_writer *w, const char *text, size_t length, uint32_t *position)
{
	uint32_t hash = (uint32_t)hash_bytes(text, length);
	struct slot *recent = &w->recent_strings[hash % RECENT];

	*position = recent->position;
	if (recent->hash == hash && is_string_at(w, *position, text, length))
		return 0;
	if (w->strings.count + length + 1 > w->limit)
		return -EFBIG;
	*position = (uint32_t)w->strings.count;
	*recent = (struct slot){hash, *position};
	return vec_append(&w->strings, text, length) ?: vec_push(&w->strings, '\0');
}

static int end_block(struct index_writer *w)
{
	unsigned char packed[NAMES_PACKED_MAX];
	size_t size = names_pack(w->block, w->block_size, packed);

	w->block_size = 0;
	if (w->names.count + size > w->limit || w->name_blocks.count >= NAME_BLOCKS_MAX)
		return -EFBIG;
	return vec_push(&w->name_blocks, (uint32_t)w->names.count)
		       ?: vec_append(&w->names, packed, size);
}

static int write_long_name(struct index_writer *w, const char *text, size_t length, uint32_t *name)
{
	int err = w->block_size + length >= NAMES_BLOCK ? end_block(w) : 0;

	*name = ((uint32_t)w->name_blocks.count * NAMES_BLOCK + (uint32_t)w->block_size) *
			NAME_FORMS +
		NAME_PACKED;
	memcpy(w->block + w->block_size, text, length + 1);
	w->block_size += length + 1;
	return err;
}

static int write_new_name(struct index_writer *w, const char *text, uint32_t *name)
{
	char readable[INDEX_NAME_MAX];
	uint32_t position;
	size_t length;
	int err;

	if (w->readable) {
		length = w->readable(text, readable, sizeof(readable));
		text = readable;
	} else {
		length = strlen(text);
	}
	if (length >= INDEX_NAME_MIN && length < NAMES_BLOCK)
		return write_long_name(w, text, length, name);
	err = write_string(w, text, length, &position);
	if (!err)
		*name = position * NAME_FORMS + NAME_STRING;
	return err;
}

static struct recent_place *recent_place(struct index_writer *w, const char *place)
{
	struct recent_place *recent = &w->recent[hash_u64((uintptr_t)place) % RECENT];

	if (recent->place != place)
		*recent = (struct recent_place){place, NOT_WRITTEN, NOT_WRITTEN};
	return recent;
}

static int write_name(struct index_writer *w, const char *text, uint32_t *name)
{
	struct recent_place *recent = recent_place(w, text);
	int err = recent->name == NOT_WRITTEN ? write_new_name(w, text, &recent->name) : 0;

	*name = recent->name;
	return err;
}

static int find_file(struct index_writer *w, const char *text, uint32_t *number)
{
	uint32_t position, *recent;
	int err = write_string(w, text, strlen(text), &position);

	if (err)
		return err;
	recent = &w->recent_files[position % RECENT];
	if (!*recent || w->files.data[*recent - 1] != position) {
		err = vec_push(&w->files, position);
		*recent = (uint32_t)w->files.count;
	}
	*number = *recent;
	return err;
}

static int write_file(struct index_writer *w, const char *text, uint32_t *number)
{
	struct recent_place *recent;
	int err;

	*number = 0;
	if (!text || !*text)
		return 0;
	recent = recent_place(w, text);
	err = recent->file == NOT_WRITTEN ? find_file(w, text, &recent->file) : 0;
	*number = recent->file;
	return err;
}

/* ---- functions and nodes --------------------------------------------------------------------- */

_Static_assert(sizeof(struct function_key) == 32 && sizeof(struct node_key) == 20, "no padding");

static int executing_place(struct index_writer *w, const struct symbol_frame *frame,
			   struct index_place *place)
{
	*place = (struct index_place){.line = frame->line, .column = frame->column};
	return write_file(w, frame->file, &place->file);
}

static int write_function(struct index_writer *w, const struct symbol_frame *frame,
			  uint32_t *position)
{
	struct function_key key = {
		.address = frame->function_address,
		.size = frame->function_size,
		.definition = {.line = frame->definition_line, .column = frame->definition_column}};

	return write_name(w, frame->function, &key.name)
			?: write_file(w, frame->definition_file, &key.definition.file)
			?: write_record(w, &w->functions, &key, sizeof(key), put_function, position);
}

/* The node of the innermost frame. */
static int write_nodes(struct index_writer *w, const struct symbol_frame *frames, size_t count,
		       uint32_t *position)
{
	*position = NODE_NOTHING;
	for (size_t i = count; i-- > 0;) {
		struct node_key key = {.around = *position};
		int err = write_function(w, &frames[i], &key.function);

		if (!err && i + 1 < count)
			err = executing_place(w, &frames[i + 1], &key.call);
		if (!err)
			err = write_record(w, &w->nodes, &key, sizeof(key), put_node, position);
		if (err)
			return err;
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The difference to the last row. */
static size_t put_row(const struct index_row *last, const struct index_row *row,
		      unsigned char *bytes)
{
	uint64_t step = row->address - last->address;
	size_t size = 1;

	bytes[0] = (unsigned char)(step < ROW_STEP ? step : ROW_STEP);
	if (step >= ROW_STEP)
		size += wire_put_varint(bytes + size, step);
	if (row->node != last->node) {
		bytes[0] |= ROW_NODE;
		size += wire_put_varint(bytes + size, zigzag((int64_t)row->node - last->node));
	}
	if (row->place.file != last->place.file) {
		bytes[0] |= ROW_FILE;
		size += wire_put_varint(bytes + size, row->place.file);
	}
	if (row->place.line != last->place.line) {
		bytes[0] |= ROW_LINE;
		size += wire_put_varint(bytes + size,
					zigzag((int64_t)row->place.line - last->place.line));
	}
	if (row->place.column != last->place.column) {
		bytes[0] |= ROW_COLUMN;
		size += wire_put_varint(bytes + size, row->place.column);
	}
	return size;
}

static int begin_block(struct index_writer *w, uint64_t address)
{
	w->last = (struct index_row){.address = address};
	return vec_push(&w->blocks, (struct index_block){.address = address,
							 .position = (uint32_t)w->rows.count});
}

static int add_row(struct index_writer *w, const struct index_row *row)
{
	unsigned char bytes[1 + 5 * NUMBER_SIZE];
	bool begins = !w->blocks.count || w->blocks.data[w->blocks.count - 1].count == ROWS_A_BLOCK;
	size_t size;
	int err = begins ? begin_block(w, row->address) : 0;

	if (err)
		return err;
	size = put_row(&w->last, row, bytes);
	if (w->rows.count + size > w->limit)
		return -EFBIG;
	err = vec_append(&w->rows, bytes, size);
	if (err)
		return err;
	w->blocks.data[w->blocks.count - 1].count++;
	w->row_count++;
	w->last = *row;
	return 0;
}

static bool is_same_function(const struct symbol_frame *a, const struct symbol_frame *b)
{
	return a->function == b->function && a->function_address == b->function_address &&
	       a->function_size == b->function_size && a->definition_file == b->definition_file &&
	       a->definition_line == b->definition_line &&
	       a->definition_column == b->definition_column;
}

static bool is_same_place(const struct symbol_frame *a, const struct symbol_frame *b)
{
	return a->file == b->file && a->line == b->line && a->column == b->column;
}

/* Is the answer that of the row before, but for the innermost place? */
static bool is_same_chain(const struct index_writer *w, const struct symbol_frame *frames,
			  size_t count)
{
	if (!w->begun || count != w->frame_count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_same_function(&frames[i], &w->frames[i]) ||
		    (i && !is_same_place(&frames[i], &w->frames[i])))
			return false;
	return true;
}

static bool has_same_answer(const struct index_row *a, const struct index_row *b)
{
	return a->node == b->node && a->place.file == b->place.file &&
	       a->place.line == b->place.line && a->place.column == b->place.column;
}

int index_writer__answer(struct index_writer *w, uint64_t address,
			 const struct symbol_frame *frames, size_t count)
{
	struct index_row row = {.address = address, .node = w->last.node};
	bool same;
	int err = 0;

	count = count < SYMBOL_CHAIN_MAX ? count : SYMBOL_CHAIN_MAX;
	same = is_same_chain(w, frames, count);
	if (same && (!count || is_same_place(&frames[0], &w->frames[0])))
		return 0;
	if (!same)
		err = write_nodes(w, frames, count, &row.node);
	if (!err && count)
		err = executing_place(w, &frames[0], &row.place);
	if (err)
		return err;
	if (count)
		memcpy(w->frames, frames, count * sizeof(*frames));
	w->frame_count = count;
	/* Equal names can have several positions. */
	same = w->begun && has_same_answer(&row, &w->last);
	w->begun = true;
	return same ? 0 : add_row(w, &row);
}

size_t index_writer__size(const struct index_writer *w)
{
	return w->blocks.count * sizeof(*w->blocks.data) +
	       (w->files.count + w->name_blocks.count) * sizeof(*w->files.data) +
	       w->functions.count + w->nodes.count + w->rows.count + w->names.count +
	       w->block_size + w->strings.count;
}

int index_writer__gap(struct index_writer *w, uint64_t address)
{
	struct index_row row = {.address = address, .node = NODE_NOT_COVERED};

	w->begun = false;
	w->has_gaps = true;
	if (w->blocks.count && w->last.node == NODE_NOT_COVERED)
		return 0;
	return add_row(w, &row);
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct part {
	void *data;
	size_t size;
};

#define TAKE_PART(vec)                                                                             \
	{                                                                                          \
		(vec).data, (vec).count * sizeof(*(vec).data)                                      \
	}

/* Frees each part when it is copied. */
static void join_parts(struct index_writer *w, const struct part *parts, char *to)
{
	for (size_t i = 0; i < INDEX_SECTION_COUNT; i++) {
		if (parts[i].size)
			memcpy(to, parts[i].data, parts[i].size);
		to += parts[i].size;
		free(parts[i].data);
	}
	w->segments.data = NULL;
	w->blocks.data = NULL;
	w->files.data = NULL;
	w->name_blocks.data = NULL;
	w->functions.data = w->nodes.data = w->rows.data = w->names.data = NULL;
	w->strings.data = NULL;
}

/* The index without its header. */
static int join_index(struct index_writer *w, struct index_header *header, void **data,
		      size_t *size)
{
	const struct part parts[INDEX_SECTION_COUNT] = {
		[INDEX_SEGMENTS] = TAKE_PART(w->segments),
		[INDEX_BLOCKS] = TAKE_PART(w->blocks),
		[INDEX_FILES] = TAKE_PART(w->files),
		[INDEX_NAME_BLOCKS] = TAKE_PART(w->name_blocks),
		[INDEX_FUNCTIONS] = TAKE_PART(w->functions),
		[INDEX_NODES] = TAKE_PART(w->nodes),
		[INDEX_ROWS] = TAKE_PART(w->rows),
		[INDEX_NAMES] = TAKE_PART(w->names),
		[INDEX_STRINGS] = TAKE_PART(w->strings),
	};
	size_t total = sizeof(*header);
	char *bytes;

	for (size_t i = 0; i < INDEX_SECTION_COUNT; i++) {
		header->sizes[i] = (uint32_t)parts[i].size;
		total += parts[i].size;
	}
	if (total > w->limit)
		return -EFBIG;
	bytes = malloc(total);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, header, sizeof(*header));
	join_parts(w, parts, bytes + sizeof(*header));
	*data = bytes;
	*size = total;
	return 0;
}

int index_writer__finish(struct index_writer *w, enum symbol_state state, void **data, size_t *size)
{
	struct index_header header = {.magic = INDEX_MAGIC,
				      .rows = w->row_count,
				      .state = (uint16_t)state,
				      .has_gaps = w->has_gaps};
	int err = w->block_size ? end_block(w) : 0;

	return err ?: join_index(w, &header, data, size);
}
