/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_UNWIND_FEED_FILES_H
#define UNWIND_UNWIND_FEED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/mapping.h>

struct fed_file;
struct fed_process;
struct unwind_feed;
struct unwind_feed_stats;

/*
 * The file of an image, and the image's offset in it. The caller owns the descriptor and may close
 * it after the call; -1: the file is unavailable.
 */
int unwind_feed__answer_file(struct unwind_feed *f, struct image_id image, int fd, uint64_t base);

/* No process maps the image any more: its number may be reused. False: it is still being read. */
bool unwind_feed__forget(struct unwind_feed *f, struct image_id image);

/* Are all these mappings known, so that publishing them reads no file? */
bool unwind_feed__has_tables(const struct unwind_feed *f, struct mappings maps);

/* Is a table being built? */
bool unwind_feed__is_building(const struct unwind_feed *f);

/* Takes the tables built since the last call. 0 or -ENOMEM. */
int unwind_feed__take(struct unwind_feed *f);

/*
 * A copied stack ended at `address` for lack of a table: if the table is being built, gives it
 * priority. 0: it will not come; -EAGAIN: it will be ready soon; -ENOMEM. After unwind_feed__end()
 * waits instead; 1: the table is ready.
 */
int unwind_feed__await(struct unwind_feed *f, const struct fed_process *process, uint64_t address);
void unwind_feed__end(struct unwind_feed *f);

/*
 * If set, tables are read from the cache but not built. Requests meanwhile are deferred, and made
 * again when a stack misses the table.
 */
void unwind_feed__set_cached_only(struct unwind_feed *f, bool cached_only);

/* Readable when a table was built. */
int unwind_feed__fd(const struct unwind_feed *f);

void unwind_feed__stats(const struct unwind_feed *f, struct unwind_feed_stats *stats);

/* The file of an image; the first call requests it. Valid until the next call. 0, -ENOMEM. */
int unwind_feed__file(struct unwind_feed *f, const struct fed_process *process,
		      struct image_id image, struct fed_file **file);
/* The file mapped there; NULL: none that was ever placed. */
struct fed_file *unwind_feed__file_at(struct unwind_feed *f, const struct fed_process *process,
				      uint64_t address, struct image_id *image);
/* The descriptor of an image, until the next request; -EAGAIN: perhaps later; -ENOENT; -ENOMEM. */
int unwind_feed__descriptor(struct unwind_feed *f, struct image_id image);
/* Are tables built now, and has the user credit for it? */
bool unwind_feed__may_build(const struct unwind_feed *f, uint32_t user);
/* 0 or -ENOMEM; the result is in the file's state. */
int unwind_feed__request_table(struct unwind_feed *f, const struct fed_process *process,
			       struct fed_file *file, struct image_id image);
/* Counts code without rules, once for a file, however often its table is loaded. */
void unwind_feed__count_left(struct unwind_feed *f, struct fed_file *file, uint64_t bytes);
void unwind_feed__close_file(struct unwind_feed *f, struct fed_file *file);

#endif
