/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of perf script: testdata/import_perf.txt. Here: what is too deep, and a file that is cut anywhere. */
#include "import_support.h"

static void import_input(FILE *out, char *input)
{
	static const char *const keys[] = {META_EVENT,		META_PRODUCT, META_HOSTNAME,
					   META_KERNEL_RELEASE, META_CPU,     META_COMMAND};
	_cleanup_imported_ struct imported i = import_bytes(input, text_size);

	if (i.err) {
		put_failure(out, &i, input, text_size);
		return;
	}
	put_profile(out, i.p);
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		if (profile__meta(i.p, keys[k]))
			fprintf(out, "%s: %s\n", keys[k], profile__meta(i.p, keys[k]));
	if (i.p->event_period)
		fprintf(out, "one each %llu\n", (unsigned long long)i.p->event_period);
	if (i.p->lost[LOST_SAMPLES])
		fprintf(out, "lost: %llu\n", (unsigned long long)i.p->lost[LOST_SAMPLES]);
}

/* What sysprof calls the event of one sample. */
static void name_event(FILE *out, char *input)
{
	_cleanup_imported_ struct imported i;
	char text[512];

	snprintf(text, sizeof(text), "a 1 1.000000: 7 %s: \n", input);
	i = import_good(text);
	fprintf(out, "%s%s", profile__meta(i.p, META_EVENT), i.p->event.v ? "" : " (clock)");
}

/* Of several events with as many samples, separated by blanks. */
static void choose_event(FILE *out, char *input)
{
	_cleanup_imported_ struct imported i;
	char text[2048] = "";
	size_t used = 0;

	for (char *event; (event = strsep(&input, " ")) != NULL;)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "a 1 1.000000: 7 %s: \n",
					 event);
	i = import_good(text);
	fprintf(out, "%s; %s", profile__meta(i.p, META_EVENT), profile__meta(i.p, META_NOT_READ));
}

TEST(a_stack_that_is_too_deep_is_refused_with_its_place)
{
	static const char head[] = "a 1 1.000000: 7 cycles: \n", frame[] = "\t 1 f (/a)\n";
	size_t frames = 131073, size = strlen(head) + frames * strlen(frame);
	_cleanup_free_ char *text = malloc(size + 2);
	struct imported i;
	char *at = stpcpy(text, head);

	for (size_t n = 0; n < frames; n++)
		at = stpcpy(at, frame);
	strcpy(at, "\n");
	i = import_text(text);
	assert_int_equal(i.err, -E2BIG);
	assert_int_equal(i.failure.offset, size - strlen(frame));
	import_done(&i);
	strcpy(at - strlen(frame), "\n");
	i = import_text(text);
	assert_int_equal(i.err, 0);
	import_done(&i);
}

/* If each stack were looked for up to the end of the file, this would take minutes. */
TEST(a_file_without_empty_lines_takes_time_in_proportion_to_its_size)
{
	static const char sample[] = " 1.000000: 1 cycles:\n\t4 (cookie) (a)\n";
	size_t samples = 100000, size = samples * strlen(sample);
	_cleanup_free_ char *text = malloc(size + 1);
	_cleanup_imported_ struct imported i = {};

	assert_non_null(text);
	for (size_t n = 0; n < samples; n++)
		memcpy(text + n * strlen(sample), sample, sizeof(sample));
	i = import_bytes(text, size);
	assert_int_equal(i.err, 0);
	assert_int_equal(i.p->sample_count, samples);
}

/* Wherever it is cut, a stack is whole or left out. */
TEST(a_cut_file_has_no_part_of_a_stack)
{
	static const char text[] = "a 1 1.000000: 7 cycles: \n\t 1 f (/a)\n\t 2 g (/a)\n\n"
				   "a 1 2.000000: 7 cycles: \n\t 1 f (/a)\n\t 2 g (/a)\n\n";
	size_t first = strlen(text) / 2;

	for (size_t size = first + 1; size <= strlen(text); size++) {
		bool whole = size >= strlen(text) - strlen("\n\n");
		_cleanup_imported_ struct imported i = import_bytes(text, size);
		const struct profile_samples *samples;

		assert_int_equal(i.err, 0);
		samples = &i.p->threads[1].samples[SAMPLE_CPU];
		assert_int_equal(samples->count, whole ? 2 : 1);
		for (size_t n = 0; n < samples->count; n++)
			assert_int_equal(i.p->stacks[samples->stack[n].v].depth, 2);
		assert_true(whole == !profile__meta(i.p, META_NOT_READ));
	}
}

static const struct text_verb verbs[] = {
	{"import", import_input}, {"event", name_event}, {"choice", choose_event}, {}};

TEXT_TABLE("import_perf", verbs, NULL, NULL);
