/* SPDX-License-Identifier: BSD-2-Clause */
/* What each answer means that a backend was seen to give. */

#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "agent/retry.h"
#include "agent/sink_format.h"

#define JSON  "application/json"
#define PROTO "application/proto"
#define OTLP  "application/x-protobuf"
#define HTML  "text/html; charset=utf-8"
#define TEXT  "text/plain; charset=utf-8"
#define P500                                                                                       \
	"{\"code\":\"unknown\",\"message\":\"rpc error: code = Unavailable desc = service is unavailable\"}"

struct seen {
	const char *format;
	long status;
	const char *type, *body;
	enum sink_verdict verdict;
};

static const struct seen table[] = {
	/* Pyroscope */
	{"pyroscope", 200, PROTO, "", SINK_ACCEPTED},
	{"pyroscope", 200, PROTO, "\x1f\x8b\x08 the gzip of nothing", SINK_ACCEPTED},
	{"pyroscope", 200, HTML, "<html>", SINK_NOT_A_BACKEND},
	{"pyroscope", 200, "", "", SINK_ACCEPTED},
	{"pyroscope", 200, TEXT, "", SINK_NOT_A_BACKEND},
	{"pyroscope", 200, TEXT, "ok", SINK_NOT_A_BACKEND},
	{"pyroscope", 200, "application/grpc", "x", SINK_NOT_A_BACKEND},
	{"pyroscope", 204, "", "", SINK_NOT_A_BACKEND},
	{"pyroscope", 302, HTML, "", SINK_NOT_A_BACKEND},
	{"pyroscope", 400, JSON,
	 "{\"code\":\"invalid_argument\",\"message\":\"invalid labels '{node=\\\"a\\\"}' with error: invalid "
	 "metric name\"}",
	 SINK_REJECTED},
	{"pyroscope", 400, JSON,
	 "{\"code\":\"invalid_argument\",\"message\":\"profile with labels '{}' is outside of ingestion "
	 "window (profile timestamp: 2026-11-21 08:00:00, the ingestion window starts at 2026-11-21 09:00:00 "
	 "and ends at 2026-11-21 10:10:00)\"}",
	 SINK_TOO_OLD},
	{"pyroscope", 400, JSON,
	 "{\"code\":\"invalid_argument\",\"message\":\"uncompressed profile payload size exceeds limit of "
	 "4.2 MB\"}",
	 SINK_TOO_BIG},
	{"pyroscope", 400, JSON,
	 "{\"code\":\"invalid_argument\",\"message\":\"no profiles received\"}", SINK_REJECTED},
	{"pyroscope", 400, HTML, "<html>sent to an HTTPS port", SINK_NOT_A_BACKEND},
	{"pyroscope", 401, JSON, "{\"code\":\"unauthenticated\",\"message\":\"no org id\"}",
	 SINK_UNAUTHORIZED},
	{"pyroscope", 401, HTML, "<html>", SINK_UNAUTHORIZED},
	{"pyroscope", 403, TEXT, "", SINK_UNAUTHORIZED},
	{"pyroscope", 404, TEXT, "404 page not found", SINK_NOT_A_BACKEND},
	{"pyroscope", 405, TEXT, "", SINK_NOT_A_BACKEND},
	{"pyroscope", 413, HTML, "", SINK_TOO_BIG},
	{"pyroscope", 415, "", "", SINK_NOT_A_BACKEND},
	{"pyroscope", 429, JSON,
	 "{\"code\":\"resource_exhausted\",\"message\":\"push rate limit (4.0 MiB) exceeded while adding 2.1 "
	 "MiB\"}",
	 SINK_TOO_BIG},
	{"pyroscope", 429, JSON,
	 "{\"code\":\"resource_exhausted\",\"message\":\"push rate limit (4.0 MiB) exceeded while adding 512 "
	 "KiB\"}",
	 SINK_RETRY},
	{"pyroscope", 429, JSON,
	 "{\"code\":\"resource_exhausted\",\"message\":\"push rate limit (4.0 MiB) exceeded while adding 1.8 "
	 "MiB\"}",
	 SINK_RETRY},
	{"pyroscope", 429, HTML, "<html>", SINK_RETRY},
	{"pyroscope", 499, JSON, "{\"code\":\"canceled\"}", SINK_RETRY},
	{"pyroscope", 500, JSON, P500, SINK_RETRY},
	{"pyroscope", 500, JSON, "{\"code\":\"unknown\",\"message\":\"empty ring\"}", SINK_RETRY},
	{"pyroscope", 500, JSON,
	 "{\"code\":\"unknown\",\"message\":\"proto: cannot parse invalid wire-format data\"}",
	 SINK_RETRY_FEW},
	{"pyroscope", 500, JSON, "{\"code\":\"unknown\",\"message\":\"gzip reset: EOF\"}",
	 SINK_RETRY_FEW},
	{"pyroscope", 501, HTML, "<html>Unsupported method", SINK_NOT_A_BACKEND},
	{"pyroscope", 502, HTML, "<html>", SINK_RETRY},
	{"pyroscope", 503, TEXT, "", SINK_RETRY},
	{"pyroscope", 504, JSON, "{\"code\":\"deadline_exceeded\"}", SINK_AMBIGUOUS},
	/* Parca, the JSON door */
	{"parca", 200, JSON, "{}", SINK_ACCEPTED},
	{"parca", 200, JSON, "{}\n", SINK_ACCEPTED},
	{"parca", 200, HTML, "<!doctype html>", SINK_NOT_A_BACKEND},
	{"parca", 200, JSON, "", SINK_NOT_A_BACKEND},
	{"parca", 200, JSON, "{\"status\":\"success\"}", SINK_NOT_A_BACKEND},
	{"parca", 400, JSON, "{\"code\":3,\"message\":\"missing __name__ label\",\"details\":[]}",
	 SINK_REJECTED},
	{"parca", 400, JSON, "{\"code\":3,\"message\":\"read tcp: i/o timeout\",\"details\":[]}",
	 SINK_RETRY},
	{"parca", 401, JSON, "", SINK_UNAUTHORIZED},
	{"parca", 404, TEXT, "", SINK_NOT_A_BACKEND},
	{"parca", 429, JSON, "{\"code\":8,\"message\":\"grpc: received message larger than max\"}",
	 SINK_TOO_BIG},
	{"parca", 429, TEXT, "slow down", SINK_RETRY},
	{"parca", 500, JSON,
	 "{\"code\":2,\"message\":\"invalid profile type at row 0 (my-cpu:cpu:nanoseconds): parse error\"}",
	 SINK_REJECTED},
	{"parca", 500, JSON, "{\"code\":2,\"message\":\"something else\"}", SINK_RETRY_FEW},
	{"parca", 503, JSON, "{\"code\":14}", SINK_RETRY},
	{"parca", 504, JSON, "{\"code\":4}", SINK_AMBIGUOUS},
	{"parca", 505, TEXT, "", SINK_NOT_A_BACKEND},
	/* OTLP: a collector, Pyroscope, and Parca's page */
	{"otlp", 200, OTLP, "", SINK_ACCEPTED},
	{"otlp", 200, "", "", SINK_ACCEPTED},
	{"otlp", 200, OTLP, "\x12\x01x", SINK_NOT_A_BACKEND},
	{"otlp", 200, OTLP, "not protobuf at all", SINK_NOT_A_BACKEND},
	{"otlp", 200, OTLP, "\x0a\x02\x08\x03", SINK_REJECTED},
	{"otlp", 200, OTLP, "\x0a\x06\x12\x04hint", SINK_ACCEPTED},
	{"otlp", 200, JSON, "{\"partialSuccess\":{}}", SINK_ACCEPTED},
	{"otlp", 200, JSON, "{\"partialSuccess\":{\"rejectedProfiles\":\"2\"}}", SINK_REJECTED},
	{"otlp", 200, HTML, "<!doctype html>", SINK_NOT_A_BACKEND},
	{"otlp", 400, OTLP, "\x08\x03\x12\x10wrong wireType = 2 for field", SINK_REJECTED},
	{"otlp", 400, OTLP, "\x08\x03\x12\x10http: request body too large", SINK_TOO_BIG},
	{"otlp", 400, TEXT, "failed to push: profile is outside of ingestion window", SINK_TOO_OLD},
	{"otlp", 401, OTLP, "\x08\x10", SINK_UNAUTHORIZED},
	{"otlp", 404, TEXT, "404 page not found", SINK_NOT_A_BACKEND},
	{"otlp", 413, TEXT, "", SINK_TOO_BIG},
	{"otlp", 415, TEXT, "unsupported media type", SINK_NOT_A_BACKEND},
	{"otlp", 429, OTLP, "\x08\x08", SINK_RETRY},
	{"otlp", 500, TEXT, "missing profile metadata dictionary", SINK_RETRY_FEW},
	{"otlp", 500, TEXT, "rpc error: code = Unavailable desc = service is unavailable",
	 SINK_RETRY},
	{"otlp", 503, OTLP,
	 "\x08\x0e\x12\x10"
	 "data refused due to high memory usage",
	 SINK_RETRY},
	{"otlp", 504, OTLP, "", SINK_AMBIGUOUS},
};

static enum sink_verdict judge(const char *format, const struct sink_answer *answer)
{
	return sink_format__judge(sink_format__find(format), answer);
}

TEST(recorded_answers_of_backends_get_their_verdicts)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct seen *s = &table[i];
		const struct sink_answer answer = {.status = s->status,
						   .sent = true,
						   .type = s->type,
						   .body = s->body,
						   .size = strlen(s->body)};
		enum sink_verdict verdict = judge(s->format, &answer);

		if (verdict != s->verdict)
			fail_msg("%s %ld %s %s: %s, not %s", s->format, s->status, s->type, s->body,
				 sink_verdict_text(verdict), sink_verdict_text(s->verdict));
	}
}

/* A collector's ordinary answer has a 0 in it. */
TEST(partial_success_without_rejections_is_accepted)
{
	static const char body[] = {0x0a, 0x00}, none[] = {0x0a, 0x02, 0x08, 0x00};
	const struct sink_answer answer = {
		.status = 200, .sent = true, .type = OTLP, .body = body, .size = sizeof(body)};
	const struct sink_answer zero = {
		.status = 200, .sent = true, .type = OTLP, .body = none, .size = sizeof(none)};

	assert_int_equal(judge("otlp", &answer), SINK_ACCEPTED);
	assert_int_equal(judge("otlp", &zero), SINK_ACCEPTED);
}

/* Parca answers 429 if a request is too large; with Retry-After it is to be repeated. */
TEST(status_429_with_retry_after_is_retried)
{
	static const char body[] = "{\"code\":8,\"message\":\"x\"}";
	struct sink_answer answer = {
		.status = 429, .sent = true, .type = JSON, .body = body, .size = sizeof(body) - 1};

	assert_int_equal(judge("parca", &answer), SINK_TOO_BIG);
	answer.retry_after = 7000000000;
	assert_int_equal(judge("parca", &answer), SINK_RETRY);
	assert_int_equal(judge("pyroscope", &answer), SINK_RETRY);
	assert_int_equal(judge("otlp", &answer), SINK_RETRY);
}

TEST(no_answer_is_ambiguous_if_the_request_was_sent)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};

	for (size_t i = 0; i < 3; i++) {
		const struct sink_answer refused = {.type = ""}, lost = {.type = "", .sent = true};

		assert_int_equal(judge(formats[i], &refused), SINK_RETRY);
		assert_int_equal(judge(formats[i], &lost), SINK_AMBIGUOUS);
	}
}

/* Whatever the status and the bytes: a verdict, and nothing but each backend's own word is success. */
TEST(garbage_is_no_success_at_any_status)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};
	char body[64];

	for (long status = 100; status < 1000; status++) {
		for (size_t i = 0; i < sizeof(body); i++)
			body[i] = (char)(status * 31 + (long)i * 7);
		for (size_t i = 0; i < 3; i++) {
			const struct sink_answer answer = {.status = status,
							   .sent = true,
							   .type = TEXT,
							   .body = body,
							   .size = sizeof(body)};
			enum sink_verdict verdict = judge(formats[i], &answer);

			assert_in_range(verdict, 0, SINK_VERDICT_COUNT - 1);
			assert_int_not_equal(verdict, SINK_ACCEPTED);
		}
	}
}
