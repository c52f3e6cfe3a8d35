/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of /proc/PID/stat and /proc/PID/maps, parsed; pure functions. */
#ifndef BASE_PROC_PARSE_H
#define BASE_PROC_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	char comm[64]; /* NUL-terminated, any bytes: also ')', spaces and newlines */
	char state;
	pid_t ppid;
	uint32_t flags;
	uint64_t cpu_ticks;   /* utime + stime */
	uint64_t threads;     /* of the process */
	uint64_t start_ticks; /* clock ticks since boot */
};

#define PROC_FLAG_KTHREAD 0x00200000u

/* The whole text of /proc/PID/stat. 0 or -EBADMSG. */
int proc_parse_stat(const char *text, size_t size, struct proc_stat *stat);

/* The decimal number, not negative, that the text begins with. 0 or -EBADMSG. */
int proc_parse_number(const char *text, size_t size, uint64_t *number);

struct proc_mapping {
	uint64_t start, end, offset, inode;
	uint32_t protection, map_flags; /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	uint32_t major, minor;
	const char *path; /* into the line, NUL-terminated; "" for none */
	size_t path_size; /* without NUL */
	bool newline;	  /* the path has a "\012", which may be a newline or those four bytes */
};

/*
 * One line of /proc/PID/maps, `size` bytes without its newline; line[size] may be overwritten. The
 * path is decoded in place: the kernel writes a newline as "\012" and escapes nothing else. 0 or
 * -EBADMSG.
 */
int proc_parse_mapping(char *line, size_t size, struct proc_mapping *mapping);

/*
 * The path of a process's control group, from the text of /proc/PID/cgroup, which may be cut off: that in
 * the unified hierarchy, or where it is in the root of that one, the first other than the root among
 * the hierarchies of the cpu controller and of systemd. "/" if all are. NULL: the text has none.
 * The path ends where *size says.
 */
const char *proc_parse_cgroup(const char *text, size_t size, size_t *path_size);

/* Facts about a mapping from the name that the kernel gives it. */

#define MAPPING_ANONYMOUS "//anon"

/*
 * Memory without an ELF file behind it (anonymous, heap, stack, shared memory, a memfd without a build-id, a deleted
 * file that is no ELF file: `has_file` is false then): if it is executable, it can only be JIT code.
 */
bool mapping_is_run_time_code(const char *path, bool has_build_id, bool has_file);

/* Without " (deleted)". */
size_t mapping_path_length(const char *path);
/* Is it called "… (deleted)"? */
bool mapping_is_deleted(const char *path);

#endif
