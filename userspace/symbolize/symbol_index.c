/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading an index. Its maker has read another user's file, so all of it is checked before the
 * first look-up: numbers are those of records, addresses ascend, a node is behind the one around
 * it. Look-ups are bounded by their section all the same.
 */
#include "symbolize/symbol_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/wire.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/symbol_names.h"

struct section {
	const unsigned char *data;
	size_t size;
};

struct symbol_index {
	char *data;
	size_t size;
	const struct index_header *header;
	struct section sections[INDEX_SECTION_COUNT];
	const struct index_segment *segments;
	const struct index_block *blocks;
	const uint32_t *files, *name_blocks;
	size_t segment_count, block_count, file_count, name_block_count;
	char *block; /* of names; NULL: there are none, nor texts */
	char *texts; /* long names of the last answer */
	size_t texts_size;
};

#define TEXTS_MAX (SYMBOL_CHAIN_MAX * 1024)

/* ---- records --------------------------------------------------------------------------------- */

/* The rest of a section. */
struct reader {
	struct wire bytes;
	bool bad; /* a number did not end, or is too large */
};

struct function {
	uint64_t name, address, size;
	struct index_place definition;
};

struct node {
	uint32_t function;
	uint32_t distance; /* to the node around it */
	struct index_place call;
};

static struct reader read_from(const struct symbol_index *x, enum index_section section,
			       size_t position)
{
	const struct section *s = &x->sections[section];

	position = min_u64(position, s->size);
	return (struct reader){.bytes = wire_of(s->data + position, s->size - position)};
}

static uint64_t take_number(struct reader *r)
{
	uint64_t number = 0;

	r->bad |= !wire_varint(&r->bytes, &number);
	return number;
}

static uint32_t take_short(struct reader *r)
{
	uint64_t number = take_number(r);

	r->bad |= number > UINT32_MAX;
	return (uint32_t)number;
}

static struct index_place take_place(struct reader *r)
{
	uint32_t number = take_short(r);
	struct index_place place = {};

	if (!number)
		return place;
	place.file = number - 1;
	place.line = take_short(r);
	place.column = take_short(r);
	return place;
}

static struct function take_function(struct reader *r)
{
	struct function f = {.name = take_number(r)};

	f.address = take_number(r) - 1;
	f.size = take_number(r);
	f.definition = take_place(r);
	return f;
}

static struct node take_node(struct reader *r)
{
	struct node node = {.function = take_short(r)};

	node.distance = take_short(r);
	if (node.distance)
		node.call = take_place(r);
	return node;
}

/* From the row before to the next. */
static void take_row(struct reader *r, struct index_row *row)
{
	unsigned char what = r->bytes.at < r->bytes.end ? *r->bytes.at++ : 0;
	uint64_t step = what & ROW_STEP;

	row->address += step < ROW_STEP ? step : take_number(r);
	if (what & ROW_NODE)
		row->node += (uint32_t)from_zigzag(take_number(r));
	if (what & ROW_FILE)
		row->place.file = take_short(r);
	if (what & ROW_LINE)
		row->place.line += (uint32_t)from_zigzag(take_number(r));
	if (what & ROW_COLUMN)
		row->place.column = take_short(r);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Which bytes of a section are the first of a record. */
struct starts {
	unsigned char *bits;
	size_t size;
};

static void mark_start(struct starts *s, size_t position)
{
	s->bits[position / 8] |= (unsigned char)(1u << position % 8);
}

static bool is_start(const struct starts *s, uint64_t position)
{
	return position < s->size && s->bits[position / 8] >> position % 8 & 1;
}

static bool is_place(const struct symbol_index *x, const struct index_place *place)
{
	return place->file <= x->file_count;
}

static bool files_are_sane(const struct symbol_index *x)
{
	return !any_of(x->files, x->file_count, file, *file >= x->sections[INDEX_STRINGS].size);
}

/* The data for checking names. */
struct names {
	uint16_t *sizes; /* of blocks */
	size_t longest;
};

static size_t unpack_block(const struct symbol_index *x, size_t number, size_t wanted)
{
	const struct section *all = &x->sections[INDEX_NAMES];
	size_t start = x->name_blocks[number];
	size_t end = number + 1 < x->name_block_count ? x->name_blocks[number + 1] : all->size;

	return start < end && end <= all->size
		       ? names_unpack(all->data + start, end - start, x->block, wanted)
		       : 0;
}

static bool names_are_sane(const struct symbol_index *x, struct names *n)
{
	if (x->name_block_count ? x->name_blocks[0] : x->sections[INDEX_NAMES].size)
		return false;
	for (size_t i = 0; i < x->name_block_count; i++) {
		size_t size = unpack_block(x, i, NAMES_BLOCK);

		if (!size)
			return false;
		n->sizes[i] = (uint16_t)size;
		for (size_t at = 0, length; at < size; at += length + 1) {
			length = strlen(x->block + at);
			n->longest = max_u64(n->longest, length);
		}
	}
	return true;
}

static bool is_name(const struct symbol_index *x, const struct names *n, uint64_t name)
{
	uint64_t position = name / NAME_FORMS, block = position / NAMES_BLOCK;

	if (name % NAME_FORMS == NAME_STRING)
		return position < x->sections[INDEX_STRINGS].size;
	return block < x->name_block_count && position % NAMES_BLOCK < n->sizes[block];
}

static bool functions_are_sane(const struct symbol_index *x, const struct names *names,
			       struct starts *starts)
{
	const struct section *all = &x->sections[INDEX_FUNCTIONS];
	struct reader r = read_from(x, INDEX_FUNCTIONS, 0);

	while (r.bytes.at < r.bytes.end) {
		size_t position = r.bytes.at - all->data;
		struct function f = take_function(&r);

		if (r.bad || !is_name(x, names, f.name) || !is_place(x, &f.definition))
			return false;
		mark_start(starts, position);
	}
	return true;
}

static bool nodes_are_sane(const struct symbol_index *x, const struct starts *functions,
			   struct starts *starts)
{
	const struct section *all = &x->sections[INDEX_NODES];
	struct reader r = read_from(x, INDEX_NODES, NODE_FIRST);

	if (all->size < NODE_FIRST)
		return false;
	while (r.bytes.at < r.bytes.end) {
		size_t position = r.bytes.at - all->data;
		struct node node = take_node(&r);

		if (r.bad || !is_start(functions, node.function) || !is_place(x, &node.call) ||
		    node.distance > position ||
		    (node.distance && !is_start(starts, position - node.distance)))
			return false;
		mark_start(starts, position);
	}
	return true;
}

/* The rows of one block: up to `end`, where the next one begins, at addresses below `limit`. */
static bool rows_are_sane(const struct symbol_index *x, const struct index_block *block,
			  const struct starts *nodes, size_t end, uint64_t limit)
{
	struct reader r = read_from(x, INDEX_ROWS, block->position);
	struct index_row row = {.address = block->address};

	if (!block->count || block->count > ROWS_A_BLOCK)
		return false;
	for (uint32_t i = 0; i < block->count; i++) {
		uint64_t before = row.address;

		if (r.bytes.at >= r.bytes.end)
			return false;
		take_row(&r, &row);
		if (r.bad || row.address > limit ||
		    (i ? row.address <= before : row.address != before))
			return false;
		if ((row.node == NODE_NOT_COVERED && !x->header->has_gaps) ||
		    !is_place(x, &row.place) ||
		    (row.node >= NODE_FIRST && !is_start(nodes, row.node)))
			return false;
	}
	return r.bytes.at == x->sections[INDEX_ROWS].data + end;
}

static bool blocks_are_sane(const struct symbol_index *x, const struct starts *nodes)
{
	uint64_t rows = 0;

	if (x->block_count ? x->blocks[0].position != 0 : x->sections[INDEX_ROWS].size != 0)
		return false;
	for (size_t i = 0; i < x->block_count; i++) {
		const struct index_block *block = &x->blocks[i];
		bool last = i + 1 == x->block_count;
		size_t end = last ? x->sections[INDEX_ROWS].size : block[1].position;
		uint64_t next = last ? 0 : block[1].address;

		if (!last && next <= block->address)
			return false;
		if (!rows_are_sane(x, block, nodes, end, next - 1))
			return false;
		rows += block->count;
	}
	return rows == x->header->rows;
}

static bool records_are_sane(const struct symbol_index *x, struct names *names,
			     struct starts *functions, struct starts *nodes)
{
	return files_are_sane(x) && names_are_sane(x, names) &&
	       functions_are_sane(x, names, functions) && nodes_are_sane(x, functions, nodes) &&
	       blocks_are_sane(x, nodes);
}

static bool starts__init(const struct symbol_index *x, enum index_section section,
			 struct starts *starts)
{
	starts->size = x->sections[section].size;
	starts->bits = calloc(starts->size / 8 + 1, 1);
	return starts->bits != NULL;
}

static int check_records(struct symbol_index *x)
{
	struct starts functions = {}, nodes = {};
	struct names names = {};
	int err = -ENOMEM;

	names.sizes = calloc(x->name_block_count + 1, sizeof(*names.sizes));
	x->block = x->name_block_count ? malloc(NAMES_UNPACKED_MAX) : NULL;
	if (names.sizes && !x->block == !x->name_block_count &&
	    starts__init(x, INDEX_FUNCTIONS, &functions) && starts__init(x, INDEX_NODES, &nodes))
		err = records_are_sane(x, &names, &functions, &nodes) ? 0 : -EBADMSG;
	x->texts_size = min_u64(SYMBOL_CHAIN_MAX * (names.longest + 1), TEXTS_MAX);
	free(names.sizes);
	free(functions.bits);
	free(nodes.bits);
	return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Divides the block into its sections. */
static bool find_sections(struct symbol_index *x)
{
	uint64_t at = sizeof(*x->header);

	x->header = (const struct index_header *)x->data;
	if (x->size < sizeof(*x->header) || x->header->magic != INDEX_MAGIC ||
	    x->header->state >= SYMBOL_STATE_COUNT)
		return false;
	for (size_t i = 0; i < INDEX_SECTION_COUNT; i++) {
		struct section *s = &x->sections[i];

		s->size = x->header->sizes[i];
		if (s->size > x->size - at)
			return false;
		s->data = (const unsigned char *)x->data + at;
		at += s->size;
	}
	return at == x->size;
}

static bool take_arrays(struct symbol_index *x)
{
	const struct section *segments = &x->sections[INDEX_SEGMENTS];
	const struct section *blocks = &x->sections[INDEX_BLOCKS];
	const struct section *files = &x->sections[INDEX_FILES];
	const struct section *names = &x->sections[INDEX_NAME_BLOCKS];
	const struct section *strings = &x->sections[INDEX_STRINGS];

	x->segments = (const struct index_segment *)segments->data;
	x->segment_count = segments->size / sizeof(*x->segments);
	x->blocks = (const struct index_block *)blocks->data;
	x->block_count = blocks->size / sizeof(*x->blocks);
	x->files = (const uint32_t *)files->data;
	x->file_count = files->size / sizeof(*x->files);
	x->name_blocks = (const uint32_t *)names->data;
	x->name_block_count = names->size / sizeof(*x->name_blocks);
	return !(segments->size % sizeof(*x->segments)) && !(blocks->size % sizeof(*x->blocks)) &&
	       !(files->size % sizeof(*x->files)) && !(names->size % sizeof(*x->name_blocks)) &&
	       strings->size && !strings->data[strings->size - 1];
}

int symbol_index__open(void *data, size_t size, struct symbol_index **index)
{
	struct symbol_index *x = calloc(1, sizeof(*x));
	int err = -EBADMSG;

	if (!x) {
		free(data);
		return -ENOMEM;
	}
	x->data = data;
	x->size = size;
	if (find_sections(x) && take_arrays(x))
		err = check_records(x);
	if (!err && x->block) {
		x->texts = malloc(x->texts_size);
		err = x->texts ? 0 : -ENOMEM;
	}
	return finish_new(err, x, symbol_index__free, index);
}

void symbol_index__free(struct symbol_index *x)
{
	if (!x)
		return;
	free(x->data);
	free(x->block);
	free(x->texts);
	free(x);
}

size_t symbol_index__size(const struct symbol_index *x)
{
	return sizeof(*x) + x->size + (x->block ? NAMES_UNPACKED_MAX + x->texts_size : 0);
}

void symbol_index__bytes(const struct symbol_index *x, const void **data, size_t *size)
{
	*data = x->data;
	*size = x->size;
}

bool symbol_index__is_whole(const struct symbol_index *x)
{
	return !x->header->has_gaps;
}

enum symbol_state symbol_index__state(const struct symbol_index *x)
{
	return (enum symbol_state)x->header->state;
}

/* ---- looking up ------------------------------------------------------------------------------ */

static bool address_of(const struct symbol_index *x, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < x->segment_count; i++) {
		const struct index_segment *s = &x->segments[i];

		if (offset >= s->offset && offset - s->offset < s->size) {
			*address = s->address + (offset - s->offset);
			return true;
		}
	}
	return false;
}

/* The last row at or before the address, or NODE_NOTHING. */
static struct index_row find_row(const struct symbol_index *x, uint64_t address)
{
	size_t behind = partition_point(x->blocks, x->block_count, b, b->address <= address);
	struct index_row row = {}, next;
	const struct index_block *block;
	struct reader r;

	if (!behind)
		return row;
	block = &x->blocks[behind - 1];
	next = (struct index_row){.address = block->address};
	r = read_from(x, INDEX_ROWS, block->position);
	for (uint32_t i = 0; i < block->count; i++) {
		take_row(&r, &next);
		if (next.address > address)
			break;
		row = next;
	}
	return row;
}

static const char *string_at(const struct symbol_index *x, uint64_t position)
{
	return (const char *)x->sections[INDEX_STRINGS].data + position;
}

static const char *file_of(const struct symbol_index *x, const struct index_place *place)
{
	return place->file ? string_at(x, x->files[place->file - 1]) : NULL;
}

/* Where the texts of one answer's names go. */
struct texts {
	char *at;
	size_t left;
};

/* NULL: there is no room. */
static const char *name_of(const struct symbol_index *x, uint64_t name, struct texts *t)
{
	size_t position = name / NAME_FORMS, at = position % NAMES_BLOCK, size;
	const char *text = t->at;

	if (name % NAME_FORMS == NAME_STRING)
		return string_at(x, position);
	unpack_block(x, position / NAMES_BLOCK, at);
	size = strlen(x->block + at) + 1;
	if (size > t->left)
		return NULL;
	memcpy(t->at, x->block + at, size);
	t->at += size;
	t->left -= size;
	return text;
}

static bool fill_frame(const struct symbol_index *x, uint32_t function,
		       const struct index_place *at, struct texts *texts,
		       struct symbol_frame *frame)
{
	struct reader r = read_from(x, INDEX_FUNCTIONS, function);
	struct function f = take_function(&r);

	*frame = (struct symbol_frame){
		.function = name_of(x, f.name, texts),
		.function_address = f.address,
		.function_size = f.size,
		.file = file_of(x, at),
		.line = at->line,
		.column = at->column,
		.definition_file = file_of(x, &f.definition),
		.definition_line = f.definition.line,
		.definition_column = f.definition.column,
	};
	return frame->function;
}

/* The node and those around it. False: there is no room for their names. */
static bool fill_frames(const struct symbol_index *x, const struct index_row *row,
			struct symbol_result *result, struct symbol_frame *frames)
{
	struct texts texts = {x->texts, x->texts_size};
	struct index_place at = row->place;
	uint32_t position = row->node;

	while (position >= NODE_FIRST && result->frame_count < SYMBOL_CHAIN_MAX) {
		struct reader r = read_from(x, INDEX_NODES, position);
		struct node node = take_node(&r);

		if (!fill_frame(x, node.function, &at, &texts, &frames[result->frame_count]))
			return false;
		result->frame_count++;
		if (!node.distance)
			break;
		at = node.call;
		position -= node.distance;
	}
	return true;
}

bool symbol_index__find(const struct symbol_index *x, uint64_t offset, struct symbol_answer *answer)
{
	struct symbol_result *result = &answer->result;
	struct index_row row;

	*result = (struct symbol_result){.elf_address = PROFILE_UNKNOWN_ADDRESS,
					 .frames = answer->frames};
	if (!address_of(x, offset, &result->elf_address))
		return true;
	row = find_row(x, result->elf_address);
	return fill_frames(x, &row, result, answer->frames) && row.node != NODE_NOT_COVERED;
}
