/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, and what is the same for all: verdicts, and how requests are kept. */
#include "agent/sink_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/secret_memory.h"
#include "base/list_column.h"

static const struct sink_format *const table[] = {&pyroscope_format, &parca_format, &otlp_format,
						  &dir_format, NULL};

const struct sink_format *const *sink_formats(void)
{
	return table;
}

const struct sink_format *sink_format__find(const char *name)
{
	for (size_t i = 0; table[i]; i++)
		if (!strcmp(table[i]->name, name))
			return table[i];
	return NULL;
}

const char *sink_verdict_text(enum sink_verdict verdict)
{
	static const char *const texts[] = {SINK_VERDICTS(SECOND_COLUMN)};

	return verdict < SINK_VERDICT_COUNT ? texts[verdict] : "unknown";
}

/* ---- answers --------------------------------------------------------------------------------- */

bool answer__says(const struct http_answer *a, const char *text)
{
	return a->body && memmem(a->body, a->size, text, strlen(text));
}

bool answer__has_type(const struct http_answer *a, const char *type)
{
	return !strncasecmp(a->type, type, strlen(type));
}

/* Proxies' pages that mean "try again" are judged by their status. */
static bool is_page(const struct http_answer *a)
{
	return answer__has_type(a, "text/html") &&
	       (a->status < 400 || a->status == 400 || a->status == 500 || a->status == 501);
}

/* 500 is also what a Pyroscope answers that starts or stops, for half a minute. */
static const struct answer_rule http_rules[] = {
	{400, NULL, NULL, SINK_REJECTED},
	{401, NULL, NULL, SINK_UNAUTHORIZED},
	{403, NULL, NULL, SINK_UNAUTHORIZED},
	{407, NULL, NULL, SINK_UNAUTHORIZED},
	{408, NULL, NULL, SINK_RETRY},
	{413, NULL, NULL, SINK_TOO_BIG},
	{422, NULL, NULL, SINK_REJECTED},
	{425, NULL, NULL, SINK_RETRY},
	{429, NULL, NULL, SINK_RETRY},
	{500, "Unavailable", NULL, SINK_RETRY},
	{500, "empty ring", NULL, SINK_RETRY},
	{501, NULL, NULL, SINK_NOT_A_BACKEND}, /* servers that take nothing say so */
	{502, NULL, NULL, SINK_RETRY},
	{503, NULL, NULL, SINK_RETRY},
	{504, NULL, NULL, SINK_AMBIGUOUS},
	{505, NULL, NULL, SINK_NOT_A_BACKEND},
	{},
};

static const struct answer_rule *find_rule(const struct answer_rule *rules,
					   const struct http_answer *a)
{
	for (; rules && rules->status; rules++)
		if (rules->status == a->status && (!rules->text || answer__says(a, rules->text)) &&
		    (!rules->fits || rules->fits(a)))
			return rules;
	return NULL;
}

_zero_registers_ enum sink_verdict sink_format__judge(const struct sink_format *format,
						      const struct http_answer *a)
{
	const struct answer_rule *rule;

	if (a->credentials_unreadable)
		return SINK_UNAUTHORIZED;
	if (!a->status)
		return a->sent ? SINK_AMBIGUOUS : SINK_RETRY;
	if (is_page(a))
		return SINK_NOT_A_BACKEND;
	if (a->status == 200)
		return format->judge_200(a);
	rule = find_rule(format->rules, a) ?: find_rule(http_rules, a);
	if (rule)
		return rule->verdict;
	/* no such path, another method or type, a redirection; from 500 on, it could not read it */
	return a->status < 500 ? SINK_NOT_A_BACKEND : SINK_RETRY_FEW;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct sealed_window sealed_window__of(const struct agent_window *window)
{
	return (struct sealed_window){
		.number = window->number,
		.start_realtime = window->start_realtime,
		.end_realtime = window->end_realtime,
	};
}

int sealed_window__add(struct sealed_window *sealed, const struct request_facts *facts,
		       struct bytes *body)
{
	struct sink_request *requests = reallocarray(sealed->requests, sealed->request_count + 1,
						     sizeof(*requests));
	struct sink_request *request;

	if (!requests) {
		free(body->data);
		*body = (struct bytes){};
		return -ENOMEM;
	}
	sealed->requests = requests;
	request = &requests[sealed->request_count++];
	*request = (struct sink_request){
		.path = strdup(facts->path),
		.content_type = strdup(facts->content_type),
		.content_encoding = strdup(facts->content_encoding),
		.body = body->data,
		.size = body->count,
		.samples = facts->samples,
		.cpu_ns = facts->cpu_ns,
		.series = facts->series,
	};
	*body = (struct bytes){};
	return request->path && request->content_type && request->content_encoding ? 0 : -ENOMEM;
}
