/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures about a whole profile that several formats show: totals, books, names. */
#ifndef EXPORT_FACTS_H
#define EXPORT_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct export_facts {
	uint64_t duration;	  /* ns */
	uint64_t threads;	  /* with at least one CPU sample */
	uint64_t silent_threads;  /* without */
	uint64_t cpu, silent_cpu; /* ns, of all threads and of those without a sample */
	bool due_known;		  /* for at least one CPU */
	uint64_t due;		  /* of the CPUs for which it is known */
	uint64_t received;
	uint64_t lines[BOOK_COUNT]; /* over all CPUs */
	uint64_t lost;		    /* ticks of the target, or of unknown tasks, without a sample */
};

void export_facts__init(struct export_facts *facts, const struct profile *p);

/* Is the wall clock at the start of the profile known? Engines write other clocks into their files. */
bool export_knows_realtime(const struct profile *p);

/* Is this line of the books a loss (not a sample, an idle CPU or a tick of another task)? */
bool book_line_is_loss(enum book_line line);

const char *book_line_name(enum book_line line);
const char *book_line_text(enum book_line line);
const char *frame_kind_name(enum frame_kind kind);
const char *frame_kind_text(enum frame_kind kind);
const char *stack_end_name(enum stack_end end);
const char *stack_end_text(enum stack_end end);
const char *lost_source_text(enum lost_source source);

/*
 * The JIT code of a process, in one line: the files with its names, the samples without a name or with
 * an ambiguous one, and the remedy. It may contain any bytes.
 */
void describe_jit(char *text, size_t size, const struct profile *p, const struct profile_jit *jit);

/*
 * How sure the names are that were read from the memory of processes with a runtime, in one line of at most 255 bytes, without
 * the runtime's name.
 */
#define RUNTIME_TEXT_SIZE 256
void describe_runtime(char *text, size_t size, const struct profile_runtime *runtime);
/* The member "runtimes", an array with an object for each, if there is one. */
struct json_writer;
void write_runtimes(const struct profile *p, struct json_writer *w);

/* The member "jit": an array with an object for each process. */
void write_jits(const struct profile *p, struct json_writer *w);
/* How many of them, from the first on: JITS_MAX, with paths of JITS_PATHS_MAX bytes. */
#define JITS_MAX       4096u
#define JITS_PATHS_MAX (1u << 20)
size_t described_jits(const struct profile *p);

/* A row of the books of the outside, in one line of at most 255 bytes. */
void describe_outside(char *text, size_t size, const struct profile_outside *row);
/* The member "outside", an array with an object for each row, if there is one; "since" is in us from the start. */
void write_outside(const struct profile *p, struct json_writer *w);

/* The build-id of a dso; size 0: unknown. That of the kernel is in the facts about the machine. */
struct dso_build_id {
	uint8_t size;
	uint8_t bytes[BUILD_ID_SIZE];
};
void dso_build_id(const struct profile *p, struct dso_id id, struct dso_build_id *build_id);

/* The name shown for a dso: never empty. The kernel is "[kernel.kallsyms]", as in other tools. */
const char *dso_display_name(const struct profile *p, struct dso_id id);

#endif
