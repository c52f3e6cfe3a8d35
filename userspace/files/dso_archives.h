/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Libraries mapped from a zip archive that stores them uncompressed: Android's packages.
 *
 * The directory of an archive is untrusted and may be large, so only the first mapping of a library
 * reads it, with limits of reads per minute for each archive and of CPU time for all.
 */
#ifndef FILES_DSO_ARCHIVES_H
#define FILES_DSO_ARCHIVES_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/vec.h"
#include "files/file_search.h"
#include "files/lru.h"
#include "tenants/outside_books.h"
#include "tenants/quota.h"

#define ARCHIVE_MARK "!/" /* between an archive's path and a name in there */

/* A library that lies in an archive, and is mapped from there. */
struct dso_member {
	uint32_t archive; /* number of the file */
	uint64_t offset, size;
	struct build_id build_id;
	uint64_t number; /* see dso_files.h */
	char *path;	 /* the archive's, and "!/" and the name in there; NULL: a free place */
};

struct dso_archives {
	VEC(struct dso_member) members;
	struct lru order;
	struct meter cpu;
	struct outside_books *books;
	uint32_t serial; /* of the last number */
};

/* An archive that is open. */
struct open_archive {
	uint32_t file;
	int fd;
	struct meter *readings; /* of its directory */
};

/* `books` may be NULL. */
void dso_archives__init(struct dso_archives *a, const struct lru_clock *clock, size_t max,
			struct outside_books *books);
void dso_archives__fini(struct dso_archives *a);
/* A mapping of the archive: 1 and the event of the library in there; 0: it is of none; -ENOMEM. */
int dso_archives__enter(struct dso_archives *a, const struct open_archive *archive,
			const struct mmap_event *event, struct mmap_event_space *inner);
/* The library of this name becomes a member if there is room; its number. 0 or negative errno. */
int dso_archives__add_by_name(struct dso_archives *a, const struct open_archive *archive,
			      const char *archive_path, const char *name, uint64_t *number);
/* The member of a number, which is a use. NULL: there is none. */
const struct dso_member *dso_archives__numbered(struct dso_archives *a, uint64_t number);
/* While held, with its archive, it is not evicted. Of a number that has none: nothing. */
void dso_archives__hold(struct dso_archives *a, uint64_t number);
void dso_archives__unhold(struct dso_archives *a, uint64_t number);
void dso_archives__forget_file(struct dso_archives *a, uint32_t archive);
#endif
