/* SPDX-License-Identifier: BSD-2-Clause */
/* The checksum of a debug file that .gnu_debuglink demands, within a budget for each user. */
#ifndef SYMBOLIZE_LINK_CRC_H
#define SYMBOLIZE_LINK_CRC_H

#include <stdint.h>
#include <sys/types.h>

#include "symbolize/debug_file.h"

void crc_ledger__init(struct crc_ledger *ledger);

/*
 * The CRC-32 of an open file, for a module that belongs to `user`. Moves the file's offset. 0;
 * -EFBIG: too large, or too many holes; -EDQUOT: the budget is used up; -ESTALE: it changed
 * meanwhile; -EBADMSG: it is cut short; -ECANCELED; -ENOMEM, -EIO.
 */
int link_crc(struct crc_ledger *ledger, uid_t user, int fd, crc_progress_fn progress, void *context,
	     uint32_t *crc);

#endif
