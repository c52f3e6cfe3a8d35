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

#include "elf/elf_private.h"
#include "elf/gopclntab_private.h"

#define INLINE_INDEX_TABLE 2
#define INLINE_TREE	   3
#define NOWHERE		   UINT32_MAX
#define MAX_STEPS	   (4u << 20) /* through tables, for one address */

/* A node: Go 1.20 has (id, name, parent pc, start line), 1.18 (parent and id, file, line, name, parent pc). */
enum { NODE_WORDS_118 = 5, NODE_WORDS_120 = 4, NODE_WORDS_MAX = 5 };

struct node {
	uint32_t name, parent_pc;
	int32_t start_line;
};

/* One look-up: its function, and how many steps through tables it may still take. */
struct lookup {
	const struct gopclntab *table;
	struct go_record record;
	uint32_t steps;
};

/* The value of a table at an address, -1 where it has none. */
static int32_t value_at(struct lookup *l, uint32_t table, uint64_t address)
{
	struct go_values values;

	go_values__init(&values, l->table, &l->record, table);
	while (l->steps && go_values__next(&values) > 0) {
		l->steps--;
		if (address < values.end)
			return values.value;
	}
	return -1;
}

static const char *file_at(struct lookup *l, uint64_t address)
{
	const struct gopclntab *t = l->table;
	int32_t number = value_at(l, l->record.file_numbers, address);
	uint64_t index = (uint64_t)l->record.unit + number;
	uint32_t offset;

	if (number < 0 || index >= t->units.size / sizeof(offset))
		return NULL;
	offset = go_load32(t->units.data + index * sizeof(offset));
	return go_string(t->files, offset);
}

static uint32_t line_at(struct lookup *l, uint64_t address)
{
	int32_t line = value_at(l, l->record.lines, address);

	return line > 0 ? line : 0;
}

/* Entry `number` of the tables behind a record. */
static uint32_t table_of(const struct lookup *l, size_t number)
{
	return go_load32(l->table->functions.data + l->record.tables + number * sizeof(uint32_t));
}

/* Where in the tree of inlined calls an instruction is; negative: in none of them. */
static int32_t node_at(struct lookup *l, uint64_t address)
{
	if (l->record.value_tables <= INLINE_INDEX_TABLE)
		return -1;
	return value_at(l, table_of(l, INLINE_INDEX_TABLE), address);
}

static int read_node(const struct lookup *l, uint32_t number, struct node *node)
{
	const struct gopclntab *t = l->table;
	const struct go_record *record = &l->record;
	size_t count = t->go_120 ? NODE_WORDS_120 : NODE_WORDS_118, size = count * 4;
	uint32_t tree = NOWHERE, words[NODE_WORDS_MAX];
	uint64_t offset;

	if (record->data_tables > INLINE_TREE)
		tree = table_of(l, record->value_tables + INLINE_TREE);
	if (!t->gofunc || tree == NOWHERE ||
	    elf_file__offset_of_address(t->file, t->gofunc + tree, &offset) ||
	    elf_file__read(t->file, words, size, offset + number * size) != (ssize_t)size)
		return -EBADMSG;
	*node = (struct node){
		.name = le32toh(words[count - (t->go_120 ? 3 : 2)]),
		.parent_pc = le32toh(words[count - (t->go_120 ? 2 : 1)]),
		.start_line = t->go_120 ? (int32_t)le32toh(words[3]) : 0,
	};
	return node->parent_pc < record->end - record->start ? 0 : -EBADMSG;
}

static struct go_frame make_frame(struct lookup *l, uint32_t name, int32_t start_line)
{
	const char *text = go_string(l->table->names, name);

	return (struct go_frame){
		.name = text ? text : "",
		.start_line = start_line > 0 ? start_line : 0,
	};
}

static void add_place(struct lookup *l, uint64_t address, struct go_frame *frame)
{
	frame->file = file_at(l, address);
	frame->line = frame->file ? line_at(l, address) : 0;
}

/* One level at an address. Where it was called from: 1 and the address; 0: it is the function itself. */
static int add_level(struct lookup *l, uint64_t *address, struct go_frame *frame)
{
	int32_t index = node_at(l, *address);
	struct node node;

	if (index < 0) {
		*frame = make_frame(l, l->record.name, l->record.start_line);
		add_place(l, *address, frame);
		return 0;
	}
	if (read_node(l, index, &node))
		return -EBADMSG;
	*frame = make_frame(l, node.name, node.start_line);
	add_place(l, *address, frame);
	*address = l->record.start + node.parent_pc;
	return 1;
}

int gopclntab__frames(const struct gopclntab *t, size_t number, uint64_t address,
		      struct go_frame *frames)
{
	struct lookup l = {.table = t, .steps = MAX_STEPS};
	int more = 1;

	if (number >= t->count || gopclntab__record(t, number, &l.record) ||
	    address < l.record.start || address >= l.record.end)
		return -EBADMSG;
	for (int count = 0; more > 0 && count < GO_MAX_FRAMES && l.steps; count++) {
		more = add_level(&l, &address, &frames[count]);
		if (!more)
			return count + 1;
	}
	frames[0] = make_frame(&l, l.record.name, l.record.start_line);
	return 1;
}

static int each_start(struct lookup *l, uint32_t table, go_change_fn visit, void *context)
{
	struct go_values values;
	int err = 0;

	go_values__init(&values, l->table, &l->record, table);
	while (!err && go_values__next(&values) > 0)
		err = visit(context, values.start);
	/* behind the last one, or where the table is damaged, there is no value */
	return err ? err : visit(context, values.end);
}

int gopclntab__each_change(const struct gopclntab *t, size_t number, go_change_fn visit,
			   void *context)
{
	struct lookup l = {.table = t};
	int err;

	if (number >= t->count || gopclntab__record(t, number, &l.record))
		return -EBADMSG;
	err = each_start(&l, l.record.file_numbers, visit, context);
	if (!err)
		err = each_start(&l, l.record.lines, visit, context);
	if (!err && l.record.value_tables > INLINE_INDEX_TABLE)
		err = each_start(&l, table_of(&l, INLINE_INDEX_TABLE), visit, context);
	return err;
}

const char *gopclntab__file(const struct gopclntab *t, size_t number)
{
	struct go_frame frames[GO_MAX_FRAMES];
	struct go_record record;
	int count;

	if (number >= t->count || gopclntab__record(t, number, &record))
		return NULL;
	count = gopclntab__frames(t, number, record.start, frames);
	return count > 0 ? frames[count - 1].file : NULL;
}
