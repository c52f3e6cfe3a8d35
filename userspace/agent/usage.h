/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of the agent, measured by itself: CPU time and memory of this process, its descendants,
 * and its programs in the kernel.
 *
 *   threads    /proc/self/task: by their names
 *   children   live/proc/descendants.h; ours that ended are in our rusage, others in the CPU time that
 *              their parent has waited for. Ours that live for less than an interval are the
 *              sandboxed readers
 *   programs   run time, counted in one second of ten, because counting costs some 20 ns a run
 *   memory     of the control group if no other process is in it; else maps and rings in the
 *              kernel, and PSS of all processes, read every three minutes, followed by RssAnon
 *
 * Used by the thread that owns the session.
 */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/budget.h"

struct session;

#define USAGE_INTERVAL 10000000000ull /* ns between two reports */

/* X(ENUM, part of the budget, label, text) */
#define USAGE_CPU_PARTS(X)                                                                         \
	X(COLLECTOR, COLLECTOR, "collector", "the thread that reads events")                       \
	X(FINISHER, SYMBOLS, "finisher", "the thread that finishes windows")                       \
	X(BUILDER, TABLES, "table_builder", "the processes that build unwind tables")              \
	X(THREADS, SINKS, "other_threads", "senders, the endpoint")                                \
	X(READERS, RUNTIMES, "readers", "processes that open files and read mappings")             \
	X(JIT, RUNTIMES, "jit_watcher", "processes that read perf maps and jitdumps")              \
	X(SYMBOLIZER, SYMBOLS, "symbolizer",                                                       \
	  "sandboxed readers of ELF and DWARF, and the file finder")                               \
	X(VISITOR, VISITS, "visitor", "the process that visits threads, and its programs")         \
	X(BPF, TICKS, "bpf", "the program of a tick, in the kernel")                               \
	X(HOOKS, COLLECTOR, "bpf_hooks", "programs of fork, execve and exit, in the kernel")

enum usage_cpu_part {
#define X(id, part, label, text) USAGE_CPU_##id,
	USAGE_CPU_PARTS(X)
#undef X
		USAGE_CPU_PART_COUNT
};

#define USAGE_MEMORY_PARTS(X)                                                                      \
	X(PROCESS, "process", "this process, its share of shared pages")                           \
	X(CHILDREN, "children", "processes that descend from it, their share")                     \
	X(KERNEL, "bpf_maps", "maps and rings in the kernel")

enum usage_memory_part {
#define X(id, label, text) USAGE_MEMORY_##id,
	USAGE_MEMORY_PARTS(X)
#undef X
		USAGE_MEMORY_PART_COUNT
};

struct usage_report {
	uint64_t time; /* CLOCK_MONOTONIC ns */
	double cpu;    /* share of one CPU since the report before; 0 in the first */
	double cpu_by[USAGE_CPU_PART_COUNT];   /* of it */
	uint64_t cpu_ns[USAGE_CPU_PART_COUNT]; /* since the start; never less than before */
	uint64_t memory;		       /* bytes, of all */
	uint64_t memory_by[USAGE_MEMORY_PART_COUNT];
	unsigned int processes, threads, descriptors; /* children, own threads, own descriptors */
};

struct usage;

struct usage *usage__new(void); /* NULL: no memory */
void usage__free(struct usage *u);

/*
 * Call it at `*next` (CLOCK_MONOTONIC ns) or later, the first time at once. True: *report is new.
 * `session` may be NULL, or another one than before.
 */
bool usage__step(struct usage *u, struct session *session, uint64_t now, uint64_t *next,
		 struct usage_report *report);

/* report->cpu by the parts of a budget. */
void usage__by_part(const struct usage_report *report, double cpu_by[BUDGET_PART_COUNT]);

#endif
