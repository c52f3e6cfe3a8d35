/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/answers.h"

#include <string.h>
#include <strings.h>

#include "agent/http.h"
#include "agent/secret_memory.h"

#define BURST_TEXT "while adding "

static const char *find(const struct sink_answer *a, const char *text)
{
	return a->body ? memmem(a->body, a->size, text, strlen(text)) : NULL;
}

bool answer__says(const struct sink_answer *a, const char *text)
{
	return find(a, text) != NULL;
}

bool answer__has_type(const struct sink_answer *a, const char *type)
{
	return a->type && !strncasecmp(a->type, type, strlen(type));
}

bool answer__is_page(const struct sink_answer *a)
{
	/* those of proxies that say to come again are pages, too */
	return answer__has_type(a, "text/html") &&
	       (a->status < 400 || a->status == 400 || a->status == 500 || a->status == 501);
}

/* Else it is about what it or a collector could not read. */
static bool is_restarting(const struct sink_answer *a)
{
	return answer__says(a, "Unavailable") || answer__says(a, "empty ring");
}

enum sink_verdict answer__judge(const struct sink_answer *a)
{
	switch (a->status) {
	case 0:
		return a->sent ? SINK_AMBIGUOUS : SINK_RETRY;
	case 401:
	case 403:
	case 407:
		return SINK_UNAUTHORIZED;
	case 408:
	case 425:
	case 429:
	case 502:
	case 503:
		return SINK_RETRY;
	case 413:
		return SINK_TOO_BIG;
	case 504:
		return SINK_AMBIGUOUS;
	case 400:
	case 422:
		return answer__is_page(a) ? SINK_NOT_A_BACKEND : SINK_REJECTED;
	case 500:
		if (answer__is_page(a))
			return SINK_NOT_A_BACKEND;
		return is_restarting(a) ? SINK_RETRY : SINK_RETRY_FEW;
	case 501: /* servers that take nothing say so */
	case 505:
		return SINK_NOT_A_BACKEND;
	default:
		/* no such path, another method or type, a redirection */
		return a->status < 500 || answer__is_page(a) ? SINK_NOT_A_BACKEND : SINK_RETRY_FEW;
	}
}

enum sink_verdict answer__judge_by(const struct sink_answer *a, judge_function judge_200,
				   judge_function judge_failure)
{
	if (!a->status || answer__is_page(a))
		return answer__judge(a);
	return a->status == 200 ? judge_200(a) : judge_failure(a);
}

_zero_registers_ enum sink_verdict answer__judge_http(const struct sink_format *format,
						      const struct http_answer *a)
{
	const struct sink_answer answer = {
		.status = a->status,
		.sent = a->sent,
		.type = a->type,
		.body = a->body,
		.size = a->size,
		.retry_after = a->retry_after,
	};

	return a->credentials_unreadable ? SINK_UNAUTHORIZED : format->judge(&answer);
}

/* In 1/10 of the unit, since that is how many digits there are; 0: no number. */
static uint64_t tenths_of(const char **text, const char *end)
{
	uint64_t value = 0;
	bool any = false;

	for (; *text < end && **text >= '0' && **text <= '9' && value < UINT64_MAX / 100; ++*text) {
		value = value * 10 + (uint64_t)(**text - '0');
		any = true;
	}
	value *= 10;
	if (any && *text + 1 < end && **text == '.' && (*text)[1] >= '0' && (*text)[1] <= '9') {
		value += (uint64_t)((*text)[1] - '0');
		*text += 2;
	}
	return value;
}

bool answer__exceeds_burst(const struct sink_answer *a)
{
	const char *end = a->body ? (const char *)a->body + a->size : NULL;
	const char *text = find(a, BURST_TEXT);
	uint64_t tenths;

	if (!text)
		return false;
	text += strlen(BURST_TEXT);
	tenths = tenths_of(&text, end);
	if (end - text >= 4 && !memcmp(text, " GiB", 4))
		return tenths > 0;
	return end - text >= 4 && !memcmp(text, " MiB", 4) && tenths > 20;
}
