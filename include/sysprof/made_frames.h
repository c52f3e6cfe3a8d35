/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of code that a process has made and that does not follow the frame pointer: read from the
 * process's memory by jitwatch/, compiled to an unwind table by unwind/.
 */
#ifndef SYSPROF_MADE_FRAMES_H
#define SYSPROF_MADE_FRAMES_H

#include <stdint.h>

/* Code with a fixed frame size. Offsets are from the end of the frame, which is the caller's stack pointer. */
struct made_frame {
	uint64_t start, end;
	uint32_t size;
	int32_t ra_offset; /* of the return address */
	int32_t fp_offset; /* of the caller's frame pointer; 0: it is still in the register */
	uint32_t unused;
};

/* Executable memory without a file. */
struct made_area {
	uint64_t start, end;
};

enum made_by {
	MADE_BY_OTHERS, /* they keep frame pointers */
	MADE_BY_PYPY,
	MADE_BY_LUAJIT,
};

#define MADE_STATES_MAX 16

struct made_runtime {
	uint32_t tgid;
	enum made_by by;
	/* addresses in the process from which such frames can be found */
	uint64_t states[MADE_STATES_MAX];
	uint32_t state_count;
};

#endif
