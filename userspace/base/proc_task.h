/* SPDX-License-Identifier: BSD-2-Clause */
/* A process or thread, as /proc shows it; parsers of /proc/PID/stat and /proc/PID/maps. */
#ifndef BASE_PROC_TASK_H
#define BASE_PROC_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_COMM_SIZE 16

enum proc_state {
	PROC_NONE, /* no such process */
	PROC_ALIVE,
	PROC_ZOMBIE, /* ended; no thread of it runs any more */
	PROC_KERNEL, /* a kernel thread */
	PROC_HIDDEN, /* it exists, but /proc does not show it (hidepid) */
};

struct proc_identity {
	pid_t tgid; /* differs from the requested pid if that is a thread of another process */
	pid_t ppid;
	uint64_t start_time; /* CLOCK_MONOTONIC ns, 10 ms grain */
	char comm[PROC_COMM_SIZE];
};

/* The state of a process or thread. `identity` may be NULL; it is filled unless NONE or HIDDEN. */
enum proc_state proc_process_state(pid_t pid, struct proc_identity *identity);

/*
 * Are these times of one birth, read from /proc and reported by the fork's event? False if one is
 * 0: unknown.
 */
bool proc_same_birth(uint64_t a, uint64_t b);

/* Of the life of a process, until it ends or executes another program. CLOCK_MONOTONIC ns */
struct process_times {
	uint64_t start, end; /* end 0: it has not ended */
	uint64_t born;	     /* before `start` if it executed another program; 0: unknown */
};

/* Its real uid, in our user namespace. 0, -ESRCH, … */
int proc_real_uid(pid_t pid, uid_t *uid);

/* ---- texts: pure functions ------------------------------------------------------------------- */

struct proc_stat {
	char comm[64]; /* NUL-terminated, any bytes: also ')', spaces and newlines */
	char state;
	pid_t ppid;
	uint32_t flags;
	uint64_t cpu_ticks;    /* utime + stime */
	uint64_t waited_ticks; /* the same of children that it has waited for */
	uint64_t threads;      /* of the process */
	uint64_t start_ticks;  /* clock ticks since boot */
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
 * path is decoded in place: the kernel escapes only a newline, as "\012". 0 or -EBADMSG.
 */
int proc_parse_mapping(char *line, size_t size, struct proc_mapping *mapping);

/*
 * A process's control group in /proc/PID/cgroup (the text may be cut off): that of the unified
 * hierarchy or, if that is the root, of the cpu controller's or else of systemd's that is not the
 * root. "/": all are. NULL: the text has none. The path ends after *path_size bytes.
 */
const char *proc_parse_cgroup(const char *text, size_t size, size_t *path_size);

/* Facts about a mapping from the name that the kernel gives it. */

#define MAPPING_ANONYMOUS "//anon"

/*
 * Memory without an ELF file behind it (anonymous, heap, stack, shared memory, a memfd without a
 * build-id, a deleted file that is not ELF: no `has_file`). If executable, it is JIT code.
 */
bool mapping_is_run_time_code(const char *path, bool has_build_id, bool has_file);

/* Without " (deleted)". */
size_t mapping_path_length(const char *path);
/* Is it called "… (deleted)"? */
bool mapping_is_deleted(const char *path);

/* ---- the parts of it ------------------------------------------------------------------------- */

/* "/proc/PID/NAME": `open(proc_path(pid, "maps").text, …)`. */
struct proc_path {
	char text[64];
};
struct proc_path proc_path(pid_t pid, const char *name);

/* The directory of a process below /proc: a descriptor, or negative errno. */
int proc_open_process(int proc_fd, pid_t pid);
/* Bytes read (at most size), or negative errno. */
ssize_t proc_read_small(int dir, const char *path, char *buffer, size_t size);
/* The stat of a process or thread: `path` is "stat" or "task/TID/stat". 0 or negative errno. */
int proc_read_stat(int dir, const char *path, struct proc_stat *stat);
/*
 * The number behind a field, "\nTgid:", in the first 4 KB of a status or meminfo, where newlines in
 * names are escaped. 0; -ESRCH: there is no such field; -ENOENT, …
 */
int proc_status_number(int dir, const char *path, const char *field, uint64_t *number);
/* The same of a process or thread by its number. -ESRCH: there is none. */
int proc_stat_of(pid_t pid, struct proc_stat *stat);
int proc_status_of(pid_t pid, const char *field, uint64_t *number);
/* How long a thread has waited for a CPU, ns; 0: unreadable, or the kernel does not count it. */
uint64_t proc_run_delay(pid_t tid);
/* It has exited, whether or not its parent has waited for it. */
bool proc_stat__is_dead(const struct proc_stat *stat);
/* The task's name, as in perf. */
void proc_stat__comm(const struct proc_stat *stat, char comm[PROC_COMM_SIZE]);

/*
 * How far CLOCK_MONOTONIC of a process is ahead of the kernel's, by its time namespace, ns. 0;
 * -ESRCH; -ENODATA: it is unknown.
 */
int proc_clock_ahead(pid_t pid, int64_t *ahead);

/* How far CLOCK_MONOTONIC has fallen behind the time since boot, by suspending, ns. */
uint64_t proc_suspended_ns(void);
/* Ticks since boot to CLOCK_MONOTONIC ns. */
uint64_t proc_start_time(uint64_t ticks, uint64_t tick_ns, uint64_t suspended);

#endif
