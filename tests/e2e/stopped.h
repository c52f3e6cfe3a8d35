/* SPDX-License-Identifier: BSD-2-Clause */
/* A process under ptrace: stops, single steps, what its threads call, and its memory. */
#ifndef TESTS_E2E_STOPPED_H
#define TESTS_E2E_STOPPED_H

#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CALL_SIZE_MAX 16

static pid_t pid;

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

/* A target_memory's read(), and that of our walk. */
static inline int read_process(void *context, void *to, size_t size, uint64_t address)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};

	(void)context;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return errno == ESRCH || errno == EPERM ? -errno : -ENODATA;
}

static inline FILE *open_proc(const char *name)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = fopen(path, "re");
	if (!f)
		die(path);
	return f;
}

static inline int open_map_file(uint64_t start, uint64_t end)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* A program that waits for its first instruction; what it prints goes to standard error. */
static inline void start(char **command)
{
	int status;

	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		dup2(2, 1);
		execvp(command[0], command);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		die(command[0]);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
}

/* 0: stopped, with the signal to pass on in *sig; else it is gone. */
static inline int stop(pid_t tid, int *sig)
{
	int status;

	*sig = 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
	    waitpid(tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return -1;
	if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
		*sig = WSTOPSIG(status);
	return 0;
}

/* 0, or it has ended. A signal is passed on with the next step. */
static inline int step(pid_t tid, int *sig, struct user_regs_struct *registers)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, tid, NULL, *sig) || waitpid(tid, &status, __WALL) < 0 ||
	    !WIFSTOPPED(status))
		return -1;
	*sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	return ptrace(PTRACE_GETREGS, tid, NULL, registers) ? -1 : 0;
}

/* The step from `old` to `now` was a call, which pushed *back. */
static inline bool was_call(const struct user_regs_struct *old, const struct user_regs_struct *now,
			    uint64_t *back)
{
	if (now->rsp != old->rsp - 8 || read_process(NULL, back, sizeof(*back), now->rsp))
		return false;
	return *back > old->rip && *back <= old->rip + CALL_SIZE_MAX && now->rip != *back;
}

/* ---- libdwfl's view -------------------------------------------------------------------------- */

/* The modules of the process, again. */
static inline int report_to(Dwfl *dwfl)
{
	return dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL);
}

static inline Dwfl *attach_libdwfl(void)
{
	static char *path;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &path,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (report_to(dwfl) || dwfl_linux_proc_attach(dwfl, pid, true)) {
		fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
		exit(2);
	}
	return dwfl;
}

#endif
