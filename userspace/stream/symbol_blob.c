/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encoder and the checker of symbol answers. The checker trusts nothing: the place of an
 * earlier string may be any byte before it, and the string there must end before it.
 */
#include "stream/symbol_blob.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/minmax.h"
#include "base/strtab.h"
#include "base/utf8.h"

#define STRINGS 3u
/* Instead of a string's size: four bytes follow, its offset in the blob. Never in a recording. */
#define SYMBOL_STRING_EARLIER 0xffffu
#define PLACE_SIZE	      sizeof(uint32_t)

_Static_assert(sizeof(struct symbol_event) + SYMBOL_CHAIN_MAX * (sizeof(struct symbol_event_frame) +
								 STRINGS * 256 + EVENT_ALIGN) <=
		       EVENT_SIZE_MAX,
	       "a whole chain fits once its strings are cut to 256 bytes");
_Static_assert(SYMBOL_STRING_MAX < SYMBOL_STRING_EARLIER, "sizes have 16 bits");

/* ---- encoding -------------------------------------------------------------------------------- */

/* With its NUL; 0: no string. */
static size_t string_size(const char *s, size_t limit)
{
	return s && s[0] ? utf8_cut(s, limit) + 1 : 0;
}

static size_t frame_size(const struct symbol_frame *frame, size_t limit)
{
	return sizeof(struct symbol_event_frame) +
	       event_aligned(string_size(frame->function, limit) + string_size(frame->file, limit) +
			     string_size(frame->definition_file, limit));
}

static size_t kept_frames(const struct symbol_result *result)
{
	return min_u64(result->frame_count, SYMBOL_CHAIN_MAX);
}

/* Size of the event without references; *limit: length of strings, halved until it fits. */
static size_t event_size(const struct symbol_result *result, size_t *limit)
{
	for (*limit = SYMBOL_STRING_MAX;; *limit /= 2) {
		size_t size = sizeof(struct symbol_event);

		for (size_t i = 0; i < kept_frames(result); i++)
			size += frame_size(&result->frames[i], *limit);
		if (size <= EVENT_SIZE_MAX)
			return size;
	}
}

/*
 * True: an equal string was there; its place replaces the one at `at`. Otherwise notes that this
 * one is at `place`, unless out of memory. `places` must have room for one more.
 */
static bool put_place(struct symbol_blob *b, char *at, size_t size, uint64_t place)
{
	size_t count = strtab__count(b->strings);
	int64_t number;

	if (size <= PLACE_SIZE || place > UINT32_MAX)
		return false;
	number = strtab__intern(b->strings, at);
	if (number < 0)
		return false;
	if ((size_t)number < count) {
		memcpy(at, &b->places.data[number], PLACE_SIZE);
		return true;
	}
	b->places.data[b->places.count++] = (uint32_t)place;
	return false;
}

/* The state of encoding. */
struct put {
	struct symbol_blob *blob; /* NULL: an event that stands alone */
	const char *start;	  /* of the output … */
	uint64_t place;		  /* … and its offset in the blob */
	size_t limit;		  /* of strings */
	char *at;
};

static uint16_t put_string(struct put *p, const char *s)
{
	size_t size = string_size(s, p->limit);

	if (!size)
		return 0;
	memcpy(p->at, s, size - 1);
	p->at[size - 1] = '\0';
	if (p->blob && put_place(p->blob, p->at, size, p->place + (p->at - p->start))) {
		p->at += PLACE_SIZE;
		return SYMBOL_STRING_EARLIER;
	}
	p->at += size;
	return (uint16_t)size;
}

static void put_frame(struct put *p, const struct symbol_frame *frame)
{
	struct symbol_event_frame out = {
		.function_address = frame->function_address,
		.function_size = frame->function_size,
		.line = frame->line,
		.column = frame->column,
		.definition_line = frame->definition_line,
		.definition_column = frame->definition_column,
	};
	char *start = p->at;
	size_t size;

	p->at += sizeof(out);
	out.name_size = put_string(p, frame->function);
	out.file_size = put_string(p, frame->file);
	out.definition_file_size = put_string(p, frame->definition_file);
	memcpy(start, &out, sizeof(out));
	size = event_aligned(p->at - start);
	memset(p->at, 0, start + size - p->at);
	p->at = start + size;
}

static void put_event(struct put *p, uint64_t time, uint64_t address,
		      const struct symbol_result *result)
{
	struct symbol_event event = {
		.header = {.type = EVENT_SYMBOL, .time = time},
		.address = address,
		.elf_address = result->elf_address,
		.frames = (uint32_t)kept_frames(result),
	};
	char *start = p->at;

	if (p->blob && result->same_until > result->elf_address)
		event.same_size = (uint32_t)min_u64(result->same_until - result->elf_address,
						    UINT32_MAX);
	p->at += sizeof(event);
	for (size_t i = 0; i < event.frames; i++)
		put_frame(p, &result->frames[i]);
	event.header.size = (uint32_t)(p->at - start);
	memcpy(start, &event, sizeof(event));
}

void symbol_event__encode(void *buffer, uint64_t time, uint64_t address,
			  const struct symbol_result *result)
{
	struct put p = {.start = buffer, .at = buffer};

	event_size(result, &p.limit);
	put_event(&p, time, address, result);
}

size_t symbol_blob__size_of(const struct symbol_result *result)
{
	size_t limit;

	return event_size(result, &limit);
}

void symbol_blob__fini(struct symbol_blob *b)
{
	vec_free(&b->bytes);
	vec_free(&b->places);
	strtab__free(b->strings);
	b->strings = NULL;
}

/* Number 0 of a strtab is "", which no answer has. */
static int prepare_strings(struct symbol_blob *b, size_t more)
{
	int err;

	if (!b->strings)
		b->strings = strtab__new();
	if (!b->strings)
		return -ENOMEM;
	err = vec_reserve(&b->places, b->places.count + more + 1);
	if (!err && !b->places.count)
		b->places.data[b->places.count++] = 0;
	return err;
}

int symbol_blob__add(void *blob, size_t address, const struct symbol_result *result)
{
	struct symbol_blob *b = blob;
	struct put p = {.blob = b, .place = b->taken + b->bytes.count};
	size_t size = event_size(result, &p.limit);
	int err = prepare_strings(b, STRINGS * kept_frames(result))
			  ?: vec_reserve(&b->bytes, b->bytes.count + size);

	if (err)
		return err;
	p.at = b->bytes.data + b->bytes.count;
	p.start = p.at;
	put_event(&p, 0, address, result);
	b->bytes.count += p.at - p.start;
	return 0;
}

void symbol_blob__take(struct symbol_blob *b)
{
	b->taken += b->bytes.count;
	b->bytes.count = 0;
}

/* ---- checking and decoding ------------------------------------------------------------------- */

/* The rest of an answer; `blob` NULL: an event that stands alone. */
struct take {
	const char *blob, *at, *end;
};

/* NUL included. */
static bool ends_within(const char *string, size_t size)
{
	return strnlen(string, size) < size;
}

static bool take_place(struct take *t, const char **string)
{
	uint32_t place;

	if (!t->blob || (size_t)(t->end - t->at) < sizeof(place))
		return false;
	memcpy(&place, t->at, sizeof(place));
	if (place >= (size_t)(t->at - t->blob) ||
	    !ends_within(t->blob + place, min_u64(t->at - t->blob - place, SYMBOL_STRING_MAX)))
		return false;
	*string = t->blob + place;
	t->at += sizeof(place);
	return true;
}

/* The next string of a frame. False unless it has exactly `size` bytes with its NUL. */
static bool take_string(struct take *t, size_t size, const char *none, const char **string)
{
	*string = none;
	if (!size)
		return true;
	if (size == SYMBOL_STRING_EARLIER)
		return take_place(t, string);
	if (size > SYMBOL_STRING_MAX || size > (size_t)(t->end - t->at) ||
	    strnlen(t->at, size) != size - 1)
		return false;
	*string = t->at;
	t->at += size;
	return true;
}

static bool take_frame(struct take *t, struct symbol_frame *out)
{
	struct symbol_event_frame frame;
	const char *start = t->at;
	size_t size;

	if ((size_t)(t->end - start) < sizeof(frame))
		return false;
	memcpy(&frame, start, sizeof(frame));
	t->at += sizeof(frame);
	*out = (struct symbol_frame){
		.function_address = frame.function_address,
		.function_size = frame.function_size,
		.line = frame.line,
		.column = frame.column,
		.definition_line = frame.definition_line,
		.definition_column = frame.definition_column,
	};
	if (!take_string(t, frame.name_size, "", &out->function) ||
	    !take_string(t, frame.file_size, NULL, &out->file) ||
	    !take_string(t, frame.definition_file_size, NULL, &out->definition_file))
		return false;
	size = event_aligned(t->at - start);
	if (size > (size_t)(t->end - start))
		return false;
	t->at = start + size;
	return true;
}

static int decode(const struct symbol_event *event, const char *blob, struct symbol_answer *answer)
{
	struct take t = {.blob = blob, .at = event->payload};

	if (event->frames > SYMBOL_CHAIN_MAX || event->header.size < sizeof(*event))
		return -EBADMSG;
	t.end = (const char *)event + event->header.size;
	for (size_t i = 0; i < event->frames; i++)
		if (!take_frame(&t, &answer->frames[i]))
			return -EBADMSG;
	answer->address = event->address;
	answer->result = (struct symbol_result){
		.elf_address = event->elf_address,
		.frames = event->frames ? answer->frames : NULL,
		.frame_count = event->frames,
		.same_until = event->same_size ? event->elf_address + event->same_size : 0,
	};
	return 0;
}

int symbol_event__decode(const struct symbol_event *event, struct symbol_answer *answer)
{
	return decode(event, NULL, answer);
}

int symbol_blob__next(const void *blob, size_t size, size_t *offset, struct symbol_answer *answer)
{
	const struct symbol_event *event;
	size_t left = size - *offset;

	if (left < sizeof(event->header))
		return 0;
	event = (const void *)((const char *)blob + *offset);
	if (event->header.type != EVENT_SYMBOL || event->header.size < sizeof(*event) ||
	    event->header.size > EVENT_SIZE_MAX || event->header.size % EVENT_ALIGN)
		return -EBADMSG;
	if (event->header.size > left)
		return 0;
	if (decode(event, blob, answer))
		return -EBADMSG;
	*offset += event->header.size;
	return 1;
}
