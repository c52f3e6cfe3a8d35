/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_PLACE_MANAGED_FRAMES_H
#define RUNTIMES_PLACE_MANAGED_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct code_functions;
struct image_table;
struct managed_frames;
struct process_life;
struct profile_builder;
struct sample_event;

/*
 * Frames of runtimes in the stacks of a window. The notes of a sample become frames, each with a
 * location of the profile; when the window closes, the locations get the names known by then.
 *
 * A frame replaces the native one with its words (NOTE_OF_FRAME); the frames that one loop of an
 * interpreter runs replace that loop (NOTE_IN_GROUP), or are placed by order if the walk missed it.
 */

#define MANAGED_PLACES_MAX (1u << 20) /* of a window; then each runtime has one place more */
#define FRAME_MANAGED	   0xfe /* top byte of a packed frame; the rest is a number of these */

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

/* Is it a frame of JIT code? */
bool managed_frames__is_made(const struct managed_frames *m, uint64_t frame);

/*
 * Locations of JIT code without a note get the piece of code that they are in, if nothing else
 * names them. `lives`: serial numbers, by id of their process. 0 or -ENOMEM.
 */
int managed_frames__suggest(struct managed_frames *m, const uint64_t *lives, size_t count);

/* Gives all locations what is known of them. */
void managed_frames__resolve(struct managed_frames *m);

#endif
