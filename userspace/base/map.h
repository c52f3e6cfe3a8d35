/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Typed maps. One line declares a map of entries of one type, found by a key:
 *
 *	DEFINE_MAP_BY(process_map, struct process, pid_t, pid);
 *
 *	struct process_map known = {};
 *	struct process *p = process_map__need(&known, &(struct process){.pid = pid}, &is_new);
 *
 * Entries lie in a vector in the order of addition; `index` (base/hashmap.h) finds their numbers by
 * the hashes of their keys. The map has the fields of a VEC: iterate over `m.data[i]`, i < m.count.
 * Output in that order does not depend on the key of the hashes. A map of zeros is empty and may be
 * moved in memory. An entry and its place in the index appear together or not at all.
 *
 * A pointer to an entry is valid until the next addition or removal, its number until the next
 * removal, which moves the last entry into the gap. To sort entries or drop many (half of a cache),
 * the owner changes `data` and `count` as it likes and then calls reindex, which needs no memory.
 *
 * An entry that vec_push() adds is in no index: a placeholder with number 0, for example.
 *
 *	NAME__find(m, key)		the entry, or NULL
 *	NAME__need(m, &entry, &is_new)	the entry with the key of `entry`; adds a copy if missing.
 *					NULL: no memory, map unchanged. `is_new` may be NULL.
 *	NAME__remove(m, entry)		takes it out; a loop that removes runs from last to first
 *	NAME__reindex(m)		after rearranging or dropping entries, not after adding
 *	NAME__clear(m), NAME__fini(m)	what entries own is the caller's to free
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hashmap.h"
#include "base/vec.h"

/* The key is a field: a number or a pointer. */
#define DEFINE_MAP_BY(NAME, TYPE, KEY, FIELD)                                                      \
	MAP_TYPE(NAME, TYPE);                                                                      \
	MAP_FUNCTIONS_BY(NAME, TYPE, KEY, FIELD)

/* The key is a field: a string. */
#define DEFINE_MAP_BY_STRING(NAME, TYPE, FIELD)                                                    \
	MAP_TYPE(NAME, TYPE);                                                                      \
	MAP_FUNCTIONS_BY_STRING(NAME, TYPE, FIELD)

/*
 * The key is the entry: `uint64_t hash(const TYPE *)` and `bool equal(const TYPE *, const TYPE *)`
 * look at the fields that identify it.
 */
#define DEFINE_MAP_OF(NAME, TYPE, hash, equal)                                                     \
	MAP_TYPE(NAME, TYPE);                                                                      \
	MAP_FUNCTIONS_OF(NAME, TYPE, hash, equal)

/* The key is all bytes of the entry, which has no padding. */
#define DEFINE_MAP_OF_BYTES(NAME, TYPE)                                                            \
	MAP_TYPE(NAME, TYPE);                                                                      \
	MAP_FUNCTIONS_OF_BYTES(NAME, TYPE)

/* The entries are numbers: each is its own key. */
#define DEFINE_SET(NAME, TYPE)                                                                     \
	MAP_TYPE(NAME, TYPE);                                                                      \
	MAP_FUNCTIONS_SET(NAME, TYPE)

#undef MAP_TYPE /* a mask of sys/mman.h, which nothing uses */

/* The two halves of the above, for a struct in a header whose functions only one file needs. */
#define MAP_TYPE(NAME, TYPE)                                                                       \
	struct NAME {                                                                              \
		TYPE *data;                                                                        \
		size_t count, capacity;                                                            \
		struct hashmap index;                                                              \
	}

#define MAP_FUNCTIONS_BY(NAME, TYPE, KEY, FIELD)                                                   \
	MAP_KEY(NAME, TYPE, KEY, entry->FIELD)                                                     \
	MAP_FUNCTIONS(NAME, TYPE, KEY, NAME##__key, map_hash_number, map_same_number)

#define MAP_FUNCTIONS_BY_STRING(NAME, TYPE, FIELD)                                                 \
	MAP_KEY(NAME, TYPE, const char *, entry->FIELD)                                            \
	MAP_FUNCTIONS(NAME, TYPE, const char *, NAME##__key, hash_string, map_same_string)

/* The key is a field: a struct without padding. */
#define MAP_FUNCTIONS_BY_BYTES(NAME, TYPE, KEY, FIELD)                                             \
	MAP_KEY(NAME, TYPE, KEY const *, &entry->FIELD)                                            \
	MAP_FUNCTIONS(NAME, TYPE, KEY const *, NAME##__key, map_hash_bytes, map_same_bytes)

/* The key is a number of 64 bits that identifies `entry`. */
#define MAP_FUNCTIONS_BY_NUMBER(NAME, TYPE, NUMBER)                                                \
	MAP_KEY(NAME, TYPE, uint64_t, NUMBER)                                                      \
	MAP_FUNCTIONS(NAME, TYPE, uint64_t, NAME##__key, map_hash_number, map_same_number)

#define MAP_FUNCTIONS_OF(NAME, TYPE, hash, equal)                                                  \
	MAP_KEY(NAME, TYPE, TYPE const *, entry)                                                   \
	MAP_FUNCTIONS(NAME, TYPE, TYPE const *, NAME##__key, hash, equal)

#define MAP_FUNCTIONS_OF_BYTES(NAME, TYPE)                                                         \
	MAP_FUNCTIONS_OF(NAME, TYPE, map_hash_bytes, map_same_bytes)

#define MAP_FUNCTIONS_SET(NAME, TYPE)                                                              \
	MAP_KEY(NAME, TYPE, TYPE, *entry)                                                          \
	MAP_FUNCTIONS(NAME, TYPE, TYPE, NAME##__key, map_hash_number, map_same_number)

#define MAP_KEY(NAME, TYPE, KEY, EXPRESSION)                                                       \
	__attribute__((unused)) static inline KEY NAME##__key(const struct NAME *map,              \
							      TYPE const *entry)                   \
	{                                                                                          \
		(void)map;                                                                         \
		return EXPRESSION;                                                                 \
	}

/* *number is that of the entry that NAME__need() returned. 0; -ENOMEM: it is NULL. */
#define map_number(map, needed, number)                                                            \
	({                                                                                         \
		__auto_type needed_ = (needed);                                                    \
		if (needed_)                                                                       \
			*(number) = (uint32_t)(needed_ - (map)->data);                             \
		needed_ ? 0 : -ENOMEM;                                                             \
	})

#define map_hash_number(key)  hash_u64((uint64_t)(uintptr_t)(key))
#define map_same_number(a, b) ((a) == (b))
#define map_same_string(a, b) (!strcmp((a), (b)))
#define map_hash_bytes(key)   hash_bytes((key), sizeof(*(key)))
#define map_same_bytes(a, b)  (!memcmp((a), (b), sizeof(*(a))))

/*
 * The general form. `key_of(map, entry)` gives the KEY of an entry, which may lie in the object
 * around the map (map_owner); `hash(key)` and `equal(key, key)` as above.
 */
#define map_owner(map, TYPE, MEMBER) ((const TYPE *)((const char *)(map)-offsetof(TYPE, MEMBER)))

#define MAP_FUNCTIONS(NAME, TYPE, KEY, key_of, hash, equal)                                        \
	__attribute__((unused)) static inline TYPE *NAME##__at(const struct NAME *map,             \
							       uint64_t hash_, KEY key)            \
	{                                                                                          \
		struct hashmap_probe probe = hashmap__probe(hash_);                                \
		uint32_t i;                                                                        \
                                                                                                   \
		while ((i = hashmap__next(&map->index, &probe)) != HASHMAP_NONE)                   \
			if (equal(key_of(map, &map->data[i]), key))                                \
				return &map->data[i];                                              \
		return NULL;                                                                       \
	}                                                                                          \
	__attribute__((unused)) static inline TYPE *NAME##__find(const struct NAME *map, KEY key)  \
	{                                                                                          \
		return NAME##__at(map, hash(key), key);                                            \
	}                                                                                          \
	__attribute__((unused)) static inline TYPE *NAME##__need(struct NAME *map,                 \
								 TYPE const *entry, bool *is_new)  \
	{                                                                                          \
		uint64_t hash_ = hash(key_of(map, entry));                                         \
		TYPE *known = NAME##__at(map, hash_, key_of(map, entry));                          \
                                                                                                   \
		if (is_new)                                                                        \
			*is_new = !known;                                                          \
		if (known)                                                                         \
			return known;                                                              \
		if (vec_reserve(map, map->count + 1) ||                                            \
		    hashmap__add(&map->index, hash_, map->count))                                  \
			return NULL;                                                               \
		map->data[map->count] = *entry;                                                    \
		return &map->data[map->count++];                                                   \
	}                                                                                          \
	__attribute__((unused)) static inline void NAME##__remove(struct NAME *map, TYPE *entry)   \
	{                                                                                          \
		TYPE *last = &map->data[map->count - 1];                                           \
                                                                                                   \
		hashmap__erase(&map->index, hash(key_of(map, entry)), entry - map->data);          \
		if (entry != last) {                                                               \
			hashmap__renumber(&map->index, hash(key_of(map, last)), last - map->data,  \
					  entry - map->data);                                      \
			*entry = *last;                                                            \
		}                                                                                  \
		map->count--;                                                                      \
	}                                                                                          \
	__attribute__((unused)) static inline void NAME##__reindex(struct NAME *map)               \
	{                                                                                          \
		hashmap__reset(&map->index);                                                       \
		for (size_t i = 0; i < map->count; i++)                                            \
			(void)hashmap__add(&map->index, hash(key_of(map, &map->data[i])), i);      \
	}                                                                                          \
	__attribute__((unused)) static inline void NAME##__clear(struct NAME *map)                 \
	{                                                                                          \
		hashmap__clear(&map->index);                                                       \
		map->count = 0;                                                                    \
	}                                                                                          \
	__attribute__((unused)) static inline void NAME##__fini(struct NAME *map)                  \
	{                                                                                          \
		hashmap__fini(&map->index);                                                        \
		vec_free(map);                                                                     \
	}                                                                                          \
	struct NAME

#endif
