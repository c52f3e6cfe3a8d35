/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_DWARF_SOURCES_H
#define SYMBOLIZE_DWARF_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarf.h"
#include "symbolize/dwarf_private.h"

struct dwarf_image;
struct dwarf_place;

/* The image stays the caller's, and longer than this. 0, -ENOMEM. */
int dwarf_sources__init(struct dwarf_sources *s, const struct dwarf_image *image,
			uint64_t memory_limit);
void dwarf_sources__fini(struct dwarf_sources *s);
/* False: the unit's line table does not cover the address. *until as of a range map. */
bool dwarf_sources__line(struct dwarf_sources *s, Dwarf_CU *unit, uint64_t address,
			 struct dwarf_place *place, uint64_t *until);

/* The MD5 of a file whose path was an answer; NULL: unknown. */
const unsigned char *dwarf_sources__md5(struct dwarf_sources *s, const char *path);

/* A DIE's function name and definition; *call: the place of its call, if it was inlined. */
struct dwarf_frame dwarf_describe(struct dwarf_sources *sources, Dwarf_Die *die,
				  struct dwarf_place *call);

/*
 * The path of a source file, `name` in `directory` (NULL: unknown), without ".", ".." and double
 * slashes: "/a/b/../c" is "/a/c". A path that stays relative is not changed. 0, -ENAMETOOLONG.
 */
int source_path(const char *directory, const char *name, char *buffer, size_t size);

#endif
