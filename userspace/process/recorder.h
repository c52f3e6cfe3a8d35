/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the events of one window into a profile without symbols: passes every event to the world,
 * and turns samples into locations and stacks by the world's current state. It reads nothing from
 * outside, so a live stream and its replay give the same profile.
 *
 * Windows follow each other: a recorder is closed, and the next one begins with the same world and
 * facts. The CPU time of threads and the kernel's accounting add up over windows.
 */
#ifndef PROCESS_RECORDER_H
#define PROCESS_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>
#include <sysprof/profile_builder.h>

#include "base/vec.h"
#include "process/world.h"

struct recording_facts;
struct recorder;
struct managed_frames;

/* ---- recording_facts.c ----------------------------------------------------------------------- */

/*
 * Facts about the recording: machine and command, clocks, sample accounting. The stream has them
 * once, or as sums since its beginning; this gives each window its own values.
 */

struct recording_facts *recording_facts__new(void); /* NULL: no memory */
void recording_facts__free(struct recording_facts *f);

/* Events as they come. 0 or -ENOMEM. */
int recording_facts__meta(struct recording_facts *f, const char *key, const char *value);
void recording_facts__anchor(struct recording_facts *f, const struct clock_anchor_event *e);
int recording_facts__books(struct recording_facts *f, const struct books_event *e);
int recording_facts__cpu_times(struct recording_facts *f, const struct cpu_times_event *e);

/* When sampling began, CLOCK_MONOTONIC ns; 0: not known yet. */
uint64_t recording_facts__start(const struct recording_facts *f);
/* --interrupts: samples of their work have a root frame that says so. */
bool recording_facts__marks_interrupts(const struct recording_facts *f);
/* ns between two ticks of a CPU; 0 unknown. */
uint64_t recording_facts__period(const struct recording_facts *f);
/* The value of a key of <sysprof/meta_keys.h>; NULL: it was not reported. */
const char *recording_facts__find(const struct recording_facts *f, const char *key);
/* The first anchor of the stream, and the last one so far. False: there was none. */
struct clock_moment {
	uint64_t monotonic, realtime; /* ns */
};
bool recording_facts__anchors(const struct recording_facts *f, struct clock_moment *first,
			      struct clock_moment *last);

/* Begins a window: adds all facts so far to its builder and notes where its accounting starts. */
int recording_facts__begin_window(struct recording_facts *f, struct profile_builder *builder);
/* The books of a CPU in this window. */
struct profile_cpu_books recording_facts__window_books(const struct recording_facts *f,
						       const struct books_event *e);
/* The books of the visitor in this window. The event has sums since the start. */
struct profile_visits recording_facts__visits(struct recording_facts *f,
					      const struct visit_books_event *e);

/* ---- window_lives.c: the profile ids of lives in one window, indexed by the lives' slots ---- */

/* The last sample's frames, root first, and their stacks: the next one shares most outer frames. */
struct stack_memo {
	VEC(uint64_t) frames;
	VEC(struct stack_id) stacks;
	uint64_t maps_version;
	struct stack_id root; /* below all of them; 0: there is none */
};

/*
 * A thread can have a new name at each moment, and the profile would keep them all. So only
 * the first ones are entered at once, later ones with the next sample, and the last one.
 */
struct window_name {
	uint32_t changes; /* up to PROFILE_RENAMES_MAX */
	bool is_old;	  /* in the profile */
};

struct window_process {
	uint64_t serial;
	struct process_id id; /* 0: not in the profile yet */
	bool has_main;	      /* the profile has its main thread */
	struct window_name name;
	uint32_t jit; /* the recorder's: index + 1 in jit_processes */
};

struct window_thread {
	uint64_t serial;
	struct thread_id id;   /* 0: not in the profile yet */
	struct string_id comm; /* valid once id is */
	struct window_name name;
	struct stack_memo memo;
	size_t gil; /* index + 1 in the recorder's gil_counts */
};

struct window_lives {
	struct profile_builder *builder; /* not owned */
	VEC(struct window_process)
	processes;			   /* by slot of the life; invalid if the serial differs */
	VEC(struct window_thread) threads; /* likewise */
};

void window_lives__fini(struct window_lives *w);

/* The entry of a process, valid until the next call for another one. NULL: out of memory. */
struct window_process *window_lives__process(struct window_lives *w,
					     const struct process_life *life);
/* The id of a process that is in the profile; 0. */
struct process_id window_lives__process_id(const struct window_lives *w,
					   const struct process_life *life);

/* Adds a process to the profile if needed, from `start` if its start is unknown. 0: no memory. */
struct process_id window_lives__show_process(struct window_lives *w,
					     const struct process_life *life, uint64_t start);

/* The facts of a process that is in the profile, as they are now. */
void window_lives__set_facts(struct window_lives *w, const struct process_life *life);

/*
 * This file was mapped: if it is the program of a process in the profile, enter it there. A process
 * may be sampled in its execve, before its program is mapped. `life` NULL: no such process.
 */
void window_lives__set_program(struct window_lives *w, const struct process_life *life,
			       const char *mapped);

/* The entry of a thread that is in the profile; NULL. Valid as above. */
struct window_thread *window_lives__thread(const struct window_lives *w,
					   const struct thread_life *life);

/*
 * Adds a thread to the profile if it is not there, because of an event at `time`. A life of unknown
 * start is assumed to have begun `earlier` ns before. NULL: out of memory.
 */
struct window_thread *window_lives__show(struct window_lives *w, struct thread_life *life,
					 uint64_t time, uint64_t earlier);

/* Frames that are no code, at addresses that nothing has. X(ENUM, name) */
#define MADE_UP_PLACES(X)                                                                          \
	X(UNSEEN, "[between visits]")                                                              \
	X(TAKEN, "[interrupts and stolen time]")                                                   \
	X(SOFTIRQ, "[softirq]")                                                                    \
	X(HARDIRQ, "[hardirq]")                                                                    \
	X(GUEST, "[guest]")

enum made_up_place {
#define X(id, name) PLACE_##id,
	MADE_UP_PLACES(X)
#undef X
};

/* ---- thread_accounts.c ----------------------------------------------------------------------- */

/* CPU time of threads, as weights of the samples of one window. See thread_accounts.c. */

/* Of a window; none of them is owned. */
struct thread_accounts {
	struct profile_builder *builder;
	struct window_lives *lives;
	const struct recording_facts *facts;
};

/* The stack of such a frame that `caller` (0: none) has called. */
struct stack_id thread_accounts__made_up_frame(const struct thread_accounts *a,
					       const struct thread_life *thread,
					       struct stack_id caller, enum made_up_place place);

/* The weight of a sample, ns, at which the thread's clock was `cpu_time`. */
uint64_t thread_accounts__sample(const struct thread_accounts *a, struct thread_life *thread,
				 uint64_t time, uint64_t cpu_time);
/* A later reading of its clock. */
void thread_accounts__correct(const struct thread_accounts *a, struct thread_life *thread,
			      uint64_t cpu_time);
/* The thread has no more events in this window, which has got to `time`. */
void thread_accounts__settle(const struct thread_accounts *a, struct thread_life *thread,
			     uint64_t time);

/* The states of the GIL in the notes of a window's samples, added up by thread. */

struct gil_counts {
	VEC(struct profile_gil) rows;
};

/* The state in a sample. */
enum gil_state gil_state_of(const struct sample_event *e);

/* A sample with this CPU time, ns. *row: its thread's, index + 1; 0 at first. 0 or -ENOMEM. */
int gil_counts__sample(struct gil_counts *g, size_t *row, struct process_id process,
		       struct thread_id thread, enum gil_state state, uint64_t weight);
/* Into the profile. */
void gil_counts__report(const struct gil_counts *g, struct profile_builder *builder);

/* ---- wall_accounts.c ------------------------------------------------------------------------- */

/* Where a thread's time went, by its visits. See wall_accounts.c. */

/* How a visit found a thread. */
struct wall_visit {
	enum wall_state state; /* WALL_NONE: its account alone */
	uint8_t open;	       /* WALL_STATE_OPEN and WALL_STATE_PENDING, or 0 */
	struct stack_id stack;
	struct string_id comm;
	struct thread_id holder; /* of the lock; 0: not known, or it is none */
	uint64_t since, until;	 /* it waited from when to when; equal: not known */
};

/* 0 or -ENOMEM. */
int wall_accounts__visit(const struct thread_accounts *a, struct thread_life *thread,
			 const struct visit_event *e, const struct wall_visit *visit);
/* The holder of the lock that a thread waits for: the kernel's, or of its process; 0: unknown. */
struct thread_id wall_accounts__holder(const struct thread_accounts *a,
				       struct process_table *processes,
				       const struct thread_life *waiting,
				       const struct visit_event *e);
/* The thread ends. `visited`: when the latest visit of any thread began, as far as known. */
void wall_accounts__exit(struct thread_life *thread, uint64_t time, uint64_t cpu_time,
			 uint64_t visited);
/*
 * Closes the thread's account of this window: the state seen last gets the time until then. A
 * thread without a visit is not added to the profile. 0 or -ENOMEM.
 */
int wall_accounts__settle(const struct thread_accounts *a, struct thread_life *thread);

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

/* All of the window's, in the order in which they were seen. */
const struct jit_process *recorder__jit_processes(const struct recorder *r, size_t *count);

/* ---- profile_symbols.c ----------------------------------------------------------------------- */

/* Adds the symbol events of the stream to a window's profile. */

struct profile_symbols {
	struct profile_builder *builder; /* not owned */
	struct dso_id dso;		 /* of the next symbol events */
	VEC(struct profile_line) lines;
	bool complete; /* EVENT_SYMBOLS_END has come */
};

void profile_symbols__init(struct profile_symbols *s, struct profile_builder *builder);
void profile_symbols__fini(struct profile_symbols *s);

/* Takes EVENT_SYMBOL, _SYMBOL_DSO, _SYMBOLS_END, _META and _OUTSIDE. Valid as long as `s`. */
struct event_handler profile_symbols__handler(struct profile_symbols *s);

/* A row of the books of the outside, from the stream into the profile. */
void outside_event__add_to(const struct outside_event *e, struct profile_builder *builder);

/* ---- wall_states.c --------------------------------------------------------------------------- */

/* The state of a thread, by the readings of a visit and the kernel's functions on its stack. */

/* By the readings. *open: flags if a kernel function may be more precise. WALL_NONE: no wait. */
enum wall_state wall_state_of_visit(const struct visit_account *visit, uint8_t *open);

/* Of a kernel function in which threads wait; WALL_NONE: not in the table. "foo.isra.0" is foo. */
enum wall_state wall_state_of_function(const char *name);

/*
 * The table. `otherwise`: what has the state in a kernel without this function, because it has
 * another name there or is a part of its caller: another row, or one of these. NULL: all have it.
 */
#define WALL_BY_READINGS "(readings)" /* wall_state_of_visit() */
#define WALL_BY_CALL	 "(call)"     /* the system call */
#define WALL_OF_MODULE	 "(module)"   /* it is of a module that may not be loaded */
extern const struct wall_function {
	const char *name;
	enum wall_state state;
	const char *otherwise;
} wall_functions[];
extern const size_t wall_function_count;

/* The states of open samples, by their stacks, which have the kernel's symbols. 0 or -ENOMEM. */
int wall_states__settle(struct profile_builder *builder);

/* ---- managed_frames.c ------------------------------------------------------------------------ */

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
