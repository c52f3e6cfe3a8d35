/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes and threads of samples whose owners are in labels only, as in pprof files. */
#ifndef FORMATS_IN_OWNERS_H
#define FORMATS_IN_OWNERS_H

#include <stdint.h>

#include <sysprof/profile.h>
#include <sysprof/profile_builder.h>

#include "base/map.h"

/*
 * The labels of a sample; 0: none. A thread with a tid may change its name: then `thread` is its
 * name at the time and does not separate threads.
 */
struct sample_owner {
	uint32_t pid, tid;
	struct string_id process, thread;
	/* what the process has; it does not separate owners */
	struct string_id cgroup;
	struct profile_names names;
};

struct owner_process {
	struct sample_owner owner; /* without tid and thread */
	struct process_id id;
	bool has_main;
};

struct owner_thread {
	struct sample_owner owner;
	struct thread_id id;
	struct string_id name;
	uint64_t rows, tail; /* counted by the caller */
};

MAP_TYPE(owner_processes, struct owner_process);
MAP_TYPE(owner_threads, struct owner_thread);

/* Begins with its builder, the start and zeros. */
struct owners {
	struct profile_builder *b;
	struct string_id program; /* the name of a process that has none */
	uint64_t start;		  /* of all of them, ns */
	struct owner_processes processes;
	struct owner_threads threads;
};

void owners__fini(struct owners *o);

/* Both are made when they are first needed. 0, -ENOMEM. */
int owners__process(struct owners *o, const struct sample_owner *owner, struct process_id *id);
/* `comm`: its name, where the owner has none. The thread is valid until the next call. */
int owners__thread(struct owners *o, const struct sample_owner *owner, struct string_id comm,
		   struct owner_thread **thread);

#endif
