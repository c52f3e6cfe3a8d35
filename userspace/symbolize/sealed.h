/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modules resolved in children that can do nothing else: no capabilities, no new privileges, a uid of their own where
 * possible, limits of memory and CPU time, a seccomp filter. They get open files and addresses and
 * answer with locations over a socket. A crash, a limit or a hang in one costs that module's lines.
 *
 * The same children are the parallelism: as many at a time as there are idle CPUs. Users take turns, and what the children of one
 * user's files take in all has a limit, as what those of all users but root take (QUOTA_SYMBOLS). What a child may take is set aside
 * when it starts, and what it has not used is given back when it has ended.
 */
#ifndef SYMBOLIZE_SEALED_H
#define SYMBOLIZE_SEALED_H

#include <stddef.h>
#include <stdint.h>

#include "base/outside_books.h"
#include "symbolize/file_finder.h"
#include "symbolize/module.h"
#include "symbolize/sealed_private.h"

struct sealed_job {
	struct module_files files;
	uint64_t size; /* bytes of them; 0: fstat() says, for files that no other process has */
	struct file_finder *finder; /* opens the files that the child requests; NULL: none */
	int root_fd;		    /* for the .dwo files its DWARF names, or -1 */
	const char *path;	    /* of the module in there; NULL: it has none */
	uint32_t copied_for;	    /* as in struct symbolizer_dso */
	uint32_t user; /* the user that its children are charged to; 0: root, without a limit */
	struct outside_books *books;  /* where it is counted if it is left, or NULL */
	const struct symbol_key *key; /* of the files: a child of theirs may be kept; or NULL */
	bool wants_index; /* of the module, if it has a key; its answers do not depend on that */
	const uint64_t *addresses;
	size_t count;
	symbol_sink_fn sink; /* called in the parent, in order, when the job is done */
	void *context;
	/* filled before the sink is called */
	struct module_report report;
	uint64_t cpu_time;	/* ns, of its children */
	uint64_t peak_memory;	/* bytes, of the larger one */
	unsigned int abandoned; /* of its children: did not end when they were killed */
	/* after the run; the caller's. NULL: there is none */
	struct symbol_index *index;
};

/* Polled while children work; nonzero ends them all: what is not resolved then is CANCELLED. */
typedef int (*sealed_poll_fn)(void *context, size_t done, size_t total);

/* How children work; zeroed but for the pool, unless in tests. */
struct sealed_pool;
struct sealed_work {
	struct sealed_pool *pool;  /* children are kept there for the next run; NULL: none is */
	sealed_resolve_fn resolve; /* NULL: module_resolve() */
	_Atomic int64_t *large;	   /* where children of large files count, or NULL */
	uint64_t memory;	   /* bytes a child; 0: a quarter of what is available */
	unsigned int cpu_seconds;  /* a child; 0: by the size of its files */
	uint64_t wall_time;	   /* ns a child; 0: a multiple of its CPU time */
	uint64_t stuck_time;	   /* ns without any sign of life; 0: some seconds */
	/* of CPU, of a user, of all but root; 0: by the table of quotas */
	unsigned int user_seconds, others_seconds;
};

/*
 * Run all jobs, big ones first, `parallel` at a time (0: the idle CPUs). Sinks are called in the order of the jobs, so that
 * the result does not depend on which child was quicker. A job whose child dies is resolved by symbol table alone
 * in another child. 0, or the first error of a sink, or -ENOMEM.
 */
int sealed_run(struct sealed_job *jobs, size_t count, unsigned int parallel, sealed_poll_fn poll,
	       void *context, const struct sealed_work *work);

#endif
