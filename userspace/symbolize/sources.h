/* SPDX-License-Identifier: BSD-2-Clause */
/* The source files that machine code names: chosen, opened and checked. */
#ifndef SYMBOLIZE_SOURCES_H
#define SYMBOLIZE_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "symbolize/file_finder.h"
#include "symbolize/md5.h"

struct wanted_source {
	uint64_t samples; /* of the hottest function that has it, as symbolizer_job.code has them */
	uint32_t number;  /* in order of arrival */
	struct symbolizer_job *job;
	struct debug_file_request request; /* the module's */
	uint32_t reader;		   /* as file_finder__open_source() has it */
	const char *path;		   /* in the caller's events */
	char *decoded; /* the path, if `path` is the file URL of a script; NULL: it is none */
	uint8_t md5[MD5_SIZE];
	bool has_md5;
	uint64_t started; /* of a script, as symbolizer_script has it */
	bool is_script;	  /* else a module names it, whose file has a time */
	uint32_t before;  /* the request before it for the same text, 1 + its place; 0: none */
};

struct wanted_sources {
	VEC(struct wanted_source) list;
};

void wanted_sources__fini(struct wanted_sources *w);
/*
 * The EVENT_SOURCEs of checked events of code, which must live as long. `writers`: of the debug
 * information that names them. 0, -ENOMEM.
 */
int wanted_sources__add(struct wanted_sources *w, struct symbolizer_job *job,
			const struct debug_file_request *request,
			const struct debug_writers *writers, const void *events, size_t size);
/* What runtimes name. `job` gets its source, and lives as long. 0, -ENOMEM. */
int wanted_sources__add_script(struct wanted_sources *w, struct symbolizer_job *job,
			       const struct symbolizer_script *script);
/*
 * Opens them by the finder, the hottest first, and passes each path of each root once to its job, of
 * modules and of scripts apart, those that could not be read last. Another module's path is tried
 * again in that case. Its state is the worst for any of those that request it. Adds to left[] of each
 * reason. 0, -ENOMEM, or what a job returned. Equal roots have one descriptor.
 */
int wanted_sources__read(struct wanted_sources *w, struct file_finder *finder,
			 const struct symbolizer_options *options,
			 size_t left[static SOURCE_LOSS_COUNT]);

#endif
