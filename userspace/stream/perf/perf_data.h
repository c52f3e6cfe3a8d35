/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of `perf record` as a stream of events, the one that a recording file holds: so processes,
 * mappings, names, limits and books are those of a replay.
 *
 * The file is read twice: first for what stands at its end, or anywhere (names of events, build ids,
 * which events have samples, the earliest time of what follows), then record by record. A profile is of one event, as of perf script's
 * text: a clock, else cycles, else one of hardware; samples of others are counted. docs/FORMATS.md has what is read of each record.
 */
#ifndef STREAM_PERF_PERF_DATA_H
#define STREAM_PERF_PERF_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "stream/event_queue.h"

struct running_kernel;

/* Whether the running kernel's names are those of the recording, and why not. */
enum perf_kernel_names {
	PERF_KERNEL_SAME,    /* by the build-id, at a recorded address */
	PERF_KERNEL_ALIKE,   /* without one: the same host, release and address of the image */
	PERF_KERNEL_OTHER,   /* another kernel */
	PERF_KERNEL_UNKNOWN, /* without a build-id, and not alike; or without an address */
	PERF_KERNEL_HIDDEN,  /* it does not show its symbols */
};

struct perf_data_summary {
	uint64_t records, samples; /* samples: of the profile's event */
	uint64_t bad_events;	   /* records that make no event: skipped */
	enum perf_kernel_names kernel_names;
};

/* The file starts like perf.data, of any byte order. Does not move its position. */
bool perf_data_probe(int fd);

/*
 * With `copies` samples whose user stack was copied have EVENT_STACK_COPY, and the sink walks it; else
 * such a stack is its innermost frame.
 */
struct perf_data_options {
	bool copies;
	const struct running_kernel *kernel; /* NULL: it does not show its symbols */
};

/*
 * Passes on the events, checked and in time order. What the file has that is no part of the profile
 * is in a fact (META_NOT_READ). 0; what the sink returned; -ENOTSUP: of the other byte order;
 * -EBADMSG: damaged; -ENODATA: without events; -EIO, -ENOMEM. `failure` is filled, except for the
 * sink's errors. It opens no file; the program has a child call it (stream/perf/perf_child.h).
 */
int perf_data_read(int fd, const struct perf_data_options *options, event_sink_fn sink,
		   void *context, struct perf_data_summary *summary, struct failure *failure);
typedef int (*perf_read_fn)(int fd, const struct perf_data_options *options, event_sink_fn sink,
			    void *context, struct perf_data_summary *summary,
			    struct failure *failure);

#endif
