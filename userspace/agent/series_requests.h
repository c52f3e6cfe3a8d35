/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests made of series, for the backends that take pprof: as many series in one as it may have. */
#ifndef AGENT_SERIES_REQUESTS_H
#define AGENT_SERIES_REQUESTS_H

#include <stddef.h>

#include "agent/sealing.h"
#include "agent/series.h"

/* A request that is put together. */
struct series_request {
	struct sealed_window *sealed;
	struct bytes body;	    /* without compression */
	struct request_facts facts; /* series, samples and CPU time */
};

/* How a backend's requests are made of series. All return 0, -ENOMEM. */
struct series_requests {
	size_t series_max, size_max; /* of a request; one series alone may be larger */
	int (*make)(const struct series_part *part,
		    struct bytes *made); /* its bytes; *made is empty */
	int (*add)(struct series_request *request, const struct bytes *made);
	/* Fills in the other facts, and adds the request; its body is empty afterwards. */
	int (*seal)(struct series_request *request);
};

/* All series of a window, in as few requests as there can be. 0, -ENOMEM: *sealed is untouched then. */
int series__seal(const struct agent_window *window, const struct series_options *options,
		 const struct series_requests *kind, struct sealed_window *sealed);

#endif
