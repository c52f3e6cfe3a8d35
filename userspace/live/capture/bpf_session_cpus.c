/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPUs of a session. Each that is online has up to four perf events:
 *
 *   tick      drives the program `tick` (sampled CPUs only)
 *   output    what the hooks write comes out of its ring; ticks have their own, see tick_rings.h
 *   sideband  mmap, comm, fork and exit records of the CPU, in its own ring
 *   tsc       counts the TSC, read by the program (with the TSC clock, sampled CPUs only)
 *
 * Two things have to be done on each CPU itself, so the calling thread moves there for a moment:
 * the TSC base, whose error is 13 us from elsewhere and 0.3 us at home, and a look at the run
 * queue's clock right after it was set (see bpf/cputime.bpf.h). Where a cpuset forbids to go there,
 * the first is bracketed and refused if it is bad, and the second comes with the first samples.
 */
#include "live/capture/bpf_session_cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "live/capture/bpf_session_hotplug.h"
#include "live/capture/bpf_session_private.h"
#include "live/capture/cpu_visit.h"
#include "live/capture/features.h"

#define RING_FLOOR (64u * 1024)
/* Spare rings for CPUs that come: one for so many present CPUs, and at least so many. */
#define RINGS_SPARED_SHARE 4
#define RINGS_SPARED	   2
#define CLOCK_LOOKS	   16

void session_cpu__init(struct session_cpu *c, uint32_t cpu)
{
	*c = (struct session_cpu){.cpu = cpu, .ring = NO_RING};
	c->decoder.cpu = cpu;
	c->fds.tick = c->fds.output = c->fds.sideband = c->fds.tsc = -1;
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

int bpf_session__read_online(uint32_t **cpus, size_t *count)
{
	char text[4096];
	return read_line(CPUS_ONLINE, text, sizeof(text))
		       ?: parse_cpu_list(text, CPU_VISIT_MAX - 1, cpus, count);
}

static int add_cpus(struct bpf_session *s, struct failure *failure)
{
	_cleanup_free_ uint32_t *online = NULL;
	int err = bpf_session__read_online(&online, &s->cpu_count);

	if (err)
		return fail(failure, err, "cannot read " CPUS_ONLINE ": %s", strerror(-err));
	s->sampled = calloc(s->cpu_count, sizeof(*s->sampled));
	if (s->sampled)
		s->cpus = calloc(s->cpu_count, sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < s->cpu_count; i++)
		session_cpu__init(&s->cpus[i], online[i]);
	return 0;
}

bool cpu_is_listed(const uint32_t *cpus, size_t count, uint32_t cpu)
{
	return any_of(cpus, count, listed, *listed == cpu);
}

struct session_cpu *bpf_session__find_cpu(const struct bpf_session *s, uint32_t cpu)
{
	return find_first(s->cpus, s->cpu_count, c, c->cpu == cpu);
}

/* The first CPU of -C that is not online. */
static uint32_t missing_cpu(const struct bpf_session *s, const struct target *target)
{
	size_t k = 0;

	while (k + 1 < target->cpu_count && bpf_session__find_cpu(s, target->cpus[k]))
		k++;
	return target->cpus[k];
}

int bpf_session__choose_cpus(struct bpf_session *s, const struct target *target,
			     struct failure *failure)
{
	size_t found = 0;
	int err = add_cpus(s, failure);

	if (err)
		return err;
	for (size_t i = 0; i < s->cpu_count; i++) {
		struct session_cpu *c = &s->cpus[i];

		c->sampled = !target->cpus ||
			     cpu_is_listed(target->cpus, target->cpu_count, c->cpu);
		if (c->sampled)
			s->sampled[found++] = i;
	}
	s->info.cpus = found;
	s->every_cpu = !target->cpus;
	if (target->cpus && found != target->cpu_count) {
		fail(failure, -ENODEV, "CPU %u of -C is not online", missing_cpu(s, target));
		return fail_remedy(failure, -ENODEV, "choose from the CPUs in " CPUS_ONLINE);
	}
	return 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

int bpf_session__open_tsc(struct bpf_session *s, struct session_cpu *c, bool visit, uint64_t *error)
{
	int err;

	c->fds.tsc = tsc_event_open(c->cpu);
	if (c->fds.tsc < 0) {
		err = c->fds.tsc;
		snprintf(s->clock_reason, sizeof(s->clock_reason),
			 "the TSC counter of the msr PMU cannot be opened: %s",
			 err == -ENOENT ? "there is none" : strerror(-err));
		return err;
	}
	if (!s->tsc_per_us)
		s->tsc_per_us = max_u64(tsc_per_us(), 1);
	if (visit)
		go_to_cpu(c->cpu);
	err = tsc_counter_base(c->fds.tsc, &c->tsc_base, error);
	if (err)
		snprintf(s->clock_reason, sizeof(s->clock_reason),
			 "the TSC counter of CPU %u cannot be read", c->cpu);
	else
		*error = *error * 1000 / s->tsc_per_us;
	return err;
}

/* Open and calibrate the TSC counters of all sampled CPUs. 0, or an error; sets clock_reason. */
static int open_tsc(struct bpf_session *s)
{
	const char *refused = tsc_refused();
	uint64_t error, worst = 0;
	cpu_set_t *home;
	int err = 0;

	if (refused) {
		snprintf(s->clock_reason, sizeof(s->clock_reason), "%s", refused);
		return -ENOTSUP;
	}
	home = save_affinity();
	for (size_t i = 0; i < s->info.cpus && !err; i++) {
		err = bpf_session__open_tsc(s, &s->cpus[s->sampled[i]], home, &error);
		if (!err)
			worst = max_u64(worst, error);
	}
	restore_affinity(home);
	if (err)
		return err;
	if (worst > TSC_ERROR_MAX_NS) {
		snprintf(s->clock_reason, sizeof(s->clock_reason),
			 "the TSC counters' bases are uncertain by %llu ns",
			 (unsigned long long)worst);
		return -ERANGE;
	}
	snprintf(s->clock_reason, sizeof(s->clock_reason),
		 "the TSC is invariant and its counter's base is known to %llu ns",
		 (unsigned long long)worst);
	return 0;
}

static void close_tsc(struct bpf_session *s)
{
	for (size_t i = 0; i < s->cpu_count; i++)
		close_event(&s->cpus[i].fds.tsc);
}

int bpf_session__choose_clock(struct bpf_session *s, enum clock_choice choice,
			      struct failure *failure)
{
	int err;

	if (choice == CLOCK_CHOICE_MONOTONIC) {
		snprintf(s->clock_reason, sizeof(s->clock_reason), "requested");
		return 0;
	}
	err = open_tsc(s);
	s->info.tsc = !err;
	if (!err)
		return 0;
	close_tsc(s);
	if (choice == CLOCK_CHOICE_AUTO)
		return 0;
	fail(failure, err, "cannot use the TSC as the clock: %s", s->clock_reason);
	return fail_remedy(failure, err, "--clock monotonic (works on every machine)");
}

/* ---- events ---------------------------------------------------------------------------------- */

static int open_tick(struct bpf_session *s, struct session_cpu *c)
{
	c->fds.tick = tick_event_open(&s->source, c->cpu, &s->rate);
	if (c->fds.tick < 0)
		return c->fds.tick;
	if (ioctl(c->fds.tick, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(s->skel->progs.tick)))
		return -errno;
	return put_map_fd(s->skel->maps.ticks, c->cpu, c->fds.tick);
}

size_t bpf_session__tick_ring_count(const struct bpf_session *s)
{
	int possible = libbpf_num_possible_cpus();
	size_t count = s->info.cpus, spared = max_u64(count / RINGS_SPARED_SHARE, RINGS_SPARED);

	if (!s->every_cpu || possible <= (int)count)
		return count;
	return min_u64(count + spared, possible);
}

int bpf_session__make_tick_rings(struct bpf_session *s)
{
	size_t count = bpf_session__tick_ring_count(s), size;
	int fd = tick_rings__create(count, s->rings.sample, s->rings.sample_least, &size), err;

	if (fd < 0)
		return fd;
	err = bpf_map__reuse_fd(s->skel->maps.tick_rings, fd)
		      ?: tick_rings__map(&s->tick_rings, fd, count, size);
	close(fd);
	s->rings.sample = size;
	s->skel->rodata->ring_size = size;
	return err;
}

/* A ring of its own, which the CPU keeps while offline. -ENOSPC: more CPUs came than rings. */
static int choose_ring(struct bpf_session *s, struct session_cpu *c)
{
	size_t taken = 0;

	for (size_t i = 0; i < s->cpu_count; i++)
		taken += s->cpus[i].ring != NO_RING;
	if (c->ring == NO_RING && taken == s->tick_rings.count)
		return -ENOSPC;
	if (c->ring == NO_RING)
		c->ring = taken;
	s->books[c->cpu].ring = c->ring;
	return 0;
}

static int open_output(struct bpf_session *s, struct session_cpu *c)
{
	size_t want = s->rings.other;
	int err;

	c->fds.output = output_event_open(c->cpu, want / 2);
	if (c->fds.output < 0)
		return c->fds.output;
	err = perf_ring__map(&c->output, c->fds.output, want, min_u64(want, RING_FLOOR));
	if (!err && c->sampled)
		err = choose_ring(s, c);
	return err ? err : put_map_fd(s->skel->maps.outputs, c->cpu, c->fds.output);
}

static int open_sideband(struct bpf_session *s, struct session_cpu *c)
{
	size_t want = s->rings.sideband;
	int err;

	c->fds.sideband = sideband_event_open(c->cpu, want / 2, s->reports_groups);
	if (c->fds.sideband < 0)
		return c->fds.sideband;
	err = perf_ring__map(&c->sideband, c->fds.sideband, want, min_u64(want, RING_FLOOR));
	if (err)
		return err;
	s->info.sideband_ring_size = min_u64(s->info.sideband_ring_size, c->sideband.data_size);
	return c->sampled ? 0 : put_map_fd(s->skel->maps.ticks, c->cpu, c->fds.sideband);
}

static int watch_ring(struct bpf_session *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int explain_tick(const struct bpf_session *s, int err, struct failure *failure)
{
	char attempt[128];

	if (err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -EINVAL) {
		fail(failure, err, "cannot sample the event \"%s\": %s", s->source.name,
		     tick_source__refusal(err));
		return fail_remedy(failure, err,
				   "-e cpu-clock (works on every machine); sysprof check --events "
				   "lists what this machine has");
	}
	snprintf(attempt, sizeof(attempt), "cannot open the event \"%s\"", s->source.name);
	return features_explain(failure, err, attempt);
}

int bpf_session__open_cpu(struct bpf_session *s, struct session_cpu *c, struct failure *failure)
{
	int err = open_output(s, c) ?: watch_ring(s, c->fds.output);

	if (err)
		return features_explain(failure, err, "cannot open a sample ring");
	err = open_sideband(s, c) ?: watch_ring(s, c->fds.sideband);
	if (err)
		return features_explain(failure, err,
					"cannot open the side-band events (mmap, comm, fork)");
	if (!c->sampled)
		return 0;
	bpf_session__start_grid(s, c);
	s->books[c->cpu].tsc_base = 0;
	if (s->info.tsc && c->fds.tsc >= 0) {
		s->books[c->cpu].tsc_base = c->tsc_base;
		err = put_map_fd(s->skel->maps.tsc_counters, c->cpu, c->fds.tsc);
		if (err)
			return fail(failure, err,
				    "cannot pass the TSC counter to the eBPF program: %s",
				    strerror(-err));
	}
	err = open_tick(s, c);
	return err ? explain_tick(s, err, failure) : 0;
}

static bool is_online(uint32_t cpu)
{
	_cleanup_free_ uint32_t *online = NULL;
	size_t count = 0;

	return bpf_session__read_online(&online, &count) || cpu_is_listed(online, count, cpu);
}

static int open_events(struct bpf_session *s, struct failure *failure)
{
	s->info.sample_ring_size = s->rings.sample;
	s->info.sideband_ring_size = s->info.sideband_ring_wanted = s->rings.sideband;
	s->online_fd = open(CPUS_ONLINE, O_RDONLY | O_CLOEXEC);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return features_explain(failure, -errno, "cannot make an epoll descriptor");
	for (size_t i = 0; i < s->cpu_count; i++) {
		struct session_cpu *c = &s->cpus[i];
		int err = bpf_session__open_cpu(s, c, failure);

		if (err == -ENODEV && !is_online(c->cpu)) {
			/* it went just now, and may come back */
			bpf_session__close_cpu(c);
			c->gone = true;
			if (failure)
				*failure = (struct failure){};
			continue;
		}
		if (err)
			return err;
	}
	return 0;
}

/* ---- wakes ----------------------------------------------------------------------------------- */

static int note_wake(void *context, void *record, size_t size)
{
	struct bpf_session *s = context;
	uint64_t cause = WAKE_BY_USERS;

	if (size >= sizeof(cause))
		memcpy(&cause, record, sizeof(cause));
	s->woken_by_root |= cause == WAKE_BY_ROOT;
	return 0;
}

static int open_wakes(struct bpf_session *s, struct failure *failure)
{
	s->wakes = ring_buffer__new(bpf_map__fd(s->skel->maps.tick_wakes), note_wake, s, NULL);
	if (!s->wakes ||
	    ring_buffer__add(s->wakes, bpf_map__fd(s->skel->maps.hook_wakes), note_wake, s))
		return features_explain(failure, -errno, "cannot open the ring that wakes");
	return 0;
}

int bpf_session__open_cpus(struct bpf_session *s, struct failure *failure)
{
	return open_events(s, failure) ?: open_wakes(s, failure);
}

void bpf_session__close_cpu(struct session_cpu *c)
{
	stack_join__fini(&c->join);
	perf_ring__unmap(&c->output);
	perf_ring__unmap(&c->sideband);
	close_event(&c->fds.tick);
	close_event(&c->fds.output);
	close_event(&c->fds.sideband);
	close_event(&c->fds.tsc);
}

void bpf_session__close_cpus(struct bpf_session *s)
{
	for (size_t i = 0; s->cpus && i < s->cpu_count; i++)
		bpf_session__close_cpu(&s->cpus[i]);
	ring_buffer__free(s->wakes);
	cleanup_close(&s->epoll_fd);
	cleanup_close(&s->online_fd);
	free(s->cpus);
	free(s->sampled);
}

int bpf_session__wake_fd(const struct bpf_session *s)
{
	return ring_buffer__epoll_fd(s->wakes);
}

bool bpf_session__take_wake(struct bpf_session *s, enum wake_cause *cause)
{
	bool is_full = false;

	s->woken_by_root = false;
	ring_buffer__consume(s->wakes);
	*cause = s->woken_by_root ? WAKE_BY_ROOT : WAKE_BY_USERS;
	for (size_t i = 0; i < s->tick_rings.count; i++)
		is_full |= tick_rings__used(&s->tick_rings, i) > s->rings.sample / 2;
	return is_full;
}

void bpf_session__set_wake_interval(struct bpf_session *s, enum wake_cause cause, uint64_t interval)
{
	__atomic_store_n(&s->skel->bss->wake_interval[cause], interval, __ATOMIC_RELAXED);
}

void bpf_session__wake_on_exec(struct bpf_session *s, bool wake)
{
	__atomic_store_n(&s->skel->bss->execs_wake, wake, __ATOMIC_RELAXED);
}

static uint64_t writing_since(const struct cpu_books *books, uint64_t now)
{
	uint64_t hook = __atomic_load_n(&books->hook_since, __ATOMIC_ACQUIRE);

	if (hook)
		now = min_u64(now, hook);
	if (__atomic_load_n(&books->busy, __ATOMIC_ACQUIRE)) {
		/* of the tick before, if this one has not come that far */
		now = min_u64(now, __atomic_load_n(&books->last_tick, __ATOMIC_ACQUIRE));
	}
	return now;
}

uint64_t bpf_session__written_until(const struct bpf_session *s, uint64_t now)
{
	for (size_t i = 0; i < s->cpu_count; i++)
		now = writing_since(&s->books[s->cpus[i].cpu], now);
	return now;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

/* Read this CPU's run queue clock right after it was set, which reading our own CPU time does. */
static void look_at_clock(struct bpf_session *s)
{
	struct timespec used;

	for (int i = 0; i < CLOCK_LOOKS; i++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
		bpf_session__run_prepare(s);
	}
}

/* Enable an event of CPU `c`, on that CPU if we may go there. The first tick is a period away. */
static int start_event(struct bpf_session *s, const struct session_cpu *c, int fd, bool look)
{
	bool there = look && go_to_cpu(c->cpu);

	if (fd == c->fds.tick && !s->info.started)
		s->info.started = monotonic_ns();
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	if (there)
		look_at_clock(s);
	return 0;
}

int bpf_session__start_sideband(struct bpf_session *s, struct session_cpu *c, bool visit)
{
	return c->gone ? 0 : start_event(s, c, c->fds.sideband, visit && !c->sampled);
}

int bpf_session__start_tick(struct bpf_session *s, struct session_cpu *c, bool visit)
{
	return c->gone ? 0 : start_event(s, c, c->fds.tick, visit);
}

int bpf_session__enable_sideband(struct bpf_session *s, struct failure *failure)
{
	cpu_set_t *home = save_affinity();
	int err = 0;

	for (size_t i = 0; i < s->cpu_count && !err; i++)
		err = bpf_session__start_sideband(s, &s->cpus[i], home);
	restore_affinity(home);
	if (err)
		return fail(failure, err,
			    "cannot start the side-band events (mmap, comm, fork): %s",
			    strerror(-err));
	return 0;
}

/* Has the clock of CPU `c` been read before its ticks start? A TSC counter always counts. */
static bool is_visited(const struct bpf_session *s, const struct session_cpu *c)
{
	return s->visited && s->books[c->cpu].tsc_base;
}

void bpf_session__visit_cpus(struct bpf_session *s)
{
	cpu_set_t *home = save_affinity();

	s->visited = home;
	for (size_t i = 0; i < s->info.cpus; i++) {
		const struct session_cpu *c = &s->cpus[s->sampled[i]];

		if (!c->gone && is_visited(s, c) && go_to_cpu(c->cpu))
			look_at_clock(s);
	}
	restore_affinity(home);
}

int bpf_session__enable_ticks(struct bpf_session *s, struct failure *failure)
{
	cpu_set_t *home = save_affinity();
	int err = 0;

	for (size_t i = 0; i < s->info.cpus && !err; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];

		err = bpf_session__start_tick(s, c, home && !is_visited(s, c));
	}
	restore_affinity(home);
	s->ticking = !err;
	if (err)
		return fail(failure, err, "cannot start the event \"%s\": %s", s->source.name,
			    strerror(-err));
	return 0;
}

/* Read the counter, time_enabled and time_running of the tick event. That of a clock is its time. */
void bpf_session__read_times(const struct bpf_session *s, struct session_cpu *c)
{
	uint64_t values[3];

	if (read(c->fds.tick, values, sizeof(values)) != sizeof(values))
		return;
	c->time_enabled = values[1];
	c->time_running = values[2];
	if (!s->source.clock)
		c->counted = values[0];
}

void bpf_session__stop_tick(const struct bpf_session *s, struct session_cpu *c)
{
	c->disable_begun = monotonic_ns();
	ioctl(c->fds.tick, PERF_EVENT_IOC_DISABLE, 0);
	c->disable_done = monotonic_ns();
	bpf_session__read_times(s, c);
}

void bpf_session__disable(struct bpf_session *s)
{
	if (s->disabled)
		return;
	s->disabled = true;
	for (size_t i = 0; i < s->info.cpus; i++)
		bpf_session__stop_tick(s, &s->cpus[s->sampled[i]]);
	sampler_bpf__detach(s->skel);
	for (size_t i = 0; i < s->cpu_count; i++)
		ioctl(s->cpus[i].fds.sideband, PERF_EVENT_IOC_DISABLE, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct drain {
	struct session_cpu *cpu;
	event_push_fn sink;
	void *context;
};

static int deliver_output(void *context, struct perf_event_header *record)
{
	struct drain *drain = context;
	struct event_header *event = output_decode(record);

	return event ? drain->sink(drain->context, event) : 0;
}

static int deliver_tick(void *context, struct event_header *event)
{
	struct drain *drain = context;

	if (event->type == EVENT_STACK_PIECE) {
		stack_join__piece(&drain->cpu->join, (const struct stack_piece *)event);
		return 0;
	}
	if (event->type == EVENT_SAMPLE) {
		drain->cpu->received++;
		event = stack_join__sample(&drain->cpu->join, event);
	}
	return drain->sink(drain->context, event);
}

static int deliver_sideband(void *context, struct perf_event_header *record)
{
	struct drain *drain = context;
	int err = sideband_decode(&drain->cpu->decoder, record, drain->sink, drain->context);

	if (err != -EBADMSG)
		return err;
	drain->cpu->decoder.damaged++;
	return 0;
}

/*
 * The kernel reports lost records with the next record that fits into the ring, which may never
 * come. Any record of this CPU will do: set this thread's name to the name it has.
 */
static void provoke_loss_report(struct session_cpu *c)
{
	cpu_set_t *before = save_affinity();
	char name[16];

	c->was_full = false;
	if (before && go_to_cpu(c->cpu) && !prctl(PR_GET_NAME, name))
		prctl(PR_SET_NAME, name);
	restore_affinity(before);
}

int bpf_session__drain_cpu(struct bpf_session *s, struct session_cpu *c, event_push_fn sink,
			   void *context)
{
	struct drain drain = {.cpu = c, .sink = sink, .context = context};
	int err = 0;

	if (c->ring != NO_RING)
		err = tick_rings__drain(&s->tick_rings, c->ring, deliver_tick, &drain);
	if (!err)
		err = perf_ring__drain(&c->output, deliver_output, &drain);
	if (err)
		return err;
	c->was_full |= perf_ring__used(&c->sideband) + SIDEBAND_RECORD_MAX > c->sideband.data_size;
	err = perf_ring__drain(&c->sideband, deliver_sideband, &drain);
	if (!err && c->was_full && !s->disabled && !c->gone)
		provoke_loss_report(c);
	return err;
}

/* What no record of the rings reports: damaged records, and output of hooks that did not fit. */
static int report_losses(struct bpf_session *s, event_push_fn sink, void *context)
{
	uint64_t lost = __atomic_load_n(&s->skel->bss->hook_output_lost, __ATOMIC_RELAXED);
	struct lost_event event = {
		.header = {.size = sizeof(event), .type = EVENT_LOST, .time = monotonic_ns()},
		.source = LOST_SIDEBAND,
		.cpu = ~0u,
		.since = s->drained,
	};

	for (size_t i = 0; i < s->cpu_count; i++) {
		const struct session_cpu *c = &s->cpus[i];

		lost += c->decoder.damaged + c->sideband.damaged + c->output.damaged;
	}
	event.count = lost - s->losses;
	s->losses = lost;
	s->drained = event.header.time;
	return event.count ? sink(context, &event.header) : 0;
}

int bpf_session__drain(struct bpf_session *s, event_push_fn sink, void *context)
{
	bool disabled = s->disabled;

	for (size_t i = 0; i < s->cpu_count; i++) {
		int err = bpf_session__drain_cpu(s, &s->cpus[i], sink, context);

		if (err)
			return err;
	}
	s->final = disabled;
	return report_losses(s, sink, context);
}

int bpf_session__epoll_fd(const struct bpf_session *s)
{
	return s->epoll_fd;
}

/*
 * Ticks between the program's last run and the end of ticking, which no run has seen. The end is
 * when the event was disabled, or, if the CPU went offline, when it stopped counting time.
 */
uint64_t bpf_session__ticks_after_last_run(const struct bpf_session *s, const struct session_cpu *c)
{
	const struct cpu_books *books = &s->books[c->cpu];
	uint64_t ran = c->time_running - c->period_running, stopped, point;

	if (!c->period)
		return 0;
	if (!books->grid_origin)
		return ran / c->period;
	stopped = books->grid_origin + ran;
	/* perf's clock and CLOCK_MONOTONIC differ a little in speed: of both, what is possible */
	if (stopped + ran / 1000 + c->period >= c->disable_begun)
		stopped = min_u64(max_u64(stopped, c->disable_begun), c->disable_done);
	point = (stopped - books->grid_origin) / c->period;
	return point > books->grid_point ? point - books->grid_point : 0;
}

/*
 * Closes the books of an event that is no clock: `count` are its lines. The events since the last
 * overflow are in no sample, and not due: they are less than the period that has begun. Others are
 * those of overflows that did not run the program.
 */
uint64_t bpf_session__close_events(const struct bpf_session *s, const struct session_cpu *c,
				   __u64 *count)
{
	uint64_t counted = c->past_counted + c->counted, reported = 0, rest;
	uint64_t period = s->rate.period ? s->rate.period : s->books[c->cpu].period_begun;

	for (int i = 0; i < BOOK_COUNT; i++)
		reported += count[i];
	rest = counted > reported ? counted - reported : 0;
	if (rest < period)
		return counted - rest;
	if (s->rate.period)
		rest -= rest % period;
	count[BOOK_NOT_RUN] += rest;
	return reported + rest;
}

void bpf_session__books(struct bpf_session *s, uint32_t index, struct books_event *event)
{
	struct session_cpu *c = &s->cpus[s->sampled[index]];
	const struct cpu_books *books = &s->books[c->cpu];

	if (!s->disabled)
		bpf_session__read_times(s, c);
	*event = (struct books_event){
		.header = {.size = sizeof(*event),
			   .type = EVENT_BOOKS,
			   .flags = s->final ? EVENT_FINAL : 0,
			   .time = monotonic_ns()},
		.cpu = c->cpu,
		.lines = BOOK_COUNT,
		.period = c->period,
		.time_enabled = c->past_enabled + c->time_enabled,
		.time_running = c->past_running + c->time_running,
		.received = c->received,
		.counted = c->past_counted + c->counted,
	};
	for (int i = 0; i < BOOK_COUNT; i++)
		event->count[i] = __atomic_load_n(&books->count[i], __ATOMIC_RELAXED);
	if (s->disabled && s->source.clock)
		event->count[BOOK_NOT_RUN] += bpf_session__ticks_after_last_run(s, c);
	else if (s->disabled)
		event->counted = bpf_session__close_events(s, c, event->count);
}
