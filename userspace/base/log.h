/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words to the user. Only cli/ prints; libraries return errors, and may leave a sentence about one
 * in a struct failure that their caller passes in. Debug lines (-vv) are for everybody.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/*
 * What was attempted, on what, why it failed, and the command or setting that mends it. Filled by the
 * function that failed, printed by cli/. Both texts are empty where there is nothing to say.
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

/* Before other threads are there. Debug lines tell the time since it was first set to LOG_DEBUG. */
void log_set_level(enum log_level level);
/*
 * cli/ only. Writes "sysprof: text\n" to stderr if the level is wanted, with one write(); control
 * bytes are escaped.
 */
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
 * What the program does and why, for who asks with -vv: "sysprof: [symbols] 1.204 s: text\n". From any
 * thread; costs one branch, and does not evaluate the arguments, where it is not wanted. Strings of
 * strangers (paths, names) are welcome, for control bytes are escaped; neither environments nor what
 * files contain are.
 */
#define log_debug(subsystem, ...)                                                                  \
	do {                                                                                       \
		if (__builtin_expect(log_debug_wanted, false))                                     \
			log_print_debug(subsystem, __VA_ARGS__);                                   \
	} while (0)

/* For log_debug(), and for who has to do more for a line than name its arguments. */
extern bool log_debug_wanted;
void log_print_debug(enum log_subsystem subsystem, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

#endif
