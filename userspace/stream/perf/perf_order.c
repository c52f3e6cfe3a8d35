/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/perf/perf_order.h"

#include <errno.h>

#include "base/minmax.h"
#include "stream/perf/perf_sample.h"

#define PIECE (64u << 10) /* bytes of records */

void perf_order__fini(struct perf_order *o)
{
	vec_free(&o->earliest);
}

bool perf_time__is_one(uint64_t time)
{
	return time && time != UINT64_MAX;
}

/* ---- times ----------------------------------------------------------------------------------- */

static uint64_t next_time(struct perf_order *o)
{
	return o->last + (o->last < UINT64_MAX - 1);
}

static uint64_t sample_time(struct perf_order *o, const struct perf_file *file, struct cursor body)
{
	const struct perf_kind *kind = perf_sample__kind(file, body);
	uint64_t time = kind ? perf_sample__time(kind, body) : 0;

	o->has_sample = true;
	return perf_time__is_one(time) ? time : kind ? next_time(o) : 0;
}

static uint64_t end_time(struct perf_order *o, const struct perf_file *file,
			 const struct perf_event_header *record, struct cursor body)
{
	struct perf_sample end;

	perf_sample__cut_end(file, record, &body, &end);
	if (perf_time__is_one(end.time))
		return end.time;
	return o->has_sample && !file->has_times ? next_time(o) : 0;
}

uint64_t perf_order__time(struct perf_order *o, const struct perf_file *file,
			  const struct perf_event_header *record, struct cursor body)
{
	uint64_t time = 0;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		time = sample_time(o, file, body);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		time = end_time(o, file, record, body);
		break;
	}
	if (time)
		o->last = time;
	return time;
}

/* ---- order ----------------------------------------------------------------------------------- */

int perf_order__note(struct perf_order *o, const struct perf_event_header *record, uint64_t time)
{
	size_t piece = o->bytes / PIECE;

	o->bytes += record->size;
	while (o->earliest.count <= piece)
		if (vec_push(&o->earliest, UINT64_MAX))
			return -ENOMEM;
	if (time)
		o->earliest.data[piece] = min_u64(o->earliest.data[piece], time);
	return 0;
}

void perf_order__settle(struct perf_order *o)
{
	for (size_t i = o->earliest.count; i-- > 1;)
		o->earliest.data[i - 1] = min_u64(o->earliest.data[i - 1], o->earliest.data[i]);
	o->last = o->bytes = 0;
	o->has_sample = false;
}

uint64_t perf_order__bound(struct perf_order *o, const struct perf_event_header *record)
{
	size_t before = o->bytes / PIECE, piece;

	o->bytes += record->size;
	piece = o->bytes / PIECE;
	if (piece == before)
		return 0;
	return piece < o->earliest.count ? o->earliest.data[piece] : UINT64_MAX;
}
