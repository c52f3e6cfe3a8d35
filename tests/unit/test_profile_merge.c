/* SPDX-License-Identifier: BSD-2-Clause */
/* Several profiles as one: sums, whose process and thread is whose, and when it was. */
#include <sysprof/profile_code.h>

#include <sysprof/profile.h>

#include "export_support.h"
#include "profile/figures.h"
#include "profile/profile_merge.h"

static void cleanup_merge(struct profile_merge **m)
{
	profile_merge__free(*m);
}
#define _cleanup_merge_ _cleanup_(cleanup_merge)

static const struct profile *finish_merge(struct profile_merge *m)
{
	const struct profile *p = NULL;
	struct failure failure = {};

	if (profile_merge__finish(m, &p, &failure))
		fail_msg("%s", failure.what);
	return p;
}

static void add(struct profile_merge *m, const char *name, const struct profile *p)
{
	struct failure failure = {};

	if (profile_merge__add(m, name, p, &failure))
		fail_msg("%s", failure.what);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* How a figure of both follows from those of each; the rest is counted anew. */
enum joining { SUM, LEAST, MOST, ANEW };

static enum joining joining_of(unsigned int id)
{
	switch (id) {
	case FIGURE_START:
	case FIGURE_START_REALTIME:
		return LEAST;
	case FIGURE_PERIOD:
	case FIGURE_CUT_SHORT:
	case FIGURE_CLOCK:
	case FIGURE_TSC_KHZ:
	case FIGURE_CLOCK_ERROR:
	case FIGURE_VISITS_HZ:
		return MOST;
	case FIGURE_DURATION: /* rows of the same time are moved apart */
	case FIGURE_THREADS:  /* distinct ones */
	case FIGURE_SILENT_THREADS:
	case FIGURE_SILENT_CPU:
	case FIGURE_VISITED:
	case FIGURE_COMPLETE_SHARE:
	case FIGURE_NAMED_SHARE:
	case FIGURE_STOLEN_TICKS: /* at most what did not run */
		return ANEW;
	default:
		return SUM;
	}
}

static void assert_joined(const struct figures *a, const struct figures *b,
			  const struct figures *both)
{
	for (unsigned int id = 0; id < FIGURE_COUNT; id++) {
		uint64_t x = a->value[id], y = b->value[id], wanted = x + y;
		enum joining joining = joining_of(id);

		if (joining == LEAST || joining == MOST)
			wanted = (joining == LEAST) == (x < y) ? x : y;
		if (joining != ANEW && both->value[id] != wanted)
			fail_msg("%s: %llu and %llu make %llu",
				 figure_table[id].key ? figure_table[id].key : "?",
				 (unsigned long long)x, (unsigned long long)y,
				 (unsigned long long)both->value[id]);
	}
}

/* Ticks and CPU time of the samples with that function innermost. */
static void sum_of(const struct profile *p, const char *function, uint64_t sums[2])
{
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_samples *s = &p->threads[i].samples[SAMPLE_CPU];

		for (size_t k = 0; k < s->count; k++) {
			const struct profile_location *l =
				&p->locations[p->stacks[s->stack[k].v].location.v];
			struct function_id id = p->lines[l->first_line].function;

			if (strcmp(profile__string(p, p->functions[id.v].name), function) != 0)
				continue;
			sums[0] += profile_samples__ticks(s, k);
			sums[1] += s->weight[k];
		}
	}
}

static void assert_functions(const struct profile *a, const struct profile *b,
			     const struct profile *both)
{
	for (size_t i = 1; i < both->function_count; i++) {
		const char *name = profile__string(both, both->functions[i].name);
		uint64_t apart[2] = {}, together[2] = {};

		sum_of(a, name, apart);
		sum_of(b, name, apart);
		sum_of(both, name, together);
		assert_int_equal(apart[0], together[0]);
		assert_int_equal(apart[1], together[1]);
	}
}

TEST(figures_and_functions_of_two_profiles_add_up)
{
	size_t pairs = 0;

	for (size_t i = 0; i < NAMED_PROFILES * NAMED_PROFILES; i++) {
		_cleanup_fixture_ struct fixture x = {}, y = {};
		_cleanup_merge_ struct profile_merge *m = profile_merge__new();
		const struct profile *a = build_profile(&x,
							named_profiles[i / NAMED_PROFILES].name);
		const struct profile *b = build_profile(&y,
							named_profiles[i % NAMED_PROFILES].name);
		struct figures of_a, of_b, of_both;
		const struct profile *both;
		struct failure failure = {};

		add(m, "a", a);
		if (profile_merge__add(m, "b", b, &failure)) {
			assert_non_null(strstr(failure.what, "cannot be one profile"));
			continue;
		}
		both = finish_merge(m);
		figures__init(&of_a, a);
		figures__init(&of_b, b);
		figures__init(&of_both, both);
		assert_joined(&of_a, &of_b, &of_both);
		assert_functions(a, b, both);
		pairs++;
	}
	assert_true(pairs > NAMED_PROFILES * NAMED_PROFILES / 2);
}

/* ---- clocks and lives ------------------------------------------------------------------------ */

/* ENDS: with its last sample; RECORDED: it goes on, and its recorder has read its own memory. */
enum story_kind { GOES_ON, ENDS, BEGINS, RECORDED };

/* A process of one thread with a sample each ms of [from, until), in ms. */
struct story {
	const char *host;
	uint32_t pid;
	const char *name, *function;
	unsigned int from, until;
	enum story_kind kind;
};

static const struct profile *build_story(struct fixture *f, const struct story *s)
{
	struct profile_process process = {.pid = s->pid,
					  .start = AT(s->from),
					  .began = s->kind == BEGINS ? PROCESS_FORKED
								     : PROCESS_WAS_THERE};
	struct thread_id thread;
	struct location_id code;
	struct profile *session;

	fixture__init(f, s->until);
	session = profile_builder__session(f->b);
	session->start = AT(s->from);
	session->end = AT(s->until + 1);
	session->start_realtime = REALTIME + s->from * MS;
	profile_builder__meta(f->b, META_HOSTNAME, s->host);
	process.name = text(f, s->name);
	process.end = s->kind == ENDS ? AT(s->until) : 0;
	f->process = profile_builder__process(f->b, &process);
	thread = add_thread(f, f->process, s->pid, true, s->name, s->from);
	code = add_location(f, f->program, 0x1000);
	for (unsigned int ms = s->from + 1; ms < s->until; ms++)
		add_sample(f, thread, ms, STACK(f, code), 1, s->name);
	NAME(f, code, {.function = s->function});
	if (s->kind == RECORDED)
		profile_builder__memory(f->b, (struct process_id){0}, 9, true, AT(s->from),
					1 << 20);
	return finish(f);
}

#define STORIES_MAX 4

/* A merge of stories, with their fixtures. */
struct stories {
	struct fixture fixtures[STORIES_MAX];
	struct profile_merge *merge;
	const struct profile *p;
};

static void stories__fini(struct stories *t)
{
	for (size_t i = 0; i < STORIES_MAX; i++)
		profile_builder__free(t->fixtures[i].b);
	profile_merge__free(t->merge);
}

static struct stories merge_stories(const struct story *stories, size_t count)
{
	struct stories t = {.merge = profile_merge__new()};

	for (size_t i = 0; i < count; i++)
		add(t.merge, (const char *[]){"a", "b", "/dir/c", "d"}[i],
		    build_story(&t.fixtures[i], &stories[i]));
	t.p = finish_merge(t.merge);
	return t;
}

#define MERGED(...)                                                                                \
	merge_stories((const struct story[]){__VA_ARGS__},                                         \
		      sizeof((const struct story[]){__VA_ARGS__}) / sizeof(struct story))

TEST(one_process_of_two_recordings_is_one_whichever_is_first)
{
	for (int i = 0; i < 2; i++) {
		const struct story early = {"here", 7, "app", "f", 0, 10, GOES_ON};
		const struct story late = {"here", 7, "app", "f", 30, 50, GOES_ON};
		_cleanup_(stories__fini) struct stories t = i ? MERGED(early, late)
							      : MERGED(late, early);
		const struct profile_samples *s = &t.p->threads[1].samples[SAMPLE_CPU];

		assert_int_equal(t.p->process_count, 2);
		assert_int_equal(t.p->thread_count, 2);
		assert_int_equal(s->count, 9 + 19);
		assert_int_equal(s->time[0], AT(1));
		assert_int_equal(s->time[27], AT(49));
		assert_int_equal(t.p->start, AT(0));
		assert_int_equal(t.p->end, AT(51));
		assert_int_equal(t.p->start_realtime, REALTIME);
		assert_int_equal(t.p->location_count, 2);
		assert_non_null(strstr(profile__meta(t.p, META_INPUTS), "on one time axis"));
	}
}

TEST(a_pid_that_was_given_out_again_is_another_process)
{
	_cleanup_(stories__fini) struct stories t = MERGED(
		{"here", 7, "app", "f", 0, 10, ENDS}, {"here", 7, "app", "f", 30, 50, GOES_ON});

	assert_int_equal(t.p->process_count, 3);
	assert_int_equal(t.p->processes[1].end, AT(10));
	assert_int_equal(t.p->processes[2].end, 0);
}

TEST(a_process_that_began_later_is_another_one)
{
	_cleanup_(stories__fini) struct stories t = MERGED(
		{"here", 7, "app", "f", 0, 10, GOES_ON}, {"here", 7, "app", "f", 30, 50, BEGINS},
		{"here", 8, "app", "f", 30, 50, GOES_ON},
		{"here", 7, "other", "f", 30, 50, GOES_ON});

	assert_int_equal(t.p->process_count, 5);
}

TEST(recordings_at_the_same_time_count_twice)
{
	_cleanup_(stories__fini) struct stories t = MERGED({"here", 7, "app", "f", 0, 10, GOES_ON},
							   {"here", 7, "app", "f", 0, 10, GOES_ON});
	const struct profile_samples *s = &t.p->threads[1].samples[SAMPLE_CPU];

	assert_int_equal(t.p->thread_count, 2);
	assert_int_equal(s->count, 18);
	assert_int_equal(s->time[1], AT(1) + 1);
	assert_int_equal(profile_thread__cpu(&t.p->threads[1]), 18 * MS);
}

/* Of the inputs, without the names: how their times are related. */
static void assert_inputs(const struct profile *p, const char *wanted)
{
	const char *inputs = profile__meta(p, META_INPUTS);

	assert_non_null(inputs);
	assert_int_equal(strcspn(inputs, ":"), strlen(wanted));
	assert_memory_equal(inputs, wanted, strlen(wanted));
}

TEST(time_that_counts_twice_is_in_the_inputs)
{
	for (int i = 0; i < 2; i++) {
		const struct story early = {"here", 7, "app", "f", 0, 299, GOES_ON};
		const struct story late = {"here", 7, "app", "f", 100, 400, GOES_ON};
		_cleanup_(stories__fini) struct stories t = i ? MERGED(early, late)
							      : MERGED(late, early);

		assert_inputs(t.p, "2 files on one time axis, overlapping for 0.200 s with 1 "
				   "process in both, whose samples of that time count twice");
	}
}

/* The third file has more in common with the first than with the second. */
TEST(time_that_counts_more_than_twice_is_there_once)
{
	_cleanup_(stories__fini) struct stories t = MERGED(
		{"here", 7, "app", "f", 0, 499, GOES_ON}, {"here", 7, "app", "f", 50, 249, GOES_ON},
		{"here", 7, "app", "f", 100, 399, GOES_ON},
		{"there", 7, "app", "f", 0, 100, GOES_ON});

	assert_inputs(t.p, "4 files one after the other, those of one clock on one time axis, "
			   "overlapping for 0.350 s with 1 process in several, whose samples of "
			   "that time count more than once");
}

TEST(recordings_of_different_processes_may_overlap)
{
	_cleanup_(stories__fini) struct stories t =
		MERGED({"here", 7, "app", "f", 0, 300, GOES_ON},
		       {"here", 8, "app", "f", 100, 400, GOES_ON});

	assert_inputs(t.p, "2 files on one time axis");
}

TEST(recordings_one_after_the_other_have_no_overlap)
{
	_cleanup_(stories__fini) struct stories t =
		MERGED({"here", 7, "app", "f", 0, 100, GOES_ON},
		       {"here", 7, "app", "f", 101, 200, GOES_ON});

	assert_inputs(t.p, "2 files on one time axis");
}

/* A recording of [from, until) ms that has samples or waits of threads of one process. */
struct part {
	unsigned int from, until;
	uint32_t tid;
	unsigned int sample;	    /* when; 0: none */
	unsigned int since, waited; /* 0: no wait */
};

static void add_disk_wait(struct fixture *f, struct thread_id thread, const struct part *part)
{
	const struct profile_wall wall = {.since = AT(part->since),
					  .until = AT(part->waited),
					  .blocked = (part->waited - part->since) * MS};
	const struct profile_sample wait = {
		.kind = SAMPLE_WALL,
		.time = wall.until,
		.weight = wall.blocked,
		.stack = STACK(f, add_location(f, f->program, 0x1000)),
		.comm = text(f, "app"),
		.state = WALL_DISK,
		.since = wall.since,
		.until = wall.until,
	};

	profile_builder__sample(f->b, thread, &wait);
	profile_builder__thread_wall(f->b, thread, &wall);
}

static void add_part(struct profile_merge *m, struct fixture *f, const struct part *part)
{
	struct thread_id thread;
	struct profile *session;

	fixture__init(f, part->until);
	session = profile_builder__session(f->b);
	session->start = AT(part->from);
	session->end = AT(part->until);
	session->start_realtime = REALTIME + part->from * MS;
	f->process = add_process(f, 7, "app", part->from, 0);
	thread = add_thread(f, f->process, part->tid, false, "app", part->from);
	if (part->sample)
		add_sample(f, thread, part->sample, STACK(f, add_location(f, f->program, 0x1000)),
			   1, "app");
	if (part->waited)
		add_disk_wait(f, thread, part);
	add(m, "a", finish(f));
}

static void assert_parts(struct part one, struct part other, bool count_twice)
{
	_cleanup_fixture_ struct fixture x = {}, y = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();

	add_part(m, &x, &one);
	add_part(m, &y, &other);
	assert_inputs(finish_merge(m),
		      count_twice ? "2 files on one time axis, overlapping for 0.100 s with 1 "
				    "process in both, whose samples of that time count twice"
				  : "2 files on one time axis");
}

TEST(only_what_a_thread_has_of_that_time_in_both_counts_twice)
{
	struct part early = {0, 200, 7, 150, 0, 0}, late = {100, 300, 7, 150, 0, 0};
	struct part waits = {0, 200, 7, 0, 20, 200}, waits_late = {100, 300, 7, 0, 100, 290};

	assert_parts(early, late, true);
	assert_parts(waits, waits_late, true);
	assert_parts(early, waits_late, false);
	waits.waited = 80;
	assert_parts(waits, waits_late, false);
	early.sample = 80;
	assert_parts(early, late, false);
	early.sample = 150;
	late.sample = 250;
	assert_parts(early, late, false);
	late.sample = 150;
	late.tid = 8;
	assert_parts(early, late, false);
}

TEST(other_clocks_follow_one_after_the_other)
{
	_cleanup_(stories__fini) struct stories t =
		MERGED({"here", 7, "app", "f", 100, 110, GOES_ON},
		       {"there", 7, "app", "f", 30, 50, GOES_ON},
		       {"here", 7, "app", "f", 200, 210, GOES_ON});

	assert_int_equal(t.p->process_count, 3);
	assert_int_equal(t.p->start, AT(100));
	assert_int_equal(t.p->threads[1].samples[SAMPLE_CPU].time[9], AT(201));
	assert_int_equal(t.p->threads[2].samples[SAMPLE_CPU].time[0], AT(211 + 1));
	assert_int_equal(t.p->end, AT(211 + 21));
	assert_string_equal(
		profile__meta(t.p, META_INPUTS),
		"3 files one after the other, those of one clock on one time axis (0.1 s "
		"between them not recorded): a, b, c");
	assert_string_equal(profile__meta(t.p, META_HOSTNAME), "here; there");
}

/* What stands for the CPU time of two files, "": they have it; and of both. */
static void assert_cpu_time(const char *one, const char *other, const char *both)
{
	_cleanup_fixture_ struct fixture x, y;
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();

	fixture__init(&x, 10);
	fixture__init(&y, 10);
	if (*one)
		profile_builder__meta(x.b, META_CPU_TIME, one);
	if (*other)
		profile_builder__meta(y.b, META_CPU_TIME, other);
	add(m, "a", finish(&x));
	add(m, "b", finish(&y));
	assert_string_equal(profile__meta(finish_merge(m), META_CPU_TIME) ?: "", both);
}

TEST(what_stands_for_cpu_time_is_that_of_all_files_or_of_some)
{
	assert_cpu_time("", "", "");
	assert_cpu_time("by weight", "by weight", "by weight");
	assert_cpu_time("by weight", "by clock", "by weight; by clock");
	assert_cpu_time("by weight", "", "some files have no CPU time (by weight)");
	assert_cpu_time("", "by weight", "some files have no CPU time (by weight)");
}

TEST(a_text_that_is_the_end_of_another_one_is_kept_beside_it)
{
	_cleanup_(stories__fini) struct stories t = MERGED(
		{"xhere", 7, "app", "f", 0, 10, GOES_ON}, {"here", 7, "app", "f", 30, 50, GOES_ON},
		{"here", 7, "app", "f", 60, 70, GOES_ON});

	assert_string_equal(profile__meta(t.p, META_HOSTNAME), "xhere; here");
}

/* Folded counts beside a recording: shares have two units. */
TEST(code_and_sources_of_both_are_kept)
{
	static const char *const texts[] = {"int a;", "int b;"};
	_cleanup_fixture_ struct fixture x = {}, y = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	struct fixture *fixtures[] = {&x, &y};
	const struct profile *p;

	for (int i = 0; i < 2; i++) {
		struct fixture *f = fixtures[i];
		struct profile_code_row row = {};
		struct profile_code code = {};
		struct profile_source source = {.size = 6, .text = texts[i]};
		struct thread_id thread;

		fixture__init(f, 10);
		f->process = add_process(f, 7, "app", 0, 0);
		thread = add_thread(f, f->process, 7, true, "app", 0);
		add_sample(f, thread, 1, STACK(f, add_location(f, f->program, 0x1000)), 1, "app");
		code.dso = f->program;
		code.address = 0x1000 + 16 * i;
		code.size = 4;
		code.bytes = (const uint8_t *)texts[i];
		row.file = profile_builder__string(f->b, "/src/a.c");
		source.path = row.file;
		profile_builder__add_code(f->b, &code, &row, 1);
		profile_builder__add_source(f->b, &source);
		add(m, "a", finish(f));
	}
	p = finish_merge(m);
	assert_int_equal(p->code_count, 2);
	assert_int_equal(p->source_count, 1);
	assert_int_equal(p->sources[0].state, SOURCE_CHANGED);
	assert_string_equal(p->sources[0].text, "int a;");
	assert_string_equal(profile__string(p, p->code_rows[p->codes[1].first_row].file),
			    "/src/a.c");
}

/* A sample of a program, whose root may have the source. */
static void add_program(struct fixture *f, uint32_t tid, const char *program, uint8_t root,
			const char *source)
{
	struct dso_id dso = add_dso(f, DSO_FILE, program, 0);
	struct thread_id thread = add_thread(f, f->process, tid, tid == 7, "app", 0);

	add_sample(f, thread, 1, STACK(f, add_location(f, dso, 0x1000)), 1, "app");
	profile_builder__source_root(f->b, dso, root);
	if (source)
		profile_builder__add_source(
			f->b, &(struct profile_source){.path = text(f, "/src/a.c"),
						       .root = root,
						       .size = (uint32_t)strlen(source),
						       .text = source});
}

static void begin_with_root(struct fixture *f, const char *program, uint8_t root,
			    const char *source)
{
	fixture__init(f, 10);
	f->process = add_process(f, 7, "app", 0, 0);
	add_program(f, 7, program, root, source);
}

static void add_with_root(struct profile_merge *m, struct fixture *f, const char *program,
			  uint8_t root, const char *source)
{
	begin_with_root(f, program, root, source);
	add(m, program, finish(f));
}

static const char *source_of(const struct profile *p, const char *program)
{
	for (uint32_t i = 1; i < p->dso_count; i++)
		if (!strcmp(profile__string(p, p->dsos[i].path), program))
			for (uint32_t s = 1; s < p->string_count; s++) {
				const struct profile_source *source =
					strcmp(p->strings[s], "/src/a.c") != 0
						? NULL
						: profile__source(p, (struct dso_id){i},
								  (struct string_id){s});

				if (source)
					return source->text;
			}
	return "none";
}

/* The highest number of a file may be that of a program whose source was not read. */
TEST(roots_of_one_file_are_none_of_another)
{
	_cleanup_fixture_ struct fixture x = {}, y = {}, z = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	const struct profile *p;

	add_with_root(m, &x, "/bin/two", 1, NULL);
	add_with_root(m, &y, "/bin/one", 1, "int a;");
	add_with_root(m, &z, "/bin/three", 1, "int b;");
	p = finish_merge(m);
	assert_string_equal(source_of(p, "/bin/one"), "int a;");
	assert_string_equal(source_of(p, "/bin/two"), "none");
	assert_string_equal(source_of(p, "/bin/three"), "int b;");
}

/* Each number means a root of its own recording, 0 as well. */
TEST(programs_of_two_hosts_have_the_sources_of_their_own)
{
	_cleanup_fixture_ struct fixture w = {}, x = {}, y = {}, z = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	const struct profile *p;

	add_with_root(m, &w, "/bin/without", 0, NULL);
	add_with_root(m, &x, "/bin/one", 0, "int a;");
	add_with_root(m, &y, "/bin/two", 0, "int b;");
	add_with_root(m, &z, "/bin/without-too", 0, NULL);
	p = finish_merge(m);
	assert_string_equal(source_of(p, "/bin/without"), "none");
	assert_string_equal(source_of(p, "/bin/one"), "int a;");
	assert_string_equal(source_of(p, "/bin/two"), "int b;");
	assert_string_equal(source_of(p, "/bin/without-too"), "none");
}

/* A root with a program that was there before is that root, unless a text of it is another one. */
TEST(a_program_of_two_files_joins_their_roots)
{
	static const char *const texts[] = {"int a;", "int b;"};

	for (int other = 0; other < 2; other++) {
		_cleanup_fixture_ struct fixture x = {}, y = {};
		_cleanup_merge_ struct profile_merge *m = profile_merge__new();
		const struct profile *p;

		add_with_root(m, &x, "/bin/one", 0, "int a;");
		begin_with_root(&y, "/bin/one", 3, texts[other]);
		add_program(&y, 8, "/bin/two", 3, NULL);
		add(m, "two", finish(&y));
		p = finish_merge(m);
		assert_string_equal(source_of(p, "/bin/one"), "int a;");
		assert_string_equal(source_of(p, "/bin/two"), texts[other]);
		assert_int_equal(p->source_count, 1 + other);
		assert_int_equal(p->sources[0].state, other ? SOURCE_CHANGED : SOURCE_UNCHANGED);
	}
}

TEST(roots_beyond_the_last_number_have_no_sources)
{
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	char program[32], source[32];
	const struct profile *p;

	for (int i = 0; i <= SOURCE_ROOT_LAST + 1; i++) {
		_cleanup_fixture_ struct fixture f = {};

		snprintf(program, sizeof(program), "/bin/%d", i);
		snprintf(source, sizeof(source), "int a%d;", i);
		add_with_root(m, &f, program, 0, source);
	}
	p = finish_merge(m);
	assert_string_equal(source_of(p, "/bin/0"), "int a0;");
	assert_string_equal(source_of(p, "/bin/252"), "int a252;");
	assert_string_equal(source_of(p, "/bin/253"), "none");
}

/* In the first one it had no hot code. */
TEST(a_program_without_a_root_gets_that_of_another_file)
{
	_cleanup_fixture_ struct fixture x = {}, y = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();

	add_with_root(m, &x, "/bin/one", SOURCE_ROOT_NONE, NULL);
	add_with_root(m, &y, "/bin/one", 1, "int a;");
	assert_string_equal(source_of(finish_merge(m), "/bin/one"), "int a;");
}

TEST(files_without_cpu_time_or_with_other_periods_are_marked)
{
	_cleanup_fixture_ struct fixture x = {}, y = {}, z = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	struct fixture *fixtures[] = {&x, &y, &z};

	for (int i = 0; i < 3; i++) {
		struct fixture *f = fixtures[i];
		struct thread_id thread;

		fixture__init(f, 10);
		profile_builder__session(f->b)->period = i == 1 ? 0 : MS + (uint64_t)i * MS / 10;
		f->process = add_process(f, 7, "app", 0, 0);
		thread = add_thread(f, f->process, 7, true, "app", 0);
		add_sample(f, thread, 1 + i, STACK(f, add_location(f, f->program, 0x1000)),
			   i == 1 ? 0 : 1, "app");
		add(m, (const char *[]){"a", "b", "c"}[i], finish(f));
	}
	assert_string_equal(profile__meta(finish_merge(m), META_INPUTS),
			    "3 files on one time axis, overlapping for 0.010 s with 1 process in "
			    "several, whose samples of that time count more than once, CPU time of "
			    "2 alone, a known period of 2 alone, periods of 1.000 to 1.200 ms: a, "
			    "b, c");
}

TEST(a_recorder_of_several_files_of_another_host_is_one_process)
{
	_cleanup_(stories__fini) struct stories t =
		MERGED({"here", 7, "app", "f", 0, 10, RECORDED},
		       {"there", 7, "app", "f", 30, 50, RECORDED},
		       {"there", 7, "app", "f", 10, 20, RECORDED});

	assert_int_equal(t.p->process_count, 1 + 2 + 1);
	assert_int_equal(t.p->memory_count, 2);
	assert_int_equal(t.p->memories[1].count, 2);
}

TEST(code_that_has_two_names_stays_apart)
{
	_cleanup_(stories__fini) struct stories t = MERGED(
		{"here", 7, "app", "f", 0, 10, GOES_ON}, {"here", 7, "app", "g", 30, 50, GOES_ON},
		{"here", 7, "app", "f", 60, 70, GOES_ON});

	assert_int_equal(t.p->location_count, 3);
	assert_int_equal(t.p->locations[1].address, t.p->locations[2].address);
	assert_int_equal(t.p->stack_count, 3);
}

/* ---- what cannot be one ---------------------------------------------------------------------- */

static const struct profile *with_unit(struct fixture *f, uint64_t period, const char *event)
{
	fixture__init(f, 10);
	profile_builder__session(f->b)->period = period;
	profile_builder__session(f->b)->event = text(f, event);
	profile_builder__session(f->b)->event_unit = text(f, event ? "count" : NULL);
	return finish(f);
}

TEST(other_events_and_rates_are_refused)
{
	_cleanup_fixture_ struct fixture x = {}, y = {}, z = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	struct failure failure = {};

	add(m, "a.sysprof", with_unit(&x, MS, NULL));
	assert_int_equal(profile_merge__add(m, "b.sysprof", with_unit(&y, MS, "cycles"), &failure),
			 -EINVAL);
	assert_non_null(strstr(failure.what, "a.sysprof and b.sysprof cannot be one profile: "
					     "a.sysprof counts samples of a clock, b.sysprof count "
					     "of cycles"));
	assert_int_equal(profile_merge__add(m, "c.sysprof", with_unit(&z, 10 * MS, NULL), &failure),
			 -EINVAL);
	assert_non_null(strstr(failure.what, "a sample stands for 1.000 ms in a.sysprof, for "
					     "10.000 ms in c.sysprof"));
	assert_int_equal(finish_merge(m)->sample_count, 0);
}

/* ---- windows --------------------------------------------------------------------------------- */

static void add_window(struct profile_merge *m, const struct profile *p, unsigned int second,
		       bool is_more)
{
	const struct merge_window window = {.process = "app",
					    .start = REALTIME + second * 1000 * MS,
					    .length = 1000 * MS,
					    .is_more = is_more};
	struct failure failure = {};

	if (profile_merge__add_window(m, "window", p, &window, &failure))
		fail_msg("%s", failure.what);
}

TEST(windows_are_one_process_on_the_axis_of_their_times)
{
	_cleanup_(stories__fini) struct stories t = {.merge = profile_merge__new()};
	const struct profile *app =
		build_story(&t.fixtures[0], &(struct story){"here", 0, "app", "f", 0, 11, GOES_ON});
	const struct profile *other = build_story(
		&t.fixtures[1], &(struct story){"here", 0, "other", "f", 0, 11, GOES_ON});
	const struct profile_samples *s;

	add_window(t.merge, app, 0, false);
	add_window(t.merge, app, 0, true);
	add_window(t.merge, other, 1, false);
	add_window(t.merge, NULL, 2, false);
	add_window(t.merge, app, 9, false);
	t.p = finish_merge(t.merge);
	assert_int_equal(t.p->process_count, 2);
	assert_int_equal(t.p->thread_count, 2);
	s = &t.p->threads[1].samples[SAMPLE_CPU];
	assert_int_equal(s->count, 30);
	assert_int_equal(s->time[0] - t.p->start, 100 * MS);
	assert_int_equal(s->time[1] - t.p->start, 100 * MS + 1);
	assert_int_equal(s->time[29] - t.p->start, 10000 * MS);
	assert_int_equal(t.p->end - t.p->start, 10000 * MS);
	assert_int_equal(t.p->start_realtime, REALTIME);
	assert_string_equal(profile__meta(t.p, META_INPUTS),
			    "4 windows, times are exact to 1 s (6.0 s between them not recorded)");
}

TEST(a_file_of_code_that_is_called_like_the_process_of_a_window_keeps_its_name)
{
	_cleanup_(stories__fini) struct stories t = {.merge = profile_merge__new()};
	const struct profile *p = build_story(
		&t.fixtures[0], &(struct story){"here", 0, "fixture", "f", 0, 11, GOES_ON});
	const struct merge_window window = {
		.process = "shop", .is_alone = true, .start = REALTIME, .length = 1000 * MS};
	const struct profile_samples *s;
	struct failure failure = {};
	uint32_t dso;

	if (profile_merge__add_window(t.merge, "window", p, &window, &failure))
		fail_msg("%s", failure.what);
	t.p = finish_merge(t.merge);
	s = &t.p->threads[1].samples[SAMPLE_CPU];
	dso = t.p->locations[t.p->stacks[s->stack[0].v].location.v].dso.v;
	assert_string_equal(profile__string(t.p, t.p->dsos[dso].name), "fixture");
	assert_string_equal(profile__string(t.p, t.p->processes[1].name), "shop");
	assert_string_equal(profile__string(t.p, t.p->threads[1].name), "shop");
	assert_string_equal(profile__string(t.p, s->comm[0]), "shop");
}

/* Each window has the same code paths, of which there are many. */
TEST(rows_of_many_windows_become_rows_of_longer_blocks)
{
	enum { STACKS = 4000, WINDOWS = 700 };
	_cleanup_fixture_ struct fixture f = {};
	_cleanup_merge_ struct profile_merge *m = profile_merge__new();
	const struct profile *p, *all;
	struct thread_id thread;
	uint64_t last = 0;

	fixture__init(&f, 1000);
	f.process = add_process(&f, 0, "app", 0, 0);
	thread = add_thread(&f, f.process, 0, true, "app", 0);
	for (unsigned int i = 0; i < STACKS; i++)
		add_sample(&f, thread, 0.1 * (i + 1), STACK(&f, add_location(&f, f.program, i)),
			   0.5, "app");
	p = finish(&f);
	for (unsigned int i = 0; i < WINDOWS; i++)
		add_window(m, p, i, false);
	all = finish_merge(m);
	assert_int_equal(all->sample_count, STACKS * WINDOWS);
	assert_int_equal(profile_thread__cpu(&all->threads[1]),
			 (uint64_t)STACKS * WINDOWS * MS / 2);
	assert_in_range(all->threads[1].samples[SAMPLE_CPU].count, 1 << 20, 2 << 20);
	for (size_t i = 0; i < all->threads[1].samples[SAMPLE_CPU].count; i++) {
		assert_true(all->threads[1].samples[SAMPLE_CPU].time[i] > last);
		last = all->threads[1].samples[SAMPLE_CPU].time[i];
	}
	assert_string_equal(profile__meta(all, META_INPUTS), "700 windows, times are exact to 2 s");
}
