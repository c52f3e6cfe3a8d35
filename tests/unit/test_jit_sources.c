/* SPDX-License-Identifier: BSD-2-Clause */
/* What JIT files tell over windows: times of the TSC, records that come late, files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "process/jit_sources.h"

#include "unit/forge_jitdump.h"

#define S   1000000000ull
#define GHZ 3ull /* of the TSC */
#define M0  (100 * S)
#define T0  (5000 * S)

static void tell_anchor(struct jit_sources *s, uint64_t monotonic, uint64_t tsc, uint32_t epoch,
			bool new_epoch)
{
	struct clock_anchor_event e = {
		.header = {.size = sizeof(e),
			   .type = EVENT_CLOCK_ANCHOR,
			   .flags = new_epoch ? EVENT_NEW_EPOCH : 0,
			   .time = monotonic},
		.tsc = tsc,
		.monotonic = monotonic,
		.epoch = epoch,
	};

	assert_int_equal(jit_sources__event(s, &e.header), 0);
}

static void tell_file(struct jit_sources *s, uint32_t file, enum jit_file_kind kind,
		      enum jit_file_state state)
{
	struct jit_file_event *e = calloc(1, sizeof(*e) + 32);

	e->header = (struct event_header){.size = sizeof(*e) + 32, .type = EVENT_JIT_FILE};
	e->pid = 10;
	e->file = file;
	e->kind = kind;
	e->state = state;
	strcpy(e->path, "/tmp/jit-10.dump");
	assert_int_equal(jit_sources__event(s, &e->header), 0);
	free(e);
}

static void tell_bytes(struct jit_sources *s, uint32_t file, const void *bytes, size_t size)
{
	struct jit_bytes_event *e = calloc(1, sizeof(*e) + size);

	e->header = (struct event_header){.size = sizeof(*e) + size, .type = EVENT_JIT_BYTES};
	e->after = M0;
	e->before = M0 + S;
	e->file = file;
	e->size = size;
	memcpy(e->bytes, bytes, size);
	assert_int_equal(jit_sources__event(s, &e->header), 0);
	free(e);
}

/* What was there at that time; NULL: nothing that is known. */
static const char *name_at(struct jit_sources *s, uint32_t file, uint64_t address, uint64_t time)
{
	struct jit_code *code = jit_sources__get(s, file)->code;
	struct jit_history history = {};
	struct jit_answer answer;

	assert_int_equal(jit_timeline__histories(jit_code__timeline(code), &address, 1, &history),
			 0);
	answer = jit_history__at(&history, time, jit_code__same_function, code);
	jit_history__fini(&history);
	return answer.entry == JIT_NO_ENTRY ? NULL : jit_code__name(code, answer.entry);
}

static void assert_begins(struct jit_sources *s, uint64_t address, uint64_t time, const char *name)
{
	assert_null(name_at(s, 1, address, time - 1000));
	assert_non_null(name_at(s, 1, address, time + 1000));
	assert_string_equal(name_at(s, 1, address, time + 1000), name);
}

/*
 * An hour of sleep: the TSC goes on, CLOCK_MONOTONIC does not. A stamp from just before it belongs on
 * the line from before, one from just after it on that from after: not on a line through both.
 */
static void suspend_test(void **state)
{
	struct jit_sources *s = jit_sources__new();
	uint64_t sleep = 3600 * S * GHZ;
	struct dump d = {};

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		tell_anchor(s, M0 + i * S, T0 + i * S * GHZ, 0, false);
	for (uint64_t i = 5; i < 8; i++)
		tell_anchor(s, M0 + i * S, T0 + sleep + i * S * GHZ, 1, i == 5);
	tell_file(s, 1, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED);
	put_header(&d, 1);
	put_load(&d, T0 + S * GHZ / 2, 0x1000, 32, "early");
	put_load(&d, T0 + 4 * S * GHZ + 3 * S * GHZ / 4, 0x2000, 32, "falls asleep");
	put_load(&d, T0 + sleep + 5 * S * GHZ + S * GHZ / 4, 0x3000, 32, "wakes up");
	put_load(&d, T0 + sleep + 9 * S * GHZ, 0x4000, 32, "late");
	tell_bytes(s, 1, d.bytes, d.size);
	assert_int_equal(jit_sources__settle(s), 0);
	assert_begins(s, 0x1000, M0 + S / 2, "early");
	assert_begins(s, 0x2000, M0 + 4 * S + 3 * S / 4, "falls asleep");
	assert_begins(s, 0x3000, M0 + 5 * S + S / 4, "wakes up");
	assert_begins(s, 0x4000, M0 + 9 * S, "late");
	jit_sources__free(s);
}

/* Asked at the end of a window, fed and asked again: what comes late is put where it belongs. */
static void windows_test(void **state)
{
	struct jit_sources *s = jit_sources__new();
	struct dump d = {};
	size_t size;

	(void)state;
	tell_file(s, 1, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED);
	put_header(&d, 0);
	put_load(&d, 2 * S, 0x1000, 32, "second");
	tell_bytes(s, 1, d.bytes, d.size);
	assert_int_equal(jit_sources__settle(s), 0);
	assert_null(name_at(s, 1, 0x1010, S + 1));
	assert_string_equal(name_at(s, 1, 0x1010, 3 * S), "second");
	size = d.size;
	put_load(&d, S, 0x1000, 32, "first");
	put_load(&d, 3 * S, 0x1000, 32, "third");
	put_move(&d, 4 * S, 0x1000, 0x5000, 32);
	tell_bytes(s, 1, d.bytes + size, d.size - size);
	assert_int_equal(jit_sources__settle(s), 0);
	assert_int_equal(jit_sources__settle(s), 0);
	assert_string_equal(name_at(s, 1, 0x1010, S + 1), "first");
	assert_string_equal(name_at(s, 1, 0x1010, 2 * S + 1), "second");
	assert_string_equal(name_at(s, 1, 0x1010, 3 * S + 1), "third");
	assert_string_equal(name_at(s, 1, 0x5010, 4 * S + 1), "third");
	assert_null(name_at(s, 1, 0x1010, 4 * S + 1));
	jit_sources__free(s);
}

/* A perf map goes on in the next window. */
static void map_test(void **state)
{
	static const char one[] = "1000 100 one\n2000 10 tw", two[] = "o\n";
	struct jit_sources *s = jit_sources__new();

	(void)state;
	tell_file(s, 1, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
	tell_bytes(s, 1, one, strlen(one));
	assert_int_equal(jit_sources__settle(s), 0);
	assert_string_equal(name_at(s, 1, 0x1010, M0 + 2 * S), "one");
	assert_null(name_at(s, 1, 0x2001, M0 + 2 * S));
	tell_bytes(s, 1, two, strlen(two));
	assert_int_equal(jit_sources__settle(s), 0);
	assert_string_equal(name_at(s, 1, 0x2001, M0 + 2 * S), "two");
	jit_sources__free(s);
}

static void what_is_no_file_test(void **state)
{
	struct jit_sources *s = jit_sources__new();

	(void)state;
	assert_null(jit_sources__get(s, 0));
	assert_null(jit_sources__get(s, 7));
	tell_bytes(s, 7, "x", 1);
	tell_file(s, 2, JIT_FILE_MAP, JIT_FILE_STATE_LINK);
	assert_null(jit_sources__get(s, 2)->code);
	assert_int_equal(jit_sources__get(s, 2)->state, JIT_FILE_STATE_LINK);
	tell_bytes(s, 2, "x", 1);
	tell_file(s, 3, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED);
	tell_bytes(s, 3, "this is no jitdump, however long it is, and whatever it says", 60);
	assert_int_equal(jit_sources__get(s, 3)->state, JIT_FILE_STATE_BAD);
	tell_file(s, 4000000000u, JIT_FILE_MAP,
		  JIT_FILE_STATE_FOLLOWED); /* of a damaged recording */
	assert_int_equal(jit_sources__count(s), 3);
	assert_int_equal(jit_sources__settle(s), 0);
	jit_sources__free(s);
}

/* Processes come and go. */
static void forgetting_test(void **state)
{
	struct jit_sources *s = jit_sources__new();

	(void)state;
	for (uint32_t file = 1; file < 200000; file++) {
		const uint32_t living[] = {7, file, 3};

		tell_file(s, file, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
		tell_bytes(s, file, "1000 100 x\n", 11);
		if (file % 100 == 0)
			jit_sources__keep(s, living, 3, file - 50);
		assert_true(jit_sources__count(s) <= 152);
	}
	assert_non_null(jit_sources__get(s, 3));
	assert_non_null(jit_sources__get(s, 7));
	assert_null(jit_sources__get(s, 100));
	assert_non_null(jit_sources__get(s, 199999));
	assert_int_equal(jit_sources__settle(s), 0);
	assert_string_equal(name_at(s, 7, 0x1010, M0 + 2 * S), "x");
	jit_sources__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspend_test),	   cmocka_unit_test(windows_test),
		cmocka_unit_test(map_test),	   cmocka_unit_test(what_is_no_file_test),
		cmocka_unit_test(forgetting_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
