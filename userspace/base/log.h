/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the user. Only cli/ prints. Libraries return errors and may describe one in the
 * caller's struct failure. Every directory may write debug lines (-vv).
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/*
 * A failure: what was attempted, on what, why it failed, and the command or setting that fixes it.
 * Filled by the function that failed, printed by cli/. Both texts may be empty.
 */
struct failure {
	char what[512];
	char remedy[512];
};

/* Fill `f` (NULL is fine) and return `error` (a negative errno), so that it can end a function. */
int fail(struct failure *f, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Add the remedy; returns `error`. */
int fail_remedy(struct failure *f, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Call before other threads exist. Debug lines have the time since LOG_DEBUG was first set. */
void log_set_level(enum log_level level);
/* cli/ only. "sysprof: text\n" to stderr if the level is wanted, in one write(), escaped. */
void log_print(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* clang-format off */
#define LOG_SUBSYSTEMS(X) \
	X(BPF, "bpf")         /* the kernel's side: programs, rings, clocks */ \
	X(STREAM, "stream")   /* events, the recording file */ \
	X(PROCFS, "procfs")   /* /proc, mapped files that were opened */ \
	X(JIT, "jit")         /* code that processes make */ \
	X(UNWIND, "unwind")   /* unwind tables */ \
	X(SYMBOLS, "symbols") /* names, debug files, sealed children */ \
	X(SESSION, "session") /* start, stop, windows */ \
	X(EXPORT, "export")   /* files that are written */ \
	X(AGENT, "agent")     /* services, sinks, spool, budget */
/* clang-format on */

enum log_subsystem {
#define X(id, name) LOG_##id,
	LOG_SUBSYSTEMS(X)
#undef X
};

/*
 * The debug log, with -vv: "sysprof: [symbols] 1.204 s: text\n". From any thread. If it is off, it
 * costs a branch and does not evaluate the arguments. Strings of other users (paths, names) are
 * allowed, because control bytes are escaped; environments and contents of files are not.
 */
#define log_debug(subsystem, ...)                                                                  \
	do {                                                                                       \
		if (__builtin_expect(log_debug_wanted, false))                                     \
			log_print_debug(subsystem, __VA_ARGS__);                                   \
	} while (0)

/* For log_debug(), and for callers that do more for a line than pass its arguments. */
extern bool log_debug_wanted;
void log_print_debug(enum log_subsystem subsystem, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

#endif
