/* SPDX-License-Identifier: BSD-2-Clause */
/* All runtimes, with what is specific to each. */
#ifndef RUNTIMES_TABLE_H
#define RUNTIMES_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/made_frames.h>
#include <sysprof/event.h>

struct note_ops;
struct runtime_memory;

#define RUNTIME_FILES	  4u
#define RUNTIME_REGISTERS 16

/* The sizes of the frames of its JIT code, which keeps no frame pointers; in a reader process. */
struct frame_sizes_request {
	struct made_runtime *runtime; /* with what is known of it so far */
	const uint64_t *
		registers; /* RUNTIME_REGISTERS of a thread in its code by DWARF number, or all 0 */
	const struct made_area *areas; /* executable memory without a file, ascending */
	size_t area_count;
};

struct runtime {
	const char *name;
	struct runtime_file {
		const char *start; /* of the name of a file that it is in */
		bool whole;	   /* … and all of it, but for a version: digits and dots */
	} files[RUNTIME_FILES];
	const char *
		modules; /* part of the names of files that it loads but is not in; NULL: nothing */
	const char *remedy; /* how to start it so that it reports its code; NULL: it cannot */
	const char *
		lacks; /* what a recording lacks if it was started without that: words for a list */
	const struct runtime_memory *memory; /* NULL: its functions are not read */
	/* The version by a file that it has mapped; in a reader. NULL: it is in its memory. */
	void (*read_version)(pid_t pid, const char *path, char *version, size_t size);
	/* How its JIT code is unwound. */
	bool has_own_walk; /* the kernel walks it by what was found, or it keeps frame pointers */
	bool keeps_frame_pointers; /* in all of it; else its instructions are followed */
	enum made_by by;	   /* by sizes of frames: */
	/* Ascending, no overlap, in *frames; the caller frees. 0; -ENODATA: none; -ENOMEM. */
	int (*frame_sizes)(const struct frame_sizes_request *request, struct made_frame **frames,
			   size_t *count);
};

/* By the name of a file that a process has mapped, without its directories. NULL: it is none. */
const struct runtime *runtime_of_file(const char *name);
/* The same, whatever is behind the beginning of the name: "python3.12-dbg". */
const struct runtime *runtime_like_file(const char *name);
/* May a file of this path have a runtime in it whose memory is read? */
bool runtime_may_be_in(const char *path);
/* The runtime that makes this kind of JIT code. NULL: none. */
const struct runtime *runtime_of_made_code(enum made_by by);
/* Lower comes first where a process has several. */
unsigned int runtime_rank(const struct runtime *runtime);

/* Those whose memory is read, by numbers from 0 on, below RUNTIME_MEMORIES_MAX. NULL: no more. */
const struct runtime_memory *runtime_memory(unsigned int number);
/* The one whose frames have a kind of note. NULL: none. */
const struct runtime *runtime_of_note(enum frame_note_kind kind);

/* All kinds of notes, by kind; NULL: no runtime has it. Filled once by each of its users. */
struct note_table {
	const struct note_ops *of[FRAME_NOTE_COUNT];
};
void note_table__init(struct note_table *notes);

/* Sentences about what a recording lacks, for several runtimes. */

#define NO_NAMES	"its functions have no names"
#define NO_INTERPRETED	"its functions have no names: only the interpreter's own are seen"
#define NO_TRACES	"compiled traces have no names"

#define NAMED_BY_MEMORY "functions, files and lines are read from its memory"

#endif
