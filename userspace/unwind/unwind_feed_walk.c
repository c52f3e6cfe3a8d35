/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk of a stack that the kernel kept a copy of, by the tables and mappings of now. */
#include "unwind/unwind_feed_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "unwind/unwind.h"

struct copied {
	struct unwind_feed *feed;
	const struct fed_process *process;
	const struct stack_copy *copy;
};

/* Code is in the file that was mapped. */
static int read_code(const struct copied *c, void *to, size_t size, uint64_t address)
{
	const struct mapping *m = mappings__find(c->process->maps, address);
	struct unwind_feed *f = c->feed;
	struct fed_file *file;
	uint64_t at;
	int fd;

	if (!m || m->image.v >= f->files.count || size > m->end - address)
		return -EFAULT;
	file = &f->files.data[m->image.v];
	fd = unwind_feed__descriptor(f, m->image);
	if (fd < 0 || __builtin_add_overflow(file->base, m->page_offset, &at) ||
	    __builtin_add_overflow(at, address - m->start, &at) || at > INT64_MAX - size)
		return -EFAULT;
	return pread(fd, to, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

/* Are all of these pages in the copy? Its walk reads a page at most, and so of two. */
static bool has_pages(const struct stack_copy *copy, uint64_t address, size_t size)
{
	uint64_t first = address / STACK_PAGE - copy->start / STACK_PAGE;
	uint64_t last = (address + size - 1) / STACK_PAGE - copy->start / STACK_PAGE;

	return last < 64 && !(copy->holes >> first & 1) && !(copy->holes >> last & 1);
}

static int read_copy(void *context, void *to, size_t size, uint64_t address)
{
	const struct copied *c = context;
	uint64_t offset = address - c->copy->start;

	if (offset > c->copy->size || size > c->copy->size - offset ||
	    !has_pages(c->copy, address, size))
		return read_code(c, to, size, address);
	memcpy(to, c->copy->stack + offset, size);
	return 0;
}

/* Few of a process's mappings are on a stack, so each is looked up when the walk comes to it. */
static bool find_range(void *context, uint64_t address, struct unwind_range *range)
{
	const struct copied *c = context;
	struct unwind_placement p;

	if (unwind_feed__place_at(c->feed, c->process, address, &p) <= 0)
		return false;
	*range = (struct unwind_range){
		.start = p.start, .end = p.end, .bias = p.bias, .instead = p.table};
	if (p.table >= UNWIND_TABLES)
		return true;
	range->instead = UNWIND_LATER;
	range->table = table_store__get(c->feed->options.store, p.table, &range->segment);
	return true;
}

enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct fed_process *process,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count)
{
	uint64_t registers[UNWIND_REGISTERS];
	struct copied copied = {.feed = f, .process = process, .copy = copy};
	struct unwind_space space = {
		.find = find_range,
		.count = process->maps.count,
		.is_fresh = copy->is_fresh,
		.read = read_copy,
		.context = &copied,
	};
	enum stack_end end;

	memcpy(registers, copy->general, sizeof(copy->general));
	registers[UNWIND_X86_RA] = copy->ip;
	*count = 0;
	end = unwind_stack(&space, registers, copy->in_system_call, frames, max, count);
	return end == STACK_END_FAULT ? STACK_END_COPY : end;
}
