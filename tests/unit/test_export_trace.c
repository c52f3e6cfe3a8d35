/* SPDX-License-Identifier: BSD-2-Clause */
/* Chrome traces: what goldens are too small for, chunks and numbers, and profiles without times. */
#include "export_support.h"

#define CHUNK_SAMPLES 50000

static bool is_named(const cJSON *event, const char *name)
{
	return !strcmp(string(event, "name"), name);
}

static const cJSON *first_event(const cJSON *file, const char *phase)
{
	const cJSON *event;

	cJSON_ArrayForEach (event, get(file, "traceEvents"))
		if (!strcmp(string(event, "ph"), phase))
			return event;
	fail_msg("no event of phase %s", phase);
	return NULL;
}

/* One thread of many samples: chunks of 50,000, ids and times that go on from one to the next. */
TEST(ids_and_times_continue_from_chunk_to_chunk)
{
	const size_t wanted[] = {CHUNK_SAMPLES, CHUNK_SAMPLES, 20000};
	struct thread_id thread;
	struct location_id places[3];
	double time = 0, next_id = 1;
	size_t chunks = 0;
	struct fixture f;
	const cJSON *event;
	cJSON *file;

	fixture__init(&f, 130000);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	for (unsigned int i = 0; i < 3; i++) {
		places[i] = add_location(&f, f.program, 0x10 + 16 * i);
		NAME(&f, places[i], {.function = i == 2 ? "late" : i ? "one" : "other"});
	}
	for (unsigned int i = 1; i <= 120000; i++)
		add_sample(&f, thread, i, STACK(&f, places[i > 110000 ? 2 : i % 2]), 1, "a");
	profile_builder__thread_end(f.b, thread, AT(120000));
	file = export_json(&trace_exporter, finish(&f), NULL);
	cJSON_ArrayForEach (event, get(file, "traceEvents")) {
		const cJSON *data, *value, *chunk;

		if (is_named(event, "Profile"))
			time = number(event, "ts");
		if (!is_named(event, "ProfileChunk"))
			continue;
		data = get(get(event, "args"), "data");
		chunk = get(data, "cpuProfile");
		assert_int_equal(cJSON_GetArraySize(get(chunk, "samples")), wanted[chunks]);
		assert_int_equal(cJSON_GetArraySize(get(data, "timeDeltas")), wanted[chunks]);
		assert_int_equal(cJSON_GetArraySize(get(data, "lines")), wanted[chunks]);
		/* the root and two functions; nothing; one more function */
		assert_int_equal(cJSON_GetArraySize(get(chunk, "nodes")),
				 chunks == 0 ? 3 : chunks - 1);
		cJSON_ArrayForEach (value, get(chunk, "nodes"))
			assert_true(number(value, "id") == next_id++);
		assert_true(number(event, "ts") ==
			    time + cJSON_GetArrayItem(get(data, "timeDeltas"), 0)->valuedouble);
		cJSON_ArrayForEach (value, get(data, "timeDeltas"))
			time += value->valuedouble;
		chunks++;
	}
	assert_int_equal(chunks, 3);
	assert_true(time == (double)(AT(120000) / 1000));
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* Rows of a profile without times are as long as their ticks, one behind the other. */
TEST(rows_without_times_last_as_long_as_their_ticks)
{
	const uint64_t ticks[] = {5, 1, 3};
	struct fixture f;
	struct location_id place;
	struct thread_id thread;
	const cJSON *event, *span;
	cJSON *file;

	fixture__init(&f, 1);
	profile_builder__session(f.b)->untimed = true;
	profile_builder__session(f.b)->period = 0;
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	place = add_location(&f, f.program, 0x10);
	for (unsigned int i = 0; i < 3; i++)
		profile_builder__sample(f.b, thread,
					&(struct profile_sample){
						.time = START + 1 + i,
						.weight = 7,
						.ticks = ticks[i],
						.stack = STACK(&f, place),
						.comm = text(&f, "a"),
					});
	NAME(&f, place, {.function = "work"});
	file = export_json(&trace_exporter, finish(&f), NULL);
	span = first_event(file, "X");
	assert_true(number(span, "dur") == 9000);
	assert_true(number(get(span, "args"), "samples") == 9);
	cJSON_ArrayForEach (event, get(file, "traceEvents"))
		if (is_named(event, "ProfileChunk")) {
			const cJSON *deltas = get(get(get(event, "args"), "data"), "timeDeltas");

			assert_true(cJSON_GetArrayItem(deltas, 0)->valuedouble == 0);
			assert_true(cJSON_GetArrayItem(deltas, 1)->valuedouble == 5000);
			assert_true(cJSON_GetArrayItem(deltas, 2)->valuedouble == 1000);
		}
	cJSON_Delete(file);
	profile_builder__free(f.b);
}

/* A thread may be called as events of Chrome's are, and a pid of an imported profile may be any number. */
TEST(reused_pids_and_chrome_event_names_are_made_unique)
{
	struct fixture f;
	struct location_id place;
	const cJSON *event;
	size_t spans = 0;
	cJSON *file;

	fixture__init(&f, 10);
	place = add_location(&f, f.program, 0x10);
	for (unsigned int life = 0; life < 2; life++) {
		struct process_id process = add_process(&f, UINT32_MAX, "CpuProfile", 4 * life,
							4 * life + 3);
		struct thread_id thread = add_thread(&f, process, UINT32_MAX, true, "RunTask",
						     4 * life);

		add_sample(&f, thread, 4 * life + 1, STACK(&f, place), 1, "RunTask");
		profile_builder__thread_end(f.b, thread, AT(4 * life + 3));
	}
	NAME(&f, place, {.function = "work"});
	file = export_json(&trace_exporter, finish(&f), NULL);
	cJSON_ArrayForEach (event, get(file, "traceEvents")) {
		double life = spans ? 10000000000.0 : 0;

		if (strcmp(string(event, "ph"), "X"))
			continue;
		assert_string_equal(string(event, "name"), "RunTask (4294967295)");
		assert_true(number(event, "pid") == life + UINT32_MAX);
		assert_true(number(event, "tid") == life + UINT32_MAX);
		spans++;
	}
	assert_int_equal(spans, 2);
	cJSON_Delete(file);
	profile_builder__free(f.b);
}
