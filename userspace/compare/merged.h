/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiles of both sides as one call tree. Nodes are functions by their stable names (names.c),
 * below the node of their caller; inlined functions are nodes, too. Of each file it keeps metadata
 * and, by block of time, ticks of nodes. So a profile can be freed once it was added.
 */
#ifndef COMPARE_MERGED_H
#define COMPARE_MERGED_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "compare/compare.h"

#define MERGED_ROOT	   0
#define MERGED_BLOCKS_MAX  128 /* of a file */
#define MERGED_NO_FUNCTION UINT32_MAX

/* The whole struct is the key. A node comes after its parent. */
struct merged_node {
	uint32_t parent;
	uint32_t function; /* number of its name */
};
MAP_TYPE(merged_nodes, struct merged_node);

/* Samples of a file with this node innermost, in a block of time. */
struct merged_cell {
	uint64_t key; /* block << 32 | node */
	uint64_t ticks;
};

struct merged_file {
	struct compare_file facts;
	uint32_t block_shift; /* a block is 2^block_shift ns long */
	uint64_t span_ns;     /* of all blocks; longer than the duration if parts are missing */
	double sample_ticks;  /* ticks of one sample, as in `merged` */
	VEC(struct merged_cell) cells;
};

/* Samples with their innermost function in a file of code, by the file's stable name. */
struct merged_dso {
	uint32_t name; /* its number */
	/* ticks; [1]: of files that count CPU time, until merged__unify() */
	uint64_t ticks[COMPARE_SIDES][2], unnamed[COMPARE_SIDES][2];
};
MAP_TYPE(merged_dsos, struct merged_dso);

/* Data of a function's name: that of the first function with this name. */
struct merged_function {
	uint32_t module; /* string of `modules` */
	enum dso_kind kind;
	enum profile_category category;
	enum wall_state state; /* that it represents; WALL_NONE: code */
};

struct merged {
	bool is_waiting; /* waits: a tick is 1 us, a state is a function below the one that waits */
	uint64_t sample_ticks; /* of all files, at most; of waits: the time between two visits */
	struct merged_nodes nodes; /* element 0 is the root, which has no function */
	struct strtab *names, *modules;
	VEC(struct merged_function) functions; /* by name; all 0 for names of files of code */
	struct merged_dsos dsos;
	VEC(struct merged_file) files;
};

int merged__init(struct merged *m); /* 0 or -ENOMEM; call fini in both cases */
void merged__fini(struct merged *m);
/* 0 or -ENOMEM. */
int merged__add(struct merged *m, enum compare_side side, const char *path,
		const struct profile *p);

/* A window of an agent: a profile without times, a part of a file. They come in time order. */
struct merged_window {
	const char *process;   /* whose samples count; NULL: all */
	uint64_t offset, span; /* ns: the window's start in the file; length of the file */
	uint64_t length;       /* ns; 0: the profile's */
	bool is_first;	       /* begins a file */
	bool is_more;	       /* same time as the window before */
};
/* `p` NULL: nothing ran in the window. */
int merged__add_window(struct merged *m, enum compare_side side, const char *path,
		       const struct profile *p, const struct merged_window *window);

/*
 * After the last file: one unit for the ticks of all. If some files count CPU time, so do the
 * others, by the time of a tick, whose cpu_ns must be positive.
 */
void merged__unify(struct merged *m);

/*
 * The tree as a profile: processes OLD and NEW, a thread for each file, a row for each function in
 * a block of time. Blocks are joined if there are more than MERGED_ROWS_MAX rows. `waiting`: waits
 * of the same files, as separate rows; NULL: none. 0 or -ENOMEM.
 */
#define MERGED_ROWS_MAX 500000

#endif
