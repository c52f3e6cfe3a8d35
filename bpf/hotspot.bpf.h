/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of HotSpot's code. No table describes it, and the frame pointer is a general register
 * there. But a JVM maps each address of its code heaps to its blob, and a blob's header has the
 * size of its frame.
 *
 * Steps for a frame with ip, sp and fp; pc is ip, or ip - 1 where ip is a return address:
 *
 *  1. If pc is in no heap's reserved range, the frame is not HotSpot's.
 *  2. pc is in the interpreter: RA [fp+8], fp [fp], CFA [fp-8]. Method* is [fp-24]; the bytecode
 *     [fp-64], or r13 in the innermost frame.
 *  3. i = (pc - low) >> shift. While byte i of the map is not 0: 0xff ends the walk, else i -= that
 *     byte. The blob is at low + (i << shift) + block_size.
 *  4. Its header has frame_size in words. 0: nmethods, adapters and vtable stubs have CFA = sp + 8
 *     and fp unchanged, other stubs CFA = fp + 16 and fp [CFA-16]. Innermost and pc - code <
 *     frame_complete: CFA = sp + 8, fp unchanged. Else CFA = sp + 8 * frame_size, fp [CFA-16].
 *  5. RA [CFA-8]; the caller's sp is the CFA. The used fp and the CFA are aligned to 8, and at most
 *     1 MB above sp; the CFA is above sp, unless an innermost frame's RA is in a register.
 *
 * A compiled frame is named later by ip and compile_id, an interpreted one by Method* and bytecode.
 * The innermost frame may not exist yet, or no longer: HotSpot's compilers begin and end all
 * methods alike, so the bytes at the instruction pointer decide.
 *
 * Each part is a global function, which the verifier checks once. Nothing that is read here is
 * trusted: a process can only falsify its own stacks.
 */
#ifndef BPF_HOTSPOT_BPF_H
#define BPF_HOTSPOT_BPF_H

#include "runtime.bpf.h"

#define HOTSPOT_ELSEWHERE     (-3) /* the frame is not in a code heap */

#define HOTSPOT_KNOWN	      256u /* cached addresses, a power of two */
#define HOTSPOT_KNOWN_NS      50000000ull
#define HOTSPOT_HOPS	      24   /* in the map; 18 have been seen */
#define HOTSPOT_FREE	      0xff /* in the map: there is no blob */
#define HOTSPOT_WORDS_MAX     (1u << 17)
#define HOTSPOT_BYTECODE_MAX  (1u << 20)     /* from a ConstMethod on */
#define HOTSPOT_ARGUMENTS_MAX (256 * 8 + 16) /* bytes of arguments, and what aligns them */
#define HOTSPOT_ROOM_MAX      512	     /* bytes, and where it is noted */
#define HOTSPOT_PUSHED_WORDS  5
/* Interpreted frames, from the frame pointer on: Method*, bytecode, the caller's stack pointer. */
#define HOTSPOT_METHOD_SLOT   (-24)
#define HOTSPOT_BYTECODE_SLOT (-64)
#define HOTSPOT_SENDER_SLOT   (-8)
/* The frame of Continuation.enterSpecial, above those of a virtual thread; in JDK 21 and 25. */
#define HOTSPOT_ENTER_WORDS 10

#define TEXT8(a, b, c, d, e, f, g, h)                                                              \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |   \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

enum hotspot_kind {
	HOTSPOT_COMPILED,
	HOTSPOT_ADAPTER,  /* between compiled and interpreted code: arguments are moved */
	HOTSPOT_NO_FRAME, /* vtable stubs and others */
	HOTSPOT_BYTECODE,
	HOTSPOT_CONTINUATION, /* stubs of virtual threads */
	HOTSPOT_OTHER,
};

/* The words of the innermost frame on the stack. */
enum hotspot_leaf {
	HOTSPOT_WHOLE,
	HOTSPOT_NOT_SAVED, /* the same, but the caller's frame pointer is still in its register */
	HOTSPOT_PUSHED,	   /* the caller's frame pointer and the return address */
	HOTSPOT_BARE,	   /* the return address */
};

/* The heap of an address: n->jvm has it then. */
static __always_inline bool find_heap(struct notes *n, __u64 address)
{
#pragma unroll
	for (int i = 0; i < (int)RUNTIME_HEAPS; i++) {
		__u64 low = n->info.hotspot.heaps[i].low;

		if (address - low < n->info.hotspot.heaps[i].high - low) {
			n->jvm.low = low;
			n->jvm.high = n->info.hotspot.heaps[i].high;
			n->jvm.map = n->info.hotspot.heaps[i].map;
			return true;
		}
	}
	return false;
}

__attribute__((noinline)) int hotspot_heap(__u64 address)
{
	struct notes *n = notes();

	return n ? find_heap(n, address) : 0;
}

/* ---- the blob of an address ------------------------------------------------------------------ */

/* One hop towards the first segment of the block. 1: there are more; 0: it is there; -1: none. */
__attribute__((noinline)) int hotspot_hop(void)
{
	struct notes *n = notes();
	__u64 at, in_piece;
	__u8 back;

	if (!n)
		return -1;
	at = n->jvm.segment;
	if (at - n->jvm.piece_start >= HOTSPOT_PIECE) {
		__u64 start = at < HOTSPOT_PIECE ? 0 : at - (HOTSPOT_PIECE - 1);

		if (read_user(n->jvm.piece, HOTSPOT_PIECE, n->jvm.map + start))
			return -1;
		n->jvm.piece_start = start;
	}
	in_piece = at - n->jvm.piece_start;
	UNWIND_HIDE(in_piece);
	back = n->jvm.piece[in_piece & (HOTSPOT_PIECE - 1)];
	if (back == HOTSPOT_FREE || back > at)
		return -1;
	n->jvm.segment = at - back;
	return back != 0;
}

static __always_inline __u64 header_word(const struct notes *n, __u64 offset)
{
	UNWIND_HIDE(offset);
	return offset <= HOTSPOT_HEADER - 8 ? *(const __u64 *)(n->jvm.header + offset) : 0;
}

static __always_inline void take_header(struct notes *n, __u64 pc)
{
	const struct runtime_hotspot *words = &n->info.hotspot;
	__u64 size = (__u32)header_word(n, words->frame_size);
	__u64 complete = header_word(n, words->frame_complete);
	__u64 code = header_word(n, words->code);
	__s64 before;

	n->jvm.words = size > HOTSPOT_WORDS_MAX ? 0 : size; /* -1: it has none */
	n->jvm.code = words->is_narrow ? n->jvm.blob + (__u32)code : code;
	before = words->is_narrow ? (__s64)(__s16)complete : (__s64)(__s32)complete;
	n->jvm.in_prologue = (__s64)(pc - n->jvm.code) < before;
}

/* By the blob's name. Most frames are of methods, whose name is the same string each time. */
static __always_inline enum hotspot_kind read_kind(struct notes *n)
{
	__u64 name = header_word(n, n->info.hotspot.name), first;
	__u64 *text = n->jvm.name;

	if (name == n->jvm.method_name && n->jvm.as_of == n->info.as_of)
		return HOTSPOT_COMPILED;
	if (read_user(text, sizeof(n->jvm.name), name))
		return HOTSPOT_OTHER;
	first = text[0];
	if (first == TEXT8('n', 'm', 'e', 't', 'h', 'o', 'd', 0)) {
		n->jvm.method_name = name;
		n->jvm.as_of = n->info.as_of;
		return HOTSPOT_COMPILED;
	}
	if (first == TEXT8('n', 'a', 't', 'i', 'v', 'e', ' ', 'n'))
		return HOTSPOT_COMPILED;
	if (first == TEXT8('I', '2', 'C', '/', 'C', '2', 'I', ' '))
		return HOTSPOT_ADAPTER;
	if (first == TEXT8('M', 'e', 't', 'h', 'o', 'd', 'H', 'a') ||
	    first == TEXT8('v', 't', 'a', 'b', 'l', 'e', ' ', 'c') ||
	    first == TEXT8('I', 'n', 'l', 'i', 'n', 'e', 'C', 'a'))
		return HOTSPOT_NO_FRAME;
	if (first == TEXT8('I', 'n', 't', 'e', 'r', 'p', 'r', 'e'))
		return HOTSPOT_BYTECODE;
	/* "StubRoutines (continuation stubs)", "Stub Generator continuation" */
	if (text[2] == TEXT8('n', 't', 'i', 'n', 'u', 'a', 't', 'i') ||
	    text[2] == TEXT8('o', 'n', 't', 'i', 'n', 'u', 'a', 't'))
		return HOTSPOT_CONTINUATION;
	return HOTSPOT_OTHER;
}

/* A compiled method's number, and the low half of its Method's address. 0: they cannot be read. */
static __always_inline __u64 read_check(const struct notes *n)
{
	__u32 number = (__u32)header_word(n, n->info.hotspot.compile_id);
	__u32 method = (__u32)header_word(n, n->info.hotspot.method);

	if (n->info.hotspot.compile_id > HOTSPOT_HEADER - 8 &&
	    read_user(&number, sizeof(number), n->jvm.blob + n->info.hotspot.compile_id))
		return 0;
	if (n->info.hotspot.method > HOTSPOT_HEADER - 8 &&
	    read_user(&method, sizeof(method), n->jvm.blob + n->info.hotspot.method))
		return 0;
	return (__u64)number << 32 | method;
}

/* The blob that has the address, in n->jvm. 1 or 0. */
__attribute__((noinline)) int hotspot_blob(__u64 pc)
{
	struct notes *n = notes();
	int more = 1;

	if (!n)
		return 0;
	n->jvm.segment = (pc - n->jvm.low) >> (n->info.hotspot.shift & 31);
	n->jvm.piece_start = n->jvm.segment + 1; /* none */
	for (__u32 i = 0; i < HOTSPOT_HOPS && more > 0; i++)
		more = hotspot_hop();
	if (more)
		return 0;
	n->jvm.blob = n->jvm.low + (n->jvm.segment << (n->info.hotspot.shift & 31)) +
		      n->info.hotspot.block_size;
	if (read_user(n->jvm.header, HOTSPOT_HEADER, n->jvm.blob))
		return 0;
	take_header(n, pc);
	n->jvm.kind = read_kind(n);
	n->jvm.check = n->jvm.kind == HOTSPOT_COMPILED ? read_check(n) : 0;
	return pc >= n->jvm.code;
}

/*
 * A result for an address is valid for 50 ms: code that replaced it would have to return to the
 * same address, and only a collection frees code on a stack. The same holds for fields of a Method.
 */
struct hotspot_known {
	__u64 address, as_of; /* a process, by its runtime_info */
	__u64 time;
	__u64 blob, check;
	__u32 words;
	__u16 kind, in_prologue;
};

struct hotspot_knowns {
	struct hotspot_known at[HOTSPOT_KNOWN];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hotspot_knowns);
} hotspot_knowns SEC(".maps");

static __always_inline struct hotspot_known *known_of(__u64 address)
{
	__u64 number = address * 0x9e3779b97f4a7c15ull >> 32;
	struct hotspot_knowns *knowns;
	__u32 zero = 0;

	knowns = bpf_map_lookup_elem(&hotspot_knowns, &zero);
	UNWIND_HIDE(number);
	return knowns ? &knowns->at[number & (HOTSPOT_KNOWN - 1)] : NULL;
}

static __always_inline bool is_known(const struct hotspot_known *known, const struct notes *n,
				     __u64 address, __u64 now)
{
	return known->address == address && known->as_of == n->info.as_of &&
	       now - known->time < HOTSPOT_KNOWN_NS;
}

/* 1: the blob of the address is in n->jvm; 0: there is none. */
__attribute__((noinline)) int hotspot_place(__u64 pc)
{
	struct hotspot_known *known = known_of(pc);
	struct scratch *s = scratch();
	struct notes *n = notes();

	if (!known || !s || !n)
		return 0;
	if (is_known(known, n, pc, s->sample.header.time)) {
		n->jvm.blob = known->blob;
		n->jvm.check = known->check;
		n->jvm.words = known->words;
		n->jvm.kind = known->kind;
		n->jvm.in_prologue = known->in_prologue;
		return 1;
	}
	if (!hotspot_blob(pc))
		return 0;
	known->address = pc;
	known->as_of = n->info.as_of;
	known->time = s->sample.header.time;
	known->blob = n->jvm.blob;
	known->check = n->jvm.check;
	known->words = n->jvm.words;
	known->kind = n->jvm.kind;
	known->in_prologue = n->jvm.in_prologue;
	return 1;
}

/* The ConstMethod of a Method, in *check. 0, or it cannot be read. */
static __always_inline long read_const_method(const struct notes *n, __u64 method, __u64 now,
					      __u64 *check)
{
	struct hotspot_known *known = known_of(method);

	if (!known)
		return -1;
	if (is_known(known, n, method, now)) {
		*check = known->check;
		return 0;
	}
	if (read_word(method + n->info.hotspot.const_method, check))
		return -1;
	known->address = method;
	known->as_of = n->info.as_of;
	known->time = now;
	known->check = *check;
	return 0;
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* A frame of compiled code, or of a stub, which has no check; its blob is in n->jvm. */
static __always_inline void note_compiled(struct notes *n, __u32 frame, __u64 ip)
{
	const struct frame_note note = {
		.frame = frame,
		.kind = FRAME_NOTE_HOTSPOT_CODE,
		.function = n->jvm.blob,
		.check = n->jvm.check,
		.place = ip - n->jvm.blob,
	};

	add_note(n, &note);
}

/* `bytecode`: as last stored by the interpreter; `in_register`: of the innermost frame, newer. */
__attribute__((noinline)) int note_interpreted(__u32 frame, __u64 method, __u64 bytecode,
					       __u64 in_register)
{
	struct frame_note note = {.frame = frame, .kind = FRAME_NOTE_HOTSPOT, .function = method};
	struct scratch *s = scratch();
	struct notes *n = notes();

	if (!n || !s || (method & 7) ||
	    read_const_method(n, method, s->sample.header.time, &note.check))
		return 0;
	if (in_register - note.check < HOTSPOT_BYTECODE_MAX)
		bytecode = in_register;
	if (bytecode - note.check < HOTSPOT_BYTECODE_MAX)
		note.place = bytecode - note.check;
	add_note(n, &note);
	return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/*
 * The return address is at `at`; the caller's frame pointer is right below it if `saved`, else in
 * its register. A global function.
 */
__attribute__((noinline)) int hotspot_return(__u64 at, __u32 saved)
{
	struct scratch *s = scratch();
	__u64 fp, ra;

	if (!s || at - s->unwind.sp > UNWIND_FP_STEP_MAX)
		return STACK_END_CODE_HEAP;
	fp = s->unwind.fp;
	if (unwind_find_pair(&s->unwind, saved ? at - 8 : at))
		return STACK_END_FAULT;
	ra = s->unwind.low;
	if (saved) {
		fp = s->unwind.low;
		ra = s->unwind.high;
	}
	if (!unwind_is_code(ra) || (!hotspot_heap(ra - 1) && !unwind_may_return_to(&s->unwind, ra)))
		return STACK_END_CODE_HEAP;
	if (saved)
		s->unwind.fp_lost = false;
	return unwind_take(&s->unwind, FRAME_CODE_HEAP, ra, at + 8, fp);
}

/* The interpreter's frame is above the frame pointer, and stores the caller's stack pointer. */
__attribute__((noinline)) int hotspot_interpreted(void)
{
	struct scratch *s = scratch();
	__u64 sp, fp, cfa, method, bytecode, in_register = 0;

	if (!s)
		return STACK_END_CODE_HEAP;
	sp = s->unwind.sp;
	fp = s->unwind.fp;
	if (s->unwind.fp_lost || fp - sp > UNWIND_FP_STEP_MAX)
		return STACK_END_CODE_HEAP;
	if (unwind_find_pair(&s->unwind, fp + HOTSPOT_BYTECODE_SLOT))
		return STACK_END_FAULT;
	bytecode = s->unwind.low;
	if (unwind_find_pair(&s->unwind, fp + HOTSPOT_METHOD_SLOT))
		return STACK_END_FAULT;
	method = s->unwind.low;
	if (unwind_find_pair(&s->unwind, fp + HOTSPOT_SENDER_SLOT))
		return STACK_END_FAULT;
	cfa = s->unwind.low;
	if (unwind_find_pair(&s->unwind, fp))
		return STACK_END_FAULT;
	if ((cfa & 7) || cfa - sp - 1 >= UNWIND_FP_STEP_MAX || !unwind_is_code(s->unwind.high) ||
	    (!hotspot_heap(s->unwind.high - 1) &&
	     !unwind_may_return_to(&s->unwind, s->unwind.high)))
		return STACK_END_CODE_HEAP;
	if (s->unwind.all_known && !s->unwind.after_call)
		in_register = s->unwind.general[13];
	if (s->runtimes & RUNTIME_HOTSPOT_NOTES)
		note_interpreted(s->sample.user_frames - 1, method, bytecode, in_register);
	/* hotspot_heap() and the others leave the pair alone */
	return unwind_take(&s->unwind, FRAME_CODE_HEAP, s->unwind.high, cfa, s->unwind.low);
}

/* The effects of the remaining instructions before the frame is complete. */
static __always_inline enum hotspot_leaf leaf_of_prologue(__u64 before, __u64 at)
{
	bool pushed = before >> 56 == 0x55 ||	  /* push %rbp */
		      before >> 40 == 0xec8b48 || /* mov %rsp,%rbp */
		      before >> 40 == 0xe58948;

	if ((at & 0xffffff) == 0xec8348 || (at & 0xffffff) == 0xec8148) /* sub $ROOM,%rsp */
		return pushed ? HOTSPOT_PUSHED : HOTSPOT_BARE;
	if ((at & 0xffffff) == 0xec8b48 || (at & 0xffffff) == 0xe58948)
		return pushed ? HOTSPOT_PUSHED : HOTSPOT_BARE;
	if ((at & 0xffffffff) == 0x246c8948 || (at & 0xffffffff) == 0x24ac8948)
		return HOTSPOT_NOT_SAVED; /* mov %rbp,ROOM(%rsp) */
	/* the barrier at a method's entry: cmpl $…,…(%r15); jne */
	if ((at & 0xffffff) == 0x7f8141 || (at & 0xffffff) == 0xbf8141 ||
	    (before & 0xffffff) == 0x7f8141)
		return HOTSPOT_WHOLE;
	return HOTSPOT_BARE;
}

/*
 * Methods end in add $ROOM,%rsp; pop %rbp; cmp …(%r15),%rsp; ja; ret. `ja` leads to lea
 * …(%rip),%r10; mov %r10,…(%r15); jmp. Methods that propagate an exception end in a jump.
 */
__attribute__((noinline)) int hotspot_leaf(__u64 ip, __u32 in_prologue)
{
	struct notes *n = notes();
	__u64 before, at, next, first;

	if (!n || read_user(n->jvm.bytes, sizeof(n->jvm.bytes), ip - 8))
		return HOTSPOT_WHOLE;
	before = n->jvm.bytes[0];
	at = n->jvm.bytes[1];
	next = n->jvm.bytes[2];
	first = at & 0xff;
	if (first == 0xc3 ||						  /* ret */
	    (at & 0xffffff) == 0xa73b49 || (at & 0xffffff) == 0x673b49 || /* cmp …(%r15),%rsp */
	    ((at & 0xffff) == 0x870f && (at >> 48 & 0xff) == 0xc3) ||	  /* ja …; ret */
	    ((at & 0xffffff) == 0x158d4c && at >> 56 == 0x4d && (next & 0xffff) == 0x9789) ||
	    ((at & 0xffffff) == 0x97894d && at >> 56 == 0xe9) ||
	    (first == 0xe9 && (before >> 8 & 0xffffff) == 0x97894d) ||
	    (before >> 56 == 0x5d && (first == 0xe9 || first == 0xff || (at & 0xffff) == 0xff41)))
		return HOTSPOT_BARE;
	if (first == 0x5d) { /* pop %rbp */
		__u64 then = at >> 8 & 0xff;

		if (then == 0xc3 || then == 0x5a || then == 0xe9 || then == 0xff ||
		    (at >> 8 & 0xffff) == 0x3b49 || (at >> 8 & 0xffff) == 0xff41)
			return HOTSPOT_PUSHED;
	}
	if (first == 0x55 && (at >> 8 & 0xffffff) == 0xec8b48) /* push %rbp; mov %rsp,%rbp */
		return HOTSPOT_BARE;
	if ((at & 0xffffff) == 0xec8b48 && before >> 56 == 0x55)
		return HOTSPOT_PUSHED;
	return in_prologue ? leaf_of_prologue(before, at) : HOTSPOT_WHOLE;
}

/* Stubs keep a frame pointer; those called at a method's entry have a word of ones above it. */
static __always_inline int step_by_fp(struct unwind_state *s)
{
	__u64 fp;
	int end;

	if (s->fp_lost || s->fp < s->sp)
		return STACK_END_CODE_HEAP;
	end = hotspot_return(s->fp + 8, true);
	if (end != STACK_END_CODE_HEAP || s->high != ~0ULL)
		return end;
	fp = s->low;
	end = hotspot_return(s->fp + 16, false);
	if (end == UNWIND_STEP_ON)
		s->fp = fp;
	return end;
}

/* By the size of its frame. */
static __always_inline int step_by_size(struct unwind_state *s, const struct notes *n, int leaf)
{
	return hotspot_return(s->sp + n->jvm.words * 8 - 8, leaf != HOTSPOT_NOT_SAVED);
}

/*
 * From compiled to interpreted code, arguments are copied over the return address, which moves
 * below them. Meanwhile it is also in rax, and the former stack pointer in r13.
 */
static __always_inline int step_from_adapter(struct unwind_state *s)
{
	__u64 sp = s->sp, before = s->general[13];
	int end = hotspot_return(sp, false);

	if (end == UNWIND_STEP_ON && s->ip == s->general[0] && !(before & 7) &&
	    before - sp <= HOTSPOT_ARGUMENTS_MAX && before > s->sp)
		s->sp = before;
	return end;
}

/*
 * Is this the return address of a virtual thread's oldest frame on this stack, whose callers are in
 * the heap: mov …(%r15),%rsp? The stack continues where the thread was entered.
 */
static __always_inline bool is_barrier(__u64 ip)
{
	__u64 code;

	return !read_user(&code, sizeof(code), ip) && (code & 0xffffff) == 0xa78b49;
}

/* A blob without a frame of one size. */
static __always_inline int step_without_size(struct unwind_state *s, const struct notes *n,
					     bool is_innermost)
{
	if (n->jvm.kind == HOTSPOT_ADAPTER && is_innermost)
		return step_from_adapter(s);
	if (n->jvm.kind <= HOTSPOT_NO_FRAME)
		return hotspot_return(s->sp, false);
	if (n->jvm.kind == HOTSPOT_CONTINUATION && !is_innermost && is_barrier(s->ip))
		return hotspot_return(s->sp + HOTSPOT_ENTER_WORDS * 8 - 8, true);
	return step_by_fp(s);
}

/* Exceptions jump to their handler's stub, with the return address in rdx. */
static __always_inline int step_to_register(struct unwind_state *s)
{
	__u64 ra = s->general[1];

	if (!unwind_is_code(ra) || !hotspot_heap(ra - 1))
		return STACK_END_CODE_HEAP;
	return unwind_take(s, FRAME_CODE_HEAP, ra, s->sp, s->fp);
}

static __always_inline int step_from_blob(struct unwind_state *s, const struct notes *n, int leaf,
					  bool is_innermost)
{
	if (leaf == HOTSPOT_BARE)
		return hotspot_return(s->sp, false);
	if (leaf == HOTSPOT_PUSHED)
		return hotspot_return(s->sp + 8, true);
	if (n->jvm.words)
		return step_by_size(s, n, leaf);
	return step_without_size(s, n, is_innermost);
}

/*
 * Code that searches strings allocates stack within a method's frame, and pushes the former stack
 * pointer. Returns how far that is above the current one, or 0.
 */
__attribute__((noinline)) int hotspot_sp_before(__u32 word)
{
	struct scratch *s = scratch();
	__u64 before;

	if (!s || unwind_find_pair(&s->unwind, s->unwind.sp + (__u64)word * 8))
		return 0;
	before = s->unwind.low;
	if ((before & 7) || before - s->unwind.sp - 1 >= HOTSPOT_ROOM_MAX)
		return 0;
	return before - s->unwind.sp;
}

static __always_inline int step_from_room(struct unwind_state *s, const struct notes *n)
{
	for (__u32 word = 0; word < HOTSPOT_PUSHED_WORDS; word++) {
		int room = hotspot_sp_before(word);

		if (room > 0 && room <= HOTSPOT_ROOM_MAX)
			return hotspot_return(s->sp + room + n->jvm.words * 8 - 8, true);
	}
	return STACK_END_CODE_HEAP;
}

/* The bytes at ip are inconclusive: a return address that leads to code decides. */
static __always_inline int step_otherwise(struct unwind_state *s, const struct notes *n, int leaf)
{
	int end = STACK_END_CODE_HEAP;

	if (n->jvm.words)
		end = leaf != HOTSPOT_WHOLE ? step_by_size(s, n, HOTSPOT_WHOLE)
					    : step_from_room(s, n);
	if (end == STACK_END_CODE_HEAP)
		end = hotspot_return(s->sp, false);
	return end == STACK_END_CODE_HEAP ? step_to_register(s) : end;
}

/* One step from a frame in a code heap. UNWIND_STEP_ON, an end, or HOTSPOT_ELSEWHERE. */
__attribute__((noinline)) int hotspot_step(void)
{
	struct scratch *s = scratch();
	struct notes *n = notes();
	const struct runtime_hotspot *words;
	int leaf = HOTSPOT_WHOLE, end;
	bool is_innermost;
	__u64 pc;

	if (!s || !n)
		return HOTSPOT_ELSEWHERE;
	words = &n->info.hotspot;
	is_innermost = s->unwind.all_known && !s->unwind.after_call;
	pc = s->unwind.ip - !is_innermost;
	if (!find_heap(n, pc))
		return HOTSPOT_ELSEWHERE;
	s->unwind.in_trampoline = false;
	if (pc - words->bytecode_start < words->bytecode_end - words->bytecode_start)
		return hotspot_interpreted();
	if (!hotspot_place(pc))
		return STACK_END_CODE_HEAP;
	if (n->jvm.kind == HOTSPOT_BYTECODE)
		return hotspot_interpreted();
	if (s->runtimes & RUNTIME_HOTSPOT_NOTES)
		note_compiled(n, s->sample.user_frames - 1, s->unwind.ip);
	if (is_innermost)
		leaf = hotspot_leaf(pc, n->jvm.in_prologue);
	end = step_from_blob(&s->unwind, n, leaf, is_innermost);
	if (end == STACK_END_CODE_HEAP && is_innermost)
		end = step_otherwise(&s->unwind, n, leaf);
	return end;
}

#endif
