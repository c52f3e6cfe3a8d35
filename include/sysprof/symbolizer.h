/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From (dso, address) to an inline chain of functions, files and lines.
 *
 * The symbolizer never uses a pid and never opens a path chosen by a process: it is given open files. So
 * it works for dead processes and deleted binaries, and it can run in a process without privileges.
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
	uint32_t
		copied_for; /* fd is a copy in memory of this user's file; 0: it is not, or root's */
	const char *path;   /* for messages */
	uint8_t build_id_size;
	const uint8_t *build_id;
	const char *release; /* DSO_KERNEL: as uname -r has it, or NULL */
};

struct symbolizer *symbolizer__new(void);
void symbolizer__free(struct symbolizer *s);
/*
 * From now on processes that read modules are forked by one that is forked now, and wait for more questions about what
 * they have read: for a symbolizer that is asked again and again. The calling thread must outlive them.
 */
void symbolizer__keep_readers(struct symbolizer *s);
/* So much memory may those that wait have together; bytes, SYMBOLIZER_READERS_BYTES at first. */
void symbolizer__limit_readers(struct symbolizer *s, size_t bytes);
#define SYMBOLIZER_READERS_BYTES ((size_t)24 << 20)

/* /proc/kallsyms in pieces of whole lines; to be called before the first kernel address is resolved. */
int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size);
/* What comes later. The text is whole lines. */
struct kallsyms_piece {
	bool is_reading; /* of all but the kernel's image, which replaces the one before; else symbols beside those */
	bool begins, ends; /* of a reading, which is in force when it has ended */
	const char *text;
	size_t size;
};
int symbolizer__change_kallsyms(struct symbolizer *s, const struct kallsyms_piece *piece);
/*
 * Were there kernel addresses without a name since the last call, or more symbols added than a new reading costs? Then
 * the kernel's modules should be read again.
 */
bool symbolizer__wants_modules(struct symbolizer *s);

/*
 * Resolve `count` distinct addresses of one dso, sorted ascending (file offsets for DSO_FILE and
 * DSO_VDSO, virtual addresses for DSO_KERNEL), in this process and from the mapped file only. Returns 0
 * and the outcome in *state: a damaged file or one without symbols is not an error, its addresses get no
 * frames. Negative errno: out of memory, or the error of the sink.
 */
int symbolizer__resolve(struct symbolizer *s, const struct symbolizer_dso *dso,
			const uint64_t *addresses, size_t count, symbol_sink_fn sink, void *context,
			enum symbol_state *state);

/* ---- many dsos ------------------------------------------------------------------------------- */

struct symbolizer_job {
	struct symbolizer_dso dso;
	const uint64_t *addresses; /* as for symbolizer__resolve() */
	size_t count;
	symbol_sink_fn sink;
	/* Called after the last address, with the fields below set. Nonzero stops. */
	int (*done)(void *context, const struct symbolizer_job *job);
	void *context; /* of both */

	enum symbol_state state;
	const char *
		lines_lost; /* why existing line information could not be read, a sentence; NULL: none was lost */
};

struct symbolizer_progress {
	size_t done, total;	  /* addresses */
	const char *file;	  /* being fetched or verified, or NULL */
	uint64_t bytes, of_bytes; /* of it */
};

struct symbolizer_options {
	bool cache; /* look up and keep answers on disk, by the files they came from */
	bool remember; /* keep some in memory, for the next call: it asks for other addresses of the same functions */
	struct outside_books *outside; /* where it is counted what limits leave out, or NULL */
	bool debuginfod;	       /* ask the servers of DEBUGINFOD_URLS for debug files */
	bool symbols_only; /* read no debug information: names from symbol tables, and lines that the cache has */
	/* Called now and then. Nonzero cancels: what is unresolved becomes CANCELLED. May be NULL */
	int (*progress)(void *context, const struct symbolizer_progress *progress);
	void *context;
};

/* Totals over all jobs; zeroed by the caller. */
struct symbolizer_counts {
	size_t modules, modules_cached; /* files, and those answered from the cache alone */
	uint64_t debug_files_fetched, debug_files_wrong, fetch_failures;
	uint64_t debug_files_refused; /* too large, or too many, to be verified by their CRC */
	uint64_t abandoned; /* processes that waited for a file system which does not answer */
	const char
		*fetch_error; /* the reason of the last failure, a clause; NULL: there was none */
	uint64_t cpu_time;    /* ns, of the sandboxed processes */
	uint64_t peak_memory; /* bytes, of the largest */
	bool cancelled;
};

/*
 * Resolve all jobs, with the separate debug files of their dsos. Files that belong to others are read by
 * sandboxed processes, as many at a time as there are idle CPUs. Sinks are called in the order of the jobs
 * and of their addresses: the result depends neither on the order in which processes finish nor on the
 * cache.
 */
int symbolizer__resolve_all(struct symbolizer *s, struct symbolizer_job *jobs, size_t count,
			    const struct symbolizer_options *options,
			    struct symbolizer_counts *counts);

#endif
