/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_HOTSPOT_ANSWERS_H
#define RUNTIMES_HOTSPOT_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/runtime_info.h>

#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/known.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/table.h"

struct code_answers;
struct code_question;

/*
 * Have classes been unloaded since a sample? If not, a Method is still the same: its memory is
 * reused only after its class has gone, and the JVM counts that before.
 */

/*
 * The address of an 8-byte counter in a JVM's PerfMemory, which jstat reads. "sun.ci.totalCompiles"
 * counts nmethods, not native wrappers. 0; -ENOENT: none (-XX:-UsePerfData); or as reading fails.
 */
int hotspot_counter__find(const struct hotspot_layout *layout, struct target_memory *memory,
			  const char *name, uint64_t *address);

/* Begins as {}. */
struct hotspot_unloads {
	uint64_t counter; /* its address; 0: there is none */
	bool was_searched, is_known;
	uint64_t count;
	uint64_t since; /* CLOCK_MONOTONIC ns: unchanged since then, at least */
};

/* Reads the counter. Where there is none nothing will be known. */
void hotspot_unloads__look(struct hotspot_unloads *u, const struct hotspot_layout *layout,
			   struct target_memory *memory);

/* HotSpot in a process and answers about its frames: shared by the files of this folder. */

extern const struct runtime java_runtime;

/* runtime_finding.flags: enum hotspot_flag of the frame pointers, and … */
#define HOTSPOT_FOUND_POINTERS 3u
#define HOTSPOT_FOUND_METHODS  4u /* methods are named */
#define HOTSPOT_FOUND_GAPS     8u /* only calls and polls are described */

struct hotspot_found {
	bool is_read;		      /* layout, and code, which refers to it */
	struct target_memory *memory; /* of the request */
	struct hotspot_layout layout;
	struct hotspot_code code;
	struct hotspot_unloads unloads;
	struct hotspot_known known;
	struct runtime_hotspot words;
};

/* As runtime_memory.answer. found->memory is set. */
int hotspot_answers__method(struct code_answers *answers, struct hotspot_found *found,
			    const struct code_question *q);
int hotspot_answers__code(struct code_answers *answers, struct hotspot_found *found,
			  const struct code_question *q);

#endif
