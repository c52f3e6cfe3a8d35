/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Firefox file says what the profile says: its tables are walked as the viewer walks them, and
 * every sample must lead back to the very same stack, name by name. The structure as such (lengths,
 * ranges, keys) is tests/e2e/consumers/check_structure.py's business.
 */
#include "export_support.h"

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
	cJSON_ArrayForEach(json, get(file, "threads"))
	{
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

static void test_every_sample(void **state)
{
	static const char *const names[] = {"recursion", "processes", "gaps"};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		check_file(build_profile(&f, names[i]));
		profile_builder__free(f.b);
	}
	for (unsigned int seed = 0; seed < 5; seed++) {
		check_file(build_random(&f, seed, 12, 1200));
		profile_builder__free(f.b);
	}
}

static void test_lives_of_a_pid(void **state)
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

	(void)state;
	cJSON_ArrayForEach(thread, get(file, "threads"))
	{
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

static void test_busiest_threads_are_shown(void **state)
{
	struct fixture f;
	const struct profile *p = build_profile(&f, "processes");
	cJSON *file = export_json(&firefox_exporter, p, NULL);
	const cJSON *selected = get(get(file, "meta"), "initialSelectedThreads");

	(void)state;
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
static void test_inlined_and_called_is_one_function(void **state)
{
	struct fixture f;
	struct location_id called, inlined, other;
	struct thread_id thread;
	const cJSON *shared, *functions, *frames;
	cJSON *file;

	(void)state;
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

static void test_profiles_without_samples(void **state)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "empty"), NULL);

	(void)state;
	assert_int_equal(cJSON_GetArraySize(get(file, "threads")), 1);
	cJSON_Delete(file);
	profile_builder__free(f.b);
	file = export_json(&firefox_exporter, build_profile(&f, "silent"), NULL);
	assert_int_equal(cJSON_GetArraySize(get(file, "threads")), 2);
	assert_int_equal(cJSON_GetArraySize(get(file, "libs")), 0);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

static void test_meta(void **state)
{
	struct fixture f;
	cJSON *file = export_json(&firefox_exporter, build_profile(&f, "recursion"), NULL);
	const cJSON *meta = get(file, "meta"), *lib = cJSON_GetArrayItem(get(file, "libs"), 1);

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sample),
		cmocka_unit_test(test_lives_of_a_pid),
		cmocka_unit_test(test_busiest_threads_are_shown),
		cmocka_unit_test(test_inlined_and_called_is_one_function),
		cmocka_unit_test(test_profiles_without_samples),
		cmocka_unit_test(test_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
