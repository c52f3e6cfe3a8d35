/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, and the words of verdicts. */
#include "agent/sink_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	static const char *const texts[] = {
#define X(id, text) text,
		SINK_VERDICTS(X)
#undef X
	};

	return verdict < SINK_VERDICT_COUNT ? texts[verdict] : "unknown";
}

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
