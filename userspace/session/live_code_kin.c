/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of fork: what is known of them because it is known of their parents. */
#include "session/live_code_private.h"

#include <string.h>

#include "process/code_functions.h"

/* As the kernel has done when it was forked; see inherited_runtimes() there. */
void live_code_inherit(struct code_process *child, const struct code_process *parent, uint64_t time)
{
	uint32_t has = parent->has | (parent->inherits ? RUNTIME_FORKED : 0);

	child->from = (struct forked_from){parent->pid, parent->life, time};
	memcpy(child->reported, parent->reported, sizeof(child->reported));
	child->inherits = has & RUNTIME_FORKED;
	if (!child->inherits)
		return;
	child->is_like_parent = has == RUNTIME_FORKED && !parent->looked_at &&
				(parent->looks == LOOKS || parent->is_like_parent);
	child->layout = parent->layout;
	child->info = parent->info;
	child->info.as_of = time;
	child->info.has = RUNTIME_FORKED;
}

struct code_process *live_code_parent(const struct live_code *c, const struct forked_from *from)
{
	struct code_process *parent = from->life ? live_code_find(c, from->pid) : NULL;

	return parent && parent->life == from->life ? parent : NULL;
}

bool live_code_is_inherited(const struct live_code *c, struct forked_from from,
			    const struct code_question *question)
{
	struct code_process *parent;

	for (unsigned int i = 0; i < CODE_KIN_MAX && (parent = live_code_parent(c, &from)); i++) {
		struct query *query = live_code_find_query(parent, question);

		if (query && query->read && query->read <= from.time) {
			query->window = c->window;
			return true;
		}
		from = parent->from;
	}
	return false;
}
