/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code of a file in anonymous memory. Some programs move their text into huge pages (HHVM,
 * ClickHouse, node --use-largepages=on): at the addresses of the file's mapping there is then
 * anonymous memory with the same contents.
 *
 * A mapping of a file next to it, or AT_PHDR of the program, says where the file's segments are in
 * the process. The memory is the file's if an executable segment is at that place and the bytes of
 * both are equal: a runtime may put JIT code where a file was before.
 */
#ifndef FILES_MOVED_TEXT_H
#define FILES_MOVED_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <sysprof/event.h>

/* Where the memory was found to belong. */
struct moved_text {
	uint64_t offset; /* in the file, of the memory's start */
	uint64_t inode;
	uint32_t major, minor;
	char path[EVENT_PATH_MAX]; /* as mapped */
};

/* Can executable memory of this name be it? */
bool moved_text__may_be(const char *path);

/*
 * Searches for the file of a process's memory [start, end). Reads /proc and a tenant's files, and so
 * may sleep for ever. A descriptor of the file, and *st; -ENOENT: it is no file's; -EAGAIN: it is at
 * a file's place, but not written yet; or another negative errno.
 */
int moved_text__find(pid_t pid, uint64_t start, uint64_t end, struct moved_text *text,
		     struct stat *st);

#endif
