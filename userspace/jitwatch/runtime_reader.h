/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of JIT code, read from the memory of LuaJIT and PyPy.
 *
 * A process can have memory that whoever reads it waits for (a file of FUSE, userfaultfd). So it is read by reader
 * processes. A request holds or copies all that it takes; its answer comes through the callback of the reader, exactly
 * once, when the pool's owner takes the pool's answers, in any order. What is known of the process may have changed by
 * then, and the process may have ended: compare the ticket. Without a pool the answer comes before
 * runtime_reader__ask() returns.
 */
#ifndef JITWATCH_RUNTIME_READER_H
#define JITWATCH_RUNTIME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/made_frames.h>

struct reader_job;
struct reader_pool;
struct runtime_reader;

enum runtime_question { RUNTIME_LUAJIT_TRACES, RUNTIME_PYPY_TRACES, RUNTIME_QUESTION_COUNT };

#define RUNTIME_REGISTERS 16

struct runtime_request {
	enum runtime_question question;
	uint64_t ticket; /* the asker's own; it comes back with the answer */
	/* Whose memory. LuaJIT: with the states that are known so far, see runtime_answer. */
	struct made_runtime runtime;
	/* LuaJIT: of a thread that runs its code, by DWARF number; all 0: there is none at hand. */
	uint64_t registers[RUNTIME_REGISTERS];
	/* Executable memory without a file, ascending. Copied by runtime_reader__ask(). */
	const struct made_area *areas;
	size_t area_count;
};

struct runtime_answer {
	enum runtime_question question;
	uint64_t ticket;
	/* 0; -ENODATA: nothing was found; -ESRCH, -EPERM, -ETIMEDOUT …: it cannot be read; -ENOMEM */
	int result;
	/* As in the request. LuaJIT: with the states that are known now, for the next one. */
	struct made_runtime runtime;
	/* Ascending, without overlap, within the areas. Valid until the callback returns. */
	const struct made_frame *frames;
	size_t frame_count;
	/* What reading took: CPU time, and time by the clock. */
	uint64_t cpu_ns, elapsed_ns;
};

/* It may ask again, and must not free the reader. */
typedef void (*runtime_answer_fn)(void *context, const struct runtime_answer *answer);

/* `pool`, with runtime_reader__serve as this service of its, or NULL. 0 or -ENOMEM. */
int runtime_reader__new(runtime_answer_fn answer, void *context, struct reader_pool *pool,
			unsigned int service, struct runtime_reader **reader);
/* A reader_serve_fn. */
void runtime_reader__serve(struct reader_job *job);
/* No answer comes after this; a pool must have ended (reader_pool__end()). NULL is fine. */
void runtime_reader__free(struct runtime_reader *reader);

/* 0: there will be an answer; -EINVAL, -ENOMEM: there will be none. */
int runtime_reader__ask(struct runtime_reader *reader, const struct runtime_request *request);

#endif
