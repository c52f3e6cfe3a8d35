/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream of zstd in PERF_RECORD_COMPRESSED records (`perf record -z`). */
#ifndef STREAM_PERF_PERF_UNPACK_H
#define STREAM_PERF_PERF_UNPACK_H

#include "base/cursor.h"

struct perf_unpacker;

/* Loads libzstd, if it is installed, for children that can open no files and call perf_unpacker__new(). */
void perf_unpack__prepare(void);

/*
 * libzstd is loaded here, since most files need none of it. 0; -ENOPKG: it is not installed, or this
 * is the static program, which loads no libraries; -ENOMEM.
 */
int perf_unpacker__new(struct perf_unpacker **unpacker);
void perf_unpacker__free(struct perf_unpacker *u); /* NULL is fine */

/*
 * The next piece of what the records hold: up to `room` bytes into `to`. *got 0 with an empty `in`: it
 * is all unpacked. 0; -EBADMSG: damaged.
 */
int perf_unpacker__step(struct perf_unpacker *u, struct cursor *in, void *to, size_t room,
			size_t *got);

#endif
