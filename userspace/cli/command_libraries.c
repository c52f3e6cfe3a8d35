/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As the dynamic linker searches (ld.so(8)), but without its cache and hardware capabilities: in
 * the file's own DT_RUNPATH or DT_RPATH, LD_LIBRARY_PATH, and the standard directories.
 */
#include "cli/command_libraries.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"

#define LIBRARIES_MAX 256
#define DYNAMIC_MAX   (1u << 20)
#define STRINGS_MAX   (64u << 20)
#define STANDARD                                                                                   \
	"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:"         \
	"/usr/local/lib"

struct mapped_file {
	char *path;
	dev_t device;
	ino_t inode;
};

typedef VEC(struct mapped_file) file_list;

/* The dynamic section of one file. */
struct dynamic {
	const char *path;
	Elf64_Dyn *entries;
	size_t count;
	char *strings;
	size_t strings_size;
};

static void free_dynamic(struct dynamic *d)
{
	free(d->entries);
	free(d->strings);
}

static int read_dynamic(const char *path, struct dynamic *d)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_file *file;
	size_t size = 0;
	int err = fd < 0 ? -errno : elf_file__open(fd, &file);

	*d = (struct dynamic){.path = path};
	if (err)
		return err;
	err = elf_file__section_data(file, ".dynamic", DYNAMIC_MAX, (void **)&d->entries, &size);
	d->count = err ? 0 : size / sizeof(*d->entries);
	if (!err)
		err = elf_file__section_data(file, ".dynstr", STRINGS_MAX, (void **)&d->strings,
					     &d->strings_size);
	elf_file__free(file);
	return err;
}

/* The text of an entry; NULL: invalid. */
static const char *text_of(const struct dynamic *d, const Elf64_Dyn *entry)
{
	return entry->d_un.d_val < d->strings_size ? d->strings + entry->d_un.d_val : NULL;
}

/* DT_RUNPATH, else DT_RPATH; NULL: neither. */
static const char *search_path(const struct dynamic *d)
{
	const char *found = NULL;

	for (size_t i = 0; i < d->count; i++) {
		if (d->entries[i].d_tag == DT_RUNPATH)
			return text_of(d, &d->entries[i]);
		if (d->entries[i].d_tag == DT_RPATH)
			found = text_of(d, &d->entries[i]);
	}
	return found;
}

/* Maps it if it is a file that is not mapped yet. True: the search for it ends. */
static bool map_file(file_list *files, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct mapped_file file = {};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	for (size_t i = 0; i < files->count; i++)
		if (files->data[i].inode == st.st_ino && files->data[i].device == st.st_dev)
			return true;
	/* $ORIGIN of a program is where links lead to */
	file.path = files->count ? strdup(path) : realpath(path, NULL);
	file.device = st.st_dev;
	file.inode = st.st_ino;
	if (!file.path || files->count == LIBRARIES_MAX || vec_push(files, file)) {
		free(file.path);
		return true;
	}
	(void)mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return true;
}

/* "$ORIGIN/../lib": only at the start, where linkers put it. False: too long. */
static bool expand(const char *origin, const char *directory, int size, const char *name,
		   char path[PATH_MAX])
{
	static const char *const NAMES[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(origin, '/');
	int before = 0;

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]) && !before; i++) {
		int length = (int)strlen(NAMES[i]);

		if (length > size || memcmp(directory, NAMES[i], length))
			continue;
		before = slash ? (int)(slash - origin) : 0;
		directory += length;
		size -= length;
	}
	return snprintf(path, PATH_MAX, "%.*s%.*s/%s", before, origin, size, directory, name) <
	       PATH_MAX;
}

static bool map_from(file_list *files, const char *origin, const char *directories,
		     const char *name)
{
	char path[PATH_MAX];

	while (directories) {
		const char *end = strchrnul(directories, ':');

		if (end > directories &&
		    expand(origin, directories, (int)(end - directories), name, path) &&
		    map_file(files, path))
			return true;
		directories = *end ? end + 1 : NULL;
	}
	return false;
}

static void map_needed(file_list *files, const struct dynamic *d)
{
	const char *runpath = search_path(d);

	for (size_t i = 0; i < d->count; i++) {
		const char *name = d->entries[i].d_tag == DT_NEEDED ? text_of(d, &d->entries[i])
								    : NULL;

		if (!name || !*name)
			continue;
		if (strchr(name, '/'))
			map_file(files, name);
		else if (!map_from(files, d->path, runpath, name) &&
			 !map_from(files, d->path, getenv("LD_LIBRARY_PATH"), name))
			map_from(files, d->path, STANDARD, name);
	}
}

void command_libraries__map(const char *program)
{
	file_list files = {};

	map_file(&files, program);
	for (size_t i = 0; i < files.count; i++) {
		struct dynamic d;

		if (!read_dynamic(files.data[i].path, &d))
			map_needed(&files, &d);
		free_dynamic(&d);
	}
	vec_free_with(&files, file, free(file->path));
}
