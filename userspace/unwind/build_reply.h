/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving side of a builder's reply, from which nothing is believed. */
#ifndef UNWIND_BUILD_REPLY_H
#define UNWIND_BUILD_REPLY_H

#include <stdint.h>

#include "unwind/build_service.h"

/*
 * `memory` was sealed against growing and shrinking before the builder got it, with request->limit bytes. Fills image or
 * refusal. 0, or the builder's error, one of those that building has; -EPROTO: no builder of ours says that; -ENOMEM.
 */
int build_reply__take(const struct build_reply *reply, uint64_t ticket, int memory,
		      const struct build_request *request, struct build_result *result);

#endif
