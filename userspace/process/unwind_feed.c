/* SPDX-License-Identifier: BSD-2-Clause */
/* A file is read when the first process that has it mapped is sampled, and once. */
#include "process/unwind_feed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "unwind/unwind.h"

#define USER_ADDRESS_BITS 47

struct fed_file {
	struct elf_file *elf; /* NULL: not read yet, or not ELF */
	uint32_t table;	      /* or UNWIND_NO_TABLE */
	bool read;
};

struct unwind_feed {
	struct unwind_feed_options options;
	VEC(struct fed_file) files; /* by dso */
	VEC(struct unwind_placement) placements;
	VEC(struct unwind_range) ranges;
};

struct unwind_feed *unwind_feed__new(const struct unwind_feed_options *options)
{
	struct unwind_feed *f = calloc(1, sizeof(*f));

	if (f)
		f->options = *options;
	return f;
}

void unwind_feed__free(struct unwind_feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->files.count; i++)
		elf_file__free(f->files.data[i].elf);
	vec_free(&f->files);
	vec_free(&f->placements);
	vec_free(&f->ranges);
	free(f);
}

/* A file without a table is not tried again: there is nothing in it, or no room for it. */
static int read_file(struct unwind_feed *f, struct fed_file *file, struct dso_id dso)
{
	int fd = f->options.file(f->options.context, dso), err;

	file->read = true;
	file->table = UNWIND_NO_TABLE;
	if (fd < 0)
		return 0;
	err = elf_file__open(fd, &file->elf);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = table_store__add(f->options.store, file->elf, &file->table);
	if (err)
		file->table = UNWIND_NO_TABLE;
	return err == -ENOMEM ? err : 0;
}

static int file_of(struct unwind_feed *f, struct dso_id dso, struct fed_file **file)
{
	int err = vec_reserve(&f->files, dso.v + 1);

	if (err)
		return err;
	while (f->files.count <= dso.v)
		f->files.data[f->files.count++] = (struct fed_file){};
	*file = &f->files.data[dso.v];
	return (*file)->read ? 0 : read_file(f, *file, dso);
}

static int place(struct unwind_feed *f, const struct mapping *mapping)
{
	struct unwind_placement placement = {
		.start = mapping->start, .end = mapping->end, .table = UNWIND_NO_TABLE};
	struct fed_file *file;
	uint64_t address;
	int err;

	/* [vsyscall], which is the kernel's: searches take the highest bit for a sign */
	if (mapping->end >> USER_ADDRESS_BITS)
		return 0;
	err = file_of(f, mapping->dso, &file);
	if (err)
		return err;
	if (file->elf && !elf_file__address_of_offset(file->elf, mapping->page_offset, &address)) {
		placement.table = file->table;
		placement.bias = mapping->start - address;
	}
	return vec_push(&f->placements, placement);
}

static int place_all(struct unwind_feed *f, const struct mapping_table *maps)
{
	size_t count = mapping_table__count(maps);
	int err = 0;

	f->placements.count = 0;
	for (size_t i = 0; i < count && !err; i++)
		err = place(f, mapping_table__get(maps, i));
	return err;
}

int unwind_feed__publish(struct unwind_feed *f, uint32_t tgid, const struct mapping_table *maps,
			 uint64_t as_of)
{
	int err = place_all(f, maps);

	if (!err)
		err = table_store__publish(f->options.store, tgid, f->placements.data,
					   f->placements.count, as_of);
	return err == -ENOSPC ? 0 : err;
}

void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid)
{
	table_store__withdraw(f->options.store, tgid);
}

/* ---- copies of stacks ------------------------------------------------------------------------ */

static int read_copy(void *context, void *to, size_t size, uint64_t address)
{
	const struct stack_copy *copy = context;
	uint64_t offset = address - copy->start;

	if (offset > copy->size || size > copy->size - offset)
		return -EFAULT;
	memcpy(to, copy->stack + offset, size);
	return 0;
}

static int make_ranges(struct unwind_feed *f, const struct mapping_table *maps)
{
	int err = place_all(f, maps);

	if (!err)
		err = vec_reserve(&f->ranges, f->placements.count);
	if (err)
		return err;
	f->ranges.count = f->placements.count;
	for (size_t i = 0; i < f->ranges.count; i++) {
		const struct unwind_placement *p = &f->placements.data[i];
		struct unwind_range *range = &f->ranges.data[i];

		*range = (struct unwind_range){.start = p->start, .end = p->end, .bias = p->bias};
		if (p->table != UNWIND_NO_TABLE)
			range->table = table_store__get(f->options.store, p->table,
							&range->segment);
	}
	return 0;
}

enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct mapping_table *maps,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count)
{
	uint64_t registers[UNWIND_REGISTERS];
	struct unwind_space space = {.read = read_copy, .context = (void *)(uintptr_t)copy};
	enum stack_end end;

	memcpy(registers, copy->general, sizeof(copy->general));
	registers[UNWIND_X86_RA] = copy->ip;
	*count = 0;
	if (make_ranges(f, maps))
		return STACK_END_NO_FRAME;
	space.ranges = f->ranges.data;
	space.count = f->ranges.count;
	end = unwind_stack(&space, registers, copy->in_system_call, frames, max, count);
	return end == STACK_END_FAULT ? STACK_END_COPY : end;
}
