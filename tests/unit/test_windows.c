/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream into windows, and their names by the finisher: in its thread, and without one. */
#include "unit.h"
#undef fail /* ours has arguments */
#include <pthread.h>

#include "stream/meta.h"
#include "window/windows.h"

#define S	  1000000000ull
#define MS	  1000000ull
#define PID	  10
#define CODE	  0x50000ull /* memory without a file */
#define WINDOWS	  8
#define NAMES_MAX 64

/* What the finisher has reported. */
struct reported {
	pthread_mutex_t lock;
	uint64_t numbers[WINDOWS];
	uint64_t samples[WINDOWS], unnamed[WINDOWS];
	uint64_t starts[WINDOWS], ends[WINDOWS];
	char names[WINDOWS][NAMES_MAX]; /* of the last sample's innermost frame */
	size_t count;
	pthread_t thread;
};

struct scene {
	struct windows *windows;
	struct reported reported;
	uint64_t now;
};

static const char *leaf_name(const struct profile *p, const struct profile_thread *t)
{
	const struct profile_samples *s = &t->samples[SAMPLE_CPU];
	const struct profile_location *l =
		&p->locations[p->stacks[s->stack[s->count - 1].v].location.v];

	return profile__string(p, p->functions[p->lines[l->first_line].function.v].name);
}

static void note_window(void *context, const struct finished_window *window)
{
	struct reported *reported = context;
	const struct profile *p = window->profile;
	size_t i = reported->count;

	assert_int_equal(window->err, 0);
	pthread_mutex_lock(&reported->lock);
	reported->numbers[i] = window->number;
	reported->samples[i] = p->sample_count;
	reported->unnamed[i] = p->jit_count ? p->jits[0].unnamed : 0;
	reported->starts[i] = p->start;
	reported->ends[i] = p->end;
	for (size_t t = 1; t < p->thread_count; t++)
		if (p->threads[t].samples[SAMPLE_CPU].count)
			snprintf(reported->names[i], NAMES_MAX, "%s", leaf_name(p, &p->threads[t]));
	reported->thread = pthread_self();
	reported->count++;
	pthread_mutex_unlock(&reported->lock);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int push_event(void *context, struct event_header *event)
{
	struct scene *s = context;

	return windows__event(s->windows, event);
}

static void report(struct scene *s, void *event, size_t size, enum event_type type, uint16_t flags)
{
	struct event_header *header = event;

	*header = (struct event_header){
		.size = event_aligned(size), .type = type, .flags = flags, .time = s->now};
	assert_int_equal(windows__event(s->windows, header), 0);
}

static void report_start(struct scene *s)
{
	char number[32];

	assert_int_equal(meta_event__emit(push_event, s, s->now, META_PERIOD, "1000000"), 0);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)s->now);
	assert_int_equal(meta_event__emit(push_event, s, s->now, META_SAMPLING_START, number), 0);
}

static void report_process(struct scene *s)
{
	union {
		struct process_event event;
		char space[sizeof(struct process_event) + 16];
	} process = {.event = {.pid = PID, .ppid = 1, .start_time = S / 2, .is_target = 1}};
	struct thread_event thread = {.pid = PID, .tid = PID, .start_time = S / 2, .comm = "prog"};
	union {
		struct mmap_event event;
		char space[sizeof(struct mmap_event) + 16];
	} map = {.event = {.pid = PID,
			   .tid = PID,
			   .start = CODE,
			   .length = 0x1000,
			   .protection = PROT_READ | PROT_EXEC}};

	strcpy(process.event.name, "prog");
	strcpy(map.event.path, "//anon");
	report(s, &process, sizeof(struct process_event) + 8, EVENT_PROCESS, EVENT_FROM_PROC);
	report(s, &thread, sizeof(thread), EVENT_THREAD, EVENT_FROM_PROC);
	report(s, &map, sizeof(struct mmap_event) + 8, EVENT_MMAP, EVENT_FROM_PROC);
}

static void report_sample(struct scene *s, uint64_t address)
{
	union {
		struct sample_event event;
		char space[sizeof(struct sample_event) + 8];
	} sample = {.event = {.tgid = PID,
			      .tid = PID,
			      .user_frames = 1,
			      .from_user = 1,
			      .cpu_time = s->now}};

	sample.event.frames[0] = frame_pack(FRAME_IP, address);
	report(s, &sample, sizeof(struct sample_event) + 8, EVENT_SAMPLE, 0);
}

static void report_map(struct scene *s, uint32_t file)
{
	union {
		struct jit_file_event event;
		char space[sizeof(struct jit_file_event) + 32];
	} e = {.event = {.pid = PID, .file = file, .state = JIT_FILE_STATE_FOLLOWED}};

	strcpy(e.event.path, "/tmp/perf-10.map");
	report(s, &e, sizeof(struct jit_file_event) + 24, EVENT_JIT_FILE, 0);
}

/* A line, which is as old as `written` says. */
static void report_line(struct scene *s, uint32_t file, uint64_t written, const char *line)
{
	union {
		struct jit_bytes_event event;
		char space[sizeof(struct jit_bytes_event) + 64];
	} e = {.event = {.after = written - 1,
			 .before = written,
			 .file = file,
			 .size = strlen(line)}};

	strcpy(e.event.bytes, line);
	report(s, &e, sizeof(struct jit_bytes_event) + strlen(line), EVENT_JIT_BYTES, 0);
}

static void report_window(struct scene *s)
{
	struct event_header e;

	report(s, &e, sizeof(e), EVENT_WINDOW, 0);
}

static void report_end(struct scene *s)
{
	struct event_header e;

	report(s, &e, sizeof(e), EVENT_END, 0);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void set_up(struct scene *s, bool threaded, bool split)
{
	struct windows_options options = {
		.split = split,
		.finisher = {.threaded = threaded,
			     .finished = note_window,
			     .context = &s->reported},
	};

	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->reported.lock, NULL);
	s->now = S;
	assert_int_equal(windows__new(&options, &s->windows), 0);
	report_process(s);
	report_start(s);
	report_map(s, 1);
}

static const struct profile *finish(struct scene *s)
{
	struct failure failure = {};
	const struct profile *last;

	report_end(s);
	assert_int_equal(windows__close_last(s->windows), 0);
	finisher__drain(windows__finisher(s->windows));
	assert_int_equal(finisher__finish(windows__finisher(s->windows), windows__last(s->windows),
					  &last, &failure),
			 0);
	return last;
}

/* Three windows; in each a function that was made in it, reported a little after the window's end. */
static void report_three_windows(struct scene *s)
{
	for (uint64_t i = 0; i < 3; i++) {
		char line[64];
		uint64_t made = s->now + MS;

		s->now += 2 * MS;
		report_sample(s, CODE + 0x10);
		s->now += MS;
		report_window(s);
		s->now += 20 * MS;
		snprintf(line, sizeof(line), "50000 100 function_%llu\n", (unsigned long long)i);
		report_line(s, 1, made, line);
		s->now += S;
	}
	report_sample(s, CODE + 0x20);
}

static void check_three_windows(const struct scene *s)
{
	assert_int_equal(s->reported.count, 3);
	for (size_t i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%zu", i);
		assert_int_equal(s->reported.numbers[i], i + 1);
		assert_int_equal(s->reported.samples[i], 1);
		assert_string_equal(s->reported.names[i], name);
		assert_int_equal(s->reported.unnamed[i], 0);
		if (i)
			assert_int_equal(s->reported.starts[i], s->reported.ends[i - 1]);
	}
}

TEST(each_window_gets_its_samples_and_names)
{
	for (int threaded = 0; threaded < 2; threaded++) {
		const struct profile *last;
		struct scene s;

		set_up(&s, threaded, true);
		report_three_windows(&s);
		last = finish(&s);
		check_three_windows(&s);
		assert_int_equal(pthread_equal(s.reported.thread, pthread_self()), !threaded);
		assert_int_equal(last->sample_count, 1);
		assert_int_equal(last->start, s.reported.ends[2]);
		assert_int_equal(windows__stats(s.windows).windows, 4);
		windows__free(s.windows);
	}
}

/* A reader without windows sees one. */
TEST(without_splitting_there_is_one_window)
{
	const struct profile *p;
	struct scene s;

	set_up(&s, false, false);
	report_three_windows(&s);
	p = finish(&s);
	assert_int_equal(s.reported.count, 0);
	assert_int_equal(p->sample_count, 4);
	assert_int_equal(windows__stats(s.windows).windows, 1);
	windows__free(s.windows);
}

TEST(a_window_is_finished_only_after_a_delay)
{
	struct scene s;

	set_up(&s, false, true);
	s.now += MS;
	report_sample(&s, CODE + 0x10);
	report_window(&s);
	assert_int_equal(s.reported.count, 0);
	s.now += 100 * MS;
	report_sample(&s, CODE + 0x10);
	assert_int_equal(s.reported.count, 0);
	s.now += 200 * MS;
	report_sample(&s, CODE + 0x10);
	report_sample(&s, CODE + 0x10);
	assert_int_equal(s.reported.count, 1);
	windows__free(s.windows);
}

TEST(windows_may_be_freed_before_they_are_finished)
{
	for (int i = 0; i < 50; i++) {
		struct scene s;

		set_up(&s, true, true);
		report_three_windows(&s);
		windows__free(s.windows);
		assert_true(s.reported.count <= 3);
	}
}

TEST(a_stream_with_damaged_events_is_cut_short)
{
	struct event_header bad = {.size = 8, .type = EVENT_SAMPLE};
	const struct profile *last;
	struct failure failure = {};
	struct scene s;

	set_up(&s, true, true);
	s.now += MS;
	report_sample(&s, CODE + 0x10);
	assert_int_equal(windows__event(s.windows, &bad), -EBADMSG);
	bad = (struct event_header){.size = sizeof(bad), .type = EVENT_JIT_BYTES};
	assert_int_equal(windows__event(s.windows, &bad), -EBADMSG);
	assert_int_equal(windows__close_last(s.windows), 0);
	finisher__drain(windows__finisher(s.windows));
	assert_int_equal(finisher__finish(windows__finisher(s.windows), windows__last(s.windows),
					  &last, &failure),
			 0);
	assert_true(last->cut_short);
	assert_int_equal(last->sample_count, 1);
	windows__free(s.windows);
}
