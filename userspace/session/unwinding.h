/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects the world and the kernel's unwind tables in a live session. It observes the world and
 * publishes changes of processes to the kernel side; it completes or truncates samples from there.
 * All functions are called by the collector thread.
 */
#ifndef SESSION_UNWINDING_H
#define SESSION_UNWINDING_H

#include <stdbool.h>

#include <sysprof/unwind_memory.h>

#include "base/vec.h"
#include "files/dso_opener.h"
#include "tenants/quota.h"
#include "unwind/unwind_feed.h"
#include "world/world.h"

struct tasks;

#define PUBLICATIONS 8 /* mappings do not change more often while a sample is in transit */

/* Mappings that were published to the kernel side. */
struct publication {
	uint32_t tag; /* unwind_tag(); 0: none */
	uint64_t maps_version;
	struct mapping_table *maps;
};

/* The kernel side's state of a process life. */
struct known_process {
	uint64_t serial;       /* of the life */
	uint64_t published;    /* maps_version + 1; 0: nothing */
	uint64_t published_at; /* CLOCK_MONOTONIC */
	uint64_t since;	       /* first seen, CLOCK_MONOTONIC */
	uint64_t not_before;   /* the next try, CLOCK_MONOTONIC */
	unsigned int at_once;  /* publications so far that did not wait for PUBLISH_NS */
	bool changed;	       /* it is in `changed` of struct unwinding */
	bool wanted;	       /* it has been sampled */
	bool urgent;	       /* its publication leads to wrong frames */
	bool waits;	       /* for credit */
	bool user_known, runtimes_known;
	uint32_t user;
	struct meter publishing; /* CPU time */
	struct fed_runtimes runtimes;
	struct publication publications[PUBLICATIONS]; /* the newest first */
};

/* A process, which may have ended. */
struct life_mark {
	uint32_t pid;
	uint64_t serial;
};

struct unwinding {
	struct world *world; /* not owned, as the next one */
	struct dso_opener *opener;
	struct outside_books *books; /* or NULL */
	struct table_store *tables;
	struct unwind_feed *feed;
	struct helper_pool *readers; /* those of the session */
	const struct tasks *tasks;
	unsigned int max_depth;
	int err;			 /* of an answer */
	uint64_t last_time;		 /* of the stream */
	VEC(struct known_process) known; /* by slot of the life */
	VEC(struct life_mark) changed;	 /* processes to publish */
	struct quota publishing;	 /* CPU time; its total is that of small publications */
	struct meter large_publishing;	 /* total of large ones */
	uint64_t deferred;		 /* publications that had to wait for credit */
	uint64_t round_began, spent;	 /* cost of all when the round began, and now; ns */
	struct {
		struct visit_account account; /* of a visit: the event begins here */
		union {
			struct sample_event sample;
			char space[sizeof(struct sample_event) +
				   8 * (SAMPLE_KERNEL_DEPTH_MAX + SAMPLE_USER_DEPTH_MAX)];
		};
	} settled;
};

struct unwinding_options {
	const struct unwind_memory *memory; /* shared with the eBPF programs; copied */
	unsigned int max_depth;		    /* of user stacks that are unwound here */
	bool cache;			    /* use the on-disk cache of tables */
	struct helper_pool *readers;	    /* with the services of live/readers.h */
	struct helper_pool *builders;	    /* of unwind tables */
	bool small;			    /* table_store_options.old_first */
	_Atomic int64_t *large_children;    /* as in unwind_feed_options */
	const struct tasks *tasks;	    /* runtimes/ask/code: the memory of JVMs; outlives it */
	struct outside_books *books;	    /* NULL, or must outlive it */
};

/* World and opener must outlive it. 0 or -ENOMEM. */
int unwinding__new(const struct unwinding_options *options, struct world *world,
		   struct dso_opener *opener, struct unwinding **unwinding);
void unwinding__free(struct unwinding *u);

/* After an event has been recorded. 0 or -ENOMEM. */
int unwinding__recorded(struct unwinding *u, const struct event_header *event);

/*
 * Call before and after each piece of the stream. Publishes new tables and changes to the kernel
 * side. 0 or -ENOMEM.
 */
int unwinding__update(struct unwinding *u);
/* Requests the tables of all files that targets have mapped so far. 0 or -ENOMEM. */
int unwinding__prepare(struct unwinding *u);

/* For image_table__forget(). False: the image's file is still needed. */
bool unwinding__forget_image(void *unwinding, struct image_id image, bool full);

void unwinding__stats(const struct unwinding *u, struct unwind_feed_stats *stats);

/* ---- shared by publishing (unwinding.c) and settling (settling.c) ---------------------------- */

/* The entry of a life. NULL: no memory. Valid until the next call for another one. */
struct known_process *unwinding__known(struct unwinding *u, const struct process_life *life);
/* NULL: no entry, or `life` is NULL. */
struct known_process *unwinding__find(struct unwinding *u, const struct process_life *life);
const struct image *unwinding__image(const struct unwinding *u, struct image_id id);
/* The process for the feed. If out of memory, without runtimes. */
struct fed_process unwinding__fed(struct unwinding *u, const struct process_life *process,
				  uint64_t time);

/* The process was sampled, so publish it. 0 or -ENOMEM, as the next ones. */
int unwinding__want(struct unwinding *u, const struct process_life *process);
/* Publish again: the last publication is outdated. */
int unwinding__publish_again(struct unwinding *u, const struct process_life *process);
/* The same, without PUBLISH_NS of delay: the last publication is wrong about JIT code. */
int unwinding__publish_at_once(struct unwinding *u, const struct process_life *process);

#endif
