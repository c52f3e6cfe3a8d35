/* SPDX-License-Identifier: BSD-2-Clause */
/* What was at an address at a time, by entries that came one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/jit_timeline.h"

static void add(struct jit_timeline *t, uint64_t start, uint64_t size, uint64_t after,
		uint64_t before, uint32_t function)
{
	const struct code_range range = {start, start + size};

	assert_int_equal(jit_timeline__add(t, &range, after, before, function), 0);
}

static struct jit_question ask(struct jit_timeline *t, uint64_t address, uint64_t time)
{
	struct jit_question q = {.address = address, .time = time};

	assert_int_equal(jit_timeline__answer(t, &q, 1), 0);
	return q;
}

static void assert_answer(struct jit_timeline *t, uint64_t address, uint64_t time, uint32_t entry,
			  bool ambiguous)
{
	struct jit_question q = ask(t, address, time);

	assert_int_equal(q.entry, entry);
	assert_int_equal(q.ambiguous, ambiguous);
}

/* The classic case: an address that was one function and became another. */
static void reuse_test(void **state)
{
	struct jit_timeline *t = jit_timeline__new();

	(void)state;
	assert_answer(t, 0x955b, 5, JIT_NO_ENTRY, false);
	add(t, 0x9420, 0x1942, 0, 10, 1);
	add(t, 0x9420, 0x2a0, 90, 100, 2);
	/* from a moment when nothing else can have been there */
	assert_answer(t, 0x955b, 5, 0, false);
	assert_answer(t, 0x955b, 50, 0, false);
	assert_answer(t, 0x955b, 90, 0, false);
	assert_answer(t, 0x955b, 91, 1, true);
	assert_answer(t, 0x955b, 100, 1, true);
	assert_answer(t, 0x955b, 101, 1, false);
	/* the rest of what was overwritten in part has no name any more */
	assert_answer(t, 0xa000, 50, 0, false);
	assert_answer(t, 0xa000, 95, JIT_NO_ENTRY, true);
	assert_answer(t, 0xa000, 101, JIT_NO_ENTRY, false);
	jit_timeline__free(t);
}

/* Another tier of a function is no other function; a single address is where nothing else is. */
static void tiers_and_singles_test(void **state)
{
	struct jit_timeline *t = jit_timeline__new();

	(void)state;
	add(t, 0x1000, 0x100, 0, 10, 7);
	add(t, 0x1000, 0x100, 20, 30, 7);
	add(t, 0x1080, 0, 40, 50, 8);
	add(t, 0x2000, 0, 40, 50, 9);
	assert_answer(t, 0x1010, 25, 1, false);
	assert_answer(t, 0x1080, 60, 1, false);
	assert_answer(t, 0x2000, 60, 3, false);
	assert_answer(t, 0x2001, 60, JIT_NO_ENTRY, false);
	/* two others in one gap: the newest, and not for sure */
	add(t, 0x1000, 0x10, 70, 80, 10);
	add(t, 0x1000, 0x10, 70, 80, 7);
	assert_answer(t, 0x1008, 75, 5, true);
	assert_answer(t, 0x1008, 81, 5, false);
	jit_timeline__free(t);
}

/* ---- against the definition ------------------------------------------------------------------ */

enum { ENTRIES = 60, QUESTIONS = 80 };

struct written {
	struct code_range range;
	uint64_t after, before;
	uint32_t function;
};

/* The entry at the address once the first `count` are applied. */
static uint32_t at_once(const struct written *all, uint32_t count, uint64_t address)
{
	bool live[ENTRIES] = {};

	for (uint32_t i = 0; i < count; i++) {
		const struct code_range *new = &all[i].range;
		bool single = new->start == new->end, covered = false;

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
	return entry == JIT_NO_ENTRY ? JIT_NO_ENTRY : all[entry].function;
}

static void check(const struct written *all, const struct jit_question *q)
{
	uint32_t sure = 0, possible = 0, entry;
	bool ambiguous = false;

	while (sure < ENTRIES && all[sure].before < q->time)
		sure++;
	while (possible < ENTRIES && all[possible].after < q->time)
		possible++;
	entry = at_once(all, sure, q->address);
	for (uint32_t n = sure + 1; n <= possible; n++) {
		uint32_t next = at_once(all, n, q->address);

		ambiguous |= entry != JIT_NO_ENTRY &&
			     function_of(all, entry) != function_of(all, next);
		entry = next;
	}
	assert_int_equal(q->entry, entry);
	assert_int_equal(q->ambiguous, ambiguous);
}

static void random_test(void **state)
{
	(void)state;
	srandom(11);
	for (int round = 0; round < 600; round++) {
		struct jit_question questions[QUESTIONS];
		struct jit_timeline *t = jit_timeline__new();
		struct written all[ENTRIES];
		uint64_t after = 0, before = 5;

		for (int i = 0; i < ENTRIES; i++) {
			struct written *w = &all[i];

			if (random() % 3 == 0) {
				after = before + random() % 3;
				before = after + random() % 6;
			}
			w->range.start = random() % 100;
			w->range.end = w->range.start + random() % 15;
			w->after = after;
			w->before = before;
			w->function = random() % 8;
			add(t, w->range.start, w->range.end - w->range.start, after, before,
			    w->function);
		}
		for (int i = 0; i < QUESTIONS; i++)
			questions[i] = (struct jit_question){.address = random() % 120,
							     .time = random() % (before + 5)};
		assert_int_equal(jit_timeline__answer(t, questions, QUESTIONS), 0);
		for (int i = 0; i < QUESTIONS; i++)
			check(all, &questions[i]);
		/* asked once more it says the same */
		assert_int_equal(jit_timeline__answer(t, questions, QUESTIONS), 0);
		for (int i = 0; i < QUESTIONS; i++)
			check(all, &questions[i]);
		jit_timeline__free(t);
	}
}

/* Many entries at random addresses: blocks split and go away. */
static void many_test(void **state)
{
	enum { COUNT = 200000, ASKED = 1000 };
	struct jit_question *questions = calloc(ASKED, sizeof(*questions));
	struct jit_timeline *t = jit_timeline__new();
	uint64_t *starts = calloc(COUNT, sizeof(*starts));

	(void)state;
	srandom(12);
	for (uint32_t i = 0; i < COUNT; i++) {
		starts[i] = ((uint64_t)random() << 20 ^ (uint64_t)random()) & ~63ull;
		add(t, starts[i], 64, i * 10, i * 10 + 9, i);
	}
	for (uint32_t i = 0; i < ASKED; i++)
		questions[i] = (struct jit_question){
			.address = starts[COUNT - ASKED + i] + i % 64,
			.time = UINT64_MAX,
		};
	assert_int_equal(jit_timeline__answer(t, questions, ASKED), 0);
	for (uint32_t i = 0; i < ASKED; i++) {
		assert_true(questions[i].entry >= COUNT - ASKED);
		assert_int_equal(starts[questions[i].entry], questions[i].address & ~63ull);
	}
	add(t, 0, UINT64_C(1) << 56, COUNT * 10, COUNT * 10, COUNT);
	assert_answer(t, starts[5], UINT64_MAX, COUNT, false);
	jit_timeline__free(t);
	free(questions);
	free(starts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reuse_test),
		cmocka_unit_test(tiers_and_singles_test),
		cmocka_unit_test(random_test),
		cmocka_unit_test(many_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
