/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/brief_lives.h"

#include "base/minmax.h"

MAP_FUNCTIONS_BY(brief_life_map, struct brief_life, uint32_t, pid);

static struct brief_life *need(struct brief_lives *b, uint32_t pid, uint64_t time)
{
	struct brief_life *life = brief_life_map__find(&b->lives, pid);

	if (!life && b->lives.count < BRIEF_LIVES_MAX)
		life = brief_life_map__need(&b->lives, &(struct brief_life){.pid = pid}, NULL);
	if (life)
		life->latest = max_u64(life->latest, time);
	else
		brief_lives__miss(b, time);
	return life;
}

static void note_fork(struct brief_lives *b, const struct task_event *event)
{
	struct brief_life *parent = need(b, event->ppid, event->header.time), *child;

	if (parent)
		parent->forked = true;
	if (event->pid == event->ppid)
		return;
	child = need(b, event->pid, event->header.time);
	/* two lives with one pid: neither is brief */
	if (child && child->began)
		child->forked = true;
	else if (child)
		child->began = event->header.time;
}

void brief_lives__note(struct brief_lives *b, const struct task_event *event)
{
	struct brief_life *life;

	if (event->header.type == EVENT_FORK) {
		note_fork(b, event);
	} else if (event->pid == event->tid) {
		life = need(b, event->pid, event->header.time);
		if (life)
			life->ended = event->header.time;
	}
}

void brief_lives__miss(struct brief_lives *b, uint64_t time)
{
	b->missed = max_u64(b->missed, time);
}

bool brief_lives__drop(struct brief_lives *b, uint32_t pid, uint64_t time, uint64_t all_read)
{
	struct brief_life *life = brief_life_map__find(&b->lives, pid);

	if (!life || time <= b->missed || life->forked || life->began != time ||
	    life->ended < time || life->ended >= all_read)
		return false;
	life->dropped = true;
	return true;
}

bool brief_lives__dropped(const struct brief_lives *b, uint32_t pid, uint64_t time)
{
	const struct brief_life *life = brief_life_map__find(&b->lives, pid);

	return life && life->dropped && !life->forked && time >= life->began && time <= life->ended;
}

void brief_lives__forget(struct brief_lives *b, uint64_t before)
{
	for (size_t i = b->lives.count; i-- > 0;)
		if (b->lives.data[i].latest < before)
			brief_life_map__remove(&b->lives, &b->lives.data[i]);
}

void brief_lives__fini(struct brief_lives *b)
{
	brief_life_map__fini(&b->lives);
}
