/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of a Go program: depth of the stack, files, lines and inlined calls.
 *
 * A function's record refers to tables with a value for each instruction: depth, file, line. A
 * table is a sequence of pairs of variable-length integers, a step of the value (zigzag) and a step
 * of the pc. The value begins at -1; a zero step of it ends the table. A zero step of the pc is
 * treated as damage: a walk takes at most one step per byte of its function, all together one per
 * byte of the text.
 *
 * Three of the tables have the number of the file in its compilation unit, the line, and the node
 * in the function's tree of inlined calls. A node has the inlined function's name and an
 * instruction of the parent; looked up in the same tables, that gives file and line of the call:
 * the next outer frame. Nodes are outside these tables, in go:func.*; moduledata has its address.
 *
 * The table does not have the file that defines an inlined function. The file of its instruction is
 * used: without //line comments a Go function has one file. The function around inlined calls gets
 * the file of its first instruction.
 *
 * Format: runtime/symtab.go, runtime/symtabinl.go and cmd/link/internal/ld/pcln.go of Go's sources.
 */
#include "elf/gopclntab.h"

#include <errno.h>

#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_file.h"
#include "elf/elf_file_private.h"
#include "elf/gopclntab_private.h"

#define MAX_NAME	 (16 << 10)
#define MAX_VARINT_BYTES 5
#define FLAG_TOP_FRAME	 1
#define FLAG_SP_WRITE	 2

/* Fields of a record at the same offset in all versions. */
enum {
	RECORD_START = 0,
	RECORD_NAME = 4,
	RECORD_DEPTHS = 16,
	RECORD_FILES = 20,
	RECORD_LINES = 24,
	RECORD_VALUE_TABLES = 28,
	RECORD_UNIT = 32,
	RECORD_START_LINE = 36, /* Go 1.20 */
};

/* The last bytes of a record's fixed part. */
enum { TAIL_SIZE = 4, TAIL_ID = 0, TAIL_FLAGS = 1, TAIL_DATA_TABLES = 3 };

size_t gopclntab__count(const struct gopclntab *t)
{
	return t->count;
}

/* The start of a function; for the count, the end of the last one. */
static uint64_t start_of(const struct gopclntab *t, size_t number)
{
	return t->text + go_load32(t->functions.data + number * 8);
}

/* NULL: outside, not terminated, or far too long. */
static const char *go_string(struct go_bytes bytes, uint32_t offset)
{
	size_t left;

	if (offset >= bytes.size)
		return NULL;
	left = bytes.size - offset;
	if (!memchr(bytes.data + offset, '\0', min_u64(left, MAX_NAME)))
		return NULL;
	return (const char *)bytes.data + offset;
}

/* 0 or -EBADMSG. `number` is below the count. */
static int read_record(const struct gopclntab *t, size_t number, struct go_record *record)
{
	uint32_t offset = go_load32(t->functions.data + number * 8 + 4);
	size_t fixed = RECORD_START_LINE + (t->go_120 ? 4 : 0) + TAIL_SIZE, tables;
	const unsigned char *data, *tail;

	if (offset > t->functions.size || t->functions.size - offset < fixed)
		return -EBADMSG;
	data = t->functions.data + offset;
	tail = data + fixed - TAIL_SIZE;
	*record = (struct go_record){
		.start = start_of(t, number),
		.end = start_of(t, number + 1),
		.name = go_load32(data + RECORD_NAME),
		.depths = go_load32(data + RECORD_DEPTHS),
		.file_numbers = go_load32(data + RECORD_FILES),
		.lines = go_load32(data + RECORD_LINES),
		.value_tables = go_load32(data + RECORD_VALUE_TABLES),
		.unit = go_load32(data + RECORD_UNIT),
		.start_line = t->go_120 ? (int32_t)go_load32(data + RECORD_START_LINE) : 0,
		.id = tail[TAIL_ID],
		.flags = tail[TAIL_FLAGS],
		.data_tables = tail[TAIL_DATA_TABLES],
		.tables = offset + fixed,
	};
	tables = (t->functions.size - record->tables) / sizeof(uint32_t);
	if (t->text + go_load32(data + RECORD_START) != record->start ||
	    record->value_tables > tables || record->data_tables > tables - record->value_tables)
		return -EBADMSG;
	return 0;
}

int gopclntab__function(const struct gopclntab *t, size_t number, struct go_function *function)
{
	struct go_record record;
	const char *name;

	if (number >= t->count || read_record(t, number, &record))
		return -EBADMSG;
	name = go_string(t->names, record.name);
	*function = (struct go_function){
		.start = record.start,
		.end = record.end,
		.name = name ? name : "",
		.is_top = record.flags & FLAG_TOP_FRAME,
		.writes_sp = record.flags & FLAG_SP_WRITE,
		.id = record.id,
	};
	return 0;
}

int gopclntab__find(const struct gopclntab *t, uint64_t address, size_t *number)
{
	if (address < start_of(t, 0) || address >= start_of(t, t->count))
		return -ENOENT;
	/* not searched for the first: the number is in range even if the rest is out of order */
	*number = partition_index(t->count - 1, i, start_of(t, i + 1) <= address);
	return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void go_values__init(struct go_values *v, const struct gopclntab *t,
			    const struct go_record *record, uint32_t offset)
{
	bool there = offset && offset < t->values.size;

	*v = (struct go_values){
		.at = there ? t->values.data + offset : NULL,
		.limit = there ? t->values.data + t->values.size : NULL,
		.start = record->start,
		.end = record->start,
		.function_end = record->end,
		.value = -1,
		.first = true,
	};
}

static int read_varint(struct go_values *v, uint32_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < MAX_VARINT_BYTES && v->at < v->limit; i++) {
		unsigned char byte = *v->at++;

		*value |= (uint32_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return 0;
	}
	return -EBADMSG;
}

/* 1; 0: no more; -EBADMSG. */
static int go_values__next(struct go_values *v)
{
	uint32_t step, length;

	if (!v->at || v->end >= v->function_end)
		return 0;
	if (read_varint(v, &step))
		return -EBADMSG;
	if (!step && !v->first)
		return 0;
	if (read_varint(v, &length) || !length)
		return -EBADMSG;
	v->first = false;
	v->value = (int32_t)((uint32_t)v->value + ((step >> 1) ^ -(step & 1)));
	v->start = v->end;
	v->end = v->start + min_u64(length, v->function_end - v->start);
	return 1;
}

int gopclntab__each_depth(const struct gopclntab *t, size_t number, go_depth_fn visit,
			  void *context)
{
	struct go_record record;
	struct go_values values;
	int more, err;

	if (number >= t->count || read_record(t, number, &record))
		return -EBADMSG;
	go_values__init(&values, t, &record, record.depths);
	while ((more = go_values__next(&values)) > 0) {
		err = visit(context, values.start, values.end, values.value);
		if (err)
			return err;
	}
	return more;
}

#define INLINE_INDEX_TABLE 2
#define INLINE_TREE	   3
#define NOWHERE		   UINT32_MAX
#define MAX_STEPS	   (4u << 20) /* through tables, for one address */
#define NOT_BEGUN	   UINT64_MAX

/* 1.20: id, name, parent pc, start line; 1.18: parent and id, file, line, name, parent pc. */
enum { NODE_WORDS_118 = 5, NODE_WORDS_120 = 4, NODE_WORDS_MAX = 5 };

struct node {
	uint32_t name, parent_pc;
	int32_t start_line;
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Entry `number` of the tables behind the current record. */
static uint32_t table_of(const struct gopclntab *t, size_t number)
{
	return go_load32(t->functions.data + t->lines.record.tables + number * sizeof(uint32_t));
}

/* The value at an address, or -1. Lowers *until to the address where the value ends. */
static int32_t value_at(struct gopclntab *t, struct go_values *values, uint32_t table,
			uint64_t address, uint64_t *until)
{
	if (address < values->start)
		go_values__init(values, t, &t->lines.record, table);
	while (address >= values->end && t->lines.steps) {
		t->lines.steps--;
		if (go_values__next(values) > 0)
			continue;
		values->at = NULL; /* damaged, or at its end */
		break;
	}
	t->left |= !t->lines.steps;
	if (address >= values->end)
		return -1;
	*until = min_u64(*until, values->end);
	return values->value;
}

static const char *file_of(const struct gopclntab *t, int32_t number)
{
	uint64_t index = (uint64_t)t->lines.record.unit + number;
	uint32_t offset;

	if (number < 0 || index >= t->units.size / sizeof(offset))
		return NULL;
	offset = go_load32(t->units.data + index * sizeof(offset));
	return go_string(t->files, offset);
}

static struct go_place place_at(struct gopclntab *t, struct go_cursor *c, uint64_t address,
				uint64_t *until)
{
	const struct go_record *record = &t->lines.record;
	struct go_place place = {.node = -1};
	int32_t number = value_at(t, &c->files, record->file_numbers, address, until), line;

	if (number != c->file_number)
		c->file = file_of(t, number);
	c->file_number = number;
	place.file = c->file;
	if (place.file) {
		line = value_at(t, &c->lines, record->lines, address, until);
		place.line = line > 0 ? line : 0;
	}
	if (record->value_tables > INLINE_INDEX_TABLE)
		place.node = value_at(t, &c->nodes, table_of(t, INLINE_INDEX_TABLE), address,
				      until);
	return place;
}

/* ---- the tree of inlined calls --------------------------------------------------------------- */

/* `size` bytes at an offset of the file, in its byte order. */
static int read_words(struct gopclntab *t, uint64_t offset, uint32_t *words, size_t size)
{
	struct elf_window *window = &t->lines.window;

	window->reads = 1;
	return elf_file__read_window(t->file, window, words, size, offset) == (ssize_t)size
		       ? 0
		       : -EBADMSG;
}

static int read_node(struct gopclntab *t, uint32_t number, struct node *node)
{
	const struct go_record *record = &t->lines.record;
	size_t count = t->go_120 ? NODE_WORDS_120 : NODE_WORDS_118, size = count * 4;
	uint32_t tree = NOWHERE, words[NODE_WORDS_MAX];
	uint64_t offset;

	if (record->data_tables > INLINE_TREE)
		tree = table_of(t, record->value_tables + INLINE_TREE);
	if (!t->gofunc || tree == NOWHERE ||
	    elf_file__offset_of_address(t->file, t->gofunc + tree, &offset) ||
	    read_words(t, offset + number * size, words, size))
		return -EBADMSG;
	*node = (struct node){
		.name = le32toh(words[count - (t->go_120 ? 3 : 2)]),
		.parent_pc = le32toh(words[count - (t->go_120 ? 2 : 1)]),
		.start_line = t->go_120 ? (int32_t)le32toh(words[3]) : 0,
	};
	return node->parent_pc < record->end - record->start ? 0 : -EBADMSG;
}

static struct symbol_frame make_frame(const struct gopclntab *t, uint32_t name, int32_t start_line)
{
	const char *text = go_string(t->names, name);

	return (struct symbol_frame){
		.function = text ? text : "",
		.function_address = UINT64_MAX,
		.definition_line = start_line > 0 ? start_line : 0,
	};
}

/* NULL: it cannot be read. */
static const struct go_call *call_of(struct gopclntab *t, int32_t number)
{
	struct go_lines *l = &t->lines;
	struct go_call *call = &l->calls[number % GO_KNOWN_CALLS];
	uint64_t until = UINT64_MAX;
	struct node node;

	if (call->number == number)
		return call;
	call->number = -1;
	if (read_node(t, number, &node))
		return NULL;
	call->frame = make_frame(t, node.name, node.start_line);
	call->place = place_at(t, &l->calling, l->record.start + node.parent_pc, &until);
	if (!l->steps)
		return NULL;
	call->number = number;
	return call;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void restart(struct go_cursor *c)
{
	*c = (struct go_cursor){.file_number = -1,
				.files.start = NOT_BEGUN,
				.lines.start = NOT_BEGUN,
				.nodes.start = NOT_BEGUN};
}

/* Look-ups that follow are in this function. */
static int begin_function(struct gopclntab *t, size_t number)
{
	struct go_lines *l = &t->lines;
	int err;

	if (l->begun && l->number == number)
		return 0;
	l->begun = l->has_definition = false;
	err = number < t->count ? read_record(t, number, &l->record) : -EBADMSG;
	if (err)
		return err;
	restart(&l->executing);
	restart(&l->calling);
	for (size_t i = 0; i < GO_KNOWN_CALLS; i++)
		l->calls[i].number = -1;
	l->function = make_frame(t, l->record.name, l->record.start_line);
	l->number = number;
	l->begun = true;
	return 0;
}

static void put_frame(struct symbol_frame *frame, const struct symbol_frame *function,
		      const struct go_place *place)
{
	*frame = *function;
	frame->file = frame->definition_file = place->file;
	frame->line = place->line;
}

static int read_frames(struct gopclntab *t, size_t number, uint64_t address,
		       struct symbol_frame *frames, uint64_t *until)
{
	struct go_lines *l = &t->lines;
	const struct go_call *call = NULL;
	struct go_place place;

	if (begin_function(t, number) || address < l->record.start || address >= l->record.end)
		return -EBADMSG;
	l->steps = MAX_STEPS;
	*until = min_u64(*until, l->record.end);
	place = place_at(t, &l->executing, address, until);
	for (int count = 0; count < GO_MAX_FRAMES && l->steps; count++) {
		if (place.node < 0) {
			put_frame(&frames[count], &l->function, &place);
			return count + 1;
		}
		call = call_of(t, place.node);
		if (!call)
			break;
		put_frame(&frames[count], &call->frame, &place);
		place = call->place;
	}
	t->left |= call != NULL;
	frames[0] = l->function;
	return 1;
}

bool gopclntab__left(const struct gopclntab *t)
{
	return t->left;
}

bool gopclntab__has_trees(const struct gopclntab *t)
{
	return t->gofunc != 0;
}

const char *gopclntab__file(struct gopclntab *t, size_t number)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	struct go_lines *l = &t->lines;
	uint64_t until = UINT64_MAX;
	int count;

	if (begin_function(t, number))
		return NULL;
	if (!l->has_definition) {
		count = read_frames(t, number, l->record.start, frames, &until);
		l->definition = count > 0 ? frames[count - 1].file : NULL;
		l->has_definition = true;
	}
	return l->definition;
}

int gopclntab__frames(struct gopclntab *t, size_t number, uint64_t address,
		      struct symbol_frame *frames, uint64_t *until)
{
	const struct go_record *record = &t->lines.record;
	int count = read_frames(t, number, address, frames, until);

	if (count > 0) {
		frames[count - 1].function_address = record->start;
		frames[count - 1].function_size = record->end - record->start;
		frames[count - 1].definition_file = gopclntab__file(t, number);
	}
	return count;
}
