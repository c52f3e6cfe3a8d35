/* SPDX-License-Identifier: BSD-2-Clause */
/* Indexes in the symbol cache: they take the place of answers, are made when they are worth it, and have a limit by user. */
#include "symbol_cache_support.h"

#include "symbolize/symbol_index.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/symbol_index_writer.h"

/* With the answers for these addresses; `whole`: nothing else is left open. */
static struct symbol_index *make_index(const uint64_t *addresses, size_t count, unsigned int salt,
				       bool whole)
{
	static struct sample_answer answers[ADDRESSES];
	struct index_writer *w = index_writer__new(SYMBOL_INDEX_MAX, NULL);
	struct symbol_index *index;
	void *data;
	size_t size;

	assert_non_null(w);
	assert_int_equal(index_writer__segment(w, 0, 1 << 20, 0x1000), 0);
	if (!whole)
		assert_int_equal(index_writer__gap(w, 0), 0);
	for (size_t i = 0; i < count; i++) {
		const struct symbol_result *r = make_answer(&answers[i], addresses[i], salt);

		assert_int_equal(index_writer__answer(w, r->elf_address, r->frames, r->frame_count),
				 0);
	}
	if (!whole)
		assert_int_equal(index_writer__gap(w, addresses[count - 1] + 0x1001), 0);
	assert_int_equal(index_writer__finish(w, SYMBOL_STATE_RESOLVED, &data, &size), 0);
	index_writer__free(w);
	assert_int_equal(symbol_index__open(data, size, &index), 0);
	assert_int_equal(symbol_index__is_whole(index), whole);
	return index;
}

static struct symbol_cache *open_keeping(size_t bytes)
{
	struct symbol_cache *c = open_cache();

	symbol_cache__keep(c, bytes);
	return c;
}

TEST(a_whole_index_replaces_the_answers)
{
	uint64_t addresses[ADDRESSES];
	struct symbol_cache *c;
	char path[512];

	fill_addresses(addresses, ADDRESSES, 1000);
	write_cache(&KEY, addresses, 10, 1);
	c = open_keeping(1 << 20);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), 10);
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses, ADDRESSES, 1, true), addresses,
				ADDRESSES);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), ADDRESSES);
	symbol_cache__free(c);
	only_file(path, sizeof(path));
	assert_non_null(strstr(path, "-0.index"));
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, 1), ADDRESSES);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, 1), 0);
	assert_int_equal(list_directory(NULL, 0), 0);
}

TEST(partial_indexes_leave_answers_in_place)
{
	uint64_t addresses[ADDRESSES];
	struct symbol_cache *c = open_keeping(1 << 20);

	fill_addresses(addresses, ADDRESSES, 1000);
	add_answers(c, &KEY, addresses, 10, 1);
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses + 100, 50, 1, false),
				addresses + 100, 50);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), 60);
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses + 200, 50, 1, false),
				addresses + 200, 50);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), 110);
	symbol_cache__free(c);
	assert_int_equal(list_directory(NULL, 0), 3);
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, 1), 110);
}

static bool wants_index(struct symbol_cache *c, uint64_t cost, uint64_t index_cost)
{
	symbol_cache__note_reading(c, &KEY, cost, index_cost);
	return symbol_cache__wants_index(c, &KEY);
}

TEST(the_least_recently_used_index_is_evicted)
{
	struct symbol_index *first, *second, *third;
	uint64_t addresses[ADDRESSES];
	struct symbol_cache *c;

	fill_addresses(addresses, ADDRESSES, 1000);
	first = make_index(addresses, 50, 1, false);
	second = make_index(addresses + 100, 50, 1, false);
	third = make_index(addresses + 200, 50, 1, false);
	c = open_keeping(symbol_index__size(first) * 5 / 2 * 16 / 7); /* a module may have two */
	add_answers(c, &KEY, addresses + 60, 1, 1);
	symbol_cache__add_index(c, &KEY, 1000, first, addresses, 50);
	symbol_cache__add_index(c, &KEY, 1000, second, addresses + 100, 50);
	assert_int_equal(read_cache(c, &KEY, addresses, 50, 1), 50);
	symbol_cache__add_index(c, &KEY, 1000, third, addresses + 200, 50);
	assert_int_equal(read_cache(c, &KEY, addresses + 100, 50, 1), 0);
	assert_int_equal(read_cache(c, &KEY, addresses, 50, 1), 50);
	assert_int_equal(read_cache(c, &KEY, addresses + 200, 50, 1), 50);
	assert_true(wants_index(c, 300, 300));
	second = make_index(addresses + 100, 50, 1, false);
	symbol_cache__add_index(c, &KEY, 1000, second, addresses + 100, 50);
	assert_int_equal(read_cache(c, &KEY, addresses, ADDRESSES, 1), 101);
	symbol_cache__free(c);
	assert_int_equal(list_directory(NULL, 0), 3);
	assert_int_equal(read_fresh(&KEY, addresses + 100, 50, 1), 50);
	assert_int_equal(read_fresh(&KEY, addresses, ADDRESSES, 1), 101);
}

/* When debug information is not read any more, answers with lines serve beside those without. */
TEST(answers_with_lines_serve_requests_for_names)
{
	struct symbol_key symbols = KEY;
	struct symbol_cache *c = open_keeping(1 << 20);
	uint64_t addresses[10];

	fill_addresses(addresses, 10, 50);
	symbols.symbols_only = 1;
	add_answers(c, &KEY, addresses, 5, 1);
	assert_int_equal(read_cache(c, &symbols, addresses, 10, 1), 5);
	assert_false(without_lines);
	add_answers(c, &symbols, addresses + 5, 5, 1);
	assert_int_equal(read_cache(c, &symbols, addresses, 10, 1), 10);
	assert_true(without_lines);
	assert_int_equal(read_cache(c, &KEY, addresses, 10, 1), 5);
	symbol_cache__free(c);
}

/* One is worth making when reading has cost as much; not if there can be none, or there is no room. */
TEST(an_index_is_wanted_once_reading_costs_as_much)
{
	struct symbol_cache *c = open_keeping(1 << 20);
	uint64_t addresses[ADDRESSES];

	fill_addresses(addresses, ADDRESSES, 1000);
	assert_false(wants_index(c, 100, 10)); /* nothing is known of it */
	add_answers(c, &KEY, addresses, 1, 1);
	assert_false(wants_index(c, 100, 0));
	/* at the second reading half as much is enough, at the third one a third */
	assert_false(wants_index(c, 0, 202));
	assert_true(wants_index(c, 1, 303));
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses, 10, 1, false), addresses, 10);
	assert_false(wants_index(c, 299, 300));
	assert_true(wants_index(c, 1, 300));
	/* of one without an answer that was requested nothing stays */
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses + 100, 10, 1, false),
				addresses + 20, 1);
	assert_int_equal(read_cache(c, &KEY, addresses + 100, 10, 1), 0);
	assert_false(wants_index(c, 299, 300));
	assert_true(wants_index(c, 1, 300));
	symbol_cache__add_index(c, &KEY, 0, NULL, addresses, 1);
	assert_false(wants_index(c, 1000, 300));
	symbol_cache__free(c);

	c = open_keeping(4096);
	add_answers(c, &KEY, addresses, 1, 1);
	assert_true(wants_index(c, 300, 300));
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses, ADDRESSES, 1, true), addresses,
				ADDRESSES);
	assert_false(wants_index(c, 1000, 300));
	symbol_cache__free(c);
}

/* What reading has cost stays with the answers, and so does that no index could be made. */
TEST(the_cost_of_reading_is_stored_with_the_answers)
{
	struct symbol_cache *c = open_keeping(1 << 20);
	uint64_t addresses[ADDRESSES];

	fill_addresses(addresses, ADDRESSES, 1000);
	add_answers(c, &KEY, addresses, 1, 1);
	assert_false(wants_index(c, 200, 300));
	symbol_cache__free(c);

	c = open_keeping(1 << 20);
	assert_int_equal(read_cache(c, &KEY, addresses, 1, 1), 1);
	assert_false(wants_index(c, 99, 300));
	assert_true(wants_index(c, 1, 300));
	symbol_cache__add_index(c, &KEY, 0, make_index(addresses + 100, 10, 1, false),
				addresses + 100, 10);
	symbol_cache__free(c);

	c = open_keeping(1 << 20);
	assert_int_equal(read_cache(c, &KEY, addresses, 1, 1), 1);
	assert_false(wants_index(c, 299, 300));
	assert_true(wants_index(c, 1, 300));
	add_answers(c, &KEY, addresses + 1, 1, 1);
	symbol_cache__add_index(c, &KEY, 0, NULL, addresses, 1);
	symbol_cache__free(c);

	c = open_keeping(1 << 20);
	assert_int_equal(read_cache(c, &KEY, addresses, 2, 1), 2);
	assert_false(wants_index(c, 1000, 300));
	symbol_cache__free(c);
}

/* The indexes of one user's files take so much, and root's take no more room from them. */
TEST(the_indexes_of_one_user_have_a_limit)
{
	struct symbol_cache *c = open_keeping(64 << 20);
	uint64_t addresses[ADDRESSES];
	struct symbol_key key = KEY;
	size_t taken = 0, each;

	fill_addresses(addresses, ADDRESSES, 1000);
	for (;; taken++, key.identity++) {
		struct symbol_index *index = make_index(addresses, ADDRESSES, 1, true);

		each = symbol_index__size(index);
		add_answers(c, &key, addresses, 1, 1);
		symbol_cache__add_index(c, &key, 1000, index, addresses, ADDRESSES);
		if (read_cache(c, &key, addresses, ADDRESSES, 1) < ADDRESSES)
			break;
	}
	assert_in_range(taken * each, (4 << 20) - each, 4 << 20);
	key.identity++;
	add_answers(c, &key, addresses, 1, 1);
	symbol_cache__add_index(c, &key, 0, make_index(addresses, ADDRESSES, 1, true), addresses,
				ADDRESSES);
	assert_int_equal(read_cache(c, &key, addresses, ADDRESSES, 1), ADDRESSES);
	symbol_cache__free(c);
}
