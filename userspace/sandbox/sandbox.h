/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doors to libseccomp and libcap: what a process gives up before it reads strangers' files.
 *
 * Each of these is for a child that has one thread and no way back.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

struct sandbox_limits {
	uint64_t memory;	  /* bytes, on top of what the process has already */
	unsigned int cpu_seconds; /* then SIGXCPU, which ends it */
};

/* Memory, CPU time, files, core dumps, processes. 0 or negative errno. */
int sandbox__limit(const struct sandbox_limits *limits);
/* If memory runs out, it is this process that takes too much. Before its root directory is empty. */
void sandbox__offer_to_be_killed(void);
/* Lower the memory limit; it never rises again. */
int sandbox__lower_memory(uint64_t by);

/*
 * No new privileges, no capabilities, where possible an empty root directory and a uid that nobody
 * else has. 0, or negative errno if a privilege could not be given up.
 */
int sandbox__drop_privileges(void);

/*
 * The same for a process that opens files by name: it stays who it is, and keeps the capability to read any
 * file; with `writes`, which a cache of downloads needs, to write any.
 */
int sandbox__keep_reading(bool writes);

/*
 * From now on opening a file asks whoever has *listener. Negative errno: the kernel cannot, or
 * somebody listens to us already; then opening is refused once the process is sealed.
 */
int sandbox__ask_for_files(int *listener);

/*
 * Only what reading open files, memory and writing an answer take. `files`: sandbox__ask_for_files()
 * succeeded. Paths give EACCES, all else EPERM, and what has no innocent use ends the process.
 * `no_links`: every path is said to be no symbolic link (EINVAL), and so /proc/self/fd/N is the name
 * that libdw gives to a file that is open.
 */
int sandbox__seal(bool files, bool no_links);

/*
 * A filter that is made once, for children that are forked often: making it takes more time than entering it. It is
 * narrower than sandbox__seal(): no path, no new descriptor, no signal. NULL: it cannot be made.
 */
struct sandbox_filter;
struct sandbox_filter *sandbox_filter__new(void);
/* As sandbox__seal(true, false), but for the signal of abort(), which ends the process in another way. */
struct sandbox_filter *sandbox_filter__new_sealed(void);
void sandbox_filter__free(struct sandbox_filter *filter);
/* For this process, after sandbox__drop_privileges(). 0 or negative errno. */
int sandbox_filter__enter(const struct sandbox_filter *filter);

/*
 * For a process that forks children which call sandbox__drop_privileges(): of its capabilities it keeps what that takes
 * (to change users and the root directory), and gets no new ones. 0 or negative errno.
 */
int sandbox__keep_dropping(void);

#endif
