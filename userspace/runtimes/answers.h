/* SPDX-License-Identifier: BSD-2-Clause */
/* In a reader: what a process has, and answers about it, by the folders of runtimes. */
#ifndef RUNTIMES_ANSWERS_H
#define RUNTIMES_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "base/order.h"
#include "base/vec.h"
#include "runtimes/runtime.h"
#include "runtimes/target_memory.h"

/* ---- runtimes of a process ------------------------------------------------------------------- */

/* The runtimes of a process. In a reader: files and memory are the process's own. */

#define FOUND_FILE_CODE 64u

struct found_runtimes {
	pid_t pid;
	int mem;		     /* /proc/PID/mem; 0: it could not be opened */
	uint32_t user;		     /* of the process: tenant_user() */
	struct target_memory memory; /* for one request */
	struct target_range file_code[FOUND_FILE_CODE]; /* executable mappings of files */
	uint32_t file_code_count;
	bool may_come;		/* a runtime is there, and has not begun yet: worth another look */
	bool left;		/* a limit ended the look, or the reading of a file or of memory */
	uint64_t device, inode; /* of its program; 0: it was not opened */
	void *state[RUNTIME_MEMORIES_MAX]; /* of each runtime_memory(), by its number */
};

/* May it be a program, which may have a runtime linked into it whatever it is called? */
bool runtime_finder__is_program(const char *path);

/*
 * Looks at its program, and at files of its executable mappings that may have a runtime. 0;
 * negative errno: its mappings cannot be read. The caller ends it. It must not be moved.
 */
int runtime_finder__look(pid_t pid, struct found_runtimes *found);
void found_runtimes__fini(struct found_runtimes *found);

void found_runtimes__describe(const struct found_runtimes *found,
			      struct runtime_findings *findings);

/* Was it in a file's code when it was looked at? */
bool found_runtimes__is_file_code(const struct found_runtimes *found, uint64_t address);

/* Its memory, for one request. */
struct target_memory found_runtimes__memory(const struct found_runtimes *found);

/* ---- functions ------------------------------------------------------------------------------- */

/*
 * A function of a runtime, as its own memory describes it. Everything in it was a tenant's. Text is
 * bounded, and has been through utf8_sanitize().
 */

#define MANAGED_NAME_MAX 1024u /* bytes, with the NUL */
#define MANAGED_FILE_MAX 4096u
#define MANAGED_ROWS_MAX 16384u /* of one function; what is beyond has no line */

/* From this place in the function's code up to the next row. The unit is the runtime's. */
struct managed_row {
	uint32_t offset;
	uint32_t line, column; /* 1-based; 0: unknown */
};

struct managed_function {
	char name[MANAGED_NAME_MAX];  /* "": it has none */
	char file[MANAGED_FILE_MAX];  /* a path or a URL; "": unknown */
	uint32_t line, column;	      /* where it is defined, 1-based; 0: unknown */
	VEC(struct managed_row) rows; /* ascending by offset; none: its lines are unknown */
};

static inline void managed_function__fini(struct managed_function *f)
{
	vec_free(&f->rows);
}

/* The row that covers this offset, or NULL. */
static inline const struct managed_row *managed_function__row(const struct managed_function *f,
							      uint32_t offset)
{
	size_t at = partition_point(f->rows.data, f->rows.count, row, row->offset <= offset);

	return at ? &f->rows.data[at - 1] : NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Answers of a reader about functions of runtimes, as events, one behind the other. */

struct code_answers {
	uint32_t pid;
	size_t limit;
	VEC(char) bytes;
	uint32_t left; /* questions whose answer a limit cut short, or left out */
	bool is_cut;   /* the present one: it has more rows than an event */
	/* reported functions of compiled code (HotSpot, WebAssembly) */
	VEC(struct code_question) methods;
	struct target_pages *pages;	    /* NULL: none yet */
	const struct found_runtimes *found; /* of the process */
};

/*
 * Reads the state by which a later reading decides whether a method is still the sampled one.
 * Before the first question, and now and then.
 */
void code_answers__begin(struct found_runtimes *found);
/* Reads found->memory. 0; -E2BIG, -EDQUOT: a limit is reached, no answer to this one; -ENOMEM. */
int code_answers__add(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *question);
void code_answers__fini(struct code_answers *answers);

/* ---- for the folders of runtimes ------------------------------------------------------------- */

/* How answers about a runtime are written: between answers.c and the folders of runtimes. */

/* `f` NULL: nothing is known but its state. `flags` of the event. 0, -E2BIG, -ENOMEM. */
int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags);

/* In two steps: the event, valid until the next one; and as above. */
const struct code_function_event *code_answers__event(struct code_answers *answers,
						      const struct code_question *q,
						      enum code_state state, uint32_t base,
						      const struct managed_function *f);
int code_answers__add_event(struct code_answers *answers, const struct code_function_event *event,
			    uint16_t flags);

/* The calls at an address of compiled code, CODE_CALLS_MAX at most, innermost first. As above. */
int code_answers__chain(struct code_answers *answers, const struct code_question *q,
			enum code_state state, const struct code_call *calls, unsigned int count);

/* Reads of `memory` keep pages from now on, until the caller sets memory->pages to NULL. */
void code_answers__keep_pages(struct code_answers *answers, struct target_memory *memory);

/* Is it among `methods`, reported with code that consists of it? */
bool code_answers__has(const struct code_answers *answers, const struct code_question *q);

#endif
