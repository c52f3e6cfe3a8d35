/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one table of limits of users, and its one implementation.
 *
 * A profiled program decides how many files, mappings and functions it has, and how often they
 * change. So whatever costs the collector memory or time has limits: for each process or file, each
 * user, all users. Memory is held until given back, time and events are given again as time passes.
 *
 * Each owner has an account: the user of a process (tenants/tenant_user.h), or the account of its
 * readers (tenants/owner.h). The first is root's; owners beyond 1,022 share the last. Empty accounts
 * are reused. No function here needs memory or can fail. Not thread-safe.
 */
#ifndef TENANTS_QUOTA_H
#define TENANTS_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "tenants/outside_books.h"

#define QUOTA_MB     (1ull << 20)
#define QUOTA_GB     (1ull << 30)
#define QUOTA_MS     1000000ull
#define QUOTA_SECOND 1000000000ull

/*
 * X(THING, unit, each process or file, user, all, policy, row in the books of the outside, text).
 * Over a limit: REFUSE, EVICT something of the user with the most, or DEFER. HELD(limit): until
 * given back; RATE(limit, period): given again in `period` ns, up to the limit; GROWS(limit,
 * period): without end; OTHERS, RATE_OF_OTHERS: as HELD and RATE, for all users but root.
 */
#define QUOTAS(X)                                                                                  \
	X(ROOTS, COUNT, NONE, NONE, HELD(1024), EVICT, OPEN_FILES,                                 \
	  "root directories of processes, kept open")                                              \
	X(FILES, COUNT, NONE, NONE, HELD(8192), EVICT, OPEN_FILES, "mapped files that are known")  \
	X(DESCRIPTORS, COUNT, NONE, NONE, HELD(4096), EVICT, OPEN_FILES,                           \
	  "descriptors of mapped files; fewer if the limit of open files is low")                  \
	X(FILE_COPIES, BYTES, NONE, HELD(256 * QUOTA_MB), HELD(512 * QUOTA_MB), REFUSE,            \
	  FILE_COPIES, "copies of mapped files, in memory")                                        \
	X(IMAGES, COUNT, NONE, HELD(16384), OTHERS(65536), REFUSE, IMAGES,                         \
	  "files that a profile distinguishes; each user may have 1,024 in any case")              \
	X(TABLES, BYTES, NONE, NONE, NONE, EVICT, TABLES, "unwind tables (`--unwind-mem`)")        \
	X(PLACES, BYTES, NONE, NONE, NONE, EVICT, PLACES, "mappings in the kernel's tables")       \
	X(JIT_NAMES, BYTES, NONE, HELD(384 * QUOTA_MB), HELD(768 * QUOTA_MB), EVICT, JIT_NAMES,    \
	  "names of JIT code; in the agent 8 MB a user, 16 MB in all")                             \
	X(FUNCTIONS, BYTES, RATE(8 * QUOTA_MB, 60 * QUOTA_SECOND),                                 \
	  RATE(32 * QUOTA_MB, 60 * QUOTA_SECOND), RATE(64 * QUOTA_MB, 60 * QUOTA_SECOND), REFUSE,  \
	  FUNCTIONS, "names and lines of functions, read from memory of runtimes")                 \
	X(CODE_COPIES, BYTES, NONE, NONE, RATE(4 * QUOTA_MB, QUOTA_SECOND), REFUSE, NONE,          \
	  "copies of code objects, taken with samples")                                            \
	X(FACT_LOOKS, COUNT, NONE, NONE, RATE(200, QUOTA_SECOND), DEFER, NONE,                     \
	  "processes whose program and control group are looked up")                               \
	X(FACT_READINGS, COUNT, NONE, NONE, RATE(256, 6400 * QUOTA_MS), DEFER, FACTS,              \
	  "processes whose environment and command line are read")                                 \
	X(NAME_READINGS, COUNT, NONE, RATE(512, 5 * QUOTA_SECOND),                                 \
	  RATE_OF_OTHERS(1024, 5 * QUOTA_SECOND), DEFER, NAMES,                                    \
	  "the same to compare services with targets by name; until its turn a process has the "   \
	  "service of its group or program")                                                       \
	X(PUBLISHING, CPU, RATE(50 * QUOTA_MS, 5 * QUOTA_SECOND),                                  \
	  RATE(100 * QUOTA_MS, 5 * QUOTA_SECOND),                                                  \
	  RATE_OF_OTHERS(200 * QUOTA_MS, 4 * QUOTA_SECOND), DEFER, PUBLICATIONS,                   \
	  "giving a process's mappings to the kernel; processes with more than 1,024 mappings "    \
	  "have a limit for all of their own, of the same size")                                   \
	X(MAP_RECORDS, COUNT, NONE, RATE(16384, 2 * QUOTA_SECOND), NONE, DEFER, MAPPINGS,          \
	  "records of new mappings beyond the first 256 of a program, but for root's; mappings "   \
	  "over the limit are read from /proc a second later")                                     \
	X(EARLY_TICKS, CPU, NONE, NONE, RATE(20 * QUOTA_MS, 400 * QUOTA_MS), DEFER, NONE,          \
	  "ticks of the collector before their time; below 500 Hz the share falls with the rate")  \
	X(TABLE_BUILDING, CPU, NONE, RATE(2 * QUOTA_SECOND, 40 * QUOTA_SECOND),                    \
	  RATE_OF_OTHERS(4 * QUOTA_SECOND, 40 * QUOTA_SECOND), DEFER, NONE,                        \
	  "building unwind tables; tables for processes younger than 1 s wait, and those of JIT "  \
	  "code; others do not")                                                                   \
	X(TABLE_CACHE, BYTES, NONE, NONE, RATE(64 * QUOTA_MB, 64 * QUOTA_SECOND), REFUSE, NONE,    \
	  "unwind tables written to the cache on disk; the same of indexes of modules")            \
	X(HELPER_CPU, CPU, NONE, RATE(QUOTA_SECOND, 20 * QUOTA_SECOND), NONE, DEFER, NONE,         \
	  "reader processes; refused after 2 s")                                                   \
	X(HOLDING, TIME, NONE, RATE(100 * QUOTA_MS, 2 * QUOTA_SECOND),                             \
	  RATE(300 * QUOTA_MS, 6 * QUOTA_SECOND), REFUSE, NONE,                                    \
	  "time for which the stream of events waits for requests to readers; not of root")        \
	X(REQUESTS, COUNT, NONE, HELD(4096), OTHERS(8192), REFUSE, NONE,                           \
	  "requests to reader processes that have no answer yet")                                  \
	X(ARCHIVES, CPU, NONE, NONE, RATE(200 * QUOTA_MS, 10 * QUOTA_SECOND), DEFER, ARCHIVES,     \
	  "reading directories of zip archives")                                                   \
	X(ARCHIVE_READS, COUNT, RATE(256, 60 * QUOTA_SECOND), NONE, NONE, DEFER, ARCHIVES,         \
	  "readings of one archive's directory")                                                   \
	X(DEBUG_SEARCH, TIME, NONE, HELD(15 * QUOTA_SECOND), HELD(30 * QUOTA_SECOND), REFUSE,      \
	  DEBUG_FILES, "searching debug files, in one run; root's own files have no limit")        \
	X(DEBUG_COPIES, BYTES, NONE, HELD(256 * QUOTA_MB), HELD(512 * QUOTA_MB), REFUSE,           \
	  FILE_COPIES, "copies of debug files in memory; the same")                                \
	X(CRC_BYTES, BYTES, HELD(2 * QUOTA_GB), HELD(4 * QUOTA_GB), OTHERS(8 * QUOTA_GB), REFUSE,  \
	  DEBUG_FILES, "bytes read for the CRC of debug links")                                    \
	X(CRC_TIME, TIME, NONE, HELD(10 * QUOTA_SECOND), OTHERS(20 * QUOTA_SECOND), REFUSE,        \
	  DEBUG_FILES, "reading them")                                                             \
	X(SYMBOLS, CPU, NONE, RATE(120 * QUOTA_SECOND, 600 * QUOTA_SECOND),                        \
	  RATE_OF_OTHERS(480 * QUOTA_SECOND, 600 * QUOTA_SECOND), REFUSE, SYMBOLS,                 \
	  "processes that read modules for their symbols; a recording has what is given at once, " \
	  "a window of the agent what earlier windows left of it; those of root have no limit "    \
	  "but their own")                                                                         \
	X(LARGE_CHILDREN, COUNT, NONE, NONE, HELD(1), DEFER, NONE,                                 \
	  "processes of the agent that build the unwind table or read the symbols of a file of "   \
	  "4 MB or more, at the same time; tables do not wait, and nothing waits longer than 3 s") \
	X(SYMBOL_INDEXES, BYTES, NONE, HELD(4 * QUOTA_MB), OTHERS(8 * QUOTA_MB), REFUSE, NONE,     \
	  "indexes of modules; without one, processes read the module again")                      \
	X(JIT_BYTES, BYTES, NONE, GROWS(256 * QUOTA_MB, 600 * QUOTA_SECOND),                       \
	  GROWS(512 * QUOTA_MB, 600 * QUOTA_SECOND), REFUSE, JIT_FILES,                            \
	  "bytes read of perf maps and jitdumps; the sums go on if a watcher hangs, and what "     \
	  "the next one reads again counts again")                                                 \
	X(JIT_FILES, COUNT, NONE, HELD(512), NONE, REFUSE, JIT_FILES,                              \
	  "perf maps and jitdumps that are followed, rejected or looked for")                      \
	X(JIT_LISTING, CPU, RATE(500 * QUOTA_MS, QUOTA_SECOND), NONE, NONE, DEFER, NONE,           \
	  "reading what a perf map or jitdump has when it is found")                               \
	X(JIT_READING, CPU, RATE(20 * QUOTA_MS, QUOTA_SECOND), NONE, NONE, DEFER, NONE,            \
	  "reading what is added to it")

#define QUOTA_LARGE_FILE (4 * QUOTA_MB) /* of QUOTA_LARGE_CHILDREN */

enum quota_thing {
#define X(id, ...) QUOTA_##id,
	QUOTAS(X)
#undef X
		QUOTA_THING_COUNT
};

enum quota_unit { QUOTA_BYTES, QUOTA_COUNT, QUOTA_CPU, QUOTA_TIME }; /* the last two: ns */

enum quota_policy { QUOTA_REFUSE, QUOTA_EVICT, QUOTA_DEFER };

struct quota_limit {
	uint64_t limit;	 /* 0: there is none */
	uint64_t period; /* ns in which the limit is given again; 0: it is held until given back */
	bool grows;	 /* what is given again adds up, from the beginning of the quota */
	bool spares_root;
};

struct quota_row {
	const char *text;
	enum quota_unit unit;
	enum quota_policy policy;
	enum outside_thing books; /* OUTSIDE_THING_COUNT: it has no row in the books */
	struct quota_limit each, user, all;
};

const struct quota_row *quota_row(enum quota_thing thing);

/* ---- one account ----------------------------------------------------------------------------- */

/* Zero-initialised. Of a process or a file its owner keeps one, with quota_row()->each. */
struct meter {
	int64_t used;
	uint64_t as_of; /* CLOCK_MONOTONIC ns */
};

/* `now`: CLOCK_MONOTONIC ns; of what is held, anything. Below 0: more was taken than there was. */
int64_t meter__left(const struct meter *m, const struct quota_limit *limit, uint64_t now);
void meter__take(struct meter *m, const struct quota_limit *limit, uint64_t amount, uint64_t now);
/* Takes it, if that much is left. False: it is not. */
bool meter__spend(struct meter *m, const struct quota_limit *limit, uint64_t amount, uint64_t now);

/* ---- accounts of owners ---------------------------------------------------------------------- */

#define QUOTA_OWNERS 1024u /* the last account is shared by all users without one */
#define QUOTA_NOBODY                                                                               \
	(UINT64_MAX - 1) /* an owner that has no account: counts for all together alone */
#define QUOTA_ROOT 0ull

struct quota {
	struct quota_limit each, user, all; /* of the table, and may be changed */
	uint64_t began;			    /* CLOCK_MONOTONIC ns, for limits that grow */
	struct meter total;
	_Atomic int64_t *shared; /* instead of total.used: the sum of several quotas; or NULL */
	struct quota_account {
		uint64_t key; /* the owner + 1; 0: it was never used */
		struct meter meter;
	} accounts[QUOTA_OWNERS];
};

void quota__init(struct quota *q, enum quota_thing thing);
/* Limits that grow do so from `now` on. To be called before anything is taken. */
void quota__begin(struct quota *q, uint64_t now);
/* Accounts of a quota that a process which hangs may be writing to; limits and `shared` stay. */
void quota__continue(struct quota *q, const struct quota *old);

/* The amount left for the owner; INT64_MAX: there is no limit. */
int64_t quota__left(const struct quota *q, uint64_t owner, uint64_t now);
/* Why not `amount` more: OUTSIDE_BY_USER, OUTSIDE_BY_ALL; OUTSIDE_REASON_COUNT: it is allowed. */
enum outside_reason quota__refusal(const struct quota *q, uint64_t owner, uint64_t amount,
				   uint64_t now);
/* Of which of the two there is less: OUTSIDE_BY_USER or OUTSIDE_BY_ALL. */
enum outside_reason quota__scarcest(const struct quota *q, uint64_t owner);
/* Takes it, even if less was left. */
void quota__take(struct quota *q, uint64_t owner, uint64_t amount, uint64_t now);
/* Of what is held. */
void quota__give(struct quota *q, uint64_t owner, uint64_t amount);
uint64_t quota__used(const struct quota *q, uint64_t owner);

/*
 * The amount that a process takes from its own meter, its user's account and the limit of all.
 * Users count only while at most `scarce` is left for all, because finding one takes system calls.
 */
struct quota_claim {
	struct meter *process, *all; /* the latter: total, or another meter with the same limit */
	int64_t scarce;
	uint64_t now;
	uint32_t (*user_of)(void *context, uint32_t pid); /* NULL: users do not count */
	void *context;
	uint32_t pid;
};
/* As quota__refusal(); OUTSIDE_BY_ITSELF: the process has its limit. */
enum outside_reason quota__claim_refusal(const struct quota *q, const struct quota_claim *claim,
					 uint64_t amount);
/* Takes it, even if less was left. */
void quota__claim(struct quota *q, const struct quota_claim *claim, uint64_t amount);

/* ---- turns ----------------------------------------------------------------------------------- */

/*
 * Turns of owners whose requests wait. Every other turn is root's while it has requests, so no
 * number of users keeps it waiting. The others take turns by their numbers, however many requests
 * each has. Zero-initialised.
 */
struct turns {
	bool tenants; /* the last turn was not root's */
	uint64_t last_tenant;
};

/* Is it the owner's turn before that of the other one? */
bool turns__is_before(const struct turns *t, uint64_t owner, uint64_t other);
void turns__take(struct turns *t, uint64_t owner);

/* ---- eviction -------------------------------------------------------------------------------- */

/*
 * The account with the most, if that exceeds what `owner` would have with `amount` more, so that
 * every user gets some. QUOTA_OWNERS: none.
 */
uint32_t quota__most(const struct quota *q, uint64_t owner, uint64_t amount);
/* Is that account the owner's? */
bool quota__is_of(const struct quota *q, uint32_t account, uint64_t owner);

#endif
