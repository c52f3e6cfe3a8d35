/* SPDX-License-Identifier: BSD-2-Clause */
/* A symbol cache in a directory of its own, and answers that follow from their address. */
#ifndef TESTS_UNIT_SYMBOL_CACHE_SUPPORT_H
#define TESTS_UNIT_SYMBOL_CACHE_SUPPORT_H

#include <dirent.h>

#include "unit.h"
#include "base/cleanup.h"
#include "symbolize/symbol_cache.h"

#include "unit/tools.h"

#define ADDRESSES 300

static char directory[64];

/* What the last reading said. */
static enum symbol_state found;
static bool without_lines;

static const struct symbol_key KEY = {
	.identity = 7, .build_id_size = 20, .build_id = {0xab, 0xcd, 1, 2, 3}};

/* ---- answers that follow from their address -------------------------------------------------- */

struct sample_answer {
	char function[3][40], file[40];
	struct symbol_frame frames[3];
	struct symbol_result result;
};

/* `salt` makes a different answer for the same address. */
static const struct symbol_result *make_answer(struct sample_answer *s, uint64_t address,
					       unsigned int salt)
{
	size_t count = (address + salt) % 4;

	*s = (struct sample_answer){};
	snprintf(s->file, sizeof(s->file), "/src/%d.c", (int)(address % 7));
	for (size_t i = 0; i < count; i++) {
		snprintf(s->function[i], sizeof(s->function[i]), "f%d_%d_%u", (int)address, (int)i,
			 salt);
		s->frames[i] = (struct symbol_frame){
			.function = s->function[i],
			.function_address = address - 16,
			.function_size = i ? 0 : 64,
			.file = address % 3 ? s->file : NULL,
			.line = address % 1000,
			.column = i,
			.definition_file = address % 5 ? s->file : NULL,
			.definition_line = 3,
			.definition_column = 4,
		};
	}
	s->result = (struct symbol_result){
		.elf_address = address + 0x1000,
		.frames = count ? s->frames : NULL,
		.frame_count = count,
	};
	return &s->result;
}

static void assert_text(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_ptr_equal(a, b);
}

static void assert_same(const struct symbol_result *a, const struct symbol_result *b)
{
	assert_int_equal(a->elf_address, b->elf_address);
	assert_int_equal(a->frame_count, b->frame_count);
	for (size_t i = 0; i < a->frame_count; i++) {
		const struct symbol_frame *x = &a->frames[i], *y = &b->frames[i];

		assert_string_equal(x->function, y->function);
		assert_text(x->file, y->file);
		assert_text(x->definition_file, y->definition_file);
		assert_int_equal(x->function_address, y->function_address);
		assert_int_equal(x->function_size, y->function_size);
		assert_int_equal(x->line, y->line);
		assert_int_equal(x->column, y->column);
		assert_int_equal(x->definition_line, y->definition_line);
		assert_int_equal(x->definition_column, y->definition_column);
	}
}

struct reading {
	const uint64_t *addresses;
	size_t reported, stop_at;
	int64_t last;
	int salt; /* -1: whichever the answer says */
	bool forged;
};

static int check_answer(void *context, size_t index, const struct symbol_result *result)
{
	struct reading *r = context;
	struct sample_answer expected;
	int salt = r->salt;

	assert_true((int64_t)index > r->last);
	r->last = index;
	r->reported++;
	if (r->forged) {
		/* whatever it says, it can be read */
		for (size_t i = 0; i < result->frame_count; i++)
			assert_true(strlen(result->frames[i].function) < 1 << 20);
		return 0;
	}
	if (salt < 0)
		salt = result->frame_count ? strrchr(result->frames[0].function, '_')[1] - '0' : 0;
	if (r->salt >= 0 || result->frame_count)
		assert_same(result, make_answer(&expected, r->addresses[index], salt));
	return r->reported == r->stop_at ? -EINTR : 0;
}

/* How many of the addresses are known; each is checked. */
static size_t read_cache(struct symbol_cache *c, const struct symbol_key *key,
			 const uint64_t *addresses, size_t count, int salt)
{
	struct reading r = {.addresses = addresses, .last = -1, .salt = salt};
	_cleanup_free_ unsigned char *known = malloc(count);
	size_t marked = 0;

	memset(known, 0xee, count);
	assert_int_equal(symbol_cache__read(c, key, addresses, count, known, check_answer, &r,
					    &found, &without_lines),
			 0);
	for (size_t i = 0; i < count; i++) {
		assert_true(known[i] <= 1);
		marked += known[i];
	}
	assert_int_equal(marked, r.reported);
	return r.reported;
}

static void add_answers(struct symbol_cache *c, const struct symbol_key *key,
			const uint64_t *addresses, size_t count, unsigned int salt)
{
	struct sample_answer s;

	for (size_t i = 0; i < count; i++)
		assert_int_equal(symbol_cache__add(c, key, addresses[i],
						   make_answer(&s, addresses[i], salt),
						   SYMBOL_STATE_RESOLVED),
				 0);
}

static struct symbol_cache *open_cache(void)
{
	struct symbol_cache *c = symbol_cache__open(directory, SYMBOL_CACHE_LIMIT);

	assert_non_null(c);
	return c;
}

static void write_cache(const struct symbol_key *key, const uint64_t *addresses, size_t count,
			unsigned int salt)
{
	struct symbol_cache *c = open_cache();

	add_answers(c, key, addresses, count, salt);
	symbol_cache__commit(c);
	symbol_cache__free(c);
}

static size_t read_fresh(const struct symbol_key *key, const uint64_t *addresses, size_t count,
			 int salt)
{
	struct symbol_cache *c = open_cache();
	size_t known = read_cache(c, key, addresses, count, salt);

	symbol_cache__free(c);
	return known;
}

static void fill_addresses(uint64_t *addresses, size_t count, uint64_t first)
{
	for (size_t i = 0; i < count; i++)
		addresses[i] = first + i * 13;
}

/* ---- the directory --------------------------------------------------------------------------- */

static void clear_directory(void)
{
	DIR *d = opendir(directory);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0))
			assert_int_equal(unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR), 0);
	}
	closedir(d);
}

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/test_symbol_cache.XXXXXX");
	assert_true(mkdtemp(directory));
}

static void teardown(void)
{
	assert_int_equal(chmod(directory, 0700), 0);
	clear_directory();
	assert_int_equal(rmdir(directory), 0);
}

static size_t list_directory(char *first, size_t size)
{
	DIR *d = opendir(directory);
	size_t count = 0;

	for (struct dirent *e; (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!count++ && first)
			snprintf(first, size, "%s/%s", directory, e->d_name);
	}
	closedir(d);
	return count;
}

/* Path of the only file there is. */
static void only_file(char *path, size_t size)
{
	assert_int_equal(list_directory(path, size), 1);
}

EACH_TEST_WITH(setup, teardown);

#endif
