/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes of CPython, whose own chain of frames is walked before the native stack. The loop that runs
 * a group of them is the native frame that contains their anchor, an object on the C stack.
 */
#ifndef BPF_CPYTHON_BPF_H
#define BPF_CPYTHON_BPF_H

#include "code_copy.bpf.h"
#include "runtime.bpf.h"

#define PYTHON_FRAMES_A_CHECK 32
#define PYTHON_CHECKS	      12 /* noted frames, … */
#define PYTHON_PASS_CHECKS                                                                         \
	32 /* … and frames without a note: only their group's anchor is searched */
#define PYTHON_OWNED_BY_C 3 /* owner of a frame that represents the C stack: this, or more */

static __always_inline __u64 word_of_frame(const struct notes *n, __u64 offset)
{
	UNWIND_HIDE(offset);
	return offset <= PYTHON_FRAME_BYTES - 8
		       ? *(const __u64 *)((const char *)n->python_frame + offset)
		       : 0;
}

static __always_inline __u8 byte_of_frame(const struct notes *n, __u64 offset)
{
	UNWIND_HIDE(offset);
	return offset < PYTHON_FRAME_BYTES ? ((const unsigned char *)n->python_frame)[offset] : 0;
}

/* PyThreadState of this thread; 0: it has none. */
static __always_inline __u64 python_thread(const struct runtime_python *python)
{
	__u64 at = thread_base();

#pragma unroll
	for (__u32 i = 0; i < RUNTIME_HOPS; i++) {
		if (i >= python->hops)
			break;
		if (!at || read_word(at + python->hop[i], &at))
			return 0;
	}
	return python->hops ? at : 0;
}

/* The result of one step along the chain. */
enum {
	PYTHON_ROOT, /* to its end */
	PYTHON_MORE, /* there is another frame */
	PYTHON_FULL, /* there is no room for the frame */
	PYTHON_TORN, /* that is no frame */
};

/* The thread's state towards the GIL: one or two reads of user memory. FRAME_NOTE_GIL_* */
static __always_inline __u8 python_gil(const struct runtime_python *python, __u64 *thread)
{
	struct {
		__u64 holder;
		__u32 locked, unused;
	} gil;
	__u32 flags[2]; /* holds, waits */
	__u8 known = FRAME_NOTE_GIL_KNOWN;
	__u64 interpreter, fs, state = *thread;

	if (python->state_holds != RUNTIME_NONE) {
		if (read_user(flags, sizeof(flags), state + python->state_holds))
			return 0;
		if (flags[0])
			known |= FRAME_NOTE_GIL_HELD;
		if (python->has_waits && flags[1])
			known |= FRAME_NOTE_GIL_WAITS;
		return known;
	}
	if (python->gil_interpreter &&
	    (read_word(state + python->state_interpreter, &interpreter) ||
	     interpreter != python->gil_interpreter))
		return 0;
	if (!python->gil || read_user(&gil, sizeof(gil), python->gil))
		return 0;
	if (gil.locked != 1)
		return known;
	if (gil.holder != state && python->state_thread &&
	    !read_word(gil.holder + python->state_thread, &fs) && fs == thread_base())
		*thread = state = gil.holder;
	return gil.holder == state ? known | FRAME_NOTE_GIL_HELD : known;
}

static __always_inline int end_group(struct notes *n, __u64 anchor)
{
	__u32 group = n->groups;

	if (group >= PYTHON_GROUPS)
		return PYTHON_FULL;
	n->anchors[group & (PYTHON_GROUPS - 1)] = anchor;
	n->groups = group + 1;
	return PYTHON_MORE;
}

static __always_inline __u64 word_of_code(const struct notes *n, __u64 offset)
{
	offset -= n->info.python.code_from;
	UNWIND_HIDE(offset);
	return offset <= RUNTIME_CODE_BYTES - 8 ? *(const __u64 *)(n->python_code + offset) : 0;
}

/* The fields of a code object that are read are close together. */
static __always_inline bool read_code(struct notes *n, __u64 code)
{
	__u64 size = n->info.python.code_size;

	UNWIND_HIDE(size);
	return size <= RUNTIME_CODE_BYTES &&
	       !read_user(n->python_code, size, code + n->info.python.code_from);
}

/* The name of the file by its length and its last bytes. Bytes that cannot be read count as 0. */
static __always_inline __u64 read_file(struct notes *n, __u64 filename)
{
	const struct runtime_python *python = &n->info.python;
	__u64 length = 0, size = sizeof(n->file_tail);

#pragma unroll
	for (__u32 i = 0; i < RUNTIME_FILE_TAIL; i++)
		n->file_tail[i] = 0;
	if (read_word(filename + python->str_length, &length))
		length = 0;
	if (length < size)
		size = length;
	UNWIND_HIDE(size);
	if (size && size <= sizeof(n->file_tail))
		read_user(n->file_tail, size, filename + python->str_ascii + length - size);
	return runtime_python_file(length, n->file_tail);
}

/* Most functions of a stack are of a few files. */
static __always_inline __u64 file_of_code(struct notes *n, __u64 filename)
{
	struct known_word *known = known_word(n, filename);

	if (is_known_word(n, known, filename))
		return known->led_to;
	known->led_to = read_file(n, filename);
	known->function = filename;
	known->time = n->time;
	return known->led_to;
}

/* The version of the code object in the buffer, or its substitute. Unreadable parts count as 0. */
static __always_inline __u32 version_of_code(struct notes *n)
{
	const struct runtime_python *python = &n->info.python;
	__u64 version = word_of_code(n, python->code_version), hash;

	if (python->code_name == RUNTIME_NONE)
		return version;
	if (read_word(word_of_code(n, python->code_name) + python->str_hash, &hash))
		hash = 0;
	return runtime_python_version((__u32)version, hash,
				      file_of_code(n, word_of_code(n, python->code_filename)));
}

/* frame_note.check of a code object. False: it is none. */
static __always_inline bool check_code(struct notes *n, __u64 code, __u64 *check)
{
	const struct runtime_python *python = &n->info.python;
	struct known_word *known = known_word(n, code);

	if (is_known_word(n, known, code)) {
		*check = known->led_to;
		return true;
	}
	if (!read_code(n, code) ||
	    (python->code_type && word_of_code(n, RUNTIME_OBJECT_TYPE) != python->code_type))
		return false;
	*check = (__u64)version_of_code(n) << 32 | (__u32)word_of_code(n, python->code_line);
	known->function = code;
	known->led_to = *check;
	known->time = n->time;
	meet_code(n, code, *check);
	return true;
}

/* Each group needs a note of its loop as well, and so does the cut one. */
static __always_inline int note_python(struct notes *n, __u64 code)
{
	struct frame_note note = {
		.frame = n->groups, .kind = FRAME_NOTE_PYTHON, .flags = n->gil, .function = code};

	if (n->groups >= PYTHON_GROUPS || n->count + n->groups + 2 >= FRAME_NOTES_MAX)
		return PYTHON_FULL;
	note.place = (__u32)(word_of_frame(n, n->info.python.frame_instruction) - code);
	if (!check_code(n, code, &note.check))
		return PYTHON_TORN;
	return add_note(n, &note) ? PYTHON_MORE : PYTHON_FULL;
}

/*
 * Reads a frame into n->python_frame. Its caller usually lies right below it, so bytes below it are
 * read as well, up to the page boundary: 1,000 bytes cost hardly more than 88.
 */
static __always_inline bool read_python_frame(struct notes *n, __u64 frame)
{
	__u64 at = frame - n->python_from, from, size;

	if (frame >> UNWIND_ADDRESS_BITS || (frame & 7))
		return false;
	if (at > PYTHON_WINDOW - PYTHON_FRAME_BYTES) {
		from = frame - (PYTHON_WINDOW - PYTHON_FRAME_BYTES);
		if ((from ^ frame) & ~IN_PAGE)
			from = frame & ~IN_PAGE;
		at = frame - from;
		size = at + PYTHON_FRAME_BYTES;
		UNWIND_HIDE(size);
		n->python_from = PYTHON_NOWHERE;
		if (size > PYTHON_WINDOW || read_user(n->python_window, size, from))
			return false;
		n->python_from = from;
	}
	at >>= 3;
	UNWIND_HIDE(at);
	if (at > (PYTHON_WINDOW - PYTHON_FRAME_BYTES) / 8)
		return false;
#pragma unroll
	for (__u32 i = 0; i < PYTHON_FRAME_BYTES / 8; i++)
		n->python_frame[i] = n->python_window[at + i];
	return true;
}

/* Does the frame in the buffer represent the C stack? From 3.12 on, one ends each group. */
static __always_inline bool is_of_c(const struct notes *n)
{
	const struct runtime_python *python = &n->info.python;

	return python->frame_is_entry == RUNTIME_NONE &&
	       byte_of_frame(n, python->frame_owner) >= PYTHON_OWNED_BY_C;
}

/* One frame of the chain. */
static __always_inline int step_python(struct notes *n)
{
	const struct runtime_python *python = &n->info.python;
	__u64 code, frame = n->frame;
	int end;

	if (!frame)
		return PYTHON_ROOT;
	if (!read_python_frame(n, frame))
		return PYTHON_TORN;
	n->frame = word_of_frame(n, python->frame_previous);
	if (is_of_c(n))
		return end_group(n, frame);
	code = word_of_frame(n, python->frame_code) & ~3ull;
	end = note_python(n, code);
	if (end == PYTHON_MORE && python->frame_is_entry != RUNTIME_NONE &&
	    byte_of_frame(n, python->frame_is_entry)) {
		end = end_group(n, n->cframe);
		if (read_word(n->cframe + python->cframe_previous, &n->cframe))
			return PYTHON_TORN;
	}
	return end;
}

/* Some frames without a call. A global function: it is verified once, and called often. */
__attribute__((noinline)) int python_run(void)
{
	struct notes *n = notes();
	int end = n ? PYTHON_MORE : PYTHON_ROOT;

	for (__u32 i = 0; i < FRAMES_A_RUN && n && end == PYTHON_MORE; i++)
		end = step_python(n);
	return end;
}

/* The frame that the C frame points to. */
static __always_inline bool enter_cframe(struct notes *n)
{
	return !read_word(n->cframe + n->info.python.cframe_frame, &n->frame);
}

/*
 * Up to 3.12 the loop links in its C frame before it initializes it. Until then the frame pointer
 * is garbage, and the chain begins at the previous C frame.
 */
static __always_inline bool begin_chain_again(void)
{
	struct notes *n = notes();
	const struct runtime_python *python = n ? &n->info.python : NULL;

	return python && python->cframe_frame != RUNTIME_NONE && !n->count && !n->groups &&
	       !read_word(n->cframe + python->cframe_previous, &n->cframe) && n->cframe &&
	       enter_cframe(n);
}

static __always_inline int python_runs(void)
{
	int end = PYTHON_MORE;

	for (__u32 i = 0; i < PYTHON_FRAMES_A_CHECK / FRAMES_A_RUN && end == PYTHON_MORE; i++)
		end = python_run();
	return end;
}

/* A global function too. */
__attribute__((noinline)) int python_steps(void)
{
	int end = python_runs();

	return end == PYTHON_TORN && begin_chain_again() ? python_runs() : end;
}

/* One frame that is not noted. Is its group's anchor found? A global function. */
__attribute__((noinline)) int python_pass(void)
{
	struct notes *n = notes();
	__u64 frame;

	if (!n)
		return PYTHON_ROOT;
	frame = n->frame;
	if (!frame)
		return PYTHON_ROOT;
	if (!read_python_frame(n, frame))
		return PYTHON_TORN;
	n->frame = word_of_frame(n, n->info.python.frame_previous);
	if (!is_of_c(n))
		return PYTHON_MORE;
	end_group(n, frame);
	return PYTHON_ROOT;
}

__attribute__((noinline)) int python_passes(void)
{
	int end = PYTHON_MORE;

	for (__u32 i = 0; i < PYTHON_FRAMES_A_CHECK && end == PYTHON_MORE; i++)
		end = python_pass();
	return end;
}

/*
 * The anchor of the group that is cut: its inner frames are placed at its loop even so. A global
 * function, for few chains.
 */
__attribute__((noinline)) int find_last_anchor(__u64 until)
{
	struct notes *n = notes();

	if (!n)
		return 0;
	if (n->info.python.frame_is_entry != RUNTIME_NONE) {
		end_group(n, n->cframe);
		return 0;
	}
	for (__u32 i = 0; i < PYTHON_PASS_CHECKS; i++)
		if (python_passes() != PYTHON_MORE || bpf_ktime_get_ns() > until)
			break;
	return 0;
}

/* A note without a function: frames without notes follow. There is room for it. */
static __always_inline void note_cut(struct notes *n)
{
	__u32 group = n->groups;
	struct frame_note note = {.frame = group < PYTHON_GROUPS ? group : PYTHON_GROUPS - 1,
				  .kind = FRAME_NOTE_PYTHON};

	add_note(n, &note);
}

/* Does the thread's state point to a frame? */
static __always_inline bool begin_chain(struct notes *n)
{
	const struct runtime_python *python = &n->info.python;
	__u64 state = python_thread(python);

	if (!state)
		return false;
	n->gil = python_gil(python, &state);
	if (read_word(state + python->state_frame, &n->frame))
		return false;
	if (python->cframe_frame == RUNTIME_NONE)
		return true;
	n->cframe = n->frame;
	return enter_cframe(n);
}

/* The Python frames of the current thread, until the deadline. */
static __always_inline void walk_python(struct notes *n, __u64 until)
{
	int end = begin_chain(n) ? PYTHON_MORE : PYTHON_ROOT;

	for (__u32 i = 0; i < PYTHON_CHECKS && end == PYTHON_MORE; i++) {
		end = python_steps();
		if (bpf_ktime_get_ns() > until)
			break;
	}
	if (end == PYTHON_ROOT)
		return;
	note_cut(n);
	if (end != PYTHON_TORN && n->groups < PYTHON_GROUPS)
		find_last_anchor(until);
}

/* The next anchor without a native frame; above all frames, if there is none. */
static __always_inline __u64 next_anchor(const struct notes *n)
{
	__u32 group = n->passed;

	if (group >= n->groups || group >= PYTHON_GROUPS)
		return NO_ANCHOR;
	return n->anchors[group & (PYTHON_GROUPS - 1)];
}

/*
 * Native frame `frame` covers the stack from `sp` to `cfa`, which is above the next anchor. Is it
 * that group's loop? Anchors that the walk has passed have no frame. A global function.
 */
__attribute__((noinline)) int note_loop(__u32 frame, __u64 sp, __u64 cfa)
{
	struct frame_note note = {.frame = frame, .kind = FRAME_NOTE_PYTHON_LOOP};
	struct scratch *s = scratch();
	struct notes *n = notes();

	if (!n || !s)
		return 0;
	for (int i = 0; i < 4; i++) {
		__u64 anchor = next_anchor(n);
		__u32 group = n->passed;

		if (anchor >= cfa)
			break;
		n->passed = group + 1;
		if (anchor < sp)
			continue;
		note.place = group;
		add_note(n, &note);
		break;
	}
	s->next_anchor = next_anchor(n);
	return 0;
}

#endif
