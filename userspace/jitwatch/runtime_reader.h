/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a runtime's own memory says about the code that it has made: HotSpot's flags, LuaJIT's and PyPy's traces.
 *
 * A request holds or copies all that it takes; its answer comes through the callback of the reader, exactly once.
 * At present that happens before runtime_reader__ask() returns. Do not rely on it: the request may be served by
 * another process, and answers may come later and in another order. What is known of the process may have changed
 * by then, and the process may have ended: compare the ticket.
 */
#ifndef JITWATCH_RUNTIME_READER_H
#define JITWATCH_RUNTIME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/made_frames.h>

struct elf_file;
struct runtime_reader;

enum runtime_question {
	RUNTIME_HOTSPOT_FRAME_POINTERS, /* was it started with -XX:+PreserveFramePointer? */
	RUNTIME_LUAJIT_TRACES,		/* their frames */
	RUNTIME_PYPY_TRACES,
	RUNTIME_QUESTION_COUNT
};

/* What libjvm.so exports for debuggers: addresses of variables, as in the file. */
#define HOTSPOT_SYMBOLS 10
struct hotspot_symbols {
	uint64_t address[HOTSPOT_SYMBOLS]; /* 0: not exported */
};

/* 0 or negative errno of elf_file__each_object(). */
int hotspot_symbols__find(struct elf_file *libjvm, struct hotspot_symbols *symbols);

#define RUNTIME_REGISTERS 16

struct runtime_request {
	enum runtime_question question;
	uint64_t ticket; /* the asker's own; it comes back with the answer */
	/* Whose memory. LuaJIT: with the states that are known so far, see runtime_answer. */
	struct made_runtime runtime;
	/* HotSpot: its addresses are `bias` higher in the process. */
	struct hotspot_symbols symbols;
	uint64_t bias;
	/* LuaJIT: of a thread that runs its code, by DWARF number; all 0: there is none at hand. */
	uint64_t registers[RUNTIME_REGISTERS];
	/* LuaJIT, PyPy: executable memory without a file, ascending. Copied by runtime_reader__ask(). */
	const struct made_area *areas;
	size_t area_count;
};

struct runtime_answer {
	enum runtime_question question;
	uint64_t ticket;
	/* 0; -ENODATA: nothing was found; -ESRCH, -EPERM, …: it cannot be read; -ENOMEM */
	int result;
	/* As in the request. LuaJIT: with the states that are known now, for the next one. */
	struct made_runtime runtime;
	/* HotSpot. Final once the JVM has compiled code. */
	uint64_t bias; /* as in the request */
	bool keeps_frame_pointers;
	/* LuaJIT, PyPy: ascending, without overlap, within the areas. Valid until the callback returns. */
	const struct made_frame *frames;
	size_t frame_count;
	/* What reading took: CPU time, and time by the clock. */
	uint64_t cpu_ns, elapsed_ns;
};

/* It may ask again, and must not free the reader. */
typedef void (*runtime_answer_fn)(void *context, const struct runtime_answer *answer);

int runtime_reader__new(runtime_answer_fn answer, void *context, struct runtime_reader **reader);
/* No answer comes after this. NULL is fine. */
void runtime_reader__free(struct runtime_reader *reader);

/* 0: there will be an answer; -EINVAL, -ENOMEM: there will be none. */
int runtime_reader__ask(struct runtime_reader *reader, const struct runtime_request *request);

#endif
