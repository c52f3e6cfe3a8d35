/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbol server requests of the Firefox Profiler, answered as JSON.
 *
 * /source/v1, for the source view, returns the text of a file: that in the profile, else that of a file
 * on this machine which the profile refers to. /asm/v1 returns the instructions of a function that the
 * profile has the code of. Other requests get an error of the protocol, because our profiles have
 * their symbols.
 */
#ifndef SERVE_SOURCE_API_H
#define SERVE_SOURCE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_REQUEST_MAX (64 * 1024)	  /* bytes of a request; more is refused */
#define SOURCE_MAX	(8 * 1024 * 1024) /* bytes of a source file */

struct json_writer;

/* A request for instructions. */
struct code_request {
	const char *name, *debug_id; /* of a library; NULL: not given */
	uint64_t address, size;
	bool whole; /* up to the end of the function */
};

/*
 * Files that may be requested: absolute paths, sorted by strcmp(), owned by the caller; and what the
 * profile has itself.
 */
struct source_list {
	const char *const *paths;
	size_t count;
	void *context;
	/* The text of a file; NULL: the profile has none. */
	const char *(*text)(void *context, const char *path);
	/* Writes the members of the answer. NULL, or a sentence why there is none. */
	const char *(*code)(void *context, const struct code_request *request,
			    struct json_writer *w);
};

/* There is such a request ("source/v1"). */
bool source_api__has_request(const char *name);

/* *answer: *size bytes of JSON, {"error": …} if it fails; the caller frees. 0 or -ENOMEM. */
int source_api__answer(const struct source_list *sources, const char *name, const char *request,
		       size_t request_size, char **answer, size_t *size);

#endif
