/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "runtimes/managed_function.h"

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

static int read_head(const struct cpython *py, struct target_memory *m, uint64_t address,
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
	int err = read_head(py, m, address, &h);
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
