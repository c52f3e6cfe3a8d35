/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SPOOL_PROFILES_H
#define AGENT_SPOOL_PROFILES_H

#include <stddef.h>

struct sink_request;

/*
 * Calls `take` with each pprof file of the service in a request. 0; -EBADMSG; -EPROTONOSUPPORT:
 * requests to this backend are not read; -ENOMEM; or what `take` returned.
 */
int sink_request__profiles(const struct sink_request *request, const char *service,
			   int (*take)(void *context, const void *pprof, size_t size),
			   void *context);

#endif
