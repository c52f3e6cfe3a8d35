/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of an EVENT_KALLSYMS_ADDED: code that the kernel has made, or removed. */
#ifndef STREAM_KERNEL_CODE_H
#define STREAM_KERNEL_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a function without a size. */
#define KERNEL_EXTENT_UNKNOWN (64u << 10)

struct kernel_code {
	uint64_t start, end; /* end: behind its last byte */
	const char *name;    /* in the text, without NUL; size 0: the kernel does not show it */
	size_t name_size;
	const char *tag; /* "[bpf]", likewise; size 0: none */
	size_t tag_size;
};

#define KERNEL_CODE_HIDDEN "-" /* the name, of type 'a', of code whose name is not shown */

/*
 * "START t NAME [MODULE]" and "END a KALLSYMS_END …"; without the second line the code is 64 KB.
 * False: other text, or no range.
 */
bool kernel_code__parse(const char *text, size_t size, struct kernel_code *code);

#endif
