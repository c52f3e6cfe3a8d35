/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services of the processes of a profile, by facts in it, control groups and names of containers.
 *
 * A process whose facts were not read, or that was gone before, belongs to the service of its
 * control group, or of the group's other processes. A decision about a life stays until something
 * more certain becomes known: it moves up, never down. All that is kept between profiles (windows
 * of one session) has a limit; what was used last stays.
 *
 * One thread uses it. Reading files of the administrator may take milliseconds for new containers.
 */
#ifndef SERVICES_NAMING_H
#define SERVICES_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "services/containers.h"
#include "services/label_set.h"
#include "services/service_decision.h"

struct naming;

/* What a user's own rules add. Functions may be NULL. */
struct naming_policy {
	void *context; /* first argument of every function */
	/* What a rule calls the service; NULL: none does. Valid until the next call. */
	const char *(*rule)(void *context, const struct service_question *question);
	/* Adds labels of the process that `rule` has seen last. */
	void (*add_labels)(void *context, struct label_list *list);
	/* Is nothing of it wanted? */
	bool (*excludes)(void *context, const char *cgroup,
			 const struct service_decision *decision);
};

struct naming_options {
	const char *node; /* the host's name as a label; NULL: none */
	bool pods;	  /* label each pod, and containers without a name by their ids */
	bool idle;	  /* also processes that did nothing */
	/* Where the host's files are; NULL: names of containers are facts of processes. */
	const char *root;
	struct naming_policy policy;
};

/* Texts of the options are copied. 0, -ENOMEM, or why `root` cannot be opened. */
int naming__new(const struct naming_options *options, struct naming **naming);
void naming__free(struct naming *n);

/* A process of the profile. */
struct named_process {
	uint64_t cpu, samples;
	enum service_source source;
	struct label_set *set; /* NULL: it did nothing */
	char *program;	       /* by its samples, where no fact has it */
};

/*
 * Names the processes of a profile, the next window of the session if it is not the first. `now`:
 * CLOCK_MONOTONIC ns. 0 or -ENOMEM.
 */
int naming__name(struct naming *n, const struct profile *p, uint64_t now);
/* By process_id, valid until the next call. */
struct named_process *naming__processes(const struct naming *n, size_t *count);

/* A set with these labels of this window, excluded or not. NULL: no memory. */
struct label_set *naming__set(struct naming *n, struct label_list *list, bool excluded);
/* Frees sets that are not used any more. */
void naming__sweep(struct naming *n);

struct naming_stats {
	size_t lives_kept, groups_kept, sets_kept;
	uint64_t lives_evicted;
	struct containers_stats containers;
};
void naming__stats(const struct naming *n, struct naming_stats *stats);

/* The value of a fact about a process; NULL: there is none. */
const char *process_fact(const struct profile *p, const struct profile_process *process,
			 const char *key);

#endif
