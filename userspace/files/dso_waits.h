/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pending searches, and the mappings and requests that wait for them. A reader searches
 * (file_search.c); without readers the search is made in place, before the call returns.
 *
 * Hundreds of processes may map a library before a reader has answered: they share one search. The
 * queue of events waits for the oldest.
 */
#ifndef FILES_DSO_WAITS_H
#define FILES_DSO_WAITS_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/vec.h"
#include "files/dso_files.h"
#include "files/dso_opener.h"
#include "files/dso_roots.h"
#include "stream/event_queue.h"

#define DSO_SEARCH_BUCKETS 256u
#define MOVED_SEARCHED	   256u

struct helper_pool;
struct waiting_event;

/* An event that follows mappings without an answer. */
struct passed_event {
	struct event_header *event; /* owned */
	event_push_fn push;
	void *context;
};

/* A process's searches for the file of its anonymous executable memory. */
struct moved_searches {
	pid_t pid;
	/* without those that found one; of mappings as they happen, and read from /proc */
	unsigned int count[2];
	uint64_t since;
};

struct dso_waits {
	struct dso_files *files;
	struct dso_roots *roots;
	struct helper_pool *readers; /* NULL: files are searched for in place */
	unsigned int service;
	LIST_HEAD(, dso_search) searches[DSO_SEARCH_BUCKETS]; /* by hash */
	VEC(struct passed_event) passed;		      /* until the searches end */
	struct moved_searches moved[MOVED_SEARCHED];
	uint64_t opens; /* files opened so far */
	int err;	/* of an answer that came outside of a call */
};

void dso_waits__init(struct dso_waits *w, struct dso_files *files, struct dso_roots *roots,
		     struct helper_pool *readers, unsigned int service);
void dso_waits__fini(struct dso_waits *w);

/*
 * Answer the event after a search for its file below the root of its process (or of one that is
 * gone): later, with a copy, or before this returns. Events of one file share it. `moved`: search
 * for the file whose text the memory has. 0 or -ENOMEM.
 */
int dso_waits__add_mapping(struct dso_waits *w, const struct waiting_event *waiting, pid_t parent,
			   struct root_id root, bool moved);
/*
 * Is the event of memory that may have a file's text? Most such memory has JIT code, so after eight
 * searches in vain there are none for a minute.
 */
bool dso_waits__may_search_moved(struct dso_waits *w, const struct mmap_event *event);
/* The same for a request for a file that was closed. -ENOENT: it has no path or no root. */
int dso_waits__add_request(struct dso_waits *w, uint64_t number, uint32_t file,
			   const struct file_request *request);
/* Searches at once, in this process, below our own root: for replays. 0 or negative errno. */
int dso_waits__adopt_own(struct dso_waits *w, const struct mmap_event *mapping, uint32_t *file);

/* dso_opener__pass(). */
int dso_waits__pass(struct dso_waits *w, struct event_header *event, event_push_fn push,
		    void *context);
/* Passes on the events that wait no longer. */
void dso_waits__pass_on(struct dso_waits *w);
/* The time of the oldest event that waits, or UINT64_MAX. */
uint64_t dso_waits__since(const struct dso_waits *w);
/* The first error of answers since the last call, or 0. */
int dso_waits__take_error(struct dso_waits *w);

#endif
