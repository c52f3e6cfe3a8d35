/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the kernel's unwind tables up to what is known of processes: the files of a process that is
 * sampled get tables, and its mappings are published, again whenever they have changed.
 *
 * Files are requested, and the answers may come at any time: until then stacks that need them are cut
 * for want of a table.
 */
#ifndef UNWIND_UNWIND_FEED_H
#define UNWIND_UNWIND_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/made_frames.h>
#include <sysprof/mapping.h>

#include "unwind/made_code.h"
#include "unwind/table_store.h"

struct unwind_feed;

struct elf_file;
struct table_cache;

enum fed_kind {
	FED_FILE,   /* or what may be one */
	FED_JVM,    /* HotSpot's library */
	FED_PYTHON, /* CPython: the interpreter, or its library */
	FED_PYPY,
	FED_LUAJIT,
	FED_JIT, /* code made by the process */
};

struct unwind_feed_options {
	struct table_store *store;
	struct table_cache *cache; /* NULL: none; taken over, whatever unwind_feed__new() returns */
	size_t table_limit;	   /* bytes of one table at most */
	int64_t credit;		   /* CPU time for building that can be saved up, ns; 0: 2 s */
	/* The file of this image is wanted: unwind_feed__answer_file() is called, now or later. 0 or -ENOMEM. */
	int (*request_file)(void *context, struct image_id image);
	enum fed_kind (*kind)(void *context, struct image_id image);
	/*
	 * Does the code that this JVM makes keep frame pointers? `library`, valid during the call, is `bias` higher in
	 * the process. unwind_feed__answer_jvm() is called, now or later. 0 or -ENOMEM.
	 */
	int (*request_jvm)(void *context, uint32_t tgid, struct elf_file *library, uint64_t bias);
	/* As made_code_options.request; unwind_feed__answer_frames() is called. */
	int (*request_frames)(void *context, const struct made_request *request);
	void *context;
};

/* 0 or negative errno. */
int unwind_feed__new(const struct unwind_feed_options *options, struct unwind_feed **feed);
void unwind_feed__free(struct unwind_feed *f);

/*
 * The file of an image, and where in it the image begins. The descriptor stays the caller's and need
 * not live longer than the call; -1: it cannot be had.
 */
int unwind_feed__answer_file(struct unwind_feed *f, struct image_id image, int fd, uint64_t base);

/* 1: the process is to be published again; 0; -ENOMEM. */
int unwind_feed__answer_jvm(struct unwind_feed *f, uint32_t tgid, uint64_t bias,
			    bool keeps_frame_pointers);
int unwind_feed__answer_frames(struct unwind_feed *f, const struct made_answer *answer);

/* Nobody has the image mapped any more: its number may be another's. False: not yet, it is being read. */
bool unwind_feed__forget(struct unwind_feed *f, struct image_id image);

/* A process as its samples tell of it. Times are CLOCK_MONOTONIC ns. */
struct fed_process {
	uint32_t tgid;
	uint64_t born; /* 0: unknown */
	uint64_t time; /* of the sample */
	struct mappings maps;
};

/* Its mappings at that time; tables of files that have none yet are asked for. 0 or -ENOMEM: no room is no error. */
int unwind_feed__publish(struct unwind_feed *f, const struct fed_process *process);

/* Has all of these been seen before, so that publishing it reads no file? */
bool unwind_feed__knows(const struct unwind_feed *f, struct mappings maps);
/* Is a table being built? */
bool unwind_feed__is_building(const struct unwind_feed *f);

/*
 * A stack of it ended at `address`, whose table is not there: it is asked for again, where that is
 * of use. `copy` is what was kept of the stack, or NULL. 1: its mappings are to be published again; 0;
 * -ENOMEM.
 */
int unwind_feed__missed(struct unwind_feed *f, const struct fed_process *process, uint64_t address,
			const struct stack_copy *copy);
/* It was sampled. Has it other code than was published? As before. */
int unwind_feed__refresh(struct unwind_feed *f, const struct fed_process *process);

/* Takes what has been built since. 0 or -ENOMEM. */
int unwind_feed__take(struct unwind_feed *f);

/*
 * A copied stack ended at `address` for want of a table: if that is being built, it is built before others. 0: there
 * is none to be had; -EAGAIN: it will be there soon; after unwind_feed__end() this waits, and 1 says that
 * it is there now; -ENOMEM.
 */
int unwind_feed__await(struct unwind_feed *f, const struct fed_process *process, uint64_t address);
void unwind_feed__end(struct unwind_feed *f);

/* Readable when something was built. */
int unwind_feed__fd(const struct unwind_feed *f);

/*
 * A stack of it, of which the kernel kept a copy: by tables, as it would have been. Frames are
 * packed; *count is how many, `max` at most.
 */
enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct fed_process *process,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count);
/*
 * Frames of code that the process has made, as it says itself: they are used from the next publication
 * on. 1: it is to be published again; 0: nothing came of it; -ENOMEM.
 */
struct unwind_piece;
int unwind_feed__describe(struct unwind_feed *f, const struct fed_process *process,
			  const struct unwind_piece *pieces, size_t count);
/* It has ended. */
void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid);

struct unwind_feed_stats {
	struct table_store_stats store;
	uint64_t built;	   /* tables */
	uint64_t cached;   /* those that were read from the cache instead */
	uint64_t build_ns; /* CPU time spent on both */
	uint64_t put_off;  /* times that a young process's file had to wait: others took too long */
	uint64_t too_big;  /* files whose table does not fit into a segment */
};
void unwind_feed__stats(const struct unwind_feed *f, struct unwind_feed_stats *stats);

#endif
