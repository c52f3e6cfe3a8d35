/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/heap.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/utf8.h"

#define PAGE	     4096u
#define ARRAY_LENGTH 8 /* of both kinds, a Smi */
#define ARRAY_DATA   16

/* Types of objects that are followed. Maps of others may be freed, and their memory reused. */
static bool is_lasting(const struct v8_layout *l, int32_t type)
{
	const int32_t lasting[] = {l->type_sfi,	       l->type_scope_info,
				   l->type_script,     l->type_bytecode_array,
				   l->type_code,       l->type_instruction_stream,
				   l->type_fixed_array};

	if (type < l->first_nonstring)
		return true;
	for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting); i++) {
		if (lasting[i] == type)
			return true;
	}
	return false;
}

int v8_reader__type(struct v8_reader *r, uint64_t map, int32_t *type)
{
	unsigned int slot = (map >> 3 ^ map >> 9) % V8_MAPS_KNOWN;
	uint16_t read;
	int err;

	if (!v8_is_object(map))
		return -EINVAL;
	if (r->maps[slot].map == map) {
		*type = r->maps[slot].type;
		return 0;
	}
	err = target_memory__u16(r->memory, &read, map - 1 + r->layout->map_type);
	if (err)
		return err;
	if (is_lasting(r->layout, read)) {
		r->maps[slot].map = map;
		r->maps[slot].type = read;
	}
	*type = read;
	return 0;
}

/* As much of an object as there is: the last one of a mapping may end before that. */
static int read_beginning(struct v8_reader *r, struct v8_object *o)
{
	uint64_t address = o->tagged - 1;
	size_t in_page = PAGE - (address & (PAGE - 1));
	int err = target_memory__read(r->memory, o->bytes, sizeof(o->bytes), address);

	o->got = sizeof(o->bytes);
	if (err != -ENODATA || in_page >= sizeof(o->bytes))
		return err;
	o->got = in_page;
	return target_memory__read(r->memory, o->bytes, in_page, address);
}

int v8_object__read(struct v8_reader *r, uint64_t tagged, struct v8_object *o)
{
	int err;

	*o = (struct v8_object){.tagged = tagged, .type = -1};
	if (!v8_is_object(tagged))
		return -EINVAL;
	err = read_beginning(r, o);
	if (err)
		return err;
	err = v8_reader__type(r, v8_object__word(o, 0), &o->type);
	/* a map that is none, or is not there, leaves an object without a type */
	return err == -EINVAL || err == -ENODATA ? 0 : err;
}

uint64_t v8_object__moved_to(const struct v8_object *o)
{
	uint64_t first = v8_object__word(o, 0);

	return first && (first & 3) == 0 ? first + 1 : 0;
}

int v8_array__find(struct v8_reader *r, uint64_t tagged, uint32_t limit, uint64_t *address,
		   uint32_t *count)
{
	uint64_t header[2];
	int err;

	if (!v8_is_object(tagged))
		return -EAGAIN;
	err = target_memory__read(r->memory, header, sizeof(header), tagged - 1);
	if (err)
		return err;
	_Static_assert(ARRAY_LENGTH == sizeof(header[0]) && ARRAY_DATA == sizeof(header), "V8's");
	if (!v8_is_object(header[0]) || !v8_is_smi(header[1]) || v8_smi(header[1]) < 0 ||
	    (uint32_t)v8_smi(header[1]) > limit)
		return -EAGAIN;
	*address = tagged - 1 + ARRAY_DATA;
	*count = v8_smi(header[1]);
	return 0;
}

/* ---- strings --------------------------------------------------------------------------------- */

#define MAX_DEPTH   40	  /* parts that are not read yet */
#define MAX_PIECES  1024  /* also of a ring of them */
#define CHUNK	    16384 /* bytes that are read at once */
#define TEXT_MAX    4096
#define SHORT_TABLE 0x10 /* type: has no pointer to its characters, since they may move */
#define TWO_BYTES   8	 /* type: not this */

enum { SEQUENTIAL = 0, CONS = 1, EXTERNAL = 2, SLICED = 3, THIN = 5, REPRESENTATION = 7 };

struct part {
	uint64_t string;
	uint32_t from, count;
};

struct walk {
	struct v8_reader *r;
	v8_chars_fn visit;
	void *context;
	struct part parts[MAX_DEPTH]; /* the next one last */
	unsigned int depth;
};

static int push(struct walk *w, uint64_t string, uint32_t from, uint32_t count)
{
	if (!count)
		return 0;
	if (w->depth == MAX_DEPTH)
		return -ELOOP;
	w->parts[w->depth++] = (struct part){string, from, count};
	return 0;
}

static int read_chars(struct walk *w, uint64_t address, uint32_t count, bool wide)
{
	const size_t width = wide ? 2 : 1;
	unsigned char chunk[CHUNK];

	while (count) {
		size_t part = min_u64(count, CHUNK / width);
		int err = target_memory__read(w->r->memory, chunk, part * width, address)
				  ?: w->visit(w->context, chunk, part, wide);

		if (err)
			return err;
		address += part * width;
		count -= part;
	}
	return 0;
}

static int visit_sequential(struct walk *w, const struct v8_object *o, const struct part *p)
{
	const bool wide = !(o->type & TWO_BYTES);
	const size_t width = wide ? 2 : 1;
	size_t begin = w->r->layout->string_chars + (size_t)p->from * width;

	if (begin + p->count * width <= o->got)
		return w->visit(w->context, o->bytes + begin, p->count, wide);
	return read_chars(w, o->tagged - 1 + begin, p->count, wide);
}

/* Its characters are the embedder's, which keeps them in memory of its own. */
static int visit_external(struct walk *w, const struct v8_object *o, const struct part *p)
{
	const struct v8_layout *l = w->r->layout;
	const bool wide = !(o->type & TWO_BYTES);
	uint64_t data = v8_object__word(o, l->string_data);

	if (o->type & SHORT_TABLE) {
		int err = target_memory__word(w->r->memory, &data,
					      v8_object__word(o, l->external_resource) + 8);

		if (err)
			return err;
	}
	if (!data)
		return -EAGAIN;
	return read_chars(w, data + (uint64_t)p->from * (wide ? 2 : 1), p->count, wide);
}

static int push_cons(struct walk *w, const struct v8_object *o, const struct part *p)
{
	const struct v8_layout *l = w->r->layout;
	uint64_t first = v8_object__word(o, l->cons_first);
	uint32_t length, of_first = 0;
	int err;

	if (!v8_is_object(first))
		return -EAGAIN;
	err = target_memory__u32(w->r->memory, &length, first - 1 + l->string_length);
	if (err)
		return err;
	if (p->from < length)
		of_first = min_u64(p->count, length - p->from);
	return push(w, v8_object__word(o, l->cons_second),
		    p->from + of_first - min_u64(length, p->from + of_first), p->count - of_first)
		       ?: push(w, first, p->from, of_first);
}

static int push_sliced(struct walk *w, const struct v8_object *o, const struct part *p)
{
	const struct v8_layout *l = w->r->layout;
	uint64_t offset = v8_object__word(o, l->sliced_offset);
	uint32_t from;

	if (!v8_is_smi(offset) || v8_smi(offset) < 0 ||
	    __builtin_add_overflow(p->from, (uint32_t)v8_smi(offset), &from))
		return -EAGAIN;
	return push(w, v8_object__word(o, l->sliced_parent), from, p->count);
}

static int visit_part(struct walk *w, const struct part *p)
{
	const struct v8_layout *l = w->r->layout;
	struct v8_object o;
	int err = v8_object__read(w->r, p->string, &o);

	if (err)
		return err == -EINVAL ? -EAGAIN : err;
	if (!v8_object__is_string(w->r, &o) ||
	    (uint64_t)p->from + p->count > v8_object__u32(&o, l->string_length))
		return -EAGAIN;
	switch (o.type & REPRESENTATION) {
	case SEQUENTIAL:
		return visit_sequential(w, &o, p);
	case CONS:
		return push_cons(w, &o, p);
	case EXTERNAL:
		return visit_external(w, &o, p);
	case SLICED:
		return push_sliced(w, &o, p);
	case THIN:
		return push(w, v8_object__word(&o, l->thin_actual), p->from, p->count);
	default:
		return -EAGAIN;
	}
}

int v8_string__each(struct v8_reader *r, uint64_t string, uint32_t limit, v8_chars_fn visit,
		    void *context)
{
	struct walk w = {.r = r, .visit = visit, .context = context};
	unsigned int pieces = 0;
	struct v8_object o;
	int err = v8_object__read(r, string, &o);

	if (err)
		return err == -EINVAL ? -EAGAIN : err;
	if (!v8_object__is_string(r, &o))
		return -EAGAIN;
	err = push(&w, string, 0, min_u64(limit, v8_object__u32(&o, r->layout->string_length)));
	while (!err && w.depth) {
		struct part next = w.parts[--w.depth];

		if (pieces++ == MAX_PIECES)
			return -ELOOP;
		err = visit_part(&w, &next);
	}
	return err;
}

/* ---- as text --------------------------------------------------------------------------------- */

struct text {
	char *to;
	size_t used, size; /* the NUL has its place */
	uint32_t high;	   /* the first half of a character of UTF-16; 0: none */
};

static void put_code(struct text *t, uint32_t c)
{
	char bytes[4];
	size_t count = utf8_put(bytes, c);

	if (count > t->size - t->used) {
		t->size = t->used; /* nothing shorter comes behind what is left out */
		return;
	}
	memcpy(t->to + t->used, bytes, count);
	t->used += count;
}

static void put_unit(struct text *t, uint32_t c)
{
	const uint32_t replacement = 0xfffd;

	if (c >= 0xdc00 && c < 0xe000) { /* a second half */
		put_code(t, t->high ? 0x10000 + ((t->high - 0xd800) << 10) + (c - 0xdc00)
				    : replacement);
		t->high = 0;
		return;
	}
	if (t->high)
		put_code(t, replacement);
	t->high = c >= 0xd800 && c < 0xdc00 ? c : 0;
	if (!t->high)
		put_code(t, c);
}

static int put_chars(void *context, const unsigned char *chars, size_t count, bool wide)
{
	struct text *t = context;

	for (size_t i = 0; i < count; i++)
		put_unit(t, wide ? chars[2 * i] | (uint32_t)chars[2 * i + 1] << 8 : chars[i]);
	return 0;
}

int v8_string__text(struct v8_reader *r, uint64_t string, char *to, size_t size)
{
	char raw[TEXT_MAX];
	struct text t = {.to = raw, .size = min_u64(size, sizeof(raw)) - 1};
	int err = v8_string__each(r, string, t.size, put_chars, &t);

	to[0] = '\0';
	if (err)
		return err;
	if (t.high)
		put_code(&t, 0xfffd);
	raw[t.used] = '\0';
	utf8_sanitize(to, size, raw);
	return 0;
}
