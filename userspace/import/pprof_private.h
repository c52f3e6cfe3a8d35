/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the reader of pprof files: owners of samples, and words. */
#ifndef IMPORT_PPROF_PRIVATE_H
#define IMPORT_PPROF_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>
#include <sysprof/profile_builder.h>

#include "base/map.h"

/* ---- owners.c: processes and threads of samples whose owners are in labels only --------------- */

/*
 * The labels of a sample; 0: none. A thread with a tid may change its name: then `thread` is its name at the time,
 * and does not separate threads.
 */
struct sample_owner {
	uint32_t pid, tid;
	struct string_id process, thread;
	struct string_id cgroup; /* does not separate owners */
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

/* What the words in a pprof file stand for: keys of labels, units, names of mappings. */

enum label_kind {
	LABEL_OTHER,
	LABEL_PID,
	LABEL_TID,
	LABEL_THREAD,
	LABEL_PROCESS,
	LABEL_SERVICE, /* names the process where nothing else does */
	LABEL_COMM,
	LABEL_CGROUP,
	LABEL_GIL,
};

enum label_kind pprof_label_kind(const uint8_t *bytes, size_t size);

/* "held", …: as the exporter writes it. */
enum gil_state pprof_gil_state(const uint8_t *bytes, size_t size);

/* Nanoseconds of a unit of time; 0: it is none. */
uint64_t pprof_unit(const uint8_t *bytes, size_t size);

/* What is mapped under this name, and what its code is. */
enum dso_kind pprof_mapping_kind(const char *path, enum profile_category *category);

#endif
