/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract of a runtime: what sysprof needs to recognize it, to give advice about it, to read
 * its functions or the sizes of its frames from a process, and to judge what was found.
 *
 * table.c lists all runtimes. One that is only recognized has a row there. One whose memory is read
 * has a folder, and nothing outside of it names that runtime, except bpf/, the numbers in sample.h
 * and runtime_info.h, the grammar of its perf map (jit/jit_name), its command line
 * (live/proc/command_line), the JVM's attach protocol and Python's GIL. See CONTRIBUTING.md.
 *
 * Memory is read in a reader, where runtimes/answers.h calls the functions of `struct
 * runtime_memory`. The collector sends requests: `struct note_ops` has when, and what the words of
 * a frame mean.
 */
#ifndef RUNTIMES_RUNTIME_H
#define RUNTIMES_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>
#include <sysprof/made_frames.h>
#include <sysprof/runtime_info.h>

#include "base/io.h"
#include "runtimes/table.h"
#include "runtimes/target_memory.h"

struct code_answers;
struct elf_file;

/* ---- questions: from the words that the kernel noted of a frame ------------------------------ */

struct code_question {
	uint64_t function, check; /* as in a note */
	uint64_t address; /* in compiled code: which functions are inlined there? 0: not needed */
	uint64_t time;	  /* of the sample that needs it */
	uint32_t kind;	  /* enum frame_note_kind */
	uint16_t is_leaf; /* 1: the thread was there; 0: the byte before a return address */
	uint16_t is_answered; /* 1: its answer is known, and is repeated only if it has changed */
};
#define NOTE_QUESTIONS_MAX 3u /* of one note */

#define CODE_KIN_MAX	   4u /* generations whose functions a child of fork has, nearest first */
/*
 * Functions without a sample in so many windows are dropped if there are many. If sampled again
 * they are reported again, because the requests for them are forgotten earlier.
 */
#define CODE_WINDOWS_KEPT 6u

/* How long an answer about a function holds: that with these words in its note. */
enum code_lasting {
	CODE_MOVES,    /* others can have the words later: read it again while it is sampled */
	CODE_STAYS,    /* it is read once */
	CODE_LASTS,    /* … and no other function ever has these words */
	CODE_NUMBERED, /* the same, but more may be known of it later: read it again, seldom */
};

/* The source of names of frames with one kind of note. */
enum note_naming {
	NAMED_BY_FUNCTION, /* the function of the note, or the chain at its address */
	NAMED_BY_CODE, /* the chain of a piece of code, described once, which ends with the code */
	NAMED_BY_MODULE, /* the first call of the chain at its address */
	/* the native frame stays; if it has no other name, the note's function, if there is a chain */
	NAMED_IF_CONFIRMED,
};

/* Where the frames of one kind of note stand in a stack. */
enum note_order {
	NOTE_OF_FRAME, /* in the place of its native frame */
	NOTE_IN_GROUP, /* in groups with their own order; `frame`: a group. No check: no function */
	NOTE_PLACES_GROUP, /* the frames of the group in `place` stand here */
};

/* How a note and its native frame become frames of the stack. */
struct note_placing {
	uint64_t address; /* of compiled code, which identifies the frame; 0: its place does */
	bool is_native;	  /* the native frame has more */
	bool has_callee;  /* native frame: its callee, if the function has a file or is unknown */
};

/* One kind of note. */
struct note_ops {
	enum frame_note_kind kind;
	enum frame_note_kind counted_as; /* among the frames of a profile's runtimes */
	enum frame_note_kind calls;	 /* the kind of the functions in its chains */
	enum note_naming naming;
	enum note_order order;
	bool is_urgent;	    /* memory of its functions is reused within milliseconds */
	bool is_inherited;  /* a child of fork has its parent's functions, noted from the fork on */
	bool is_beside_map; /* a perf map of the process has less than its notes */
	bool has_pieces;    /* without words: asks for code that lasts as long as the process */
	bool has_signatures; /* names are those of Java methods with their types */
	bool is_interpreted; /* all of its functions, so each is in its source file */
	bool names_leaf;     /* it has the candidates for a callee that has no frame of its own */
	enum code_lasting lasting; /* of a function with a check … */
	bool needs_check;	   /* … without one its words can be another function's later */
	bool only_checked;	   /* without words and a check there is no question */
	/*
	 * The questions about a sample's note; returns their number, at most NOTE_QUESTIONS_MAX.
	 * When called, the first one has the note's words. NULL: only that one.
	 */
	unsigned int (*questions)(const struct sample_event *e, const struct frame_note *note,
				  struct code_question *questions);
	/* `native`: its packed frame; `is_made`: is it JIT code? NULL: by the note's place. */
	struct note_placing (*place)(const struct frame_note *note, uint64_t native,
				     bool (*is_made)(const void *context, uint64_t address),
				     const void *context);
};

static inline enum code_lasting note_lasting(const struct note_ops *ops, uint64_t check)
{
	return ops->needs_check && !check ? CODE_MOVES : ops->lasting;
}

/* ---- memory: in a reader process ------------------------------------------------------------- */

/* A file that a process has mapped, and that may have the runtime in it. */
struct runtime_lookup {
	struct elf_file *file;
	struct file_stamp stamp;
	uint32_t user; /* of the process: tenant_user() */
	bool has_bias;
	uint64_t bias;		     /* what is added to addresses of the file */
	struct target_memory memory; /* of the process */
	bool may_come; /* set: the runtime is there and has not begun, another look is worth it */
};

/* Findings about a runtime, for the collector and for the judgement of `check -p`. */
struct runtime_finding {
	uint32_t is_seen;  /* it is in the process, read or not, */
	uint32_t is_there; /* … and has begun */
	uint32_t is_read;
	uint32_t state;		 /* enum code_runtime_state, where it is reported */
	uint32_t verdict, flags; /* its own */
	uint32_t version[3];
};

/* The layout by which the collector reads a copy of a function (EVENT_CODE_COPY). */
#define RUNTIME_LAYOUT_MAX 256u
struct runtime_layout {
	uint32_t size; /* 0: none */
	uint32_t reserved;
	char bytes[RUNTIME_LAYOUT_MAX];
};

/* Findings about a process, from another process: the collector checks them by `is_sound`. */
#define RUNTIME_MEMORIES_MAX 8u
struct runtime_findings {
	struct runtime_info info; /* for the kernel; `has` is 0 if that is nothing */
	struct runtime_layout layout;
	uint32_t may_come;
	uint32_t keeps_frame_pointers; /* of JIT code that is not walked otherwise */
	uint32_t left;		       /* a limit ended the look, or what it read */
	uint64_t device, inode;	       /* of the program that was looked at, as of stat; 0: none */
	struct runtime_finding of[RUNTIME_MEMORIES_MAX];
};

/* ---- judging: `check -p` --------------------------------------------------------------------- */

enum survey_mark {
	SURVEY_GOOD,   /* named */
	SURVEY_PARTLY, /* some of it is */
	SURVEY_BAD,
};

struct surveyed_runtime {
	const char *name; /* "Node.js" */
	char version[40]; /* "" */
	enum survey_mark mark;
	char text[256];	    /* what works, or what is missing and why */
	const char *remedy; /* NULL: none is needed, or known */
};

void __attribute__((format(printf, 3, 4)))
surveyed_runtime__judge(struct surveyed_runtime *runtime, enum survey_mark mark, const char *format,
			...);

/* How the memory of a runtime is read. Runtimes that are built on the same engine share one. */
struct runtime_memory {
	const struct runtime *home; /* its runtime, unless a file identifies another */
	uint32_t bits;		    /* RUNTIME_… of runtime_info.has */
	const struct note_ops *notes;
	size_t note_count;

	/* In a reader: each process has a zeroed `state` of so many bytes. */
	size_t state_size;
	void (*find)(void *state, struct runtime_lookup *lookup); /* once for each file */
	void (*fini)(void *state);				  /* NULL: nothing is to be freed */
	/* Before the questions of a request. NULL: nothing is to be done. */
	void (*begin)(void *state, struct target_memory *memory);
	/* Adds events to `answers`, or none. 0; -E2BIG, -EDQUOT: a limit is reached; -ENOMEM. */
	int (*answer)(void *state, struct code_answers *answers, struct target_memory *memory,
		      const struct code_question *question);
	void (*describe)(const void *state, struct runtime_findings *findings,
			 struct runtime_finding *own);

	/* In the collector. NULL: every `info` is sound. */
	bool (*is_sound)(const struct runtime_info *info);
	/* Adds the EVENT_CODE_FUNCTION. 0; -ENODATA: incomplete; -ENOMEM. NULL: no copies. */
	int (*read_copy)(struct code_answers *answers, const struct code_copy_event *copy,
			 const struct runtime_layout *layout);
	enum frame_note_kind reports; /* its state is recorded (EVENT_CODE_RUNTIME); NONE */

	/* `version`: of the file that it is in; "". Fills the mark, text, version and remedy. */
	void (*judge)(const struct runtime_finding *found, const struct runtime *runtime,
		      const char *version, struct surveyed_runtime *judgement);
	const char *doubt_remedy;   /* what describes places that are inferred; NULL: nothing */
	bool is_absent_unless_read; /* a file of its name is not enough */
	bool is_interpreted;	    /* JIT code beside its functions is that of libraries */
	bool needs_walk; /* a perf map has its names, but does not make its stacks whole */
};

/* ---- addresses of frames --------------------------------------------------------------------- */

static inline bool frame_is_return_address(uint64_t frame)
{
	static const bool exact[FRAME_KIND_COUNT] = {
#define X(id, name, exact, text) exact,
		FRAME_KINDS(X)
#undef X
	};
	enum frame_kind kind = frame_kind(frame);

	return kind < FRAME_KIND_COUNT && !exact[kind];
}

/*
 * The code address of a user frame: inside the call instruction, not behind it. A packed frame
 * keeps 56 bits; addresses of the vsyscall page are negative.
 */
static inline uint64_t frame_user_address(uint64_t frame)
{
	uint64_t address = frame & FRAME_ADDRESS_MASK;

	if (address >> (FRAME_KIND_SHIFT - 1))
		address |= ~FRAME_ADDRESS_MASK;
	return address - (frame_is_return_address(frame) && address);
}

/* The same for a note that has the frame's place in compiled code. */
static inline uint64_t note_code_address(const struct frame_note *note, uint64_t frame)
{
	return note->function + note->place - frame_is_return_address(frame);
}

#endif
