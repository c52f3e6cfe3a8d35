/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages between a file finder and its child, over a socket of datagrams that carries descriptors. */
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

enum finder_question { FINDER_MODULE, FINDER_KERNEL, FINDER_OPEN };

/* With descriptors: the module and the root directory, those of them that are there, in this order. */
struct finder_request {
	enum finder_question question;
	bool has_elf, has_root, has_path;
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
	uint8_t is_progress; /* done and total alone count, and more will come */
	uint8_t has_debug, has_alt;
	uint8_t copies_left; /* files that have more data than the copies may */
	int err;	     /* 0 or negative */
	uint64_t copied;     /* bytes */
	uint64_t done, total;
	uint64_t package_size, total_size, identity;
};

/*
 * Fork it. Its counts are shared memory: they outlive it. The pid, and *socket is the caller's; or negative errno.
 */
pid_t finder_child__start(struct debug_file_counts *shared_counts, bool debuginfod, int *socket);

/* One datagram with up to FINDER_FDS descriptors (-1: left out). 0 or negative errno. */
int finder_send(int socket, const void *message, size_t size, const int fds[FINDER_FDS]);
/*
 * Receive one: its size, 0 at the end, or negative errno. fds[] are the descriptors that came with it, in their order, and then
 * -1; they are the caller's.
 */
ssize_t finder_receive(int socket, void *message, size_t size, int flags, int fds[FINDER_FDS]);

#endif
