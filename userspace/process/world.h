/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who and what is where at this time of the stream: processes, threads, their mappings, and what is
 * mapped. It is changed by events alone, reads nothing from outside, outlives the windows that
 * profiles are made of, and forgets the dead.
 *
 * Each event of these types is handed to it once, in the order of the stream, by the recorder of the
 * open window. It announces what follows from them (process_observer.h).
 */
#ifndef PROCESS_WORLD_H
#define PROCESS_WORLD_H

#include <sysprof/event_handler.h>

#include "process/image_table.h"
#include "process/process_table.h"

struct world;

struct world_stats {
	uint64_t known_mappings; /* mapping events that said nothing new */
	uint64_t stale_mappings; /* found gone by a reading of /proc */
	uint64_t rereads;	 /* times that a reading was asked for */
	uint64_t unknown_tasks;	 /* threads that nobody had told of */
};

/* `requests` (NULL: nobody to ask) must outlive the world. NULL: no memory. */
struct world *world__new(const struct event_source_requests *requests);
void world__free(struct world *w);

struct process_table *world__processes(struct world *w);
struct image_table *world__images(struct world *w);

/* Every event that belongs to the recording passes here first: the dead are buried. */
void world__advance(struct world *w, uint64_t time);

/*
 * 0 or -ENOMEM. world__mmap: *image is what is mapped, 0 where the event makes no sense; a mapping
 * that cannot be is ignored.
 */
int world__process(struct world *w, const struct process_event *e);
int world__thread(struct world *w, const struct thread_event *e);
int world__fork(struct world *w, const struct task_event *e);
int world__exit(struct world *w, const struct task_event *e);
int world__comm(struct world *w, const struct comm_event *e);
int world__mmap(struct world *w, const struct mmap_event *e, struct image_id *image);
int world__maps_read(struct world *w, const struct maps_read_event *e);
/* After lost records any mapping may be wrong: all are asked for again. */
void world__lost_sideband(struct world *w);
int world__jit_file(struct world *w, const struct jit_file_event *e);
int world__jit_bytes(struct world *w, const struct jit_bytes_event *e);

/* The thread of a sample, made up where nobody told of it. NULL: no memory. */
struct thread_life *world__thread_at(struct world *w, uint32_t pid, uint32_t tid, uint64_t time);

/* The mappings of this process are to be read again. */
void world__ask_reread(struct world *w, uint32_t pid);

/* Tells of each file in which a known process tells of its code. 0, or what `tell` returned. */
int world__each_jit_file(struct world *w, int (*tell)(void *context, uint32_t file), void *context);

/*
 * Between two windows: what belongs to processes that are gone is forgotten. Images go that no process has
 * had mapped since the last call but one, if `may_forget` (NULL: yes) agrees, once there are more than a
 * few.
 */
void world__forget(struct world *w, bool (*may_forget)(void *context, struct image_id id),
		   void *context);

struct world_stats world__stats(const struct world *w);

#endif
