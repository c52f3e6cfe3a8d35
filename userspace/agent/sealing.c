/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sealing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
