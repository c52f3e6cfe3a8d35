/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_SCRIPT_H
#define RUNTIMES_V8_SCRIPT_H

#include <stdint.h>

struct v8_reader;
struct v8_scripts;

/*
 * Scripts of V8: their names, and the lines of places in their source. V8 itself computes lines
 * only on demand. So mostly they are counted in the source, once per script, and the ends of lines
 * are kept: of the last used scripts that fit into the cache (16 MB, beside one script).
 */

#define V8_SOURCE_MAX (16u << 20) /* characters; a longer one has no lines */

struct v8_script {
	uint64_t address, source; /* tagged. Its identity, with `id`, which each isolate counts */
	int32_t id;
	int32_t line_offset, column_offset; /* of what is before the source in its file */
	char *url;			    /* "": it has none */
	uint32_t *ends; /* positions of the ends of lines, ascending; NULL: not counted */
	uint32_t line_count;
	uint32_t last_line; /* that was looked up, from 0 on */
	uint8_t counted;    /* its lines are counted, or never will be */
	uint64_t last_use;
};

struct v8_scripts *v8_scripts__new(void); /* NULL: no memory */
void v8_scripts__free(struct v8_scripts *scripts);

/*
 * The script at this word. It is the cache's, and valid until the next look-up. 0; -ENODATA: none;
 * -EAGAIN: its name is just being changed; -ENOMEM; or as target_memory__read().
 */
int v8_script__find(struct v8_reader *r, uint64_t script, struct v8_script **found);

/*
 * The place of a position in its source: 1-based, columns in units of UTF-16 as V8 counts them; 0,
 * 0: unknown. 0; -ENOMEM, or what kept it from being counted now.
 */
int v8_script__place(struct v8_reader *r, struct v8_script *s, int32_t position, uint32_t *line,
		     uint32_t *column);

#endif
