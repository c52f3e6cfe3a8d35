/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which runtimes a process has, and how each of them keeps what its functions are called. In a reader: files and memory are
 * the process's own.
 */
#ifndef JITWATCH_RUNTIME_FINDER_H
#define JITWATCH_RUNTIME_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "runtimes/cpython_find.h"
#include "runtimes/cpython_gil.h"
#include "runtimes/cpython_thread.h"
#include "runtimes/hotspot_heap.h"
#include "runtimes/hotspot_unloads.h"
#include "runtimes/target_memory.h"
#include "runtimes/v8_bytecodes.h"
#include "runtimes/v8_function.h"
#include "runtimes/v8_heap.h"
#include "runtimes/v8_trust.h"

struct v8_wasm;

#define FOUND_FILE_CODE	  64u
#define V8_FUNCTIONS_TOLD 1024u /* a power of two */

/* A function of V8 that was told with all that is known of such ones. */
struct v8_told {
	uint64_t sfi; /* 0: none */
	struct v8_identity identity;
};

struct found_runtimes {
	pid_t pid;
	int mem;		     /* /proc/PID/mem; 0: it could not be opened */
	uint32_t user;		     /* whose it is: tenant_user() */
	struct target_memory memory; /* for one request */
	bool has_v8, has_python;
	bool has_hotspot; /* hotspot, and hotspot_code, which refers to it */
	struct found_range {
		uint64_t start, end;
	} file_code[FOUND_FILE_CODE]; /* executable mappings of files: no code that is made */
	uint32_t file_code_count;
	bool may_come; /* a runtime is there, and has not begun yet: worth another look */
	enum v8_verdict v8_verdict; /* of the V8 that was found; ABSENT: of none */
	struct v8_layout v8;
	struct v8_bytecodes v8_bytecodes;
	struct v8_scripts *scripts;
	struct v8_reader v8_reader;
	struct v8_trust v8_trust;
	uint64_t v8_seen[V8_TRUST_CANDIDATES]; /* what it was tried on */
	struct v8_told *v8_told; /* V8_FUNCTIONS_TOLD, by a few bits of their address */
	struct v8_wasm *v8_wasm; /* NULL: nobody has asked */
	enum cpython_verdict python_verdict;
	struct cpython python;
	struct cpython_thread_word python_word;
	struct cpython_main_gil python_gil;
	struct hotspot_layout hotspot;
	struct hotspot_code hotspot_code; /* of that layout, at this place */
	struct hotspot_unloads hotspot_unloads;
	struct runtime_hotspot hotspot_words;
};

/* May a file of this name have a runtime in it that is found here? */
bool runtime_finder__is_candidate(const char *path);
/* May it be a program, which may have a runtime linked into it whatever it is called? */
bool runtime_finder__is_program(const char *path);

/*
 * Looks at the files of its executable mappings that may have one in them, and at its program. 0; negative errno: its mappings cannot
 * be read. The caller ends it. It may not be moved.
 */
int runtime_finder__look(pid_t pid, struct found_runtimes *found);
void found_runtimes__fini(struct found_runtimes *found);

/* How its Python is read. *there is false if it has none, or none that has begun. */
enum code_runtime_state found_runtimes__python(const struct found_runtimes *found, bool *there);

/* What the programs in the kernel have to know of it; `has` is 0 if that is nothing. */
struct runtime_info found_runtimes__info(const struct found_runtimes *found);

/* Was it in a file's code when it was looked at? */
bool found_runtimes__is_file_code(const struct found_runtimes *found, uint64_t address);

/* Its memory, for one request. */
struct target_memory found_runtimes__memory(const struct found_runtimes *found);

#endif
