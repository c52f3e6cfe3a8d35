/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the eBPF programs and the collector, besides event.h and unwind_table.h. */
#ifndef SYSPROF_BPF_SHARED_H
#define SYSPROF_BPF_SHARED_H

#include <linux/types.h>

#include <sysprof/event.h>
#include <sysprof/unwind_state.h>

/* Keys of `targets`: a pid of the initial pid namespace or, with this bit, of the collector's. */
#define TARGET_IN_NAMESPACE (1ULL << 32)

/* Bytes before the event in a hook's raw perf record. */
#define OUTPUT_LEAD_SIZE 4u

/*
 * The ring of a CPU's ticks, an element of an array that the kernel and the collector share. Events
 * start at TICK_RING_DATA. Positions count bytes. An event is at its position less the origin,
 * modulo the ring's size, and may reach into the slack behind the end. The program moves the origin
 * to the head of an empty ring: so few pages are used, and they stay in the CPU's caches.
 */
struct tick_ring {
	__u64 head;   /* events before it are complete; written by the program, as is origin */
	__u64 origin; /* changes only while the ring is empty */
	__u64 unused[14];
	__u64 tail; /* events before it were read; written by the collector */
};
#define TICK_RING_DATA	256u
#define TICK_RING_SLACK (23u * 1024) /* the largest event */

/* Control groups in the kernel: entries by process, and entries of excluded groups. */
#define GROUP_SLOTS	16384u /* a power of two */
#define EXCLUDED_GROUPS 8192u

/*
 * Targets by name (bpf/names.bpf.h). What can decide about a process, a bit each. The kernel side
 * matches names of programs and users itself. What it has an id of alone it looks up among the
 * collector's verdicts.
 */
#define NAMED_BY_COMM	 1u
#define NAMED_BY_USER	 2u
#define NAMED_BY_GROUP	 4u
#define NAMED_BY_EXE	 8u
#define NAMED_BY_SERVICE 16u

/* A verdict: rules that name targets, and rules that exclude them, match. */
#define NAME_INCLUDED 1u
#define NAME_EXCLUDED 2u

#define NAME_GLOBS    8u /* structures, of several patterns each */
#define NAME_USERS    64u
#define NAME_VERDICTS 16384u /* of groups, files and programs; those used last stay */
#define NAME_SLOTS    256u   /* processes whose verdict is kept, of a CPU; a power of two */

/*
 * Patterns for names of programs as a machine of 64 states, a bit each: a byte moves all states on
 * that accept it. A pattern has a state for each of its bytes and one for its end.
 */
struct name_glob {
	__u64 accepts[256];	/* by byte: states that it leaves for the next one */
	__u64 start;		/* the first states */
	__u64 loops;		/* states that any byte may stay in: those of a "*" */
	__u64 include, exclude; /* the last states, by what the pattern does */
};

static inline __u64 name_glob_step(const struct name_glob *glob, __u64 states, __u8 byte)
{
	return (states & glob->accepts[byte]) << 1 | (states & glob->loops);
}

/*
 * The same of a name in EVENT_COMM_SIZE bytes, which ends at its first NUL: before Linux 5.17 the
 * bytes behind it are those of an older name. *ended: 0 at first. Without branches, because the
 * verifier would try all paths.
 */
static inline __attribute__((always_inline)) __u64
name_glob_step_comm(const struct name_glob *glob, __u64 states, __u8 byte, __u64 *ended)
{
	__u64 next = name_glob_step(glob, states, byte), is_over;

	is_over = *ended | ((__u64)byte - 1) >> 63;
	UNWIND_HIDE(is_over);
	*ended = is_over;
	return (states & -is_over) | (next & (is_over - 1));
}

/* Threads whose CPU time includes that of filtered ticks, see filtered_threads. */
#define FILTERED_THREADS 65536u /* a power of two */
#define FILTERED_MANY	 (~0u)

struct name_user {
	__u32 uid; /* real, in the initial user namespace */
	__u32 verdict;
};

/* The rules, in the kernel's form. */
struct name_rules {
	__u32 include, exclude; /* NAMED_BY_…: which kinds there are */
	__u32 glob_count, user_count;
	struct name_glob globs[NAME_GLOBS];
	struct name_user users[NAME_USERS];
};

/* What a verdict of the collector is about. */
struct name_key {
	__u64 kind; /* one of NAMED_BY_… */
	/*
	 * The id of a group; of a file: addresses of its entry and mount, inode, hash of its path; or
	 * what name_key_of_program() has.
	 */
	__u64 words[4];
};

/* A program in a process: its number, start, count of execve calls, and the id of its group. */
static inline __attribute__((always_inline)) struct name_key
name_key_of_program(__u32 tgid, __u64 started, __u64 exec_id, __u64 group)
{
	return (struct name_key){.kind = NAMED_BY_SERVICE,
				 .words = {tgid, started, exec_id, group}};
}

/* Where the verdict on a process is kept, by its number for the collector. */
static inline __u32 name_slot_of(__u32 tgid)
{
	return tgid * 2654435761u >> 16 & (NAME_SLOTS - 1);
}

/* The tracepoint of a fork; the feature probe attaches to it as well. */
#define HOOK_FORK "sched_process_fork"

/* Whose process wakes the collector, see bpf/wake.bpf.h. */
enum wake_cause { WAKE_BY_ROOT, WAKE_BY_USERS, WAKE_CAUSES };

/* The clock that brings a thread's CPU time up to date, see bpf/cputime.bpf.h. */
enum cpu_time_source {
	CPU_TIME_UNKNOWN,
	CPU_TIME_BY_RQ_CLOCK,
	CPU_TIME_BY_EXEC_START,
};

/*
 * The state of the visitor (bpf/visit.bpf.c). A process of its own runs the visitor's programs, the
 * collector reads and writes this in shared memory. `due` has the threads to be walked.
 */
#define VISIT_DUE_MAX	 16384u /* a power of two */
#define VISIT_BANNED_MAX 4u
#define VISIT_LISTED_MAX 64u	     /* a power of two */
#define VISIT_SECOND	 0x80000000u /* of a thread that is due: it was deferred once */
struct visitor {
	/* set by the collector */
	__u32 final;	  /* the last visit: every account is taken */
	__u32 used_epoch; /* as unwind_epoch in maps.bpf.h */
	__u32 hz;	  /* visits a second, at most */
	__u32 budget;	  /* millionths of a CPU */
	__u32 window;	  /* a thread's stack is taken again in each window */
	__u32 round;	  /* in a new round the accounts of idle threads are taken, too */
	__u32 debt; /* ns of CPU time that visits may be behind: more is left to the next one */
	__u64 table_changes; /* a walk during which it changes is void: table memory was reused */
	/* not read, because memory did not answer: processes, and users (0: none, never root) */
	__u32 banned[VISIT_BANNED_MAX], banned_users[VISIT_BANNED_MAX];
	/* set by the visitor */
	__u64 drawn;   /* CLOCK_MONOTONIC: the random moment of the latest visit; … */
	__u64 made_at; /* … and when it began */
	__u64 cpu;     /* CPU time of its process, ns */
	__u32 visited; /* thread whose stack is being taken; 0: none; … */
	__u32 visited_process,
		visited_user; /* … of which process and user, in the initial namespaces */
	__u32 group_level;    /* of the wanted control group; 0: not known yet */
	__u32 due_count;
	__u64 count[VISIT_LINE_COUNT];
	__s64 clock_offset
		[2]; /* CLOCK_MONOTONIC less run queue clock: least of this and the last window */
	__u64 clock_window;
	/* processes that are targets, while no process is made; listed_count 0: there is no list */
	__u64 listed_at;      /* CLOCK_MONOTONIC */
	__u32 listed_next_id; /* the next number of a process then */
	__u32 listed_count, listed[VISIT_LISTED_MAX];
	__u32 due[VISIT_DUE_MAX];
};

/* In the kernel: a thread as of its last event, by tid. Tids that collide are always walked. */
struct seen_thread {
	__u64 started;
	__u64 runtime, switches;
	__u64 unchanged; /* CLOCK_MONOTONIC: the latest visit that found it so */
	__u64 again;	 /* CLOCK_MONOTONIC: take its stack then even if unchanged; 0: do not */
	__u64 known;	 /* what its stack was walked and named by; 0: it was not whole */
	__u32 state, walks;
	__u32 window, round;
};

#endif
