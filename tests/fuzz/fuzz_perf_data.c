/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A perf.data file of any bytes: what is read of it is a profile that keeps all invariants, what is refused has a
 * reason, and neither takes longer than its size allows. The events on the way are sound and in the order of time.
 */
#include <errno.h>
#include <string.h>

#include "base/clocks.h"
#include "fuzz.h"
#include "stream/event_decode.h"
#include "stream/perf/perf_kernel.h"
#include "window/windows.h"

#define NS_FREE 2000000000ull
#define NS_EACH 20000ull /* for each byte, under the sanitizers */

struct checked {
	struct windows *windows;
	uint64_t last, samples, copies;
};

static int check_event(void *context, const struct event_header *event)
{
	struct checked *checked = context;

	MUST(!event_check(event, event->size));
	MUST(event->time >= checked->last);
	checked->last = event->time;
	checked->samples += event->type == EVENT_SAMPLE;
	if (event->flags & EVENT_STACK_COPY && event->type == EVENT_SAMPLE)
		checked->samples--; /* of the session, which walks it */
	else
		return windows__event(checked->windows, event);
	checked->copies++;
	return 0;
}

static void make_profile(struct windows *windows, uint64_t samples)
{
	const struct profile *profile;
	struct failure failure = {};
	int err = windows__finish(windows, &profile, &failure);

	if (err)
		fprintf(stderr, "%d: %s\n", err, failure.what);
	MUST(!err);
	MUST(profile->sample_count == samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct windows_options options = {};
	struct perf_data_summary summary;
	uint64_t begin = thread_cpu_ns(), passed;
	struct checked checked = {};
	struct failure failure = {};
	struct running_kernel kernel;
	int fd = fuzz_file(data, size), err;

	perf_data_probe(fd);
	MUST(!windows__new(&options, &checked.windows));
	running_kernel__open(&kernel);
	err = perf_data_read(fd, &(struct perf_data_options){size % 2, &kernel}, check_event,
			     &checked, &summary, &failure);
	running_kernel__close(&kernel);
	close(fd);
	MUST(!err || *failure.what);
	passed = checked.samples + checked.copies;
	MUST(err || (passed <= summary.samples && summary.samples <= passed + summary.bad_events));
	if (!err)
		make_profile(checked.windows, checked.samples);
	windows__free(checked.windows);
	MUST(thread_cpu_ns() - begin < NS_FREE + NS_EACH * size);
	return 0;
}
