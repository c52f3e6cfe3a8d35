/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From (dso, address) to an inline chain of functions, files and lines.
 *
 * The symbolizer never sees a pid, and opens nothing by a name that a process chose: it is given
 * open files. So a dead process or a deleted binary is no problem, and it can run in a process of
 * its own without privileges.
 */
#ifndef SYSPROF_SYMBOLIZER_H
#define SYSPROF_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct symbolizer;

struct symbolizer_dso {
	enum dso_kind kind;
	int fd;	       /* the mapped file, -1 where it is not to be had; stays the caller's */
	uint64_t base; /* where the dso begins in it: not 0 within an archive */
	int root_fd; /* its process's root directory (debug files are sought there first), or -1 */
	const char *path; /* for messages */
	uint8_t build_id_size;
	const uint8_t *build_id;
	const char *release; /* DSO_KERNEL: as uname -r has it, or NULL */
};

struct symbol_frame {
	const char *function; /* demangled, never NULL */
	uint64_t
		function_address; /* ELF virtual address (kernel: address); PROFILE_UNKNOWN_ADDRESS */
	uint64_t function_size;	  /* 0 unknown */
	const char *file;	  /* of the executing line, NULL unknown */
	uint32_t line, column;	  /* 1-based, 0 unknown */
	const char *definition_file;
	uint32_t definition_line, definition_column;
};

struct symbol_result {
	uint64_t elf_address; /* PROFILE_UNKNOWN_ADDRESS where no segment covers the offset */
	const struct symbol_frame *frames; /* innermost first */
	size_t frame_count;		   /* 0: no symbol covers the address */
};

/* Called once for each address, in order; `result` is valid during the call. Nonzero stops. */
typedef int (*symbol_sink_fn)(void *context, size_t index, const struct symbol_result *result);

struct symbolizer *symbolizer__new(void);
void symbolizer__free(struct symbolizer *s);

/* Whole lines of /proc/kallsyms, piece by piece, before the first kernel address is asked for. */
int symbolizer__add_kallsyms(struct symbolizer *s, const char *text, size_t size);

/*
 * Resolve `count` distinct addresses of one dso, sorted ascending (file offsets for DSO_FILE and
 * DSO_VDSO, virtual addresses for DSO_KERNEL), in this process and from its mapped file alone. Returns 0
 * with *state saying how it went: a file that is damaged or has no symbols is no error, its addresses
 * come with no frames. Negative errno: no memory, or what the sink returned.
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
	/* After the last address, with the fields below filled. Nonzero stops. */
	int (*done)(void *context, const struct symbolizer_job *job);
	void *context; /* of both */

	enum symbol_state state;
	const char
		*lines_lost; /* why lines are missing, a sentence; NULL: none are that were there */
};

struct symbolizer_progress {
	size_t done, total;	  /* addresses */
	const char *file;	  /* that is being fetched or verified, or NULL */
	uint64_t bytes, of_bytes; /* of it */
};

struct symbolizer_options {
	bool cache;	 /* look up and keep answers on disk, by build-id */
	bool debuginfod; /* ask the servers of DEBUGINFOD_URLS for debug files */
	/* Called now and then. Nonzero cancels: what is unresolved becomes CANCELLED. May be NULL */
	int (*progress)(void *context, const struct symbolizer_progress *progress);
	void *context;
};

/* What became of it all; zeroed by the caller. */
struct symbolizer_counts {
	size_t modules, modules_cached; /* files, and those that nobody had to look at */
	uint64_t debug_files_fetched, debug_files_wrong, fetch_failures;
	const char
		*fetch_error; /* why the last of these failures, a clause; NULL: there was none */
	uint64_t cpu_time;    /* ns, of the sealed processes */
	uint64_t peak_memory; /* bytes, of the largest */
	bool cancelled;
};

/*
 * Resolve all jobs, strangers' files in sealed processes, as many at a time as there are idle CPUs, with
 * the separate debug files that belong to them. Sinks are called in the order of the jobs and of their
 * addresses: the result depends neither on which process was quicker nor on the cache.
 */
int symbolizer__resolve_all(struct symbolizer *s, struct symbolizer_job *jobs, size_t count,
			    const struct symbolizer_options *options,
			    struct symbolizer_counts *counts);

#endif
