/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts and JSON members of several formats: clocks, books, JIT code, limits, file names. */
#ifndef FORMATS_OUT_DESCRIBE_H
#define FORMATS_OUT_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

#include "base/json_writer.h"
#include "base/text_line.h"
#include "profile/figures.h"

/* Is the wall clock at the start known? Files of engines may have other clocks instead. */
bool export_has_realtime(const struct profile *p);

/* ns between two ticks; 1 ms if they are not of a clock: viewers want an interval. */
uint64_t export_period(const struct profile *p);

/* Each describe_…() returns `text`. */

/* "TSC at 2100.000 MHz" or "CLOCK_MONOTONIC" */
#define CLOCK_TEXT_SIZE 64
const char *describe_clock(char *text, size_t size, const struct profile *p);

/* "machine code of 12 functions (3.4 KB), 2 sources (10.1 KB)"; "": the profile has neither. */
const char *describe_contents(char *text, size_t size, const struct profile *p);
#define CONTENTS_TEXT_SIZE 128

/* "90 delivered + 10 idle": the values of figures from `first` on. 0 only of the first `always`. */
void add_counts(struct text_line *line, unsigned int first, unsigned int end,
		const uint64_t *values, unsigned int always);

/* "irq 0.010 s, softirq 1.200 s", by enum cpu_time, without those that are 0; "": all are. */
#define CPU_TIMES_TEXT_SIZE 160
const char *describe_cpu_times(char *text, size_t size, const uint64_t *times);

/* The books of the visitor in two lines: visits, and the results of looks at threads. */
#define VISITS_TEXT_SIZE 384
const char *describe_visits(char *text, size_t size, const struct figures *f);
const char *describe_looks(char *text, size_t size, const struct figures *f);

/*
 * Times in which something was lost, at most LOST_SPANS_MAX: if there are more ranges, several
 * consecutive ones are a span. `at` begins with 0. False: there is none after it.
 */
#define LOST_SPANS_MAX 2048u
struct lost_span {
	uint64_t since, until;
	size_t ranges;
};
bool next_lost_span(const struct profile *p, size_t *at, struct lost_span *span);

/* The states of perf maps and jitdumps. */
extern const struct jit_file_words {
	const char *name, *text;
} jit_file_states[JIT_FILE_STATE_COUNT];

/*
 * The JIT code of a process in one line: files with its names, samples without a name or with an
 * ambiguous one, and the remedy. It may contain any bytes.
 */
const char *describe_jit(char *text, size_t size, const struct profile *p,
			 const struct profile_jit *jit);

/* One line, at most 255 bytes: how reliable names from a runtime's memory are, without its name. */
#define RUNTIME_TEXT_SIZE 256
const char *describe_runtime(char *text, size_t size, const struct profile_runtime *runtime);
/* Processes with JIT code in JSON: the first JITS_MAX, with JITS_PATHS_MAX bytes of paths. */
#define JITS_MAX       4096u
#define JITS_PATHS_MAX (1u << 20)
size_t described_jits(const struct profile *p);
/* Counts the others in the request. */
void report_jits_left_out(const struct export_request *request);

/* A row of the books of the outside, in one line of at most 255 bytes. */
const char *describe_outside(char *text, size_t size, const struct profile_outside *row);
/* The build-id of a dso; size 0: unknown. That of the kernel is in the facts about the machine. */
struct dso_build_id {
	uint8_t size;
	uint8_t bytes[BUILD_ID_SIZE];
};
void dso_build_id(const struct profile *p, struct dso_id id, struct dso_build_id *build_id);

/*
 * What a filter kept, and what each of its clauses dropped: lines of two texts, "kept" with
 * "12 of 34 samples, 1.200000000 s of …" and all clauses, then "dropped" with "22 samples, …" and
 * one. None without a filter. Clauses have any bytes. 0, or the first error of `add`.
 */
#define FILTER_COUNTS_SIZE 256
int describe_filter(const struct profile *p,
		    int (*add)(void *context, const char *what, const char *counts,
			       const char *clauses),
		    void *context);

/* The member "partOf": what the filters kept and dropped, also those of the file that was read. */
int write_part_of(const struct profile *p, struct json_writer *w);

/*
 * Facts of a recording in plain lines, for formats without fields for them: product, command,
 * machine, start on CLOCK_MONOTONIC, what became of every tick and visit, losses, cut stacks. `add`
 * gets each line, of any bytes. 0, or the first error of `add`.
 */
int export_comments(const struct profile *p, int (*add)(void *context, const char *text),
		    void *context);

/* The member "visits" of a recording with waits, as in docs/report.schema.json. */
void write_visits(const struct figures *f, struct json_writer *w);

/* Figures of a whole recording as JSON: in the report, the page and Chrome's formats. */

/* An object, the "summary" of the report's JSON: docs/report.schema.json describes it. */
void write_summary(const struct profile *p, const struct figures *f, struct json_writer *w);

/* The member "recording" of a file of one thread or all, in Chrome's camel case. */
int write_recording(const struct profile *p, struct json_writer *w);

#endif
