/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_PYTHON_LAYOUT_H
#define RUNTIMES_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where CPython keeps what its stacks are read from: 3.11 to 3.15, x86-64, builds with a GIL.
 *
 * From 3.13 on _PyRuntime begins with a table of offsets (_Py_DebugOffsets). The table has no
 * layout version, its fields are found by the minor version. For an unknown minor, or a
 * pre-release, the known layouts are tried, and need a self-check on top. For 3.11 and 3.12 the
 * offsets are constants; they did not move within a minor.
 */

/* X(verdict, how it is reported: CODE_RUNTIME_…, a few words for a person) */
#define CPYTHON_VERDICTS_OF(X)                                                                     \
	X(OK, READ, "ok")                                                                          \
	X(ABSENT, READ, "not CPython")                                                             \
	X(NOT_STARTED, READ, "the interpreter has not started yet")                                \
	X(TOO_OLD, TOO_OLD, "CPython before 3.11 is not supported")                                \
	X(NO_VERSION, UNKNOWN, "the version of CPython is unknown") /* 3.12 or older */            \
	X(FREE_THREADED, FREE_THREADED, "free-threaded builds of CPython are not supported")       \
	X(UNKNOWN_VERSION, UNKNOWN, "a version of CPython whose layout is unknown")                \
	X(BAD_TABLE, UNKNOWN, "the table of offsets of CPython is damaged") /* of a known one */   \
	X(OTHER_LIBC, OTHER_LIBC, "CPython on a C library other than glibc")                       \
	X(THREADS_UNKNOWN, UNKNOWN, "the thread states of CPython were not found")                 \
	X(UNREADABLE, UNREADABLE, "the memory of CPython cannot be read")

enum cpython_verdict {
#define X(verdict, state, text) CPYTHON_##verdict,
	CPYTHON_VERDICTS_OF(X)
#undef X
		CPYTHON_VERDICTS
};

const char *cpython_verdict__text(enum cpython_verdict verdict);

/*
 * Offsets in bytes; 0: no such field, unless it can be at 0. X(the field, the limit in a table, the
 * offset in 3.11 and in 3.12, its place in the tables of 3.13, 3.14 and 3.15; 0: nowhere)
 */
#define CPYTHON_FIELDS(X)                                                                          \
	/* of _PyRuntime: the first interpreter; autoTSSkey: int initialized, int key */           \
	X(interpreters, THREAD_MAX, 40, 40, 40, 40, 40)                                            \
	X(tss_key, 0, 592, 1544, 0, 0, 0)                                                          \
	/* of PyInterpreterState; gil: a pointer, in 3.11 it is in _PyRuntime */                   \
	X(interp_next, RUNTIME_MAX, 0, 0, 64, 64, 64)                                              \
	X(interp_threads, RUNTIME_MAX, 16, 72, 72, 72, 72)                                         \
	X(interp_gil, RUNTIME_MAX, 0, 384, 112, 120, 120)                                          \
	/* of the GIL, in 3.11 of _PyRuntime */                                                    \
	X(gil_holder, RUNTIME_MAX, 368, 8, 144, 152, 152)                                          \
	X(gil_locked, RUNTIME_MAX, 376, 16, 136, 144, 144)                                         \
	/* of PyThreadState; thread_id: pthread_self(), the fs base; native: its number */         \
	X(thread_next, THREAD_MAX, 8, 8, 168, 192, 192)                                            \
	X(thread_interp, THREAD_MAX, 16, 16, 176, 200, 200)                                        \
	X(thread_id, THREAD_MAX, 152, 136, 192, 216, 240)                                          \
	X(thread_native, THREAD_MAX, 160, 144, 200, 224, 248)                                      \
	/* the innermost frame, or the _PyCFrame that has it */                                    \
	X(thread_frame, THREAD_MAX, 56, 56, 184, 208, 208)                                         \
	X(thread_holds_gil, THREAD_MAX, 0, 0, 0, 0, 272)                                           \
	X(thread_requests_gil, THREAD_MAX, 0, 0, 0, 0, 280)                                        \
	/* of _PyCFrame */                                                                         \
	X(cframe_frame, 0, 8, 0, 0, 0, 0)                                                          \
	X(cframe_previous, 0, 16, 8, 0, 0, 0)                                                      \
	/* of _PyInterpreterFrame */                                                               \
	X(frame_size, CPYTHON_FRAME_MAX, 80, 80, 224, 248, 312)                                    \
	X(frame_previous, CPYTHON_FRAME_MAX, 48, 8, 232, 256, 320)                                 \
	X(frame_code, CPYTHON_FRAME_MAX, 32, 0, 240, 264, 328)                                     \
	X(frame_instruction, CPYTHON_FRAME_MAX, 56, 56, 248, 272, 336)                             \
	X(frame_owner, CPYTHON_FRAME_MAX, 69, 70, 264, 288, 352)                                   \
	X(frame_is_entry, 0, 68, 0, 0, 0, 0)                                                       \
	/* of PyCodeObject */                                                                      \
	X(code_firstline, CPYTHON_HEAD_MAX, 72, 68, 312, 352, 416)                                 \
	X(code_version, 0, 0, 92, 0, 0, 0)                                                         \
	X(code_filename, CPYTHON_HEAD_MAX, 112, 112, 280, 320, 384)                                \
	X(code_name, 0, 120, 0, 0, 0, 0)                                                           \
	X(code_qualname, CPYTHON_HEAD_MAX, 128, 128, 296, 336, 400)                                \
	X(code_linetable, CPYTHON_HEAD_MAX, 136, 136, 304, 344, 408)                               \
	X(code_firsttraceable, 0, 168, 176, 0, 0, 0)                                               \
	X(code_bytecode, CODE_MAX, 184, 192, 344, 384, 448)                                        \
	/* of str: its length, the word with its kind, the text if it is ASCII, and if not */      \
	X(str_length, CODE_MAX, 16, 16, 552, 632, 728)                                             \
	X(str_hash, 0, 24, 0, 0, 0, 0)                                                             \
	X(str_state, CODE_MAX, 32, 32, 544, 624, 720)                                              \
	X(str_ascii, CODE_MAX, 48, 40, 560, 640, 736)                                              \
	X(str_other, CODE_MAX, 72, 56, 0, 0, 744)                                                  \
	/* of bytes */                                                                             \
	X(bytes_size, CODE_MAX, 16, 16, 520, 600, 696)                                             \
	X(bytes_data, CODE_MAX, 32, 32, 528, 608, 704)

struct cpython_layout {
#define X(name, ...) uint32_t name;
	CPYTHON_FIELDS(X)
#undef X
	bool has_cframes;     /* 3.11, 3.12 */
	bool has_base_frame;  /* the outermost frame is not of a C stack: 3.15 */
	bool has_init_shim;   /* 3.13 on: a frame of no function before that of an __init__ */
	bool has_own_anchors; /* an owner-3 frame in each loop; else its _PyCFrame: 3.11 */
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

/* By constants: 3.11, 3.12. CPYTHON_OK; CPYTHON_TOO_OLD; CPYTHON_BAD_TABLE: it has a table. */
enum cpython_verdict cpython_layout__of_version(uint32_t version, struct cpython_layout *layout);

/*
 * The layout by a table. `attempt` counts from 0: a known version has one; others have the known
 * layouts one after another, each to be checked. CPYTHON_OK; CPYTHON_FREE_THREADED;
 * CPYTHON_BAD_TABLE: this attempt is implausible; CPYTHON_UNKNOWN_VERSION: no attempt is left.
 */
enum cpython_verdict cpython_layout__of_table(const uint8_t *table, size_t size,
					      unsigned int attempt, struct cpython_layout *layout);

/*
 * Can objects be read by this layout, which may come from another process? Each field of code, str
 * and bytes must be within the bytes that are read, and they must not overlap.
 */
bool cpython_layout__is_sound(const struct cpython_layout *layout);

/* A release of 3.11 to 3.15: its layout needs no self-check. */
bool cpython_version__is_known(uint32_t version);

#endif
