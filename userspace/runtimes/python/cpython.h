/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython in the memory of a process: layout, code objects, the runtime, threads. */
#ifndef RUNTIMES_PYTHON_CPYTHON_H
#define RUNTIMES_PYTHON_CPYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/event.h>

#include "elf/elf_file.h"
#include "runtimes/answers.h"
#include "runtimes/target_memory.h"

/* ---- layout ---------------------------------------------------------------------------------- */

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

/* ---- code objects ---------------------------------------------------------------------------- */

/*
 * A code object of CPython: its name, file and lines; and whether it still is the sampled one.
 *
 * Dropped code leaves its memory to other objects within milliseconds, its name's first. So the
 * frame's words of it (its identity) are compared, each object that is read must be alive, and the
 * code's head is read again at the end: while the code lives, so does what it refers to.
 */

/*
 * Is an object alive, by its first word? It has the count of references, and bits that are 0 (3.11
 * to 3.15, with a GIL); freed memory has a pointer to the next free block, or 0.
 */
bool cpython_object__is_alive(uint64_t first_word);

/*
 * The text of a str as UTF-8, fit to be shown, cut to `size`. 0; -ESTALE: the object is gone;
 * -EBADMSG: it is no str; else as target_memory__read().
 */
int cpython_str__read(const struct cpython *py, struct target_memory *m, uint64_t address, char *to,
		      size_t size);

/* The contents of a bytes object, `limit` at most; the caller frees. As above, and -ENOMEM. */
int cpython_bytes__read(const struct cpython *py, struct target_memory *m, uint64_t address,
			size_t limit, uint8_t **bytes, size_t *size);

static inline uint64_t cpython_word(const uint8_t *bytes, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

#define CPYTHON_TYPE_AT 8u /* ob_type */

/*
 * The head of a code object, by which it is recognized later: memory of dropped code is reused.
 * Words of the process, none of which is followed but those to 3.11's names.
 */
struct cpython_identity {
	uint32_t version; /* co_version; 3.11: runtime_python_version() */
	uint32_t firstline;
	uint64_t qualname; /* pointers */
	uint64_t others;   /* of pointers to the file's name and the lines */
};

/* Bytes of a code object that have its identity; CPYTHON_HEAD_MAX at most. */
static inline size_t cpython_head__size(const struct cpython *py)
{
	return py->layout.code_linetable + 8;
}

/*
 * The identity in a head. 0; 3.11: else as target_memory__read(): what cannot be read of its names
 * then counts as 0, as in the kernel.
 */
int cpython_identity__of_head(const struct cpython *py, struct target_memory *m,
			      const uint8_t *head, struct cpython_identity *identity);

/* Is it the one that a note has? frame_note.check of include/sysprof/sample.h */
static inline bool cpython_identity__has(const struct cpython_identity *identity, uint64_t check)
{
	return identity->firstline == (uint32_t)check && identity->version == check >> 32;
}

#define CPYTHON_LINETABLE_MAX (256u << 10) /* bytes; what is beyond has no lines */
/* Enough for any one code object. */
#define CPYTHON_CODE_READS 18u
#define CPYTHON_CODE_SPENT (CPYTHON_LINETABLE_MAX + (32u << 10))

/*
 * CONFIRMED: it is the code of that identity. STALE: it is gone, or going; UNKNOWN: unreadable:
 * nothing is reported of these. *f must be empty; the caller ends it with managed_function__fini().
 * Rows: `offset` is in bytes from the start of the bytecode, line 0 is none.
 */
enum code_state cpython_code__read(const struct cpython *py, struct target_memory *m, uint64_t code,
				   const struct cpython_identity *identity,
				   struct managed_function *f);

/*
 * Adds the rows of a table to f->rows, as above. Neighbours of one line are one row; columns are
 * left out. The last row has line 0 and begins where the table ends, is damaged, or has more rows
 * than there is room for. 0 or -ENOMEM.
 */
int cpython_lines__read(const uint8_t *table, size_t size, uint32_t firstline,
			struct managed_function *f);

/* ---- the runtime ----------------------------------------------------------------------------- */

/*
 * CPython in an image of a process: address, version and layout of its _PyRuntime.
 *
 * Symbols of the file (cpython_symbols) may be cached by the file's identity; addresses are those
 * of one process. The runtime is recognized by content, not by a file's name: it may be in the
 * program, in libpython, or in anything that it was linked into.
 */

#define CPYTHON_CODE_BYTES 64u

/* Virtual addresses of the file; 0: unknown. */
struct cpython_symbols {
	uint64_t runtime;      /* section .PyRuntime (3.11 on), or the symbol _PyRuntime */
	uint64_t runtime_size; /* of the section; 0: by the symbol */
	uint64_t version_word; /* Py_Version: 3.11 on */
	uint64_t code_type;    /* PyCode_Type */
	uint64_t gilstate;     /* PyGILState_GetThisThreadState(), and how it begins */
	uint8_t gilstate_code[CPYTHON_CODE_BYTES];
	size_t gilstate_size;
};

/*
 * The symbols of the CPython in a file. 0; -ENOENT: none; -ENOEXEC: not 64-bit x86. Reads section
 * headers, exported objects (bounded by elf_file__each_object()), and, if there is one, functions.
 */
int cpython_symbols__read(struct elf_file *file, struct cpython_symbols *symbols);

/* An image of a process. */
struct cpython_image {
	const struct cpython_symbols *symbols; /* of its file */
	uint64_t bias;			       /* what is added to addresses of the file */
};

/*
 * CPYTHON_OK and *py; else why not. CPYTHON_NOT_STARTED: the version needs a self-check, and has no
 * Python frame yet.
 */
enum cpython_verdict cpython__find(const struct cpython_image *image, struct target_memory *m,
				   struct cpython *py);

/*
 * The GIL of the main interpreter: the address of {PyThreadState *holder; int locked}, and that
 * interpreter (0: all share one, 3.11). 0; -ENOENT: none (yet), or another layout; or as a read.
 */
struct cpython_main_gil {
	uint64_t address, interpreter;
};
int cpython_gil__of_main(const struct cpython *py, struct target_memory *m,
			 struct cpython_main_gil *main);

/* ---- threads --------------------------------------------------------------------------------- */

/*
 * The state (PyThreadState) of a thread, by its fs base, and the states that an interpreter lists.
 *
 * A thread's current state (_Py_tss_tstate) is no help: it is NULL whenever the GIL is released.
 * The one that PyGILState_GetThisThreadState() returns stays: up to 3.14 under a pthread key, from
 * 3.15 on in a word of thread-local storage. Both are found from the fs base by a few loads.
 */

#define CPYTHON_HOPS 3u

/*
 * p = fs base; for each hop p = *(u64 *)(p + offset): p is the state, or 0. One hop: thread-local
 * storage at a constant offset, or a key below 32. Two: a larger key. Three: the storage of a
 * library that was loaded later (through the DTV). If a load fails, the thread has no state yet.
 */
struct cpython_thread_word {
	uint32_t hops;
	int64_t offset[CPYTHON_HOPS];
};

/*
 * Finds that word, and tries it on the listed threads: a state has its thread's fs base.
 * CPYTHON_OK; CPYTHON_NOT_STARTED: no thread to try it on, or too few to be sure;
 * CPYTHON_OTHER_LIBC; CPYTHON_THREADS_UNKNOWN; CPYTHON_UNREADABLE.
 */
enum cpython_verdict cpython_thread_word__find(const struct cpython *py,
					       const struct cpython_image *image,
					       struct target_memory *m,
					       struct cpython_thread_word *word);

/* 0 and the state, 0 if the thread has none; -EDQUOT, -ESRCH, -EPERM as of target_memory. */
int cpython_thread_word__state(const struct cpython_thread_word *word, struct target_memory *m,
			       uint64_t fs, uint64_t *state);

#define CPYTHON_THREADS_MAX 4096u /* that are reported of all interpreters */

struct cpython_thread {
	uint64_t state, interpreter;
	uint64_t fs; /* 0: it is not bound to a thread */
};

/*
 * Visits each thread state of each interpreter, newest first, as far as links lead. A nonzero
 * `visit` ends it and is returned. 0; -ENOENT: no interpreter; errno of the first failed read.
 */
typedef int (*cpython_thread_fn)(void *context, const struct cpython_thread *thread);
int cpython__each_thread(const struct cpython *py, struct target_memory *m, cpython_thread_fn visit,
			 void *context);

#endif
