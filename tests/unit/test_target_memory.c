/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a process that is read within limits, and pages of it that are kept. */
#include "unit.h"
#include "runtimes/target_memory.h"

#define BASE  0x7f0000100000u
#define PAGES (3 * TARGET_PAGES)

struct target {
	unsigned char bytes[PAGES * TARGET_PAGE];
	size_t size; /* what is there */
	unsigned int reads;
	struct target_pages pages;
	struct target_memory memory;
};

static int read_target(void *context, void *to, size_t size, uint64_t address)
{
	struct target *t = context;

	t->reads++;
	if (address < BASE || address - BASE > t->size || size > t->size - (address - BASE))
		return -ENODATA;
	memcpy(to, t->bytes + (address - BASE), size);
	return 0;
}

static struct target *new_target(void)
{
	static struct target t;

	t = (struct target){.size = sizeof(t.bytes)};
	for (size_t i = 0; i < sizeof(t.bytes); i++)
		t.bytes[i] = (unsigned char)(i * 7 + i / TARGET_PAGE);
	t.memory = (struct target_memory){.read = read_target,
					  .context = &t,
					  .bytes_left = 1 << 30,
					  .reads_left = 100000,
					  .pages = &t.pages};
	return &t;
}

static void assert_read(struct target *t, size_t at, size_t size)
{
	unsigned char read[2 * TARGET_PAGE];

	assert_int_equal(target_memory__read(&t->memory, read, size, BASE + at), 0);
	assert_memory_equal(read, t->bytes + at, size);
}

static uint32_t word_at(struct target *t, size_t at)
{
	uint32_t word;

	assert_int_equal(target_memory__u32(&t->memory, &word, BASE + at), 0);
	return word;
}

static void put_word(struct target *t, size_t at, uint32_t word)
{
	memcpy(t->bytes + at, &word, sizeof(word));
}

TEST(a_page_is_kept_until_it_is_forgotten)
{
	struct target *t = new_target();

	put_word(t, 100, 1);
	assert_int_equal(word_at(t, 100), 1);
	put_word(t, 100, 2);
	assert_int_equal(word_at(t, 100), 1);
	assert_int_equal(t->reads, 1);
	target_memory__forget(&t->memory);
	assert_int_equal(word_at(t, 100), 2);
	/* nothing is kept of what is looked at without the pages */
	t->memory.pages = NULL;
	put_word(t, 100, 3);
	assert_int_equal(word_at(t, 100), 3);
	target_memory__forget(&t->memory);
	assert_int_equal(t->reads, 3);
}

TEST(reads_across_pages_fetch_each_page_once)
{
	struct target *t = new_target();

	for (unsigned int round = 0; round < 2; round++)
		for (size_t at = 0; at + 200 <= TARGET_PAGES * TARGET_PAGE; at += 100)
			assert_read(t, at, 200);
	assert_int_equal(t->reads, TARGET_PAGES);
	/* more than are kept: each is read again, and is right */
	t->reads = 0;
	for (unsigned int round = 0; round < 2; round++)
		for (size_t page = 0; page < PAGES; page++)
			assert_read(t, page * TARGET_PAGE + 5, 8);
	assert_in_range(t->reads, PAGES, 2 * PAGES);
	/* a larger one is read by itself, and as it is now */
	assert_read(t, 0, 8);
	put_word(t, 0, 99);
	t->reads = 0;
	assert_read(t, 0, TARGET_PAGES_READ + 1);
	assert_int_equal(t->reads, 1);
}

TEST(a_read_beyond_the_mapping_is_an_error)
{
	struct target *t = new_target();
	uint64_t value;

	t->size = 2 * TARGET_PAGE + 64; /* the last page is there in part */
	assert_read(t, 2 * TARGET_PAGE - 8, 72);
	assert_int_equal(target_memory__word(&t->memory, &value, BASE + t->size - 4), -ENODATA);
	assert_int_equal(target_memory__word(&t->memory, &value, 0), -ENODATA);
	assert_int_equal(target_memory__word(&t->memory, &value, UINT64_MAX - 3), -ENODATA);
	assert_int_equal(target_memory__word(&t->memory, &value, UINT64_MAX - 8), -ENODATA);
	t->size = TARGET_PAGE; /* what was kept before a page was gone */
	assert_read(t, TARGET_PAGE, 8);
	target_memory__forget(&t->memory);
	assert_int_equal(target_memory__word(&t->memory, &value, BASE + TARGET_PAGE), -ENODATA);
}

/* Circles of links that are kept end as well. */
TEST(reads_and_bytes_beyond_the_limit_are_refused)
{
	struct target *t = new_target();
	uint64_t value;

	t->memory.reads_left = 10;
	for (unsigned int i = 0; i < 10; i++)
		assert_read(t, 8, 8);
	assert_int_equal(target_memory__word(&t->memory, &value, BASE), -EDQUOT);
	t = new_target();
	t->memory.bytes_left = 100;
	assert_read(t, 0, 60);
	assert_int_equal(target_memory__read(&t->memory, &value, 41, BASE), -EDQUOT);
	assert_int_equal(target_memory__word(&t->memory, &value, BASE), -EDQUOT);
}

TEST(strings_cut_by_buffer_or_mapping_are_an_error)
{
	struct target *t = new_target();
	char text[32];

	memset(t->bytes, 'x', sizeof(t->bytes));
	strcpy((char *)t->bytes + TARGET_PAGE - 3, "abcdef");
	assert_int_equal(
		target_memory__string(&t->memory, text, sizeof(text), BASE + TARGET_PAGE - 3), 0);
	assert_string_equal(text, "abcdef");
	assert_int_equal(target_memory__string(&t->memory, text, 5, BASE + TARGET_PAGE - 3),
			 -ENAMETOOLONG);
	assert_string_equal(text, "abcd");
	t->size = 2 * TARGET_PAGE;
	target_memory__forget(&t->memory);
	assert_int_equal(target_memory__string(&t->memory, text, sizeof(text), BASE + t->size - 2),
			 -ENODATA);
	assert_string_equal(text, "xx");
}
