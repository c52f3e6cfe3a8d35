/* SPDX-License-Identifier: BSD-2-Clause */
/* Mappings of a process: replacing, trimming, sharing after fork, dropping what is gone. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/mapping_table.h"

static int map(struct mapping_table **table, uint64_t start, uint64_t end, uint64_t offset,
	       uint32_t dso)
{
	struct mapping m = {.start = start, .end = end, .page_offset = offset, .image = {dso}};

	return mapping_table__add(table, &m, false);
}

static int map_read(struct mapping_table **table, uint64_t start, uint64_t end, uint64_t offset,
		    uint32_t dso)
{
	struct mapping m = {.start = start, .end = end, .page_offset = offset, .image = {dso}};

	return mapping_table__add(table, &m, true);
}

/* "100-200+0:1 …": start-end+offset:dso */
static void expect(const struct mapping_table *table, const char *wanted)
{
	char text[1024] = "";
	size_t used = 0;

	for (size_t i = 0; i < mapping_table__count(table); i++) {
		const struct mapping *m = mapping_table__get(table, i);

		used += snprintf(text + used, sizeof(text) - used,
				 "%s%" PRIu64 "-%" PRIu64 "+%" PRIu64 ":%u", i ? " " : "", m->start,
				 m->end, m->page_offset, m->image.v);
	}
	assert_string_equal(text, wanted);
}

static void an_empty_table(void **state)
{
	struct mapping_table *table = NULL;

	(void)state;
	assert_int_equal(mapping_table__count(NULL), 0);
	assert_null(mapping_table__find(NULL, 5));
	assert_null(mapping_table__ref(NULL));
	mapping_table__unref(NULL);
	assert_int_equal(mapping_table__end_read(&table), 0);
	assert_int_equal(map(&table, 5, 5, 0, 1), -EINVAL);
	assert_int_equal(map(&table, 5, 4, 0, 1), -EINVAL);
	assert_null(table);
}

static void lookup(void **state)
{
	struct mapping_table *table = NULL;

	(void)state;
	map(&table, 300, 400, 0, 3);
	map(&table, 100, 200, 0, 1);
	map(&table, 200, 250, 0, 2);
	expect(table, "100-200+0:1 200-250+0:2 300-400+0:3");
	assert_null(mapping_table__find(table, 99));
	assert_int_equal(mapping_table__find(table, 100)->image.v, 1);
	assert_int_equal(mapping_table__find(table, 199)->image.v, 1);
	assert_int_equal(mapping_table__find(table, 200)->image.v, 2);
	assert_null(mapping_table__find(table, 250));
	assert_null(mapping_table__find(table, 299));
	assert_int_equal(mapping_table__find(table, 399)->image.v, 3);
	assert_null(mapping_table__find(table, 400));
	mapping_table__unref(table);
}

static void new_mappings_replace_and_trim(void **state)
{
	struct mapping_table *table = NULL;

	(void)state;
	map(&table, 100, 200, 1000, 1);
	map(&table, 140, 160, 0, 2); /* a hole in the middle */
	expect(table, "100-140+1000:1 140-160+0:2 160-200+1060:1");
	map(&table, 130, 170, 0, 3); /* over three */
	expect(table, "100-130+1000:1 130-170+0:3 170-200+1070:1");
	map(&table, 130, 170, 5, 3); /* the same file elsewhere */
	expect(table, "100-130+1000:1 130-170+5:3 170-200+1070:1");
	map(&table, 50, 300, 0, 4); /* over everything */
	expect(table, "50-300+0:4");
	map(&table, 50, 60, 0, 5);
	map(&table, 290, 310, 0, 6);
	expect(table, "50-60+0:5 60-290+10:4 290-310+0:6");
	mapping_table__unref(table);
}

static void known_mappings_are_dropped(void **state)
{
	struct mapping_table *table = NULL;

	(void)state;
	assert_int_equal(map(&table, 100, 200, 1000, 1), MAPPING_ADDED);
	assert_int_equal(map(&table, 100, 200, 1000, 1), MAPPING_KNOWN);
	/* mprotect of a part tells that part again */
	assert_int_equal(map(&table, 120, 140, 1020, 1), MAPPING_KNOWN);
	assert_int_equal(map(&table, 120, 140, 1021, 1), MAPPING_ADDED);
	expect(table, "100-120+1000:1 120-140+1021:1 140-200+1040:1");
	mapping_table__unref(table);
}

static void forks_share_until_a_change(void **state)
{
	struct mapping_table *parent = NULL, *child, *grandchild;

	(void)state;
	map(&parent, 100, 200, 0, 1);
	child = mapping_table__ref(parent);
	grandchild = mapping_table__ref(child);
	assert_int_equal(map(&child, 100, 200, 0, 1), MAPPING_KNOWN);
	assert_ptr_equal(child, parent);
	map(&child, 300, 400, 0, 2);
	assert_ptr_not_equal(child, parent);
	expect(parent, "100-200+0:1");
	expect(grandchild, "100-200+0:1");
	expect(child, "100-200+0:1 300-400+0:2");
	mapping_table__unref(parent);
	map(&grandchild, 150, 160, 0, 3); /* alone now: changed in place */
	expect(grandchild, "100-150+0:1 150-160+0:3 160-200+60:1");
	mapping_table__unref(grandchild);
	mapping_table__unref(child);
}

static void readings_drop_what_is_gone(void **state)
{
	struct mapping_table *table = NULL, *child;

	(void)state;
	map(&table, 100, 200, 0, 1);
	map(&table, 300, 400, 0, 2);
	map(&table, 500, 600, 0, 3);
	child = mapping_table__ref(table);

	map_read(&table, 100, 200, 0, 1);
	map(&table, 700, 800, 0, 4); /* appears meanwhile, and is not in the text */
	map_read(&table, 550, 600, 50, 3);
	map_read(&table, 900, 950, 0, 5);
	assert_int_equal(mapping_table__end_read(&table), 1);
	/* the third was told by a part that changes nothing: it stays */
	expect(table, "100-200+0:1 500-600+0:3 700-800+0:4 900-950+0:5");
	expect(child, "100-200+0:1 300-400+0:2 500-600+0:3");

	/* a reading that told nothing, of a process that was gone */
	assert_int_equal(mapping_table__end_read(&table), 0);
	map_read(&table, 700, 800, 0, 4);
	assert_int_equal(mapping_table__end_read(&table), 3);
	expect(table, "700-800+0:4");
	mapping_table__unref(table);
	mapping_table__unref(child);
}

/* Against a plain array that says for each address what was mapped there last. */
static void random_mappings_agree_with_an_array(void **state)
{
	enum { SPACE = 256 };
	struct mapping_table *table = NULL;
	struct {
		uint32_t dso;
		uint64_t offset;
	} want[SPACE] = {};
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint64_t start, end, offset;
		uint32_t dso;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		start = (seed >> 40) % SPACE;
		end = start + 1 + (seed >> 33) % 16;
		end = end > SPACE ? SPACE : end;
		dso = 1 + (seed >> 50) % 3;
		offset = (seed >> 20) % 4 * 64 + start;
		for (uint64_t a = start; a < end; a++) {
			want[a].dso = dso;
			want[a].offset = offset + (a - start);
		}
		assert_true(map(&table, start, end, offset, dso) >= 0);
		if (round % 100)
			continue;
		for (uint64_t a = 0; a < SPACE; a++) {
			const struct mapping *m = mapping_table__find(table, a);

			assert_int_equal(m ? m->image.v : 0, want[a].dso);
			if (m)
				assert_int_equal(a - m->start + m->page_offset, want[a].offset);
		}
	}
	for (size_t i = 1; i < mapping_table__count(table); i++)
		assert_true(mapping_table__get(table, i - 1)->end <=
			    mapping_table__get(table, i)->start);
	mapping_table__unref(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_table),
		cmocka_unit_test(lookup),
		cmocka_unit_test(new_mappings_replace_and_trim),
		cmocka_unit_test(known_mappings_are_dropped),
		cmocka_unit_test(forks_share_until_a_change),
		cmocka_unit_test(readings_drop_what_is_gone),
		cmocka_unit_test(random_mappings_agree_with_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
