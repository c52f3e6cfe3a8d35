/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines without the arguments of programs. Passwords are among arguments, and profiles are
 * sent to others.
 *
 * Command lines in recordings are words joined by spaces, so where the recorder's own options end
 * is unknown. What is sure to be no argument is kept: the recorder's name, "record", and the word
 * behind "--" if that comes first. A recorder that knows more reports META_COMMAND_SHORT.
 */
#ifndef PROFILE_ARGUMENTS_H
#define PROFILE_ARGUMENTS_H

#include <stddef.h>

#define ARGUMENTS_TEXT_SIZE 1024

/*
 * The value of a fact (<sysprof/meta_keys.h>) that may be shown: `value`, or a text in `buffer`.
 * Shortening a short text changes nothing.
 */
const char *value_without_arguments(const char *key, const char *value,
				    char buffer[ARGUMENTS_TEXT_SIZE]);

#endif
