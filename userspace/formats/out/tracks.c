/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/tracks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/vec.h"

static bool is_target(const struct profile *p, const struct profile_thread *thread)
{
	return p->processes[thread->process.v].is_target;
}

static int choose_threads(struct tracks *tracks, const struct profile *p)
{
	int err = 0;

	for (unsigned int pass = 0; pass < 3 && !tracks->count && !err; pass++) {
		for (uint32_t i = 1; i < p->thread_count && !err; i++) {
			const struct profile_thread *thread = &p->threads[i];

			if (pass == 2 || (pass == 1 && is_target(p, thread)) ||
			    thread->samples[SAMPLE_CPU].count || thread->samples[SAMPLE_WALL].count)
				err = vec_push(tracks, (struct track){.thread = i});
		}
	}
	return err;
}

static int compare_tracks(const void *a, const void *b, void *context)
{
	const struct track *x = a, *y = b;
	const struct profile_thread *threads = ((const struct profile *)context)->threads;

	return ASCENDING(group) ?: order_of(threads[y->thread].is_main, threads[x->thread].is_main) ?: ASCENDING(thread);
}

static int order_threads(struct tracks *tracks, const struct profile *p)
{
	_cleanup_free_ uint32_t *group = calloc(p->process_count + 1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	for (size_t i = 0; i < tracks->count; i++) {
		struct track *track = &tracks->data[i];
		uint32_t *first = &group[p->threads[track->thread].process.v];

		if (!*first)
			*first = track->thread;
		track->group = *first;
	}
	vec_sort_r(tracks, compare_tracks, (void *)p);
	return 0;
}

struct life {
	uint32_t number, owner, track;
};

DEFINE_ORDER(compare_lives, struct life, ASCENDING(number) ?: ASCENDING(track));

static int number_lives(struct tracks *tracks, const struct profile *p)
{
	size_t count = tracks->count;
	_cleanup_free_ struct life *pids = calloc(count + 1, sizeof(*pids));
	_cleanup_free_ struct life *tids = calloc(count + 1, sizeof(*tids));

	if (!pids || !tids)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_thread *thread = &p->threads[tracks->data[i].thread];
		uint32_t process = thread->process.v;

		pids[i] = (struct life){p->processes[process].pid, process, i};
		tids[i] = (struct life){thread->tid, i, i};
	}
	qsort(pids, count, sizeof(*pids), compare_lives);
	qsort(tids, count, sizeof(*tids), compare_lives);
	for (size_t i = 1; i < count; i++) {
		if (pids[i].number == pids[i - 1].number)
			tracks->data[pids[i].track].pid_life =
				tracks->data[pids[i - 1].track].pid_life +
				(pids[i].owner != pids[i - 1].owner);
		if (tids[i].number == tids[i - 1].number)
			tracks->data[tids[i].track].tid_life =
				tracks->data[tids[i - 1].track].tid_life + 1;
	}
	return 0;
}

int tracks__init(struct tracks *tracks, const struct profile *p)
{
	*tracks = (struct tracks){0};
	return choose_threads(tracks, p) ?: order_threads(tracks, p) ?: number_lives(tracks, p);
}

void tracks__fini(struct tracks *tracks)
{
	vec_free(tracks);
}
