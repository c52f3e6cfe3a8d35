/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which runtimes a process has, and how each of them keeps what its functions are called. In a reader: files and memory are
 * the process's own.
 */
#ifndef RUNTIMES_FINDER_H
#define RUNTIMES_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "runtimes/runtime.h"
#include "runtimes/target_memory.h"

#define FOUND_FILE_CODE 64u

struct found_runtimes {
	pid_t pid;
	int mem;		     /* /proc/PID/mem; 0: it could not be opened */
	uint32_t user;		     /* of the process: tenant_user() */
	struct target_memory memory; /* for one request */
	struct target_range
		file_code[FOUND_FILE_CODE]; /* executable mappings of files: no code that is made */
	uint32_t file_code_count;
	bool may_come; /* a runtime is there, and has not begun yet: worth another look */
	void *state[RUNTIME_MEMORIES_MAX]; /* of each runtime_memory(), by its number */
};

/* May it be a program, which may have a runtime linked into it whatever it is called? */
bool runtime_finder__is_program(const char *path);

/*
 * Looks at the files of its executable mappings that may have one in them, and at its program. 0; negative errno: its mappings cannot
 * be read. The caller ends it. It may not be moved.
 */
int runtime_finder__look(pid_t pid, struct found_runtimes *found);
void found_runtimes__fini(struct found_runtimes *found);

void found_runtimes__describe(const struct found_runtimes *found,
			      struct runtime_findings *findings);

/* Was it in a file's code when it was looked at? */
bool found_runtimes__is_file_code(const struct found_runtimes *found, uint64_t address);

/* Its memory, for one request. */
struct target_memory found_runtimes__memory(const struct found_runtimes *found);

#endif
