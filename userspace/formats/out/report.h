/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as a table or a tree: what `sysprof report` prints, and the .txt format. */
#ifndef FORMATS_OUT_REPORT_H
#define FORMATS_OUT_REPORT_H

#include <stdbool.h>

#include <sysprof/exporter.h>

#include "elf/disassembly.h"

enum report_by {
	REPORT_FUNCTION,
	REPORT_THREAD,
	REPORT_PROCESS,
	REPORT_DSO,
	REPORT_LINE, /* executing lines; functions if the line is unknown */
	/* names of processes, from here on */
	REPORT_SERVICE,
	REPORT_CONTAINER,
	REPORT_UNIT,
	REPORT_USER,
	REPORT_BY_COUNT
};

static inline bool report_by_names(enum report_by by)
{
	return by >= REPORT_SERVICE;
}

/* Rows are threads, or all threads of one or more processes; else code. */
static inline bool report_by_tasks(enum report_by by)
{
	return by == REPORT_THREAD || by == REPORT_PROCESS || report_by_names(by);
}

enum report_shape {
	REPORT_TABLE,
	REPORT_TREE,	   /* from the roots of the stacks down */
	REPORT_CALLERS,	   /* from the functions with most samples up to their callers */
	REPORT_ANNOTATION, /* lines and instructions of `annotate` */
};

#define REPORT_TOP_DEFAULT 40 /* rows of a table; a tree has no limit but its least share */
#define REPORT_TREE_MIN	   0.005

/* The rows that waiting time is divided into. */
enum report_wall_by {
	REPORT_WALL_STATE,
	REPORT_WALL_FUNCTION, /* the innermost function of the program itself, and how it waits */
	REPORT_WALL_THREAD,
	REPORT_WALL_HOLDER, /* waits for locks, by the thread that has them */
	REPORT_WALL_BY_COUNT
};

struct report_options {
	enum report_by by;
	enum report_shape shape;
	bool wall; /* what threads do, not CPU samples: `wall_by` instead of `by` and `shape` */
	enum report_wall_by wall_by;
	bool parked;	  /* the waits of parked threads as any other (formats/out/waits.h) */
	double min_share; /* 0..1: rows with less self, nodes with less total are left out */
	bool json;
	const char *annotate; /* a function or FILE:LINE (formats/out/annotation.h) */
	bool assembly;	      /* … with instructions */
	bool whole_source;    /* … all lines of its files */
	enum disassembly_syntax syntax;
	/* Of a terminal; text only. */
	bool color, utf8;
	unsigned int width; /* columns; 0: lines are as long as they are */
};

/* "function", "thread", "process", "dso", "line", "service", …; -EINVAL. */
int report_by_parse(const char *text, enum report_by *by);

/*
 * Uses profile, out, top and left_out of the request. 0 or -errno, or only ferror() is set. -ENOENT:
 * what is to be annotated is not in the profile.
 */
int report_write(const struct export_request *request, const struct report_options *options);

#endif
