/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Notes of V8: words beside each frame pointer, and the function of the closure among them. */
#ifndef BPF_V8_BPF_H
#define BPF_V8_BPF_H

#include "runtime.bpf.h"

#define V8_TAG_MASK 3u
#define V8_TAG	    1u
#define V8_KNOWN_NS 1250000ull

static __always_inline __u64 load_v8_word(const struct notes *n, __s64 offset)
{
	__u64 at = (__u64)(offset + (__s64)RUNTIME_V8_FRAME) >> 3;

	UNWIND_HIDE(at);
	return at < V8_FRAME_WORDS ? n->v8_frame[at] : 0;
}

/* Reads the words below the frame pointer, which are usually in the page just read. */
static __always_inline bool read_v8_frame(struct notes *n, const struct unwind_state *u, __u64 fp)
{
	__u64 from = fp - RUNTIME_V8_FRAME, at = (from - u->window_start) >> 3;

	if (from < u->window_start || fp > u->window_end)
		return !read_user(n->v8_frame, sizeof(n->v8_frame), from);
	UNWIND_HIDE(at);
	if (at > UNWIND_WINDOW / 8 - V8_FRAME_WORDS)
		return false;
#pragma unroll
	for (__u32 i = 0; i < V8_FRAME_WORDS; i++)
		n->v8_frame[i] = u->window[at + i];
	return true;
}

/* The number of the script that was read into n->v8_script; false: it could not be read. */
static __always_inline bool v8_script_number(struct notes *n, __u32 *number)
{
	__u64 script = n->v8_script[0];
	struct known_word *known = known_word(n, script);

	if (is_known_word(n, known, script)) {
		*number = known->led_to;
		return true;
	}
	if (read_user(number, sizeof(*number), script + (__s64)n->info.v8.script_id))
		return false;
	known->function = script;
	known->led_to = *number;
	known->time = n->time;
	return true;
}

/* frame_note.check of a SharedFunctionInfo; 0: not known. */
static __always_inline __u64 v8_check(struct notes *n, __u64 shared)
{
	const struct runtime_v8 *v8 = &n->info.v8;
	__u64 check;
	__u32 number;

	if (!v8->number)
		return 0;
	if (!v8->script)
		return read_user(&check, sizeof(check), shared + (__s64)v8->number) ? 0 : check;
	if (read_user(n->v8_script, sizeof(n->v8_script), shared + (__s64)v8->script) ||
	    !v8_script_number(n, &number))
		return 0;
	return (__u64)number << 32 | n->v8_script[V8_SCRIPT_WORDS - 1] >> 32;
}

static __always_inline struct v8_known *v8_known(struct notes *n, __u64 function)
{
	__u64 at = (function >> 3) * 0x9e3779b97f4a7c15ull >> (64 - V8_KNOWN_BITS);

	UNWIND_HIDE(at);
	return &n->v8_known[at & ((1u << V8_KNOWN_BITS) - 1)];
}

/* Are the words of the closure the same as when its function was last read? */
static __always_inline bool is_same_closure(const struct notes *n, const struct v8_known *known)
{
	__u64 differ = 0;

#pragma unroll
	for (__u32 i = 0; i < V8_CLOSURE_WORDS; i++)
		differ |= n->v8_closure[i] ^ known->closure[i];
	return !differ && n->time - known->looked_at < V8_KNOWN_NS;
}

static __always_inline bool look_at_v8(struct notes *n, __u64 function, struct v8_known *known)
{
	__u64 at = (__u64)(__u32)(n->info.v8.shared - n->info.v8.closure) >> 3, shared;

	UNWIND_HIDE(at);
	shared = n->v8_closure[at & (V8_CLOSURE_WORDS - 1)];
	if ((shared & V8_TAG_MASK) != V8_TAG)
		return false;
	known->function = function;
	known->as_of = n->info.as_of;
	known->shared = shared;
	known->check = v8_check(n, shared);
	known->looked_at = n->time;
#pragma unroll
	for (__u32 i = 0; i < V8_CLOSURE_WORDS; i++)
		known->closure[i] = n->v8_closure[i];
	return true;
}

/* The function of a JSFunction. False: there is none. */
static __always_inline bool identify_v8(struct notes *n, __u64 function, struct frame_note *note)
{
	struct v8_known *known = v8_known(n, function);
	bool is_it = known->function == function && known->as_of == n->info.as_of;

	if (!is_it || known->seen != n->time) {
		if (read_user(n->v8_closure, sizeof(n->v8_closure),
			      function + (__s64)n->info.v8.closure))
			return false;
		if (!(is_it && is_same_closure(n, known)) && !look_at_v8(n, function, known))
			return false;
		known->seen = n->time;
	}
	note->function = known->shared;
	note->check = known->check;
	return true;
}

/*
 * A frame of no function has its type, a small number, in place of the context. In a WebAssembly
 * frame the next word is the module's instance. A global function.
 */
__attribute__((noinline)) int note_v8_typed(__u32 frame, __u64 type)
{
	struct frame_note note = {.frame = frame};
	struct notes *n = notes();
	const struct runtime_v8 *v8;

	if (!n || type & 1 || type >> 1 >= 64)
		return 0;
	v8 = &n->info.v8;
	type >>= 1;
	if (type && type == v8->wasm) {
		note.kind = FRAME_NOTE_V8_WASM;
		note.function = load_v8_word(n, v8->function);
		if ((note.function & V8_TAG_MASK) == V8_TAG)
			add_note(n, &note);
	} else if ((frame ? v8->typed : v8->typed_leaf) >> (type & 63) & 1) {
		note.kind = FRAME_NOTE_V8_FRAME;
		note.function = type;
		add_note(n, &note);
	}
	return 0;
}

/* Frame number `frame`, with frame pointer `fp`. */
static __always_inline void note_v8_frame(const struct scratch *s, struct notes *n, __u32 frame,
					  __u64 fp)
{
	struct frame_note note = {.frame = frame, .kind = FRAME_NOTE_V8};
	__u64 function, offset, context;

	if ((fp & 7) || !read_v8_frame(n, &s->unwind, fp))
		return;
	context = load_v8_word(n, n->info.v8.context);
	if ((context & V8_TAG_MASK) != V8_TAG) {
		note_v8_typed(frame, context);
		return;
	}
	function = load_v8_word(n, n->info.v8.function);
	if ((function & V8_TAG_MASK) != V8_TAG || !identify_v8(n, function, &note))
		return;
	/* a small integer, or the address of something else */
	offset = load_v8_word(n, n->info.v8.bytecode_offset);
	if (!(__u32)offset)
		note.place = offset >> 32;
	add_note(n, &note);
}

/* A global function, which is verified once. */
__attribute__((noinline)) int note_v8(__u32 frame, __u64 fp)
{
	struct scratch *s = scratch();
	struct notes *n = notes();

	if (n && s)
		note_v8_frame(s, n, frame, fp);
	return 0;
}

/* Frame number `frame` does not exist yet: V8 calls functions with the JSFunction in a register. */
__attribute__((noinline)) int note_v8_entered(__u32 frame, __u64 function)
{
	struct frame_note note = {.frame = frame, .kind = FRAME_NOTE_V8};
	struct notes *n = notes();

	if (!n || (function & V8_TAG_MASK) != V8_TAG)
		return 0;
	if (identify_v8(n, function, &note))
		add_note(n, &note);
	return 0;
}

#endif
