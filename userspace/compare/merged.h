/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiles of both sides as one call tree. Nodes are functions by their stable names (compare/names.h), below the
 * node of their caller; inlined functions are nodes as others are. Of each file stay the ticks of the nodes in which its
 * samples are, in blocks of time, and what it says about itself. So a profile can be freed when it was added.
 */
#ifndef COMPARE_MERGED_H
#define COMPARE_MERGED_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

#include "base/log.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "compare/compare.h"

#define MERGED_ROOT	   0
#define MERGED_BLOCKS_MAX  128 /* of a file */
#define MERGED_NO_FUNCTION UINT32_MAX

/* All of it is the key. A node comes after its parent. */
struct merged_node {
	uint32_t parent;
	uint32_t function; /* number of its name */
};
MAP_TYPE(merged_nodes, struct merged_node);

/* The samples of a file whose innermost function is this node, in a block of time. */
struct merged_cell {
	uint64_t key; /* block << 32 | node */
	uint64_t ticks;
};

struct merged_file {
	struct compare_file facts;
	uint32_t block_shift; /* a block is 2^block_shift ns long */
	uint64_t span_ns;     /* of all blocks; more than the duration if parts are missing */
	VEC(struct merged_cell) cells;
};

/* Samples with their innermost function in a file of code, by its stable name. */
struct merged_dso {
	uint32_t name; /* its number */
	uint64_t ticks[COMPARE_SIDES], unnamed[COMPARE_SIDES];
};
MAP_TYPE(merged_dsos, struct merged_dso);

/* The data shown with a function's name: that of the first function seen by this name. */
struct merged_function {
	uint32_t module; /* string of `modules` */
	enum dso_kind kind;
	enum profile_category category;
	enum wall_state state; /* that it stands for; WALL_NONE: it is code */
};

struct merged {
	bool is_waiting; /* waits are compared: a tick is a microsecond, and each state a function below the one that waits so */
	uint64_t
		sample_ticks; /* so many ticks are one sample; of waits: the time between two visits */
	struct merged_nodes nodes; /* element 0 is the root, which has no function */
	struct strtab *names, *modules;
	VEC(struct merged_function) functions; /* by name; those of files of code are all 0 */
	struct merged_dsos dsos;
	VEC(struct merged_file) files;
};

int merged__init(struct merged *m); /* 0 or -ENOMEM; fini is due in both cases */
void merged__fini(struct merged *m);
/* `range`: NULL for all of it. 0 or -ENOMEM */
int merged__add(struct merged *m, enum compare_side side, const char *path, const struct profile *p,
		const struct compare_range *range);

/* A profile without times that is a part of a file: a window of an agent. Windows of a file come in time order. */
struct merged_window {
	const char *process;   /* whose samples count; NULL: all do */
	uint64_t offset, span; /* ns: the window since the file's start; of all of the file */
	uint64_t length;       /* ns; 0: that of the profile */
	bool is_first;	       /* of a new file */
	bool is_more;	       /* of the time of the window before */
};
/* `p` NULL: nothing ran in the window. */
int merged__add_window(struct merged *m, enum compare_side side, const char *path,
		       const struct profile *p, const struct merged_window *window);

/*
 * All of it as a profile: processes OLD and NEW, a thread for each file, a row for each function in a block of time. If
 * that were more than MERGED_ROWS_MAX rows, blocks are joined. `waiting`: the waits of the same files, as rows of their
 * own; NULL: without. 0 or -ENOMEM.
 */
#define MERGED_ROWS_MAX 500000
int merged__build_profile(const struct merged *m, const struct merged *waiting,
			  struct profile_builder *b);

/* ---- names.c --------------------------------------------------------------------------------- */

/*
 * Names of functions that survive a rebuild: what a compiler, a linker or a runtime adds to a name, and what differs
 * between two builds or two runs of the same source, is taken off. A function and its outlined parts have one name. `out` is cut where `size` is short; never empty.
 */
void stable_name(char *out, size_t size, const char *name);

#endif
