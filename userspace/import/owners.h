/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes and threads of samples that only say by labels whose they are. */
#ifndef IMPORT_OWNERS_H
#define IMPORT_OWNERS_H

#include <sysprof/profile_builder.h>

#include "base/hashmap.h"
#include "base/vec.h"

/*
 * What a sample says; 0 where it says nothing. A thread with a tid may change its name: then `thread` is its
 * name at the time, and does not tell threads apart.
 */
struct owner {
	uint32_t pid, tid;
	struct string_id process, thread;
	struct string_id cgroup; /* tells no two owners apart */
};

struct owner_process {
	struct owner owner; /* without tid and thread */
	struct process_id id;
	bool has_main;
};

struct owner_thread {
	struct owner owner;
	struct thread_id id;
	struct string_id name;
	uint64_t rows, tail; /* counted by the caller */
};

struct owners {
	struct profile_builder *b;
	struct string_id program; /* the name of a process that has none */
	uint64_t start;		  /* of all of them, ns */
	VEC(struct owner_process) processes;
	VEC(struct owner_thread) threads;
	struct hashmap process_map, thread_map;
};

void owners__init(struct owners *o, struct profile_builder *b, uint64_t start);
void owners__fini(struct owners *o);

/* Both are made when they are first asked for. 0, -ENOMEM. */
int owners__process(struct owners *o, const struct owner *owner, struct process_id *id);
/* `comm`: its name, where the owner has none. The thread is valid until the next call. */
int owners__thread(struct owners *o, const struct owner *owner, struct string_id comm,
		   struct owner_thread **thread);

#endif
