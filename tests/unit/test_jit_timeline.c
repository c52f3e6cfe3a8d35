/* SPDX-License-Identifier: BSD-2-Clause */
/* What was at an address at a time, by entries that came one after the other. */
#include "unit.h"
#include "story_text.h"
#include "base/cleanup.h"
#include "jit/jit_timeline.h"

static struct jit_timeline *t; /* of the running test */

static void begin(void)
{
	jit_timeline__free(t);
	t = jit_timeline__new();
}

static void set_up(void)
{
	begin();
}

static void tear_down(void)
{
	jit_timeline__free(t);
	t = NULL;
}

static void add(uint64_t start, uint64_t size, uint64_t after, uint64_t before, uint32_t function)
{
	const struct code_range range = {start, start + size};

	assert_int_equal(jit_timeline__add(t, &range, after, before, function), 0);
}

/* Here an entry's name is ten times its function, and its tier. */
static bool same_function(void *context, uint32_t a, uint32_t b)
{
	return jit_timeline__name(context, a) / 10 == jit_timeline__name(context, b) / 10;
}

static struct jit_answer request(struct jit_timeline *t, uint64_t address, uint64_t time)
{
	struct jit_history history = {};
	struct jit_answer answer;

	assert_int_equal(jit_timeline__histories(t, &address, 1, &history), 0);
	answer = jit_history__at(&history, time, same_function, t);
	jit_history__fini(&history);
	return answer;
}

/* "TIME ENTRY, TIME? ENTRY": the entries at the address at these times, "-" for none; "?": it is ambiguous. */
static void assert_answers(uint64_t address, const char *expected)
{
	struct story_text found = {};

	each_item (at, expected) {
		uint64_t time = strtoull(at, NULL, 10);
		struct jit_answer a = request(t, address, time);

		if (a.entry == JIT_NO_ENTRY)
			add_item(&found, "%" PRIu64 "%s -", time, a.ambiguous ? "?" : "");
		else
			add_item(&found, "%" PRIu64 "%s %u", time, a.ambiguous ? "?" : "", a.entry);
	}
	assert_string_equal(found.text, expected);
}

TEST(a_reused_address_is_ambiguous_between_two_readings)
{
	assert_answers(0x955b, "5 -");
	add(0x9420, 0x1942, 0, 10, 10);
	add(0x9420, 0x2a0, 90, 100, 20);
	/* from a moment when nothing else can have been there */
	assert_answers(0x955b, "5 0, 50 0, 90 0, 91? 1, 100? 1, 101 1");
	/* the rest of what was overwritten in part has no name any more */
	assert_answers(0xa000, "50 0, 95? -, 101 -");
}

/* Another tier of a function is no other function; a single address is where nothing else is. */
TEST(tiers_are_not_ambiguous_and_singles_replace_no_code)
{
	add(0x1000, 0x100, 0, 10, 70);
	add(0x1000, 0x100, 20, 30, 71);
	add(0x1080, 0, 40, 50, 80);
	add(0x2000, 0, 40, 50, 90);
	assert_answers(0x1010, "25 1");
	assert_answers(0x1080, "60 1");
	assert_answers(0x2000, "60 3");
	assert_answers(0x2001, "60 -");
	/* two others in one gap: the newest, and not for sure */
	add(0x1000, 0x10, 70, 80, 100);
	add(0x1000, 0x10, 70, 80, 70);
	assert_answers(0x1008, "75? 5, 81 5");
}

/* The same entry once more is no change, and a reading that goes on is one with the next. */
TEST(a_repeated_entry_changes_nothing)
{
	add(0x1000, 0x100, 0, 10, 10);
	add(0x1000, 0x100, 20, 30, 10);
	assert_answers(0x1010, "25 0, 40 0");
	add(0x1000, 0x100, 40, 50, 20);
	add(0x3000, 0x100, 40, 60, 30);
	assert_answers(0x1010, "55? 2, 61 2");
}

static void snapshot(uint64_t after, uint64_t before, const struct code_range *ranges,
		     const uint32_t *names, size_t count)
{
	assert_int_equal(jit_timeline__begin_snapshot(t, after, before), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(jit_timeline__add(t, &ranges[i], after, before, names[i]), 0);
	jit_timeline__end_snapshot(t);
}

/* A file that is written anew: what it has holds back to the one before, what it has not ends. */
TEST(a_snapshot_ends_only_the_code_that_it_lacks)
{
	static const struct code_range FIRST[] = {
		{0x1000, 0x1100}, {0x2000, 0x2100}, {0x3000, 0x3100}};
	static const struct code_range SECOND[] = {
		{0x1000, 0x1100}, {0x2080, 0x2180}, {0x4000, 0x4100}};
	static const struct code_range NESTED[] = {{0x1000, 0x1100}, {0x1080, 0x10a0}};
	static const uint32_t A[] = {10, 20, 30}, B[] = {10, 40, 50}, C[] = {10, 60};

	snapshot(0, 100, FIRST, A, 3);
	snapshot(100, 200, SECOND, B, 3);
	assert_answers(0x1010, "50 0, 150 0, 250 0");
	/* another one covers it */
	assert_answers(0x2090, "100 1, 150? 4, 250 4");
	/* it is gone: with the next, or earlier */
	assert_answers(0x2010, "150? 1, 250 -");
	assert_answers(0x3010, "100 2, 150? 2, 250 -");
	/* it is new, and nothing else was there */
	assert_answers(0x4010, "100 -, 101 5");
	/* what comes at once has one time: the later wins, and nothing is in doubt */
	snapshot(200, 300, NESTED, C, 2);
	assert_answers(0x1090, "250? 7, 350 7");
	assert_answers(0x1010, "250? 0");
	begin();
	snapshot(0, 100, NESTED, C, 2);
	assert_answers(0x1090, "50 1");
	assert_answers(0x1010, "50 -");
}

/* ---- against the definition ------------------------------------------------------------------ */

enum { ENTRIES = 60, QUESTIONS = 80, ADDRESSES = 120 };

struct written {
	struct code_range range;
	uint64_t after, before;
	uint32_t name;
};

static bool equal_entries(const struct written *a, const struct written *b)
{
	return a->range.start == b->range.start && a->range.end == b->range.end &&
	       a->name == b->name;
}

/* Entry i comes to those that live. */
static void write_entry(const struct written *all, uint32_t i, bool *live)
{
	const struct code_range *new = &all[i].range;
	bool single = new->start == new->end, covered = false;

	for (uint32_t j = 0; j < i; j++)
		if (live[j] && equal_entries(&all[j], &all[i]))
			return;
	for (uint32_t j = 0; j < i; j++) {
		const struct code_range *old = &all[j].range;
		uint64_t end = old->end > old->start ? old->end : old->start + 1;

		if (!live[j])
			continue;
		if (single)
			covered |= old->start <= new->start &&new->start < end;
		else if (old->start < new->end &&new->start < end)
			live[j] = false;
	}
	live[i] = !covered;
}

/* The entry at the address once the first `count` are applied. */
static uint32_t at_once(const struct written *all, uint32_t count, uint64_t address)
{
	bool live[ENTRIES] = {};

	for (uint32_t i = 0; i < count; i++)
		write_entry(all, i, live);
	for (uint32_t i = 0; i < count; i++) {
		const struct code_range *r = &all[i].range;

		if (live[i] && r->start <= address &&
		    address < (r->end > r->start ? r->end : r->start + 1))
			return i;
	}
	return JIT_NO_ENTRY;
}

static uint32_t function_of(const struct written *all, uint32_t entry)
{
	return entry == JIT_NO_ENTRY ? JIT_NO_ENTRY : all[entry].name / 10;
}

static void check(const struct written *all, uint64_t address, uint64_t time,
		  struct jit_answer answer)
{
	uint32_t sure = 0, possible = 0, entry;
	bool ambiguous = false;

	while (sure < ENTRIES && all[sure].before < time)
		sure++;
	while (possible < ENTRIES && all[possible].after < time)
		possible++;
	entry = at_once(all, sure, address);
	for (uint32_t n = sure + 1; n <= possible; n++) {
		uint32_t next = at_once(all, n, address);

		ambiguous |= entry != JIT_NO_ENTRY &&
			     function_of(all, entry) != function_of(all, next);
		entry = next;
	}
	assert_int_equal(answer.entry, entry);
	assert_int_equal(answer.ambiguous, ambiguous);
}

static void write_at_random(struct written *all)
{
	uint64_t after = 0, before = 5;

	for (int i = 0; i < ENTRIES; i++) {
		struct written *w = &all[i];

		if (random() % 3 == 0) {
			after = before + 1 + random() % 3;
			before = after + random() % 6;
		}
		w->range.start = random() % 100;
		w->range.end = w->range.start + random() % 15;
		w->after = after;
		w->before = before;
		w->name = random() % 80;
		add(w->range.start, w->range.end - w->range.start, after, before, w->name);
	}
}

/* Of all addresses, or of some: the others make no difference. */
static size_t choose(uint64_t *addresses, int one_in)
{
	size_t count = 0;

	for (uint64_t i = 0; i < ADDRESSES; i++)
		if (random() % one_in == 0)
			addresses[count++] = i;
	return count;
}

TEST(random_answers_agree_with_the_plain_definition)
{
	srandom(11);
	for (int round = 0; round < 600; round++) {
		struct jit_history histories[ADDRESSES] = {};
		uint64_t addresses[ADDRESSES];
		struct written all[ENTRIES];
		size_t count = choose(addresses, 1 + round % 3 * 5);

		begin();
		write_at_random(all);
		assert_int_equal(jit_timeline__histories(t, addresses, count, histories), 0);
		for (int i = 0; i < QUESTIONS && count; i++) {
			size_t which = random() % count;
			uint64_t time = random() % (all[ENTRIES - 1].before + 5);

			check(all, addresses[which], time,
			      jit_history__at(&histories[which], time, same_function, t));
		}
		for (size_t i = 0; i < count; i++)
			jit_history__fini(&histories[i]);
	}
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Many entries at random addresses: blocks split and go away. */
TEST(entries_are_found_among_many_at_random_addresses)
{
	enum { COUNT = 200000, REQUESTED = 1000 };
	_cleanup_free_ struct jit_history *histories = calloc(REQUESTED, sizeof(*histories));
	uint64_t *starts = calloc(COUNT, sizeof(*starts)), addresses[REQUESTED];

	srandom(12);
	for (uint32_t i = 0; i < COUNT; i++) {
		starts[i] = ((uint64_t)random() << 20 ^ (uint64_t)random()) & ~63ull;
		add(starts[i], 64, i * 10, i * 10 + 9, i);
	}
	for (uint32_t i = 0; i < REQUESTED; i++)
		addresses[i] = starts[COUNT - REQUESTED + i] + i % 64;
	qsort(addresses, REQUESTED, sizeof(*addresses), compare_u64);
	assert_int_equal(jit_timeline__histories(t, addresses, REQUESTED, histories), 0);
	for (uint32_t i = 0; i < REQUESTED; i++) {
		uint32_t entry = jit_history__at(&histories[i], UINT64_MAX, same_function, t).entry;

		assert_true(entry >= COUNT - REQUESTED && entry < COUNT);
		assert_int_equal(starts[entry], addresses[i] & ~63ull);
		jit_history__fini(&histories[i]);
	}
	add(0, UINT64_C(1) << 56, COUNT * 10, COUNT * 10, COUNT);
	assert_int_equal(request(t, starts[5], UINT64_MAX).entry, COUNT);
	assert_false(request(t, starts[5], UINT64_MAX).ambiguous);
	free(starts);
}

/* ---- forgetting ------------------------------------------------------------------------------ */

/* Snapshots and lines that are appended, at random, the same to both. */
static void write_one_of_both(struct jit_timeline *a, struct jit_timeline *b, uint64_t time)
{
	struct jit_timeline *both[] = {a, b};
	bool is_snapshot = random() % 4 == 0;
	unsigned int count = random() % 6;
	struct code_range ranges[6];
	uint32_t names[6];

	for (unsigned int i = 0; i < count; i++) {
		ranges[i].start = random() % 100;
		ranges[i].end = ranges[i].start + random() % 15;
		names[i] = random() % 80;
	}
	for (int n = 0; n < 2; n++) {
		if (is_snapshot)
			assert_int_equal(jit_timeline__begin_snapshot(both[n], time - 9, time), 0);
		for (unsigned int i = 0; i < count; i++)
			assert_int_equal(
				jit_timeline__add(both[n], &ranges[i], time - 9, time, names[i]),
				0);
		if (is_snapshot)
			jit_timeline__end_snapshot(both[n]);
	}
}

static uint32_t name_of(struct jit_timeline *t, struct jit_answer answer)
{
	return answer.entry == JIT_NO_ENTRY ? JIT_NO_ENTRY : jit_timeline__name(t, answer.entry);
}

TEST(forgetting_changes_no_answer_from_the_horizon_on)
{
	size_t forgotten = 0;

	srandom(7);
	for (int round = 0; round < 60; round++) {
		struct jit_timeline *all = jit_timeline__new(), *some = jit_timeline__new();
		uint64_t horizon = 0, time;

		for (time = 10; time < 400; time += 10) {
			write_one_of_both(all, some, time);
			if (random() % 5 == 0) {
				uint64_t next = time - random() % 40 % time;

				horizon = next > horizon ? next : horizon;
				assert_int_equal(jit_timeline__forget(some, horizon), 0);
			}
		}
		forgotten += jit_timeline__count(all) - jit_timeline__count(some);
		for (uint64_t address = 0; address < 115; address++)
			for (uint64_t at = horizon; at < time + 5; at += 5) {
				struct jit_answer a = request(all, address, at);
				struct jit_answer b = request(some, address, at);

				assert_int_equal(name_of(all, a), name_of(some, b));
				assert_int_equal(a.ambiguous, b.ambiguous);
			}
		jit_timeline__free(all);
		jit_timeline__free(some);
	}
	assert_true(forgotten > 1000);
}

TEST(steadily_replaced_code_takes_limited_memory)
{
	size_t most = 0;

	for (uint32_t i = 0; i < 200000; i++) {
		add(0x1000 + i % 100 * 64, 64, 10 * i, 10 * i + 9, i);
		if (i % 1000 == 999) {
			most = jit_timeline__memory(t) > most ? jit_timeline__memory(t) : most;
			assert_int_equal(jit_timeline__forget(t, 10 * i), 0);
			assert_in_range(jit_timeline__count(t), 100, 101);
		}
	}
	assert_true(most < 1100 * 2 * 64);
	/* what is there is known, and since when */
	assert_int_equal(name_of(t, request(t, 0x1000, 10 * 199900 + 20)), 199900);
}

/* All that has ended goes, of the present as well: what is alive has its moments, and earlier nothing is known. */
TEST(forgetting_everything_keeps_the_code_that_is_alive)
{
	add(0x1000, 0x100, 0, 10, 10);
	add(0x2000, 0x100, 20, 30, 20);
	add(0x1000, 0x100, 40, 50, 30);
	assert_int_equal(jit_timeline__forget(t, UINT64_MAX), 0);
	assert_int_equal(jit_timeline__count(t), 2);
	assert_int_equal(name_of(t, request(t, 0x2010, 35)), 20);
	assert_int_equal(name_of(t, request(t, 0x1010, 35)), JIT_NO_ENTRY);
	assert_int_equal(name_of(t, request(t, 0x1010, 51)), 30);
	assert_int_equal(jit_timeline__after(t, 0), 20);
	assert_int_equal(jit_timeline__after(t, 1), 40);
	/* a snapshot that is being read ends nothing yet */
	assert_int_equal(jit_timeline__begin_snapshot(t, 60, 70), 0);
	add(0x3000, 0x100, 60, 70, 40);
	assert_int_equal(jit_timeline__forget(t, UINT64_MAX), 0);
	assert_int_equal(name_of(t, request(t, 0x2010, 80)), 20);
	jit_timeline__end_snapshot(t);
	assert_int_equal(name_of(t, request(t, 0x2010, 80)), JIT_NO_ENTRY);
	assert_int_equal(name_of(t, request(t, 0x3010, 80)), 40);
}

/* What was never an answer goes first, then what was one the longest ago. */
TEST(shedding_begins_with_the_least_recently_used_entries)
{
	for (uint32_t i = 0; i < 8; i++)
		add(0x1000 * (i + 1), 0x100, 10 * i, 10 * i + 5, i);
	jit_timeline__use(t, 2);
	assert_int_equal(jit_timeline__forget(t, 1), 0);
	jit_timeline__use(t, 0);
	assert_int_equal(jit_timeline__shed(t, 4), 0);
	assert_int_equal(jit_timeline__count(t), 6);
	assert_int_equal(jit_timeline__name(t, 0), 0);
	assert_int_equal(jit_timeline__name(t, 1), 2);
	assert_int_equal(jit_timeline__name(t, 2), 4);
	assert_int_equal(jit_timeline__shed(t, 2), 0);
	assert_int_equal(jit_timeline__shed(t, 3), 0);
	assert_int_equal(jit_timeline__shed(t, 2), 0);
	assert_int_equal(jit_timeline__count(t), 1);
	assert_int_equal(jit_timeline__name(t, 0), 0);
}

/* Moments come from a file that somebody else may have made: beginnings are put in order. */
TEST(unordered_beginnings_are_put_in_order)
{
	static const uint64_t reported[] = {10, 40, 30, 20, 50}, wanted[] = {10, 20, 20, 20, 50};
	_cleanup_(jit_history__fini) struct jit_history history = {};
	uint64_t address = 0x1000;

	for (uint32_t i = 0; i < 5; i++)
		add(0x1000, 0x10, reported[i], 100 + i, 10 * (i + 1));
	assert_int_equal(jit_timeline__histories(t, &address, 1, &history), 0);
	assert_int_equal(history.changes.count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(history.changes.data[i].after, wanted[i]);
		assert_int_equal(history.changes.data[i].before, 100 + i);
	}
}

/* Each entry is of all addresses: their product is more than is kept. */
TEST(too_many_changes_of_all_addresses_are_an_error)
{
	enum { EACH = 2000 };
	_cleanup_free_ struct jit_history *histories = calloc(EACH, sizeof(*histories));
	uint64_t addresses[EACH];

	for (uint32_t i = 0; i < EACH; i++) {
		addresses[i] = 0x1000 + i;
		add(0x1000, 0x1000, 10 * i, 10 * i + 5, i);
	}
	assert_int_equal(jit_timeline__histories(t, addresses, EACH, histories), -E2BIG);
	for (uint32_t i = 0; i < EACH; i++)
		jit_history__fini(&histories[i]);
	/* a quarter of the addresses is not */
	assert_int_equal(jit_timeline__histories(t, addresses, EACH / 4, histories), 0);
	for (uint32_t i = 0; i < EACH / 4; i++) {
		assert_int_equal(histories[i].changes.count, EACH);
		jit_history__fini(&histories[i]);
	}
}

EACH_TEST_WITH(set_up, tear_down);
