/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Firefox file says what the profile says: its tables are walked as the viewer walks them, and
 * every sample must lead back to the very same stack, name by name. The structure as such (lengths,
 * ranges, keys) is tests/e2e/consumers/check_structure.py's business.
 */
#include "export_support.h"

#include "base/file_url.h"
#include "formats/out/firefox.h"
#include "profile/timeline.h"

struct columns {
	const cJSON **stack_frame, **stack_offset, **frame_func, **frame_depth, **frame_category,
		**frame_line, **func_name, **strings;
	size_t stacks, frames, funcs, string_count;
};

static void columns__init(struct columns *c, const cJSON *file)
{
	const cJSON *shared = get(file, "shared"), *frames = get(shared, "frameTable");
	const cJSON *stacks = get(shared, "stackTable");

	c->stack_frame = elements(get(stacks, "frame"), &c->stacks);
	c->stack_offset = elements(get(stacks, "prefixOffset"), &c->stacks);
	c->frame_func = elements(get(frames, "func"), &c->frames);
	c->frame_depth = elements(get(frames, "inlineDepth"), &c->frames);
	c->frame_category = elements(get(frames, "category"), &c->frames);
	c->frame_line = elements(get(frames, "line"), &c->frames);
	c->func_name = elements(get(get(shared, "funcTable"), "name"), &c->funcs);
	c->strings = elements(get(shared, "stringArray"), &c->string_count);
}

static void columns__fini(struct columns *c)
{
	free(c->stack_frame);
	free(c->stack_offset);
	free(c->frame_func);
	free(c->frame_depth);
	free(c->frame_category);
	free(c->frame_line);
	free(c->func_name);
	free(c->strings);
}

static size_t index_of(const cJSON *value, size_t limit)
{
	assert_true(cJSON_IsNumber(value));
	assert_true(value->valuedouble >= 0 && value->valuedouble < (double)limit);
	return (size_t)value->valuedouble;
}

/* One row of the file's stack is one line of the profile's; true: it has a caller's row. */
static bool same_line(const struct columns *c, const struct profile *p,
		      const struct profile_location *location, uint32_t line, size_t *row)
{
	size_t frame = index_of(c->stack_frame[*row], c->frames);
	size_t func = index_of(c->frame_func[frame], c->funcs);
	size_t name = index_of(c->func_name[func], c->string_count);
	const struct profile_line *want = &p->lines[location->first_line + line];
	size_t offset = index_of(c->stack_offset[*row], *row + 1);

	assert_string_equal(c->strings[name]->valuestring,
			    profile__string(p, p->functions[want->function.v].name));
	assert_int_equal(c->frame_category[frame]->valueint, location->category);
	assert_int_equal(c->frame_depth[frame]->valueint, location->line_count - 1 - line);
	if (want->line)
		assert_int_equal(c->frame_line[frame]->valueint, want->line);
	else
		assert_true(cJSON_IsNull(c->frame_line[frame]));
	*row -= offset;
	return offset > 0;
}

static void check_stack(const struct columns *c, const struct profile *p, struct stack_id stack,
			const cJSON *value)
{
	size_t row = index_of(value, c->stacks);
	bool more = true;

	for (uint32_t at = stack.v; at; at = p->stacks[at].parent.v) {
		const struct profile_location *l = &p->locations[p->stacks[at].location.v];

		for (uint32_t i = 0; i < l->line_count; i++) {
			assert_true(more);
			more = same_line(c, p, l, i, &row);
		}
	}
	assert_false(more);
}

/* The rows of a thread are the entries of its timeline, to the nanosecond. */
static void check_thread(const struct columns *c, const struct profile *p,
			 const struct profile_thread *thread, const cJSON *json)
{
	const cJSON *samples = get(json, "samples");
	size_t count, cpu_count, stack_count, i = 0;
	const cJSON **stack = elements(get(samples, "stack"), &stack_count);
	const cJSON **time = elements(get(samples, "time"), &count);
	const cJSON **cpu = elements(get(samples, "threadCPUDelta"), &cpu_count);
	struct timeline timeline;
	struct timeline_entry entry;
	uint64_t total = 0;
	size_t real = 0;

	assert_int_equal(count, cpu_count);
	assert_int_equal(count, stack_count);
	timeline__init(&timeline, p, thread);
	for (; timeline__next(&timeline, &entry); i++) {
		assert_true(i < count);
		assert_float_equal(time[i]->valuedouble, (double)(entry.time - p->start) / 1e6,
				   1e-7);
		assert_true(cpu[i]->valuedouble == (double)entry.cpu_delta);
		total += entry.cpu_delta;
		if (entry.kind == TIMELINE_SAMPLE) {
			check_stack(c, p, entry.stack, stack[i]);
			real++;
		} else {
			assert_true(cJSON_IsNull(stack[i]));
		}
	}
	assert_int_equal(i, count);
	assert_int_equal(real, thread->samples[SAMPLE_CPU].count);
	assert_true(total == profile_thread__cpu(thread));
	free(stack);
	free(time);
	free(cpu);
}

/* The thread of the profile that a thread of the file is; lives have the order of appearance. */
static const struct profile_thread *find_thread(const struct profile *p, const cJSON *json)
{
	const char *tid = string(json, "tid"), *dot = strchr(tid, '.');
	unsigned long skip = dot ? strtoul(dot + 1, NULL, 10) : 0;

	for (size_t i = 1; i < p->thread_count; i++)
		if (p->threads[i].samples[SAMPLE_CPU].count &&
		    p->threads[i].tid == strtoul(tid, NULL, 10) && !skip--)
			return &p->threads[i];
	return NULL;
}

static void check_file(const struct profile *p)
{
	cJSON *file = export_json(&firefox_exporter, p, NULL);
	const cJSON *json;
	struct columns c;
	size_t threads = 0, wanted = 0;

	columns__init(&c, file);
	cJSON_ArrayForEach (json, get(file, "threads")) {
		const struct profile_thread *thread = find_thread(p, json);

		assert_non_null(thread);
		check_thread(&c, p, thread, json);
		threads++;
	}
	for (size_t i = 1; i < p->thread_count; i++)
		wanted += p->threads[i].samples[SAMPLE_CPU].count > 0;
	assert_int_equal(threads, wanted);
	columns__fini(&c);
	cJSON_Delete(file);
}

TEST(every_sample_leads_back_to_its_stack)
{
	static const char *const names[] = {"recursion", "processes", "gaps"};
	struct fixture f;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		check_file(build_profile(&f, names[i]));
		profile_builder__free(f.b);
	}
	for (unsigned int seed = 0; seed < 5; seed++) {
		check_file(build_random(&f, seed, 12, 1200));
		profile_builder__free(f.b);
	}
}

TEST(lives_of_a_pid_are_numbered_in_order)
{
	static const char *const want[][3] = {
		{"300", "300", "sh"},	       {"2", "2", "kworker/0:1"},
		{"300.1", "300.1", "fixture"}, {"300.1", "301", "worker-1"},
		{"300.2", "300.2", "again"},
	};
	struct fixture f;
	const struct profile *p = build_profile(&f, "processes");
	cJSON *file = export_json(&firefox_exporter, p, NULL);
	const cJSON *thread;
	size_t i = 0;

	cJSON_ArrayForEach (thread, get(file, "threads")) {
		assert_true(i < 5);
		assert_string_equal(string(thread, "pid"), want[i][0]);
		assert_string_equal(string(thread, "tid"), want[i][1]);
		assert_string_equal(string(thread, "name"), want[i][2]);
		i++;
	}
	assert_int_equal(i, 5);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

TEST(the_busiest_threads_are_selected_and_shown)
{
	struct fixture f;
	const struct profile *p = build_profile(&f, "processes");
	cJSON *file = export_json(&firefox_exporter, p, NULL);
	const cJSON *selected = get(get(file, "meta"), "initialSelectedThreads");

	assert_int_equal(cJSON_GetArraySize(selected), 1);
	assert_int_equal(cJSON_GetArrayItem(selected, 0)->valueint, 4);
	cJSON_Delete(file);
	profile_builder__free(f.b);

	/* 40 threads, two a process, every third a main thread: 15, and the main ones of those */
	p = build_random(&f, 3, 40, 4000);
	file = export_json(&firefox_exporter, p, NULL);
	selected = get(get(file, "meta"), "initialVisibleThreads");
	assert_true(cJSON_GetArraySize(selected) >= 15 && cJSON_GetArraySize(selected) <= 30);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* A function that is called in one place and inlined in another is one row of funcTable. */
TEST(an_inlined_and_called_function_is_one_row)
{
	struct fixture f;
	struct location_id called, inlined, other;
	struct thread_id thread;
	const cJSON *shared, *functions, *frames;
	cJSON *file;

	fixture__init(&f, 10);
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	called = add_location(&f, f.program, 0x100);
	inlined = add_location(&f, f.program, 0x200);
	other = add_location(&f, f.program, 0x300);
	add_sample(&f, thread, 1, STACK(&f, called), 0.5, "fixture");
	add_sample(&f, thread, 2, STACK(&f, inlined), 0.5, "fixture");
	add_sample(&f, thread, 3, STACK(&f, other), 0.5, "fixture");
	NAME(&f, called, {"f", "/src/f.c", 11, 10, 1, 0x400100, 16, NULL});
	NAME(&f, inlined, {"f", "/src/f.c", 12, 10, 1, 0, 0, NULL},
	     {"g", "/src/g.c", 21, 20, 1, 0x400200, 16, NULL});
	/* another one of that name */
	NAME(&f, other, {"f", "/src/h.c", 31, 30, 1, 0x400300, 16, NULL});
	file = export_json(&firefox_exporter, finish(&f), NULL);
	shared = get(file, "shared");
	functions = get(shared, "funcTable");
	frames = get(shared, "frameTable");
	assert_int_equal(number(functions, "length"), 3);
	assert_int_equal(number(frames, "length"), 4);
	assert_int_equal(number(get(shared, "nativeSymbols"), "length"), 3);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

TEST(profiles_without_samples_still_have_threads)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "empty"), NULL);

	assert_int_equal(cJSON_GetArraySize(get(file, "threads")), 1);
	cJSON_Delete(file);
	profile_builder__free(f.b);
	file = export_json(&firefox_exporter, build_profile(&f, "silent"), NULL);
	assert_int_equal(cJSON_GetArraySize(get(file, "threads")), 2);
	assert_int_equal(cJSON_GetArraySize(get(file, "libs")), 0);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

TEST(the_file_has_the_session_and_the_build_ids)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "recursion"), NULL);
	const cJSON *meta = get(file, "meta"), *lib = cJSON_GetArrayItem(get(file, "libs"), 1);

	assert_true(number(meta, "interval") == 1);
	assert_true(number(meta, "startTimeAsClockMonotonicNanosecondsSinceBoot") == START);
	assert_string_equal(string(meta, "product"), "sysprof 0.1.0");
	assert_string_equal(string(meta, "arguments"), "./fixture \"quoted\"");
	assert_true(number(meta, "logicalCPUs") == 2);
	assert_string_equal(string(lib, "breakpadId"), "131211101514171618191A1B1C1D1E1F0");
	assert_string_equal(string(lib, "codeId"), "101112131415161718191a1b1c1d1e1f20212223");
	assert_string_equal(string(cJSON_GetArrayItem(get(file, "libs"), 0), "breakpadId"), "");
	cJSON_Delete(file);
	profile_builder__free(f.b);

	/* a build-id of 5 bytes is filled up with zeros */
	file = export_json(&firefox_exporter, build_profile(&f, "hostile"), NULL);
	lib = cJSON_GetArrayItem(get(file, "libs"), 1);
	assert_string_equal(string(lib, "breakpadId"), "131211100014000000000000000000000");
	assert_string_equal(string(lib, "codeId"), "1011121314");
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

static const cJSON *element(const cJSON *array, int i)
{
	const cJSON *value = cJSON_GetArrayItem(array, i);

	assert_non_null(value);
	return value;
}

static double item(const cJSON *array, int i)
{
	return element(array, i)->valuedouble;
}

/* ---- the checklist --------------------------------------------------------------------------- */

/* [F1] Milliseconds, categories with colours; tests/e2e/structure_checker.py has the tables and indexes. */
TEST(times_are_milliseconds_and_categories_have_colours)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "recursion"), NULL);
	const cJSON *meta = get(file, "meta"), *category;

	assert_true(number(meta, "interval") == MS / 1e6);
	assert_float_equal(number(meta, "startTime"), REALTIME / 1e6, 1e-3);
	assert_true(cJSON_IsArray(get(file, "counters")) && cJSON_IsArray(get(file, "threads")));
	cJSON_ArrayForEach (category, get(meta, "categories")) {
		assert_true(*string(category, "color") != '\0');
		assert_string_equal(element(get(category, "subcategories"), 0)->valuestring,
				    "Other");
	}
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* [F2] The unit is declared, the first delta is 0, and so are those over idle times. */
TEST(cpu_deltas_are_zero_initially_and_over_idle_times)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "gaps"), NULL);
	const cJSON *samples = get(element(get(file, "threads"), 0), "samples");
	const cJSON *time = get(samples, "time"), *delta = get(samples, "threadCPUDelta");
	int idle = 0;

	assert_string_equal(string(get(get(file, "meta"), "sampleUnits"), "threadCPUDelta"), "ns");
	assert_true(item(delta, 0) == 0);
	for (int i = 1; i < cJSON_GetArraySize(time); i++) {
		if (item(time, i) - item(time, i - 1) < 10)
			continue;
		assert_true(item(delta, i) == 0);
		idle++;
	}
	assert_int_equal(idle, 3);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* [F3] A function has the line of its definition, its frames those that were executed. */
TEST(functions_have_definition_lines_and_frames_executed_ones)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "recursion"), NULL);
	const cJSON *shared = get(file, "shared"), *functions = get(shared, "funcTable");
	const cJSON *frames = get(shared, "frameTable");
	bool executed[32] = {};

	for (int i = 0; i < (int)number(frames, "length"); i++) {
		int function = (int)item(get(frames, "func"), i);
		int name = (int)item(get(functions, "name"), function);

		if (strcmp(element(get(shared, "stringArray"), name)->valuestring, "fib"))
			continue;
		assert_true(item(get(functions, "lineNumber"), function) == 10);
		assert_true(item(get(functions, "columnNumber"), function) == 12);
		executed[(int)item(get(frames, "line"), i)] = true;
	}
	assert_true(executed[11] && executed[12] && executed[13] && executed[14] && !executed[10]);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* [F4] A-B and A-B-C are three nodes, callers first. */
TEST(stacks_share_their_prefix_callers_first)
{
	struct fixture f;
	struct location_id a, b, c;
	struct thread_id thread;
	const cJSON *shared, *stacks, *samples;
	cJSON *file;

	fixture__init(&f, 10);
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	a = add_location(&f, f.program, 0x100);
	b = add_location(&f, f.program, 0x200);
	c = add_location(&f, f.program, 0x300);
	add_sample(&f, thread, 1, STACK(&f, a, b), 1, "fixture");
	add_sample(&f, thread, 2, STACK(&f, a, b, c), 1, "fixture");
	file = export_json(&firefox_exporter, finish(&f), NULL);
	shared = get(file, "shared");
	stacks = get(shared, "stackTable");
	samples = get(element(get(file, "threads"), 0), "samples");
	assert_int_equal(number(stacks, "length"), 3);
	for (int i = 0; i < 3; i++) {
		assert_true(item(get(stacks, "frame"), i) == i);
		assert_true(item(get(stacks, "prefixOffset"), i) == (i > 0));
	}
	assert_true(item(get(samples, "stack"), 1) == 1 && item(get(samples, "stack"), 2) == 2);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/*
 * [F6] The viewer's settings; those of the threads are in
 * the_busiest_threads_are_selected_and_shown().
 */
TEST(settings_of_the_viewer_are_switched_on)
{
	static const char *const on[] = {"symbolicated", "usesOnlyOneStackType",
					 "sourceCodeIsNotOnSearchfox"};
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "processes"), NULL);

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++)
		assert_true(cJSON_IsTrue(get(get(file, "meta"), on[i])));
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* ---- a crowd --------------------------------------------------------------------------------- */

static cJSON *export_crowd(struct fixture *f, int busy_threads, int busy_samples, int samples)
{
	struct location_id code;

	fixture__init(f, 2000);
	f->process = add_process(f, 42, "crowd", 0, 0);
	code = add_location(f, f->program, 0x100);
	for (int i = 0; i < 500; i++) {
		bool busy = i >= 400 && i < 400 + busy_threads;
		struct thread_id thread = add_thread(f, f->process, 42 + i, !i, "crowd", 0);

		for (int k = 1; k <= (i == 450 ? 1000 : busy ? busy_samples : samples); k++)
			add_sample(f, thread, k, STACK(f, code), 1, "crowd");
	}
	return export_json(&firefox_exporter, finish(f), NULL);
}

static void expect_threads(const cJSON *file, const char *key, const int *wanted, int count)
{
	const cJSON *threads = get(get(file, "meta"), key);

	assert_int_equal(cJSON_GetArraySize(threads), count);
	for (int i = 0; i < count; i++)
		assert_true(item(threads, i) == wanted[i]);
}

/* [F6] Of 500 threads: the main one, the busiest, and those that did a twentieth of it; at most 15. */
TEST(a_crowd_shows_its_main_thread_and_the_busiest)
{
	static const int few[] = {0, 400, 401, 402, 450}, busiest[] = {450};
	struct fixture f;
	cJSON *file = export_crowd(&f, 3, 50, 49);

	expect_threads(file, "initialVisibleThreads", few, 5);
	expect_threads(file, "initialSelectedThreads", busiest, 1);
	cJSON_Delete(file);
	profile_builder__free(f.b);
	file = export_crowd(&f, 49, 900, 1);
	assert_int_equal(cJSON_GetArraySize(get(get(file, "meta"), "initialVisibleThreads")),
			 1 + 15);
	expect_threads(file, "initialSelectedThreads", busiest, 1);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* ---- markers and counters -------------------------------------------------------------------- */

/* A million flaws are few markers, which count all of them. */
TEST(flaws_become_few_markers_that_count_them_all)
{
	struct fixture f;
	struct location_id code;
	struct thread_id thread;
	const cJSON *marker, *markers, *section, *entry;
	uint64_t reported = 0, cut = 0, spans = 0;
	cJSON *file;

	fixture__init(&f, 400000);
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	code = add_location(&f, f.program, 0x100);
	for (int i = 1; i <= 300000; i++) {
		enum stack_end end = i % 3 == 0	  ? STACK_END_ROOT
				     : i % 2 == 0 ? STACK_END_DEPTH
						  : STACK_END_FAULT;

		add_cut_sample(&f, thread, i, STACK(&f, code), 1, "fixture", end);
		cut += end != STACK_END_ROOT;
	}
	for (int i = 0; i < 100000; i++)
		profile_builder__lost(f.b, LOST_SAMPLES, 1, AT(2 * i), AT(2 * i + 1));
	file = export_json(&firefox_exporter, finish(&f), NULL);
	markers = get(element(get(file, "threads"), 0), "markers");
	assert_true(number(markers, "length") > 2 && number(markers, "length") < 256 + 2100);
	cJSON_ArrayForEach (marker, get(markers, "data"))
		if (!strcmp(string(marker, "type"), "CutStacks"))
			reported += (uint64_t)number(marker, "samples");
	assert_true(reported == cut);
	cJSON_ArrayForEach (section, get(get(file, "meta"), "extra"))
		cJSON_ArrayForEach (entry, get(section, "entries"))
			spans += !strcmp(string(entry, "label"), "Something was lost in");
	assert_in_range(spans, 1000, 2048);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* A long path of a control group is cut between two characters. */
TEST(a_long_cgroup_path_is_cut_between_characters)
{
	static char path[(5 << 20) + 2];
	struct fixture f;
	const char *cut;
	cJSON *file;

	path[0] = '/';
	for (size_t i = 1; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "ä", 2);
	fixture__init(&f, 10);
	f.process = add_process(&f, 42, "fixture", 1, 0);
	profile_builder__process_cgroup(f.b, f.process, text(&f, path));
	add_thread(&f, f.process, 42, true, "fixture", 1);
	profile_builder__process_end(f.b, f.process, AT(5), false);
	file = export_json(&firefox_exporter, finish(&f), NULL);
	cut = string(element(get(get(element(get(file, "threads"), 0), "markers"), "data"), 0),
		     "cgroup");
	assert_int_equal(strlen(cut), 1 + 125 * 2 + strlen("…"));
	assert_string_equal(cut + 249, "ä…");
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* One sample each ms. */
static void add_gil_sample(struct fixture *f, struct thread_id thread, unsigned int ms,
			   struct stack_id stack, enum gil_state gil)
{
	profile_builder__sample(f->b, thread,
				&(struct profile_sample){
					.time = AT(ms),
					.weight = 1000,
					.stack = stack,
					.comm = text(f, "fixture"),
					.gil = gil,
				});
}

/* When a thread held the GIL, and when it was about to wait: markers of a category that other files do not have. */
TEST(gil_states_are_markers_with_their_own_category)
{
	static const enum gil_state states[] = {GIL_UNKNOWN,  GIL_HELD, GIL_HELD,   GIL_RELEASED,
						GIL_RELEASED, GIL_HELD, GIL_WAITING};
	struct fixture f;
	struct location_id code;
	struct thread_id thread;
	const cJSON *markers, *start, *end, *name, *categories, *strings;
	cJSON *file;

	fixture__init(&f, 20);
	profile_builder__session(f.b)->period = MS;
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	code = add_location(&f, f.program, 0x100);
	for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		add_gil_sample(&f, thread, i + 1, STACK(&f, code), states[i]);
	file = export_json(&firefox_exporter, finish(&f), NULL);
	markers = get(element(get(file, "threads"), 0), "markers");
	strings = get(get(file, "shared"), "stringArray");
	start = get(markers, "startTime");
	end = get(markers, "endTime");
	name = get(markers, "name");
	assert_int_equal(number(markers, "length"), 3);
	assert_string_equal(element(strings, element(name, 0)->valueint)->valuestring, "GIL held");
	assert_string_equal(element(strings, element(name, 2)->valueint)->valuestring,
			    "Waiting for the GIL");
	assert_true(element(start, 0)->valuedouble == 2 && element(end, 0)->valuedouble == 4);
	assert_true(element(start, 1)->valuedouble == 6 && element(end, 1)->valuedouble == 7);
	assert_int_equal(number(element(get(markers, "data"), 0), "samples"), 2);
	categories = get(get(file, "meta"), "categories");
	for (int i = 0; i < 3; i++)
		assert_string_equal(
			string(element(categories, element(get(markers, "category"), i)->valueint),
			       "name"),
			"GIL");
	cJSON_Delete(file);
	profile_builder__free(f.b);
	file = export_json(&firefox_exporter, build_profile(&f, "events"), NULL);
	assert_int_equal(cJSON_GetArraySize(get(get(file, "meta"), "categories")), CATEGORY_COUNT);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* What was sampled after a long pause is another marker. */
TEST(samples_after_a_long_pause_are_another_marker)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "events"), NULL);
	const cJSON *markers = get(element(get(file, "threads"), 1), "markers"), *marker;
	double samples[8] = {};
	int count = 0;

	cJSON_ArrayForEach (marker, get(markers, "data"))
		if (!strcmp(string(marker, "type"), "AmbiguousName"))
			samples[count++] = number(marker, "samples");
	assert_int_equal(count, 2);
	assert_true(samples[0] == 7 && samples[1] == 1);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* The parts of a process's CPU time add up, however its threads' samples lie. */
TEST(cpu_counters_and_threads_have_equal_cpu_time)
{
	for (unsigned int seed = 0; seed < 5; seed++) {
		struct fixture f;
		const struct profile *p = build_random(&f, seed, 12, 1200);
		cJSON *file = export_json(&firefox_exporter, p, NULL);
		const cJSON *counter, *thread, *value;
		double counted = 0, used = 0, last;

		cJSON_ArrayForEach (counter, get(file, "counters")) {
			assert_string_equal(string(counter, "name"), "processCPU");
			last = -1;
			cJSON_ArrayForEach (value, get(get(counter, "samples"), "count"))
				counted += value->valuedouble;
			cJSON_ArrayForEach (value, get(get(counter, "samples"), "time")) {
				assert_true(value->valuedouble > last);
				last = value->valuedouble;
			}
		}
		cJSON_ArrayForEach (thread, get(file, "threads"))
			cJSON_ArrayForEach (value, get(get(thread, "samples"), "threadCPUDelta"))
				used += value->valuedouble;
		assert_true(counted == used && used > 0);
		cJSON_Delete(file);
		profile_builder__free(f.b);
	}
}

TEST(memory_counters_hold_deltas_of_processes_with_threads)
{
	static const double deltas[] = {10 << 20, 2 << 20, -(1 << 20)};
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "events"), NULL);
	const cJSON *counter, *count;
	int own = 0, others = 0;

	cJSON_ArrayForEach (counter, get(file, "counters")) {
		count = get(get(counter, "samples"), "count");
		if (!strcmp(string(counter, "name"), "memory of sysprof")) {
			/* it has no thread in the file */
			assert_string_equal(string(counter, "pid"), "500");
			assert_true(item(count, 0) == 30 << 20);
			own++;
		} else if (!strcmp(string(counter, "name"), "memory")) {
			others++;
			if (strcmp(string(counter, "pid"), "500"))
				continue;
			for (int i = 0; i < 3; i++)
				assert_true(item(count, i) == deltas[i]);
		}
	}
	assert_int_equal(own, 1);
	assert_int_equal(others, 2); /* 503 has no thread in the file */
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* A sample in softirq or hardirq has the same functions, and an innermost frame of that subcategory. */
TEST(interrupt_contexts_are_subcategories_of_the_kernel)
{
	struct fixture f;
	cJSON *file;
	const cJSON *shared, *kernel, *stacks, *frames, *rows;
	static const int wanted[] = {0, 1, 2, 0};
	int found = 0, stack, frame, work = -1;

	interrupted_profile(&f);
	file = export_json(&firefox_exporter, finish(&f), NULL);
	shared = get(file, "shared");
	stacks = get(shared, "stackTable");
	frames = get(shared, "frameTable");
	kernel = get(cJSON_GetArrayItem(get(get(file, "meta"), "categories"), CATEGORY_KERNEL),
		     "subcategories");
	assert_int_equal(cJSON_GetArraySize(kernel), 3);
	assert_string_equal(cJSON_GetArrayItem(kernel, 1)->valuestring, "softirq");
	assert_string_equal(cJSON_GetArrayItem(kernel, 2)->valuestring, "hardirq");
	assert_int_equal(number(stacks, "length"), 4);
	assert_int_equal(number(frames, "length"), 4);
	rows = get(get(cJSON_GetArrayItem(get(file, "threads"), 0), "samples"), "stack");
	for (int i = 0; i < cJSON_GetArraySize(rows); i++) {
		if (cJSON_IsNull(cJSON_GetArrayItem(rows, i)))
			continue;
		stack = (int)item(rows, i);
		frame = (int)item(get(stacks, "frame"), stack);
		assert_int_equal(item(get(frames, "category"), frame), CATEGORY_KERNEL);
		assert_int_equal(item(get(frames, "subcategory"), frame), wanted[found++]);
		/* its caller is the root, of the program */
		stack -= (int)item(get(stacks, "prefixOffset"), stack);
		assert_int_equal(item(get(stacks, "prefixOffset"), stack), 0);
		assert_int_equal(
			item(get(frames, "category"), (int)item(get(stacks, "frame"), stack)),
			CATEGORY_USER);
		if (work < 0)
			work = (int)item(get(frames, "func"), frame);
		assert_int_equal(item(get(frames, "func"), frame), work);
	}
	assert_int_equal(found, 4);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* Its resource and library are the source file. */
TEST(the_library_of_an_interpreted_function_is_its_source)
{
	struct fixture f;
	cJSON *file;
	const cJSON *shared, *names, *lib;
	int function, resource;

	interpreted_profile(&f);
	file = export_json(&firefox_exporter, finish(&f), NULL);
	shared = get(file, "shared");
	names = get(shared, "stringArray");
	for (function = 0;; function++) {
		int name = (int)item(get(get(shared, "funcTable"), "name"), function);

		if (!strcmp(cJSON_GetArrayItem(names, name)->valuestring, "run"))
			break;
	}
	resource = (int)item(get(get(shared, "funcTable"), "resource"), function);
	assert_true(resource >= 0);
	lib = cJSON_GetArrayItem(get(file, "libs"),
				 (int)item(get(get(shared, "resourceTable"), "lib"), resource));
	assert_string_equal(string(lib, "name"), "app.py");
	assert_string_equal(string(lib, "path"), INTERPRETED);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/*
 * The viewer asks for a source by an address in a library: so JIT code with a source has one. A file:// URL
 * is a path there. The kernel's build-id is in the facts about the machine.
 */
TEST(jit_code_and_the_kernel_have_libraries_and_addresses)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "events"), NULL);
	const cJSON *shared = get(file, "shared"), *frames = get(shared, "frameTable"), *lib, *name;
	bool kernel = false, jit = false, path = false;

	cJSON_ArrayForEach (lib, get(file, "libs")) {
		jit |= !strcmp(string(lib, "name"), "[jit]");
		if (strcmp(string(lib, "name"), "[kernel.kallsyms]"))
			continue;
		kernel = true;
		assert_string_equal(string(lib, "codeId"),
				    "00112233445566778899aabbccddeeff01234567");
		assert_string_equal(string(lib, "breakpadId"), "33221100554477668899AABBCCDDEEFF0");
	}
	assert_true(kernel && jit);
	for (int i = 0; i < (int)number(frames, "length"); i++)
		assert_true(item(get(frames, "address"), i) >= 0);
	cJSON_ArrayForEach (name, get(get(shared, "sources"), "filename"))
		path |= !strcmp(element(get(shared, "stringArray"), name->valueint)->valuestring,
				"/srv/an app/x.js");
	assert_true(path);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

TEST(file_urls_become_paths_and_other_urls_do_not)
{
	static const struct {
		const char *url, *path;
	} cases[] = {
		{"file:///a/b.js", "/a/b.js"},
		{"file:///a%20b%2f%C3%a9", "/a b/\xc3\xa9"},
		{"file:///a%00b", "/a%00b"},
		{"file:///100%", "/100%"},
		{"file:///%4", "/%4"},
		{"file:///%zz", "/%zz"},
		{"file://host/a", NULL},
		{"/a/b.js", NULL},
		{"node:fs", NULL},
		{"file://", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *path = file_url_path(cases[i].url);

		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
		else
			assert_null(path);
		free(path);
	}
}
