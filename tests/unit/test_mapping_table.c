/* SPDX-License-Identifier: BSD-2-Clause */
/* Mappings of a process: replacing, trimming, sharing after fork, dropping what is gone. */
#include "unit.h"
#include "world/mapping_table.h"
#include "world/world.h"

static struct mapping_table *table; /* of the running test */

static void forget_table(void)
{
	mapping_table__unref(table);
	table = NULL;
}

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

struct search {
	size_t left;
	const struct mapping *found;
};

static int count_down(void *context, const struct mapping *m)
{
	struct search *s = context;

	s->found = m;
	return s->left-- == 0;
}

static const struct mapping *mapping_at(const struct mapping_table *table, size_t i)
{
	struct search s = {i, NULL};

	mapping_table__visit(table, count_down, &s);
	return s.found;
}

/* "100-200+0:1 …": start-end+offset:dso */
static void expect(const struct mapping_table *table, const char *wanted)
{
	char text[1024] = "";
	size_t used = 0;

	for (size_t i = 0; i < mapping_table__count(table); i++) {
		const struct mapping *m = mapping_at(table, i);

		used += snprintf(text + used, sizeof(text) - used,
				 "%s%" PRIu64 "-%" PRIu64 "+%" PRIu64 ":%u", i ? " " : "", m->start,
				 m->end, m->page_offset, m->image.v);
	}
	assert_string_equal(text, wanted);
}

TEST(an_empty_table)
{
	assert_int_equal(mapping_table__count(NULL), 0);
	assert_null(mapping_table__find(NULL, 5));
	assert_null(mapping_table__ref(NULL));
	mapping_table__unref(NULL);
	assert_int_equal(mapping_table__end_read(&table), 0);
	assert_int_equal(map(&table, 5, 5, 0, 1), -EINVAL);
	assert_int_equal(map(&table, 5, 4, 0, 1), -EINVAL);
	assert_null(table);
}

TEST(lookup)
{
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
}

TEST(new_mappings_replace_and_trim)
{
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
}

TEST(known_mappings_are_dropped)
{
	assert_int_equal(map(&table, 100, 200, 1000, 1), MAPPING_ADDED);
	assert_int_equal(map(&table, 100, 200, 1000, 1), MAPPING_KNOWN);
	/* mprotect of a part reports that part again */
	assert_int_equal(map(&table, 120, 140, 1020, 1), MAPPING_KNOWN);
	assert_int_equal(map(&table, 120, 140, 1021, 1), MAPPING_ADDED);
	expect(table, "100-120+1000:1 120-140+1021:1 140-200+1040:1");
}

TEST(forks_share_until_a_change)
{
	struct mapping_table *parent = NULL, *child, *grandchild;

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

TEST(readings_drop_what_is_gone)
{
	struct mapping_table *child;

	map(&table, 100, 200, 0, 1);
	map(&table, 300, 400, 0, 2);
	map(&table, 500, 600, 0, 3);
	child = mapping_table__ref(table);

	map_read(&table, 100, 200, 0, 1);
	map(&table, 700, 800, 0, 4); /* appears meanwhile, and is not in the text */
	map_read(&table, 550, 600, 50, 3);
	map_read(&table, 900, 950, 0, 5);
	assert_int_equal(mapping_table__end_read(&table), 1);
	/* the third event is of a part and changes nothing: it stays */
	expect(table, "100-200+0:1 500-600+0:3 700-800+0:4 900-950+0:5");
	expect(child, "100-200+0:1 300-400+0:2 500-600+0:3");

	/* a child's reading is its own */
	map_read(&table, 100, 200, 0, 1);
	mapping_table__unref(child);
	child = mapping_table__fork(table);
	assert_ptr_not_equal(child, table);
	assert_int_equal(mapping_table__end_read(&child), 0);
	map_read(&child, 700, 800, 0, 4);
	assert_int_equal(mapping_table__end_read(&child), 3);
	assert_int_equal(mapping_table__end_read(&table), 3);
	expect(table, "100-200+0:1");
	map(&table, 500, 600, 0, 3);
	map(&table, 700, 800, 0, 4);
	map(&table, 900, 950, 0, 5);

	/* an empty reading, of a process that was gone */
	assert_int_equal(mapping_table__end_read(&table), 0);
	map_read(&table, 700, 800, 0, 4);
	map(&table, 900, 950, 0, 5); /* mapped again: it was there until the reading ended */
	assert_int_equal(mapping_table__end_read(&table), 2);
	expect(table, "700-800+0:4 900-950+0:5");
	mapping_table__unref(child);
}

/* Against a plain array that says for each address what was mapped there last. */
TEST(random_mappings_agree_with_an_array)
{
	enum { SPACE = 256 };
	struct {
		uint32_t dso;
		uint64_t offset;
	} want[SPACE] = {};
	uint64_t seed = 3;

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
		assert_true(mapping_at(table, i - 1)->end <= mapping_at(table, i)->start);
}

enum { SHARED_SPACE = 200, SHARED_TABLES = 8 };

/* What a table is to have, and of which reading; `read`: that goes on, or the last one. */
struct model {
	struct mapping_table *table;
	uint32_t dso[SHARED_SPACE], reading[SHARED_SPACE];
	uint64_t offset[SHARED_SPACE];
	uint32_t read;
	bool is_reading;
};

static void check_model(const struct model *m)
{
	struct mappings view = mapping_table__view(m->table);
	struct mappings all;

	for (uint64_t a = 0; a < SHARED_SPACE; a++) {
		const struct mapping *found = mapping_table__find(m->table, a);
		const struct mapping *seen = mappings__find(view, a);

		assert_int_equal(!seen, !found);
		assert_true(!seen || (seen->start == found->start && seen->end == found->end));
		assert_int_equal(found ? found->image.v : 0, m->dso[a]);
		if (found)
			assert_int_equal(a - found->start + found->page_offset, m->offset[a]);
	}
	all = mapping_table__all(m->table);
	assert_int_equal(all.count, mapping_table__count(m->table));
	assert_int_equal(view.count, all.count);
	for (size_t i = 0; i < all.count; i++) {
		assert_true(all.runs[0].data[i].start < all.runs[0].data[i].end);
		assert_true(!i || all.runs[0].data[i - 1].end <= all.runs[0].data[i].start);
		assert_int_equal(mapping_at(m->table, i)->start, all.runs[0].data[i].start);
	}
}

static uint32_t random_of(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33) % below;
}

/* The whole mapping is of the reading when a part of it is reported again. */
static void note_known(struct model *m, uint64_t start)
{
	const struct mapping *found = mapping_table__find(m->table, start);

	for (uint64_t a = found->start; a < found->end; a++)
		m->reading[a] = m->read;
}

static void change_model(struct model *m, uint64_t *seed)
{
	uint64_t start = random_of(seed, SHARED_SPACE), end = start + 1 + random_of(seed, 12);
	bool from_read = random_of(seed, 3) == 0;
	uint32_t dso = 1 + random_of(seed, 2);
	uint64_t offset = start + 64 * random_of(seed, 2);
	int change;

	end = end > SHARED_SPACE ? SHARED_SPACE : end;
	change = from_read ? map_read(&m->table, start, end, offset, dso)
			   : map(&m->table, start, end, offset, dso);
	assert_true(change >= 0);
	if (from_read && !m->is_reading) {
		m->is_reading = true;
		m->read++;
	}
	if (change == MAPPING_KNOWN && m->is_reading)
		note_known(m, start);
	for (uint64_t a = start; a < end && change == MAPPING_ADDED; a++) {
		m->dso[a] = dso;
		m->offset[a] = offset + (a - start);
		m->reading[a] = m->read;
	}
}

static void end_model_read(struct model *m)
{
	size_t before = mapping_table__count(m->table);
	int removed = mapping_table__end_read(&m->table);

	assert_int_equal(removed, before - mapping_table__count(m->table));
	for (uint64_t a = 0; a < SHARED_SPACE && m->is_reading; a++)
		if (m->reading[a] != m->read)
			m->dso[a] = 0;
	m->is_reading = false;
}

/* Processes that fork, map and are read again, each against its own array. */
TEST(shared_tables_agree_with_arrays)
{
	struct model *models = calloc(SHARED_TABLES, sizeof(*models));
	uint64_t seed = 11;

	for (int round = 0; round < 30000; round++) {
		struct model *m = &models[random_of(&seed, SHARED_TABLES)];
		struct model *other = &models[random_of(&seed, SHARED_TABLES)];
		uint32_t what = random_of(&seed, 20);

		if (what == 0 && m != other) {
			mapping_table__unref(other->table);
			*other = *m;
			mapping_table__ref(m->table);
		} else if (what == 1) {
			end_model_read(m);
		} else {
			change_model(m, &seed);
		}
		check_model(m);
		if (round % 16 == 0)
			check_model(other);
	}
	for (int i = 0; i < SHARED_TABLES; i++)
		mapping_table__unref(models[i].table);
	free(models);
}

TEST(a_table_has_a_bound)
{
	for (uint64_t i = 262144; i-- > 0;) /* from the top down */
		assert_int_equal(map(&table, 16 * i, 16 * i + 8, 0, 1), MAPPING_ADDED);
	assert_int_equal(map(&table, 8, 9, 0, 1), -E2BIG);
	assert_int_equal(map(&table, 2, 3, 1, 2), -E2BIG); /* two more */
	assert_int_equal(map(&table, 0, 8, 0, 2), MAPPING_ADDED);
	assert_int_equal(mapping_table__count(table), 262144);
	assert_int_equal(map(&table, 0, 16 * 262144, 0, 3), MAPPING_ADDED);
	expect(table, "0-4194304+0:3");
}

EACH_TEST_WITH(NULL, forget_table);
