/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory of files that can be recreated: below $XDG_CACHE_HOME/sysprof or ~/.cache/sysprof,
 * for root below /var/cache/sysprof.
 *
 * Nothing in it is trusted: directories and files must be ours and not writable by others. A
 * checksum detects damage by the disk or a crash, but no forgery, so the reader checks the content
 * too. Data has the machine's byte order and width: only the machine and version that wrote it read
 * it. The size is bounded, give or take a sixteenth; the least recently used file is deleted first.
 */
#ifndef BASE_DISK_CACHE_H
#define BASE_DISK_CACHE_H

#include <stddef.h>
#include <stdint.h>

#define DISK_CACHE_NAME_SIZE 192 /* of a file's name, with its NUL */

struct disk_cache_kind {
	const char *directory; /* its name below that of all caches */
	const char *suffix;    /* of its files' names, ".symbols" */
	uint64_t limit;	       /* bytes that all its files take on the disk */
	uint64_t file_limit;
	uint64_t maker; /* files of another one are bad */
};

struct disk_cache;

/* NULL: no memory, no home, or a foreign directory. The strings of `kind` stay the caller's. */
struct disk_cache *disk_cache__open(const struct disk_cache_kind *kind);
/* The same in the given directory, which is created if missing (its parents are not). */
struct disk_cache *disk_cache__open_at(const struct disk_cache_kind *kind, const char *directory);
void disk_cache__free(struct disk_cache *c);
/*
 * The data written under that name, which counts as a use; the caller frees. 0; -ENOENT; -EBADMSG:
 * something else, damaged, or of another maker; -ENOMEM, -EMFILE, -ENFILE, -EIO.
 */
int disk_cache__read(struct disk_cache *c, const char *name, void **data, size_t *size);
void disk_cache__delete(struct disk_cache *c, const char *name);

/*
 * Writes under another name and renames: readers find all or nothing, unless the machine crashes.
 * Then deletes files over the limit; on average, the directory is listed for that once for each
 * sixteenth of the limit that all programs write. Negative errno: not written, or not listed.
 */
int disk_cache__write(struct disk_cache *c, const char *name, const void *data, size_t size);

#endif
