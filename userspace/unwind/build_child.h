/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that build unwind tables, and what they say.
 *
 * A builder is forked for one file and serves no other: who takes it over by what is in his file has nobody else's. It
 * has no capabilities, no file system, a user of its own, and a system call filter; its memory is that of the
 * keeper, which was forked early. It has three descriptors: its socket, the file, and the memory for the table.
 */
#ifndef UNWIND_BUILD_CHILD_H
#define UNWIND_BUILD_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind_table.h"

/* To a builder, with two descriptors: what is read, and where the bytes of the table go. */
struct build_question {
	uint64_t ticket; /* repeated in the reply */
	uint64_t base;	 /* where in the file the ELF file begins */
	uint64_t limit;	 /* bytes of a table */
	uint32_t kind;	 /* enum build_kind */
	uint32_t reserved;
};

enum build_kind {
	BUILD_FILE,   /* the table of an ELF file */
	BUILD_PIECES, /* that of build_pieces.h */
};

/* From a builder. Nothing in it is true until it was checked. */
struct build_reply {
	uint64_t ticket;
	int32_t err;			 /* 0, or negative errno */
	uint32_t refusal;		 /* enum table_refusal */
	struct unwind_table_image image; /* but for its bytes */
};

/* From the keeper: a builder is there (with a descriptor of it, a pidfd), or it has ended. */
struct builder_note {
	int32_t pid;	/* negative errno: there is none */
	int32_t ended;	/* 0 or 1 */
	int32_t status; /* as wait4() has it */
	int32_t reserved;
	uint64_t cpu_ns; /* that it took from beginning to end */
};

/* What a builder does: fills the reply and the memory. Tests have others. */
typedef void (*build_work_fn)(const struct build_question *question, int file, int memory,
			      struct build_reply *reply);
void build_child__work(const struct build_question *question, int file, int memory,
		       struct build_reply *reply);

/*
 * Forks the keeper; the caller must have one thread. Each byte with a socket that is written to *control
 * makes it fork a builder which serves there. Its end, and that of all builders that are not stuck, is the end of
 * *control. 0 or negative errno.
 */
int build_keeper__start(build_work_fn work, pid_t *keeper, int *control);

#endif
