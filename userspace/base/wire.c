/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/wire.h"

#include <errno.h>
#include <string.h>

#include "base/gzip.h"

int bytes__add(struct bytes *b, const void *data, size_t size)
{
	return size > SIZE_MAX - b->count ? -ENOMEM : vec_append(b, data, size);
}

static void put(struct bytes *b, const void *data, size_t size)
{
	b->failed |= bytes__add(b, data, size) != 0;
}

void bytes__varint(struct bytes *b, uint64_t value)
{
	uint8_t text[10];

	put(b, text, wire_put_varint(text, value));
}

void bytes__number(struct bytes *b, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	bytes__varint(b, (uint64_t)field << 3 | WIRE_VARINT);
	bytes__varint(b, value);
}

void bytes__numbers(struct bytes *b, const void *numbers, size_t size)
{
	const uint64_t *fields = numbers;

	for (uint32_t i = 0; i < size / sizeof(*fields); i++)
		bytes__number(b, i + 1, fields[i]);
}

void bytes__field(struct bytes *b, uint32_t field, const void *data, size_t size)
{
	uint8_t header[16];

	put(b, header, wire_put_header(header, field, size));
	put(b, data, size);
}

void bytes__text(struct bytes *b, uint32_t field, const char *text)
{
	if (*text)
		bytes__field(b, field, text, strlen(text));
}

void bytes__wrap(struct bytes *b, uint32_t field, size_t at)
{
	uint8_t header[16];
	size_t size = b->count - at, used = wire_put_header(header, field, size);

	put(b, header, used); /* makes the room */
	if (b->failed)
		return;
	memmove(b->data + at + used, b->data + at, size);
	memcpy(b->data + at, header, used);
}

void bytes__append(struct bytes *b, struct wire fields)
{
	put(b, fields.at, (size_t)(fields.end - fields.at));
}

bool wire_has_type(const struct wire *field, const char *types)
{
	char type = types[field->number - 1];

	if (field->type != WIRE_BYTES && field->type != WIRE_VARINT)
		return false;
	return type == '*' || type == (field->type == WIRE_BYTES ? 'b' : 'v');
}

bool wire_numbers(struct wire message, const char *types, void *numbers, size_t size)
{
	const size_t type_count = strlen(types), count = size / sizeof(uint64_t);
	uint64_t *fields = numbers;
	int found;

	memset(numbers, 0, size);
	while ((found = wire_next(&message)) > 0) {
		if (message.number > type_count)
			continue;
		if (!wire_has_type(&message, types))
			return false;
		if (message.number <= count && message.type == WIRE_VARINT)
			fields[message.number - 1] = message.value;
	}
	return !found;
}

static int push_packed(struct wire packed, numbers *to)
{
	uint64_t number;
	int err = 0;

	while (!err && packed.at < packed.end)
		err = wire_varint(&packed, &number) ? vec_push(to, number) : -EBADMSG;
	return err;
}

int wire_repeated(struct wire message, uint32_t number, numbers *to)
{
	int found, err = 0;

	while (!err && (found = wire_next(&message)) > 0)
		if (message.number == number)
			err = message.type == WIRE_VARINT ? vec_push(to, message.value)
							  : push_packed(wire_inside(&message), to);
	return err ?: found < 0 ? -EBADMSG : 0;
}

int wire_last(struct wire message, struct wire *fields, uint32_t count)
{
	int found;

	memset(fields, 0, count * sizeof(*fields));
	while ((found = wire_next(&message)) > 0)
		if (message.number < count)
			fields[message.number] = message;
	return found < 0 ? -EBADMSG : 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the path */
int wire_each(struct wire w, const uint32_t *path, size_t depth,
	      int (*take)(void *context, const struct wire *field), void *context)
{
	int found = 0, err = 0;

	while (!err) {
		w.start = w.at;
		found = wire_next(&w);
		if (found <= 0)
			break;
		if (!depth)
			err = take(context, &w);
		else if (w.number == *path && w.type == WIRE_BYTES)
			err = wire_each(wire_inside(&w), path + 1, depth - 1, take, context);
	}
	return err ?: found < 0 ? -EBADMSG : 0;
}

int bytes__write(int (*write)(void *context, FILE *out), void *context, struct bytes *out)
{
	char *data = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&data, &size);
	int err = memory ? write(context, memory) : -ENOMEM;

	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	*out = (struct bytes){.data = (uint8_t *)data, .count = size, .capacity = size};
	return err;
}

int bytes__gzip(const struct bytes *in, const uint32_t *path, size_t depth, struct bytes *out)
{
	sections found = {};
	uint8_t *data;
	size_t size;
	int err = sections__find(in->data, in->count, path, depth, &found);

	if (!err) /* requests are far below its limit */
		err = gzip_bytes(in->data, in->count, found.data, found.count, &data, &size);
	vec_free(&found);
	if (err)
		return -ENOMEM;
	*out = (struct bytes){.data = data, .count = size, .capacity = size};
	return 0;
}

#define LEAST 2000 /* bytes of a section: the description of a code is 60 to 90 */

struct finding {
	const uint8_t *start, *end; /* of the whole; of the field before */
	uint32_t before;	    /* its number */
	sections *found;
};

static int note_section(void *context, const struct wire *field)
{
	struct finding *f = context;
	const sections *found = f->found;
	size_t offset = (size_t)(field->start - f->start);
	size_t last = found->count ? found->data[found->count - 1] : 0;
	bool is_other = field->number != f->before || field->start != f->end;

	f->before = field->number;
	f->end = field->at;
	return is_other && offset >= last + LEAST ? vec_push(f->found, offset) : 0;
}

int sections__find(const uint8_t *message, size_t size, const uint32_t *path, size_t depth,
		   sections *found)
{
	struct finding f = {.start = message, .end = message, .found = found};
	int err = wire_each(wire_of(message, size), path, depth, note_section, &f);

	return err == -EBADMSG ? 0 : err;
}
