/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent_window.h"

#include <stdlib.h>

void sealed_window__fini(struct sealed_window *w)
{
	for (size_t i = 0; i < w->request_count; i++) {
		free(w->requests[i].path);
		free(w->requests[i].content_type);
		free(w->requests[i].content_encoding);
		free(w->requests[i].body);
	}
	free(w->requests);
	*w = (struct sealed_window){};
}
