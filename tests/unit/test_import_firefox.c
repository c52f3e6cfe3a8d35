/* SPDX-License-Identifier: BSD-2-Clause */
/* Firefox profiles of several versions and writers, hostile ones, and our own read back. */
#include "import_support.h"

/* ---- our own, read back ---------------------------------------------------------------------- */

/* The frames of a stack as text, leaf first, with inline levels, lines and sites. */
static void describe_stack(FILE *out, const struct profile *p, struct stack_id stack)
{
	for (; stack.v; stack = p->stacks[stack.v].parent) {
		const struct profile_location *l = &p->locations[p->stacks[stack.v].location.v];

		fprintf(out, " <");
		for (uint32_t i = 0; i < l->line_count; i++) {
			const struct profile_line *line = &p->lines[l->first_line + i];
			const struct profile_function *f = &p->functions[line->function.v];
			bool outermost = i + 1 == l->line_count;

			fprintf(out, "%s|%s:%u:%u@%u:%u", profile__string(p, f->name),
				profile__string(p, f->definition_file), f->definition_line,
				f->definition_column, line->line, line->column);
			fprintf(out, "+%llx,", (unsigned long long)(outermost ? f->size : 0));
		}
		fprintf(out, "%s %d %d %d>", profile__string(p, p->dsos[l->dso.v].name),
			l->category, l->tier, l->ambiguous);
	}
}

/* Threads with samples in order of pid, tid and time, as text. */
static char *describe(const struct profile *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t t = 1; t < p->thread_count; t++) {
		const struct profile_thread *thread = &p->threads[t];
		const struct profile_process *process = &p->processes[thread->process.v];
		const struct profile_samples *s = &thread->samples[SAMPLE_CPU];

		if (!s->count)
			continue;
		fprintf(out, "pid %u %s tid %u main %d tail %llu life %llu..%llu\n", process->pid,
			profile__string(p, process->name), thread->tid, thread->is_main,
			(unsigned long long)thread->cpu_tail, (unsigned long long)thread->start,
			(unsigned long long)thread->end);
		for (size_t i = 0; i < s->count; i++) {
			fprintf(out, "%llu %llu", (unsigned long long)s->time[i],
				(unsigned long long)s->weight[i]);
			describe_stack(out, p, s->stack[i]);
			fputc('\n', out);
		}
	}
	fclose(out);
	return text;
}

static bool __attribute__((noinline)) same_text(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static char *import_and_describe(const char *text, char **again)
{
	struct imported i = import_good(text);
	char *described = describe(i.p);

	*again = export_text(&firefox_exporter, i.p, NULL);
	import_done(&i);
	return described;
}

/* Reading what was written of what was read gives the same: threads, stacks, times, CPU, to the bit. */
static void a_second_round_trip_changes_nothing(void **state)
{
	(void)state;
	for (size_t n = 0; n < NAMED_PROFILES; n++) {
		struct fixture f;
		const struct profile *p = build_profile(&f, named_profiles[n].name);
		char *text = export_text(&firefox_exporter, p, NULL), *again, *third, *once, *twice;

		if (p->visits.hz) { /* waits are not read, nor threads that only wait */
			free(import_and_describe(text, &again));
			free(text);
			text = again;
		}
		once = import_and_describe(text, &again);
		twice = import_and_describe(again, &third);
		if (!same_text(once, twice) || !same_text(again, third))
			fail_msg("%s:\n%s\n%s", named_profiles[n].name, once, twice);
		free(text);
		free(again);
		free(third);
		free(once);
		free(twice);
		profile_builder__free(f.b);
	}
}

/* The profile that was written, against the profile that was read. */
static void samples_and_cpu_time_survive_a_round_trip(void **state)
{
	(void)state;
	for (size_t n = 0; n < NAMED_PROFILES; n++) {
		struct fixture f;
		const struct profile *p = build_profile(&f, named_profiles[n].name);
		char *text = export_text(&firefox_exporter, p, NULL);
		struct imported i = import_good(text);
		uint64_t written = 0, read = 0;

		free(text);
		assert_int_equal(i.p->sample_count, p->sample_count);
		assert_int_equal(i.p->start, p->start);
		assert_int_equal(i.p->start_realtime, p->start_realtime);
		/* names that are no UTF-8 are others in the file */
		for (size_t k = strcmp(named_profiles[n].name, "hostile") ? 1 : p->function_count;
		     k < p->function_count; k++) {
			const char *name = profile__string(p, p->functions[k].name);
			struct sums a = self_of(p, name), b = self_of(i.p, name);

			assert_int_equal(a.ticks, b.ticks);
			assert_int_equal(a.weight, b.weight);
		}
		for (size_t t = 1; t < p->thread_count; t++)
			written += p->threads[t].samples[SAMPLE_CPU].count
					   ? profile_thread__cpu(&p->threads[t])
					   : 0;
		for (size_t t = 1; t < i.p->thread_count; t++)
			read += i.p->threads[t].samples[SAMPLE_CPU].count
					? profile_thread__cpu(&i.p->threads[t])
					: 0;
		assert_int_equal(written, read);
		import_done(&i);
		profile_builder__free(f.b);
	}
}

static void a_profile_is_read_back_with_the_same_stacks(void **state)
{
	struct fixture f;
	const struct profile *p = build_profile(&f, "recursion");
	char *text = export_text(&firefox_exporter, p, NULL), *again, *read, *written;

	(void)state;
	written = describe(p);
	read = import_and_describe(text, &again);
	if (!same_text(written, read))
		fail_msg("%s\n%s", written, read);
	free(text);
	free(again);
	free(read);
	free(written);
	profile_builder__free(f.b);
}

/* ---- others' --------------------------------------------------------------------------------- */

#define FUNCS                                                                                      \
	"\"funcTable\":{\"name\":[0,1,2],\"isJS\":[false,true,false],\"resource\":[0,-1,-1],"      \
	"\"fileName\":[3,4,null],\"lineNumber\":[null,7,null],\"columnNumber\":[null,2,null]},"    \
	"\"resourceTable\":{\"lib\":[0],\"name\":[0],\"host\":[null],\"type\":[1]}"
#define FRAMES                                                                                     \
	"\"frameTable\":{\"address\":[16,-1,-1],\"func\":[0,1,2],\"category\":[1,2,0],"            \
	"\"line\":[null,9,null]}"
#define STRINGS "\"stringArray\":[\"main\",\"f\",\"poll\",\"/src/main.c\",\"https://a/b.js\"]"
#define CATEGORIES                                                                                     \
	"\"categories\":[{\"name\":\"Idle\",\"color\":\"transparent\",\"subcategories\":[\"Other\"]}," \
	"{\"name\":\"User\",\"color\":\"yellow\"},{\"name\":\"JavaScript\",\"color\":\"blue\"}]"
#define LIBS "\"libs\":[{\"name\":\"prog\",\"path\":\"/bin/prog\",\"codeId\":\"abcd\"}]"
#define THREAD                                                                                     \
	"\"name\":\"GeckoMain\",\"processName\":\"web\",\"pid\":12,\"tid\":13,\"isMainThread\":true"

/* Tables of the thread, prefix, deltas; µs; a null and a first CPU time that do not count. */
static const char old_style[] =
	"{\"meta\":{\"preprocessedProfileVersion\":52,\"interval\":2,\"startTime\":1000,"
	"\"sampleUnits\":{\"time\":\"ms\",\"threadCPUDelta\":\"\xc2\xb5s\"}," CATEGORIES "}," LIBS
	","
	"\"threads\":[{" THREAD "," FUNCS "," FRAMES "," STRINGS ","
	"\"stackTable\":{\"frame\":[0,1,2],\"prefix\":[null,0,0]},"
	"\"samples\":{\"stack\":[1,null,1,2,0],\"timeDeltas\":[1,2,2,2.5,2],\"weight\":null,"
	"\"weightType\":\"samples\",\"threadCPUDelta\":[900,100,200,0,300]}}]}";

static void check_foreign(const struct profile *p)
{
	const struct profile_samples *s = &p->threads[1].samples[SAMPLE_CPU];
	const struct profile_location *l;

	assert_int_equal(s->count, 3);
	assert_int_equal(s->time[0], IMPORT_MADE_UP_START + 1000000);
	assert_int_equal(s->weight[0], 0);
	assert_int_equal(s->weight[1], 300000); /* with that of the row without a stack */
	assert_int_equal(s->time[2], IMPORT_MADE_UP_START + 9500000);
	assert_int_equal(s->weight[2], 300000);
	assert_int_equal(p->period, 2000000);
	assert_int_equal(p->start_realtime, 1000000000);
	assert_int_equal(p->processes[p->threads[1].process.v].pid, 12);
	assert_int_equal(p->threads[1].tid, 13);
	assert_string_equal(leaf(p, s->stack[1]), "f");
	assert_string_equal(profile__string(p, function_named(p, "f")->definition_file),
			    "https://a/b.js");
	l = &p->locations[p->stacks[s->stack[1].v].location.v];
	assert_int_equal(l->category, CATEGORY_JIT);
	assert_int_equal(p->lines[l->first_line].line, 9);
	l = &p->locations[p->stacks[s->stack[2].v].location.v];
	assert_string_equal(profile__string(p, p->dsos[l->dso.v].path), "/bin/prog");
	assert_int_equal(p->dsos[l->dso.v].build_id_size, 2);
	assert_int_equal(l->elf_address, 16);
}

static void old_and_new_versions_give_the_same_profile(void **state)
{
	/* shared tables and sources, prefixOffset, times */
	static const char new_style[] =
		"{" LIBS ",\"shared\":{" STRINGS ",\"sources\":{\"filename\":[3,4]},"
		"\"stackTable\":{\"frame\":[0,1,2],\"prefixOffset\":[0,1,2]}," FRAMES ","
		"\"funcTable\":{\"name\":[0,1,2],\"resource\":[0,-1,-1],\"source\":[0,1,null],"
		"\"lineNumber\":[null,7,null],\"columnNumber\":[null,2,null]},"
		"\"resourceTable\":{\"lib\":[0]}},"
		"\"threads\":[{" THREAD ",\"samples\":{\"stack\":[1,null,1,2,0],"
		"\"time\":[1,3,5,7.5,9.5],\"threadCPUDelta\":[900000,100000,200000,0,300000]}}],"
		"\"meta\":{\"preprocessedProfileVersion\":66,\"interval\":2,\"startTime\":1000,"
		"\"sampleUnits\":{\"threadCPUDelta\":\"ns\"}," CATEGORIES "}}";
	struct imported i = import_good(old_style);

	(void)state;
	check_foreign(i.p);
	import_done(&i);
	i = import_good(new_style);
	check_foreign(i.p);
	import_done(&i);
	check_every_cut(new_style, strlen(new_style));
}

static void weights_are_sample_counts_or_milliseconds(void **state)
{
#define SHARED                                                                                             \
	"{\"meta\":{\"preprocessedProfileVersion\":60,\"interval\":2," CATEGORIES "}," LIBS                \
	",\"shared\":{" STRINGS "," FUNCS "," FRAMES                                                       \
	",\"stackTable\":{\"frame\":[0,1],\"prefix\":[-1,0]}},\"threads\":[{\"name\":\"t\",\"pid\":\"1\"," \
	"\"tid\":\"1\",\"samples\":{\"stack\":[0,1],\"time\":[1,2],"
	struct imported i = import_good(SHARED "\"weight\":[3,4],\"weightType\":\"samples\"}}]}");

	(void)state;
	assert_int_equal(i.p->sample_count, 7);
	assert_int_equal(self_of(i.p, "f").weight, 8000000);
	import_done(&i);
	i = import_good(SHARED "\"weight\":[0.5,1.25],\"weightType\":\"tracing-ms\"}}]}");
	assert_int_equal(i.p->sample_count, 2);
	assert_int_equal(self_of(i.p, "f").weight, 1250000);
	import_done(&i);
}

static void invalid_tables_and_samples_are_refused(void **state)
{
#define WITH(stacks, samples)                                                                      \
	"{\"meta\":{\"preprocessedProfileVersion\":60," CATEGORIES "}," LIBS                       \
	",\"shared\":{" STRINGS "," FUNCS "," FRAMES ",\"stackTable\":{" stacks                    \
	"}},\"threads\":[{\"samples\":{" samples "}}]}"
#define GOOD_STACKS "\"frame\":[0,1],\"prefix\":[null,0]"
	static const struct refused cases[] = {
		{WITH(GOOD_STACKS, "\"stack\":[2],\"time\":[1]"), -EBADMSG, "no stack of sample 0",
		 "2],\"t"},
		{WITH(GOOD_STACKS, "\"stack\":[0,0],\"time\":[1]"), -EBADMSG, "only 1 elements",
		 NULL},
		{WITH(GOOD_STACKS, "\"stack\":[0]"), -EBADMSG, "expected an array", NULL},
		{WITH(GOOD_STACKS, "\"stack\":[0],\"time\":[1e30]"), -EBADMSG, "out of range",
		 "1e30"},
		{WITH(GOOD_STACKS, "\"stack\":[0],\"time\":[1],\"weight\":[-1]"), -EBADMSG,
		 "negative", "-1]}}]"},
		{WITH(GOOD_STACKS, "\"stack\":[0],\"time\":[1],\"weightType\":\"bytes\""),
		 -EPROTONOSUPPORT, "no CPU time: \"bytes\"", NULL},
		{WITH("\"frame\":[0,3],\"prefix\":[null,0]", "\"stack\":[]"), -EBADMSG,
		 "column frame is out of range", "3],\"prefix"},
		{WITH("\"frame\":[0,1],\"prefix\":[1,0]", "\"stack\":[]"), -EBADMSG,
		 "stack 0 does not come after its parent", NULL},
		{WITH("\"frame\":[0,1],\"prefix\":[null,1]", "\"stack\":[]"), -EBADMSG,
		 "stack 1 does not come after", NULL},
		{WITH("\"frame\":[0,1],\"prefixOffset\":[0,2]", "\"stack\":[]"), -EBADMSG,
		 "stack 1 does not come after", NULL},
		{WITH("\"frame\":[0,1],\"prefixOffset\":[0,1],\"prefix\":[null,0]", "\"stack\":[]"),
		 -EBADMSG, "both prefix and prefixOffset", NULL},
		{WITH("\"frame\":[0,1]", "\"stack\":[]"), -EBADMSG, "neither prefix nor", NULL},
		{WITH("\"frame\":[0,1],\"prefix\":[null]", "\"stack\":[]"), -EBADMSG,
		 "prefix has 1 elements, its table 2", NULL},
		{"{\"meta\":{\"preprocessedProfileVersion\":60},\"threads\":[{\"samples\":{}}]}",
		 -EBADMSG, "there is no", NULL},
		{"{\"meta\":{\"preprocessedProfileVersion\":60}}", -EBADMSG, "no \"threads\"",
		 NULL},
		{"{\"meta\":{\"preprocessedProfileVersion\":60},\"meta\":{}}", -EBADMSG,
		 "there twice", NULL},
	};

	(void)state;
	check_refused(cases, COUNT(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_round_trip_changes_nothing),
		cmocka_unit_test(samples_and_cpu_time_survive_a_round_trip),
		cmocka_unit_test(a_profile_is_read_back_with_the_same_stacks),
		cmocka_unit_test(old_and_new_versions_give_the_same_profile),
		cmocka_unit_test(weights_are_sample_counts_or_milliseconds),
		cmocka_unit_test(invalid_tables_and_samples_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
