/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for completions: does a thread that waits in io_uring_enter() or io_getevents() wait for a
 * disk, or for what comes from outside? The kernel counts the operations that are pending, and has
 * lists of those that wait for an event: polls (a receive or an accept is one), timeouts, futexes,
 * children, commands of servers in user space. The others are on their way: reads and writes.
 *
 * An operation of io_uring belongs to the thread that has submitted it. If that thread has several
 * rings, or the kernel's thread submits (SQPOLL), or a list is too long, nothing is concluded.
 */
#ifndef BPF_COMPLETIONS_BPF_H
#define BPF_COMPLETIONS_BPF_H

#include "maps.bpf.h"

#define NR_IO_GETEVENTS	  208
#define NR_IO_PGETEVENTS  333
#define NR_IO_URING_ENTER 426

/* By configuration (CONFIG_IO_URING, CONFIG_AIO), and as the kernel has them today. */
#define HAVE_RINGS                                                                                 \
	(bpf_core_field_exists(struct task_struct, io_uring) &&                                    \
	 bpf_core_field_exists(struct io_uring_task, cached_refs) &&                               \
	 bpf_core_field_exists(struct io_uring_task, last) &&                                      \
	 bpf_core_field_exists(struct io_uring_task, xa) &&                                        \
	 bpf_core_field_exists(struct io_uring_task, inflight) &&                                  \
	 bpf_core_field_exists(struct io_ring_ctx, cancel_table) &&                                \
	 bpf_core_field_exists(struct io_ring_ctx, timeout_list) &&                                \
	 bpf_core_field_exists(struct io_ring_ctx, defer_list) &&                                  \
	 bpf_core_field_exists(struct io_hash_bucket, list) &&                                     \
	 bpf_core_field_exists(struct io_kiocb, hash_node) &&                                      \
	 bpf_core_field_exists(struct io_kiocb, link) &&                                           \
	 bpf_core_field_exists(struct io_timeout, list))
#define HAVE_AIO                                                                                   \
	(bpf_core_field_exists(struct mm_struct, ioctx_table) &&                                   \
	 bpf_core_field_exists(struct kioctx, cpu) &&                                              \
	 bpf_core_field_exists(struct kioctx, reqs_available) &&                                   \
	 bpf_core_field_exists(struct kioctx, active_reqs) &&                                      \
	 bpf_core_field_exists(struct kioctx, completed_events))

#define CPUS_LIMIT    8192u
#define LISTED_MAX    1024u /* entries and heads of lists */
#define MANY	      (1ll << 40)
#define LINKED_MAX    8u /* operations that wait for the one before them */
#define AIO_CONTEXTS  4096u
#define XA_LEVELS     16u
#define XA_ENTRY_KIND 3ull /* the low bits of an entry */
#define XA_NODE	      2ull

/* ---- sums over CPUs -------------------------------------------------------------------------- */

/*
 * Where are the numbers of a CPU? As far behind their common address as the element of this map is
 * behind that of the map. The symbols that say it are not in every kernel's list.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} each_cpu SEC(".maps");

/*
 * The state of a sum. In memory that is no stack, the verifier follows no values: addresses are
 * numbers, and the turns of a loop all the same.
 */
struct {
	__u64 map, element; /* addresses */
	__u64 address;	    /* of a 32-bit number of each CPU, as the kernel has it … */
	__u64 common;	    /* … and of the map's element */
	__s64 sum;
} numbers;

static long add_cpu(__u32 cpu, void *unused __attribute__((unused)))
{
	__u32 zero = 0;
	void *element = bpf_map_lookup_percpu_elem(&each_cpu, &zero, cpu);
	__s32 number = 0;

	if (!element)
		return 1;
	*(volatile __u64 *)&numbers.element = (__u64)element;
	bpf_probe_read_kernel(
		&number, sizeof(number),
		(void *)(numbers.address + (*(volatile __u64 *)&numbers.element - numbers.common)));
	numbers.sum += number;
	return 0;
}

/* Of the numbers at this address. A global function, verified once. */
__attribute__((noinline)) int sum_cpus(__u64 address)
{
	const struct bpf_array *map;

	*(volatile __u64 *)&numbers.map = (__u64)&each_cpu;
	map = (const void *)*(volatile __u64 *)&numbers.map;
	numbers.common = (__u64)BPF_CORE_READ(map, pptrs[0]);
	numbers.address = address;
	numbers.sum = 0;
	bpf_loop(CPUS_LIMIT, add_cpu, NULL, 0);
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Lists, one behind the other, each with its first entry in its head, and the next one in each. */
struct {
	__u64 head, stride, heads; /* those that are left */
	__u64 entry, end;	   /* the entry behind the last one */
	__u64 place;		   /* of an entry in its operation */
	__u64 owner;		   /* struct io_uring_task; 0: all operations count, alone */
	__s64 count;
} lists;

static __always_inline __u64 word_at(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)address);
	return word;
}

static __always_inline __u64 owner_of_operation(const struct io_kiocb *operation)
{
	if (bpf_core_field_exists(operation->tctx))
		return (__u64)BPF_CORE_READ(operation, tctx);
	return (__u64)BPF_CORE_READ((const struct io_kiocb___task *)operation, task, io_uring);
}

/* With those that are linked to it, which begin after it. */
static __always_inline void count_operation(void)
{
	const struct io_kiocb *operation = (const void *)(lists.entry - lists.place);

	if (!lists.owner) {
		lists.count++;
		return;
	}
	if (!HAVE_RINGS || owner_of_operation(operation) != lists.owner)
		return;
	for (__u32 i = 0; i < LINKED_MAX && operation; i++) {
		lists.count++;
		operation = BPF_CORE_READ(operation, link);
	}
	if (operation)
		lists.count += MANY;
}

static long count_entry(__u32 i __attribute__((unused)), void *unused __attribute__((unused)))
{
	if (lists.entry != lists.end) {
		count_operation();
		lists.entry = word_at(lists.entry);
		return 0;
	}
	if (!lists.heads)
		return 1;
	lists.heads--;
	lists.entry = word_at(lists.head);
	lists.head += lists.stride;
	return 0;
}

/* Adds the operations in lists with so many heads. A global function, verified once. */
__attribute__((noinline)) int count_lists(__u64 head, __u64 heads)
{
	lists.head = head;
	lists.heads = heads;
	lists.entry = lists.end;
	bpf_loop(LISTED_MAX, count_entry, NULL, 0);
	if (lists.entry != lists.end || lists.heads)
		lists.count += MANY;
	return 0;
}

/* One list, in which the last entry leads to the head. */
static __always_inline void count_circular(__u64 head, __u64 place)
{
	lists.end = head;
	lists.place = place;
	count_lists(head, 1);
}

#define COUNT_TABLE(ring, table)                                                                   \
	if (bpf_core_field_exists((ring)->table))                                                  \
	count_lists((__u64)BPF_CORE_READ(ring, table.hbs) +                                        \
			    bpf_core_field_offset(struct io_hash_bucket, list),                    \
		    1ull << (BPF_CORE_READ(ring, table.hash_bits) & 31))

#define COUNT_LIST(ring, list)                                                                     \
	if (bpf_core_field_exists((ring)->list))                                                   \
	count_lists((__u64)(ring) + bpf_core_field_offset((ring)->list), 1)

/* ---- io_uring -------------------------------------------------------------------------------- */

/* Is it the only ring that the thread has used? */
static __always_inline bool is_only_ring(const struct io_uring_task *user, __u64 ring)
{
	__u64 slots = bpf_core_field_size(((struct xa_node *)0)->slots) / sizeof(void *);
	__u64 entry = (__u64)BPF_CORE_READ(user, xa.xa_head);

	for (__u32 i = 0; i < XA_LEVELS && (entry & XA_ENTRY_KIND) == XA_NODE; i++) {
		const struct xa_node *node = (const void *)(entry - XA_NODE);
		__u64 slot = ring >> (BPF_CORE_READ(node, shift) & 63) & (slots - 1);

		if (BPF_CORE_READ(node, count) != 1)
			return false;
		entry = word_at((__u64)node + bpf_core_field_offset(node->slots) +
				slot * sizeof(void *));
	}
	return entry;
}

/* Operations of the thread that wait for an event. */
static __always_inline __s64 count_waiting(const struct io_uring_task *user,
					   const struct io_ring_ctx *ring)
{
	lists.owner = (__u64)user;
	lists.count = lists.end = 0;
	lists.place = bpf_core_field_offset(struct io_kiocb, hash_node);
	lists.stride = bpf_core_type_size(struct io_hash_bucket);
	COUNT_TABLE(ring, cancel_table);
	COUNT_TABLE(ring, cancel_table_locked);
	COUNT_LIST(ring, futex_list);
	COUNT_LIST(ring, waitid_list);
	COUNT_LIST(ring, cancelable_uring_cmd);
	count_circular((__u64)ring + bpf_core_field_offset(ring->timeout_list),
		       bpf_core_field_offset(struct io_timeout, list));
	return lists.count;
}

/* Of a struct io_uring_task. A global function, verified once. */
__attribute__((noinline)) int ring_has_pending(__u64 of)
{
	const struct io_uring_task *user = (const void *)of;
	const struct io_ring_ctx *ring;
	__u64 deferred;
	__s64 pending;

	if (!HAVE_RINGS)
		return 0;
	ring = BPF_CORE_READ(user, last);
	deferred = (__u64)ring + bpf_core_field_offset(ring->defer_list);
	if (!ring || !is_only_ring(user, (__u64)ring) || word_at(deferred) != deferred)
		return 0;
	/* references that it has ready for further operations count as operations */
	sum_cpus((__u64)BPF_CORE_READ(user, inflight.counters));
	pending = BPF_CORE_READ(user, inflight.count) - BPF_CORE_READ(user, cached_refs) +
		  numbers.sum;
	return pending > 0 && pending > count_waiting(user, ring);
}

/* ---- libaio ---------------------------------------------------------------------------------- */

/* The search for a context. As for numbers, in memory that is no stack. */
struct {
	__u64 table; /* of addresses */
	__u64 id, found;
} contexts;

static long match_context(__u32 i, void *unused __attribute__((unused)))
{
	const struct kioctx *context = (const void *)word_at(contexts.table + i * sizeof(void *));

	if (!context || BPF_CORE_READ(context, user_id) != contexts.id)
		return 0;
	contexts.found = (__u64)context;
	return 1;
}

static __always_inline const struct kioctx *find_aio_context(const struct mm_struct *mm, __u64 id)
{
	const struct kioctx_table *table = BPF_CORE_READ(mm, ioctx_table);
	__u32 count = BPF_CORE_READ(table, nr);

	contexts.table = (__u64)table + bpf_core_field_offset(table->table);
	contexts.id = id;
	contexts.found = 0;
	bpf_loop(count < AIO_CONTEXTS ? count : AIO_CONTEXTS, match_context, NULL, 0);
	return (const void *)contexts.found;
}

/* What is neither available, nor has been completed. A global function, verified once. */
__attribute__((noinline)) int aio_has_pending(__u64 of, __u64 id)
{
	const struct kioctx *context;

	if (!HAVE_AIO)
		return 0;
	context = find_aio_context((const void *)of, id);
	if (!context)
		return 0;
	sum_cpus((__u64)BPF_CORE_READ(context, cpu));
	lists.owner = lists.count = 0;
	count_circular((__u64)context + bpf_core_field_offset(context->active_reqs), 0);
	return (__s64)BPF_CORE_READ(context, nr_events) - 1 -
		       BPF_CORE_READ(context, reqs_available.counter) - numbers.sum -
		       BPF_CORE_READ(context, completed_events) >
	       lists.count;
}

/* Does it wait for operations on files that are on their way? */
static __always_inline bool has_pending_operations(struct task_struct *task, __s32 call,
						   const struct pt_regs *regs)
{
	__u64 of;

	if (HAVE_RINGS && call == NR_IO_URING_ENTER) {
		of = (__u64)BPF_CORE_READ(task, io_uring);
		return of && ring_has_pending(of);
	}
	if (HAVE_AIO && (call == NR_IO_GETEVENTS || call == NR_IO_PGETEVENTS)) {
		of = (__u64)BPF_CORE_READ(task, mm);
		return of && aio_has_pending(of, regs->rdi);
	}
	return false;
}

#endif
