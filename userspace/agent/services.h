/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services of a window, by facts in its profile, control groups and files of container runtimes.
 *
 * A process whose facts were not read, or that was gone before, belongs to the service of its
 * control group, or of the group's other processes. A decision about a life stays until something
 * more certain becomes known: it moves up, never down. All that is kept between windows has a
 * limit; what was used last stays.
 *
 * One thread uses it. Reading files of the administrator may take milliseconds for new containers.
 */
#ifndef AGENT_SERVICES_H
#define AGENT_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "agent/agent_window.h"
#include "agent/cgroup_path.h"
#include "agent/containers.h"
#include "agent/rules.h"
#include "agent/label_set.h"
#include "base/log.h"

/* ---- which service a process belongs to, by what is known about it now (service_decision.c) -- */

/* The sources of a name, the most certain first. X(ENUM, value of the label service_source) */
#define SERVICE_SOURCES(X)                                                                         \
	X(OTEL_CONTEXT, "otel_ctx")                                                                \
	X(ENVIRONMENT, "env")                                                                      \
	X(RESOURCE, "resource_attributes")                                                         \
	X(RULE, "rule")                                                                            \
	X(ANNOTATION, "annotation")                                                                \
	X(KUBERNETES, "kubernetes")                                                                \
	X(CONTAINER, "container")                                                                  \
	X(UNIT, "unit")                                                                            \
	X(SCRIPT, "script")                                                                        \
	X(EXE, "exe")                                                                              \
	X(KERNEL, "kernel")                                                                        \
	X(CGROUP, "cgroup") /* the name of its control group, or that of others in it */           \
	X(PARENT, "parent") /* only its parent is known */                                         \
	X(NONE, "none")	    /* gone before anything was read: "unknown" */

enum service_source {
#define X(id, text) SERVICE_FROM_##id,
	SERVICE_SOURCES(X)
#undef X
		SERVICE_SOURCE_COUNT
};

const char *service_source_text(enum service_source source);

#define SERVICE_UNKNOWN "unknown"
#define LABEL_TEXT_SIZE 256

struct service_question {
	const struct profile *profile;
	const struct profile_process *process;
	const char *program; /* its path, where no fact has it: from its samples; NULL: unknown */
	const struct cgroup_place *place;
	const struct container_names *container; /* NULL: unknown */
	const struct label_rules *rules;	 /* NULL: none */
};

/* All texts: fit to be labels; "": none. */
struct service_decision {
	enum service_source source;
	bool container_is_id; /* it has no name: each id is new */
	char name[LABEL_SERVICE_MAX + 1];
	char version[LABEL_TEXT_SIZE], name_space[LABEL_TEXT_SIZE], pod[LABEL_TEXT_SIZE];
	char container[LABEL_TEXT_SIZE], unit[LABEL_TEXT_SIZE], instance[LABEL_TEXT_SIZE];
	char rules[LABEL_RULES_MAX][LABEL_TEXT_SIZE]; /* by rule */
};

void service_decide(const struct service_question *question, struct service_decision *decision);

/* The value of a fact about a process; NULL: there is none. */
const char *process_fact(const struct profile *p, const struct profile_process *process,
			 const char *key);

/* ---- the services of windows ----------------------------------------------------------------- */

#define SERVICES_MAX  1000 /* series of a window, by default */
#define SERVICE_OTHER "_other"

struct services;

/* Texts are copied; rules and filter outlive it. */
struct services_options {
	const char *node; /* the host's name as a label; NULL: none */
	bool pods;	  /* label each pod, and containers without a name by their ids */
	size_t most;	  /* of a window, SERVICE_OTHER included; 0: SERVICES_MAX */
	const char *root; /* where the host's files are; NULL: "/" */
	const struct label_rules *rules;     /* NULL: none */
	const struct service_filter *filter; /* NULL: all are sent */
};

/* 0 or negative errno, `failure` filled. */
int services__new(const struct services_options *options, struct services **services,
		  struct failure *failure);
void services__free(struct services *s);

/*
 * Fills in the window's services, service_count and service_of_process, valid until the next call.
 * The caller has set `window->profile`. `now`: CLOCK_MONOTONIC ns. 0 or -ENOMEM.
 */
int services__name(struct services *s, struct agent_window *window, uint64_t now);

struct services_stats {
	/* of the last window */
	size_t services, excluded;
	size_t overflowed; /* that are in SERVICE_OTHER */
	/* of all windows: samples, by what decided */
	uint64_t samples[SERVICE_SOURCE_COUNT];
	size_t lives_kept, groups_kept, sets_kept;
	uint64_t lives_evicted;
	struct containers_stats containers;
};
void services__stats(const struct services *s, struct services_stats *stats);

/* Earlier decisions on lives and groups (by their busiest process): the half used last stays. */

#define LIVES_KEPT  65536u
#define GROUPS_KEPT 8192u

struct service_memory;

struct kept_life {
	uint64_t life;
	uint32_t pid;
	enum service_source source;
	struct label_set *set; /* held */
	uint64_t used;	       /* window */
};

struct kept_group {
	char *path, *program; /* program: of the process; "" unknown */
	enum service_source source;
	struct label_set *set; /* held */
	uint64_t used;	       /* window in which it was set or used */
	uint64_t window, cpu;  /* in which, and of how much CPU time, it was set */
};

struct service_memory *service_memory__new(void); /* NULL: no memory */
/* Before the sets. NULL is fine. */
void service_memory__free(struct service_memory *m);

/* NULL: unknown. Valid until something is added. */
struct kept_life *service_memory__life(struct service_memory *m, uint64_t life);
/* The life of this pid that was kept last. */
struct kept_life *service_memory__pid(struct service_memory *m, uint32_t pid);
/* 0 or -ENOMEM. */
int service_memory__keep_life(struct service_memory *m, const struct kept_life *life);

struct kept_group *service_memory__group(struct service_memory *m, const char *path);
/* Unless a busier process has decided it in this window. 0 or -ENOMEM. */
int service_memory__keep_group(struct service_memory *m, const struct kept_group *group);

/* After a window: evicts lives that were not in the last few. */
void service_memory__sweep(struct service_memory *m, uint64_t window);

/* Into lives_kept, groups_kept and lives_evicted. */
void service_memory__stats(const struct service_memory *m, struct services_stats *stats);

#endif
