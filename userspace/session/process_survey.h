/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports what can be unwound and named in a process, and how to improve it, without recording it.
 *
 * Its files and memory are read by reader processes of a pool of its own, its perf map and jitdumps by a watcher as
 * in a recording: a reader that does not answer is reported, and costs a few seconds at most in all.
 */
#ifndef SESSION_PROCESS_SURVEY_H
#define SESSION_PROCESS_SURVEY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "base/log.h"
#include "base/vec.h"
#include "helpers/pool.h"
#include "runtimes/runtime.h"

#define SURVEY_FILES_MAX 512u /* of one process; others are counted */
#define SURVEY_MAPS_MAX	 8u

/*
 * Requests of a survey about a process that may not answer: reader processes read its files (see helpers/pool.h), one
 * request for each thing that can block a reader.
 */

/* A file that is mapped at [start, end). */
struct survey_mapping {
	uint32_t pid, reserved;
	uint64_t start, end;
	char path[PATH_MAX]; /* as mapped */
};

/* ---- what a file has: survey_file__serve ------------------------------------------------------ */

enum survey_cfi {
	SURVEY_CFI_NONE,
	SURVEY_CFI_EH_FRAME,
	SURVEY_CFI_DEBUG_FRAME,
	SURVEY_CFI_GO, /* the function table of Go */
};

enum survey_debug {
	SURVEY_DEBUG_NONE,
	SURVEY_DEBUG_INSIDE,
	SURVEY_DEBUG_SEPARATE, /* a file of its own was found */
};

struct survey_file {
	int32_t error; /* 0, or why it cannot be opened or read: negative errno; -ENOEXEC: not ELF */
	uint8_t wide;  /* 64-bit x86 */
	uint8_t cfi;   /* enum survey_cfi */
	uint8_t symbols;  /* 1: .symtab; 2: .dynsym alone; 0: none */
	uint8_t debug;	  /* enum survey_debug */
	char version[32]; /* of the runtime in it: runtime.read_version; "" */
};

void survey_file__serve(struct helper_job *job);

/* ---- what is found of a process --------------------------------------------------------------- */

/* An executable file of the process. */
struct surveyed_file {
	char *path; /* as mapped; any bytes */
	uint64_t major_minor, inode;
	struct survey_mapping at; /* its first executable mapping, without the path */
	bool answered;
	struct survey_file file; /* if it did */
};

/* A perf map or jitdump, as a recording would take it. */
struct surveyed_map {
	enum jit_file_kind kind;
	enum jit_file_state state; /* NONE: it does not answer */
	uint32_t number;	   /* of the watcher */
	bool was_read;		   /* something of it was read */
	char *path;		   /* any bytes */
};

struct process_survey {
	pid_t pid;
	char comm[16];
	char state;	     /* of its first thread, as in /proc/PID/stat */
	const char *program; /* the path of the first of its files that is no library; NULL: none */
	bool maps_read;	     /* its mappings could be read */
	bool narrow;	     /* its program is not 64-bit x86: stacks have one frame */
	uint64_t made;	     /* bytes of executable memory without a file */
	size_t left_out;     /* executable files beyond SURVEY_FILES_MAX */
	bool memory_answered;
	struct runtime_findings found; /* in its memory, if that answered */
	VEC(struct surveyed_file) files;
	VEC(struct surveyed_map) maps;
	VEC(struct surveyed_runtime) runtimes;
};

/*
 * Looks at a process; forks readers, so the caller must have one thread. 0; -ESRCH, -ECHILD (a zombie), -ENOTSUP (a kernel
 * thread): it cannot be recorded, `failure` has the sentence; or another negative errno. The caller ends it in any case.
 */
int process_survey__run(pid_t pid, struct process_survey *survey, struct failure *failure);
void process_survey__fini(struct process_survey *survey);

/* Judges what was found: fills `runtimes`. Part of _run(). 0 or -ENOMEM. */
int process_survey__judge(struct process_survey *survey);

#endif
