/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/code.h"

#include <errno.h>

#include <stdlib.h>
#include <sysprof/runtime_info.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/minmax.h"
#include "base/utf8.h"

/* ---- identity ----------------------------------------------------------------------------- */

static uint32_t u32_at(const uint8_t *bytes, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* 3.11 alone. As the kernel does it: what cannot be read counts as 0. */
static int stand_in_for_version(const struct cpython *py, struct target_memory *m,
				const uint8_t *head, uint32_t *version)
{
	const struct cpython_layout *l = &py->layout;
	uint64_t filename = cpython_word(head, l->code_filename), hash, length, size;
	__u64 tail[RUNTIME_FILE_TAIL];
	int err = target_memory__word(m, &hash, cpython_word(head, l->code_name) + l->str_hash),
	    more;

	if (err)
		hash = 0;
	memset(tail, 0, sizeof(tail));
	more = target_memory__word(m, &length, filename + l->str_length);
	if (more)
		length = 0;
	size = min_u64(length, sizeof(tail));
	if (size && !more)
		more = target_memory__read(m, tail, size, filename + l->str_ascii + length - size);
	*version = runtime_python_version((uint32_t)cpython_word(head, l->code_qualname), hash,
					  runtime_python_file(length, tail));
	return err ? err : more;
}

int cpython_identity__of_head(const struct cpython *py, struct target_memory *m,
			      const uint8_t *head, struct cpython_identity *identity)
{
	const struct cpython_layout *l = &py->layout;

	*identity = (struct cpython_identity){
		.version = l->code_version ? u32_at(head, l->code_version) : 0,
		.firstline = u32_at(head, l->code_firstline),
		.qualname = cpython_word(head, l->code_qualname),
		.others = cpython_word(head, l->code_filename) * 31 +
			  cpython_word(head, l->code_linetable),
	};
	return l->code_name ? stand_in_for_version(py, m, head, &identity->version) : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * An entry is a byte with bit 7 set, a kind and a length, and the operands of the kind behind it.
 * The length is in code units of two bytes; lines are differences.
 */
#define CODE_UNIT 2u
#define CODE_MAX  (1u << 30) /* bytes of one function's bytecode */

enum { KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NO_LINE = 15 };

/* Six bits in a byte, the lowest first; bit 6: there are more. */
static uint32_t take_number(struct cursor *r)
{
	uint32_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor__u8(r);
		if (shift < 32)
			value |= (uint32_t)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40 && !r->bad);
	return value;
}

static int64_t take_difference(struct cursor *r)
{
	uint32_t value = take_number(r);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* The difference of the line; columns are skipped. */
static int64_t take_line(struct cursor *r, unsigned int kind)
{
	int64_t difference = 0;

	if (kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS) {
		cursor__u8(r);
		cursor__u8(r);
		return kind - KIND_ONE_LINE;
	}
	if (kind < KIND_ONE_LINE)
		cursor__u8(r);
	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		difference = take_difference(r);
	for (int i = 0; kind == KIND_LONG && i < 3; i++)
		take_number(r);
	return difference;
}

static int add_row(struct managed_function *f, uint32_t offset, uint32_t line)
{
	if (f->rows.count && f->rows.data[f->rows.count - 1].line == line)
		return 0;
	return vec_push(&f->rows, (struct managed_row){.offset = offset, .line = line});
}

int cpython_lines__read(const uint8_t *table, size_t size, uint32_t firstline,
			struct managed_function *f)
{
	struct cursor r = {.at = table, .end = table + size};
	int64_t line = firstline;
	uint32_t offset = 0;
	int err = 0;

	while (!err && r.at < r.end && f->rows.count + 1 < MANAGED_ROWS_MAX && offset < CODE_MAX) {
		uint8_t entry = cursor__u8(&r);
		unsigned int kind = entry >> 3 & 0xf;

		line += entry & 0x80 ? take_line(&r, kind) : 0;
		if (!(entry & 0x80) || r.bad)
			break;
		err = add_row(f, offset,
			      kind != KIND_NO_LINE && line > 0 && line <= INT32_MAX ? line : 0);
		offset += CODE_UNIT * ((entry & 7u) + 1);
	}
	return err ? err : add_row(f, offset, 0);
}

/* ---- the function ---------------------------------------------------------------------------- */

/* The words of a head that say which code it is. */
struct head {
	uint64_t refcount, type, filename, linetable;
	struct cpython_identity identity;
};

static int read_head(const struct cpython *py, struct target_memory *m, uint64_t code,
		     struct head *h)
{
	const struct cpython_layout *l = &py->layout;
	uint8_t bytes[CPYTHON_HEAD_MAX];
	int err = target_memory__read(m, bytes, cpython_head__size(py), code);

	*h = (struct head){};
	if (err)
		return err;
	h->refcount = cpython_word(bytes, 0);
	h->type = cpython_word(bytes, CPYTHON_TYPE_AT);
	h->filename = cpython_word(bytes, l->code_filename);
	h->linetable = cpython_word(bytes, l->code_linetable);
	return cpython_identity__of_head(py, m, bytes, &h->identity);
}

static bool is_of_identity(const struct head *h, const struct cpython_identity *identity)
{
	return h->identity.version == identity->version &&
	       h->identity.firstline == identity->firstline &&
	       h->identity.qualname == identity->qualname && h->identity.others == identity->others;
}

/* Without the counts of references, which change with every use. */
static bool is_same(const struct head *a, const struct head *b)
{
	return a->type == b->type && is_of_identity(a, &b->identity);
}

static int read_line_table(const struct cpython *py, struct target_memory *m, const struct head *h,
			   struct managed_function *f)
{
	_cleanup_free_ uint8_t *table = NULL;
	size_t size;
	return cpython_bytes__read(py, m, h->linetable, CPYTHON_LINETABLE_MAX, &table, &size)
		       ?: cpython_lines__read(table, size, h->identity.firstline, f);
}

static int read_all(const struct cpython *py, struct target_memory *m, uint64_t code,
		    const struct cpython_identity *identity, struct managed_function *f)
{
	struct head h, again;
	int err = read_head(py, m, code, &h);

	if (err)
		return err;
	if (!cpython_object__is_alive(h.refcount) || (py->code_type && h.type != py->code_type) ||
	    !is_of_identity(&h, identity))
		return -ESTALE;
	err = cpython_str__read(py, m, h.identity.qualname, f->name, sizeof(f->name))
			?: cpython_str__read(py, m, h.filename, f->file, sizeof(f->file))
			?: read_line_table(py, m, &h, f)
			?: read_head(py, m, code, &again);
	if (err)
		return err;
	f->line = h.identity.firstline <= INT32_MAX ? h.identity.firstline : 0;
	return cpython_object__is_alive(again.refcount) && is_same(&h, &again) ? 0 : -ESTALE;
}

static void forget(struct managed_function *f)
{
	f->name[0] = f->file[0] = '\0';
	f->line = f->column = 0;
	f->rows.count = 0;
}

enum code_state cpython_code__read(const struct cpython *py, struct target_memory *m, uint64_t code,
				   const struct cpython_identity *identity,
				   struct managed_function *f)
{
	bool left = m->left;
	int err = read_all(py, m, code, identity, f);

	if (!err)
		return CODE_STATE_CONFIRMED;
	m->left = left || err == -EDQUOT; /* lengths of something else say nothing */
	forget(f);
	/* gone, or something else: not what was sampled */
	return err == -ESTALE || err == -ENODATA || err == -EBADMSG ? CODE_STATE_STALE
								    : CODE_STATE_UNKNOWN;
}

/* ---- str and bytes --------------------------------------------------------------------------- */

#define CHARS_MAX  MANAGED_FILE_MAX
#define WIDEST	   4u
#define HEAD_MAX   64u
#define KIND_SHIFT 2u
#define KIND_MASK  7u
#define IS_COMPACT (1u << 5)
#define IS_ASCII   (1u << 6)

bool cpython_object__is_alive(uint64_t first_word)
{
	return (uint32_t)first_word && !(first_word >> 32 & 0xffff);
}

struct str_head {
	uint64_t length;
	uint64_t text; /* address */
	uint32_t kind; /* bytes of a character */
};

static int read_str_head(const struct cpython *py, struct target_memory *m, uint64_t address,
			 struct str_head *h)
{
	const struct cpython_layout *l = &py->layout;
	uint8_t bytes[HEAD_MAX];
	uint64_t first;
	uint32_t state;
	int err;

	if (l->str_length + 8 > sizeof(bytes) || l->str_state + 4 > sizeof(bytes))
		return -EBADMSG;
	err = target_memory__read(m, bytes, max_u64(l->str_length + 8, l->str_state + 4), address);
	if (err)
		return err;
	memcpy(&first, bytes, sizeof(first));
	memcpy(&h->length, bytes + l->str_length, sizeof(h->length));
	memcpy(&state, bytes + l->str_state, sizeof(state));
	if (!cpython_object__is_alive(first))
		return -ESTALE;
	h->kind = state >> KIND_SHIFT & KIND_MASK;
	if (!(state & IS_COMPACT) || (h->kind != 1 && h->kind != 2 && h->kind != 4) ||
	    (state & IS_ASCII && h->kind != 1))
		return -EBADMSG;
	h->text = address + (state & IS_ASCII ? l->str_ascii : l->str_other);
	return 0;
}

static uint32_t char_at(const uint8_t *text, uint32_t kind, size_t i)
{
	uint32_t c = 0;

	memcpy(&c, text + i * kind, kind);
	return c;
}

int cpython_str__read(const struct cpython *py, struct target_memory *m, uint64_t address, char *to,
		      size_t size)
{
	uint8_t text[CHARS_MAX * WIDEST];
	char utf8[CHARS_MAX * 4 + 1], *end = utf8;
	struct str_head h;
	int err = read_str_head(py, m, address, &h);
	size_t count;

	if (size)
		*to = '\0';
	if (err)
		return err;
	count = min_u64(min_u64(h.length, CHARS_MAX), size);
	err = count ? target_memory__read(m, text, count * h.kind, h.text) : 0;
	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		end += utf8_put(end, char_at(text, h.kind, i));
	*end = '\0';
	utf8_sanitize(to, size, utf8);
	return 0;
}

int cpython_bytes__read(const struct cpython *py, struct target_memory *m, uint64_t address,
			size_t limit, uint8_t **bytes, size_t *size)
{
	const struct cpython_layout *l = &py->layout;
	_cleanup_free_ uint8_t *data = NULL;
	uint8_t head[HEAD_MAX];
	uint64_t first, length;
	int err;

	if (l->bytes_size + 8 > sizeof(head))
		return -EBADMSG;
	err = target_memory__read(m, head, l->bytes_size + 8, address);
	if (err)
		return err;
	memcpy(&first, head, sizeof(first));
	memcpy(&length, head + l->bytes_size, sizeof(length));
	if (!cpython_object__is_alive(first))
		return -ESTALE;
	m->left |= length > limit;
	*size = min_u64(length, limit);
	data = malloc(*size + 1);
	if (!data)
		return -ENOMEM;
	err = *size ? target_memory__read(m, data, *size, address + l->bytes_data) : 0;
	if (err)
		return err;
	*bytes = steal_ptr(data);
	return 0;
}
