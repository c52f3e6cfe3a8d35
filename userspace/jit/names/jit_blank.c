/* SPDX-License-Identifier: BSD-2-Clause */
/* A dump comes in pieces that begin and end anywhere, so its parser has a state after each byte. */
#include "jit/names/jit_blank.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/minmax.h"

#define HEADER_SIZE    40u /* of a dump: its whole size is at byte 8 */
#define PREFIX_SIZE    16u /* of a record: its kind and its size */
#define LOAD_SIZE      40u /* of a load, before the name: the size of the code is at byte 24 */
#define RECORD_OF_LOAD 0u

enum place {
	IN_HEADER,
	IN_PREFIX,
	IN_LOAD,
	IN_NAME,
	IN_CODE,
	IN_REST,
	IN_NOTHING, /* no dump, or damaged: readers end there */
};

struct blanked_file {
	uint32_t file;
	bool is_dump;
	enum place place;
	uint8_t head[HEADER_SIZE]; /* of what `place` is in, so far */
	uint32_t have;
	uint64_t left; /* bytes of the record */
	uint64_t code; /* … that are code */
};

DEFINE_MAP_BY(blanked_map, struct blanked_file, uint32_t, file);

struct jit_blank {
	struct blanked_map files;
	union {
		struct jit_bytes_event event;
		char space[EVENT_SIZE_MAX];
	} out;
};

struct jit_blank *jit_blank__new(void)
{
	return calloc(1, sizeof(struct jit_blank));
}

void jit_blank__free(struct jit_blank *b)
{
	if (!b)
		return;
	blanked_map__fini(&b->files);
	free(b);
}

static void go_to(struct blanked_file *f, enum place place)
{
	f->have = 0;
	f->place = place;
	if (place != IN_HEADER && place != IN_NOTHING && !f->left)
		f->place = IN_PREFIX;
}

static uint64_t number_at(const struct blanked_file *f, unsigned int at, size_t size)
{
	uint64_t number = 0;

	memcpy(&number, f->head + at, size);
	return number;
}

/* The head of `place` is complete. */
static void end_head(struct blanked_file *f)
{
	uint64_t whole;

	switch (f->place) {
	case IN_HEADER:
		whole = number_at(f, 8, 4);
		f->left = whole - min_u64(whole, HEADER_SIZE);
		go_to(f, whole < HEADER_SIZE ? IN_NOTHING : IN_REST);
		break;
	case IN_PREFIX:
		whole = number_at(f, 4, 4);
		f->left = whole - min_u64(whole, PREFIX_SIZE);
		go_to(f, whole < PREFIX_SIZE			? IN_NOTHING
			 : number_at(f, 0, 4) == RECORD_OF_LOAD ? IN_LOAD
								: IN_REST);
		break;
	default:
		f->code = number_at(f, 24, 8);
		go_to(f, IN_NAME);
	}
}

static size_t take_head(struct blanked_file *f, const char *bytes, size_t size)
{
	size_t whole = f->place == IN_HEADER   ? HEADER_SIZE
		       : f->place == IN_PREFIX ? PREFIX_SIZE
					       : LOAD_SIZE;
	size_t taken = min_u64(whole - f->have, size);

	if (f->place == IN_LOAD)
		taken = min_u64(taken, f->left);
	memcpy(f->head + f->have, bytes, taken);
	f->have += taken;
	if (f->place == IN_LOAD)
		f->left -= taken;
	if (f->have == whole)
		end_head(f);
	else if (f->place == IN_LOAD && !f->left)
		go_to(f, IN_PREFIX);
	return taken;
}

/* Bytes of a record behind its head. */
static size_t take_body(struct blanked_file *f, char *bytes, size_t size)
{
	size_t taken = min_u64(f->left, size);
	const char *end = f->place == IN_NAME ? memchr(bytes, '\0', taken) : NULL;

	if (end)
		taken = end + 1 - bytes;
	if (f->place == IN_CODE) {
		taken = min_u64(taken, f->code);
		memset(bytes, 0, taken);
		f->code -= taken;
	}
	f->left -= taken;
	if (end)
		go_to(f, f->code ? IN_CODE : IN_REST);
	else if (!f->left || (f->place == IN_CODE && !f->code))
		go_to(f, IN_REST);
	return taken;
}

static void blank_piece(struct blanked_file *f, char *bytes, size_t size)
{
	while (size) {
		size_t taken = size;

		if (f->place == IN_NOTHING)
			memset(bytes, 0, size);
		else
			taken = f->place <= IN_LOAD ? take_head(f, bytes, size)
						    : take_body(f, bytes, size);
		bytes += taken;
		size -= taken;
	}
}

static int add_file(struct jit_blank *b, const struct jit_file_event *e)
{
	const struct blanked_file new = {.file = e->file, .is_dump = e->kind == JIT_FILE_DUMP};

	return blanked_map__need(&b->files, &new, NULL) ? 0 : -ENOMEM;
}

int jit_blank__event(struct jit_blank *b, const struct event_header **event)
{
	const struct jit_bytes_event *e = (const void *)*event;
	struct blanked_file *f;

	if ((*event)->type == EVENT_JIT_FILE)
		return add_file(b, (const void *)*event);
	f = (*event)->type == EVENT_JIT_BYTES ? blanked_map__find(&b->files, e->file) : NULL;
	if (!f || !f->is_dump)
		return 0;
	if (e->size > e->header.size - sizeof(*e))
		return 0; /* who reads it, refuses it */
	memcpy(&b->out, e, e->header.size);
	if (e->flags & JIT_SNAPSHOT_BEGIN)
		go_to(f, IN_HEADER);
	blank_piece(f, b->out.event.bytes, e->size);
	*event = &b->out.event.header;
	return 0;
}
