/* SPDX-License-Identifier: BSD-2-Clause */
/* Places of strings -> texts that were made from them. */
#include "symbolize/memo.h"

#include <stdlib.h>

#include "base/hashmap.h"
#include "base/strtab.h"
#include "base/vec.h"

struct memo_entry {
	const void *place;
	uint32_t text;
};

struct memo {
	struct hashmap map;
	VEC(struct memo_entry) entries;
	struct strtab *texts;
};

static bool entry_equals(const void *owner, uint32_t index, const void *key)
{
	const struct memo *m = owner;

	return m->entries.data[index].place == key;
}

struct memo *memo__new(void)
{
	struct memo *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	hashmap__init(&m->map, entry_equals, m);
	m->texts = strtab__new();
	if (!m->texts)
		goto err_out;
	return m;

err_out:
	memo__free(m);
	return NULL;
}

void memo__free(struct memo *m)
{
	if (!m)
		return;
	hashmap__fini(&m->map);
	vec_free(&m->entries);
	strtab__free(m->texts);
	free(m);
}

const char *memo__get(const struct memo *m, const void *place)
{
	uint32_t index = hashmap__find(&m->map, hash_u64((uintptr_t)place), place);

	return index == HASHMAP_NONE ? NULL : strtab__get(m->texts, m->entries.data[index].text);
}

const char *memo__put(struct memo *m, const void *place, const char *text)
{
	int64_t number = strtab__intern(m->texts, text);

	if (number < 0 || vec_push(&m->entries, (struct memo_entry){place, (uint32_t)number}) ||
	    hashmap__add(&m->map, hash_u64((uintptr_t)place), (uint32_t)m->entries.count - 1))
		return NULL;
	return strtab__get(m->texts, (uint32_t)number);
}
