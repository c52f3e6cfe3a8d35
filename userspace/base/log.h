/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words to the user. Only cli/ prints; libraries return errors, and may leave a sentence about one
 * in a struct failure that their caller passes in.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

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

/* cli/ only. Prints "sysprof: text\n" to stderr if the level is wanted; control bytes are escaped. */
void log_set_level(enum log_level level);
void log_print(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
