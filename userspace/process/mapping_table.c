/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sorted, disjoint mappings with copy on write.
 *
 * The kernel reports no munmap. Two things make up for it: a new mapping replaces what lies under
 * it, and a reading of /proc (numbered, each mapping keeps the number of the last one that told it)
 * drops what it did not find. A reading bears the time of its beginning, so what appeared while it
 * went on comes after it in the stream and is never among the stale.
 */
#include "process/mapping_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

/* Four times the kernel's default limit of mappings of a process, of any kind. */
#define MAPPINGS_MAX 262144u

struct mapping_table {
	unsigned int refs;
	bool reading;
	uint32_t read; /* number of the current or last reading */
	VEC(struct mapping) maps;
};

struct mapping_table *mapping_table__ref(struct mapping_table *table)
{
	if (table)
		table->refs++;
	return table;
}

void mapping_table__unref(struct mapping_table *table)
{
	if (!table || --table->refs)
		return;
	vec_free(&table->maps);
	free(table);
}

/* Make *table the caller's alone, copying it where it is shared. 0, -ENOMEM. */
static int own_table(struct mapping_table **table)
{
	struct mapping_table *old = *table, *copy;

	if (old && old->refs == 1)
		return 0;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy->refs = 1;
	if (old) {
		if (vec_reserve(&copy->maps, old->maps.count)) {
			free(copy);
			return -ENOMEM;
		}
		if (old->maps.count)
			memcpy(copy->maps.data, old->maps.data,
			       old->maps.count * sizeof(*old->maps.data));
		copy->maps.count = old->maps.count;
		copy->reading = old->reading;
		copy->read = old->read;
		old->refs--;
	}
	*table = copy;
	return 0;
}

size_t mapping_table__count(const struct mapping_table *table)
{
	return table ? table->maps.count : 0;
}

const struct mapping *mapping_table__get(const struct mapping_table *table, size_t i)
{
	return &table->maps.data[i];
}

struct mappings mapping_table__all(const struct mapping_table *table)
{
	return table ? (struct mappings){table->maps.data, table->maps.count} : (struct mappings){};
}

/* Number of the first mapping that ends behind `address`. */
static size_t first_behind(const struct mapping_table *table, uint64_t address)
{
	return table ? partition_point(table->maps.data, table->maps.count, m, m->end <= address)
		     : 0;
}

const struct mapping *mapping_table__find(const struct mapping_table *table, uint64_t address)
{
	size_t i = first_behind(table, address);

	if (i == mapping_table__count(table) || table->maps.data[i].start > address)
		return NULL;
	return &table->maps.data[i];
}

/* Does `m` say of every address in it what `old` says already? */
static bool says_the_same(const struct mapping *old, const struct mapping *m)
{
	return old->start <= m->start && m->end <= old->end && old->image.v == m->image.v &&
	       old->page_offset - old->start == m->page_offset - m->start;
}

/* Put `m` in the place of mappings first .. behind - 1, keeping what sticks out of them. */
static int replace_mappings(struct mapping_table *table, size_t first, size_t behind,
			    const struct mapping *m)
{
	struct mapping pieces[3];
	size_t count = 0, rest = table->maps.count - behind, total;
	struct mapping *maps = table->maps.data;

	if (first < behind && maps[first].start < m->start) {
		pieces[count] = maps[first];
		pieces[count++].end = m->start;
	}
	pieces[count++] = *m;
	if (first < behind && maps[behind - 1].end > m->end) {
		pieces[count] = maps[behind - 1];
		pieces[count].page_offset += m->end - pieces[count].start;
		pieces[count++].start = m->end;
	}

	total = first + count + rest;
	if (total > MAPPINGS_MAX)
		return -E2BIG;
	if (vec_reserve(&table->maps, total))
		return -ENOMEM;
	maps = table->maps.data;
	memmove(&maps[first + count], &maps[behind], rest * sizeof(*maps));
	memcpy(&maps[first], pieces, count * sizeof(*maps));
	table->maps.count = total;
	return 0;
}

int mapping_table__add(struct mapping_table **table, const struct mapping *mapping, bool from_read)
{
	struct mapping m = *mapping;
	size_t first, behind;
	bool known;
	int err;

	if (m.start >= m.end)
		return -EINVAL;
	first = behind = first_behind(*table, m.start);
	known = first < mapping_table__count(*table) &&
		says_the_same(&(*table)->maps.data[first], &m);
	if (known && !from_read)
		return MAPPING_KNOWN;

	err = own_table(table);
	if (err)
		return err;
	if (from_read && !(*table)->reading) {
		(*table)->reading = true;
		(*table)->read++;
	}
	m.read = (*table)->read;
	if (known) {
		(*table)->maps.data[first].read = m.read;
		return MAPPING_KNOWN;
	}
	while (behind < (*table)->maps.count && (*table)->maps.data[behind].start < m.end)
		behind++;
	err = replace_mappings(*table, first, behind, &m);
	return err ? err : MAPPING_ADDED;
}

int mapping_table__end_read(struct mapping_table **table)
{
	struct mapping_table *t;
	size_t kept = 0;
	int removed;

	/* nothing told: the process went away under the reader, or there is nothing to drop */
	if (!*table || !(*table)->reading)
		return 0;
	if (own_table(table))
		return -ENOMEM;
	t = *table;
	for (size_t i = 0; i < t->maps.count; i++)
		if (t->maps.data[i].read == t->read)
			t->maps.data[kept++] = t->maps.data[i];
	removed = (int)(t->maps.count - kept);
	t->maps.count = kept;
	t->reading = false;
	return removed;
}
