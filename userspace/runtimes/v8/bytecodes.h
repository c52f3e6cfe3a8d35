/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long V8's bytecodes are: from the table that V8 has itself, which is not exported and in each version another
 * one. It is recognized by its contents: the bytecodes that all versions begin with, and each operand that can be
 * widened, which is twice and four times as long behind a prefix.
 */
#ifndef RUNTIMES_V8_BYTECODES_H
#define RUNTIMES_V8_BYTECODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

#define V8_BYTECODES	256u
#define V8_SCALES	3u
#define V8_BYTECODE_MAX 64u /* bytes of one */

struct v8_bytecodes {
	uint32_t count; /* 0: the table was not found */
	unsigned char size[V8_SCALES][V8_BYTECODES];
};

/* Looks for it in some bytes. False: it does not begin in them, or is cut off. */
bool v8_bytecodes__find(const unsigned char *bytes, size_t size, struct v8_bytecodes *table);
/* The same in the constants of a file. */
bool v8_bytecodes__read(struct elf_file *file, struct v8_bytecodes *table);

/* The length of the bytecode at `at`, with its prefix. 0: there is none, or it does not end there. */
size_t v8_bytecodes__length(const struct v8_bytecodes *table, const unsigned char *at, size_t left);

#endif
