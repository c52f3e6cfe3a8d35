/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open addressing, linear probing. A slot has 8 bytes: 32 bits of the scrambled hash and the
 * element's number. So keys are rarely compared in vain, and never when the table grows.
 *
 * A removed element leaves a tombstone. Elements and tombstones take 3/4 of the capacity at most,
 * so every probe ends at an empty slot. A table full of tombstones is rebuilt at the same size.
 *
 * Strings come from untrusted files; keys chosen to collide would make each look-up a scan of the
 * table. So byte strings are hashed by SipHash-1-3 with a key that is new in each run. Nothing
 * iterates over a map, so no output depends on the key.
 */
#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define MIN_CAPACITY 16
#define MAX_CAPACITY (UINT32_C(1) << 31)
#define EMPTY	     HASHMAP_NONE
#define TOMBSTONE    HASHMAP_TOMBSTONE

struct hash_secret hash_secret;

/* Before main(), so that no first use has to be synchronised. */
__attribute__((constructor)) static void choose_hash_key(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes from the kernel */

	if (random)
		memcpy(&hash_secret, random, sizeof(hash_secret));
}

void hashmap__fini(struct hashmap *map)
{
	free(map->slots);
	map->slots = NULL;
	map->capacity = map->count = map->tombstones = 0;
}

/* Put an element into the first slot that is free or a tombstone. */
static bool place_index(struct hashmap_slot *slots, uint32_t capacity, uint32_t hash,
			uint32_t index)
{
	uint32_t mask = capacity - 1, i = hash & mask;
	bool was_tombstone;

	while (slots[i].index < TOMBSTONE)
		i = (i + 1) & mask;
	was_tombstone = slots[i].index == TOMBSTONE;
	slots[i] = (struct hashmap_slot){.hash = hash, .index = index};
	return was_tombstone;
}

static int rebuild_slots(struct hashmap *map, uint32_t capacity)
{
	struct hashmap_slot *slots = malloc(capacity * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, capacity * sizeof(*slots)); /* EMPTY */
	for (uint32_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].index < TOMBSTONE)
			place_index(slots, capacity, map->slots[i].hash, map->slots[i].index);
	}
	free(map->slots);
	map->slots = slots;
	map->capacity = capacity;
	map->tombstones = 0;
	return 0;
}

static int make_room(struct hashmap *map)
{
	uint64_t used = (uint64_t)map->count + map->tombstones + 1;
	uint32_t capacity = map->capacity ? map->capacity : MIN_CAPACITY;

	if (used * 4 <= (uint64_t)map->capacity * 3)
		return 0;
	while (((uint64_t)map->count + 1) * 2 > capacity) {
		if (capacity == MAX_CAPACITY)
			return -ENOMEM;
		capacity *= 2;
	}
	return rebuild_slots(map, capacity);
}

int hashmap__add(struct hashmap *map, uint64_t hash, size_t index)
{
	int err = index < TOMBSTONE ? make_room(map) : -ENOMEM;

	if (err)
		return err;
	if (place_index(map->slots, map->capacity, hashmap_scramble(hash), (uint32_t)index))
		map->tombstones--;
	map->count++;
	return 0;
}

/* Frees a large map that was hardly used: clearing it often would cost its size each time. */
void hashmap__clear(struct hashmap *map)
{
	if (map->capacity > MIN_CAPACITY && (map->count + map->tombstones) < map->capacity / 16) {
		hashmap__fini(map);
		return;
	}
	hashmap__reset(map);
}

/* The slot of an element that is in the map. */
static struct hashmap_slot *slot_of(struct hashmap *map, uint64_t hash, uint32_t index)
{
	uint32_t mask = map->capacity - 1, i = hashmap_scramble(hash) & mask;

	while (map->slots[i].index != index)
		i = (i + 1) & mask;
	return &map->slots[i];
}

void hashmap__erase(struct hashmap *map, uint64_t hash, uint32_t index)
{
	slot_of(map, hash, index)->index = TOMBSTONE;
	map->tombstones++;
	map->count--;
}

void hashmap__renumber(struct hashmap *map, uint64_t hash, uint32_t index, uint32_t to)
{
	slot_of(map, hash, index)->index = to;
}

void hashmap__reset(struct hashmap *map)
{
	if (map->slots)
		memset(map->slots, 0xff, map->capacity * sizeof(*map->slots));
	map->count = map->tombstones = 0;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t rotate_left(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

/* Inlined, its state stays in registers: 24 bytes take 19 ns instead of 35. */
__attribute__((always_inline)) static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate_left(v[1], 13) ^ v[0];
	v[3] = rotate_left(v[3], 16) ^ v[2];
	v[0] = rotate_left(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate_left(v[1], 17) ^ v[2];
	v[3] = rotate_left(v[3], 21) ^ v[0];
	v[2] = rotate_left(v[2], 32);
}

static uint64_t sip_hash(uint64_t k0, uint64_t k1, const void *data, size_t size)
{
	uint64_t v[4] = {
		k0 ^ UINT64_C(0x736f6d6570736575),
		k1 ^ UINT64_C(0x646f72616e646f6d),
		k0 ^ UINT64_C(0x6c7967656e657261),
		k1 ^ UINT64_C(0x7465646279746573),
	};
	const unsigned char *byte = data;
	uint64_t word, last = (uint64_t)size << 56;
	size_t left = size;

	for (; left >= sizeof(word); left -= sizeof(word), byte += sizeof(word)) {
		memcpy(&word, byte, sizeof(word));
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)byte[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_bytes(const void *data, size_t size)
{
	return sip_hash(hash_secret.k0, hash_secret.k1, data, size);
}

uint64_t hash_stable(const void *data, size_t size)
{
	return sip_hash(0, 0, data, size);
}

uint64_t hash_keyed(const uint64_t key[2], const void *data, size_t size)
{
	return sip_hash(key[0], key[1], data, size);
}

uint64_t hash_string(const char *s)
{
	return hash_bytes(s, strlen(s));
}
