/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grafana Pyroscope: Push of pprof, one series per service.
 *
 * The series of a request are taken or refused one by one, but only one failure is reported,
 * without its series. So a refused request is never sent again; one that may have been taken is
 * sent again byte for byte: Pyroscope identifies a profile by its labels and its time.
 *
 * Profiles are plain and the request is compressed as a whole: shared names cost their bytes once.
 * Files and lines of calls and definitions are half of the rest, and stay: Grafana shows a
 * function's source by them, and Go uses them for optimization.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/series.h"
#include "agent/validate.h"
#include "base/minmax.h"

#define SERIES_MAX 500 /* of a request: it took 2.7 s with so many, and 33 s with 6,000 */
#define REQUEST_MAX                                                                                \
	1900000 /* bytes, not compressed: more than 2 MiB at a time is refused for ever */
#define OLDEST (59 * 60 * UINT64_C(1000000000)) /* it refuses what is older than an hour */

/* PushRequest{1: RawProfileSeries{1: LabelPair{1: name, 2: value}, 2: RawSample{1: pprof}}} */
static int make(const struct series_part *part, struct bytes *made)
{
	size_t at;

	for (size_t i = 0; i < part->label_count; i++) {
		at = made->count;
		bytes__text(made, 1, part->labels[i].name);
		bytes__text(made, 2, part->labels[i].value);
		bytes__wrap(made, 1, at);
	}
	at = made->count;
	bytes__field(made, 1, part->pprof.data, part->pprof.count);
	bytes__wrap(made, 2, at);
	bytes__wrap(made, 1, 0);
	return made->failed ? -ENOMEM : 0;
}

static int add(struct series_request *request, const struct bytes *made)
{
	return bytes__add(&request->body, made->data, made->count);
}

static int seal(struct series_request *request)
{
	static const uint32_t profiles[] = {1, 2, 1}; /* series, samples, raw_profile */
	struct bytes compressed = {};
	int err = bytes__gzip(&request->body, profiles, 3, &compressed);

	request->facts.path = "/push.v1.PusherService/Push";
	request->facts.content_type = "application/proto";
	request->facts.content_encoding = "gzip";
	request->body.count = 0;
	return err ?: sealed_window__add(request->sealed, &request->facts, &compressed);
}

static int encode(const struct agent_window *window, const struct sink_encoding_options *options,
		  struct sealed_window *sealed)
{
	static const struct series_requests kind = {
		.series_max = SERIES_MAX,
		.size_max = REQUEST_MAX,
		.make = make,
		.add = add,
		.seal = seal,
	};
	const struct series_options series_options = {
		.counts = true,
		.name_all = options->name_all,
		.no_addresses = true, /* it forgets them */
		.samples_max = VALID_SAMPLES_MAX,
		.size_max = VALID_SIZE_MAX,
	};

	return series__seal(window, &series_options, &kind, sealed);
}

/* The body is empty, or the gzip of nothing; its type is the request's, if a proxy has left it. */
static enum sink_verdict judge_200(const struct http_answer *a)
{
	return answer__has_type(a, "application/proto") || (!*a->type && !a->size)
		       ? SINK_ACCEPTED
		       : SINK_NOT_A_BACKEND;
}

/*
 * "… exceeded while adding 2.1 MiB": more than the 2 MiB that Pyroscope takes at a time? Then its
 * burst is smaller than the request, now and the next time.
 */
static bool exceeds_burst(const struct http_answer *a)
{
	static const char before[] = "while adding ";
	const char *begin = a->body ? memmem(a->body, a->size, before, strlen(before)) : NULL;
	size_t left = begin ? (size_t)((const char *)a->body + a->size - begin) : 0;
	char text[40], unit[4];
	unsigned int whole, tenth = 0;
	bool found;

	snprintf(text, sizeof(text), "%.*s", (int)min_u64(left, sizeof(text) - 1),
		 begin ? begin : "");
	found = sscanf(text, "while adding %6u.%1u %3s", &whole, &tenth, unit) == 3 ||
		sscanf(text, "while adding %6u %3s", &whole, unit) == 2;
	explicit_bzero(text, sizeof(text)); /* answers may repeat credentials */
	if (!found)
		return false;
	return !strcmp(unit, "GiB") || (!strcmp(unit, "MiB") && 10 * whole + tenth > 20);
}

/* {"code":…,"message":…} */
static const struct answer_rule rules[] = {
	{400, "outside of ingestion window", NULL, SINK_TOO_OLD},
	{400, "ingestion window starts at", NULL, SINK_TOO_OLD},
	{400, "exceeds limit", NULL, SINK_TOO_BIG},
	{400, "too large", NULL, SINK_TOO_BIG},
	{429, NULL, exceeds_burst, SINK_TOO_BIG},
	{499, NULL, NULL, SINK_RETRY}, /* half of the request came: nothing of it is stored */
	{},
};

const struct sink_format pyroscope_format = {
	.name = "pyroscope",
	.encode = encode,
	.judge_200 = judge_200,
	.rules = rules,
	.empty = {"/push.v1.PusherService/Push", "application/proto", ""},
	.oldest = OLDEST,
};
