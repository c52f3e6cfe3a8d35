/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of a sample, and those that end every other record (sample_id_all). */
#ifndef STREAM_PERF_PERF_SAMPLE_H
#define STREAM_PERF_PERF_SAMPLE_H

#include "stream/perf/perf_file.h"

/* Fields that the event was not recorded with are 0, but for the CPU. */
struct perf_sample {
	uint32_t pid, tid;
	uint64_t time; /* of the clock of perf, ns; 0: none */
	uint64_t id, ip, period;
	uint64_t counted;     /* by the event's counter until then, if it has_counted */
	uint32_t cpu;	      /* UINT32_MAX: unknown */
	struct cursor counts; /* of a group, for perf_sample__next_count() */
	struct cursor chain;  /* eight bytes each: addresses, and PERF_CONTEXT_… before them */
	bool has_chain, has_branches, has_counted;
	/* the user registers: addresses by their numbers in the mask of the event; abi 0: none */
	uint64_t abi;
	struct cursor registers;
	struct cursor stack; /* the copied user stack, from the stack pointer on */
};

/* The kind of a sample by the id in it; NULL: the file does not have it. */
struct perf_kind *perf_sample__kind(const struct perf_file *file, struct cursor body);

/* The body of a PERF_RECORD_SAMPLE of that kind. False: damaged. */
bool perf_sample__parse(const struct perf_kind *kind, struct cursor body,
			struct perf_sample *sample);

/* What a counter has counted until a sample. */
struct perf_count {
	uint64_t id, value;
};

/* The next of the counters that come with a sample, the event's own first. False: it has no more, or no ids. */
bool perf_sample__next_count(const struct perf_kind *kind, struct cursor *counts,
			     struct perf_count *count);

/* The time alone; 0: none. */
uint64_t perf_sample__time(const struct perf_kind *kind, struct cursor body);

/* Takes what a record that is no sample ends with off its body. */
void perf_sample__cut_end(const struct perf_file *file, const struct perf_event_header *record,
			  struct cursor *body, struct perf_sample *sample);

/* The number of a register in the event's mask. False: it was not recorded. */
bool perf_sample__register(const struct perf_kind *kind, const struct perf_sample *sample,
			   unsigned int number, uint64_t *value);

#endif
