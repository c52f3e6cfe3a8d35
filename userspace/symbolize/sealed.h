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
#include <sys/resource.h>
#include <sys/types.h>

#include "base/outside_books.h"
#include "base/vec.h"
#include "helpers/child.h"
#include "helpers/message.h"
#include "stream/symbol_blob.h"
#include "symbolize/file_finder.h"
#include "symbolize/module.h"
#include "symbolize/symbol_answers.h"

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

/* How children work; zeroed but for the pool and the quotas, unless in tests. */
struct quota;
struct sealed_pool;
struct sealed_work {
	struct sealed_pool *pool;  /* children are kept there for the next run; NULL: none is */
	sealed_resolve_fn resolve; /* NULL: module_resolve() */
	_Atomic int64_t *large;	   /* where children of large files count, or NULL */
	struct quota *cpu;	   /* of QUOTA_SYMBOLS, for several runs; NULL: one for this run */
	uint64_t memory;	   /* bytes a child; 0: a quarter of what is available */
	unsigned int cpu_seconds;  /* a child; 0: by the size of its files */
	uint64_t wall_time;	   /* ns a child; 0: a multiple of its CPU time */
	uint64_t silence;	   /* ns; 0: that of its class */
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
 * A child's answers to its parent, in messages of helpers/message.h: pieces of a blob of
 * stream/symbol_blob.h with an answer for each address in turn, then a report (MESSAGE_DONE). The
 * parent checks answers as they come and keeps their bytes; one that our code cannot have sent ends
 * the child. A requested index follows in pieces, the last with MESSAGE_DONE; no bytes: no index.
 */

/* ---- the child's side ------------------------------------------------------------------------ */

/* Zeroed at first. */
struct sealed_writer {
	uint64_t flushed; /* when */
	struct symbol_blob blob;
	struct message_buffer message;
};

/* A symbol_sink_fn whose context is the writer. 0, -ENOMEM, or the error of writing. */
int sealed_writer__result(void *writer, size_t index, const struct symbol_result *result);
/* Sends the rest, then the report; frees memory. `error`: the result of resolving. */
int sealed_writer__end(struct sealed_writer *w, int error, const struct module_report *report);
/* Behind the report. 0, or the error of writing. */
int sealed_writer__index(struct sealed_writer *w, const void *data, size_t size);

/* ---- the parent's side ----------------------------------------------------------------------- */

struct sealed_answers {
	size_t expected; /* requested addresses */
	size_t results;	 /* … and are answered */
	VEC(char) bytes; /* checked answers, then a part of the next one */
	size_t checked;	 /* number of checked bytes */
	bool finished;	 /* the report has come */
	int error;	 /* in it */
	struct module_report report;
	bool takes_index; /* further messages are its pieces */
	VEC(char) index;  /* not checked */
	bool index_finished;
};

void sealed_answers__init(struct sealed_answers *a, size_t expected);
void sealed_answers__fini(struct sealed_answers *a);

/*
 * Take the next message. 0; -EBADMSG: no child sends that; -EFBIG: more than so many answers can
 * have; -ENOMEM. After an error it can only be freed.
 */
int sealed_answers__take(struct sealed_answers *a, const struct message_buffer *message);

/* Pass all results to the sink; addresses without one get none. What the sink returned. */
int sealed_answers__deliver(const struct sealed_answers *a, symbol_sink_fn sink, void *context);

/* One sealed child: from fork to the last byte of its answer. */

struct sealed_child_request {
	struct module_files files;
	const uint64_t *addresses; /* read before the call returns … */
	int addresses_fd;	   /* … and passed as a file in memory */
	size_t count;
	struct confine_options limits;
	sealed_resolve_fn resolve;
	bool keeps;	  /* by module__resolve(): it waits for sealed_child__request() … */
	bool wants_index; /* … or, if the module's index is wanted as well, sends it and ends */
};

/*
 * Send another request to a child that keeps its module and has answered. 0; negative errno: a part
 * may have been sent.
 */
int sealed_child__request(int socket, const uint64_t *addresses, size_t count, bool wants_index);
#define SEALED_QUESTION_MAX 8192u /* addresses, at most, of a further request */

/*
 * Sealed children that have answered and wait for further requests: opening a module, which reads
 * all its debug information, takes many times as long as more addresses. A child has one module.
 * The memory of all is limited. Each window has requests, so the child that saves the least time
 * for its memory ends first, not the one with the oldest request.
 */

/* A child that waits for a question, or works on one. */
struct kept_child {
	pid_t pid;
	int socket, listener;
	uint64_t used;	  /* ns of CPU time … */
	uint64_t opening; /* … of which until its first answer: what another one would cost */
};

/*
 * Has a keeper (helpers/keeper.h), if one can be started, that forks children from now on. They end
 * with the calling thread, so it must outlive them. NULL: no memory.
 */
struct sealed_pool *sealed_pool__new(size_t bytes);
void sealed_pool__free(struct sealed_pool *p);
/* Does it keep any? `p` may be NULL. */
bool sealed_pool__keeps(const struct sealed_pool *p);
/* Another limit; those beyond it end. */
void sealed_pool__limit(struct sealed_pool *p, size_t bytes);

/* Ends all that are kept: another child needs as much memory as they have. `p` may be NULL. */
void sealed_pool__make_room(struct sealed_pool *p);

/*
 * The child's pid; *socket is the caller's. The keeper forks it if it can; `p` may be NULL. Its
 * first message (MESSAGE_PROGRESS) has the descriptor for file requests, if the kernel supports it.
 */
pid_t sealed_pool__start(struct sealed_pool *p, const struct sealed_child_request *request,
			 int *socket);

/* False: there is none for these files. */
bool sealed_pool__take(struct sealed_pool *p, const struct symbol_key *key,
		       struct kept_child *child);
/* It is the pool's now, which may end it at once. */
void sealed_pool__put(struct sealed_pool *p, const struct symbol_key *key,
		      const struct kept_child *child);
/* Ends a child that is not the pool's, as end_process(); `status` and `usage` may be NULL. */
int sealed_pool__end(const struct kept_child *child, int *status, struct rusage *usage);
/* Ends those without a request for some time. */
void sealed_pool__tidy(struct sealed_pool *p);

/* ---- the files that a child requests while it works: .dwo files ------------------------------ */

/*
 * Answers one request of the listener, after poll(): the named file, if allowed, below the module's
 * root or below ours; or an error. A name beside /proc/self/fd/N is searched beside the module. 0,
 * or negative errno if the listener cannot be used any more.
 */
int sealed_files__answer(int listener, const struct sealed_job *job);

#endif
