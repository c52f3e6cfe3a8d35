/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/utf8.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/java_name.h"

#define HAS_LINES      1u
#define LINE_PIECE     512u
#define LINE_SKIP      0xffu
#define LINE_ENTRY_MAX 11u /* bytes: the escape, and two numbers of 5 */
#define PAGE	       4096u
#define SYMBOL_READ    64u
#define HEADER_READ    128u /* of a ConstMethod and of a ConstantPool; both have less */
#define UNSIGNED5_LOW  192u

bool hotspot_unsigned5(const unsigned char *bytes, size_t size, size_t *at, unsigned int excluded,
		       uint32_t *number)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t byte;

		if (*at >= size || bytes[*at] < excluded)
			return false;
		byte = bytes[(*at)++];
		sum += (byte - excluded) << 6 * i;
		if (byte < UNSIGNED5_LOW)
			break;
	}
	*number = sum;
	return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* An entry of a constant pool: whether it is resolved is in its lowest bit. */
static int read_entry(const struct hotspot_layout *l, struct target_memory *memory, uint64_t pool,
		      uint16_t index, uint64_t *entry)
{
	int err = target_memory__word(memory, entry,
				      pool + l->at[HOTSPOT_POOL_SIZE] + 8 * (uint64_t)index);

	*entry &= ~UINT64_C(1);
	return err;
}

/* A symbol's count of references: the lower half of a word with its hash. 1: not known. */
static unsigned int references_of(const struct hotspot_layout *l, const char *bytes, uint64_t size)
{
	uint64_t at = l->at[HOTSPOT_SYMBOL_REFERENCES];
	uint16_t references = 1;

	if (l->known[HOTSPOT_SYMBOL_REFERENCES] && at + sizeof(references) <= size)
		memcpy(&references, bytes + at, sizeof(references));
	return references;
}

/* Cut where it does not fit; it always ends. Most are read at once, with the rest of their page. */
static int read_symbol(const struct hotspot_layout *l, struct target_memory *memory,
		       uint64_t symbol, char *text, size_t size)
{
	uint64_t body = l->at[HOTSPOT_SYMBOL_BODY], at = l->at[HOTSPOT_SYMBOL_LENGTH];
	char bytes[SYMBOL_READ];
	uint64_t part = min_u64(sizeof(bytes), PAGE - (symbol & (PAGE - 1)));
	uint16_t length;
	int err;

	*text = '\0';
	if (!target_is_pointer(symbol) || at + sizeof(length) > part)
		return -ENODATA;
	err = target_memory__read(memory, bytes, part, symbol);
	if (err)
		return err;
	memcpy(&length, bytes + at, sizeof(length));
	length = min_u64(length, size - 1);
	if (body + length <= part)
		memcpy(text, bytes + body, length);
	else
		err = target_memory__read(memory, text, length, symbol + body);
	/* no symbol has a NUL in it (JVMS 4.4.7): the memory was freed and reused */
	if (!err && (!references_of(l, bytes, part) || memchr(text, '\0', length)))
		err = -ENODATA;
	text[err ? 0 : length] = '\0';
	return err;
}

struct texts {
	char class_name[MANAGED_NAME_MAX], method_name[MANAGED_NAME_MAX], file[MANAGED_NAME_MAX];
	char signature[MANAGED_NAME_MAX]; /* "(I[Ljava/lang/String;)V"; "": not known */
	char joined[2 * MANAGED_NAME_MAX + 2];
};

static int read_file(const struct hotspot_object *o, struct target_memory *memory, uint64_t pool,
		     struct texts *t)
{
	const struct hotspot_layout *l = o->layout;
	uint16_t index = hotspot_number(o, HOTSPOT_POOL_FILE_INDEX, 2);
	uint64_t symbol;

	/* the pool of a MethodHandle's intrinsic has the index of its class, and not that name */
	if (!l->can[HOTSPOT_CAN_LINE] || !index ||
	    index >= hotspot_number(o, HOTSPOT_POOL_LENGTH, 4))
		return 0;
	return read_entry(l, memory, pool, index, &symbol)
		       ?: read_symbol(l, memory, symbol, t->file, sizeof(t->file));
}

static int read_texts(const struct hotspot_layout *l, struct target_memory *memory,
		      const struct hotspot_method *m, struct texts *t)
{
	unsigned char bytes[HEADER_READ];
	const struct hotspot_object o = {l, bytes,
					 min_u64(l->at[HOTSPOT_POOL_SIZE], sizeof(bytes))};
	uint64_t holder, symbol;
	int err = (target_is_pointer(m->pool)
			   ? read_entry(l, memory, m->pool, m->name_index, &symbol)
			   : -ENODATA)
			  ?: read_symbol(l, memory, symbol, t->method_name, sizeof(t->method_name));

	if (!err && m->signature_index)
		err = read_entry(l, memory, m->pool, m->signature_index, &symbol);
	if (!err && m->signature_index)
		err = read_symbol(l, memory, symbol, t->signature, sizeof(t->signature));
	if (!err)
		err = target_memory__read(memory, bytes, o.size, m->pool);
	if (err)
		return err;
	holder = hotspot_number(&o, HOTSPOT_POOL_HOLDER, 8);
	err = (target_is_pointer(holder)
		       ? target_memory__word(memory, &symbol, holder + l->at[HOTSPOT_KLASS_NAME])
		       : -ENODATA)
		      ?: read_symbol(l, memory, symbol, t->class_name, sizeof(t->class_name));
	if (!err && (!*t->class_name || !*t->method_name))
		err = -ENODATA; /* the symbols are gone */
	return err ? err : read_file(&o, memory, m->pool, t);
}

/* The file is named without its directory, which has the name of the package. */
static void join_texts(struct texts *t, struct managed_function *f)
{
	const struct java_method method = {t->class_name, t->method_name, t->signature};
	const char *slash = strrchr(t->class_name, '/');
	int package = slash ? (int)(slash - t->class_name) + 1 : 0;

	if (*t->file) {
		snprintf(t->joined, sizeof(t->joined), "%.*s%s", package, t->class_name, t->file);
		utf8_sanitize(f->file, sizeof(f->file), t->joined);
	}
	java_name__full(t->joined, sizeof(t->joined), &method);
	utf8_sanitize(f->name, sizeof(f->name), t->joined);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line_table {
	struct target_memory *memory;
	uint64_t address;
	size_t got, at;
	unsigned char bytes[LINE_PIECE];
};

/* As much as fits, up to the end of its page: what follows may not be there. */
static int read_piece(struct line_table *t)
{
	uint64_t size = min_u64(PAGE - (t->address & (PAGE - 1)), LINE_PIECE - t->got);
	int err = target_memory__read(t->memory, t->bytes + t->got, size, t->address);

	if (err)
		return err;
	t->got += size;
	t->address += size;
	return 0;
}

/* A whole entry ahead, which may begin at the end of one page and go on in the next. */
static int refill(struct line_table *t)
{
	size_t left = t->got - t->at;
	int err = 0;

	if (left >= LINE_ENTRY_MAX)
		return 0;
	memmove(t->bytes, t->bytes + t->at, left);
	t->at = 0;
	t->got = left;
	while (!err && t->got < LINE_ENTRY_MAX)
		err = read_piece(t);
	return t->got ? 0 : err;
}

static int32_t from_sign_bit(uint32_t v)
{
	return (int32_t)(v >> 1 ^ -(v & 1));
}

/* False: this was the last. */
static bool take_line(struct line_table *t, unsigned int excluded, uint32_t *index, uint32_t *line)
{
	uint32_t index_delta, line_delta;
	unsigned char byte;

	if (t->at >= t->got || !(byte = t->bytes[t->at]))
		return false;
	t->at++;
	if (byte != LINE_SKIP) {
		*index += byte >> 3;
		*line += byte & 7;
		return true;
	}
	if (!hotspot_unsigned5(t->bytes, t->got, &t->at, excluded, &index_delta) ||
	    !hotspot_unsigned5(t->bytes, t->got, &t->at, excluded, &line_delta))
		return false;
	*index += from_sign_bit(index_delta);
	*line += from_sign_bit(line_delta);
	return true;
}

DEFINE_ORDER(compare_rows, struct managed_row, ASCENDING(offset));

static int read_line_table(const struct hotspot_layout *l, struct target_memory *memory,
			   const struct hotspot_method *m, struct managed_function *f)
{
	struct line_table t = {.memory = memory};
	uint32_t index = 0, line = 0;
	bool sorted = true;
	int err = 0;

	if (!m->has_lines)
		return 0;
	t.address = m->const_method + l->at[HOTSPOT_CONST_METHOD_SIZE] + m->code_size;
	while (f->rows.count < MANAGED_ROWS_MAX) {
		err = refill(&t);
		if (err || !take_line(&t, hotspot_excluded(l), &index, &line))
			break;
		if (index >= m->code_size || !line || line > UINT16_MAX)
			break; /* the format has no more than 16 bits of both */
		sorted = sorted &&
			 (!f->rows.count || f->rows.data[f->rows.count - 1].offset <= index);
		err = vec_push(&f->rows, (struct managed_row){.offset = index, .line = line});
		if (err)
			return err;
	}
	if (!sorted)
		qsort(f->rows.data, f->rows.count, sizeof(f->rows.data[0]), compare_rows);
	if (f->rows.count)
		f->line = f->rows.data[0].line;
	return err;
}

/* ---- methods --------------------------------------------------------------------------------- */

int hotspot_method__read(const struct hotspot_layout *l, struct target_memory *memory,
			 uint64_t method, struct hotspot_method *m)
{
	unsigned char bytes[HEADER_READ];
	const struct hotspot_object o = {l, bytes,
					 min_u64(l->at[HOTSPOT_CONST_METHOD_SIZE], sizeof(bytes))};
	int err;

	*m = (struct hotspot_method){.method = method};
	if (!l->can[HOTSPOT_CAN_NAME] || !target_is_pointer(method))
		return -ENODATA;
	err = target_memory__word(memory, &m->const_method, method + l->at[HOTSPOT_CONST_METHOD]);
	if (!err && !target_is_pointer(m->const_method))
		err = -ENODATA;
	if (!err)
		err = target_memory__read(memory, bytes, o.size, m->const_method);
	if (err)
		return err;
	m->pool = hotspot_number(&o, HOTSPOT_CONSTANTS, 8);
	m->name_index = hotspot_number(&o, HOTSPOT_NAME_INDEX, 2);
	m->signature_index = hotspot_number(&o, HOTSPOT_SIGNATURE_INDEX, 2);
	m->code_size = hotspot_number(&o, HOTSPOT_CODE_SIZE, 2);
	m->has_lines = l->can[HOTSPOT_CAN_LINE] &&
		       hotspot_number(&o, HOTSPOT_METHOD_FLAGS, 2) & HAS_LINES;
	return 0;
}

int hotspot_method__describe(const struct hotspot_layout *l, struct target_memory *memory,
			     const struct hotspot_method *m, struct managed_function *f)
{
	_cleanup_free_ struct texts *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	err = read_texts(l, memory, m, t);
	if (err)
		return err;
	join_texts(t, f);
	return l->can[HOTSPOT_CAN_LINE] ? read_line_table(l, memory, m, f) : 0;
}

enum code_state hotspot_method__check(const struct hotspot_layout *l, struct target_memory *memory,
				      const struct hotspot_method *m)
{
	struct hotspot_method now;
	int err = hotspot_method__read(l, memory, m->method, &now);

	if (err && err != -ENODATA)
		return CODE_STATE_UNKNOWN;
	return !err && now.const_method == m->const_method && now.code_size == m->code_size
		       ? CODE_STATE_CONFIRMED
		       : CODE_STATE_STALE;
}
