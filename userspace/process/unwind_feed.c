/* SPDX-License-Identifier: BSD-2-Clause */
/* A file is read when the first process that has it mapped is sampled, and once. */
#include "process/unwind_feed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/vec.h"
#include "elf/elf_file.h"

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

int unwind_feed__publish(struct unwind_feed *f, uint32_t tgid, const struct mapping_table *maps,
			 uint64_t as_of)
{
	size_t count = mapping_table__count(maps);
	int err = 0;

	f->placements.count = 0;
	for (size_t i = 0; i < count && !err; i++)
		err = place(f, mapping_table__get(maps, i));
	if (!err)
		err = table_store__publish(f->options.store, tgid, f->placements.data,
					   f->placements.count, as_of);
	return err == -ENOSPC ? 0 : err;
}

void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid)
{
	table_store__withdraw(f->options.store, tgid);
}
