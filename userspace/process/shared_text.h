/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts that several lives have: counted references, so that a fork copies nothing. */
#ifndef PROCESS_SHARED_TEXT_H
#define PROCESS_SHARED_TEXT_H

#include <stdlib.h>
#include <string.h>

#include <sysprof/event.h>

struct shared_text {
	unsigned int refs;
	char text[];
};

/* Facts, from an EVENT_FACTS. */
struct life_facts {
	unsigned int refs;
	enum facts_state state;
	uint32_t count, size;
	char text[]; /* "key\0value\0", `count` times */
};

/* NULL stays NULL. */
#define shared_ref(shared)                                                                         \
	({                                                                                         \
		__auto_type shared_ = (shared);                                                    \
		if (shared_)                                                                       \
			shared_->refs++;                                                           \
		shared_;                                                                           \
	})
#define shared_unref(shared)                                                                       \
	do {                                                                                       \
		__auto_type shared_ = (shared);                                                    \
		if (shared_ && !--shared_->refs)                                                   \
			free(shared_);                                                             \
	} while (0)

/* NULL: no memory, as the next one. */
static inline struct shared_text *shared_text__new(const char *text)
{
	size_t size = strlen(text) + 1;
	struct shared_text *t = malloc(sizeof(*t) + size);

	if (!t)
		return NULL;
	t->refs = 1;
	memcpy(t->text, text, size);
	return t;
}

static inline struct life_facts *life_facts__new(const struct facts_event *e)
{
	struct life_facts *f = malloc(sizeof(*f) + e->size);

	if (!f)
		return NULL;
	*f = (struct life_facts){1, (enum facts_state)e->state, e->count, e->size};
	memcpy(f->text, e->text, e->size);
	return f;
}

#endif
