/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files, lines and inlined calls of a Go program.
 *
 * Three tables of a function give values to its instructions: the number of a file in its compilation unit, the line,
 * and where in the function's tree of inlined calls it is. A node of that tree has the inlined function's name and an
 * instruction of the parent whose file and line are those of the call; so the next outer frame is found by looking up
 * that instruction in the same three tables. Nodes lie outside of the function table, in go:func.*, whose address
 * moduledata has.
 *
 * The form: runtime/symtab.go and runtime/symtabinl.go of Go's sources.
 */
#include <errno.h>

#include "base/minmax.h"
#include "elf/elf_private.h"
#include "elf/gopclntab_private.h"

#define INLINE_INDEX_TABLE 2
#define INLINE_TREE	   3
#define NOWHERE		   UINT32_MAX
#define MAX_STEPS	   (4u << 20) /* through tables, for one address */
#define NOT_BEGUN	   UINT64_MAX

/* A node: Go 1.20 has (id, name, parent pc, start line), 1.18 (parent and id, file, line, name, parent pc). */
enum { NODE_WORDS_118 = 5, NODE_WORDS_120 = 4, NODE_WORDS_MAX = 5 };

struct node {
	uint32_t name, parent_pc;
	int32_t start_line;
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Entry `number` of the tables behind a record. */
static uint32_t table_of(const struct gopclntab *t, size_t number)
{
	return go_load32(t->functions.data + t->lines.record.tables + number * sizeof(uint32_t));
}

/* The value of a table at an address, -1 where it has none. *until becomes less where the value ends before that. */
static int32_t value_at(struct gopclntab *t, struct go_values *values, uint32_t table,
			uint64_t address, uint64_t *until)
{
	if (address < values->start)
		go_values__init(values, t, &t->lines.record, table);
	while (address >= values->end && t->lines.steps) {
		t->lines.steps--;
		if (go_values__next(values) > 0)
			continue;
		values->at = NULL; /* damaged, it does not go on */
		break;
	}
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

/* The words of a node lie at an offset of the file. */
static int read_words(struct gopclntab *t, uint64_t offset, uint32_t *words, size_t size)
{
	struct go_lines *l = &t->lines;
	ssize_t got;

	if (offset < l->window_at || offset - l->window_at > l->window_size ||
	    l->window_size - (offset - l->window_at) < size) {
		got = elf_file__read(t->file, l->window, sizeof(l->window), offset);
		l->window_at = offset;
		l->window_size = got > 0 ? got : 0;
	}
	if (l->window_size - (offset - l->window_at) < size)
		return -EBADMSG;
	memcpy(words, l->window + (offset - l->window_at), size);
	return 0;
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

static struct go_frame make_frame(const struct gopclntab *t, uint32_t name, int32_t start_line)
{
	const char *text = go_string(t->names, name);

	return (struct go_frame){
		.name = text ? text : "",
		.start_line = start_line > 0 ? start_line : 0,
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

/* What is read from now on is that of this function. */
static int begin_function(struct gopclntab *t, size_t number)
{
	struct go_lines *l = &t->lines;
	int err;

	if (l->begun && l->number == number)
		return 0;
	l->begun = l->has_definition = false;
	err = number < t->count ? gopclntab__record(t, number, &l->record) : -EBADMSG;
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

static void put_frame(struct go_frame *frame, const struct go_frame *function,
		      const struct go_place *place)
{
	*frame = *function;
	frame->file = place->file;
	frame->line = place->line;
}

int gopclntab__frames(struct gopclntab *t, size_t number, uint64_t address, struct go_frame *frames,
		      uint64_t *until)
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
	frames[0] = l->function;
	return 1;
}

const char *gopclntab__file(struct gopclntab *t, size_t number)
{
	struct go_frame frames[GO_MAX_FRAMES];
	struct go_lines *l = &t->lines;
	uint64_t until = UINT64_MAX;
	int count;

	if (begin_function(t, number))
		return NULL;
	if (!l->has_definition) {
		count = gopclntab__frames(t, number, l->record.start, frames, &until);
		l->definition = count > 0 ? frames[count - 1].file : NULL;
		l->has_definition = true;
	}
	return l->definition;
}
