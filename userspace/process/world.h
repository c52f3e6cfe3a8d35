/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the system at the current position in the stream: processes, threads, their mappings, and the
 * mapped images. Only events change it; it reads nothing from outside. It outlives the windows of a session
 * and forgets processes that have ended.
 *
 * The recorder of the open window passes each event of these types to it once, in stream order. Changes are
 * announced to observers (struct process_observer).
 */
#ifndef PROCESS_WORLD_H
#define PROCESS_WORLD_H

#include <stdbool.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>
#include <sysprof/mapping.h>
#include <sysprof/profile.h>

#include "base/outside_books.h"
#include "process/code_functions.h"
#include "process/process_table.h"

/*
 * Everything that processes have mapped, each file once. An image outlives the processes that mapped it, and
 * the windows. In a profile it becomes a dso.
 *
 * Tenants decide how many files there are, so a live session admits them by user; all files that are not admitted are
 * one image (EVENT_LEFT), whose code has addresses only.
 */

struct image_table;

/* As struct profile_dso; the table owns the strings. */
struct image {
	enum dso_kind kind;
	const char *path; /* as mapped, without " (deleted)" */
	const char *name; /* last component of path */
	bool is_library;
	bool deleted;
	enum file_state file_state;
	uint8_t build_id_size;
	uint8_t build_id[BUILD_ID_SIZE];
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	bool unshared; /* EVENT_UNSHARED */
};

struct image_table *image_table__new(void); /* NULL: no memory */
void image_table__free(struct image_table *t);

/*
 * The image of a mapping. A known image is updated if its file could be opened this time. 0: out of memory.
 */
struct image_id image_table__add(struct image_table *t, const struct mmap_event *event);

/*
 * Other limits than those of the table (QUOTA_IMAGES), before any image: of a user, of all but root, and what a user
 * may have in any case.
 */
void image_table__limit(struct image_table *t, size_t user, size_t all, size_t least);

/* Is it known what this maps? */
bool image_table__has(const struct image_table *t, const struct mmap_event *event);
/*
 * The user has mapped a new file: add its image, which counts for the user. False: a limit is reached, which *refusal
 * names.
 */
bool image_table__admit(struct image_table *t, const struct mmap_event *event, uint32_t user,
			enum outside_reason *refusal);

/* Valid until the next image_table__forget(). */
const struct image *image_table__get(const struct image_table *t, struct image_id id);

/*
 * Freeing images, in two steps: mark those that are still mapped, then free those that were not marked this
 * time and the last. Their ids are reused. `may_forget` (NULL: yes, if there is no room for them) is called for each; `full`: room is
 * wanted. Returns how many were freed.
 */
void image_table__mark(struct image_table *t, struct image_id id);
typedef bool (*image_forget_fn)(void *context, struct image_id id, bool full);
size_t image_table__forget(struct image_table *t, bool full, image_forget_fn may_forget,
			   void *context);

size_t image_table__count(const struct image_table *t); /* of images that are known */

struct world;

struct world_stats {
	uint64_t known_mappings;   /* mapping events of known mappings */
	uint64_t stale_mappings;   /* found gone by a reading of /proc */
	uint64_t refused_mappings; /* of processes with too many */
	uint64_t dropped_mappings; /* of the process with the most, as all together were too many */
	uint64_t rereads;	   /* requested readings of /proc */
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

/*
 * 0 or -ENOMEM. world__mmap: *image is what is mapped, 0 if the event is invalid; an impossible mapping is
 * ignored.
 */
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

/* Calls `visit` for each file in which a known process describes its code. 0, or what `visit` returned. */
int world__each_jit_file(struct world *w, int (*visit)(void *context, uint32_t file),
			 void *context);

/*
 * Called between two windows: frees what belongs to ended processes. Images are freed if no process has
 * had them mapped since the last call but one and `may_forget` agrees; without it, once there are more than a
 * few.
 */
void world__forget(struct world *w, image_forget_fn may_forget, void *context);

struct world_stats world__stats(const struct world *w);

#endif
