/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A format that can be read. An importer gets the bytes of a file and fills a profile_builder; it
 * opens nothing. The file is not trusted: ids are checked, counts, sizes and depths are bounded.
 */
#ifndef SYSPROF_IMPORTER_H
#define SYSPROF_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

/* An error in a file, and its place. */
struct import_failure {
	char what[256];
	uint64_t offset; /* byte offset in the file (uncompressed, if it was compressed) */
};

/* What the first field of folded stacks is. X(ENUM, word of an option) */
#define IMPORT_ROOTS(X)                                                                            \
	X(AUTO, "auto") /* thread or frame, as all lines look */                                   \
	X(THREAD, "thread")                                                                        \
	X(PROCESS, "process")                                                                      \
	X(FRAME, "frame")

enum import_root {
#define X(id, word) IMPORT_ROOT_##id,
	IMPORT_ROOTS(X)
#undef X
};

struct import_request {
	const char *name; /* of the file, for a process that has no other */
	const uint8_t *bytes;
	size_t size;
	enum import_root root;
	bool is_own;  /* of sysprof's agent: its numbers are what the agent counts */
	uint64_t cut; /* of a gzip file whose end is missing: its size; else 0 */
	/* pprof: samples of other processes may be left out; NULL: all are wanted */
	const char *process;
	struct profile_builder *builder; /* new, without session fields */
};

struct importer {
	const char *name; /* as the exporter's */
	const char *description;
	bool reads_cut; /* up to the cut, and counts LEFT_OUT_REST */
	/* Are these bytes, the first ones of a file, of this format? */
	bool (*recognizes)(const uint8_t *bytes, size_t size);
	/* 0; -EBADMSG: damaged, or not this format; -E2BIG: over a limit; -ENOMEM */
	int (*read)(const struct import_request *request, struct import_failure *failure);
};

#endif
