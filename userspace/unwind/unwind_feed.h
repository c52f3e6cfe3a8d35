/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the kernel's unwind tables up to date: the files of a sampled process get tables, and its mappings
 * are published whenever they have changed.
 *
 * Files are requested asynchronously. Until the answer arrives and the table is built, stacks that need it
 * end there (no-table).
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
	FED_FILE,   /* or possibly one */
	FED_JVM,    /* HotSpot's library */
	FED_PYTHON, /* CPython: the interpreter, or its library */
	FED_PYPY,
	FED_LUAJIT,
	FED_JIT, /* JIT code */
};

struct unwind_feed_options {
	struct table_store *store;
	struct table_cache
		*cache;	    /* NULL: none; owned from now on, even if unwind_feed__new() fails */
	size_t table_limit; /* bytes of one table at most */
	int64_t credit;	    /* largest credit of CPU time for building, ns; 0: 2 s */
	/* Requests the file of an image: unwind_feed__answer_file() is called, now or later. 0 or -ENOMEM. */
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
 * The file of an image, and the offset of the image in it. The caller owns the descriptor and may close it
 * after the call; -1: the file is unavailable.
 */
int unwind_feed__answer_file(struct unwind_feed *f, struct image_id image, int fd, uint64_t base);

/* 1: the process is to be published again; 0; -ENOMEM. */
int unwind_feed__answer_jvm(struct unwind_feed *f, uint32_t tgid, uint64_t bias,
			    bool keeps_frame_pointers);
int unwind_feed__answer_frames(struct unwind_feed *f, const struct made_answer *answer);

/* Nobody has the image mapped any more: its number may be another's. False: not yet, it is being read. */
bool unwind_feed__forget(struct unwind_feed *f, struct image_id image);

/* A sampled process. Times are CLOCK_MONOTONIC ns. */
struct fed_process {
	uint32_t tgid;
	uint64_t born; /* 0: unknown */
	uint64_t time; /* of the sample */
	struct mappings maps;
};

/* Publishes its mappings at that time, and requests missing tables. 0 or -ENOMEM; a full mapping table is not an error. */
int unwind_feed__publish(struct unwind_feed *f, const struct fed_process *process);

/* Are all these mappings known, so that publishing them reads no file? */
bool unwind_feed__knows(const struct unwind_feed *f, struct mappings maps);
/* Is a table being built? */
bool unwind_feed__is_building(const struct unwind_feed *f);

/*
 * A stack of the process ended at `address` because its table is not loaded: requests the table again, if that
 * is useful. `copy` is the copy of the stack, or NULL. 1: its mappings must be published again; 0; -ENOMEM.
 */
int unwind_feed__missed(struct unwind_feed *f, const struct fed_process *process, uint64_t address,
			const struct stack_copy *copy);
/* It was sampled: checks whether its JIT code has changed since it was published. Returns as above. */
int unwind_feed__refresh(struct unwind_feed *f, const struct fed_process *process);

/* Takes the tables built since the last call. 0 or -ENOMEM. */
int unwind_feed__take(struct unwind_feed *f);

/*
 * A copied stack ended at `address` because its table is missing: if the table is being built, it is given
 * priority. 0: there will be none; -EAGAIN: it will be ready soon; -ENOMEM. After unwind_feed__end() this
 * waits instead, and returns 1 if the table is ready.
 */
int unwind_feed__await(struct unwind_feed *f, const struct fed_process *process, uint64_t address);
void unwind_feed__end(struct unwind_feed *f);

/* Readable when a table was built. */
int unwind_feed__fd(const struct unwind_feed *f);

/*
 * Unwinds a copied stack by tables, as the kernel side would have. Stores at most `max` packed frames; *count
 * is how many.
 */
enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct fed_process *process,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count);
/*
 * Unwinding information of JIT code, from the process's jitdump: used from the next publication on. 1: the
 * process must be published again; 0: nothing changed; -ENOMEM.
 */
struct unwind_piece;
int unwind_feed__describe(struct unwind_feed *f, const struct fed_process *process,
			  const struct unwind_piece *pieces, size_t count);
/* It has ended. */
void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid);

struct unwind_feed_stats {
	struct table_store_stats store;
	uint64_t built;	   /* tables */
	uint64_t cached;   /* tables read from the cache instead */
	uint64_t build_ns; /* CPU time spent on both */
	uint64_t put_off;  /* deferred tables of short-lived processes: the credit was used up */
	uint64_t too_big;  /* files whose table does not fit into a segment */
};
void unwind_feed__stats(const struct unwind_feed *f, struct unwind_feed_stats *stats);

#endif
