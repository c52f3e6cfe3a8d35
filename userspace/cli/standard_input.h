/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard input as a file: "-" in place of a name. */
#ifndef CLI_STANDARD_INPUT_H
#define CLI_STANDARD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

#define STANDARD_INPUT "standard input" /* in messages */

struct command;

/* "-", or a slice of it: "-@10s-20s" */
bool is_standard_input(const char *path);

/* May these words name it? 0, or EXIT_USAGE after a message. */
int standard_input__check(const struct command *command, char *const *words, size_t count);

/*
 * A descriptor of all its bytes, which can be read at any offset: recordings are searched after
 * damage, perf.data is read twice. What is no file yet is copied to one without a name in TMPDIR
 * (/tmp), or to memory if there can be none; *size: its bytes. Waits for the end of the input.
 */
int standard_input__open(uint64_t *size, struct failure *failure);

#endif
