/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/moved_text.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_task.h"
#include "elf/elf_file.h"
#include "tenants/tenant_open.h"

#define PAGE	      4096u
#define PAGES	      16u /* that are compared */
#define PATCHED_BYTES 64u /* of a page: breakpoints, and instructions that the program replaces */
#define LINE_MAX_SIZE (1u << 20)
#define FILE_SIZE_MAX (8ULL << 30)
#define PHDR_OFFSET   sizeof(Elf64_Ehdr) /* where linkers put the program headers */

bool moved_text__may_be(const char *path)
{
	return !*path || !strcmp(path, MAPPING_ANONYMOUS) || !strncmp(path, "[anon:", 6) ||
	       !strncmp(path, "/anon_hugepage", 14);
}

/* A mapping of a file. */
struct neighbour {
	uint64_t start, end, offset;
	struct moved_text text; /* without the offset */
};

struct search {
	uint64_t start, end;
	struct neighbour before, after; /* start 0: none */
	int memory;
	bool is_unwritten; /* the place is a file's, and a page is still zero */
};

/* ---- neighbours ------------------------------------------------------------------------------ */

static void set_neighbour(struct neighbour *n, const struct proc_mapping *m)
{
	if (m->path_size >= sizeof(n->text.path))
		return;
	n->start = m->start;
	n->end = m->end;
	n->offset = m->offset;
	n->text.inode = m->inode;
	n->text.major = m->major;
	n->text.minor = m->minor;
	memcpy(n->text.path, m->path, m->path_size + 1);
}

/* A line_fn: the last file before the memory, and the first one behind it. */
static int take_line(void *context, char *line, size_t size)
{
	struct search *s = context;
	struct proc_mapping m;

	if (proc_parse_mapping(line, size, &m) || !m.inode || m.path[0] != '/' ||
	    moved_text__may_be(m.path))
		return 0;
	if (m.end <= s->start)
		set_neighbour(&s->before, &m);
	else if (m.start >= s->end)
		set_neighbour(&s->after, &m);
	return s->after.start > 0;
}

static int find_neighbours(pid_t pid, struct search *s)
{
	_cleanup_close_ int fd = open(proc_path(pid, "maps").text, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = read_lines(fd, LINE_MAX_SIZE, take_line, s);
	return err < 0 ? err : 0;
}

/* ---- the contents ---------------------------------------------------------------------------- */

enum page_state { PAGE_EQUAL, PAGE_SILENT, PAGE_UNWRITTEN, PAGE_DIFFERENT };

static bool is_constant(const unsigned char *bytes, size_t size)
{
	return size < 2 || !memcmp(bytes, bytes + 1, size - 1);
}

/* Padding is alike in all files, so it says nothing. */
static enum page_state compare_page(const struct search *s, int fd, uint64_t at, uint64_t offset)
{
	unsigned char memory[PAGE], file[PAGE];
	ssize_t size = pread_full(fd, file, PAGE, offset);
	size_t different = 0;

	if (size <= 0)
		return PAGE_SILENT;
	if (pread_full(s->memory, memory, size, at) != size)
		return PAGE_DIFFERENT;
	if (is_constant(file, size) && !memcmp(memory, file, size))
		return PAGE_SILENT;
	if (!memory[0] && is_constant(memory, size))
		return PAGE_UNWRITTEN;
	for (ssize_t i = 0; i < size; i++)
		different += memory[i] != file[i];
	return different <= PATCHED_BYTES && different < (size_t)size / 4 ? PAGE_EQUAL
									  : PAGE_DIFFERENT;
}

/* Pages of all parts of the memory, the first and the last among them. */
static bool has_contents(struct search *s, int fd, uint64_t offset)
{
	const uint64_t pages = (s->end - s->start) / PAGE;
	const uint64_t count = pages < PAGES ? pages : PAGES;
	size_t found[PAGE_DIFFERENT + 1] = {};

	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = count == 1 ? 0 : i * (pages - 1) / (count - 1) * PAGE;

		found[compare_page(s, fd, s->start + at, offset + at)]++;
	}
	s->is_unwritten |= found[PAGE_UNWRITTEN] && !found[PAGE_DIFFERENT];
	return found[PAGE_EQUAL] && !found[PAGE_UNWRITTEN] && !found[PAGE_DIFFERENT];
}

/* ---- the place ------------------------------------------------------------------------------- */

/* Of all segments of a file: those that the neighbour may be of, and the one of the memory. */
struct placing {
	struct search *s;
	const struct elf_file *file;
	int fd;
	uint64_t start, offset; /* a place of the file in the process */
	uint64_t bias, found;
};

static uint64_t page_of(uint64_t address)
{
	return address & ~(uint64_t)(PAGE - 1);
}

/* An elf_load_fn: 1 if the memory lies in this segment, which is executable, and is equal. */
static int try_segment(void *context, uint64_t offset, uint64_t size, uint64_t address)
{
	struct placing *p = context;
	uint64_t at = p->s->start - p->bias, end = p->s->end - p->bias;
	struct elf_code code;

	if (page_of(address) > at || end < at || end > page_of(address + size + PAGE - 1))
		return 0;
	p->found = page_of(offset) + (at - page_of(address));
	if (elf_file__code_at(p->file, p->found, p->found + (end - at), &code) ||
	    code.address != at)
		return 0;
	return has_contents(p->s, p->fd, p->found);
}

/* An elf_load_fn: this segment is at the known place if it has that offset. */
static int try_bias(void *context, uint64_t offset, uint64_t size, uint64_t address)
{
	struct placing *p = context;

	if (p->offset < page_of(offset) || p->offset >= offset + size)
		return 0;
	p->bias = p->start - page_of(address) - (p->offset - page_of(offset));
	return elf_file__each_load(p->file, try_segment, p);
}

/* The file's part at `offset` is at `start`. Does the memory belong to it? Its offset, or -errno. */
static int64_t place_memory(struct search *s, int fd, uint64_t start, uint64_t offset)
{
	struct placing p = {.s = s, .fd = fd, .start = start, .offset = offset};
	struct elf_file *file;
	int found = elf_file__open(fd, &file);

	if (found)
		return found;
	p.file = file;
	found = elf_file__each_load(file, try_bias, &p);
	elf_file__free(file);
	return found == 1 ? (int64_t)p.found : -ENOENT;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static int try_neighbour(pid_t pid, struct search *s, const struct neighbour *n,
			 struct moved_text *text, struct stat *st)
{
	_cleanup_close_ int fd = -1;
	int64_t offset;

	if (!n->start)
		return -ENOENT;
	fd = tenant_open_mapped(pid, n->start, n->end, FILE_SIZE_MAX, st);
	if (fd < 0)
		return fd;
	offset = place_memory(s, fd, n->start, n->offset);
	if (offset < 0)
		return (int)offset;
	*text = n->text;
	text->offset = offset;
	return steal_fd(fd);
}

/* Where the program's headers are, by the auxiliary vector; 0: unknown. */
static uint64_t program_headers(pid_t pid)
{
	_cleanup_close_ int fd = open(proc_path(pid, "auxv").text, O_RDONLY | O_CLOEXEC);
	Elf64_auxv_t vector[64];
	ssize_t size = fd < 0 ? 0 : pread_full(fd, vector, sizeof(vector), 0);

	for (ssize_t i = 0; i < size / (ssize_t)sizeof(vector[0]); i++)
		if (vector[i].a_type == AT_PHDR)
			return vector[i].a_un.a_val;
	return 0;
}

/* A program of which no mapping is left beside the memory. */
static int try_program(pid_t pid, struct search *s, struct moved_text *text, struct stat *st)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	uint64_t headers = program_headers(pid);
	int64_t offset;
	ssize_t size;

	if (!headers)
		return -ENOENT;
	path_fd = open(proc_path(pid, "exe").text, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	size = readlink(proc_path(pid, "exe").text, text->path, sizeof(text->path) - 1);
	fd = tenant_open_pinned(path_fd, FILE_SIZE_MAX, st);
	if (fd < 0 || size <= 0)
		return fd < 0 ? fd : -ENOENT;
	offset = place_memory(s, fd, page_of(headers - PHDR_OFFSET), 0);
	if (offset < 0)
		return (int)offset;
	text->path[size] = '\0';
	text->inode = st->st_ino;
	text->major = major(st->st_dev);
	text->minor = minor(st->st_dev);
	text->offset = offset;
	return steal_fd(fd);
}

int moved_text__find(pid_t pid, uint64_t start, uint64_t end, struct moved_text *text,
		     struct stat *st)
{
	_cleanup_close_ int memory = open(proc_path(pid, "mem").text, O_RDONLY | O_CLOEXEC);
	struct search s = {.start = start, .end = end, .memory = memory};
	int fd;

	if (memory < 0)
		return -errno;
	fd = find_neighbours(pid, &s);
	if (!fd)
		fd = try_neighbour(pid, &s, &s.before, text, st);
	if (fd < 0)
		fd = try_neighbour(pid, &s, &s.after, text, st);
	if (fd < 0)
		fd = try_program(pid, &s, text, st);
	return fd < 0 && s.is_unwritten ? -EAGAIN : fd;
}
