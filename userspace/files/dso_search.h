/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One search for a file: where it is searched for, what waits for it (dso_waits.c), and what was
 * found. It is for the mappings of one file, or for a request for a file that was closed.
 */
#ifndef FILES_DSO_SEARCH_H
#define FILES_DSO_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/vec.h"
#include "files/dso_opener.h"
#include "files/dso_roots.h"
#include "files/file_search.h"

struct dso_waits;

struct waiting_event {
	struct mmap_event *event; /* owned */
	mapping_answer_fn answer;
	void *context;
};

struct dso_search {
	LIST_ENTRY(dso_search) link;
	bool is_linked;
	struct dso_waits *waits;
	const struct mmap_event *mapping;   /* the first one; NULL: there is a request */
	pid_t parent;			    /* of the mapping's process */
	bool moved;			    /* anonymous memory: a file's text may be there */
	struct root_id roots[SEARCH_ROOTS]; /* held */
	uint64_t hash;
	uint64_t owner;	   /* to charge */
	uint64_t copy_max; /* that was allowed in the question */
	VEC(struct waiting_event) events;
	/* the request */
	uint32_t requested; /* the file, held; HASHMAP_NONE: there is none */
	uint64_t number;    /* its own or that of a library in there, held */
	struct file_request request;
	/* once it was found */
	int fd; /* of the function that takes it; -1: nothing was found */
	const struct file_finding *facts;
};

#endif
