/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where CPython keeps what its stacks are read from: 3.11 to 3.15, x86-64, builds with a GIL.
 *
 * From 3.13 on an interpreter describes itself: _PyRuntime begins with a table of offsets (_Py_DebugOffsets). The
 * table has no layout version of its own, its fields are found by the minor version. So a minor that is not known, or a
 * pre-release, is tried by the layouts that are, and needs a self-check (find.c) on top. For 3.11 and 3.12 the
 * offsets are constants; they did not move within a minor.
 */
#ifndef RUNTIMES_PYTHON_LAYOUT_H
#define RUNTIMES_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpython_verdict {
	CPYTHON_OK,
	CPYTHON_ABSENT,		 /* there is no CPython in this image */
	CPYTHON_NOT_STARTED,	 /* its structures are not set up yet: try again later */
	CPYTHON_TOO_OLD,	 /* before 3.11 */
	CPYTHON_NO_VERSION,	 /* 3.12 or older, not known which */
	CPYTHON_FREE_THREADED,	 /* built without a GIL */
	CPYTHON_UNKNOWN_VERSION, /* a minor or pre-release whose table does not check out */
	CPYTHON_BAD_TABLE,	 /* a known version whose table is implausible */
	CPYTHON_OTHER_LIBC,	 /* the thread's block is not glibc's */
	CPYTHON_THREADS_UNKNOWN, /* the word that has a thread's state was not found */
	CPYTHON_UNREADABLE,	 /* gone, forbidden, or not within the limits of the request */
	CPYTHON_VERDICTS
};

/* A few words for a person. */
const char *cpython_verdict__text(enum cpython_verdict verdict);

/* Offsets in bytes. 0 where a field does not exist; of those that may be at 0, all exist. */
struct cpython_layout {
	/* of _PyRuntime */
	uint32_t interpreters; /* the first interpreter */
	uint32_t tss_key;      /* autoTSSkey: int initialized, int key; none from 3.15 on */
	/* of PyInterpreterState */
	uint32_t interp_next, interp_threads;
	uint32_t interp_gil; /* pointer to the GIL; none in 3.11, where it is in _PyRuntime */
	/* of the GIL, in 3.11 of _PyRuntime */
	uint32_t gil_holder, gil_locked;
	/* of PyThreadState */
	uint32_t thread_next, thread_interp;
	uint32_t thread_id;	/* pthread_self(), which is the thread's fs base */
	uint32_t thread_native; /* its number, in the pid namespace of the program */
	uint32_t thread_frame;	/* the innermost frame, or the _PyCFrame that has it */
	uint32_t thread_holds_gil, thread_requests_gil;
	bool has_cframes;    /* 3.11, 3.12 */
	bool has_base_frame; /* the outermost frame is not of a C stack: 3.15 */
	bool has_init_shim; /* 3.13 on: a frame of no function between a class's caller and its __init__ */
	bool has_own_anchors; /* an owner-3 frame in each interpreter loop; else its _PyCFrame: 3.11 */
	/* of _PyCFrame */
	uint32_t cframe_frame, cframe_previous;
	/* of _PyInterpreterFrame */
	uint32_t frame_size, frame_previous, frame_code, frame_instruction, frame_owner;
	uint32_t frame_is_entry; /* 3.11 */
	/* of PyCodeObject */
	uint32_t code_firstline, code_version, code_filename, code_qualname, code_linetable;
	uint32_t code_firsttraceable, code_bytecode;
	uint32_t code_name; /* 3.11 */
	/* of str: the length, the word with its kind, the text where that is ASCII, and where not */
	uint32_t str_length, str_state, str_ascii, str_other;
	uint32_t str_hash; /* 3.11 */
	/* of bytes */
	uint32_t bytes_size, bytes_data;
};

#define CPYTHON_FRAME_MAX                                                                          \
	128u /* bytes of a frame that are read at once, and of a code object's head */
#define CPYTHON_HEAD_MAX 192u
#define CPYTHON_OWNER_BOUNDARY                                                                     \
	3u /* of a frame: this, and what is larger, is of C and not of Python */
#define CPYTHON_TABLE_MAX 1024u

/* A runtime that was found in a process. Addresses are the process's. */
struct cpython {
	uint64_t runtime;   /* of _PyRuntime */
	uint32_t version;   /* PY_VERSION_HEX */
	uint64_t code_type; /* of PyCode_Type; 0: not known */
	struct cpython_layout layout;
};

static inline unsigned int cpython_minor(uint32_t version)
{
	return version >> 16 & 0xff;
}

/* The start of the table: "xdebugpy", and PY_VERSION_HEX behind it. */
bool cpython_table__is(const uint8_t *table, size_t size, uint32_t *version);

/*
 * The layout of 3.11 and 3.12, by constants. CPYTHON_OK, CPYTHON_TOO_OLD; CPYTHON_BAD_TABLE: it is a version that has a
 * table.
 */
enum cpython_verdict cpython_layout__of_version(uint32_t version, struct cpython_layout *layout);

/*
 * The layout by a table. `attempt` counts from 0: for a version that is known there is one; for another the known layouts
 * one after the other, each to be checked. CPYTHON_OK; CPYTHON_FREE_THREADED; CPYTHON_BAD_TABLE: this attempt is
 * implausible; CPYTHON_UNKNOWN_VERSION: no attempt is left.
 */
enum cpython_verdict cpython_layout__of_table(const uint8_t *table, size_t size,
					      unsigned int attempt, struct cpython_layout *layout);

/*
 * Can objects be read by this layout, which may come from another process: is each field of code, str and bytes
 * within the bytes that are read, and do they not overlap?
 */
bool cpython_layout__is_sound(const struct cpython_layout *layout);

/* A release of 3.11 to 3.15: its layout needs no self-check. */
bool cpython_version__is_known(uint32_t version);

#endif
