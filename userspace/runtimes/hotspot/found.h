/* SPDX-License-Identifier: BSD-2-Clause */
/* HotSpot in a process, as a reader has found it, and the answers about its frames: between the files of this folder. */
#ifndef RUNTIMES_HOTSPOT_FOUND_H
#define RUNTIMES_HOTSPOT_FOUND_H

#include "runtimes/answers_private.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/unloads.h"

extern const struct runtime java_runtime;

/* runtime_finding.flags: enum hotspot_flag of the frame pointers, and … */
#define HOTSPOT_FOUND_POINTERS 3u
#define HOTSPOT_FOUND_METHODS  4u /* methods are named */

struct hotspot_found {
	bool is_read;		      /* layout, and code, which refers to it */
	struct target_memory *memory; /* of the request */
	struct hotspot_layout layout;
	struct hotspot_code code;
	struct hotspot_unloads unloads;
	struct runtime_hotspot words;
};

/* As runtime_memory.answer. found->memory is set. */
int hotspot_answers__method(struct code_answers *answers, struct hotspot_found *found,
			    const struct code_question *q);
int hotspot_answers__code(struct code_answers *answers, struct hotspot_found *found,
			  const struct code_question *q);

#endif
