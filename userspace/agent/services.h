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
#include "agent/label_set.h"
#include "agent/service_decision.h"
#include "base/log.h"

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

#endif
