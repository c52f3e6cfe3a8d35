/* SPDX-License-Identifier: BSD-2-Clause */
/* The only user of libdebuginfod: debug files and sources by build-id, from the user's servers. */
#ifndef SYMBOLIZE_DEBUGINFOD_H
#define SYMBOLIZE_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

/* Seconds until the first 100 KB have come, unless the user has set DEBUGINFOD_TIMEOUT. */
#define DEBUGINFOD_STALL_SECONDS 20
/* Since elfutils 0.190 nothing is reported before the first bytes, for which it tries three times. */
#define DEBUGINFOD_FIRST_BYTES_NS (3 * DEBUGINFOD_STALL_SECONDS * UINT64_C(1000000000))

/*
 * Called with 0 bytes before a server is asked, now and then during a download, and with the whole when it has
 * ended; nonzero cancels. `total` is 0 if unknown.
 */
typedef int (*debuginfod_progress_fn)(void *context, uint64_t done, uint64_t total);

/*
 * The debug file (or dwz file) of this build-id, or the source with this absolute path that its debug
 * information names (NULL: none), open for reading: whatever the server sent, so a debug file's build-id is
 * yet to be checked. `progress` may be NULL. 0, or
 * -ENOENT: no server has it;  -ECANCELED: the callback gave up;
 * -ENOPKG: libdebuginfod is not installed;  -EDESTADDRREQ: no server is configured;
 * -EFBIG: too large;  -ETIME: too slow;
 * others: no server could be reached, or there is no place for the file.
 */
int debuginfod_fetch(const uint8_t *build_id, size_t size, const char *source,
		     debuginfod_progress_fn progress, void *context, int *fd);

/* The meaning of such an error, to end a sentence: "debuginfod: no server is configured …". */
const char *debuginfod_strerror(int error);

#endif
