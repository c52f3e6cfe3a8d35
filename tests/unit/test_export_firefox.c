/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Firefox file says what the profile says: its tables are walked as the viewer walks them, and
 * every sample must lead back to the very same stack, name by name. The structure as such (lengths,
 * ranges, keys) is tests/e2e/consumers/check_structure.py's business; single values: testdata/export_values.txt.
 */
#include "export_support.h"

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
	_cleanup_free_ const cJSON **stack = elements(get(samples, "stack"), &stack_count);
	_cleanup_free_ const cJSON **time = elements(get(samples, "time"), &count);
	_cleanup_free_ const cJSON **cpu = elements(get(samples, "threadCPUDelta"), &cpu_count);
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
	_cleanup_cjson_ cJSON *file = export_json(&firefox_exporter, p, NULL);
	const cJSON *json;
	_cleanup_(columns__fini) struct columns c = {};
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
	_cleanup_fixture_ struct fixture f;
	_cleanup_cjson_ cJSON *file = export_crowd(&f, 3, 50, 49);

	expect_threads(file, "initialVisibleThreads", few, 5);
	expect_threads(file, "initialSelectedThreads", busiest, 1);
	cJSON_Delete(file);
	profile_builder__free(f.b);
	file = export_crowd(&f, 49, 900, 1);
	assert_int_equal(cJSON_GetArraySize(get(get(file, "meta"), "initialVisibleThreads")),
			 1 + 15);
	expect_threads(file, "initialSelectedThreads", busiest, 1);
}

/* ---- markers and counters -------------------------------------------------------------------- */

TEST(flaws_become_few_markers_that_count_them_all)
{
	_cleanup_fixture_ struct fixture f;
	struct location_id code;
	struct thread_id thread;
	const cJSON *marker, *markers, *section, *entry;
	uint64_t reported = 0, cut = 0, spans = 0;
	_cleanup_cjson_ cJSON *file;

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
}

TEST(a_long_cgroup_path_is_cut_between_characters)
{
	static char path[(5 << 20) + 2];
	_cleanup_fixture_ struct fixture f;
	const char *cut;
	_cleanup_cjson_ cJSON *file;

	path[0] = '/';
	for (size_t i = 1; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "ä", 2);
	fixture__init(&f, 10);
	f.process = add_process(&f, 42, "fixture", 1, 0);
	profile_builder__get_process(f.b, f.process)->cgroup = text(&f, path);
	add_thread(&f, f.process, 42, true, "fixture", 1);
	profile_builder__process_end(f.b, f.process, AT(5), false);
	file = export_json(&firefox_exporter, finish(&f), NULL);
	cut = string(element(get(get(element(get(file, "threads"), 0), "markers"), "data"), 0),
		     "cgroup");
	assert_int_equal(strlen(cut), 1 + 125 * 2 + strlen("…"));
	assert_string_equal(cut + 249, "ä…");
}

TEST(cpu_counters_and_threads_have_equal_cpu_time)
{
	for (unsigned int seed = 0; seed < 5; seed++) {
		_cleanup_fixture_ struct fixture f = {};
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
	}
}
