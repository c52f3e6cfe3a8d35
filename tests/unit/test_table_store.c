/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and places where the kernel would read them, and what becomes of them. */
#include <poll.h>

#include "unit.h"
#include "c_library.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "elf/elf_file.h"
#include "models/unwind_find.h"
#include "unwind/place_store.h"
#include "unwind/build.h"
#include "unwind/table_builder.h"
#include "unwind/table_store.h"
#include "unwind/unwind_table.h"

#include "unit/table_memory.h"

#define SEGMENT_SIZE (1u << 20)
#define SECOND	     1000000000ull

/* Users have a thousand processes each. */
static uint32_t user_of(void *context, uint32_t tgid)
{
	return tgid / 1000;
}

static struct outside_books *books;

/* What they say of these; 0: nothing. Rows in front of it are gone. */
static uint64_t noted(uint32_t user, enum outside_thing thing, enum outside_reason reason)
{
	struct outside_row row;

	while (outside_books__take(books, &row))
		if (row.user == user && row.thing == thing && row.reason == reason)
			return row.count;
	return 0;
}

static struct table_memory m;
static struct table_store *store;
static struct table_store_stats stats;
static struct unwind_table_image image; /* of the C library, once it is built */

static void given_options(uint32_t segments, const struct table_store_options *options)
{
	struct table_store_options all = *options;

	table_memory__init(&m, SEGMENT_SIZE, segments);
	books = outside_books__new();
	all.memory = &m.shared;
	all.books = books;
	store = table_store__new(&all);
	assert_non_null(store);
}

static void given_store(uint32_t segments)
{
	given_options(segments, &(struct table_store_options){.user_of = user_of});
}

static void tear_down(void)
{
	if (!store)
		return;
	table_store__free(store);
	outside_books__free(books);
	table_memory__fini(&m);
	store = NULL;
}

static void build_image(void)
{
	_cleanup_close_ int fd = open_c_library();
	struct elf_file *file;

	if (image.size)
		return;
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build(file, SEGMENT_SIZE, &image), 0);
	elf_file__free(file);
}

/* A store for the image; how many tables of it there is room for. */
static uint32_t given_room(uint32_t segments, bool old_first)
{
	build_image();
	given_options(segments,
		      &(struct table_store_options){.user_of = user_of, .old_first = old_first});
	assert_true(SEGMENT_SIZE / image.size >= 4);
	return segments * (SEGMENT_SIZE / image.size);
}

static struct place_store *places(void)
{
	return table_store__places(store);
}

static struct table_number take_number(void)
{
	struct table_number number;

	assert_int_equal(table_store__take_number(store, 1, &number), 0);
	assert_true(table_store__owns(store, &number));
	return number;
}

static void assert_same_rules(uint32_t number)
{
	const struct unwind_table *t = &m.shared.tables[number];

	assert_int_equal(t->base, image.table.base);
	assert_int_equal(t->buckets, image.table.buckets);
	for (uint64_t a = 0; a < (uint64_t)t->buckets << UNWIND_BUCKET_BITS; a += 1013) {
		const struct unwind_rule *here = unwind_table__find(m.segments[t->segment], t,
								    t->base + a);
		const struct unwind_rule *there = unwind_table__find(image.bytes, &image.table,
								     t->base + a);

		assert_memory_equal(here, there, sizeof(*here));
	}
}

/* As many as there is room for: the same rules as in the table by itself. All of them were used just now. */
TEST(a_store_holds_tables_until_its_segments_are_full)
{
	uint32_t room;

	room = given_room(2, false);
	for (uint32_t i = 0; i <= room; i++) {
		struct table_number number = take_number();
		const void *segment;

		assert_int_equal(number.number, i);
		assert_null(table_store__get(store, i, &segment));
		assert_int_equal(table_store__put(store, i, 1, &image), i < room ? 0 : -ENOSPC);
		if (i < room)
			assert_same_rules(i);
	}
	table_store__stats(store, &stats);
	assert_int_equal(stats.tables, room);
	assert_int_equal(stats.table_bytes, room * image.size);
	assert_int_equal(stats.segment_bytes, 2 * SEGMENT_SIZE);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.evicted, 0);
}

static bool is_there(uint32_t number)
{
	const void *segment;

	return table_store__get(store, number, &segment);
}

TEST(the_least_recently_used_tables_are_evicted)
{
	uint32_t room;

	room = given_room(2, false);
	for (uint32_t i = 0; i < room; i++)
		assert_int_equal(table_store__put(store, take_number().number, 1, &image), 0);
	table_store__advance(store, 1000 * SECOND);
	for (unsigned int i = 1; i < 40; i++)
		table_store__advance(store, 1000 * SECOND + i * (SECOND / 10));
	/* the kernel uses all but two of them */
	for (uint32_t i = 0; i < room; i++)
		m.shared.used[i] = *m.shared.epoch - (i == 2) * 30 - (i == 4) * 31;
	assert_int_equal(table_store__put(store, take_number().number, 1, &image), 0);
	assert_int_equal(m.waits, 1);
	for (uint32_t i = 0; i <= room; i++) {
		assert_int_equal(is_there(i), i != 2 && i != 4);
		if (is_there(i))
			assert_same_rules(i);
	}
	/* the room of the other is still there, and then there is none */
	assert_int_equal(table_store__put(store, 4, 1, &image), 0);
	assert_same_rules(4);
	assert_int_equal(table_store__put(store, 2, 1, &image), -ENOSPC);
	assert_false(is_there(2));
	table_store__stats(store, &stats);
	assert_int_equal(stats.tables, room);
	assert_int_equal(stats.evicted, 2);
	assert_int_equal(stats.refused, 1);
	/* a process that waits for all CPUs in vain keeps what it has */
	m.cannot_wait = true;
	m.shared.used[0] -= 30;
	assert_int_equal(table_store__put(store, 2, 1, &image), -EPERM);
}

/* Where memory is short, what was not used for 30 s gives way before a segment is added, and nothing else does. */
TEST(old_tables_are_evicted_before_a_segment_is_added)
{
	uint32_t room;

	room = given_room(2, true) / 2;
	for (uint32_t i = 0; i < room; i++)
		assert_int_equal(table_store__put(store, take_number().number, 1, &image), 0);
	*m.shared.epoch += 1000;
	for (uint32_t i = 0; i < room; i++)
		m.shared.used[i] = *m.shared.epoch - (i == 1 ? 301 : 299);
	assert_int_equal(table_store__put(store, take_number().number, 1, &image), 0);
	assert_same_rules(room);
	for (uint32_t i = 0; i <= room; i++)
		assert_int_equal(is_there(i), i != 1);
	table_store__stats(store, &stats);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(stats.segment_bytes, SEGMENT_SIZE);
	assert_int_equal(table_store__put(store, 1, 1, &image), 0);
	table_store__stats(store, &stats);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(stats.segment_bytes, 2 * SEGMENT_SIZE);
}

TEST(only_unmapped_files_lose_their_numbers)
{
	static const struct unwind_table_image NOTHING = {};
	struct table_number first, second, third, last = {};
	struct unwind_placement p = {0x1000, 0x2000, 0, 0};

	given_store(1);
	first = take_number();
	second = take_number();
	third = take_number();
	assert_false(table_store__owns(store, &last));
	assert_int_equal(table_store__put(store, second.number, 1, &NOTHING), 0);
	assert_true(is_there(second.number));
	p.table = first.number;
	assert_int_equal(place_store__publish(places(), 100, &p, 1, 1), 0);
	for (uint32_t i = 3; i < UNWIND_TABLES; i++)
		m.shared.used[take_number().number] = *m.shared.epoch;
	m.shared.used[third.number] = 1;
	m.shared.used[second.number] = 2;
	last = take_number();
	assert_int_equal(last.number, third.number);
	assert_false(table_store__owns(store, &third));
	assert_true(table_store__owns(store, &first) && table_store__owns(store, &last));
	/* a new number is not given out twice, with or without places */
	assert_int_not_equal(take_number().number, last.number);
	assert_false(is_there(second.number));
	m.shared.used[first.number] = 0;
	for (int i = 0; i < 200; i++)
		assert_int_not_equal(take_number().number, first.number);
	assert_true(table_store__owns(store, &first));
	place_store__withdraw(places(), 100);
	for (int i = 0; i < 200 && table_store__owns(store, &first); i++)
		take_number();
	assert_false(table_store__owns(store, &first));
}

/* Each request is answered once, with an error if it is no ELF file; nothing is left to wait for. */
TEST(each_build_request_is_answered_once)
{
	_cleanup_close_ int library = open_c_library(),
			    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct helper_pool *builders;
	struct table_builder *builder;
	struct built_table built;
	bool seen[6] = {};

	build_image();
	assert_int_equal(helper_pool__new(&builder_options, &builders), 0);
	assert_int_equal(table_builder__new(SEGMENT_SIZE, builders, NULL, &builder), 0);
	assert_false(table_builder__take(builder, true, &built));
	for (uint32_t id = 0; id < 6; id++)
		assert_int_equal(
			table_builder__request(
				builder, &(struct table_request){.id = id,
								 .fd = id % 3 ? library : null,
								 .effort = TABLE_BUILD}),
			0);
	for (uint32_t i = 0; i < 6; i++) {
		struct pollfd done = {.fd = table_builder__fd(builder), .events = POLLIN};

		while (!table_builder__take(builder, !(i % 2), &built))
			assert_int_equal(poll(&done, 1, 60000), 1);
		assert_false(seen[built.id]);
		seen[built.id] = true;
		assert_int_equal(!built.err, built.id % 3 != 0);
		if (built.id % 3) {
			assert_int_equal(built.image.size, image.size);
			assert_memory_equal(built.image.bytes, image.bytes, image.size);
			assert_true(built.cpu_ns > 0);
		}
		unwind_table_image__fini(&built.image);
	}
	assert_false(table_builder__take(builder, false, &built));
	assert_int_equal(table_builder__request(
				 builder, &(struct table_request){.fd = -1, .effort = TABLE_BUILD}),
			 -EBADF);
	/* what is not taken is freed */
	for (uint32_t id = 0; id < 20; id++)
		assert_int_equal(table_builder__request(
					 builder, &(struct table_request){.id = id,
									  .fd = library,
									  .effort = TABLE_BUILD}),
				 0);
	table_builder__free(builder);
	helper_pool__free(builders);
}

static uint64_t word_of(uint32_t tgid)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < UNWIND_PROCESSES; i++) {
		if (m.shared.processes[i] && unwind_word_tgid(m.shared.processes[i]) == tgid) {
			assert_int_equal(found, 0);
			assert_true(((i - unwind_hash(tgid)) & (UNWIND_PROCESSES - 1)) <
				    UNWIND_PROBES);
			found = m.shared.processes[i];
		}
	}
	return found;
}

static void assert_published(uint32_t tgid, uint32_t count, uint64_t as_of)
{
	uint64_t word = word_of(tgid);
	const unsigned char *at = m.shared.places + unwind_word_offset(word);
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

static int publish(uint32_t tgid, uint32_t count, uint64_t as_of)
{
	_cleanup_free_ struct unwind_placement *p = calloc(count + 1, sizeof(*p));

	for (uint32_t i = 0; i < count; i++)
		p[i] = (struct unwind_placement){0x1000 * (tgid + i), 0x1000 * (tgid + i) + 0x800,
						 tgid, UNWIND_NO_TABLE};
	return place_store__publish(places(), tgid, p, count, as_of);
}

TEST(places_of_a_process_survive_changes_of_others)
{
	given_store(1);
	for (uint32_t round = 1; round < 200; round++) {
		for (uint32_t tgid = 1; tgid <= 300; tgid++)
			assert_int_equal(publish(tgid, (tgid * round) % 60, round), 0);
		if (round % 50)
			continue;
		for (uint32_t tgid = 1; tgid <= 300; tgid++)
			assert_published(tgid, (tgid * round) % 60, round);
	}
	for (uint32_t tgid = 2; tgid <= 300; tgid += 2)
		place_store__withdraw(places(), tgid);
	place_store__withdraw(places(), 999);
	assert_int_equal(word_of(2), 0);
	assert_published(3, 3 * 199 % 60, 199);
	table_store__stats(store, &stats);
	assert_int_equal(stats.places.processes, 150);
	assert_int_equal(stats.places.refused, 0);
	assert_int_equal(publish(7, UNWIND_PLACES_MAX, 1), 0);
	assert_published(7, UNWIND_PLACES_MAX, 1);
	/* with more than that its stacks are copied */
	assert_int_equal(publish(7, UNWIND_PLACES_MAX + 1, 1), -E2BIG);
	assert_int_equal(word_of(7), 0);
	table_store__stats(store, &stats);
	assert_int_equal(stats.places.too_many, 1);
	assert_int_equal(noted(0, OUTSIDE_PLACES, OUTSIDE_BY_ITSELF), 1);
	table_store__leave(store, 3007, OUTSIDE_TABLES, 1);
	assert_int_equal(noted(3, OUTSIDE_TABLES, OUTSIDE_BY_ITSELF), 1);
}

TEST(processes_without_room_are_counted_as_refused)
{
	uint64_t failed = 0;

	given_options(1, &(struct table_store_options){});
	for (uint32_t tgid = 1; tgid <= 2 * UNWIND_PROCESSES; tgid++)
		failed += publish(tgid, 1, 1) == -ENOSPC;
	table_store__stats(store, &stats);
	assert_true(failed >= UNWIND_PROCESSES && failed < UNWIND_PROCESSES + UNWIND_PROCESSES / 2);
	assert_int_equal(stats.places.refused, failed);
	assert_int_equal(stats.places.processes, 2 * UNWIND_PROCESSES - failed);
}

static bool is_published(uint32_t tgid)
{
	return word_of(tgid) != 0;
}

/* From `first` on, until there is no room. How many there was room for. */
static uint32_t publish_until_full(uint32_t first, uint32_t places)
{
	uint32_t count = 0;

	while (!publish(first + count, places, 1))
		count++;
	return count;
}

static uint32_t count_published(uint32_t first, uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		found += is_published(first + i);
	return found;
}

TEST(each_user_gets_a_fair_share_of_the_places)
{
	const uint32_t room = UNWIND_PLACES_SIZE / (8 + 4000 * 32);
	uint32_t second, third;
	uint64_t gave_way = 0, refused = 0;
	struct outside_row row;

	given_store(1);
	assert_int_equal(publish_until_full(1000, 4000), room);
	/* the first user may not have more, a small process of his excepted */
	assert_int_equal(publish(1900, 4000, 1), -ENOSPC);
	assert_int_equal(publish(1901, 30, 1), 0);
	assert_published(1901, 30, 1);
	assert_true(count_published(1000, room) >= room - 3);
	/* the next ones get their share */
	second = publish_until_full(2000, 4000);
	assert_true(second >= room / 2 - 2 && second <= room / 2 + 1);
	third = publish_until_full(3000, 4000);
	assert_true(third >= room / 3 - 2 && third <= room / 3 + 2);
	assert_true(count_published(1000, room) >= room / 3 - 2);
	assert_true(count_published(2000, room) >= room / 3 - 2);
	/* a user with small needs gets them, any number of times, and keeps them */
	for (uint32_t round = 1; round <= 50; round++) {
		for (uint32_t tgid = 4000; tgid < 4020; tgid++)
			assert_int_equal(publish(tgid, 300, round), 0);
		for (uint32_t tgid = 1000; tgid < 1010; tgid++)
			publish(tgid, 4000, round);
	}
	for (uint32_t tgid = 4000; tgid < 4020; tgid++)
		assert_published(tgid, 300, 50);
	table_store__stats(store, &stats);
	assert_true(stats.places.shared > 10 && stats.places.refused >= 3);
	while (outside_books__take(books, &row)) {
		assert_int_equal(row.thing, OUTSIDE_PLACES);
		assert_in_range(row.user, 1, 3); /* who needs little is not in them */
		gave_way += row.reason == OUTSIDE_BY_GAVE_WAY ? row.count : 0;
		refused += row.reason == OUTSIDE_BY_USER ? row.count : 0;
	}
	assert_int_equal(gave_way, stats.places.shared);
	assert_int_equal(refused, stats.places.refused);
	assert_int_equal(stats.places.idle_evicted, 0);
}

TEST(a_process_without_samples_makes_room_for_others)
{
	const uint32_t room = UNWIND_PLACES_SIZE / (8 + 4000 * 32);
	uint64_t now = monotonic_ns();

	given_store(1);
	table_store__advance(store, now);
	assert_int_equal(publish_until_full(1000, 4000), room);
	table_store__advance(store, now + PLACE_IDLE_NS / 2);
	for (uint32_t i = 1; i < room; i++)
		place_store__sampled(places(), 1000 + i);
	assert_int_equal(publish(1900, 4000, 1), -ENOSPC);
	table_store__advance(store, now + PLACE_IDLE_NS + SECOND);
	assert_int_equal(publish(1900, 4000, 1), 0);
	assert_false(is_published(1000));
	assert_int_equal(count_published(1001, room - 1), room - 1);
	/* a process with places keeps them while they change */
	assert_int_equal(publish(1900, 3999, 2), 0);
	table_store__stats(store, &stats);
	assert_int_equal(stats.places.idle_evicted, 1);
	/* ended ones leave all they had */
	for (uint32_t i = 1; i < room; i++)
		place_store__withdraw(places(), 1000 + i);
	place_store__withdraw(places(), 1900);
	assert_int_equal(publish_until_full(2000, 4000), room);
}

/* There are only so many words, too: none of them is anybody's for good. */
TEST(a_crowded_process_table_still_takes_a_new_user)
{
	given_store(1);
	for (uint32_t tgid = 1000000; tgid < 1000000 + 2 * UNWIND_PROCESSES; tgid++)
		publish(tgid, 1, 1);
	for (uint32_t tgid = 7000; tgid < 7200; tgid++)
		assert_int_equal(publish(tgid, 30, 1), 0);
	assert_int_equal(count_published(7000, 200), 200);
}

/* Each number of a table is that of a file that a process has mapped. */
TEST(a_user_with_all_numbers_gives_one_up)
{
	enum { EACH = 1024 };
	struct unwind_placement p[EACH] = {};
	struct table_number number;

	given_store(1);
	for (uint32_t i = 0; i < UNWIND_TABLES; i++) {
		uint64_t start = 0x1000 * (1 + i % EACH);

		assert_int_equal(table_store__take_number(store, 2000, &number), 0);
		p[i % EACH] = (struct unwind_placement){start, start + 0x800, 0, number.number};
		if (i % EACH == EACH - 1)
			assert_int_equal(
				place_store__publish(places(), 2000 + i / EACH, p, EACH, 1), 0);
	}
	assert_int_equal(count_published(2000, UNWIND_TABLES / EACH), UNWIND_TABLES / EACH);
	assert_int_equal(table_store__take_number(store, 7000, &number), 0);
	assert_true(table_store__owns(store, &number));
	assert_int_equal(count_published(2000, UNWIND_TABLES / EACH), UNWIND_TABLES / EACH - 1);
}

TEST(tables_in_use_are_taken_from_users_with_more)
{
	struct table_number number;
	uint32_t room, there = 0;

	room = given_room(2, false);
	for (uint32_t i = 0; i < room; i++)
		assert_int_equal(table_store__put(store, take_number().number, 1000, &image), 0);
	number = take_number();
	assert_int_equal(table_store__put(store, number.number, 1001, &image), -ENOSPC);
	assert_int_equal(table_store__put(store, number.number, 2000, &image), 0);
	assert_same_rules(number.number);
	for (uint32_t i = 0; i < room; i++)
		there += is_there(i);
	assert_true(there >= room - 3);
	/* and not for a user that would then have more */
	for (uint32_t i = 0; i < room; i++)
		table_store__put(store, take_number().number, 2000, &image);
	there = 0;
	for (uint32_t i = 0; i < room; i++)
		there += is_there(i);
	assert_true(there >= room / 2 - 2 && there <= room / 2 + 1);
}

/* Against a map of single bytes. */
TEST(extents_never_overlap_and_merge_when_freed)
{
	enum { SIZE = 1000, HELD = 50 };
	_cleanup_(extents__fini) struct extents e = {};
	struct extent held[HELD] = {};
	unsigned char used[SIZE] = {};

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
}

EACH_TEST_WITH(NULL, tear_down);
