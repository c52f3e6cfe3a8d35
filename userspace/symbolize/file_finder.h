/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that opens files named by profiled programs: debug files, dwz files, packages, .dwo, sources.
 *
 * Lookup, open, fstat and read may never return if a file system does not answer (FUSE, or an
 * overlay above it), and no signal ends them. So a child does them, with no more privileges than
 * reading takes, and hands over open files. A child silent for some seconds is abandoned and
 * replaced, and no more files of its module's user are searched: so hanging costs each user one
 * deadline. The cost of all modules of a user is bounded as well.
 *
 * The child is forked when needed, or early, while the caller has little memory. Not thread-safe.
 */
#ifndef SYMBOLIZE_FILE_FINDER_H
#define SYMBOLIZE_FILE_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/debug_file.h"
#include "symbolize/debug_writers.h"

struct file_finder;

struct finder_limits {
	uint64_t silence_ns; /* 0: that of its class */
	uint64_t user_ns;    /* that searching for one user's modules may take … */
	uint64_t others_ns; /* … and for those of all users but root; 0: by the table of quotas */
};

/* `limits`: of tests, or NULL. NULL: no memory. */
struct file_finder *file_finder__new(const struct finder_limits *limits);
void file_finder__free(struct file_finder *f);
/* Begins a run: resets counts, costs and hangs. `books`: of left-out files by owner, or NULL. */
void file_finder__begin(struct file_finder *f, struct outside_books *books);
/* Ends a run, and a child that was forked in it: it shares the memory that the caller had then. */
void file_finder__end(struct file_finder *f);
/* Fork the child now. 0, or negative errno: it is forked when it is needed. */
int file_finder__start(struct file_finder *f);

struct found_files {
	int debug_fd, alt_fd;  /* -1: none; the caller closes them */
	uint64_t package_size; /* bytes of MODULE.dwp, the package of its .dwo files; 0: none */
	uint64_t total_size;   /* bytes of the module and these two */
	uint64_t identity;     /* debug_file_identity(); 0: unknown */
	struct debug_writers writers; /* of these files */
};

/*
 * debug_file_find(), and all else that is needed of the files. 0 or negative errno; -ETIMEDOUT: do
 * not read the module either. counts->refusal has the reason of any refusal. While there is
 * nothing to report, the request's progress is called with 0 of 0 bytes.
 */
int file_finder__find(struct file_finder *f, const struct debug_file_request *request,
		      struct debug_file_counts *counts, struct found_files *found);

/* The module's last result, at most a minute old. Opens nothing, no descriptors. False: none. */
bool file_finder__recall(const struct file_finder *f, const struct debug_file_request *request,
			 struct found_files *found);

/*
 * tenant_open() of a .dwo file or package, `path`, of the module `elf_fd`, in root_fd (-1: skip),
 * else in our root. The rest of the request is not used, but for the user. Adds the file's writers.
 */
int file_finder__open(struct file_finder *f, const struct debug_file_request *request,
		      uint64_t size_limit, struct debug_writers *writers);

/*
 * source_file__open() of the absolute `path`, for `reader`, in root_fd (-1: in our root); or with `debuginfod`
 * what a server has for the build-id. The rest of the request is not used, but for the module and its user,
 * which are charged.
 */
int file_finder__open_source(struct file_finder *f, const struct debug_file_request *request,
			     uint32_t reader, uint64_t size_limit, bool *is_fetched);

/* Its process, for tests; 0: there is none. */
pid_t file_finder__child(const struct file_finder *f);

/* Processes that had to be left behind, or killed because they did not answer. */
uint64_t file_finder__abandoned(const struct file_finder *f);
/* To the child, in this run. */
uint64_t file_finder__requests(const struct file_finder *f);

#endif
