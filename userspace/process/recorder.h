/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One window: from events to a profile that lacks names. It shows every event to the world and turns
 * samples into locations and stacks by what the world knows at that moment. It reads nothing from
 * outside, so a live stream and its replay give the same profile.
 *
 * Windows follow each other: a recorder is closed, the next one begins with the same world and facts. What a
 * thread used and what the kernel accounted for add up over windows.
 */
#ifndef PROCESS_RECORDER_H
#define PROCESS_RECORDER_H

#include <sysprof/event_handler.h>
#include <sysprof/profile_builder.h>

#include "process/recording_facts.h"
#include "process/world.h"

struct recorder;

/*
 * Begins a window at `start` (CLOCK_MONOTONIC ns); 0: with the recording. World, facts and builder stay
 * the caller's and must outlive the recorder. NULL: no memory.
 */
struct recorder *recorder__new(struct world *world, struct recording_facts *facts,
			       struct profile_builder *builder, uint64_t start);
void recorder__free(struct recorder *r);

/* Valid as long as the recorder. It takes no symbol events: those are process/profile_symbols.h's. */
struct event_handler recorder__handler(struct recorder *r);

/*
 * The window ends at `end`, or (0) where the stream did: then it is the last one. After that nothing is
 * recorded any more. 0 or -ENOMEM.
 */
int recorder__close(struct recorder *r, uint64_t end);

/* A sampled process that runs code which it has made itself. */
struct jit_process {
	struct process_id id;
	const struct jit_runtime *runtime;   /* NULL: not recognized */
	uint32_t files[JIT_FILE_KIND_COUNT]; /* that tell of its code; 0: none */
};

/* All of the window's, in the order in which they were seen. */
const struct jit_process *recorder__jit_processes(const struct recorder *r, size_t *count);

/* The image that is this dso of the window; 0: none, or not any more. */
struct image_id recorder__image_of(const struct recorder *r, struct dso_id dso);

#endif
