/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much is read of whose perf maps and jitdumps. A limit for each file alone is none: who may have many
 * processes may have many files. So each user has a budget of bytes and of files, and all together have one. What is
 * read is kept: in memory until the names are made, and in the recording.
 *
 * The budget of bytes grows with time, by as much as it began with in ten minutes: a JVM that writes its map again
 * each ten seconds is read in a long recording as well.
 *
 * It lies in memory that a watcher shares with the collector, so that the next watcher goes on with the sums of the one
 * before. What is read anew counts again. The collector does not follow its pointer.
 */
#ifndef JITWATCH_JIT_LEDGER_H
#define JITWATCH_JIT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#define JIT_USER_BYTES	  (256ull << 20)
#define JIT_ALL_BYTES	  (512ull << 20)
#define JIT_USER_FILES	  512u		  /* followed, rejected, and looked for */
#define JIT_LEDGER_GROWTH 600000000000ull /* ns */

struct jit_account {
	uint32_t user;
	bool denied;
	uint64_t bytes;
	unsigned int files;
};

#define JIT_ACCOUNTS 1024u

/* Zero-initialised, but for `began`. */
struct jit_ledger {
	uint64_t bytes;
	/* bytes of this ledger and others, in memory that all share; NULL: there is no other */
	_Atomic uint64_t *all;
	uint64_t began; /* CLOCK_MONOTONIC ns */
	uint32_t count;
	struct jit_account rest; /* of users that have found no account */
	struct jit_account accounts[JIT_ACCOUNTS];
};

/* The sums of `old`, which a process that hangs may be writing to; its files are not those of the next one. `all` stays. */
void jit_ledger__go_on(struct jit_ledger *l, const struct jit_ledger *old);

/* Nothing of this user is read from now on. */
void jit_ledger__deny(struct jit_ledger *l, uint32_t user);

void jit_ledger__charge(struct jit_ledger *l, uint32_t user, uint64_t bytes);
/* A file more. False: the user has enough of them. */
bool jit_ledger__add_file(struct jit_ledger *l, uint32_t user);
void jit_ledger__drop_file(struct jit_ledger *l, uint32_t user);

/* May a file of this user be read (on)? FOLLOWED, or why not: HUNG, USER_LIMIT, LIMIT. */
enum jit_file_state jit_ledger__ask(struct jit_ledger *l, uint32_t user, uint64_t now);

#endif
