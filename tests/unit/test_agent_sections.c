/* SPDX-License-Identifier: BSD-2-Clause */
/* Where another table begins in a message, however deep it lies; nonsense has none, or ends early. */
#include "unit.h"
#include "base/wire.h"

static void add_field(struct bytes *b, uint32_t number, const void *data, size_t size)
{
	const uint8_t head[] = {(uint8_t)(number << 3 | 2), (uint8_t)(size & 0x7f) | 0x80,
				(uint8_t)(size >> 7 & 0x7f) | 0x80, (uint8_t)(size >> 14)};

	assert_int_equal(bytes__add(b, head, sizeof(head)), 0);
	assert_int_equal(bytes__add(b, data, size), 0);
}

static void add_rows(struct bytes *b, uint32_t number, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_field(b, number, "0123456789abcdef", 16); /* 20 bytes */
}

static size_t find(const struct bytes *b, const uint32_t *path, size_t depth, sections *found)
{
	found->count = 0;
	assert_int_equal(sections__find(b->data, b->count, path, depth, found), 0);
	for (size_t i = 0; i < found->count; i++) {
		assert_in_range(found->data[i], 1, b->count - 1);
		assert_true(!i || found->data[i] > found->data[i - 1]);
	}
	return found->count;
}

TEST(finds_tables)
{
	static const uint32_t path[] = {1, 2}, other[] = {3};
	struct bytes inner = {}, middle = {}, outer = {};
	sections found = {};

	add_rows(&inner, 2, 200); /* 4,000 bytes */
	add_rows(&inner, 4, 10);  /* too few */
	add_rows(&inner, 5, 200);
	add_rows(&inner, 6, 200);
	assert_int_equal(find(&inner, NULL, 0, &found), 2);
	assert_int_equal(found.data[0], 4000);
	assert_int_equal(found.data[1], 8200);
	add_field(&middle, 7, "x", 1);
	add_field(&middle, 2, inner.data, inner.count);
	add_field(&outer, 1, middle.data, middle.count);
	add_field(&outer, 1, middle.data, middle.count);
	/* in each of the two those, and the beginning of the second */
	assert_int_equal(find(&outer, path, 2, &found), 5);
	assert_int_equal(found.data[0], 4 + 5 + 4 + 4000);
	assert_int_equal(find(&outer, other, 1, &found), 0);
	/* cut anywhere it is no message any more */
	for (size_t size = 0; size < outer.count; size += 7) {
		struct bytes cut = {.data = outer.data, .count = size};

		assert_true(find(&cut, path, 2, &found) <= 5);
	}
	free(inner.data);
	free(middle.data);
	free(outer.data);
	vec_free(&found);
}
