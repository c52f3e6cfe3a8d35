/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *agent_service__label(const struct agent_service *service, const char *name)
{
	for (size_t i = 0; i < service->label_count; i++)
		if (!strcmp(service->labels[i].name, name))
			return service->labels[i].value;
	return NULL;
}

void sink_request__fini(struct sink_request *r)
{
	free(r->path);
	free(r->content_type);
	free(r->content_encoding);
	free(r->body);
	*r = (struct sink_request){};
}

int sink_request__copy(const struct sink_request *from, struct sink_request *to)
{
	struct sink_request copy = *from;

	copy.path = strdup(from->path);
	copy.content_type = strdup(from->content_type);
	copy.content_encoding = strdup(from->content_encoding);
	copy.body = malloc(from->size ? from->size : 1);
	if (!copy.path || !copy.content_type || !copy.content_encoding || !copy.body) {
		sink_request__fini(&copy);
		return -ENOMEM;
	}
	if (from->size)
		memcpy(copy.body, from->body, from->size);
	*to = copy;
	return 0;
}

void sealed_window__fini(struct sealed_window *w)
{
	for (size_t i = 0; i < w->request_count; i++)
		sink_request__fini(&w->requests[i]);
	free(w->requests);
	*w = (struct sealed_window){};
}
