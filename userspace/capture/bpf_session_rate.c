/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A change of the sampling rate while we record.
 *
 * The books have to be exact at both rates. The ticks due are time_running / period of the time at each period; so
 * there must be a reading between two periods, after the last tick of the one and before the first of the other.
 * Hence all events are stopped, the caller reads the books, and they start anew: each timer begins a grid of its own,
 * on which bpf/clock.bpf.h finds the ticks that ran no program.
 *
 * An event that is stopped does not count its time, so nothing is due meanwhile. Its clock stands still as well, and
 * with it the constant by which CPU times are computed (bpf/cputime.bpf.h), which is determined again as at the
 * start.
 */
#include "capture/bpf_session_private.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "capture/cpu_visit.h"

void bpf_session__start_grid(struct bpf_session *s, struct session_cpu *c)
{
	struct cpu_books *books = &s->books[c->cpu];

	c->period = s->info.period;
	c->period_running = c->time_running;
	books->period = c->period;
	books->grid_enabled = c->time_enabled;
	books->grid_origin = books->grid_point = 0;
	books->clock_offset[0] = books->clock_offset[1] = 0;
	books->clock_window = 0;
}

static bool has_ticks(const struct session_cpu *c)
{
	return !c->gone && !c->fresh && c->fds.tick >= 0;
}

void bpf_session__pause_ticks(struct bpf_session *s)
{
	if (!s->ticking || s->disabled || s->paused)
		return;
	s->paused = true;
	for (size_t i = 0; i < s->info.cpus; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];

		if (!has_ticks(c))
			continue;
		bpf_session__stop_tick(c);
		s->books[c->cpu].count[BOOK_NOT_RUN] += bpf_session__ticks_after_last_run(s, c);
	}
}

/* Its event is stopped. */
static int set_period(struct bpf_session *s, struct session_cpu *c, bool visit)
{
	uint64_t value = s->source.clock ? s->info.period : s->hz;
	int err = ioctl(c->fds.tick, PERF_EVENT_IOC_PERIOD, &value) ? -errno : 0, started;
	uint64_t period = c->period;

	bpf_session__start_grid(s, c);
	if (err)
		c->period = s->books[c->cpu].period = period;
	started = bpf_session__start_tick(s, c, visit);
	return err ? err : started;
}

int bpf_session__resume_ticks(struct bpf_session *s, unsigned int hz)
{
	cpu_set_t *home;
	int first = 0;

	if (!s->paused)
		return 0;
	s->paused = false;
	s->hz = hz;
	s->info.period = tick_source__period(&s->source, hz);
	home = save_affinity();
	for (size_t i = 0; i < s->info.cpus; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];
		int err = has_ticks(c) ? set_period(s, c, home) : 0;

		first = first ? first : err;
	}
	restore_affinity(home);
	return first;
}
