/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input of commands: recordings, or profiles in any format of formats/in/, by the first bytes of
 * each file; "-" is standard input. Several are one profile (profile/profile_merge.h).
 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

#include "cli/commands.h"
#include "compare/time_span.h"
#include "filter/filter.h"
#include "filter/filter_apply.h"
#include "window/replay.h"

/* A profile that was read, and what owns it. */
struct input {
	const struct profile *profile;
	struct windows *windows;	 /* a recording */
	struct profile_builder *builder; /* any other format */
	struct profile_merge *merge;	 /* several files */
	struct filtered *filtered;	 /* of one of them */
};

struct input_options {
	struct replay_options replay;
	bool waits;	     /* require waits */
	unsigned int root;   /* enum import_root */
	const char *process; /* import_request.process */
	/* Of an agent's windows, in a directory. */
	const char *service;
	struct time_span span; /* `until` 0: not given */
	struct profile_filter filter;
};

/* A row of an option table: --root of the input_options at that offset. */
#define INPUT_ROOT_ROW(offset)                                                                     \
	{                                                                                          \
		"root", .has_value = true, .take = option_word, .field = (offset),                 \
			.words = input_root_words, .expected = "auto, thread, process or frame"    \
	}
extern const char *const input_root_words[];

/* A row of an option table: --span of the input_options at that offset. */
#define INPUT_SPAN_ROW(offset)                                                                     \
	{                                                                                          \
		"span", .has_value = true, .take = option_span,                                    \
			.field = (offset) + offsetof(struct input_options, span),                  \
			.expected = "a span of time, as in '-1h' or '2026-11-26 10:00+30m'"        \
	}
take_option_fn option_span; /* a struct time_span */

/* Do the words and the options go together? 0, or EXIT_USAGE after a message. */
int inputs__check(const struct command *command, struct input_options *options, char *const *paths,
		  size_t count);

/*
 * With a span of time, --service names the service of a directory's windows, else it is a filter.
 * NULL: not given. 0, or EXIT_USAGE after a message: several, or a pattern.
 */
int inputs__service(const struct command *command, const struct profile_filter *filter,
		    const char **service);

/* Adds the clauses of `filter` but --service to `rest`. 0 or negative errno with `failure`. */
int inputs__filter_of_windows(const struct profile_filter *filter, struct profile_filter *rest,
			      struct failure *failure);

/* Reads all files as one profile. As input__open(). */
int inputs__open(char *const *paths, size_t count, const struct input_options *options,
		 struct input *input);

/* For people: the file, how many there are, or the span of time. The caller frees; NULL: no memory. */
char *inputs__name(char *const *paths, size_t count, const struct input_options *options);
/* Rows of an option table: the clauses of the filter of the input_options at that offset. */
#define INPUT_FILTER_ROW(kind, name, offset)                                                       \
	{                                                                                          \
		name, .has_value = true, .take = input__take_clause,                               \
		      .field = (offset) + offsetof(struct input_options, filter), .min = (kind)    \
	}
#define INPUT_FILTER_ROWS(offset)                                                                  \
	INPUT_FILTER_ROW(FILTER_PROCESS, "process", offset),                                       \
		INPUT_FILTER_ROW(FILTER_THREAD, "thread", offset),                                 \
		INPUT_FILTER_ROW(FILTER_SERVICE, "service", offset),                               \
		INPUT_FILTER_ROW(FILTER_CONTAINER, "container", offset),                           \
		INPUT_FILTER_ROW(FILTER_UNIT, "unit", offset),                                     \
		INPUT_FILTER_ROW(FILTER_USER, "user", offset),                                     \
		INPUT_FILTER_ROW(FILTER_CPU, "cpu", offset),                                       \
		INPUT_FILTER_ROW(FILTER_STATE, "state", offset),                                   \
		INPUT_FILTER_ROW(FILTER_FOCUS, "focus", offset),                                   \
		INPUT_FILTER_ROW(FILTER_IGNORE, "ignore", offset),                                 \
		INPUT_FILTER_ROW(FILTER_HIDE, "hide", offset),                                     \
		INPUT_FILTER_ROW(FILTER_SHOW_FROM, "show-from", offset),                           \
		INPUT_FILTER_ROW(FILTER_COLLAPSE, "collapse", offset)
take_option_fn input__take_clause;

/* Of the help texts. */
#define INPUT_FILTER_HELP                                                                                        \
	"Parts of it, in any number (docs/FILTERS.md); FILE@FROM-TO is a slice of time, as in @10s-20s, @-5s,\n" \
	"FILE@NAME the time of markers:\n"                                                                       \
	"      --process NAME    processes by name, pattern (*, ?, []) or pid; !NAME: all but these\n"           \
	"      --thread NAME     threads, likewise, or by tid\n"                                                 \
	"      --service NAME    processes of services\n"                                                        \
	"      --container NAME  processes in containers, by name or id (12 or more digits)\n"                   \
	"      --unit NAME       of units of systemd\n"                                                          \
	"      --user NAME       of users\n"                                                                     \
	"      --cpu LIST        what ran on these CPUs, as in 0,2-4\n"                                          \
	"      --state LIST      waits by state, as in lock,disk; running: what used CPU time\n"                 \
	"      --focus RE        samples with a frame that matches, by name, source or binary file\n"            \
	"      --ignore RE       samples without such a frame\n"                                                 \
	"      --hide RE         without the frames that match\n"                                                \
	"      --show-from RE    from the outermost frame that matches\n"                                        \
	"      --collapse RE     adjacent frames that match are one; dso: those of one file\n"

/*
 * "FILE@10s-20s", "FILE@NAME" is a slice of FILE, unless a file has that very name or none is called FILE: takes
 * it off the path and adds it to the filter. 0, or negative errno with `failure`.
 */
int input__take_slice(char *path, struct profile_filter *filter, struct failure *failure);

/*
 * What the filter keeps becomes the input. A clause that keeps nothing is no failure; it is printed.
 * `name` is for messages. 0 or negative errno with `failure`.
 */
int input__filter(struct input *input, const char *name, const struct profile_filter *filter,
		  struct failure *failure);

/*
 * Read a file. Prints a failure, and notes about flaws of a recording. 0 or
 * negative errno; on failure there is nothing to close.
 */
int input__open(const char *path, const struct input_options *options, struct input *input);
/* The bytes of a profile of our agent; `name` is for messages. */
int input__read(const char *name, const void *bytes, size_t size, struct input *input);
void input__close(struct input *input); /* an all-zero one is fine */

/* The data of a profile that the file made of it lacks, one line each; `path`: of that file. */
void print_left_out(const char *path, const struct export_left_out *left_out);

#endif
