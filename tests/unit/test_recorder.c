/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples, mappings, CPU time and symbols through the recorder.
 */
#include <math.h>

#include "unit.h"

#include "base/minmax.h"
#include "models/profile_dump.h"

#include "unit/event_story.h"
#include "world/mapping_table.h"
#include "world/process_table.h"

/* ---- events that are no clock ---------------------------------------------------------------- */

#define PLACES 3

/* What a stream of events is made of, and what its samples say. */
struct event_stream {
	uint64_t truth[PLACES], all;
	uint64_t left, period; /* up to the next overflow; between this one and the last */
};

/* As many events, in `most` with that probability (%), else in the last place; sampled. */
static void run_phase(struct event_stream *s, uint64_t events, unsigned int most,
		      unsigned int percent, uint64_t target)
{
	for (uint64_t i = 0; i < events; i++) {
		unsigned int place = random_below(100) < percent ? most : PLACES - 1;

		s->truth[place]++;
		s->all++;
		if (--s->left)
			continue;
		ev.now += MS;
		ev.sample_period = s->period;
		sample(10, 10, 5 * S, IP(0x10010 + 0x100 * place), END);
		s->left = s->period = target / 2 + 1 + random_below(target);
	}
}

/* By place, from the location that it is. */
static void add_up(const struct profile_samples *samples, double *events, double *squares,
		   size_t *rows)
{
	for (size_t i = 0; i < samples->count; i++) {
		const struct profile_stack *stack = &ev.p->stacks[samples->stack[i].v];
		size_t place = (ev.p->locations[stack->location.v].address - 0x400) / 0x100;

		place = min_u64(place, PLACES - 1);
		events[place] += (double)profile_samples__events(samples, i);
		squares[place] += profile_samples__square(samples, i);
		rows[place]++;
	}
}

/*
 * Two phases of equal length, the second with ten times as many events; the kernel keeps the rate
 * of samples, so it makes periods ten times as long. Counts of samples are off by a factor of ten.
 */
STORY(events_of_phases_have_their_share)
{
	struct event_stream s = {.left = 1, .period = 1};
	double events[PLACES] = {}, squares[PLACES] = {}, all = 0, square = 0;
	size_t rows[PLACES] = {};

	seed = 7;
	assert_int_equal(ev.h.meta(ev.h.context, "event", "page-faults"), 0);
	assert_int_equal(ev.h.meta(ev.h.context, "event_unit", "count"), 0);
	prog();
	run_phase(&s, 400000, 0, 80, 100);
	run_phase(&s, 4000000, 1, 70, 1000);
	finish();
	ev.sample_period = 0;
	assert_string_equal(profile__event(ev.p), "page-faults");
	add_up(&thread_of(10, 0)->samples[SAMPLE_CPU], events, squares, rows);
	for (int i = 0; i < PLACES; i++) {
		all += events[i];
		square += squares[i];
	}
	assert_true(s.all - (uint64_t)all < s.period); /* those since the last overflow */
	assert_true(rows[0] > rows[1] * 9 / 10 && rows[1] > rows[0] / 2);
	for (int i = 0; i < PLACES; i++) {
		double p = (double)s.truth[i] / (double)s.all, share = events[i] / all;
		double variance = (1 - p) * (1 - p) * squares[i] + p * p * (square - squares[i]);

		if (fabs(share - p) > 3 * sqrt(variance) / all)
			fail_msg("place %d: %f instead of %f ± %f", i, share, p,
				 sqrt(variance) / all);
	}
}

/* ---- frames ---------------------------------------------------------------------------------- */

STORY(kernel_and_user_frames)
{
	prog();
	map(10, 0x20000, 0x1000, 0, "/lib/libx.so.1 (deleted)", 0);
	map(10, 0x30000, 0x1000, 0, "//anon", 0);
	map(10, 0x40000, 0x1000, 0, "[vdso]", 0);
	ev.now += MS;
	/* a signal interrupted 0x10080, which is exact; others are return addresses */
	sample(10, 10, 5 * S + MS, (uint64_t)0xffffffff81000100, (uint64_t)0xffffffff81000200,
	       IP(0x40010), RET(0x20010), frame_pack(FRAME_AFTER_SIGNAL, 0x10080),
	       frame_pack(FRAME_TABLE, 0x30040), frame_pack(FRAME_LEAF_PEEK, 0x10020), END);
	ev.now += MS;
	sample(10, 10, 5 * S + 2 * MS, (uint64_t)0xffffffff81000100, IP(0x40010), END);
	ev.now += MS;
	/* the same kernel address, now as the caller: not to be taken from the last sample */
	sample(10, 10, 5 * S + 3 * MS, (uint64_t)0xffffffff81000300, (uint64_t)0xffffffff81000100,
	       IP(0x40010), END);
	finish();
	expect_stack(thread_of(10, 0), 0,
		     "prog+0x41f [anon]+0x3003f prog+0x480 libx.so.1+0xf [vdso]+0x10 "
		     "[kernel]+0xffffffff810001ff [kernel]+0xffffffff81000100");
	expect_stack(thread_of(10, 0), 1, "[vdso]+0x10 [kernel]+0xffffffff81000100");
	expect_stack(thread_of(10, 0), 2,
		     "[vdso]+0x10 [kernel]+0xffffffff810000ff [kernel]+0xffffffff81000300");
	for (size_t i = 1; i < ev.p->location_count; i++) {
		const struct profile_location *l = &ev.p->locations[i];
		const struct profile_dso *d = &ev.p->dsos[l->dso.v];
		static const enum profile_category wanted[] = {
			[DSO_FILE] = CATEGORY_USER,
			[DSO_VDSO] = CATEGORY_LIBRARY,
			[DSO_KERNEL] = CATEGORY_KERNEL,
			[DSO_JIT] = CATEGORY_JIT,
		};

		assert_int_equal(l->category, d->is_library ? CATEGORY_LIBRARY : wanted[d->kind]);
		if (d->is_library) {
			assert_true(d->deleted);
			assert_string_equal(str(d->path), "/lib/libx.so.1");
		}
	}
	assert_int_equal(ev.p->unmapped_frames, 0);
}

#define KERNEL(offset) (0xffffffff81000000 + (offset))

/* The work of interrupts in a task, and on an idle CPU; the outer frames are the same each time. */
static void work_of_interrupts(const char *softirq, const char *hardirq)
{
	static const uint16_t flags[] = {0, EVENT_IN_SOFTIRQ, EVENT_IN_HARDIRQ, 0, EVENT_IN_GUEST};
	const char *const roots[] = {"", softirq, hardirq, "", ""};
	static const enum sample_context contexts[] = {CONTEXT_NONE, CONTEXT_SOFTIRQ,
						       CONTEXT_HARDIRQ, CONTEXT_NONE, CONTEXT_NONE};
	const struct profile_samples *s;
	char wanted[256];

	report_process(0, 0, false, true, "[interrupts]");
	thread(0, 0x400003, 0, 0, "NET_RX");
	for (int i = 0; i < 5; i++) {
		ev.now += MS;
		ev.sample_flags = flags[i];
		sample(10, 10, 5 * S + i * MS, KERNEL(0x10), KERNEL(0x21), IP(0x10010), END);
	}
	ev.sample_flags = EVENT_IN_SOFTIRQ;
	for (int i = 1; i < 4; i++) {
		ev.now += MS;
		sample(0, 0x400003, i * MS, KERNEL(0x10), KERNEL(0x31), END);
	}
	finish();
	s = &thread_of(10, 0)->samples[SAMPLE_CPU];
	for (int i = 0; i < 5; i++) {
		snprintf(wanted, sizeof(wanted),
			 "%sprog+0x410 [kernel]+0xffffffff81000020 [kernel]+0xffffffff81000010%s",
			 roots[i], i == 4 ? " [unknown]+0xfffffffffffffffb" : "");
		expect_stack(thread_of(10, 0), i, wanted);
		assert_int_equal(profile_samples__context(s, i), contexts[i]);
	}
	s = &thread_of(0x400003, 0)->samples[SAMPLE_CPU];
	assert_int_equal(s->count, 3);
	assert_int_equal(s->weight[1], MS);
	assert_int_equal(profile_samples__context(s, 0), CONTEXT_SOFTIRQ);
	assert_string_equal(str(thread_of(0x400003, 0)->name), "NET_RX");
	assert_string_equal(str(process_of(thread_of(0x400003, 0))->name), "[interrupts]");
	assert_int_equal(process_of(thread_of(0x400003, 0))->pid, 0);
	assert_int_equal(ev.rereads, 0);
}

STORY(interrupts_are_labels)
{
	prog();
	work_of_interrupts("", "");
}

STORY(interrupts_are_roots)
{
	prog();
	assert_int_equal(ev.h.meta(ev.h.context, META_INTERRUPTS, "root"), 0);
	work_of_interrupts("[unknown]+0xfffffffffffffffd ", "[unknown]+0xfffffffffffffffc ");
}

/* The call is the last thing in its mapping: the return address belongs to the next file. */
STORY(return_address_at_a_boundary)
{
	prog();
	map(10, 0x11000, 0x1000, 0, "/lib/next.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, IP(0x11000), RET(0x11000), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "prog+0x13ff next.so+0x0");
}

/* One file too many: its code is not another file's, and what was there before is gone. */
STORY(mappings_that_are_left)
{
	prog();
	map(10, 0x20000, 0x1000, 0, "/lib/before.so", 0);
	map(10, 0x20000, 0x1000, 0, "/lib/left.so", EVENT_LEFT);
	map(10, 0x30000, 0x1000, 0, "/lib/other.so", EVENT_LEFT);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, IP(0x20010), RET(0x30021), RET(0x10021), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "prog+0x420 [unknown]+0x30020 [unknown]+0x20010");
	assert_int_equal(ev.p->unmapped_frames, 0);
	assert_int_equal(ev.rereads, 0);
}

/* What its parent has mapped is not known: it is read itself. */
STORY(a_child_of_a_process_that_is_being_read)
{
	prog();
	fork_(10, 10, 11, 11);
	assert_int_equal(ev.rereads, 0);
	process(20, 1 * S, true, "being-read");
	fork_(20, 20, 21, 21);
	assert_int_equal(ev.rereads, 1);
	assert_int_equal(ev.reread[0], 21);
	finish();
}

STORY(frames_without_mapping)
{
	const struct profile_location *l;

	prog();
	for (int i = 0; i < 2; i++) {
		ev.now += MS;
		sample(10, 10, 5 * S + MS, IP(0x10010), RET(0x99001), RET(0x10021), END);
	}
	assert_int_equal(ev.rereads, 2); /* once a sample */
	assert_int_equal(ev.reread[0], 10);
	/* the answer: now the same frames mean something */
	map(10, 0x99000, 0x1000, 0, "/lib/late.so", EVENT_FROM_PROC);
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, IP(0x10010), RET(0x99001), RET(0x10021), END);
	finish();
	assert_int_equal(ev.p->unmapped_frames, 2);
	expect_stack(thread_of(10, 0), 1, "prog+0x420 [unknown]+0x99000 prog+0x410");
	expect_stack(thread_of(10, 0), 2, "prog+0x420 late.so+0x0 prog+0x410");
	l = &ev.p->locations
		     [ev.p->stacks[ev.p->stacks[thread_of(10, 0)->samples[SAMPLE_CPU].stack[0].v]
					   .parent.v]
			      .location.v];
	assert_int_equal(l->category, CATEGORY_OTHER);
	assert_int_equal(l->process.v, thread_of(10, 0)->process.v);
}

STORY(no_frames_at_all)
{
	prog();
	ev.now += MS;
	ev.h.sample(ev.h.context, &(struct sample_event){.header = header(0),
							 .tgid = 10,
							 .tid = 10,
							 .cpu_time = 5 * S,
							 .user_end = STACK_END_DISABLED});
	ev.now += MS;
	sample(10, 10, 5 * S, END); /* from user code */
	finish();
	expect_stack(thread_of(10, 0), 0, "[kernel]+0x0");
	expect_stack(thread_of(10, 0), 1, "[unknown]+0x0");
	assert_int_equal(ev.p->stack_ends[STACK_END_DISABLED], 1);
}

STORY(run_time_code_by_name)
{
	static const struct {
		const char *path;
		enum dso_kind kind;
	} cases[] = {
		{"//anon", DSO_JIT},	  {"", DSO_JIT},
		{"[heap]", DSO_JIT},	  {"[stack]", DSO_JIT},
		{"[anon:v8]", DSO_JIT},	  {"/memfd:doublemapper (deleted)", DSO_JIT},
		{"/dev/zero", DSO_JIT},	  {"anon_inode:[io_uring]", DSO_JIT},
		{"/bin/tool", DSO_FILE},  {"/tmp/odd name\n.so", DSO_FILE},
		{"[vsyscall]", DSO_FILE}, {"[vdso]", DSO_VDSO},
	};

	prog();
	for (uint64_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		map(10, 0x20000, 0x1000, 0, cases[i].path, 0);
		ev.now += MS;
		sample(10, 10, 5 * S, IP(0x20010), END);
	}
	map(10, 0xffffffffff600000, 0x1000, 0, "[vsyscall]", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0xffffffffff600010), END);
	finish();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct profile_thread *t = thread_of(10, 0);
		const struct profile_location *l =
			&ev.p->locations[ev.p->stacks[t->samples[SAMPLE_CPU].stack[i].v]
						 .location.v];

		assert_int_equal(ev.p->dsos[l->dso.v].kind, cases[i].kind);
		assert_int_equal(l->address, cases[i].kind == DSO_JIT ? 0x20010 : 0x10);
		assert_int_equal(l->process.v != 0, cases[i].kind == DSO_JIT);
	}
	expect_stack(thread_of(10, 0), sizeof(cases) / sizeof(*cases), "[vsyscall]+0x10");
}

/* ---- mappings -------------------------------------------------------------------------------- */

STORY(dlopen_over_an_old_mapping)
{
	prog();
	map(10, 0x20000, 0x3000, 0, "/lib/old.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x21010), RET(0x10020), END);
	map(10, 0x21000, 0x1000, 0x5000, "/lib/new.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x21010), RET(0x10020), END);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x22010), RET(0x10020), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "prog+0x41f old.so+0x1010");
	expect_stack(thread_of(10, 0), 1, "prog+0x41f new.so+0x5010");
	expect_stack(thread_of(10, 0), 2, "prog+0x41f old.so+0x2010");
}

STORY(munmap_is_seen_by_a_reading)
{
	prog();
	map(10, 0x20000, 0x1000, 0, "/lib/gone.so", 0);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), END);
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), END);
	finish();
	expect_stack(thread_of(10, 0), 0, "gone.so+0x10");
	expect_stack(thread_of(10, 0), 1, "[unknown]+0x20010");
}

STORY(flips_of_a_jit_page_cost_nothing)
{
	const struct process_life *life;
	size_t dsos;

	prog();
	life = process_table__find(world__processes(ev.world), 10);
	map(10, 0x30000, 0x1000, 0x30000, "//anon", 0);
	dsos = profile_builder__dso_count(ev.builder);
	for (int i = 0; i < 1000; i++)
		map(10, 0x30000, 0x1000, 0x30000, "//anon", 0);
	assert_int_equal(mapping_table__count(life->maps), 2);
	assert_int_equal(profile_builder__dso_count(ev.builder), dsos);
}

static void map_pages(uint32_t pid, uint64_t count, uint64_t offset)
{
	for (uint64_t i = 0; i < count; i++)
		map(pid, 0x100000000 + i * 0x2000, 0x1000, offset, "/pages", 0);
}

/* Of a process, and of all: the excess is left out, counted, and read from /proc. */
STORY(too_many_mappings)
{
	enum { MAX = 262144 };
	const struct process_life *life;

	prog();
	life = process_table__find(world__processes(ev.world), 10);
	map_pages(10, MAX, 0);
	assert_int_equal(mapping_table__count(life->maps), MAX);
	assert_int_equal(world__stats(ev.world).refused_mappings, 1);
	assert_int_equal(ev.rereads, 1);
	assert_int_equal(ev.reread[0], 10);
	/* seventeen with so many, which share them until one changes them */
	for (uint32_t pid = 100; pid < 116; pid++)
		fork_(10, 10, pid, pid);
	map_pages(10, 65536, 0x1000);
	assert_int_equal(world__stats(ev.world).dropped_mappings, MAX);
	assert_int_equal(ev.rereads, 2);
	assert_int_equal(mapping_table__count(life->maps), 0);
	for (uint64_t i = 1; i <= 4; i++)
		map_pages(10, 65536, 0x1000 * (i % 2));
	/* one more was enough */
	assert_int_equal(world__stats(ev.world).dropped_mappings, 2 * MAX);
	assert_int_equal(mapping_table__count(life->maps), 65536);
}

/* ---- CPU time -------------------------------------------------------------------------------- */

STORY(cpu_deltas)
{
	const struct profile_thread *t;

	prog();
	ev.now += MS;
	fork_(10, 10, 10, 12);
	ev.now += MS;
	sample(10, 10, 5 * S + 2 * MS - 100, HERE);
	sample(10, 12, 900, HERE);
	ev.now += MS;
	sample(10, 12, 800, HERE); /* so the one before was too large by 100 */
	ev.now += MS;
	sample(10, 12, 1000, HERE);
	thread_cpu(10, 10, 5 * S + 3 * MS, 0); /* read meanwhile */
	ev.now += MS;
	sample(10, 10, 5 * S + 4 * MS, HERE);
	thread_cpu(10, 10, 5 * S + 4 * MS + 50, 0);
	thread_cpu(10, 12, 1001, 0);
	stop();
	finish();
	t = thread_of(10, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[0],
			 2 * MS - 100); /* not what it used before */
	assert_int_equal(t->samples[SAMPLE_CPU].weight[1], 2 * MS + 100);
	assert_int_equal(t->cpu_tail, 50);
	t = thread_of(12, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[0], 800);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[1], 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[2], 200);
	assert_int_equal(t->cpu_tail, 1);
}

STORY(cpu_before_the_start_does_not_count)
{
	process(10, S / 2, true, "prog");
	thread(10, 10, S / 2, 5 * S, "prog");
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	process(20, S / 2, true, "idler");
	thread(20, 20, S / 2, 5 * S, "idler");
	process(30, S / 2, true, "shell");
	thread(30, 30, S / 2, 5 * S, "shell");
	thread_cpu(10, 10, 6 * S, 0); /* later baselines */
	thread_cpu(20, 20, 6 * S, 0);
	ev.now += 100 * MS; /* it runs on while the rest of the system is read */
	start_sampling();
	ev.now += MS;
	sample(10, 10, 6 * S + 101 * MS, HERE);
	ev.now += MS;
	/* an execve does not bring it back */
	comm(10, 10, "tool", EVENT_COMM_EXEC);
	sample(10, 10, 6 * S + 102 * MS, HERE);
	/* nor one before the first sample */
	comm(30, 30, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	sample(30, 30, 6 * S, HERE);
	ev.now += 10 * MS;
	sample(20, 20, 6 * S + 300, HERE);
	finish();
	assert_int_equal(cpu_of_tid(20), 300);
	assert_int_equal(cpu_of_tid(30), 3 * MS);
	assert_int_equal(thread_of(10, 0)->samples[SAMPLE_CPU].weight[0], MS);
	assert_int_equal(cpu_of_tid(10), 2 * MS);
}

/* CPU time from intended pauses is in no sample, and in no tail. */
STORY(cpu_from_a_new_baseline)
{
	const struct profile_thread *t;

	prog();
	ev.now += MS;
	sample(10, 10, 5 * S + MS, HERE);
	ev.now += 3 * S;
	thread_cpu(10, 10, 7 * S, EVENT_BASELINE);
	ev.now += 2 * MS;
	sample(10, 10, 7 * S + 2 * MS, HERE);
	thread_cpu(10, 10, 6 * S, EVENT_BASELINE); /* it does not go back */
	ev.now += MS;
	sample(10, 10, 7 * S + 3 * MS, HERE);
	stop();
	finish();
	t = thread_of(10, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[1], 2 * MS);
	assert_int_equal(t->samples[SAMPLE_CPU].weight[2], MS);
	assert_int_equal(t->cpu_tail, 0);
}

/* ---- the session ----------------------------------------------------------------------------- */

STORY(an_empty_profile_has_its_threads)
{
	process(10, S / 2, true, "prog");
	thread(10, 10, S / 2, 5 * S, "prog");
	thread(10, 12, S / 2, 5 * S, "worker");
	process(20, S / 2, false, "other");
	thread(20, 20, S / 2, 5 * S, "other");
	process(30, S / 2, true, "held");
	thread(30, 30, S / 2, 0, "held");
	start_sampling();
	/* a command that was held: its life before does not count */
	comm(30, 30, "command", EVENT_COMM_EXEC);
	ev.now += S;
	thread_cpu(10, 12, 5 * S + 9, 0);
	stop();
	finish();
	assert_int_equal(ev.p->thread_count, 4);
	assert_string_equal(str(thread_of(30, 0)->name), "command");
	assert_string_equal(str(thread_of(12, 0)->name), "worker");
	assert_int_equal(thread_of(12, 0)->cpu_tail, 9);
	assert_int_equal(thread_of(12, 0)->samples[SAMPLE_CPU].count, 0);
	assert_int_equal(ev.p->start, S);
	assert_int_equal(ev.p->end, 2 * S);
	assert_false(ev.p->cut_short);
}

/* The whole system is not requested by name: what did not run is not in the profile. */
STORY(the_whole_system_has_what_ran)
{
	prog();
	report_process(2, S / 2, true, true, "kthreadd");
	thread(2, 2, S / 2, 0, "kthreadd");
	process(20, S / 2, true, "other");
	thread(20, 20, S / 2, 5 * S, "other");
	ev.now += MS;
	sample(20, 20, 5 * S + MS, (uint64_t)0xffffffff81000100, END);
	finish();
	assert_int_equal(ev.p->thread_count, 2);
}

STORY(clocks_books_and_losses)
{
	struct clock_anchor_event anchor = {
		.monotonic = S - 5, .realtime = 77 * S, .tsc_khz = 2000000, .error_ns = 100};
	struct books_event books = {.cpu = 1,
				    .lines = BOOK_COUNT,
				    .period = 1000,
				    .time_running = 5500,
				    .count = {4, 1}};
	struct lost_event lost = {.source = LOST_SIDEBAND, .count = 3, .since = S + 1};

	anchor.header = header(EVENT_NEW_EPOCH);
	anchor.extrapolation_error_ns = -900000; /* of another epoch */
	ev.h.clock_anchor(ev.h.context, &anchor);
	prog();
	fork_(10, 10, 11, 11);
	fork_(10, 10, 12, 12);
	exit_(12, 12);
	anchor.header = header(0);
	anchor.extrapolation_error_ns = -50;
	ev.h.clock_anchor(ev.h.context, &anchor);
	anchor.header = header(EVENT_NEW_EPOCH);
	ev.h.clock_anchor(ev.h.context, &anchor);
	ev.h.books(ev.h.context, &books);
	books.time_running = 6100;
	ev.h.books(ev.h.context, &books);
	ev.now += MS;
	lost.header = header(0);
	ev.h.lost(ev.h.context, &lost);
	/* every living process may be wrong now */
	assert_int_equal(ev.rereads, 2);
	assert_true((ev.reread[0] == 10 && ev.reread[1] == 11) ||
		    (ev.reread[0] == 11 && ev.reread[1] == 10));
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	finish(); /* without an end */
	assert_true(ev.p->cut_short);
	assert_int_equal(ev.p->end, S + 2 * MS);
	assert_int_equal(ev.p->start_realtime, 77 * S + 5);
	assert_int_equal(ev.p->tsc_khz, 2000000);
	assert_int_equal(ev.p->clock_error_ns, 150);
	assert_int_equal(ev.p->clock_epochs, 2);
	assert_int_equal(ev.p->period, 1000000); /* META's, not the books' */
	assert_int_equal(ev.p->books_count, 1);
	assert_int_equal(ev.p->books[0].due, 6);
	assert_int_equal(ev.p->lost[LOST_SIDEBAND], 3);
	assert_int_equal(ev.p->lost_ranges[0].since, S + 1);
}

STORY(samples_before_the_start_are_kept)
{
	prog();
	ev.now -= MS;
	sample(10, 10, 5 * S, HERE);
	finish();
	assert_int_equal(thread_of(10, 0)->samples[SAMPLE_CPU].count, 1);
	assert_true(ev.p->start < S - MS);
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct symbol_fixture {
	struct symbol_event event;
	struct symbol_event_frame outer;
	char strings[32];
};

static void report_symbols(uint32_t dso, uint64_t address, size_t size)
{
	struct symbol_dso_event of = {.dso = dso, .state = SYMBOL_STATE_RESOLVED};
	struct symbol_fixture f = {
		.event = {.header = {.size = size},
			  .address = address,
			  .elf_address = 0x1410,
			  .frames = 1},
		.outer = {.function_address = 0x1400,
			  .function_size = 32,
			  .line = 5,
			  .column = 6,
			  .definition_line = 3,
			  .name_size = 5,
			  .file_size = 4},
		.strings = "main\0a.c",
	};

	assert_int_equal(ev.symbol_handler.symbol_dso(&ev.symbols, &of), 0);
	assert_int_equal(ev.symbol_handler.symbol(&ev.symbols, &f.event), 0);
}

STORY(symbols_from_the_stream)
{
	const struct profile_location *l;
	const struct profile_line *line;
	const struct profile_function *f;
	uint32_t dso = 1; /* the first that was mapped */

	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x10010), RET(0x10021), END);
	report_symbols(dso, 0x410, sizeof(struct symbol_fixture));
	report_symbols(dso, 0x999, sizeof(struct symbol_fixture)); /* of no location */
	report_symbols(77, 0x410, sizeof(struct symbol_fixture));  /* of no dso */
	ev.symbol_handler.symbols_end(&ev.symbols, &(struct event_header){});
	finish();
	assert_true(ev.p->finished_symbols);
	assert_int_equal(ev.p->dsos[dso].symbol_state, SYMBOL_STATE_RESOLVED);
	l = &ev.p->locations[ev.p->stacks[thread_of(10, 0)->samples[SAMPLE_CPU].stack[0].v]
				     .location.v];
	assert_int_equal(l->elf_address, 0x1410);
	line = &ev.p->lines[l->first_line];
	assert_int_equal(line->line, 5);
	assert_string_equal(str(line->file), "a.c");
	f = &ev.p->functions[line->function.v];
	assert_string_equal(str(f->name), "main");
	assert_int_equal(f->address, 0x1400);
	assert_int_equal(f->definition_line, 3);
}

/* Whatever is cut off or wrong in it, a symbol event does no harm. */
STORY(damaged_symbol_events)
{
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S, HERE);
	for (size_t size = sizeof(struct symbol_event); size < sizeof(struct symbol_fixture);
	     size++) {
		/* exactly as long as it says, so that a sanitizer sees a byte too far */
		struct symbol_event *e = malloc(size);
		struct symbol_fixture f = {
			.event = {.header = {.size = size}, .address = 0x411, .frames = UINT32_MAX},
			.outer = {.name_size = 60000, .file_size = 60000},
		};

		memcpy(e, &f, size);
		assert_int_equal(ev.symbol_handler.symbol(&ev.symbols, e), 0);
		e->address = 0x410;
		ev.symbol_handler.symbol_dso(&ev.symbols,
					     &(struct symbol_dso_event){.dso = 1, .state = 99});
		assert_int_equal(ev.symbol_handler.symbol(&ev.symbols, e), 0);
		free(e);
	}
	finish();
}

/* ---- the whole ------------------------------------------------------------------------------- */

static char *story(void)
{
	char *text;
	size_t size;
	FILE *out;

	set_up(NULL);
	prog();
	fork_(10, 10, 11, 11);
	ev.now += MS;
	sample(10, 10, 5 * S + MS, (uint64_t)0xffffffff81000100, IP(0x10010), END);
	sample(11, 11, MS, IP(0x10010), RET(0x99001), END);
	comm(11, 11, "tool", EVENT_COMM_EXEC);
	ev.now += MS;
	exit_(11, 11);
	stop();
	finish();
	out = open_memstream(&text, &size);
	profile_dump(ev.p, out);
	fclose(out);
	tear_down(NULL);
	return text;
}

static const char story_dump[] =
	"session start=1000000000 end=1002000000 realtime=0 period=1000000 samples=2\n"
	"clock tsc_khz=0 error=0 epochs=0\n"
	"meta key=\"period_ns\" value=\"1000000\"\n"
	"meta key=\"sampling_start\" value=\"1000000000\"\n"
	"ends root=2\n"
	"frames ip=2\n"
	"frames frame-pointer=1\n"
	"unmapped-frames 1\n"
	"dso 1 file path=\"/bin/prog\" name=\"prog\" file=RIGHT symbols=PENDING\n"
	"dso 2 kernel path=\"[kernel.kallsyms]\" name=\"[kernel]\" file=NONE symbols=PENDING\n"
	"dso 3 unknown path=\"[unknown]\" name=\"[unknown]\" file=NONE symbols=PENDING\n"
	"function 1 dso=1 name=\"[prog]\" address=? size=0 file=\"\" at=0:0\n"
	"function 2 dso=2 name=\"[kernel]\" address=? size=0 file=\"\" at=0:0\n"
	"function 3 dso=3 name=\"[unknown]\" address=? size=0 file=\"\" at=0:0\n"
	"location 1 dso=1 user address=0x410 elf=? process=0\n"
	"  line function=1 file=\"\" at=0:0\n"
	"location 2 dso=2 kernel address=0xffffffff81000100 elf=? process=0\n"
	"  line function=2 file=\"\" at=0:0\n"
	"location 3 dso=3 other address=0x99000 elf=? process=2\n"
	"  line function=3 file=\"\" at=0:0\n"
	"stack 1 parent=0 location=1 depth=1\n"
	"stack 2 parent=1 location=2 depth=2\n"
	"stack 3 parent=0 location=3 depth=1\n"
	"stack 4 parent=3 location=1 depth=2\n"
	"process 1 pid=10 ppid=1 name=\"prog\" start=1000000000 end=0 target\n"
	"process 2 pid=11 ppid=10 name=\"prog\" start=1000000000 end=1001000000 forked execs target\n"
	"thread 1 process=1 tid=10 name=\"prog\" start=1000000000 end=0 tail=0 main\n"
	"  sample 1001000000 stack=2 cpu=1000000 comm=\"prog\"\n"
	"thread 2 process=2 tid=11 name=\"prog\" start=1000000000 end=1001000000 tail=0 main\n"
	"  sample 1001000000 stack=4 cpu=1000000 comm=\"prog\"\n";

/*
 * A thread that changes its name without end: the profile has the first names, those at samples,
 * and the last.
 */
STORY(names_without_end)
{
	enum { NAMES = 20000, EACH = 1000 };
	const struct profile_thread *t;
	char name[16] = "", wanted[16];
	size_t n = 0;

	prog();
	sample(10, 10, 5 * S, HERE);
	for (unsigned int i = 0; i < NAMES; i++) {
		ev.now += 10;
		snprintf(name, sizeof(name), "n%u", i);
		comm(10, 10, name, 0);
		if (i % EACH == EACH / 2)
			sample(10, 10, 5 * S + i, HERE);
	}
	finish();
	t = thread_of(10, 0);
	assert_in_range(ev.p->string_count, 1, PROFILE_RENAMES_MAX + NAMES / EACH + 50);
	assert_int_equal(t->rename_count, PROFILE_RENAMES_MAX);
	assert_string_equal(str(t->name), name);
	assert_int_equal(t->samples[SAMPLE_CPU].count, 1 + NAMES / EACH);
	for (unsigned int i = EACH / 2; i < NAMES; i += EACH) {
		snprintf(wanted, sizeof(wanted), "n%u", i);
		assert_string_equal(str(t->samples[SAMPLE_CPU].comm[++n]), wanted);
	}
}

/* The ends of a process and of its threads were lost, and /proc has it no more. */
STORY(ends_that_were_lost)
{
	struct task_event gone = {.pid = 20, .tid = 20};
	const struct thread_life *thread;
	uint64_t end;

	prog();
	fork_(10, 10, 20, 20);
	for (uint32_t tid = 21; tid < 30; tid++)
		fork_(20, 20, 20, tid);
	sample(20, 25, MS, HERE);
	ev.now += MS;
	gone.header = header(EVENT_FROM_PROC);
	end = gone.header.time;
	assert_int_equal(ev.h.exit(ev.h.context, &gone), 0);
	assert_true(process_table__find(world__processes(ev.world), 20)->ended);
	thread = process_table__find_thread(world__processes(ev.world), 25);
	assert_true(thread->ended);
	assert_int_equal(thread->end, end);
	ev.now += 3 * LIFE_GRACE_NS;
	sample(10, 10, 5 * S + MS, HERE);
	assert_null(process_table__find(world__processes(ev.world), 20));
	assert_null(process_table__find_thread(world__processes(ev.world), 25));
	finish();
	assert_int_equal(process_of(thread_of(25, 0))->end, end);
}

TEST(same_events_same_profile)
{
	char *one = story(), *two = story();

	assert_string_equal(one, story_dump);
	assert_string_equal(two, one);
	free(one);
	free(two);
}

/* ---- any order at all ------------------------------------------------------------------------ */

TEST(any_order_keeps_the_invariants)
{
	for (int round = 0; round < 300; round++) {
		set_up(NULL);
		seed = round;
		ev.now = S / 2;
		for (int i = 0; i < 400; i++) {
			random_event();
			ev.now += random_below(20) ? random_below(MS) : random_below(3 * S);
			if (i == 50)
				start_sampling();
		}
		if (random_below(2))
			stop();
		assert_true(finish()->sample_count > 0);
		tear_down(NULL);
	}
}
