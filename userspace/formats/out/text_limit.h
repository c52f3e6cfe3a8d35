/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long names may be in formats that write them again for each frame.
 *
 * A name of some kilobytes takes eight bytes of a recording for each stack that has it. So a file
 * may have TEXT_FREE bytes of names, and TEXT_EACH for each frame of each sample. If it would have
 * more, names are cut to the longest of a few lengths that fits. Known programs stay far below:
 * names have 50 to 300 bytes, and samples share most frames. The shortest length is enough, because
 * the frames of a profile are bounded, inlined ones included (profile/profile_finish.c).
 */
#ifndef FORMATS_OUT_TEXT_LIMIT_H
#define FORMATS_OUT_TEXT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/exporter.h>

#include "formats/out/tracks.h"

#define TEXT_FREE     (4u << 20)
#define TEXT_EACH     1024u
#define TEXT_CUT_SIZE (4096 + 4) /* what text_limit__cut() needs */

/* Of a text: its bytes, and what they may be in a file, escaped. */
struct text_size {
	uint32_t plain, escaped;
};

struct text_limit {
	const struct profile *p;
	bool files;		 /* names of files count as well */
	unsigned int step;	 /* number of the limit; 0: none */
	uint64_t most;		 /* bytes */
	struct text_size *sizes; /* by string; 0: not measured yet */
	uint64_t *of_location;	 /* the same of locations */
	uint64_t names_cut;	 /* counted by text_limit__cut() */
};

/* No limit. 0, -ENOMEM; to be finished in any case. */
int text_limit__init(struct text_limit *limit, const struct profile *p, bool files);
void text_limit__fini(struct text_limit *limit);

/* The next limit, if there are too many bytes. False: there are not, or it is the tightest. */
bool text_limit__tighten(struct text_limit *limit, uint64_t bytes);

/* Tightens it until a call tree of each of these threads fits. 0, -ENOMEM. */
int text_limit__fit_trees(struct text_limit *limit, const struct tracks *threads);

struct text_size text_size_of(const char *text);
/* Bytes of it in a file, if it is cut. */
uint64_t text_limit__bytes(const struct text_limit *limit, struct text_size size);

/* Bytes of all frames of a location, a separator each. */
uint64_t text_limit__location(struct text_limit *limit, struct location_id id);

/* The name, or in `buffer` as much of it as there may be. */
const char *text_limit__cut(struct text_limit *limit, const char *name, char buffer[TEXT_CUT_SIZE]);
/* Into the request. */
void text_limit__report(const struct text_limit *limit, const struct export_request *request);

/* How many bytes of names a file of this profile may have. */
uint64_t text_limit_of(const struct profile *p);

#endif
