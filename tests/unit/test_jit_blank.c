/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings without machine code: what is left of a jitdump. */
#include "jit/names/jit_blank.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "stream/event_queue.h"

#include "unit/forge_jitdump.h"

#define FILE_NUMBER 7

static struct dump whole, expected;

/* `code`: the byte of the machine code. */
static void forge(struct dump *d, unsigned char code)
{
	size_t at;

	d->size = 0;
	put_header_as(d, 0x4a695444, 1, 44, 0);
	put32(d, 0x55555555);
	at = begin_record(d, 2, 90);
	put64(d, 0x1000);
	put64(d, 1);
	put_line(d, 0x1008, 3, 1, "/a.c");
	end_record(d, at);
	put_load_of(d, 100, 0x1000, 64, 64, code, "f");
	put_load_of(d, 110, 0x2000, 0, 0, code, "empty");
	put_move(d, 200, 0x1000, 0x3000, 64);
	put_load_of(d, 210, 0x4000, 5, 5, code, "g");
	put_close(d, 300);
	put_load_of(d, 310, 0x5000, 500, 9, code, "cut");
}

static void announce(struct jit_blank *b, enum jit_file_kind kind)
{
	struct jit_file_event file = {.header = {.size = sizeof(file), .type = EVENT_JIT_FILE},
				      .file = FILE_NUMBER,
				      .kind = kind};
	const struct event_header *event = &file.header;

	assert_int_equal(jit_blank__event(b, &event), 0);
	assert_ptr_equal(event, &file);
}

/* A piece of `whole`, of which the same piece of `result` comes. */
static void pass(struct jit_blank *b, size_t from, size_t size, uint32_t flags,
		 const struct dump *result)
{
	size_t event_size = event_aligned(sizeof(struct jit_bytes_event) + size);
	struct jit_bytes_event *in = calloc(1, event_size);
	const struct event_header *event = &in->header;

	*in = (struct jit_bytes_event){.header = {.size = event_size, .type = EVENT_JIT_BYTES},
				       .file = FILE_NUMBER,
				       .flags = flags,
				       .size = size};
	memcpy(in->bytes, whole.bytes + from, size);
	assert_int_equal(jit_blank__event(b, &event), 0);
	assert_int_equal(event->size, event_size);
	assert_memory_equal(((const struct jit_bytes_event *)event)->bytes, result->bytes + from,
			    size);
	assert_memory_equal(in->bytes, whole.bytes + from, size); /* the event stays */
	free(in);
}

static struct jit_blank *begin(enum jit_file_kind kind)
{
	struct jit_blank *b = jit_blank__new();

	assert_non_null(b);
	forge(&whole, 0x77);
	forge(&expected, 0);
	announce(b, kind);
	return b;
}

TEST(code_alone_is_blanked_wherever_pieces_end)
{
	for (size_t cut = 0; cut <= whole.size; cut++) {
		struct jit_blank *b = begin(JIT_FILE_DUMP);

		pass(b, 0, cut, 0, &expected);
		pass(b, cut, whole.size - cut, 0, &expected);
		/* written anew, in the middle of a record */
		pass(b, 0, whole.size, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END, &expected);
		jit_blank__free(b);
	}
	assert_true(whole.size > 400);
}

TEST(code_is_blanked_byte_by_byte)
{
	struct jit_blank *b = begin(JIT_FILE_DUMP);

	for (size_t at = 0; at < whole.size; at++)
		pass(b, at, 1, 0, &expected);
	jit_blank__free(b);
}

TEST(maps_stay_as_they_are)
{
	struct jit_blank *b = begin(JIT_FILE_MAP);

	pass(b, 0, whole.size, 0, &whole);
	jit_blank__free(b);
}

TEST(nothing_is_left_behind_a_record_smaller_than_its_head)
{
	struct jit_blank *b = begin(JIT_FILE_DUMP);
	const size_t record = 44;
	uint32_t size = 3;

	memcpy(whole.bytes + record + 4, &size, sizeof(size));
	expected = whole;
	memset(expected.bytes + record + 16, 0, expected.size - record - 16);
	pass(b, 0, whole.size, 0, &expected);
	jit_blank__free(b);
}
