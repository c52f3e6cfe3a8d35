/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/html_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "elf/disassembly.h"
#include "formats/out/annotation.h"
#include "formats/out/describe.h"
#include "formats/out/html_numbers.h"
#include "profile/profile.h"

#define CODE_MAX    (384u << 10) /* bytes of machine code in a page: about 80,000 instructions */
#define SOURCES_MAX (1u << 20)	 /* bytes of text of all sources */
#define WHOLE_MAX   (64u << 10)	 /* sources up to this size are there as a whole */
#define NEAR	    40		 /* lines around those with code, of larger ones */
#define TEXT_SIZE   64
#define HEX	    "0x"

struct ranked_code {
	uint64_t events; /* with it at the leaf */
	const struct profile_code *code;
	uint64_t to_elf; /* what makes the ELF's address of a location's */
	struct disassembly text;
	uint32_t *strings; /* by instruction */
	const char
		*problem; /* why its instructions have bytes and no texts; NULL: they have texts */
};

struct source_span {
	uint32_t first; /* line */
	uint32_t from, size;
};

struct ranked_source {
	uint64_t events;
	const struct profile_source *source;
	const char *path;
	struct dso_id dso;   /* one whose source it is */
	VEC(uint32_t) lines; /* with code or samples */
	VEC(struct source_span) spans;
};

struct page_code {
	const struct profile *p;
	struct strtab *strings;
	uint32_t *number; /* by code of the profile: 1 + its place in `codes`; 0: it is in none */
	VEC(struct ranked_code) codes;
	VEC(struct ranked_source) sources;
	size_t codes_left_out, sources_left_out, instructions;
	uint64_t events_left_out; /* with the codes that were left out at the leaf */
	uint64_t code_bytes, source_bytes;
};

/* ---- machine code ---------------------------------------------------------------------------- */

DEFINE_ORDER(compare_codes, struct ranked_code, DESCENDING(events) ?: ASCENDING(code));

static void count_codes(struct page_code *c, const uint64_t *hits)
{
	const struct profile *p = c->p;

	for (size_t i = 1; i < p->stack_count; i++) {
		const struct profile_location *l = &p->locations[p->stacks[i].location.v];
		const struct profile_code *code = hits[i] ? profile__code(p, l) : NULL;

		if (code)
			c->codes.data[code - p->codes].events += hits[i];
	}
	for (size_t i = 1; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_code *code = profile__code(p, l);

		if (code && l->elf_address != PROFILE_UNKNOWN_ADDRESS)
			c->codes.data[code - p->codes].to_elf = l->elf_address - l->address;
	}
}

/* "48 89 e5" */
static int number_bytes(struct page_code *c, const struct ranked_code *r, size_t i)
{
	const struct instruction *instruction = &r->text.data[i];
	char text[TEXT_SIZE] = "";

	for (uint32_t k = 0; k < instruction->size && 3 * k + 3 < TEXT_SIZE; k++)
		snprintf(text + 3 * k, 4, "%02x ", r->code->bytes[instruction->offset + k]);
	if (*text)
		text[strlen(text) - 1] = '\0';
	return strtab__number(c->strings, text, &r->strings[i]);
}

/* Without the library: where instructions begin is known all the same. */
static int find_instructions(struct ranked_code *r)
{
	const uint16_t machine = elf_machine_of(r->code->machine);
	VEC(struct instruction) all = {};

	for (uint32_t at = 0; at < r->code->size;) {
		size_t size = instruction_size(machine, r->code->bytes + at, r->code->size - at);
		struct instruction next = {.offset = at, .size = (uint32_t)(size ?: 1)};

		next.target = DISASSEMBLY_NO_JUMP;
		if (vec_push(&all, next)) {
			vec_free(&all);
			return -ENOMEM;
		}
		at += next.size;
	}
	r->text = (struct disassembly){.data = all.data, .count = all.count};
	return 0;
}

/* Is it a jump, not a call, to an instruction of its code? 1 + the number of that; 0: no. */
static uint64_t jump_of(const struct ranked_code *r, size_t i)
{
	const struct instruction *instruction = &r->text.data[i];
	uint64_t offset = instruction->target - r->code->address - r->to_elf;
	const char *text;
	size_t behind;

	if (instruction->target == DISASSEMBLY_NO_JUMP || offset >= r->code->size)
		return 0;
	text = disassembly__text(&r->text, i);
	if (strstr(text, "call") || !strncmp(text, "bl ", 3))
		return 0;
	behind = partition_index(r->text.count, k, r->text.data[k].offset <= offset);
	return r->text.data[behind - 1].offset == offset ? behind : 0;
}

/* Without the target of a jump, whose place the page has: texts of equal jumps are equal. */
static int number_text(struct page_code *c, const struct ranked_code *r, size_t i)
{
	const char *whole = disassembly__text(&r->text, i);
	char target[TEXT_SIZE];
	size_t length = strlen(whole), tail;
	_cleanup_free_ char *text = NULL;

	tail = (size_t)snprintf(target, sizeof(target), HEX "%" PRIx64, r->text.data[i].target);
	if (!jump_of(r, i) || length < tail || strcmp(whole + length - tail, target))
		return strtab__number(c->strings, whole, &r->strings[i]);
	text = strndup(whole, length - tail + strlen(HEX));
	return text ? strtab__number(c->strings, text, &r->strings[i]) : -ENOMEM;
}

static int take_code(struct page_code *c, struct ranked_code *r)
{
	const struct disassembly_request request = {
		.code = r->code->bytes,
		.size = r->code->size,
		.address = r->code->address + r->to_elf,
		.machine = elf_machine_of(r->code->machine),
		.syntax = SYNTAX_INTEL,
	};
	int err = disassemble(&request, &r->text);

	if (err && err != -ENOMEM) {
		r->problem = disassembly_strerror(err);
		err = find_instructions(r);
	}
	if (err)
		return err;
	r->strings = calloc(r->text.count + 1, sizeof(*r->strings));
	if (!r->strings)
		return -ENOMEM;
	for (size_t i = 0; i < r->text.count && !err; i++)
		err = r->problem ? number_bytes(c, r, i) : number_text(c, r, i);
	c->instructions += r->text.count;
	c->code_bytes += r->code->size;
	return err;
}

/* The hottest ones, as far as there is room. */
static int choose_codes(struct page_code *c, const uint64_t *hits)
{
	const struct profile *p = c->p;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < p->code_count; i++)
		if (vec_push(&c->codes, (struct ranked_code){.code = &p->codes[i]}))
			return -ENOMEM;
	count_codes(c, hits);
	vec_sort(&c->codes, compare_codes);
	for (size_t i = 0; i < c->codes.count && !err; i++) {
		struct ranked_code r = c->codes.data[i];

		if (c->code_bytes + r.code->size > CODE_MAX) {
			c->codes_left_out++;
			c->events_left_out += r.events;
			continue;
		}
		err = take_code(c, &r);
		c->codes.data[kept++] = r;
		c->number[r.code - p->codes] = (uint32_t)kept;
	}
	c->codes.count = kept;
	return err;
}

struct page_place page_code__place(const struct page_code *c,
				   const struct profile_location *location)
{
	const struct profile_code *code = profile__code(c->p, location);
	uint32_t number = code ? c->number[code - c->p->codes] : 0;
	const struct ranked_code *r;
	uint64_t offset;
	size_t behind;

	if (!number)
		return (struct page_place){};
	r = &c->codes.data[number - 1];
	offset = location->address - code->address;
	behind = partition_index(r->text.count, i, r->text.data[i].offset <= offset);
	return (struct page_place){number, (uint32_t)behind - 1};
}

/* ---- sources --------------------------------------------------------------------------------- */

/* Not by the numbers of paths: those that the names of functions bring differ when a recording is read again. */
DEFINE_ORDER(compare_sources, struct ranked_source,
	     DESCENDING(events) ?: strcmp(x->path, y->path) ?: ASCENDING(source->root));
DEFINE_ORDER(compare_numbers, uint32_t, order_of(*x, *y));

static int need_line(struct page_code *c, struct dso_id dso, struct string_id file, uint32_t line,
		     uint64_t events)
{
	const struct profile_source *source = file.v && line ? profile__source(c->p, dso, file)
							     : NULL;
	struct ranked_source *r = source ? &c->sources.data[source - c->p->sources] : NULL;

	if (!r)
		return 0;
	r->events += events;
	r->dso = dso;
	return vec_push(&r->lines, line);
}

static int need_line_of(struct page_code *c, const struct profile_location *l, uint32_t number,
			uint64_t events)
{
	const struct profile_line line = profile__source_line(c->p, l, number);

	return need_line(c, l->dso, line.file, line.line, events);
}

static int need_lines(struct page_code *c, const uint64_t *hits)
{
	const struct profile *p = c->p;
	int err = 0;

	for (size_t i = 1; i < p->location_count && !err; i++) {
		const struct profile_location *l = &p->locations[i];

		for (size_t k = l->first_line; k < l->first_line + l->line_count && !err; k++)
			err = need_line_of(c, l, (uint32_t)k, 0);
	}
	for (size_t i = 0; i < c->codes.count && !err; i++) {
		const struct profile_code *code = c->codes.data[i].code;

		for (size_t k = code->first_row; k < code->first_row + code->row_count && !err; k++)
			err = need_line(c, code->dso, p->code_rows[k].file, p->code_rows[k].line,
					0);
	}
	for (size_t i = 1; i < p->stack_count && !err; i++) {
		const struct profile_location *l = &p->locations[p->stacks[i].location.v];

		if (hits[i])
			err = need_line_of(c, l, l->first_line, hits[i]);
	}
	return err;
}

static int add_span(struct ranked_source *r, const struct source_lines *lines, uint32_t first,
		    uint32_t end)
{
	struct source_span span = {.first = first, .from = lines->starts.data[first - 1]};
	uint32_t behind = end <= lines->starts.count ? lines->starts.data[end - 1]
						     : r->source->size;

	span.size = behind - span.from;
	return vec_push(&r->spans, span);
}

/* The parts of the text with the lines that are needed, and some around. */
static int span_lines(struct ranked_source *r, const struct source_lines *lines)
{
	uint32_t first = 0, end = 0; /* of the span in the making */
	int err = 0;

	vec_sort(&r->lines, compare_numbers);
	for (size_t i = 0; i < r->lines.count && !err; i++) {
		uint32_t line = r->lines.data[i];

		if (line > lines->starts.count)
			break;
		if (first && line > end + NEAR) {
			err = add_span(r, lines, first, end);
			first = 0;
		}
		first = first ?: line > NEAR ? line - NEAR : 1;
		end = (uint32_t)min_u64(line + NEAR, lines->starts.count) + 1;
	}
	return err ?: first ? add_span(r, lines, first, end) : 0;
}

static int take_source(struct page_code *c, struct ranked_source *r)
{
	_cleanup_(source_lines__fini) struct source_lines lines;
	uint64_t size = 0;
	int err = source_lines__init(&lines, r->source);

	if (err || !r->lines.count)
		return err;
	err = r->source->size <= WHOLE_MAX
		      ? add_span(r, &lines, 1, (uint32_t)lines.starts.count + 1)
		      : span_lines(r, &lines);
	for (size_t i = 0; i < r->spans.count; i++)
		size += r->spans.data[i].size;
	if (c->source_bytes + size > SOURCES_MAX) {
		c->sources_left_out++;
		r->spans.count = 0;
		return err;
	}
	c->source_bytes += size;
	return err;
}

/* Those of the lines with most samples, as far as there is room. */
static int choose_sources(struct page_code *c, const uint64_t *hits)
{
	const struct profile *p = c->p;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < p->source_count; i++) {
		const struct profile_source *s = &p->sources[i];

		if (vec_push(&c->sources,
			     (struct ranked_source){.source = s,
						    .path = profile__string(p, s->path)}))
			return -ENOMEM;
	}
	err = need_lines(c, hits);
	vec_sort(&c->sources, compare_sources);
	for (size_t i = 0; i < c->sources.count && !err; i++)
		err = take_source(c, &c->sources.data[i]);
	for (size_t i = 0; i < c->sources.count; i++) {
		struct ranked_source r = c->sources.data[i];

		vec_free(&r.lines);
		if (r.spans.count)
			c->sources.data[kept++] = r;
		else
			vec_free(&r.spans);
	}
	c->sources.count = kept;
	return err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct page_code *page_code__new(const struct profile *p)
{
	_cleanup_free_ uint64_t *hits = calloc(p->stack_count + 1, sizeof(*hits));
	struct page_code *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->p = p;
	c->strings = strtab__new();
	c->number = calloc(p->code_count + 1, sizeof(*c->number));
	if (hits)
		profile__count_stacks(p, hits);
	if (hits && c->strings && c->number && !choose_codes(c, hits) && !choose_sources(c, hits))
		return c;
	page_code__free(c);
	return NULL;
}

void page_code__free(struct page_code *c)
{
	if (!c)
		return;
	strtab__free(c->strings);
	free(c->number);
	vec_free_with(&c->codes, r, (disassembly__fini(&r->text), free(r->strings)));
	for (size_t i = 0; i < c->sources.count; i++) {
		vec_free(&c->sources.data[i].lines);
		vec_free(&c->sources.data[i].spans);
	}
	vec_free(&c->sources);
	free(c);
}

void page_code__describe(const struct page_code *c, struct json_writer *w)
{
	if (!c->p->code_count && !c->p->source_count)
		return;
	json_key_object(w, "code");
	json_key_uint(w, "codes", c->codes.count);
	json_key_uint(w, "instructions", c->instructions);
	json_key_uint(w, "sources", c->sources.count);
	json_key_uint(w, "source_bytes", c->source_bytes);
	json_key_uint(w, "codes_left_out", c->codes_left_out);
	json_key_uint(w, "samples_left_out", c->events_left_out);
	json_key_uint(w, "sources_left_out", c->sources_left_out);
	json_end_object(w);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Columns go to memory first: their strings are written before them. */
struct columns {
	const struct page_code *c;
	FILE *out;
	int error;
};

static void put_string(struct columns *columns, const char *text)
{
	uint32_t number = 0;

	columns->error = columns->error ?: strtab__number(columns->c->strings, text, &number);
	put_uint(columns->out, number);
}

/* The lines of a code: how many instructions have the line before, then the line. */
static void write_rows(struct columns *columns, const struct ranked_code *r)
{
	const struct profile *p = columns->c->p;
	char name[SOURCE_NAME_SIZE];
	uint32_t last_line = 0;
	size_t before = 0;

	for (size_t i = 0; i < r->code->row_count; i++) {
		const struct profile_code_row *row = &p->code_rows[r->code->first_row + i];
		size_t at = partition_index(r->text.count, k, r->text.data[k].offset < row->offset);

		put_uint(columns->out, at - before);
		put_uint(columns->out, row->depth);
		put_string(columns, profile__string(p, p->functions[row->function.v].name));
		put_string(columns, row->line ? source_name(p, r->code->dso, row->file, name) : "");
		put_int(columns->out, (int64_t)row->line - last_line);
		before = at;
		last_line = row->line;
	}
}

static void write_code(struct columns *columns, const struct ranked_code *r)
{
	FILE *out = columns->out;

	put_string(columns, dso_display_name(columns->c->p, r->code->dso));
	put_string(columns, r->problem ?: "");
	put_uint(out, r->code->address + r->to_elf);
	put_uint(out, r->text.count);
	put_uint(out, r->code->row_count);
	for (size_t i = 0; i < r->text.count; i++)
		put_uint(out, r->text.data[i].size);
	for (size_t i = 0; i < r->text.count; i++)
		put_uint(out, r->strings[i]);
	for (size_t i = 0; i < r->text.count; i++)
		put_uint(out, jump_of(r, i));
	write_rows(columns, r);
}

static void write_source(struct columns *columns, const struct ranked_source *r)
{
	char name[SOURCE_NAME_SIZE];

	put_string(columns, source_name(columns->c->p, r->dso, r->source->path, name));
	put_string(columns, source_state_text(r->source->state));
	put_uint(columns->out, r->source->state == SOURCE_CHANGED);
	put_uint(columns->out, r->spans.count);
	for (size_t i = 0; i < r->spans.count; i++) {
		const struct source_span *span = &r->spans.data[i];

		put_uint(columns->out, span->first);
		put_uint(columns->out, span->size);
		fwrite(r->source->text + span->from, 1, span->size, columns->out);
	}
}

static int make_columns(const struct page_code *c, char **data, size_t *size)
{
	struct columns columns = {.c = c, .out = open_memstream(data, size)};

	if (!columns.out)
		return -ENOMEM;
	for (size_t i = 0; i < c->codes.count; i++)
		write_code(&columns, &c->codes.data[i]);
	for (size_t i = 0; i < c->sources.count; i++)
		write_source(&columns, &c->sources.data[i]);
	if (fclose(columns.out))
		return -ENOMEM;
	return columns.error;
}

static int make_words(const struct page_code *c, char **text, size_t *size)
{
	FILE *stream = open_memstream(text, size);
	struct json_writer w;
	int err;

	if (!stream)
		return -ENOMEM;
	json_writer__init(&w, stream);
	json_begin_object(&w);
	json_key_uint(&w, "strings", strtab__count(c->strings));
	json_key_uint(&w, "codes", c->codes.count);
	json_key_uint(&w, "sources", c->sources.count);
	json_key_string(&w, "certainty", annotation_skid(c->p));
	json_key_string(&w, "no_code", annotation_no_code(c->p));
	json_end_object(&w);
	err = json_writer__finish(&w);
	return fclose(stream) ? -ENOMEM : err;
}

int page_code__write(const struct page_code *c, FILE *out)
{
	_cleanup_free_ char *columns = NULL, *words = NULL;
	size_t size = 0, words_size = 0;
	int err = make_columns(c, &columns, &size) ?: make_words(c, &words, &words_size);

	if (err)
		return err;
	put_uint(out, words_size);
	fwrite(words, 1, words_size, out);
	for (uint32_t i = 0; i < strtab__count(c->strings); i++) {
		const char *text = strtab__get(c->strings, i);

		fwrite(text, 1, strlen(text) + 1, out);
	}
	fwrite(columns, 1, size, out);
	return ferror(out) ? -EIO : 0;
}
