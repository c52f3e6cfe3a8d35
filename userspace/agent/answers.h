/* SPDX-License-Identifier: BSD-2-Clause */
/* What answers of all backends have in common. */
#ifndef AGENT_ANSWERS_H
#define AGENT_ANSWERS_H

#include <stdbool.h>

#include "agent/sink_format.h"

/*
 * By the status, as HTTP has it, and proxies. 500 is also what a Pyroscope answers that starts or stops, for half a
 * minute. Never ACCEPTED: each backend has its own sign of success.
 */
enum sink_verdict answer__judge(const struct sink_answer *a);

typedef enum sink_verdict (*judge_function)(const struct sink_answer *a);

/* By judge_200 if it is one of 200, by judge_failure otherwise; no answer and pages for people are the same for all. */
enum sink_verdict answer__judge_by(const struct sink_answer *a, judge_function judge_200,
				   judge_function judge_failure);

struct http_answer;

/* What the format makes of an answer; unauthorized, if credentials could not be read. */
enum sink_verdict answer__judge_http(const struct sink_format *format, const struct http_answer *a);

/* Does its body contain the text, which is a few words of ASCII? */
bool answer__says(const struct sink_answer *a, const char *text);

/* Does its Content-Type begin so? */
bool answer__has_type(const struct sink_answer *a, const char *type);

/* A page for people, whatever its status: backends give none to a client that pushes, proxies and other servers do. */
bool answer__is_page(const struct sink_answer *a);

/* "… exceeded while adding 2.1 MiB": is that more than the 2 MiB that Pyroscope takes at a time? */
bool answer__exceeds_burst(const struct sink_answer *a);

#endif
