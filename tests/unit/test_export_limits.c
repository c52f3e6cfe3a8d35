/* SPDX-License-Identifier: BSD-2-Clause */
/* What exporters leave out of profiles that no program has: docs/FORMATS.md, Bounds. */
#include "export_support.h"

#include "base/utf8.h"
#include "formats/out/report.h"

#define NAME_SIZE 4000
#define DEPTH	  1000

static struct export_left_out left_out;

static const struct export_request *requesting(void)
{
	static struct export_request request;

	left_out = (struct export_left_out){};
	request = (struct export_request){.left_out = &left_out};
	return &request;
}

/* A name of about `size` bytes, not all of them ASCII. */
static const char *long_name(unsigned int number, size_t size)
{
	static char name[8192];
	size_t used = (size_t)snprintf(name, sizeof(name), "%u", number);

	while (used + 2 <= size) {
		if (used % 50 == 0) {
			memcpy(name + used, "ä", 2);
			used += 2;
		} else {
			name[used++] = 'n';
		}
	}
	name[used] = '\0';
	return name;
}

/* A location with a chain of `count` functions with such names. */
static struct location_id named(struct fixture *f, uint64_t address, size_t count, size_t size)
{
	struct location_id id = add_location(f, f->program, address);
	struct profile_line lines[64] = {};

	for (size_t i = 0; i < count; i++) {
		struct profile_function function = {
			.dso = f->program,
			.name = text(f, long_name((unsigned int)(address * 100 + i), size)),
			.address = PROFILE_UNKNOWN_ADDRESS,
		};

		lines[i].function = profile_builder__function(f->b, &function);
	}
	profile_builder__resolve(f->b, id, address, lines, count);
	return id;
}

static struct thread_id one_thread(struct fixture *f)
{
	return add_thread(f, add_process(f, 100, "p", 0, 0), 100, true, "t", 0);
}

/* `samples` of them, each DEPTH times the location. */
static const struct profile *build_deep(struct fixture *f, int samples, size_t chain, size_t size)
{
	struct location_id location;
	struct stack_id stack = {};
	struct thread_id thread;

	fixture__init(f, 100);
	thread = one_thread(f);
	location = named(f, 16, chain, size);
	for (int i = 0; i < DEPTH; i++)
		stack = profile_builder__stack(f->b, stack, location);
	for (int i = 0; i < samples; i++)
		add_cut_sample(f, thread, 1 + i, stack, 1, "t", STACK_END_ROOT);
	return finish(f);
}

static void assert_utf8(const char *bytes)
{
	for (size_t left = strlen(bytes); left;) {
		size_t size = utf8_sequence(bytes, left);

		assert_true(size > 0);
		bytes += size;
		left -= size;
	}
}

/* 4,000 bytes a thousand times are 4 MB, and less than 4 MiB and a KiB each: nothing is cut. */
TEST(names_that_fit_are_whole)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_deep(&f, 1, 1, NAME_SIZE);
	size_t size;

	for (const struct exporter *const *e = exporters(); *e; e++)
		free(export_bytes(*e, p, requesting(), &size));
	free(export_bytes(&folded_exporter, p, requesting(), &size));
	assert_true(size > DEPTH * NAME_SIZE);
	assert_int_equal(left_out.names, 0);
}

TEST(folded_names_are_cut)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_deep(&f, 1, 3, NAME_SIZE);
	_cleanup_free_ char *out = export_text(&folded_exporter, p, requesting());

	assert_int_equal(left_out.names, 3);
	assert_int_equal(left_out.name_size, 1024);
	assert_true(strlen(out) < 4 * 1024 * 1024 + 1024 * DEPTH);
	assert_true(strlen(out) > 3 * 1000 * DEPTH);
	assert_non_null(strstr(out, "…;"));
	assert_utf8(out);
}

/* Chains in a hundred frames of forty samples: as short as names get. */
TEST(folded_names_are_cut_as_short_as_is_needed)
{
	_cleanup_fixture_ struct fixture f;
	struct location_id location;
	struct stack_id stack = {};
	struct thread_id thread;
	const struct profile *p;
	_cleanup_free_ char *out;

	fixture__init(&f, 100000);
	thread = one_thread(&f);
	location = named(&f, 16, 64, 900);
	for (unsigned int i = 0; i < DEPTH; i++)
		stack = profile_builder__stack(
			f.b, stack, i < 100 ? location : named(&f, 1000 + 16 * i, 1, 20));
	for (unsigned int i = 0; i < 40; i++)
		add_cut_sample(
			&f, thread, 1 + i,
			profile_builder__stack(f.b, stack, named(&f, 100000 + 16 * i, 1, 20)), 1,
			"t", STACK_END_ROOT);
	p = finish(&f);
	assert_int_equal(p->inlined_left_out, 0);
	out = export_text(&folded_exporter, p, requesting());
	assert_int_equal(left_out.name_size, 64);
	assert_int_equal(left_out.names, 64);
}

TEST(names_of_trees_are_cut)
{
	static const struct exporter *const trees[] = {&cpuprofile_exporter, &trace_exporter};
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_deep(&f, 1, 3, NAME_SIZE);

	for (size_t i = 0; i < 2; i++) {
		cJSON *json = export_json(trees[i], p, requesting());

		assert_non_null(json);
		assert_int_equal(left_out.name_size, 1024);
		assert_int_equal(left_out.names, 3);
		cJSON_Delete(json);
	}
}

static size_t report_size(const struct profile *p, bool callers, bool json)
{
	const struct report_options options = {.shape = callers ? REPORT_CALLERS : REPORT_TREE,
					       .json = json};
	struct export_request request = *requesting();
	char *data = NULL;
	size_t size;

	request.profile = p;
	request.out = open_memstream(&data, &size);
	assert_int_equal(report_write(&request, &options), 0);
	fclose(request.out);
	assert_utf8(data);
	free(data);
	return size;
}

TEST(names_of_reports_are_cut)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_deep(&f, 1, 3, NAME_SIZE);

	for (int i = 0; i < 4; i++) {
		assert_true(report_size(p, i & 1, i & 2) < 8 << 20);
		assert_int_equal(left_out.name_size, 1024);
		assert_int_equal(left_out.names, 3);
	}
}

/* A gap of 10 million periods: the hits are all of them. */
TEST(idle_samples_stand_for_several_periods)
{
	const uint64_t periods = 10000000;
	_cleanup_fixture_ struct fixture f;
	struct location_id location;
	const struct profile *p;
	struct thread_id thread;
	const cJSON *node;
	double hits = 0;
	_cleanup_cjson_ cJSON *json;
	size_t count;

	fixture__init(&f, 100);
	profile_builder__session(f.b)->end = START + (periods + 100) * MS;
	thread = one_thread(&f);
	location = named(&f, 16, 1, 10);
	add_cut_sample(&f, thread, 1, STACK(&f, location), 1, "t", STACK_END_ROOT);
	add_cut_sample(&f, thread, 2 + (double)periods, STACK(&f, location), 1, "t",
		       STACK_END_ROOT);
	p = finish(&f);
	json = export_json(&cpuprofile_exporter, p, requesting());
	assert_int_equal(left_out.idle_ticks, 10);
	assert_int_equal(number(get(json, "$sysprof"), "periodsPerIdleSample"), 10);
	count = (size_t)cJSON_GetArraySize(get(json, "samples"));
	assert_true(count > periods / 10 && count < (1 << 20) + 10);
	cJSON_ArrayForEach (node, get(json, "nodes")) {
		if (!strcmp(string(get(node, "callFrame"), "functionName"), "(idle)"))
			hits += number(node, "hitCount");
	}
	assert_true(hits >= periods && hits <= periods + 100);
}

TEST(many_names_of_one_stack)
{
	enum { NAMES = 20000 };
	_cleanup_fixture_ struct fixture f;
	const struct profile *p;
	struct stack_id stack;
	struct thread_id thread;
	size_t size;
	char comm[32];

	fixture__init(&f, 2 * NAMES + 10);
	thread = one_thread(&f);
	stack = STACK(&f, named(&f, 16, 1, 10));
	for (int i = 0; i < 2 * NAMES; i++) {
		snprintf(comm, sizeof(comm), "n%d", i % NAMES);
		add_cut_sample(&f, thread, 1 + i, stack, 1, comm, STACK_END_ROOT);
	}
	p = finish(&f);
	free(export_bytes(&pprof_exporter, p, requesting(), &size));
	assert_true(size > 0);
}
