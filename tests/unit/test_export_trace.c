/* SPDX-License-Identifier: BSD-2-Clause */
/* Chrome traces: what goldens are too small for, chunks and numbers, and profiles without times. */
#include "export_support.h"

#define CHUNK_SAMPLES 50000

static bool is_named(const cJSON *event, const char *name)
{
	return !strcmp(string(event, "name"), name);
}

/* One thread of many samples: chunks of 50,000, ids and times that go on from one to the next. */
TEST(ids_and_times_continue_from_chunk_to_chunk)
{
	const size_t wanted[] = {CHUNK_SAMPLES, CHUNK_SAMPLES, 20000};
	struct thread_id thread;
	struct location_id places[3];
	double time = 0, next_id = 1;
	size_t chunks = 0;
	_cleanup_fixture_ struct fixture f;
	const cJSON *event;
	_cleanup_cjson_ cJSON *file;

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
}
