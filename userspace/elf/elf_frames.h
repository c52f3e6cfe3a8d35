/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which code is one function by .eh_frame: the sorted table of .eh_frame_hdr has where each FDE's
 * code begins, the FDE how long it is. Format: Linux Standard Base, "Exception Frames". Of the
 * encodings only those that linkers of x86-64 write are read.
 */
#ifndef ELF_ELF_FRAMES_H
#define ELF_ELF_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;
struct elf_frame;

bool elf_file__find_frame(struct elf_file *file, uint64_t address, struct elf_frame *frame);

#endif
