/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services of a window and their series: named by services/naming, by the user's own rules as well,
 * and limited in number. One thread uses it.
 */
#ifndef AGENT_SERVICES_H
#define AGENT_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "agent/agent_window.h"
#include "base/log.h"
#include "services/naming.h"

/* ---- the services of windows ----------------------------------------------------------------- */

#define SERVICES_MAX  1000 /* series of a window, by default */
#define SERVICE_OTHER "_other"

struct label_rules;
struct service_filter;
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
	struct naming_stats naming;
};
void services__stats(const struct services *s, struct services_stats *stats);

#endif
