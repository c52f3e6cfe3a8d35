/* SPDX-License-Identifier: BSD-2-Clause */
/* vec, hashmap and strtab. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/strtab.h"
#include "base/vec.h"

static uint64_t random_state = 42;

TEST(vec_grows_and_keeps)
{
	VEC(int) v = {};

	for (int i = 0; i < 10000; i++)
		assert_int_equal(vec_push(&v, i), 0);
	assert_int_equal(v.count, 10000);
	assert_true(v.capacity >= 10000 && v.capacity < 20000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(v.data[i], i);
	vec_free(&v);
	assert_null(v.data);
	assert_int_equal(v.capacity, 0);
}

TEST(vec_refuses_overflow)
{
	VEC(uint64_t) v = {};
	uint64_t *before;

	assert_int_equal(vec_push(&v, 7), 0);
	before = v.data;
	assert_int_equal(vec_reserve(&v, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(&v, SIZE_MAX / 8 + 1), -ENOMEM);
	assert_int_equal(vec_reserve(&v, SIZE_MAX / 16 + 1), -ENOMEM);
	assert_ptr_equal(v.data, before);
	assert_int_equal(v.data[0], 7);
	vec_free(&v);
}

TEST(vec_reserves_exactly_large)
{
	VEC(char) v = {};

	assert_int_equal(vec_reserve(&v, 12345), 0);
	assert_true(v.capacity >= 12345);
	assert_int_equal(v.count, 0);
	vec_free(&v);
}

/* ---- hashmap --------------------------------------------------------------------------------- */

#define KEYS 2000

/* The naive model: present[key], with element number = key. */
struct model {
	uint64_t keys[KEYS];
	bool present[KEYS];
	uint64_t hash_mask; /* few bits: many collisions */
};

/* The element with this key, or HASHMAP_NONE. */
static uint32_t find_key(const struct hashmap *map, const struct model *m, uint64_t key)
{
	uint32_t i;

	hashmap_each (map, hash_u64(key) & m->hash_mask, i)
		if (m->keys[i] == key)
			break;
	return i;
}

static void check_all(const struct hashmap *map, const struct model *m)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		assert_int_equal(find_key(map, m, m->keys[i]), m->present[i] ? i : HASHMAP_NONE);
		count += m->present[i];
	}
	assert_int_equal(map->count, count);
	assert_true(map->count + map->tombstones <= map->capacity);
}

static void run_against_model(uint64_t hash_mask)
{
	_cleanup_free_ struct model *m = calloc(1, sizeof(*m));
	struct hashmap map = {};

	assert_non_null(m);
	m->hash_mask = hash_mask;
	for (uint32_t i = 0; i < KEYS; i++)
		m->keys[i] = i * UINT64_C(4096);
	for (int step = 0; step < 60000; step++) {
		uint32_t i = next_random(&random_state) % KEYS;
		uint64_t hash = hash_u64(m->keys[i]) & hash_mask;

		if (next_random(&random_state) % 20000 == 0) {
			hashmap__clear(&map);
			memset(m->present, 0, sizeof(m->present));
		} else if (m->present[i]) {
			assert_int_equal(find_key(&map, m, m->keys[i]), i);
			hashmap__erase(&map, hash, i);
			m->present[i] = false;
		} else {
			assert_int_equal(find_key(&map, m, m->keys[i]), HASHMAP_NONE);
			assert_int_equal(hashmap__add(&map, hash, i), 0);
			m->present[i] = true;
		}
		if (step % 5000 == 0)
			check_all(&map, m);
	}
	check_all(&map, m);
	assert_true(map.capacity <= 8 * KEYS); /* tombstones do not make it grow */
	hashmap__fini(&map);
	hashmap__fini(&map);
}

TEST(hashmap_agrees_with_model)
{
	run_against_model(UINT64_MAX);
}

TEST(hashmap_survives_collisions)
{
	run_against_model(0x3f);
}

TEST(hashmap_empty)
{
	const struct model m = {};
	_cleanup_(hashmap__fini) struct hashmap map = {};

	assert_int_equal(find_key(&map, &m, 1), HASHMAP_NONE);
	hashmap__clear(&map);
	assert_int_equal(hashmap__add(&map, 0, HASHMAP_NONE), -ENOMEM);
	assert_int_equal(hashmap__add(&map, 0, HASHMAP_NONE - 1), -ENOMEM);
	assert_int_equal(hashmap__add(&map, 0, (size_t)UINT32_MAX + 1), -ENOMEM);
}

TEST(hashmap_reuses_tombstones)
{
	_cleanup_(hashmap__fini) struct hashmap map = {};

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(hashmap__add(&map, 99, 0), 0);
		assert_int_equal(map.tombstones, 0);
		hashmap__erase(&map, 99, 0);
		assert_int_equal(map.tombstones, 1);
	}
	assert_int_equal(map.capacity, 16);
}

TEST(hashes_depend_on_everything)
{
	static const char text[] = "0123456789abcdef0";

	for (size_t i = 0; i < sizeof(text); i++) {
		for (size_t j = 0; j < i; j++)
			assert_true(hash_bytes(text, i) != hash_bytes(text, j));
	}
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		char other[sizeof(text)];

		memcpy(other, text, sizeof(text));
		other[i] ^= 1;
		assert_true(hash_string(other) != hash_string(text));
	}
	assert_true(hash_string(text) == hash_bytes(text, strlen(text)));
	assert_true(hash_combine(1, 2) != hash_combine(2, 1));
	assert_true(hash_u64(1) != hash_u64(2));
}

/* ---- strtab ---------------------------------------------------------------------------------- */

TEST(strtab_interns)
{
	struct strtab *t = strtab__new();
	const char *first;

	assert_non_null(t);
	assert_int_equal(strtab__count(t), 1);
	assert_string_equal(strtab__get(t, 0), "");
	assert_int_equal(strtab__intern(t, ""), 0);
	assert_int_equal(strtab__intern(t, "main"), 1);
	first = strtab__get(t, 1);
	for (int i = 0; i < 50000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%d", i);
		assert_int_equal(strtab__intern(t, name), i + 2);
	}
	assert_ptr_equal(strtab__get(t, 1), first); /* never moves */
	assert_int_equal(strtab__intern(t, "main"), 1);
	assert_int_equal(strtab__intern(t, "function_4711"), 4713);
	assert_string_equal(strtab__get(t, 4713), "function_4711");
	assert_int_equal(strtab__count(t), 50002);
	assert_string_equal(strtab__array(t)[4713], "function_4711");
	assert_string_equal(strtab__get(t, 50002), "");
	assert_string_equal(strtab__get(t, UINT32_MAX), "");
	strtab__free(t);
	strtab__free(NULL);
}

TEST(strtab_takes_large_strings)
{
	struct strtab *t = strtab__new();
	size_t sizes[] = {8190, 8191, 8192, 65534, 65535, 65536, 65537, 1 << 20};
	_cleanup_free_ char *text = malloc((1 << 20) + 1);
	int64_t numbers[8];

	assert_non_null(t);
	assert_non_null(text);
	for (int i = 0; i < 8; i++) {
		memset(text, 'a' + i, sizes[i]);
		text[sizes[i]] = '\0';
		numbers[i] = strtab__intern(t, text);
		assert_int_equal(numbers[i], 2 * i + 1);
		assert_int_equal(strtab__intern(t, text), numbers[i]);
		snprintf(text, 32, "small %d", i);
		assert_int_equal(strtab__intern(t, text), 2 * i + 2);
	}
	for (int i = 0; i < 8; i++) {
		const char *s = strtab__get(t, numbers[i]);

		assert_int_equal(strlen(s), sizes[i]);
		assert_int_equal(s[0], 'a' + i);
		assert_int_equal(s[sizes[i] - 1], 'a' + i);
	}
	strtab__free(t);
}
