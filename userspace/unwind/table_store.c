/* SPDX-License-Identifier: BSD-2-Clause */
/* Where what is written lies, who points to it, and when it may be used again. */
#include "unwind/table_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/vec.h"
#include "unwind/extents.h"

#define EPOCH_NS	  100000000ull	/* what is used within one is used at the same time */
#define EPOCHS_IN_USE	  20		/* and a table is in use for so long after */
#define RECLAIM_RETIRED	  100		/* places that make waiting for all CPUs worth it … */
#define RECLAIM_PERIOD_NS 1000000000ull /* … this often */
#define REUSED_AT_ONCE	  64		/* numbers */

struct retired {
	uint32_t offset, size; /* in the places */
};

/* What the kernel need not know of a table. */
struct held_table {
	uint64_t start,
		size; /* of its bytes: segment * 2 * segment_size + offset; 0: it has none */
	uint64_t rows;
	uint32_t places; /* published ones that have its number */
	uint32_t holder; /* 0: nobody's */
	bool is_unused;	 /* it is in `unused` */
};

struct table_store {
	struct unwind_memory memory;
	unsigned char *segments[UNWIND_SEGMENTS];
	unsigned int segment_count;
	struct extents free_tables;
	struct extents free_places;
	VEC(struct held_table) held; /* by number */
	VEC(struct retired) retired;
	VEC(uint32_t) unused; /* numbers that no program knows */
	uint32_t last_holder;
	uint64_t epoch_start, last_wait;
	struct table_store_stats stats;
};

struct table_store *table_store__new(const struct unwind_memory *memory)
{
	struct table_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->memory = *memory;
	*s->memory.epoch = EPOCHS_IN_USE + 1; /* what was never used is not in use */
	/* offset 0 stays unused: a word of 0 is no process */
	if (extents__free(&s->free_places, UNWIND_PLACES_ALIGN,
			  UNWIND_PLACES_SIZE - UNWIND_PLACES_ALIGN)) {
		table_store__free(s);
		return NULL;
	}
	return s;
}

void table_store__free(struct table_store *s)
{
	if (!s)
		return;
	extents__fini(&s->free_tables);
	extents__fini(&s->free_places);
	vec_free(&s->held);
	vec_free(&s->retired);
	vec_free(&s->unused);
	free(s);
}

void table_store__advance(struct table_store *s, uint64_t time)
{
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

/* Who was in a program before has left it. */
static int wait_for_programs(struct table_store *s)
{
	int err = s->memory.wait_for_programs(s->memory.context);

	if (!err)
		s->last_wait = monotonic_ns();
	return err;
}

/* Its table is unlinked, and no program knows it any more. */
static void free_room(struct table_store *s, struct held_table *table)
{
	if (!table->size)
		return;
	/* without memory to note it, its room is lost */
	(void)extents__free(&s->free_tables, table->start, table->size);
	s->stats.tables--;
	s->stats.rows -= table->rows;
	s->stats.table_bytes -= table->size;
	table->size = table->rows = 0;
}

/* A number that no process has, of the table that was not used for longest. */
static int find_unused_number(const struct table_store *s, uint32_t *number)
{
	int err = -ENOSPC;

	for (uint32_t i = 0; i < s->held.count; i++) {
		if (s->held.data[i].places || s->held.data[i].is_unused ||
		    (!err && last_use(s, i) >= last_use(s, *number)))
			continue;
		*number = i;
		err = 0;
	}
	return err;
}

/* Many at a time, since waiting for programs takes milliseconds. */
static int free_numbers(struct table_store *s)
{
	uint32_t number;
	int err = 0;

	while (s->unused.count < REUSED_AT_ONCE && !find_unused_number(s, &number)) {
		err = vec_push(&s->unused, number);
		if (err)
			return err;
		unlink_table(s, number);
		s->held.data[number].holder = 0;
		s->held.data[number].is_unused = true;
	}
	/* also for whom a number was unpublished from just now */
	err = s->unused.count ? wait_for_programs(s) : -ENOSPC;
	for (size_t i = 0; i < s->unused.count && !err; i++)
		free_room(s, &s->held.data[s->unused.data[i]]);
	while (err && s->unused.count)
		s->held.data[s->unused.data[--s->unused.count]].is_unused = false;
	return err;
}

static int reuse_number(struct table_store *s, uint32_t *number)
{
	int err = s->unused.count ? 0 : free_numbers(s);

	if (err)
		return err;
	*number = s->unused.data[0]; /* the one that was not used for longest */
	memmove(s->unused.data, s->unused.data + 1, --s->unused.count * sizeof(*number));
	s->held.data[*number].is_unused = false;
	return 0;
}

int table_store__take_number(struct table_store *s, struct table_number *number)
{
	static const struct held_table NOTHING = {};
	int err;

	if (s->held.count < UNWIND_TABLES) {
		number->number = s->held.count;
		err = vec_push(&s->held, NOTHING);
	} else {
		err = reuse_number(s, &number->number);
	}
	if (err)
		return err;
	number->holder = ++s->last_holder;
	s->held.data[number->number].holder = number->holder;
	/* it has no places yet, and is not to be given to the next one for that */
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
	/* two segments are no neighbours: a table lies in one of them */
	return extents__free(&s->free_tables, number * (2 * s->memory.segment_size),
			     s->memory.segment_size);
}

/* The table that was not used for longest, and not just now. */
static int find_victim(const struct table_store *s, uint32_t *number)
{
	uint32_t oldest = *s->memory.epoch - EPOCHS_IN_USE;
	int err = -ENOSPC;

	for (uint32_t i = 0; i < s->held.count; i++) {
		if (!s->held.data[i].size || !s->memory.tables[i].number_size ||
		    last_use(s, i) >= oldest)
			continue;
		oldest = last_use(s, i);
		*number = i;
		err = 0;
	}
	return err;
}

/*
 * Unlink tables until what they leave is twice `size`, for it may not be in one piece, or as many
 * as there are; then wait once for all of them.
 */
static int evict_tables(struct table_store *s, size_t size)
{
	size_t left = 0;
	uint32_t number;
	int err;

	while (left < 2 * size && !find_victim(s, &number)) {
		unlink_table(s, number);
		left += s->held.data[number].size;
		s->stats.evicted++;
		log_debug(LOG_UNWIND, "evicted table %u: %zu bytes", number,
			  (size_t)s->held.data[number].size);
	}
	if (!left)
		return -ENOSPC;
	err = wait_for_programs(s);
	for (uint32_t i = 0; i < s->held.count && !err; i++)
		if (!s->memory.tables[i].number_size)
			free_room(s, &s->held.data[i]);
	return err;
}

static int take_room(struct table_store *s, size_t size, uint64_t *start)
{
	int err = extents__take(&s->free_tables, size, start);

	if (err && !add_segment(s))
		err = extents__take(&s->free_tables, size, start);
	while (err == -ENOSPC) {
		err = evict_tables(s, size);
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

static int put_bytes(struct table_store *s, uint32_t number, const struct unwind_table_image *image,
		     struct unwind_table *table)
{
	size_t offset;
	uint64_t start;
	int err = image->size > s->memory.segment_size ? -ENOSPC
						       : take_room(s, image->size, &start);

	if (err) {
		s->stats.refused += err == -ENOSPC;
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
	s->stats.tables++;
	s->stats.rows += image->rows;
	s->stats.table_bytes += image->size;
	log_debug(LOG_UNWIND, "loaded table %u: %zu bytes; total %zu tables, %zu bytes", number,
		  image->size, (size_t)s->stats.tables, (size_t)s->stats.table_bytes);
	return 0;
}

int table_store__put(struct table_store *s, uint32_t number, const struct unwind_table_image *image)
{
	struct unwind_table table = image->table;
	int err = image->table.buckets ? put_bytes(s, number, image, &table) : 0;

	if (err)
		return err;
	if (!table.buckets)
		table.number_size = 1;
	link_table(s, number, &table);
	return 0;
}

const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment)
{
	const struct unwind_table *table = &s->memory.tables[number];

	*segment = s->segments[table->segment];
	return table->number_size ? table : NULL;
}

/* ---- processes ------------------------------------------------------------------------------- */

static size_t places_size(size_t count)
{
	return align_up(8 + count * (8 + sizeof(struct unwind_place)), UNWIND_PLACES_ALIGN);
}

static void reclaim_places(struct table_store *s)
{
	if (!s->retired.count || wait_for_programs(s))
		return;
	for (size_t i = 0; i < s->retired.count; i++)
		extents__free(&s->free_places, s->retired.data[i].offset, s->retired.data[i].size);
	s->retired.count = 0;
}

static int take_places(struct table_store *s, size_t size, uint64_t *offset)
{
	int err;

	if (s->retired.count > RECLAIM_RETIRED && monotonic_ns() - s->last_wait > RECLAIM_PERIOD_NS)
		reclaim_places(s);
	err = extents__take(&s->free_places, size, offset);
	if (!err)
		return 0;
	reclaim_places(s);
	return extents__take(&s->free_places, size, offset);
}

static uint64_t *find_word(struct table_store *s, uint32_t tgid)
{
	for (uint32_t i = 0; i < UNWIND_PROBES; i++) {
		uint32_t at = (unwind_hash(tgid) + i) & (UNWIND_PROCESSES - 1);

		if (s->memory.processes[at] && unwind_word_tgid(s->memory.processes[at]) == tgid)
			return &s->memory.processes[at];
	}
	return NULL;
}

static uint64_t *find_free_word(struct table_store *s, uint32_t tgid)
{
	for (uint32_t i = 0; i < UNWIND_PROBES; i++) {
		uint32_t at = (unwind_hash(tgid) + i) & (UNWIND_PROCESSES - 1);

		if (!s->memory.processes[at])
			return &s->memory.processes[at];
	}
	return NULL;
}

static const struct unwind_place *places_of(const struct table_store *s, uint32_t offset,
					    size_t count)
{
	return (const void *)(s->memory.places + offset + 8 + count * 8);
}

static void retire_places(struct table_store *s, uint64_t word)
{
	const size_t count = unwind_word_count(word);
	const struct retired old = {unwind_word_offset(word), places_size(count)};
	const struct unwind_place *places = places_of(s, old.offset, count);

	if (!word)
		return;
	for (size_t i = 0; i < count; i++)
		if (places[i].table < UNWIND_TABLES)
			s->held.data[places[i].table].places--;
	/* without memory to note it, its room is lost */
	(void)vec_push(&s->retired, old);
}

static void write_places(struct table_store *s, const struct unwind_placement *placements,
			 size_t count, uint64_t as_of, unsigned char *to)
{
	uint64_t *starts = (uint64_t *)(void *)to;
	struct unwind_place *places = (struct unwind_place *)(void *)(to + 8 + count * 8);

	*starts++ = as_of;
	for (size_t i = 0; i < count; i++) {
		const struct unwind_placement *p = &placements[i];

		starts[i] = p->start;
		places[i] = (struct unwind_place){
			.end = p->end,
			.bias = p->bias,
			.table = p->table,
		};
		if (p->table < UNWIND_TABLES)
			s->held.data[p->table].places++;
	}
}

int table_store__publish(struct table_store *s, uint32_t tgid,
			 const struct unwind_placement *placements, size_t count, uint64_t as_of)
{
	uint64_t *word = find_word(s, tgid), old, offset;
	int err;

	if (count > UNWIND_PLACES_MAX)
		count = UNWIND_PLACES_MAX;
	if (!word)
		word = find_free_word(s, tgid);
	err = word ? take_places(s, places_size(count), &offset) : -ENOSPC;
	if (err) {
		s->stats.unpublished++;
		return err;
	}
	write_places(s, placements, count, as_of, s->memory.places + offset);
	old = *word;
	s->stats.processes += !old;
	__atomic_store_n(word, unwind_word(tgid, count, offset), __ATOMIC_RELEASE);
	retire_places(s, old);
	return 0;
}

void table_store__withdraw(struct table_store *s, uint32_t tgid)
{
	uint64_t *word = find_word(s, tgid), old;

	if (!word)
		return;
	old = *word;
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	s->stats.processes--;
	retire_places(s, old);
}

void table_store__stats(const struct table_store *s, struct table_store_stats *stats)
{
	*stats = s->stats;
}
