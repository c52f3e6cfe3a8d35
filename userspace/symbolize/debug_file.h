/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the debug information of a module: a separate file by build-id or .gnu_debuglink, the dwz
 * file by .gnu_debugaltlink, and debuginfod with --debuginfod. Only verified files are passed on.
 */
#ifndef SYMBOLIZE_DEBUG_FILE_H
#define SYMBOLIZE_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/io.h"
#include "tenants/quota.h"

/*
 * The CRC of a debug file that .gnu_debuglink names: all its bytes must be read to verify it.
 * Profiled programs decide which files these are and how many modules name them. So a file is read
 * once, holes are not read, and the cost is bounded for each user and for all users but root.
 */

#define CRC_MEMOS 64
/* Of a session's requests. Zeroed: no limits. No pointers, so processes can share it, in turn. */
struct crc_ledger {
	struct crc_memo {
		struct file_stamp stamp;
		uint32_t crc;
		int32_t err;
	} memos[CRC_MEMOS];
	uint64_t memo_count; /* that were ever made */
	uint64_t file_bytes; /* that are no holes, of one file; 0: no limit */
	struct quota bytes, time;
};

/* Nonzero cancels. */
typedef int (*crc_progress_fn)(void *context, uint64_t done, uint64_t total);

struct debug_file_request {
	int elf_fd;	   /* the mapped file, or a copy of it, or -1 */
	uint64_t elf_base; /* where the module begins in it */
	uint32_t user;	   /* whose file it is: the user to charge */
	int root_fd;	   /* root directory of its process, searched before the host's; or -1 */
	const char *path;  /* as mapped; the directory of .gnu_debuglink is beside it */
	uint8_t build_id_size;
	const uint8_t *build_id;
	/* As uname -r: find this vmlinux on the host, by build-id; both fds -1. NULL: a module */
	const char *release;
	bool package;	 /* file_finder__find(): the package of its .dwo files is searched, too */
	bool debuginfod; /* query the servers of DEBUGINFOD_URLS, where there is no file */
	/* called now and then while a file is downloaded (`what` is its module's path) or its CRC
	 * calculated; nonzero gives up. May be NULL */
	int (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
	void *context;
};

/* Why a debug file that exists was not used. X(ENUM, sentence) */
#define DEBUG_REFUSALS(X)                                                                          \
	X(NONE, "")                                                                                \
	X(TOO_LARGE, "its debug file has no build-id and is too large to be verified by its CRC")  \
	X(BUDGET, "the debug files of its user take too long to be verified by their CRC")         \
	X(HUNG, "its file system does not answer")

enum debug_refusal {
#define X(id, text) DEBUG_REFUSAL_##id,
	DEBUG_REFUSALS(X)
#undef X
		DEBUG_REFUSAL_COUNT
};

/* Of all requests of a session: zero it once and pass the same to each. Holds no pointers. */
struct debug_file_counts {
	uint64_t by_build_id, by_link, by_debuginfod;
	uint64_t wrong_build_id, wrong_crc; /* files with the right name and the wrong content */
	/*
	 * Failed downloads, without "no server has it"; after a few no server is queried any more.
	 * debuginfod_strerror() of the last one's errno has the reason.
	 */
	uint64_t debuginfod_failures;
	int debuginfod_error;
	uint64_t crc_refused;	    /* files whose CRC was not calculated, or not to its end */
	enum debug_refusal refusal; /* of the last request */
	struct crc_ledger crcs;
};

/*
 * The source r->path from a server, for the build-id of its module: a descriptor, or negative errno.
 * -ENOENT: no server has it, or none may be queried.
 */
int debug_file_fetch_source(const struct debug_file_request *r, struct debug_file_counts *counts);

/*
 * Open the debug file; the caller closes the descriptors. *debug_fd is -1 where there is none, or
 * none is needed because the module has its debug information itself; *alt_fd is -1 where there is
 * no dwz file or none is needed. 0 or negative errno (no memory, no descriptors): not finding one
 * is no error.
 */
int debug_file_find(const struct debug_file_request *request, int *debug_fd, int *alt_fd,
		    struct debug_file_counts *counts);

/*
 * A number for "the answers were made from exactly these files" (-1: none): device, inode, size and
 * time of the last change of each, and where the module begins in its file. A build-id is not
 * enough: a process can give its file any, and must not name other files with it. Never 0.
 */
uint64_t debug_file_identity(int elf_fd, uint64_t elf_base, int debug_fd, int alt_fd);

#endif
