/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the events of one window into a profile without symbols: passes every event to the world,
 * and turns samples into locations and stacks by the world's current state. It reads nothing from
 * outside, so a live stream and its replay give the same profile.
 *
 * Windows follow each other: a recorder is closed, and the next one begins with the same world and
 * facts. The CPU time of threads and the kernel's accounting add up over windows.
 */
#ifndef WORLD_RECORDER_H
#define WORLD_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>
#include <sysprof/profile_builder.h>

#include "world/world.h"

struct image;
struct recording_facts;
struct recorder;

/* ---- the recorder ---------------------------------------------------------------------------- */

/*
 * Begins a window at `start` (CLOCK_MONOTONIC ns; 0: at the start of the recording). The caller
 * owns world, facts and builder, which must outlive the recorder. NULL: out of memory.
 */
struct recorder *recorder__new(struct world *world, struct recording_facts *facts,
			       struct profile_builder *builder, uint64_t start);
void recorder__free(struct recorder *r);

/* Valid as long as the recorder. Symbol events are handled by profile_symbols.c instead. */
struct event_handler recorder__handler(struct recorder *r);

/* Ends the window at `end`; 0: with the stream. Nothing is recorded after that. 0 or -ENOMEM. */
int recorder__close(struct recorder *r, uint64_t end);

/* A sampled process that runs JIT code. */
struct jit_process {
	struct process_id id;
	uint64_t life;			     /* its serial number */
	const struct runtime *runtime;	     /* NULL: not recognized */
	enum code_runtime_state refused;     /* why its functions are not read; READ: no reason */
	uint32_t files[JIT_FILE_KIND_COUNT]; /* its perf map and jitdump; 0: none */
};

/* The dso of each image by its number; 0: none. */
const struct dso_id *recorder__dsos(const struct recorder *r, size_t *count);
const struct image *recorder__image(const struct recorder *r, struct image_id id);

/* When kernel code changed: the times of versions of kernel addresses, from 1 on. */
const uint64_t *recorder__kernel_changes(const struct recorder *r, size_t *count);

/* All of the window's, in the order in which they were seen. */
const struct jit_process *recorder__jit_processes(const struct recorder *r, size_t *count);

#endif
