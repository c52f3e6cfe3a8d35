/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processed format of the Firefox Profiler and Gecko's own have in common: the facts of a
 * file, processes and threads, and what a row of samples counts.
 *
 * A row's CPU time is what the thread used since the row before. A row without a stack, or with an
 * idle or waiting leaf, is no CPU sample and passes it on. Rows of other tools without CPU time are
 * no CPU samples either. Without CPU times, or with cycles, a sample is its weight in intervals.
 *
 * If the weights of some thread are times ("tracing-ms"), shares are of time in all of them, and how
 * many samples there were is unknown (profile.uncounted). In our own files they can be events, which
 * have numbers of samples beside them.
 */
#ifndef FORMATS_IN_FIREFOX_FILE_H
#define FORMATS_IN_FIREFOX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strtab.h"
#include "formats/in/firefox.h"

#define FIREFOX_MS_SCALE   6
#define FIREFOX_US_SCALE   3
#define FIREFOX_TIME_LIMIT (1LL << 61)

enum firefox_cpu_unit { CPU_ABSENT, CPU_NS, CPU_US, CPU_CYCLES };

struct firefox_file {
	struct json_text text;
	struct profile_builder *b;
	struct firefox_common common;
	struct strtab *pids;		  /* as they are written: "12", and in ours "12.1" */
	VEC(struct process_id) processes; /* by number in pids */
	bool ours;
	bool events_are_cpu;	 /* … and the weights are its CPU time */
	bool has_times;		 /* weights are times */
	bool has_cpu, lacks_cpu; /* rows of some thread have CPU time, have none */
	enum firefox_cpu_unit unit;
	uint64_t base;	   /* ns: time 0 of the file */
	uint64_t begin;	   /* ns: of the first process with samples; 0: there is none */
	int64_t shift;	   /* ns: from there to time 0 of the threads */
	int64_t realtime;  /* ns since 1970, of time 0 of the file; 0: unknown */
	uint64_t interval; /* ns */
	bool by_weights;   /* its weights are no samples: how many there are is unknown, or … */
	uint64_t weight_period; /* … each has this number; 0: unknown */
	uint64_t end;
};

/* Members of a thread. */
struct firefox_thread {
	struct json_value name, process_name, pid, tid, start, end, process_start, process_end;
	struct json_value own; /* "$sysprof": the names in our own files */
	bool is_main;
};

/* Where the rows of a thread go, what they have, and what the next one adds to. */
struct firefox_rows {
	struct process_id process;
	struct thread_id thread;
	struct string_id comm;
	bool has_weight, has_cpu, deltas, weights_are_ms;
	int64_t now;  /* ns since time 0 */
	uint64_t acc; /* CPU time since the last sample */
	size_t count; /* of rows so far */
};

/* The numbers of a row; those that it does not have are null. */
struct firefox_row {
	struct json_number stack, time, weight, cpu, ticks;
};

/* 0 or -ENOMEM. Fini also fills the session of the profile. */
int firefox_file__init(struct firefox_file *r, const struct import_request *request,
		       struct import_failure *failure);
void firefox_file__fini(struct firefox_file *r);

/* A time in milliseconds as ns; 0 if it is no number. */
int firefox_ms(const struct json_text *text, struct json_value value, int64_t limit, int64_t *ns);

/* ns from time 0 of the threads on, as the time of the profile. */
uint64_t firefox_file__time(const struct firefox_file *r, int64_t ns);

int firefox_file__meta(struct firefox_file *r, struct json_value meta);
/* The unit of CPU times: "sampleUnits" of meta, if it is an object. */
int firefox_file__units(struct firefox_file *r, struct json_value units);

/* Fills process, thread and comm of `rows`, which is otherwise 0. */
int firefox_file__thread(struct firefox_file *r, const struct firefox_thread *v,
			 struct firefox_rows *rows);

int firefox_file__row(struct firefox_file *r, struct firefox_in *in, struct firefox_rows *rows,
		      const struct firefox_row *numbers);
/* The weights of all threads are no numbers of samples. `period`: of each sample; 0: unknown. */
void firefox_file__weights(struct firefox_file *r, uint64_t period);
/* The CPU time behind the last row. */
int firefox_file__end(struct firefox_file *r, const struct firefox_rows *rows);

#endif
