/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/symbol_index_private.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "stream/symbol_blob.h"

#define NUMBER_SIZE 10 /* bytes of the largest */

struct function_key {
	uint64_t address, size;
	uint32_t name;
	struct index_place definition;
};

struct node_key {
	uint32_t function, around; /* positions */
	struct index_place call;
};

struct written_function {
	struct function_key key;
	uint32_t position;
};

struct written_node {
	struct node_key key;
	uint32_t position;
};

struct phrase_key {
	uint32_t before,
		word; /* position + 1 of the phrase that it begins with, 0: none; of the string */
};

struct written_phrase {
	struct phrase_key key;
	uint32_t position;
};

#define NOT_WRITTEN UINT32_MAX

/* What a text is in the index, as a string and as a file. */
struct written_text {
	uint32_t string, file;
};

/* What a name or a file is, by its place. */
struct written_string {
	const char *place;
	uint32_t name, file;
};

MAP_TYPE(function_map, struct written_function);
MAP_TYPE(node_map, struct written_node);
MAP_TYPE(phrase_map, struct written_phrase);
DEFINE_MAP_BY(string_map, struct written_string, const char *, place);

struct index_writer {
	size_t limit;
	VEC(struct index_segment) segments;
	VEC(struct index_block) blocks;
	VEC(uint32_t) files;
	VEC(unsigned char) functions;
	VEC(unsigned char) nodes;
	VEC(unsigned char) rows;
	VEC(unsigned char) names;
	VEC(char) strings;
	struct function_map known_functions;
	struct node_map known_nodes;
	struct string_map known_strings;
	struct phrase_map known_phrases;
	struct strtab *texts;		      /* equal strings at several places … */
	VEC(struct written_text) known_texts; /* … by number */
	const char *last_text;		      /* of a file … */
	uint32_t last_file;		      /* … which this is */
	struct index_row last;
	uint64_t row_count;
	/* The answer before: most rows differ in the innermost place alone. */
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	size_t frame_count;
	bool begun, has_gaps;
};

#define DEFINE_RECORD_MAP(NAME, TYPE, KEY)                                                         \
	static const KEY *NAME##_key(const struct NAME *map, const TYPE *entry)                    \
	{                                                                                          \
		(void)map;                                                                         \
		return &entry->key;                                                                \
	}                                                                                          \
	static uint64_t NAME##_hash(const KEY *key)                                                \
	{                                                                                          \
		return hash_bytes(key, sizeof(*key));                                              \
	}                                                                                          \
	static bool NAME##_same(const KEY *a, const KEY *b)                                        \
	{                                                                                          \
		return !memcmp(a, b, sizeof(*a));                                                  \
	}                                                                                          \
	MAP_FUNCTIONS(NAME, TYPE, const KEY *, NAME##_key, NAME##_hash, NAME##_same)

_Static_assert(sizeof(struct function_key) == 32 && sizeof(struct node_key) == 20, "no padding");

DEFINE_RECORD_MAP(function_map, struct written_function, struct function_key);
DEFINE_RECORD_MAP(node_map, struct written_node, struct node_key);
DEFINE_RECORD_MAP(phrase_map, struct written_phrase, struct phrase_key);

/* ---- life ------------------------------------------------------------------------------------ */

struct index_writer *index_writer__new(size_t limit)
{
	struct index_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->limit = limit;
	w->texts = strtab__new();
	/* Number 0 of a strtab is "", which is at 0; the first nodes have no bytes of their own. */
	if (!w->texts || vec_push(&w->strings, '\0') ||
	    vec_push(&w->known_texts, (struct written_text){0, NOT_WRITTEN}) ||
	    vec_append(&w->nodes, "\0\0", NODE_FIRST)) {
		index_writer__free(w);
		return NULL;
	}
	return w;
}

/* What it takes to add answers, most of its memory. */
static void forget_known(struct index_writer *w)
{
	function_map__fini(&w->known_functions);
	node_map__fini(&w->known_nodes);
	phrase_map__fini(&w->known_phrases);
	string_map__fini(&w->known_strings);
	vec_free(&w->known_texts);
	strtab__free(w->texts);
	w->texts = NULL;
}

void index_writer__free(struct index_writer *w)
{
	if (!w)
		return;
	forget_known(w);
	vec_free(&w->segments);
	vec_free(&w->blocks);
	vec_free(&w->files);
	vec_free(&w->functions);
	vec_free(&w->nodes);
	vec_free(&w->rows);
	vec_free(&w->strings);
	vec_free(&w->names);
	free(w);
}

int index_writer__segment(struct index_writer *w, uint64_t offset, uint64_t size, uint64_t address)
{
	return vec_push(&w->segments, (struct index_segment){offset, size, address});
}

/* ---- records --------------------------------------------------------------------------------- */

static size_t put_number(unsigned char *to, uint64_t number)
{
	size_t size = 0;

	for (; number >= 0x80; number >>= 7)
		to[size++] = (unsigned char)(number | 0x80);
	to[size++] = (unsigned char)number;
	return size;
}

static size_t put_place(unsigned char *to, const struct index_place *place)
{
	size_t size = 1;

	to[0] = 0;
	if (!place->file && !place->line && !place->column)
		return size;
	size = put_number(to, (uint64_t)place->file + 1);
	size += put_number(to + size, place->line);
	return size + put_number(to + size, place->column);
}

/* ---- strings and names ----------------------------------------------------------------------- */

/* Valid until the next text. NULL: no memory. */
static struct written_text *find_text(struct index_writer *w, const char *text)
{
	const struct written_text new = {NOT_WRITTEN, NOT_WRITTEN};
	int64_t number = strtab__intern(w->texts, text);

	if (number < 0 ||
	    ((size_t)number == w->known_texts.count && vec_push(&w->known_texts, new)))
		return NULL;
	return &w->known_texts.data[number];
}

static int write_string(struct index_writer *w, const char *text, uint32_t *position)
{
	struct written_text *known = find_text(w, text);
	size_t size = strlen(text) + 1;

	if (!known)
		return -ENOMEM;
	if (known->string == NOT_WRITTEN) {
		if (w->strings.count + size > w->limit)
			return -EFBIG;
		if (vec_append(&w->strings, text, size))
			return -ENOMEM;
		known->string = (uint32_t)(w->strings.count - size);
	}
	*position = known->string;
	return 0;
}

static bool is_of_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_' || c == '~' || c & 0x80;
}

/* A word with the colons behind it, or what is between two words. */
static size_t word_length(const char *text)
{
	bool of_word = is_of_word(*text);
	size_t length = 0;

	while (text[length] && is_of_word(text[length]) == of_word)
		length++;
	if (of_word && text[length] == ':' && text[length + 1] == ':')
		length += 2;
	return length < INDEX_WORD_MAX ? length : INDEX_WORD_MAX - 1;
}

static int write_word(struct index_writer *w, const char *text, size_t length, uint32_t *position)
{
	char word[INDEX_WORD_MAX];

	memcpy(word, text, length);
	word[length] = '\0';
	return write_string(w, word, position);
}

static int append_phrase(struct index_writer *w, const struct phrase_key *key)
{
	uint32_t here = (uint32_t)w->names.count;
	struct written_phrase new = {*key, here};
	unsigned char bytes[2 * NUMBER_SIZE];
	size_t size = put_number(bytes, NAME_PHRASE + (key->before ? here - (key->before - 1) : 0));

	size += put_number(bytes + size, key->word);
	if (w->names.count + size > w->limit)
		return -EFBIG;
	if (key->word && !phrase_map__need(&w->known_phrases, &new, NULL))
		return -ENOMEM;
	return vec_append(&w->names, bytes, size);
}

/* The longest phrase that is known, and the word behind it. */
static int write_phrase(struct index_writer *w, const char **text)
{
	struct phrase_key key = {};

	while (**text) {
		size_t length = word_length(*text);
		const struct written_phrase *known;
		int err = write_word(w, *text, length, &key.word);

		if (err)
			return err;
		*text += length;
		known = phrase_map__find(&w->known_phrases, &key);
		if (!known)
			break;
		key = (struct phrase_key){.before = known->position + 1};
	}
	return append_phrase(w, &key);
}

static int write_phrases(struct index_writer *w, const char *text, uint32_t *name)
{
	size_t position = w->names.count;
	int err = 0;

	while (*text && !err)
		err = write_phrase(w, &text);
	if (!err)
		err = vec_push(&w->names, NAME_END);
	*name = (uint32_t)position * NAME_FORMS + NAME_PHRASES;
	return err;
}

/* Phrases of short names would take longer to find than they save bytes. */
static bool is_of_phrases(const char *text)
{
	size_t length = strlen(text);

	return length >= INDEX_NAME_MIN && length < INDEX_NAME_MAX && text[word_length(text)];
}

/* Equal names at several places are written again, which takes one phrase: to know them would take a copy of each. */
static int write_new_name(struct index_writer *w, const char *text, uint32_t *name)
{
	uint32_t position;
	int err;

	if (is_of_phrases(text))
		return write_phrases(w, text, name);
	err = write_string(w, text, &position);
	if (!err)
		*name = position * NAME_FORMS + NAME_STRING;
	return err;
}

/* As a name, or as a file. */
static int find_string(struct index_writer *w, const char *text, struct written_string **found)
{
	bool is_new;

	*found = string_map__need(&w->known_strings,
				  &(struct written_string){text, NOT_WRITTEN, NOT_WRITTEN},
				  &is_new);
	return *found ? 0 : -ENOMEM;
}

static int write_name(struct index_writer *w, const char *text, uint32_t *name)
{
	struct written_string *known;
	int err = find_string(w, text, &known);

	if (!err && known->name == NOT_WRITTEN)
		err = write_new_name(w, text, &known->name);
	if (!err)
		*name = known->name;
	return err;
}

static int write_new_file(struct index_writer *w, const char *text, uint32_t *file)
{
	uint32_t position;
	int err = write_string(w, text, &position);
	struct written_text *known = err ? NULL : find_text(w, text);

	if (!known)
		return err ? err : -ENOMEM;
	if (known->file == NOT_WRITTEN) {
		err = vec_push(&w->files, position);
		if (err)
			return err;
		known->file = (uint32_t)w->files.count;
	}
	*file = known->file;
	return 0;
}

static int write_file(struct index_writer *w, const char *text, uint32_t *file)
{
	struct written_string *known;
	int err;

	*file = 0;
	if (!text || !*text)
		return 0;
	if (text == w->last_text) {
		*file = w->last_file;
		return 0;
	}
	err = find_string(w, text, &known);
	if (!err && known->file == NOT_WRITTEN)
		err = write_new_file(w, text, &known->file);
	if (err)
		return err;
	w->last_text = text;
	w->last_file = *file = known->file;
	return 0;
}

/* ---- functions and nodes ---------------------------------------------------------------------- */

static int executing_place(struct index_writer *w, const struct symbol_frame *frame,
			   struct index_place *place)
{
	*place = (struct index_place){.line = frame->line, .column = frame->column};
	return write_file(w, frame->file, &place->file);
}

static int append_function(struct index_writer *w, const struct function_key *key)
{
	unsigned char bytes[3 * NUMBER_SIZE + 3 * NUMBER_SIZE];
	size_t size = put_number(bytes, key->name);

	size += put_number(bytes + size, key->address + 1);
	size += put_number(bytes + size, key->size);
	size += put_place(bytes + size, &key->definition);
	if (w->functions.count + size > w->limit)
		return -EFBIG;
	return vec_append(&w->functions, bytes, size);
}

static int write_function(struct index_writer *w, const struct symbol_frame *frame,
			  uint32_t *position)
{
	struct written_function new = {
		.key = {.address = frame->function_address,
			.size = frame->function_size,
			.definition = {.line = frame->definition_line,
				       .column = frame->definition_column}},
		.position = (uint32_t)w->functions.count,
	};
	struct written_function *known;
	bool is_new;
	int err = write_name(w, frame->function, &new.key.name);

	if (!err)
		err = write_file(w, frame->definition_file, &new.key.definition.file);
	if (err)
		return err;
	known = function_map__need(&w->known_functions, &new, &is_new);
	if (!known)
		return -ENOMEM;
	*position = known->position;
	return is_new ? append_function(w, &new.key) : 0;
}

static int append_node(struct index_writer *w, const struct node_key *key)
{
	unsigned char bytes[5 * NUMBER_SIZE];
	size_t size = put_number(bytes, key->function);

	size += put_number(bytes + size, key->around ? w->nodes.count - key->around : 0);
	if (key->around)
		size += put_place(bytes + size, &key->call);
	if (w->nodes.count + size > w->limit)
		return -EFBIG;
	return vec_append(&w->nodes, bytes, size);
}

/* The node of the innermost frame. */
static int write_nodes(struct index_writer *w, const struct symbol_frame *frames, size_t count,
		       uint32_t *position)
{
	*position = NODE_NOTHING;
	for (size_t i = count; i-- > 0;) {
		struct written_node new = {.key = {.around = *position},
					   .position = (uint32_t)w->nodes.count},
				    *known;
		bool is_new;
		int err = write_function(w, &frames[i], &new.key.function);

		if (!err && i + 1 < count)
			err = executing_place(w, &frames[i + 1], &new.key.call);
		if (err)
			return err;
		known = node_map__need(&w->known_nodes, &new, &is_new);
		err = !known ? -ENOMEM : is_new ? append_node(w, &new.key) : 0;
		if (err)
			return err;
		*position = known->position;
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
		size += put_number(bytes + size, step);
	if (row->node != last->node) {
		bytes[0] |= ROW_NODE;
		size += put_number(bytes + size, zigzag((int64_t)row->node - last->node));
	}
	if (row->place.file != last->place.file) {
		bytes[0] |= ROW_FILE;
		size += put_number(bytes + size, row->place.file);
	}
	if (row->place.line != last->place.line) {
		bytes[0] |= ROW_LINE;
		size += put_number(bytes + size,
				   zigzag((int64_t)row->place.line - last->place.line));
	}
	if (row->place.column != last->place.column) {
		bytes[0] |= ROW_COLUMN;
		size += put_number(bytes + size, row->place.column);
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
	w->begun = true;
	return add_row(w, &row);
}

size_t index_writer__size(const struct index_writer *w)
{
	return w->blocks.count * sizeof(*w->blocks.data) + w->files.count * sizeof(*w->files.data) +
	       w->functions.count + w->nodes.count + w->rows.count + w->names.count +
	       w->strings.count;
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

int index_writer__finish(struct index_writer *w, enum symbol_state state, void **data, size_t *size)
{
	struct index_header header = {.magic = INDEX_MAGIC,
				      .rows = w->row_count,
				      .state = (uint16_t)state,
				      .has_gaps = w->has_gaps};
	const void *const parts[INDEX_SECTION_COUNT] = {
		[INDEX_SEGMENTS] = w->segments.data, [INDEX_BLOCKS] = w->blocks.data,
		[INDEX_FILES] = w->files.data,	     [INDEX_FUNCTIONS] = w->functions.data,
		[INDEX_NODES] = w->nodes.data,	     [INDEX_ROWS] = w->rows.data,
		[INDEX_NAMES] = w->names.data,	     [INDEX_STRINGS] = w->strings.data,
	};
	const size_t sizes[INDEX_SECTION_COUNT] = {
		[INDEX_SEGMENTS] = w->segments.count * sizeof(*w->segments.data),
		[INDEX_BLOCKS] = w->blocks.count * sizeof(*w->blocks.data),
		[INDEX_FILES] = w->files.count * sizeof(*w->files.data),
		[INDEX_FUNCTIONS] = w->functions.count,
		[INDEX_NODES] = w->nodes.count,
		[INDEX_ROWS] = w->rows.count,
		[INDEX_NAMES] = w->names.count,
		[INDEX_STRINGS] = w->strings.count,
	};
	size_t total = sizeof(header), at = sizeof(header);
	char *bytes;

	for (size_t i = 0; i < INDEX_SECTION_COUNT; i++) {
		header.sizes[i] = (uint32_t)sizes[i];
		total += sizes[i];
	}
	if (total > w->limit)
		return -EFBIG;
	forget_known(w);
	bytes = malloc(total);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, &header, sizeof(header));
	for (size_t i = 0; i < INDEX_SECTION_COUNT; i++) {
		if (sizes[i])
			memcpy(bytes + at, parts[i], sizes[i]);
		at += sizes[i];
	}
	*data = bytes;
	*size = total;
	return 0;
}
