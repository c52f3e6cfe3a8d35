/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_WINDOW_LIVES_H
#define WORLD_WINDOW_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/vec.h"

struct process_life;
struct profile_builder;
struct thread_life;

/* The last sample's frames, root first, and their stacks: the next one shares most outer frames. */
struct stack_memo {
	VEC(uint64_t) frames;
	VEC(struct stack_id) stacks;
	uint64_t maps_version;
	size_t kernel_changes; /* their number */
	struct stack_id root;  /* below all of them; 0: there is none */
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

#endif
