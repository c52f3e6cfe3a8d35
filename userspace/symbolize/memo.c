/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/memo.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/strtab.h"

struct memo_entry {
	const void *place;
	uint32_t text;
};

DEFINE_MAP_BY(memo_map, struct memo_entry, const void *, place);

struct memo {
	struct memo_map entries;
	struct strtab *texts;
};

struct memo *memo__new(void)
{
	struct memo *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->texts = strtab__new();
	if (m->texts)
		return m;
	memo__free(m);
	return NULL;
}

void memo__free(struct memo *m)
{
	if (!m)
		return;
	memo_map__fini(&m->entries);
	strtab__free(m->texts);
	free(m);
}

const char *memo__get(const struct memo *m, const void *place)
{
	const struct memo_entry *entry = memo_map__find(&m->entries, place);

	return entry ? strtab__get(m->texts, entry->text) : NULL;
}

const char *memo__put(struct memo *m, const void *place, const char *text)
{
	int64_t number = strtab__intern(m->texts, text);

	if (number < 0 ||
	    !memo_map__need(&m->entries, &(struct memo_entry){place, (uint32_t)number}, NULL))
		return NULL;
	return strtab__get(m->texts, (uint32_t)number);
}
