/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of runtimes in the stacks of a window: the notes of a sample become frames of their own, each with a location of the
 * profile; when the window closes, the locations get the names and lines that are known by then.
 *
 * A frame takes the place of the native one that has its words (NOTE_OF_FRAME); the frames that one loop of an interpreter runs
 * take the place of that loop (NOTE_IN_GROUP). Frames whose loop the walk has not met stand where their order says.
 */
#ifndef PROCESS_MANAGED_FRAMES_H
#define PROCESS_MANAGED_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

#include "process/world.h"

#define FRAME_MANAGED 0xfe /* in the top byte of a packed frame: the rest is a number of these */

struct managed_frames;

/* Images and functions outlive it. NULL: no memory. */
struct managed_frames *managed_frames__new(struct profile_builder *builder,
					   const struct image_table *images,
					   const struct code_functions *functions);
void managed_frames__free(struct managed_frames *m);

struct sample_frames {
	const __u64 *frames;  /* packed; valid until the next call */
	size_t kernel, count; /* the kernel's come first, and are counted in both */
};

/* The frames of a sample. 0 or -ENOMEM. */
int managed_frames__of(struct managed_frames *m, const struct process_life *process,
		       const struct sample_event *e, struct sample_frames *frames);

/* The location of a frame whose top byte is FRAME_MANAGED. */
struct location_id managed_frames__location(const struct managed_frames *m, uint64_t frame);

/* Is it one of code that was made as the process ran? */
bool managed_frames__is_made(const struct managed_frames *m, uint64_t frame);

/*
 * Locations of JIT code without a note get the piece of code that they are in, in case nothing else names them. `lives`: by number
 * of their process. 0 or -ENOMEM.
 */
int managed_frames__suggest(struct managed_frames *m, const uint64_t *lives, size_t count);

/* Gives all locations what is known of them. */
void managed_frames__resolve(struct managed_frames *m);

#endif
