/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbol server requests of the Firefox Profiler, answered as JSON.
 *
 * /source/v1, for the source view, returns a text file that the profile refers to. Other requests
 * get an error of the protocol, because our profiles have their symbols.
 */
#ifndef SERVE_SOURCE_API_H
#define SERVE_SOURCE_API_H

#include <stdbool.h>
#include <stddef.h>

#define API_REQUEST_MAX (64 * 1024)	  /* bytes of a request; more is refused */
#define SOURCE_MAX	(8 * 1024 * 1024) /* bytes of a source file */

/* Files that may be requested: absolute paths, sorted by strcmp(), owned by the caller. */
struct source_list {
	const char *const *paths;
	size_t count;
};

/* There is such a request ("source/v1"). */
bool source_api__has_request(const char *name);

/* *answer: *size bytes of JSON, {"error": …} if it fails; the caller frees. 0 or -ENOMEM. */
int source_api__answer(const struct source_list *sources, const char *name, const char *request,
		       size_t request_size, char **answer, size_t *size);

#endif
