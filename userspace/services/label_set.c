/* SPDX-License-Identifier: BSD-2-Clause */
#include "services/label_set.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_url.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/utf8.h"

const char *labeled_service__label(const struct labeled_service *service, const char *name)
{
	for (size_t i = 0; i < service->label_count; i++)
		if (!strcmp(service->labels[i].name, name))
			return service->labels[i].value;
	return NULL;
}

static bool same_labels(const struct labeled_service *a, const struct labeled_service *b)
{
	if (a->label_count != b->label_count || a->excluded != b->excluded)
		return false;
	for (size_t i = 0; i < a->label_count; i++)
		if (strcmp(a->labels[i].name, b->labels[i].name) ||
		    strcmp(a->labels[i].value, b->labels[i].value))
			return false;
	return true;
}

static uint64_t hash_labels(const struct labeled_service *service)
{
	uint64_t hash = hash_u64(service->excluded);

	for (size_t i = 0; i < service->label_count; i++) {
		hash = hash_combine(hash, hash_string(service->labels[i].name));
		hash = hash_combine(hash, hash_string(service->labels[i].value));
	}
	return hash;
}

MAP_TYPE(set_map, struct label_set *);
MAP_KEY(set_map, struct label_set *, const struct labeled_service *, &(*entry)->service)
MAP_FUNCTIONS(set_map, struct label_set *, const struct labeled_service *, set_map__key,
	      hash_labels, same_labels);

struct label_sets {
	struct set_map sets;
};

struct label_sets *label_sets__new(void)
{
	return calloc(1, sizeof(struct label_sets));
}

void label_sets__free(struct label_sets *sets)
{
	if (!sets)
		return;
	for (size_t i = 0; i < sets->sets.count; i++)
		free(sets->sets.data[i]);
	set_map__fini(&sets->sets);
	free(sets);
}

size_t label_sets__count(const struct label_sets *sets)
{
	return sets->sets.count;
}

void label_list__add(struct label_list *list, const char *name, const char *value)
{
	if (*value && list->count < LABELS_MAX && !label_list__get(list, name))
		list->labels[list->count++] = (struct service_label){name, value};
}

const char *label_list__get(const struct label_list *list, const char *name)
{
	return labeled_service__label(&(struct labeled_service){list->labels, list->count, false},
				      name);
}

DEFINE_ORDER(compare_names, struct service_label, strcmp(x->name, y->name));

static const char *copy_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = *at;

	memcpy(copy, text, size);
	*at += size;
	return copy;
}

/* In one piece: the set, its labels, their texts. NULL: no memory. */
static struct label_set *make_set(const struct labeled_service *service)
{
	size_t count = service->label_count;
	size_t size = sizeof(struct label_set) + count * sizeof(struct service_label);
	struct service_label *labels;
	struct label_set *set;
	char *text;

	for (size_t i = 0; i < count; i++)
		size += strlen(service->labels[i].name) + strlen(service->labels[i].value) + 2;
	set = calloc(1, size);
	if (!set)
		return NULL;
	labels = (struct service_label *)(set + 1);
	text = (char *)(labels + count);
	for (size_t i = 0; i < count; i++) {
		labels[i].name = copy_text(&text, service->labels[i].name);
		labels[i].value = copy_text(&text, service->labels[i].value);
	}
	set->service = (struct labeled_service){labels, count, service->excluded};
	return set;
}

struct label_set *label_sets__find(struct label_sets *sets, struct label_list *list, bool excluded,
				   uint64_t window)
{
	const struct labeled_service service = {list->labels, list->count, excluded};
	struct label_set **known, *set;

	qsort(list->labels, list->count, sizeof(list->labels[0]), compare_names);
	known = set_map__find(&sets->sets, &service);
	if (known) {
		set = *known;
	} else {
		set = make_set(&service);
		if (!set || !set_map__need(&sets->sets, &set, NULL)) {
			free(set);
			return NULL;
		}
	}
	set->used = window;
	return set;
}

void label_sets__sweep(struct label_sets *sets, uint64_t window)
{
	for (size_t i = sets->sets.count; i-- > 0;) {
		struct label_set *set = sets->sets.data[i];

		if (set->holds || set->used == window)
			continue;
		set_map__remove(&sets->sets, &sets->sets.data[i]);
		free(set);
	}
}

/* ---- texts ----------------------------------------------------------------------------------- */

#define ATTRIBUTES_MAX 4096 /* bytes of the whole text */

bool label_name_is_valid(const char *name)
{
	size_t length = strnlen(name, LABEL_NAME_MAX + 1);

	if (!length || length > LABEL_NAME_MAX || isdigit((unsigned char)*name) ||
	    !strncmp(name, "__", 2))
		return false;
	for (size_t i = 0; i < length; i++)
		if ((!isalnum((unsigned char)name[i]) && name[i] != '_') || name[i] & 0x80)
			return false;
	return true;
}

/* Controls, line ends, invisible and direction characters: with them, names could look alike. */
static bool is_control(const char *s, size_t length)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0, 0x1f},	  {0x7f, 0x9f},	    {0xad, 0xad},	{0x61c, 0x61c},
		{0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},	{0x2060, 0x206f},
		{0xfeff, 0xfeff}, {0xfff9, 0xffff}, {0xe0000, 0xe0fff},
	};
	uint32_t code = utf8_code_point(s, length);

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

bool label_value_set(char *value, size_t size, const char *text)
{
	size_t room = min_u64(size, LABEL_VALUE_MAX + 1) - 1, used = 0, left;

	text += strspn(text, " \t\r\n");
	left = strnlen(text, 4 * LABEL_VALUE_MAX);
	while (left && strchr(" \t\r\n", text[left - 1]))
		left--;
	while (left) {
		size_t length = utf8_sequence(text, left);
		bool bad = !length || is_control(text, length);

		length = length ? length : 1;
		if (used + (bad ? 1 : length) > room)
			break;
		memcpy(value + used, bad ? "_" : text, bad ? 1 : length);
		used += bad ? 1 : length;
		text += length;
		left -= length;
	}
	while (used && value[used - 1] == ' ')
		used--;
	value[used] = '\0';
	return used > 0;
}

char *trim_blanks(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	return text;
}

bool resource_attribute(const char *text, const char *name, char *value, size_t size)
{
	char copy[ATTRIBUTES_MAX], *next = copy, *pair;
	const char *found = NULL;
	size_t length = strnlen(text, sizeof(copy));

	if (length == sizeof(copy))
		return false;
	memcpy(copy, text, length + 1);
	while ((pair = strsep(&next, ","))) {
		char *equal = strchr(pair, '=');

		if (!*trim_blanks(pair) && !next) /* a comma at the end */
			break;
		if (!equal)
			return false;
		*equal = '\0';
		if (!*trim_blanks(pair) || !percent_decode(equal + 1, equal + 1))
			return false;
		if (!strcmp(trim_blanks(pair), name))
			found = trim_blanks(equal + 1);
	}
	return found && label_value_set(value, size, found);
}
