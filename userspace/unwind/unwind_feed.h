/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the kernel's unwind tables up to date: files of a sampled process get tables, and its
 * mappings are published whenever they change.
 *
 * Files are requested asynchronously. Until the answer is there and the table is built, stacks that
 * need it end there (no-table).
 */
#ifndef UNWIND_UNWIND_FEED_H
#define UNWIND_UNWIND_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/made_frames.h>
#include <sysprof/mapping.h>

#include "runtimes/runtime.h"
#include "unwind/made_code.h"
#include "unwind/table_builder.h"
#include "unwind/table_store.h"

struct unwind_feed;

struct helper_pool;
struct table_cache;

/* What unwinding needs to know of an image. */
struct fed_image {
	bool is_made;		       /* JIT code */
	const struct runtime *runtime; /* in the file, that makes JIT code; NULL: none */
};

struct unwind_feed_options {
	struct table_store *store;
	struct helper_pool *builders;	 /* of builder_options; not owned */
	struct table_cache *cache;	 /* NULL: none; owned, even if unwind_feed__new() fails */
	size_t table_limit;		 /* bytes of one table at most */
	_Atomic int64_t *large_children; /* for table_builder__count_large(), or NULL */
	int64_t credit;			 /* ns of building for a user, once; 0: as quotas have it */
	size_t files_max;		 /* known at one time; 0: 8,192 */
	/* Requests an image's file: calls unwind_feed__answer_file(), now or later. 0, -ENOMEM. */
	int (*request_file)(void *context, struct image_id image);
	struct fed_image (*describe)(void *context, struct image_id image);
	/* As made_code_options.request; calls unwind_feed__answer_frames(). */
	int (*request_frames)(void *context, const struct made_request *request);
	/* A table of unwind_feed__describe() is loaded: publish its process again. 0, -ENOMEM. */
	int (*described)(void *context, uint32_t tgid);
	void *context;
};

/* 0 or negative errno. */
int unwind_feed__new(const struct unwind_feed_options *options, struct unwind_feed **feed);
void unwind_feed__free(struct unwind_feed *f);

/* 1: publish the process again; 0; -ENOMEM. */
int unwind_feed__answer_frames(struct unwind_feed *f, const struct made_answer *answer);

/* The runtimes that may have made a process's JIT code. {}: none that matters. */
struct fed_runtimes {
	bool some_keep, others_may_not; /* frame pointers: see struct runtime */
	bool has_own_walk;		/* see struct runtime */
	bool keeps_frame_pointers; /* with has_own_walk; set by the caller, once that is read */
	enum made_by by;
};

/* Adds the runtime of a mapping of the process. */
void unwind_feed__note_runtime(const struct unwind_feed *f, const struct mapping *mapping,
			       struct fed_runtimes *runtimes);

#define UNWIND_FEED_MAPPINGS                                                                       \
	16384u /* of one process: with more it is not even tried to publish it */

/* A sampled process. Times are CLOCK_MONOTONIC ns. */
struct fed_process {
	uint32_t tgid;
	uint64_t born;		      /* 0: unknown */
	uint64_t time;		      /* of the sample */
	struct mappings maps;	      /* if find-only: nothing is published or requested */
	struct fed_runtimes runtimes; /* by unwind_feed__note_runtime() of all of maps */
};

/*
 * Publishes the mappings at process->time, and requests missing tables. 0; -ENOMEM; -E2BIG: too
 * many; -ENOSPC: no room. On these errors the earlier publication is withdrawn.
 * place_store__withdraw() takes a publication back; other knowledge of the process is kept.
 */
int unwind_feed__publish(struct unwind_feed *f, const struct fed_process *process);

/*
 * A stack of the process ended at `address` for lack of a table: requests it again, if useful.
 * `copy`: the copy of the stack, or NULL. 1: publish the process again; 0; -ENOMEM.
 */
int unwind_feed__missed(struct unwind_feed *f, const struct fed_process *process, uint64_t address,
			const struct stack_copy *copy);
/* The process was sampled: checks for new JIT code since its publication. Returns as above. */
int unwind_feed__refresh(struct unwind_feed *f, const struct fed_process *process);

/*
 * Unwinds a copied stack by tables, as the kernel side would. Stores at most `max` packed frames,
 * *count in all.
 */
enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct fed_process *process,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count);
/* Has the process's user credit for a table of its JIT code? Else ask again later. */
bool unwind_feed__may_describe(struct unwind_feed *f, uint32_t tgid);
/*
 * CFI of JIT code, from the process's jitdump, in place of an earlier request. Calls
 * options.described() when a table of it is loaded. 0 or -ENOMEM.
 */
struct unwind_piece;
int unwind_feed__describe(struct unwind_feed *f, const struct fed_process *process,
			  const struct unwind_piece *pieces, size_t count);
/* The process has ended. */
void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid);

struct unwind_feed_stats {
	struct table_store_stats store;
	uint64_t built;	   /* tables */
	uint64_t cached;   /* tables read from the cache instead */
	uint64_t build_ns; /* CPU time spent on both */
	uint64_t put_off;  /* tables deferred, for lack of credit or because none are built now */
	uint64_t too_big;  /* files whose table exceeds a segment or the limits of building */
	struct table_refusals refusals; /* files without a table, by reason */
	uint64_t forgotten; /* files not used for a while, because there were too many */
	uint64_t deferred;  /* publications that waited for their budget; counted by the caller */
};

#endif
