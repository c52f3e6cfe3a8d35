/* SPDX-License-Identifier: BSD-2-Clause */
/* Reported functions that are kept: the limit of a life counts what its samples need. */
#include "unit.h"
#include "runtimes/place/code_functions.h"

#define LIFE  7
#define OTHER 8
#define SIZE  4096u /* of an event, about */

static bool is_known(void *context, uint64_t life)
{
	return life == LIFE || life == OTHER;
}

static struct code_words words_of(uint64_t life, uint64_t function)
{
	return (struct code_words){
		.life = life, .kind = FRAME_NOTE_PYTHON, .function = function, .check = 1};
}

static void report_line(struct code_functions *f, uint64_t life, uint64_t function, uint32_t line)
{
	static union {
		struct code_function_event e;
		char bytes[SIZE];
	} reported;

	reported.e = (struct code_function_event){
		.header = {.type = EVENT_CODE_FUNCTION, .size = sizeof(reported), .time = 1},
		.kind = FRAME_NOTE_PYTHON,
		.state = CODE_STATE_CONFIRMED,
		.function = function,
		.check = 1,
		.line = line,
	};
	assert_int_equal(code_functions__add(f, life, &reported.e), 0);
}

static void report(struct code_functions *f, uint64_t life, uint64_t function)
{
	report_line(f, life, function, 0);
}

static bool has(const struct code_functions *f, uint64_t life, uint64_t function)
{
	struct code_words words = words_of(life, function);

	return code_functions__versions(f, &words) > 0;
}

/* So many windows in which none but `function` is sampled. */
static void let_pass(struct code_functions *f, unsigned int windows, uint64_t function)
{
	for (unsigned int i = 0; i < windows; i++) {
		has(f, LIFE, function);
		code_functions__forget(f, is_known, NULL);
	}
}

TEST(functions_that_are_no_longer_sampled_are_evicted)
{
	struct code_functions *f = code_functions__new();
	uint64_t most = CODE_LIFE_BYTES / SIZE, count = 0;

	/* for ever: each window has functions of its own, and one that is always there */
	for (unsigned int window = 0; window < 40; window++) {
		for (uint64_t i = 0; i < most / 10; i++)
			report(f, LIFE, ++count);
		assert_true(has(f, LIFE, count));
		let_pass(f, 1, 1);
		assert_true(code_functions__bytes(f) <= CODE_LIFE_BYTES);
	}
	assert_true(count > 3 * most);
	assert_true(has(f, LIFE, 1));
	assert_false(has(f, LIFE, 2));
	assert_true(has(f, LIFE, count));
	/* it is not more than the last windows had, when all of them are as old as that */
	let_pass(f, CODE_WINDOWS_KEPT, 1);
	assert_true(code_functions__bytes(f) <= CODE_LIFE_BYTES / 2 + SIZE);
	code_functions__free(f);
}

TEST(a_life_with_room_loses_no_functions)
{
	struct code_functions *f = code_functions__new();
	uint64_t most = CODE_LIFE_BYTES / SIZE;

	for (uint64_t i = 1; i < most / 3; i++)
		report(f, LIFE, i);
	report(f, OTHER, 1);
	let_pass(f, 10 * CODE_WINDOWS_KEPT, 1);
	assert_true(has(f, LIFE, 2) && has(f, OTHER, 1));
	for (uint64_t i = most / 3; i < most * 2 / 3; i++)
		report(f, LIFE, i);
	let_pass(f, CODE_WINDOWS_KEPT - 1, 1);
	assert_true(has(f, LIFE, most / 3 + 1));
	let_pass(f, 1, 1);
	assert_true(has(f, OTHER, 1)); /* another life, which has room */
	code_functions__free(f);
}

/* What there is no room for is another version all the same: the name of before may be wrong since. */
TEST(a_function_without_room_is_still_a_version)
{
	struct code_functions *f = code_functions__new();
	struct code_words words = words_of(LIFE, 1);
	uint64_t count = 0;

	report(f, LIFE, 1);
	assert_int_equal(code_functions__versions(f, &words), 1);
	while (++count < CODE_LIFE_BYTES / SIZE + 1)
		report(f, LIFE, 1 + count);
	report(f, LIFE, 1); /* the same */
	assert_int_equal(code_functions__versions(f, &words), 1);
	for (int i = 0; i < 2; i++) {
		report_line(f, LIFE, 1, 5);
		assert_int_equal(code_functions__versions(f, &words), 2);
	}
	assert_non_null(code_functions__get(f, &words, 0));
	assert_null(code_functions__get(f, &words, 1));
	code_functions__free(f);
}
