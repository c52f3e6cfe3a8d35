/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files a run leaves: those of `-o`, and writing them.
 *
 * All of them are written under temporary names first and renamed once every one is whole, so that
 * a failure leaves none of them behind. The recording itself (.sysprof) is not here: it grows while
 * sampling, see stream/recording_file.h.
 */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

#include "base/log.h"
#include "base/output_file.h"
#include "cli/commands.h"

struct output {
	char *path;
	const struct exporter *exporter; /* NULL: the recording itself */
	enum output_name name;		 /* chosen: the user gave no -o */
	struct output_place *place;	 /* where it goes; NULL: not decided yet */
};

enum merge_choice { MERGE_NONE, MERGE_PROCESS };

/* The row of --merge-threads of an option table: of the outputs at that offset. */
#define OUTPUTS_MERGE_ROW(offset)                                                                  \
	{                                                                                          \
		"merge-threads", .has_value = true, .take = option_word,                           \
				 .field = (offset) + offsetof(struct outputs, merge_threads),      \
				 .words = outputs_merge_words, .expected = "process, or none"      \
	}
extern const char *const outputs_merge_words[];

struct outputs {
	struct output *data;
	size_t count, capacity;
	bool lines;  /* --lines */
	bool waits;  /* --wall: where a format has them only if they are requested */
	bool parked; /* --parked: those of parked threads as well */
	enum merge_choice merge_threads; /* --merge-threads: in formats with one thread a file */
	uint32_t thread; /* --thread TID, for formats with one thread a file; 0: the busiest */
};

/*
 * -o of a command: its field is the outputs, its value PATH, or FORMAT:PATH. -EINVAL with a
 * sentence: unknown suffix, "-" without a format, two recordings, a path given twice.
 */
take_option_fn outputs__take;
/* The output without -o: a file of that name, which must not be a link of another user. */
int outputs__add_default(struct outputs *outputs, const char *name, struct failure *failure);
void outputs__fini(struct outputs *outputs);

/* Path of the recording, if one was requested, or NULL. */
const char *outputs__recording(const struct outputs *outputs);
/* Does one of the files have machine code and sources? */
bool outputs__have_code(const struct outputs *outputs);
/* It is at another path than requested, which the outputs take over; prints a warning. */
void outputs__recording_is_at(struct outputs *outputs, char *path);

/*
 * Can every file be created at its path? Tried before sampling: a typo must not cost a recording.
 * It also decides where each file goes, whatever happens to links and directories later. Prints a
 * warning about directories in which others can replace files.
 */
int outputs__check(struct outputs *outputs, struct failure *failure);

struct written_file {
	char *path;
	const struct exporter *exporter;
	bool sibling;		  /* of the file before it: another thread */
	struct output_file *file; /* NULL: it is whole */
	bool in_place;
};

struct written_files {
	struct written_file *data;
	size_t count, capacity;
	size_t threads_left_out; /* of one-thread formats: threads without a file of their own */
};

/*
 * Write all of them, or none. If a directory was made at a name, the file gets another one, with a
 * warning. `written` (freed by written_files__fini) lists them, with the siblings of one-thread
 * formats. Negative errno with a sentence.
 */
int outputs__write(struct outputs *outputs, const struct profile *profile,
		   struct written_files *written, struct failure *failure);
void written_files__fini(struct written_files *written);
#define LEFT_OUT_SIZE 160
/* What to say about the threads (`merged`: processes) without a file. False: each has one. */
bool written_files__left_out(const struct written_files *written, bool merged,
			     char text[LEFT_OUT_SIZE]);

/* A file of a format, to a stream. *size: without compression; 0: unknown. 0 or negative errno. */
int outputs__write_format(const struct exporter *exporter, struct export_request request, bool gzip,
			  FILE *out, uint64_t *size);
/* Compressed, if the path ends in .gz and the format may be. */
bool outputs__are_compressed(const struct exporter *exporter, const char *path);

#endif
