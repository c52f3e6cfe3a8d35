/* SPDX-License-Identifier: BSD-2-Clause */
/* The inline chain of a location, packed: frames one after the other, each with its strings. */
#include "stream/symbol_codec.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#define STRINGS 3u

_Static_assert(sizeof(struct symbol_event) + SYMBOL_CHAIN_MAX * (sizeof(struct symbol_event_frame) +
								 STRINGS * 256 + EVENT_ALIGN) <=
		       EVENT_SIZE_MAX,
	       "a whole chain fits once its strings are cut to 256 bytes");
_Static_assert(SYMBOL_STRING_MAX <= UINT16_MAX, "sizes have 16 bits");

/* Bytes of `s` that are kept where `limit`, NUL included, may be. */
static size_t cut_length(const char *s, size_t limit)
{
	size_t length = strnlen(s, limit);
	size_t whole;

	if (length < limit)
		return length;
	whole = limit - 1;
	/* step back over the bytes of a character that does not fit whole */
	for (size_t back = 1; back <= 3 && back <= whole; back++) {
		size_t sequence = utf8_sequence(s + whole - back, strnlen(s + whole - back, 4));

		if (sequence > 0)
			return sequence > back ? whole - back : whole;
	}
	return whole;
}

/* With its NUL; 0: no string. */
static size_t string_size(const char *s, size_t limit)
{
	return s && s[0] ? cut_length(s, limit) + 1 : 0;
}

static size_t entry_size(const struct symbol_entry *entry, size_t limit)
{
	return sizeof(struct symbol_event_frame) +
	       event_aligned(string_size(entry->function, limit) + string_size(entry->file, limit) +
			     string_size(entry->definition_file, limit));
}

/* The longest strings, by halves, with which all entries fit. */
static size_t string_limit(const struct symbol_entry *entries, size_t count)
{
	size_t limit = SYMBOL_STRING_MAX;

	for (;; limit /= 2) {
		size_t size = sizeof(struct symbol_event);

		for (size_t i = 0; i < count; i++)
			size += entry_size(&entries[i], limit);
		if (size <= EVENT_SIZE_MAX)
			return limit;
	}
}

static char *put_string(char *at, const char *s, size_t size)
{
	if (size == 0)
		return at;
	memcpy(at, s, size - 1);
	at[size - 1] = '\0';
	return at + size;
}

static char *put_entry(char *start, const struct symbol_entry *entry, size_t limit)
{
	struct symbol_event_frame frame = {
		.function_address = entry->function_address,
		.function_size = entry->function_size,
		.line = entry->line,
		.column = entry->column,
		.definition_line = entry->definition_line,
		.definition_column = entry->definition_column,
		.name_size = string_size(entry->function, limit),
		.file_size = string_size(entry->file, limit),
		.definition_file_size = string_size(entry->definition_file, limit),
	};
	char *at = start + sizeof(frame);
	size_t size;

	memcpy(start, &frame, sizeof(frame));
	at = put_string(at, entry->function, frame.name_size);
	at = put_string(at, entry->file, frame.file_size);
	at = put_string(at, entry->definition_file, frame.definition_file_size);
	size = event_aligned(at - start);
	memset(at, 0, start + size - at);
	return start + size;
}

void symbol_event__encode(void *buffer, uint64_t time, uint64_t address, uint64_t elf_address,
			  const struct symbol_entry *entries, size_t count)
{
	struct symbol_event *event = buffer;
	char *at = event->payload;
	size_t limit;

	if (count > SYMBOL_CHAIN_MAX)
		count = SYMBOL_CHAIN_MAX;
	limit = string_limit(entries, count);
	for (size_t i = 0; i < count; i++)
		at = put_entry(at, &entries[i], limit);
	event->header = (struct event_header){
		.size = at - (char *)buffer,
		.type = EVENT_SYMBOL,
		.time = time,
	};
	event->address = address;
	event->elf_address = elf_address;
	event->frames = count;
	event->reserved = 0;
}

void symbol_walk__init(struct symbol_walk *walk, const struct symbol_event *event)
{
	walk->at = event->payload;
	walk->end = (const char *)event + event->header.size;
	walk->left = event->frames;
}

/* Take the next string of the frame: false unless it is exactly `size` bytes with its NUL. */
static bool take_string(const char **at, size_t size, const char **string)
{
	*string = NULL;
	if (size == 0)
		return true;
	if (strnlen(*at, size) != size - 1)
		return false;
	*string = *at;
	*at += size;
	return true;
}

int symbol_walk__next(struct symbol_walk *walk, struct symbol_entry *entry)
{
	size_t available = walk->end - walk->at;
	struct symbol_event_frame frame;
	const char *at;
	size_t strings;

	if (walk->left == 0)
		return 0;
	if (available < sizeof(frame))
		return -EBADMSG;
	memcpy(&frame, walk->at, sizeof(frame));
	strings = event_aligned((size_t)frame.name_size + frame.file_size +
				frame.definition_file_size);
	if (strings > available - sizeof(frame) || frame.name_size > SYMBOL_STRING_MAX ||
	    frame.file_size > SYMBOL_STRING_MAX || frame.definition_file_size > SYMBOL_STRING_MAX)
		return -EBADMSG;
	at = walk->at + sizeof(frame);
	if (!take_string(&at, frame.name_size, &entry->function) ||
	    !take_string(&at, frame.file_size, &entry->file) ||
	    !take_string(&at, frame.definition_file_size, &entry->definition_file))
		return -EBADMSG;
	entry->function_address = frame.function_address;
	entry->function_size = frame.function_size;
	entry->line = frame.line;
	entry->column = frame.column;
	entry->definition_line = frame.definition_line;
	entry->definition_column = frame.definition_column;
	walk->at += sizeof(frame) + strings;
	walk->left--;
	return 1;
}
