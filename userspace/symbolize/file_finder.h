/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that opens files named by profiled programs: debug files, dwz files, packages, .dwo files.
 *
 * Looking up a name, opening, fstat and reading may take for ever where a file system does not answer (FUSE, or an
 * overlay above it), and no signal ends that. So a child does these, with no more privileges than reading takes, and
 * hands over open files. A child without a message for some seconds is abandoned and replaced, and no more files of
 * its module's user and device are searched: so hanging costs each user one deadline. The cost of all modules of a
 * user is bounded as well.
 *
 * The child is forked when it is first needed, or before, while the caller has little memory. Not thread-safe.
 */
#ifndef SYMBOLIZE_FILE_FINDER_H
#define SYMBOLIZE_FILE_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/outside_books.h"
#include "symbolize/debug_file.h"

struct file_finder;

struct finder_limits {
	uint64_t silence_ns; /* 0: that of its class */
	uint64_t user_ns;    /* that searching for one user's modules may take … */
	uint64_t others_ns; /* … and for those of all users but root; 0: by the table of quotas */
};

/* `limits`: of tests, or NULL. NULL: no memory. */
struct file_finder *file_finder__new(const struct finder_limits *limits);
void file_finder__free(struct file_finder *f);
/*
 * Another run begins: what was counted, used and hung in the one before does not matter. Files that are left out are
 * counted in `books`, by the owner of the module; NULL: nowhere.
 */
void file_finder__begin(struct file_finder *f, struct outside_books *books);
/* The run has ended, and the child as well if it was forked in a run: it shares all memory that the caller had then. */
void file_finder__end(struct file_finder *f);
/* Fork the child now. 0, or negative errno: it is forked when it is needed. */
int file_finder__start(struct file_finder *f);

struct found_files {
	int debug_fd, alt_fd; /* -1: none; the caller closes them */
	uint64_t
		package_size; /* bytes of the package of its .dwo files, MODULE.dwp; 0: it has none */
	uint64_t total_size; /* bytes of the module and these two */
	uint64_t identity;   /* debug_file_identity(); 0: unknown */
};

/*
 * debug_file_find(), and everything else that is needed of the files. 0 or negative errno, of which -ETIMEDOUT: the module is not to be read either. In any case
 * counts->refusal is the reason if something was refused. The request's progress is called with 0 of 0 bytes while
 * there is nothing to report.
 */
int file_finder__find(struct file_finder *f, const struct debug_file_request *request,
		      struct debug_file_counts *counts, struct found_files *found);

/*
 * The result of the last search for this module, without descriptors, if that is no older than a minute. Nothing is opened
 * for it. False: there is none.
 */
bool file_finder__recall(const struct file_finder *f, const struct debug_file_request *request,
			 struct found_files *found);

/*
 * tenant_open() of a .dwo file or package of a module, below `root_fd` (-1: skip it) or else below our own root: the
 * descriptor, or negative errno.
 */
int file_finder__open(struct file_finder *f, int elf_fd, int root_fd, const char *path,
		      uint64_t size_limit);

/* Its process, for tests; 0: there is none. */
pid_t file_finder__child(const struct file_finder *f);

/* Processes that had to be left behind, or killed because they did not answer. */
uint64_t file_finder__abandoned(const struct file_finder *f);
/* To the child, in this run. */
uint64_t file_finder__requests(const struct file_finder *f);

#endif
