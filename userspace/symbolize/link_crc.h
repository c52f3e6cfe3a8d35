/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC of a debug file that .gnu_debuglink names: all its bytes have to be read to see whether it is the
 * right one. Which files these are, and how many modules name them, the profiled programs decide. So a
 * file is read once, holes are not read at all, and what one user's modules may cost is bounded, as is what
 * those of all users but root may.
 */
#ifndef SYMBOLIZE_LINK_CRC_H
#define SYMBOLIZE_LINK_CRC_H

#include <stdint.h>
#include <sys/types.h>

#include "base/io.h"
#include "base/quota.h"

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

#endif
