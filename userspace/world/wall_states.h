/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_WALL_STATES_H
#define WORLD_WALL_STATES_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct profile_builder;
struct visit_account;

/* The state of a thread, by the readings of a visit and the kernel's functions on its stack. */

/* By the readings. *open: flags if a kernel function may be more precise. WALL_NONE: no wait. */
enum wall_state wall_state_of_visit(const struct visit_account *visit, uint8_t *open);

/* Of a kernel function in which threads wait; WALL_NONE: not in the table. "foo.isra.0" is foo. */
enum wall_state wall_state_of_function(const char *name);

/*
 * The table. `otherwise`: what has the state in a kernel without this function, because it has
 * another name there or is a part of its caller: another row, or one of these. NULL: all have it.
 */
#define WALL_BY_READINGS "(readings)" /* wall_state_of_visit() */
#define WALL_BY_CALL	 "(call)"     /* the system call */
#define WALL_OF_MODULE	 "(module)"   /* it is of a module or option that may not be there */
extern const struct wall_function {
	const char *name;
	enum wall_state state;
	const char *otherwise;
} wall_functions[];
extern const size_t wall_function_count;

/* The states of open samples, by their stacks, which have the kernel's symbols. 0 or -ENOMEM. */
int wall_states__settle(struct profile_builder *builder);

#endif
