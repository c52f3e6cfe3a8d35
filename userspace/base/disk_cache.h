/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory of files that can be made again: below $XDG_CACHE_HOME/sysprof (or ~/.cache/sysprof),
 * for root below /var/cache/sysprof.
 *
 * Nothing in it is trusted: directories and files must be ours and not writable by others. What a
 * file says is for its reader to check. Bounded in size; the least recently used file is deleted first.
 */
#ifndef BASE_DISK_CACHE_H
#define BASE_DISK_CACHE_H

#include <stddef.h>
#include <stdint.h>

#define DISK_CACHE_NAME_SIZE 192 /* of a file's name, with its NUL */

struct disk_cache_kind {
	const char *directory; /* its name below that of all caches */
	const char *suffix;    /* of its files' names, ".symbols" */
	uint64_t limit;	       /* bytes of all its files */
	uint64_t file_limit;
};

struct disk_cache;

/* NULL: no cache can be had (no home, foreign directory). The strings of `kind` stay the caller's. */
struct disk_cache *disk_cache__open(const struct disk_cache_kind *kind);
/* The same in a directory of the caller's choice, which is made if it is not there (not what it is in). */
struct disk_cache *disk_cache__open_at(const struct disk_cache_kind *kind, const char *directory);
void disk_cache__free(struct disk_cache *c);

/*
 * Open a file of ours, which counts as its use; the caller closes it. 0; -ENOENT; -EBADMSG: something
 * else has its name, and has been deleted, if it could be; -ENOMEM, -EMFILE, -ENFILE.
 */
int disk_cache__open_file(struct disk_cache *c, const char *name, int *fd, size_t *size);
/* All of its bytes; the caller frees. As above; also -EIO. */
int disk_cache__read(struct disk_cache *c, const char *name, void **data, size_t *size);
void disk_cache__delete(struct disk_cache *c, const char *name);

/*
 * Write a file under another name and rename it: whoever reads it finds all of it or nothing, but for a
 * crash of the machine. Then delete others, if there are too many. 0 or negative errno: not written.
 */
int disk_cache__write(struct disk_cache *c, const char *name, const void *data, size_t size);

#endif
