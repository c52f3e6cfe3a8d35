/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a survey asks of a process that may not answer: its files and its memory are looked at by reader processes (see
 * readers/reader_pool.h), one request for each thing that can hold a reader up.
 */
#ifndef SESSION_SURVEY_READER_H
#define SESSION_SURVEY_READER_H

#include <limits.h>
#include <stdint.h>

#include "readers/reader_pool.h"

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
	char version[32]; /* of libjvm.so: that of its JDK, by the file `release`; "" */
};

void survey_file__serve(struct reader_job *job);

/* ---- its runtimes: survey_runtimes__serve; the request is a pid ------------------------------- */

struct survey_memory {
	int32_t error; /* 0; negative errno: its mappings cannot be read */
	uint32_t v8_verdict, python_verdict;
	uint8_t has_v8, has_python;
	uint8_t has_hotspot;	 /* its frames are walked, */
	uint8_t has_methods;	 /* … and named */
	uint8_t frame_pointers;	 /* of HotSpot: enum hotspot_flag */
	uint32_t v8_version[3];	 /* major, minor, build */
	uint32_t python_version; /* PY_VERSION_HEX; 0: unknown */
};

void survey_runtimes__serve(struct reader_job *job);

#endif
