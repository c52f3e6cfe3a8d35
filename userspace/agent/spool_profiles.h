/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles of a service in requests that wait in a spool: for commands that read it while the agent runs. */
#ifndef AGENT_SPOOL_PROFILES_H
#define AGENT_SPOOL_PROFILES_H

#include "agent/agent_window.h"

/*
 * Calls `take` with each profile of the service, a file of pprof. 0; -EBADMSG; -EPROTONOSUPPORT: requests to this backend are not
 * read; -ENOMEM; what `take` returns.
 */
int sink_request__profiles(const struct sink_request *request, const char *service,
			   int (*take)(void *context, const void *pprof, size_t size),
			   void *context);

#endif
