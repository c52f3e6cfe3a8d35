/* SPDX-License-Identifier: BSD-2-Clause */
/* What each answer means that a backend was seen to give. */
#include "text_cases.h"
#include "agent/retry.h"
#include "agent/sink_format.h"

#define JSON  "application/json"
#define PROTO "application/proto"
#define OTLP  "application/x-protobuf"
#define HTML  "text/html; charset=utf-8"
#define TEXT  "text/plain; charset=utf-8"

static enum sink_verdict judge(const char *format, const struct http_answer *answer)
{
	return sink_format__judge(sink_format__find(format), answer);
}

/* Format, status or what became of the request, type, body. */
static void judge_input(FILE *out, char *input)
{
	static const char *const types[][2] = {{"json", JSON}, {"proto", PROTO}, {"otlp", OTLP},
					       {"html", HTML}, {"text", TEXT},	 {"none", ""}};
	struct http_answer answer = {.sent = true, .body = ""};
	const char *end = input + text_size, *format = strsep(&input, " ");
	const char *status = strsep(&input, " "), *type = strsep(&input, " ");

	answer.sent = strcmp(status, "refused") != 0;
	answer.status = strtol(status, NULL, 10);
	if (type && !strcmp(type, "again"))
		type = "json", answer.retry_after = 7000000000;
	snprintf(answer.type, sizeof(answer.type), "%s", type ? type : "");
	for (size_t i = 0; type && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i][0]))
			strcpy(answer.type, types[i][1]);
	if (input)
		answer.body = input, answer.size = (size_t)(end - input);
	fputs(sink_verdict_text(judge(format, &answer)), out);
}

/* "RETRY-AFTER; DATE": in seconds, at 784111777 by our clock, or as in "at 5; ...". */
static void wait_for_it(FILE *out, char *input)
{
	uint64_t now = 784111777, ns;
	char *date;

	if (!strncmp(input, "at ", 3))
		now = strtoull(strsep(&input, ";") + 3, NULL, 10), input++;
	date = strstr(input, "; ");
	if (date)
		*date = '\0';
	ns = retry_after(input, date ? date + 2 : NULL, now * 1000000000);
	if (ns == RETRY_AFTER_MAX)
		fputs("the most", out);
	else
		fprintf(out, "%" PRIu64, ns / 1000000000);
}

static void read_date(FILE *out, char *input)
{
	int64_t seconds = -1;
	int err = parse_http_date(input, &seconds);

	err ? text_put_error(out, err) : (void)fprintf(out, "%" PRId64, seconds);
	assert_true(!err || seconds == -1);
}

static const struct text_verb verbs[] = {
	{"judge", judge_input}, {"retry after", wait_for_it}, {"date", read_date}, {}};

TEXT_TABLE("agent_answers", verbs, NULL, NULL);

/* Whatever the status and the bytes: a verdict, and nothing but each backend's own word is success. */
TEST(garbage_is_no_success_at_any_status)
{
	static const char *const formats[] = {"pyroscope", "parca", "otlp"};
	char body[64];

	for (long status = 100; status < 1000; status++) {
		for (size_t i = 0; i < sizeof(body); i++)
			body[i] = (char)(status * 31 + (long)i * 7);
		for (size_t i = 0; i < 3; i++) {
			const struct http_answer answer = {.status = status,
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
