/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step from a frame in HotSpot's code to its caller, as the walk in the kernel does it, and by rows besides: a second
 * implementation, which can be compared with the first and with the JVM at every instruction.
 */
#ifndef TESTS_MODELS_HOTSPOT_WALK_H
#define TESTS_MODELS_HOTSPOT_WALK_H

#include "models/hotspot_rows.h"
#include "runtimes/hotspot/heap.h"

#define HOTSPOT_REGISTERS 16

/* Rows of blobs that were there at a look at them. */
struct hotspot_table_entry {
	struct hotspot_blob blob;
	struct hotspot_rows rows;
};

struct hotspot_table {
	VEC(struct hotspot_table_entry)
	entries;	 /* ascending */
	uint64_t failed; /* blobs without rows, so far */
	struct hotspot_stubs stubs;
	bool has_stubs;
};

/*
 * Rows of what is new, and none of what is gone; what stayed keeps its own. `changes` are those that led to the list.
 * 0, -ENOMEM, or as reading fails: then it is incomplete, but not wrong.
 */
int hotspot_table__refresh(struct hotspot_table *t, struct hotspot_code *code,
			   struct target_memory *memory, const struct hotspot_blobs *blobs,
			   const struct hotspot_changes *changes);
void hotspot_table__fini(struct hotspot_table *t);

/* A frame: its registers by their numbers in the machine code, of which a caller has rsp and rbp only. */
struct hotspot_frame {
	uint64_t general[HOTSPOT_REGISTERS];
	uint64_t ip;
	bool is_innermost; /* all registers are known, and ip is no return address */
};

enum hotspot_what {
	HOTSPOT_FRAME_STUB,
	HOTSPOT_FRAME_COMPILED,
	HOTSPOT_FRAME_INTERPRETED,
	HOTSPOT_FRAME_UNMOUNTED, /* callers in a virtual thread that are in the heap, and not on this stack */
};

/* What the frame is that was left: the words that its name is made from. */
struct hotspot_seen {
	enum hotspot_what what;
	bool by_row;
	struct hotspot_blob blob; /* by a row: as it was when that was made */
	uint64_t pc; /* compiled: where it is; if it is being deoptimized, where it was */
	uint64_t method, bytecode; /* interpreted; bytecode 0: it is being entered */
};

/*
 * From `f` to its caller. `table` may be NULL. 0; -ENOENT: the frame is not in HotSpot's code; -ENODATA: it has no caller
 * that can be, and -EFAULT: the stack cannot be read; -EDQUOT.
 */
int hotspot_walk__step(struct hotspot_code *code, const struct hotspot_table *table,
		       struct target_memory *memory, struct hotspot_frame *f,
		       struct hotspot_seen *seen);

#endif
