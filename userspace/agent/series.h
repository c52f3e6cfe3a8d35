/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The series of a window as pprof: of each service a profile, or parts of one if a backend has
 * limits. If the window has waits, a second profile has all time of the service's threads: CPU
 * time, and waits with a leaf "[waiting: STATE]".
 *
 * Of two profiles with the same labels and the same time in milliseconds backends silently drop
 * one. So parts, and services with the same labels, begin a millisecond after one another. All is
 * the same for the same window. Each part passes agent/validate.h before it is handed out.
 */
#ifndef AGENT_SERIES_H
#define AGENT_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"
#include "base/wire.h"
#include "agent/sink_format.h"

#define SERIES_NAME	 "process_cpu"
#define SERIES_NAME_WALL "wall"
#define SERIES_DEPTH_MAX 1000 /* Pyroscope cuts the leaf's side of deeper ones */

struct series_options {
	bool counts;   /* two values, samples/count and cpu/nanoseconds; else the latter alone */
	bool name_all; /* as in struct sink_encoding_options */
	bool no_addresses;    /* of code that has a name */
	size_t samples_max;   /* of a part */
	size_t size_max;      /* of a part, bytes; its pprof is not compressed */
	const char *add_node; /* a label "node" for services without one; NULL: none */
};

struct series_part {
	size_t service;
	struct service_label labels[LABELS_MAX + 2]; /* __name__ is the first */
	size_t label_count;
	struct bytes pprof;
	uint64_t samples, cpu_ns; /* that it stands for; of waits 0, … */
	uint64_t wall_ns;	  /* … and the time that they are in all, with that on a CPU */
};

/* Requests of series, for backends that take pprof: as many series in each as it may have. */

/* A request that is put together. */
struct series_request {
	struct sealed_window *sealed;
	struct bytes body;	    /* without compression */
	struct request_facts facts; /* series, samples and CPU time */
};

/* How a backend's requests are made of series. All return 0, -ENOMEM. */
struct series_requests {
	size_t series_max, size_max; /* of a request; one series alone may be larger */
	/* its bytes; *made is empty */
	int (*make)(const struct series_part *part, struct bytes *made);
	int (*add)(struct series_request *request, const struct bytes *made);
	/* Fills in the other facts, and adds the request; its body is empty afterwards. */
	int (*seal)(struct series_request *request);
};

/* All series of a window, in as few requests as there can be; *sealed is fresh. 0, -ENOMEM. */
int series__seal(const struct agent_window *window, const struct series_options *options,
		 const struct series_requests *kind, struct sealed_window *sealed);

/* ---- times of profiles ----------------------------------------------------------------------- */

/* Times of profiles, a millisecond apart if the labels are the same: see above. */
struct part_times;

/* 0, -ENOMEM. The window has to outlive it. */
int part_times__new(const struct agent_window *window, struct part_times **times);
void part_times__free(struct part_times *s);

/* When the part after `ahead` others of these labels begins: ns since the epoch. */
uint64_t part_times__next(const struct part_times *s, size_t service, uint32_t ahead);
/* Marks the time of part_times__next() as used. */
void part_times__take(struct part_times *s, size_t service);
/* Do they have the same labels? */
bool part_times__same(const struct part_times *s, size_t service, size_t other);

#endif
