/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_PYTHON_FIND_H
#define RUNTIMES_PYTHON_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/python/layout.h"

struct elf_file;
struct target_memory;

/*
 * CPython in an image of a process: address, version and layout of its _PyRuntime.
 *
 * Symbols of the file (cpython_symbols) may be cached by the file's identity; addresses are those
 * of one process. The runtime is recognized by content, not by a file's name: it may be in the
 * program, in libpython, or in anything that it was linked into.
 */

#define CPYTHON_CODE_BYTES 64u

/* Virtual addresses of the file; 0: unknown. */
struct cpython_symbols {
	uint64_t runtime;      /* section .PyRuntime (3.11 on), or the symbol _PyRuntime */
	uint64_t runtime_size; /* of the section; 0: by the symbol */
	uint64_t version_word; /* Py_Version: 3.11 on */
	uint64_t code_type;    /* PyCode_Type */
	uint64_t gilstate;     /* PyGILState_GetThisThreadState(), and how it begins */
	uint8_t gilstate_code[CPYTHON_CODE_BYTES];
	size_t gilstate_size;
};

/*
 * The symbols of the CPython in a file. 0; -ENOENT: none; -ENOEXEC: not 64-bit x86. Reads section
 * headers, exported objects (bounded by elf_file__each_object()), and, if there is one, functions.
 */
int cpython_symbols__read(struct elf_file *file, struct cpython_symbols *symbols);

/* An image of a process. */
struct cpython_image {
	const struct cpython_symbols *symbols; /* of its file */
	uint64_t bias;			       /* what is added to addresses of the file */
};

/*
 * CPYTHON_OK and *py; else why not. CPYTHON_NOT_STARTED: the version needs a self-check, and has no
 * Python frame yet.
 */
enum cpython_verdict cpython__find(const struct cpython_image *image, struct target_memory *m,
				   struct cpython *py);

/*
 * The GIL of the main interpreter: the address of {PyThreadState *holder; int locked}, and that
 * interpreter (0: all share one, 3.11). 0; -ENOENT: none (yet), or another layout; or as a read.
 */
struct cpython_main_gil {
	uint64_t address, interpreter;
};
int cpython_gil__of_main(const struct cpython *py, struct target_memory *m,
			 struct cpython_main_gil *main);

#endif
