/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Emits samples, copies and notes into the tick ring, and ends of threads into the hook ring. */
#ifndef BPF_EMIT_BPF_H
#define BPF_EMIT_BPF_H

#include <linux/bpf_perf_event.h>

#include "maps.bpf.h"
#include "runtime.bpf.h"
#include "tick_ring.bpf.h"

/* Frames are read in pairs of words, the lower of which may lie below the stack pointer. */
#define COPY_BELOW 16
#define GAP_MAX	   2

#define NS_PER_S   1000000000

_Static_assert((SAMPLE_KERNEL_DEPTH_MAX & (SAMPLE_KERNEL_DEPTH_MAX + 1)) == 0, "a mask");
_Static_assert(sizeof(((struct stack_copy *)0)->general) == UNWIND_GENERAL * sizeof(__u64),
	       "all registers");

/* Are mappings or tables missing for this stack? */
static __always_inline bool lacks_tables(const struct scratch *s)
{
	if (!use_tables || !s->sample.user_frames || s->sample.user_end == STACK_END_COMPAT)
		return false;
	return !s->unwind.place_count || s->sample.user_end == STACK_END_NO_TABLE;
}

/* Is there budget for another stack copy in this second? */
static __always_inline bool may_copy(struct scratch *s)
{
	if (s->sample.header.time - s->copies_since > NS_PER_S) {
		s->copies_since = s->sample.header.time;
		s->copied = 0;
	}
	return s->copied < copied_a_second;
}

/* Some of the return addresses that were replaced. */
__attribute__((noinline)) int put_back_in_piece(__u32 first, __u32 size, __u64 start)
{
	__u32 zero = 0;
	union piece_scratch *p = bpf_map_lookup_elem(&piece_scratches, &zero);
	struct scratch *s = scratch();

	for (__u32 i = 0; s && p && i < REPLACED_A_CALL; i++)
		unwind_put_back(&s->unwind.replaced, first + i, p->piece.stack, STACK_PIECE_MAX, 0,
				size, start);
	return 0;
}

/* A piece of the stack; returns its size in bytes. A global function, which is verified once. */
__attribute__((noinline)) int emit_piece(__u64 start)
{
	__u32 zero = 0;
	__u64 size = 0, holes = 0;
	union piece_scratch *p = bpf_map_lookup_elem(&piece_scratches, &zero);
	struct scratch *s = scratch();

	if (!p || !s || !may_copy(s))
		return 0;
#pragma unroll
	for (__u64 page = 0; page < COPY_PAGES; page++) {
		__u64 missing = bpf_probe_read_user(p->piece.stack + page * COPY_PAGE, COPY_PAGE,
						    (void *)(start + page * COPY_PAGE));

		missing >>= 63; /* an error is negative */
		UNWIND_HIDE(missing);
		holes |= missing << page;
		size += ((page + 1) * COPY_PAGE - size) & (missing - 1);
	}
	UNWIND_HIDE(size);
	if (!size || size > STACK_PIECE_MAX)
		return 0;
	for (__u32 i = 0; s->unwind.replaced.trampoline && i < UNWIND_REPLACED_MAX;
	     i += REPLACED_A_CALL)
		put_back_in_piece(i, size, start);
	p->piece.holes = holes;
	p->piece.header.type = EVENT_STACK_PIECE;
	p->piece.header.flags = 0;
	p->piece.header.size = sizeof(p->piece) + size;
	p->piece.header.time = s->sample.header.time;
	p->piece.start = start;
	if (put_event(p, sizeof(p->piece) + size, s->sample.header.time))
		return 0;
	s->copied += size;
	return size;
}

/*
 * The stack above the part in the sample, in records of its own; returns its size in bytes. A piece
 * that finds no room costs the outermost frames, not the sample.
 */
static __always_inline __u64 emit_pieces(__u64 start)
{
	__u64 total = 0, size = STACK_PIECE_MAX;

	for (int i = 0; i < STACK_PIECES && size == STACK_PIECE_MAX; i++) {
		size = (__u32)emit_piece(start + total);
		total += size;
	}
	return total;
}

/* Into the copy in the sample, at this offset of scratch. A global function: few threads need it. */
__attribute__((noinline)) int put_back_in_copy(__u32 from, __u32 size, __u64 start)
{
	struct scratch *s = scratch();

	if (s)
		put_back(&s->unwind, from, size, start);
	return 0;
}

/* Not in the page below the stack pointer's, which may never have been touched. */
static __always_inline __u64 copy_start(__u64 sp)
{
	__u64 in_page = sp & (COPY_PAGE - 1);

	return sp - (in_page < COPY_BELOW ? in_page & ~7ULL : COPY_BELOW);
}

/*
 * Copies the stack behind the frames, `at` bytes into the event. Returns the size of the event.
 *
 * Pages may be missing: the innermost function has not touched new stack yet, or an outer one has
 * allocated more than it uses. After GAP_MAX missing pages the stack has most likely ended.
 */
static __always_inline __u64 append_copy(struct scratch *s, __u64 at)
{
	__u64 start = copy_start(s->innermost[UNWIND_X86_RSP]), span = 0, size = 0, holes = 0,
	      pages = 0;
	__u64 piece = COPY_PAGE - (start & (COPY_PAGE - 1));
	struct stack_copy *copy;

	UNWIND_HIDE(at);
	if (at > COPY_AT_MAX || (start & 7))
		return at;
	copy = (void *)(s->space + at);
#pragma unroll
	for (int i = 0; i < UNWIND_GENERAL; i++)
		copy->general[i] = s->innermost[i];
	copy->ip =
		frame_address(s->sample.frames[s->sample.kernel_frames & SAMPLE_KERNEL_DEPTH_MAX]);
	copy->in_system_call = s->in_system_call;
	copy->is_fresh = s->is_fresh;
#pragma unroll
	for (__u32 i = 0; i < COPY_PAGES; i++) {
		__u64 to = at + sizeof(*copy) + span, missing, first;

		UNWIND_HIDE(to);
		UNWIND_HIDE(piece);
		if (to > SAMPLE_SPACE - COPY_PAGE || piece > COPY_PAGE)
			break;
		missing = bpf_probe_read_user(s->space + to, piece, (void *)(start + span));
		missing >>= 63; /* an error is negative */
		UNWIND_HIDE(missing);
		/* before the first page that is there */
		first = missing & ((span - 1) >> 63);
		start += piece & -first;
		holes |= (missing & ~first) << pages;
		pages += 1 - first;
		span += piece & (first - 1);
		size += (span - size) & (missing - 1);
		piece = COPY_PAGE;
	}
	UNWIND_HIDE(size);
	if (s->unwind.replaced.trampoline)
		put_back_in_copy(offsetof(struct scratch, space) + at + sizeof(*copy), size, start);
	copy->start = start;
	copy->holes = holes;
	if (size && span - size <= GAP_MAX * COPY_PAGE && emit_pieces(start + span))
		size = span;
	copy->size = size;
	s->copied += size < COPY_PAGE ? COPY_PAGE : size; /* its walk costs the same */
	s->sample.header.flags |= EVENT_STACK_COPY;
	return at + sizeof(*copy) + size;
}

/* Emits the sample in scratch and returns its line of the books. */
static __always_inline enum book_line emit_sample(struct scratch *s)
{
	__u64 frames = (__u64)s->sample.kernel_frames + s->sample.user_frames;
	__u64 size;
	long err;

	if (frames > FRAMES_MAX)
		return BOOK_INTERNAL;
	size = sizeof(struct sample_event) + frames * sizeof(__u64);
	s->sample.notes = 0;
	if (lacks_tables(s)) {
		wake_collector(&tick_wakes, s->sample.header.time);
		if (may_copy(s))
			size = append_copy(s, size);
	} else {
		size = append_notes(s, size);
	}
	UNWIND_HIDE(size);
	if (size > SAMPLE_SPACE)
		return BOOK_INTERNAL;
	s->sample.header.size = size;
	err = put_event(&s->sample, size, s->sample.header.time);
	if (err)
		return err == -ENOSPC ? BOOK_RING_FULL : BOOK_INTERNAL;
	return BOOK_DELIVERED;
}

/* The last CPU time of a thread that ends. */
static __always_inline void emit_thread_cpu(void *ctx, __u32 tgid, __u32 tid, __u64 cpu_time)
{
	struct {
		__u32 unused, lead;
		struct thread_cpu_event event;
	} out = {
		.event =
			{
				.header =
					{
						.size = sizeof(out.event),
						.type = EVENT_THREAD_CPU,
						.flags = EVENT_EXITED,
						.time = bpf_ktime_get_ns(),
					},
				.tgid = tgid,
				.tid = tid,
				.cpu_time = cpu_time,
			},
	};

	if (bpf_perf_event_output(ctx, &outputs, BPF_F_CURRENT_CPU, &out.lead,
				  sizeof(out.lead) + sizeof(out.event)))
		__sync_fetch_and_add(&hook_output_lost, 1);
}

#endif
