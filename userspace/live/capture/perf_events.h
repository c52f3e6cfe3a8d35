/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf events: the rings that samples of hooks come out of, and the side-band (mmap, comm, fork,
 * exit), all one per CPU; and what their records mean. Those that tick are in tick_source.h.
 *
 * Used by bpf_session alone (and by tests); the rest of the program sees events.
 */
#ifndef LIVE_CAPTURE_PERF_EVENTS_H
#define LIVE_CAPTURE_PERF_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

#include <sysprof/event.h>

#include "live/capture/perf_ring.h"
#include "stream/event_queue.h" /* event_push_fn */
#include "stream/perf/sideband.h"

/* The event of the hooks' output (PERF_COUNT_SW_BPF_OUTPUT); wakes its reader at `mark` bytes. */
int output_event_open(int cpu, uint32_t mark);
/* mmap2, comm, fork and exit of one CPU, and with `groups` new control groups, disabled. */
int sideband_event_open(int cpu, uint32_t mark, bool groups);
/* Why the TSC of this machine is no clock, a sentence without a stop; NULL: it is one. */
const char *tsc_refused(void);
/* A free-running TSC counter (msr PMU). -ENOENT: there is no such PMU. */
int tsc_event_open(int cpu);

int perf_event_open_attr(struct perf_event_attr *attr, int pid, int cpu);

/*
 * A record of the side-band as an event, to `sink`. Kinds that are none, mappings that are not
 * executable and tasks that our pid namespace does not show give nothing: 0. Sizes are checked;
 * -EBADMSG: the record contradicts itself. One decoder for each ring: it remembers. Mappings have
 * their file's inode and no build-id, whatever the record's mark says, which is taken off.
 */
struct sideband_decoder {
	uint32_t cpu;
	uint64_t last_time; /* CLOCK_MONOTONIC of the last record */
	uint64_t now;	    /* as far as it was requested */
	uint64_t damaged;   /* records that made no sense */
	union sideband_space out;
};
int sideband_decode(struct sideband_decoder *decoder, struct perf_event_header *record,
		    event_push_fn sink, void *context);

#define OUTPUT_OVERHEAD 16u /* bytes of a record of an output ring that are not the event's */
/*
 * A record of an output ring as the event the program wrote; NULL: it is none (lost records, which
 * the program counts itself, or damage).
 */
struct event_header *output_decode(struct perf_event_header *record);

#endif
