/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbol answers as bytes: alone in an event and together in a blob; what is cut, shared and refused. */
#include "unit.h"
#include "base/cleanup.h"
#include "stream/event_decode.h"
#include "stream/symbol_blob.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

union event {
	struct event_header header;
	struct symbol_event symbol;
	char space[EVENT_SIZE_MAX];
};

static void expect_text(const char *actual, const char *expected)
{
	if (!expected)
		assert_null(actual);
	else
		assert_string_equal(actual, expected);
}

static void expect_frame(const struct symbol_frame *got, const struct symbol_frame *want)
{
	assert_string_equal(got->function, want->function ? want->function : "");
	expect_text(got->file, want->file && want->file[0] ? want->file : NULL);
	expect_text(got->definition_file, want->definition_file);
	assert_true(got->function_address == want->function_address);
	assert_int_equal(got->function_size, want->function_size);
	assert_int_equal(got->line, want->line);
	assert_int_equal(got->column, want->column);
	assert_int_equal(got->definition_line, want->definition_line);
	assert_int_equal(got->definition_column, want->definition_column);
}

static const struct symbol_frame chain[] = {
	{"std::vector<int>::push_back(int&&)", 0x1234, 0x56, "/usr/include/v.h", 78, 9,
	 "/usr/include/w.h", 70, 3},
	{"f", ~0ULL, 0, NULL, 0, 0, NULL, 0, 0},
	{NULL, 1, 2, "x", 3, 4, NULL, 5, 6},
	{"\xff\xfe\n", 1, 2, "", 3, 4, "seven77", 5, 6},
};

TEST(a_decoded_chain_equals_the_encoded_one)
{
	const struct symbol_result result = {~0ULL, chain, COUNT(chain), 0},
				   nothing = {2, NULL, 0, 0};
	union event *e = malloc(sizeof(*e));
	struct symbol_answer got;

	symbol_event__encode(e, 99, 0xabc, &result);
	assert_int_equal(event_check(&e->header, sizeof(*e)), 0);
	assert_int_equal(e->header.time, 99);
	assert_int_equal(e->symbol.address, 0xabc);
	assert_true(e->symbol.elf_address == ~0ULL);
	assert_int_equal(symbol_event__decode(&e->symbol, &got), 0);
	assert_int_equal(got.result.frame_count, COUNT(chain));
	for (size_t i = 0; i < COUNT(chain); i++)
		expect_frame(&got.frames[i], &chain[i]);

	symbol_event__encode(e, 99, 1, &nothing);
	assert_int_equal(event_check(&e->header, sizeof(*e)), 0);
	assert_int_equal(symbol_event__decode(&e->symbol, &got), 0);
	assert_int_equal(got.result.frame_count, 0);
	free(e);
}

TEST(long_chains_and_strings_are_cut)
{
	enum { LENGTH = 20000, FRAMES = 100 };
	struct symbol_frame frames[FRAMES];
	struct symbol_result result = {3, frames, 1, 0};
	union event *e = malloc(sizeof(*e)), *again = malloc(sizeof(*again));
	_cleanup_free_ char *name = malloc(LENGTH + 1);
	struct symbol_answer got;

	name[0] = 'a'; /* so that no power of two falls between characters */
	for (size_t i = 1; i + 2 < LENGTH; i += 3)
		memcpy(name + i, "\xe2\x82\xac", 4);
	for (size_t i = 0; i < FRAMES; i++)
		frames[i] = (struct symbol_frame){
			.function = name, .file = name, .definition_file = name, .line = i};

	symbol_event__encode(e, 1, 2, &result);
	assert_int_equal(event_check(&e->header, sizeof(*e)), 0);
	assert_int_equal(symbol_event__decode(&e->symbol, &got), 0);
	assert_int_equal(strlen(got.frames[0].function), 4093); /* 1 + 3 * 1364, at most 4095 */
	assert_memory_equal(got.frames[0].function, name, 4093);

	result.frame_count = FRAMES;
	symbol_event__encode(e, 1, 2, &result);
	assert_int_equal(event_check(&e->header, sizeof(*e)), 0);
	assert_int_equal(symbol_event__decode(&e->symbol, &got), 0);
	assert_int_equal(got.result.frame_count, SYMBOL_CHAIN_MAX);
	for (size_t i = 0; i < SYMBOL_CHAIN_MAX; i++) {
		assert_int_equal(got.frames[i].line, i);
		assert_int_equal((strlen(got.frames[i].file) - 1) % 3, 0);
		assert_true(strlen(got.frames[i].file) > 200);
	}
	/* what was cut once is not cut again */
	symbol_event__encode(again, 1, 2, &got.result);
	assert_int_equal(again->header.size, e->header.size);
	assert_memory_equal(again, e, e->header.size);
	free(again);
	free(e);
}

/* Through a blob, in one piece or in several: the events are those of the answers themselves. */
TEST(answers_of_a_blob_equal_those_put_into_it)
{
	_cleanup_(symbol_blob__fini) struct symbol_blob b = {};
	struct symbol_answer got;
	union event *e = malloc(sizeof(*e)), *direct = malloc(sizeof(*direct));
	_cleanup_free_ char *sent = NULL;
	size_t size = 0, offset = 0, first;

	for (size_t i = 0; i < 50; i++) {
		const struct symbol_result r = {0x1000 + i, chain, i % (COUNT(chain) + 1),
						i % 3 ? 0x1000 + i + 7 : 0};

		assert_int_equal(symbol_blob__add(&b, i, &r), 0);
		if (i % 7)
			continue;
		sent = realloc(sent, size + b.bytes.count);
		memcpy(sent + size, b.bytes.data, b.bytes.count);
		size += b.bytes.count;
		symbol_blob__take(&b);
	}
	assert_true(size % EVENT_ALIGN == 0);
	for (size_t i = 0; i < 50; i++) {
		const struct symbol_result r = {0x1000 + i, chain, i % (COUNT(chain) + 1), 0};

		assert_int_equal(symbol_blob__next(sent, size, &offset, &got), 1);
		assert_int_equal(got.address, i);
		assert_int_equal(got.result.same_until, i % 3 ? 0x1000 + i + 7 : 0);
		symbol_event__encode(e, 1, 2, &got.result);
		symbol_event__encode(direct, 1, 2, &r);
		assert_int_equal(e->header.size, direct->header.size);
		assert_memory_equal(e, direct, direct->header.size);
		assert_int_equal(e->symbol.same_size, 0);
	}
	assert_int_equal(symbol_blob__next(sent, size, &offset, &got), 0);
	/* strings are there once, and what is not whole yet is waited for */
	offset = first = 0;
	for (size_t i = 0; i < 10; i++)
		symbol_blob__next(sent, size, &offset, &got);
	first = offset;
	assert_int_equal(symbol_blob__next(sent, first + 15, &offset, &got), 0);
	assert_int_equal(symbol_blob__next(sent, first + 39, &offset, &got), 0);
	assert_int_equal(offset, first);
	assert_true(size < 50 * 250);
	free(direct);
	free(e);
}

/* One answer with one frame whose only string is at an earlier place. */
static int take_place(uint32_t place)
{
	struct {
		struct symbol_event event;
		struct symbol_event_frame frame;
		uint32_t place, fill;
	} bytes = {
		.event = {.header = {.size = sizeof(bytes), .type = EVENT_SYMBOL},
			  .address = 0x4141414141414141,
			  .elf_address = 0x4141414141414141,
			  .frames = 1},
		.frame = {.function_address = ~0ULL, .name_size = 0xffff},
		.place = place,
	};
	struct symbol_answer got;
	size_t offset = 0;
	int more = symbol_blob__next(&bytes, sizeof(bytes), &offset, &got);

	if (more > 0)
		assert_ptr_equal(got.frames[0].function, (const char *)&bytes + place);
	assert_int_equal(event_check(&bytes.event.header, sizeof(bytes)), -EBADMSG);
	return more;
}

TEST(string_places_that_are_not_earlier_are_errors)
{
	size_t at = offsetof(struct symbol_event, payload) + sizeof(struct symbol_event_frame);

	assert_int_equal(take_place(16), 1); /* "AAAAAAAAAAAAAAAA\1": any bytes that end */
	assert_int_equal(take_place(0), 1);
	assert_int_equal(take_place(at), -EBADMSG);
	assert_int_equal(take_place(at - 1), 1); /* an empty one */
	assert_int_equal(take_place(at + 4), -EBADMSG);
	assert_int_equal(take_place(UINT32_MAX), -EBADMSG);
}
