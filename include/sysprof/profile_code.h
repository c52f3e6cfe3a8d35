/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The write side of machine code and sources in a profile. Both are added after the symbols, because
 * their rows have functions, and before profile_builder__finish(). An error is the builder's.
 */
#ifndef SYSPROF_PROFILE_CODE_H
#define SYSPROF_PROFILE_CODE_H

#include <sysprof/profile_builder.h>

/*
 * Adds the code of a function, with its rows. Bytes and rows are copied; first_row and row_count of
 * `code` are ignored. Code that is broken (empty, rows out of order or outside of it, unknown ids), or
 * that overlaps other code of its dso, process and version, is left out.
 */
void profile_builder__add_code(struct profile_builder *b, const struct profile_code *code,
			       const struct profile_code_row *rows, size_t row_count);
/* The machine code of a location in JIT code, by profile_code.version. */
void profile_builder__code_version(struct profile_builder *b, struct location_id id,
				   uint32_t version);
/* Adds a source, whose text is copied. Texts with NUL bytes and later texts of its path and root are left out. */
void profile_builder__add_source(struct profile_builder *b, const struct profile_source *source);
/* The dso's sources are those of this root. */
void profile_builder__source_root(struct profile_builder *b, struct dso_id id, uint8_t root);

size_t profile_builder__process_count(const struct profile_builder *b); /* ids are 1 .. count - 1 */
/* Line `i` of a location, with the definition's file and line in place of unknown ones of made code. */
struct profile_line profile_builder__source_line(const struct profile_builder *b,
						 const struct profile_location *l, uint32_t i);

#endif
