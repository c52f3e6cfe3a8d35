/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/script.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"
#include "runtimes/answers.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"

#define MAX_SCRIPTS 512
#define MAX_LINES   (1u << 20)
#define CACHE_LIMIT (16u << 20)
#define LINES_READ  1024 /* at once */

/* Of a Script, not published; the same in all versions. */
#define SCRIPT_LINE_OFFSET   24
#define SCRIPT_COLUMN_OFFSET 32

struct v8_scripts {
	struct v8_script at[MAX_SCRIPTS];
	size_t count;
	size_t bytes;
	uint64_t clock;
};

struct v8_scripts *v8_scripts__new(void)
{
	return calloc(1, sizeof(struct v8_scripts));
}

static size_t script_size(const struct v8_script *s)
{
	return (s->url ? strlen(s->url) + 1 : 0) + (size_t)s->line_count * sizeof(*s->ends);
}

static void drop_script(struct v8_scripts *scripts, size_t i)
{
	scripts->bytes -= script_size(&scripts->at[i]);
	free(scripts->at[i].url);
	free(scripts->at[i].ends);
	scripts->at[i] = scripts->at[--scripts->count];
}

void v8_scripts__free(struct v8_scripts *scripts)
{
	if (!scripts)
		return;
	while (scripts->count)
		drop_script(scripts, scripts->count - 1);
	free(scripts);
}

static void drop_oldest(struct v8_scripts *scripts)
{
	size_t oldest = 0;

	for (size_t i = 1; i < scripts->count; i++) {
		if (scripts->at[i].last_use < scripts->at[oldest].last_use)
			oldest = i;
	}
	drop_script(scripts, oldest);
}

static int smi_of(const struct v8_object *o, int32_t offset)
{
	uint64_t word = v8_object__word(o, offset);

	return v8_is_smi(word) ? v8_smi(word) : 0;
}

/* A string, or none where there is something else. `is_one` is untouched on failure. */
static int read_url(struct v8_reader *r, uint64_t word, char *url, bool *is_one)
{
	struct v8_object o;
	int err = v8_object__read(r, word, &o);

	if (err == -EINVAL)
		return 0;
	if (err)
		return err;
	if (o.type < 0)
		return -EAGAIN;
	if (!v8_object__is_string(r, &o))
		return 0;
	err = v8_string__text(r, word, url, MANAGED_FILE_MAX);
	if (!err)
		*is_one = true;
	return err;
}

static int add_script(struct v8_reader *r, const struct v8_object *o, const struct v8_script *key,
		      struct v8_script **found)
{
	struct v8_scripts *scripts = r->scripts;
	char url[MANAGED_FILE_MAX] = "";
	bool is_named = false;
	struct v8_script s = *key;
	int err = read_url(r, v8_object__word(o, r->layout->script_name), url, &is_named);

	if (!err && !is_named) /* the name that an eval gives itself */
		err = read_url(r, v8_object__word(o, r->layout->script_source_url), url, &is_named);
	if (err)
		return err;
	s.line_offset = smi_of(o, SCRIPT_LINE_OFFSET);
	s.column_offset = smi_of(o, SCRIPT_COLUMN_OFFSET);
	s.url = strdup(url);
	if (!s.url)
		return -ENOMEM;
	while (scripts->count == MAX_SCRIPTS || (scripts->count && scripts->bytes > CACHE_LIMIT))
		drop_oldest(scripts);
	scripts->at[scripts->count] = s;
	*found = &scripts->at[scripts->count++];
	scripts->bytes += script_size(*found);
	return 0;
}

int v8_script__find(struct v8_reader *r, uint64_t script, struct v8_script **found)
{
	struct v8_scripts *scripts = r->scripts;
	struct v8_script key = {.address = script, .last_use = ++scripts->clock};
	struct v8_object o;
	int err = v8_object__read(r, script, &o);

	if (err)
		return err == -EINVAL ? -ENODATA : err;
	if (o.type != r->layout->type_script)
		return o.type < 0 ? -EAGAIN : -ENODATA;
	key.source = v8_object__word(&o, r->layout->script_source);
	key.id = smi_of(&o, r->layout->script_id);
	for (size_t i = 0; i < scripts->count; i++) {
		struct v8_script *s = &scripts->at[i];

		if (s->address == key.address && s->source == key.source && s->id == key.id) {
			s->last_use = key.last_use;
			*found = s;
			return 0;
		}
	}
	return add_script(r, &o, &key, found);
}

/* ---- lines ----------------------------------------------------------------------------------- */

typedef VEC(uint32_t) u32_vec;

struct counting {
	u32_vec ends;
	uint32_t position;
	bool after_cr;
};

static int end_line(struct counting *c, uint32_t position)
{
	if (c->ends.count == MAX_LINES)
		return -EFBIG;
	return vec_push(&c->ends, position);
}

/* '\n', '\r', and the separators of lines and paragraphs. */
static inline bool may_end_line(uint32_t character)
{
	return character == '\n' || character == '\r' || (character | 1) == 0x2029;
}

static int count_char(struct counting *c, uint32_t character)
{
	int err = 0;

	if (c->after_cr && character != '\n')
		err = end_line(c, c->position - 1);
	c->after_cr = character == '\r';
	if (!err && !c->after_cr && may_end_line(character))
		err = end_line(c, c->position);
	c->position++;
	return err;
}

/* Of characters of one byte, among which there is no '\r'. */
static int count_newlines(struct counting *c, const unsigned char *chars, size_t count)
{
	const unsigned char *at = chars, *end = chars + count, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		int err = end_line(c, c->position + (uint32_t)(newline - chars));

		if (err)
			return err;
		at = newline + 1;
	}
	c->position += count;
	return 0;
}

static int count_chars(void *context, const unsigned char *chars, size_t count, bool wide)
{
	struct counting *c = context;
	int err = 0;

	if (!wide && !c->after_cr && !memchr(chars, '\r', count))
		return count_newlines(c, chars, count);
	for (size_t i = 0; i < count && !err; i++) {
		uint32_t character = wide ? chars[2 * i] | (uint32_t)chars[2 * i + 1] << 8
					  : chars[i];

		if (c->after_cr || may_end_line(character))
			err = count_char(c, character);
		else
			c->position++;
	}
	return err;
}

static int count_in_source(struct v8_reader *r, uint64_t source, struct counting *c)
{
	struct v8_object o;
	int err = v8_object__read(r, source, &o);

	if (err == -EINVAL || (!err && o.type >= r->layout->first_nonstring))
		return -ENOENT; /* has none: of V8 itself, or of WebAssembly */
	if (err)
		return err;
	if (v8_object__u32(&o, r->layout->string_length) > V8_SOURCE_MAX)
		return -EFBIG;
	err = v8_string__each(r, source, V8_SOURCE_MAX, count_chars, c);
	if (!err && c->after_cr)
		err = end_line(c, c->position - 1);
	return err ? err : end_line(c, c->position);
}

/* Those that V8 has counted: a FixedArray of Smis, ascending. -EAGAIN: not these. */
static int read_counted(struct v8_reader *r, uint64_t array, struct counting *c)
{
	uint64_t words[LINES_READ], address;
	uint32_t count;
	int err = v8_array__find(r, array, MAX_LINES, &address, &count);

	while (!err && c->ends.count < count) {
		size_t part = min_u64(count - c->ends.count, LINES_READ);

		err = target_memory__read(r->memory, words, part * sizeof(*words),
					  address + c->ends.count * sizeof(*words));
		for (size_t i = 0; i < part && !err; i++) {
			bool ascends = !c->ends.count ||
				       (uint32_t)v8_smi(words[i]) > c->ends.data[c->ends.count - 1];

			err = v8_is_smi(words[i]) && v8_smi(words[i]) >= 0 && ascends
				      ? end_line(c, v8_smi(words[i]))
				      : -EAGAIN;
		}
	}
	return err;
}

static int count_lines(struct v8_reader *r, const struct v8_script *s, struct counting *c)
{
	const struct v8_layout *l = r->layout;
	struct v8_object script, ends;
	int err = v8_object__read(r, s->address, &script);

	if (err)
		return err;
	err = v8_object__read(r, v8_object__word(&script, l->script_line_ends), &ends);
	if (!err && ends.type == l->type_fixed_array) {
		err = read_counted(r, ends.tagged, c);
		if (!err && c->ends.count)
			return 0;
		if (err && err != -EAGAIN && err != -EFBIG)
			return err;
		c->ends.count = 0;
	} else if (err && err != -EINVAL) {
		return err;
	}
	return count_in_source(r, v8_object__word(&script, l->script_source), c);
}

static int load_lines(struct v8_reader *r, struct v8_script *s)
{
	struct counting c = {};
	int err = count_lines(r, s, &c);

	if (!err) {
		s->ends = c.ends.data;
		s->line_count = c.ends.count;
		r->scripts->bytes += s->line_count * sizeof(*s->ends);
		s->counted = 1;
		return 0;
	}
	vec_free(&c.ends);
	if (err == -EFBIG || err == -ENOENT || err == -ELOOP) {
		r->memory->left |= err != -ENOENT;
		s->counted = 1; /* and never will be */
		return 0;
	}
	return err;
}

/* The line of a place, from 0 on; line_count: none. Most requests come in order. */
static size_t line_of(struct v8_script *s, uint32_t at)
{
	size_t i = s->last_line;

	if (i < s->line_count && s->ends[i] < at)
		i++;
	if (i >= s->line_count || s->ends[i] < at || (i && s->ends[i - 1] >= at))
		i = partition_point(s->ends, s->line_count, end, *end < at);
	s->last_line = i;
	return i;
}

int v8_script__place(struct v8_reader *r, struct v8_script *s, int32_t position, uint32_t *line,
		     uint32_t *column)
{
	const uint32_t at = position;
	int64_t in_line, in_column;
	size_t i;
	int err = s->counted ? 0 : load_lines(r, s);

	*line = *column = 0;
	if (err)
		return err;
	i = line_of(s, at);
	if (position < 0 || i == s->line_count)
		return 0;
	in_line = (int64_t)i + 1 + s->line_offset;
	in_column = (int64_t)at - (i ? s->ends[i - 1] + 1 : 0) + 1 + (i ? 0 : s->column_offset);
	if (in_line < 1 || in_line > UINT32_MAX || in_column < 1 || in_column > UINT32_MAX)
		return 0;
	*line = in_line;
	*column = in_column;
	return 0;
}
