/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs that come and go while we record.
 *
 * When a CPU goes offline the kernel removes its perf events for good: their descriptors are good
 * for reading what there was, and nothing else. So a CPU that comes gets new ones. A suspend takes
 * all CPUs but one offline and brings them back before the list of CPUs can be read. It shows in
 * the tick event's time, which stands still.
 *
 * The books of a CPU are the program's, by its number, and go on; the time of its events is summed
 * up here. Until the return of a CPU is noticed it has neither samples nor side-band records, so
 * the caller reads the processes again.
 */
#include "live/capture/bpf_session_hotplug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/hashmap.h"
#include "base/order.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/bpf_session_private.h"
#include "live/capture/cpu_visit.h"

#define ONLINE_MAX   4096	  /* bytes of the list of online CPUs */
#define STANDS_STILL 900000000ull /* ns in which a living event's time has gone on */

/* An account for a CPU that is new to the session. */
static int add_cpu(struct bpf_session *s, uint32_t cpu, struct session_cpu **added)
{
	struct session_cpu *cpus = reallocarray(s->cpus, s->cpu_count + 1, sizeof(*cpus));
	uint32_t *sampled;

	if (!cpus)
		return -ENOMEM;
	s->cpus = cpus;
	sampled = reallocarray(s->sampled, s->cpu_count + 1, sizeof(*sampled));
	if (!sampled)
		return -ENOMEM;
	s->sampled = sampled;
	session_cpu__init(&cpus[s->cpu_count], cpu);
	*added = &cpus[s->cpu_count];
	if (s->every_cpu) {
		(*added)->sampled = true;
		s->sampled[s->info.cpus++] = s->cpu_count;
	}
	s->cpu_count++;
	return 0;
}

/* ---- the end of what there was --------------------------------------------------------------- */

/* Nothing of it can be read any more, though the kernel may report it as readable. */
static void stop_watching(struct bpf_session *s, const struct session_cpu *c)
{
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fds.output, NULL);
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fds.sideband, NULL);
}

static void forget_in_maps(struct bpf_session *s, uint32_t cpu)
{
	struct bpf_map *maps[] = {s->skel->maps.ticks, s->skel->maps.outputs,
				  s->skel->maps.tsc_counters};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		bpf_map__delete_elem(maps[i], &cpu, sizeof(cpu), 0);
}

static int retire(struct bpf_session *s, struct session_cpu *c, event_push_fn sink, void *context)
{
	struct cpu_books *books = &s->books[c->cpu];
	int err;

	if (c->fds.output < 0)
		return 0;
	if (c->fds.tick >= 0) {
		bpf_session__stop_tick(s, c);
		books->count[BOOK_NOT_RUN] += bpf_session__ticks_after_last_run(s, c);
		c->past_enabled += c->time_enabled;
		c->past_running += c->time_running;
		c->past_counted = s->source.clock ? 0
						  : bpf_session__close_events(s, c, books->count);
		c->time_enabled = c->time_running = c->counted = c->seen_enabled = 0;
		c->period_running = 0;
	}
	forget_in_maps(s, c->cpu);
	stop_watching(s, c);
	err = bpf_session__drain_cpu(s, c, sink, context);
	c->decoder.damaged += c->sideband.damaged + c->output.damaged;
	bpf_session__close_cpu(c);
	memset(&c->join, 0, sizeof(c->join));
	c->was_full = false;
	/* the next event counts from 0; no program of ours runs on the CPU now */
	bpf_session__start_grid(s, c);
	books->busy = books->hook_since = 0;
	return err;
}

/* A walk over the CPUs, and where it reports. */
struct follow {
	struct bpf_session *s;
	event_push_fn sink;
	cpu_change_fn changed;
	void *context;
};

/* ---- a CPU that comes ------------------------------------------------------------------------ */

/* Without a counter its samples have the other clock's time. */
static void open_counter(struct bpf_session *s, struct session_cpu *c, bool visit)
{
	char reason[sizeof(s->clock_reason)];
	uint64_t error;

	memcpy(reason, s->clock_reason, sizeof(reason)); /* that of the start */
	if (bpf_session__open_tsc(s, c, visit, &error) || error > TSC_ERROR_MAX_NS)
		close_event(&c->fds.tsc);
	memcpy(s->clock_reason, reason, sizeof(reason));
}

static int open_and_start(struct bpf_session *s, struct session_cpu *c, bool visit,
			  struct failure *failure)
{
	if (s->info.tsc && c->sampled)
		open_counter(s, c, visit);
	return bpf_session__open_cpu(s, c, failure) ?: bpf_session__start_sideband(s, c, visit);
}

static int give_up(const struct follow *f, struct session_cpu *c, int error, const char *what)
{
	const struct cpu_change change = {
		.cpu = c->cpu, .online = true, .error = error, .what = what};

	c->gone = c->failed = true;
	c->fresh = false;
	forget_in_maps(f->s, c->cpu);
	bpf_session__close_cpu(c);
	return f->changed(f->context, &change);
}

static int bring_up(const struct follow *f, struct session_cpu *c)
{
	struct failure failure = {};
	cpu_set_t *home;
	int err = retire(f->s, c, f->sink, f->context);

	if (err)
		return err;
	c->gone = false;
	home = save_affinity();
	err = open_and_start(f->s, c, home, &failure);
	restore_affinity(home);
	c->fresh = !err;
	if (!err)
		return 0;
	return give_up(f, c, err, *failure.what ? failure.what : "its side-band does not start");
}

static int take_down(const struct follow *f, struct session_cpu *c)
{
	const struct cpu_change change = {.cpu = c->cpu};

	c->gone = true;
	c->fresh = false;
	stop_watching(f->s, c);
	return f->changed(f->context, &change);
}

/* Its time stands still: the kernel has removed the event. */
static bool event_is_dead(const struct bpf_session *s, struct session_cpu *c)
{
	bool dead;

	if (c->fds.tick < 0)
		return false;
	bpf_session__read_times(s, c);
	dead = c->seen_enabled && c->time_enabled == c->seen_enabled;
	c->seen_enabled = c->time_enabled;
	return dead;
}

static int follow_known(const struct follow *f, struct session_cpu *c, bool online, bool closely)
{
	if (!online) {
		c->failed = false;
		return c->gone ? 0 : take_down(f, c);
	}
	if (c->failed || (!c->gone && !(closely && event_is_dead(f->s, c))))
		return 0;
	return bring_up(f, c);
}

static bool any_fresh(const struct bpf_session *s)
{
	return any_of(s->cpus, s->cpu_count, c, c->fresh);
}

int bpf_session__start_fresh_cpus(struct bpf_session *s, cpu_change_fn changed, void *context)
{
	const struct follow f = {.s = s, .changed = changed, .context = context};
	cpu_set_t *home = save_affinity();
	int err = 0;

	for (size_t i = 0; i < s->cpu_count && !err; i++) {
		struct session_cpu *c = &s->cpus[i];
		const struct cpu_change change = {.cpu = c->cpu, .online = true};
		int failed;

		if (!c->fresh)
			continue;
		c->fresh = false;
		failed = c->sampled ? bpf_session__start_tick(s, c, home) : 0;
		err = failed ? give_up(&f, c, failed, "its ticks do not start")
			     : changed(context, &change);
	}
	restore_affinity(home);
	return err;
}

/* Has the list of online CPUs changed since the last look? It is read often and rarely has. */
static bool list_has_changed(struct bpf_session *s)
{
	char text[ONLINE_MAX];
	ssize_t size = pread(s->online_fd, text, sizeof(text), 0);
	uint64_t hash = size > 0 ? hash_bytes(text, size) : 0;

	if (hash && hash == s->online_hash)
		return false;
	s->online_hash = hash;
	return true;
}

int bpf_session__follow_cpus(struct bpf_session *s, event_push_fn sink, cpu_change_fn changed,
			     void *context, bool *fresh)
{
	const struct follow f = {s, sink, changed, context};
	_cleanup_free_ uint32_t *online = NULL;
	uint64_t now = monotonic_ns();
	bool closely = now - s->looked_closely >= STANDS_STILL;
	size_t count = 0;

	*fresh = false;
	if (!s->ticking || s->disabled)
		return 0;
	if (!list_has_changed(s) && !closely)
		return 0;
	if (bpf_session__read_online(&online, &count)) {
		s->online_hash = 0;
		return 0;
	}
	if (closely)
		s->looked_closely = now;
	for (size_t i = 0; i < s->cpu_count; i++) {
		struct session_cpu *c = &s->cpus[i];
		int err = follow_known(&f, c, cpu_is_listed(online, count, c->cpu), closely);

		if (err)
			return err;
	}
	for (size_t i = 0; i < count; i++) {
		struct session_cpu *c;
		int err;

		if (bpf_session__find_cpu(s, online[i]) || online[i] >= s->book_count)
			continue;
		err = add_cpu(s, online[i], &c) ?: bring_up(&f, c);
		if (err)
			return err;
	}
	*fresh = any_fresh(s);
	return 0;
}

/* ---- another rate ---------------------------------------------------------------------------- */

/*
 * A change of the sampling rate while we record.
 *
 * The books have to be exact at both rates. The ticks due are time_running / period for each
 * period, so a reading is needed after the last tick of one and before the first of the next. So
 * all events are stopped, the caller reads the books, and they start anew: each timer begins a grid
 * of its own, on which bpf/clock.bpf.h finds the ticks that ran no program.
 *
 * A stopped event does not count its time, so nothing is due meanwhile. Its clock stands still as
 * well, so the constant by which CPU times are computed (bpf/cputime.bpf.h) is determined again, as
 * at the start.
 */
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
	books->period_begun = 1; /* as the kernel begins */
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
		bpf_session__stop_tick(s, c);
		s->books[c->cpu].count[BOOK_NOT_RUN] += bpf_session__ticks_after_last_run(s, c);
	}
}

/* Its event is stopped. */
static int set_period(struct bpf_session *s, struct session_cpu *c, bool visit)
{
	uint64_t value = s->source.clock ? s->info.period : s->rate.hz;
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
	s->rate = (struct tick_rate){.hz = hz};
	s->info.period = tick_source__period(&s->source, &s->rate);
	home = save_affinity();
	for (size_t i = 0; i < s->info.cpus; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];
		int err = has_ticks(c) ? set_period(s, c, home) : 0;

		first = first ? first : err;
	}
	restore_affinity(home);
	return first;
}
