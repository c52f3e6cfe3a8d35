/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by publishing (unwinding.c) and settling (settling.c). */
#ifndef SESSION_UNWINDING_PRIVATE_H
#define SESSION_UNWINDING_PRIVATE_H

#include "base/quota.h"
#include "base/vec.h"
#include "session/unwinding.h"

#define PUBLICATIONS 8 /* more often they do not change while a sample is on its way */

/* Mappings that were published to the kernel side. */
struct publication {
	uint32_t tag; /* unwind_tag(); 0: none */
	uint64_t maps_version;
	struct mapping_table *maps;
};

/* The kernel side's state of a process life. */
struct known_process {
	uint64_t serial;       /* of the life */
	uint64_t published;    /* maps_version + 1; 0: nothing yet */
	uint64_t published_at; /* CLOCK_MONOTONIC */
	uint64_t since;	       /* it is known, CLOCK_MONOTONIC */
	uint64_t not_before;   /* the next try, CLOCK_MONOTONIC */
	unsigned int at_once;  /* publications that it has had without waiting */
	bool changed;	       /* it is in the list of those to be published */
	bool wanted;	       /* it has been sampled */
	bool urgent;	       /* what was published leads to wrong frames now */
	bool waits;	       /* for credit */
	bool user_known, runtimes_known;
	uint32_t user;
	struct meter publishing; /* CPU time */
	struct fed_runtimes runtimes;
	struct publication publications[PUBLICATIONS]; /* the last ones, the newest first */
};

/* A process by its number, whether it is still there or not. */
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
	VEC(struct life_mark) changed;	 /* mappings have, since they were last published */
	struct quota publishing; /* CPU time; of all together it has that of small publications */
	struct meter large_publishing; /* of all together, the large ones */
	uint64_t deferred;	       /* publications that had to wait for credit */
	uint64_t round_began, spent;   /* what all had cost when a round began, and by now; ns */
	struct {
		struct visit_account account; /* of a visit: the event begins here */
		union {
			struct sample_event sample;
			char space[sizeof(struct sample_event) +
				   8 * (SAMPLE_KERNEL_DEPTH_MAX + SAMPLE_USER_DEPTH_MAX)];
		};
	} settled;
};

/* The entry of a life. NULL: no memory. Valid until the next call for another one. */
struct known_process *unwinding__known(struct unwinding *u, const struct process_life *life);
/* NULL: it has none, or `life` is NULL. */
struct known_process *unwinding__find(struct unwinding *u, const struct process_life *life);
const struct image *unwinding__image(const struct unwinding *u, struct image_id id);
/* The process for the feed. Without memory for it its runtimes are those of none. */
struct fed_process unwinding__fed(struct unwinding *u, const struct process_life *process,
				  uint64_t time);

/* It is sampled, so it must be published. 0 or -ENOMEM, as the next ones. */
int unwinding__want(struct unwinding *u, const struct process_life *process);
/* The last publication is outdated. */
int unwinding__publish_again(struct unwinding *u, const struct process_life *process);
/* The same; and what it says of JIT code is not right any more. */
int unwinding__publish_at_once(struct unwinding *u, const struct process_life *process);

#endif
