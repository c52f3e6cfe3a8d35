/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input of commands: a recording, or a profile in any format of formats/in/, by the first bytes of
 * the file.
 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

#include "window/replay.h"

/* A profile that was read, and what owns it. */
struct input {
	const struct profile *profile;
	struct windows *windows;	 /* a recording */
	struct profile_builder *builder; /* any other format */
};

struct input_options {
	struct replay_options replay;
	bool waits;	   /* require waits */
	unsigned int root; /* enum import_root */
};

/* A row of an option table: --root of the input_options at that offset. */
#define INPUT_ROOT_ROW(offset)                                                                     \
	{                                                                                          \
		"root", .has_value = true, .take = option_word, .field = (offset),                 \
			.words = input_root_words, .expected = "auto, thread, process or frame"    \
	}
extern const char *const input_root_words[];

/*
 * Read a file. Prints a failure, and notes about flaws of a recording. 0 or
 * negative errno; on failure there is nothing to close.
 */
int input__open(const char *path, const struct input_options *options, struct input *input);
/* The bytes of a profile of our agent; `name` is for messages. */
int input__read(const char *name, const void *bytes, size_t size, struct input *input);
void input__close(struct input *input); /* an all-zero one is fine */

/* The data of a profile that the file made of it lacks, one line each; `path`: of that file. */
void print_left_out(const char *path, const struct export_left_out *left_out);

#endif
