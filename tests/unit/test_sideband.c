/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the kernel as events: testdata/sideband.txt, with the words of perf_records_support.h. */
#include "perf_records_support.h"

#include "live/capture/perf_events.h"

static struct sideband_decoder decoder; /* of the running case */

static void begin(void)
{
	memset(&decoder, 0, sizeof(decoder));
	decoder.cpu = 3;
	begin_file();
	take_event_step("clock", "");
}

static int keep(void *context, struct event_header *event)
{
	assert_int_equal(event_check(event, event->size), 0);
	put_event(context, event);
	return 0;
}

/* A record in memory of exactly its size, so that a sanitizer sees every step beyond. */
static void decode(FILE *out, const struct perf_event_header *record)
{
	_cleanup_free_ struct perf_event_header *copy = malloc(record->size);
	long before = ftell(out);
	int err;

	memcpy(copy, record, record->size);
	err = sideband_decode(&decoder, copy, keep, out);
	if (err)
		text_put_error(out, err);
	else if (ftell(out) == before)
		fputs("nothing", out);
}

static bool take_step(FILE *out, const char *name, char *words)
{
	const size_t before = made.records.count;

	if (!take_record_step(name, words))
		return false;
	decode(out, (const void *)(made.records.data + before));
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"records", run_steps}, {}};

TEXT_TABLE("sideband", verbs, begin, begin_file);

TEST(records_of_the_future_are_refused)
{
	FILE *out = fopen("/dev/null", "we");

	for (int i = 0; i < 2; i++) {
		char words[] = "comm";

		begin();
		add_comm(PERF_RECORD_COMM, i ? monotonic_ns() : monotonic_ns() + 1000000000, words);
		assert_int_equal(sideband_decode(&decoder, (void *)made.records.data, keep, out),
				 i ? 0 : -EBADMSG);
		assert_int_equal(ftell(out) > 0, i);
	}
	begin_file();
	fclose(out);
}
