/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/windows.h"

#include <stdio.h>
#include <string.h>

#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/bpf_session_hotplug.h"
#include "live/capture/cpu_idle.h"
#include "live/live_private.h"
#include "stream/meta.h"

/* Tentative samples that were dropped count as filtered ticks, and were not received. */
static void leave_out_dropped(const struct live *live, struct books_event *books)
{
	const struct live_dropped *dropped;
	uint64_t ticks;

	if (books->cpu >= live->dropped.count)
		return;
	dropped = &live->dropped.data[books->cpu];
	/* a tick is counted after its sample is in the ring */
	ticks = min_u64(dropped->ticks, books->count[BOOK_DELIVERED]);
	books->count[BOOK_DELIVERED] -= ticks;
	books->count[BOOK_FILTERED] += ticks;
	books->received -= min_u64(dropped->samples, books->received);
}

int live_push_books(struct live *live, uint64_t window_end)
{
	uint32_t cpus = bpf_session__info(live->session)->cpus;

	for (uint32_t i = 0; i < cpus; i++) {
		struct cpu_times_event times;
		struct books_event books;
		int err = 0;

		bpf_session__books(live->session, i, &books);
		leave_out_dropped(live, &books);
		cpu_idle__split(live->idle, &books);
		if (window_end) {
			books.header.time = window_end;
			err = cpu_idle__mark(live->idle, &books);
		}
		if (!err && cpu_idle__times(live->idle, books.cpu, &times)) {
			times.header.time = books.header.time;
			err = event_queue__push(live->queue, &times.header);
		}
		if (!err)
			err = event_queue__push(live->queue, &books.header);
		if (err)
			return err;
	}
	return 0;
}

int live_push_number(struct live *live, const char *key, uint64_t number, uint64_t now)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return meta_event__emit(event_queue__push, live->queue, now, key, text);
}

int live_push_rate(struct live *live, uint64_t now)
{
	const struct bpf_session_info *info = bpf_session__info(live->session);

	if (info->event_period)
		return live_push_number(live, META_EVENT_PERIOD, info->event_period, now);
	return live_push_number(live, META_HZ, live->hz, now)
		       ?: live_push_number(live, META_PERIOD, info->period, now);
}

void live__set_hz(struct live *live, unsigned int hz)
{
	live->next_hz = hz;
}

unsigned int live__hz(const struct live *live)
{
	return live->hz;
}

void live__look_at_waits(struct live *live)
{
	each_part_with (live->parts, part, look_at_waits)
		part->look_at_waits(part->object);
}

void live__set_visits(struct live *live, unsigned int hz, unsigned int budget)
{
	each_part_with (live->parts, part, set_visits)
		part->set_visits(part->object, hz, budget);
}

/* Books read between pause and resume are of one rate. CPUs that refuse the new one keep theirs. */
static int change_rate(struct live *live)
{
	int err = bpf_session__resume_ticks(live->session, live->next_hz);

	log_debug(LOG_SESSION, "%u samples a second and CPU instead of %u%s%s", live->next_hz,
		  live->hz, err ? ", but not everywhere: " : "", err ? strerror(-err) : "");
	live->hz = live->next_hz;
	return live_push_rate(live, monotonic_ns());
}

void live__want_modules(struct live *live)
{
	kernel_modules__want(&live->modules);
}

/* The window needs the names of what was sampled so far. */
static int settle_window(struct live *live)
{
	return live_read_rings(live) ?: live_settle_code(live);
}

/* Counts up to now belong to the window; nearly all of its samples are older. */
int live__end_window(struct live *live)
{
	struct event_header window = {.size = sizeof(window), .type = EVENT_WINDOW};
	bool changes = live->next_hz && live->next_hz != live->hz;
	int err = settle_window(live);

	if (err)
		return err;
	if (changes)
		bpf_session__pause_ticks(live->session);
	window.time = monotonic_ns();
	cpu_idle__read(live->idle);
	err = live_push_books(live, window.time)
		      ?: outside_books__report(live->books, event_queue__push, live->queue,
					    window.time) ?: event_queue__push(live->queue, &window);
	each_part_with (live->parts, part, window_ended)
		part->window_ended(part->object);
	if (!err)
		err = kernel_modules__look(&live->modules, window.time, event_queue__push,
					   live->queue);
	if (!changes)
		return err;
	/* in any case, because nothing may stay paused */
	return change_rate(live) ?: err;
}
