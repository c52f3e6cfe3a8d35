/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/label_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/vec.h"

struct label_sets {
	VEC(struct label_set *) sets;
	struct hashmap index;
};

struct set_key {
	const struct label_list *list;
	bool excluded;
};

static bool has_labels(const void *owner, uint32_t index, const void *key)
{
	const struct label_set *set = ((const struct label_sets *)owner)->sets.data[index];
	const struct set_key *k = key;

	if (set->service.label_count != k->list->count || set->service.excluded != k->excluded)
		return false;
	for (size_t i = 0; i < k->list->count; i++)
		if (strcmp(set->service.labels[i].name, k->list->labels[i].name) ||
		    strcmp(set->service.labels[i].value, k->list->labels[i].value))
			return false;
	return true;
}

struct label_sets *label_sets__new(void)
{
	struct label_sets *sets = calloc(1, sizeof(*sets));

	if (sets)
		hashmap__init(&sets->index, has_labels, sets);
	return sets;
}

void label_sets__free(struct label_sets *sets)
{
	if (!sets)
		return;
	for (size_t i = 0; i < sets->sets.count; i++)
		free(sets->sets.data[i]);
	hashmap__fini(&sets->index);
	vec_free(&sets->sets);
	free(sets);
}

size_t label_sets__count(const struct label_sets *sets)
{
	return sets->sets.count;
}

void label_list__add(struct label_list *list, const char *name, const char *value)
{
	if (*value && list->count < AGENT_LABELS_MAX && !label_list__get(list, name))
		list->labels[list->count++] = (struct service_label){name, value};
}

const char *label_list__get(const struct label_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->labels[i].name, name))
			return list->labels[i].value;
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	const struct service_label *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static uint64_t hash_labels(const struct service_label *labels, size_t count, bool excluded)
{
	uint64_t hash = hash_u64(excluded);

	for (size_t i = 0; i < count; i++) {
		hash = hash_combine(hash, hash_string(labels[i].name));
		hash = hash_combine(hash, hash_string(labels[i].value));
	}
	return hash;
}

static const char *copy_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = *at;

	memcpy(copy, text, size);
	*at += size;
	return copy;
}

/* In one piece: the set, its labels, their texts. NULL: no memory. */
static struct label_set *make_set(const struct label_list *list, bool excluded)
{
	size_t size = sizeof(struct label_set) + list->count * sizeof(struct service_label);
	struct service_label *labels;
	struct label_set *set;
	char *text;

	for (size_t i = 0; i < list->count; i++)
		size += strlen(list->labels[i].name) + strlen(list->labels[i].value) + 2;
	set = calloc(1, size);
	if (!set)
		return NULL;
	labels = (struct service_label *)(set + 1);
	text = (char *)(labels + list->count);
	for (size_t i = 0; i < list->count; i++) {
		labels[i].name = copy_text(&text, list->labels[i].name);
		labels[i].value = copy_text(&text, list->labels[i].value);
	}
	set->service = (struct agent_service){labels, list->count, excluded};
	return set;
}

struct label_set *label_sets__find(struct label_sets *sets, struct label_list *list, bool excluded,
				   uint64_t window)
{
	const struct set_key key = {list, excluded};
	struct label_set *set;
	uint64_t hash;
	uint32_t index;

	qsort(list->labels, list->count, sizeof(list->labels[0]), compare_names);
	hash = hash_labels(list->labels, list->count, excluded);
	index = hashmap__find(&sets->index, hash, &key);
	if (index != HASHMAP_NONE) {
		sets->sets.data[index]->used = window;
		return sets->sets.data[index];
	}
	set = make_set(list, excluded);
	if (!set)
		return NULL;
	set->used = window;
	if (vec_push(&sets->sets, set)) {
		free(set);
		return NULL;
	}
	if (hashmap__add(&sets->index, hash, (uint32_t)(sets->sets.count - 1))) {
		sets->sets.count--;
		free(set);
		return NULL;
	}
	return set;
}

int label_sets__sweep(struct label_sets *sets, uint64_t window)
{
	size_t kept = 0;
	int err = 0;

	hashmap__clear(&sets->index);
	for (size_t i = 0; i < sets->sets.count; i++) {
		struct label_set *set = sets->sets.data[i];

		if (!set->holds && set->used != window) {
			free(set);
			continue;
		}
		/* one that cannot be found is made a second time, no more */
		err = err ? err
			  : hashmap__add(&sets->index,
					 hash_labels(set->service.labels, set->service.label_count,
						     set->service.excluded),
					 (uint32_t)kept);
		sets->sets.data[kept++] = set;
	}
	sets->sets.count = kept;
	return err;
}
