/* SPDX-License-Identifier: BSD-2-Clause */
/* A text that several lives have: counted references, so that a fork copies nothing. */
#ifndef PROCESS_SHARED_TEXT_H
#define PROCESS_SHARED_TEXT_H

#include <stdlib.h>
#include <string.h>

struct shared_text {
	unsigned int refs;
	char text[];
};

static inline struct shared_text *shared_text__new(const char *text) /* NULL: no memory */
{
	size_t size = strlen(text) + 1;
	struct shared_text *t = malloc(sizeof(*t) + size);

	if (!t)
		return NULL;
	t->refs = 1;
	memcpy(t->text, text, size);
	return t;
}

/* NULL stays NULL. */
static inline struct shared_text *shared_text__ref(struct shared_text *t)
{
	if (t)
		t->refs++;
	return t;
}

static inline void shared_text__unref(struct shared_text *t)
{
	if (t && !--t->refs)
		free(t);
}

#endif
