/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An index over elements that live elsewhere (in a vector): hash -> element number.
 *
 * It holds numbers and hashes; its user compares keys. So one open-addressing table serves strings,
 * stacks, locations, processes and files. base/map.h has typed maps of vectors.
 */
#ifndef BASE_HASHMAP_H
#define BASE_HASHMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASHMAP_NONE	  UINT32_MAX
#define HASHMAP_TOMBSTONE (HASHMAP_NONE - 1)

struct hashmap_slot {
	uint32_t hash, index;
};

/* Zero-initialised: empty. */
struct hashmap {
	struct hashmap_slot *slots;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t count, tombstones;
};

void hashmap__fini(struct hashmap *map);

/* Frees a map that is much larger than what was in it, else as hashmap__reset(). */
void hashmap__clear(struct hashmap *map);

/* The position of a search for a hash. */
struct hashmap_probe {
	uint32_t hash, at;
};

static inline uint32_t hashmap_scramble(uint64_t hash)
{
	return (hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static inline struct hashmap_probe hashmap__probe(uint64_t hash)
{
	uint32_t scrambled = hashmap_scramble(hash);

	return (struct hashmap_probe){scrambled, scrambled};
}

/* The next element with (very probably) this hash, HASHMAP_NONE: there are no more. */
static inline uint32_t hashmap__next(const struct hashmap *map, struct hashmap_probe *probe)
{
	uint32_t mask = map->capacity - 1, hash = probe->hash;

	if (!map->count)
		return HASHMAP_NONE;
	for (uint32_t i = probe->at & mask;; i = (i + 1) & mask) {
		const struct hashmap_slot *slot = &map->slots[i];

		if (slot->index == HASHMAP_NONE)
			return HASHMAP_NONE;
		if (slot->hash == hash && slot->index != HASHMAP_TOMBSTONE) {
			probe->at = i + 1;
			return slot->index;
		}
	}
}

/*
 * `i` (uint32_t) is each element with (very probably) this hash, until `break`; then HASHMAP_NONE.
 * Nothing may be added or erased meanwhile.
 */
#define hashmap_each(map, hash, i)                                                                 \
	for (struct hashmap_probe probe_ = hashmap__probe(hash);                                   \
	     ((i) = hashmap__next((map), &probe_)) != HASHMAP_NONE;)

/* Add an element that is not there yet. 0, -ENOMEM; `index` may be too large for a number. */
int hashmap__add(struct hashmap *map, uint64_t hash, size_t index);
/* Removes the element `index`, added with this hash; or changes its number to `to`. */
void hashmap__erase(struct hashmap *map, uint64_t hash, uint32_t index);
void hashmap__renumber(struct hashmap *map, uint64_t hash, uint32_t index, uint32_t to);
/* Empty it and keep its memory: as many elements as were in it can be added without failure. */
void hashmap__reset(struct hashmap *map);

/* Of this run: chosen before main(). */
extern struct hash_secret {
	uint64_t k0, k1;
} hash_secret;

static inline uint64_t hash_u64(uint64_t value)
{
	value ^= hash_secret.k0;
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

static inline uint64_t hash_combine(uint64_t a, uint64_t b)
{
	return hash_u64(hash_u64(a) + b);
}

uint64_t hash_bytes(const void *data, size_t size);
uint64_t hash_string(const char *s);
/* The same in every process, for data on disk: the others have a new key in each run. */
uint64_t hash_stable(const void *data, size_t size);
/* SipHash-2-4: without the key nothing about the data follows from it. */
uint64_t hash_keyed(const uint64_t key[2], const void *data, size_t size);

#endif
