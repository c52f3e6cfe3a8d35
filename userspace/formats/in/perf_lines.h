/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of the text that perf script prints: which is what, and their fields.
 *
 * A sample is a line with its fields, in an order that does not change: comm, pid/tid, [cpu], flags, time, period,
 * event, and what a tracepoint says. Each of them may be missing (-F). Below it the frames of its stack, innermost
 * first, a line each, and an empty line. Without a callchain the one frame is at the end of the first line.
 *
 * A name may have blanks, digits, colons and brackets, so a line is read around what has a form of its own: the time
 * ("394.009006:"), and the first colon before a blank, which ends the event.
 */
#ifndef FORMATS_IN_PERF_LINES_H
#define FORMATS_IN_PERF_LINES_H

#include "formats/in/text_span.h"

enum perf_line {
	PERF_LINE_EMPTY,
	PERF_LINE_COMMENT,
	PERF_LINE_SAMPLE,
	PERF_LINE_RECORD, /* of --show-task-events and its like: `rest` is "PERF_RECORD_…" */
	PERF_LINE_FRAME,
	PERF_LINE_INDENTED, /* what belongs to the line above: a source line, more of a record */
	PERF_LINE_OTHER,
};

/* The fields of a sample or a record. What is missing is empty or 0. */
struct perf_fields {
	struct span comm, event, rest;
	uint64_t time, period; /* ns; events, of a clock ns */
	uint32_t pid, tid;     /* idle CPUs have 0 */
	uint16_t cpu;	       /* + 1; 0: unknown */
	bool has_pid, has_tid, has_time, has_period;
};

/* A frame of a stack. */
struct perf_frame {
	uint64_t address;
	struct span symbol; /* without its offset; empty: unknown */
	struct span dso;    /* empty: not printed, or "[unknown]"; perhaps with " (deleted)" */
	bool inlined;	    /* into the frame below it; its dso is not printed */
};

/* The line without its newline; `next` begins with the line that follows. */
enum perf_line perf_line__read(struct span line, struct span next, struct perf_fields *fields);

/* The address of a line that may be a frame; `symbol` is what follows. */
bool perf_line__address(struct span line, uint64_t *address, struct span *symbol);

/* false: the line is none. */
bool perf_line__frame(struct span line, struct perf_frame *frame);

/* A frame that lost its indentation: with an address of 8 digits or more, and a dso. */
bool perf_line__is_bare_frame(struct span line);

/* "file.c:12" below a frame (-F +srcline); false: none. */
bool perf_line__source(struct span line, struct span *file, uint32_t *number);

/* The task that a record is about, or which it begins; false: none. */
bool perf_line__task(struct span record, uint32_t *pid, uint32_t *tid);

/* A record of a task's new name; `name`: empty unless it is by an execve. false: none. */
bool perf_line__comm(struct span record, struct span *name);

/* The user part of the stack of an earlier sample, since perf 6.19. */
bool perf_line__is_deferred(struct span record);

/* How many records the kernel has lost, by a record of it; 0: another record. */
uint64_t perf_line__lost(struct span record);

#endif
