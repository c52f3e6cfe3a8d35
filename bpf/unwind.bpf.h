/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack of the current task: unwind_user(), into scratch->sample.frames behind the
 * kernel's. sysprof/unwind_walk.h has the step from a frame to its caller; this file provides
 * tables, mappings and memory. Each step is a global function, which the verifier checks once and
 * not for every turn.
 */
#ifndef BPF_UNWIND_BPF_H
#define BPF_UNWIND_BPF_H

#include <linux/bpf_perf_event.h>

#include "maps.bpf.h"
#include "memory.bpf.h"

#define unwind_segment_size segment_size

static __always_inline long unwind_read(struct unwind_state *s, void *to, __u32 size,
					__u64 address);
static __always_inline const unsigned char *unwind_segment(struct unwind_state *s,
							   const struct unwind_table *table);
static __always_inline const struct unwind_table *unwind_table_at(struct unwind_state *s,
								  __u32 number);
static __always_inline bool unwind_find_mapping(struct unwind_state *s, __u64 address);
static __always_inline bool unwind_has_mappings(struct unwind_state *s);
static __always_inline void unwind_restore_window(struct unwind_state *s);
static __always_inline int unwind_find_ahead(struct unwind_state *s);
static __always_inline int unwind_find_by_code(struct unwind_state *s);
static __always_inline int unwind_across(struct unwind_state *s);
static __always_inline long unwind_thread_base(struct unwind_state *s, __u64 *base);
static __always_inline int unwind_find_call(struct unwind_state *s, __u64 ra);
static __always_inline int unwind_look(struct unwind_state *s, __u64 address);
static __always_inline int unwind_find_called(struct unwind_state *s, __u64 cfa, __u64 ra);
static __always_inline int unwind_find_undescribed(struct unwind_state *s);
static __always_inline int unwind_find_word(struct unwind_state *s, __u32 number);
static __always_inline int unwind_find_return(struct unwind_state *s, __u64 ra);
static __always_inline int unwind_find_in_words(struct unwind_state *s);
static __always_inline int unwind_find_pair(struct unwind_state *s, __u64 address);
static __always_inline int unwind_find_leaf(struct unwind_state *s);
static __always_inline __u64 unwind_find_frames_made(__u64 word, __u64 next);

#define unwind_readable(s, address, size) (size)

#include <sysprof/unwind_walk.h>

#include "hotspot.bpf.h"
#include "cpython.bpf.h"
#include "v8.bpf.h"

#if !defined(__TARGET_ARCH_x86)
#error "user stacks are written for x86-64 only"
#endif

#define NR_CLONE	 56
#define NR_EXECVE	 59
#define NR_EXECVEAT	 322
#define NR_CLONE3	 435
#define CLONE_ARGS_STACK 40		      /* struct clone_args */
#define USER32_CS	 0x23		      /* code segment of 32-bit tasks */
#define THREAD_SIZE	 (16ULL * 1024)	      /* of a kernel stack; for kernels before 5.15 */
#define RUNS_A_CHECK	 (128 / FRAMES_A_RUN) /* of common frames; others are a run each */
#define PLACE_COUNT_BITS 12
#define FEW_PLACES_BITS	 5
_Static_assert(UNWIND_PLACES_MAX == (1u << PLACE_COUNT_BITS) - 1, "a step of the search for each");
_Static_assert(SAMPLE_USER_DEPTH_MAX % RUNS_A_CHECK == 0, "all of them are checked");
#define REPLACED_A_CALL 8      /* all 64 in one loop take the verifier some 2,500 instructions */
#define BUDGET_NS	200000 /* of one stack; interrupts are off meanwhile */

/* ---- surroundings ---------------------------------------------------------------------------- */

static __always_inline long unwind_read(struct unwind_state *s __attribute__((unused)), void *to,
					__u32 size, __u64 address)
{
	return read_user(to, size, address);
}

static __always_inline const unsigned char *
unwind_segment(struct unwind_state *s __attribute__((unused)), const struct unwind_table *table)
{
	__u32 number = table->segment, zero = 0;
	struct segment *map = bpf_map_lookup_elem(&unwind_segments, &number);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

static __always_inline const struct unwind_table *
unwind_table_at(struct unwind_state *s __attribute__((unused)), __u32 number)
{
	return bpf_map_lookup_elem(&unwind_tables, &number);
}

static __always_inline bool unwind_has_mappings(struct unwind_state *s)
{
	return s->place_count > 0;
}

static __always_inline __u64 load_place_word(const unsigned char *places, __u64 offset)
{
	UNWIND_HIDE(offset);
	offset &= UNWIND_PLACES_SIZE - 8;
	return *(const __u64 *)(places + offset);
}

/* Usually it was used a moment ago, and nothing is written. */
static __always_inline void note_use(__u32 table)
{
	__u64 *used = bpf_map_lookup_elem(&unwind_used, &table);

	if (used && *used != unwind_epoch)
		*used = unwind_epoch;
}

/* Returns `found`, or 1 << bit more: so many of the places do not begin above the address. */
static __always_inline __u64 count_places_on(const struct unwind_state *s,
					     const unsigned char *places, __u64 address,
					     __u64 found, int bit)
{
	__u64 next = found + (1u << bit), take, start;

	start = load_place_word(places, s->places + (next - 1) * 8);
	take = ((start - address - 1) & (next - (__u64)s->place_count - 1)) >> 63;
	UNWIND_HIDE(take);
	return found + (take << bit);
}

/* The last of the process's places that does not begin above the address. */
static __always_inline bool find_place(struct unwind_state *s, __u64 address)
{
	__u64 found = 0, count = s->place_count, offset;
	const unsigned char *places;
	__u32 zero = 0;

	places = bpf_map_lookup_elem(&unwind_places, &zero);
	if (!count || !places)
		return false;
	if (count >> FEW_PLACES_BITS) { /* most processes have a few dozens */
#pragma unroll
		for (int bit = PLACE_COUNT_BITS - 1; bit >= FEW_PLACES_BITS; bit--)
			found = count_places_on(s, places, address, found, bit);
	}
#pragma unroll
	for (int bit = FEW_PLACES_BITS - 1; bit >= 0; bit--)
		found = count_places_on(s, places, address, found, bit);
	if (!found)
		return false;
	offset = s->places + count * 8 + (found - 1) * sizeof(struct unwind_place);
	if (address >= load_place_word(places, offset))
		return false;
	s->mapping.start = load_place_word(places, s->places + (found - 1) * 8);
	s->mapping.end = load_place_word(places, offset);
	s->mapping.bias = load_place_word(places, offset + 8);
	s->mapping.table = (__u32)load_place_word(places, offset + 16);
	note_use(s->mapping.table);
	return true;
}

/* A code heap grows in place: more of it may be mapped than was published. */
static __always_inline bool find_reserved(struct unwind_state *s, __u64 address)
{
	struct notes *n = notes();

	if (!n || !find_heap(n, address))
		return false;
	s->mapping.start = n->jvm.low;
	s->mapping.end = n->jvm.high;
	s->mapping.bias = 0;
	s->mapping.table = UNWIND_JAVA;
	return true;
}

/* 1 or 0. A global function: it is used in many places. */
__attribute__((noinline)) int unwind_locate(__u64 address)
{
	struct scratch *s = scratch();

	if (!s)
		return 0;
	if (find_place(&s->unwind, address))
		return 1;
	if (s->runtimes & RUNTIME_HOTSPOT && find_reserved(&s->unwind, address))
		return 1;
	s->unwind.outside = true;
	return 0;
}

static __always_inline bool unwind_find_mapping(struct unwind_state *s __attribute__((unused)),
						__u64 address)
{
	return unwind_locate(address);
}

/* Some of the return addresses that were replaced, into a copy of the stack in scratch. */
__attribute__((noinline)) int put_back_some(__u32 first, __u32 from, __u32 size, __u64 start)
{
	struct scratch *s = scratch();

	for (__u32 i = 0; s && i < REPLACED_A_CALL; i++)
		unwind_put_back(&s->unwind.replaced, first + i, s, sizeof(*s), from, size, start);
	return 0;
}

static __always_inline void put_back(const struct unwind_state *s, __u32 from, __u32 size,
				     __u64 start)
{
	for (__u32 i = 0; i < UNWIND_REPLACED_MAX && i < s->replaced.count; i += REPLACED_A_CALL)
		put_back_some(i, from, size, start);
}

static __always_inline void unwind_restore_window(struct unwind_state *s)
{
	put_back(s, offsetof(struct scratch, unwind.window), s->window_end - s->window_start,
		 s->window_start);
}

/* Also a global function: its branches are then of no concern to its caller. */
__attribute__((noinline)) int unwind_ahead(void)
{
	struct scratch *s = scratch();

	return s ? unwind_ahead_one(&s->unwind) : UNWIND_AHEAD_UNKNOWN;
}

static __always_inline int unwind_find_ahead(struct unwind_state *s __attribute__((unused)))
{
	return unwind_ahead();
}

__attribute__((noinline)) int unwind_by_code(void)
{
	struct scratch *s = scratch();

	return s ? unwind_by_code_at(&s->unwind) : STACK_END_NO_FRAME;
}

static __always_inline int unwind_find_by_code(struct unwind_state *s __attribute__((unused)))
{
	return unwind_by_code();
}

__attribute__((noinline)) int unwind_call(__u64 ra)
{
	struct scratch *s = scratch();

	return s ? unwind_call_before(&s->unwind, ra) : UNWIND_CALL_NONE;
}

static __always_inline int unwind_find_call(struct unwind_state *s __attribute__((unused)),
					    __u64 ra)
{
	return unwind_call(ra);
}

__attribute__((noinline)) int unwind_called(__u64 cfa, __u64 ra)
{
	struct scratch *s = scratch();

	return s ? unwind_is_called(&s->unwind, cfa, ra) : 0;
}

static __always_inline int unwind_find_called(struct unwind_state *s __attribute__((unused)),
					      __u64 cfa, __u64 ra)
{
	return unwind_called(cfa, ra);
}

__attribute__((noinline)) int unwind_step_undescribed(void)
{
	struct scratch *s = scratch();

	return s ? unwind_undescribed(&s->unwind) : STACK_END_NO_FRAME;
}

static __always_inline int unwind_find_undescribed(struct unwind_state *s __attribute__((unused)))
{
	return unwind_step_undescribed();
}

__attribute__((noinline)) int unwind_return(__u64 ra)
{
	struct scratch *s = scratch();

	return s ? unwind_is_return(&s->unwind, ra) : 0;
}

static __always_inline int unwind_find_return(struct unwind_state *s __attribute__((unused)),
					      __u64 ra)
{
	return unwind_return(ra);
}

__attribute__((noinline)) int unwind_word_at(__u32 number)
{
	struct scratch *s = scratch();

	return s ? unwind_is_word(&s->unwind, number) : STACK_END_NO_FRAME;
}

static __always_inline int unwind_find_word(struct unwind_state *s __attribute__((unused)),
					    __u32 number)
{
	return unwind_word_at(number);
}

__attribute__((noinline)) int unwind_words(void)
{
	struct scratch *s = scratch();

	return s ? unwind_search(&s->unwind) : STACK_END_NO_FRAME;
}

static __always_inline int unwind_find_in_words(struct unwind_state *s __attribute__((unused)))
{
	return unwind_words();
}

__attribute__((noinline)) int unwind_pair(__u64 address)
{
	struct scratch *s = scratch();

	return s ? unwind_read_pair(&s->unwind, address, &s->unwind.low, &s->unwind.high) : -1;
}

static __always_inline int unwind_find_pair(struct unwind_state *s __attribute__((unused)),
					    __u64 address)
{
	return unwind_pair(address);
}

__attribute__((noinline)) int unwind_made_leaf(void)
{
	struct scratch *s = scratch();

	return s ? unwind_leaf_of_made(&s->unwind) : STACK_END_NO_FRAME;
}

static __always_inline int unwind_find_leaf(struct unwind_state *s __attribute__((unused)))
{
	return unwind_made_leaf();
}

/* Its eight copies would exceed the 512 bytes of a program's stack. */
__attribute__((noinline)) __u64 unwind_made_in(__u64 word, __u64 next)
{
	return unwind_frames_made(word, next);
}

static __always_inline __u64 unwind_find_frames_made(__u64 word, __u64 next)
{
	return unwind_made_in(word, next);
}

__attribute__((noinline)) int unwind_look_up(__u64 address)
{
	struct scratch *s = scratch();

	return s ? unwind_look_at(&s->unwind, address) : UNWIND_LOOK_NOTHING;
}

static __always_inline int unwind_look(struct unwind_state *s __attribute__((unused)),
				       __u64 address)
{
	return unwind_look_up(address);
}

__attribute__((noinline)) int unwind_to_other_stack(void)
{
	struct scratch *s = scratch();

	return s ? unwind_across_at(&s->unwind) : STACK_END_NO_RULE;
}

static __always_inline int unwind_across(struct unwind_state *s __attribute__((unused)))
{
	return unwind_to_other_stack();
}

static __always_inline long unwind_thread_base(struct unwind_state *s __attribute__((unused)),
					       __u64 *base)
{
	*base = thread_base();
	return *base ? 0 : -1;
}

/* A process that has called execve since its mappings were read has other mappings. */
static __always_inline void take_places(struct unwind_state *s, __u32 hash, __u64 word)
{
	__u32 zero = 0, offset = unwind_word_offset(word);
	const unsigned char *places;
	__u64 *exec, as_of;

	places = bpf_map_lookup_elem(&unwind_places, &zero);
	exec = bpf_map_lookup_elem(&unwind_execs, &hash);
	if (!places || !exec)
		return;
	as_of = load_place_word(places, offset);
	if (unwind_exec_is_after(*exec, unwind_word_tgid(word), as_of))
		return;
	s->places_time = as_of;
	s->places = offset + 8;
	s->place_count = unwind_word_count(word);
}

/*
 * Uses the places of a process; returns their number. Global: also for parents of fork's children.
 */
__attribute__((noinline)) int unwind_places_of(__u32 tgid)
{
	struct scratch *s = scratch();
	__u32 at = unwind_hash(tgid);
	__u64 value = 0;

	if (!s)
		return 0;
	for (__u32 i = 0; i < UNWIND_PROBES; i++) {
		__u32 key = (at + i) & (UNWIND_PROCESSES - 1);
		__u64 *word = bpf_map_lookup_elem(&unwind_processes, &key);

		if (!word)
			return 0;
		value = *word;
		if (value && unwind_word_tgid(value) == tgid)
			break;
		value = 0;
	}
	if (value)
		take_places(&s->unwind, at, value);
	return s->unwind.place_count;
}

/*
 * A child without published places uses its parent's, without later mappings: the sample's tag says
 * which. Returns the time since which the child may have mapped more; 0: no places were found.
 */
static __always_inline __u64 find_forked_places(__u32 tgid)
{
	struct runtime_fork *fork = fork_of(tgid);
	__u32 parent, grandparent;
	__u64 forked;

	if (!fork)
		return 0;
	parent = fork->parent;
	grandparent = fork->grandparent;
	forked = fork->info.as_of;
	if (has_executed(tgid, forked))
		return 0;
	if (!has_executed(parent, forked) && unwind_places_of(parent))
		return forked;
	if (grandparent && !has_executed(grandparent, forked) && unwind_places_of(grandparent))
		return forked;
	return 0;
}

/* The places of the sampled process; none: it is unknown so far. */
static __always_inline void find_process(struct scratch *s)
{
	__u64 changed = 0;

	s->unwind.places = s->unwind.place_count = 0;
	s->unwind.outside = false;
	if (!use_tables)
		return;
	if (!unwind_places_of(s->sample.tgid))
		changed = find_forked_places(s->sample.tgid);
	if (s->unwind.place_count)
		s->sample.places_tag = unwind_tag(s->unwind.places_time);
	if (changed)
		s->unwind.places_time = changed;
}

/* ---- registers ------------------------------------------------------------------------------- */

/* The registers the current task entered the kernel with. */
static __always_inline int entry_registers(struct task_struct *task, struct pt_regs *regs)
{
	__u64 address;

	if (HAVE_TASK_PT_REGS)
		address = bpf_task_pt_regs(task);
	else
		address = (__u64)BPF_CORE_READ(task, stack) + THREAD_SIZE - sizeof(*regs);
	return bpf_probe_read_kernel(regs, sizeof(*regs), (void *)address);
}

#define TAKE_REGISTERS(s, regs)                                                                    \
	do {                                                                                       \
		(s)->ip = (regs).rip;                                                              \
		(s)->sp = (s)->general[UNWIND_X86_RSP] = (regs).rsp;                               \
		(s)->fp = (s)->general[UNWIND_X86_RBP] = (regs).rbp;                               \
		(s)->general[0] = (regs).rax;                                                      \
		(s)->general[1] = (regs).rdx;                                                      \
		(s)->general[2] = (regs).rcx;                                                      \
		(s)->general[UNWIND_X86_RBX] = (regs).rbx;                                         \
		(s)->general[4] = (regs).rsi;                                                      \
		(s)->general[5] = (regs).rdi;                                                      \
		(s)->general[8] = (regs).r8;                                                       \
		(s)->general[9] = (regs).r9;                                                       \
		(s)->general[10] = (regs).r10;                                                     \
		(s)->general[11] = (regs).r11;                                                     \
		(s)->general[12] = (regs).r12;                                                     \
		(s)->general[13] = (regs).r13;                                                     \
		(s)->general[14] = (regs).r14;                                                     \
		(s)->general[15] = (regs).r15;                                                     \
	} while (0)

/*
 * Registers outlive the stack that they belong to: an exiting task has released its memory, and a
 * task in execve has the incomplete memory of its next program.
 */
static __always_inline bool has_user_stack(struct task_struct *task)
{
	const struct mm_struct *mm = TASK_READ(for_reading(task), mm);

	if (!mm)
		return false;
	return HAVE_TYPED_TASK ? mm->start_code : BPF_CORE_READ(mm, start_code);
}

/* Is ip behind the instruction of the system call? After an execve a new program begins there. */
static __always_inline bool is_behind_call(const struct pt_regs *regs)
{
	return (__s64)regs->orig_rax >= 0 && regs->orig_rax != NR_EXECVE &&
	       regs->orig_rax != NR_EXECVEAT;
}

/*
 * Was this task just created by the system call, with a stack of its own, which is still empty? The
 * call returns 0 to the new task; its maker's register has an error until there is a number.
 */
static __always_inline bool is_fresh(const struct pt_regs *regs)
{
	__u64 stack = regs->rsi;

	if (regs->rax || (regs->orig_rax != NR_CLONE && regs->orig_rax != NR_CLONE3))
		return false;
	if (regs->orig_rax == NR_CLONE3 &&
	    read_user(&stack, sizeof(stack), (regs->rdi + CLONE_ARGS_STACK)))
		return false;
	return stack != 0;
}

/* The registers at a task's entry into the kernel. UNWIND_STEP_ON, or why there are none. */
static __always_inline int entry_of(struct task_struct *task, struct pt_regs *regs)
{
	__u32 flags = TASK_READ(task, flags);

	if (flags & PF_KTHREAD)
		return STACK_END_NO_USER;
	if (!has_user_stack(task))
		return STACK_END_NO_MEMORY;
	if (entry_registers(task, regs))
		return STACK_END_NO_REGS;
	if ((regs->cs & 3) != 3 || !regs->rip)
		return flags & (PF_USER_WORKER | PF_IO_WORKER) ? STACK_END_USER_WORKER
							       : STACK_END_NO_REGS;
	return regs->cs == USER32_CS ? STACK_END_COMPAT : UNWIND_STEP_ON;
}

/* ---- uprobes --------------------------------------------------------------------------------- */

#define XOL_PAGE 4096u
#define XOL_SLOT 128u

/*
 * The words on the stack above which the trampoline's return address is, from its last instructions
 * on: pop %r11; pop %rcx; ret. -1: other instructions.
 */
static __always_inline int words_in_trampoline(__u64 ip)
{
	__u16 code;

	if (read_user(&code, sizeof(code), ip))
		return -1;
	return code == 0x5b41 ? 2 : (code & 0xff) == 0x59 ? 1 : (code & 0xff) == 0xc3 ? 0 : -1;
}

/*
 * The probed function has returned to the trampoline, which saves up to three registers: over the
 * return address first. Its system call takes the original one off the list, and puts it back.
 */
static __always_inline void leave_trampoline(struct unwind_state *s)
{
	__u64 address = s->replaced.of[0].address, at = s->replaced.of[0].at;
	int words;

	if (!s->replaced.count || at + 8 - s->sp > 24) {
		words = words_in_trampoline(s->ip);
		at = s->sp + 8 * words;
		if (words < 0 || read_user(&address, sizeof(address), at) ||
		    unwind_find_call(s, address) == UNWIND_CALL_NONE)
			return;
	}
	s->ip = address;
	s->sp = s->general[UNWIND_X86_RSP] = at + 8;
	s->after_call = false;
}

/*
 * At a function's entry. A breakpoint's exception leaves ip behind its instruction until the kernel
 * has looked at it. If the kernel has executed the probed instruction, a push, ip is right, and no
 * return address is on top of the stack.
 */
static __always_inline void step_back(struct unwind_state *s, __u64 page)
{
	__u64 ra;
	__u8 code;

	if (s->after_call || read_user(&code, sizeof(code), s->ip - 1) || code != 0xcc ||
	    read_user(&ra, sizeof(ra), s->sp))
		return;
	if ((page && ra == page) || unwind_find_call(s, ra) != UNWIND_CALL_NONE)
		s->ip--;
}

/* Of the kernel's list, from s->replaced.next on. */
__attribute__((noinline)) int read_replaced(__u32 first)
{
	const struct return_instance *next;
	struct scratch *s = scratch();
	struct unwind_replaced *r;

	if (!s || first > UNWIND_REPLACED_MAX - REPLACED_A_CALL)
		return 0;
	r = &s->unwind.replaced;
	next = (void *)r->next;
	for (__u32 i = 0; i < REPLACED_A_CALL && next; i++) {
		r->of[first + i].at = BPF_CORE_READ(next, stack);
		r->of[first + i].address = BPF_CORE_READ(next, orig_ret_vaddr);
		r->count = first + i + 1;
		next = BPF_CORE_READ(next, next);
	}
	r->next = (__u64)next;
	return 0;
}

/*
 * A thread that has hit an uprobe. Its innermost address may be in the page [uprobes]: it executes
 * a copy of the probed instruction there, or is in the trampoline. Only threads with uprobes get
 * here.
 */
__attribute__((noinline)) int unwind_see_probes(int in_kernel)
{
	const struct uprobe_task *probes;
	struct scratch *of = scratch();
	struct unwind_state *s;
	__u64 slot, page = probes_page();

	if (!of)
		return 0;
	probes = (void *)of->probes;
	s = &of->unwind;
	s->replaced.next = (__u64)BPF_CORE_READ(probes, return_instances);
	s->replaced.count = 0;
	for (__u32 i = 0; i < UNWIND_REPLACED_MAX && s->replaced.next; i += REPLACED_A_CALL)
		read_replaced(i);
	s->replaced.trampoline = s->replaced.count ? page : 0;
	if (!page || s->ip - page >= XOL_PAGE) {
		if (in_kernel)
			step_back(s, page);
		return 0;
	}
	slot = BPF_CORE_READ(probes, xol_vaddr);
	if (BPF_CORE_READ(probes, active_uprobe) && s->ip - slot < XOL_SLOT)
		s->ip = BPF_CORE_READ(probes, vaddr) + (s->ip - slot);
	else
		leave_trampoline(s);
	return 0;
}

static __always_inline void see_probes(struct scratch *s, bool in_kernel)
{
	s->unwind.replaced.trampoline = 0;
	if (s->probes)
		unwind_see_probes(in_kernel);
}

static __always_inline void begin_at_entry(struct scratch *scratch)
{
	struct unwind_state *s = &scratch->unwind;
	struct pt_regs *regs = &scratch->regs;

	TAKE_REGISTERS(s, *regs);
	unwind_begin(s, is_behind_call(regs));
	s->is_fresh = is_fresh(regs);
	see_probes(scratch, true);
}

/* The registers of the innermost user frame. UNWIND_STEP_ON, or why there is none. */
static __always_inline int user_registers(struct bpf_perf_event_data *ctx, struct scratch *scratch,
					  bool from_user)
{
	struct unwind_state *s = &scratch->unwind;

	if (!from_user) {
		int end = entry_of(current_task(), &scratch->regs);

		if (end == UNWIND_STEP_ON || end == STACK_END_COMPAT)
			begin_at_entry(scratch);
		return end;
	}
	unwind_begin(s, false);
	TAKE_REGISTERS(s, ctx->regs);
	see_probes(scratch, false);
	return ctx->regs.cs == USER32_CS ? STACK_END_COMPAT : UNWIND_STEP_ON;
}

/* ---- the walk -------------------------------------------------------------------------------- */

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

/* The last frame is exact: a handler, or a fiber, returns to where nothing was called from. */
static __always_inline void mark_trampoline(struct scratch *s)
{
	__u64 at = (__u64)s->sample.user_frames + s->sample.kernel_frames - 1;

	if (at < FRAMES_MAX)
		s->sample.frames[at] = frame_pack(FRAME_SIGNAL_RETURN,
						  frame_address(s->sample.frames[at]));
}

/* Published places are a moment old: within this time the process may have mapped more. */
#define PLACES_YOUNG 1000000000ull /* ns */

/* A walk that ended at an unmapped address may lack places that are about to be published. */
static __always_inline bool lacks_mappings(const struct scratch *s, int end)
{
	const struct unwind_state *u = &s->unwind;

	return u->outside && (end == STACK_END_NO_CALLER || end == STACK_END_NO_FRAME) &&
	       u->place_count && s->sample.header.time - u->places_time < PLACES_YOUNG;
}

/* The innermost frame, of which `fp` may be the caller's. */
__attribute__((noinline)) int note_v8_leaf(__u64 fp)
{
	struct scratch *s = scratch();

	if (!s)
		return 0;
	if (s->unwind.leaf == UNWIND_LEAF_ENTERED)
		return note_v8_entered(0, s->innermost[UNWIND_X86_RDI]);
	if (s->unwind.leaf == UNWIND_LEAF_LEFT)
		return note_v8(0, s->unwind.left);
	return s->unwind.kind == FRAME_POINTER ? note_v8(0, fp) : 0;
}

/* Notes the last frame, which had this stack and frame pointer; the walk is at its caller. */
static __always_inline void note_frame(struct scratch *s, __u64 sp, __u64 fp)
{
	__u32 frame = s->sample.user_frames - 1;

	if (s->runtimes & RUNTIME_V8 && !frame)
		note_v8_leaf(fp);
	else if (s->runtimes & RUNTIME_V8 && s->unwind.kind == FRAME_POINTER)
		note_v8(frame, fp);
	else if (s->runtimes & RUNTIME_V8 && s->unwind.kind == FRAME_LEAF_PEEK && frame == 1)
		note_v8_entered(frame, s->innermost[UNWIND_X86_RDI]);
	if (s->unwind.sp > s->next_anchor)
		note_loop(frame, sp, s->unwind.sp);
}

/* One frame more. UNWIND_STEP_ON or an end. */
__attribute__((noinline)) int unwind_step(void)
{
	struct scratch *s = scratch();
	__u64 sp, fp;
	int end;

	if (!s)
		return STACK_END_NO_FRAME;
	sp = s->unwind.sp;
	fp = s->unwind.fp;
	end = s->runtimes & RUNTIME_HOTSPOT ? hotspot_step() : HOTSPOT_ELSEWHERE;
	if (end == HOTSPOT_ELSEWHERE)
		end = unwind_to_caller(&s->unwind);
	if (s->runtimes && end == UNWIND_STEP_ON)
		note_frame(s, sp, fp);
	if (s->unwind.in_trampoline)
		mark_trampoline(s);
	if (end == UNWIND_STEP_ON && !push_frame(s, s->unwind.kind, s->unwind.ip))
		return STACK_END_DEPTH;
	return lacks_mappings(s, end) ? STACK_END_NO_TABLE : end;
}

/*
 * Common frames of the file that has this table, as long as there are any. UNWIND_STEP_ON;
 * UNWIND_NOT_COMMON or UNWIND_NOT_DESCRIBED: of the next one; or an end.
 */
static __always_inline int step_by_table(struct scratch *s, const unsigned char *segment,
					 const struct unwind_table *table)
{
	__u32 number = s->unwind.mapping.table;

	for (__u32 i = 0; i < FRAMES_A_RUN && s->unwind.mapping.table == number; i++) {
		const struct unwind_rule *rule =
			unwind_find_rule(&s->unwind, segment, table,
					 s->unwind.ip - 1 - s->unwind.mapping.bias, true);
		__u64 sp = s->unwind.sp;

		if (!rule || (rule->cfa == UNWIND_CFA_NONE && rule->ra != UNWIND_RA_INFERRED))
			return UNWIND_NOT_DESCRIBED;
		if (unwind_by_common_rule(&s->unwind, rule) != UNWIND_STEP_ON)
			return UNWIND_NOT_COMMON;
		if (s->unwind.sp > s->next_anchor)
			note_loop(s->sample.user_frames - 1, sp, s->unwind.sp);
		if (!push_frame(s, FRAME_TABLE, s->unwind.ip))
			return STACK_END_DEPTH;
	}
	return UNWIND_STEP_ON;
}

/* A frame without a rule, and those of code without a table. None of them is the innermost one. */
static __always_inline int step_by_pointer(struct scratch *s, struct notes *n)
{
	for (__u32 i = 0; i < FRAMES_A_RUN && (!i || s->unwind.mapping.table == UNWIND_NO_TABLE);
	     i++) {
		__u64 sp = s->unwind.sp, fp = s->unwind.fp;

		if (unwind_by_common_pointer(&s->unwind) != UNWIND_STEP_ON)
			return UNWIND_NOT_COMMON;
		if (s->runtimes & RUNTIME_V8)
			note_v8_frame(s, n, s->sample.user_frames - 1, fp);
		if (s->unwind.sp > s->next_anchor)
			note_loop(s->sample.user_frames - 1, sp, s->unwind.sp);
		if (!push_frame(s, FRAME_POINTER, s->unwind.ip))
			return STACK_END_DEPTH;
	}
	return UNWIND_STEP_ON;
}

/*
 * On a CPU with slow returns a call costs as much as a frame. So common frames are walked in loops
 * without a call, the others by unwind_step().
 */
__attribute__((noinline)) int unwind_run_by_table(void)
{
	struct scratch *s = scratch();
	const struct unwind_table *table;
	const unsigned char *segment;

	if (!s)
		return STACK_END_NO_FRAME;
	table = unwind_table_at(&s->unwind, s->unwind.mapping.table);
	if (!table || !*(const volatile __u16 *)&table->number_size)
		return UNWIND_NOT_COMMON;
	segment = unwind_segment(&s->unwind, table);
	return segment ? step_by_table(s, segment, table) : UNWIND_NOT_COMMON;
}

__attribute__((noinline)) int unwind_run_by_pointer(void)
{
	struct scratch *s = scratch();
	struct notes *n = notes();

	return s && n ? step_by_pointer(s, n) : STACK_END_NO_FRAME;
}

/* Common frames, if the next one is. */
static __always_inline int run_on(const struct scratch *s)
{
	if (!unwind_may_be_common(&s->unwind))
		return UNWIND_NOT_COMMON;
	if (s->unwind.mapping.table < UNWIND_TABLES) {
		int end = unwind_run_by_table();

		if (end != UNWIND_NOT_DESCRIBED)
			return end;
	} else if (s->unwind.mapping.table != UNWIND_NO_TABLE || s->unwind.kind != FRAME_POINTER) {
		return UNWIND_NOT_COMMON;
	}
	return s->runtimes & RUNTIME_HOTSPOT ? UNWIND_NOT_COMMON : unwind_run_by_pointer();
}

/* The verifier follows each iteration: two nested short loops, the inner one verified once. */
__attribute__((noinline)) int unwind_steps(void)
{
	struct scratch *s = scratch();
	int end = s ? UNWIND_STEP_ON : STACK_END_NO_FRAME;

	for (__u32 i = 0; i < RUNS_A_CHECK && end == UNWIND_STEP_ON; i++) {
		end = run_on(s);
		if (end == UNWIND_NOT_COMMON)
			end = unwind_step();
	}
	return end;
}

/* The innermost frame, if there is one. user_frames is 0. UNWIND_STEP_ON or an end. */
static __always_inline int push_innermost(struct scratch *s, int end)
{
	if (end == STACK_END_COMPAT)
		push_frame(s, FRAME_IP, s->unwind.ip);
	if (end != UNWIND_STEP_ON)
		return end;
	s->in_system_call = s->unwind.after_call;
#pragma unroll
	for (int i = 0; i < UNWIND_GENERAL; i++)
		s->innermost[i] = s->unwind.general[i];
	s->is_fresh = s->unwind.is_fresh;
	push_frame(s, FRAME_IP, s->unwind.ip);
	if (!user_stacks)
		return STACK_END_DISABLED;
	find_process(s);
	return UNWIND_STEP_ON;
}

/* Walks the user stack from these registers, if any. Returns enum stack_end. */
static __always_inline int walk_user(struct scratch *s, int end)
{
	end = push_innermost(s, end);
	if (end != UNWIND_STEP_ON)
		return end;
	for (__u32 i = 0; i < SAMPLE_USER_DEPTH_MAX / RUNS_A_CHECK; i++) {
		end = unwind_steps();
		if (end != UNWIND_STEP_ON)
			return end;
		if (bpf_ktime_get_ns() - s->sample.header.time > BUDGET_NS)
			return STACK_END_BUDGET;
	}
	return STACK_END_DEPTH;
}

/* ---- stacks of their own --------------------------------------------------------------------- */

#define ABOVE_STRINGS (1u << 20) /* more than is above the environment */

/*
 * Surely not on the stack that execve has given to a program's first thread. The kernel counts the
 * pages of such stacks, and strings that execve copied are at its top. Stacks of other threads are
 * mappings like any other, and a thread that has forked may have had such a one.
 */
static __always_inline bool is_apart(const struct mm_struct *mm, __u64 sp)
{
	__u64 top = HAVE_TYPED_TASK ? mm->env_end : BPF_CORE_READ(mm, env_end);
	__u64 pages = HAVE_TYPED_TASK ? mm->stack_vm : BPF_CORE_READ(mm, stack_vm);

	return top && pages && (sp < top - pages * STACK_PAGE || sp > top + ABOVE_STRINGS);
}

/* Ends that a stack of its own explains. */
static __always_inline bool may_be_apart(int end)
{
	return end == STACK_END_NO_CALLER || end == STACK_END_NO_FRAME || end == STACK_END_FAULT;
}

/* The end of a cut stack that began on a stack of its own and did not leave it. */
static __always_inline int explain_end(struct task_struct *task, const struct scratch *s, int end)
{
	const struct mm_struct *mm;

	if (TASK_READ(task, pid) != TASK_READ(task, tgid) || TASK_READ(task, flags) & PF_FORKNOEXEC)
		return end;
	mm = TASK_READ(for_reading(task), mm);
	if (!mm || !is_apart(mm, s->innermost[UNWIND_X86_RSP]) || !is_apart(mm, s->unwind.sp))
		return end;
	return STACK_END_OTHER_STACK;
}

static __always_inline int unwind_user(struct bpf_perf_event_data *ctx, struct scratch *s,
				       bool from_user)
{
	int end = walk_user(s, user_registers(ctx, s, from_user));

	return may_be_apart(end) ? explain_end(current_task(), s, end) : end;
}

#endif
