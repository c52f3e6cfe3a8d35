/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doors to libseccomp and libcap: what a process gives up before it reads strangers' files.
 *
 * Each of these is for a child that has one thread and no way back.
 */
#ifndef SYMBOLIZE_SANDBOX_H
#define SYMBOLIZE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

struct sandbox_limits {
	uint64_t memory;	  /* bytes, on top of what the process has already */
	unsigned int cpu_seconds; /* then SIGXCPU, which ends it */
};

/* Memory, CPU time, files, core dumps, processes. 0 or negative errno. */
int sandbox__limit(const struct sandbox_limits *limits);
/* Lower the memory limit; it never rises again. */
int sandbox__lower_memory(uint64_t by);

/*
 * No new privileges, no capabilities, where possible an empty root directory and a uid that nobody
 * else has. 0, or negative errno if a privilege could not be given up.
 */
int sandbox__drop_privileges(void);

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

#endif
