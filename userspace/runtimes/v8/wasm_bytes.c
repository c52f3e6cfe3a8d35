/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/wasm_bytes.h"

#include <errno.h>
#include <stdbool.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/utf8.h"
#include "runtimes/v8/wasm.h"

#define WINDOW	      1024u
#define SECTIONS_MAX  4096u
#define NAME_MAX_READ 1023u

enum { SECTION_CUSTOM, SECTION_IMPORT = 2, SECTION_FUNCTION = 3 };
enum { IMPORT_FUNCTION, IMPORT_TABLE, IMPORT_MEMORY, IMPORT_GLOBAL, IMPORT_TAG };
enum { NAMES_OF_FUNCTIONS = 1 };

/* Reads on. An error stays: whatever is read after it is 0. */
struct cursor {
	struct target_memory *memory;
	uint64_t base;
	uint32_t at, end; /* offsets from there */
	uint32_t from, got;
	int err;
	unsigned char window[WINDOW];
};

static void begin(struct cursor *c, struct target_memory *m, const struct wasm_bytes *w,
		  uint32_t at, uint32_t end)
{
	c->memory = m;
	c->base = w->address;
	c->at = at;
	c->end = end;
	c->from = c->got = 0;
	c->err = 0;
}

static unsigned char read_byte(struct cursor *c)
{
	if (!c->err && c->at >= c->end)
		c->err = -EINVAL;
	if (c->err)
		return 0;
	if (c->at < c->from || c->at - c->from >= c->got) {
		uint32_t size = min_u64(WINDOW, c->end - c->at);

		c->err = target_memory__read(c->memory, c->window, size, c->base + c->at);
		if (c->err)
			return 0;
		c->from = c->at;
		c->got = size;
	}
	return c->window[c->at++ - c->from];
}

/* An integer of at most `bits`, read as unsigned: of signed ones only the length counts. */
static uint64_t read_leb(struct cursor *c, unsigned int bits)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < bits; shift += 7) {
		unsigned char byte = read_byte(c);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->err = c->err ? c->err : -EINVAL;
	return 0;
}

static uint32_t read_u32(struct cursor *c)
{
	uint64_t value = read_leb(c, 32);

	if (value > UINT32_MAX)
		c->err = c->err ? c->err : -EINVAL;
	return c->err ? 0 : value;
}

static void skip(struct cursor *c, uint32_t count)
{
	if (c->err)
		return;
	if (count > c->end - c->at)
		c->err = -EINVAL;
	else
		c->at += count;
}

static void skip_name(struct cursor *c)
{
	skip(c, read_u32(c));
}

/* ---- imports --------------------------------------------------------------------------------- */

static void skip_type(struct cursor *c)
{
	unsigned char type = read_byte(c);

	if (type == 0x63 || type == 0x64) /* a reference to a type that has a number */
		read_leb(c, 35);
}

static void skip_limits(struct cursor *c)
{
	unsigned char flags = read_byte(c);

	if (flags > 7) {
		c->err = c->err ? c->err : -ENOTSUP;
		return;
	}
	read_leb(c, 64);
	if (flags & 1)
		read_leb(c, 64);
}

/* 1: a function. */
static uint32_t skip_import(struct cursor *c)
{
	skip_name(c);
	skip_name(c);
	switch (read_byte(c)) {
	case IMPORT_FUNCTION:
		read_u32(c);
		return 1;
	case IMPORT_TABLE:
		skip_type(c);
		skip_limits(c);
		return 0;
	case IMPORT_MEMORY:
		skip_limits(c);
		return 0;
	case IMPORT_GLOBAL:
		skip_type(c);
		read_byte(c);
		return 0;
	case IMPORT_TAG:
		read_byte(c);
		read_u32(c);
		return 0;
	default:
		c->err = c->err ? c->err : -ENOTSUP;
		return 0;
	}
}

static void read_imports(struct wasm_bytes *w, struct cursor *c)
{
	uint32_t count = read_u32(c);

	for (uint32_t i = 0; i < count && !c->err; i++)
		w->imported += skip_import(c);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_name_section(struct cursor *c)
{
	static const char name[] = "name";

	if (read_u32(c) != sizeof(name) - 1)
		return false;
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		if (read_byte(c) != (unsigned char)name[i])
			return false;
	return !c->err;
}

/* They ascend by function, up to the last that does. The module is valid without them. */
static int mark_names(struct wasm_bytes *w, struct cursor *c)
{
	uint32_t count = read_u32(c), last = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t offset = c->at, function = read_u32(c);

		skip_name(c);
		if (c->err || (i && function <= last))
			break;
		if (w->marks.count == WASM_MARKS_MAX && i % WASM_MARK_NAMES == 0) {
			c->memory->left = true;
			break;
		}
		if (i % WASM_MARK_NAMES == 0 &&
		    vec_push(&w->marks, ((struct wasm_mark){function, offset})))
			break;
		last = function;
		w->names_end = c->at;
	}
	return c->err == -EINVAL ? 0 : c->err;
}

/* Parts with a number and a size each. */
static int find_names(struct wasm_bytes *w, struct cursor *c)
{
	for (uint32_t i = 0; i < SECTIONS_MAX && c->at < c->end && !c->err; i++) {
		unsigned char kind = read_byte(c);
		uint32_t size = read_u32(c);

		if (c->err || size > c->end - c->at)
			return 0;
		if (kind == NAMES_OF_FUNCTIONS) {
			c->end = c->at + size;
			return mark_names(w, c);
		}
		skip(c, size);
	}
	return c->err == -EINVAL ? 0 : c->err;
}

/* ---- the module ------------------------------------------------------------------------------ */

struct section {
	unsigned char kind;
	uint32_t at, end;
};

static int read_section(struct wasm_bytes *w, struct target_memory *m, const struct section *s,
			bool *has_names)
{
	struct cursor c;

	begin(&c, m, w, s->at, s->end);
	switch (s->kind) {
	case SECTION_IMPORT:
		read_imports(w, &c);
		return c.err;
	case SECTION_FUNCTION:
		w->own = read_u32(&c);
		return c.err;
	case SECTION_CUSTOM:
		if (*has_names || !is_name_section(&c))
			return c.err == -EINVAL ? 0 : c.err;
		*has_names = true;
		return find_names(w, &c);
	default:
		return 0;
	}
}

static int read_module(struct wasm_bytes *w, struct target_memory *m)
{
	static const unsigned char magic[8] = {0, 'a', 's', 'm', 1};
	bool has_names = false;
	struct cursor c;
	int err = 0;

	begin(&c, m, w, 0, w->size);
	for (size_t i = 0; i < sizeof(magic); i++)
		if (read_byte(&c) != magic[i])
			return c.err ? c.err : -EINVAL;
	for (uint32_t i = 0; c.at < c.end && !err; i++) {
		struct section s = {.kind = read_byte(&c)};
		uint32_t size = read_u32(&c);

		s.at = c.at;
		skip(&c, size);
		s.end = c.at;
		err = c.err;
		if (!err && i == SECTIONS_MAX)
			err = -EFBIG;
		if (!err)
			err = read_section(w, m, &s, &has_names);
	}
	if (!err && (w->imported > WASM_FUNCTIONS_MAX || w->own > WASM_FUNCTIONS_MAX))
		err = -EFBIG;
	return err;
}

int wasm_bytes__open(struct wasm_bytes *w, struct target_memory *m, uint64_t address, uint64_t size)
{
	int err;

	*w = (struct wasm_bytes){.address = address, .size = size};
	if (size < 8 || size > WASM_BYTES_MAX || address + size < address)
		return -EINVAL;
	err = read_module(w, m);
	m->left |= err == -EFBIG;
	if (err)
		wasm_bytes__fini(w);
	return err;
}

void wasm_bytes__fini(struct wasm_bytes *w)
{
	vec_free(&w->marks);
}

/* The last mark that is not behind the function. */
static const struct wasm_mark *mark_of(const struct wasm_bytes *w, uint32_t function)
{
	size_t at = partition_point(w->marks.data, w->marks.count, mark,
				    mark->function <= function);

	return at ? &w->marks.data[at - 1] : NULL;
}

int wasm_bytes__name(const struct wasm_bytes *w, struct target_memory *m, uint32_t function,
		     char *to, size_t size)
{
	const struct wasm_mark *mark = mark_of(w, function);
	char name[NAME_MAX_READ + 1];
	struct cursor c;

	to[0] = '\0';
	if (!mark)
		return -ENODATA;
	begin(&c, m, w, mark->offset, w->names_end);
	for (uint32_t i = 0; i < WASM_MARK_NAMES && c.at < c.end && !c.err; i++) {
		uint32_t number = read_u32(&c), length = read_u32(&c), kept = 0;

		if (number != function) {
			skip(&c, length);
			continue;
		}
		for (; kept < length && kept < NAME_MAX_READ && !c.err; kept++) {
			name[kept] = (char)read_byte(&c);
			if (!name[kept])
				break;
		}
		name[kept] = '\0';
		if (c.err || !kept)
			break;
		utf8_sanitize(to, size, name);
		return 0;
	}
	return c.err && c.err != -EINVAL ? c.err : -ENODATA;
}
