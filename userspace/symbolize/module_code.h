/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine code of a module's hot functions, and the lines of it. */
#ifndef SYMBOLIZE_MODULE_CODE_H
#define SYMBOLIZE_MODULE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "stream/event_queue.h"

struct module;

/* A sampled file offset. */
struct code_address {
	uint64_t offset;
	uint32_t self, samples; /* as in symbolizer_job */
};

#define MODULE_CODE_MAX (16u << 20) /* bytes of one module's functions */

/*
 * Passes on the events of stream/code_events.h of the functions in at least `least` samples, as
 * symbolizer_job.code gets them, the hottest first. Among them an EVENT_SOURCE for each new file
 * of lines, which has the file's MD5 (16 bytes), or one byte if that is not known, as its text. After
 * module__resolve(), or alone. 0; -ENOMEM; what `push` returned.
 */
int module__code(struct module *m, const struct code_address *addresses, size_t count,
		 uint32_t least, event_push_fn push, void *context);

#endif
