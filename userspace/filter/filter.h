/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which part of a profile: a list of clauses, as a value that is parsed once. Applied by
 * filter_apply.h. docs/FILTERS.md describes it.
 *
 * Clauses have one order, that of FILTER_CLAUSES and of their texts, whatever the order of the
 * options; only those that are IN_ORDER keep theirs. A sample that several clauses would drop is counted with the first.
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "filter/pattern.h"
#include "filter/slice.h"

#define FILTER_CLAUSES_MAX 64
#define FILTER_TEXT_MAX	   1000 /* bytes of a clause's value */

/*
 * X(ENUM, option, how several go together, how the value is read). TOGETHER: they are one line of
 * the books (of names one must hold; of slices the part that is in all). EACH has a line of its own.
 * IN_ORDER as well, and is applied to the result of the one before.
 */
#define FILTER_CLAUSES(X)                                                                          \
	X(PROCESS, "process", TOGETHER, NAME)                                                      \
	X(THREAD, "thread", TOGETHER, NAME)                                                        \
	X(SERVICE, "service", TOGETHER, NAME)                                                      \
	X(CONTAINER, "container", TOGETHER, NAME)                                                  \
	X(UNIT, "unit", TOGETHER, NAME)                                                            \
	X(USER, "user", TOGETHER, NAME)                                                            \
	X(SLICE, "@", TOGETHER, SLICE)                                                             \
	X(CPU, "cpu", TOGETHER, CPUS)                                                              \
	X(STATE, "state", TOGETHER, STATES)                                                        \
	X(FOCUS, "focus", EACH, PATTERN)                                                           \
	X(IGNORE, "ignore", EACH, PATTERN)                                                         \
	X(HIDE, "hide", TOGETHER, PATTERN)                                                         \
	X(SHOW_FROM, "show-from", IN_ORDER, PATTERN)                                               \
	X(COLLAPSE, "collapse", IN_ORDER, COLLAPSE)

enum filter_kind {
#define X(id, ...) FILTER_##id,
	FILTER_CLAUSES(X)
#undef X
		FILTER_KIND_COUNT
};

struct filter_clause {
	enum filter_kind kind;
	char *text;		 /* the option's value; of a slice without the @ */
	bool drops;		 /* what matches, of whole threads: the text begins with ! */
	struct pattern *pattern; /* of regular expressions; NULL: `--collapse dso` */
	struct slice slice;
	uint32_t *cpus; /* in order */
	size_t cpu_count;
	uint32_t states; /* bits by enum wall_state; that of CPU samples is WALL_RUNNING */
};

/* All zero: keeps everything. Clauses in their order. */
struct profile_filter {
	size_t count;
	struct filter_clause clauses[FILTER_CLAUSES_MAX];
};

/* A clause by its option's value; the same one twice is one. 0 or negative errno, with `failure`. */
int profile_filter__add(struct profile_filter *filter, enum filter_kind kind, const char *value,
			struct failure *failure);
/* Adds those of another one. */
int profile_filter__add_all(struct profile_filter *filter, const struct profile_filter *other,
			    struct failure *failure);
void profile_filter__fini(struct profile_filter *filter);

/* The option of a kind, without "--"; "@" of a slice. */
const char *filter_kind_name(enum filter_kind kind);

/*
 * The clauses as words of a command line, "@10s-20s --process=java '--focus=a b'", which
 * profile_filter__parse() reads. NULL: no memory. The caller frees it.
 */
char *profile_filter__print(const struct profile_filter *filter);
int profile_filter__parse(struct profile_filter *filter, const char *text, struct failure *failure);

/* The words of clauses first .. first + count - 1, likewise. */
char *profile_filter__print_clauses(const struct profile_filter *filter, size_t first,
				    size_t count);

/* How many clauses from `first` on are one line of the books. */
size_t profile_filter__group(const struct profile_filter *filter, size_t first);

#endif
