/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the system at the current position in the stream: processes, threads, mappings and
 * mapped images. Only events change it; it reads nothing from outside. It outlives the windows of
 * a session and forgets ended processes.
 *
 * The recorder of the open window passes each event of these types to it once, in stream order.
 * Changes are announced to observers (struct process_observer).
 */
#ifndef PROCESS_WORLD_H
#define PROCESS_WORLD_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>
#include <sysprof/mapping.h>
#include <sysprof/profile.h>

#include "base/outside_books.h"
#include "process/code_functions.h"

#define MAPPING_TABLE_MAX  262144u /* of a process: four times the kernel's limit of any kind */
#define WORLD_MAPPINGS_MAX 4194304u

struct mapping_table;
struct process_life;
struct thread_life;
struct mapping;
struct process_table;
struct image_table;
struct world;

/* ---- processes and threads: process_table.c -------------------------------------------------- */

/*
 * The processes and threads that have a pid or tid at the current position in the stream.
 *
 * A life is one process from its fork or execve to its exit or next execve; threads likewise. An
 * ended life can be found until its pid is reused or LIFE_GRACE_NS has passed, because a task still
 * runs for a moment after its exit record.
 *
 * Lives have no pointers to profiles. Other modules keep data about lives in tables of their own,
 * indexed by `slot` (a small number, reused); `serial` (unique) detects reuse.
 */

/* Bytes that several lives have: counted references, so that a fork copies nothing. */
struct shared_bytes {
	unsigned int refs;
	_Alignas(8) char bytes[];
};

/* NULL stays NULL. */
#define shared_ref(shared)                                                                         \
	({                                                                                         \
		__auto_type shared_ = (shared);                                                    \
		if (shared_)                                                                       \
			shared_->refs++;                                                           \
		shared_;                                                                           \
	})
#define shared_unref(shared)                                                                       \
	do {                                                                                       \
		__auto_type shared_ = (shared);                                                    \
		if (shared_ && !--shared_->refs)                                                   \
			free(shared_);                                                             \
	} while (0)

/* NULL: no memory. */
static inline struct shared_bytes *shared_bytes__new(const void *bytes, size_t size)
{
	struct shared_bytes *b = malloc(sizeof(*b) + size);

	if (!b)
		return NULL;
	b->refs = 1;
	memcpy(b->bytes, bytes, size);
	return b;
}

static inline struct shared_bytes *shared_text__new(const char *text)
{
	return shared_bytes__new(text, strlen(text) + 1);
}

/*
 * Observers of changes to processes, in stream order: the recorder of the open window, and what
 * keeps the kernel's unwind tables up to date. Callbacks may be NULL and must not change the world.
 */

enum life_end {
	LIFE_EXIT, /* or its pid was reused */
	LIFE_EXEC, /* continued by the next life */
};

struct process_observer {
	void *context; /* first argument of every callback */

	/* The mappings changed: this one was added, or (NULL) some were removed. 0 or -ENOMEM. */
	int (*mapped)(void *context, struct process_life *process, const struct mapping *mapping);
	/* The process's `dump` has grown. 0 or -ENOMEM. */
	int (*jit_frames)(void *context, struct process_life *process, uint64_t time);

	void (*process_renamed)(void *context, struct process_life *process);
	void (*process_ended)(void *context, struct process_life *process, enum life_end how);
	/* No more events of it follow: it is about to be freed. */
	void (*process_forgotten)(void *context, struct process_life *process);
	/* It was assumed to have ended, but an event shows that it runs. */
	void (*process_revived)(void *context, struct process_life *process);

	void (*thread_renamed)(void *context, struct thread_life *thread);
	/* Before its process. */
	void (*thread_ended)(void *context, struct thread_life *thread, enum life_end how);
	/* No more events of it follow: its CPU time is final, and it is about to be freed. */
	void (*thread_forgotten)(void *context, struct thread_life *thread);
};

#define LIFE_NAME_SIZE	  64 /* kernel threads have long names in /proc */
#define LIFE_GRACE_NS	  2000000000ull
#define LIFE_UNKNOWN_NAME "[unknown]"

/* The index of a life in tables of other modules. */
struct life_number {
	uint32_t slot;
	uint64_t serial; /* from 1 on */
};

struct process_life {
	struct life_number number;
	uint32_t pid, ppid;
	char name[LIFE_NAME_SIZE];
	uint64_t born;		     /* when the pid was given out, kept across execve; 0 unknown */
	uint64_t start;		     /* of this life; 0 unknown */
	uint64_t end;		     /* 0: lives */
	enum process_begin began;    /* PROCESS_WAS_THERE: not seen */
	enum life_end how;	     /* it ended, if it has */
	struct shared_bytes *cgroup; /* the path of its control group; NULL: unknown */
	/* Path of the first file mapped executable in this or its parent's life; NULL: unknown */
	struct shared_bytes *program;
	struct shared_bytes *facts; /* a struct facts_event; NULL: not read */
	bool is_kernel, is_target;
	bool is_requested; /* a target from /proc: it is in profiles even without samples */
	struct mapping_table *maps;
	uint64_t maps_version;			 /* changes with maps */
	uint32_t jit_files[JIT_FILE_KIND_COUNT]; /* that describe its code; 0: none */
	bool has_followed_file;			 /* one of them is, or was, followed, … */
	uint64_t followed_since;		 /* … from then on; CLOCK_MONOTONIC */
	struct jit_code *dump;			 /* the jitdump's CFI; NULL: not needed */
	enum code_runtime_state unread; /* a runtime that is not read, as reported; READ: none */
	enum frame_note_kind unread_kind;
	struct code_kin kin[CODE_KIN_MAX]; /* whose functions it has had since its fork */

	/* process_table's own */
	bool ended, indexed;
	uint32_t living;		     /* threads that have not ended */
	TAILQ_HEAD(, thread_life) threads;   /* all that can be found */
	TAILQ_ENTRY(process_life) link;	     /* in living or dead of the table */
	TAILQ_ENTRY(process_life) dump_link; /* in dumps of the table, if it has one */
};

/*
 * A thread's CPU clock. Time up to `last`, the clock at its last sample or before that at the
 * baseline, is accounted for. Time from there to `seen`, the highest reading, is the tail.
 */
struct thread_clock {
	bool known, sampled;
	uint64_t last, seen; /* ns */
	uint64_t excess;     /* accounted for beyond the clock, and not taken back */
	uint64_t start;	     /* of the thread, before any execve */
};

/* The wall-clock account of a visited thread: process/wall_accounts.c. */
struct thread_wall {
	bool known;
	uint64_t seen; /* CLOCK_MONOTONIC ns: up to then its time is accounted for */
	uint64_t cpu, delay, switches;	 /* of the account, as far as accounted for */
	uint64_t blocked_due, delay_due; /* time that no visit has been given yet, ns */
	uint64_t not_waited;		 /* neither ran nor waited, as in interrupts */
	struct profile_wall sums;	 /* of this window */
	/* the state at the last visit, and its time so far */
	enum wall_state state; /* WALL_NONE: none, or no visit in this window */
	uint8_t open;	       /* WALL_STATE_OPEN and WALL_STATE_PENDING, or 0 */
	struct stack_id stack;
	struct string_id comm;
	struct thread_id holder;
	uint64_t found_at, weight;
	uint64_t waits_since, waits_until; /* CLOCK_MONOTONIC ns, as far as seen */
};

/* In the thread's next life, after an execve. */
static inline void thread_wall__go_on(struct thread_wall *next, const struct thread_wall *wall)
{
	*next = (struct thread_wall){
		.known = wall->known,
		.seen = wall->seen,
		.cpu = wall->cpu,
		.delay = wall->delay,
		.switches = wall->switches,
		.sums.since = wall->seen,
	};
}

struct thread_life {
	struct life_number number;
	struct process_life *process;
	uint32_t tid;
	char comm[LIFE_NAME_SIZE];
	uint64_t start, end; /* as of a process */
	uint64_t renamed;    /* when it was last given another name; 0: never */
	bool from_proc;	     /* reported by /proc */
	bool counted;	     /* it is in a profile, of this window or one before, and remains */
	struct thread_clock cpu;
	struct thread_wall wall;
	uint64_t last_sample; /* time */

	/* process_table's own */
	bool ended, indexed;
	TAILQ_ENTRY(thread_life) sibling;
	TAILQ_ENTRY(thread_life) link; /* in dead of the table */
};

/* The entry of a life in a VEC by slot, whose elements have the `serial`; NULL: there is none. */
#define life_entry(v, life)                                                                        \
	({                                                                                         \
		const struct life_number *number_ = &(life)->number;                               \
		__auto_type entry_ = number_->slot < (v)->count ? &(v)->data[number_->slot]        \
								: NULL;                            \
		entry_ && entry_->serial == number_->serial ? entry_ : NULL;                       \
	})

static inline bool thread_life__is_main(const struct thread_life *t)
{
	return t->tid == t->process->pid;
}

/*
 * A process has the name of its program: a main thread may rename itself, and does (all of Node.js
 * are "MainThread"). Only kernel threads, and what was never named, are called as their leader.
 */
static inline bool process_life__is_named(const struct process_life *process)
{
	return !process->is_kernel && strcmp(process->name, LIFE_UNKNOWN_NAME);
}

struct process_table_counts {
	size_t processes, threads; /* that can be found, the dead within their grace included */
};

/* ---- the world ------------------------------------------------------------------------------- */

/*
 * Everything that processes have mapped, each file once. An image outlives the processes that
 * mapped it, and the windows. In a profile it becomes a dso.
 *
 * Tenants decide how many files there are, so a live session admits them by user. All files that
 * are not admitted are one image (EVENT_LEFT), whose code has addresses only.
 */

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

typedef bool (*image_forget_fn)(void *context, struct image_id id, bool full);

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

#endif
