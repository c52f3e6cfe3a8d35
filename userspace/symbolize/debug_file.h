/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the debug information of a module is: a separate file by build-id or by .gnu_debuglink, the dwz file by
 * .gnu_debugaltlink, and debuginfod with --debuginfod. Only verified files are passed on.
 */
#ifndef SYMBOLIZE_DEBUG_FILE_H
#define SYMBOLIZE_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/io.h"
#include "base/quota.h"

/*
 * The CRC of a debug file that .gnu_debuglink names: all its bytes have to be read to see whether it is the
 * right one. Which files these are, and how many modules name them, the profiled programs decide. So a
 * file is read once, holes are not read at all, and what one user's modules may cost is bounded, as is what
 * those of all users but root may.
 */

#define CRC_MEMOS 64
/*
 * Of all requests of a session. Zeroed it has no limits. Holds no pointers: it may lie in memory that processes share,
 * one of which uses it at a time.
 */
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

void crc_ledger__init(struct crc_ledger *ledger);

/* Nonzero gives up. */
typedef int (*crc_progress_fn)(void *context, uint64_t done, uint64_t total);

/*
 * The CRC-32 of an open file, for a module that belongs to `user`. Moves the file's offset. 0; -EFBIG: the
 * file is too large, or has too many holes; -EDQUOT: the budget is used up; -ESTALE: it changed meanwhile;
 * -EBADMSG: it is cut short; -ECANCELED; -ENOMEM, -EIO.
 */
int link_crc(struct crc_ledger *ledger, uid_t user, int fd, crc_progress_fn progress, void *context,
	     uint32_t *crc);

struct debug_file_request {
	int elf_fd;	   /* the mapped file, or -1 */
	uint64_t elf_base; /* where the module begins in it */
	uint32_t
		copied_for; /* elf_fd is a copy in memory of this user's file; 0: it is not, or root's */
	int root_fd; /* root directory of its process, or -1: sought there first, then on the host */
	const char *path; /* as mapped; the directory of .gnu_debuglink is beside it */
	uint8_t build_id_size;
	const uint8_t *build_id;
	/*
	 * As uname -r has it: then the vmlinux of this kernel on the host is sought, by its build-id. elf_fd and root_fd
	 * are -1. NULL: the debug file of a module
	 */
	const char *release;
	bool package;	 /* file_finder__find(): the package of its .dwo files is sought, too */
	bool debuginfod; /* query the servers of DEBUGINFOD_URLS */
	/* called now and then while a file is downloaded (`what` is its module's path) or its CRC
	 * calculated; nonzero gives up. May be NULL */
	int (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
	void *context;
};

/* Why a debug file that is there was not used. X(ENUM, sentence) */
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
	uint64_t wrong_build_id, wrong_crc; /* files that had the name and were not it */
	/*
	 * Downloads that failed, other than by "no server has it"; after a few no server is queried any more.
	 * debuginfod_strerror() of the last one's errno has the reason.
	 */
	uint64_t debuginfod_failures;
	int debuginfod_error;
	uint64_t crc_refused;	    /* files whose CRC was not calculated, or not to its end */
	enum debug_refusal refusal; /* of the last request */
	struct crc_ledger crcs;
};

/*
 * Open the debug file; the caller closes the descriptors. *debug_fd is -1 where there is none, or
 * none is needed because the module has its debug information itself; *alt_fd is -1 where there is
 * no dwz file or none is needed. 0 or negative errno (no memory, no descriptors): not finding one
 * is no error.
 */
int debug_file_find(const struct debug_file_request *request, int *debug_fd, int *alt_fd,
		    struct debug_file_counts *counts);

/*
 * A number for "the answers were made from exactly these files" (-1: none): device, inode, size and time of the last
 * change of each, and where in its file the module begins. Build-ids are not enough: a process can give its file any
 * build-id, and must not decide the names of other files with that build-id. Never 0.
 */
uint64_t debug_file_identity(int elf_fd, uint64_t elf_base, int debug_fd, int alt_fd);

#endif
