/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies what stacks consist of from finished profiles into a builder, each part when it is first
 * needed. Equal parts of several profiles become one.
 *
 * Two profiles may disagree about the code at an address: one has symbols and the other has none,
 * or JIT code has changed. Such locations stay apart, as versions of the address, so that sums by
 * function are the sums of the profiles.
 */
#ifndef PROFILE_PROFILE_COPY_H
#define PROFILE_PROFILE_COPY_H

#include <sysprof/event.h>
#include <sysprof/profile_builder.h>

#include "base/map.h"

/* A line of an inline chain, below those around it. No padding: all bytes are the key. */
struct copied_line {
	uint32_t outer; /* number of the chain around it; 0: none */
	uint32_t function, file, line, column;
};

/* A location; no padding. */
struct copied_place {
	uint32_t dso, process;
	uint32_t chain; /* 0: without a name */
	uint32_t sure_lines;
	uint8_t category, tier, ambiguous, reserved;
	uint32_t code_version;
	uint64_t address, elf_address;
};

struct copied_address {
	uint32_t dso, process;
	uint64_t address;
};

struct placed {
	struct copied_place place;
	struct location_id id;
};
struct placed_address {
	struct copied_address address;
	struct location_id first;
	uint32_t versions;
};

MAP_TYPE(copied_lines, struct copied_line);
MAP_TYPE(copied_places, struct placed);
MAP_TYPE(copied_addresses, struct placed_address);

/* Machine code of a JIT compiler, in the builder. */
struct copied_jit_code {
	uint32_t dso, process, size;
	uint32_t version;
	uint64_t address;
	const uint8_t *bytes;
};
MAP_TYPE(copied_jit_codes, struct copied_jit_code);

/* Shared by all profiles that are copied into a builder. All zeros is empty. */
struct copied_code {
	struct copied_lines lines;
	struct copied_places places;
	struct copied_addresses addresses;
	struct copied_jit_codes jit_codes;
};
void copied_code__fini(struct copied_code *code);

#define SOURCE_ROOTS (SOURCE_ROOT_ALL + 1)

/* Of one profile. The caller sets the numbers of processes before it copies their stacks. */
struct profile_copy {
	const struct profile *p;
	struct profile_builder *b;
	struct copied_code *code;
	/* by number in the profile: the number in the builder, 0: none yet */
	uint32_t *strings, *dsos, *functions, *locations, *stacks, *processes;
	uint8_t roots[SOURCE_ROOTS]; /* of sources */
	VEC(uint32_t) path;	     /* stacks whose copy is pending, the outermost last */
};

/* 0 or -ENOMEM; call fini in both cases. */
int profile_copy__init(struct profile_copy *c, const struct profile *p, struct profile_builder *b,
		       struct copied_code *code);
void profile_copy__fini(struct profile_copy *c);

struct string_id profile_copy__string(struct profile_copy *c, struct string_id id);
/* 0: no memory, which the builder remembers. */
struct stack_id profile_copy__stack(struct profile_copy *c, struct stack_id id);
/*
 * Machine code of files and the sources, after the stacks, with which that of JIT compilers was copied.
 * Of the kernel's nothing is, because two profiles may disagree about it. If texts of a path differ, the
 * first one is kept, as changed.
 */
void profile_copy__code(struct profile_copy *c);

#endif
