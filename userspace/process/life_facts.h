/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts of a life, from an EVENT_FACTS: counted references, so a fork copies nothing. */
#ifndef PROCESS_LIFE_FACTS_H
#define PROCESS_LIFE_FACTS_H

#include <stdlib.h>
#include <string.h>

#include <sysprof/event.h>

struct life_facts {
	unsigned int refs;
	enum facts_state state;
	uint32_t count, size;
	char text[]; /* "key\0value\0", `count` times */
};

static inline struct life_facts *life_facts__new(const struct facts_event *e) /* NULL: no memory */
{
	struct life_facts *f = malloc(sizeof(*f) + e->size);

	if (!f)
		return NULL;
	f->refs = 1;
	f->state = (enum facts_state)e->state;
	f->count = e->count;
	f->size = e->size;
	memcpy(f->text, e->text, e->size);
	return f;
}

/* NULL stays NULL. */
static inline struct life_facts *life_facts__ref(struct life_facts *f)
{
	if (f)
		f->refs++;
	return f;
}

static inline void life_facts__unref(struct life_facts *f)
{
	if (f && !--f->refs)
		free(f);
}

#endif
