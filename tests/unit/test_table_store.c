/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and places where the kernel would read them, and what becomes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/extents.h"
#include "unwind/table_store.h"
#include "unwind/unwind_table.h"

#define SEGMENT_SIZE (1u << 20)

struct memory {
	struct unwind_memory shared;
	unsigned char *segments[UNWIND_SEGMENTS];
	unsigned int count;
};

static int add_segment(void *context, unsigned int number, unsigned char **bytes)
{
	struct memory *m = context;

	assert_int_equal(number, m->count);
	*bytes = m->segments[m->count++] = calloc(1, SEGMENT_SIZE);
	return *bytes ? 0 : -ENOMEM;
}

static void set_up(struct memory *m, unsigned int limit)
{
	*m = (struct memory){.shared = {
				     .processes = calloc(UNWIND_PROCESSES, sizeof(uint64_t)),
				     .tables = calloc(UNWIND_TABLES, sizeof(struct unwind_table)),
				     .places = calloc(1, UNWIND_PLACES_SIZE),
				     .segment_size = SEGMENT_SIZE,
				     .segment_limit = limit,
				     .add_segment = add_segment,
				     .context = m,
			     }};
	assert_true(m->shared.processes && m->shared.tables && m->shared.places);
}

static void tear_down(struct memory *m)
{
	free(m->shared.processes);
	free(m->shared.tables);
	free(m->shared.places);
	for (unsigned int i = 0; i < m->count; i++)
		free(m->segments[i]);
}

static int take_c_library(struct dl_phdr_info *info, size_t size, void *context)
{
	int *fd = context;

	(void)size;
	if (*fd < 0 && strstr(info->dlpi_name, "/libc.so"))
		*fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	return 0;
}

/* The same rules as in the table by itself; a second one goes behind it, and then there is no room. */
static void tables_test(void **state)
{
	_cleanup_close_ int fd = -1;
	struct unwind_table_image image;
	struct table_store_stats stats;
	struct table_store *store;
	struct elf_file *file;
	struct memory m;
	uint32_t number;
	int err;

	(void)state;
	set_up(&m, 2);
	dl_iterate_phdr(take_c_library, &fd);
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build(file, SEGMENT_SIZE, &image), 0);
	store = table_store__new(&m.shared);
	for (uint32_t i = 0; (err = table_store__add(store, file, &number)) == 0; i++) {
		const struct unwind_table *t = &m.shared.tables[i];

		assert_int_equal(number, i);
		assert_int_equal(t->base, image.table.base);
		for (uint64_t a = 0; a < (uint64_t)t->buckets << UNWIND_BUCKET_BITS; a += 1013) {
			const struct unwind_rule *here = unwind_table__find(m.segments[m.count - 1],
									    t, t->base + a);
			const struct unwind_rule *there =
				unwind_table__find(image.bytes, &image.table, t->base + a);

			assert_memory_equal(here, there, sizeof(*here));
		}
	}
	assert_int_equal(err, -ENOSPC);
	table_store__stats(store, &stats);
	assert_int_equal(stats.tables, 2 * (SEGMENT_SIZE / image.size));
	assert_int_equal(stats.table_bytes, stats.tables * image.size);
	assert_int_equal(stats.segment_bytes, 2 * SEGMENT_SIZE);
	assert_int_equal(stats.failed, 1);
	table_store__free(store);
	unwind_table_image__fini(&image);
	elf_file__free(file);
	tear_down(&m);
}

static uint64_t word_of(const struct memory *m, uint32_t tgid)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < UNWIND_PROCESSES; i++) {
		if (m->shared.processes[i] && unwind_word_tgid(m->shared.processes[i]) == tgid) {
			assert_int_equal(found, 0);
			assert_true(((i - unwind_hash(tgid)) & (UNWIND_PROCESSES - 1)) <
				    UNWIND_PROBES);
			found = m->shared.processes[i];
		}
	}
	return found;
}

static void assert_published(const struct memory *m, uint32_t tgid, uint32_t count, uint64_t as_of)
{
	uint64_t word = word_of(m, tgid);
	const unsigned char *at = m->shared.places + unwind_word_offset(word);
	const uint64_t *starts = (const void *)at;
	const struct unwind_place *places = (const void *)(at + 8 + 8 * count);

	assert_int_equal(unwind_word_count(word), count);
	assert_int_equal(starts[0], as_of);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(starts[1 + i], 0x1000 * (tgid + i));
		assert_int_equal(places[i].end, 0x1000 * (tgid + i) + 0x800);
		assert_int_equal(places[i].bias, tgid);
		assert_int_equal(places[i].table, UNWIND_NO_TABLE);
	}
}

static int publish(struct table_store *store, uint32_t tgid, uint32_t count, uint64_t as_of)
{
	_cleanup_free_ struct unwind_placement *p = calloc(count + 1, sizeof(*p));

	for (uint32_t i = 0; i < count; i++)
		p[i] = (struct unwind_placement){0x1000 * (tgid + i), 0x1000 * (tgid + i) + 0x800,
						 tgid, UNWIND_NO_TABLE};
	return table_store__publish(store, tgid, p, count, as_of);
}

/* Many processes that change often: none disturbs another, and what they leave is used again. */
static void processes_test(void **state)
{
	struct table_store_stats stats;
	struct table_store *store;
	struct memory m;

	(void)state;
	set_up(&m, 1);
	store = table_store__new(&m.shared);
	for (uint32_t round = 1; round < 200; round++) {
		for (uint32_t tgid = 1; tgid <= 300; tgid++)
			assert_int_equal(publish(store, tgid, (tgid * round) % 60, round), 0);
		if (round % 50)
			continue;
		for (uint32_t tgid = 1; tgid <= 300; tgid++)
			assert_published(&m, tgid, (tgid * round) % 60, round);
	}
	for (uint32_t tgid = 2; tgid <= 300; tgid += 2)
		table_store__withdraw(store, tgid);
	table_store__withdraw(store, 999);
	assert_int_equal(word_of(&m, 2), 0);
	assert_published(&m, 3, 3 * 199 % 60, 199);
	table_store__stats(store, &stats);
	assert_int_equal(stats.processes, 150);
	assert_int_equal(stats.unpublished, 0);
	assert_int_equal(publish(store, 7, UNWIND_PLACES_MAX + 10, 1), 0);
	assert_published(&m, 7, UNWIND_PLACES_MAX, 1);
	table_store__free(store);
	tear_down(&m);
}

/* More processes than words: those that there is no room for are counted. */
static void full_test(void **state)
{
	struct table_store_stats stats;
	struct table_store *store;
	struct memory m;
	uint64_t failed = 0;

	(void)state;
	set_up(&m, 1);
	store = table_store__new(&m.shared);
	for (uint32_t tgid = 1; tgid <= 2 * UNWIND_PROCESSES; tgid++)
		failed += publish(store, tgid, 1, 1) == -ENOSPC;
	table_store__stats(store, &stats);
	assert_true(failed >= UNWIND_PROCESSES && failed < UNWIND_PROCESSES + UNWIND_PROCESSES / 2);
	assert_int_equal(stats.unpublished, failed);
	assert_int_equal(stats.processes, 2 * UNWIND_PROCESSES - failed);
	table_store__free(store);
	tear_down(&m);
}

/* Against a map of single bytes. */
static void extents_test(void **state)
{
	enum { SIZE = 1000, HELD = 50 };
	struct extents e = {};
	struct extent held[HELD] = {};
	unsigned char used[SIZE] = {};

	(void)state;
	srandom(3);
	assert_int_equal(extents__free(&e, 0, SIZE), 0);
	for (int round = 0; round < 20000; round++) {
		struct extent *h = &held[random() % HELD];

		if (h->size) {
			memset(used + h->start, 0, h->size);
			assert_int_equal(extents__free(&e, h->start, h->size), 0);
			h->size = 0;
			continue;
		}
		h->size = 1 + random() % 60;
		if (extents__take(&e, h->size, &h->start)) {
			h->size = 0;
			continue;
		}
		assert_true(h->start + h->size <= SIZE);
		for (uint64_t i = 0; i < h->size; i++)
			assert_int_equal(used[h->start + i]++, 0);
	}
	for (int i = 0; i < HELD; i++)
		if (held[i].size)
			assert_int_equal(extents__free(&e, held[i].start, held[i].size), 0);
	assert_int_equal(e.free.count, 1);
	assert_int_equal(e.free.data[0].size, SIZE);
	extents__fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_test),
		cmocka_unit_test(processes_test),
		cmocka_unit_test(full_test),
		cmocka_unit_test(extents_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
