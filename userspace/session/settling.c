/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settling: turns a sample of the kernel side into its recorded form. Compares its frames with the
 * mappings of its time, and walks a copy of its stack.
 */
#include "session/settling.h"

#include <errno.h>
#include <string.h>

#include "runtimes/runtime.h"
#include "session/unwinding.h"
#include "stream/event_decode.h"
#include "stream/event_queue.h"
#include "unwind/unwind_feed_files.h"
#include "world/mapping_table.h"
#include "world/process_table.h"

/* A frame in JIT code stays, because it was unwound by frame pointer. */
static bool same_place(const struct unwinding *u, const struct mapping *then,
		       const struct mapping *now)
{
	if (!now)
		return false;
	if (!then)
		return unwinding__image(u, now->image)->dso.kind == DSO_JIT;
	return then->image.v == now->image.v &&
	       then->start - then->page_offset == now->start - now->page_offset;
}

/* User frames, from the innermost on, at addresses with the same mapping in both. */
static size_t frames_in_common(const struct unwinding *u, const struct sample_event *sample,
			       const struct mapping_table *then, const struct mapping_table *now)
{
	const __u64 *frames = sample->frames + sample->kernel_frames;
	size_t i = 0;

	while (i < sample->user_frames &&
	       same_place(u, mapping_table__find(then, frame_user_address(frames[i])),
			  mapping_table__find(now, frame_user_address(frames[i]))))
		i++;
	return i;
}

static const struct publication *find_publication(struct unwinding *u,
						  const struct process_life *process, uint32_t tag)
{
	const struct known_process *known = unwinding__find(u, process);

	for (size_t i = 0; known && i < PUBLICATIONS; i++)
		if (known->publications[i].tag == tag)
			return &known->publications[i];
	return NULL;
}

#define GENERATIONS 2 /* ancestors whose mappings a fork may have: struct runtime_fork */

/* The publication of an ancestor with which it was unwound. NULL: not known any more. */
static const struct publication *
publication_of_kin(struct unwinding *u, const struct process_life *process, uint32_t tag)
{
	const struct publication *found = NULL;

	for (int i = 0; i < GENERATIONS && process && !found; i++) {
		process = process_table__find(world__processes(u->world), process->ppid);
		found = process ? find_publication(u, process, tag) : NULL;
	}
	return found;
}

/* The innermost frame is always right: it is the thread's own pc. */
static size_t frames_to_keep(struct unwinding *u, const struct sample_event *sample,
			     const struct process_life *process)
{
	const struct publication *p;
	size_t same;

	if (!sample->places_tag || !sample->user_frames)
		return sample->user_frames;
	p = find_publication(u, process, sample->places_tag);
	if (p && p->maps_version == process->maps_version)
		return sample->user_frames;
	p = p ? p : publication_of_kin(u, process, sample->places_tag);
	if (!p)
		return 1;
	if (p->maps == process->maps)
		return sample->user_frames;
	same = frames_in_common(u, sample, p->maps, process->maps);
	return same ? same : 1;
}

static void copy_sample(struct sample_event *to, const struct sample_event *from,
			size_t user_frames)
{
	size_t size = sizeof(*from) + (from->kernel_frames + user_frames) * sizeof(from->frames[0]);

	memcpy(to, from, size);
	to->header.size = size;
	if (from->header.flags & EVENT_STACK_COPY)
		to->header.flags ^= EVENT_STACK_COPY | EVENT_FROM_COPY;
	to->user_frames = user_frames;
	to->notes = 0; /* they are of the whole stack */
}

/* NULL: none. */
static const struct stack_copy *copy_of(const struct sample_event *sample)
{
	if (!(sample->header.flags & EVENT_STACK_COPY))
		return NULL;
	return (const void *)&sample->frames[sample->kernel_frames + sample->user_frames];
}

/* Where the walk ended. */
static uint64_t last_address(const struct sample_event *sample)
{
	size_t frames = (size_t)sample->kernel_frames + sample->user_frames;

	return frames ? frame_user_address(sample->frames[frames - 1]) : 0;
}

static void walk_once(struct unwinding *u, const struct fed_process *process,
		      const struct stack_copy *copy, size_t max, struct sample_event *to)
{
	enum stack_end end;
	size_t count;

	end = unwind_feed__walk(u->feed, process, copy, (uint64_t *)to->frames + to->kernel_frames,
				max, &count);
	if (!count)
		return;
	to->user_frames = count;
	to->user_end = end;
	to->header.size = sizeof(*to) + (to->kernel_frames + count) * sizeof(to->frames[0]);
}

/* A walk ended because a table is missing. 1: there is one now; 0; -ENOMEM. */
static int note_missing(struct unwinding *u, struct process_life *process,
			const struct sample_event *ended, const struct stack_copy *copy)
{
	struct fed_process now = unwinding__fed(u, process, ended->header.time);
	int err = unwind_feed__missed(u->feed, &now, last_address(ended), copy);

	if (err <= 0)
		return err;
	return unwinding__publish_again(u, process) ?: 1;
}

static bool ends_in_made_code(const struct unwinding *u, const struct process_life *process,
			      const struct sample_event *ended)
{
	const struct mapping *mapping = mapping_table__find(process->maps, last_address(ended));

	return mapping && unwinding__image(u, mapping->image)->dso.kind == DSO_JIT;
}

/*
 * 0; -EAGAIN: a table that it needs will be built soon; -ENOMEM. A sample of an unpublished process
 * does not report a missing table of JIT code, so that is noted here.
 */
static int walk_copy(struct unwinding *u, struct process_life *process,
		     const struct sample_event *sample, size_t max, struct sample_event *to)
{
	struct fed_process now = unwinding__fed(u, process, sample->header.time);
	bool requested = false;
	int again;

	do {
		walk_once(u, &now, copy_of(sample), max, to);
		again = to->user_end == STACK_END_NO_TABLE
				? unwind_feed__await(u->feed, &now, last_address(to))
				: 0;
		if (!again && !requested && to->user_end == STACK_END_NO_TABLE &&
		    ends_in_made_code(u, process, to)) {
			requested = true;
			again = note_missing(u, process, to, copy_of(sample));
		}
	} while (again > 0);
	return again;
}

static int feed_process(struct unwinding *u, struct process_life *process,
			const struct sample_event *sample)
{
	struct fed_process now = unwinding__fed(u, process, sample->header.time);
	int err = unwinding__want(u, process);

	if (err)
		return err;
	if (sample->user_end == STACK_END_NO_TABLE) {
		err = note_missing(u, process, sample, copy_of(sample));
		return err < 0 ? err : 0;
	}
	err = unwind_feed__refresh(u->feed, &now);
	if (err <= 0)
		return err;
	return unwinding__publish_at_once(u, process);
}

static int settle_sample(struct unwinding *u, const struct sample_event **sample)
{
	const struct sample_event *s = *sample;
	struct process_life *process = process_table__find(world__processes(u->world), s->tgid);
	const struct known_process *known = process ? unwinding__known(u, process) : NULL;
	bool copied = s->header.flags & EVENT_STACK_COPY;
	size_t keep = known ? frames_to_keep(u, s, process) : s->user_frames;
	bool is_fed = process && process->maps;
	int err = is_fed ? feed_process(u, process, s) : 0;

	if (err || (!copied && keep == s->user_frames))
		return err;
	copy_sample(&u->settled.sample, s, keep);
	if (keep < s->user_frames)
		u->settled.sample.user_end = STACK_END_STALE;
	err = copied && is_fed ? walk_copy(u, process, s, u->max_depth, &u->settled.sample) : 0;
	*sample = err ? s : &u->settled.sample;
	return err;
}

/* A visit with the settled stack. */
static const struct event_header *settled_visit(struct unwinding *u,
						const struct visit_account *from)
{
	u->settled.account = *from;
	u->settled.account.header.size = sizeof(*from) + u->settled.sample.header.size;
	return &u->settled.account.header;
}

int unwinding__settle(void *unwinding, const struct event_header **event)
{
	struct unwinding *u = unwinding;
	const struct sample_event *sample = event_stack(*event);
	int err;

	if (!sample)
		return 0;
	err = event_check(*event, (*event)->size) ?: settle_sample(u, &sample);
	if ((*event)->type == EVENT_SAMPLE)
		*event = &sample->header;
	else if (sample == &u->settled.sample)
		*event = settled_visit(u, (const struct visit_account *)*event);
	return err == -EAGAIN ? STAGE_WAIT : err;
}
