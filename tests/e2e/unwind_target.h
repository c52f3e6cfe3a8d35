/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that is stopped by ptrace, as our walk sees it: its mappings, tables, memory and registers. */
#ifndef UNWIND_TARGET_H
#define UNWIND_TARGET_H

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "unwind/unwind.h"
#include "stopped.h"
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

static VEC(struct known_file *) files;
static VEC(struct unwind_range) ranges;

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
	char protection[8], path[4096] = "";
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
		fd = open_map_file(range.start, range.end);
		file = fd < 0 ? NULL : file_of(fd);
	}
	add_runs(range, file, offset);
}

static void read_maps(void)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = open_proc("maps");
	size_t size = 0;

	ranges.count = 0;
	while (getline(&line, &size, f) > 0)
		add_mapping(line);
}

static inline const struct unwind_range *range_of(uint64_t address)
{
	for (size_t i = 0; i < ranges.count; i++)
		if (address >= ranges.data[i].start && address < ranges.data[i].end)
			return &ranges.data[i];
	return NULL;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static inline void take_registers(const struct user_regs_struct *r, uint64_t *registers)
{
	const uint64_t values[UNWIND_REGISTERS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	memcpy(registers, values, sizeof(values));
}

static inline enum stack_end walk(const struct user_regs_struct *r, uint64_t *frames, size_t *count)
{
	uint64_t registers[UNWIND_REGISTERS];
	const struct unwind_space space = {
		.ranges = ranges.data, .count = ranges.count, .read = read_process};

	take_registers(r, registers);
	return unwind_stack(&space, registers, false, frames, FRAMES_MAX, count);
}

static const char *const KINDS[FRAME_KIND_COUNT] __attribute__((unused)) = {
#define X(id, name, exact, text) [FRAME_##id] = name,
	FRAME_KINDS(X)
#undef X
};

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

#endif
