/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer to /asm/v1 of the Firefox Profiler, out of a profile: samply's format. */
#ifndef FORMATS_OUT_FIREFOX_CODE_H
#define FORMATS_OUT_FIREFOX_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct json_writer;

/* Addresses are those of the library, as the Firefox file has them. */
struct firefox_code_request {
	const char *name, *debug_id; /* of the library; NULL: not given */
	uint64_t address, size;
	bool whole; /* up to the end of the function */
};

/* Writes the members of the answer. NULL, or a sentence why there is none: then nothing is written. */
const char *firefox_code(const struct profile *p, const struct firefox_code_request *request,
			 struct json_writer *w);

#endif
