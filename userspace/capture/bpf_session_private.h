/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of bpf_session share: bpf_session.c loads and attaches, bpf_session_cpus.c has the CPUs with
 * their perf events and rings, bpf_session_unwind.c the maps of the unwind tables.
 */
#ifndef CAPTURE_BPF_SESSION_PRIVATE_H
#define CAPTURE_BPF_SESSION_PRIVATE_H

#include <bpf/libbpf.h>

#include "capture/bpf_session.h"
#include "capture/perf_ring.h"
#include "capture/stack_join.h"

#include "sampler.skel.h"

/* The perf events of a CPU; -1: none. */
struct session_fds {
	int tick, output, sideband, tsc;
};
_Static_assert(sizeof(struct session_fds) == BPF_SESSION_FDS_PER_CPU * sizeof(int),
	       "features count with them");

struct session_cpu {
	uint32_t cpu;
	bool sampled;
	struct session_fds fds;
	struct perf_ring output, sideband;
	struct sideband_decoder decoder;
	bool was_full; /* its side-band: something may not have fit */
	struct stack_join join;
	uint64_t tsc_base;
	uint64_t received;		     /* EVENT_SAMPLEs */
	uint64_t time_enabled, time_running; /* of the tick event, at disable */
	uint64_t disabled_at;		     /* CLOCK_MONOTONIC */
};

struct bpf_session {
	struct sampler_bpf *skel;
	struct tick_source source;
	struct bpf_session_info info;
	char clock_reason[160];
	struct target target; /* its pointers are not kept */
	unsigned int hz;
	struct session_cpu *cpus; /* all that are online */
	size_t cpu_count;
	uint32_t *sampled; /* places in cpus */
	size_t ring_size;
	struct cpu_books *books; /* mmapped, by CPU number */
	size_t book_count, map_bytes;
	struct unwind_memory unwind; /* all zero: no tables */
	unsigned char *segments[UNWIND_SEGMENTS];
	int segment_fd; /* the first segment, which also tells what segments are like; -1: none */
	int epoll_fd;
	struct ring_buffer *wakes;
	bool disabled, final;
};

/* ---- bpf_session.c --------------------------------------------------------------------------- */

/* Run the program `prepare` here and now. */
int bpf_session__run_prepare(struct bpf_session *s);

/*
 * All of an array map of so many elements of so many bytes, in shared memory. NULL, and errno: EINVAL: its elements
 * are others, or are elsewhere.
 */
void *map_array(const struct bpf_map *map, size_t count, size_t element_size);
void unmap_array(void *memory, size_t count, size_t element_size);

/* Element `index` of a map of descriptors. */
int put_map_fd(struct bpf_map *map, uint32_t index, int fd);

/* ---- bpf_session_cpus.c ---------------------------------------------------------------------- */

/* Find the online CPUs and those to sample. */
int bpf_session__choose_cpus(struct bpf_session *s, const struct target *target,
			     struct failure *failure);
/* Open the TSC counters of the sampled CPUs, if the TSC is the clock. */
int bpf_session__choose_clock(struct bpf_session *s, enum clock_choice choice,
			      struct failure *failure);
/* Open events, rings and wakes. The programs are loaded. */
int bpf_session__open_cpus(struct bpf_session *s, struct failure *failure);
void bpf_session__close_cpus(struct bpf_session *s);

/* ---- bpf_session_unwind.c -------------------------------------------------------------------- */

/* Choose the size of segments and of the maps. The programs are not loaded yet. */
int bpf_session__choose_segments(struct bpf_session *s, size_t bytes);
int bpf_session__size_unwind_maps(struct bpf_session *s);
/* Map them. The programs are loaded. */
int bpf_session__map_unwind_tables(struct bpf_session *s, struct failure *failure);
void bpf_session__unmap_unwind_tables(struct bpf_session *s);

#endif
