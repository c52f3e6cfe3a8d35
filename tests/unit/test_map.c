/* SPDX-License-Identifier: BSD-2-Clause */
/* Typed maps against a naive model: growth, removal, collisions, and no memory. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/map.h"

#define KEYS 1000u

struct number {
	uint32_t key;
	uint64_t value;
};

DEFINE_MAP_BY(number_map, struct number, uint32_t, key);

struct text {
	char key[16];
	int value;
};

DEFINE_MAP_BY_STRING(text_map, struct text, key);
DEFINE_SET(number_set, uint64_t);

/* All keys have one of four hashes. */
static uint64_t poor_hash(const struct number *n)
{
	return n->key % 4;
}

static bool same_key(const struct number *a, const struct number *b)
{
	return a->key == b->key;
}

DEFINE_MAP_OF(poor_map, struct number, poor_hash, same_key);

/* A key that lies in the object around the map. */
struct around {
	const char *names;
	MAP_TYPE(first_map, uint32_t) firsts;
};

static const char *name_of(const struct first_map *map, const uint32_t *first)
{
	const char *object = (const char *)map - offsetof(struct around, firsts);

	return ((const struct around *)object)->names + *first;
}

MAP_FUNCTIONS(first_map, uint32_t, const char *, name_of, hash_string, map_same_string);

static uint32_t random_below(uint32_t limit)
{
	static uint64_t state = 42;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(state >> 33) % limit;
}

TEST(adds_once)
{
	struct number_map m = {};
	struct number *n;
	bool is_new;

	assert_null(number_map__find(&m, 7));
	n = number_map__need(&m, &(struct number){.key = 7}, &is_new);
	assert_true(is_new);
	assert_int_equal(n->value, 0);
	n->value = 3;
	n = number_map__need(&m, &(struct number){.key = 7, .value = 9}, &is_new);
	assert_false(is_new);
	assert_int_equal(n->value, 3);
	assert_ptr_equal(number_map__find(&m, 7), n);
	assert_int_equal(m.count, 1);
	number_map__fini(&m);
	number_map__fini(&m);
	assert_null(m.data);
}

TEST(keeps_the_order_of_adding)
{
	struct number_map m = {}, moved;

	for (uint32_t i = 0; i < 10000; i++)
		assert_non_null(number_map__need(&m, &(struct number){i * 4096, i}, NULL));
	moved = m; /* nothing points back at a map */
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(moved.data[i].value, i);
		assert_ptr_equal(number_map__find(&moved, i * 4096), &moved.data[i]);
	}
	number_map__fini(&moved);
}

/* Adds, removes and looks up as the model does, whatever the hash is. */
#define agree_with_model(MAP, FIND)                                                                \
	do {                                                                                       \
		struct MAP m = {};                                                                 \
		bool present[KEYS] = {};                                                           \
		size_t count = 0;                                                                  \
                                                                                                   \
		for (int step = 0; step < 40000; step++) {                                         \
			struct number n = {.key = random_below(KEYS)},                             \
				      *found = MAP##__find(&m, FIND);                              \
			bool is_new;                                                               \
                                                                                                   \
			assert_int_equal(found != NULL, present[n.key]);                           \
			if (found) {                                                               \
				assert_int_equal(found->value, n.key + 1);                         \
				MAP##__remove(&m, found);                                          \
			} else {                                                                   \
				found = MAP##__need(&m, &n, &is_new);                              \
				assert_true(found &&is_new);                                       \
				found->value = n.key + 1;                                          \
			}                                                                          \
			present[n.key] = !present[n.key];                                          \
			count += present[n.key] ? 1 : -1;                                          \
			assert_int_equal(m.count, count);                                          \
		}                                                                                  \
		for (struct number n = {}; n.key < KEYS; n.key++)                                  \
			assert_int_equal(MAP##__find(&m, FIND) != NULL, present[n.key]);           \
		assert_true(m.index.capacity <= 4 * KEYS); /* tombstones do not make it grow */    \
		MAP##__fini(&m);                                                                   \
	} while (0)

TEST(agrees_with_model)
{
	agree_with_model(number_map, n.key);
}

TEST(survives_collisions)
{
	agree_with_model(poor_map, &n);
}

TEST(removes_in_a_loop)
{
	_cleanup_(number_map__fini) struct number_map m = {};

	for (uint32_t i = 0; i < KEYS; i++)
		assert_non_null(number_map__need(&m, &(struct number){i, i}, NULL));
	for (size_t i = m.count; i-- > 0;)
		if (m.data[i].key % 3)
			number_map__remove(&m, &m.data[i]);
	assert_int_equal(m.count, (KEYS + 2) / 3);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(number_map__find(&m, i) != NULL, i % 3 == 0);
}

static int compare_falling(const void *a, const void *b)
{
	const struct number *x = a, *y = b;

	return x->key < y->key ? 1 : x->key > y->key ? -1 : 0;
}

TEST(finds_after_reindex)
{
	_cleanup_(number_map__fini) struct number_map m = {};

	for (uint32_t i = 0; i < KEYS; i++)
		assert_non_null(number_map__need(&m, &(struct number){i, i}, NULL));
	qsort(m.data, m.count, sizeof(*m.data), compare_falling);
	m.count = KEYS / 2;
	number_map__reindex(&m);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_ptr_equal(number_map__find(&m, i),
				 i < KEYS / 2 ? NULL : &m.data[KEYS - 1 - i]);
	number_map__clear(&m);
	assert_null(number_map__find(&m, KEYS - 1));
	assert_non_null(number_map__need(&m, &(struct number){5, 5}, NULL));
}

TEST(has_other_keys)
{
	struct around around = {.names = "one\0two\0three"};
	_cleanup_(number_set__fini) struct number_set set = {};
	_cleanup_(text_map__fini) struct text_map texts = {};
	uint32_t two = 4;

	assert_non_null(text_map__need(&texts, &(struct text){"main", 1}, NULL));
	assert_non_null(text_map__need(&texts, &(struct text){"", 2}, NULL));
	assert_int_equal(text_map__find(&texts, "main")->value, 1);
	assert_int_equal(text_map__find(&texts, "")->value, 2);
	assert_null(text_map__find(&texts, "mai"));
	assert_non_null(number_set__need(&set, &(uint64_t){UINT64_MAX}, NULL));
	assert_int_equal(*number_set__find(&set, UINT64_MAX), UINT64_MAX);
	assert_null(number_set__find(&set, UINT32_MAX));
	assert_non_null(first_map__need(&around.firsts, &two, NULL));
	assert_int_equal(*first_map__find(&around.firsts, "two"), 4);
	assert_null(first_map__find(&around.firsts, "three"));
	first_map__fini(&around.firsts);
}

TEST(has_placeholders)
{
	_cleanup_(number_map__fini) struct number_map m = {};

	assert_int_equal(vec_push(&m, (struct number){}), 0);
	assert_null(number_map__find(&m, 0));
	assert_ptr_equal(number_map__need(&m, &(struct number){.key = 0}, NULL), &m.data[1]);
	assert_ptr_equal(number_map__find(&m, 0), &m.data[1]);
}

/* The linker has the map's calls come here (tests.mk): there is no memory for more than so many bytes. */
static size_t memory_limit = SIZE_MAX;

void *__real_malloc(size_t size);
void *__real_realloc(void *data, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *data, size_t size);

void *__wrap_malloc(size_t size)
{
	return size > memory_limit ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *data, size_t size)
{
	return size > memory_limit ? NULL : __real_realloc(data, size);
}

TEST(stays_whole_without_memory)
{
	_cleanup_(number_map__fini) struct number_map m = {};
	uint32_t key = 0;
	size_t count;

	memory_limit = 4u << 20;
	while (number_map__need(&m, &(struct number){key, key}, NULL))
		key++;
	count = m.count;
	for (int i = 0; i < 10; i++)
		assert_null(number_map__need(&m, &(struct number){key, key}, NULL));
	memory_limit = SIZE_MAX;
	assert_true(count > 25000);
	assert_int_equal(m.count, count);
	assert_int_equal(m.index.count, count);
	assert_null(number_map__find(&m, key));
	for (uint32_t i = 0; i < key; i += 97)
		assert_ptr_equal(number_map__find(&m, i), &m.data[i]);
	number_map__remove(&m, &m.data[0]);
	assert_non_null(number_map__need(&m, &(struct number){key, key}, NULL));
}
