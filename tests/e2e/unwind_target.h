/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that is stopped by ptrace, as our walk sees it: its mappings, tables, memory and registers. */
#ifndef UNWIND_TARGET_H
#define UNWIND_TARGET_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "unwind/unwind.h"
#include "unwind/unwind_table.h"

#define FRAMES_MAX  512
#define TABLE_LIMIT (1u << 30)

struct known_file {
	dev_t device;
	ino_t inode;
	struct elf_file *file; /* NULL: not ELF */
	struct unwind_table_image image;
	int fd;
};

static pid_t pid;
static VEC(struct known_file *) files;
static VEC(struct unwind_range) ranges;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static int read_process(void *context, void *to, size_t size, uint64_t address)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};

	(void)context;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* ---- its mappings ---------------------------------------------------------------------------- */

static struct known_file *new_file(int fd)
{
	struct known_file *f = calloc(1, sizeof(*f));
	struct stat st;

	if (!f || fstat(fd, &st))
		die("a mapped file");
	f->device = st.st_dev;
	f->inode = st.st_ino;
	f->fd = fd;
	if (!elf_file__open(fd, &f->file))
		unwind_table__build(f->file, TABLE_LIMIT, &f->image);
	if (vec_push(&files, f))
		die("memory");
	return f;
}

static struct known_file *file_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		die("a mapped file");
	for (size_t i = 0; i < files.count; i++) {
		if (files.data[i]->device == st.st_dev && files.data[i]->inode == st.st_ino) {
			close(fd);
			return files.data[i];
		}
	}
	return new_file(fd);
}

static int open_vdso(uint64_t start, uint64_t end)
{
	_cleanup_free_ void *bytes = malloc(end - start);
	int fd = memfd_create("vdso", MFD_CLOEXEC);

	if (!bytes || fd < 0 || read_process(NULL, bytes, end - start, start) ||
	    write_full(fd, bytes, end - start))
		die("vdso");
	return fd;
}

/* Each run of a mapping that belongs to a segment of its own. */
static void add_runs(struct unwind_range range, const struct known_file *file, uint64_t offset)
{
	uint64_t end = range.end, file_end = offset + (end - range.start);
	struct elf_code code;

	while (file && file->file && !elf_file__code_at(file->file, offset, file_end, &code)) {
		range.bias = range.start - code.address;
		range.table = file->image.bytes ? &file->image.table : NULL;
		range.segment = file->image.bytes;
		if (code.end == file_end)
			break;
		range.end = range.start + (code.end - offset);
		if (vec_push(&ranges, range))
			die("memory");
		range.start = range.end;
		range.end = end;
		offset = code.end;
	}
	if (vec_push(&ranges, range))
		die("memory");
}

static void add_mapping(const char *line)
{
	struct unwind_range range = {.instead = UNWIND_NO_TABLE};
	char protection[8], path[4096] = "", link[128];
	unsigned long long offset, inode;
	struct known_file *file = NULL;
	int fd = -1;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %llx %*s %llu %4095[^\n]", &range.start,
		   &range.end, protection, &offset, &inode, path) < 5 ||
	    protection[2] != 'x' || !strcmp(path, "[vsyscall]"))
		return;
	if (!strcmp(path, "[vdso]")) {
		static struct known_file *vdso;

		if (!vdso)
			vdso = new_file(open_vdso(range.start, range.end));
		file = vdso;
		offset = 0;
	} else if (inode) {
		snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
			 range.start, range.end);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		file = fd < 0 ? NULL : file_of(fd);
	}
	add_runs(range, file, offset);
}

static void read_maps(void)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		die(path);
	ranges.count = 0;
	while (getline(&line, &size, f) > 0)
		add_mapping(line);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static inline enum stack_end walk(const struct user_regs_struct *r, uint64_t *frames, size_t *count)
{
	const uint64_t registers[UNWIND_REGISTERS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};
	const struct unwind_space space = {
		.ranges = ranges.data, .count = ranges.count, .read = read_process};

	return unwind_stack(&space, registers, false, frames, FRAMES_MAX, count);
}

/* ---- threads --------------------------------------------------------------------------------- */

static inline pid_t random_thread(void)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	pid_t chosen = 0;
	int seen = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid && random() % ++seen == 0)
			chosen = tid;
	}
	return chosen;
}

/* 0: stopped, with the signal to pass on in *sig; else it is gone. */
static int stop(pid_t tid, int *sig)
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

#endif
