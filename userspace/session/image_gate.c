/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/image_gate.h"

#include <string.h>

#include "world/image_table.h"
#include "world/process_table.h"

/* For a process that is gone, its parent's user is the best guess. */
static uint32_t user_of(struct image_gate *g, uint32_t pid)
{
	uint32_t user = outside_books__user_of(g->books, (pid_t)pid);
	const struct process_life *process;

	if (user != OUTSIDE_USER_UNKNOWN)
		return user;
	process = process_table__find(world__processes(g->world), pid);
	return process && process->ppid ? outside_books__user_of(g->books, (pid_t)process->ppid)
					: user;
}

void image_gate__pass(struct image_gate *g, const struct event_header **event)
{
	const struct mmap_event *mmap = (const void *)*event;
	struct image_table *images = world__images(g->world);
	enum outside_reason refusal;
	uint32_t user;

	if ((*event)->type != EVENT_MMAP || (*event)->size > sizeof(g->marked) ||
	    image_table__has(images, mmap))
		return;
	user = user_of(g, mmap->pid);
	if (image_table__admit(images, mmap, user, &refusal))
		return;
	outside_books__add(g->books, user, OUTSIDE_IMAGES, refusal, 1);
	memcpy(&g->marked, *event, (*event)->size);
	g->marked.event.header.flags |= EVENT_LEFT;
	*event = &g->marked.event.header;
}
