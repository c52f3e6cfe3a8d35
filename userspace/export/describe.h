/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts and JSON members that several formats share: clocks, books, JIT code, limits, names of files. */
#ifndef EXPORT_DESCRIBE_H
#define EXPORT_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/json_writer.h"
#include "base/text_line.h"
#include "profile/figures.h"

/* Is the wall clock at the start of the profile known? Engines write other clocks into their files. */
bool export_has_realtime(const struct profile *p);

/* "TSC at 2100.000 MHz" or "CLOCK_MONOTONIC" */
#define CLOCK_TEXT_SIZE 64
void describe_clock(char *text, size_t size, const struct profile *p);

/* "90 delivered + 10 idle": counts of all lines of the books, or of the first and those that are not 0. */
void add_ticks(struct text_line *line, const uint64_t lines[BOOK_COUNT], bool all);
extern const char *const visit_line_names[VISIT_LINE_COUNT];

/*
 * The JIT code of a process, in one line: the files with its names, the samples without a name or with
 * an ambiguous one, and the remedy. It may contain any bytes.
 */
void describe_jit(char *text, size_t size, const struct profile *p, const struct profile_jit *jit);

/*
 * How sure the names are that were read from the memory of processes with a runtime, in one line of at most 255 bytes, without
 * the runtime's name.
 */
#define RUNTIME_TEXT_SIZE 256
void describe_runtime(char *text, size_t size, const struct profile_runtime *runtime);
/* How many processes with JIT code are in JSON, from the first on: JITS_MAX, with paths of JITS_PATHS_MAX bytes. */
#define JITS_MAX       4096u
#define JITS_PATHS_MAX (1u << 20)
size_t described_jits(const struct profile *p);

/* A row of the books of the outside, in one line of at most 255 bytes. */
void describe_outside(char *text, size_t size, const struct profile_outside *row);
/* The build-id of a dso; size 0: unknown. That of the kernel is in the facts about the machine. */
struct dso_build_id {
	uint8_t size;
	uint8_t bytes[BUILD_ID_SIZE];
};
void dso_build_id(const struct profile *p, struct dso_id id, struct dso_build_id *build_id);

/* The name shown for a dso: never empty. The kernel is "[kernel.kallsyms]", as in other tools. */
const char *dso_display_name(const struct profile *p, struct dso_id id);

/*
 * Facts of a recording in plain lines, for formats that have no fields for them: the product, the command, the machine, the
 * start on CLOCK_MONOTONIC, what became of every tick, what was lost and which stacks were cut. `add` gets a line each, of
 * any bytes. 0, or the first error of `add`.
 */
int export_comments(const struct profile *p, int (*add)(void *context, const char *text),
		    void *context);

/* The figures of a whole recording as JSON: in the report and the page, and as a member of our own in Chrome's formats. */

/* An object, the "summary" of the report's JSON: docs/report.schema.json describes it. */
void write_summary(const struct profile *p, const struct figures *f, struct json_writer *w);

/* The member "recording" of a file of one thread or of all, in the camel case of Chrome's formats. */
void write_recording(const struct profile *p, struct json_writer *w);

#endif
