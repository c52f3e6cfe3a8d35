/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds what can be unwound and named in a process, and how to improve it, without recording it.
 *
 * Reader processes read its files and memory, a watcher its perf map and jitdumps, as in a
 * recording. One that does not answer is reported; all together cost a few seconds at most.
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
#include "runtimes/runtime.h"
#include "tenants/pool.h"

#define SURVEY_FILES_MAX 512u /* of one process; others are counted */
#define SURVEY_MAPS_MAX	 8u

/* A request: a file that is mapped at [start, end). Each can block a reader by itself. */
struct survey_mapping {
	uint32_t pid, reserved;
	uint64_t start, end;
	char path[PATH_MAX]; /* as mapped */
};

/* ---- what a file has: survey_file__serve ----------------------------------------------------- */

enum survey_cfi {
	SURVEY_CFI_NONE,
	SURVEY_CFI_EH_FRAME,
	SURVEY_CFI_DEBUG_FRAME,
	SURVEY_CFI_GO,	   /* the function table of Go */
	SURVEY_CFI_LITTLE, /* .eh_frame of a small part of the code */
};

enum survey_debug {
	SURVEY_DEBUG_NONE,
	SURVEY_DEBUG_INSIDE,
	SURVEY_DEBUG_SEPARATE, /* a separate file was found */
	SURVEY_DEBUG_ZSTD,     /* as INSIDE, compressed by a method that not each libelf supports */
};

struct survey_file {
	int32_t error;	  /* 0, or why it cannot be read: negative errno; -ENOEXEC: not ELF */
	uint8_t wide;	  /* 64-bit x86 */
	uint8_t cfi;	  /* enum survey_cfi */
	uint8_t symbols;  /* 1: .symtab; 2: .dynsym alone; 0: none */
	uint8_t debug;	  /* enum survey_debug */
	char version[32]; /* of its runtime, from runtime.read_version; or "" */
};

void survey_file__serve(struct helper_job *job);

/* ---- findings -------------------------------------------------------------------------------- */

/* An executable file of the process. */
struct surveyed_file {
	char *path; /* as mapped; any bytes */
	uint64_t major_minor, inode;
	struct survey_mapping at; /* its first executable mapping, without the path */
	bool answered;
	struct survey_file file; /* if answered */
};

/* A perf map or jitdump, as a recording would follow it. */
struct surveyed_map {
	enum jit_file_kind kind;
	enum jit_file_state state; /* NONE, HUNG: no answer */
	uint32_t number;	   /* given by the watcher */
	bool was_read;		   /* something of it was read */
	char *path;		   /* any bytes */
};

struct process_survey {
	pid_t pid;
	char comm[16];
	char state;	     /* of its first thread, as in /proc/PID/stat */
	const char *program; /* path of its first file that is not a library; NULL: none */
	bool maps_read;	     /* its mappings could be read */
	bool narrow;	     /* its program is not 64-bit x86: stacks have one frame */
	uint64_t made;	     /* bytes of executable memory without a file */
	size_t left_out;     /* executable files beyond SURVEY_FILES_MAX */
	bool memory_answered;
	struct runtime_findings found; /* in its memory, if memory_answered */
	VEC(struct surveyed_file) files;
	VEC(struct surveyed_map) maps;
	VEC(struct surveyed_runtime) runtimes;
};

/*
 * Forks readers, so the caller must have one thread. 0 or negative errno with `failure` filled;
 * -ESRCH, -ECHILD (a zombie), -ENOTSUP (a kernel thread): not recordable. Always free it.
 */
int process_survey__run(pid_t pid, struct process_survey *survey, struct failure *failure);
void process_survey__fini(struct process_survey *survey);

/* Fills `runtimes` from the findings. Part of _run(). 0 or -ENOMEM. */
int process_survey__judge(struct process_survey *survey);

#endif
