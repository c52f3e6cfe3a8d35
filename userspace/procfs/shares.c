/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/shares.h"

#include <errno.h>
#include <stdlib.h>

void shares__fini(struct shares *s)
{
	vec_free(&s->all);
}

/* Its number, or the count. */
static size_t find_share(const struct shares *s, uint64_t owner)
{
	size_t i = 0;

	while (i < s->all.count && s->all.data[i].owner != owner)
		i++;
	return i;
}

int shares__add(struct shares *s, uint64_t owner)
{
	size_t i = find_share(s, owner);

	if (i == s->all.count)
		return vec_push(&s->all, ((struct share){owner, 1}));
	s->all.data[i].count++;
	return 0;
}

void shares__drop(struct shares *s, uint64_t owner)
{
	size_t i = find_share(s, owner);

	if (i < s->all.count && --s->all.data[i].count == 0)
		s->all.data[i] = s->all.data[--s->all.count];
}

bool shares__most(const struct shares *s, uint64_t owner, uint64_t *most)
{
	size_t own = find_share(s, owner), best = 0;
	size_t count = own < s->all.count ? s->all.data[own].count : 0;

	for (size_t i = 1; i < s->all.count; i++)
		if (s->all.data[i].count > s->all.data[best].count)
			best = i;
	if (!s->all.count || s->all.data[best].count <= count + 1)
		return false;
	*most = s->all.data[best].owner;
	return true;
}
