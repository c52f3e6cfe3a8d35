/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modules resolved in sandboxed children: no capabilities, no new privileges, a uid of their own if
 * possible, limits of memory and CPU time, a seccomp filter. They get open files and addresses and
 * answer with locations over a socket. A crash, limit or hang of one costs its module's lines.
 *
 * As many children run as there are idle CPUs. Users take turns. CPU time is limited for one user's
 * files and for those of all users but root (QUOTA_SYMBOLS), in a run and in all runs with one
 * quota. What a child may take is set aside at its start, and the rest returned at its end.
 */
#ifndef SYMBOLIZE_SEALED_H
#define SYMBOLIZE_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "symbolize/file_finder.h"
#include "symbolize/module.h"
#include "tenants/child.h"
#include "tenants/message.h"
#include "tenants/outside_books.h"

/* The work of a child: module_resolve(), but for tests. */
typedef int (*sealed_resolve_fn)(const struct module_files *files, const uint64_t *addresses,
				 size_t count, symbol_sink_fn sink, void *context,
				 struct module_report *report);

struct sealed_job {
	struct module_files files;
	uint64_t size; /* bytes of them; 0: fstat() says, for files that no other process has */
	struct file_finder *finder; /* opens the files that the child requests; NULL: none */
	int root_fd;		    /* for the .dwo files its DWARF names, or -1 */
	const char *path;	    /* of the module in there; NULL: it has none */
	uint32_t user; /* the user that its children are charged to; 0: root, without a limit */
	struct outside_books *books; /* where it is counted if it is left, or NULL */
	bool wants_index;	     /* of the module; its answers do not depend on that */
	const uint64_t *addresses;
	size_t count;
	/* of functions in at least code_least samples the machine code is wanted, too; 0: of none */
	const struct code_address *code_addresses;
	size_t code_count;
	uint32_t code_least;
	symbol_sink_fn sink; /* called in the parent, in order, when the job is done */
	void *context;
	/* filled before the sink is called */
	struct module_report report;
	struct debug_writers writers; /* of the files that the child requested */
	uint64_t cpu_time;	      /* ns, of its children */
	uint64_t peak_memory;	      /* bytes, of the larger one */
	unsigned int abandoned;	      /* of its children: did not end when they were killed */
	/* after the run; the caller's. NULL: there is none */
	struct symbol_index *index;
	char *code; /* events of module__code(), checked */
	size_t code_size;
};

/* Polled while children work; nonzero ends them all: what is not resolved then is CANCELLED. */
typedef int (*sealed_poll_fn)(void *context, size_t done, size_t total);

/* How children work; zeroed but for the keeper and the quotas, unless in tests. */
struct quota;
struct sealed_keeper;
struct sealed_work {
	struct sealed_keeper *keeper; /* forks the children; NULL: this process does */
	sealed_resolve_fn resolve;    /* NULL: module_resolve() */
	_Atomic int64_t *large;	      /* where children of large files count, or NULL */
	struct quota *cpu;	  /* of QUOTA_SYMBOLS, for several runs; NULL: one for this run */
	uint64_t memory;	  /* bytes a child; 0: a quarter of what is available */
	unsigned int cpu_seconds; /* a child; 0: by the size of its files */
	uint64_t wall_time;	  /* ns a child; 0: a multiple of its CPU time */
	uint64_t silence;	  /* ns; 0: that of its class */
};

/*
 * Run all jobs, big ones first, `parallel` at a time (0: the idle CPUs). Sinks are called in the
 * order of the jobs, whichever child is quicker. A job whose child dies is resolved by symbol table
 * alone in another child. 0, or the first error of a sink, or -ENOMEM.
 */
int sealed_run(struct sealed_job *jobs, size_t count, unsigned int parallel, sealed_poll_fn poll,
	       void *context, const struct sealed_work *work);

/* ---- the parts: what a child and its parent send --------------------------------------------- */

/*
 * A child's answers to its parent, in messages of tenants/message.h: pieces of a blob of
 * stream/symbol_blob.h with an answer for each address in turn, then a report (MESSAGE_DONE). The
 * parent checks answers as they come and keeps their bytes; one that our code cannot have sent ends
 * the child. Requested machine code follows, as events in pieces, the last with MESSAGE_DONE; then a
 * requested index, in the same way; no bytes: no index.
 */

/* ---- the parent's side ----------------------------------------------------------------------- */

struct sealed_answers {
	size_t expected; /* requested addresses */
	size_t results;	 /* … and are answered */
	VEC(char) bytes; /* checked answers, then a part of the next one */
	size_t checked;	 /* number of checked bytes */
	bool finished;	 /* the report has come */
	int error;	 /* in it */
	struct module_report report;
	bool takes_code; /* the next messages are its pieces */
	VEC(char) code;	 /* not checked */
	bool code_finished;
	bool takes_index; /* further messages are its pieces */
	VEC(char) index;  /* not checked */
	bool index_finished;
};

/* One sealed child: from fork to the last byte of its answer. */

struct sealed_child_request {
	struct module_files files;
	const uint64_t *addresses; /* read before the call returns … */
	int addresses_fd;	   /* … and passed as a file in memory */
	size_t count;
	struct confine_options limits;
	sealed_resolve_fn resolve;
	const struct code_address *code_addresses; /* as `addresses` */
	int code_fd;
	size_t code_count;
	uint32_t code_least;
	bool wants_index; /* behind the answers */
};

#endif
