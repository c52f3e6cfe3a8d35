/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of importers: bytes as a profile, or as a failure; what a profile has of each function. */
#ifndef TESTS_UNIT_IMPORT_SUPPORT_H
#define TESTS_UNIT_IMPORT_SUPPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export_support.h"
#include "formats/in/import.h"

struct imported {
	struct profile_builder *b;
	const struct profile *p;
	struct import_failure failure;
	int err;
};

static inline struct imported import_bytes(const void *bytes, size_t size)
{
	struct imported i = {.b = profile_builder__new()};
	/* an allocation of its own, so that a sanitizer sees reads behind it */
	uint8_t *copy = malloc(size + !size);
	const struct import_request request = {
		.name = "file.name", .bytes = copy, .size = size, .builder = i.b};
	char why[256] = "";

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	i.err = import_profile(&request, &i.failure);
	free(copy);
	if (!i.err && profile_builder__finish(i.b, &i.p, why, sizeof(why)))
		fail_msg("%s", why);
	return i;
}

static inline struct imported import_text(const char *text)
{
	return import_bytes(text, strlen(text));
}

static inline struct imported import_good(const char *text)
{
	struct imported i = import_text(text);

	if (i.err)
		fail_msg("refused at %llu: %s", (unsigned long long)i.failure.offset,
			 i.failure.what);
	return i;
}

static inline void import_done(struct imported *i)
{
	profile_builder__free(i->b);
}

/* A file that is refused, the error, and a part of the sentence. Of offset: NULL, or text where it is. */
struct refused {
	const char *text;
	int err;
	const char *part, *where;
};

static inline void check_refused(const struct refused *cases, size_t count)
{
	for (size_t n = 0; n < count; n++) {
		struct imported i = import_text(cases[n].text);

		if (i.err != cases[n].err || !strstr(i.failure.what, cases[n].part))
			fail_msg("case %zu: %d, \"%s\"", n, i.err, i.failure.what);
		if (cases[n].where &&
		    i.failure.offset !=
			    (uint64_t)(strstr(cases[n].text, cases[n].where) - cases[n].text))
			fail_msg("case %zu: offset %llu", n, (unsigned long long)i.failure.offset);
		import_done(&i);
	}
}

/* Every beginning of a text is refused, and nothing breaks. But those that `complete` says. */
static inline void check_every_cut(const char *text, size_t shortest_complete)
{
	for (size_t size = 0; size < shortest_complete; size++) {
		struct imported i = import_bytes(text, size);

		if (!i.err)
			fail_msg("the first %zu bytes were taken", size);
		assert_true(*i.failure.what);
		import_done(&i);
	}
}

/* The leaf's name of a row */
static inline const char *leaf(const struct profile *p, struct stack_id stack)
{
	const struct profile_location *l = &p->locations[p->stacks[stack.v].location.v];

	return profile__string(p, p->functions[p->lines[l->first_line].function.v].name);
}

struct sums {
	uint64_t ticks, weight;
};

/* Of all CPU samples whose leaf has this name. */
static inline struct sums self_of(const struct profile *p, const char *name)
{
	struct sums sums = {};

	for (size_t t = 1; t < p->thread_count; t++) {
		const struct profile_samples *s = &p->threads[t].samples[SAMPLE_CPU];

		for (size_t i = 0; i < s->count; i++) {
			if (strcmp(leaf(p, s->stack[i]), name))
				continue;
			sums.ticks += profile_samples__ticks(s, i);
			sums.weight += s->weight[i];
		}
	}
	return sums;
}

static inline const struct profile_function *function_named(const struct profile *p,
							    const char *name)
{
	for (size_t i = 1; i < p->function_count; i++)
		if (!strcmp(profile__string(p, p->functions[i].name), name))
			return &p->functions[i];
	fail_msg("no function %s", name);
	return NULL;
}

static inline uint32_t depth_of(const struct profile *p, struct stack_id stack)
{
	return p->stacks[stack.v].depth;
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#endif
