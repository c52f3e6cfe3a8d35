/* SPDX-License-Identifier: BSD-2-Clause */
/* A file as libelf and libdw see it. The caller owns what it has opened. */
#ifndef SYMBOLIZE_DWARF_IMAGE_H
#define SYMBOLIZE_DWARF_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/dwarf_private.h"

struct dwarf_options;
struct elf_image;

struct dwarf_image {
	struct elf_image *image;
	Elf *elf;
	Dwarf *dwarf;
	uint64_t bad_units; /* their headers made no sense */
	uint64_t inflated;  /* bytes */
	bool damaged;	    /* sections were cut short, or bytes of them made no sense */
	bool needs_alt;	    /* it refers to a dwz file */
};

enum dwarf_role { DWARF_MAIN, DWARF_ALTERNATE };

/* As dwarf_reader__open(). */
int dwarf_image__open(int fd, enum dwarf_role role, const struct dwarf_options *options,
		      struct dwarf_image *image);
void dwarf_image__close(struct dwarf_image *image);

#endif
