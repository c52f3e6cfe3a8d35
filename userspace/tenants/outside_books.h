/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The books of the outside: input that a limit has left out or deferred, by user and reason, beside
 * the books of the ticks. Profiled processes decide how many files, mappings and names they have,
 * so there are limits, and a profile contains what they left out.
 *
 * Each part adds to a row when it leaves something out; the session sends the rows as events. The
 * number of users is bounded: later ones share a row. Not thread-safe.
 */
#ifndef TENANTS_OUTSIDE_BOOKS_H
#define TENANTS_OUTSIDE_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kinds of input. X(ENUM, name, unit, text). The numbers are in recordings: new ones come last. */
#define OUTSIDE_THINGS(X)                                                                          \
	X(FILES, "files", "requests", "mapped files, searched for by a reader")                    \
	X(FILE_COPIES, "file-copies", "files", "files that are kept as copies in memory")          \
	X(OPEN_FILES, "open-files", "mappings", "mapped files, kept open")                         \
	X(PROCESS_MAPS, "process-maps", "readings", "lists of mappings in /proc")                  \
	X(RUNTIMES, "runtimes", "readings", "memory of language runtimes")                         \
	X(JIT_FILES, "jit-files", "files", "perf maps and jitdumps")                               \
	X(MAPPINGS, "mappings", "mappings", "executable mappings")                                 \
	X(IMAGES, "images", "mappings", "mappings of further files")                               \
	X(PUBLICATIONS, "publications", "publications",                                            \
	  "mappings of a process, given to the kernel side")                                       \
	X(PLACES, "places", "updates", "room for mappings on the kernel side")                     \
	X(TABLES, "tables", "tables", "unwind tables")                                             \
	X(DEBUG_FILES, "debug-files", "files", "modules whose debug files were searched for")      \
	X(SYMBOLS, "symbols", "files", "modules whose symbols were read")                          \
	X(JIT_NAMES, "jit-names", "files", "names of JIT code, kept in memory")                    \
	X(FACTS, "facts", "readings", "environments and command lines of processes")               \
	X(FUNCTIONS, "functions", "functions", "functions, read from memory of runtimes")          \
	X(CODE, "code", "bytes", "code without CFI, whose instructions give rules to unwind it")   \
	X(DEBUG_INFO, "debug-info", "parts", "debug information and Go's function tables")         \
	X(MINIDEBUG, "minidebug", "files", "symbols in .gnu_debugdata")                            \
	X(SYMBOL_TABLES, "symbol-tables", "files", "headers and symbol tables, read in part")      \
	X(JIT_RECORDS, "jit-records", "records", "records of jitdumps")                            \
	X(ARCHIVES, "archives", "readings", "directories of zip archives")                         \
	X(BUILD_IDS, "build-ids", "files", "notes of files, searched for a build-id")              \
	X(NAMES, "names", "names",                                                                 \
	  "control groups, programs and services, compared with names of targets")

enum outside_thing {
#define X(id, name, unit, text) OUTSIDE_##id,
	OUTSIDE_THINGS(X)
#undef X
		OUTSIDE_THING_COUNT
};

/* Reasons. X(ENUM, name, waited, text): with `waited` the input was deferred, not left out. */
#define OUTSIDE_REASONS(X)                                                                         \
	X(USER, "user", false, "over what a user may have")                                        \
	X(ALL, "all", false, "over what all may have together")                                    \
	X(ITSELF, "itself", false, "too much by itself")                                           \
	X(NO_ANSWER, "no-answer", false, "its file system or process did not answer")              \
	X(BANNED, "banned", false, "not tried: earlier ones of this user had no answer")           \
	X(GAVE_WAY, "gave-way", false, "made room for others")                                     \
	X(TOO_OFTEN, "too-often", true, "came too often, and waited")                              \
	X(TOO_SLOW, "too-slow", true, "timed out, will be retried")

enum outside_reason {
#define X(id, name, waited, text) OUTSIDE_BY_##id,
	OUTSIDE_REASONS(X)
#undef X
		OUTSIDE_REASON_COUNT
};

struct outside_text {
	const char *name, *unit, *text; /* a reason has no unit */
	bool waited;
};
extern const struct outside_text outside_things[OUTSIDE_THING_COUNT],
	outside_reasons[OUTSIDE_REASON_COUNT];

/* A user is a uid (tenants/tenant_user.h) or one of these. */
#define OUTSIDE_USER_UNKNOWN UINT32_MAX /* TENANT_UNKNOWN: the process was gone */
#define OUTSIDE_USER_OTHERS  (UINT32_MAX - 1)
#define OUTSIDE_USERS_MAX    64u /* with rows of their own */

struct outside_row {
	uint32_t user;
	uint8_t thing, reason; /* enum outside_thing, enum outside_reason */
	uint64_t count;	       /* in the thing's unit, since the row was last sent */
	uint64_t since;	       /* CLOCK_MONOTONIC ns, of the first of these */
};

/* "user 1000: 3 files left: mapped files, searched for by a reader: over what a user may have" */
#define OUTSIDE_TEXT_SIZE 256
void outside_row__describe(char *text, size_t size, const struct outside_row *row);
/* "user 1000", "user namespace 4026532567", "other users", "users of processes that were gone" */
void outside_user__describe(char *text, size_t size, uint32_t user);

struct outside_books;

struct outside_books *outside_books__new(void); /* NULL: no memory */
void outside_books__free(struct outside_books *b);

/* Adds `count`. Without books (NULL) or memory for a new row, nothing is counted. */
void outside_books__add(struct outside_books *b, uint32_t user, enum outside_thing thing,
			enum outside_reason reason, uint64_t count);

/*
 * The user of a process, for these books and for other quotas: as tenant_user(), which takes
 * a few system calls, so it is cached for a second. Without books: OUTSIDE_USER_UNKNOWN.
 */
uint32_t outside_books__user_of(struct outside_books *b, pid_t pid);

/* Takes the next row that has something new. False: there are no more. */
bool outside_books__take(struct outside_books *b, struct outside_row *row);

#endif
