/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of one stream: what belongs into which, and that they add up to one long recording. */
#include "unit.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include "unit/event_story.h"
#include "world/image_table.h"

/* ---- sums ------------------------------------------------------------------------------------ */

#define TIDS 16

/* What profiles say in sum: a line for each sample, CPU by tid, lives. */
struct totals {
	VEC(char *) lines; /* of samples and of lives, to be sorted */
	uint64_t cpu[TIDS], excess[TIDS];
	uint64_t ends[STACK_END_COUNT], unmapped, lost[LOST_SOURCE_COUNT];
	uint64_t due, stolen, delivered, received, running;
};

static void add_line(struct totals *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_line(struct totals *t, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	assert_true(vasprintf(&line, format, arguments) >= 0);
	va_end(arguments);
	assert_int_equal(vec_push(&t->lines, line), 0);
}

static void add_thread(struct totals *t, const struct profile_thread *thread)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];

	assert_true(thread->tid < TIDS);
	t->cpu[thread->tid] += profile_thread__cpu(thread);
	t->excess[thread->tid] += thread->cpu_excess;
	for (size_t i = 0; i < samples->count; i++)
		add_line(t, "%u %" PRIu64 " %s %s", thread->tid, samples->time[i],
			 str(samples->comm[i]), stack_text(thread, i));
}

static void add_profile(struct totals *t, const struct profile *p)
{
	ev.p = p;
	for (size_t i = 1; i < p->thread_count; i++)
		add_thread(t, &p->threads[i]);
	for (int i = 0; i < STACK_END_COUNT; i++)
		t->ends[i] += p->stack_ends[i];
	for (int i = 0; i < LOST_SOURCE_COUNT; i++)
		t->lost[i] += p->lost[i];
	for (size_t i = 0; i < p->books_count; i++) {
		t->due += p->books[i].due;
		t->stolen += p->books[i].times[CPU_TIME_STEAL];
		t->running += p->books[i].time_running;
		t->received += p->books[i].received;
		t->delivered += p->books[i].count[BOOK_DELIVERED];
	}
	t->unmapped += p->unmapped_frames;
	for (size_t i = 0; i < p->memory_count; i++)
		for (size_t k = 0; k < p->memories[i].count; k++)
			add_line(t, "memory %u %" PRIu64 " %" PRIu64, p->memories[i].pid,
				 p->memories[i].readings[k].time, p->memories[i].readings[k].bytes);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void totals__fini(struct totals *t)
{
	for (size_t i = 0; i < t->lines.count; i++)
		free(t->lines.data[i]);
	vec_free(&t->lines);
}

static void assert_same_totals(struct totals *one, struct totals *many)
{
	assert_int_equal(one->lines.count, many->lines.count);
	qsort(one->lines.data, one->lines.count, sizeof(char *), compare_lines);
	qsort(many->lines.data, many->lines.count, sizeof(char *), compare_lines);
	for (size_t i = 0; i < one->lines.count; i++)
		assert_string_equal(one->lines.data[i], many->lines.data[i]);
	for (uint32_t tid = 0; tid < TIDS; tid++)
		assert_int_equal(one->cpu[tid] - one->excess[tid],
				 many->cpu[tid] - many->excess[tid]);
	assert_memory_equal(one->ends, many->ends, sizeof(one->ends));
	assert_memory_equal(one->lost, many->lost, sizeof(one->lost));
	assert_int_equal(one->unmapped, many->unmapped);
	assert_int_equal(one->due, many->due);
	assert_int_equal(one->stolen, many->stolen);
	assert_int_equal(one->running, many->running);
	assert_int_equal(one->received, many->received);
	assert_int_equal(one->delivered, many->delivered);
}

/* ---- the same stream in one window and in many ----------------------------------------------- */

/* The rate changes right after a reading. */
static void report_books(uint64_t ticks)
{
	struct books_event books = {.header = header(0),
				    .lines = BOOK_COUNT,
				    .period = ticks / 60 % 2 ? MS + 1 : 3 * MS + 7};

	struct cpu_times_event times = {.header = header(0), .kinds = CPU_TIME_COUNT};

	times.time[CPU_TIME_STEAL] = ticks * ticks;
	assert_int_equal(ev.h.cpu_times(ev.h.context, &times), 0);
	books.time_enabled = books.time_running = ticks * MS;
	books.received = ticks;
	books.count[BOOK_DELIVERED] = ticks;
	assert_int_equal(ev.h.books(ev.h.context, &books), 0);
}

/* `window` is how many events a window has; 0: all of them. */
static void report_random_stream(uint64_t round, int window, struct totals *totals)
{
	set_up();
	seed = round;
	ev.now = S / 2;
	for (int i = 0; i < 600; i++) {
		random_event();
		ev.now += random_below(20) ? random_below(MS) : random_below(3 * S);
		if (i == 50)
			start_sampling();
		if (i % 10 == 9)
			report_books(i);
		if (window && i > 50 && i % window == window - 1) {
			report_books(i);
			next_window();
		} else if (i % 10 == 9) {
			report_books(i);
		}
	}
	if (random_below(2))
		stop();
	finish();
	add_profile(totals, ev.p);
	for (size_t i = 0; i < ev.windows; i++)
		add_profile(totals, ev.profiles[i]);
	tear_down();
}

TEST(windows_add_up)
{
	for (int round = 0; round < 300; round++) {
		_cleanup_(totals__fini) struct totals one = {}, many = {};

		report_random_stream(round, 0, &one);
		report_random_stream(round, 10 + round % 40, &many);
		assert_same_totals(&one, &many);
	}
}

STORY(due_at_two_rates)
{
	const struct profile_cpu_books *books;

	prog();
	report_books(30); /* 30 ms */
	report_books(59);
	next_window();
	report_books(100);
	ev.now += MS;
	next_window();
	report_books(119);
	report_books(121);
	stop();
	finish();
	books = ev.profiles[0]->books;
	assert_int_equal(books->due, 19); /* 59 ms at 3.000007 */
	assert_false(books->period_changed);
	books = ev.profiles[1]->books;
	assert_int_equal(books->due, 40); /* 41 ms at 1.000001 */
	assert_int_equal(books->period, MS + 1);
	assert_false(books->period_changed);
	books = ev.p->books;
	assert_int_equal(books->due,
			 19); /* 60 ms at 1.000001, 40 of which were reported; 2 ms at 3.000007 */
	assert_true(books->period_changed);
	assert_int_equal(books->period, 3 * MS + 7);
}

/* ---- what is in which ------------------------------------------------------------------------ */

/* Names, mappings and requests stay; ids do not. */
STORY(what_was_reported_before)
{
	prog();
	play("process 20 -500 other, thread 20 20 -500 1000 other, map 20 20000 /bin/other from-proc, "
	     "comm 10 10 renamed, meta hostname here, window, "
	     "+1, sample 20 20 1001 20010, +1, sample 10 10 5001, stop");
	finish();
	expect_stack(thread_of(20, 0), 0, "other+0x10");
	expect_stack(thread_of(10, 0), 0, "prog+0x410");
	assert_string_equal(str(thread_of(10, 0)->name), "renamed");
	assert_string_equal(profile__meta(ev.p, META_HOSTNAME), "here");
	assert_int_equal(ev.p->period, 1000000);
	assert_int_equal(ev.p->dso_count - 1, 2);
	/* requested, and not sampled */
	ev.p = ev.profiles[0];
	assert_int_equal(thread_of(10, 0)->samples[SAMPLE_CPU].count, 0);
	assert_int_equal(thread_of(20, 0)->samples[SAMPLE_CPU].count, 0);
}

/* A life is known again in the next window, with the facts that were reported before. */
STORY(a_life_and_its_facts_outlive_windows)
{
	const struct profile_process *p;
	uint64_t life;

	prog();
	play("facts 10 0 whole exe=/bin/prog, sample 10 10 5000, +1, window");
	life = process_of(thread_of(10, 0))->life;
	assert_true(life);
	play("sample 10 10 5001, +1, exec 10 10 next, sample 10 10 5002");
	finish();
	p = process_of(thread_of(10, 0));
	assert_true(p->life == life);
	assert_int_equal(p->fact_count, 1);
	assert_string_equal(str(ev.p->facts[p->first_fact].value), "/bin/prog");
	assert_true(process_of(thread_of(10, 1))->life != life);
}

/* The wall clock may have been set since the recording began. */
STORY(the_time_of_a_window)
{
	struct clock_anchor_event anchor = {
		.monotonic = S, .realtime = 1000 * S, .tsc_khz = 2000000, .tsc = 1};

	anchor.header = header(0);
	ev.h.clock_anchor(ev.h.context, &anchor);
	prog();
	ev.now += MS;
	sample(10, 10, 5 * S + MS, HERE);
	ev.now += S;
	anchor.header = header(0);
	anchor.monotonic = ev.now;
	anchor.realtime = 5000 * S;
	ev.h.clock_anchor(ev.h.context, &anchor);
	ev.now += MS;
	next_window();
	assert_int_equal(ev.profiles[0]->start_realtime, 1000 * S);
	ev.now += MS;
	sample(10, 10, 5 * S + 2 * MS, HERE);
	stop();
	finish();
	assert_int_equal(ev.p->start_realtime, 5000 * S + MS);
	assert_int_equal(ev.p->clock_epochs, 1);
	assert_int_equal(ev.p->tsc_khz, 2000000);
}

STORY(images_are_forgotten)
{
	struct image_table *images = world__images(ev.world);
	char path[64];

	prog();
	for (int round = 0; round < 8; round++) {
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t pid = 1000 + i;

			snprintf(path, sizeof(path), "/tmp/%d-%u", round, i);
			fork_(10, 10, pid, pid);
			map(pid, 0x50000, 0x1000, 0, path, 0);
			ev.now += MS;
			sample(pid, pid, MS, IP(0x50010), END);
			exit_(pid, pid);
		}
		ev.now += 3 * S;
		sample(10, 10, 5 * S + (round + 1) * MS, HERE);
		next_window();
		world__forget(ev.world, NULL, NULL);
		ev.p = ev.profiles[round];
		snprintf(path, sizeof(path), "%d-999+0x10", round);
		expect_stack(thread_of(1999, 0), 0, path);
	}
	assert_true(image_table__count(images) < 3500);
	ev.now += MS;
	sample(10, 10, 5 * S + 20 * MS, HERE);
	finish();
	expect_stack(thread_of(10, 0), 0, "prog+0x410");
}
