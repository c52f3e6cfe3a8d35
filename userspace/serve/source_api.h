/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbol server's requests of the Firefox Profiler, answered as JSON.
 *
 * /source/v1 is for its source view: a request names a file, and gets it if the profile refers to it
 * and it is an ordinary text file. The other requests are answered with an error of the protocol, since
 * our profiles have their symbols already.
 */
#ifndef SERVE_SOURCE_API_H
#define SERVE_SOURCE_API_H

#include <stdbool.h>
#include <stddef.h>

#define API_REQUEST_MAX (64 * 1024)	  /* bytes of a request; more is refused */
#define SOURCE_MAX	(8 * 1024 * 1024) /* bytes of a source file */

/* The files that may be requested: absolute paths in the order of strcmp(). The texts are the caller's. */
struct source_list {
	const char *const *paths;
	size_t count;
};

/* Is there a request of that name ("source/v1")? */
bool source_api__has_request(const char *name);

/*
 * The answer to a request: JSON of *size bytes, which the caller frees. What is wrong with the request
 * is in the answer, as {"error": …}. 0 or -ENOMEM.
 */
int source_api__answer(const struct source_list *sources, const char *name, const char *request,
		       size_t request_size, char **answer, size_t *size);

#endif
