/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of a survey about a process that may not answer: reader processes read its files (see helpers/pool.h), one
 * request for each thing that can block a reader.
 */
#ifndef SESSION_SURVEY_READER_H
#define SESSION_SURVEY_READER_H

#include <limits.h>
#include <stdint.h>

#include "helpers/pool.h"

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

#endif
