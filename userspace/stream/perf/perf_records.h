/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of perf.data after the other as events, into a queue. Private to stream/perf. */
#ifndef STREAM_PERF_PERF_RECORDS_H
#define STREAM_PERF_PERF_RECORDS_H

#include "stream/event_queue.h"
#include "stream/perf/perf_file.h"
#include "stream/perf/perf_order.h"
#include "stream/perf/perf_tasks.h"
#include "stream/perf/sideband.h"

/* What a file has that is no part of its profile. X(ENUM, text) */
#define PERF_LEFT_OUT(X)                                                                           \
	X(DAMAGED, "damaged records")                                                              \
	X(BEHIND, "bytes behind the last whole record")                                            \
	X(COMPRESSED, "damaged compressed records")                                                \
	X(NO_LIBRARY, "compressed records, for which libzstd.so.1 is missing")                     \
	X(IDS, "ids of events over the limit of 1,048,576")                                        \
	X(BUILD_IDS, "build ids of paths over a limit")                                            \
	X(UNKNOWN, "samples of events that the file does not describe")                            \
	X(IDLE, "samples of idle CPUs, or tasks of other pid namespaces")                          \
	X(HIDDEN_TASKS, "samples of tasks of other pid namespaces")                                \
	X(NO_TIME, "samples without a time, which follow the order of the file")                   \
	X(WEIGHTS,                                                                                 \
	  "samples without a period (--no-period, at a frequency), which count as one event")      \
	X(COPIES, "copied user stacks (--call-graph dwarf), of which the innermost frame is read") \
	X(DEFERRED, "user stacks that were recorded after their samples")                          \
	X(BRANCHES, "samples with branches, of which the call chain is read")                      \
	X(GUESTS, "stacks of guests of KVM")                                                       \
	X(TRACES, "pieces of hardware traces")                                                     \
	X(LOST_OTHERS, "lost samples of other events")                                             \
	X(LOST_ANY,                                                                                \
	  "lost records that may be of processes and mappings (names may be wrong), or other "     \
	  "events")                                                                                \
	X(KERNEL_CODE, "reports of kernel code over the limit of 32,768")                          \
	X(TASKS, "records of more processes and threads than are read")                            \
	X(THROTTLED, "times that the kernel stopped the event for a while (throttling)")

enum perf_left_out {
#define X(name, text) PERF_LEFT_OUT_##name,
	PERF_LEFT_OUT(X)
#undef X
		PERF_LEFT_OUT_COUNT
};

/* What a counter has counted until its last sample; of an event that threads inherit, for a thread. */
struct perf_counter {
	uint64_t id;
	uint32_t tid;
	uint64_t counted;
};
MAP_TYPE(perf_counters, struct perf_counter);

struct perf_records {
	struct perf_file *file;
	struct event_queue *queue;
	/* events without a time, which hold from the time of the last one on */
	event_push_fn push_now;
	void *context;
	const struct perf_kind *kind; /* of the profile; NULL: no event has samples */
	bool is_clock;
	bool by_cpu;	    /* samples of the clock weigh their periods, which differ */
	bool is_timed;	    /* its samples were recorded with times */
	bool is_x86_64;	    /* the architecture: each has registers of its own */
	bool passes_copies; /* of user stacks, to be walked */
	struct perf_order order;
	struct perf_tasks tasks;
	uint64_t samples, bad, kernel_code;
	bool counts_losses; /* the file has them by event (perf 6.1) … */
	uint64_t lost;	    /* … and so many samples of the profile, not yet in an event */
	uint64_t left_out[PERF_LEFT_OUT_COUNT];
	struct perf_counters counters;
	union sideband_space space;
	/* one record, aligned, and one sample */
	_Alignas(8) uint8_t record[UINT16_MAX + 1];
	_Alignas(8) uint8_t sample[EVENT_LIVE_MAX];
};

/* Do the samples count nanoseconds? */
bool perf_kind__is_clock(const struct perf_kind *kind);
/* Are both one event, on two kinds of CPUs? */
bool perf_kind__is_same(const struct perf_kind *a, const struct perf_kind *b);
/* Which kind of CPU: the upper half of such an event's number is the PMU's. */
uint32_t perf_kind__pmu(const struct perf_kind *kind);

void perf_records__fini(struct perf_records *r);

/* First reading: counts a sample, also for the group of its event. Does a clock have several periods? */
void perf_records__note_sample(struct perf_records *r, struct perf_kind *kind, struct cursor body);
/* Before the second reading. */
void perf_records__forget_counters(struct perf_records *r);

/* First reading: what the counters of events have lost. */
void perf_records__note_losses(struct perf_records *r, const struct perf_event_header *record,
			       struct cursor body);

/*
 * Of a file without times, before its events: the first name of a process holds from the beginning. Its
 * record may stand behind its samples, in the ring of another CPU. 0, or an error of push_now.
 */
int perf_records__name_task(struct perf_records *r, const struct perf_event_header *record,
			    struct cursor body);

/* The record's event, if it is one. 0; -ENOMEM; or an error of push_now. */
int perf_records__take(struct perf_records *r, const struct perf_event_header *record,
		       struct cursor body);

#endif
