/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Privileges and limits of each kind of process beside the collector. confine() applies a row,
 * SECURITY.md describes them, tests/e2e/helper_classes.py compares /proc with helper_classes.json.
 */
#ifndef TENANTS_CLASSES_H
#define TENANTS_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

enum helper_class_id {
	HELPER_READER_KEEPER,  /* forks readers */
	HELPER_WATCHER_KEEPER, /* forks watchers */
	HELPER_SEALED_KEEPER,  /* forks builders or sealed children */
	HELPER_READER,	       /* makes calls that a tenant can hold up */
	HELPER_WATCHER,	       /* follows perf maps and jitdumps */
	HELPER_JVM_CLIENT,     /* requests a JVM's perf map */
	HELPER_FINDER,	       /* opens debug files */
	HELPER_DOWNLOADER,     /* the same, with debug servers and their cache */
	HELPER_BUILDER,	       /* builds an unwind table */
	HELPER_SYMBOLS,	       /* reads ELF and DWARF of a module */
	HELPER_PERF_READER,    /* reads a perf.data file */
	HELPER_SERVER,	       /* serves a profile */
	HELPER_VISITOR,	       /* visits threads that do not run */
	HELPER_CLASS_COUNT
};

enum helper_user {
	HELPER_USER_SAME, /* the parent's */
	HELPER_USER_OWN,  /* a uid of its own */
	HELPER_USER_GIVEN /* of `struct confine_options` */
};

/* System calls. The process enters its filter once it has its files (tenants/filter.h). */
enum helper_filter {
	HELPER_FILTER_NONE,
	HELPER_FILTER_WORKER, /* read an open file, write an answer */
	HELPER_FILTER_SEALED, /* the same, and make memory files; the parent opens files */
	HELPER_FILTER_COUNT
};

struct helper_class {
	const char *name;      /* of the process, 15 bytes */
	uint64_t capabilities; /* bits that it keeps if the parent has them */
	enum helper_user user;
	enum helper_filter filter;
	bool empty_root;
	bool first_to_go;    /* first victim of the OOM killer */
	bool shows_debug;    /* writes debug messages, if enabled, to standard error */
	bool as_parent;	     /* keeps user, root, capabilities, standard streams and signals */
	bool unconfined;     /* runs even if confine() fails; child_self.confined has the error */
	bool reaped;	     /* a child of its owner, even if a keeper forks it */
	bool read_by_parent; /* its parent reads its memory, even without CAP_SYS_PTRACE */
	uint64_t memory;     /* bytes beyond those at its start; 0: no limit */
	unsigned int cpu_seconds; /* 0: no limit */
	unsigned int files;	  /* descriptors: RLIMIT_NOFILE; 0: as the parent */
	/* ns after which its owner abandons it; 0: no limit */
	uint64_t silence;   /* without progress */
	uint64_t wall_time; /* for one request, whatever its progress */
	unsigned int hangs; /* that ban an owner; 0: see its parent */
};

extern const struct helper_class helper_classes[HELPER_CLASS_COUNT];

#endif
