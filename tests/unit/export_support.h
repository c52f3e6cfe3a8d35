/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of exporters: a finished profile, its output as text, and as parsed JSON. */
#ifndef TESTS_UNIT_EXPORT_SUPPORT_H
#define TESTS_UNIT_EXPORT_SUPPORT_H

#include <math.h>

#include <cjson/cJSON.h>

#include "unit.h"
#include "base/cleanup.h"
#include "formats/out/exporters.h"
#include "golden/profiles.h"

static inline void cleanup_fixture(struct fixture *f)
{
	profile_builder__free(f->b);
}
#define _cleanup_fixture_ _cleanup_(cleanup_fixture)

static inline void cleanup_cjson(cJSON **json)
{
	cJSON_Delete(*json);
}
#define _cleanup_cjson_ _cleanup_(cleanup_cjson)

static inline const struct profile *finish(struct fixture *f)
{
	const struct profile *p = NULL;
	char why[256] = "";

	if (profile_builder__finish(f->b, &p, why, sizeof(why)))
		fail_msg("%s", why);
	return p;
}

static inline const struct profile *build_profile(struct fixture *f, const char *name)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		if (strcmp(named_profiles[i].name, name))
			continue;
		named_profiles[i].build(f);
		return finish(f);
	}
	fail_msg("no profile %s", name);
	return NULL;
}

/* `options`: a request without profile and out, or NULL */
static inline char *export_bytes(const struct exporter *exporter, const struct profile *p,
				 const struct export_request *options, size_t *length)
{
	struct export_request request = options ? *options : (struct export_request){0};
	char *data = NULL;
	size_t size = 0;

	request.profile = p;
	request.out = open_memstream(&data, &size);
	assert_non_null(request.out);
	assert_int_equal(exporter->write(&request), 0);
	assert_int_equal(fclose(request.out), 0);
	*length = size;
	return data;
}

static inline char *export_text(const struct exporter *exporter, const struct profile *p,
				const struct export_request *options)
{
	size_t size;
	char *data = export_bytes(exporter, p, options, &size);

	assert_int_equal(strlen(data), size);
	return data;
}

static inline cJSON *export_json(const struct exporter *exporter, const struct profile *p,
				 const struct export_request *options)
{
	char *data = export_text(exporter, p, options);
	cJSON *json = cJSON_ParseWithOpts(data, NULL, 1);

	assert_non_null(json);
	free(data);
	return json;
}

static inline const cJSON *get(const cJSON *object, const char *key)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!value)
		fail_msg("no \"%s\"", key);
	return value;
}

static inline double number(const cJSON *object, const char *key)
{
	const cJSON *value = get(object, key);

	assert_true(cJSON_IsNumber(value));
	return value->valuedouble;
}

static inline const char *string(const cJSON *object, const char *key)
{
	const cJSON *value = get(object, key);

	assert_true(cJSON_IsString(value));
	return value->valuestring;
}

/* An array as one that can be indexed, cJSON's being lists. The caller frees it. */
static inline const cJSON **elements(const cJSON *array, size_t *count)
{
	const cJSON **list, *element;
	size_t used = 0;

	assert_true(cJSON_IsArray(array));
	*count = (size_t)cJSON_GetArraySize(array);
	list = calloc(*count + 1, sizeof(*list));
	assert_non_null(list);
	cJSON_ArrayForEach (element, array)
		list[used++] = element;
	return list;
}

/* A profile of many threads whose stacks share prefixes, have inline chains and repeat functions. */
static inline const struct profile *build_random(struct fixture *f, unsigned int seed,
						 size_t thread_count, size_t sample_count)
{
	struct location_id locations[64];
	char name[32];

	fixture__init(f, (double)(sample_count + 10) * 2);
	for (unsigned int i = 0; i < 64; i++)
		locations[i] = add_location(f, i % 7 ? f->program : f->kernel, 0x100 + 16 * i);
	for (size_t t = 0; t < thread_count; t++) {
		struct process_id process;
		struct thread_id thread;

		snprintf(name, sizeof(name), "t%zu", t % 10);
		process = add_process(f, (uint32_t)(100 + t / 2), name, 0, 0);
		thread = add_thread(f, process, (uint32_t)(100 + t), t % 3 == 0, name, 0);
		for (size_t s = 0; s < sample_count / thread_count; s++) {
			struct stack_id stack = {0};
			int depth = 1 + rand_r(&seed) % 30;

			for (int d = 0; d < depth; d++)
				stack = profile_builder__stack(
					f->b, stack, locations[(rand_r(&seed) % 3 + d * 2) % 64]);
			add_sample(f, thread, 1 + s + (double)(rand_r(&seed) % 1000) / 2000, stack,
				   (double)(rand_r(&seed) % 1000000) / 1e6, name);
		}
	}
	for (unsigned int i = 0; i < 64; i++) {
		char inner[32], outer[32];

		snprintf(inner, sizeof(inner), "inner%u", i % 5);
		snprintf(outer, sizeof(outer), "outer%u", i % 20);
		if (i % 4)
			NAME(f, locations[i],
			     {outer, "/src/outer.c", 10 + i, 5 + i % 20, 1, 0x1000 + i % 20, 8,
			      NULL});
		else
			NAME(f, locations[i], {inner, "/src/inner.h", 3 + i, 2, 1, 0, 0, NULL},
			     {outer, "/src/outer.c", 10 + i, 5 + i % 20, 1, 0x1000 + i % 20, 8,
			      NULL});
	}
	return finish(f);
}

#define INTERPRETED "/srv/app.py"

/* One sample of a function of Python, "run" in INTERPRETED, that the program has called. */
static inline void interpreted_profile(struct fixture *f)
{
	struct profile_dso file = {.kind = DSO_RUNTIME, .is_interpreted = true};
	struct location_id start, run;
	struct thread_id thread;

	fixture__init(f, 10);
	f->process = add_process(f, 1, "python3", 0, 0);
	thread = add_thread(f, f->process, 1, true, "python3", 0);
	file.path = profile_builder__string(f->b, INTERPRETED);
	file.name = profile_builder__string(f->b, "app.py");
	start = add_location(f, f->program, 0x10);
	run = add_location(f, profile_builder__dso(f->b, &file), 0x20);
	add_sample(f, thread, 1, STACK(f, start, run), 1, "python3");
	NAME(f, start, {.function = "main"});
	NAME(f, run, {.function = "run", INTERPRETED, 3, 2});
}

/* Four samples of one stack, "main" and in the kernel "work": the second in softirq, the third in hardirq. */
static inline void interrupted_profile(struct fixture *f)
{
	static const enum sample_context contexts[] = {CONTEXT_NONE, CONTEXT_SOFTIRQ,
						       CONTEXT_HARDIRQ, CONTEXT_NONE};
	struct location_id start, work;
	struct thread_id thread;

	fixture__init(f, 10);
	f->process = add_process(f, 7, "a", 0, 0);
	thread = add_thread(f, f->process, 7, true, "a", 0);
	start = add_location(f, f->program, 0x10);
	work = add_location(f, f->kernel, 0x20);
	for (unsigned int i = 0; i < 4; i++)
		profile_builder__sample(f->b, thread,
					&(struct profile_sample){
						.time = AT(i + 1),
						.weight = 10 * MS,
						.stack = STACK(f, start, work),
						.comm = text(f, "a"),
						.context = contexts[i],
					});
	NAME(f, start, {.function = "main"});
	NAME(f, work, {.function = "work"});
}

/* Samples of cycles: three of 1,000 in "few", then three of 10,001 in "many". */
static inline void events_profile(struct fixture *f)
{
	struct location_id few, many;
	struct thread_id thread;

	fixture__init(f, 10);
	f->process = add_process(f, 7, "a", 0, 0);
	thread = add_thread(f, f->process, 7, true, "a", 0);
	few = add_location(f, f->program, 0x10);
	many = add_location(f, f->program, 0x20);
	for (unsigned int i = 0; i < 6; i++)
		profile_builder__sample(f->b, thread,
					&(struct profile_sample){
						.time = AT(i + 1),
						.weight = MS,
						.events = i < 3 ? 1000 : 10001,
						.stack = STACK(f, i < 3 ? few : many),
						.comm = text(f, "a"),
					});
	profile_builder__session(f->b)->event = text(f, "cycles");
	profile_builder__session(f->b)->event_unit = text(f, "count");
	NAME(f, few, {.function = "few"});
	NAME(f, many, {.function = "many"});
}

static inline void assert_near(double value, double wanted, double relative)
{
	if (fabs(value - wanted) > relative * fabs(wanted))
		fail_msg("%.12g instead of %.12g", value, wanted);
}

#endif
