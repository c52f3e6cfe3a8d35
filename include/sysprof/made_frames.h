/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of JIT code that keeps no frame pointers: runtimes/ask reads them from the process's memory,
 * unwind/ compiles them to an unwind table.
 */
#ifndef SYSPROF_MADE_FRAMES_H
#define SYSPROF_MADE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

/* Code with a fixed frame size. Offsets are from the frame's end, the caller's stack pointer. */
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

/* A request for the frames in a process's memory. Valid during the call. */
struct made_request {
	uint64_t ticket; /* returned with the answer */
	const struct made_runtime *runtime;
	const uint64_t *registers;     /* RUNTIME_REGISTERS of a thread, by DWARF number, or NULL */
	const struct made_area *areas; /* ascending */
	size_t area_count;
};

/* Valid during the call. */
struct made_answer {
	uint64_t ticket;
	int result; /* 0; -ENODATA: none; -ESRCH, -EPERM, -ETIMEDOUT, …: unreadable; -ENOMEM */
	const struct made_runtime *runtime; /* completed by the reading */
	const struct made_frame
		*frames; /* ascending, without overlap, all in the areas of the request */
	size_t count;
	uint64_t cpu_ns, elapsed_ns; /* that reading took */
};

#endif
