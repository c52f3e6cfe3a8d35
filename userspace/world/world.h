/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the system at the current position in the stream: processes, threads, mappings and
 * mapped images. Only events change it; it reads nothing from outside. It outlives the windows of
 * a session and forgets ended processes.
 *
 * The recorder of the open window passes each event of these types to it once, in stream order.
 * Changes are announced to observers (struct process_observer).
 */
#ifndef WORLD_WORLD_H
#define WORLD_WORLD_H

#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>
#include <sysprof/mapping.h>
#include <sysprof/profile.h>

#include "runtimes/place/code_functions.h"
#include "stream/event_queue.h" /* event_sink_fn */
#include "world/image_table.h"
#include "world/process_table.h"

#define MAPPING_TABLE_MAX  262144u /* of a process: four times the kernel's limit of any kind */
#define WORLD_MAPPINGS_MAX 4194304u

struct world;

struct world_stats {
	uint64_t refused_mappings; /* of processes with too many */
	uint64_t dropped_mappings; /* of the process with the most, when there were too many */
};

/* `requests` (may be NULL) must outlive the world. Returns NULL if out of memory. */
struct world *world__new(const struct event_source_requests *requests);
void world__free(struct world *w);

/* Mappings that are left are counted there, in a live session; NULL: nowhere. */
void world__count_in(struct world *w, struct outside_books *books);

struct process_table *world__processes(struct world *w);
struct image_table *world__images(struct world *w);
/* The functions of runtimes. */
const struct code_functions *world__code(const struct world *w);

/* Called first for every event of the recording: ended lives are freed after their grace period. */
void world__advance(struct world *w, uint64_t time);

/* 0 or -ENOMEM. world__mmap sets *image to what is mapped; an impossible mapping is ignored. */
int world__process(struct world *w, const struct process_event *e);
int world__thread(struct world *w, const struct thread_event *e);
int world__fork(struct world *w, const struct task_event *e);
int world__task_exit(struct world *w, const struct task_event *e);
int world__comm(struct world *w, const struct comm_event *e);
int world__mmap(struct world *w, const struct mmap_event *e, struct image_id *image);
int world__maps_read(struct world *w, const struct maps_read_event *e);
int world__cgroup(struct world *w, const struct cgroup_event *e);
/* Facts that were read in an earlier life of the process are dropped. */
int world__facts(struct world *w, const struct facts_event *e);
/* After lost records any mapping may be wrong: all are read again. */
void world__lost_sideband(struct world *w);
int world__jit_file(struct world *w, const struct jit_file_event *e);
int world__jit_bytes(struct world *w, const struct jit_bytes_event *e);
int world__code_function(struct world *w, const struct code_function_event *e);
int world__code_chain(struct world *w, const struct code_chain_event *e);
int world__code_runtime(struct world *w, const struct code_runtime_event *e);

/* The thread of a sample; created if no event reported it. NULL: out of memory. */
struct thread_life *world__thread_at(struct world *w, uint32_t pid, uint32_t tid, uint64_t time);

/* Requests that the mappings of this process are read again. */
void world__request_reread(struct world *w, uint32_t pid);

/* Visits each JIT file of a known process until `visit` returns nonzero, and returns that. */
int world__each_jit_file(struct world *w, int (*visit)(void *context, uint32_t file),
			 void *context);

/*
 * Called between two windows: frees what belongs to ended processes. Images are freed if no process
 * has had them mapped since the last call but one, and `may_forget` agrees; without it, if there
 * are more than a few.
 */
void world__forget(struct world *w, image_forget_fn may_forget, void *context);

struct world_stats world__stats(const struct world *w);
/*
 * The same as EVENT_OUTSIDE, of a replay of perf.data: a recording has them already. 0, or what the
 * sink returned.
 */
int world__emit_left(const struct world *w, uint64_t time, event_sink_fn sink, void *context);

#endif
