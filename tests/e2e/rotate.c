/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rotate SECONDS MILLISECONDS FILE [HZ,HZ… [shed]]: records the whole system into windows of so many milliseconds, and into FILE
 * as one; each window at the next of these rates, from the first again after the last, and
 * (shed) with one thing less than the window before, then with all again; then reads FILE as one window, and compares. Prints what it found, a line a fact, "NAME VALUE".
 * Exit status 0 if the windows add up.
 *
 * A sample is the same if thread, time, name and all frames by dso and address are. Names of JIT code
 * may differ where a window was named before its names had come: those are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/hashmap.h"
#include "base/parse.h"
#include "base/vec.h"
#include "session/session.h"
#include "window/replay.h"

#define TIDS_MAX (1u << 23) /* threads of interrupts are above the numbers of all others */
#define HZ	 499

/* Hashes. */
struct kept_sample {
	uint64_t key;	 /* thread and time */
	uint64_t comm;	 /* the thread's name then */
	uint64_t places; /* dsos and addresses */
	uint64_t names;	 /* of the functions */
};

struct totals {
	VEC(struct kept_sample) samples;
	int64_t *cpu; /* by tid */
	uint64_t ends[STACK_END_COUNT], lost[LOST_SOURCE_COUNT];
	uint64_t due, running, received, books[BOOK_COUNT];
	uint64_t unmapped, windows, failed, unexplained;
	uint64_t cuts, readings, memory; /* of which processes, when and how much */
	uint64_t first_start, last_end, gaps;
};

static void fail_now(const char *what, const struct failure *failure)
{
	fprintf(stderr, "rotate: %s: %s\n", what, failure ? failure->what : "");
	exit(1);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_combine(hash, hash_bytes(text, strlen(text)));
}

/* The name of a dso, and its identity. */
static uint64_t hash_dso(const struct profile *p, struct dso_id id)
{
	const struct profile_dso *dso = &p->dsos[id.v];
	uint64_t hash = hash_u64(dso->kind);

	if (dso->build_id_size)
		return hash_combine(hash, hash_bytes(dso->build_id, dso->build_id_size));
	return hash_text(hash_combine(hash, dso->inode), profile__string(p, dso->path));
}

static void add_frames(const struct profile *p, struct stack_id stack, struct kept_sample *sample)
{
	for (; stack.v; stack = p->stacks[stack.v].parent) {
		const struct profile_location *l = &p->locations[p->stacks[stack.v].location.v];

		sample->places = hash_combine(sample->places, hash_dso(p, l->dso));
		/* a number of this profile */
		if (p->dsos[l->dso.v].kind != DSO_RUNTIME)
			sample->places = hash_combine(sample->places, hash_u64(l->address));
		if (!dso_kind_is_made(p->dsos[l->dso.v].kind))
			continue;
		for (uint32_t i = 0; i < l->line_count; i++)
			sample->names = hash_text(
				sample->names,
				profile__string(
					p,
					p->functions[p->lines[l->first_line + i].function.v].name));
	}
}

static void add_thread(struct totals *t, const struct profile *p,
		       const struct profile_thread *thread)
{
	const struct profile_samples *s = &thread->samples[SAMPLE_CPU];

	if (thread->tid >= TIDS_MAX)
		fail_now("a very large thread number", NULL);
	t->cpu[thread->tid] += (int64_t)(profile_thread__cpu(thread) - thread->cpu_excess);
	t->cuts += thread->cut_count;
	for (size_t i = 0; i < s->count; i++) {
		struct kept_sample sample = {
			.key = hash_combine(thread->tid, s->time[i]),
			.comm = hash_text(0, profile__string(p, s->comm[i])),
		};

		add_frames(p, s->stack[i], &sample);
		if (vec_push(&t->samples, sample))
			fail_now("no memory", NULL);
	}
}

static void add_memory(struct totals *t, const struct profile_memory *memory)
{
	t->readings += memory->count;
	for (size_t i = 0; i < memory->count; i++)
		t->memory += hash_combine(hash_combine(memory->pid, memory->readings[i].time),
					  memory->readings[i].bytes);
}

static void add_profile(struct totals *t, const struct profile *p)
{
	if (t->windows && p->start != t->last_end)
		t->gaps++;
	if (!t->windows)
		t->first_start = p->start;
	t->last_end = p->end;
	t->windows++;
	for (size_t i = 1; i < p->thread_count; i++)
		add_thread(t, p, &p->threads[i]);
	for (int i = 0; i < STACK_END_COUNT; i++)
		t->ends[i] += p->stack_ends[i];
	for (int i = 0; i < LOST_SOURCE_COUNT; i++)
		t->lost[i] += p->lost[i];
	for (size_t i = 0; i < p->books_count; i++) {
		t->due += p->books[i].due;
		t->running += p->books[i].time_running;
		t->received += p->books[i].received;
		for (int line = 0; line < BOOK_COUNT; line++)
			t->books[line] += p->books[i].count[line];
	}
	for (size_t i = 0; i < p->memory_count; i++)
		add_memory(t, &p->memories[i]);
	t->unmapped += p->unmapped_frames;
	t->unexplained += llabs(profile__unexplained_ticks(p)) > profile__unexplained_allowed(p);
}

static int compare_samples(const void *a, const void *b)
{
	const struct kept_sample *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static bool differs(const char *what, uint64_t one, uint64_t windows)
{
	if (one == windows)
		return false;
	printf("differs %s: one %llu, windows %llu\n", what, (unsigned long long)one,
	       (unsigned long long)windows);
	return true;
}

static bool samples_differ(struct totals *one, struct totals *windows)
{
	size_t missing = 0, other_comms = 0, other_places = 0, other_names = 0;

	if (differs("samples", one->samples.count, windows->samples.count))
		return true;
	qsort(one->samples.data, one->samples.count, sizeof(struct kept_sample), compare_samples);
	qsort(windows->samples.data, windows->samples.count, sizeof(struct kept_sample),
	      compare_samples);
	for (size_t i = 0; i < one->samples.count; i++) {
		const struct kept_sample *a = &one->samples.data[i], *b = &windows->samples.data[i];

		missing += a->key != b->key;
		other_comms += a->comm != b->comm;
		other_places += a->places != b->places;
		other_names += a->names != b->names;
	}
	printf("samples %zu\nother_jit_names %zu\n", one->samples.count, other_names);
	return differs("samples of other threads or times", 0, missing) ||
	       differs("samples with another name of their thread", 0, other_comms) ||
	       differs("samples of other places", 0, other_places);
}

static long long unexplained_ticks(const struct totals *t)
{
	long long ticks = (long long)t->due;

	for (int line = 0; line < BOOK_COUNT; line++)
		ticks -= (long long)t->books[line];
	return ticks;
}

static bool totals_differ(struct totals *one, struct totals *windows)
{
	bool bad = samples_differ(one, windows);
	int64_t cpu = 0;

	for (uint32_t tid = 0; tid < TIDS_MAX; tid++) {
		cpu += one->cpu[tid];
		if (one->cpu[tid] != windows->cpu[tid]) {
			printf("differs CPU of %u: one %lld, windows %lld\n", tid,
			       (long long)one->cpu[tid], (long long)windows->cpu[tid]);
			bad = true;
		}
	}
	printf("cpu_seconds %.3f\n", cpu / 1e9);
	for (int i = 0; i < STACK_END_COUNT; i++)
		bad |= differs("stack ends", one->ends[i], windows->ends[i]);
	for (int i = 0; i < LOST_SOURCE_COUNT; i++)
		bad |= differs("lost", one->lost[i], windows->lost[i]);
	for (int i = 0; i < BOOK_COUNT; i++)
		bad |= differs("books", one->books[i], windows->books[i]);
	bad |= differs("due", one->due, windows->due);
	printf("due %llu\nunexplained_ticks %lld\n", (unsigned long long)one->due,
	       unexplained_ticks(one));
	bad |= differs("time running", one->running, windows->running);
	bad |= differs("received", one->received, windows->received);
	printf("memory_readings %llu\n", (unsigned long long)one->readings);
	bad |= differs("cut samples", one->cuts, windows->cuts);
	bad |= differs("readings of memory", one->readings, windows->readings);
	bad |= differs("memory", one->memory, windows->memory);
	bad |= differs("unmapped frames", one->unmapped, windows->unmapped);
	bad |= differs("gaps between windows", 0, windows->gaps);
	bad |= differs("windows that failed", 0, windows->failed);
	return bad;
}

/* ---- recording ------------------------------------------------------------------------------- */

static void add_window(void *context, const struct finished_window *window)
{
	struct totals *t = context;

	if (window->err) {
		fprintf(stderr, "rotate: window %llu: %s\n", (unsigned long long)window->number,
			window->failure.what);
		t->failed++;
		return;
	}
	add_profile(t, window->profile);
}

struct rates {
	uint32_t *hz;
	size_t count;
	bool shed;
};

/* All, then one less in each window, then all again. */
static void allow_less(struct session *session, uint64_t number)
{
	const struct session_allowance allowance = {.new_files = true,
						    .rare_names = true,
						    .early_ticks = true,
						    .debug_info = number % 4 < 1,
						    .table_builds = number % 4 < 2,
						    .jit_histories = number % 4 < 3};

	session__allow(session, &allowance);
}

static void run_windows(struct session *session, uint64_t seconds, uint64_t interval,
			const struct rates *rates)
{
	struct failure failure = {};
	uint64_t begin = monotonic_ns(), end = begin + seconds * 1000000000ull, next = begin;
	uint64_t number = 0, refused = 0;

	while (monotonic_ns() < end) {
		if (session__step(session, next < end ? next : end, &failure))
			fail_now("step", &failure);
		if (monotonic_ns() < next)
			continue;
		next += interval;
		if (rates->count)
			session__set_hz(session, rates->hz[number % rates->count]);
		if (rates->shed)
			allow_less(session, number);
		refused += session__rotate(session) == -EAGAIN;
		number++;
	}
	printf("refused_rotations %llu\n", (unsigned long long)refused);
}

static struct totals *new_totals(void)
{
	struct totals *t = calloc(1, sizeof(*t));

	if (t)
		t->cpu = calloc(TIDS_MAX, sizeof(*t->cpu));
	if (!t || !t->cpu)
		fail_now("no memory", NULL);
	return t;
}

static struct totals *record_windows(const char *path, uint64_t seconds, uint64_t interval,
				     const struct rates *rates)
{
	struct totals *totals = new_totals();
	struct session_options options = {
		.live =
			{
				.session =
					{
						.target = {.mode = TARGET_ALL},
						.hz = HZ,
						.user_stacks = true,
						.kernel_stacks = true,
						.unwind_bytes = 64u << 20,
						.max_depth = 256,
					},
				.target_text = "-a",
				.command_line = "rotate",
			},
		.symbolize = true,
		.symbols = {.cache = true},
		.finished = add_window,
		.context = totals,
	};
	struct failure failure = {};
	const struct profile *last;
	struct recording_writer *writer;
	struct session_stats stats;
	struct session *session;

	if (recording_writer__open(path, &writer, &failure))
		fail_now("writer", &failure);
	options.writer = writer;
	if (session__open(&options, &session, &failure) || session__start(session, 0, -1, &failure))
		fail_now("start", &failure);
	run_windows(session, seconds, interval, rates);
	if (session__stop(session, &failure))
		fail_now("stop", &failure);
	session__set_writer(session, NULL);
	if (recording_writer__close(writer, &failure) || session__finish(session, &last, &failure))
		fail_now("finish", &failure);
	session__stats(session, &stats);
	add_profile(totals, last);
	printf("windows %llu\nunexplained_windows %llu\nlongest_rotation_us %llu\n"
	       "longest_rotation_cpu_us %llu\n",
	       (unsigned long long)totals->windows, (unsigned long long)totals->unexplained,
	       (unsigned long long)stats.longest_rotation / 1000,
	       (unsigned long long)stats.longest_rotation_cpu / 1000);
	session__free(session);
	return totals;
}

static struct totals *read_as_one(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct replay_options options = {.symbols = {.cache = true}};
	struct totals *totals = new_totals();
	struct recording_summary summary = {};
	struct failure failure = {};
	const struct profile *profile;
	struct windows *windows;

	if (replay_recording(fd, path, &options, &windows, &profile, &summary, &failure))
		fail_now("replay", &failure);
	add_profile(totals, profile);
	windows__free(windows);
	return totals;
}

int main(int argc, char **argv)
{
	struct totals *windows, *one;
	uint64_t seconds, interval;
	struct rates rates = {};

	if (argc < 4 || argc > 6 || parse_u64(argv[1], 1, 3600, &seconds) ||
	    parse_u64(argv[2], 50, 60000, &interval) ||
	    (argc >= 5 && parse_u32_list(argv[4], 1, 10000, &rates.hz, &rates.count))) {
		fprintf(stderr, "usage: rotate SECONDS MILLISECONDS FILE [HZ,HZ… [shed]]\n");
		return 2;
	}
	rates.shed = argc == 6;
	windows = record_windows(argv[3], seconds, interval * 1000000, &rates);
	free(rates.hz);
	one = read_as_one(argv[3]);
	return totals_differ(one, windows);
}
