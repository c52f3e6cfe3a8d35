/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread waits for, by what a visit found and by the names of the kernel's functions on its stack. */
#ifndef PROCESS_WALL_STATES_H
#define PROCESS_WALL_STATES_H

#include <stdbool.h>

#include <sysprof/profile_builder.h>

/* By what the visit read. *open: a kernel function of its stack may be more precise. WALL_NONE: it did not wait. */
enum wall_state wall_state_of_visit(const struct visit_account *visit, bool *open);

/* Of a function of the kernel in which threads wait; WALL_NONE: it says nothing. "foo.isra.0" is foo. */
enum wall_state wall_state_of_function(const char *name);

/* All names of the table. */
const char *const *wall_function_names(size_t *count);

/* The states of the samples that are open, by their stacks. The kernel's symbols are added. 0 or -ENOMEM. */
int wall_states__settle(struct profile_builder *builder);

#endif
