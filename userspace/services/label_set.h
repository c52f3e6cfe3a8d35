/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of labels, each once: they separate services. Sets that are held outlive windows. */
#ifndef SERVICES_LABEL_SET_H
#define SERVICES_LABEL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds that all backends take. */
#define LABELS_MAX     24  /* of a service; a backend adds its own */
#define LABEL_NAME_MAX 128 /* bytes; [a-zA-Z_][a-zA-Z0-9_]* without "__" in front */
#define LABEL_VALUE_MAX                                                                            \
	1024 /* bytes of valid UTF-8, at least one, none of them a control character */

struct service_label {
	const char *name, *value;
};

/* Labels are sorted by name, each once; service_name is one of them. */
struct labeled_service {
	const struct service_label *labels;
	size_t label_count;
	bool excluded; /* by the user's filters: nothing of it is sent */
};

/* The value of a label; NULL: it has none of that name. */
const char *labeled_service__label(const struct labeled_service *service, const char *name);

struct label_sets;

struct label_set {
	struct labeled_service service; /* its labels are in order */
	unsigned int holds;		/* label_set__hold() less label_set__release() */
	uint64_t used;			/* in which window, last */
	uint32_t number;		/* of the user's own: where it is in this window */
	uint64_t cpu;			/* likewise */
};

struct label_sets *label_sets__new(void); /* NULL: no memory */
/* Whatever is still held is gone as well. NULL is fine. */
void label_sets__free(struct label_sets *sets);
size_t label_sets__count(const struct label_sets *sets);

/* Labels on their way into a set. Their texts are the caller's, until label_sets__find(). */
struct label_list {
	struct service_label labels[LABELS_MAX];
	size_t count;
};
/* Nothing, if there is one of this name already, the value is empty, or there are too many. */
void label_list__add(struct label_list *list, const char *name, const char *value);
const char *label_list__get(const struct label_list *list, const char *name); /* NULL: none */

/* The set with these labels, made if there is none, and used in this window. NULL: no memory. */
struct label_set *label_sets__find(struct label_sets *sets, struct label_list *list, bool excluded,
				   uint64_t window);

static inline struct label_set *label_set__hold(struct label_set *set)
{
	if (set)
		set->holds++;
	return set;
}

static inline void label_set__release(struct label_set *set)
{
	if (set)
		set->holds--;
}

/* Frees sets that are not held and were not used in this window. */
void label_sets__sweep(struct label_sets *sets, uint64_t window);

/* ---- texts ----------------------------------------------------------------------------------- */

/* Texts of tenants, made fit to be labels, and lists of attributes in one of their variables. */
#define LABEL_SERVICE_MAX 255 /* bytes of a service's name */

/* Without the blanks at both ends; those at the end are overwritten. */
char *trim_blanks(char *text);

/* A name that all backends take, and that is not the backends' own. */
bool label_name_is_valid(const char *name);

/*
 * A value that all backends take: invalid UTF-8 and control characters become "_", blanks at both
 * ends go, long text is cut between characters. LABEL_VALUE_MAX + 1 bytes of `size` are used
 * at most. False: nothing is left.
 */
bool label_value_set(char *value, size_t size, const char *text);

/*
 * OTEL_RESOURCE_ATTRIBUTES, "key=value,key=value": the attribute of this name, percent-decoded,
 * into `value` as above. An invalid pair voids all, by the specification. False: there is none.
 */
bool resource_attribute(const char *text, const char *name, char *value, size_t size);

#endif
