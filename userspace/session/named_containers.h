/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a control group that of a container with this id or name, or within one? Names are in files of
 * the containers' runtimes. They may be there a moment after the group.
 */
#ifndef SESSION_NAMED_CONTAINERS_H
#define SESSION_NAMED_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

struct named_containers;

/* `root`: where the host's files are. NULL: out of memory. */
struct named_containers *named_containers__new(const char *root);
void named_containers__free(struct named_containers *c);

/*
 * `pattern`: the first 12 digits of the id or more, or a glob for the id or a name. `now`:
 * CLOCK_MONOTONIC ns. *may_change: a name is not there yet, so the answer may be another one soon.
 */
bool named_containers__match(struct named_containers *c, const char *pattern, const char *path,
			     uint64_t now, bool *may_change);

#endif
