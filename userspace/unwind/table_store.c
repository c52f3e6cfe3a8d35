/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates room and numbers for tables, links tables, and decides when both may be reused. */
#include "unwind/table_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "tenants/quota.h"

#define EPOCH_NS       100000000ull /* uses within an epoch count as simultaneous */
#define EPOCHS_IN_USE  20	    /* a table is in use for so long after its last use */
#define EPOCHS_OLD     300	    /* unused for so long, it is evicted before memory is added */
#define REUSED_AT_ONCE 64	    /* numbers */
#define WAYS_MADE      8	    /* processes that are evicted for one number, at most */

/* The part of a table's state that the kernel does not need. */
struct held_table {
	uint64_t start,
		size; /* of its bytes: segment * 2 * segment_size + offset; 0: it has none */
	uint64_t rows;
	uint32_t user;	 /* of the requesting process, if size > 0 */
	uint32_t holder; /* 0: free */
	bool is_unused;	 /* listed in `unused` */
};

struct table_store {
	struct unwind_memory memory;
	struct table_store_options options;
	struct place_store *places;
	uint32_t uses[UNWIND_TABLES]; /* published places that have the number */
	unsigned char *segments[UNWIND_SEGMENTS];
	unsigned int segment_count;
	struct extents free_tables;
	VEC(struct held_table) held; /* by number */
	struct quota quota;	     /* of their bytes */
	VEC(uint32_t) unused;	     /* numbers that no program can be using */
	uint32_t last_holder;
	uint64_t epoch_start;
	struct table_store_stats stats;
};

static int add_segment(struct table_store *s);

struct table_store *table_store__new(const struct table_store_options *options)
{
	struct table_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	quota__init(&s->quota, QUOTA_TABLES);
	s->options = *options;
	s->memory = *options->memory;
	*s->memory.epoch = EPOCHS_IN_USE + 1; /* so that tables never used are not in use */
	s->places = place_store__new(options, s->uses, &s->stats.places);
	if (!s->places) {
		table_store__free(s);
		return NULL;
	}
	/* early: the kernel takes 12 ms to accept it; if it fails, the first table tries again */
	(void)add_segment(s);
	return s;
}

void table_store__free(struct table_store *s)
{
	if (!s)
		return;
	extents__fini(&s->free_tables);
	place_store__free(s->places);
	vec_free(&s->held);
	vec_free(&s->unused);
	free(s);
}

void table_store__advance(struct table_store *s, uint64_t time)
{
	place_store__advance(s->places, time);
	if (time - s->epoch_start < EPOCH_NS)
		return;
	s->epoch_start = time;
	__atomic_store_n(s->memory.epoch, *s->memory.epoch + 1, __ATOMIC_RELAXED);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint32_t last_use(const struct table_store *s, uint32_t number)
{
	return __atomic_load_n(&s->memory.used[number], __ATOMIC_RELAXED);
}

static void unlink_table(struct table_store *s, uint32_t number)
{
	__atomic_store_n(&s->memory.tables[number].number_size, 0, __ATOMIC_RELEASE);
}

/* For a table that is unlinked and that no program reads any more. */
static void free_room(struct table_store *s, struct held_table *table)
{
	if (!table->size)
		return;
	/* if there is no memory for this entry, the room is lost */
	(void)extents__free(&s->free_tables, table->start, table->size);
	s->stats.tables--;
	s->stats.rows -= table->rows;
	s->stats.table_bytes -= table->size;
	quota__give(&s->quota, table->user, table->size);
	table->size = table->rows = 0;
}

/* Of the numbers that no process uses, the one whose table was unused for longest. */
static int find_unused_number(const struct table_store *s, uint32_t *number)
{
	int err = -ENOSPC;

	for (uint32_t i = 0; i < s->held.count; i++) {
		if (s->uses[i] || s->held.data[i].is_unused ||
		    (!err && last_use(s, i) >= last_use(s, *number)))
			continue;
		*number = i;
		err = 0;
	}
	return err;
}

/*
 * Frees many numbers at a time, because waiting for programs takes milliseconds. If all numbers are
 * those of mapped files, evicts processes.
 */
static int free_numbers(struct table_store *s, uint32_t tgid)
{
	uint32_t number;
	int err = vec_reserve(&s->unused, REUSED_AT_ONCE);

	if (err)
		return err;
	for (unsigned int ways = 0; ways < WAYS_MADE && find_unused_number(s, &number); ways++)
		if (!place_store__evict(s->places, tgid))
			break;
	while (s->unused.count < REUSED_AT_ONCE && !find_unused_number(s, &number)) {
		s->unused.data[s->unused.count++] = number;
		unlink_table(s, number);
		s->held.data[number].holder = 0;
		s->held.data[number].is_unused = true;
	}
	/* wait, also for programs that have just read a number */
	err = s->unused.count ? s->memory.wait_for_programs(s->memory.context) : -ENOSPC;
	for (size_t i = 0; i < s->unused.count && !err; i++)
		free_room(s, &s->held.data[s->unused.data[i]]);
	while (err && s->unused.count)
		s->held.data[s->unused.data[--s->unused.count]].is_unused = false;
	return err;
}

static int reuse_number(struct table_store *s, uint32_t tgid, uint32_t *number)
{
	int err = s->unused.count ? 0 : free_numbers(s, tgid);

	if (err)
		return err;
	*number = s->unused.data[0]; /* unused for longest */
	memmove(s->unused.data, s->unused.data + 1, --s->unused.count * sizeof(*number));
	s->held.data[*number].is_unused = false;
	return 0;
}

int table_store__take_number(struct table_store *s, uint32_t tgid, struct table_number *number)
{
	static const struct held_table NOTHING = {};
	int err;

	if (s->held.count < UNWIND_TABLES) {
		number->number = s->held.count;
		err = vec_push(&s->held, NOTHING);
	} else {
		err = reuse_number(s, tgid, &number->number);
	}
	if (err)
		return err;
	number->holder = ++s->last_holder;
	s->held.data[number->number].holder = number->holder;
	/* it has no places yet, which must not make it free for the next request */
	__atomic_store_n(&s->memory.used[number->number], *s->memory.epoch, __ATOMIC_RELAXED);
	return 0;
}

bool table_store__owns(const struct table_store *s, const struct table_number *number)
{
	return number->holder && s->held.data[number->number].holder == number->holder;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int add_segment(struct table_store *s)
{
	unsigned int number = s->segment_count;
	int err;

	if (number == s->memory.segment_limit)
		return -ENOSPC;
	err = s->memory.add_segment(s->memory.context, number, &s->segments[number]);
	if (err)
		return err;
	s->segment_count++;
	s->stats.segment_bytes += s->memory.segment_size;
	/* with a gap between segments, because a table must not cross their border */
	return extents__free(&s->free_tables, number * (2 * s->memory.segment_size),
			     s->memory.segment_size);
}

static bool is_loaded(const struct table_store *s, uint32_t number)
{
	return s->held.data[number].size && s->memory.tables[number].number_size;
}

/*
 * The table that was unused for longest, and for `epochs` at least; or, unless `richest` is
 * QUOTA_OWNERS, of that account's tables, used recently or not.
 */
static int find_victim(const struct table_store *s, uint32_t richest, uint32_t epochs,
		       uint32_t *number)
{
	bool any = richest == QUOTA_OWNERS;
	uint32_t now = *s->memory.epoch, oldest = any ? now - min_u64(epochs, now) : UINT32_MAX;
	int err = -ENOSPC;

	for (uint32_t i = 0; i < s->held.count; i++) {
		if (!is_loaded(s, i) || last_use(s, i) >= oldest ||
		    (!any && !quota__is_of(&s->quota, richest, s->held.data[i].user)))
			continue;
		oldest = last_use(s, i);
		*number = i;
		err = 0;
	}
	return err;
}

/* The next table to evict: idle ones first, then those of the user with the most. */
static int choose_victim(const struct table_store *s, uint32_t user, size_t size, uint32_t *number)
{
	uint32_t richest;
	int err;

	if (!find_victim(s, QUOTA_OWNERS, EPOCHS_IN_USE, number))
		return 0;
	richest = quota__most(&s->quota, user, size);
	err = richest == QUOTA_OWNERS ? -ENOSPC : find_victim(s, richest, 0, number);
	if (!err)
		outside_books__add(s->options.books, s->held.data[*number].user, OUTSIDE_TABLES,
				   OUTSIDE_BY_GAVE_WAY, 1);
	return err;
}

static size_t evict_table(struct table_store *s, uint32_t number)
{
	size_t size = s->held.data[number].size;

	unlink_table(s, number);
	s->stats.evicted++;
	log_debug(LOG_UNWIND, "evicted table %u: %zu bytes", number, size);
	return size;
}

/*
 * Unlinks tables until twice `size` is free, because it may be in several pieces, or none is left;
 * then waits once for all. `old`: only those that were unused for long.
 */
static int evict_tables(struct table_store *s, uint32_t user, size_t size, bool old)
{
	size_t left = 0;
	uint32_t number;
	int err;

	while (left < 2 * size && !(old ? find_victim(s, QUOTA_OWNERS, EPOCHS_OLD, &number)
					: choose_victim(s, user, size, &number)))
		left += evict_table(s, number);
	if (!left)
		return -ENOSPC;
	err = s->memory.wait_for_programs(s->memory.context);
	for (uint32_t i = 0; i < s->held.count && !err; i++)
		if (!s->memory.tables[i].number_size)
			free_room(s, &s->held.data[i]);
	return err;
}

static int take_room(struct table_store *s, uint32_t user, size_t size, uint64_t *start)
{
	int err = extents__take(&s->free_tables, size, start);

	while (err == -ENOSPC && s->options.old_first && !evict_tables(s, user, size, true))
		err = extents__take(&s->free_tables, size, start);
	if (err && !add_segment(s))
		err = extents__take(&s->free_tables, size, start);
	while (err == -ENOSPC) {
		err = evict_tables(s, user, size, false);
		if (err)
			return err;
		err = extents__take(&s->free_tables, size, start);
	}
	return err;
}

static void link_table(struct table_store *s, uint32_t number, const struct unwind_table *table)
{
	struct unwind_table *to = &s->memory.tables[number];

	__atomic_store_n(&s->memory.used[number], *s->memory.epoch, __ATOMIC_RELAXED);
	to->base = table->base;
	to->buckets = table->buckets;
	to->dictionary = table->dictionary;
	to->index = table->index;
	to->numbers = table->numbers;
	to->addresses = table->addresses;
	to->segment = table->segment;
	__atomic_store_n(&to->number_size, table->number_size, __ATOMIC_RELEASE);
}

static int put_bytes(struct table_store *s, uint32_t number, uint32_t tgid,
		     const struct unwind_table_image *image, struct unwind_table *table)
{
	uint32_t user = place_store__user(s->places, tgid);
	size_t offset;
	uint64_t start;
	int err = image->size > s->memory.segment_size ? -ENOSPC
						       : take_room(s, user, image->size, &start);

	if (err) {
		s->stats.refused += err == -ENOSPC;
		if (err == -ENOSPC)
			outside_books__add(s->options.books, user, OUTSIDE_TABLES,
					   image->size > s->memory.segment_size ? OUTSIDE_BY_ITSELF
										: OUTSIDE_BY_USER,
					   1);
		log_debug(LOG_UNWIND, "refused table %u: %zu bytes: %s", number, image->size,
			  strerror(-err));
		return err;
	}
	offset = start % (2 * s->memory.segment_size);
	table->segment = start / (2 * s->memory.segment_size);
	memcpy(s->segments[table->segment] + offset, image->bytes, image->size);
	table->dictionary += offset;
	table->index += offset;
	table->numbers += offset;
	table->addresses += offset;
	s->held.data[number].start = start;
	s->held.data[number].size = image->size;
	s->held.data[number].rows = image->rows;
	s->held.data[number].user = user;
	quota__take(&s->quota, user, image->size, 0);
	s->stats.tables++;
	s->stats.rows += image->rows;
	s->stats.table_bytes += image->size;
	log_debug(LOG_UNWIND, "loaded table %u: %zu bytes; total %zu tables, %zu bytes", number,
		  image->size, (size_t)s->stats.tables, (size_t)s->stats.table_bytes);
	return 0;
}

int table_store__put(struct table_store *s, uint32_t number, uint32_t tgid,
		     const struct unwind_table_image *image)
{
	struct unwind_table table = image->table;
	int err = image->table.buckets ? put_bytes(s, number, tgid, image, &table) : 0;

	if (err)
		return err;
	if (!table.buckets)
		table.number_size = 1;
	link_table(s, number, &table);
	return 0;
}

void table_store__leave(struct table_store *s, uint32_t tgid, enum outside_thing thing,
			uint64_t count)
{
	outside_books__add(s->options.books, place_store__user(s->places, tgid), thing,
			   OUTSIDE_BY_ITSELF, count);
}

const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment)
{
	const struct unwind_table *table = &s->memory.tables[number];

	*segment = s->segments[table->segment];
	return table->number_size ? table : NULL;
}

struct place_store *table_store__places(const struct table_store *s)
{
	return s->places;
}

void table_store__stats(const struct table_store *s, struct table_store_stats *stats)
{
	*stats = s->stats;
}
