/* SPDX-License-Identifier: BSD-2-Clause */
/* Where what is written lies, who points to it, and when it may be used again. */
#include "unwind/table_store.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "unwind/extents.h"
#include "unwind/unwind_table.h"

#define TABLE_ALIGN  64
#define GRACE_PERIOD 1000000000ull /* ns between two times that we wait for all CPUs */

struct retired {
	uint32_t offset, size; /* in the places */
};

struct table_store {
	struct unwind_memory memory;
	unsigned char *segments[UNWIND_SEGMENTS];
	unsigned int segment_count;
	struct extents free_tables; /* segment number * segment_size + offset */
	struct extents free_places;
	VEC(uint8_t) segment_of; /* by table */
	VEC(struct retired) retired;
	uint64_t last_wait;
	struct table_store_stats stats;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct table_store *table_store__new(const struct unwind_memory *memory)
{
	struct table_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->memory = *memory;
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
	vec_free(&s->segment_of);
	vec_free(&s->retired);
	free(s);
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

static int take_room(struct table_store *s, size_t size, unsigned int *segment, size_t *offset)
{
	uint64_t start;
	int err = extents__take(&s->free_tables, size, &start);

	if (err) {
		err = add_segment(s);
		if (!err)
			err = extents__take(&s->free_tables, size, &start);
	}
	if (err)
		return err;
	*segment = start / (2 * s->memory.segment_size);
	*offset = start % (2 * s->memory.segment_size);
	return 0;
}

static int place_table(struct table_store *s, const struct unwind_table_image *image,
		       uint32_t *number)
{
	struct unwind_table table = image->table;
	unsigned int segment;
	size_t offset;
	int err = s->segment_of.count < UNWIND_TABLES
			  ? vec_reserve(&s->segment_of, s->segment_of.count + 1)
			  : -ENOSPC;

	if (!err)
		err = take_room(s, image->size, &segment, &offset);
	if (err)
		return err;
	memcpy(s->segments[segment] + offset, image->bytes, image->size);
	table.dictionary += offset;
	table.index += offset;
	table.numbers += offset;
	table.addresses += offset;
	*number = s->segment_of.count;
	s->memory.tables[*number] = table;
	return vec_push(&s->segment_of, segment);
}

int table_store__add(struct table_store *s, struct elf_file *file, uint32_t *number)
{
	struct unwind_table_image image;
	uint64_t begin = now();
	int err = unwind_table__build(file, s->memory.segment_size, &image);

	if (!err)
		err = place_table(s, &image, number);
	s->stats.build_ns += now() - begin;
	if (err == -EFBIG || err == -ENOSPC)
		s->stats.failed++;
	if (!err) {
		s->stats.tables++;
		s->stats.rows += image.rows;
		s->stats.table_bytes += image.size;
	}
	unwind_table_image__fini(&image);
	return err;
}

const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment)
{
	*segment = s->segments[s->segment_of.data[number]];
	return &s->memory.tables[number];
}

/* ---- processes ------------------------------------------------------------------------------- */

static size_t places_size(size_t count)
{
	size_t size = 8 + count * (8 + sizeof(struct unwind_place));

	return (size + UNWIND_PLACES_ALIGN - 1) & ~(size_t)(UNWIND_PLACES_ALIGN - 1);
}

/* After this no program reads what was retired before. It waits for a grace period of RCU. */
static void reclaim(struct table_store *s)
{
	if (!s->retired.count || syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	for (size_t i = 0; i < s->retired.count; i++)
		extents__free(&s->free_places, s->retired.data[i].offset, s->retired.data[i].size);
	s->retired.count = 0;
	s->last_wait = now();
}

static int take_places(struct table_store *s, size_t size, uint64_t *offset)
{
	int err;

	if (s->retired.count > 100 && now() - s->last_wait > GRACE_PERIOD)
		reclaim(s);
	err = extents__take(&s->free_places, size, offset);
	if (!err)
		return 0;
	reclaim(s);
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

static void retire(struct table_store *s, uint64_t word)
{
	const struct retired old = {
		.offset = unwind_word_offset(word),
		.size = places_size(unwind_word_count(word)),
	};

	if (word) /* without memory to note it, its room is lost */
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
			.segment = p->table == UNWIND_NO_TABLE ? 0 : s->segment_of.data[p->table],
		};
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
	retire(s, old);
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
	retire(s, old);
}

void table_store__stats(const struct table_store *s, struct table_store_stats *stats)
{
	*stats = s->stats;
}
