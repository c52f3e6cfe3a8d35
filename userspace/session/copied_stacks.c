/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/copied_stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "files/dso_opener.h"
#include "tenants/pool.h"
#include "unwind/table_builder.h"
#include "unwind/unwind.h"
#include "window/window.h"
#include "world/image_table.h"
#include "world/mapping_table.h"
#include "world/process_table.h"
#include "world/world.h"

#define TABLE_LIMIT  (64u << 20)  /* bytes of one table */
#define TABLES_LIMIT (256u << 20) /* of all: beyond it stacks end where they reach another file */
#define FILES_LIMIT  1024u	  /* open ones */
#define UNKNOWN_WORD 1		  /* neither zero nor aligned: a walk that follows it ends */

/* The file of an image, as this machine has it. */
struct copied_file {
	bool is_known;
	int fd; /* -1: not here */
	uint64_t base;
	struct elf_file *elf;
	struct unwind_table_image image; /* no bytes: none */
};

struct copied_stacks {
	struct dso_opener *opener;
	struct helper_pool *builders;
	struct table_builder *tables;
	VEC(struct copied_file) files; /* by image */
	size_t open_files, table_bytes;
	union {
		struct sample_event sample;
		char space[sizeof(struct sample_event) +
			   8 * (SAMPLE_KERNEL_DEPTH_MAX + SAMPLE_USER_DEPTH_MAX)];
	} walked;
};

int copied_stacks__new(struct copied_stacks **stacks)
{
	*stacks = calloc(1, sizeof(**stacks));
	return *stacks ? 0 : -ENOMEM;
}

static void free_file(struct copied_file *file)
{
	if (file->is_known && file->fd >= 0)
		close(file->fd);
	elf_file__free(file->elf);
	unwind_table_image__fini(&file->image);
}

void copied_stacks__free(struct copied_stacks *s)
{
	if (!s)
		return;
	vec_free_with(&s->files, file, free_file(file));
	table_builder__free(s->tables);
	helper_pool__free(s->builders);
	dso_opener__free(s->opener);
	free(s);
}

static int start(struct copied_stacks *s)
{
	int err = s->opener ? 0 : dso_opener__new(NULL, &s->opener);

	if (!err && !s->builders)
		err = helper_pool__new(&builder_options, &s->builders);
	if (!err && !s->tables)
		err = table_builder__new(TABLE_LIMIT, s->builders, NULL, &s->tables);
	return err;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Of a file_request. */
static int take_file(void *context, uint32_t key, const struct file_answer *answer)
{
	struct copied_file *file = context;

	(void)key;
	file->base = answer->base;
	file->fd = answer->fd < 0 ? -1 : fcntl(answer->fd, F_DUPFD_CLOEXEC, 0);
	return 0;
}

static int build_table(struct copied_stacks *s, struct copied_file *file)
{
	const struct table_request request = {
		.fd = file->fd, .base = file->base, .kind = BUILD_FILE, .effort = TABLE_BUILD};
	struct built_table built = {};
	int err = table_builder__request(s->tables, &request);

	if (err)
		return err;
	if (table_builder__take(s->tables, true, &built) && !built.err)
		file->image = built.image;
	s->table_bytes += file->image.size;
	return 0;
}

static int open_file(struct copied_stacks *s, const struct image *image, struct copied_file *file)
{
	int err;

	if (s->open_files >= FILES_LIMIT || s->table_bytes >= TABLES_LIMIT)
		return 0;
	err = window_request_file(s->opener, image, WINDOW_FILES_BY_IDENTITY,
				  &(struct file_request){take_file, file, 0});
	if (err || file->fd < 0)
		return err;
	s->open_files++;
	if (elf_file__open_at(file->fd, file->base, &file->elf))
		return 0;
	return build_table(s, file);
}

/* NULL: out of memory. */
static struct copied_file *file_of(struct copied_stacks *s, struct world *world, struct image_id id)
{
	const struct image *image = image_table__get(world__images(world), id);
	struct copied_file *file = vec_at(&s->files, id.v);

	if (!file || file->is_known)
		return file;
	file->is_known = true;
	file->fd = -1;
	if (image->dso.kind == DSO_FILE || image->dso.kind == DSO_VDSO)
		return open_file(s, image, file) == -ENOMEM ? NULL : file;
	return file;
}

/* ---- one stack ------------------------------------------------------------------------------- */

struct walk {
	struct copied_stacks *stacks;
	struct world *world;
	const struct mapping_table *maps;
	const struct stack_copy *copy;
	bool failed; /* no memory */
};

/* The file of an address, and where in it. NULL: none that is here. */
static struct copied_file *find_file(struct walk *w, uint64_t address, const struct mapping **m)
{
	struct copied_file *file;

	*m = mapping_table__find(w->maps, address);
	if (!*m)
		return NULL;
	file = file_of(w->stacks, w->world, (*m)->image);
	w->failed |= !file;
	return file;
}

static int read_code(struct walk *w, void *to, size_t size, uint64_t address)
{
	const struct mapping *m;
	const struct copied_file *file = find_file(w, address, &m);
	uint64_t at;

	if (!file || file->fd < 0 || size > m->end - address ||
	    __builtin_add_overflow(file->base, m->page_offset, &at) ||
	    __builtin_add_overflow(at, address - m->start, &at) || at > INT64_MAX - size)
		return -EFAULT;
	return pread(file->fd, to, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

/*
 * Of the copied stack, or of code. perf's copy begins at the stack pointer, but a return address is
 * read together with the word below it, where a frame pointer may be: unknown for the innermost frame.
 */
static int read_memory(void *context, void *to, size_t size, uint64_t address)
{
	struct walk *w = context;
	const uint64_t unknown = UNKNOWN_WORD;
	uint64_t offset = address - w->copy->start;

	if (offset == -sizeof(unknown) && size > sizeof(unknown)) {
		memcpy(to, &unknown, sizeof(unknown));
		to = (char *)to + sizeof(unknown);
		size -= sizeof(unknown);
		address += sizeof(unknown);
		offset = 0;
	}
	if (offset > w->copy->size || size > w->copy->size - offset)
		return read_code(w, to, size, address);
	memcpy(to, w->copy->stack + offset, size);
	return 0;
}

/* Code of a file that is not here ends the walk: what it keeps where is unknown. */
static bool find_range(void *context, uint64_t address, struct unwind_range *range)
{
	struct walk *w = context;
	const struct mapping *m;
	struct copied_file *file = find_file(w, address, &m);
	uint64_t virtual;

	if (!m)
		return false;
	*range = (struct unwind_range){.start = m->start, .end = m->end, .instead = UNWIND_LATER};
	if (image_table__get(world__images(w->world), m->image)->dso.kind == DSO_JIT)
		range->instead = UNWIND_NO_TABLE;
	if (!file || !file->image.bytes ||
	    elf_file__address_of_offset(file->elf, address - m->start + m->page_offset, &virtual))
		return true;
	range->bias = address - virtual;
	range->table = &file->image.table;
	range->segment = file->image.bytes;
	return true;
}

static enum stack_end walk_copy(struct walk *w, uint64_t *frames, size_t *count)
{
	const struct stack_copy *copy = w->copy;
	const struct unwind_space space = {
		.find = find_range,
		.count = mapping_table__count(w->maps),
		.read = read_memory,
		.end = copy->start + copy->size,
		.context = w,
	};
	uint64_t registers[UNWIND_REGISTERS];
	enum stack_end end;

	memcpy(registers, copy->general, sizeof(copy->general));
	registers[UNWIND_X86_RA] = copy->ip;
	end = unwind_stack(&space, registers, copy->in_system_call, frames, SAMPLE_USER_DEPTH_MAX,
			   count);
	return end == STACK_END_FAULT ? STACK_END_COPY : end;
}

int copied_stacks__walk(void *stacks, struct world *world, const struct sample_event **sample)
{
	struct copied_stacks *s = stacks;
	const struct sample_event *from = *sample;
	struct sample_event *to = &s->walked.sample;
	const struct process_life *process = process_table__find(world__processes(world),
								 from->tgid);
	struct walk w = {
		.stacks = s,
		.world = world,
		.maps = process ? process->maps : NULL,
		.copy = (const void *)&from->frames[from->kernel_frames + from->user_frames],
	};
	size_t count = 0;
	int err = start(s);

	if (err)
		return err;
	memcpy(to, from, sizeof(*from) + from->kernel_frames * sizeof(from->frames[0]));
	to->header.flags ^= EVENT_STACK_COPY | EVENT_FROM_COPY;
	to->user_end = walk_copy(&w, (uint64_t *)to->frames + to->kernel_frames, &count);
	to->user_frames = (uint16_t)count;
	to->header.size =
		(uint32_t)(sizeof(*to) + (to->kernel_frames + count) * sizeof(to->frames[0]));
	*sample = to;
	return w.failed ? -ENOMEM : 0;
}
