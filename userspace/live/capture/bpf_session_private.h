/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of bpf_session: bpf_session.c loads and attaches, bpf_session_cpus.c has the
 * CPUs with their events and rings, bpf_session_unwind.c the maps of the unwind tables.
 */
#ifndef LIVE_CAPTURE_BPF_SESSION_PRIVATE_H
#define LIVE_CAPTURE_BPF_SESSION_PRIVATE_H

#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "live/capture/bpf_session.h"
#include "live/capture/perf_ring.h"
#include "live/capture/tick_rings.h"

#include "sampler.skel.h"
#include "visit.skel.h"

#define NO_RING SIZE_MAX

/* A TSC counter whose base is less certain is not used. */
#define TSC_ERROR_MAX_NS 5000

/* The perf events of a CPU; -1: none. */
struct session_fds {
	int tick, output, sideband, tsc;
};
_Static_assert(sizeof(struct session_fds) == BPF_SESSION_FDS_PER_CPU * sizeof(int),
	       "features count with them");

struct session_cpu {
	uint32_t cpu;
	bool sampled;
	bool gone;   /* offline, as of the last look */
	bool failed; /* it came and could not be opened: treated as offline */
	bool fresh;  /* it came: its side-band runs, its ticks do not yet */
	struct session_fds fds;
	size_t ring;			   /* of its ticks; NO_RING: it has never been sampled */
	struct perf_ring output, sideband; /* output: of the hooks */
	bool was_full;			   /* its side-band: something may not have fit */
	struct stack_join join;
	uint64_t tsc_base;
	uint64_t received;		     /* EVENT_SAMPLEs */
	uint64_t time_enabled, time_running; /* of the tick event, when last read */
	uint64_t counted;		     /* events, then; 0: of a clock */
	uint64_t period;		     /* of its ticks, ns; 0: not a clock event */
	uint64_t period_running;	     /* time_running at the start of that period */
	uint64_t past_enabled, past_running,
		past_counted;		      /* of its events before, if the CPU was offline */
	uint64_t seen_enabled;		      /* time_enabled at the last look at CPUs */
	uint64_t disable_begun, disable_done; /* CLOCK_MONOTONIC; the event stopped in between */
	struct sideband_decoder decoder;      /* its end is of variable size */
};

struct bpf_session {
	struct sampler_bpf *skel;
	struct tick_source source;
	struct bpf_session_info info;
	char clock_reason[160];
	uint64_t tsc_per_us;  /* 0: not measured yet */
	struct target target; /* its pointers are not kept */
	uint64_t group;	      /* the id of the target's control group */
	struct tick_rate rate;
	struct session_cpu *cpus; /* all that are online */
	size_t cpu_count;
	uint32_t *sampled; /* places in cpus */
	struct ring_sizes rings;
	struct tick_rings tick_rings;
	bool every_cpu;			    /* is sampled: there is no -C */
	bool follow_groups, reports_groups; /* reports: EVENT_GROUP_MADE */
	struct cpu_books *books;	    /* mmapped, by CPU number */
	size_t book_count, map_bytes;
	size_t visit_bytes;	     /* of the visitor's maps; a thread of its own may load them */
	struct unwind_memory unwind; /* all zero: no tables */
	unsigned char *segments[UNWIND_SEGMENTS];
	int segment_fd; /* the first segment, also the model of later ones; -1: none */
	uint16_t runtime_slots[RUNTIME_SLOTS]; /* as the map of that name */
	__u64 *table_changes;		       /* of the visitor; NULL: there is none */
	int epoll_fd;
	struct ring_buffer *wakes;
	bool woken_by_root;
	uint64_t looked_closely; /* CLOCK_MONOTONIC: when events were last checked to count */
	int online_fd;		 /* the list of online CPUs; -1: it cannot be opened */
	uint64_t online_hash;	 /* of the list at the last look; 0: there was none */
	uint64_t drained;	 /* CLOCK_MONOTONIC: when all rings were last read */
	uint64_t losses;	 /* records that report_losses() has reported */
	bool visited, ticking, paused, disabled, final;
};

/* ---- bpf_session.c --------------------------------------------------------------------------- */

/* Keep libbpf's messages for explain_libbpf(): why `programs` ("the eBPF programs") do not load. */
void catch_libbpf_messages(void);
int explain_libbpf(int err, const char *programs, struct failure *failure);

/* Run the program `prepare` here and now. */
int bpf_session__run_prepare(struct bpf_session *s);

/*
 * An array map of `count` elements of `element_size` bytes, in shared memory. NULL with errno;
 * EINVAL: its elements are other ones, or elsewhere.
 */
void *map_array(const struct bpf_map *map, size_t count, size_t element_size);
void unmap_array(void *memory, size_t count, size_t element_size);

/* Element `index` of a map of descriptors. */
int put_map_fd(struct bpf_map *map, uint32_t index, int fd);

/* ---- bpf_session_cpus.c ---------------------------------------------------------------------- */

static inline void close_event(int *fd)
{
	cleanup_close(fd);
	*fd = -1;
}

/* ---- bpf_session_unwind.c -------------------------------------------------------------------- */

/* Bytes of a map, as the kernel accounts for it. */
size_t map_memory(const struct bpf_map *map);

/* Runs this link's program over all that it iterates. 0, or negative errno. */
int run_iterator(int link);

#endif
