/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets by name, as the user gives them: patterns with the shell's *, ? and [] for what a process
 * is, or a user; for services regular expressions. What matches one of them is a target, unless it matches one that excludes.
 *
 *   comm       the name of the process, as ps shows it: 15 bytes
 *   exe        its program: the path or, without "/", the name of the file
 *   user       its real user: a name or number
 *   unit       a unit of systemd: "nginx", "nginx.service", "user-1000.slice", and those below
 *   container  its id, the first 12 digits of it or more, or its name; and those within
 *   service    its service, as services/ names it: an expression of filter/pattern.h
 */
#ifndef SESSION_TARGET_NAMES_H
#define SESSION_TARGET_NAMES_H

#include <stdbool.h>

#include "base/log.h"
#include "live/parts/names.h"

/* X(ENUM, the option without "--" or "--exclude-") */
#define TARGET_NAMES(X)                                                                            \
	X(COMM, "comm")                                                                            \
	X(EXE, "exe")                                                                              \
	X(USER, "user")                                                                            \
	X(UNIT, "unit")                                                                            \
	X(CONTAINER, "container")                                                                  \
	X(SERVICE, "service")

enum target_name {
#define X(id, text) TARGET_BY_##id,
	TARGET_NAMES(X)
#undef X
		TARGET_NAME_COUNT
};

#define TARGET_NAMES_MAX 64u

struct target_names;

/*
 * Adds a pattern, which has to live as long, to *names (NULL: made). 0, -E2BIG, -ENOMEM, or -EINVAL
 * with the reason in `failure`.
 */
int target_names__add(struct target_names **names, enum target_name kind, bool excludes,
		      const char *pattern, struct failure *failure);
void target_names__free(struct target_names *names);

/* Does a pattern name targets? False: all exclude some, or there are none (NULL). */
bool target_names__include(const struct target_names *names);
/* For live_options; of NULL: none. */
struct name_judge target_names__judge(struct target_names *names);
/* "--user nobody --exclude-comm 'x*'", as given. Its size, without the NUL. */
size_t target_names__describe(const struct target_names *names, char *text, size_t size);

#endif
