/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side of the visitor (bpf/visit.bpf.c): loading its programs, running them, and reading
 * what they wrote. A program reads memory of others and may never return, so a child process of its
 * own runs it; only the collector reads.
 */
#ifndef LIVE_CAPTURE_BPF_VISITS_H
#define LIVE_CAPTURE_BPF_VISITS_H

#include "live/capture/bpf_session.h"

struct bpf_visits;

/*
 * The session, which has to outlive the result, has the maps of targets and tables, and counts the
 * memory of the others, 8 MB, or 2 MB if `small`. 0, or negative errno with `failure` filled.
 */
int bpf_visits__open(struct bpf_session *session, bool small, struct bpf_visits **visits,
		     struct failure *failure);
void bpf_visits__free(struct bpf_visits *v);

/* Shared with the process that visits: there it is at `offset` of the memory of a map. */
struct visitor *bpf_visits__shared(struct bpf_visits *v);
struct bpf_visits_memory {
	int map; /* descriptor, owned by `v` */
	size_t size, offset;
};
struct bpf_visits_memory bpf_visits__memory(const struct bpf_visits *v);

/* The programs for bpf_visits__run(), or one for bpf_visits__pass(); their number. Owned by `v`. */
enum { VISIT_SCAN, VISIT_ONE, VISIT_PROGRAMS };
#define VISIT_PASS 0
int bpf_visits__programs(const struct bpf_visits *v, int fds[VISIT_PROGRAMS]);

/*
 * Runs VISIT_SCAN, or VISIT_ONE for the thread in `visited` of the shared memory. Needs only the
 * descriptor, no privileges. 0, or negative errno. May not return.
 */
int bpf_visits__run(int program);

/* A whole visit. 0, or negative errno. May not return. */
int bpf_visits__pass(int pass);

/* Hands the EVENT_VISITs that are in the ring to `sink`. 0, or its first error. */
int bpf_visits__drain(struct bpf_visits *v, event_push_fn sink, void *context);

#endif
