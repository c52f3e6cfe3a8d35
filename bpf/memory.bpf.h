/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread whose stack is walked, and its memory: the current thread in the sampler, another one
 * in the visitor (visit.bpf.c), which pages its memory in if need be.
 */
#ifndef BPF_MEMORY_BPF_H
#define BPF_MEMORY_BPF_H

#include "maps.bpf.h"

/* Its struct uprobe_task; 0: it has not hit an uprobe. */
static __always_inline __u64 probes_of(const struct task_struct *task)
{
	if (!HAVE_UPROBES)
		return 0;
	return (__u64)TASK_READ(for_reading(task), utask);
}

/* The address of its process's page [uprobes]. */
static __always_inline __u64 probes_page_of(const struct task_struct *task)
{
	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

#ifdef VISITOR

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

/*
 * Before Linux 6.7 an iterator's program makes the visits. It alone has the task, so it copies
 * pages for functions that read memory. If a page is missing, it is copied and the walk repeated.
 */
const volatile bool by_copies;

#define COPIED_PAGES   64u /* of a visit; a power of two */
#define COPY_PROBES    4u
#define PAGE_BITS      12
#define PAGE_BYTES     (1u << PAGE_BITS)
#define PAGE_AND_MORE  (PAGE_BYTES + 1024) /* most reads that begin in the page end there */
#define COPIES_MASK    0x7ffffu
#define COPY_MISSING   (-1)
#define USER_END       (1ULL << 47)
#define COPY_VISIT_BIT 40 /* a page's number, and from here on that of its visit */

struct {
	__u64 visit;  /* its number, in the bits from COPY_VISIT_BIT on */
	__u64 wanted; /* page that was missing first */
	bool missing;
	__u64 page[COPIED_PAGES]; /* … and its visit */
	__u64 size[COPIED_PAGES]; /* from the page's start on; 0: it cannot be read */
} copied;

struct page_bytes {
	unsigned char bytes[COPIED_PAGES][PAGE_AND_MORE];
};
_Static_assert(sizeof(struct page_bytes) <= COPIES_MASK, "an offset is masked");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_bytes);
} page_copies SEC(".maps");

/* The thread that is visited. Global functions cannot be given a task, so each read looks it up. */
struct {
	__u32 tid;	      /* in the initial pid namespace */
	int begun;	      /* UNWIND_STEP_ON, or why there is no user stack */
	bool has_our_numbers; /* thread numbers in its memory are those of the collector */
	__u64 started, fsbase, probes_page;
	__u64 changes; /* visitor.table_changes, when it began */
	struct seen_thread as;
} visited;

static __always_inline __u32 copy_slot(__u64 page, __u32 probe)
{
	return ((page ^ page >> 6) + probe) & (COPIED_PAGES - 1);
}

/* Offset of the bytes in the copies, or COPY_MISSING. A global function: it has many callers. */
__attribute__((noinline)) int find_copied(__u64 address, __u32 size)
{
	__u64 page = address >> PAGE_BITS, offset = address & (PAGE_BYTES - 1);

	for (__u32 probe = 0; probe < COPY_PROBES; probe++) {
		__u32 slot = copy_slot(page, probe);

		if (copied.page[slot] == (copied.visit | page))
			return offset + size <= copied.size[slot]
				       ? (int)(slot * PAGE_AND_MORE + offset)
				       : COPY_MISSING;
	}
	if (!copied.missing && address < USER_END)
		copied.wanted = page;
	copied.missing |= address < USER_END;
	return COPY_MISSING;
}

static __always_inline long read_copied(void *to, __u32 size, __u64 address)
{
	__u32 zero = 0;
	unsigned char *copies = bpf_map_lookup_elem(&page_copies, &zero);
	int at = find_copied(address, size);

	if (at == COPY_MISSING || !copies)
		return -1;
	return bpf_probe_read_kernel(to, size, copies + (at & COPIES_MASK));
}

/* Copies the page that was missing. False: none was, or there is no room. */
static __always_inline bool copy_missing(struct task_struct *task)
{
	__u32 zero = 0;
	struct page_bytes *copies = bpf_map_lookup_elem(&page_copies, &zero);
	void *address = (void *)(copied.wanted << PAGE_BITS);

	if (!copied.missing || !copies)
		return false;
	copied.missing = false;
	for (__u32 probe = 0; probe < COPY_PROBES; probe++) {
		__u32 slot = copy_slot(copied.wanted, probe);

		if (copied.page[slot] >> COPY_VISIT_BIT == copied.visit >> COPY_VISIT_BIT)
			continue;
		copied.page[slot] = copied.visit | copied.wanted;
		copied.size[slot] = PAGE_AND_MORE;
		if (!bpf_copy_from_user_task(copies->bytes[slot], PAGE_AND_MORE, address, task, 0))
			return true;
		copied.size[slot] = PAGE_BYTES;
		if (bpf_copy_from_user_task(copies->bytes[slot], PAGE_BYTES, address, task, 0))
			copied.size[slot] = 0;
		return true;
	}
	return false;
}

static __always_inline void begin_copies(void)
{
	copied.visit += 1ULL << COPY_VISIT_BIT;
	copied.missing = false;
}

static __noinline long read_of_visited(void *to, __u32 size, __u64 address)
{
	struct task_struct *task = bpf_task_from_pid(visited.tid);
	long err = -1;

	if (!task)
		return err;
	if (task->start_time == visited.started)
		err = bpf_copy_from_user_task(to, size, (void *)address, task, 0);
	bpf_task_release(task);
	return err;
}

static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	return by_copies ? read_copied(to, size, address) : read_of_visited(to, size, address);
}

static __always_inline __u64 thread_base(void)
{
	return visited.fsbase;
}

static __always_inline __u64 probes_page(void)
{
	return visited.probes_page;
}

#else

static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user(to, size, (void *)address);
}

/* As it was set through the kernel; a wrfsbase instruction is not seen. */
static __always_inline __u64 thread_base(void)
{
	return TASK_READ(current_task(), thread.fsbase);
}

static __always_inline __u64 probes_page(void)
{
	return probes_page_of(current_task());
}

#endif

#endif
