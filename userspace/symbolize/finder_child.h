/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages between a file finder and its child (helpers/message.h). */
#ifndef SYMBOLIZE_FINDER_CHILD_H
#define SYMBOLIZE_FINDER_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/debug_file.h"

#define FINDER_RELEASE_SIZE 128
#define FINDER_ID_MAX	    64
#define FINDER_FDS	    2

/* The service of a request. */
enum finder_question { FINDER_FIND, FINDER_OPEN };

/* With descriptors: the module and the root directory, those of them that are there, in this order. */
struct finder_request {
	bool has_elf, has_root, has_path, has_release;
	bool debuginfod, package, wants_progress;
	uint8_t build_id_size, build_id[FINDER_ID_MAX];
	uint64_t elf_base, size_limit;
	uint32_t copied_for;
	uint64_t copy_max; /* bytes of copies in memory (base/file_system.h) */
	char release[FINDER_RELEASE_SIZE];
	char path[PATH_MAX];
};

/* With descriptors: the debug file and the dwz file, or the one that was opened. */
struct finder_answer {
	uint8_t has_debug, has_alt;
	uint8_t copies_left; /* files that have more data than the copies may */
	int err;	     /* 0 or negative */
	uint64_t copied;     /* bytes */
	uint64_t package_size, total_size, identity;
};

/* MESSAGE_PROGRESS */
struct finder_progress {
	uint64_t done, total;
};

/*
 * Fork it. Its counts are shared memory: they outlive it. The pid, and *socket is the caller's; or negative errno.
 */
pid_t finder_child__start(struct debug_file_counts *shared_counts, bool debuginfod, int *socket);

#endif
