/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes: beside the frames of a stack, the words by which a runtime in the process knows its functions.
 *
 * V8 has them beside the frame pointer of each frame. CPython has its own chain of frames, which is walked before the native stack: the loop
 * that runs some of them is the native frame in which its anchor lies, an object on the C stack. Nothing here is checked:
 * whoever reads the names finds out what is none.
 */
#ifndef BPF_RUNTIME_BPF_H
#define BPF_RUNTIME_BPF_H

#include "forked.bpf.h"
#include "maps.bpf.h"

#define PYTHON_FRAMES_A_CHECK 32
#define PYTHON_CHECKS	      12 /* of frames that are noted, … */
#define PYTHON_PASS_CHECKS    32 /* … and of those that are not: their group's anchor is looked for */
#define PYTHON_GROUPS	      128u /* a power of two */
#define PYTHON_FRAME_BYTES    88
#define PYTHON_WINDOW	      512
#define PYTHON_NOWHERE	      (1ULL << 63) /* far from any address of a process */
#define IN_PAGE		      4095ULL
#define COPIED_SETS	      2048u /* a power of two */
#define COPIED_BITS	      11
#define COPIED_WAYS	      4u
#define CODE_COPIES	      8u /* in one tick, at most */
#define PYTHON_OWNED_BY_C     3 /* the owner of a frame that stands for the C stack: this, or more */
#define V8_TAG_MASK	      3u
#define V8_TAG		      1u
#define V8_FRAME_WORDS	      (RUNTIME_V8_FRAME / 8)
#define V8_SCRIPT_WORDS	      3u /* of a SharedFunctionInfo: from its script up to its number there */
#define V8_CLOSURE_WORDS      4u /* of a JSFunction; a power of two */
#define V8_KNOWN_BITS	      7
#define V8_KNOWN_NS	      1250000ull
#define KNOWN_WORDS	      16u /* a power of two */

/*
 * What a function led to, in this sample: one that calls itself is on the stack many times. Not longer: its memory may be
 * another function's by the next sample.
 */
struct known_word {
	__u64 function,
		led_to; /* V8: a Script, its number. Python: the code object, frame_note.check */
	__u64 time;	/* notes.time */
};

/*
 * What a JSFunction led to, on this CPU. Within a sample it is that. In the next one its own words are read again: if they are what
 * they were, it is the same closure of the same function, whose own memory is not looked at then. That holds for less time than
 * V8 takes to collect all that is garbage, before which no function's memory is used again: 1.4 ms at least, of an empty heap.
 */
struct v8_known {
	__u64 function, as_of; /* … of the process that was found then */
	__u64 seen, looked_at; /* notes.time */
	__u64 closure[V8_CLOSURE_WORDS];
	__u64 shared, check;
};

/* Where the walk is in the code of a JVM; see hotspot.bpf.h. */
#define HOTSPOT_PIECE  128u /* bytes of the map that are read at once, a power of two */
#define HOTSPOT_HEADER 256u
struct jvm_place {
	__u64 low, high, map; /* the heap */
	__u64 segment, piece_start;
	__u64 blob, code, words;
	__u64 check;		  /* of a compiled method's note */
	__u32 kind, in_prologue;  /* in_prologue: the frame is not complete */
	__u64 method_name, as_of; /* the name that blobs of methods have, in the process of then */
	__u64 name[4];
	__u64 bytes[3]; /* before the instruction pointer, and from there on */
	unsigned char piece[HOTSPOT_PIECE];
	unsigned char header[HOTSPOT_HEADER];
};

struct notes {
	struct runtime_info info;
	__u32 has; /* info.has, of this sample's process; 0: nothing is noted */
	__u32 count;
	__u64 time; /* of the sample */
	/* Python: the frame to be read next, and its C frame; groups that are whole, and the first that is not passed yet */
	__u64 frame, cframe;
	__u32 groups, passed;
	__u8 gil; /* FRAME_NOTE_GIL_ of the sample */
	__u64 anchors[PYTHON_GROUPS];
	/* what was read with a frame: those that it calls begin behind it, its callers' end before it */
	__u64 python_from;
	__u64 python_window[PYTHON_WINDOW / 8];
	__u64 python_frame[PYTHON_FRAME_BYTES / 8];
	unsigned char python_code[RUNTIME_CODE_BYTES]; /* from code_from on */
	__u64 file_tail[RUNTIME_FILE_TAIL];
	/* functions that were not copied yet */
	struct {
		__u64 function, check;
	} met[CODE_COPIES];
	__u32 met_count;
	/* V8: what lies below the frame pointer, lowest first; functions by a few bits of their address */
	__u64 v8_frame[V8_FRAME_WORDS];
	__u64 v8_closure[V8_CLOSURE_WORDS];
	__u64 v8_script[V8_SCRIPT_WORDS];
	struct v8_known v8_known[1u << V8_KNOWN_BITS]; /* by a few bits of the function */
	struct known_word known[KNOWN_WORDS];	       /* by a few bits of the function */
	struct jvm_place jvm;
	struct frame_note notes[FRAME_NOTES_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct notes);
} note_scratches SEC(".maps");

/* Hashes of functions of Python that were copied: those of a set push each other out, and are copied once more then. */
struct copied_set {
	__u64 hashes[COPIED_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COPIED_SETS);
	__type(key, __u32);
	__type(value, struct copied_set);
} copied_codes SEC(".maps");

/* By process, in the collector's numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIME_PROCESSES);
	__type(key, __u32);
	__type(value, struct runtime_info);
} runtimes SEC(".maps");

/* How many processes in `runtimes` have a number that ends like this. Most have none, and pay for no more than this. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} runtime_slots SEC(".maps");

static __always_inline struct notes *notes(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&note_scratches, &zero);
}

static __always_inline bool add_note(struct notes *n, const struct frame_note *note)
{
	__u32 at = n->count;

	if (at >= FRAME_NOTES_MAX)
		return false;
	n->notes[at] = *note;
	n->count = at + 1;
	return true;
}

/* Where it is kept what this function led to. Objects are at multiples of 8, and many are larger. */
static __always_inline struct known_word *known_word(struct notes *n, __u64 function)
{
	__u64 at = function >> 4 ^ function >> 8;

	UNWIND_HIDE(at);
	return &n->known[at & (KNOWN_WORDS - 1)];
}

static __always_inline bool is_known_word(const struct notes *n, const struct known_word *known,
					  __u64 function)
{
	return known->function == function && known->time == n->time;
}

static __always_inline bool may_have_runtimes(__u32 tgid)
{
	__u32 slot = tgid & (RUNTIME_SLOTS - 1);
	__u64 *count = bpf_map_lookup_elem(&runtime_slots, &slot);

	return (count && *count) || fork_of(tgid);
}

static __always_inline void begin_notes(struct notes *n, const struct runtime_info *info,
					__u64 time)
{
	n->info.as_of = info->as_of;
	n->info.v8 = info->v8;
	n->info.python = info->python;
	if (info->has & RUNTIME_HOTSPOT)
		n->info.hotspot = info->hotspot;
	n->has = info->has;
	n->count = n->groups = n->passed = n->met_count = 0;
	n->python_from = PYTHON_NOWHERE;
	n->time = time;
}

/* Of a child that only its fork is known of. It may lose its place to another one meanwhile. */
static __always_inline __u32 find_forked_runtimes(__u32 tgid, __u64 time)
{
	struct runtime_fork *fork = fork_of(tgid);
	struct notes *n = notes();

	if (!fork || !n || has_executed(tgid, fork->info.as_of))
		return 0;
	begin_notes(n, &fork->info, time);
	FORK_BARRIER();
	return fork->tgid == tgid ? n->has : 0;
}

/* What is known of the process's runtimes. A program that it executed since has others. */
static __always_inline __u32 find_runtimes(__u32 tgid, __u64 time)
{
	struct runtime_info *info = bpf_map_lookup_elem(&runtimes, &tgid);
	struct notes *n = notes();

	if (!info)
		return find_forked_runtimes(tgid, time);
	if (!n || has_executed(tgid, info->as_of))
		return 0;
	begin_notes(n, info, time);
	return n->has;
}

/* What the process's children have of it: Python forks, the others do not. */
static __always_inline const struct runtime_info *inherited_runtimes(__u32 tgid)
{
	struct runtime_info *info = bpf_map_lookup_elem(&runtimes, &tgid);
	struct runtime_fork *fork;

	if (!info) {
		fork = fork_of(tgid);
		info = fork ? &fork->info : NULL;
	}
	if (!info || !(info->has & RUNTIME_PYTHON) || has_executed(tgid, info->as_of))
		return NULL;
	return info;
}

/* `parent` has made `child`, a process. Both in the collector's numbers. */
static __always_inline void note_fork(__u32 parent, __u32 child, __u64 now)
{
	struct runtime_fork *fork = fork_slot(child), *older;
	const struct runtime_info *info;

	if (!fork)
		return;
	if (fork->tgid == child) /* an earlier process of this number */
		fork->tgid = 0;
	if (!may_have_runtimes(parent))
		return;
	info = inherited_runtimes(parent);
	if (!info)
		return;
	older = fork_of(parent);
	fork->tgid = 0;
	FORK_BARRIER();
	fork->parent = parent;
	fork->grandparent = older ? older->parent : 0;
	fork->info.as_of = now;
	fork->info.has = RUNTIME_PYTHON;
	fork->info.python = info->python;
	FORK_BARRIER();
	fork->tgid = child;
}

/* ---- V8 -------------------------------------------------------------------------------------- */

static __always_inline __u64 load_v8_word(const struct notes *n, __s64 offset)
{
	__u64 at = (__u64)(offset + (__s64)RUNTIME_V8_FRAME) >> 3;

	UNWIND_HIDE(at);
	return at < V8_FRAME_WORDS ? n->v8_frame[at] : 0;
}

/*
 * The words below the frame pointer, into n->v8_frame. Most of the time they are in what was read for the walk, which has
 * read the words at the frame pointer just now.
 */
static __always_inline bool read_v8_frame(struct notes *n, const struct unwind_state *u, __u64 fp)
{
	__u64 from = fp - RUNTIME_V8_FRAME, at = (from - u->window_start) >> 3;

	if (from < u->window_start || fp > u->window_end)
		return !bpf_probe_read_user(n->v8_frame, sizeof(n->v8_frame), (void *)from);
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
	if (bpf_probe_read_user(number, sizeof(*number),
				(void *)(script + (__s64)n->info.v8.script_id)))
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
		return bpf_probe_read_user(&check, sizeof(check),
					   (void *)(shared + (__s64)v8->number))
			       ? 0
			       : check;
	if (bpf_probe_read_user(n->v8_script, sizeof(n->v8_script),
				(void *)(shared + (__s64)v8->script)) ||
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

/* Are the words of the closure that were read those that it had when its function was last looked at? */
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

/* Which function of the program a JSFunction is. False: it is none. */
static __always_inline bool identify_v8(struct notes *n, __u64 function, struct frame_note *note)
{
	struct v8_known *known = v8_known(n, function);
	bool is_it = known->function == function && known->as_of == n->info.as_of;

	if (!is_it || known->seen != n->time) {
		if (bpf_probe_read_user(n->v8_closure, sizeof(n->v8_closure),
					(void *)(function + (__s64)n->info.v8.closure)))
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
 * A frame that is no function's has its type, a small number, where another one has its context. Of WebAssembly's own the next word
 * is the instance of the module.
 */
static __always_inline void note_v8_typed(struct notes *n, struct frame_note *note, __u64 type)
{
	const struct runtime_v8 *v8 = &n->info.v8;
	__u64 wanted = note->frame ? v8->typed : v8->typed_leaf;

	if (type & 1 || type >> 1 >= 64)
		return;
	type >>= 1;
	if (type && type == v8->wasm) {
		note->kind = FRAME_NOTE_V8_WASM;
		note->function = load_v8_word(n, v8->function);
		if ((note->function & V8_TAG_MASK) == V8_TAG)
			add_note(n, note);
	} else if (wanted >> (type & 63) & 1) {
		note->kind = FRAME_NOTE_V8_FRAME;
		note->function = type;
		add_note(n, note);
	}
}

/* The frame number `frame`, whose frame pointer is `fp`. A global function, which is verified once. */
__attribute__((noinline)) int note_v8(__u32 frame, __u64 fp)
{
	struct frame_note note = {.frame = frame, .kind = FRAME_NOTE_V8};
	struct scratch *s = scratch();
	struct notes *n = notes();
	__u64 function, offset, context;

	if (!n || !s || (fp & 7) || !read_v8_frame(n, &s->unwind, fp))
		return 0;
	context = load_v8_word(n, n->info.v8.context);
	if ((context & V8_TAG_MASK) != V8_TAG) {
		note_v8_typed(n, &note, context);
		return 0;
	}
	function = load_v8_word(n, n->info.v8.function);
	if ((function & V8_TAG_MASK) != V8_TAG)
		return 0;
	if (!identify_v8(n, function, &note))
		return 0;
	/* a small integer, or the address of something else */
	offset = load_v8_word(n, n->info.v8.bytecode_offset);
	if (!(__u32)offset)
		note.place = offset >> 32;
	add_note(n, &note);
	return 0;
}

/* The frame number `frame` is not made yet: V8 calls its functions with the JSFunction in a register. */
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

/* ---- CPython --------------------------------------------------------------------------------- */

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

static __always_inline long read_word(__u64 address, __u64 *word)
{
	return bpf_probe_read_user(word, sizeof(*word), (void *)address);
}

/* PyThreadState of this thread; 0: it has none. */
static __always_inline __u64 python_thread(const struct runtime_python *python)
{
	__u64 at = TASK_READ(current_task(), thread.fsbase);

#pragma unroll
	for (__u32 i = 0; i < RUNTIME_HOPS; i++) {
		if (i >= python->hops)
			break;
		if (!at || read_word(at + python->hop[i], &at))
			return 0;
	}
	return python->hops ? at : 0;
}

/* How a walk over the chain went on. */
enum {
	PYTHON_ROOT, /* to its end */
	PYTHON_MORE, /* there is another frame */
	PYTHON_FULL, /* there is no room for the frame */
	PYTHON_TORN, /* that is no frame */
};

/* What the thread has to do with the GIL: one or two reads of user memory. FRAME_NOTE_GIL_ */
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
		if (bpf_probe_read_user(flags, sizeof(flags),
					(void *)(state + python->state_holds)))
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
	if (!python->gil || bpf_probe_read_user(&gil, sizeof(gil), (void *)python->gil))
		return 0;
	if (gil.locked != 1)
		return known;
	if (gil.holder != state && python->state_thread &&
	    !read_word(gil.holder + python->state_thread, &fs) &&
	    fs == TASK_READ(current_task(), thread.fsbase))
		*thread = state = gil.holder;
	return gil.holder == state ? known | FRAME_NOTE_GIL_HELD : known;
}

/* The group ends here. */
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

/* What is looked at of a code object lies close together. */
static __always_inline bool read_code(struct notes *n, __u64 code)
{
	__u64 size = n->info.python.code_size;

	UNWIND_HIDE(size);
	return size <= RUNTIME_CODE_BYTES &&
	       !bpf_probe_read_user(n->python_code, size,
				    (void *)(code + n->info.python.code_from));
}

/* The last bytes of the name of the file, into n->file_tail. Its length. */
static __always_inline __u64 read_file_tail(struct notes *n, __u64 filename)
{
	const struct runtime_python *python = &n->info.python;
	__u64 length, size = sizeof(n->file_tail);

#pragma unroll
	for (__u32 i = 0; i < RUNTIME_FILE_TAIL; i++)
		n->file_tail[i] = 0;
	if (read_word(filename + python->str_length, &length))
		return 0;
	if (length < size)
		size = length;
	UNWIND_HIDE(size);
	if (size <= sizeof(n->file_tail))
		bpf_probe_read_user(n->file_tail, size,
				    (void *)(filename + python->str_ascii + length - size));
	return length;
}

/* Of the code object that was read: its version, or what stands for one. What cannot be read counts as 0. */
static __always_inline __u32 version_of_code(struct notes *n)
{
	const struct runtime_python *python = &n->info.python;
	__u64 version = word_of_code(n, python->code_version), hash, length;

	if (python->code_name == RUNTIME_NONE)
		return version;
	if (read_word(word_of_code(n, python->code_name) + python->str_hash, &hash))
		hash = 0;
	length = read_file_tail(n, word_of_code(n, python->code_filename));
	return runtime_python_version((__u32)version, hash, length, n->file_tail);
}

static __always_inline __u64 hash_of_code(const struct notes *n, __u64 code, __u64 check)
{
	__u64 hash = (code ^ n->info.as_of * 0xc2b2ae3d27d4eb4full) * 0x9e3779b97f4a7c15ull;

	hash ^= hash >> 32;
	return (hash ^ check) * 0x9e3779b97f4a7c15ull | 1;
}

static __always_inline struct copied_set *copied_set(__u64 hash)
{
	__u32 set = hash >> (64 - COPIED_BITS);

	return bpf_map_lookup_elem(&copied_codes, &set);
}

/* Two CPUs may do so at once: one of the two functions is copied once more then. */
static __always_inline void note_copied(const struct notes *n, __u64 code, __u64 check)
{
	__u64 hash = hash_of_code(n, code, check);
	struct copied_set *set = copied_set(hash);

	if (!set)
		return;
#pragma unroll
	for (__u32 i = COPIED_WAYS - 1; i; i--)
		set->hashes[i] = set->hashes[i - 1];
	set->hashes[0] = hash;
}

/* A function that this sample has not met before. */
static __always_inline void meet_code(struct notes *n, __u64 code, __u64 check)
{
	__u64 hash = hash_of_code(n, code, check);
	struct copied_set *set = copied_set(hash);
	__u32 at = n->met_count;

	if (!set || !check || !n->info.python.head_size || at >= CODE_COPIES)
		return;
#pragma unroll
	for (__u32 i = 0; i < COPIED_WAYS; i++)
		if (set->hashes[i] == hash)
			return;
	n->met[at].function = code;
	n->met[at].check = check;
	n->met_count = at + 1;
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

/* Each group will need a note of its loop, too, and the cut one. */
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
 * Into n->python_frame. A frame's caller lies right below it, most of the time, so what is below it is read with it, as far as
 * its own page goes: reading 500 bytes costs hardly more than reading 88.
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
		if (size > PYTHON_WINDOW ||
		    bpf_probe_read_user(n->python_window, size, (void *)from))
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

/* Does the frame that was read stand for the C stack? From 3.12 on, one ends each group. */
static __always_inline bool is_of_c(const struct notes *n)
{
	const struct runtime_python *python = &n->info.python;

	return python->frame_is_entry == RUNTIME_NONE &&
	       byte_of_frame(n, python->frame_owner) >= PYTHON_OWNED_BY_C;
}

/* One frame of the chain. A global function. */
__attribute__((noinline)) int python_step(void)
{
	struct notes *n = notes();
	const struct runtime_python *python;
	__u64 code, frame;
	int end;

	if (!n)
		return PYTHON_ROOT;
	python = &n->info.python;
	frame = n->frame;
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

/* A global function: it is verified once, and called often. */
__attribute__((noinline)) int python_steps(void)
{
	int end = PYTHON_MORE;

	for (__u32 i = 0; i < PYTHON_FRAMES_A_CHECK && end == PYTHON_MORE; i++)
		end = python_step();
	return end;
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

/* The anchor of the group that has no room for its outer frames: its inner ones stand at its loop all the same. */
static __always_inline void find_last_anchor(struct notes *n, __u64 until)
{
	if (n->info.python.frame_is_entry != RUNTIME_NONE) {
		end_group(n, n->cframe);
		return;
	}
	for (__u32 i = 0; i < PYTHON_PASS_CHECKS; i++)
		if (python_passes() != PYTHON_MORE || bpf_ktime_get_ns() > until)
			return;
}

/* A note without a function: here are frames that are not noted. There is room for it. */
static __always_inline void note_cut(struct notes *n)
{
	__u32 group = n->groups;
	struct frame_note note = {.frame = group < PYTHON_GROUPS ? group : PYTHON_GROUPS - 1,
				  .kind = FRAME_NOTE_PYTHON};

	add_note(n, &note);
}

/* The frame that the C frame has. */
static __always_inline bool enter_cframe(struct notes *n)
{
	return !read_word(n->cframe + n->info.python.cframe_frame, &n->frame);
}

/* Where a thread's state points, is there a frame? */
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

/*
 * Up to 3.12 the loop links its C frame in before it has filled it in: what it has then is garbage, and the chain
 * begins at the C frame before.
 */
static __always_inline bool begin_chain_again(struct notes *n)
{
	const struct runtime_python *python = &n->info.python;

	return python->cframe_frame != RUNTIME_NONE && !n->count && !n->groups &&
	       !read_word(n->cframe + python->cframe_previous, &n->cframe) && n->cframe &&
	       enter_cframe(n);
}

/* The Python frames of the current thread, until it is that late. */
static __always_inline void walk_python(struct notes *n, __u64 until)
{
	int end = begin_chain(n) ? PYTHON_MORE : PYTHON_ROOT;

	for (__u32 i = 0; i < PYTHON_CHECKS && end == PYTHON_MORE; i++) {
		end = python_steps();
		if (end == PYTHON_TORN && begin_chain_again(n))
			end = python_steps();
		if (bpf_ktime_get_ns() > until)
			break;
	}
	if (end == PYTHON_ROOT)
		return;
	note_cut(n);
	if (end != PYTHON_TORN && n->groups < PYTHON_GROUPS)
		find_last_anchor(n, until);
}

/* The next anchor that no frame was found for yet; above all frames, if there is none. */
static __always_inline __u64 next_anchor(const struct notes *n)
{
	__u32 group = n->passed;

	if (group >= n->groups || group >= PYTHON_GROUPS)
		return ~0ULL;
	return n->anchors[group & (PYTHON_GROUPS - 1)];
}

/*
 * The native frame number `frame` has the stack from `sp` up to `cfa`, which is above the next anchor: is it the loop of that
 * group? Anchors that the walk has passed have no frame. A global function.
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
