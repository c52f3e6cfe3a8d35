/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of windows: sums, limits, names, times, and that the same window gives the same bytes. */
#include "base/cleanup.h"
#include "agent_support.h"

#define TWO_MIB (2u << 20)

/* Of the running test: a window, what it was sealed as last, and the first request of that, unpacked. */
static struct fixture f;
static struct made_window m;
static struct sealed_window sealed;
static uint8_t *plain;
static size_t size;

static void forget_window(void)
{
	free(plain);
	sealed_window__fini(&sealed);
	made_window__fini(&m);
	profile_builder__free(f.b);
	plain = NULL;
	sealed = (struct sealed_window){};
	m = (struct made_window){};
	f = (struct fixture){};
}

static void seal_as(const char *format, bool name_all)
{
	sealed_window__fini(&sealed);
	sealed = seal(format, &m.window, name_all);
}

static void unzip_request(void)
{
	free(plain);
	plain = unzip(sealed.requests[0].body, sealed.requests[0].size, &size);
}

struct totals {
	uint64_t samples, cpu, rows;
	size_t series, requests, parts_of_first;
	uint64_t times[4096]; /* of the series of service 0 */
};

static void wanted_totals(const struct profile *p, uint64_t *ticks, uint64_t *cpu)
{
	*ticks = p->sample_count;
	*cpu = 0;
	for (size_t i = 1; i < p->thread_count; i++)
		*cpu += profile_thread__cpu(&p->threads[i]);
}

/* A series of a PushRequest: {labels, samples{raw_profile}}. */
static void add_push_series(struct totals *t, const struct wire *series)
{
	struct wire sample, raw;
	struct pprof_sums sums;
	char why[128];

	assert_true(find_field(series->bytes, series->size, 2, &sample));
	assert_true(find_field(sample.bytes, sample.size, 1, &raw));
	if (!validate_pprof(raw.bytes, raw.size, &sums, why, sizeof(why)))
		fail_msg("%s", why);
	t->samples += sums.values[0];
	t->cpu += sums.values[1];
	t->rows += sums.samples;
	t->series++;
	if (contains(series->bytes, series->size - sample.size, "service-0"))
		t->times[t->parts_of_first++] = sums.time_ns;
}

static void add_push(struct totals *t, const struct sink_request *request)
{
	size_t size;
	_cleanup_free_ uint8_t *plain = unzip(request->body, request->size, &size);
	struct wire series = fields(plain, size);
	size_t before = t->series;

	assert_string_equal(request->path, "/push.v1.PusherService/Push");
	assert_string_equal(request->content_type, "application/proto");
	assert_string_equal(request->content_encoding, "gzip");
	assert_true(size <= TWO_MIB);
	while (wire_next(&series) > 0)
		add_push_series(t, &series);
	assert_int_equal(t->series - before, request->series);
	assert_true(request->series <= 500);
	t->requests++;
}

static struct totals totals_of_push(const struct sealed_window *sealed)
{
	static struct totals t;
	uint64_t samples = 0, cpu = 0;

	t = (struct totals){};
	for (size_t i = 0; i < sealed->request_count; i++) {
		add_push(&t, &sealed->requests[i]);
		samples += sealed->requests[i].samples;
		cpu += sealed->requests[i].cpu_ns;
	}
	assert_int_equal(samples, t.samples);
	assert_int_equal(cpu, t.cpu);
	return t;
}

static void check_sums(const struct profile *p, size_t services)
{
	_cleanup_made_ struct made_window m;
	struct sealed_window sealed;
	struct totals t;
	uint64_t ticks, cpu;

	made_window__init(&m, p, services);
	wanted_totals(p, &ticks, &cpu);
	for (int name_all = 0; name_all < 2; name_all++) {
		sealed = seal("pyroscope", &m.window, name_all);
		t = totals_of_push(&sealed);
		assert_int_equal(t.samples, ticks);
		assert_int_equal(t.cpu, cpu);
		assert_int_equal(sealed.series_invalid, 0);
		sealed_window__fini(&sealed);
		sealed = seal("parca", &m.window, name_all);
		cpu = 0;
		for (size_t i = 0; i < sealed.request_count; i++)
			cpu += sealed.requests[i].cpu_ns;
		assert_int_equal(cpu, t.cpu);
		assert_int_equal(sealed.series_invalid, 0);
		sealed_window__fini(&sealed);
		sealed = seal("otlp", &m.window, name_all);
		ticks = 0;
		for (size_t i = 0; i < sealed.request_count; i++)
			ticks += sealed.requests[i].samples;
		assert_int_equal(ticks, t.samples);
		sealed_window__fini(&sealed);
	}
}

/* All ticks and all CPU time, [not sampled] and last moments included, however bad the names are. */
TEST(requests_add_up_to_the_profile)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		const struct profile *p = build_profile(&f, named_profiles[i].name);

		check_sums(p, 1);
		check_sums(p, 3);
		profile_builder__free(f.b);
	}
	check_sums(build_random(&f, 3, 40, 4000), 7);
}

TEST(one_window_gives_the_same_bytes_twice)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp", "dir"};

	made_window__init(&m, build_random(&f, 5, 12, 900), 4);
	for (size_t i = 0; i < 4; i++) {
		struct sealed_window a = seal(formats[i], &m.window, true);
		struct sealed_window b = seal(formats[i], &m.window, true);

		assert_int_equal(a.request_count, b.request_count);
		assert_int_not_equal(a.request_count, 0);
		for (size_t j = 0; j < a.request_count; j++) {
			assert_int_equal(a.requests[j].size, b.requests[j].size);
			assert_memory_equal(a.requests[j].body, b.requests[j].body,
					    a.requests[j].size);
		}
		sealed_window__fini(&a);
		sealed_window__fini(&b);
	}
}

TEST(an_empty_window_is_not_pushed)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};

	made_window__init(&m, build_profile(&f, "empty"), 1);
	for (size_t i = 0; i < 3; i++) {
		struct sealed_window sealed = seal(formats[i], &m.window, true);

		assert_int_equal(sealed.request_count, 0);
		sealed_window__fini(&sealed);
	}
}

/* ---- splitting ------------------------------------------------------------------------------- */

/* One process with so many stacks, all different, of functions with names of so many bytes. */
static const struct profile *build_many_stacks(struct fixture *f, size_t stacks, size_t name_size)
{
	struct location_id main_;
	struct thread_id thread;
	unsigned int seed = 1;
	char *name = malloc(name_size + 1);

	assert_non_null(name);
	fixture__init(f, (double)stacks + 10);
	f->process = add_process(f, 9, "big", 0, 0);
	thread = add_thread(f, f->process, 9, true, "big", 0);
	main_ = add_location(f, f->program, 0x10);
	for (size_t i = 0; i < stacks; i++)
		add_sample(f, thread, 1 + (double)i,
			   STACK(f, main_, add_location(f, f->program, 0x1000 + 16 * i)), 0.5,
			   "big");
	NAME(f, main_, {.function = "main"});
	for (size_t i = 0; i < stacks; i++) {
		for (size_t j = 0; j < name_size; j++) /* that cannot be compressed much */
			name[j] = (char)('0' + rand_r(&seed) % 64);
		name[name_size] = '\0';
		NAME(f, add_location(f, f->program, 0x1000 + 16 * i), {.function = name});
	}
	free(name);
	return finish(f);
}

static void check_times(const struct totals *t)
{
	assert_int_equal(t->times[0], WINDOW_START);
	for (size_t i = 1; i < t->parts_of_first; i++)
		assert_int_equal(t->times[i], t->times[i - 1] + 1000000);
}

/* 20,000 samples are more than Pyroscope takes in a profile; 12,000 long names are more than it takes at once. */
static void check_split(size_t stacks, size_t name_size, size_t parts, size_t requests)
{
	_cleanup_made_ struct made_window m;
	_cleanup_fixture_ struct fixture f;
	_cleanup_sealed_ struct sealed_window sealed;
	struct totals t;
	uint64_t ticks = 0;

	made_window__init(&m, build_many_stacks(&f, stacks, name_size), 1);
	sealed = seal("pyroscope", &m.window, true);
	t = totals_of_push(&sealed);
	assert_int_equal(t.samples, stacks);
	assert_int_equal(t.rows, stacks);
	assert_true(t.series >= parts);
	assert_int_equal(t.parts_of_first, t.series);
	assert_true(t.requests >= requests);
	check_times(&t);
	sealed_window__fini(&sealed);

	sealed = seal("parca", &m.window, true);
	assert_true(sealed.request_count >= requests);
	for (size_t i = 0; i < sealed.request_count; i++)
		assert_true(sealed.requests[i].size <= 1000000);
	sealed_window__fini(&sealed);

	sealed = seal("otlp", &m.window, true);
	for (size_t i = 0; i < sealed.request_count; i++)
		ticks += sealed.requests[i].samples;
	assert_int_equal(ticks, stacks);
}

TEST(a_profile_with_too_many_samples_is_split)
{
	check_split(20000, 12, 2, 1);
}

TEST(a_window_with_too_many_bytes_takes_several_requests)
{
	check_split(12000, 600, 5, 4);
}

/* A stack that is too deep keeps its leaf; of one that is too big alone something stays. */
static void check_deep(size_t depth, size_t name_size, uint64_t wanted_depth)
{
	_cleanup_made_ struct made_window m;
	_cleanup_fixture_ struct fixture f;
	_cleanup_sealed_ struct sealed_window sealed;
	struct thread_id thread;
	struct stack_id stack = {0};
	char name[4096];
	size_t size;
	uint8_t *plain;

	fixture__init(&f, 100);
	f.process = add_process(&f, 9, "deep", 0, 0);
	thread = add_thread(&f, f.process, 9, true, "deep", 0);
	for (size_t i = 0; i < depth; i++)
		stack = profile_builder__stack(f.b, stack,
					       add_location(&f, f.program, 0x1000 + 16 * i));
	add_sample(&f, thread, 1, stack, 1, "deep");
	for (size_t i = 0; i < depth; i++) {
		memset(name, 'n', sizeof(name));
		name[name_size] = '\0';
		snprintf(name, sizeof(name), "%s%zu", i + 1 == depth ? "the_leaf" : "f", i);
		if (strlen(name) < name_size) /* it goes on behind its number */
			name[strlen(name)] = '_';
		NAME(&f, add_location(&f, f.program, 0x1000 + 16 * i), {.function = name});
	}
	made_window__init(&m, finish(&f), 1);
	sealed = seal("pyroscope", &m.window, true);
	assert_int_equal(sealed.series_invalid, 0);
	assert_int_equal(totals_of_push(&sealed).cpu, MS);
	plain = unzip(sealed.requests[0].body, sealed.requests[0].size, &size);
	assert_true(contains(plain, size, "the_leaf"));
	assert_true(contains(plain, size, "[truncated]") == (wanted_depth < depth));
	free(plain);
	sealed_window__fini(&sealed);
	sealed = seal("otlp", &m.window, true);
	plain = unzip(sealed.requests[0].body, sealed.requests[0].size, &size);
	assert_true(contains(plain, size, "the_leaf"));
	free(plain);
}

TEST(a_stack_that_is_too_deep_keeps_its_leaf)
{
	check_deep(1000, 8, 1000);
	check_deep(1001, 8, 1000);
	check_deep(5000, 8, 1000);
	check_deep(1000, 4000, 500);
}

/* ---- services -------------------------------------------------------------------------------- */

TEST(many_services_share_one_request)
{
	struct totals t;

	made_window__init(&m, build_random(&f, 9, 200, 2000), 50);
	seal_as("pyroscope", true);
	assert_int_equal(sealed.request_count, 1);
	t = totals_of_push(&sealed);
	assert_int_equal(t.series, 50);
}

/* The profile of series number `number` of a request. */
static uint8_t *profile_of_series(const struct sink_request *request, size_t number, size_t *size)
{
	size_t plain_size;
	uint8_t *plain = unzip(request->body, request->size, &plain_size), *copy;
	struct wire series = fields(plain, plain_size), sample, raw;

	for (size_t i = 0; i <= number; i++)
		assert_int_equal(wire_next(&series), 1);
	assert_true(find_field(series.bytes, series.size, 2, &sample));
	assert_true(find_field(sample.bytes, sample.size, 1, &raw));
	copy = malloc(raw.size);
	assert_non_null(copy);
	memcpy(copy, raw.bytes, raw.size);
	*size = raw.size;
	free(plain);
	return copy;
}

TEST(profiles_of_services_do_not_depend_on_others)
{
	struct made_window m, alone;
	const struct profile *p = build_random(&f, 9, 40, 800);
	struct sealed_window all, one;

	made_window__init(&m, p, 5);
	all = seal("pyroscope", &m.window, true);
	for (size_t i = 0; i < 5; i++) {
		_cleanup_free_ uint8_t *wanted = NULL, *got = NULL;
		size_t wanted_size, size;

		made_window__init(&alone, p, 5);
		alone.window.services = &alone.services[i];
		alone.window.service_count = 1;
		for (size_t j = 1; j < p->process_count; j++)
			alone.service_of_process[j] = m.service_of_process[j] == i ? 0 : 9;
		one = seal("pyroscope", &alone.window, true);
		wanted = profile_of_series(&one.requests[0], 0, &wanted_size);
		got = profile_of_series(&all.requests[0], i, &size);
		assert_int_equal(size, wanted_size);
		assert_memory_equal(got, wanted, size);
		sealed_window__fini(&one);
		made_window__fini(&alone);
	}
	sealed_window__fini(&all);
	made_window__fini(&m);
}

TEST(addresses_of_one_line_are_one_frame)
{
	struct thread_id thread;
	struct location_id first, second, other;
	struct totals t;

	fixture__init(&f, 100);
	f.process = add_process(&f, 9, "lines", 0, 0);
	thread = add_thread(&f, f.process, 9, true, "lines", 0);
	first = add_location(&f, f.program, 0x10);
	second = add_location(&f, f.program, 0x20);
	other = add_location(&f, f.program, 0x30);
	add_sample(&f, thread, 1, STACK(&f, first, other), 1, "lines");
	add_sample(&f, thread, 2, STACK(&f, second, other), 1, "lines");
	add_sample(&f, thread, 3, STACK(&f, second), 1, "lines");
	add_sample(&f, thread, 4, STACK(&f, first), 1, "lines");
	add_sample(&f, thread, 5, STACK(&f, other), 1, "lines");
	NAME(&f, first, {"work", "work.c", 10, 5, 1, 0, 0, NULL});
	NAME(&f, second, {"work", "work.c", 10, 5, 1, 0, 0, NULL});
	NAME(&f, other, {"work", "work.c", 11, 5, 1, 0, 0, NULL});
	made_window__init(&m, finish(&f), 1);
	seal_as("pyroscope", true);
	t = totals_of_push(&sealed);
	assert_int_equal(t.rows, 3); /* line 10 calling line 11, line 10, line 11 */
	assert_int_equal(t.samples, 5);
}

/* A varint field of a message; 0: it has none. */
static uint64_t number_in(const struct wire *message, uint32_t field)
{
	struct wire found;

	return find_field(message->bytes, message->size, field, &found) ? found.value : 0;
}

/* Rows of one file stand together, and so do the names of functions: that is what makes the request small. */
TEST(rows_of_one_file_and_function_names_stand_together)
{
	uint64_t last_mapping = 0, names = 0, last_name = 0, first_file = UINT64_MAX;
	struct wire row;
	_cleanup_free_ uint8_t *profile = NULL;
	size_t size;

	made_window__init(&m, build_random(&f, 5, 12, 900), 1);
	seal_as("pyroscope", true);
	profile = profile_of_series(&sealed.requests[0], 0, &size);
	row = fields(profile, size);
	while (wire_next(&row) > 0) {
		if (row.number == 4) {
			uint64_t mapping = number_in(&row, 2);

			assert_in_range(mapping, last_mapping, last_mapping + 1);
			last_mapping = mapping;
		} else if (row.number == 5) {
			uint64_t name = number_in(&row, 2), file = number_in(&row, 4);

			assert_true(name <= last_name + 1 || !last_name);
			last_name = name > last_name ? name : last_name;
			first_file = file && file < first_file ? file : first_file;
			names++;
		}
	}
	assert_int_equal(last_mapping, 2); /* the program's and the kernel's */
	assert_true(names > 20);
	assert_true(last_name < first_file);
}

/* Of the same labels and the same time one of two would be dropped. */
TEST(services_with_the_same_labels_have_different_times)
{
	struct totals t;

	made_window__init(&m, build_random(&f, 9, 20, 200), 4);
	for (size_t i = 1; i < 4; i++)
		m.labels[i][1].value = "service-0";
	seal_as("pyroscope", true);
	t = totals_of_push(&sealed);
	assert_int_equal(t.parts_of_first, 4);
	check_times(&t);
}

/* One bad label makes backends refuse what they refuse of a request: it is left out, the rest goes. */
TEST(only_services_with_a_bad_label_are_left_out)
{
	static const struct service_label bad[] = {{"a-b", "x"},       {"", "x"},
						   {"__delta__", "x"}, {"name", ""},
						   {"name", "\xff"},   {"service_name", "twice"}};
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};
	struct made_window m;
	const struct profile *p = build_random(&f, 9, 20, 200);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		made_window__init(&m, p, 3);
		m.labels[1][2] = bad[i];
		m.services[1].label_count = 3;
		for (size_t j = 0; j < 3; j++) {
			struct sealed_window sealed = seal(formats[j], &m.window, true);

			assert_int_equal(sealed.request_count, 1);
			assert_int_equal(sealed.requests[0].series, 2);
			assert_int_equal(sealed.series_invalid, 1);
			assert_int_equal(sealed.samples_invalid + sealed.requests[0].samples,
					 p->sample_count);
			sealed_window__fini(&sealed);
		}
		made_window__fini(&m);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A file with a build id of which one frame has a name and another has none. */
static const struct profile *build_half_named(struct fixture *f)
{
	struct thread_id thread;
	struct location_id named, unnamed;

	fixture__init(f, 100);
	f->process = add_process(f, 9, "half", 0, 0);
	thread = add_thread(f, f->process, 9, true, "half", 0);
	named = add_location(f, f->program, 0x10);
	unnamed = add_location(f, f->program, 0x1234);
	add_sample(f, thread, 1, STACK(f, named, unnamed), 1, "half");
	add_sample(f, thread, 2, STACK(f, unnamed), 1, "half");
	NAME(f, named, {.function = "main"});
	profile_builder__resolve(f->b, unnamed, 0x401234, NULL, 0);
	return finish(f);
}

TEST(unnamed_frames_get_synthetic_names_only_on_request)
{
	made_window__init(&m, build_half_named(&f), 1);
	seal_as("pyroscope", true);
	assert_int_equal(totals_of_push(&sealed).cpu, 2 * MS);
	unzip_request();
	assert_true(contains(plain, size, "fixture+0x401234"));
	/* the validator wants each mapping named or not, and finds two of the file */
	seal_as("pyroscope", false);
	assert_int_equal(totals_of_push(&sealed).cpu, 2 * MS);
	unzip_request();
	assert_false(contains(plain, size, "+0x"));
	assert_true(contains(plain, size, "main"));
}

/* ---- the other formats ----------------------------------------------------------------------- */

TEST(a_parca_request_is_json_with_gzipped_profiles)
{
	const cJSON *series, *labels;
	_cleanup_cjson_ cJSON *json;

	made_window__init(&m, build_profile(&f, "processes"), 2);
	seal_as("parca", true);
	assert_int_equal(sealed.request_count, 1);
	assert_string_equal(sealed.requests[0].path, "/api/profiles/writeraw");
	assert_string_equal(sealed.requests[0].content_encoding, "");
	json = cJSON_ParseWithLength(sealed.requests[0].body, sealed.requests[0].size);
	assert_non_null(json);
	assert_true(cJSON_IsTrue(get(json, "normalized")));
	series = get(json, "series");
	assert_int_equal(cJSON_GetArraySize(series), 2);
	labels = get(get(cJSON_GetArrayItem(series, 0), "labels"), "labels");
	assert_int_equal(cJSON_GetArraySize(labels), 4);
	assert_string_equal(string(cJSON_GetArrayItem(labels, 0), "value"), "process_cpu");
	assert_string_equal(string(cJSON_GetArrayItem(labels, 3), "name"), "node");
	assert_string_equal(string(cJSON_GetArrayItem(labels, 3), "value"), "host-1");
	/* gzip, in base64 */
	assert_memory_equal(
		string(cJSON_GetArrayItem(get(cJSON_GetArrayItem(series, 0), "samples"), 0),
		       "rawProfile"),
		"H4sI", 4);
}

/* Element 0 of each table is there and is the zero value; an empty link, or Parca refuses it. */
TEST(otlp_tables_begin_with_the_zero_value)
{
	struct wire dictionary, row;

	made_window__init(&m, build_profile(&f, "recursion"), 1);
	seal_as("otlp", true);
	assert_int_equal(sealed.request_count, 1);
	assert_string_equal(sealed.requests[0].path, "/v1development/profiles");
	assert_string_equal(sealed.requests[0].content_type, "application/x-protobuf");
	assert_int_equal(sealed.requests[0].cpu_ns, 9 * MS);
	unzip_request();
	assert_int_equal(count_fields(plain, size, 1), 1);
	assert_true(find_field(plain, size, 2, &dictionary));
	for (uint32_t table = 1; table <= 7; table++) {
		assert_true(find_field(dictionary.bytes, dictionary.size, table, &row));
		assert_int_equal(row.size, 0);
	}
	assert_int_equal(count_fields(dictionary.bytes, dictionary.size, 4), 1);
	assert_true(contains(plain, size, "service.name"));
	assert_true(contains(plain, size, "host.name"));
	assert_true(contains(plain, size, "process.executable.build_id.gnu"));
}

/*
 * Samples in softirq and hardirq are rows of their own, with an attribute, and with a label in files. In pprof that is pushed no
 * sample has a label, because backends make a series of each.
 */
TEST(otlp_and_files_give_the_interrupt_context_of_samples)
{
	struct wire dictionary, resource, scope, profile, sample;
	unsigned int samples = 0, with = 0;

	interrupted_profile(&f);
	made_window__init(&m, finish(&f), 1);
	seal_as("otlp", true);
	unzip_request();
	assert_true(find_field(plain, size, 2, &dictionary));
	/* none, two contexts and the program's build-id */
	assert_int_equal(count_fields(dictionary.bytes, dictionary.size, 6), 4);
	assert_true(contains(dictionary.bytes, dictionary.size, "context"));
	assert_true(contains(dictionary.bytes, dictionary.size, "softirq"));
	assert_true(contains(dictionary.bytes, dictionary.size, "hardirq"));
	assert_true(find_field(plain, size, 1, &resource));
	assert_true(find_field(resource.bytes, resource.size, 2, &scope));
	assert_true(find_field(scope.bytes, scope.size, 2, &profile));
	profile = fields(profile.bytes, profile.size);
	while (wire_next(&profile) > 0) {
		if (profile.number != 2)
			continue;
		samples++;
		with += find_field(profile.bytes, profile.size, 2, &sample);
	}
	assert_int_equal(samples, 3);
	assert_int_equal(with, 2);
	seal_as("dir", true);
	unzip_request();
	assert_true(contains(plain, size, "context") && contains(plain, size, "hardirq"));
	seal_as("pyroscope", true);
	assert_int_equal(sealed.series_invalid, 0);
	assert_int_equal(totals_of_push(&sealed).samples, 4);
}

TEST(names_of_files_are_made_of_times_alone)
{
	_cleanup_cjson_ cJSON *json;

	made_window__init(&m, build_profile(&f, "processes"), 2);
	m.labels[0][1].value = "../../etc/passwd";
	seal_as("dir", true);
	assert_int_equal(sealed.request_count, 2);
	assert_string_equal(sealed.requests[0].path, "20231114T221320.123456789Z.pb.gz");
	assert_string_equal(sealed.requests[1].path, "20231114T221320.123456789Z.json");
	unzip_request();
	assert_true(contains(plain, size, "../../etc/passwd"));
	json = cJSON_ParseWithLength(sealed.requests[1].body, sealed.requests[1].size);
	assert_non_null(json);
	assert_string_equal(string(json, "file"), sealed.requests[0].path);
	assert_int_equal(number(json, "samples"), sealed.requests[0].samples);
	assert_int_equal(cJSON_GetArraySize(get(json, "services")), 2);
	assert_int_equal(((char *)sealed.requests[1].body)[sealed.requests[1].size - 1], '\n');
	assert_ptr_equal(memchr(sealed.requests[1].body, '\n', sealed.requests[1].size),
			 (char *)sealed.requests[1].body + sealed.requests[1].size - 1);
}

TEST(sink_formats_are_found_by_their_names)
{
	size_t count = 0;

	for (const struct sink_format *const *f = sink_formats(); *f; f++, count++)
		assert_ptr_equal(sink_format__find((*f)->name), *f);
	assert_int_equal(count, 4);
	assert_null(sink_format__find("pyro"));
	assert_null(sink_format__find("dir")->judge_200);
	assert_string_equal(sink_verdict_text(SINK_TOO_OLD), "too_old");
}

EACH_TEST_WITH(NULL, forget_window);
