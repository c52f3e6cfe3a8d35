/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of the fields is that of PERF_RECORD_SAMPLE in linux/perf_event.h. */
#include "stream/perf/perf_sample.h"

#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "stream/perf/perf_records.h"
#include "stream/perf/sideband.h"

#define BRANCH_ENTRY	24u /* struct perf_branch_entry */
#define BRANCH_HW_INDEX (1ull << 17)
#define BRANCH_COUNTERS (1ull << 19)
#define READ_LOST	(1ull << 4)

/* ---- which event ----------------------------------------------------------------------------- */

/* Fields of eight bytes before the id. */
static unsigned int fields_before_id(uint64_t type)
{
	return (unsigned int)__builtin_popcountll(
		type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

struct perf_kind *perf_sample__kind(const struct perf_file *file, struct cursor body)
{
	struct perf_kind *first = file->kinds.data;
	uint64_t type, id;

	if (file->kinds.count <= 1)
		return file->kinds.count ? first : NULL;
	type = first->attr.sample_type;
	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return first;
	if (!(type & PERF_SAMPLE_IDENTIFIER))
		cursor__skip(&body, 8ull * fields_before_id(type));
	id = cursor__u64(&body);
	if (body.bad)
		return NULL;
	return id ? perf_file__kind(file, id) : first;
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint64_t times_in(uint64_t format)
{
	return !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
	       !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
}

static struct perf_count take_count(struct cursor *c, uint64_t format)
{
	struct perf_count count = {.value = cursor__u64(c)};

	if (!(format & PERF_FORMAT_GROUP))
		cursor__skip(c, 8 * times_in(format));
	count.id = format & PERF_FORMAT_ID ? cursor__u64(c) : 0;
	cursor__skip(c, format & READ_LOST ? 8 : 0);
	return count;
}

bool perf_sample__next_count(const struct perf_kind *kind, struct cursor *counts,
			     struct perf_count *count)
{
	if (counts->at == counts->end || !(kind->attr.read_format & PERF_FORMAT_ID))
		return false;
	*count = take_count(counts, kind->attr.read_format);
	return !counts->bad;
}

/* The counters that come with a sample: of a group, its own first, or that alone. */
static void take_counts(struct cursor *c, uint64_t format, struct perf_sample *s)
{
	uint64_t count = format & PERF_FORMAT_GROUP ? cursor__u64(c) : 1;

	if (format & PERF_FORMAT_GROUP)
		cursor__skip(c, 8 * times_in(format));
	c->bad |= count > UINT16_MAX;
	s->counts.at = c->at;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		struct perf_count read = take_count(c, format);

		if (!i || read.id == s->id)
			s->counted = read.value;
	}
	s->has_counted = count && !c->bad;
	s->counts.end = s->has_counted ? c->at : s->counts.at;
}

static struct cursor take_words(struct cursor *c, uint64_t count)
{
	struct cursor words = {};

	if (count > UINT16_MAX)
		c->bad = true;
	else
		words = cursor__take(c, 8 * count);
	return words;
}

static void skip_branches(struct cursor *c, uint64_t type)
{
	uint64_t count = cursor__u64(c);

	if (type & BRANCH_HW_INDEX)
		cursor__skip(c, 8);
	if (count > UINT16_MAX)
		c->bad = true;
	cursor__skip(c, c->bad ? 0 : BRANCH_ENTRY * count);
	if (type & BRANCH_COUNTERS)
		cursor__skip(c, c->bad ? 0 : 8 * count);
}

static void take_registers(const struct perf_event_attr *attr, struct cursor *c,
			   struct perf_sample *s)
{
	s->abi = cursor__u64(c);
	if (s->abi)
		s->registers = take_words(c,
					  (uint64_t)__builtin_popcountll(attr->sample_regs_user));
}

/* The room that was requested, and how much of it was there. */
static void take_stack(struct cursor *c, struct perf_sample *s)
{
	uint64_t room = cursor__u64(c), size;

	if (!room)
		return;
	if (room > UINT16_MAX)
		c->bad = true;
	s->stack = cursor__take(c, c->bad ? 0 : room);
	size = cursor__u64(c);
	if (size < room)
		s->stack.end = s->stack.at + size;
}

/* What comes behind the chain. */
static void take_rest(const struct perf_event_attr *attr, struct cursor *c, struct perf_sample *s)
{
	uint64_t type = attr->sample_type;

	if (type & PERF_SAMPLE_RAW)
		cursor__skip(c, cursor__u32(c));
	s->has_branches = type & PERF_SAMPLE_BRANCH_STACK;
	if (s->has_branches)
		skip_branches(c, attr->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		take_registers(attr, c, s);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(c, s);
}

/*
 * With PERF_SAMPLE_PERIOD missing a sample stands for the period that was requested. At a frequency that
 * is the kernel's to choose, but for a clock. 0: unknown.
 */
static uint64_t usual_period(const struct perf_kind *kind)
{
	const struct perf_event_attr *attr = &kind->attr;

	if (!attr->freq)
		return attr->sample_period;
	return perf_kind__is_clock(kind) && attr->sample_freq ? NS_PER_SECOND / attr->sample_freq
							      : 0;
}

bool perf_sample__parse(const struct perf_kind *kind, struct cursor c, struct perf_sample *s)
{
	const struct perf_event_attr *attr = &kind->attr;
	uint64_t type = attr->sample_type;

	*s = (struct perf_sample){.period = usual_period(kind), .cpu = UINT32_MAX};
	if (type & PERF_SAMPLE_IDENTIFIER)
		s->id = cursor__u64(&c);
	if (type & PERF_SAMPLE_IP)
		s->ip = cursor__u64(&c);
	if (type & PERF_SAMPLE_TID) {
		s->pid = cursor__u32(&c);
		s->tid = cursor__u32(&c);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = cursor__u64(&c);
	if (type & PERF_SAMPLE_ADDR)
		cursor__skip(&c, 8);
	if (type & PERF_SAMPLE_ID)
		s->id = cursor__u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		cursor__skip(&c, 8);
	if (type & PERF_SAMPLE_CPU)
		s->cpu = (uint32_t)cursor__u64(&c);
	if (type & PERF_SAMPLE_PERIOD)
		s->period = cursor__u64(&c);
	if (type & PERF_SAMPLE_READ)
		take_counts(&c, attr->read_format, s);
	s->has_chain = type & PERF_SAMPLE_CALLCHAIN;
	if (s->has_chain)
		s->chain = take_words(&c, cursor__u64(&c));
	take_rest(attr, &c, s);
	return !c.bad;
}

uint64_t perf_sample__time(const struct perf_kind *kind, struct cursor c)
{
	uint64_t type = kind->attr.sample_type, time;

	if (!(type & PERF_SAMPLE_TIME))
		return 0;
	cursor__skip(&c, 8ull * (unsigned int)__builtin_popcountll(type & (PERF_SAMPLE_IDENTIFIER |
									   PERF_SAMPLE_IP |
									   PERF_SAMPLE_TID)));
	time = cursor__u64(&c);
	return c.bad ? 0 : time;
}

bool perf_sample__register(const struct perf_kind *kind, const struct perf_sample *sample,
			   unsigned int number, uint64_t *value)
{
	uint64_t mask = kind->attr.sample_regs_user;
	struct cursor c = sample->registers;

	if (number >= 64 || !sample->abi || !(mask >> number & 1))
		return false;
	cursor__skip(&c, 8ull * (unsigned int)__builtin_popcountll(mask & ((1ull << number) - 1)));
	*value = cursor__u64(&c);
	return !c.bad;
}

/* ---- the end of other records ---------------------------------------------------------------- */

#define END_FIELDS                                                                                 \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* If sample types differ, all have PERF_SAMPLE_IDENTIFIER, which is last here. */
static const struct perf_kind *kind_of_end(const struct perf_file *file, struct cursor body)
{
	const struct perf_kind *first = file->kinds.data, *kind;

	if (!file->kinds.count)
		return NULL;
	if (!file->sizes_differ || !(first->attr.sample_type & PERF_SAMPLE_IDENTIFIER) ||
	    body.end - body.at < 8)
		return first;
	cursor__skip(&body, (uint64_t)(body.end - body.at) - 8);
	kind = perf_file__kind(file, cursor__u64(&body));
	return kind ? kind : first;
}

/* Its bytes; 0: nothing. */
static size_t parse_end(const struct perf_file *file, struct cursor body, struct perf_sample *s)
{
	const struct perf_kind *kind = kind_of_end(file, body);
	uint64_t type = kind ? kind->attr.sample_type & END_FIELDS : 0, size;

	*s = (struct perf_sample){};
	size = 8ull * (unsigned int)__builtin_popcountll(type);
	if (!kind || !kind->attr.sample_id_all || !type || size > (uint64_t)(body.end - body.at))
		return 0;
	body.at = body.end - size;
	if (type & PERF_SAMPLE_TID) {
		s->pid = cursor__u32(&body);
		s->tid = cursor__u32(&body);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = cursor__u64(&body);
	if (type & PERF_SAMPLE_ID)
		s->id = cursor__u64(&body);
	if (type & PERF_SAMPLE_STREAM_ID)
		cursor__skip(&body, 8);
	if (type & PERF_SAMPLE_CPU)
		s->cpu = (uint32_t)cursor__u64(&body);
	if (type & PERF_SAMPLE_IDENTIFIER)
		s->id = cursor__u64(&body);
	return size;
}

/*
 * The kernel hands one PERF_RECORD_KSYMBOL to all listeners of a CPU, and lengthens it by a sample_id
 * for each: what is behind the first one is not part of it (up to Linux 6.18).
 */
static void cut_others(const struct perf_file *file, struct cursor *body)
{
	size_t fixed = sideband_fixed_size(PERF_RECORD_KSYMBOL) - sizeof(struct perf_event_header);
	size_t there = (size_t)(body->end - body->at), text;
	struct perf_sample unused;

	if (there < fixed)
		return;
	text = event_aligned(strnlen((const char *)body->at + fixed, there - fixed) + 1);
	body->end = body->at + fixed +
		    min_u64(there - fixed, text + parse_end(file, *body, &unused));
}

void perf_sample__cut_end(const struct perf_file *file, const struct perf_event_header *record,
			  struct cursor *body, struct perf_sample *s)
{
	if (record->type == PERF_RECORD_KSYMBOL)
		cut_others(file, body);
	body->end -= parse_end(file, *body, s);
}
