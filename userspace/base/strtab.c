/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strings lie in blocks that are never resized, so they never move; a map gives them numbers and
 * finds them. A string that is large beside a block gets one of its own.
 */
#include "base/strtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define BLOCK_SIZE (64 * 1024)
#define FIRST_BLOCK                                                                                \
	1024 /* there may be many tables with hardly a string; doubled from block to block */
#define LARGE_STRING (BLOCK_SIZE / 8)

MAP_TYPE(text_map, const char *);
MAP_KEY(text_map, const char *, const char *, *entry)
MAP_FUNCTIONS(text_map, const char *, const char *, text_map__key, hash_string, map_same_string);

struct strtab {
	struct text_map strings;
	VEC(char *) blocks;
	char *room; /* free part of the block that is being filled */
	size_t room_size, block_size;
};

struct strtab *strtab__new(void)
{
	struct strtab *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->block_size = FIRST_BLOCK;
	if (strtab__intern(table, "") == 0)
		return table;
	strtab__free(table);
	return NULL;
}

void strtab__free(struct strtab *table)
{
	if (!table)
		return;
	vec_free_with(&table->blocks, block, free(*block));
	text_map__fini(&table->strings);
	free(table);
}

/* Room for `size` bytes that will not move, or NULL. */
static char *allocate_text(struct strtab *table, size_t size)
{
	bool large = size > LARGE_STRING;
	char *block;

	if (!large && size <= table->room_size) {
		block = table->room;
		table->room += size;
		table->room_size -= size;
		return block;
	}
	if (vec_reserve(&table->blocks, table->blocks.count + 1))
		return NULL;
	while (!large && table->block_size < size)
		table->block_size *= 2;
	block = malloc(large ? size : table->block_size);
	if (!block)
		return NULL;
	table->blocks.data[table->blocks.count++] = block;
	if (!large) {
		table->room = block + size;
		table->room_size = table->block_size - size;
		if (table->block_size < BLOCK_SIZE)
			table->block_size *= 2;
	}
	return block;
}

int64_t strtab__intern(struct strtab *table, const char *s)
{
	size_t size = strlen(s) + 1;
	uint64_t hash = hash_string(s);
	const char **known = text_map__at(&table->strings, hash, s);
	char *copy;

	if (known)
		return known - table->strings.data;
	if (vec_reserve(&table->strings, table->strings.count + 1))
		return -ENOMEM;
	copy = allocate_text(table, size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, s, size);
	if (hashmap__add(&table->strings.index, hash, table->strings.count))
		return -ENOMEM;
	table->strings.data[table->strings.count] = copy;
	return (int64_t)table->strings.count++;
}

const char *strtab__get(const struct strtab *table, uint32_t number)
{
	return number < table->strings.count ? table->strings.data[number] : "";
}

size_t strtab__count(const struct strtab *table)
{
	return table->strings.count;
}

const char *const *strtab__array(const struct strtab *table)
{
	return table->strings.data;
}
