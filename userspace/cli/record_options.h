/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `sysprof record`, parsed; nothing is acted on here. */
#ifndef CLI_RECORD_OPTIONS_H
#define CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/outputs.h"
#include "session/session.h"
#include "session/target_names.h"

#define DEPTH_DEFAULT	      256
#define UNWIND_MEMORY_DEFAULT 64 /* MiB */
#define RING_MEMORY_DEFAULT   (RING_BYTES_DEFAULT >> 20)
#define PID_LIMIT	      4194304 /* PID_MAX_LIMIT of 64-bit kernels */

enum verbosity { QUIET, NORMAL, VERBOSE, DEBUGGING };

/* Where the arguments of COMMAND are: in the recording, in all files, or in none. */
enum arguments_choice { ARGUMENTS_RECORDED, ARGUMENTS_SHOWN, ARGUMENTS_NOWHERE };

/* For a target by name; by default it waits. */
enum wait_choice { WAIT_DEFAULT, WAIT_YES, WAIT_NO };

enum call_graph { CALL_GRAPH_AUTO, CALL_GRAPH_FP, CALL_GRAPH_NONE };

struct number_list {
	uint32_t *data;
	size_t count; /* 0: it was not given */
};

struct record_options {
	struct session_options session;		     /* what is not below is set in it */
	struct number_list processes, threads, cpus; /* -p, -t, -C */
	bool all;
	struct target_names *names; /* --comm, …; NULL: none */
	enum wait_choice wait;	    /* for one of them */
	char **command;		    /* NULL-ended, or NULL; points into argv */
	uint64_t duration;	    /* ns, 0: no limit */
	enum call_graph call_graph;
	unsigned int unwind_memory; /* MiB */
	unsigned int ring_memory;   /* MiB, of all CPUs */
	bool wall, wall_requested;  /* by default where it is possible, or --wall */

	struct outputs outputs;
	struct symbolizer_options symbols; /* .cache: tables are cached as well */
	enum arguments_choice arguments;
	bool open; /* --open */
	enum verbosity verbosity;
};

extern const struct cli_option record_option_rows[];

/* 0, or EXIT_USAGE after printing what is wrong. */
int record_options__parse(struct record_options *options, int argc, char **argv);
void record_options__fini(struct record_options *options);

/* "-p 12,34", "-a", "-- make -j2": what was requested, for the metadata. */
void record_options__describe_target(const struct record_options *options, char *text, size_t size);
/* "sysprof record … -- make …": the command line without options and arguments. */
void record_options__describe_run(const struct record_options *options, char *text, size_t size);

#endif
