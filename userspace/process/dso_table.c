/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kind of thing a mapping is, by the name that the kernel gives it.
 *
 * Memory without an ELF file behind it (anonymous, heap, stack, shared memory, a memfd without a
 * build-id) can only be code that was made at run time: one DSO_JIT for each name, since device and
 * inode of such memory mean nothing to a reader.
 */
#include "process/dso_table.h"

#include <string.h>

#include "base/mapping_path.h"

void dso_table__init(struct dso_table *table, struct profile_builder *builder)
{
	*table = (struct dso_table){.builder = builder};
}

static enum dso_kind kind_of(const struct mmap_event *event, bool has_build_id)
{
	if (!strcmp(event->path, "[vdso]"))
		return DSO_VDSO;
	return mapping_is_run_time_code(event->path, has_build_id,
					event->file_state != FILE_STATE_NONE)
		       ? DSO_JIT
		       : DSO_FILE;
}

/* Copy without " (deleted)"; whether it was there. */
static bool copy_path(char *path, size_t size, const char *mapped)
{
	size_t length = strnlen(mapped, size - 1);

	memcpy(path, mapped, length);
	path[length] = '\0';
	path[mapping_path_length(path)] = '\0';
	return strlen(path) < length;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void fill_identity(struct profile_dso *dso, const struct mmap_event *event)
{
	dso->major = event->major;
	dso->minor = event->minor;
	dso->inode = event->inode;
	dso->inode_generation = event->inode_generation;
	if (!(event->header.flags & EVENT_BUILD_ID) || event->build_id_size > BUILD_ID_SIZE)
		return;
	dso->build_id_size = event->build_id_size;
	memcpy(dso->build_id, event->build_id, event->build_id_size);
}

struct dso_id dso_table__of_mapping(struct dso_table *table, const struct mmap_event *event)
{
	struct profile_dso dso = {};
	char path[EVENT_PATH_MAX];
	const char *name;

	dso.deleted = copy_path(path, sizeof(path), event->path);
	fill_identity(&dso, event);
	dso.kind = kind_of(event, dso.build_id_size > 0);
	if (dso.kind == DSO_JIT) {
		dso = (struct profile_dso){.kind = DSO_JIT};
		if (!*path)
			memcpy(path, MAPPING_ANONYMOUS, sizeof(MAPPING_ANONYMOUS));
	} else if (event->file_state < FILE_STATE_COUNT && *path == '/') {
		dso.file_state = event->file_state;
	}
	name = strcmp(path, MAPPING_ANONYMOUS) ? last_component(path) : "[anon]";
	dso.is_library = dso.kind == DSO_FILE && strstr(name, ".so");
	dso.path = profile_builder__string(table->builder, path);
	dso.name = profile_builder__string(table->builder, name);
	return profile_builder__dso(table->builder, &dso);
}

static struct dso_id special(struct dso_table *table, enum dso_kind kind, const char *path,
			     const char *name)
{
	struct profile_dso dso = {
		.kind = kind,
		.path = profile_builder__string(table->builder, path),
		.name = profile_builder__string(table->builder, name),
	};

	return profile_builder__dso(table->builder, &dso);
}

struct dso_id dso_table__kernel(struct dso_table *table)
{
	if (!table->kernel.v)
		table->kernel = special(table, DSO_KERNEL, "[kernel.kallsyms]", "[kernel]");
	return table->kernel;
}

struct dso_id dso_table__unknown(struct dso_table *table)
{
	if (!table->unknown.v)
		table->unknown = special(table, DSO_UNKNOWN, "[unknown]", "[unknown]");
	return table->unknown;
}

enum dso_kind dso_table__kind(const struct dso_table *table, struct dso_id id)
{
	return profile_builder__get_dso(table->builder, id)->kind;
}

enum profile_category dso_table__category(const struct dso_table *table, struct dso_id id)
{
	const struct profile_dso *dso = profile_builder__get_dso(table->builder, id);

	switch (dso->kind) {
	case DSO_FILE:
		return dso->is_library ? CATEGORY_LIBRARY : CATEGORY_USER;
	case DSO_VDSO:
		return CATEGORY_LIBRARY;
	case DSO_KERNEL:
		return CATEGORY_KERNEL;
	case DSO_JIT:
		return CATEGORY_JIT;
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	return CATEGORY_OTHER;
}
