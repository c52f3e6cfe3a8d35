/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent_window.h"

#include <stdlib.h>

#include "base/clocks.h"

uint64_t agent_window__visit_period(const struct agent_window *w)
{
	return NS_PER_SECOND / (w->profile->visits.hz ? w->profile->visits.hz : 1);
}

void sink_request__fini(struct sink_request *r)
{
	free(r->path);
	free(r->content_type);
	free(r->content_encoding);
	free(r->body);
	*r = (struct sink_request){};
}

void sealed_window__fini(struct sealed_window *w)
{
	for (size_t i = 0; i < w->request_count; i++)
		sink_request__fini(&w->requests[i]);
	free(w->requests);
	*w = (struct sealed_window){};
}
