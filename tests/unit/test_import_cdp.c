/* SPDX-License-Identifier: BSD-2-Clause */
/* .cpuprofile and Chrome traces: attribution, idle time, ids, hostile files, and our own read back. */
#include "import_support.h"

#include "profile/timeline.h"

#define FRAME(name, url, line, column)                                                             \
	"\"callFrame\":{\"functionName\":\"" name "\",\"scriptId\":\"7\",\"url\":\"" url           \
	"\",\"lineNumber\":" #line ",\"columnNumber\":" #column "}"
#define META(name)                                                                                 \
	"\"callFrame\":{\"functionName\":\"" name                                                  \
	"\",\"scriptId\":\"0\",\"url\":\"\",\"lineNumber\":-1,\"columnNumber\":-1}"

/* [X1] [X2] [X3]: f1 at 2:3 and f at 12:3; two nodes of f; a, as f1, at another url. */
static const char plain[] =
	"{\"nodes\":["
	"{\"id\":1," META(
		"(root)") ",\"hitCount\":0,\"children\":[2,3,4,5,6]},"
			  "{\"id\":2," FRAME(
				  "f1", "file:///a.js", 2,
				  3) ",\"hitCount\":1,\"children\":[7],"
				     "\"positionTicks\":[{\"line\":4,\"ticks\":1}]},"
				     "{\"id\":3," FRAME(
					     "f", "file:///a.js", 12,
					     3) ",\"hitCount\":1},"
						"{\"id\":4," FRAME(
							"f1", "node:b", 2,
							3) ",\"hitCount\":1},"
							   "{\"id\":5," META(
								   "(idle)") ",\"hitCount\":2},"
									     "{\"id\":6," META(
										     "(garbage collector)") ",\"hitCount\":1},"
													    "{\"id\":7," FRAME(
														    "f",
														    "file:///a.js",
														    12,
														    3) ",\"hitCount\":1}],"
														       "\"startTime\":1000000,\"endTime\":1010000,"
														       "\"samples\":[2,3,5,5,4,6,7],\"timeDeltas\":[500,1000,1500,1000,2000,1000,1000]}";

static uint64_t idle_weight(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->threads[1].samples[SAMPLE_IDLE].count; i++)
		sum += p->threads[1].samples[SAMPLE_IDLE].weight[i];
	return sum;
}

static void times_of_the_file_become_those_of_the_profile(void **state)
{
	struct imported i = import_good(plain);
	const struct profile *p = i.p;

	(void)state;
	assert_int_equal(p->start, 1000000000);
	assert_int_equal(p->end, 1010000000);
	assert_int_equal(p->start_realtime, 1000000000);
	assert_int_equal(p->period, 1000000);
	assert_true(p->idle_known && p->weight_ahead && !p->untimed);
	import_done(&i);
}

static void functions_are_distinguished_by_their_url(void **state)
{
	struct imported i = import_good(plain);
	size_t f1 = 0, f = 0;

	(void)state;
	for (size_t n = 1; n < i.p->function_count; n++) {
		const struct profile_function *function = &i.p->functions[n];
		const char *name = profile__string(i.p, function->name);

		f1 += !strcmp(name, "f1");
		f += !strcmp(name, "f");
	}
	assert_int_equal(f1, 2); /* another url is another function */
	assert_int_equal(f, 1);	 /* two nodes of one are not */
	assert_string_equal(profile__string(i.p, function_named(i.p, "f")->definition_file),
			    "/a.js");
	assert_int_equal(function_named(i.p, "f")->definition_line, 13);
	assert_int_equal(function_named(i.p, "f")->definition_column, 4);
	import_done(&i);
}

/* [X4]: a sample lasts until the next; the first delta belongs to no sample; idle is no CPU. */
static void samples_last_until_the_next_and_idle_is_separate(void **state)
{
	struct imported i = import_good(plain);
	const struct profile_samples *s = &i.p->threads[1].samples[SAMPLE_CPU];
	static const uint64_t weights[] = {1000000, 1500000, 1000000, 1000000, 2000000};

	(void)state;
	assert_int_equal(i.p->sample_count, 5);
	assert_int_equal(s->count, 5);
	for (size_t n = 0; n < s->count; n++)
		assert_int_equal(s->weight[n], weights[n]);
	assert_int_equal(i.p->threads[1].samples[SAMPLE_IDLE].count, 2);
	assert_int_equal(idle_weight(i.p), 3000000);
	assert_int_equal(profile_thread__cpu(&i.p->threads[1]) + idle_weight(i.p), 9500000);
	assert_int_equal(self_of(i.p, "(garbage collector)").weight, 1000000);
	assert_int_equal(depth_of(i.p, s->stack[4]), 2);
	/* the line that f1 executed */
	assert_int_equal(
		i.p->lines[i.p->locations[i.p->stacks[s->stack[0].v].location.v].first_line].line,
		4);
	import_done(&i);
}

/* Nothing is between two CPU samples but what the file says is. */
static void timelines_are_idle_only_where_the_file_is(void **state)
{
	static const enum timeline_kind kinds[] = {
		TIMELINE_START,	     TIMELINE_SAMPLE,	TIMELINE_SAMPLE,
		TIMELINE_IDLE_BEGIN, TIMELINE_IDLE_END, TIMELINE_SAMPLE,
		TIMELINE_SAMPLE,     TIMELINE_SAMPLE,	TIMELINE_END};
	static const uint64_t deltas[] = {0, 0, 1000000, 1500000, 0, 0, 1000000, 1000000, 2000000};
	struct imported i = import_good(plain);
	struct timeline timeline;
	struct timeline_entry entry;
	size_t n = 0;

	(void)state;
	timeline__init(&timeline, i.p, &i.p->threads[1]);
	for (; timeline__next(&timeline, &entry); n++) {
		assert_true(n < COUNT(kinds));
		assert_int_equal(entry.kind, kinds[n]);
		assert_int_equal(entry.cpu_delta, deltas[n]);
		assert_int_equal(entry.idle_after, kinds[n] == TIMELINE_IDLE_BEGIN);
	}
	assert_int_equal(n, COUNT(kinds));
	assert_int_equal(timeline_idle_before(i.p, &i.p->threads[1], 2).count, 2);
	assert_int_equal(timeline_idle_before(i.p, &i.p->threads[1], 1).count, 0);
	import_done(&i);
}

/* As DevTools does: samples are put in order of their times. */
static void samples_are_sorted_by_time_after_negative_deltas(void **state)
{
	struct imported i = import_good(
		"{\"nodes\":[{\"id\":1," META("(root)") ",\"children\":[2,3]},{\"id\":2," FRAME(
			"a", "", 1,
			1) "},{\"id\":3," FRAME("b", "", 1,
						1) "}],\"startTime\":100,"
						   "\"endTime\":160,\"samples\":[2,3,2],\"timeDeltas\":[20,-10,30]}");
	const struct profile_samples *s = &i.p->threads[1].samples[SAMPLE_CPU];

	(void)state;
	assert_string_equal(leaf(i.p, s->stack[0]), "b");
	assert_int_equal(s->time[0], 110000);
	assert_int_equal(s->weight[0], 10000);
	assert_int_equal(s->time[1], 120000);
	assert_int_equal(s->weight[1], 20000);
	assert_int_equal(s->weight[2], 20000);
	import_done(&i);
}

static void urls_are_exported_as_they_were_imported(void **state)
{
	static const char *const urls[] = {"node:internal/main",     "https://a.b/c.js?d=%20e",
					   "wasm://wasm/0123abcd",   "file:///a%20b/%C3%A9.js",
					   "file:///C:/x.js",	     "file:///a%2fb.js",
					   "evalmachine.<anonymous>"};
	char text[1024];

	(void)state;
	for (size_t n = 0; n < COUNT(urls); n++) {
		struct imported i;
		const cJSON *frame;
		cJSON *json;

		snprintf(
			text, sizeof(text),
			"{\"nodes\":[{\"id\":1," FRAME(
				"", "%s", 0,
				18) "}],\"startTime\":5,\"endTime\":9,\"samples\":[1],\"timeDeltas\":[1]}",
			urls[n]);
		i = import_good(text);
		json = export_json(&cpuprofile_exporter, i.p, NULL);
		frame = get(cJSON_GetArrayItem(get(json, "nodes"), 1), "callFrame");
		assert_string_equal(get(frame, "url")->valuestring, urls[n]);
		assert_string_equal(get(frame, "functionName")->valuestring, "");
		assert_int_equal((int)number(frame, "columnNumber"), 18);
		cJSON_Delete(json);
		import_done(&i);
	}
}

static void invalid_profiles_are_refused_with_the_reason(void **state)
{
#define NODES                                                                                      \
	"{\"nodes\":[{\"id\":1," META("(root)") ",\"children\":[2]},{\"id\":2," META("a") "}],"
	static const struct refused cases[] = {
		{NODES "\"samples\":[2]}", -EBADMSG, "without timeDeltas", NULL},
		{NODES "\"timeDeltas\":[2]}", -EBADMSG, "without samples", NULL},
		{"{\"timeDeltas\":[2],\"samples\":[2]}", -EBADMSG, "without nodes", NULL},
		{NODES "\"samples\":[9],\"timeDeltas\":[2]}", -EBADMSG, "of node 9", "9],"},
		{NODES "\"samples\":[-1],\"timeDeltas\":[2]}", -EBADMSG, "no id of a node",
		 "-1],\"t"},
		{NODES "\"samples\":[null],\"timeDeltas\":[2]}", -EBADMSG, "no id of a node",
		 "null"},
		{NODES "\"samples\":[2,2],\"timeDeltas\":[2]}", -EBADMSG, "more samples", NULL},
		{NODES "\"samples\":[2],\"timeDeltas\":[NaN]}", -EBADMSG, "expected a number",
		 "NaN"},
		{NODES "\"samples\":[2],\"timeDeltas\":[1e99]}", -EBADMSG, "out of range", "1e99"},
		{NODES "\"samples\":[2],\"timeDeltas\":[-1e9]}", -EBADMSG, "out of range", "-1e9"},
		{NODES "\"samples\":{},\"timeDeltas\":[2]}", -EBADMSG, "expected an array", "{},"},
		{NODES "\"samples\":[],\"samples\":[],\"timeDeltas\":[]}", -EBADMSG, "there twice",
		 NULL},
		{"{\"nodes\":[{\"id\":1," META("a") ",\"children\":[3]}],\"samples\":[],"
						    "\"timeDeltas\":[]}",
		 -EBADMSG, "no node 3", "3]"},
		{"{\"nodes\":[{\"id\":1," META("a") "},{\"id\":1," META("a") "}],\"samples\":[],"
									     "\"timeDeltas\":[]}",
		 -EBADMSG, "have the id 1", NULL},
		{"{\"nodes\":[{\"id\":1}],\"samples\":[],\"timeDeltas\":[]}", -EBADMSG,
		 "no callFrame", NULL},
		{"{\"nodes\":[{\"id\":\"1\"," META("a") "}],\"samples\":[],\"timeDeltas\":[]}",
		 -EBADMSG, "is no number", "\"1\""},
		/* 1 is below 2 and 2 below 1; 3 is its own child; 4 has two parents */
		{"{\"nodes\":[{\"id\":1," META("a") ",\"children\":[2]},{\"id\":2," META(
			 "b") ",\"children\":[1]}],\"samples\":[1],\"timeDeltas\":[1]}",
		 -EBADMSG, "its own caller", NULL},
		{"{\"nodes\":[{\"id\":3," META("a") ",\"children\":[3]}],\"samples\":[3],"
						    "\"timeDeltas\":[1]}",
		 -EBADMSG, "its own caller", NULL},
		{"{\"nodes\":[{\"id\":1," META("a") ",\"children\":[4]},{\"id\":2," META(
			 "b") ",\"children\":[4]},{\"id\":4," META("c") "}],\"samples\":[],\"timeDeltas\":[]}",
		 -EBADMSG, "two parents", NULL},
		{NODES "\"samples\":[],\"timeDeltas\":[]} x", -EBADMSG, "something follows", "x"},
		{"{\"traceEvents\":[{\"name\":\"ProfileChunk\",\"ph\":\"P\",\"pid\":1,\"tid\":-1}]}",
		 -EBADMSG, "tid is out of range", "-1"},
		{"{\"traceEvents\":[3]}", -EBADMSG, "no object", "3"},
	};

	(void)state;
	check_refused(cases, COUNT(cases));
	check_every_cut(plain, strlen(plain));
}

static char *chain_of_nodes(unsigned int depth)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs("{\"nodes\":[{\"id\":1," META("(root)") ",\"children\":[2]}", f);
	for (unsigned int n = 2; n <= depth + 1; n++)
		fprintf(f, ",{\"id\":%u,\"callFrame\":{\"functionName\":\"f\"},\"children\":[%u]}",
			n, n + 1);
	fprintf(f,
		",{\"id\":%u,\"callFrame\":{}}],\"startTime\":1,\"endTime\":9,\"samples\":[%u],"
		"\"timeDeltas\":[1]}",
		depth + 2, depth + 1);
	fclose(f);
	return text;
}

static void stacks_beyond_the_depth_limit_are_refused(void **state)
{
	char *text = chain_of_nodes(100000);
	struct imported i = import_good(text);

	(void)state;
	assert_int_equal(depth_of(i.p, i.p->threads[1].samples[SAMPLE_CPU].stack[0]), 100000);
	import_done(&i);
	free(text);
	text = chain_of_nodes(200000);
	i = import_text(text);
	assert_int_equal(i.err, -E2BIG);
	import_done(&i);
	free(text);
}

/* ---- traces ---------------------------------------------------------------------------------- */

#define EVENT(name, ph, pid, tid, ts, rest)                                                        \
	"{\"name\":\"" name "\",\"ph\":\"" ph "\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts   \
	",\"cat\":\"c\"" rest "}"

static const char trace[] = "[" EVENT(
	"ProfileChunk", "P", 1, 99, 2000,
	",\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":2,\"parent\":1," FRAME(
		"g", "file:///a.js",
		0, 1) "}],\"samples\":[2]},\"timeDeltas\":[40],"
		      "\"lines\":[8]}}") ",\n" EVENT("Profile", "P",
						     1, 2, 900, ",\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":1000}}") "," EVENT("X",
																      "X", 1, 2, 900, ",\"args\":{\"deep\":[[{\"a\":\"]\"}]]}") "," EVENT("ProfileChunk",
																									  "P",
																									  1,
																									  99,
																									  1500,
																									  ",\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":1," META(
																										  "(root)") "},{\"id\":3,\"parent\":1," META("(program)") "}],"
																																	  "\"samples\":[3,3]},\"timeDeltas\":[10,20],\"lines\":[0,0]}}") "," EVENT("Profile",
																																										   "P", 5, 5, 1000, ",\"id\":\"0x1\"") "," EVENT("ProfileChunk",
																																																 "P",
																																																 5,
																																																 5,
																																																 1500, ",\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":1," FRAME("h", "", 0, 1) "}],\"samples\":[1]},\"timeDeltas\":[10],\"endTime\":1100}}") "," EVENT("thread_name",
																																																																						"M",
																																																																						1, 2,
																																																																						0,
																																																																						",\"args\":{\"name\":\"worker\"}") "," EVENT("process_name", "M", 1, 1,
																																																																											     0,
																																																																											     ",\"args\":{\"name\":\"browser\"}");

static void check_trace(const char *end)
{
	char text[8192];
	struct imported i;
	const struct profile *p;

	snprintf(text, sizeof(text), "%s%s", trace, end);
	i = import_good(text);
	p = i.p;
	assert_int_equal(p->thread_count, 3);
	assert_int_equal(p->threads[1].tid, 2);
	assert_string_equal(profile__string(p, p->threads[1].name), "worker");
	assert_string_equal(profile__string(p, p->processes[p->threads[1].process.v].name),
			    "browser");
	assert_string_equal(profile__string(p, p->processes[p->threads[2].process.v].name),
			    "file.name");
	assert_int_equal(p->threads[1].samples[SAMPLE_CPU].count, 3);
	assert_int_equal(p->threads[1].samples[SAMPLE_CPU].time[0], 1010000);
	assert_int_equal(self_of(p, "(program)").weight, 60000);
	assert_int_equal(self_of(p, "g").weight, 40000); /* no end: the median */
	assert_int_equal(self_of(p, "h").weight, 90000);
	assert_true(p->threads[2].is_main && !p->threads[1].is_main);
	import_done(&i);
}

static void traces_are_read_without_their_closing_bracket(void **state)
{
	struct imported i;

	(void)state;
	check_trace("]");
	check_trace(" ] \n");
	check_trace(""); /* of a tracer that was killed */
	check_trace(",\n");
	i = import_bytes(trace, strlen(trace) - 1);
	assert_int_equal(i.err, -EBADMSG);
	assert_non_null(strstr(i.failure.what, "cut off"));
	import_done(&i);
}

/* ---- our own files --------------------------------------------------------------------------- */

/* A reused number is made up in the file; the event of the thread's whole time has the true one, and its end. */
static void our_traces_restore_true_thread_ids_and_ends(void **state)
{
	static const char text[] =
		"[{\"name\":\"worker (300)\",\"ph\":\"X\",\"pid\":10000007,\"tid\":10000300,\"ts\":1000,"
		"\"dur\":500,\"args\":{\"pid\":7,\"tid\":300,\"cpuTimeNs\":1}},"
		"{\"name\":\"Profile\",\"ph\":\"P\",\"pid\":10000007,\"tid\":10000300,\"ts\":1000,"
		"\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":1000}}},"
		"{\"name\":\"ProfileChunk\",\"ph\":\"P\",\"pid\":10000007,\"tid\":10000300,\"ts\":1100,"
		"\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":1," FRAME(
			"h", "", 0, 1) "}],\"samples\":[1,1]},\"timeDeltas\":[100,20]}}}]";
	struct imported i = import_good(text);
	const struct profile_thread *thread = &i.p->threads[1];

	(void)state;
	assert_int_equal(thread->tid, 300);
	assert_int_equal(i.p->processes[thread->process.v].pid, 7);
	/* 20 us up to the second sample, which lasts until the thread's end */
	assert_int_equal(thread->samples[SAMPLE_CPU].weight[0], 20000);
	assert_int_equal(thread->samples[SAMPLE_CPU].weight[1], 380000);
	import_done(&i);
}

static bool __attribute__((noinline)) same_but_recording(const char *a, const char *b)
{
	const char *end = strstr(a, "\"recording\"");

	return end && !strncmp(a, b, (size_t)(end - a));
}

/* What is written again of what was read is the same, but for figures of the whole recording. */
static void nodes_and_samples_of_our_cpuprofile_survive_an_import(void **state)
{
	(void)state;
	for (size_t n = 0; n < NAMED_PROFILES; n++) {
		struct fixture f;
		const struct profile *p = build_profile(&f, named_profiles[n].name);
		char *text = export_text(&cpuprofile_exporter, p, NULL), *again;
		struct imported i = import_good(text);

		again = export_text(&cpuprofile_exporter, i.p, NULL);
		if (!same_but_recording(text, again))
			fail_msg("%s:\n%.600s\n%.600s", named_profiles[n].name, text, again);
		free(text);
		free(again);
		import_done(&i);
		profile_builder__free(f.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_of_the_file_become_those_of_the_profile),
		cmocka_unit_test(functions_are_distinguished_by_their_url),
		cmocka_unit_test(samples_last_until_the_next_and_idle_is_separate),
		cmocka_unit_test(timelines_are_idle_only_where_the_file_is),
		cmocka_unit_test(samples_are_sorted_by_time_after_negative_deltas),
		cmocka_unit_test(urls_are_exported_as_they_were_imported),
		cmocka_unit_test(invalid_profiles_are_refused_with_the_reason),
		cmocka_unit_test(stacks_beyond_the_depth_limit_are_refused),
		cmocka_unit_test(traces_are_read_without_their_closing_bracket),
		cmocka_unit_test(nodes_and_samples_of_our_cpuprofile_survive_an_import),
		cmocka_unit_test(our_traces_restore_true_thread_ids_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
