/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The header of every event. event.h has the rules of the format. */
#ifndef SYSPROF_EVENT_HEADER_H
#define SYSPROF_EVENT_HEADER_H

#include <linux/types.h>
#ifndef __bpf__
#include <stddef.h>
#endif

enum event_type {
	EVENT_NONE = 0,
	/* written by the eBPF program */
	EVENT_SAMPLE = 1,
	EVENT_THREAD_CPU = 2, /* CPU time of a thread at its end; also from /proc, start and stop */
	EVENT_STACK_PIECE = 3, /* more of the stack of the sample that follows; never in a file */
	EVENT_IN_GROUP = 4,    /* the control group of a process, by its id; never in a file */
	EVENT_CODE_COPY =
		5, /* objects that name a function, copied at its first sample; never in a file */
	EVENT_VISIT = 6,	 /* a thread that did not run, as the visitor found it (--wall) */
	EVENT_NAME_QUESTION = 7, /* is this process a target by name? Never in a file */
	/* from perf side-band records; from /proc if EVENT_FROM_PROC is set */
	EVENT_MMAP = 8,
	EVENT_COMM = 9,
	EVENT_FORK = 10,
	EVENT_EXIT = 11,
	EVENT_LOST = 12,
	EVENT_GROUP_MADE = 13, /* the path of a new control group; never in a file */
	/* /proc only */
	EVENT_PROCESS = 16,
	EVENT_THREAD = 17,
	EVENT_MAPS_READ = 18, /* all mappings of a process have just been reported */
	EVENT_MEMORY = 19,    /* how much memory a process has */
	EVENT_CGROUP = 20,    /* the control group that a process is in */
	EVENT_FACTS =
		21, /* facts that a process reports about itself, if the session collects them */
	/* the session */
	EVENT_CLOCK_ANCHOR = 24,
	EVENT_BOOKS = 25,
	EVENT_META = 26,
	EVENT_KALLSYMS = 27,
	EVENT_END = 28,	    /* sampling stopped; time is that of the stop */
	EVENT_WINDOW = 29,  /* a window ends and the next one begins, at header.time */
	EVENT_OUTSIDE = 30, /* counts of what limits left out; a row of tenants/outside_books.h */
	EVENT_VISIT_BOOKS = 31,
	EVENT_CPU_TIMES = 35, /* what the kernel accounts for as no task's, of one CPU */
	/* the symbols chunk, appended by a normal stop */
	EVENT_SYMBOL = 32,
	EVENT_SYMBOL_DSO = 33,
	EVENT_SYMBOLS_END = 34, /* all locations of the profile have been reported */
	/* before SYMBOLS_END: machine code of hot functions, its lines, and source files */
	EVENT_CODE_TEXT = 36,
	EVENT_CODE_LINES = 37,
	EVENT_SOURCE = 38,
	EVENT_SOURCE_ROOT = 39,
	/* files in which processes report their JIT code: perf maps, jitdumps */
	EVENT_JIT_FILE = 40,
	EVENT_JIT_BYTES = 41,
	EVENT_JIT_CLOCK = 42, /* the clock by which a process writes the times of its jitdump */
	/* functions, read from a runtime's memory, that notes of frames refer to */
	EVENT_CODE_FUNCTION = 48,
	EVENT_CODE_CHAIN = 49,
	EVENT_CODE_RUNTIME = 50,
};

/* header.flags */
#define EVENT_FROM_PROC 0x0001 /* state that already held at header.time, not a change */
#define EVENT_COMM_EXEC 0x0002 /* EVENT_COMM: the name comes from an execve */
#define EVENT_BUILD_ID	0x0004 /* EVENT_MMAP: build_id is valid */
/*
 * EVENT_MMAP: in an archive, or users other than root can write or create it. Then a file is not its
 * build-id's but that of device, inode (0: unknown) and inode_generation (from size and times).
 */
#define EVENT_UNSHARED 0x0080
/* EVENT_MMAP: the file's user is over the limit of files, so all such files count as one. */
#define EVENT_LEFT   0x0100
#define EVENT_EXITED 0x0008 /* EVENT_THREAD_CPU: the thread is exiting */
/* EVENT_THREAD_CPU: accounting starts from this value; time before it was not to be sampled. */
#define EVENT_BASELINE 0x0200
/*
 * EVENT_SAMPLE, never in a file. TENTATIVE: the collector decides whether the process is a target.
 * AFTER_FILTERED: ticks of the thread were filtered since its last sample.
 */
#define EVENT_TENTATIVE	     0x0001
#define EVENT_AFTER_FILTERED 0x0002
#define EVENT_FINAL	     0x0010 /* EVENT_BOOKS: the last counts; no tick follows */
#define EVENT_STACK_COPY                                                                           \
	0x0040 /* EVENT_SAMPLE: a struct stack_copy follows the frames; never in a file */
#define EVENT_FROM_COPY 0x0400 /* EVENT_SAMPLE: its stack was walked later, from such a copy */
/*
 * EVENT_SAMPLE: what the tick interrupted. ON_INTERRUPT_STACK is by the kernel side and never in a
 * file; live/interrupts decides by it and by the functions of the kernel stack.
 */
#define EVENT_ON_INTERRUPT_STACK 0x0800
#define EVENT_IN_SOFTIRQ	 0x1000
#define EVENT_IN_HARDIRQ	 0x2000
#define EVENT_IN_GUEST		 0x4000 /* KVM ran the guest of this thread */
/* EVENT_SAMPLE: cpu_time is what this sample stands for, ns, and no clock. Never in a file. */
#define EVENT_OWN_WEIGHT 0x8000
/* EVENT_CODE_FUNCTION: earlier samples with the same words may belong to another function. */
#define EVENT_DOUBTFUL	0x1000
#define EVENT_NEW_EPOCH 0x0020 /* EVENT_CLOCK_ANCHOR: nothing is interpolated across this point */
#define EVENT_RECORDER	0x0080 /* EVENT_MEMORY: the process is the recorder */
/*
 * EVENT_KALLSYMS. ADDED: code that the kernel has added, from the event's time on; with REMOVED it
 * has gone. MODULES: all symbols but the kernel image's, read again, complete when LAST arrives.
 */
#define EVENT_KALLSYMS_ADDED   0x0200
#define EVENT_KALLSYMS_MODULES 0x0400
#define EVENT_KALLSYMS_LAST    0x0800
#define EVENT_KALLSYMS_REMOVED 0x1000

#define EVENT_ALIGN	       8u
#define EVENT_SIZE_MAX	       (64u * 1024)
#define EVENT_LIVE_MAX	       (72u * 1024) /* of an EVENT_SAMPLE with a copy of its stack */
#define EVENT_PATH_MAX	       4096u
#define EVENT_COMM_SIZE	       16
#define BUILD_ID_SIZE	       20

struct event_header {
	__u32 size; /* of the whole event, this header included */
	__u16 type; /* enum event_type */
	__u16 flags;
	__u64 time; /* CLOCK_MONOTONIC in ns; live/ refines a sample's by its TSC */
};

#ifndef __bpf__
/* Sizes of events are multiples of EVENT_ALIGN. */
static inline __u32 event_aligned(size_t size)
{
	return (__u32)((size + EVENT_ALIGN - 1) & ~(size_t)(EVENT_ALIGN - 1));
}
#endif

#endif
