/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From (dso, address) to an inline chain of functions, files and lines.
 *
 * The symbolizer uses no pid and opens no path chosen by a process: it is given open files. So it
 * works for dead processes and deleted binaries, and can run without privileges.
 */
#ifndef SYSPROF_SYMBOLIZER_H
#define SYSPROF_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>
#include <sysprof/symbol_result.h>

struct symbolizer;
struct outside_books;

struct symbolizer_dso {
	enum dso_kind kind;
	int fd;	       /* the mapped file, -1 if unavailable; owned by the caller */
	uint64_t base; /* offset of the dso in the file: not 0 in an archive */
	int root_fd;   /* its process's root directory, searched first for debug files, or -1 */
	uint32_t copied_for; /* the user of whose file `fd` is a copy in memory; 0: none, or root */
	const char *path;    /* for messages */
	uint8_t build_id_size;
	const uint8_t *build_id;
	const char *release; /* DSO_KERNEL: as uname -r has it, or NULL */
};

struct symbolizer *symbolizer__new(void);
void symbolizer__free(struct symbolizer *s);
/*
 * Once, and early: forks the keeper of the child processes that read modules while this process is
 * small, and for calls with `remember` the process that searches debug files. The calling thread
 * must outlive them.
 */
void symbolizer__start_helpers(struct symbolizer *s, bool remember);

/* /proc/kallsyms in pieces of whole lines, before the first kernel address is resolved. */
int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size);
/* A later piece of /proc/kallsyms, of whole lines, in the order of time. */
struct kallsyms_piece {
	uint64_t time; /* CLOCK_MONOTONIC ns; of a reading: when it began */
	/* a reading of all symbols but the kernel image's; else code that came or has gone */
	bool is_reading;
	bool has_gone;
	bool begins, ends; /* first, last piece of a reading, which takes effect at its end */
	const char *text;
	size_t size;
};
int symbolizer__change_kallsyms(struct symbolizer *s, const struct kallsyms_piece *piece);
/*
 * Kernel code of before `time` is not looked up any more. Read the kernel's modules again? Yes if
 * kernel addresses had no name since the last call.
 */
bool symbolizer__end_window(struct symbolizer *s, uint64_t time);

/* When there are samples of kernel code, CLOCK_MONOTONIC ns. */
struct kernel_times {
	uint64_t from, until;
};

/*
 * Report the function at a kernel address to the sink, as number `index`: the one that was there
 * at `from`. Readings of kallsyms that disagree about the time up to `until` give no name. What the
 * sink returned.
 */
int symbolizer__kernel_function(struct symbolizer *s, size_t index, uint64_t address,
				const struct kernel_times *times, symbol_sink_fn sink,
				void *context);

/* A source file, whose path is that in lines. */
struct symbolizer_source {
	int root_fd; /* where it was searched; -1: in our own root, for modules of all roots */
	const char *path;
	const char *text; /* NULL: it could not be read, or this root is unknown */
	size_t size;
	enum source_state state;
};

/* A source file that a runtime names. */
struct symbolizer_script {
	const char *path; /* absolute, or a file URL; as lines have it */
	int root_fd;	  /* of the process; -1: unknown */
	uint32_t user;	  /* whose word the name is: tenant_user() of the process */
	uint64_t started; /* its code was not loaded before, ns since the epoch; 0: unknown */
	uint64_t
		samples; /* of the hottest place in it, in the upper half those as the innermost one */
};

/* Why the text of a source file is not there. X(ENUM, what follows a number of them) */
#define SOURCE_LOSSES(X)                                                                           \
	X(ABSENT, "not there")                                                                     \
	X(FORBIDDEN, "not readable for those who can have written the debug information")          \
	X(LINK, "with a link in their path")                                                       \
	X(NO_FILE, "no regular files, or empty")                                                   \
	X(LARGE, "larger than 2 MiB")                                                              \
	X(BINARY, "with NUL bytes")                                                                \
	X(GONE, "of processes that were gone")                                                     \
	X(SEVERAL, "of several root directories, with other texts")                                \
	X(LIMIT, "not searched: a file system did not answer, or a limit was reached")             \
	X(OTHER, "that could not be read")

enum source_loss {
#define X(id, text) SOURCE_LOSS_##id,
	SOURCE_LOSSES(X)
#undef X
		SOURCE_LOSS_COUNT
};

/* Files below `from` in lines are opened below `to` of our own root. */
struct source_map {
	const char *from; /* its first from_length bytes */
	size_t from_length;
	const char *to;
};
#define SOURCE_MAPS_MAX 16

struct symbolizer_job {
	struct symbolizer_dso dso;
	/* Distinct, ascending: file offsets (DSO_FILE, DSO_VDSO), addresses (DSO_KERNEL). */
	const uint64_t *addresses;
	const uint32_t *samples; /* number of samples that each is in; NULL: all of them */
	const uint32_t
		*self; /* the number of samples that each is the innermost of; as `samples` */
	size_t count;
	struct kernel_times times; /* DSO_KERNEL */
	symbol_sink_fn sink;
	/* Called after the last address, with the fields below set. Nonzero stops. */
	int (*done)(void *context, const struct symbolizer_job *job);
	/*
	 * With options.code_share, before `done`: machine code of hot functions and its lines, as
	 * events of stream/code_events.h, checked. dso is 0; in header.time are the samples of the
	 * function, in the upper half those that it was the innermost function of. NULL: not wanted.
	 * Nonzero stops.
	 */
	int (*code)(void *context, const void *events, size_t size);
	/* The text of a source file of that code; see options.sources. NULL: not wanted. */
	int (*source)(void *context, const struct symbolizer_source *source);
	void *context; /* of all */

	enum symbol_state state;
	const char *
		lines_lost; /* why line information was not read, a sentence; NULL: none was lost */
};

struct symbolizer_progress {
	size_t done, total;	  /* addresses */
	const char *file;	  /* being fetched or verified, or NULL */
	uint64_t bytes, of_bytes; /* of it */
};

struct symbolizer_options {
	bool cache;    /* look up and keep answers on disk, by the files they came from */
	bool remember; /* keep answers in memory, for other addresses of their functions, later */
	struct outside_books *outside; /* counts what limits leave out, or NULL */
	bool debuginfod;	       /* query the servers of DEBUGINFOD_URLS for debug files */
	bool symbols_only; /* read no debug information: names from symbols, lines from the cache */
	/*
	 * With `remember`, to save time: a module is read only for important addresses. Others that
	 * no cache has get no name, until many of the module wait: then it is read, for an index.
	 * Important addresses are in one of a thousand samples; in a module that was not read
	 * before, in one of a hundred and at least two.
	 */
	bool put_off_rare, put_off_new;
	uint64_t samples; /* of all jobs */
	/* Machine code of functions with at least this share of `samples`; 0: of none. */
	double code_share;
	uint64_t code_size; /* bytes of events that it, its lines and sources may take */
	/* Sources of this code, 16 MB at most, those of the hottest functions first. */
	bool sources;
	struct source_map source_maps[SOURCE_MAPS_MAX]; /* up to the first without `from` */
	const struct symbolizer_script *scripts;	/* with `sources` */
	size_t script_count;
	int (*script_source)(void *context, const struct symbolizer_source *source);
	void *script_context;
	/* Number of children that read large files; they wait for others and builders. Or NULL */
	_Atomic int64_t *large_children;
	/* Called now and then. Nonzero cancels: the rest becomes CANCELLED. May be NULL */
	int (*progress)(void *context, const struct symbolizer_progress *progress);
	void *context;
};

/* Totals over all jobs; zeroed by the caller. */
struct symbolizer_counts {
	size_t modules, modules_cached; /* files, and those answered from the cache alone */
	size_t put_off;			/* addresses */
	size_t searched;		/* requests to the process that opens debug files */
	uint64_t debug_files_fetched, debug_files_wrong, fetch_failures;
	uint64_t debug_files_refused; /* too large, or too many, to be verified by their CRC */
	uint64_t abandoned;	      /* children abandoned because a file system does not answer */
	const char
		*fetch_error; /* the reason of the last failure, a clause; NULL: there was none */
	size_t sources_left[SOURCE_LOSS_COUNT];
	uint64_t cpu_time;    /* ns, of the sandboxed processes */
	uint64_t peak_memory; /* bytes, of the largest */
	bool cancelled;
};

/*
 * Resolve all jobs, with the separate debug files of their dsos. Sandboxed processes read the files
 * of others, one per idle CPU. Sinks are called in the order of jobs and addresses, so the result
 * depends neither on which process finishes first nor on the cache. 0; negative errno: out of
 * memory, or a sink's error. Damaged files and those without symbols are no error: no frames.
 */
int symbolizer__resolve_all(struct symbolizer *s, struct symbolizer_job *jobs, size_t count,
			    const struct symbolizer_options *options,
			    struct symbolizer_counts *counts);

#endif
