/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack of the current task: unwind_user(), into scratch->sample.frames behind the
 * kernel's.
 *
 * A frame pointer leads to two words, the caller's frame pointer and the return address. Code
 * without frame pointers uses that register for anything, so each step is checked: aligned, above
 * the stack pointer, growing, not by more than a megabyte, and an address that user code can have.
 * What fails ends the stack with its reason; nothing is guessed, no frame is invented.
 *
 * Each step is a global function, which the verifier checks once and not for every turn of the
 * loop.
 */
#ifndef BPF_UNWIND_BPF_H
#define BPF_UNWIND_BPF_H

#include <linux/bpf_perf_event.h>

#include "maps.bpf.h"

#if !defined(__TARGET_ARCH_x86)
#error "user stacks are written for x86-64 only"
#endif

#define USER32_CS	    0x23 /* code segment of 32-bit tasks */
#define USER_ADDRESS_BITS   47
#define LOWEST_CODE_ADDRESS 4096
#define FRAME_SIZE_MAX	    (1ULL << 20)
#define THREAD_SIZE	    (16ULL * 1024) /* of a kernel stack; for kernels before 5.15 */

#define STEP_ON		    (-1) /* not an end: there may be another frame */

static __always_inline bool is_code_address(__u64 address)
{
	return address >= LOWEST_CODE_ADDRESS && !(address >> USER_ADDRESS_BITS);
}

/* The registers the current task entered the kernel with. */
static __always_inline int entry_registers(struct task_struct *task, struct pt_regs *regs)
{
	__u64 address;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		address = bpf_task_pt_regs(task);
	else
		address = (__u64)BPF_CORE_READ(task, stack) + THREAD_SIZE - sizeof(*regs);
	return bpf_probe_read_kernel(regs, sizeof(*regs), (void *)address);
}

/* ip, sp, bp of the innermost user frame. STEP_ON, or why there is none. */
static __always_inline int user_registers(struct bpf_perf_event_data *ctx, struct scratch *s,
					  bool from_user)
{
	struct task_struct *task;
	struct pt_regs regs;
	__u32 flags;

	if (from_user) {
		s->ip = ctx->regs.rip;
		s->sp = ctx->regs.rsp;
		s->bp = ctx->regs.rbp;
		return ctx->regs.cs == USER32_CS ? STACK_END_COMPAT : STEP_ON;
	}
	task = current_task();
	flags = TASK_READ(task, flags);
	if (flags & PF_KTHREAD)
		return STACK_END_NO_USER;
	if (entry_registers(task, &regs))
		return STACK_END_NO_REGS;
	if ((regs.cs & 3) != 3 || !regs.rip)
		return flags & (PF_USER_WORKER | PF_IO_WORKER) ? STACK_END_USER_WORKER
							       : STACK_END_NO_REGS;
	s->ip = regs.rip;
	s->sp = regs.rsp;
	s->bp = regs.rbp;
	return regs.cs == USER32_CS ? STACK_END_COMPAT : STEP_ON;
}

/* Append a user frame. False: there is no room. */
static __always_inline bool push_frame(struct scratch *s, enum frame_kind kind, __u64 address)
{
	__u64 user = s->sample.user_frames, at = user + s->sample.kernel_frames;

	if (user >= max_depth || at >= FRAMES_MAX)
		return false;
	s->sample.frames[at] = frame_pack(kind, address);
	s->sample.user_frames = user + 1;
	return true;
}

/* One frame by frame pointer. STEP_ON or an end. */
__attribute__((noinline)) int unwind_step(void)
{
	struct scratch *s = scratch();
	struct {
		__u64 bp, return_address;
	} frame;
	__u64 bp;

	if (!s)
		return STACK_END_NO_FRAME;
	bp = s->bp;
	if (!bp && s->sample.user_frames > 1)
		return STACK_END_ROOT;
	if ((bp & 7) || bp < s->sp || bp - s->sp > FRAME_SIZE_MAX)
		return STACK_END_NO_FRAME;
	if (bpf_probe_read_user(&frame, sizeof(frame), (void *)bp))
		return STACK_END_FAULT;
	if (!frame.return_address && !frame.bp)
		return STACK_END_ROOT;
	if (!is_code_address(frame.return_address))
		return STACK_END_NO_FRAME;
	if (!push_frame(s, FRAME_POINTER, frame.return_address))
		return STACK_END_DEPTH;
	s->sp = bp + sizeof(frame);
	s->bp = frame.bp;
	return STEP_ON;
}

/* Walk the user stack; returns enum stack_end. kernel_frames is set, user_frames is 0. */
static __always_inline int unwind_user(struct bpf_perf_event_data *ctx, struct scratch *s,
				       bool from_user)
{
	int end = user_registers(ctx, s, from_user);

	if (end != STEP_ON)
		return end;
	push_frame(s, FRAME_IP, s->ip);
	if (!user_stacks)
		return STACK_END_DISABLED;
	for (__u32 i = 0; i < SAMPLE_USER_DEPTH_MAX; i++) {
		end = unwind_step();
		if (end != STEP_ON)
			return end;
	}
	return STACK_END_DEPTH;
}

#endif
