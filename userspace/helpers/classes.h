/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The privileges and limits of each kind of process beside the collector: one row a class. confine() applies a row;
 * SECURITY.md describes the rows, and tests/e2e/helper_classes.py compares /proc with its own table of what to expect,
 * helper_classes.json.
 */
#ifndef HELPERS_CLASSES_H
#define HELPERS_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

enum helper_class_id {
	HELPER_KEEPER,	      /* forks readers or watchers */
	HELPER_SEALED_KEEPER, /* forks builders or sealed children */
	HELPER_READER,	      /* calls that a tenant can hold up */
	HELPER_WATCHER,	      /* follows perf maps and jitdumps */
	HELPER_JVM_CLIENT,    /* requests a JVM's perf map */
	HELPER_FINDER,	      /* opens debug files */
	HELPER_DOWNLOADER,    /* the same, with debug servers and their cache */
	HELPER_BUILDER,	      /* builds an unwind table */
	HELPER_SYMBOLS,	      /* reads ELF and DWARF of a module */
	HELPER_SERVER,	      /* serves a profile */
	HELPER_VISITOR,	      /* visits threads that do not run */
	HELPER_CLASS_COUNT
};

enum helper_user {
	HELPER_USER_SAME, /* the parent's */
	HELPER_USER_OWN,  /* a uid that no other process has */
	HELPER_USER_GIVEN /* that of `struct confine_options` */
};

/* System calls. The process enters its filter once it has its files (helpers/filter.h). */
enum helper_filter {
	HELPER_FILTER_NONE,
	HELPER_FILTER_WORKER, /* read an open file, write an answer */
	HELPER_FILTER_SEALED, /* as that, and more memory files; the parent opens files */
	HELPER_FILTER_COUNT
};

struct helper_class {
	const char *name;      /* of the process, 15 bytes */
	uint64_t capabilities; /* bits that it keeps, as far as the parent has them */
	enum helper_user user;
	enum helper_filter filter;
	bool empty_root;
	bool first_to_go;    /* if the machine runs out of memory */
	bool shows_debug;    /* writes debug messages, where they are wanted, to standard error */
	bool as_parent;	     /* keeps user, root, capabilities, standard streams and signals */
	bool unconfined;     /* runs all the same if confine() fails, and is informed of it */
	bool read_by_parent; /* its parent reads its memory, also without CAP_SYS_PTRACE */
	uint64_t memory;     /* bytes on top of what it has when it begins; 0: no limit */
	unsigned int cpu_seconds; /* 0: no limit */
	unsigned int files;	  /* descriptors: RLIMIT_NOFILE; 0: as the parent */
	/* Who waits for it abandons it after so many ns. 0: no limit. */
	uint64_t silence;   /* without progress */
	uint64_t wall_time; /* for one request, whatever its progress */
	unsigned int hangs; /* of a pool: that one owner may cause before it is banned */
};

extern const struct helper_class helper_classes[HELPER_CLASS_COUNT];

#endif
