/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times of a file's records, and how far events can be passed on. perf writes the rings of CPUs one
 * after the other, and `perf inject --jit` all mappings of jitted code at one place: records can be far
 * from where their time is. The first reading notes the earliest time of each piece of the file. In the
 * second, events older than all that follows are in order. Private to stream/perf.
 */
#ifndef STREAM_PERF_PERF_ORDER_H
#define STREAM_PERF_PERF_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/vec.h"
#include "stream/perf/perf_file.h"

/* Zero-initialised. */
struct perf_order {
	uint64_t last;		/* time of a record, in the order of the file; 0: none yet */
	uint64_t bytes;		/* of records until now */
	bool has_sample;	/* one has come */
	VEC(uint64_t) earliest; /* of each piece; once settled, of it and all that follow */
};

void perf_order__fini(struct perf_order *order);

/* Has the record one? perf has 0 for none, and the kernel -1. */
bool perf_time__is_one(uint64_t time);

/*
 * The time of a record that becomes an event, ns; 0: it has none, and holds from the beginning. Samples
 * without one follow the record before. If no event was recorded with times, all records from the first
 * sample on do. To be called once for each record, in both readings.
 */
uint64_t perf_order__time(struct perf_order *order, const struct perf_file *file,
			  const struct perf_event_header *record, struct cursor body);

/* First reading, after each record with its time. 0 or -ENOMEM. */
int perf_order__note(struct perf_order *order, const struct perf_event_header *record,
		     uint64_t time);
/* Between the readings. */
void perf_order__settle(struct perf_order *order);
/* Second reading, after each record: later ones are not older than this. 0: wait. */
uint64_t perf_order__bound(struct perf_order *order, const struct perf_event_header *record);

#endif
