/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_DWARF_LINES_H
#define SYMBOLIZE_DWARF_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct elf_image;
struct line_program;

/*
 * dwarf_lines.c: the program at an offset of .debug_line, with its rows if `rows`; the image must
 * outlive it. 0; -EBADMSG, -EFBIG, -ENOMEM: a part of it may be there.
 */
int line_program__read(struct line_program *p, struct elf_image *image, uint64_t offset,
		       const char *compilation_directory, bool rows, uint64_t memory_limit);

#endif
