/* SPDX-License-Identifier: BSD-2-Clause */
/* The write side of the profile: interning, naming, the bounds of lives, the read helpers. */
#include <sysprof/profile_code.h>

#include "unit.h"
#include "profile/profile.h"
#include "models/profile_dump.h"

static struct profile_builder *b;

static void set_up(void)
{
	b = profile_builder__new();
	assert_true(b);
}

static void tear_down(void)
{
	profile_builder__free(b);
}

static struct string_id str(const char *s)
{
	return profile_builder__string(b, s);
}

static struct dso_id file(const char *path, uint64_t inode)
{
	struct profile_dso dso = {
		.kind = DSO_FILE, .path = str(path), .name = str(path), .inode = inode};

	return profile_builder__dso(b, &dso);
}

static const struct process_id nobody = {0};

static const struct profile *finish(void)
{
	const struct profile *p = NULL;
	char why[256] = "";

	if (profile_builder__finish(b, &p, why, sizeof(why)))
		fail_msg("%s", why);
	return p;
}

TEST(strings_are_interned)
{
	assert_int_equal(str(NULL).v, 0);
	assert_int_equal(str("").v, 0);
	assert_int_not_equal(str("a").v, str("b").v);
	assert_int_equal(str("a").v, str("a").v);
	assert_string_equal(profile_builder__get_string(b, str("b")), "b");
}

TEST(dsos_are_what_they_are_built_from)
{
	struct profile_dso one = {.kind = DSO_FILE,
				  .path = str("/bin/one"),
				  .name = str("one"),
				  .inode = 5,
				  .build_id_size = 2,
				  .build_id = {1, 2}};
	struct profile_dso copy = one;
	struct dso_id id;

	id = profile_builder__dso(b, &one);
	/* the same build somewhere else is the same dso; and this time it could be opened */
	copy.path = str("/bin/copy");
	copy.inode = 6;
	copy.file_state = FILE_STATE_RIGHT;
	assert_int_equal(profile_builder__dso(b, &copy).v, id.v);
	assert_int_equal(profile_builder__get_dso(b, id)->file_state, FILE_STATE_RIGHT);
	copy.build_id[1] = 3;
	assert_int_not_equal(profile_builder__dso(b, &copy).v, id.v);

	/* without one, the inode and the path say it */
	id = file("/lib/x", 7);
	assert_int_equal(file("/lib/x", 7).v, id.v);
	assert_int_not_equal(file("/lib/x", 8).v, id.v);
	assert_int_not_equal(file("/lib/y", 7).v, id.v);
}

TEST(locations_of_files_belong_to_nobody)
{
	struct dso_id dso = file("/lib/x", 7);
	struct profile_dso jit = {.kind = DSO_JIT, .path = str("//anon"), .name = str("[anon]")};
	struct dso_id code = profile_builder__dso(b, &jit);
	struct location_id l;

	l = profile_builder__location(b, dso, 16, (struct process_id){1}, CATEGORY_LIBRARY);
	assert_int_equal(
		profile_builder__location(b, dso, 16, (struct process_id){2}, CATEGORY_LIBRARY).v,
		l.v);
	assert_int_equal(profile_builder__find_location(b, dso, 16).v, l.v);
	assert_int_equal(profile_builder__find_location(b, dso, 17).v, 0);
	assert_int_equal(profile_builder__find_location(b, (struct dso_id){99}, 16).v, 0);

	l = profile_builder__location(b, code, 16, (struct process_id){1}, CATEGORY_JIT);
	assert_int_not_equal(
		profile_builder__location(b, code, 16, (struct process_id){2}, CATEGORY_JIT).v,
		l.v);
}

TEST(stacks_are_a_tree)
{
	struct dso_id dso = file("/lib/x", 7);
	struct location_id x = profile_builder__location(b, dso, 1, nobody, CATEGORY_USER);
	struct location_id y = profile_builder__location(b, dso, 2, nobody, CATEGORY_USER);
	struct stack_id root = profile_builder__stack(b, (struct stack_id){0}, x);
	struct stack_id leaf = profile_builder__stack(b, root, y);
	const struct profile *p;

	assert_int_equal(profile_builder__stack(b, (struct stack_id){0}, x).v, root.v);
	assert_int_equal(profile_builder__stack(b, root, y).v, leaf.v);
	assert_int_not_equal(profile_builder__stack(b, root, x).v, root.v);
	p = finish();
	assert_int_equal(p->stacks[leaf.v].parent.v, root.v);
	assert_int_equal(p->stacks[leaf.v].depth, 2);
}

/* Interning at some size, so that the indexes grow. */
TEST(many_of_everything)
{
	enum { COUNT = 20000 };
	struct dso_id dso = file("/lib/x", 7);
	struct stack_id parent = {0};
	char name[32];

	for (unsigned int round = 0; round < 2; round++) {
		parent.v = 0;
		for (unsigned int i = 1; i <= COUNT; i++) {
			struct profile_function f = {.dso = dso, .address = i};
			struct location_id l = profile_builder__location(b, dso, i, nobody,
									 CATEGORY_USER);

			snprintf(name, sizeof(name), "f%u", i);
			f.name = str(name);
			assert_int_equal(l.v, i);
			parent = profile_builder__stack(b, parent, l);
			assert_int_equal(parent.v, i);
			assert_int_equal(profile_builder__function(b, &f).v, i);
		}
	}
	assert_int_equal(finish()->stacks[COUNT].depth, COUNT);
}

static const char *name_of(const struct profile *p, struct location_id l)
{
	const struct profile_location *location = &p->locations[l.v];

	assert_int_equal(location->line_count, 1);
	return profile__string(p, p->functions[p->lines[location->first_line].function.v].name);
}

TEST(unnamed_locations_get_names)
{
	struct profile_process process = {.pid = 1, .start = 1};
	struct process_id pid = profile_builder__process(b, &process);
	struct profile_dso special = {
		.kind = DSO_KERNEL, .path = str("k"), .name = str("[kernel]")};
	struct location_id l[7];
	struct profile_line line = {};
	struct profile_function f = {.name = str("main"), .address = 16, .size = 4};
	const struct profile *p;

	f.dso = file("libx.so", 1);
	l[0] = profile_builder__location(b, f.dso, 1, nobody, CATEGORY_LIBRARY);
	l[1] = profile_builder__location(b, f.dso, 2, nobody, CATEGORY_LIBRARY);
	l[2] = profile_builder__location(b, profile_builder__dso(b, &special), 3, nobody,
					 CATEGORY_KERNEL);
	special.kind = DSO_VDSO;
	special.name = special.path = str("[vdso]");
	l[3] = profile_builder__location(b, profile_builder__dso(b, &special), 3, nobody,
					 CATEGORY_LIBRARY);
	special.kind = DSO_JIT;
	l[4] = profile_builder__location(b, profile_builder__dso(b, &special), 0x7f12, pid,
					 CATEGORY_JIT);
	special.kind = DSO_UNKNOWN;
	l[5] = profile_builder__location(b, profile_builder__dso(b, &special), 3, pid,
					 CATEGORY_OTHER);
	l[6] = profile_builder__location(b, f.dso, 6, nobody, CATEGORY_LIBRARY);
	line.function = profile_builder__function(b, &f);
	profile_builder__resolve(b, l[6], 0x1006, &line, 1);
	profile_builder__resolve(b, l[6], 0x9999, &line, 1); /* once */
	profile_builder__resolve(b, l[1], 0x1002, NULL, 0);  /* no symbol covers it */

	p = finish();
	assert_string_equal(name_of(p, l[0]), "[libx.so]");
	assert_int_equal(p->lines[p->locations[l[0].v].first_line].function.v,
			 p->lines[p->locations[l[1].v].first_line].function.v);
	assert_string_equal(name_of(p, l[2]), "[kernel]");
	assert_string_equal(name_of(p, l[3]), "[vdso]");
	assert_string_equal(name_of(p, l[4]), "0x7f12");
	assert_string_equal(name_of(p, l[5]), "[unknown]");
	assert_string_equal(name_of(p, l[6]), "main");
	assert_int_equal(p->locations[l[6].v].elf_address, 0x1006);
	assert_int_equal(p->locations[l[1].v].elf_address, 0x1002);
	assert_true(profile__named_share(p) > 0.99 / 7 && profile__named_share(p) < 1.01 / 7);
}

static struct stack_id some_stack(void)
{
	return profile_builder__stack(
		b, (struct stack_id){0},
		profile_builder__location(b, file("/bin/x", 1), 1, nobody, CATEGORY_USER));
}

static void add_sample(struct thread_id thread, uint64_t time, struct stack_id stack, uint64_t cpu,
		       const char *comm, enum stack_end end)
{
	const struct profile_sample sample = {
		.kind = SAMPLE_CPU,
		.time = time,
		.weight = cpu,
		.stack = stack,
		.comm = str(comm),
		.end = end,
	};

	profile_builder__sample(b, thread, &sample);
}

TEST(times_and_lives_are_settled)
{
	struct profile_process process = {.pid = 1, .start = 5};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id early = profile_builder__thread(b, pid, 1, true, str("a"), 5);
	struct thread_id ended = profile_builder__thread(b, pid, 2, false, str("b"), 150);
	const struct profile *p;
	const struct profile_thread *t;

	profile_builder__session(b)->start = 100;
	profile_builder__session(b)->end = 200;
	profile_builder__session(b)->start_realtime = 1000;
	add_sample(early, 90, some_stack(), 3, "a", STACK_END_ROOT);
	add_sample(early, 90, some_stack(), 4, "a", STACK_END_DEPTH);
	add_sample(early, 80, some_stack(), 5, "a", STACK_END_ROOT);
	profile_builder__thread_cpu_tail(b, early, 7);
	add_sample(ended, 150, some_stack(), 1, "b", STACK_END_ROOT);
	profile_builder__thread_end(b, ended, 149);
	profile_builder__process_end(b, pid, 300, false);

	p = finish();
	/* a sample before the start moves it, and the wall clock of it */
	assert_int_equal(p->start, 89);
	assert_int_equal(p->start_realtime, 989);
	t = &p->threads[early.v];
	assert_int_equal(t->start, 89);
	assert_int_equal(t->samples[SAMPLE_CPU].time[0], 90);
	assert_int_equal(t->samples[SAMPLE_CPU].time[1], 91);
	assert_int_equal(t->samples[SAMPLE_CPU].time[2], 92);
	assert_int_equal(profile_thread__cpu(t), 19);
	assert_int_equal(t->end, 200); /* with its process, which is clipped */
	t = &p->threads[ended.v];
	assert_int_equal(t->samples[SAMPLE_CPU].time[0], 151);
	assert_int_equal(t->end, 151);
	assert_int_equal(p->processes[pid.v].end, 200);
	assert_int_equal(p->sample_count, 4);
	assert_true(profile__complete_share(p) == 0.75);
}

/* In pprof's words: <https://github.com/google/pprof/blob/main/proto/profile.proto>. */
TEST(cpu_is_the_sample_type)
{
	const struct profile *p = finish();

	assert_int_equal(p->sample_type_count, 1);
	assert_int_equal(p->sample_types[0].kind, SAMPLE_CPU);
	assert_string_equal(profile__string(p, p->sample_types[0].name), "cpu");
	assert_string_equal(profile__string(p, p->sample_types[0].unit), "nanoseconds");
}

TEST(hostile_numbers_do_not_overflow)
{
	struct profile_process process = {.pid = 1, .start = UINT64_MAX, .end = UINT64_MAX};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id t = profile_builder__thread(b, pid, 1, true, str("a"), UINT64_MAX);
	struct profile_cpu_books books = {.cpu = 1};

	for (int i = 0; i < 3; i++)
		add_sample(t, UINT64_MAX, some_stack(), UINT64_MAX, "a", STACK_END_ROOT);
	profile_builder__thread_cpu_tail(b, t, UINT64_MAX);
	profile_builder__session(b)->end = UINT64_MAX;
	memset(books.count, 0xff, sizeof(books.count));
	profile_builder__books(b, &books);
	profile_builder__lost(b, LOST_SAMPLES, UINT64_MAX, UINT64_MAX, 1);
	profile_builder__lost(b, LOST_SAMPLES, UINT64_MAX, 0, UINT64_MAX);
	/* refused for its absurd CPU */
	books.cpu = UINT32_MAX;
	profile_builder__books(b, &books);
	assert_int_equal(finish()->books_count, 1);
}

TEST(books_meta_and_losses)
{
	struct profile_cpu_books books = {
		.cpu = 2, .period = 10, .time_running = 105, .due = 10, .count = {4, 3}};
	const struct profile *p;

	profile_builder__books(b, &books);
	books.cpu = 0;
	books.count[BOOK_FILTERED] = 2;
	profile_builder__books(b, &books);
	books.count[BOOK_FILTERED] = 3; /* the last word on CPU 0 */
	profile_builder__books(b, &books);
	books.cpu = 1;
	books.period = books.due = 0; /* not a clock event */
	profile_builder__books(b, &books);
	profile_builder__meta(b, "hz", "99");
	profile_builder__meta(b, "kernel", "6.1");
	profile_builder__meta(b, "hz", "999");
	profile_builder__lost(b, LOST_SIDEBAND, 2, 10, 20);
	profile_builder__lost(b, LOST_SIDEBAND, 1, 15, 30);
	profile_builder__lost(b, LOST_SAMPLES, 1, 40, 50);

	p = finish();
	assert_int_equal(p->books_count, 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(p->books[i].cpu, i);
	assert_int_equal(profile__unexplained_ticks(p), (10 - 10) + (10 - 7));
	assert_int_equal(p->meta_count, 2);
	assert_string_equal(profile__meta(p, "hz"), "999");
	assert_null(profile__meta(p, "none"));
	assert_int_equal(p->lost[LOST_SIDEBAND], 3);
	assert_int_equal(p->lost_range_count, 2);
	assert_int_equal(p->lost_ranges[0].since, 10);
	assert_int_equal(p->lost_ranges[0].until, 30);
}

/* What is outside of the session goes, also what touches it; an instant at its edge stays. */
TEST(markers_are_in_order_and_within_the_session)
{
	static const uint64_t given[][2] = {{150, 170},
					    {90, 120},
					    {1, 100},
					    {200, 300},
					    {200, 200},
					    {130, 20},
					    {UINT64_MAX, UINT64_MAX}};
	static const uint64_t kept[][2] = {{100, 120}, {130, 130}, {150, 170}, {200, 200}};
	struct profile_process process = {.pid = 1, .start = 100, .name = str("a")};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id thread = profile_builder__thread(b, pid, 1, true, str("a"), 100);
	const struct profile *p;

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		profile_builder__marker(
			b, &(struct profile_marker){thread, str("gc"), given[i][0], given[i][1]});
	profile_builder__marker(b, &(struct profile_marker){thread, {0}, 110, 120});
	profile_builder__session(b)->start = 100;
	profile_builder__session(b)->end = 200;
	p = finish();
	assert_int_equal(p->marker_count, sizeof(kept) / sizeof(*kept));
	for (size_t i = 0; i < p->marker_count; i++) {
		assert_int_equal(p->markers[i].start, kept[i][0]);
		assert_int_equal(p->markers[i].end, kept[i][1]);
	}
}

TEST(dump_is_deterministic)
{
	struct profile_process process = {.pid = 1, .start = 5, .name = str("a\n\"b")};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id t = profile_builder__thread(b, pid, 1, true, str("a"), 5);
	const struct profile *p;
	char *text[2];
	size_t size[2];

	add_sample(t, 9, some_stack(), 3, "a", STACK_END_ROOT);
	p = finish();
	for (int i = 0; i < 2; i++) {
		FILE *out = open_memstream(&text[i], &size[i]);

		profile_dump(p, out);
		fclose(out);
	}
	assert_string_equal(text[0], text[1]);
	assert_non_null(strstr(text[0], "process 1 pid=1 ppid=0 name=\"a\\x0a"));
	assert_non_null(strstr(text[0], "  sample 9 stack=1 cpu=3 comm=\"a\"\n"));
	free(text[0]);
	free(text[1]);
}

TEST(a_stack_of_nothing_is_found)
{
	struct profile_process process = {.pid = 1, .start = 5};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id t = profile_builder__thread(b, pid, 1, true, str("a"), 5);
	const struct profile *p = NULL;
	char why[128];

	add_sample(t, 9, (struct stack_id){0}, 3, "a", STACK_END_ROOT);
	assert_int_equal(profile_builder__finish(b, &p, why, sizeof(why)), -EINVAL);
	assert_null(p);
	assert_non_null(strstr(why, "stack 0"));
}

/* Taken from the last samples first, as from a plain array. */
TEST(cpu_time_is_taken_back)
{
	enum { ROUNDS = 4000 };
	struct profile_process process = {.pid = 1, .start = 5};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id t = profile_builder__thread(b, pid, 1, true, str("a"), 5);
	struct stack_id stack = some_stack();
	uint64_t want[ROUNDS], sum = 0, random = 7;
	const struct profile *p;
	size_t rows = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t amount, taken = 0;

		random = random * 6364136223846793005u + 1442695040888963407u;
		amount = (random >> 33) % 8 ? (random >> 40) % 10 : (random >> 40) % 2000;
		if ((random >> 50) % 3) {
			want[rows] = (random >> 60) % 2 ? 0 : amount;
			add_sample(t, 10 + round, stack, want[rows], "a", STACK_END_ROOT);
			sum += want[rows++];
			continue;
		}
		for (size_t i = rows; i-- > 0 && taken < amount;) {
			uint64_t here = want[i] < amount - taken ? want[i] : amount - taken;

			want[i] -= here;
			taken += here;
		}
		sum -= taken;
		assert_int_equal(profile_builder__take_back_cpu(b, t, amount), taken);
	}
	p = finish();
	assert_int_equal(p->threads[t.v].samples[SAMPLE_CPU].count, rows);
	for (size_t i = 0; i < rows; i++)
		assert_int_equal(p->threads[t.v].samples[SAMPLE_CPU].weight[i], want[i]);
	assert_int_equal(profile_thread__cpu(&p->threads[t.v]), sum);
}

/* A location with a chain of `count` functions; the first one was called. */
static struct location_id inlined(struct dso_id dso, uint64_t address, size_t count)
{
	struct location_id id = profile_builder__location(b, dso, address, nobody, CATEGORY_USER);
	struct profile_line lines[64] = {};
	char name[32];

	for (size_t i = 0; i < count; i++) {
		struct profile_function f = {.dso = dso, .address = PROFILE_UNKNOWN_ADDRESS};

		snprintf(name, sizeof(name), "f%zu", count - 1 - i);
		f.name = str(name);
		lines[i].function = profile_builder__function(b, &f);
	}
	profile_builder__resolve(b, id, address, lines, count);
	return id;
}

TEST(chains_of_inlined_functions_are_bounded)
{
	enum { SAMPLES = 3000 };
	struct profile_process process = {.pid = 1, .start = 5};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id t = profile_builder__thread(b, pid, 1, true, str("a"), 5);
	struct dso_id dso = file("/bin/a", 1);
	struct location_id deep = inlined(dso, 16, 64), flat = inlined(dso, 32, 3);
	struct stack_id stack = profile_builder__stack(b, (struct stack_id){0}, flat);
	const struct profile *p;

	stack = profile_builder__stack(b, stack, deep);
	for (int i = 0; i < SAMPLES; i++)
		add_sample(t, 10 + i, stack, 1, "a", STACK_END_ROOT);
	p = finish();
	/* 3,000 samples of 67 functions are more than 8 times 6,000 frames and 65,536; with 32 they are not */
	assert_int_equal(p->locations[deep.v].line_count, 32);
	assert_int_equal(p->locations[flat.v].line_count, 3);
	assert_int_equal(p->inlined_left_out, 32);
	/* the outermost ones are kept */
	for (uint32_t i = 0; i < 32; i++) {
		const struct profile_line *line = &p->lines[p->locations[deep.v].first_line + i];
		char name[32];

		snprintf(name, sizeof(name), "f%u", 31 - i);
		assert_string_equal(profile__string(p, p->functions[line->function.v].name), name);
	}
}

TEST(a_few_long_chains_are_whole)
{
	struct profile_process process = {.pid = 1, .start = 5};
	struct process_id pid = profile_builder__process(b, &process);
	struct thread_id t = profile_builder__thread(b, pid, 1, true, str("a"), 5);
	struct location_id deep = inlined(file("/bin/a", 1), 16, 64);
	struct stack_id stack = profile_builder__stack(b, (struct stack_id){0}, deep);
	const struct profile *p;

	for (int i = 0; i < 1000; i++)
		add_sample(t, 10 + i, stack, 1, "a", STACK_END_ROOT);
	p = finish();
	assert_int_equal(p->locations[deep.v].line_count, 64);
	assert_int_equal(p->inlined_left_out, 0);
}

TEST(many_facts_and_books)
{
	const struct profile *p;
	char key[32], value[32];

	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		profile_builder__meta(b, key, "old");
	}
	for (unsigned int i = 0; i < 4096; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		snprintf(value, sizeof(value), "%u", i);
		profile_builder__meta(b, key, value);
	}
	for (uint32_t cpu = 70000; cpu-- > 0;) {
		struct profile_cpu_books books = {.cpu = cpu, .received = 1};

		profile_builder__books(b, &books);
	}
	for (uint32_t cpu = 0; cpu < 65536; cpu += 2) {
		struct profile_cpu_books books = {.cpu = cpu, .received = 2};

		profile_builder__books(b, &books);
	}
	p = finish();
	assert_int_equal(p->meta_count, 4096);
	assert_string_equal(profile__meta(p, "key4095"), "4095");
	assert_null(profile__meta(p, "key4096"));
	assert_int_equal(p->books_count, 65536);
	for (uint32_t cpu = 0; cpu < 65536; cpu++) {
		assert_int_equal(p->books[cpu].cpu, cpu);
		assert_int_equal(p->books[cpu].received, 2 - cpu % 2);
	}
}

/* What a profile has of a command line and a target. */
static void check_shown(const char *key, const char *value, const char *shown)
{
	const struct profile *p;

	profile_builder__free(b);
	b = profile_builder__new();
	profile_builder__meta(b, key, value);
	p = finish();
	assert_string_equal(profile__meta(p, key), shown);
	for (size_t i = 0; i < p->string_count; i++)
		assert_null(strstr(p->strings[i], "secret"));
	/* a file that was written without arguments and is read again has the same text */
	if (strcmp(value, shown))
		check_shown(key, shown, shown);
}

TEST(command_lines_are_without_arguments)
{
	static const char *const commands[][2] = {
		{"sysprof record -o x.folded -- ./orders --password=secret", "sysprof record …"},
		{"sysprof record … -- ./orders …", "sysprof record … -- ./orders …"},
		{"sysprof record … -- ./orders", "sysprof record … -- ./orders"},
		{"sysprof record -- ./orders --password=secret", "sysprof record -- ./orders …"},
		{"sysprof record ./orders -- secret", "sysprof record …"},
		{"sysprof record -p 12", "sysprof record …"},
		{"sysprof record", "sysprof record"},
		{"sysprof agent", "sysprof agent"},
		{"sysprof agent --sink parca:http://user:secret@host", "sysprof agent …"},
		{"/usr/bin/perf record -g ./orders secret", "/usr/bin/perf record …"},
		{"perf stat -- secret", "perf …"},
		{"./orders -- secret", "./orders …"},
		{"./orders  secret", "./orders …"},
		{"./orders", "./orders"},
		{"", ""},
	};
	static const char *const targets[][2] = {
		{"-- ./orders --password=secret", "-- ./orders …"},
		{"-- ./orders --password=secret --cgroup /shop", "-- ./orders …"},
		{"-- ./orders", "-- ./orders"},
		{"--service shop -- ./orders --password=secret", "--service shop -- ./orders …"},
		{"-- …", "-- …"},
		{"--", "--"},
		{"-p 12 --cgroup /shop", "-p 12 --cgroup /shop"},
		{"-a", "-a"},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		check_shown(META_COMMAND, commands[i][0], commands[i][1]);
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++)
		check_shown(META_TARGET, targets[i][0], targets[i][1]);
}

TEST(the_recorder_s_own_short_text_is_the_command)
{
	const struct profile *p;

	profile_builder__meta(b, META_COMMAND, "sysprof record -F 99 -- ./orders secret");
	profile_builder__meta(b, META_COMMAND_SHORT, "sysprof record … -- ./orders …");
	p = finish();
	assert_string_equal(profile__meta(p, META_COMMAND), "sysprof record … -- ./orders …");
	assert_null(profile__meta(p, META_COMMAND_SHORT));
}

TEST(a_recording_s_short_text_is_not_believed)
{
	profile_builder__meta(b, META_COMMAND_SHORT, "sysprof record -o x -- ./orders secret");
	assert_string_equal(profile__meta(finish(), META_COMMAND), "sysprof record …");
}

TEST(arguments_are_kept_on_request)
{
	static const char text[] = "sysprof record -F 99 -- ./orders --fast";
	const struct profile *p;

	profile_builder__session(b)->arguments = true;
	profile_builder__meta(b, META_COMMAND, text);
	profile_builder__meta(b, META_COMMAND_SHORT, "sysprof record … -- ./orders …");
	profile_builder__meta(b, META_TARGET, "-- ./orders --fast");
	p = finish();
	assert_string_equal(profile__meta(p, META_COMMAND), text);
	assert_string_equal(profile__meta(p, META_TARGET), "-- ./orders --fast");
	assert_int_equal(p->meta_count, 2);
}

static void add_code(struct dso_id dso, uint64_t address, const char *bytes,
		     struct profile_code_row row)
{
	struct profile_code code = {.dso = dso,
				    .machine = CODE_MACHINE_X86_64,
				    .address = address,
				    .size = strlen(bytes),
				    .bytes = (const uint8_t *)bytes};

	profile_builder__add_code(b, &code, &row, 1);
}

TEST(code_is_found_by_location)
{
	struct dso_id dso = file("/bin/x", 7);
	struct location_id in = profile_builder__location(b, dso, 0x12, nobody, CATEGORY_USER);
	struct location_id out = profile_builder__location(b, dso, 0x14, nobody, CATEGORY_USER);
	const struct profile_code *code;
	const struct profile *p;

	add_code(dso, 0x20, "late", (struct profile_code_row){.line = 2});
	add_code(dso, 0x10, "code", (struct profile_code_row){.offset = 1, .line = 1});
	add_code(dso, 0x12, "overlaps", (struct profile_code_row){});
	add_code(dso, 0x10, "again", (struct profile_code_row){});
	add_code(dso, 0x80, "a bad row", (struct profile_code_row){.offset = 9});
	add_code(dso, 0x80, "", (struct profile_code_row){});
	add_code((struct dso_id){9}, 0x80, "no dso", (struct profile_code_row){});
	p = finish();
	assert_int_equal(p->code_count, 2);
	code = profile__code(p, &p->locations[in.v]);
	assert_non_null(code);
	assert_memory_equal(code->bytes, "code", 4);
	assert_null(profile__code(p, &p->locations[out.v]));
	assert_null(profile__code_row(p, code, 0));
	assert_int_equal(profile__code_row(p, code, 3)->line, 1);
	assert_null(profile__code_row(p, code, 4));
}

static void add_source(const char *path, const char *text, size_t size)
{
	struct profile_source source = {
		.path = str(path), .state = SOURCE_PLAUSIBLE, .size = size, .text = text};

	profile_builder__add_source(b, &source);
}

TEST(a_source_is_its_path_s_first_text)
{
	struct string_id path = str("/src/b.c"), other = str("/src/d.c");
	const struct profile *p;

	add_source("/src/a.c", "int a;", 6);
	add_source("/src/b.c", "int b;", 6);
	add_source("/src/b.c", "int c;", 6);
	add_source("/src/d.c", "int\0d;", 6);
	add_source("/src/d.c", "", 0);
	add_source("", "text", 4);
	p = finish();
	assert_int_equal(p->source_count, 2);
	assert_string_equal(profile__source(p, (struct dso_id){0}, path)->text, "int b;");
	assert_null(profile__source(p, (struct dso_id){0}, other));
}

TEST(a_path_is_another_source_in_another_root)
{
	const struct profile_source sources[] = {
		{.path = str("/a.c"), .root = 0, .size = 3, .text = "of0"},
		{.path = str("/a.c"), .root = 1, .size = 3, .text = "of1"},
		{.path = str("/a.c"), .root = 1, .size = 3, .text = "too"},
		{.path = str("/b.c"), .root = SOURCE_ROOT_ALL, .size = 3, .text = "all"},
		{.path = str("/c.c"), .root = 0, .size = 3, .text = "0's"}};
	struct dso_id dsos[2];
	const struct profile *p;

	for (size_t i = 0; i < sizeof(dsos) / sizeof(dsos[0]); i++)
		dsos[i] = profile_builder__dso(
			b,
			&(struct profile_dso){.kind = DSO_FILE, .inode = i + 1, .path = str("/x")});
	profile_builder__source_root(b, dsos[1], 1);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		profile_builder__add_source(b, &sources[i]);
	p = finish();
	assert_int_equal(p->source_count, 4);
	assert_string_equal(profile__source(p, dsos[0], sources[0].path)->text, "of0");
	assert_string_equal(profile__source(p, dsos[1], sources[0].path)->text, "of1");
	for (size_t i = 0; i < sizeof(dsos) / sizeof(dsos[0]); i++)
		assert_string_equal(profile__source(p, dsos[i], sources[3].path)->text, "all");
	assert_non_null(profile__source(p, dsos[0], sources[4].path));
	assert_null(profile__source(p, dsos[1], sources[4].path));
}

/* A runtime names any path, and its text is not that of a program with the path. */
TEST(a_script_is_a_source_of_made_code)
{
	const struct profile_source script = {.path = str("/a.c"),
					      .root = SOURCE_ROOT_SCRIPTS,
					      .size = 3,
					      .text = "run"},
				    other = {.path = str("/b.c"), .size = 3, .text = "of0"};
	const enum dso_kind kinds[] = {DSO_FILE, DSO_KERNEL, DSO_VDSO, DSO_JIT, DSO_RUNTIME};
	struct dso_id dsos[sizeof(kinds) / sizeof(kinds[0])];
	const struct profile *p;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		dsos[i] = profile_builder__dso(
			b, &(struct profile_dso){.kind = kinds[i], .path = str("/x")});
	profile_builder__add_source(b, &script);
	profile_builder__add_source(b, &other);
	p = finish();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const bool is_made = dso_kind_is_made(kinds[i]);

		assert_true(!profile__source(p, dsos[i], script.path) == !is_made);
		assert_true(!profile__source(p, dsos[i], other.path) == is_made);
	}
}

TEST(a_dso_without_sources_of_its_own_has_those_of_all)
{
	const struct profile_source
		none = {.path = str("/a.c"), .root = SOURCE_ROOT_NONE, .size = 3, .text = "one"},
		all = {.path = str("/b.c"), .root = SOURCE_ROOT_ALL, .size = 3, .text = "all"};
	struct dso_id dso =
		profile_builder__dso(b, &(struct profile_dso){.kind = DSO_FILE, .path = str("/x")});
	const struct profile *p;

	profile_builder__source_root(b, dso, SOURCE_ROOT_NONE);
	profile_builder__add_source(b, &none);
	profile_builder__add_source(b, &all);
	p = finish();
	assert_int_equal(p->source_count, 1);
	assert_string_equal(profile__source(p, dso, all.path)->text, "all");
}

EACH_TEST_WITH(set_up, tear_down);
