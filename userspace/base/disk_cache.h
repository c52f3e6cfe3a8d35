/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory of files that can be recreated: below $XDG_CACHE_HOME/sysprof (or ~/.cache/sysprof), for root below
 * /var/cache/sysprof.
 *
 * Nothing in it is trusted: directories and files must be ours and not writable by others. A checksum finds what the
 * disk or a crash did. It is no protection from a forger, so the reader checks the content as well. It is read by the
 * machine and the version that wrote it, so everything is in the machine's own order and width. Bounded in size, give or
 * take a sixteenth; the least recently used file is deleted first.
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

/* NULL: there can be no cache (no home, foreign directory). The strings of `kind` stay the caller's. */
struct disk_cache *disk_cache__open(const struct disk_cache_kind *kind);
/* The same in a directory of the caller's choice, which is created if it is missing (its parents are not). */
struct disk_cache *disk_cache__open_at(const struct disk_cache_kind *kind, const char *directory);
void disk_cache__free(struct disk_cache *c);
/*
 * The data that was written by that name, which counts as a use; the caller frees it. 0; -ENOENT; -EBADMSG: there is something
 * else, or it is damaged, or of another maker; -ENOMEM, -EMFILE, -ENFILE, -EIO.
 */
int disk_cache__read(struct disk_cache *c, const char *name, void **data, size_t *size);
void disk_cache__delete(struct disk_cache *c, const char *name);

/*
 * Writes a file under another name and renames it: a reader finds all of it or nothing, unless the machine crashes.
 * Then deletes others, if there are too many; that is looked at once for every sixteenth of the limit that all programs
 * write, on average. 0 or negative errno: not written.
 */
int disk_cache__write(struct disk_cache *c, const char *name, const void *data, size_t size);

#endif
