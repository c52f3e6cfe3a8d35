/* SPDX-License-Identifier: BSD-2-Clause */
/* The form of an index, and what writes it. */
#ifndef SYMBOLIZE_SYMBOL_INDEX_PRIVATE_H
#define SYMBOLIZE_SYMBOL_INDEX_PRIVATE_H

#include <stdint.h>

#include <sysprof/symbolizer.h>

#define INDEX_MAGIC UINT64_C(0x33007865646e6973) /* "sindex", the version of the form */

/* Sections lie one behind the other, in this order; their sizes are in bytes. X(name) */
#define INDEX_SECTIONS(X)                                                                          \
	X(SEGMENTS)                                                                                \
	X(BLOCKS)                                                                                  \
	X(FILES)                                                                                   \
	X(NAME_BLOCKS)                                                                             \
	X(FUNCTIONS)                                                                               \
	X(NODES)                                                                                   \
	X(ROWS)                                                                                    \
	X(NAMES)                                                                                   \
	X(STRINGS)

enum index_section {
#define X(name) INDEX_##name,
	INDEX_SECTIONS(X)
#undef X
		INDEX_SECTION_COUNT
};

struct index_header {
	uint64_t magic;
	uint64_t rows;
	uint16_t state;	   /* enum symbol_state */
	uint16_t has_gaps; /* 1: some rows are of NODE_NOT_COVERED */
	uint32_t sizes[INDEX_SECTION_COUNT];
	uint32_t unused;
};

/* In the order in which they are searched: the first that covers an offset counts. */
struct index_segment {
	uint64_t offset, size, address;
};

struct index_block {
	uint64_t address;  /* of its first row */
	uint32_t position; /* of it in the section of rows */
	uint32_t count;	   /* rows */
};

_Static_assert(sizeof(struct index_header) % 8 == 0 && sizeof(struct index_segment) % 8 == 0 &&
		       sizeof(struct index_block) % 8 == 0,
	       "blocks are aligned");

/* Positions in the section of nodes, which begins with as many bytes of 0. */
enum { NODE_NOTHING, NODE_NOT_COVERED, NODE_FIRST };

/*
 * A place: file + 1, line and column; 0: unknown. A function: name, address + 1 (0: unknown), size,
 * place of its definition. A node: function, distance to the node around it (0: none), and if there
 * is one, the place of the call. A row: a byte of what follows, the address difference if it is not
 * in that byte, then what differs from the row before. Numbers have 7 bits a byte, the lowest
 * first; differences that may be negative are in zigzag.
 */
enum {
	ROW_STEP = 15, /* the difference of the address; 15: it follows */
	ROW_NODE = 16,
	ROW_FILE = 32,
	ROW_LINE = 64,
	ROW_COLUMN = 128,
};

#define ROWS_A_BLOCK 64

/*
 * A name is twice the position of its string, or twice its place + 1 in the blocks of long names,
 * as if each unpacked block had NAMES_BLOCK bytes. NAME_BLOCKS has the packed ones' positions.
 * node's names take a fourth of their text.
 */
enum { NAME_STRING, NAME_PACKED, NAME_FORMS };

#define INDEX_NAME_MIN	   32u	 /* bytes of a long name, which fits into a block */
#define INDEX_NAME_MAX	   4096u /* of any, with its NUL */
#define NAMES_BLOCK	   2048u
#define NAMES_PACKED_MAX   (NAMES_BLOCK + 256)
#define NAMES_UNPACKED_MAX (NAMES_BLOCK + 16)
#define NAME_BLOCKS_MAX	   (UINT32_MAX / NAME_FORMS / NAMES_BLOCK)

/* Files have numbers from 1 on; 0: unknown. */
struct index_place {
	uint32_t file, line, column;
};

struct index_row {
	uint64_t address;
	uint32_t node;
	struct index_place place;
};

static inline uint64_t zigzag(int64_t number)
{
	return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
}

static inline int64_t from_zigzag(uint64_t number)
{
	return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

#endif
