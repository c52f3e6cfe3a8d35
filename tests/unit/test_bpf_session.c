/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_session against the running kernel: books that balance, exact CPU time, children, both
 * clocks, stacks of known depth. Needs root.
 */
#include <sys/resource.h>
#include <time.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/bpf_session_private.h"
#include "live/capture/cpu_visit.h"

#define HZ	997
#define DEPTH	30
#define SAMPLES 20000
#define MS	1000000ull
/* Timers follow the clock that NTP speeds up or slows down by 0.05 % at most, time_running does not. */
#define DUE_SLACK(due) (2 + (due) / 2000)

struct sample {
	uint64_t time, tsc, cpu_time;
	uint32_t tgid, tid;
	uint16_t kernel_frames, user_frames;
	uint8_t user_end, from_user;
};

/* Of the running test. */
static struct recording {
	struct bpf_session *session;
	struct clock clock;
	size_t count;
	struct sample samples[SAMPLES];
	size_t events[64];   /* by type */
	uint64_t exited_cpu; /* sum of EVENT_THREAD_CPU */
	uint64_t lost;	     /* of EVENT_LOST of no CPU */
	uint64_t
		not_run; /* ticks that were late, as beside a hypervisor's other guests: a sample may be missing for each */
} * r;

static struct bpf_session_options options;

static void set_up(void)
{
	options = (struct bpf_session_options){
		.target = {.mode = TARGET_PROCESSES, .inherit = true},
		.hz = HZ,
		.user_stacks = true,
		.kernel_stacks = true,
		.max_depth = 256,
	};
}

static void close_recording(void)
{
	if (r)
		bpf_session__free(r->session);
	free(r);
	r = NULL;
}

static int take(void *context, struct event_header *event)
{
	assert_true(event->type < 64);
	r->events[event->type]++;
	if (event->type == EVENT_THREAD_CPU)
		r->exited_cpu += ((struct thread_cpu_event *)event)->cpu_time;
	if (event->type == EVENT_LOST && ((struct lost_event *)event)->cpu == ~0u)
		r->lost += ((struct lost_event *)event)->count;
	if (event->type == EVENT_SAMPLE) {
		const struct sample_event *e = (const struct sample_event *)event;
		size_t frames = e->kernel_frames + e->user_frames;

		assert_int_equal(event->size, sizeof(*e) + frames * sizeof(e->frames[0]));
		for (size_t i = 0; i < frames; i++)
			assert_int_equal(frame_kind(e->frames[i]),
					 i < e->kernel_frames	 ? FRAME_KERNEL
					 : i == e->kernel_frames ? FRAME_IP
								 : FRAME_POINTER);
		assert_true(e->user_end < STACK_END_COUNT);
		assert_true(r->count < SAMPLES);
		r->samples[r->count++] = (struct sample){
			.time = e->tsc ? clock__to_monotonic(&r->clock, e->tsc) : event->time,
			.tsc = e->tsc,
			.cpu_time = e->cpu_time,
			.tgid = e->tgid,
			.tid = e->tid,
			.kernel_frames = e->kernel_frames,
			.user_frames = e->user_frames,
			.user_end = e->user_end,
			.from_user = e->from_user,
		};
	}
	return 0;
}

static void open_recording(void)
{
	struct clock_anchor_event anchors[2];
	struct failure failure = {};
	int err;

	if (geteuid()) {
		print_message("needs root\n");
		skip();
	}
	close_recording();
	r = calloc(1, sizeof(*r));
	err = bpf_session__open(&options, &r->session, &failure);
	if (err)
		print_error("%s; %s\n", failure.what, failure.remedy);
	assert_int_equal(err, 0);
	clock__start(&r->clock, bpf_session__info(r->session)->tsc, anchors);
	assert_int_equal(bpf_session__enable_sideband(r->session, &failure), 0);
}

static void start(void)
{
	struct failure failure = {};

	assert_int_equal(bpf_session__enable_ticks(r->session, &failure), 0);
}

/* Disable and drain; the books of every CPU must balance. */
static void stop(void)
{
	const struct bpf_session_info *info = bpf_session__info(r->session);
	uint64_t received = 0;

	bpf_session__disable(r->session);
	bpf_session__disable(r->session);
	assert_int_equal(bpf_session__drain(r->session, take, NULL), 0);
	for (uint32_t i = 0; i < info->cpus; i++) {
		struct books_event books;
		uint64_t sum = 0, due, slack;

		bpf_session__books(r->session, i, &books);
		assert_int_equal(books.header.flags, EVENT_FINAL);
		assert_int_equal(books.lines, BOOK_COUNT);
		for (int k = 0; k < BOOK_COUNT; k++)
			sum += books.count[k];
		due = books.time_running / books.period;
		slack = DUE_SLACK(due);
		if (due > sum + slack || sum > due + slack)
			print_error("CPU %u: due %llu, booked %llu\n", books.cpu,
				    (unsigned long long)due, (unsigned long long)sum);
		assert_in_range(sum, due - slack, due + slack);
		assert_int_equal(books.count[BOOK_DELIVERED], books.received);
		assert_int_equal(books.count[BOOK_INTERNAL], 0);
		received += books.received;
		r->not_run += books.count[BOOK_NOT_RUN];
	}
	assert_int_equal(received, r->count);
}

static uint64_t thread_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Burn CPU time, `depth` frames deep. */
static __attribute__((noinline)) uint64_t burn(uint64_t ns, int depth)
{
	uint64_t end, spins = 0;

	if (depth > 1) {
		spins = burn(ns, depth - 1);
		__asm__ volatile("" : "+r"(spins)); /* no tail call */
		return spins + 1;
	}
	end = thread_cpu() + ns;
	while (thread_cpu() < end) {
		for (volatile int i = 0; i < 20000; i++)
			spins++;
	}
	return spins;
}

/* This process, as it uses CPU time. */
static void record_burning(uint64_t ns, int depth)
{
	assert_int_equal(bpf_session__add_target(r->session, getpid()), 0);
	start();
	burn(ns, depth);
	stop();
}

static size_t preemptions(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return (size_t)usage.ru_nivcsw;
}

static void assert_exact_samples_of_a_spinner(void)
{
	uint64_t period, first = thread_cpu(), last;
	size_t steps = 0, deep = 0, preempted;
	struct sample *previous = NULL;

	assert_int_equal(bpf_session__add_target(r->session, getpid()), 0);
	start();
	preempted = preemptions();
	burn(400 * MS, DEPTH);
	preempted = preemptions() - preempted;
	last = thread_cpu();
	stop();
	period = bpf_session__info(r->session)->period;
	assert_int_equal(period, 1000000000 / HZ);
	assert_in_range(r->count + r->not_run, 400 * MS / period * 8 / 10, UINT64_MAX);
	assert_in_range(r->count, 1, (last - first) / period * 12 / 10 + 5);
	for (size_t i = 0; i < r->count; i++) {
		struct sample *s = &r->samples[i];

		assert_int_equal(s->tgid, getpid());
		assert_int_equal(s->tid, getpid());
		if (s->from_user)
			assert_int_equal(s->kernel_frames, 0);
		deep += s->user_frames >= DEPTH;
		/* a sample overstates by what the hypervisor stole since the scheduler looked */
		assert_in_range(s->cpu_time, first - MS, last + 100 * MS);
		if (previous && s->cpu_time > previous->cpu_time + period * 3 / 4 &&
		    s->cpu_time < previous->cpu_time + period * 5 / 4)
			steps++;
		previous = s;
	}
	/* the rest: preempted between two ticks, or in the kernel, or in a prologue */
	assert_true((steps + 2 * (preempted + r->not_run)) * 10 > r->count * 5);
	assert_true(deep * 10 > r->count * 7);
}

TEST(samples_are_exact_with_the_tsc)
{
	open_recording();
	assert_exact_samples_of_a_spinner();
	for (size_t i = 0; i < r->count; i++)
		assert_int_equal(r->samples[i].tsc != 0, bpf_session__info(r->session)->tsc);
}

TEST(samples_are_exact_with_the_monotonic_clock)
{
	options.clock = CLOCK_CHOICE_MONOTONIC;
	open_recording();
	assert_false(bpf_session__info(r->session)->tsc);
	assert_string_equal(bpf_session__info(r->session)->clock_reason, "requested");
	assert_exact_samples_of_a_spinner();
	for (size_t i = 0; i < r->count; i++)
		assert_int_equal(r->samples[i].tsc, 0);
}

TEST(times_of_samples_lie_between_start_and_stop)
{
	for (int choice = CLOCK_CHOICE_AUTO; choice <= CLOCK_CHOICE_MONOTONIC; choice += 2) {
		uint64_t from, to, first = UINT64_MAX, last = 0;

		options.clock = choice;
		open_recording();
		bpf_session__add_target(r->session, getpid());
		from = monotonic_ns();
		start();
		burn(50 * MS, 1);
		stop();
		to = monotonic_ns();
		assert_true(r->count + r->not_run > 10);
		for (size_t i = 0; i < r->count; i++) {
			assert_in_range(r->samples[i].time, from, to);
			first = min_u64(first, r->samples[i].time);
			last = max_u64(last, r->samples[i].time);
		}
		assert_true(!r->count ||
			    last - first >=
				    (r->count - 1) * bpf_session__info(r->session)->period / 2);
	}
}

TEST(stacks_are_limited_in_depth)
{
	size_t cut = 0;

	options.max_depth = 5;
	options.kernel_stacks = false;
	open_recording();
	record_burning(100 * MS, DEPTH);
	for (size_t i = 0; i < r->count; i++) {
		assert_true(r->samples[i].user_frames <= 5);
		assert_int_equal(r->samples[i].kernel_frames, 0);
		cut += r->samples[i].user_end == STACK_END_DEPTH;
	}
	assert_true(cut * 10 > r->count * 7);

	options.user_stacks = false;
	open_recording();
	record_burning(50 * MS, DEPTH);
	assert_true(r->count > 0);
	for (size_t i = 0; i < r->count; i++) {
		assert_in_range(r->samples[i].user_frames, 0, 1); /* where it was, and no caller */
		assert_int_equal(r->samples[i].user_end, STACK_END_DISABLED);
	}
}

/* CPU time that children use, `count` of them, one after the other. */
static void make_children(int count, uint64_t ns)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			burn(ns, 1);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* CPU time of all children that were waited for. */
static uint64_t children_cpu(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 * MS +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ull;
}

TEST(short_children_are_sampled_and_accounted)
{
	uint64_t expected, difference, used = children_cpu();
	size_t of_children = 0;

	open_recording();
	bpf_session__add_target(r->session, getpid());
	start();
	make_children(200, 500000);
	stop();
	for (size_t i = 0; i < r->count; i++)
		of_children += r->samples[i].tgid != (uint32_t)getpid();
	assert_int_equal(r->events[EVENT_THREAD_CPU], 200);
	assert_true(r->events[EVENT_FORK] >= 200);
	assert_true(r->events[EVENT_EXIT] >= 200);
	/* EVENT_THREAD_CPU comes before memory is given back (since Linux 6.15), samples do not */
	used = children_cpu() - used;
	assert_in_range(r->exited_cpu, 200 * 500000, used + MS);
	expected = used / bpf_session__info(r->session)->period;
	/* within 4 sigma */
	difference = of_children > expected ? of_children - expected : expected - of_children;
	if (of_children < expected)
		difference -= min_u64(difference, r->not_run);
	assert_true(difference * difference <= 16 * expected);
	assert_int_equal(bpf_session__refused_children(r->session), 0);
	assert_int_equal(r->events[EVENT_LOST], 0);
}

/* On one CPU, in the smallest ring, which is not drained meanwhile. */
TEST(losses_of_the_side_band_are_counted_once)
{
	cpu_set_t *home;

	options.ring_bytes = 1;
	open_recording();
	bpf_session__add_target(r->session, getpid());
	start();
	home = save_affinity();
	assert_true(go_to_cpu(sched_getcpu()));
	make_children(500, 0);
	restore_affinity(home);
	stop();
	assert_true(r->lost > 0);
	assert_int_equal(r->events[EVENT_THREAD_CPU] + r->lost, 500);
	/* damaged records as well, and each loss once */
	r->lost = 0;
	r->session->cpus[0].decoder.damaged = 2;
	r->session->cpus[0].sideband.damaged = r->session->cpus[0].output.damaged = 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(bpf_session__drain(r->session, take, NULL), 0);
	assert_int_equal(r->lost, 4);
}

TEST(children_are_not_sampled_without_inherit)
{
	options.target.inherit = false;
	open_recording();
	bpf_session__add_target(r->session, getpid());
	start();
	make_children(4, 20 * MS);
	burn(20 * MS, 1);
	stop();
	assert_true(r->count + r->not_run > 0);
	for (size_t i = 0; i < r->count; i++)
		assert_int_equal(r->samples[i].tgid, getpid());
	assert_int_equal(r->events[EVENT_THREAD_CPU], 0);
}

TEST(the_whole_system_is_sampled_except_the_caller)
{
	size_t of_child = 0;
	pid_t pid;

	options.target.mode = TARGET_ALL;
	options.target.exclude_self = true;
	open_recording();
	start();
	pid = fork();
	if (!pid) {
		burn(100 * MS, 1);
		_exit(0);
	}
	burn(50 * MS, 1);
	waitpid(pid, NULL, 0);
	stop();
	for (size_t i = 0; i < r->count; i++) {
		assert_int_not_equal(r->samples[i].tgid, getpid());
		/* an idle CPU: only what interrupts do there */
		if (!r->samples[i].tid)
			assert_true(r->samples[i].kernel_frames && !r->samples[i].user_frames);
		of_child += r->samples[i].tgid == (uint32_t)pid;
	}
	assert_true(of_child + r->not_run > 20);
}

static uint64_t ticks_for_a_full_ring(void)
{
	uint64_t full = 0;

	for (uint32_t i = 0; i < bpf_session__info(r->session)->cpus; i++) {
		struct books_event books;

		bpf_session__books(r->session, i, &books);
		full += books.count[BOOK_RING_FULL];
	}
	return full;
}

/*
 * More comes in than the ring holds while it is not read: what is lost is in the books (see stop()).
 */
TEST(samples_for_a_full_ring_are_counted)
{
	options.hz = 20000; /* of 2 KB, into 8 MB */
	open_recording();
	assert_int_equal(bpf_session__add_target(r->session, getpid()), 0);
	start();
	for (int i = 0; i < 1000 && ticks_for_a_full_ring() <= 100; i++)
		burn(20 * MS, 250);
	stop();
	assert_true(ticks_for_a_full_ring() > 100);
	assert_true(r->count > 1000);
}

TEST(failures_to_open_have_a_reason_and_a_remedy)
{
	struct bpf_session *session = NULL;
	struct failure failure = {};
	uint32_t no_cpu = 8000;

	options.event = "no-such-event";
	assert_int_equal(bpf_session__open(&options, &session, &failure), -ENOENT);
	assert_non_null(strstr(failure.remedy, "cpu-clock"));
	options.event = NULL;
	options.target.cpus = &no_cpu;
	options.target.cpu_count = 1;
	assert_int_equal(bpf_session__open(&options, &session, &failure), -ENODEV);
	assert_non_null(strstr(failure.what, "not online"));
	assert_null(session);
	bpf_session__free(NULL);
}

TEST(verified_programs_are_small)
{
	struct bpf_program_info programs[16];
	size_t count;

	options.max_depth = SAMPLE_USER_DEPTH_MAX;
	open_recording();
	count = bpf_session__programs(r->session, programs, 16);
	assert_in_range(count, 6, 8);
	/* what the tick does not do itself it calls */
	for (size_t i = 0; i < count; i++)
		assert_true(programs[i].verified_insns <
			    (strcmp(programs[i].name, "tick") ? 40000 : 20000));
	assert_true(bpf_session__memory(r->session) > bpf_session__info(r->session)->cpus * 65536);
}

static uint64_t slot_of(uint32_t tgid)
{
	uint32_t slot = tgid % RUNTIME_SLOTS;
	uint64_t count = ~0ULL;

	assert_int_equal(bpf_map__lookup_elem(r->session->skel->maps.runtime_slots, &slot,
					      sizeof(slot), &count, sizeof(count), 0),
			 0);
	return count;
}

/* A process that shares its slot with one that has a runtime is looked up; the others are not. */
TEST(processes_with_a_runtime_are_counted_by_slot)
{
	const struct runtime_info info = {.has = RUNTIME_PYTHON};
	const uint32_t tgid = 77, other = tgid + RUNTIME_SLOTS;

	open_recording();
	assert_int_equal(bpf_session__set_runtime(r->session, tgid, NULL), 0);
	assert_int_equal(slot_of(tgid), 0);
	assert_int_equal(bpf_session__set_runtime(r->session, tgid, &info), 0);
	assert_int_equal(bpf_session__set_runtime(r->session, tgid, &info), 0);
	assert_int_equal(slot_of(tgid), 1);
	assert_int_equal(bpf_session__set_runtime(r->session, other, &info), 0);
	assert_int_equal(slot_of(tgid), 2);
	assert_int_equal(bpf_session__set_runtime(r->session, tgid, NULL), 0);
	assert_int_equal(bpf_session__set_runtime(r->session, tgid, NULL), 0);
	assert_int_equal(slot_of(other), 1);
	assert_int_equal(slot_of(tgid + 1), 0);
	for (uint32_t i = 1; i < RUNTIME_PROCESSES; i++)
		assert_int_equal(bpf_session__set_runtime(r->session, 100000 + i, &info), 0);
	assert_int_equal(bpf_session__set_runtime(r->session, 99, &info), -E2BIG);
}

EACH_TEST_WITH(set_up, close_recording);
